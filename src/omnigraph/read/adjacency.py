"""Adjacency as sorted arrays: one direction of one edge table.

`Adjacency` is immutable. `Merged` is a large one minus a small one plus another small one, which is how
a commit changes it without copying it; every count over it is the same sum of three.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import chain, pairwise, repeat

import numpy as np

from omnigraph.model.frozen import frozen
from omnigraph.read.arrays import (
    NO_EDGES,
    NO_POSITIONS,
    EdgeRows,
    Ints,
    Mask,
    Positions,
    Whole,
    distinct,
    runs,
    stable_order,
)
from omnigraph.read.budget import checked
from omnigraph.read.edge_sorting import BLOCK_ROWS, in_order
from omnigraph.read.mapped_arrays import mapped_arrays

BLOCK_EDGES = 1 << 15
IN_MEMORY_EDGES_MAX = 4_000_000  # more are sorted on disk, and their arrays are mapped


@frozen
class Hop:
    """Edges found from a list of nodes: the index into that list, the neighbour, the edge's position."""

    source: Ints
    node: Positions
    edge: Positions

    def take(self, index: Whole) -> Hop:
        return Hop(self.source[index], self.node[index], self.edge[index])


class Adjacency:
    """The neighbours of every node, ascending, and the edges that lead to them."""

    def __init__(
        self,
        start: Ints,
        node: Positions,
        edge: Positions,
        far: int,
        smaller: Adjacency | None = None,
        *,
        simple: bool | None = None,
        is_mapped: bool = False,
    ) -> None:
        # The same edges among fewer nodes: its cached properties are reused.
        self.smaller = smaller
        if simple is not None:
            self.__dict__["is_simple"] = simple
        self.is_mapped = (
            is_mapped  # the arrays lie in a file, and take memory only as the system sees fit
        )
        self.start = start  # of each node's run; one more entry than nodes
        self.node = node
        self.edge = edge
        self.far = far  # number of nodes at the other end

    @classmethod
    def build(
        cls, near: Positions, far: Positions, edge: Positions, sizes: tuple[int, int]
    ) -> Adjacency:
        """From edges in any order; `sizes` are the numbers of nodes at the two ends."""
        order = stable_order(far)
        order = order[stable_order(near[order])]
        start = np.zeros(sizes[0] + 1, np.int64)
        np.cumsum(np.bincount(near, minlength=sizes[0]), out=start[1:])
        return cls(start, far[order], edge[order], sizes[1])

    @classmethod
    def of(cls, blocks: Iterable[EdgeRows], count: int, sizes: tuple[int, int]) -> Adjacency:
        """From about `count` edges in any order; many are sorted on disk."""
        if count > IN_MEMORY_EDGES_MAX:
            return cls.on_disk(in_order(blocks, count, sizes), sizes)
        near, far, edge = np.concatenate([NO_EDGES, *blocks]).T
        return cls.build(near, far, edge, sizes)

    @classmethod
    def on_disk(cls, blocks: Iterable[EdgeRows], sizes: tuple[int, int]) -> Adjacency:
        """From edges in order, in files that are mapped."""
        made = mapped_arrays(blocks, sizes[0])
        found = cls(
            made.start, made.node, made.edge, sizes[1], simple=made.is_simple, is_mapped=True
        )
        found.__dict__["loops"] = made.loops
        return found

    @property
    def near(self) -> int:
        return len(self.start) - 1

    @property
    def nbytes(self) -> int:
        """Includes cached properties. Arrays shared with a smaller one count there."""
        own = 0 if self.is_mapped else self.start.nbytes
        if self.smaller is None and not self.is_mapped:
            own += self.node.nbytes + self.edge.nbytes
        return own + made_bytes(self, "degrees", "sources", "simplified")

    def __len__(self) -> int:
        return len(self.node)

    @cached_property
    def degrees(self) -> Ints:
        return np.diff(self.start)

    @cached_property
    def is_simple(self) -> bool:
        """No node has a repeated neighbour."""
        if self.smaller is not None:
            return self.smaller.is_simple
        return all(self._first_of_each(low, high).all() for low, high in self._blocks())

    def _first_of_each(self, low: int, high: int) -> Mask:
        """Of the edges of consecutive nodes, which are the first to their neighbour."""
        starts = self.start[low : high + 1] - self.start[low]
        some = self.node[self.start[low] : self.start[high]]
        found = np.ones(len(some), np.bool_)
        np.not_equal(some[1:], some[:-1], out=found[1:])
        found[starts[starts < len(some)]] = True
        return found

    @cached_property
    def sources(self) -> Positions:
        """The near end of every edge."""
        return np.repeat(np.arange(self.near, dtype=np.int32), self.degrees)

    @cached_property
    def loops(self) -> Positions:
        """The nodes with a self-loop, ascending; only for edges within one type."""
        if self.smaller is not None:
            return self.smaller.loops
        found = []
        for low, high in self._blocks():
            some = self.node[self.start[low] : self.start[high]]
            near = np.repeat(np.arange(low, high, dtype=np.int32), self.degrees[low:high])
            found.append(np.unique(near[near == some]))
        return np.concatenate([NO_POSITIONS, *found])

    @cached_property
    def simplified(self) -> Adjacency:
        """Without repeated neighbours."""
        return self if self.is_simple else Simplified(self)

    def reversed(self) -> Adjacency:
        """The same edges seen from the other end."""
        if len(self) > IN_MEMORY_EDGES_MAX:
            sizes = (self.far, self.near)
            blocks = map(turned, self.blocks())
            return Adjacency.on_disk(in_order(blocks, len(self), sizes, by_far=False), sizes)
        order = stable_order(self.node)
        start = np.zeros(self.far + 1, np.int64)
        np.cumsum(np.bincount(self.node, minlength=self.far), out=start[1:])
        near = np.repeat(np.arange(self.near, dtype=np.int32), self.degrees)
        return Adjacency(start, near[order], self.edge[order], self.near)

    def resized(self, near: int, far: int) -> Adjacency:
        """The same edges among more nodes."""
        if (near, far) == (self.near, self.far):
            return self
        longer = np.full(near - self.near, self.start[-1], np.int64)
        start = np.concatenate((self.start, longer))
        return Adjacency(start, self.node, self.edge, far, self.smaller or self)

    def blocks(self) -> Iterator[EdgeRows]:
        """Every edge in order, block by block."""
        for low in range(0, len(self), BLOCK_ROWS):
            high = min(low + BLOCK_ROWS, len(self))
            first = int(self.start.searchsorted(low, "right")) - 1
            last = int(self.start.searchsorted(high, "left"))
            bounds = self.start[first : last + 1].clip(low, high)
            near = np.repeat(np.arange(first, last, dtype=np.int32), bounds[1:] - bounds[:-1])
            yield np.stack((near, self.node[low:high], self.edge[low:high]), axis=1)

    def counts(self, nodes: Whole) -> Ints:
        """How many edges leave each of these nodes."""
        made = "degrees" in self.__dict__  # of all nodes: few read only their own part of a file
        found: Ints = self.degrees[nodes] if made else self.start[1:][nodes] - self.start[nodes]
        return found

    def hops(self, nodes: Whole, sizes: Iterator[int]) -> Iterator[Hop]:
        """Every edge that leaves these nodes, in blocks of these sizes."""
        for source, at in runs(self.start[nodes], self.counts(nodes), sizes):
            yield Hop(source, self.node[at], self.edge[at])

    def neighbours(self, nodes: Whole, sizes: Iterator[int]) -> Iterator[Positions]:
        """The far ends of every edge that leaves these nodes, with repetitions, in blocks of these sizes."""
        if len(nodes) == 1:
            first, end = int(self.start[nodes[0]]), int(self.start[nodes[0] + 1])
            while True:
                size = next(sizes)
                yield self.node[first : min(first + size, end)]
                first += size
                if first >= end:
                    return
        for _, at in runs(self.start[nodes], self.counts(nodes), sizes):
            yield self.node[at]

    def _first(self, near: Whole, far: Whole) -> Ints:
        """Where in each near node's run its neighbours are no longer below `far`: one binary search over all runs."""
        low, high = self.start[near], self.start[near + 1]
        for _ in range(int(np.max(high - low, initial=0)).bit_length()):
            middle = (low + high) >> 1
            inside = middle < high
            below = np.zeros(len(low), np.bool_)
            below[inside] = self.node[middle[inside]] < far[inside]
            low, high = np.where(below, middle + 1, low), np.where(inside & ~below, middle, high)
        return low

    def has(self, near: Whole, far: Whole) -> Mask:
        """Whether an edge leads from each near node to the far one beside it."""
        first, end = self._first(near, far), self.start[near + 1]
        found = np.zeros(len(first), np.bool_)
        inside = first < end
        found[inside] = self.node[first[inside]] == far[inside]
        return found

    def times(self, near: Whole, far: Whole) -> Ints:
        """How many edges lead from each near node to the far one beside it."""
        return self._first(near, far + 1) - self._first(near, far)

    def edge_between(self, near: Whole, far: Whole) -> Positions:
        """One edge from each near node to the far one beside it; it must exist."""
        return self.edge[self._first(near, far)]

    def pull(self, values: Ints | Mask) -> Ints:
        """For every near node the sum of the values of its neighbours."""
        found = np.empty(self.near, np.int64)
        sums = np.zeros(0, np.int64)
        for low, high in checked(self._blocks()):
            first = self.start[low : high + 1] - self.start[low]
            count = int(first[-1])
            if len(sums) <= count:
                sums = np.zeros(count + 1, np.int64)
            np.cumsum(self._of_neighbours(values, low, high), out=sums[1 : count + 1])
            np.subtract(sums[first[1:]], sums[first[:-1]], out=found[low:high])
        return found

    def _of_neighbours(self, values: Ints | Mask, low: int, high: int) -> Ints | Mask:
        """The values of the neighbours of consecutive nodes, edge by edge."""
        found: Ints | Mask = values[self.node[self.start[low] : self.start[high]]]
        return found

    def _blocks(self) -> Iterator[tuple[int, int]]:
        """Ranges of nodes with few enough edges for a core's cache."""
        ends = np.arange(BLOCK_EDGES, len(self.node), BLOCK_EDGES)
        bounds = np.unique(np.concatenate(([0], self.start.searchsorted(ends), [self.near])))
        return pairwise(bounds.tolist())


