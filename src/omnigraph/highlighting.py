"""Colours for schemas (`.pg`) and queries (`.gq`): lexers that Pygments finds once the package is installed."""

from __future__ import annotations

from typing import ClassVar

from pygments.lexer import RegexLexer, words
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Text

COMMON = [
    (r"\s+", Text),
    (r"//[^\n]*", Comment.Single),
    (r"/\*[\s\S]*?\*/", Comment.Multiline),
    (r'"(\\.|[^"\\])*"', String),
    (r"@\w+", Name.Decorator),
    (r"\$\w+", Name.Variable),
    (r"-?\d+(\.\d+)?([eE][+-]?\d+)?", Number),
    (r"->|<-|\.\.|<=|>=|!=|[=<>+\-*/%|?]", Operator),
    (r"[{}()\[\],:;.]", Punctuation),
]
SCALARS = (
    "String",
    "Bool",
    "I32",
    "I64",
    "U32",
    "U64",
    "F32",
    "F64",
    "Date",
    "DateTime",
    "Blob",
    "Vector",
    "enum",
)
QUERY_WORDS = (
    "query", "match", "return", "order", "limit", "skip", "having", "not", "exists", "optional", "union", "insert",
    "update", "delete", "set", "where", "and", "or", "as", "asc", "desc", "distinct", "in", "is", "null", "true",
    "false",
)  # fmt: skip
LINE_WORDS = (
    "reset",
    "show",
    "explain",
    "branch",
)  # at the start of a line; elsewhere they are names


class SchemaLexer(RegexLexer):  # type: ignore[misc]
    """Schemas."""

    name = "omnigraph schema"
    aliases: ClassVar[list[str]] = ["pg"]
    filenames: ClassVar[list[str]] = ["*.pg"]
    tokens: ClassVar = {
        "root": [
            (words(("node", "edge", "interface", "implements", "extends"), suffix=r"\b"), Keyword),
            (words(SCALARS, suffix=r"\b"), Keyword.Type),
            *COMMON,
            (r"[A-Z]\w*", Name.Class),
            (r"\w+", Name.Attribute),
            (r".", Text),
        ]
    }


class QueryLexer(RegexLexer):  # type: ignore[misc]
    """Queries and mutations."""

    name = "omnigraph query"
    aliases: ClassVar[list[str]] = ["gq"]
    filenames: ClassVar[list[str]] = ["*.gq"]
    tokens: ClassVar = {
        "root": [
            (words(QUERY_WORDS, suffix=r"\b"), Keyword),
            (rf"(?m)^(?:{'|'.join(LINE_WORDS)})\b", Keyword),
            (words(SCALARS, suffix=r"\b"), Keyword.Type),
            *COMMON,
            (r"\w+(?=\s*\()", Name.Function),
            (r"[A-Z]\w*", Name.Class),
            (r"\w+", Name.Attribute),
            (r".", Text),
        ]
    }
