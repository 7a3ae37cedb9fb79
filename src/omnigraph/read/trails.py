"""Walks that follow no edge twice, each of them a row.

Their number grows with every hop, so they are made depth first: one block of walks of each length is held, taken a hop
further block by block, and finished walks are handed on immediately.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from omnigraph.lang import ir
from omnigraph.model.frozen import frozen
from omnigraph.read.arrays import Ints, Mask
from omnigraph.read.budget import Held
from omnigraph.read.context import Context
from omnigraph.read.expressions import holds
from omnigraph.read.plan import PlanStep
from omnigraph.read.rows import Entities, Paths, Rows
from omnigraph.read.walk import NO_NODES, Followed, Space

WAITING_BYTES = 96  # of a walk: itself, and the place its edges are followed from
FOLLOWED_BYTES = 72  # of an edge that was followed, and of the walk with it


@frozen
class _Walks:
    """Walks of one length: the row each belongs to, its last edge and node; and the walks they go on from."""

    row: Ints
    node: Ints
    code: Ints
    edge: Ints
    source: Ints  # the walk before that each goes on from
    before: _Walks | None

    def back(self, index: Ints) -> Iterator[tuple[_Walks, Ints]]:
        """Some of the walks hop by hop, from their last: the walks as they were then, and their numbers there."""
        walks = self
        yield walks, index
        while walks.before is not None:
            index, walks = walks.source[index], walks.before
            yield walks, index


def trail(step: PlanStep, rows: Rows, ctx: Context) -> Iterator[Rows]:
    """One row per row and walk."""
    op = step.op
    assert isinstance(op, ir.Trail)  # noqa: S101
    ends = rows.entities(op.src).types + (rows.entities(op.dst).types if op.into else ())
    found = _Trails(step, op, Space(op.steps, ctx, (*ends, *op.dst_types)), rows, ctx)
    yield from found.walk()


class _Trails:
    """The walks of one block of rows."""

    def __init__(
        self, step: PlanStep, op: ir.Trail, space: Space, rows: Rows, ctx: Context
    ) -> None:
        self.step, self.op, self.space, self.rows, self.ctx = step, op, space, rows, ctx
        self.edge_types = tuple(dict.fromkeys(s.edge for s in op.steps))
        self.target = space.number(rows.entities(op.dst)) if op.into else None
        self.sizes = ctx.sizes(step.early)

    def walk(self) -> Iterator[Rows]:
        start = self.space.number(self.rows.entities(self.op.src))
        known = np.flatnonzero(start >= 0)
        first = _Walks(known, start[known], NO_NODES, NO_NODES, NO_NODES, None)
        yield self.handed_on(first, 0, known[:0])
        waiting = [iter((first,))]  # for every length the walks that go on from those taken last
        with self.ctx.hold("Trail") as held:
            while waiting:
                self.ctx.check()
                hops, walks = len(waiting) - 1, next(waiting[-1], None)
                if walks is None:
                    waiting.pop()
                    continue
                if hops >= self.op.min_hops:
                    yield self.handed_on(walks, hops, np.arange(len(walks.node)))
                if len(walks.node) and (self.op.max_hops is None or hops < self.op.max_hops):
                    waiting.append(self.further(walks, hops + 1, held))

    def further(self, walks: _Walks, hops: int, held: Held) -> Iterator[_Walks]:
        """The walks by every edge they have not followed yet; the longer they are, the fewer at a time."""
        size = WAITING_BYTES * len(walks.node)
        held.add(size)
        sizes = (max(1, size // hops) for size in self.sizes)
        for every in self.space.edges(walks.node, self.edge_types, sizes):
            made = FOLLOWED_BYTES * len(every.edge)
            held.add(made)
            found = every.take(self.allowed(walks, every))
            row = walks.row[found.source]
            yield _Walks(row, found.node, found.code, found.edge, found.source, walks)
            held.add(-made)
        held.add(-size)

    def allowed(self, walks: _Walks, found: Followed) -> Ints:
        """Which of these edges may be followed."""
        kept = np.flatnonzero(self.is_new(walks, found))
        if self.op.edge_predicate is None:
            return kept
        row = walks.row[found.source[kept]]
        return kept[self.admits(row, found.code[kept], found.edge[kept])]

    def is_new(self, walks: _Walks, found: Followed) -> Mask:
        """Which edges are not among those of the walk they are to be added to."""
        new = np.ones(len(found.edge), np.bool_)
        for before, at in walks.back(found.source):
            if before.before is not None:
                same = before.edge[at] == found.edge
                if len(self.edge_types) > 1:
                    same &= before.code[at] == found.code
                new &= ~same
        return new

    def admits(self, row: Ints, code: Ints, edge: Ints) -> Mask:
        assert self.op.edge_predicate is not None  # noqa: S101
        rows = self.rows.take(row).with_variables({self.op.edge_var: self.of_edges(code, edge)})
        return holds(self.op.edge_predicate, rows, self.ctx)

    def of_edges(self, code: Ints, edge: Ints) -> Entities:
        many = code.astype(np.int32) if len(self.edge_types) > 1 else None
        return Entities(self.edge_types, edge.astype(np.int32), many, edge=True)

    def handed_on(self, walks: _Walks, hops: int, at: Ints) -> Rows:
        """Those of these walks that end where they may, as rows."""
        if self.target is not None:
            at = at[walks.node[at] == self.target[walks.row[at]]]
            found = self.rows.take(walks.row[at])
        else:
            reached, typed = self.space.entities(walks.node[at], self.op.dst_types)
            at = at[typed]
            reached = reached.take(np.flatnonzero(typed))
            found = self.rows.take(walks.row[at]).with_variables({self.op.dst: reached})
        if self.op.path_var in self.step.live:
            found = found.with_variables({self.op.path_var: self.paths(walks, hops, at)})
        if self.op.predicate is not None:
            found = found.filter(holds(self.op.predicate, found, self.ctx))
        return found.keep(self.step.live)

    def paths(self, walks: _Walks, hops: int, at: Ints) -> Paths:
        length = np.full(len(at), hops, np.int64)
        if not self.step.steps_of_paths:
            return Paths(length)
        met = [*walks.back(at)][::-1]
        nodes = _side_by_side([before.node[i] for before, i in met])
        codes = _side_by_side([before.code[i] for before, i in met[1:]])
        edges = _side_by_side([before.edge[i] for before, i in met[1:]])
        members, _ = self.space.entities(nodes, self.space.types)
        made = Paths.of(length, members, self.of_edges(codes, edges))
        return made.turned() if self.op.backwards else made


def _side_by_side(columns: list[Ints]) -> Ints:
    """The rows of these columns, one after the other."""
    return np.stack(columns, axis=1).ravel() if columns else NO_NODES
