"""Blocks whose solutions are measured for each row: counted, or aggregated, and compared.

A block is run as if for a count of the pattern, so a hop to unread nodes is answered by degrees.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from omnigraph.expressions.lists import Lists, taken_apart
from omnigraph.expressions.shapes import arrow_shape
from omnigraph.lang import ir
from omnigraph.read.aggregate import aggregate
from omnigraph.read.blocks import Run, distinct_rows, run_tagged, tag_of
from omnigraph.read.context import Context
from omnigraph.read.expressions import holds
from omnigraph.read.plan import PlanStep, needs_of_outer
from omnigraph.read.rows import Rows, Values

OUTER_ROW = "outer row"  # the column with the row a solution belongs to
COUNTS = (ir.AggregateFunction.COUNT_ROWS, ir.AggregateFunction.COUNT, ir.AggregateFunction.TOTAL)
LISTS = (ir.AggregateFunction.COLLECT, ir.AggregateFunction.IN_ORDER)


def measured_join(step: PlanStep, rows: Rows, run: Run, ctx: Context) -> Rows:
    """The rows for which the condition on the measured solutions of the block is true."""
    op = step.op
    assert isinstance(op, ir.SemiJoin)  # noqa: S101
    assert op.measure is not None  # noqa: S101
    outer = rows.keep(needs_of_outer(step.inputs[1]))
    group, firsts = distinct_rows(outer)
    unique = replace(outer.take(firsts), weight=None)
    solutions = _tagged_by_column(run_tagged(step.inputs[1], unique, run), tag_of(unique))
    values = _measured(op.measure.aggregate, solutions, unique.n, ctx)
    with_value = {op.measure.aggregate.name: values.take(pa.array(group))}
    measured = replace(rows, columns=rows.columns | with_value)
    return rows.filter(holds(op.measure.predicate, measured, ctx)).keep(step.live)


def per_row(step: PlanStep, rows: Rows, run: Run, ctx: Context) -> Rows:
    """Every row with an aggregate over the block's solutions for it."""
    op = step.op
    assert isinstance(op, ir.PerRow)  # noqa: S101
    outer = rows.keep(needs_of_outer(step.inputs[1]))
    group, firsts = distinct_rows(outer)
    unique = replace(outer.take(firsts), weight=None)
    solutions = _tagged_by_column(run_tagged(step.inputs[1], unique, run), tag_of(unique))
    values = _measured(op.aggregate, solutions, unique.n, ctx).take(pa.array(group))
    return rows.with_variables({op.aggregate.name: Values(values)}).keep(step.live)


def _tagged_by_column(solutions: Iterator[Rows], tag: str) -> Iterator[Rows]:
    for found in solutions:
        yield replace(found, columns={OUTER_ROW: pa.array(found.tags[tag])}, tags={})


def _measured(
    wanted: ir.NamedAggregate, solutions: Iterator[Rows], n: int, ctx: Context
) -> pa.Array:
    """The aggregate for each of these rows."""
    key = ir.NamedExpr(OUTER_ROW, ir.Output(OUTER_ROW, ir.I64))
    grouped = ir.Aggregate(ir.Outer(), (key,), (wanted,))
    number, parts, filled = np.full(n, -1, np.int64), [], 0
    for rows in aggregate(grouped, solutions, ctx, "SemiJoin"):
        number[rows.column(OUTER_ROW).to_numpy()] = np.arange(filled, filled + rows.n)
        parts.append(rows.column(wanted.name))
        filled += rows.n
    kind = arrow_shape(wanted.type)
    known = pa.chunked_array(parts, kind).combine_chunks() if filled else pa.nulls(1, kind)
    values = known.take(pa.array(np.maximum(number, 0), mask=number < 0))
    if wanted.function in LISTS:
        apart = taken_apart(values)
        return Lists(apart.counts, apart.members, np.ones(n, np.bool_)).made()
    return values.fill_null(0) if wanted.function in COUNTS else values
