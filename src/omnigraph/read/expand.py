"""Following edges from the rows of a bag.

The general way writes out one row per destination. Before that, what nobody reads is left unwritten: a destination that
is only counted becomes a factor of the weight, and sources that are only counted are added up at their destinations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from omnigraph.lang import ir
from omnigraph.lang.tree import variables
from omnigraph.read.adjacency import Hop, Merged
from omnigraph.read.arrays import Ints, Mask, Whole, distinct, ranges
from omnigraph.read.context import Context
from omnigraph.read.edges import look_up, prefers_lookup, topology
from omnigraph.read.expressions import holds
from omnigraph.read.plan import Step
from omnigraph.read.rows import Entities, Rows, check_count
from omnigraph.read.walk import Space, opposite, reach

WRITE_OUT_MAX = 4_096  # so few destinations are written out without further thought
SPREAD_PART = 8  # fewer edges than one in so many are followed one by one
REVERSED_PART = 4  # following edges from the other end must save at least this factor


def expand(step: Step, rows: Rows, ctx: Context) -> Rows:
    """One row per row and destination."""
    op = step.op
    assert isinstance(op, ir.Expand)  # noqa: S101
    rows = _bound_only(rows, op.src, op.dst if op.into else None)
    if op.max_hops > 1:
        found = _walk(op, rows, ctx)
    elif len(op.steps) == 1 and _is_plain(op, rows):
        found = _hop(step, op, rows, ctx)
    else:
        found = _hop_anyhow(op, rows, ctx)
    return found.keep(step.live)


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


@dataclass(frozen=True, slots=True)
class _Plain:
    """One hop from one node type to another."""

    op: ir.Expand
    step: Step
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


def _hop(step: Step, op: ir.Expand, rows: Rows, ctx: Context) -> Rows:
    plain = _Plain(op, step, op.steps[0], ctx)
    source = rows.entities(op.src).position
    if not op.into and prefers_lookup(plain.edge.edge, plain.edge.direction, rows.n, ctx):
        found = _looked_up(plain, rows, source)
        if found is not None:
            return found
    if op.into and not plain.edge_is_read and op.predicate is None and op.edge_var is None:
        return rows.filter(plain.view().has(source, rows.entities(op.dst).position))
    if op.into or plain.edge_is_read:
        return _written_out(plain, rows, plain.view().hop(source))
    if not step.bag and step.live == {op.dst} and not (rows.tags or rows.scores):
        return _gathered(plain, rows, source)
    total = plain.view().total(source)
    if total <= WRITE_OUT_MAX:
        return _written_out(plain, rows, plain.view().hop(source))
    return _large_hop(plain, rows, source, total)


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


def _large_hop(plain: _Plain, rows: Rows, source: Whole, total: int) -> Rows:
    """Many destinations: first look whether they have to be written out."""
    live, dst = plain.step.live, plain.op.dst
    others = live - {dst} or rows.tags or rows.scores
    if dst not in live:
        counted = _counted(plain, rows, source, total)
        if counted is not None:
            return counted
    elif not others:
        return _gathered(plain, rows, source)
    if plain.op.predicate is not None and total > plain.ctx.columns(plain.edge.far).n:
        return _selected(plain, rows, source, total)
    plain.ctx.admit(total, len(live) + 1)
    return _written_out(plain, rows, plain.view().hop(source))


def _written_out(plain: _Plain, rows: Rows, hop: Hop) -> Rows:
    """One row per edge found."""
    op = plain.op
    nodes = plain.destinations(hop.node)
    if op.into:
        kept = np.flatnonzero(hop.node == rows.entities(op.dst).position[hop.source])
        hop, nodes = Hop(hop.source[kept], hop.node[kept], hop.edge[kept]), nodes.take(kept)
    elif op.predicate is not None and not plain.edge_is_read:
        kept = np.flatnonzero(plain.admits(nodes))
        hop, nodes = Hop(hop.source[kept], hop.node[kept], hop.edge[kept]), nodes.take(kept)
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
    """Nothing but the destination is read: sources are added up where they lead."""
    plain.ctx.note(counted="sources")
    weight: Ints | None = None
    if plain.step.bag:
        counts = _arrivals(plain, rows, source)
        nodes = plain.destinations(np.flatnonzero(counts))
        weight = counts[nodes.position]
    else:
        sources = distinct(source, plain.ctx.columns(plain.edge.near).n)
        nodes = plain.destinations(plain.view().reached(sources))
    found = Rows(len(nodes.position), {plain.op.dst: nodes}, weight=weight)
    return found if plain.op.predicate is None else found.filter(plain.admits(nodes))


def _arrivals(plain: _Plain, rows: Rows, source: Whole) -> Ints:
    """For every destination how many rows lead there."""
    near = plain.ctx.columns(plain.edge.near)
    if source is near.everything and rows.weight is None:
        return plain.view(back=True).degrees
    view = plain.view()
    if view.total(source) * SPREAD_PART < len(view.base):
        hop = view.hop(source)
        counts = np.zeros(view.base.far, np.int64)
        np.add.at(counts, hop.node, rows.weights()[hop.source])
        return counts
    weights = np.zeros(near.n, np.int64)
    np.add.at(weights, source, rows.weights())
    check_count(weights, view.degrees)
    return plain.view(back=True).pull(weights)


def _selected(plain: _Plain, rows: Rows, source: Whole, total: int) -> Rows:
    """A predicate on the destination, and more edges than destinations: judge the destinations first."""
    mask = plain.admitted()
    chosen = np.flatnonzero(mask)
    incoming = plain.view(back=True).total(chosen)
    plain.ctx.note(destinations_admitted=len(chosen))
    if incoming * REVERSED_PART < total:
        plain.ctx.note(walked="from the destinations")
        return _from_destinations(plain, rows, source, chosen)
    hop = plain.view().hop(source)
    kept = np.flatnonzero(mask[hop.node])
    plain.ctx.admit(len(kept), len(plain.step.live) + 1)
    unfiltered = replace(plain, op=replace(plain.op, predicate=None))
    return _written_out(unfiltered, rows, Hop(hop.source[kept], hop.node[kept], hop.edge[kept]))


def _from_destinations(plain: _Plain, rows: Rows, source: Whole, chosen: Whole) -> Rows:
    """Follow the edges back from the few destinations wanted, and find the rows that stand where they come from."""
    hop = plain.view(back=True).hop(chosen)
    order = np.argsort(source, kind="stable")
    ordered = source[order]
    low = ordered.searchsorted(hop.node, "left")
    counts = ordered.searchsorted(hop.node, "right") - low
    at = np.repeat(np.arange(len(hop.node)), counts)
    first = np.repeat(low - (np.cumsum(counts) - counts), counts) + np.arange(len(at))
    back = Hop(order[first], chosen[hop.source[at]].astype(np.int32), hop.edge[at])
    unfiltered = replace(plain, op=replace(plain.op, predicate=None))
    return _written_out(unfiltered, rows, back)


# --- one hop, several edge types or node types -------------------------------------------------------------------


def _hop_anyhow(op: ir.Expand, rows: Rows, ctx: Context) -> Rows:
    source = rows.entities(op.src)
    edge_types = tuple(dict.fromkeys(s.edge for s in op.steps))
    parts = [_along(step, source, op, edge_types, ctx) for step in op.steps]
    index, far, node, code, edge = (np.concatenate(column) for column in zip(*parts, strict=True))
    if op.edge_var is None and len(parts) > 1:
        key = (index * len(op.dst_types) + far) * (int(node.max(initial=0)) + 1) + node
        kept = np.unique(key, return_index=True)[1]
        index, far, node, code, edge = (a[kept] for a in (index, far, node, code, edge))
    nodes = Entities(op.dst_types, node, far if len(op.dst_types) > 1 else None)
    found = rows.take(index)
    if op.into:
        mask = same_entity(nodes, found.entities(op.dst))
        found, code, edge = found.filter(mask), code[mask], edge[mask]
    else:
        found = found.with_variables({op.dst: nodes})
    if op.edge_var is not None:
        many = code if len(edge_types) > 1 else None
        found = found.with_variables({op.edge_var: Entities(edge_types, edge, many, edge=True)})
    return found if op.predicate is None else found.filter(holds(op.predicate, found, ctx))


def _along(
    step: ir.EdgeStep, source: Entities, op: ir.Expand, edge_types: tuple[str, ...], ctx: Context
) -> tuple[Ints, Whole, Whole, Whole, Whole]:
    nothing = np.empty(0, np.int32)
    if step.near not in source.types or step.far not in op.dst_types:
        return np.empty(0, np.int64), nothing, nothing, nothing, nothing
    chosen = np.flatnonzero(source.of_type(source.types.index(step.near)))
    view = topology(step.edge, ctx).view(step.direction)
    hop = (view if op.edge_var is not None else view.simple).hop(source.position[chosen])
    far = np.full(len(hop.node), op.dst_types.index(step.far), np.int32)
    code = np.full(len(hop.node), edge_types.index(step.edge), np.int32)
    return chosen[hop.source], far, hop.node, code, hop.edge


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


def _walk(op: ir.Expand, rows: Rows, ctx: Context) -> Rows:
    space = Space(op.steps, ctx)
    numbers = space.number(rows.entities(op.src))
    if (numbers < 0).any():
        rows, numbers = rows.filter(numbers >= 0), numbers[numbers >= 0]
    sources, which = np.unique(numbers, return_inverse=True)
    pair, nodes = reach(space, sources, (op.min_hops, op.max_hops), ctx)
    if op.into:
        return _closing(op, rows, space, which, pair, nodes, ctx)
    reached, typed = space.entities(nodes, op.dst_types)
    if not typed.all():
        pair, reached = pair[typed], reached.take(np.flatnonzero(typed))
    if op.predicate is not None:
        kept = np.flatnonzero(holds(op.predicate, Rows(len(pair), {op.dst: reached}), ctx))
        pair, reached = pair[kept], reached.take(kept)
    starts = pair.searchsorted(np.arange(len(sources) + 1))
    return fan_out(rows, which, starts, ctx, lambda at: {op.dst: reached.take(at)})


def fan_out(
    rows: Rows, which: Ints, starts: Ints, ctx: Context, bind: Callable[[Ints], dict[str, Entities]]
) -> Rows:
    """Every row with every member of the run that belongs to it."""
    counts = np.diff(starts)[which]
    ctx.admit(int(counts.sum()), len(rows.variables) + 1)
    at = ranges(starts[which], counts)
    found = rows.take(np.repeat(np.arange(rows.n), counts))
    return found.with_variables(dict(bind(at)))


def _closing(
    op: ir.Expand, rows: Rows, space: Space, which: Ints, pair: Ints, nodes: Whole, ctx: Context
) -> Rows:
    """The rows whose destination, bound already, is among those reached."""
    wanted = space.number(rows.entities(op.dst))
    have = np.sort(pair * space.size + nodes)
    key = which * space.size + wanted
    at = np.minimum(have.searchsorted(key), max(len(have) - 1, 0))
    mask = (wanted >= 0) & (have[at] == key) if len(have) else np.zeros(rows.n, np.bool_)
    found = rows.filter(mask)
    return found if op.predicate is None else found.filter(holds(op.predicate, found, ctx))
