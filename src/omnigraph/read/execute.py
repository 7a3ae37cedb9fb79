"""Running a plan: one function per operator, from the leaves up."""

from __future__ import annotations

import datetime as dt
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa

from omnigraph.core.snapshot import Snapshot
from omnigraph.errors import OmnigraphError
from omnigraph.lang import ir
from omnigraph.lang.query.params import bind_params
from omnigraph.lang.tree import walk
from omnigraph.read import (
    aggregate,
    blocks,
    chaining,
    expand,
    joins,
    measured,
    rank,
    relational,
    scan,
    shortest,
    trails,
)
from omnigraph.read.budget import Budget, budget_of, running, stopped
from omnigraph.read.cache import SHARED, Cache
from omnigraph.read.context import Context, Handed, LookedUp
from omnigraph.read.explain import Trace
from omnigraph.read.expressions import holds
from omnigraph.read.keyed import keyed_join
from omnigraph.read.order import reorder
from omnigraph.read.plan import PlanStep, longest_chain, make_plan
from omnigraph.read.result import Result
from omnigraph.read.rows import Rows, collect
from omnigraph.read.scan import known_share

PLANS_MAX = 512


def run_query(
    query: ir.Query,
    params: Mapping[str, Any] | None,
    snapshot: Snapshot,
    *,
    now: dt.datetime | None = None,
    timeout: float | None = None,
    started: float | None = None,
    max_rows: int | None = None,
    memory_bytes_max: int | None = None,
    explain: bool = False,
    cache: Cache = SHARED,
    cancelled: Callable[[], bool] | None = None,
    block_rows: int | None = None,
    handed: Handed | None = None,
    looked_up: LookedUp | None = None,
) -> Result:
    """Run a read on one state of a graph.

    `timeout` (seconds), `max_rows` and `memory_bytes_max` bound the run; crossing one raises an error that names it.
    The time counts from `started` (of `time.monotonic`), so that a caller's compilation is part of it. With `explain`
    the result tells how it was obtained; `looked_up` receives the nodes that were named by their keys.
    """
    bound = bind_params(query, params, now or dt.datetime.now(dt.UTC))
    trace = Trace() if explain else None
    note = None if trace is None else trace.note
    budget = budget_of(
        timeout, started, cancelled, bytes_max=memory_bytes_max, block_rows=block_rows, note=note
    )
    ctx = Context(snapshot, bound, cache, budget, max_rows, trace, handed, looked_up)
    token = running(budget)
    try:
        budget.check()
        read, step = _planned(query, ctx)
        budget.plan_for(longest_chain(step))
        rows = _all_rows(step, ctx)
    finally:
        stopped(token)
        budget.close()
    if trace is not None:
        trace.memory = (budget.bytes_peak, budget.bytes_max, budget.spilled_bytes)
    return Result(read.columns, rows, snapshot.commit_id, trace)


def planned(
    query: ir.Query, params: Mapping[str, Any] | None, snapshot: Snapshot, cache: Cache = SHARED
) -> tuple[ir.Op, ir.Op]:
    """The plan of a read as it was compiled, and in the order it would be run on this state. Nothing is run."""
    bound = bind_params(query, params, dt.datetime.now(dt.UTC))
    ctx = Context(snapshot, bound, cache, Budget(None), None, None)
    read, step = _planned(query, ctx)
    return read.plan, step.op


def _all_rows(step: PlanStep, ctx: Context) -> Rows:
    """The rows of the result; an error as soon as they exceed the limit."""
    held, parts, n = ctx.hold("Result"), [], 0
    for rows in _run(step, ctx, None):
        n += rows.n
        ctx.admit(n)
        held.add(rows.nbytes)
        parts.append(rows)
    if len(parts) == 1:
        return parts[0]
    names = parts[0].columns
    return Rows(n, columns={c: pa.chunked_array([p.column(c) for p in parts]) for c in names})


# --- plans -------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Planned:
    """The plan of a compiled query, and the sizes of the tables it was made for."""

    query: ir.Query
    types: tuple[tuple[str, bool], ...]  # name, and whether it is an edge type
    sizes: tuple[int, ...] = ()
    step: PlanStep | None = None


_plans: OrderedDict[int, _Planned] = OrderedDict()


