"""Neighbours and shortest paths over every type of edge: one query for a type of edge and a whole frontier."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from omnigraph.errors import LimitExceeded, TableNotFound
from omnigraph.graph import Graph
from omnigraph.model.catalog import Catalog, EdgeType, NodeType
from omnigraph.model.frozen import frozen
from omnigraph.model.types import Scalar

FRONTIER_MAX = 20_000  # nodes of one step of a path
ROWS_MAX = 100_000  # edges of one step
HOPS_MAX = 8
OUT, IN = "out", "in"

Place = tuple[str, str]  # the type and the id of a node


@frozen
class State:
    """A state of a graph to walk in: the branch, or its commit once it was read."""

    graph: Graph
    catalog: Catalog
    branch: str = "main"
    at: str | None = None
    seconds_max: float | None = None

    def rows(
        self, text: str, params: Mapping[str, Any], rows_max: int | None = None
    ) -> tuple[list[dict[str, Any]], str]:
        """The rows of a query, and the commit they are of."""
        found = self.graph.query(
            text,
            params,
            branch=self.branch,
            at=self.at,
            timeout=self.seconds_max,
            max_rows=rows_max,
        )
        return found.json_rows(), found.commit

    def node_type(self, name: str) -> NodeType:
        kind = self.catalog.nodes.get(name)
        if kind is None:
            raise TableNotFound(f"there is no node type {name!r}")
        return kind

    def edges_of(self, node: str, edges: Sequence[str] | None = None) -> list[EdgeType]:
        """The edge types of a node type, or the named ones among them."""
        for name in edges or ():
            if name not in self.catalog.edges:
                raise TableNotFound(f"there is no edge type {name!r}")
        met = self.catalog.incident_edges(node)
        return [edge for edge in met if edges is None or edge.name in edges]


def word(edge: EdgeType) -> str:
    """The name of an edge type in queries."""
    return edge.name[0].lower() + edge.name[1:]


def columns(kind: NodeType, variable: str) -> str:
    """The id and the properties of a node as columns, without vectors and bytes."""
    shown = (p.name for p in kind.properties.values() if is_shown(p.type))
    return ", ".join([f"${variable}.id as id", *(f"${variable}.{n} as p_{n}" for n in shown)])


def is_shown(kind: Any) -> bool:
    """Whether values of a type are readable: neither vectors nor bytes."""
    return not kind.is_vector and kind.scalar is not Scalar.BLOB


def entity(kind: str, row: Mapping[str, Any], prefix: str = "p_") -> dict[str, Any]:
    """A node from the columns of a row."""
    cut = len(prefix)
    values = {name[cut:]: v for name, v in row.items() if name.startswith(prefix)}
    return {"type": kind, "id": row["id"], "properties": values}


# --- neighbours ----------------------------------------------------------------------------------------------------


@frozen
class EdgeWalk:
    """A type of edge walked in one direction."""

    edge: EdgeType
    direction: str

    @property
    def near(self) -> str:
        return self.edge.from_type if self.direction == OUT else self.edge.to_type

    @property
    def far(self) -> str:
        return self.edge.to_type if self.direction == OUT else self.edge.from_type

    @property
    def pattern(self) -> str:
        """From the nodes `$n` whose ids are given to those at the other end, `$f`."""
        here = f"$n: {self.near} $n.id in $ids"
        if self.direction == OUT:
            return f"{here} $n $e:{word(self.edge)} $f"
        return f"{here} $f: {self.far} $f $e:{word(self.edge)} $n"


def steps_from(
    state: State, node: str, edges: Sequence[str] | None = None, direction: str = "both"
) -> Iterator[EdgeWalk]:
    """The ways that lead from a node type."""
    for edge in state.edges_of(node, edges):
        if edge.from_type == node and direction in (OUT, "both"):
            yield EdgeWalk(edge, OUT)
        if edge.to_type == node and direction in (IN, "both"):
            yield EdgeWalk(edge, IN)


def count_neighbours(state: State, step: EdgeWalk, id: str) -> tuple[int, str]:
    """The number of edges of a type at a node, and the commit that was read."""
    text = f"query q($ids: [String]) {{ match {{ {step.pattern} }} return {{ count($e) as n }} }}"
    rows, commit = state.rows(text, {"ids": [id]})
    return int(rows[0]["n"]), commit


def neighbours(
    state: State, step: EdgeWalk, ids: Sequence[str], limit: int
) -> list[dict[str, Any]]:
    """The nodes at the other ends of edges, at most `limit` per id, with `near`, the id they were reached from."""
    kind = state.node_type(step.far)
    text = (
        f"query q($ids: [String], $most: I64) {{ match {{ {step.pattern} }} "
        f"return {{ $e.id as edge, {columns(kind, 'f')} }} order {{ id, edge }} limit $most }}"
    )
    runs = [{"ids": [id], "most": limit} for id in ids]
    found = state.graph.query_many(
        text, runs, branch=state.branch, at=state.at, timeout=state.seconds_max
    )
    way = {"edge": step.edge.name, "direction": step.direction}
    return [
        {"near": id, **way, **entity(kind.name, row)}
        for id, result in zip(ids, found, strict=True)
        for row in result.json_rows()
    ]


# --- paths ---------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Reached:
    """The nodes that were reached, and how."""

    came: dict[Place, tuple[Place, str, str, str] | None] = field(default_factory=dict)

    def add(self, place: Place, before: Place, step: EdgeWalk, edge: str) -> bool:
        if place in self.came:
            return False
        self.came[place] = (before, step.edge.name, step.direction, edge)
        return True

    def path(self, end: Place) -> list[dict[str, Any]]:
        """The nodes and edges that lead to a node, from the start."""
        found: list[dict[str, Any]] = []
        here: Place | None = end
        while here is not None:
            came = self.came[here]
            found.append({"type": here[0], "id": here[1]})
            if came is not None:
                _, edge, direction, id = came
                found.append({"edge": edge, "direction": direction, "id": id})
            here = None if came is None else came[0]
        return found[::-1]


def shortest_path(
    state: State, start: Place, end: Place, edges: Sequence[str] | None, hops_max: int
) -> list[dict[str, Any]] | None:
    """One of the shortest paths between two nodes, over edges of all types, in both directions, or None."""
    reached, frontier = _Reached({start: None}), [start]
    for _ in range(hops_max + 1):
        if end in reached.came:
            return reached.path(end)
        if not frontier:
            return None
        frontier = list(_next(state, reached, frontier, edges))
        if len(frontier) > FRONTIER_MAX:
            raise LimitExceeded(
                f"the path leads over more than {FRONTIER_MAX} nodes",
                details={
                    "limit": "frontier_max",
                    "limit_value": FRONTIER_MAX,
                    "observed": len(frontier),
                },
            )
    return None


def _next(
    state: State, reached: _Reached, frontier: Iterable[Place], edges: Sequence[str] | None
) -> Iterator[Place]:
    by_type: dict[str, list[str]] = {}
    for kind, id in frontier:
        by_type.setdefault(kind, []).append(id)
    for kind, ids in sorted(by_type.items()):
        for step in steps_from(state, kind, edges):
            text = (
                f"query q($ids: [String]) {{ match {{ {step.pattern} }} "
                "return { $n.id as near, $e.id as edge, $f.id as id } order { near, id, edge } }"
            )
            rows, _ = state.rows(text, {"ids": ids}, ROWS_MAX)
            for row in rows:
                place = (step.far, str(row["id"]))
                if reached.add(place, (kind, str(row["near"])), step, str(row["edge"])):
                    yield place
