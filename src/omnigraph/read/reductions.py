"""Aggregates of the values of each group. Weights count: a row with weight a thousand adds a thousand."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.expressions.scalar import ArithmeticOverflow
from omnigraph.expressions.shapes import arrow_shape
from omnigraph.lang import ir
from omnigraph.lang.ir import AggregateFunction as F
from omnigraph.model.frozen import frozen
from omnigraph.read.arrays import AnyArray, Ints, count_distinct
from omnigraph.read.blocks import number_rows
from omnigraph.read.context import Context
from omnigraph.read.expressions import column
from omnigraph.read.groups import Groups, encode_any
from omnigraph.read.rows import Entities, Rows
from omnigraph.read.sorting import order_by

EXACT_SUM_MAX = 2**53
I64_MAX = 2**63 - 1


def aggregated(wanted: ir.NamedAggregate, rows: Rows, groups: Groups, ctx: Context) -> pa.Array:
    kind = arrow_shape(wanted.type)
    if wanted.arg is None:
        return pa.array(add_up(groups.of, rows.weight, len(groups)), kind)
    if wanted.function is F.COUNT and wanted.distinct and isinstance(wanted.arg, ir.IdOf):
        entities = rows.entities(wanted.arg.var)
        if entities.code is None:
            return pa.array(_count_entities(entities, groups, ctx), kind)
    data = known_values(wanted, rows, groups, ctx)
    if wanted.distinct:
        values, of, weight = each_once(data.values, data.of)
        data = ValueColumn(values, of, weight, data.groups)
    return reduced(wanted.function, data, kind)


def known_values(
    wanted: ir.NamedAggregate, rows: Rows, groups: Groups, ctx: Context
) -> ValueColumn:
    """The argument for every row that has one."""
    assert wanted.arg is not None  # noqa: S101
    values, of, weight, known = column(wanted.arg, rows, ctx), groups.of, rows.weight, None
    if values.null_count:
        known = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
        values, of = values.take(pa.array(known)), of[known]
        weight = None if weight is None else weight[known]
    return ValueColumn(values, of, weight, len(groups), known)


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


def each_once(values: pa.Array, of: Ints) -> tuple[pa.Array, Ints, None]:
    _, first = number_rows([of, encode_any(values)], len(of))
    return values.take(pa.array(first)), of[first], None


@frozen
class ValueColumn:
    """The values to be aggregated: none is null, each belongs to a group and has a weight."""

    values: pa.Array
    of: Ints
    weight: Ints | None
    groups: int
    at: Ints | None = None  # the rows they come from, unless from every row


def reduced(function: F, data: ValueColumn, kind: pa.DataType) -> pa.Array:
    match function:
        case F.COUNT | F.COUNT_ROWS:
            return pa.array(add_up(data.of, data.weight, data.groups), kind)
        case F.SUM:
            return pa.array(sums(data), kind, mask=counts(data) == 0)
        case F.AVG:
            number = counts(data)
            with np.errstate(invalid="ignore"):
                return pa.array(sums(data) / np.maximum(number, 1), kind, mask=number == 0)
        case F.MIN | F.MAX:
            return extreme(data, largest=function is F.MAX, kind=kind)
        case F.COLLECT | F.IN_ORDER:
            return _collected(data, kind, in_order=function is F.IN_ORDER)
        case F.TOTAL:
            return pa.array(totals(data), kind)


def add_up(of: Ints, weight: Ints | None, groups: int) -> Ints:
    if weight is None:
        return np.bincount(of, minlength=groups)
    if groups == 1:
        return np.array([weight.sum()])
    if len(weight) and float(weight.astype(np.float64).sum()) >= EXACT_SUM_MAX:
        sums = np.zeros(groups, np.int64)
        np.add.at(sums, of, weight)
        return sums
    return np.bincount(of, weights=weight, minlength=groups).astype(np.int64)


def counts(data: ValueColumn) -> Ints:
    return add_up(data.of, data.weight, data.groups)


def sums(data: ValueColumn) -> AnyArray:
    values = data.values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    if data.weight is not None:
        values = values * data.weight
    return np.bincount(data.of, weights=values, minlength=data.groups)


def extreme(data: ValueColumn, largest: bool, kind: pa.DataType) -> pa.Array:
    """The first value of each group in the requested order."""
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
    """Where each group starts in an ascending array; -1 for a group that does not occur."""
    first: Ints = ordered.searchsorted(np.arange(groups))
    there = first < len(ordered)
    there[there] = ordered[first[there]] == np.flatnonzero(there)
    return np.where(there, first, -1)


def totals(data: ValueColumn) -> Ints:
    """The exact sums of integers; one that does not fit is an error."""
    values = data.values.cast(pa.int64()).to_numpy(zero_copy_only=False)
    largest = int(np.abs(values.astype(np.float64)).max(initial=0.0)) + 1
    most = (
        largest
        * max(len(values), 1)
        * int(1 if data.weight is None else data.weight.max(initial=1))
    )
    if most < I64_MAX:
        found = np.zeros(data.groups, np.int64)
        np.add.at(found, data.of, values if data.weight is None else values * data.weight)
        return found
    return _large_totals(values, data)


def _large_totals(values: Ints, data: ValueColumn) -> Ints:
    """In numbers of any size, so that what does not fit is seen."""
    exact = [0] * data.groups
    often = [1] * len(values) if data.weight is None else data.weight.tolist()
    for group, value, times in zip(data.of.tolist(), values.tolist(), often, strict=True):
        exact[group] += value * times
    if any(abs(total) > I64_MAX for total in exact):
        raise ArithmeticOverflow("a sum does not fit I64")
    return np.array(exact, np.int64)


def _collected(data: ValueColumn, kind: pa.DataType, in_order: bool = False) -> pa.Array:
    values, of = data.values, data.of
    if data.weight is not None:
        again = np.repeat(np.arange(len(of)), data.weight)
        values, of = values.take(pa.array(again)), of[again]
    order = np.argsort(of, kind="stable")
    if not in_order:
        order = order_by([(pa.array(of), False), (values, False)], len(of))
    offsets = of[order].searchsorted(np.arange(data.groups + 1)).astype(np.int32)
    members = values.take(pa.array(order))
    return pa.ListArray.from_arrays(pa.array(offsets), members).cast(kind)