def turned(edges: EdgeRows) -> EdgeRows:
    """The same edges seen from their other ends."""
    return edges[:, [1, 0, 2]]


class Simplified(Adjacency):
    """The same edges, each neighbour once: runs are ascending, so repetitions are left out as they are read."""

    def __init__(self, every: Adjacency) -> None:
        super().__init__(every.start, every.node, every.edge, every.far, simple=True)
        self._before = None if every.smaller is None else every.smaller.simplified

    @property
    def nbytes(self) -> int:
        """The arrays are counted where they come from."""
        return made_bytes(self, "degrees")

    @cached_property
    def degrees(self) -> Ints:
        if self._before is None:
            return self.pull(np.ones(self.far, np.bool_))
        known = self._before.degrees
        return np.concatenate((known, np.zeros(self.near - len(known), np.int64)))

    def hops(self, nodes: Whole, sizes: Iterator[int]) -> Iterator[Hop]:
        """The first edge to every neighbour of these nodes, in blocks of at most these sizes."""
        starts = self.start[nodes]
        for source, at in runs(starts, self.counts(nodes), sizes):
            node = self.node[at]
            new = np.ones(len(at), np.bool_)
            np.not_equal(node[1:], node[:-1], out=new[1:])
            new[1:] |= source[1:] != source[:-1]
            if len(at) and at[0] > starts[source[0]]:  # the run began in the block before
                new[0] = self.node[at[0] - 1] != node[0]
            kept = np.flatnonzero(new)
            yield Hop(source[kept], node[kept], self.edge[at[kept]])

    def counts(self, nodes: Whole) -> Ints:
        """Repetitions included: what it takes to read them."""
        found: Ints = self.start[1:][nodes] - self.start[nodes]
        return found

    def times(self, near: Whole, far: Whole) -> Ints:
        return self.has(near, far).astype(np.int64)

    def _of_neighbours(self, values: Ints | Mask, low: int, high: int) -> Ints | Mask:
        found = super()._of_neighbours(values, low, high)
        found[~self._first_of_each(low, high)] = 0
        return found


