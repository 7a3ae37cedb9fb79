"""Shortest paths: their lengths, and of all paths of that length the one with the smallest list of edge ids.

`all_shortest` finds all of them.

Where both ends are known the search goes out from both and stops where it meets. Otherwise all destinations of a source
are found level by level, each with the best edge by which it was reached; paths are spelled out block by block.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import repeat

import numpy as np
import pyarrow as pa

from omnigraph.lang import ir
from omnigraph.model.frozen import frozen
from omnigraph.read.all_shortest import EveryFinder
from omnigraph.read.arrays import Ints, Mask, Whole, runs
from omnigraph.read.blocks import all_pairs
from omnigraph.read.budget import Held, checked
from omnigraph.read.context import Context
from omnigraph.read.expressions import holds
from omnigraph.read.plan import PlanStep
from omnigraph.read.rows import Entities, Paths, Rows, concat_paths
from omnigraph.read.scan import pinned
from omnigraph.read.sorting import order_by
from omnigraph.read.values import entity_column
from omnigraph.read.walk import NO_NODES, Followed, Space, layers, meet

PAIRS_MAX = 256  # up to this many pairs of ends are searched one by one, from both ends
SORTED_MAX = 1 << 17  # edges that are sorted by their ids at a time
NODE_BYTES = {
    False: 48,
    True: 96,
}  # of a node reached, as found and in its tree; with its edge, if that is read

Edge = tuple[int, int]  # type and position


def shortest_path(step: PlanStep, blocks: Iterator[Rows], ctx: Context) -> Iterator[Rows]:
    """One row per row and destination reached, with one shortest path; or one per path."""
    op = step.op
    assert isinstance(op, ir.ShortestPath)  # noqa: S101
    finder = None
    for rows in blocks:
        finder = finder or _finder(op, step, rows, ctx)
        for found in _from_block(op, finder, rows, ctx):
            yield found.keep(step.live)


def _finder(op: ir.ShortestPath, step: PlanStep, rows: Rows, ctx: Context) -> _Finder | EveryFinder:
    ends = (*rows.entities(op.src).types, *op.dst_types) if op.min_hops == 0 else ()
    space = Space(op.steps, ctx, ends)
    return EveryFinder(op, step, space, ctx) if op.every else _Finder(op, step, space, ctx)


def _from_block(
    op: ir.ShortestPath, finder: _Finder | EveryFinder, rows: Rows, ctx: Context
) -> Iterator[Rows]:
    ends = None if op.into else pinned(ir.NodeScan(op.dst, op.dst_types, op.predicate), ctx)
    if ends is not None and rows.n * ends.n <= PAIRS_MAX:
        (rows,) = all_pairs(rows, ends, repeat(PAIRS_MAX))
        op = replace(op, into=True, predicate=None)
    known = finder.space.number(rows.entities(op.src)) >= 0
    if op.into:
        known &= finder.space.number(rows.entities(op.dst)) >= 0
    rows = rows.filter(known)
    for found in finder.closing(rows) if op.into else finder.opening(rows):
        yield (found if op.predicate is None else found.filter(holds(op.predicate, found, ctx)))


class _Finder:
    """The search of one operator."""

    def __init__(self, op: ir.ShortestPath, step: PlanStep, space: Space, ctx: Context) -> None:
        self.op = op
        self.ctx = ctx
        self.early = step.early
        self.spelled_out = step.steps_of_paths  # whether more than the length is read
        self.space = space
        self.edge_types = tuple(dict.fromkeys(s.edge for s in op.steps))

    def closing(self, rows: Rows) -> Iterator[Rows]:
        """Rows whose destination is bound: those that reach it stay."""
        src, dst = (self.space.number(rows.entities(v)) for v in (self.op.src, self.op.dst))
        pairs, which = np.unique(src * self.space.size + dst, return_inverse=True)
        if len(pairs) > PAIRS_MAX:
            yield from self._from_trees(rows, src, dst)
            return
        ends = (divmod(pair, self.space.size) for pair in pairs.tolist())
        paths = concat_paths([self._between(a, b) for a, b in ends] or [self._no_path()])
        kept = np.flatnonzero(paths.length[which] >= 0)
        yield rows.take(kept).with_variables({self.op.path_var: paths.take(which[kept])})

    def opening(self, rows: Rows) -> Iterator[Rows]:
        """Every row with all destinations it reaches."""
        return self._from_trees(rows, self.space.number(rows.entities(self.op.src)), None)

    # --- both ends known ---------------------------------------------------------------------------------------

    def _between(self, a: int, b: int) -> Paths:
        """The path between two nodes, or None."""
        self.ctx.check()
        stages = meet(self.space, a, b, self.op.max_hops, self.ctx)
        if stages is None:
            return self._no_path()
        distance = len(stages[0]) + len(stages[1]) - 2
        if a == b and self.op.min_hops == 1 and self._has_loop(a):
            return self._path([a, a], [self._best_edge(a, np.array([a]))[0]])
        if distance < self.op.min_hops:
            return self._no_path()
        if not self.spelled_out:
            return Paths(np.array([distance]))
        return self._path(*self._best_through(layers(self.space, stages, self.ctx)))

    def _has_loop(self, node: int) -> bool:
        return self.space.loops is not None and bool(self.space.loops[node])

    def _best_through(self, stages: list[Whole]) -> tuple[list[int], list[Edge]]:
        """From the end the path starts at through the layers of all shortest paths, by the smallest edge ids."""
        back = self.op.backwards
        stages = stages[::-1] if back else stages
        nodes, edges = [int(stages[0][0])], []
        for layer in stages[1:]:
            edge, node = self._best_edge(nodes[-1], layer, back)
            nodes.append(node)
            edges.append(edge)
        return (nodes[::-1], edges[::-1]) if back else (nodes, edges)

    def _best_edge(self, node: int, layer: Whole, back: bool = False) -> tuple[Edge, int]:
        """The edge with the smallest id from a node into a layer, and where it leads."""
        best = Followed.joined([])
        for some in self.space.edges(np.array([node]), self.edge_types, self._sizes(), back):
            inside = some.take(np.flatnonzero(np.isin(some.node, layer)))
            best = Followed.joined([best, inside])
            best = best.take(self._by_id(best)[:1])
        return (int(best.code[0]), int(best.edge[0])), int(best.node[0])

    def _sizes(self) -> Iterator[int]:
        """Of blocks of edges: as many as are sorted by their ids between two looks at the clock."""
        return (min(size, SORTED_MAX) for size in self.ctx.sizes())

    def _by_id(self, edges: Followed, *before: Ints) -> Ints:
        """The order of edges by id, after other keys."""
        ids = entity_column(self._edge_entities(edges.code, edges.edge), "id", self.ctx)
        keys = [*before, ids, edges.code] if len(self.edge_types) > 1 else [*before, ids]
        return order_by([(pa.array(k), False) for k in keys], len(edges.edge))

    def _edge_entities(self, code: Ints, edge: Ints) -> Entities:
        many = code.astype(np.int32) if len(self.edge_types) > 1 else None
        return Entities(self.edge_types, edge.astype(np.int32), many, edge=True)

    # --- one end known -----------------------------------------------------------------------------------------

    def _from_trees(self, rows: Rows, src: Ints, dst: Ints | None) -> Iterator[Rows]:
        """Rows with their destinations, as many sources at a time as reach enough nodes for a block."""
        order = np.argsort(src, kind="stable")
        sources, starts = np.unique(src[order], return_index=True)
        bounds = [*starts.tolist(), rows.n]
        trees: list[_Trees] = []
        first = size = 0
        with self.ctx.hold("ShortestPath") as held:
            for i, source in enumerate(sources.tolist()):
                trees.append(self._tree(source, held))
                size += len(trees[-1].node)
                if size >= self.ctx.budget.block_rows or self.early or i + 1 == len(sources):
                    some = order[bounds[first] : bounds[i + 1]]
                    which = np.repeat(np.arange(i + 1 - first), np.diff(bounds[first : i + 2]))
                    ends = None if dst is None else dst[some]
                    yield from self._found(rows.take(some), which, ends, _Trees.joined(trees))
                    trees, first, size = [], i + 1, 0
                    held.set(0)
        if not rows.n:
            yield from self._found(rows, NO_NODES, dst, _Trees.joined([]))

    def _found(self, rows: Rows, which: Ints, dst: Ints | None, trees: _Trees) -> Iterator[Rows]:
        """Rows with the ends of the tree that belongs to each, or with the end each has already."""
        reached, typed = self.space.entities(trees.node, self.op.dst_types)
        ends = np.flatnonzero((trees.length >= self.op.min_hops) & (typed | (dst is not None)))
        if dst is None:
            bounds = ends.searchsorted(trees.start)
            low, high = bounds[which], bounds[which + 1]
        else:
            keys = trees.number()[ends] * self.space.size + trees.node[ends]
            order = np.argsort(keys)
            ends, keys, wanted = ends[order], keys[order], which * self.space.size + dst
            low, high = keys.searchsorted(wanted), keys.searchsorted(wanted, "right")
        steps = int(trees.length.max(initial=0)) + 1 if self.spelled_out else 1
        sizes = (max(1, size // steps) for size in self.ctx.sizes(self.early))
        for index, members in checked(runs(low, high - low, sizes)):
            at = ends[members]
            found = rows.take(index).with_variables({self.op.path_var: self._paths_to(trees, at)})
            yield (
                found if dst is not None else found.with_variables({self.op.dst: reached.take(at)})
            )

    def _tree(self, source: int, held: Held) -> _Trees:
        """All nodes one source reaches."""
        seen = np.zeros(self.space.size, np.bool_)
        seen[source] = True
        none, here = np.zeros(1, np.int64), np.array([source])
        levels = [Followed(none, here, none, none)]
        while len(levels) <= self.op.max_hops and len(levels[-1].node):
            levels.append(self._next_level(levels[-1].node, seen))
            held.add(NODE_BYTES[self.spelled_out] * len(levels[-1].node))
        if self.op.min_hops != 1 or not self._has_loop(source):
            return _Trees.of(levels)
        code, edge = self._best_edge(source, here)[0] if self.spelled_out else (0, 0)
        return _Trees.of(levels, Followed(none, here, np.array([code]), np.array([edge])))

    def _next_level(self, nodes: Ints, seen: Mask) -> Followed:
        """The unseen neighbours of a level; where paths are read, with their best edges, in the order of the paths."""
        if not self.spelled_out:
            found = self.space.next_level(nodes, seen, self.ctx).astype(np.int64)
            return Followed(NO_NODES, found, NO_NODES, NO_NODES)
        parts: list[Followed] = []
        with self.ctx.hold("ShortestPath") as held:
            for some in self.space.edges(nodes, self.edge_types, self._sizes()):
                parts.append(self._best(some.take(np.flatnonzero(~seen[some.node]))))
                size = sum(len(part.node) for part in parts)
                held.set(NODE_BYTES[True] * size)
                if size > SORTED_MAX + 2 * len(parts[0].node):
                    parts = [self._best(Followed.joined(parts))]
            best = parts[0] if len(parts) == 1 else self._best(Followed.joined(parts))
        seen[best.node] = True
        return best

    def _best(self, edges: Followed) -> Followed:
        """Of the edges to each node the best, in their order: by the path so far, then by their ids.

        A path that is read from its other end prefers its last edge whatever came before.
        """
        before = () if self.op.backwards else (edges.source,)
        order = self._by_id(edges, *before)
        _, first = np.unique(edges.node[order], return_index=True)
        return edges.take(order[np.sort(first)])

    def _paths_to(self, trees: _Trees, at: Ints) -> Paths:
        length = trees.length[at]
        return self._paths(length, *trees.trails(at)) if self.spelled_out else Paths(length)

    # --- as values ---------------------------------------------------------------------------------------------

    def _no_path(self) -> Paths:
        return self._path([], [], length=-1)

    def _path(self, nodes: list[int], edges: list[Edge], length: int | None = None) -> Paths:
        lengths = np.array([len(edges) if length is None else length], np.int64)
        if not self.spelled_out:
            return Paths(lengths)
        flat = np.array(edges, np.int64).reshape(-1, 2)
        return self._paths(lengths, np.array(nodes, np.int64), flat[:, 0], flat[:, 1])

    def _paths(self, length: Ints, nodes: Ints, code: Ints, edge: Ints) -> Paths:
        members = self.space.entities(nodes, self.space.types)[0]
        found = Paths.of(length, members, self._edge_entities(code, edge))
        return found.turned() if self.op.backwards else found


@frozen
class _Trees:
    """The shortest paths from some sources: every node reached, and the edge that leads to it.

    Without what is spelled out there are only nodes and lengths.
    """

    node: Ints
    length: Ints
    parent: Ints  # where the node before is
    code: Ints
    edge: Ints
    start: Ints  # of each tree; one more entry than trees

    @classmethod
    def of(cls, levels: list[Followed], loop: Followed | None = None) -> _Trees:
        """A tree of its levels, and of the edge by which its source reaches itself."""
        lengths = [*range(len(levels)), 1]
        starts = np.cumsum([0, 0, *(len(level.node) for level in levels)])
        before = [*starts[: len(levels)], 0]
        parts = levels if loop is None else [*levels, loop]
        length = [np.full(len(p.node), n) for p, n in zip(parts, lengths, strict=False)]
        parent = [p.source + n for p, n in zip(parts, before, strict=False)]
        every = Followed.joined(parts)
        start = np.array([0, len(every.node)])
        return cls(
            every.node,
            np.concatenate(length),
            np.concatenate(parent),
            every.code,
            every.edge,
            start,
        )

    @classmethod
    def joined(cls, trees: list[_Trees]) -> _Trees:
        if len(trees) == 1:
            return trees[0]
        start = np.cumsum([0, *(len(tree.node) for tree in trees)])
        parents = [tree.parent + n for tree, n in zip(trees, start[:-1], strict=True)]
        return cls(
            np.concatenate([NO_NODES, *(tree.node for tree in trees)]),
            np.concatenate([NO_NODES, *(tree.length for tree in trees)]),
            np.concatenate([NO_NODES, *parents]),
            np.concatenate([NO_NODES, *(tree.code for tree in trees)]),
            np.concatenate([NO_NODES, *(tree.edge for tree in trees)]),
            start,
        )

    def number(self) -> Ints:
        """Of each node the tree it is in."""
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))

    def trails(self, ends: Ints) -> tuple[Ints, Ints, Ints]:
        """The nodes and edges of the paths to these places, one run after the other, filled in from their ends."""
        here = ends
        left = length = self.length[ends]
        nodes = np.zeros(int((length + 1).sum()), np.int64)
        code, edge = (np.zeros(int(length.sum()), np.int64) for _ in range(2))
        node_at, edge_at = np.cumsum(length + 1) - 1, np.cumsum(length) - 1
        nodes[node_at] = self.node[ends]
        while (going := np.flatnonzero(left > 0)).size:
            here, left, node_at, edge_at = here[going], left[going], node_at[going], edge_at[going]
            code[edge_at], edge[edge_at] = self.code[here], self.edge[here]
            here, left, node_at, edge_at = self.parent[here], left - 1, node_at - 1, edge_at - 1
            nodes[node_at] = self.node[here]
        return nodes, code, edge