def _planned(query: ir.Query, ctx: Context) -> tuple[ir.Read, PlanStep]:
    """The plan, made once for each compiled query, and again when its tables have grown or shrunk much.

    Holding the query object gets the plan without comparing trees.
    """
    if not isinstance(query.body, ir.Read):
        raise OmnigraphError(f"{query.name} is a mutation; a query that reads was expected")
    known = _plans.get(id(query))
    if known is None or known.query is not query:
        known = _plans[id(query)] = _Planned(query, _types_in(query.body.plan))
        while len(_plans) > PLANS_MAX:
            _plans.popitem(last=False)
    sizes = tuple(ctx.columns(*kind).rows.bit_length() for kind in known.types)
    step = known.step
    if step is None or sizes != known.sizes:
        ordered = reorder(
            query.body.plan,
            lambda *kind: ctx.columns(*kind).rows,
            partial(known_share, ctx),
            lambda join: keyed_join(join, ctx) is not None,
        )
        step = make_plan(replace(query.body, plan=ordered))
        known.sizes, known.step = sizes, step
    return query.body, step


def _types_in(plan: ir.Op) -> tuple[tuple[str, bool], ...]:
    found: dict[tuple[str, bool], None] = {}
    for node in walk(plan):
        match node:
            case ir.NodeScan(types=types) | ir.Expand(dst_types=types) | ir.Trail(dst_types=types):
                found |= dict.fromkeys((name, False) for name in types)
            case ir.EdgeStep(edge):
                found[edge, True] = None
            case _:
                pass
    return tuple(found)


# --- operators ---------------------------------------------------------------------------------------------------


def _run(step: PlanStep, ctx: Context, outer: Rows | None) -> Iterator[Rows]:
    """The rows of an operator, block by block; `outer` are those an enclosing operator runs this block for.

    There is always at least one block, possibly empty, so that the reader knows the columns. A block is released when
    it is handed on: its memory can then be used for its results.
    """
    blocks = _operate(step, ctx, outer)
    if ctx.trace is not None:
        blocks = ctx.trace.operator(step.op, blocks)
    empty = None
    for rows in blocks:
        ctx.budget.check()
        if rows.n:
            empty, handed = NOTHING_LEFT, [rows]
            del rows
            yield handed.pop()
        elif empty is None:
            empty = rows
    if empty is not None and empty is not NOTHING_LEFT:
        yield empty


def _operate(step: PlanStep, ctx: Context, outer: Rows | None) -> Iterator[Rows]:
    def below(i: int = 0) -> Iterator[Rows]:
        return _run(step.inputs[i], ctx, outer)

    def block(inner: PlanStep, rows: Rows) -> Iterator[Rows]:
        return _run(inner, ctx, rows)

    match step.op:
        case ir.NodeScan():
            yield from scan.node_scan(step, ctx)
        case ir.Outer():
            yield _outer_rows(step, outer)
        case ir.Resumed():
            yield chaining.given(step.op, ctx).keep(step.live)
        case ir.Expand():
            for rows in below():
                yield from expand.expand(step, rows, ctx)
        case ir.ShortestPath():
            yield from shortest.shortest_path(step, below(), ctx)
        case ir.Filter(_, predicate):
            for rows in below():
                yield rows.filter(holds(predicate, rows, ctx)).keep(step.live)
        case ir.SemiJoin(measure=None):
            for rows in below():
                yield blocks.semi_join(step, rows, block)
        case ir.SemiJoin():
            for rows in below():
                yield measured.measured_join(step, rows, block, ctx)
        case ir.Optional():
            for rows in below():
                yield from blocks.optional(step, rows, block)
        case ir.Join():
            yield from joins.join(step, below(0), lambda right: _run(right, ctx, outer), ctx)
        case ir.Score():
            with ctx.hold("Score") as held:
                yield rank.score(step, collect(below(), held), ctx)
        case ir.Rank():
            with ctx.hold("Rank") as held:
                yield rank.rank(step, collect(below(), held), ctx)
        case ir.Fuse():
            with ctx.hold("Fuse") as first, ctx.hold("Fuse") as second:
                yield rank.fuse(step, collect(below(0), first), collect(below(1), second), ctx)
        case ir.Aggregate():
            yield from aggregate.aggregate(step.op, below(), ctx)
        case ir.Project():
            yield from relational.project(step, below(), ctx)
        case ir.Distinct():
            yield from relational.remove_equal(step, below(), ctx)
        case ir.Sort():
            yield from relational.sort(step, below(), ctx)
        case ir.Slice():
            yield from relational.cut(step.op, below(), ctx)
        case ir.Trail():
            for rows in below():
                yield from trails.trail(step, rows, ctx)
        case ir.Let() | ir.Attach() | ir.Unwind():
            for rows in below():
                yield from chaining.chained(step, rows, ctx)
        case ir.PerRow():
            for rows in below():
                yield measured.per_row(step, rows, block, ctx)
        case ir.Union():
            yield from relational.append(below(i) for i in range(len(step.inputs)))


NOTHING_LEFT = Rows(0)


def _outer_rows(step: PlanStep, outer: Rows | None) -> Rows:
    """A block's rows start as those it is run for; a block without any starts from one empty row."""
    return Rows(1) if outer is None else outer.keep(step.live)