def made_bytes(of: object, *names: str, shared: object = None) -> int:
    """The bytes of the cached properties so far, except the object itself and what is counted elsewhere."""
    parts = [of.__dict__.get(name) for name in names]
    own = [part for part in parts if part is not None and part is not of and part is not shared]
    return sum(int(part.nbytes) for part in own)


class Merged:
    """One direction as a query sees it: `base` without the edges of `minus`, and with those of `plus`."""

    def __init__(self, base: Adjacency, minus: Adjacency | None, plus: Adjacency | None) -> None:
        self.base = base
        self.minus = minus
        self.plus = plus
        self._gone = None if minus is None else np.sort(minus.edge)

    @property
    def nbytes(self) -> int:
        """Besides the large arrays, which are counted where they are kept."""
        small = sum(part.nbytes for part in (self.minus, self.plus, self._gone) if part is not None)
        return small + made_bytes(self, "degrees", "simple", "whole", shared=self.base)

    @cached_property
    def is_simple(self) -> bool:
        """No node has a repeated neighbour. Conservative: a new edge beside a removed one counts as a repetition."""
        if not self.base.is_simple:
            return False
        if self.plus is None:
            return True
        return self.plus.is_simple and not self.base.has(self.plus.sources, self.plus.node).any()

    @cached_property
    def whole(self) -> Adjacency:
        """All of it as one; costs a copy."""
        if self.minus is None and self.plus is None:
            return self.base
        count = len(self.base) + (0 if self.plus is None else len(self.plus))
        return Adjacency.of(self.blocks(), count, (self.base.near, self.base.far))

    @cached_property
    def simple(self) -> Merged:
        """Without repeated neighbours: a pair exists as long as one of its edges does."""
        if self.is_simple:
            return self
        base = self.base.simplified
        near, far = self._changed_pairs()
        had = base.has(near, far)
        left = self._times(near, far)
        gone, new = np.flatnonzero(had & (left == 0)), np.flatnonzero(~had & (left > 0))
        return Merged(
            base,
            self._small(near[gone], far[gone], base.edge_between(near[gone], far[gone])),
            self._small(near[new], far[new], np.full(len(new), -1, np.int32)),
        )

    def _times(self, near: Whole, far: Whole) -> Ints:
        """How many edges lead from each near node to the far one beside it."""
        found = self.base.times(near, far)
        if self.minus is not None:
            found -= self.minus.times(near, far)
        if self.plus is not None:
            found += self.plus.times(near, far)
        return found

    def _changed_pairs(self) -> tuple[Whole, Whole]:
        """Every pair of nodes between which an edge was added or removed."""
        changed = (part for part in (self.minus, self.plus) if part is not None)
        keys = [p.sources.astype(np.int64) * self.base.far + p.node for p in changed]
        pairs = np.unique(np.concatenate([np.empty(0, np.int64), *keys]))
        return pairs // max(self.base.far, 1), pairs % max(self.base.far, 1)

    def _small(self, near: Whole, far: Whole, edge: Positions) -> Adjacency | None:
        if not len(near):
            return None
        sizes = (self.base.near, self.base.far)
        return Adjacency.build(near.astype(np.int32), far.astype(np.int32), edge, sizes)

    @cached_property
    def degrees(self) -> Ints:
        found = self.base.degrees
        if self.minus is not None:
            found = found - self.minus.degrees
        return found if self.plus is None else found + self.plus.degrees

    def blocks(self) -> Iterator[EdgeRows]:
        """Every edge, block by block."""
        for rows in self.base.blocks():
            yield rows[self._still_there(rows[:, 2])]
        if self.plus is not None:
            yield from self.plus.blocks()

    def hops(self, nodes: Whole, sizes: Iterator[int]) -> Iterator[Hop]:
        """Every edge that leaves these nodes, in blocks of these sizes; at least one block."""
        loses = self._loses_some(nodes)
        for found in self.base.hops(nodes, sizes):
            yield found.take(np.flatnonzero(self._still_there(found.edge))) if loses else found
        if self.plus is not None:
            yield from self.plus.hops(nodes, sizes)

    def hop(self, nodes: Whole) -> Hop:
        """The same in one piece, when they are known to be few."""
        found = list(self.hops(nodes, repeat(sys.maxsize)))
        if len(found) == 1:
            return found[0]
        return Hop(
            np.concatenate([f.source for f in found]),
            np.concatenate([f.node for f in found]),
            np.concatenate([f.edge for f in found]),
        )

    def neighbours(self, nodes: Whole, sizes: Iterator[int]) -> Iterator[Positions]:
        """The far ends of every edge that leaves these nodes, with repetitions, in blocks of these sizes."""
        if self._loses_some(nodes):
            yield from (found.node for found in self.hops(nodes, sizes))
            return
        yield from self.base.neighbours(nodes, sizes)
        if self.plus is not None:
            yield from self.plus.neighbours(nodes, sizes)

    def _loses_some(self, nodes: Whole) -> bool:
        return self.minus is not None and bool(self.minus.counts(nodes).any())

    def _still_there(self, edges: Positions) -> Mask:
        if self._gone is None:
            return np.ones(len(edges), np.bool_)
        at = np.minimum(self._gone.searchsorted(edges), len(self._gone) - 1)
        kept: Mask = self._gone[at] != edges
        return kept

    def counts(self, nodes: Whole) -> Ints:
        """How many edges leave each of these nodes; of parallel ones all, to be read if not to be followed."""
        found = self.base.counts(nodes)
        if self.minus is not None:
            found = found - self.minus.counts(nodes)
        return found if self.plus is None else found + self.plus.counts(nodes)

    def total(self, nodes: Whole) -> int:
        """The same for all of them together."""
        return int(self.counts(nodes).sum())

    def has(self, near: Whole, far: Whole) -> Mask:
        if self.minus is None and self.plus is None:
            return self.base.has(near, far)
        return self._times(near, far) > 0

    def pull(self, values: Ints | Mask) -> Ints:
        """For every near node the sum of the values of its neighbours, each edge counted."""
        found = self.base.pull(values)
        if self.minus is not None:
            found = found - self.minus.pull(values)
        return found if self.plus is None else found + self.plus.pull(values)

    def reached(self, nodes: Whole, sizes: Iterator[int]) -> Positions:
        """The set of neighbours of these nodes, ascending."""
        parts = checked(self.neighbours(nodes, sizes))
        first, second = next(parts), next(parts, None)
        if second is None:
            once: Positions = distinct(first, self.base.far)
            return once
        marks = np.zeros(self.base.far, np.bool_)
        for part in chain((first, second), parts):
            marks[part] = True
        return np.flatnonzero(marks).astype(np.int32)
