"""Measures of a whole graph: in process, or on Spark with the same answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.errors import OptionInvalid
from omnigraph.model.frozen import frozen
from omnigraph.outcomes import LoadResult

if TYPE_CHECKING:
    from omnigraph.graph import Graph

SIDES = {"out": ("src",), "in": ("dst",), "both": ("src", "dst")}  # of edges, by direction


@frozen
class Measure:
    """One value for each node of a type: an Arrow table of `id` and `value`, ascending by id."""

    graph: Graph
    node: str
    branch: str
    commit: str
    table: pa.Table

    def to_dict(self) -> dict[str, Any]:
        """The values by id."""
        return dict(zip(self.table["id"].to_pylist(), self.table["value"].to_pylist(), strict=True))

    def top(self, count: int = 10) -> list[tuple[str, Any]]:
        """The largest values, ties by id."""
        ordered = self.table.sort_by([("value", "descending"), ("id", "ascending")])
        rows = ordered.slice(0, count)
        return list(zip(rows["id"].to_pylist(), rows["value"].to_pylist(), strict=True))

    def write(self, property: str, *, message: str | None = None) -> LoadResult:
        """Store the values as a property of the nodes, as one commit; other concurrent changes are kept."""
        snapshot = self.graph._state(self.branch, None, (self.node,))
        kind = snapshot.catalog.nodes[self.node]
        rows = self.table.rename_columns(["id", property])
        if kind.key is not None:
            names = ["id", *kind.key]
            stored = snapshot.table_of(kind).lookup("id", rows["id"].combine_chunks(), names)
            rows = stored.select(names).join(rows, "id", join_type="inner").drop(["id"])
        return self.graph.load(
            {self.node: rows}, mode="merge", branch=self.branch, engine="local", message=message
        )


@frozen
class Analytics:
    """What can be measured. Edges are those of the named types, from the node type to itself.

    >>> import omnigraph
    >>> g = omnigraph.init("memory://doc-analytics", schema="node P { name: String @key } edge Knows: P -> P")
    >>> _ = g.load({"P": [{"name": n} for n in "abc"], "Knows": [{"from": "a", "to": "b"}]})
    >>> g.analytics().components("P", ["Knows"]).to_dict()
    {'a': 'a', 'b': 'a', 'c': 'c'}
    """

    graph: Graph
    branch: str = "main"
    at: object = None
    engine: str = "local"

    def degrees(self, node: str, edges: Sequence[str], direction: str = "both") -> Measure:
        """How many edges each node has: out, in or both."""
        if direction not in SIDES:
            raise OptionInvalid(f"direction is out, in or both, not {direction!r}")
        return self._measured("degrees", node, edges, sides=SIDES[direction])

    def pagerank(
        self, node: str, edges: Sequence[str], damping: float = 0.85, iterations: int = 20
    ) -> Measure:
        """The rank of each node; ranks sum to 1."""
        return self._measured("pagerank", node, edges, damping=damping, iterations=iterations)

    def components(self, node: str, edges: Sequence[str]) -> Measure:
        """For each node, the smallest id in its component; edge direction is ignored."""
        return self._measured("components", node, edges)

    def reach(self, node: str, edges: Sequence[str], hops: int) -> Measure:
        """How many other nodes each node reaches within `hops` hops."""
        return self._measured("reach", node, edges, hops=hops)

    def triangles(self, node: str, edges: Sequence[str]) -> Measure:
        """How many triangles each node is part of; edge direction is ignored."""
        return self._measured("triangles", node, edges)

    def labels(self, node: str, edges: Sequence[str], iterations: int = 5) -> Measure:
        """Communities by label propagation."""
        return self._measured("labels", node, edges, iterations=iterations)

    def distances(self, node: str, edges: Sequence[str], sources: Sequence[str]) -> Measure:
        """How many hops each node is from the nearest source; null if unreachable."""
        return self._measured("distances", node, edges, sources=list(sources))

    def _measured(self, what: str, node: str, edges: Sequence[str], **how: Any) -> Measure:
        if self.engine not in ("local", "spark"):
            raise OptionInvalid(f"engine must be 'local' or 'spark', got {self.engine!r}")
        snapshot = self.graph._state(self.branch, self.at, (node, *edges))
        if self.engine == "spark":
            from omnigraph.pipeline.analytics import measured

            table = measured(self.graph._frames(snapshot), what, node, edges, how)
        else:
            from omnigraph.read import analytics as local

            table = getattr(local, what)(local.network(snapshot, node, edges), **how)
        return Measure(self.graph, node, self.branch, snapshot.commit_id, table)
