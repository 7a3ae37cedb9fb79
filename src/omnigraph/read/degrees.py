"""How many edges of each type meet one node, without reading what they lead to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from omnigraph.core.snapshot import Snapshot
from omnigraph.lang.evaluate import Bound
from omnigraph.lang.ir import Direction
from omnigraph.model.catalog import NodeType
from omnigraph.read.arrays import NO_ROW, Positions
from omnigraph.read.context import Context
from omnigraph.read.edges import look_up, prefers_lookup, topology


@dataclass(frozen=True, slots=True)
class Degree:
    """The edges of one type that leave a node (`out`) or end at it (`in`), and the type of their other ends."""

    edge: str
    direction: str
    type: str
    count: int


def degrees(snapshot: Snapshot, kind: NodeType, id: str) -> tuple[Degree, ...] | None:
    """The edges of a node by type and direction; none if there is no such node."""
    ctx = Context(snapshot, Bound())
    at = ctx.columns(kind.name).find(id)
    if at == NO_ROW:
        return None
    nodes = np.array([at], np.int32)
    return tuple(
        Degree(edge, str(direction.value), other, _count(edge, direction, nodes, ctx))
        for edge, direction, other in _ways(snapshot, kind)
    )


def _ways(snapshot: Snapshot, kind: NodeType) -> Iterator[tuple[str, Direction, str]]:
    for edge in snapshot.catalog.incident_edges(kind.name):
        if edge.from_type == kind.name:
            yield edge.name, Direction.OUT, edge.to_type
        if edge.to_type == kind.name:
            yield edge.name, Direction.IN, edge.from_type


def _count(edge: str, direction: Direction, nodes: Positions, ctx: Context) -> int:
    if prefers_lookup(edge, direction, 1, ctx):
        return len(look_up(edge, direction, nodes, ctx).node)
    return topology(edge, ctx).view(direction).total(nodes)
