"""Running a plan: one function per operator, from the leaves up."""

from __future__ import annotations

import datetime as dt
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from omnigraph.core.snapshot import Snapshot
from omnigraph.errors import LimitExceeded, OmnigraphError
from omnigraph.lang import ir
from omnigraph.lang.query.params import bind_params
from omnigraph.lang.tree import walk
from omnigraph.read import aggregate, blocks, expand, rank, relational, scan, shortest
from omnigraph.read.cache import SHARED, Cache
from omnigraph.read.context import Context
from omnigraph.read.explain import describe
from omnigraph.read.expressions import holds
from omnigraph.read.order import reorder
from omnigraph.read.plan import Step, make_plan
from omnigraph.read.result import Result
from omnigraph.read.rows import Rows
from omnigraph.read.scan import known_share
from omnigraph.read.trace import Trace

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
    explain: bool = False,
    cache: Cache = SHARED,
    cancelled: Callable[[], bool] | None = None,
) -> Result:
    """Run a read on one state of a graph.

    `timeout` (seconds) and `max_rows` bound the run; crossing one raises an error that names it. The time counts from
    `started` (of `time.monotonic`), so that a caller's compilation is part of it. With `explain` the result tells how
    it was obtained.
    """
    started = time.monotonic() if started is None else started
    bound = bind_params(query, params, now or dt.datetime.now(dt.UTC))
    ctx = Context(
        snapshot,
        bound,
        cache,
        deadline=None if timeout is None else started + timeout,
        seconds=timeout,
        cancelled=cancelled,
        trace=Trace() if explain else None,
    )
    read, step = _planned(query, ctx)
    rows = _run(step, ctx, None)
    if max_rows is not None and rows.n > max_rows:
        raise LimitExceeded(
            f"the result has {rows.n:,} rows, more than the {max_rows:,} allowed",
            help="Add a limit, ask for less, or raise max_rows.",
            details={"limit": "max_rows", "limit_value": max_rows, "observed": rows.n},
        )
    return Result(read.columns, rows, snapshot.commit_id, ctx.trace)


# --- plans -------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Planned:
    """The plan of a compiled query, and the sizes of the tables it was made for."""

    query: ir.Query
    types: tuple[tuple[str, bool], ...]  # name, and whether it is an edge type
    sizes: tuple[int, ...] = ()
    step: Step | None = None


_plans: OrderedDict[int, _Planned] = OrderedDict()


def _planned(query: ir.Query, ctx: Context) -> tuple[ir.Read, Step]:
    """The plan, made once for each compiled query, and again when its tables have grown or shrunk much.

    Whoever holds the query gets the plan without comparing trees.
    """
    if not isinstance(query.body, ir.Read):
        raise OmnigraphError(f"{query.name} is a mutation; the reader was handed it by mistake")
    known = _plans.get(id(query))
    if known is None or known.query is not query:
        known = _plans[id(query)] = _Planned(query, _types_in(query.body.plan))
        while len(_plans) > PLANS_MAX:
            _plans.popitem(last=False)
    sizes = tuple(ctx.columns(*kind).rows.bit_length() for kind in known.types)
    step = known.step
    if step is None or sizes != known.sizes:
        ordered = reorder(
            query.body.plan, lambda *kind: ctx.columns(*kind).rows, partial(known_share, ctx)
        )
        step = make_plan(replace(query.body, plan=ordered))
        known.sizes, known.step = sizes, step
    return query.body, step


def _types_in(plan: ir.Op) -> tuple[tuple[str, bool], ...]:
    found: dict[tuple[str, bool], None] = {}
    for node in walk(plan):
        match node:
            case ir.NodeScan(types=types) | ir.Expand(dst_types=types):
                found |= dict.fromkeys((name, False) for name in types)
            case ir.EdgeStep(edge):
                found[edge, True] = None
            case _:
                pass
    return tuple(found)


# --- operators ---------------------------------------------------------------------------------------------------


def _run(step: Step, ctx: Context, outer: Rows | None) -> Rows:
    """The rows of an operator; `outer` are those an enclosing operator runs this block for."""
    ctx.check()
    if ctx.trace is None:
        return _operate(step, ctx, outer)
    with ctx.trace.operator(*describe(step.op)) as measured:
        rows = _operate(step, ctx, outer)
        measured.rows, measured.stands_for = rows.n, rows.total()
    return rows


def _operate(step: Step, ctx: Context, outer: Rows | None) -> Rows:
    def below(i: int = 0) -> Rows:
        return _run(step.inputs[i], ctx, outer)

    def block(inner: Step, rows: Rows) -> Rows:
        return _run(inner, ctx, rows)

    match step.op:
        case ir.NodeScan():
            return scan.node_scan(step.op, ctx).keep(step.live)
        case ir.Outer():
            return _outer_rows(step, outer)
        case ir.Expand():
            return expand.expand(step, below(), ctx)
        case ir.ShortestPath():
            return shortest.shortest_path(step, below(), ctx)
        case ir.Filter(_, predicate):
            rows = below()
            return rows.filter(holds(predicate, rows, ctx)).keep(step.live)
        case ir.SemiJoin():
            return blocks.semi_join(step, below(), block)
        case ir.Optional():
            return blocks.optional(step, below(), block)
        case ir.Join():
            return blocks.join(step, below(0), below(1), ctx)
        case ir.Score():
            return rank.score(step, below(), ctx)
        case ir.Rank():
            return rank.rank(step, below(), ctx)
        case ir.Fuse():
            return rank.fuse(step, below(0), below(1), ctx)
        case ir.Aggregate():
            return aggregate.aggregate(step, below(), ctx)
        case ir.Project():
            return relational.project(step, below(), ctx)
        case ir.Distinct():
            return relational.remove_equal(below())
        case ir.Sort():
            return relational.sort(step, below(), ctx)
        case ir.Slice():
            return relational.cut(step.op, below(), ctx)
        case ir.Union():
            return relational.append([below(i) for i in range(len(step.inputs))])


def _outer_rows(step: Step, outer: Rows | None) -> Rows:
    """A block's rows start as those it is run for; a block without any starts from one empty row."""
    return Rows(1) if outer is None else outer.keep(step.live)
