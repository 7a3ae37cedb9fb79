"""Grouping and aggregating: keys become numbers, numbers become groups, groups are reduced by counting.

A key that depends on one variable is evaluated once per entity, not once per row. Weights count: a row that stands for
a thousand adds a thousand.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang import ir
from omnigraph.lang.ir import AggregateFunction as F
from omnigraph.lang.tree import variables, walk
from omnigraph.model.columns import arrow_type
from omnigraph.read.arrays import AnyArray, Ints, count_distinct, distinct
from omnigraph.read.blocks import number_rows
from omnigraph.read.columns import TableColumns
from omnigraph.read.context import Context
from omnigraph.read.expressions import column
from omnigraph.read.plan import Step
from omnigraph.read.relational import encode_any, order_by
from omnigraph.read.rows import Deferred, Entities, Rows

EXACT_SUM_MAX = 2**53
WHOLE_PART = 16  # above one row in so many of a table, a column is numbered as a whole
DENSE_PART = 4  # with at most so many codes to a row, groups are counted in an array


@dataclass(frozen=True, slots=True)
class Groups:
    """Which group each row belongs to, and one row of each group."""

    of: Ints
    first: Ints

    def __len__(self) -> int:
        return len(self.first)


def aggregate(step: Step, rows: Rows, ctx: Context) -> Rows:
    """One row per group."""
    op = step.op
    assert isinstance(op, ir.Aggregate)  # noqa: S101
    groups = _group(op.keys, rows, ctx)
    some = rows.take(groups.first) if op.keys else rows
    columns: dict[str, pa.Array | Deferred] = {
        key.name: Deferred(some, partial(column, key.expr, ctx=ctx)) for key in op.keys
    }
    for wanted in op.aggregates:
        columns[wanted.name] = _aggregated(wanted, rows, groups, ctx)
    return Rows(len(groups), columns=columns)


# --- groups ------------------------------------------------------------------------------------------------------


def _group(keys: tuple[ir.NamedExpr, ...], rows: Rows, ctx: Context) -> Groups:
    if not keys:
        return Groups(np.zeros(rows.n, np.int64), np.zeros(1, np.int64))
    codes, sizes = zip(*(_codes(key.expr, rows, ctx) for key in keys), strict=True)
    whole, size = codes[0], sizes[0]
    for code, more in zip(codes[1:], sizes[1:], strict=True):
        if size * more > 2**62:
            whole, first = number_rows([whole], rows.n)
            size = len(first)
        whole, size = whole * more + code, size * more
    return _number_groups(whole, size, rows.n)


def _number_groups(codes: Ints, size: int, n: int) -> Groups:
    if size > DENSE_PART * n + 1024:
        return Groups(*number_rows([codes], n))
    first = np.full(size, -1, np.int64)
    first[codes[::-1]] = np.arange(n - 1, -1, -1)
    present = np.flatnonzero(first >= 0)
    number = np.zeros(size, np.int64)
    number[present] = np.arange(len(present))
    return Groups(number[codes], first[present])


def _codes(expr: ir.Expr, rows: Rows, ctx: Context) -> tuple[Ints, int]:
    """A key as small numbers, equal exactly where the key is, and their bound."""
    var = _only_variable(expr)
    found = rows.variables.get(var) if var is not None else None
    if not isinstance(found, Entities) or found.code is not None or var is None:
        codes = encode_any(column(expr, rows, ctx))
        return codes, int(codes.max(initial=0)) + 1
    size = ctx.columns(found.types[0], found.edge).n
    position = found.position + 1  # unbound is number 0
    if isinstance(expr, ir.IdOf):
        return position.astype(np.int64), size + 1
    if isinstance(expr, ir.Column) and rows.n * WHOLE_PART > size:
        table = _codes_of_column(expr.property, ctx.columns(found.types[0], found.edge))
        return table[position], int(table.max(initial=0)) + 1
    kinds = distinct(position, size + 1)
    one_each = Rows(
        len(kinds), {var: Entities(found.types, kinds.astype(np.int32) - 1, None, found.edge)}
    )
    of_kind = encode_any(column(expr, one_each, ctx))
    table = np.zeros(size + 1, np.int64)
    table[kinds] = of_kind
    return table[position], int(of_kind.max(initial=0)) + 1


def _codes_of_column(name: str, columns: TableColumns) -> Ints:
    """A whole column as numbers, kept for the next query; the first is that of an unbound variable."""
    return columns.derived(
        f"codes/{name}",
        lambda: np.concatenate(([0], encode_any(columns.column(name)))),
        lambda codes: codes.nbytes,
    )


def _only_variable(expr: ir.Expr) -> str | None:
    if any(isinstance(part, ir.ScoreOf | ir.Output) for part in walk(expr)):
        return None
    read = variables(expr)
    return next(iter(read)) if len(read) == 1 else None


# --- functions ---------------------------------------------------------------------------------------------------


def _aggregated(wanted: ir.NamedAggregate, rows: Rows, groups: Groups, ctx: Context) -> pa.Array:
    kind = arrow_type(wanted.type)
    if wanted.arg is None:
        return pa.array(_add_up(groups.of, rows.weight, len(groups)), kind)
    if wanted.function is F.COUNT and wanted.distinct and isinstance(wanted.arg, ir.IdOf):
        entities = rows.entities(wanted.arg.var)
        if entities.code is None:
            return pa.array(_count_entities(entities, groups, ctx), kind)
    values = column(wanted.arg, rows, ctx)
    known = (
        np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
        if values.null_count
        else None
    )
    of, weight = groups.of, rows.weight
    if known is not None:
        values, of = values.take(pa.array(known)), of[known]
        weight = None if weight is None else weight[known]
    if wanted.distinct:
        values, of, weight = _each_once(values, of)
    return _reduced(wanted.function, _Column(values, of, weight, len(groups)), kind)


def _count_entities(entities: Entities, groups: Groups, ctx: Context) -> Ints:
    """How many different entities each group has, without looking at their ids."""
    size = ctx.columns(entities.types[0], entities.edge).n
    position, of = entities.position, groups.of
    if len(position) and int(position.min()) < 0:
        bound = np.flatnonzero(position >= 0)
        position, of = position[bound], of[bound]
    if len(groups) == 1:
        return np.array([count_distinct(position, size)])
    pairs = np.unique(of * size + position)
    return np.bincount(pairs // max(size, 1), minlength=len(groups))


def _each_once(values: pa.Array, of: Ints) -> tuple[pa.Array, Ints, None]:
    _, first = number_rows([of, encode_any(values)], len(of))
    return values.take(pa.array(first)), of[first], None


@dataclass(frozen=True, slots=True)
class _Column:
    """The values to be aggregated: none is null, each belongs to a group and counts so often."""

    values: pa.Array
    of: Ints
    weight: Ints | None
    groups: int


def _reduced(function: F, data: _Column, kind: pa.DataType) -> pa.Array:
    match function:
        case F.COUNT | F.COUNT_ROWS:
            return pa.array(_add_up(data.of, data.weight, data.groups), kind)
        case F.SUM:
            return pa.array(_sums(data), kind, mask=_counts(data) == 0)
        case F.AVG:
            counts = _counts(data)
            with np.errstate(invalid="ignore"):
                return pa.array(_sums(data) / np.maximum(counts, 1), kind, mask=counts == 0)
        case F.MIN | F.MAX:
            return _extreme(data, largest=function is F.MAX, kind=kind)
        case F.COLLECT:
            return _collected(data, kind)


def _add_up(of: Ints, weight: Ints | None, groups: int) -> Ints:
    if weight is None:
        return np.bincount(of, minlength=groups)
    if groups == 1:
        return np.array([weight.sum()])
    if len(weight) and float(weight.astype(np.float64).sum()) >= EXACT_SUM_MAX:
        sums = np.zeros(groups, np.int64)
        np.add.at(sums, of, weight)
        return sums
    return np.bincount(of, weights=weight, minlength=groups).astype(np.int64)


def _counts(data: _Column) -> Ints:
    return _add_up(data.of, data.weight, data.groups)


def _sums(data: _Column) -> AnyArray:
    values = data.values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    if data.weight is not None:
        values = values * data.weight
    return np.bincount(data.of, weights=values, minlength=data.groups)


def _extreme(data: _Column, largest: bool, kind: pa.DataType) -> pa.Array:
    """The first value of each group in the order asked for."""
    if data.groups == 1 and not pa.types.is_nested(data.values.type) and not _has_nan(data.values):
        found = pc.min_max(data.values)["max" if largest else "min"]
        return pa.array([found.as_py()], kind) if len(data.values) else pa.nulls(1, kind)
    order = order_by([(pa.array(data.of), False), (data.values, largest)], len(data.of))
    first = _firsts(data.of[order], data.groups)
    index = np.where(first < 0, 0, order[np.maximum(first, 0)]) if len(order) else first
    found = (
        data.values.take(pa.array(index, mask=first < 0))
        if len(order)
        else pa.nulls(data.groups, kind)
    )
    return found if found.type == kind else found.cast(kind)


def _has_nan(values: pa.Array) -> bool:
    return pa.types.is_floating(values.type) and bool(pc.any(pc.is_nan(values)).as_py())


def _firsts(ordered: Ints, groups: int) -> Ints:
    """Where each group starts in an ascending array; -1 for a group that is not there."""
    first: Ints = ordered.searchsorted(np.arange(groups))
    there = first < len(ordered)
    there[there] = ordered[first[there]] == np.flatnonzero(there)
    return np.where(there, first, -1)


def _collected(data: _Column, kind: pa.DataType) -> pa.Array:
    values, of = data.values, data.of
    if data.weight is not None:
        again = np.repeat(np.arange(len(of)), data.weight)
        values, of = values.take(pa.array(again)), of[again]
    order = order_by([(pa.array(of), False), (values, False)], len(of))
    offsets = of[order].searchsorted(np.arange(data.groups + 1)).astype(np.int32)
    members = values.take(pa.array(order))
    return pa.ListArray.from_arrays(pa.array(offsets), members).cast(kind)
