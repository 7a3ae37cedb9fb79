"""Following edges from the rows of a bag.

The general way writes out one row per destination. Unread values are not written: a destination that
is only counted becomes a factor of the weight, and sources that are only counted are added up at their destinations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain, repeat

import numpy as np

from omnigraph.lang import ir
from omnigraph.lang.tree import variables
from omnigraph.model.frozen import frozen
from omnigraph.read.adjacency import Hop, Merged
from omnigraph.read.arrays import (
    NO_POSITIONS,
    AnyArray,
    Ints,
    Mask,
    Positions,
    Whole,
    distinct,
    runs,
)
from omnigraph.read.budget import checked
from omnigraph.read.context import Context
from omnigraph.read.edges import look_up, prefers_lookup, topology
from omnigraph.read.expressions import holds
from omnigraph.read.plan import PlanStep
from omnigraph.read.rows import Entities, Rows, check_count
from omnigraph.read.walk import Reached, Space, opposite, reach

WRITE_OUT_MAX = 4_096  # up to this many destinations are simply written out
SPREAD_PART = 8  # fewer edges than one in this many are followed one by one
REVERSED_PART = 4  # following edges from the other end must save at least this factor


def expand(step: PlanStep, rows: Rows, ctx: Context) -> Iterator[Rows]:
    """One row per row and destination, in as many blocks as they take."""
    op = step.op
    assert isinstance(op, ir.Expand)  # noqa: S101
    rows = _bound_only(rows, op.src, op.dst if op.into else None)
    if op.max_hops > 1:
        found = _walk(step, op, rows, ctx)
    elif len(op.steps) == 1 and _is_plain(op, rows):
        found = _hop(step, op, rows, ctx)
    else:
        found = _hop_anyhow(step, op, rows, ctx)
    return map(partial(Rows.keep, live=step.live), found)


def _bound_only(rows: Rows, *names: str | None) -> Rows:
    for name in names:
        if name is not None and rows.n and int(rows.entities(name).position.min()) < 0:
            rows = rows.filter(rows.entities(name).position >= 0)
    return rows


def _is_plain(op: ir.Expand, rows: Rows) -> bool:
    """Both ends of one type each, the usual case."""
    step = op.steps[0]
    ends = rows.entities(op.src).types == (step.near,) and op.dst_types == (step.far,)
    return ends and (not op.into or rows.entities(op.dst).types == (step.far,))


# --- one hop along one edge type ---------------------------------------------------------------------------------


@frozen
class _Plain:
    """One hop from one node type to another."""

    op: ir.Expand
    step: PlanStep
    edge: ir.EdgeStep
    ctx: Context

    @property
    def edge_is_read(self) -> bool:
        var = self.op.edge_var
        if var is None:
            return False
        return var in self.step.live or (
            self.op.predicate is not None and var in variables(self.op.predicate)
        )

    def view(self, back: bool = False) -> Merged:
        """With an edge variable parallel edges are apart, without they are one."""
        direction = opposite(self.edge.direction) if back else self.edge.direction
        found = topology(self.edge.edge, self.ctx).view(direction)
        return found if self.op.edge_var is not None else found.simple

    def hops(self, source: Whole) -> Iterator[Hop]:
        """Every edge from these nodes, a block at a time."""
        return checked(self.view().hops(source, self.ctx.sizes(self.step.early)))

    def destinations(self, nodes: Whole) -> Entities:
        return Entities((self.edge.far,), nodes.astype(np.int32, copy=False))

    def admits(self, nodes: Entities) -> Mask:
        """Which of these destinations satisfy the predicate."""
        rows = Rows(len(nodes.position), {self.op.dst: nodes})
        if self.op.predicate is None:
            return np.ones(rows.n, np.bool_)
        return holds(self.op.predicate, rows, self.ctx)

    def admitted(self) -> Mask:
        """The same for every node of the type."""
        columns = self.ctx.columns(self.edge.far)
        mask = np.zeros(columns.n, np.bool_)
        mask[columns.everything] = self.admits(self.destinations(columns.everything))
        return mask


def _hop(step: PlanStep, op: ir.Expand, rows: Rows, ctx: Context) -> Iterator[Rows]:
    plain = _Plain(op, step, op.steps[0], ctx)
    source = rows.entities(op.src).position
    if not op.into and prefers_lookup(plain.edge.edge, plain.edge.direction, rows.n, ctx):
        found = _looked_up(plain, rows, source)
        if found is not None:
            yield found
            return
    if op.into and not plain.edge_is_read and op.predicate is None and op.edge_var is None:
        yield rows.filter(plain.view().has(source, rows.entities(op.dst).position))
    elif op.into or plain.edge_is_read:
        for hop in plain.hops(source):
            yield _written_out(plain, rows, hop)
    elif not step.bag and step.live == {op.dst} and not (rows.tags or rows.scores):
        yield _gathered(plain, rows, source)
    else:
        total = plain.view().total(source)
        if total <= WRITE_OUT_MAX:
            yield _written_out(plain, rows, plain.view().hop(source))
        else:
            yield from _large_hop(plain, rows, source, total)


def _looked_up(plain: _Plain, rows: Rows, source: Whole) -> Rows | None:
    if len(np.unique(source)) < len(source):
        return None
    hop = look_up(plain.edge.edge, plain.edge.direction, source.astype(np.int32), plain.ctx)
    if plain.op.edge_var is None:
        hop = _each_once(hop, plain.ctx.columns(plain.edge.far).n)
    return _written_out(plain, rows, hop)


def _each_once(hop: Hop, size: int) -> Hop:
    _, first = np.unique(hop.source * size + hop.node, return_index=True)
    return Hop(hop.source[first], hop.node[first], hop.edge[first])


def _large_hop(plain: _Plain, rows: Rows, source: Whole, total: int) -> Iterator[Rows]:
    """Many destinations: first see whether they have to be written out."""
    live, dst = plain.step.live, plain.op.dst
    others = live - {dst} or rows.tags or rows.scores
    if dst not in live:
        counted = _counted(plain, rows, source, total)
        if counted is not None:
            yield counted
            return
    elif not others:
        yield _gathered(plain, rows, source)
        return
    if plain.op.predicate is not None and total > plain.ctx.columns(plain.edge.far).n:
        yield from _selected(plain, rows, source, total)
        return
    for hop in plain.hops(source):
        yield _written_out(plain, rows, hop)


def _written_out(plain: _Plain, rows: Rows, hop: Hop) -> Rows:
    """One row per edge found."""
    op = plain.op
    nodes = plain.destinations(hop.node)
    if op.into:
        kept = np.flatnonzero(hop.node == rows.entities(op.dst).position[hop.source])
        hop, nodes = hop.take(kept), nodes.take(kept)
    elif op.predicate is not None and not plain.edge_is_read:
        kept = np.flatnonzero(plain.admits(nodes))
        hop, nodes = hop.take(kept), nodes.take(kept)
    found = rows.take(hop.source).with_variables({op.dst: nodes})
    if op.edge_var is not None:
        edges = Entities((plain.edge.edge,), hop.edge.astype(np.int32, copy=False), None, edge=True)
        found = found.with_variables({op.edge_var: edges})
    if op.predicate is not None and (plain.edge_is_read or op.into):
        found = found.filter(holds(op.predicate, found, plain.ctx))
    return found


def _counted(plain: _Plain, rows: Rows, source: Whole, total: int) -> Rows | None:
    """The destination is not read: every row counts as often as it has destinations."""
    view = plain.view()
    if plain.op.predicate is None:
        counts = view.degrees[source]
    elif total > len(view.base) // 8:
        counts = view.pull(plain.admitted())[source]
    else:
        return None
    plain.ctx.note(counted="destinations")
    kept = counts > 0
    found = rows.filter(kept)
    return found.scaled(counts[kept]) if plain.step.bag else found


def _gathered(plain: _Plain, rows: Rows, source: Whole) -> Rows:
    """Only the destination is read: sources are added up at their destinations."""
    plain.ctx.note(counted="sources")
    weight: Ints | None = None
    if plain.step.bag:
        counts = _arrivals(plain, rows, source)
        nodes = plain.destinations(np.flatnonzero(counts))
        weight = counts[nodes.position]
    else:
        sources = distinct(source, plain.ctx.columns(plain.edge.near).n)
        nodes = plain.destinations(plain.view().reached(sources, plain.ctx.sizes()))
    found = Rows(len(nodes.position), {plain.op.dst: nodes}, weight=weight)
    return found if plain.op.predicate is None else found.filter(plain.admits(nodes))


def _arrivals(plain: _Plain, rows: Rows, source: Whole) -> Ints:
    """The number of rows that lead to each destination."""
    near = plain.ctx.columns(plain.edge.near)
    if source is near.everything and rows.weight is None:
        return plain.view(back=True).degrees
    view = plain.view()
    if view.total(source) * SPREAD_PART < len(view.base):
        counts = np.zeros(view.base.far, np.int64)
        for hop in plain.hops(source):
            np.add.at(counts, hop.node, rows.weights()[hop.source])
        return counts
    weights = np.zeros(near.n, np.int64)
    np.add.at(weights, source, rows.weights())
    check_count(weights, view.degrees)
    return plain.view(back=True).pull(weights)


def _selected(plain: _Plain, rows: Rows, source: Whole, total: int) -> Iterator[Rows]:
    """A predicate on the destination, and more edges than destinations: judge the destinations first."""
    mask = plain.admitted()
    chosen = np.flatnonzero(mask)
    incoming = plain.view(back=True).total(chosen)
    plain.ctx.note(destinations_admitted=len(chosen))
    if incoming * REVERSED_PART < total:
        plain.ctx.note(walked="from the destinations")
        yield from _from_destinations(plain, rows, source, chosen)
        return
    unfiltered = replace(plain, op=replace(plain.op, predicate=None))
    for hop in plain.hops(source):
        yield _written_out(unfiltered, rows, hop.take(np.flatnonzero(mask[hop.node])))


def _from_destinations(plain: _Plain, rows: Rows, source: Whole, chosen: Whole) -> Iterator[Rows]:
    """Follow the edges back from the few destinations wanted, and find the rows at their sources."""
    order = np.argsort(source, kind="stable")
    ordered, sizes = source[order], plain.ctx.sizes(plain.step.early)
    unfiltered = replace(plain, op=replace(plain.op, predicate=None))
    for hop in checked(plain.view(back=True).hops(chosen, sizes)):
        low = ordered.searchsorted(hop.node, "left")
        counts = ordered.searchsorted(hop.node, "right") - low
        for at, first in checked(runs(low, counts, sizes)):
            back = Hop(order[first], chosen[hop.source[at]].astype(np.int32), hop.edge[at])
            yield _written_out(unfiltered, rows, back)


# --- one hop, several edge types or node types -------------------------------------------------------------------


@frozen
class _FoundEdges:
    """Edges found from rows: the row, and the types (as indices) and positions of the destination and the edge."""

    row: Ints
    far: Positions
    node: Positions
    code: Positions
    edge: Positions

    def take(self, index: Ints) -> _FoundEdges:
        return _FoundEdges(
            self.row[index], self.far[index], self.node[index], self.code[index], self.edge[index]
        )

    @property
    def columns(self) -> tuple[AnyArray, ...]:
        return self.row, self.far, self.node, self.code, self.edge


NOTHING_FOUND = _FoundEdges(np.empty(0, np.int64), *[NO_POSITIONS] * 4)


def _hop_anyhow(step: PlanStep, op: ir.Expand, rows: Rows, ctx: Context) -> Iterator[Rows]:
    """One block for as many rows as have destinations that fit; several for a row that has more."""
    ends, sizes = np.cumsum(_edges_of_rows(op, rows, ctx)), ctx.sizes(step.early)
    start = before = 0
    while True:
        size = next(sizes)
        end = min(max(start + 1, int(ends.searchsorted(before + size, "right"))), rows.n)
        some, total = rows.slice(slice(start, end)), int(ends[end - 1]) if rows.n else 0
        if total - before <= size:
            every = [NOTHING_FOUND, *_edges(op, some, repeat(size), ctx)]
            parts = iter([_without_repeats(op, every)])
        else:
            parts = _new_ones(op, _edges(op, some, chain((size,), sizes), ctx), ctx)
        for found in checked(parts):
            yield _bound(op, some, found, ctx)
        start, before = end, total
        if start >= rows.n:
            return


def _edges_of_rows(op: ir.Expand, rows: Rows, ctx: Context) -> Ints:
    """How many edges leave the source of each row."""
    source, found = rows.entities(op.src), np.zeros(rows.n, np.int64)
    for step in op.steps:
        if step.near in source.types:
            chosen = np.flatnonzero(source.of_type(source.types.index(step.near)))
            view = topology(step.edge, ctx).view(step.direction)
            found[chosen] += view.counts(source.position[chosen])
    return found


def _edges(op: ir.Expand, rows: Rows, sizes: Iterator[int], ctx: Context) -> Iterator[_FoundEdges]:
    """The edges of each step in blocks of these sizes."""
    source, edge_types = rows.entities(op.src), _edge_types(op)
    for step in op.steps:
        if step.near not in source.types or step.far not in op.dst_types:
            continue
        chosen = np.flatnonzero(source.of_type(source.types.index(step.near)))
        view = topology(step.edge, ctx).view(step.direction)
        view = view if op.edge_var is not None else view.simple
        for hop in view.hops(source.position[chosen], sizes):
            far = np.full(len(hop.node), op.dst_types.index(step.far), np.int32)
            code = np.full(len(hop.node), edge_types.index(step.edge), np.int32)
            yield _FoundEdges(chosen[hop.source], far, hop.node, code, hop.edge)


def _edge_types(op: ir.Expand) -> tuple[str, ...]:
    return tuple(dict.fromkeys(step.edge for step in op.steps))


def _without_repeats(op: ir.Expand, parts: list[_FoundEdges]) -> _FoundEdges:
    """As one; where edges do not matter, every row with every destination once."""
    found = _FoundEdges(*map(np.concatenate, zip(*(part.columns for part in parts), strict=True)))
    if op.edge_var is not None or len(op.steps) == 1:
        return found
    key = found.row * len(op.dst_types) + found.far
    key = key * (int(found.node.max(initial=0)) + 1) + found.node
    return found.take(np.unique(key, return_index=True)[1])


def _new_ones(op: ir.Expand, parts: Iterator[_FoundEdges], ctx: Context) -> Iterator[_FoundEdges]:
    """The same for the edges of one row, block by block."""
    if op.edge_var is not None or len(op.steps) == 1:
        yield from parts
        return
    starts = np.cumsum([0, *(ctx.columns(name).n for name in op.dst_types)])
    seen = np.zeros(int(starts[-1]), np.bool_)
    for part in parts:
        at = starts[part.far] + part.node
        new = np.flatnonzero(~seen[at])
        seen[at] = True
        yield part.take(new)


def _bound(op: ir.Expand, rows: Rows, edges: _FoundEdges, ctx: Context) -> Rows:
    """One row per edge found."""
    edge_types, code, edge = _edge_types(op), edges.code, edges.edge
    nodes = Entities(op.dst_types, edges.node, edges.far if len(op.dst_types) > 1 else None)
    found = rows.take(edges.row)
    if op.into:
        mask = same_entity(nodes, found.entities(op.dst))
        found, code, edge = found.filter(mask), code[mask], edge[mask]
    else:
        found = found.with_variables({op.dst: nodes})
    if op.edge_var is not None:
        many = code if len(edge_types) > 1 else None
        found = found.with_variables({op.edge_var: Entities(edge_types, edge, many, edge=True)})
    return found if op.predicate is None else found.filter(holds(op.predicate, found, ctx))


def same_entity(left: Entities, right: Entities) -> Mask:
    """Whether both variables are bound to one entity, row by row."""
    types = {name: i for i, name in enumerate(dict.fromkeys(left.types + right.types))}
    found: Mask = (left.position == right.position) & (left.position >= 0)
    if len(types) > 1:
        found = found & (_codes(left, types) == _codes(right, types))
    return found


def _codes(entities: Entities, types: dict[str, int]) -> Whole:
    numbers = np.array([types[name] for name in entities.types])
    return numbers[0] if entities.code is None else numbers[entities.code]


# --- several hops ------------------------------------------------------------------------------------------------


def _walk(step: PlanStep, op: ir.Expand, rows: Rows, ctx: Context) -> Iterator[Rows]:
    space = Space(op.steps, ctx)
    numbers = space.number(rows.entities(op.src))
    if (numbers < 0).any():
        rows, numbers = rows.filter(numbers >= 0), numbers[numbers >= 0]
    sources, which = np.unique(numbers, return_inverse=True)
    groups = reach(space, sources, (op.min_hops, op.max_hops), ctx)
    for low, rows_of, reached in _with_their_rows(groups, rows, which, len(sources)):
        if op.into:
            yield _closing(op, rows_of[0], space, rows_of[1] - low, reached, ctx)
        else:
            yield from _opening(step, op, rows_of[0], space, rows_of[1] - low, reached, ctx)


def _with_their_rows(
    groups: Iterator[Reached], rows: Rows, which: Ints, sources: int
) -> Iterator[tuple[int, tuple[Rows, Ints], Reached]]:
    """Each group of sources with the rows bound to one of them."""
    order = None
    for group in groups:
        low, high = group.first, group.first + group.count
        if high - low >= sources:
            yield low, (rows, which), group
            return
        if order is None:
            order = np.argsort(which, kind="stable")
            ordered = which[order]
        some = order[slice(*ordered.searchsorted((low, high)).tolist())]
        yield low, (rows.take(some), which[some]), group


def _opening(
    step: PlanStep,
    op: ir.Expand,
    rows: Rows,
    space: Space,
    which: Ints,
    found: Reached,
    ctx: Context,
) -> Iterator[Rows]:
    """Every row with every node its source leads to."""
    pair = found.pair
    reached, typed = space.entities(found.node, op.dst_types)
    if not typed.all():
        pair, reached = pair[typed], reached.take(np.flatnonzero(typed))
    if op.predicate is not None:
        kept = np.flatnonzero(holds(op.predicate, Rows(len(pair), {op.dst: reached}), ctx))
        pair, reached = pair[kept], reached.take(kept)
    starts = pair.searchsorted(np.arange(found.count + 1))
    return fan_out(
        rows, which, starts, lambda at: {op.dst: reached.take(at)}, ctx.sizes(step.early)
    )


def fan_out(
    rows: Rows,
    which: Ints,
    starts: Ints,
    bind: Callable[[Ints], dict[str, Entities]],
    sizes: Iterator[int],
) -> Iterator[Rows]:
    """Every row with every member of the run that belongs to it."""
    counts = np.diff(starts)[which]
    for index, at in checked(runs(starts[which], counts, sizes)):
        yield rows.take(index).with_variables(dict(bind(at)))


def _closing(
    op: ir.Expand, rows: Rows, space: Space, which: Ints, found: Reached, ctx: Context
) -> Rows:
    """The rows whose destination, bound already, is among those reached."""
    wanted = space.number(rows.entities(op.dst))
    have = np.sort(found.pair * space.size + found.node)
    key = which * space.size + wanted
    at = np.minimum(have.searchsorted(key), max(len(have) - 1, 0))
    mask = (wanted >= 0) & (have[at] == key) if len(have) else np.zeros(rows.n, np.bool_)
    kept = rows.filter(mask)
    return kept if op.predicate is None else kept.filter(holds(op.predicate, kept, ctx))
