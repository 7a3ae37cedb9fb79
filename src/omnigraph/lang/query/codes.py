"""The catalogue of the query language's codes: T for types, Q for what belongs to queries as such, L for lint.

The T codes are those of the language this one extends; Q codes are for everything it had no code for.
"""

from __future__ import annotations

from omnigraph.errors import Kind
from omnigraph.lang.codes import Entry, register_all

TYPES: tuple[Entry, ...] = (
    (
        "T1",
        "Unknown node type",
        "A variable is bound to a node type or an interface of the schema.",
        "Check the name against the schema.",
    ),
    (
        "T2",
        "Unknown property in a pattern",
        "The braces after a type name properties of that type.",
        "Check the name against the schema.",
    ),
    (
        "T3",
        "A value does not fit the property",
        "A value has the property's type: one of an enum's members, a vector of the right length.",
        "Give a value of the property's type.",
    ),
    (
        "T4",
        "Unknown edge type",
        "A traversal names an edge type of the schema; case does not matter.",
        "Check the name against the schema.",
    ),
    (
        "T5",
        "A variable is not an endpoint of the edge",
        "The variables at the two ends of a traversal have the node types the edge connects.",
        "Check the direction of the edge and the types of the variables.",
    ),
    (
        "T6",
        "Unknown variable or property",
        "A variable is used after the clause that binds it, and a property belongs to its type.",
        "Bind the variable in an earlier clause, or check the property's name.",
    ),
    (
        "T7",
        "Incompatible types",
        "Both sides of a comparison are scalars of one type; numbers compare with all numbers. "
        "Dates do not compare with datetimes.",
        "Compare values of one type, or convert one side: cast(x as T).",
    ),
    (
        "T8",
        "An aggregate does not take this type",
        "sum and avg take numbers; min and max take any value that has an order.",
        "Aggregate a property of a suitable type.",
    ),
    (
        "T9",
        "A block or a column is not connected",
        "A not, exists or optional block shares a variable with what surrounds it, and every column of an aggregate "
        "query is a group key or an aggregate.",
        "Mention an outer variable inside the block.",
    ),
    (
        "T10",
        "Unknown type in a statement",
        "insert, update and delete name a node or an edge type, and assign at least one property.",
        "Check the name against the schema.",
    ),
    (
        "T11",
        "Unknown property in a statement",
        "Assignments and conditions name properties of the type; an edge also has `from` and `to`.",
        "Check the name against the schema.",
    ),
    (
        "T12",
        "A required value is missing",
        "An insert names every property that may not be null and has no default, and both ends of an edge.",
        "Assign the property.",
    ),
    (
        "T13",
        "A property is assigned twice",
        "One statement assigns a property once.",
        "Remove one of the two assignments.",
    ),
    (
        "T14",
        "This variable is not a parameter",
        "Values in statements and patterns are literals, parameters and functions of them.",
        "Declare the parameter after the query's name: query q($name: String).",
    ),
    (
        "T15",
        "Invalid bounds or vector",
        "Hops are {min,max} with 1 <= min <= max; nearest takes a Vector property and a vector of its length.",
        "Write bounds such as {1,3}; give a vector with the property's dimension.",
    ),
    (
        "T17",
        "nearest needs a limit",
        "Every vector has a distance, so an ordering by nearest says how many to keep.",
        "Add `limit 10`.",
    ),
    (
        "T18",
        "nearest does not combine with column names",
        "When nearest(...) is written in the order, the other keys are properties.",
        "Return the distance as a column and order by it: return { nearest(...) as d, … } order { d, n }.",
    ),
    (
        "T19",
        "This is not searchable text",
        "Searches for words and highlight take a String property and a String; fuzzy a whole number of edits.",
        "Name a String property.",
    ),
    (
        "T20",
        "This is not text to rank",
        "match_text and bm25 take a String property and a String.",
        "Name a String property.",
    ),
    (
        "T21",
        "Incomplete fusion",
        "rrf takes two rankings (nearest or bm25), a positive whole number at most, and a limit when it orders.",
        "Write order { rrf(nearest(...), bm25(...)) } limit 10.",
    ),
    (
        "T22",
        "This edge has a direction",
        "An undirected traversal needs an edge whose two ends have the same type.",
        "Leave the angle brackets out.",
    ),
    (
        "T23",
        "An edge variable is used as something else",
        "An edge variable has one hop and a unique name; it is not an endpoint and cannot be searched.",
        "Use its properties: $e.weight.",
    ),
    (
        "T24",
        "A Blob is not a value of a query",
        "Blobs are read by their own call, not by queries.",
        "Read it with graph.blob(type, id, property).",
    ),
)

