"""The catalogue of schema codes: S1 to S26 are errors, S30 and up are lint, M and OG codes are about migrations."""

from __future__ import annotations

from omnigraph.errors import Kind
from omnigraph.lang.codes import Entry, register_all

ERRORS: tuple[Entry, ...] = (
    (
        "S1",
        "Unknown property type",
        "A property is a base type, an enum, a Vector or a list of base types. A reference to another node is an edge.",
        "Types are String, Blob, Bool, I32, I64, U32, U64, F32, F64, Date, DateTime, enum(…), Vector(n) and [T].",
    ),
    (
        "S2",
        "A vector has an impossible dimension",
        "The dimension of a Vector is a positive number that fits 31 bits.",
        "Write the dimension of your embedding model, as in Vector(384).",
    ),
    (
        "S3",
        "An enum lists a value twice",
        "The values of an enum are a set; their order carries no meaning.",
        "Remove the repetition.",
    ),
    (
        "S4",
        "A list cannot hold this type",
        "Lists hold base types other than Blob; their members are never optional.",
        "Model members with more structure as nodes and connect them with an edge.",
    ),
    (
        "S5",
        "A property name is reserved",
        "Rows have system columns, such as id, and for edges src and dst. Edges also read from and to.",
        "Choose another name for the property.",
    ),
    (
        "S6",
        "Malformed cardinality",
        "@card(min..max) comes directly after the target type of an edge and bounds the edges that leave one node.",
        "Write it like edge WorksAt: Person -> Company @card(0..1).",
    ),
    (
        "S7",
        "The arguments of a constraint do not fit",
        "@key, @unique and @index take property names, @range a property and bounds, @check a property and a pattern.",
        'Write @unique(a, b), @range(p, 0..10) or @check(p, "pattern").',
    ),
    (
        "S8",
        "Unknown interface",
        "A node type can only implement interfaces that the schema declares.",
        "Declare the interface, or remove its name.",
    ),
    (
        "S9",
        "A property disagrees with an interface",
        "A node type has every property of its interfaces with exactly the declared type.",
        "Use the type of the interface, or another property name.",
    ),
    (
        "S10",
        "The arguments of an annotation do not fit",
        "Some annotations take exactly one text, some none at all, and no built-in one may be repeated.",
        "Compare it with the table of annotations in the schema reference.",
    ),
    (
        "S11",
        "An annotation is in the wrong place",
        "Constraints belong to properties and bodies, @instruction to types, @embed to vectors of nodes.",
        "Move it to where the schema reference shows it.",
    ),
    (
        "S12",
        "A property has the wrong type for this rule",
        "Keys and uniqueness need comparable values, @range numbers, @check a String, @embed and @metric a Vector.",
        "Remove the rule, or change the type of the property.",
    ),
    (
        "S13",
        "A constraint names an unknown property",
        "A constraint refers to properties of its own type, on edges also to src and dst.",
        "Check the spelling, or declare the property.",
    ),
    (
        "S14",
        "A type has two keys",
        "A type has at most one key. A key of several properties is one constraint.",
        "Write one @key(a, b) in the body.",
    ),
    (
        "S15",
        "A key property is optional",
        "A key identifies its row, so that each of its properties must have a value.",
        "Remove the ? after its type.",
    ),
    (
        "S16",
        "A pattern is not a regular expression",
        "Patterns are RE2: linear in time, without look-around and back-references.",
        "Fix the pattern; a literal bracket is written \\\\( in a schema.",
    ),
    (
        "S17",
        "A type is declared twice",
        "Interfaces, node types and edge types each have names of their own.",
        "Rename one of the two, or merge them.",
    ),
    (
        "S18",
        "A property is declared twice",
        "Property names are unique within a type.",
        "Remove or rename one of the two.",
    ),
    (
        "S19",
        "Two edge types differ only in case",
        "Queries find edges regardless of case, so that two such names could not be distinguished.",
        "Rename one of the two.",
    ),
    (
        "S20",
        "An edge leads to or from an unknown node type",
        "Both ends of an edge are node types of the same schema; interfaces cannot be ends.",
        "Check the spelling, or declare the node type.",
    ),
    (
        "S21",
        "An embedding has no usable source",
        "@embed names a String property of the same node type, whose text becomes the vector.",
        'Write @embed("body"), or @embed("body", model="name").',
    ),
    (
        "S22",
        "A default does not fit its property",
        "A default is a value of the property's own type. Keys, embeddings and blobs have none.",
        'Write a literal of the property\'s type, as in @default(0) or @default("open").',
    ),
    (
        "S23",
        "A range has impossible bounds",
        "The bounds of @range are inclusive, the lower one first.",
        "Write @range(p, low..high).",
    ),
    (
        "S24",
        "A rename names nothing that can be renamed",
        '@rename_from("Old") names a declaration of the same kind that the graph has now.',
        "Check the old name, or remove the annotation when the rename has been applied.",
    ),
)

