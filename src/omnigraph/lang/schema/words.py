"""The words of the schema language, and common alternatives for them."""

from __future__ import annotations

from omnigraph.model.types import Scalar

DECLARATIONS = ("interface", "node", "edge")
CONSTRAINTS = ("key", "unique", "index", "range", "check")
PROPERTY_WORDS = ("key", "unique", "index")  # constraints that may follow a property
METRICS = ("l2", "cosine", "dot")
ANNOTATIONS = (
    *CONSTRAINTS,
    "card",
    "embed",
    "rename_from",
    "description",
    "instruction",
    "default",
    "metric",
)
BASE_TYPES = {scalar.value: scalar for scalar in Scalar}
TYPE_WORDS = (*BASE_TYPES, "enum", "Vector")

RESERVED = frozenset(
    {"_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version", "_row_last_updated_at_version"}
)
STRUCTURAL = {
    "interface": frozenset({"id"}),
    "node": frozenset({"id"}),
    "edge": frozenset({"id", "src", "dst", "from", "to"}),
}

KEYWORD_ALIASES = {
    **dict.fromkeys(("vertex", "table", "type", "class", "entity", "struct", "record"), "node"),
    **dict.fromkeys(("relation", "relationship", "rel", "link", "arc"), "edge"),
    **dict.fromkeys(("trait", "abstract", "mixin", "protocol"), "interface"),
}
TYPE_ALIASES = {
    **dict.fromkeys(("str", "text", "varchar", "char", "utf8", "uuid", "json"), "String"),
    **dict.fromkeys(("int", "integer", "long", "bigint", "int64", "i8", "i16", "number"), "I64"),
    **dict.fromkeys(("int32", "smallint"), "I32"),
    **dict.fromkeys(("uint", "uint64"), "U64"),
    **dict.fromkeys(("uint32", "u8", "u16"), "U32"),
    **dict.fromkeys(("float", "double", "float64", "decimal", "real", "numeric"), "F64"),
    **dict.fromkeys(("float32", "half"), "F32"),
    **dict.fromkeys(("boolean", "bit", "flag"), "Bool"),
    **dict.fromkeys(("timestamp", "timestamptz", "instant", "time"), "DateTime"),
    **dict.fromkeys(("bytes", "binary", "bytea", "file"), "Blob"),
    **dict.fromkeys(("embedding", "tensor", "vec"), "Vector"),
    **dict.fromkeys(("enumeration", "choice", "oneof", "enum"), "enum"),
}
