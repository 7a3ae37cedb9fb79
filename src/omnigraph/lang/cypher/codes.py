"""The catalogue of Cypher's semantic error codes. Syntax errors are those of all languages."""

from __future__ import annotations

from omnigraph.lang.codes import Entry, register_all

CYPHER: tuple[Entry, ...] = (
    (
        "C001",
        "Not part of the language here",
        "Other products support it; this one has an alternative.",
        "See the page about Cypher for the alternative.",
    ),
    (
        "C002",
        "Unknown label",
        "A label is the name of a node type or of an interface of the schema.",
        "Use a label of the schema, or add a node type to the schema.",
    ),
    (
        "C003",
        "Unknown relationship type",
        "A relationship type is the name of an edge type of the schema, or its @label.",
        "Use a type of the schema, or add an edge type to the schema.",
    ),
    (
        "C004",
        "Labels that exclude each other",
        "A node has one type for as long as it exists. Its labels are that type and the interfaces it implements.",
        "Give the types an interface in the schema, and use that as the label.",
    ),
    (
        "C005",
        "Unknown property",
        "None of the types the variable stands for declares the property.",
        "Use a property of the schema, or add it to the schema.",
    ),
    (
        "C006",
        "Values of several types in one place",
        "A list, a column, a property of several node types or the result of CASE has one type.",
        "Convert with toString, toInteger or toFloat, or return them separately.",
    ),
    (
        "C007",
        "Unknown variable",
        "After WITH only the variables it names are known.",
        "Name the variable in WITH, or bind it in a MATCH.",
    ),
    (
        "C008",
        "A variable is used as something else",
        "A variable stands for a node, a relationship, a path or a value, and does not change.",
        "Use another name.",
    ),
    (
        "C009",
        "An operand or argument has the wrong type",
        "The operator or function is not defined for values of this type.",
        "Convert the value, or use another function.",
    ),
    (
        "C010",
        "An aggregate is not allowed here",
        "Aggregates are allowed in WITH and RETURN. Beside them, an expression may use only the grouping keys.",
        "Compute it in a WITH before, and use its name.",
    ),
    (
        "C011",
        "Unknown function",
        "The name is not that of a function or procedure.",
        "See the list of functions on the page about Cypher.",
    ),
    (
        "C012",
        "A column needs a unique name",
        "Columns of WITH become variables, and their names are unique.",
        "Give it a name with AS.",
    ),
    (
        "C013",
        "Clauses are in the wrong order",
        "A query ends with RETURN, a writing clause or a CALL.",
        "Reorder the clauses.",
    ),
    (
        "C014",
        "The branches of a UNION differ",
        "All have the same columns in the same order, with compatible types.",
        "Name the columns alike with AS.",
    ),
    (
        "C015",
        "Not possible in this place",
        "This is valid Cypher, but cannot be planned yet.",
        "Split the query with WITH.",
    ),
    (
        "C016",
        "A count that is not a whole number",
        "SKIP and LIMIT take a whole number from 0, a literal or a parameter.",
        "Write a whole number.",
    ),
    (
        "C017",
        "A pattern that cannot be created",
        "A created node has one label, a created relationship one type and a direction.",
        "Write the label, the type and the direction.",
    ),
    (
        "C018",
        "Read after delete",
        "A node or relationship has no properties any more once the query has deleted it.",
        "Name what you need with WITH before DELETE.",
    ),
)

register_all(CYPHER)