LIMITS: tuple[Entry, ...] = (
    (
        "S26",
        "A name is too long",
        "The names of types and properties have at most 255 characters.",
        "Shorten the name; a @description can be as long as it needs to be.",
    ),
)

LINT: tuple[Entry, ...] = (
    (
        "S30",
        "An annotation looks misspelt",
        "Custom annotations are kept as metadata and have no effect; this one resembles a built-in one.",
        "Correct it, or rename it to something less like a built-in annotation.",
    ),
    (
        "S31",
        "A rename has no effect",
        "The graph is new, or already has a declaration with the new name.",
        "Remove the @rename_from annotation.",
    ),
    (
        "S32",
        "An index has no effect",
        "Lists and blobs are not indexed, and a key is indexed anyway.",
        "Remove the index.",
    ),
    (
        "S33",
        "A uniqueness is implied by the key",
        "A key is unique, and so is every set of properties that contains it.",
        "Remove the @unique.",
    ),
    (
        "S34",
        "An interface is not implemented",
        "No node type implements it, so that a query over it finds nothing.",
        "Remove it, or implement it.",
    ),
)

MIGRATION: tuple[Entry, ...] = (
    (
        "OG-DS-102",
        "A node type is dropped",
        "Its rows leave the branch. Earlier commits keep them until cleanup; a hard drop removes them for good.",
        'Rename it with @rename_from("Old") if that was meant.',
    ),
    (
        "OG-DS-103",
        "An edge type is dropped",
        "Its rows leave the branch. Earlier commits keep them until cleanup; a hard drop removes them for good.",
        'Rename it with @rename_from("Old") if that was meant.',
    ),
    (
        "OG-DS-104",
        "A property is dropped",
        "Its values leave the branch. Earlier commits keep them until cleanup; a hard drop removes them for good.",
        'Rename it with @rename_from("old") if that was meant.',
    ),
    (
        "OG-DS-105",
        "A vector property is dropped",
        "Its vectors leave the branch, and its index with them.",
        'Rename it with @rename_from("old") if that was meant.',
    ),
    (
        "OG-MF-103",
        "A required property is added without a default",
        "Rows that exist would have no value for it.",
        "Make it optional with ?, or give it a @default(…).",
    ),
    (
        "OG-MF-106",
        "A property changes its type",
        "Stored values cannot be read with the new type. Widening a number, extending an enum and making a property "
        "optional are possible.",
        "Add a new property, copy the values with a mutation and drop the old one.",
    ),
    (
        "M1",
        "An interface is removed",
        "Queries may be written against it.",
        "Keep the interface.",
    ),
    (
        "M2",
        "A node type changes its interfaces",
        "Which interfaces a node type implements is fixed when it is created.",
        "Create a new node type.",
    ),
    (
        "M3",
        "An edge type changes its ends",
        "Stored edges would lead to nodes of the wrong type.",
        "Add a new edge type, copy the edges with a mutation and drop the old one.",
    ),
    (
        "M4",
        "A stored vector becomes or stops being an embedding",
        "Given vectors and vectors made from a text would be mixed.",
        "Add a new vector property with the @embed you want and drop the old one.",
    ),
    (
        "schema_conflict",
        "Two branches changed the schema incompatibly",
        "Both sides changed the same thing in different ways since they parted.",
        "Apply one schema on both branches, then merge again.",
    ),
)

register_all((*ERRORS, *LINT, *MIGRATION))
register_all(LIMITS, Kind.LIMIT)
