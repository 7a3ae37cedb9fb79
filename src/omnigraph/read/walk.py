"""Walking several hops: from each source the nodes at their shortest distances.

A source is one hop from itself if it has a self-loop; other self-loops lead nowhere new.

Nodes of all types a walk may meet are numbered in one space, so that a frontier is one array of integers whatever the
pattern. A visited set is a bitmap of the space for each source; sources are taken in groups so that it stays in bounds.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, repeat

import numpy as np

from omnigraph.lang import ir
from omnigraph.model.frozen import frozen
from omnigraph.read.adjacency import Merged
from omnigraph.read.arrays import Ints, Mask, Whole, distinct
from omnigraph.read.budget import checked
from omnigraph.read.context import Context
from omnigraph.read.edges import topology
from omnigraph.read.rows import Entities
from omnigraph.read.topology import Topology

NO_NODES: Ints = np.empty(0, np.int64)
MARKS_MAX = 1 << 22  # bytes of visited marks at a time; every mark may become a pair of numbers
MARKS_PART = 512  # of a budget


def opposite(direction: ir.Direction) -> ir.Direction:
    match direction:
        case ir.Direction.OUT:
            return ir.Direction.IN
        case ir.Direction.IN:
            return ir.Direction.OUT
        case ir.Direction.BOTH:
            return ir.Direction.BOTH


@frozen
class Way:
    """One kind of hop: from nodes of one type to nodes of another."""

    edges: Topology
    direction: ir.Direction
    near: int  # index of the type
    far: int

    def view(self, back: bool = False) -> Merged:
        """Its edges, parallel ones apart; `back` walks against the direction."""
        return self.edges.view(opposite(self.direction) if back else self.direction)


@frozen
class Followed:
    """Edges that leave a list of nodes: the index into that list, the node reached, the edge's type and position."""

    source: Ints
    node: Ints
    code: Ints
    edge: Ints

    def take(self, index: Ints) -> Followed:
        return Followed(self.source[index], self.node[index], self.code[index], self.edge[index])

    @classmethod
    def joined(cls, parts: list[Followed]) -> Followed:
        if len(parts) == 1:
            return parts[0]
        columns = ([getattr(p, name) for p in parts] for name in ("source", "node", "code", "edge"))
        return cls(*(np.concatenate([NO_NODES, *column]) for column in columns))


