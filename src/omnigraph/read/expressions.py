"""Expressions over the rows of a pattern: where `omnigraph.expressions` gets its columns from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.expressions import arrow
from omnigraph.expressions.comparing import Mask, Value
from omnigraph.expressions.scalar import evaluate as evaluate_constant
from omnigraph.lang import ir
from omnigraph.model.frozen import frozen
from omnigraph.read import refs, values
from omnigraph.read.context import Context
from omnigraph.read.rows import Entities, Paths, Rows, Values


def column(expr: ir.Expr, rows: Rows, ctx: Context) -> pa.Array:
    """The expression's value for every row."""
    return arrow.column(expr, Bindings(rows, ctx))


def columns(exprs: Sequence[ir.Expr], rows: Rows, ctx: Context) -> list[pa.Array]:
    """The values of several expressions."""
    _load_together(exprs, rows, ctx)
    return arrow.columns(exprs, Bindings(rows, ctx))


def _load_together(exprs: Sequence[ir.Expr], rows: Rows, ctx: Context) -> None:
    """The returned columns of an entity are read by one scan of its table, not by one each."""
    wanted: dict[str, list[str]] = {}
    for expr in exprs:
        match expr:
            case ir.Column(var, name):
                wanted.setdefault(var, []).append(name)
            case ir.IdOf(var):
                wanted.setdefault(var, []).append("id")
            case ir.EndpointOf(var, end):
                wanted.setdefault(var, []).append(end.value)
    for var, names in wanted.items():
        if len(names) > 1:
            values.load(rows.entities(var), names, ctx)


def holds(expr: ir.Expr, rows: Rows, ctx: Context) -> Mask:
    """The rows for which a predicate is true."""
    return arrow.holds(expr, Bindings(rows, ctx))


@frozen
class Bindings:
    """See `expressions.arrow.RowSource`: variables bound to entities and paths, whose values are fetched when read."""

    rows: Rows
    ctx: Context

    @property
    def n(self) -> int:
        return self.rows.n

    @property
    def bound(self) -> ir.Bound:
        return self.ctx.bound

    def read(self, expr: ir.Expr) -> Value:
        rows, ctx = self.rows, self.ctx
        match expr:
            case ir.Column(var, name):
                return values.entity_column(rows.entities(var), name, ctx)
            case ir.IdOf(var):
                return values.entity_column(rows.entities(var), "id", ctx)
            case ir.EndpointOf(var, end):
                return values.entity_column(rows.entities(var), end.value, ctx)
            case ir.TypeOf(var):
                return rows.entities(var).type_names()
            case ir.EntityOf(var, wanted):
                return values.entities(rows.entities(var), wanted, ctx)
            case ir.PathOf(var):
                return values.paths(_paths(rows, var), ctx)
            case ir.PathGet(var, part):
                return values.path_part(_paths(rows, var), part, ctx)
            case ir.ScoreOf(name):
                scores = rows.scores[name]
                return pa.array(scores, mask=np.isnan(scores))
            case ir.Output(name):
                return rows.column(name)
            case ir.Same(left, right):
                return _same(rows.entities(left), rows.entities(right))
            case ir.RefOf(var):
                return refs.references(rows.entities(var), ctx)
            case ir.TrailOf(var):
                return refs.trails(_paths(rows, var), ctx)
            case ir.ValueOf(var):
                return _value(rows, var)
            case ir.Apart(left, right):
                return refs.apart(rows.variables[left], rows.variables[right])
            case ir.TextMatch():
                return _text_match(expr, rows, ctx)
            case ir.Highlight():
                return _highlight(expr, rows, ctx)
            case _:
                raise AssertionError(f"{type(expr).__name__} is not read from rows")

    def resolve(self, expr: ir.Expr, given: pa.Array) -> pa.Array:
        return refs.resolve(expr, given, self.ctx)


def _value(rows: Rows, var: str) -> pa.Array:
    found = rows.variables[var]
    assert isinstance(found, Values)  # noqa: S101
    return found.array


def _paths(rows: Rows, var: str) -> Paths:
    found = rows.variables[var]
    assert isinstance(found, Paths)  # noqa: S101
    return found


# --- entities ----------------------------------------------------------------------------------------------------


def _same(left: Entities, right: Entities) -> pa.Array:
    known = (left.position >= 0) & (right.position >= 0)
    equal = left.position == right.position
    if left.types != right.types or left.code is not None:
        equal &= _global_codes(left) == _global_codes(right)
    return pa.array(equal, mask=~known)


def _global_codes(entities: Entities) -> np.ndarray[tuple[int], np.dtype[np.object_]]:
    names = np.array(entities.types, object)
    if entities.code is None:
        return np.full(len(entities.position), names[0])
    return names[entities.code]


# --- text search -------------------------------------------------------------------------------------------------


def _text_match(expr: ir.TextMatch, rows: Rows, ctx: Context) -> pa.Array:
    """Whether the analysed text of each row's entity matches."""
    query = evaluate_constant(expr.query, ctx.bound)
    entities = rows.entities(expr.field.var)
    if query is None:
        return pa.nulls(rows.n, pa.bool_())
    mode = bound_mode(expr.mode, ctx)

    def fetch(i: int, positions: Any) -> pa.Array:
        from omnigraph.read.search.text import text_match as search_text

        columns = ctx.columns(entities.types[i], entities.edge)
        return search_text(columns, expr.field.property, query, mode, positions)

    if entities.code is None and (not len(entities.position) or entities.position.min() >= 0):
        return fetch(0, entities.position)
    return values.by_type(entities, fetch)


def _highlight(expr: ir.Highlight, rows: Rows, ctx: Context) -> pa.Array:
    """The text of each row's entity, with the words of the query marked."""
    found, name = highlight_of(expr, ctx), expr.field.property
    entities = rows.entities(expr.field.var)
    if found is None:
        return pa.nulls(rows.n, pa.string())

    def fetch(i: int, positions: Any) -> pa.Array:
        from omnigraph.read.search.highlight import highlighted

        columns = ctx.columns(entities.types[i], entities.edge)
        return highlighted(
            columns.take(name, positions), found[0], columns.kind.properties[name], found[1]
        )

    return values.by_type(entities, fetch)


def highlight_of(expr: ir.Highlight, ctx: Context) -> tuple[str, tuple[str, str]] | None:
    """The query and its marks; None if the query is null."""
    query, before, after = (
        evaluate_constant(part, ctx.bound) for part in (expr.query, expr.before, expr.after)
    )
    return None if query is None else (query, (before or "", after or ""))


def bound_mode(mode: ir.TextMode, ctx: Context) -> ir.TextMode:
    """With parameters replaced by their values."""
    match mode:
        case ir.Fuzzy(edits):
            return ir.Fuzzy(ir.Literal(evaluate_constant(edits, ctx.bound), ir.I64))
        case _:
            return mode
