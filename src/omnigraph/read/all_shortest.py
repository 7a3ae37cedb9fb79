"""All shortest paths: between two nodes, or from a node to every one it reaches.

A walk gives the distances; the edges between nodes of consecutive distances are those of all shortest paths. Of every
node it is counted how many paths lead to it, and by which edge how many of them come. From that the n-th path to a node
is found without the others: paths are listed block by block, in any number, and counted without being listed.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from omnigraph.errors import LimitExceeded
from omnigraph.lang import ir
from omnigraph.read.arrays import Ints, Whole, runs
from omnigraph.read.budget import Held, checked
from omnigraph.read.context import Context
from omnigraph.read.plan import PlanStep
from omnigraph.read.rows import COUNT_MAX, Entities, Paths, Rows
from omnigraph.read.walk import Followed, Space, layers, levels, meet

LISTED_MAX = 1 << 24  # paths an operator lists
ADDED_BYTES = 128  # of an edge while it is added to those of all shortest paths
NOTHING: Ints = np.empty(0, np.int64)


class EveryFinder:
    """The search of one operator."""

    def __init__(self, op: ir.ShortestPath, step: PlanStep, space: Space, ctx: Context) -> None:
        self.op, self.step, self.space, self.ctx = op, step, space, ctx
        self.spelled_out = step.steps_of_paths  # else their number and lengths are enough
        self.listed = 0
        self.edge_types = tuple(dict.fromkeys(s.edge for s in op.steps))

    def closing(self, rows: Rows) -> Iterator[Rows]:
        """Rows whose destination is bound, once for each path to it."""
        return self._found(rows, self.space.number(rows.entities(self.op.dst)))

    def opening(self, rows: Rows) -> Iterator[Rows]:
        """Every row with all paths to all destinations it reaches."""
        return self._found(rows, None)

    def _found(self, rows: Rows, ends: Ints | None) -> Iterator[Rows]:
        """Source by source: one walk answers all rows that start there."""
        sources = self.space.number(rows.entities(self.op.src))
        order = np.argsort(sources, kind="stable")
        numbers, starts = np.unique(sources[order], return_index=True)
        bounds = [*starts.tolist(), rows.n]
        yield self._rows(rows, NOTHING, NOTHING, _Ways(self.space.size, 0), NOTHING)
        with self.ctx.hold("ShortestPath") as held:
            for i, source in enumerate(numbers.tolist()):
                self.ctx.check()
                which = order[bounds[i] : bounds[i + 1]]
                wanted = None if ends is None else np.unique(ends[which])
                ways = self._ways(source, wanted, held)
                for row, end in self._pairs(which, ends, ways):
                    yield from self._between_pairs(rows, row, end, ways)

    def _pairs(self, which: Ints, ends: Ints | None, ways: _Ways) -> Iterator[tuple[Ints, Ints]]:
        """Rows and where they lead to, block by block."""
        if ends is not None:
            found = ways.as_ends(ends[which], self.op.min_hops)
            near = np.flatnonzero(ways.distance[found] >= self.op.min_hops)
            yield which[near], found[near]
            return
        reached = ways.reached(self.op.min_hops)
        reached = reached[self.space.entities(ways.nodes(reached), self.op.dst_types)[1]]
        counts = np.full(len(which), len(reached), np.int64)
        for at, member in runs(np.zeros_like(counts), counts, self.ctx.sizes(self.step.early)):
            yield which[at], reached[member]

    def _between_pairs(self, rows: Rows, row: Ints, end: Ints, ways: _Ways) -> Iterator[Rows]:
        if not self.spelled_out:
            yield self._rows(rows, row, end, ways, None)
            return
        counts = np.minimum(ways.total[end], LISTED_MAX + 1)
        if not self.step.early:
            self._check_listed(self.listed + int(counts.sum()))
        steps = int(ways.distance[end].max(initial=0)) + 1
        sizes = (max(1, size // steps) for size in self.ctx.sizes(self.step.early))
        for at, nth in checked(runs(np.zeros_like(counts), counts, sizes)):
            self.listed += len(at)
            self._check_listed(self.listed)
            yield self._rows(rows, row[at], end[at], ways, nth)

    def _check_listed(self, number: int) -> None:
        """More than this is refused up front; where a limit may stop the work, only what is reached counts."""
        if number > LISTED_MAX:
            raise LimitExceeded(
                f"there are more than {LISTED_MAX:,} shortest paths to list",
                help="Bound the hops, fix the ends, add a LIMIT, or return count(*) alone.",
                details={
                    "limit": "shortest_paths_max",
                    "limit_value": LISTED_MAX,
                    "observed": number,
                },
            )

    # --- a walk ------------------------------------------------------------------------------------------------

    def _ways(self, source: int, wanted: Ints | None, held: Held) -> _Ways:
        """The edges of all shortest paths from a node: to all others, or to those requested."""
        ways = _Ways(self.space.size, source)
        before: Whole = NOTHING
        for distance, level in enumerate(self._levels(source, wanted)):
            if distance:
                ways.distance[level] = distance
                ways.add(*self._edges(before, ways, distance, held))
            held.set(ways.nbytes)
            before = level
        if self.space.loops is not None and self.space.loops[source] and self.op.max_hops:
            near, node, code, edge = self._edges(np.array([source]), ways, 0, held)
            ways.distance[ways.itself] = 1
            ways.add(near, np.full_like(node, ways.itself), code, edge)
        ways.count()
        held.set(ways.nbytes)
        return ways

    def _levels(self, source: int, wanted: Ints | None) -> Iterator[Whole]:
        """Nodes by their distance from the source, as far as they are on the way to the requested ones."""
        if wanted is not None and len(wanted) == 1:
            stages = meet(self.space, source, int(wanted[0]), self.op.max_hops, self.ctx)
            yield from layers(self.space, stages, self.ctx) if stages is not None else ()
            return
        left = self.space.size if wanted is None else len(wanted)
        for level in levels(self.space, source, self.op.max_hops, self.ctx):
            yield level
            left -= len(level) if wanted is None else int(np.isin(level, wanted).sum())
            if not left:
                return

    def _edges(
        self, before: Whole, ways: _Ways, distance: int, held: Held
    ) -> tuple[Ints, Ints, Ints, Ints]:
        """The edges from one level to that of a distance: where from, where to, their types and positions."""
        parts = []
        for some in self.space.edges(before, self.edge_types, self.ctx.sizes()):
            parts.append(some.take(np.flatnonzero(ways.distance[some.node] == distance)))
            held.add(ADDED_BYTES * len(parts[-1].node))
        found = Followed.joined(parts)
        return before[found.source].astype(np.int64), found.node, found.code, found.edge

    # --- as rows -----------------------------------------------------------------------------------------------

    def _rows(self, rows: Rows, row: Ints, end: Ints, ways: _Ways, nth: Ints | None) -> Rows:
        """Rows with their destinations and the n-th path to each; without `nth` as often as there are paths."""
        found = rows.take(row)
        if self.op.dst not in rows.variables:
            reached, _ = self.space.entities(ways.nodes(end), self.op.dst_types)
            found = found.with_variables({self.op.dst: reached})
        if nth is None and self.step.bag:
            found = found.scaled(ways.counted(end))
        return found.with_variables({self.op.path_var: self._paths(ways, end, nth)})

    def _paths(self, ways: _Ways, end: Ints, nth: Ints | None) -> Paths:
        length = ways.distance[end].astype(np.int64)
        if nth is None or not self.spelled_out:
            return Paths(length)
        nodes, code, edge = ways.trails(end, length, nth)
        members = self.space.entities(nodes, self.space.types)[0]
        many = code.astype(np.int32) if len(self.edge_types) > 1 else None
        edges = Entities(self.edge_types, edge.astype(np.int32), many, edge=True)
        found = Paths.of(length, members, edges)
        return found.turned() if self.op.backwards else found


class _Ways:
    """The shortest paths from one source: of every node the edges by which it is reached, and how many paths they end.

    The number after the last node, `itself`, is the source as its own destination, reached by its self-loops.
    """

    def __init__(self, size: int, source: int) -> None:
        self.source, self.itself = source, size
        self.distance = np.full(size + 1, -1, np.int32)
        self.total, self.first, self.degree = (np.zeros(size + 1, np.int64) for _ in range(3))
        self.distance[source], self.total[source] = 0, 1
        self._levels: list[tuple[Ints, ...]] = []
        self._edges, self.most = 0, COUNT_MAX
        self.near = self.code = self.edge = self.upto = NOTHING

    @property
    def nbytes(self) -> int:
        return 28 * len(self.distance) + 64 * self._edges

    def add(self, near: Ints, node: Ints, code: Ints, edge: Ints) -> None:
        """The edges into the next level, by the node they lead to."""
        order = np.argsort(node, kind="stable")
        nodes, first, degree = np.unique(node[order], return_index=True, return_counts=True)
        self.first[nodes], self.degree[nodes] = first + self._edges, degree
        self._levels.append((nodes, near[order], code[order], edge[order]))
        self._edges += len(node)

    def count(self) -> None:
        """How many paths lead to each node, up to a cap whose sums cannot overflow."""
        self.most = (1 << 62) // max(self._edges, 1)
        sums = []
        for nodes, near, _, _ in checked(self._levels):
            degree = self.degree[nodes]
            starts = np.cumsum(degree) - degree
            whole = np.cumsum(self.total[near])
            before = np.where(starts > 0, whole[starts - 1], 0)
            sums.append(np.minimum(whole - np.repeat(before, degree), self.most))
            self.total[nodes] = sums[-1][starts + degree - 1]
        parts = [*zip(*self._levels, strict=True)][1:] or [()] * 3
        self.near, self.code, self.edge, self.upto = (
            np.concatenate([NOTHING, *part]) for part in (*parts, sums)
        )
        self._levels = []

    def reached(self, hops_min: int) -> Ints:
        """All destinations at least `hops_min` hops away."""
        chosen = self.distance >= hops_min
        chosen[self.itself] &= hops_min == 1
        return np.flatnonzero(chosen)

    def as_ends(self, nodes: Ints, hops_min: int) -> Ints:
        """Nodes as destinations; where a hop is needed, the source reaches itself by its self-loops."""
        return np.where((nodes == self.source) & (hops_min > 0), self.itself, nodes)

    def nodes(self, ends: Ints) -> Ints:
        return np.where(ends == self.itself, self.source, ends)

    def counted(self, ends: Ints) -> Ints:
        """How many paths lead there; a number beyond the cap is an error, never a wrong count."""
        found = self.total[ends]
        if int(found.max(initial=0)) >= self.most:
            raise LimitExceeded(
                "there are more shortest paths than can be counted",
                help="Bound the hops, or return DISTINCT ends and lengths.",
                details={"limit": "matches_max", "limit_value": self.most},
            )
        return found

    def trails(self, ends: Ints, length: Ints, nth: Ints) -> tuple[Ints, Ints, Ints]:
        """The nodes and edges of the n-th path to each end, one run after the other, filled in from their ends."""
        nodes = np.zeros(int((length + 1).sum()), np.int64)
        code, edge = (np.zeros(int(length.sum()), np.int64) for _ in range(2))
        node_at, edge_at = np.cumsum(length + 1) - 1, np.cumsum(length) - 1
        nodes[node_at] = self.nodes(ends)
        here, left = ends, length
        while (going := np.flatnonzero(left > 0)).size:
            here, left, nth = here[going], left[going], nth[going]
            node_at, edge_at = node_at[going], edge_at[going]
            by, nth = self._chosen(here, nth)
            code[edge_at], edge[edge_at], here = self.code[by], self.edge[by], self.near[by]
            nodes[node_at - 1] = here
            node_at, edge_at, left = node_at - 1, edge_at - 1, left - 1
        return nodes, code, edge

    def _chosen(self, nodes: Ints, nth: Ints) -> tuple[Ints, Ints]:
        """The edge by which the n-th path to a node comes, and which path to the other end of that edge it is."""
        first = low = self.first[nodes]
        high = low + self.degree[nodes] - 1
        while (low < high).any():
            middle = (low + high) // 2
            beyond = self.upto[middle] <= nth
            low, high = np.where(beyond, middle + 1, low), np.where(beyond, high, middle)
        return low, nth - np.where(low > first, self.upto[low - 1], 0)