class Space:
    """All nodes a walk can reach, numbered consecutively, and the hops between them."""

    def __init__(
        self, steps: tuple[ir.EdgeStep, ...], ctx: Context, others: tuple[str, ...] = ()
    ) -> None:
        """`others` are types without incoming hops, which a walk of zero hops may still start at."""
        met = (t for s in steps for t in (s.near, s.far))
        self.types = tuple(dict.fromkeys((*met, *others)))
        sizes = [ctx.columns(t).n for t in self.types]
        self.starts: Ints = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))
        self.size = int(self.starts[-1])
        self.ways = [self._way(step, ctx) for step in steps]
        self.edge_names = [step.edge for step in steps]
        self.loops = self._loops(steps, ctx)

    def _way(self, step: ir.EdgeStep, ctx: Context) -> Way:
        near, far = self.types.index(step.near), self.types.index(step.far)
        return Way(topology(step.edge, ctx), step.direction, near, far)

    def _loops(self, steps: tuple[ir.EdgeStep, ...], ctx: Context) -> Mask | None:
        """Which nodes have a self-loop among the steps."""
        marks: Mask | None = None
        for step in steps:
            own = topology(step.edge, ctx).loops if step.near == step.far else None
            if own is not None:
                marks = np.zeros(self.size, np.bool_) if marks is None else marks
                start = int(self.starts[self.types.index(step.near)])
                marks[start : start + len(own)] |= own
        return marks

    def number(self, entities: Entities) -> Ints:
        """The nodes of a variable in this space; -1 for those no step starts or ends at."""
        starts = np.array(
            [self.starts[self.types.index(t)] if t in self.types else -1 for t in entities.types],
            np.int64,
        )
        start = starts[0] if entities.code is None else starts[entities.code]
        found: Ints = np.where((entities.position < 0) | (start < 0), -1, start + entities.position)
        return found

    def entities(self, nodes: Whole, types: tuple[str, ...]) -> tuple[Entities, Mask]:
        """Nodes of the space as a variable of these types, and which of them have one of the types."""
        if len(self.types) == 1 and types == self.types:
            return Entities(types, nodes.astype(np.int32)), np.ones(len(nodes), np.bool_)
        which = self.starts.searchsorted(nodes, "right") - 1
        codes = np.array([types.index(t) if t in types else -1 for t in self.types], np.int32)[
            which
        ]
        position = (nodes - self.starts[which]).astype(np.int32)
        return Entities(types, position, codes if len(types) > 1 else None), codes >= 0

    def neighbours(self, nodes: Whole, ctx: Context, back: bool = False) -> Iterator[Whole]:
        """The neighbours of a set of nodes, with repetitions, a block at a time."""
        if len(self.types) == 1 and len(self.ways) == 1:
            yield from checked(self.ways[0].view(back).neighbours(nodes, ctx.sizes()))
            return
        for way in self.ways:
            for _, found in self._along(way, nodes, ctx, back):
                yield found

    def hops(self, nodes: Whole, ctx: Context) -> Iterator[tuple[Ints, Ints]]:
        """All hops from these nodes, a block at a time: the index of the source, the node reached."""
        for way in self.ways:
            yield from self._along(way, nodes, ctx, False)

    def next_level(self, nodes: Whole, seen: Mask, ctx: Context, back: bool = False) -> Whole:
        """The unseen neighbours of a set of nodes, each once; they are marked as seen."""
        found = []
        for some in self.neighbours(nodes, ctx, back):
            new = distinct(some[~seen[some]], self.size)
            seen[new] = True
            found.append(new)
        return found[0] if len(found) == 1 else np.concatenate([NO_NODES, *found])

    def edges(
        self,
        nodes: Whole,
        edge_types: tuple[str, ...],
        sizes: Iterator[int],
        back: bool = False,
    ) -> Iterator[Followed]:
        """Every edge that leaves these nodes, in blocks of these sizes; in one, whatever their types, if they fit."""
        leaving = [self._leaving(way, nodes, back) for way in self.ways]
        total = sum(
            way.view(back).total(near) for way, (_, near) in zip(self.ways, leaving, strict=True)
        )
        size = next(sizes)
        if total <= size:
            few = self._followed(leaving, edge_types, repeat(size), back)
            yield from checked([Followed.joined(list(few))])
        else:
            yield from checked(self._followed(leaving, edge_types, chain((size,), sizes), back))

    def _followed(
        self,
        leaving: list[tuple[Ints, Whole]],
        edge_types: tuple[str, ...],
        sizes: Iterator[int],
        back: bool,
    ) -> Iterator[Followed]:
        """The edges of each way from the nodes it starts at."""
        for way, name, (chosen, near) in zip(self.ways, self.edge_names, leaving, strict=True):
            first, code = self.starts[way.near if back else way.far], edge_types.index(name)
            for hop in way.view(back).hops(near, sizes):
                codes = np.full(len(hop.node), code, np.int64)
                edge = hop.edge.astype(np.int64)
                yield Followed(chosen[hop.source], hop.node + first, codes, edge)

    def _leaving(self, way: Way, nodes: Whole, back: bool) -> tuple[Ints, Whole]:
        """Which of these nodes a way starts at, and their numbers in its type."""
        near = way.far if back else way.near
        start, end = self.starts[near], self.starts[near + 1]
        chosen = np.flatnonzero((nodes >= start) & (nodes < end))
        return chosen, nodes[chosen] - start

    def _along(
        self, way: Way, nodes: Whole, ctx: Context, back: bool
    ) -> Iterator[tuple[Ints, Ints]]:
        chosen, near = self._leaving(way, nodes, back)
        first = self.starts[way.near if back else way.far]
        for hop in checked(way.view(back).hops(near, ctx.sizes())):
            yield chosen[hop.source], hop.node + first


# --- from one source ---------------------------------------------------------------------------------------------


def levels(
    space: Space, source: int, hops_max: int, ctx: Context, back: bool = False
) -> Iterator[Whole]:
    """The nodes at distance 0, 1, 2, … from one node, until there are none."""
    seen = np.zeros(space.size, np.bool_)
    frontier: Whole = np.array([source], np.int64)
    seen[source] = True
    yield frontier
    for _ in range(hops_max):
        frontier = space.next_level(frontier, seen, ctx, back)
        if not len(frontier):
            return
        yield frontier


