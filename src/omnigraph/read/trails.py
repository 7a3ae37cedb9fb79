"""Walks that follow no edge twice, each of them a row.

Their number grows with every hop, so they are made depth first: a bounded number of unfinished walks is taken a hop
further at a time, and finished walks are handed on immediately.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from omnigraph.lang import ir
from omnigraph.model.frozen import frozen
from omnigraph.read.arrays import Ints
from omnigraph.read.context import Context
from omnigraph.read.expressions import holds
from omnigraph.read.plan import PlanStep
from omnigraph.read.rows import Entities, Paths, Rows
from omnigraph.read.walk import Space

Matrix = npt.NDArray[np.int64]  # a row per walk, a column per step


@frozen
class _Walks:
    """Unfinished walks: the row each belongs to, the nodes met and the edges followed."""

    row: Ints
    nodes: Matrix
    codes: Matrix
    edges: Matrix

    def take(self, index: Ints | slice) -> _Walks:
        return _Walks(self.row[index], self.nodes[index], self.codes[index], self.edges[index])

    @property
    def hops(self) -> int:
        return int(self.edges.shape[1])


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

    def walk(self) -> Iterator[Rows]:
        start = self.space.number(self.rows.entities(self.op.src))
        known = np.flatnonzero(start >= 0)
        nothing = np.empty((len(known), 0), np.int64)
        waiting = [_Walks(known, start[known][:, None], nothing, nothing)]
        sizes = self.ctx.sizes(self.step.early)
        yield self.handed_on(waiting[0].take(slice(0, 0)))
        while waiting:
            self.ctx.check()
            size, walks = next(sizes), waiting.pop()
            if len(walks.row) > size:
                waiting.append(walks.take(slice(size, None)))
                walks = walks.take(slice(0, size))
            if walks.hops >= self.op.min_hops:
                yield self.handed_on(walks)
            if self.op.max_hops is None or walks.hops < self.op.max_hops:
                further = self.further(walks)
                if len(further.row):
                    waiting.append(further)

    def further(self, walks: _Walks) -> _Walks:
        """Every walk by every edge it has not followed yet."""
        source, node, code, edge = self.space.edges(walks.nodes[:, -1], self.edge_types)
        new = np.ones(len(source), np.bool_)
        for hop in range(walks.hops):
            same = walks.edges[source, hop] == edge
            if len(self.edge_types) > 1:
                same &= walks.codes[source, hop] == code
            new &= ~same
        kept = np.flatnonzero(new)
        source, node, code, edge = source[kept], node[kept], code[kept], edge[kept]
        if self.op.edge_predicate is not None:
            kept = np.flatnonzero(self.admits(walks.row[source], code, edge))
            source, node, code, edge = source[kept], node[kept], code[kept], edge[kept]
        return _Walks(
            walks.row[source],
            np.concatenate([walks.nodes[source], node[:, None]], axis=1),
            np.concatenate([walks.codes[source], code[:, None]], axis=1),
            np.concatenate([walks.edges[source], edge[:, None]], axis=1),
        )

    def admits(self, row: Ints, code: Ints, edge: Ints) -> npt.NDArray[np.bool_]:
        assert self.op.edge_predicate is not None  # noqa: S101
        rows = self.rows.take(row).with_variables({self.op.edge_var: self.of_edges(code, edge)})
        return holds(self.op.edge_predicate, rows, self.ctx)

    def of_edges(self, code: Ints, edge: Ints) -> Entities:
        many = code.astype(np.int32) if len(self.edge_types) > 1 else None
        return Entities(self.edge_types, edge.astype(np.int32), many, edge=True)

    def handed_on(self, walks: _Walks) -> Rows:
        """The walks that end where they may, as rows."""
        last = walks.nodes[:, -1]
        if self.target is not None:
            walks = walks.take(np.flatnonzero(last == self.target[walks.row]))
            found = self.rows.take(walks.row)
        else:
            reached, typed = self.space.entities(last, self.op.dst_types)
            kept = np.flatnonzero(typed)
            walks = walks.take(kept)
            found = self.rows.take(walks.row).with_variables({self.op.dst: reached.take(kept)})
        if self.op.path_var in self.step.live:
            found = found.with_variables({self.op.path_var: self.paths(walks)})
        if self.op.predicate is not None:
            found = found.filter(holds(self.op.predicate, found, self.ctx))
        return found.keep(self.step.live)

    def paths(self, walks: _Walks) -> Paths:
        length = np.full(len(walks.row), walks.hops, np.int64)
        if not self.step.steps_of_paths:
            return Paths(length)
        nodes, _ = self.space.entities(walks.nodes.ravel(), self.space.types)
        edges = self.of_edges(walks.codes.ravel(), walks.edges.ravel())
        made = Paths.of(length, nodes, edges)
        return made.turned() if self.op.backwards else made
