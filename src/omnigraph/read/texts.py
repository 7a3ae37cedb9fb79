"""Predicates on text: substrings, prefixes, patterns, and the words of full-text search."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import OptionInvalid
from omnigraph.lang import ir
from omnigraph.lang.evaluate import evaluate as evaluate_constant
from omnigraph.read.arrays import Value
from omnigraph.read.context import Context
from omnigraph.read.elementwise import in_duckdb
from omnigraph.read.rows import Entities, Rows
from omnigraph.read.values import by_type


def contains(text: Value, needle: Value, n: int) -> pa.Array:
    if isinstance(needle, pa.Scalar):
        return _with(text, needle, pc.match_substring, n)
    return in_duckdb("contains(a, b)", n, text, needle)


def starts_with(text: Value, prefix: Value, n: int) -> pa.Array:
    if isinstance(prefix, pa.Scalar):
        return _with(text, prefix, pc.starts_with, n)
    return in_duckdb("starts_with(a, b)", n, text, prefix)


def matches_regex(text: Value, pattern: Value, n: int) -> pa.Array:
    try:
        return _with(text, pattern, pc.match_substring_regex, n)
    except pa.ArrowInvalid as refused:
        raise OptionInvalid(
            f"the pattern {pattern} is not a regular expression: {refused}",
            help="Patterns are RE2: no look-around, no back-references.",
        ) from refused


def _with(text: Value, pattern: Value, kernel: Any, n: int) -> pa.Array:
    if not pattern.is_valid:
        return pa.nulls(n, pa.bool_())
    return kernel(text, pattern.as_py())


def text_match(expr: ir.TextMatch, rows: Rows, ctx: Context) -> pa.Array:
    """Whether the analysed text of each row's entity matches."""
    query = evaluate_constant(expr.query, ctx.bound)
    entities = rows.entities(expr.field.var)
    if query is None:
        return pa.nulls(rows.n, pa.bool_())
    mode = bound_mode(expr.mode, ctx)

    def fetch(i: int, positions: Any) -> pa.Array:
        from omnigraph.read.search import text_match as search_text

        columns = ctx.columns(entities.types[i], entities.edge)
        return search_text(columns, expr.field.property, query, mode, positions)

    return _entity_wise(entities, fetch)


def _entity_wise(entities: Entities, fetch: Any) -> pa.Array:
    if entities.code is None and (not len(entities.position) or entities.position.min() >= 0):
        return fetch(0, entities.position)
    return by_type(entities, fetch)


def bound_mode(mode: ir.TextMode, ctx: Context) -> ir.TextMode:
    """With parameters replaced by their values."""
    match mode:
        case ir.Fuzzy(edits):
            return ir.Fuzzy(ir.Literal(evaluate_constant(edits, ctx.bound), ir.I64))
        case _:
            return mode