def reach_from(space: Space, source: int, bounds: tuple[int, int], ctx: Context) -> Whole:
    """The nodes reached from one node within the bounds on hops."""
    low, high = bounds
    found = []
    for distance, nodes in enumerate(levels(space, source, high, ctx)):
        if distance >= low:
            found.append(nodes)
        elif low == 1 and space.loops is not None:
            found.append(nodes[space.loops[nodes]])  # the source, by an edge to itself
    return np.concatenate(found) if found else NO_NODES


# --- from many sources -------------------------------------------------------------------------------------------


@frozen
class Reached:
    """What some consecutive sources reach."""

    first: int  # of the sources
    count: int
    pair: Ints  # ascending: which of them, counted from the first
    node: Whole


def reach(space: Space, sources: Ints, bounds: tuple[int, int], ctx: Context) -> Iterator[Reached]:
    """What each source reaches, for as many sources at a time as memory allows."""
    if len(sources) == 1:
        nodes = reach_from(space, int(sources[0]), bounds, ctx)
        yield Reached(0, 1, np.zeros(len(nodes), np.int64), nodes)
        return
    marks = max(space.size, min(MARKS_MAX, ctx.budget.bytes_max // MARKS_PART))
    group = max(1, marks // max(space.size, 1))
    for start in range(0, max(len(sources), 1), group):
        some = sources[start : start + group]
        yield Reached(start, len(some), *_reach_group(space, some, bounds, ctx))


def _reach_group(
    space: Space, sources: Ints, bounds: tuple[int, int], ctx: Context
) -> tuple[Ints, Ints]:
    low, high = bounds
    seen = np.zeros(len(sources) * space.size, np.bool_)
    found = np.zeros(len(seen), np.bool_)
    frontier: Ints = np.arange(len(sources)) * space.size + sources
    seen[frontier] = True
    for distance in range(high + 1):
        if distance >= low:
            found[frontier] = True
        elif low == 1 and space.loops is not None:
            found[frontier[space.loops[frontier % space.size]]] = True
        if distance == high or not len(frontier):
            break
        frontier = _next_of_group(space, frontier, seen, ctx)
    pairs = np.flatnonzero(found)
    which = pairs // max(space.size, 1)
    return which, pairs - which * space.size


def _next_of_group(space: Space, frontier: Ints, seen: Mask, ctx: Context) -> Ints:
    nodes = frontier % space.size
    base = frontier - nodes
    level = []
    for which, reached in space.hops(nodes, ctx):
        at = base[which] + reached
        new = distinct(at[~seen[at]], len(seen))
        seen[new] = True
        level.append(new)
    return level[0] if len(level) == 1 else np.concatenate([NO_NODES, *level])


# --- between two nodes -------------------------------------------------------------------------------------------

Stages = tuple[list[Whole], list[Whole]]  # the levels walked from each end until they met


def meet(space: Space, a: int, b: int, hops_max: int, ctx: Context) -> Stages | None:
    """Walk from both ends, always with the smaller frontier, until a node is seen from both."""
    ahead: list[Whole] = [np.array([a], np.int64)]
    behind: list[Whole] = [np.array([b], np.int64)]
    if a == b:
        return ahead, behind
    seen = {True: np.zeros(space.size, np.bool_), False: np.zeros(space.size, np.bool_)}
    seen[True][a] = seen[False][b] = True
    while len(ahead) + len(behind) - 2 < hops_max:
        forward = len(ahead[-1]) <= len(behind[-1])
        side = ahead if forward else behind
        level = space.next_level(side[-1], seen[forward], ctx, back=not forward)
        if not len(level):
            return None
        side.append(level)
        if seen[not forward][level].any():
            return ahead, behind
    return None


def layers(space: Space, stages: Stages, ctx: Context) -> list[Whole]:
    """The nodes of all shortest paths, by their distance from the first end."""
    ahead, behind = stages
    found: list[Whole] = [np.intersect1d(ahead[-1], behind[-1])]
    for level in reversed(ahead[:-1]):
        found.insert(0, _neighbours_among(space, found[0], level, ctx, back=True))
    for level in reversed(behind[:-1]):
        found.append(_neighbours_among(space, found[-1], level, ctx))
    return found


def _neighbours_among(
    space: Space, nodes: Whole, level: Whole, ctx: Context, back: bool = False
) -> Whole:
    parts = [np.intersect1d(some, level) for some in space.neighbours(nodes, ctx, back)]
    return parts[0] if len(parts) == 1 else np.unique(np.concatenate([NO_NODES, *parts]))
