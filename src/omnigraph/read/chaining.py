"""Values beside bound entities: named, taken from lists, and turned back into entities."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from omnigraph.expressions import lists
from omnigraph.expressions.shapes import arrow_shape
from omnigraph.lang import ir
from omnigraph.read import refs
from omnigraph.read.arrays import runs
from omnigraph.read.budget import checked
from omnigraph.read.context import Context
from omnigraph.read.expressions import column, columns
from omnigraph.read.plan import PlanStep
from omnigraph.read.rows import Rows, Values, Variable


def chained(step: PlanStep, rows: Rows, ctx: Context) -> Iterator[Rows]:
    """The rows of one of these operators for some of its input."""
    match step.op:
        case ir.Let():
            yield let(step.op, rows, ctx)
        case ir.Attach():
            yield attach(step.op, rows, ctx)
        case _:
            yield from unwind(step, rows, ctx)


def given(op: ir.Resumed, ctx: Context) -> Rows:
    """The rows handed to a query, as of this state."""
    handed = ctx.handed
    assert handed is not None  # noqa: S101 - such a plan is run with them
    variables: dict[str, Variable] = {
        var: refs.found(*handed.slots[slot], types, edge, ctx)
        for var, slot, types, edge in op.entities
    }
    for var, name, kind in op.values:
        array = refs.each_reference(handed.columns[name], kind, ctx, refs.arrived)
        variables[var] = Values(lists.fitted(array, arrow_shape(kind)))
    return Rows(handed.n, variables)


def let(op: ir.Let, rows: Rows, ctx: Context) -> Rows:
    """The rows with new values, and of what they bound only what is kept."""
    made = columns([c.expr for c in op.columns], rows, ctx)
    variables: dict[str, Variable] = {
        name: rows.variables[own] for name, own in op.keep if own in rows.variables
    }
    for named, array in zip(op.columns, made, strict=True):
        variables[named.name] = Values(lists.fitted(array, arrow_shape(named.expr.type)))
    return Rows(rows.n, variables, tags=rows.tags, weight=rows.weight)


def attach(op: ir.Attach, rows: Rows, ctx: Context) -> Rows:
    """Every row with the entity a reference names."""
    given = column(op.part, rows, ctx)
    return rows.with_variables({op.var: refs.entities(given, op.types, op.edge, ctx)})


def unwind(step: PlanStep, rows: Rows, ctx: Context) -> Iterator[Rows]:
    """A row for each member of a list."""
    op = step.op
    assert isinstance(op, ir.Unwind)  # noqa: S101
    apart = lists.taken_apart(column(op.part, rows, ctx))
    members = lists.fitted(apart.members, arrow_shape(op.type))
    for index, place in checked(runs(apart.starts, apart.counts, ctx.sizes(step.early))):
        value = Values(members).take(place)
        yield rows.take(index).with_variables({op.name: value}).keep(step.live)
    if not len(apart.counts):
        nothing = np.empty(0, np.int64)
        yield rows.with_variables({op.name: Values(members).take(nothing)}).keep(step.live)