QUERIES: tuple[Entry, ...] = (
    (
        "Q001",
        "An annotation is given twice",
        "A query has each annotation, such as @description, at most once.",
        "Remove one of them.",
    ),
    (
        "Q002",
        "Unknown type",
        "Parameters and casts name the types of the schema language; enums are Strings here.",
        "The types are String Bool I32 I64 U32 U64 F32 F64 Date DateTime, [T] and Vector(n).",
    ),
    (
        "Q003",
        "A parameter's name is taken",
        "Parameters of one query have different names; `__nanograph_now` is reserved for the time of the query.",
        "Choose another name.",
    ),
    (
        "Q004",
        "A name is a parameter and a variable",
        "Pattern variables and parameters have different names.",
        "Rename one of the two.",
    ),
    (
        "Q005",
        "Unknown column",
        "A bare word in return, having and order names a column of the result.",
        "Name a column that the return gives, or a property: $x.name.",
    ),
    (
        "Q006",
        "The result cannot be ordered by this",
        "After grouping, distinct or union only the columns of the result are left to order by.",
        "Return the value as a column and order by its name.",
    ),
    (
        "Q007",
        "The branches of the union differ",
        "All branches give the same columns: the same names, in the same order, with compatible types.",
        "Name the columns alike with `as`.",
    ),
    (
        "Q008",
        "The function cannot be called like this",
        "The name or the arguments do not fit any function of the language.",
        "See the list of functions in the language reference.",
    ),
    (
        "Q009",
        "A ranking is not allowed here",
        "nearest, bm25 and rrf are allowed in return, and first in order.",
        "Return it as a column, or order by it first.",
    ),
    (
        "Q010",
        "An aggregate is not allowed here",
        "Aggregates are allowed in return and having, not inside each other.",
        "Move the condition into having { … }.",
    ),
    (
        "Q011",
        "Not a count",
        "skip and limit take a whole number from 0, or an integer parameter that is not nullable.",
        "Write `limit 10`, or declare the parameter as I64.",
    ),
    (
        "Q012",
        "Invalid list members",
        "The members of a list are constants of one scalar type.",
        "Use members of one type.",
    ),
    (
        "Q013",
        "Not a condition",
        "A clause that is an expression has the type Bool.",
        "Compare the value with something.",
    ),
    (
        "Q014",
        "A key or an endpoint cannot be updated",
        "The key of an entity is its identity, and the ends of an edge are part of it.",
        "Delete the entity and insert it again.",
    ),
    (
        "Q015",
        "Deletes do not mix with inserts and updates",
        "One mutation either deletes, or inserts and updates, so the order of statements never matters.",
        "Split it into two queries: first the inserts and updates, then the deletes. If no reader may see the state "
        "between them, put both into one block: graph.branch(name).write(), or POST /write.",
    ),
    (
        "Q016",
        "A whole entity is not a value here",
        "`$x.*` and entity($x) are allowed only in return, and `$x.*` only on its own.",
        "Name a property: $x.name.",
    ),
    (
        "Q017",
        "A pattern or time cannot be read",
        "Regular expressions are RE2; dates are YYYY-MM-DD, times RFC 3339.",
        "Check the text between the quotes.",
    ),
    (
        "Q021",
        "Two columns have one name",
        "A row holds one value per column name, so column names are unique in a result.",
        "Name one of them with `as`.",
    ),
    (
        "Q022",
        "A statement is in the wrong place",
        "Settings come first in a file, followed by queries, or by a single show, explain or branch.",
        "Put the statement into a separate file.",
    ),
    (
        "Q023",
        "A setting does not exist, or takes another value",
        "A setting has a name and the values it takes; `show all;` lists them.",
        "Run `show all;` to see every setting.",
    ),
    (
        "Q018",
        "A path is used as something else",
        "A path variable has a unique name; nodes, edges and length read its parts.",
        "Use nodes($p), edges($p) or length($p).",
    ),
)

BOUNDS: tuple[Entry, ...] = (
    (
        "Q019",
        "The query has too many parts",
        "The bindings, traversals, blocks and operands of a query are bounded, so that no text can exhaust an engine.",
        "Split the query.",
    ),
    (
        "Q020",
        "Column names expand to too much",
        "A column that uses the names of earlier ones is as large as their expansion: operators and levels are "
        "bounded as in one expression, and so is the size of all columns of a result.",
        "Use an earlier column less often, or split the query.",
    ),
)

LINT: tuple[Entry, ...] = (
    (
        "Q000",
        "The query file does not parse",
        "Nothing in the file is checked until it can be read.",
        "Fix the syntax error.",
    ),
    (
        "L201",
        "No update sets this property",
        "The file updates the type, but no query of it ever sets this nullable property.",
        "Set the property in one of the updates, or drop it from the schema.",
    ),
    (
        "L203",
        "Two queries have one name",
        "The first query of a name runs; the others cannot be reached.",
        "Rename one of them.",
    ),
    (
        "L204",
        "A ranking ignores this direction",
        "A ranking always puts the best first.",
        "Leave `asc` out.",
    ),
)

register_all(TYPES)
register_all(QUERIES)
register_all(LINT)
register_all(BOUNDS, Kind.LIMIT)
