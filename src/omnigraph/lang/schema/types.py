"""Parsing types and values: the self-contained part of the schema grammar."""

from __future__ import annotations

import re
from itertools import pairwise

from omnigraph.lang.cursor import Cursor, Unparsable
from omnigraph.lang.diagnostics import Diagnostics, did_you_mean
from omnigraph.lang.lexer import Tok, Token, unquote
from omnigraph.lang.schema.ast import Scalar, TypeRef, Value
from omnigraph.lang.schema.words import BASE_TYPES, TYPE_ALIASES, TYPE_WORDS
from omnigraph.lang.source import Place, Source, between
from omnigraph.model.types import VECTOR_DIM_MAX, PropType
from omnigraph.model.types import Scalar as Base

ENUM_VALUE = re.compile(r"[A-Za-z0-9_-]+")
UNKNOWN_TYPE = PropType(Base.STRING, nullable=True)  # stands for a type with a reported error


class TypeParser:
    """Types and values; `Parser` adds declarations, constraints and annotations."""

    def __init__(self, diagnostics: Diagnostics) -> None:
        self.diagnostics = diagnostics
        self.cursor = Cursor(diagnostics)

    def type_ref(self) -> TypeRef:
        """type = ( list | enum | vector | base ) [ "?" ] ;"""
        first = self.cursor.token
        values: tuple[str, ...] = ()
        match first.text:
            case "[":
                kind = self.list_type()
            case "enum":
                kind, values = self.enum_type()
            case "Vector":
                kind = self.vector_type()
            case _:
                kind = self.base_type()
        if self.cursor.take("?"):
            kind = kind.with_nullable(True)
        return TypeRef(kind, values, between(first, self.cursor.previous))

    def list_type(self) -> PropType:
        """list = "[" base "]" ;"""
        with self.cursor.nested("[", "to open a list type"):
            inner = self.cursor.token
            if inner.text in ("[", "enum", "Vector"):
                message = f"a list holds base types only, not {inner}"
                raise self.cursor.fail(message, code="S4")
            kind = self.base_type()
            if self.cursor.at("?") and self.cursor.peek().text == "]":
                help = "Write [String]? when the list itself may be absent."
                raise self.cursor.fail(
                    "the members of a list cannot be optional", code="S4", help=help
                )
        if kind.is_blob:
            message = "a list of Blob is not supported"
            self.diagnostics.error("S4", message, between(inner, self.cursor.previous))
        return PropType(kind.scalar, is_list=True)

    def enum_type(self) -> tuple[PropType, tuple[str, ...]]:
        """enum = "enum" "(" enum_value { "," enum_value } ")" ;"""
        self.cursor.advance()
        values: list[str] = []
        with self.cursor.nested("(", "after `enum`"):
            while True:
                token = self.enum_value()
                if token.text in values:
                    message = f"the enum lists `{token.text}` twice"
                    self.diagnostics.error("S3", message, token)
                values.append(token.text)
                if not self.cursor.take(","):
                    break
                if self.diagnostics.full:
                    raise Unparsable
        return PropType(Base.STRING, enum=tuple(sorted(set(values)))), tuple(values)

    def enum_value(self) -> Token:
        """enum_value = ( letter | digit | "_" | "-" ) { letter | digit | "_" | "-" } ;"""
        if self.cursor.token.kind is Tok.STRING:
            better = unquote(self.cursor.token.text)
            help = f"Did you mean `{better}`?" if ENUM_VALUE.fullmatch(better) else ""
            raise self.cursor.fail("enum values are written without quotes", help=help)
        return self.cursor.raw(ENUM_VALUE, "an enum value")

    def vector_type(self) -> PropType:
        """vector = "Vector" "(" integer ")" ;"""
        self.cursor.advance()
        with self.cursor.nested("(", "after `Vector`: its dimension, as in Vector(384)"):
            token = self.cursor.token
            dim = self.cursor.integer("the dimension of a Vector")
            if not 0 < dim <= VECTOR_DIM_MAX:
                message = f"a Vector has between 1 and {VECTOR_DIM_MAX} dimensions, not {dim}"
                self.diagnostics.error("S2", message, token)
                dim = 1
        return PropType(Base.F32, vector_dim=dim)

    def base_type(self) -> PropType:
        """base = "String" | "Blob" | "Bool" | "I32" | "I64" | "U32" | "U64" | "F32" | "F64" | "Date" | "DateTime" ;"""
        token = self.cursor.token
        if token.text in BASE_TYPES:
            self.cursor.advance()
            return PropType(BASE_TYPES[token.text])
        message = f"expected a type, found {token}"
        if token.kind not in (Tok.NAME, Tok.MIXED):
            raise self.cursor.fail(
                message, help="Types are " + ", ".join(TYPE_WORDS) + " and [lists]."
            )
        meant = did_you_mean(token.text, TYPE_WORDS, TYPE_ALIASES)
        help = f"Did you mean `{meant}`?" if meant else ""
        if ("node", token.text) in pairwise(self.cursor.lexed.texts):
            meant, help = None, f"A reference is an edge: edge Name: From -> {token.text}"
        self.diagnostics.error("S1", f"unknown type {token}", token, help=help, suggestion=meant)
        self.cursor.advance()
        if self.cursor.at("("):
            raise Unparsable
        return PropType(BASE_TYPES[meant]) if meant in BASE_TYPES else UNKNOWN_TYPE

    def value(self) -> Value:
        """value = literal | ident | TypeName | "[" [ literal { "," literal } ] "]" ;"""
        first = self.cursor.token
        if first.text == "[":
            with self.cursor.nested("[", "to open a list"):
                items = () if self.cursor.at("]") else tuple(self.cursor.sep_by(self.literal))
            return Value(items, False, between(first, self.cursor.previous))
        if first.kind is Tok.NAME and first.text not in ("true", "false"):
            self.cursor.advance()
            return Value(first.text, True, Place(first.start, first.end))
        return Value(self.literal(), False, between(first, self.cursor.previous))

    def literal(self) -> Scalar:
        """literal = string | number | "true" | "false" ;"""
        token = self.cursor.token
        if token.kind is Tok.STRING:
            return unquote(self.cursor.advance().text)
        if token.text in ("true", "false"):
            return self.cursor.advance().text == "true"
        return self.number()

    def number(self) -> int | float:
        """number = [ "-" ] ( integer | float ) ;"""
        sign = -1 if self.cursor.take("-") else 1
        token = self.cursor.token
        if token.kind not in (Tok.INTEGER, Tok.FLOAT):
            raise self.cursor.fail(f"expected a value, found {token}")
        value = parse_number(token)
        if value is None:
            raise self.cursor.fail(f"{token} is too large a number", code="P7")
        self.cursor.advance()
        return sign * value


def parse_type(text: str) -> PropType:
    """The type of a text, as `str` writes it.

    >>> parse_type("enum(x, y)?").enum
    ('x', 'y')
    """
    diagnostics = Diagnostics(Source(text))
    kind = TypeParser(diagnostics).type_ref().type
    diagnostics.raise_errors()
    return kind


def parse_number(token: Token) -> int | float | None:
    """The value of a number token, or None if it is too large."""
    if token.kind is Tok.INTEGER:
        return int(token.text) if len(token.text.lstrip("0")) <= 20 else None
    value = float(token.text)
    return value if abs(value) != float("inf") else None
