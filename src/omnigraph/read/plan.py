"""The physical plan: the operators of a query with what each must produce.

Walking down from the result, every operator gets the variables still read above it, and whether it matters
above how often a row occurs. That is all it takes to count patterns instead of enumerating them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import pyarrow as pa

from omnigraph.lang import ir
from omnigraph.lang.bindings import bindings
from omnigraph.lang.tree import variables, walk
from omnigraph.model.frozen import frozen

NOTHING: frozenset[str] = frozenset()
COUNTING = frozenset(
    {
        ir.AggregateFunction.COUNT_ROWS,
        ir.AggregateFunction.COUNT,
        ir.AggregateFunction.SUM,
        ir.AggregateFunction.AVG,
        ir.AggregateFunction.COLLECT,
        ir.AggregateFunction.IN_ORDER,
        ir.AggregateFunction.TOTAL,
    }
)
FLOWING = (  # operators to which the size of a block does not matter
    ir.Filter,
    ir.Project,
    ir.Aggregate,
    ir.Distinct,
    ir.Sort,
    ir.Slice,
    ir.Let,
    ir.Union,
)


@frozen
class PlanStep:
    """An operator and its required output."""

    op: ir.Op
    inputs: tuple[PlanStep, ...]  # for a correlated operator the input, then the block
    live: frozenset[str]  # the variables and scores read above
    bag: bool  # whether it matters above how often a row occurs
    slice: ir.Slice | None = None  # the final cut of a sort, or of a ranking used as a sort key
    steps_of_paths: bool = True  # of a shortest path: more than its length is read
    early: bool = False  # whether a limit above may stop it before it is done
    whole: bool = False  # whether the result has exactly its rows
    flows: bool = False  # whether its rows go to the result without a walk, a join or a ranking
    among: pa.Array | None = None  # of a scan: the ids of the only nodes that matter


def make_plan(read: ir.Read) -> PlanStep:
    """The plan of a whole read."""
    step = _step(read.plan, NOTHING, True, None, _paths_spelled_out(read.plan))
    return _stoppable(step, early=False, whole=True, flows=True)


def _stoppable(step: PlanStep, early: bool, whole: bool, flows: bool) -> PlanStep:
    """Marks what a limit may stop: everything below it that hands on rows as they come."""
    kept = whole and isinstance(step.op, ir.Project | ir.Sort)
    flowing = flows and isinstance(step.op, FLOWING)
    below: tuple[bool, ...]
    match step.op:
        case ir.Slice(limit=limit):
            below = (early or limit is not None,)
        case ir.Sort() | ir.Aggregate() | ir.Score() | ir.Rank() | ir.Fuse():
            below = (False,) * len(step.inputs)
        case ir.SemiJoin(measure=measure):
            below = (early, measure is None)  # that there is one takes one solution
        case ir.Optional() | ir.Join() | ir.PerRow():
            below = (early, False)
        case _:
            below = (early,) * len(step.inputs)
    inputs = tuple(_stoppable(i, e, kept, flowing) for i, e in zip(step.inputs, below, strict=True))
    return replace(step, inputs=inputs, early=early, whole=whole, flows=flows)


def longest_chain(step: PlanStep) -> int:
    """How many operators in a row hold a block while they make others of it."""
    own = isinstance(step.op, ir.Expand | ir.Trail | ir.ShortestPath | ir.Join | ir.Unwind)
    return own + max(map(longest_chain, step.inputs), default=0)


def _paths_spelled_out(plan: ir.Op) -> frozenset[str]:
    """The path variables of which more than the length is read."""
    found = set()
    for node in walk(plan):
        match node:
            case ir.PathOf(var) | ir.PathGet(var, ir.PathPart.NODES | ir.PathPart.EDGES):
                found.add(var)
            case ir.TrailOf(var):
                found.add(var)
            case ir.Apart(left, right):
                found |= {left, right}
            case _:
                pass
    return frozenset(found)


def names_read(nodes: Iterable[object]) -> frozenset[str]:
    """The variables and scores expressions or rankings read."""
    found: set[str] = set()
    for node in nodes:
        if node is not None:
            found |= variables(node)
            found.update(part.name for part in walk(node) if isinstance(part, ir.ScoreOf))
    return frozenset(found)


def _step(
    op: ir.Op, live: frozenset[str], bag: bool, cut: ir.Slice | None, spelled: frozenset[str]
) -> PlanStep:
    def below(
        child: ir.Op, live: frozenset[str], bag: bool = bag, cut: ir.Slice | None = None
    ) -> PlanStep:
        return _step(child, live, bag, cut, spelled)

    match op:
        case ir.NodeScan() | ir.Outer() | ir.Resumed():
            return PlanStep(op, (), live, bag)
        case ir.Expand() | ir.ShortestPath() | ir.Trail():
            return _traversal(op, live, bag, spelled)
        case ir.Let() | ir.Attach() | ir.Unwind() | ir.PerRow():
            return _valued(op, live, bag, spelled)
        case ir.Filter(source, predicate):
            return PlanStep(op, (below(source, live | names_read([predicate])),), live, bag)
        case ir.SemiJoin(source, block, _, measure):
            inner = below(block, *_measured(measure))
            wanted = live | needs_of_outer(inner) | names_read([measure and measure.predicate])
            return PlanStep(op, (below(source, wanted), inner), live, bag)
        case ir.Optional(source, block, added):
            inner = below(block, live & frozenset(added))
            outer = (live - frozenset(added)) | needs_of_outer(inner)
            return PlanStep(op, (below(source, outer), inner), live, bag)
        case ir.Join():
            return _join(op, live, bag, spelled)
        case ir.Score(source, ranking, name):
            if name not in live:
                return below(source, live)
            return PlanStep(
                op, (below(source, (live - {name}) | names_read([ranking])),), live, bag
            )
        case ir.Rank(source, ranking, name):
            inner = below(source, (live - {name}) | names_read([ranking]))
            return PlanStep(op, (inner,), live, bag, cut)
        case ir.Fuse():
            wanted = (live - {op.name, op.place}) | {op.var}
            parts = ((op.primary, op.primary_score), (op.secondary, op.secondary_score))
            inputs = tuple(below(child, wanted | {name}, bag=True) for child, name in parts)
            return PlanStep(op, inputs, live, bag)
        case ir.Aggregate():
            return _aggregate(op, spelled)
        case ir.Project(source, columns):
            inner = below(source, names_read(c.expr for c in columns), cut=cut)
            return PlanStep(op, (inner,), NOTHING, bag)
        case ir.Distinct(source):
            return PlanStep(op, (below(source, NOTHING, bag=False),), NOTHING, bag)
        case ir.Sort(source, keys, ties):
            wanted = live | names_read([k.expr for k in keys] + list(ties))
            return PlanStep(op, (below(source, wanted, cut=_of_best(op, cut)),), live, bag, cut)
        case ir.Slice(source):
            return PlanStep(op, (below(source, live, bag=True, cut=op),), live, bag)
        case ir.Union(inputs):
            return PlanStep(op, tuple(below(i, NOTHING) for i in inputs), NOTHING, bag)


def _measured(measure: ir.BlockTest | None) -> tuple[frozenset[str], bool]:
    """The names read from the solutions of a block, and whether repetitions matter."""
    if measure is None:
        return NOTHING, False
    wanted = measure.aggregate
    return names_read([wanted.arg]), wanted.function in COUNTING and not wanted.distinct


def _of_best(op: ir.Sort, cut: ir.Slice | None) -> ir.Slice | None:
    """The final cut of a ranking that is sorted by its own score, the best first."""
    source, first = op.input, op.keys[0] if op.keys else None
    if not isinstance(source, ir.Rank) or not isinstance(source.ranking, ir.Bm25) or first is None:
        return None
    by_score = isinstance(first.expr, ir.ScoreOf) and first.expr.name == source.name
    return cut if first.descending and by_score else None


def _traversal(
    op: ir.Expand | ir.ShortestPath | ir.Trail,
    live: frozenset[str],
    bag: bool,
    spelled: frozenset[str],
) -> PlanStep:
    introduced = set() if op.into else {op.dst}
    match op:
        case ir.Expand(edge_var=str(edge)):
            introduced.add(edge)
        case ir.ShortestPath(path_var=path) | ir.Trail(path_var=path):
            introduced.add(path)
        case _:
            pass
    wanted = (live - introduced) | {op.src} | ({op.dst} if op.into else set())
    if isinstance(op, ir.Trail) and op.edge_predicate is not None:
        wanted |= names_read([op.edge_predicate]) - {op.edge_var}
    steps_of_paths = not isinstance(op, ir.Expand) and op.path_var in spelled & live
    return PlanStep(
        op, (_step(op.input, wanted, bag, None, spelled),), live, bag, steps_of_paths=steps_of_paths
    )


def _valued(
    op: ir.Let | ir.Attach | ir.Unwind | ir.PerRow,
    live: frozenset[str],
    bag: bool,
    spelled: frozenset[str],
) -> PlanStep:
    """An operator that adds values; unread ones are not computed."""

    def below(read: frozenset[str]) -> PlanStep:
        return _step(op.input, read, bag, None, spelled)

    match op:
        case ir.Let(_, columns, keep):
            op = replace(op, columns=tuple(c for c in columns if c.name in live))
            kept = frozenset(own for name, own in keep if name in live)
            wanted = kept | names_read(c.expr for c in op.columns)
        case ir.Attach(_, name, part):
            if name not in live:
                return below(live)
            wanted = (live - {name}) | names_read([part])
        case ir.Unwind(_, part, name):
            wanted = (live - {name}) | names_read([part])
        case ir.PerRow(_, block, aggregate):
            if aggregate.name not in live:
                return below(live)
            inner = _step(block, names_read([aggregate.arg]), True, None, spelled)
            outer = (live - {aggregate.name}) | needs_of_outer(inner)
            return PlanStep(op, (below(outer), inner), live, bag)
    return PlanStep(op, (below(wanted),), live, bag)


def _join(op: ir.Join, live: frozenset[str], bag: bool, spelled: frozenset[str]) -> PlanStep:
    sides = []
    for number, side in enumerate((op.left, op.right)):
        elsewhere = frozenset(bindings(op.right if number == 0 else op.left))
        wanted = (live | names_read(pair[number] for pair in op.on)) - elsewhere
        sides.append(_step(side, wanted, bag, None, spelled))
    return PlanStep(op, tuple(sides), live, bag)


def _aggregate(op: ir.Aggregate, spelled: frozenset[str]) -> PlanStep:
    bound = bindings(op.input)
    aggregates = tuple(
        replace(a, function=ir.AggregateFunction.COUNT_ROWS, arg=None)
        if a.function is ir.AggregateFunction.COUNT
        and not a.distinct
        and isinstance(a.arg, ir.IdOf | ir.TrailOf)
        and a.arg.var in bound
        and not bound[a.arg.var].nullable
        else a
        for a in op.aggregates
    )
    op = replace(op, aggregates=aggregates)
    live = names_read([k.expr for k in op.keys] + [a.arg for a in aggregates])
    bag = any(a.function in COUNTING and not a.distinct for a in aggregates)
    return PlanStep(op, (_step(op.input, live, bag, None, spelled),), NOTHING, True)


def needs_of_outer(block: PlanStep) -> frozenset[str]:
    """What a block reads of the rows it is run for."""
    return frozenset[str]().union(*(leaf.live for leaf in _outer_leaves(block)))


def _outer_leaves(step: PlanStep) -> Iterator[PlanStep]:
    match step.op:
        case ir.Outer():
            yield step
        case ir.SemiJoin() | ir.Optional() | ir.PerRow():
            yield from _outer_leaves(step.inputs[0])
        case _:
            for child in step.inputs:
                yield from _outer_leaves(child)
