"""Shortest paths: their lengths, and of all paths of that length the one with the smallest list of edge ids.

`all_shortest` finds all of them.

Where both ends are known the search goes out from both and stops where it meets. Otherwise all destinations of a source
are found level by level, and every node remembers the best edge by which it was reached.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import repeat

import numpy as np
import pyarrow as pa

from omnigraph.lang import ir
from omnigraph.read.all_shortest import EveryFinder
from omnigraph.read.arrays import Ints, Mask, Whole, runs
from omnigraph.read.blocks import all_pairs
from omnigraph.read.budget import checked
from omnigraph.read.context import Context
from omnigraph.read.expressions import holds
from omnigraph.read.plan import PlanStep
from omnigraph.read.rows import Entities, Paths, Rows, concat_paths
from omnigraph.read.scan import pinned
from omnigraph.read.sorting import order_by
from omnigraph.read.values import entity_column
from omnigraph.read.walk import Space, layers, meet

PAIRS_MAX = 256  # up to this many pairs of ends are searched one by one, from both ends

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
        first, second = pairs // self.space.size, pairs % self.space.size
        if len(pairs) > PAIRS_MAX:
            paths = self._from_trees(first, second)
        else:
            ends = zip(first.tolist(), second.tolist(), strict=True)
            paths = concat_paths([self._between(a, b) for a, b in ends] or [self._no_path()])
        kept = np.flatnonzero(paths.length[which] >= 0)
        yield rows.take(kept).with_variables({self.op.path_var: paths.take(which[kept])})

    def opening(self, rows: Rows) -> Iterator[Rows]:
        """Every row with all destinations it reaches, as many sources at a time as have paths for a block."""
        numbers = self.space.number(rows.entities(self.op.src))
        order = np.argsort(numbers, kind="stable")
        sources, starts = np.unique(numbers[order], return_index=True)
        bounds = [*starts.tolist(), rows.n]
        trees: list[tuple[Ints, Paths]] = []
        first = held = 0
        for i, source in enumerate(sources.tolist()):
            trees.append(self._tree(source))
            held += len(trees[-1][0])
            if held >= self.ctx.budget.block_rows or self.early or i + 1 == len(sources):
                some = order[bounds[first] : bounds[i + 1]]
                counts = np.diff(bounds[first : i + 2])
                yield from self._opened(
                    rows.take(some), np.repeat(np.arange(i + 1 - first), counts), trees
                )
                trees, first, held = [], i + 1, 0
        if not rows.n:
            nothing = (np.empty(0, np.int64), self._no_path().take(np.empty(0, np.int64)))
            yield from self._opened(rows, np.empty(0, np.int64), [nothing])

    def _opened(self, rows: Rows, which: Ints, trees: list[tuple[Ints, Paths]]) -> Iterator[Rows]:
        """Rows with the destinations of the tree that belongs to each."""
        counts = np.array([len(nodes) for nodes, _ in trees], np.int64)
        paths = concat_paths([p for _, p in trees])
        entities, typed = self.space.entities(
            np.concatenate([nodes for nodes, _ in trees]), self.op.dst_types
        )
        starts = (np.cumsum(counts) - counts)[which]
        for index, members in checked(runs(starts, counts[which], self.ctx.sizes(self.early))):
            at = members[typed[members]]
            yield rows.take(index[typed[members]]).with_variables(
                {self.op.dst: entities.take(at), self.op.path_var: paths.take(at)}
            )

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
        _, far, code, edge = self.space.edges(np.array([node]), self.edge_types, back)
        inside = np.flatnonzero(np.isin(far, layer))
        best = inside[self._by_id(code[inside], edge[inside])[0]]
        return (int(code[best]), int(edge[best])), int(far[best])

    def _by_id(self, code: Ints, edge: Ints, *before: Ints) -> Ints:
        """The order of edges by id, after other keys."""
        ids = entity_column(self._edge_entities(code, edge), "id", self.ctx)
        keys = [*before, ids, code] if len(self.edge_types) > 1 else [*before, ids]
        return order_by([(pa.array(k), False) for k in keys], len(edge))

    def _edge_entities(self, code: Ints, edge: Ints) -> Entities:
        many = code.astype(np.int32) if len(self.edge_types) > 1 else None
        return Entities(self.edge_types, edge.astype(np.int32), many, edge=True)

    # --- one end known -----------------------------------------------------------------------------------------

    def _tree(self, source: int) -> tuple[Ints, Paths]:
        """All destinations of one source, with a path to each."""
        tree = _Tree(self.space.size, source, self.spelled_out)
        frontier: Ints = np.array([source], np.int64)
        rank = np.zeros(1, np.int64)
        for distance in range(self.op.max_hops + 1):
            if distance >= self.op.min_hops:
                tree.report(frontier, distance)
            elif self.op.min_hops == 1 and self._has_loop(source):
                self._report_loop(tree, source)
            if distance == self.op.max_hops or not len(frontier):
                break
            frontier, rank = self._next_level(tree, frontier, rank)
        return self._paths_of(tree)

    def _next_level(self, tree: _Tree, frontier: Ints, rank: Ints) -> tuple[Ints, Ints]:
        """The next level; where paths are read, in their order: by the path so far, then by the id of the last edge.

        A path that is read from its other end prefers its last edge whatever came before.
        """
        if not self.spelled_out:
            return self.space.next_level(frontier, tree.seen, self.ctx).astype(np.int64), rank
        source, node, code, edge = self.space.edges(frontier, self.edge_types)
        new = np.flatnonzero(~tree.seen[node])
        source, node, code, edge = source[new], node[new], code[new], edge[new]
        before = () if self.op.backwards else (rank[source],)
        order = self._by_id(code, edge, *before)
        _, first = np.unique(node[order], return_index=True)
        best = order[np.sort(first)]
        tree.attach(node[best], frontier[source[best]], code[best], edge[best])
        return node[best], np.arange(len(best))

    def _report_loop(self, tree: _Tree, source: int) -> None:
        """The source has a self-loop: its trail is that one edge."""
        tree.report(np.array([source], np.int64), 1)
        if self.spelled_out:
            code, edge = self._best_edge(source, np.array([source]))[0]
            here = np.array([source])
            tree.attach(here, here, np.array([code]), np.array([edge]))

    def _paths_of(self, tree: _Tree) -> tuple[Ints, Paths]:
        nodes, length = tree.reported()
        if not self.spelled_out:
            return nodes, Paths(length)
        flat, code, edge = tree.trails(nodes, length)
        return nodes, self._paths(length, flat, code, edge)

    def _from_trees(self, first: Ints, second: Ints) -> Paths:
        """Many pairs: one tree per source answers all of its destinations."""
        parts, order = [], []
        for source in checked(np.unique(first).tolist()):
            mine = np.flatnonzero(first == source)
            nodes, paths = self._tree(source)
            sorter = np.argsort(nodes)
            at = np.minimum(nodes[sorter].searchsorted(second[mine]), max(len(nodes) - 1, 0))
            hit = nodes[sorter][at] == second[mine] if len(nodes) else np.zeros(len(mine), np.bool_)
            parts.append(paths.take(sorter[at[hit]]))
            order.append(mine[hit])
        found = concat_paths([*parts, self._no_path()])
        place = np.full(len(first), len(found.length) - 1, np.int64)
        place[np.concatenate([first[:0], *order])] = np.arange(len(found.length) - 1)
        return found.take(place)

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


class _Tree:
    """The shortest paths from one source: every node has the edge that leads to it."""

    def __init__(self, size: int, source: int, spelled_out: bool) -> None:
        self.seen: Mask = np.zeros(size, np.bool_)
        self.seen[source] = True
        self._parent, self._code, self._edge = (
            np.zeros(size if spelled_out else 0, np.int64) for _ in range(3)
        )
        self._nodes: list[Ints] = []
        self._lengths: list[Ints] = []

    def attach(self, nodes: Ints, parents: Ints, codes: Ints, edges: Ints) -> None:
        self.seen[nodes] = True
        self._parent[nodes], self._code[nodes], self._edge[nodes] = parents, codes, edges

    def report(self, nodes: Ints, distance: int) -> None:
        self._nodes.append(nodes)
        self._lengths.append(np.full(len(nodes), distance, np.int64))

    def reported(self) -> tuple[Ints, Ints]:
        nothing = np.empty(0, np.int64)
        return np.concatenate([nothing, *self._nodes]), np.concatenate([nothing, *self._lengths])

    def trails(self, ends: Ints, length: Ints) -> tuple[Ints, Ints, Ints]:
        """The nodes and edges of the paths to these nodes, one run after the other, filled in from their ends."""
        nodes = np.zeros(int((length + 1).sum()), np.int64)
        code, edge = np.zeros(int(length.sum()), np.int64), np.zeros(int(length.sum()), np.int64)
        node_at, edge_at = np.cumsum(length + 1) - 1, np.cumsum(length) - 1
        nodes[node_at] = ends
        current, left = ends.copy(), length.copy()
        while (going := np.flatnonzero(left > 0)).size:
            here = current[going]
            code[edge_at[going]], edge[edge_at[going]] = self._code[here], self._edge[here]
            current[going] = self._parent[here]
            nodes[node_at[going] - 1] = current[going]
            node_at[going] -= 1
            edge_at[going] -= 1
            left[going] -= 1
        return nodes, code, edge
