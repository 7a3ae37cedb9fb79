"""LlamaIndex: a retriever and a property graph store. Needs `pip install 'omnigraph[llama-index]'`.

A graph of omnigraph has a schema, so a label is a node type and the label of a relation an edge type. `labels` says
which type stands for a label that is none (`entity`, `text_chunk`), and `rest` names a String property that keeps what
a type has no property for, as JSON; without it, such a property is refused like in any load.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.graph_stores.types import (
    ChunkNode,
    EntityNode,
    LabelledNode,
    PropertyGraphStore,
    Relation,
    Triplet,
)
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.vector_stores.types import VectorStoreQuery

from omnigraph.agents.retriever import Retriever
from omnigraph.agents.toolbox import catalog_of_text
from omnigraph.agents.walking import State, columns, entity, word
from omnigraph.errors import OptionInvalid
from omnigraph.graph import Graph
from omnigraph.model.catalog import Catalog, EdgeType, NodeOrEdgeType, NodeType

TEXT = "text"  # the property that holds the text of a chunk
ROWS_MAX = 10_000
MESSAGE = "Change by LlamaIndex"


class OmnigraphNodeRetriever(BaseRetriever):
    """Nodes about a question; text, vectors and neighbourhood in one call."""

    def __init__(self, retriever: Retriever) -> None:
        super().__init__()
        self._retriever = retriever

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        found = self._retriever.retrieve(query_bundle.query_str, vector=query_bundle.embedding)
        return [
            NodeWithScore(
                node=TextNode(
                    id_=f"{each.type}/{each.id}",
                    text=each.text(),
                    metadata={"type": each.type, "id": each.id, "commit": found.commit},
                ),
                score=each.score,
            )
            for each in found.found
        ]


class OmnigraphPropertyGraphStore(PropertyGraphStore):
    """A property graph store on a branch of a graph; every write is one commit."""

    supports_structured_queries = True
    supports_vector_queries = True

    def __init__(
        self,
        graph: Graph,
        branch: str = "main",
        *,
        labels: Mapping[str, str] | None = None,
        rest: str | None = None,
        actor: str | None = None,
    ) -> None:
        self._graph, self._branch = graph, branch
        self._labels, self._rest, self._actor = dict(labels or {}), rest, actor

    @property
    def client(self) -> Graph:
        """The graph itself."""
        return self._graph

    def get_schema(self, refresh: bool = False) -> str:  # noqa: ARG002  it is always fresh
        """The types in force, as text."""
        return self._graph.schema(self._branch)

    @property
    def _catalog(self) -> Catalog:
        return catalog_of_text(self.get_schema())

    @property
    def _state(self) -> State:
        return State(self._graph, self._catalog, self._branch)

    # --- reading ---------------------------------------------------------------------------------------------------

    def get(
        self, properties: dict[str, Any] | None = None, ids: list[str] | None = None
    ) -> list[LabelledNode]:
        """Nodes of any type with one of these ids, and with these values."""
        return [_node(found, self._rest) for found in self._found(properties, ids)]

    def _found(
        self, properties: Mapping[str, Any] | None, ids: Sequence[str] | None
    ) -> Iterator[dict[str, Any]]:
        state = self._state
        for kind in state.catalog.nodes.values():
            declared, conditions = ["$most: I64"], list[str]()
            params: dict[str, Any] = {"most": ROWS_MAX}
            if ids:
                declared.append("$ids: [String]")
                conditions.append("$x.id in $ids")
                params["ids"] = list(ids)
            if properties:
                known = [
                    p for p in kind.properties.values() if p.name in properties and p.type.is_plain
                ]
                if not known:
                    continue
                declared += [f"$v_{p.name}: {p.type.scalar}" for p in known]
                conditions.append(" or ".join(f"$x.{p.name} = $v_{p.name}" for p in known))
                params |= {f"v_{p.name}": properties[p.name] for p in known}
            text = (
                f"query q({', '.join(declared)}) {{ match {{ $x: {kind.name} {' '.join(conditions)} }} "
                f"return {{ {columns(kind, 'x')} }} order {{ id }} limit $most }}"
            )
            rows, _ = state.rows(text, params)
            yield from (entity(kind.name, row) for row in rows)

    def get_triplets(
        self,
        entity_names: list[str] | None = None,
        relation_names: list[str] | None = None,
        properties: dict[str, Any] | None = None,
        ids: list[str] | None = None,
    ) -> list[Triplet]:
        """Edges that meet one of the nodes named, or of the types named, with the nodes at their ends."""
        if not (entity_names or relation_names or properties or ids):
            return []
        near = [*(entity_names or ()), *(ids or ())]
        if properties:
            near += [found["id"] for found in self._found(properties, None)]
            if not near:
                return []
        state = self._state
        found: list[Triplet] = []
        for edge in self._edges(state.catalog, relation_names):
            found += self._triplets(state, edge, near)
        return found

    def _edges(self, catalog: Catalog, names: Sequence[str] | None) -> list[EdgeType]:
        if not names:
            return list(catalog.edges.values())
        return [edge for name in names if (edge := catalog.edge(name)) is not None]

    def _triplets(self, state: State, edge: EdgeType, near: Sequence[str]) -> list[Triplet]:
        start, end = state.node_type(edge.from_type), state.node_type(edge.to_type)
        here = "$a.id in $ids or $b.id in $ids" if near else ""
        pattern = f"$a: {start.name} $b: {end.name} $a $e:{word(edge)} $b"
        shown = ", ".join(f"$e.{name} as e_{name}" for name in edge.properties)
        text = (
            f"query q($ids: [String], $most: I64) {{ match {{ {pattern} {here} }} return {{ "
            f"$a.id as start, $b.id as end, $e.id as edge{', ' + shown if shown else ''} }} "
            "order { start, end, edge } limit $most }"
        )
        rows, commit = state.rows(text, {"ids": list(near), "most": ROWS_MAX})
        pinned = State(state.graph, state.catalog, state.branch, commit)
        ends: dict[str, set[str]] = {}
        for row in rows:
            ends.setdefault(start.name, set()).add(row["start"])
            ends.setdefault(end.name, set()).add(row["end"])
        nodes = {n: self._by_id(pinned, state.node_type(n), ids) for n, ids in ends.items()}
        return [
            (
                nodes[start.name][row["start"]],
                Relation(
                    label=edge.name,
                    source_id=row["start"],
                    target_id=row["end"],
                    properties={n: row[f"e_{n}"] for n in edge.properties},
                ),
                nodes[end.name][row["end"]],
            )
            for row in rows
        ]

    def _by_id(self, state: State, kind: NodeType, ids: set[str]) -> dict[str, LabelledNode]:
        text = (
            f"query q($ids: [String]) {{ match {{ $x: {kind.name} $x.id in $ids }} "
            f"return {{ {columns(kind, 'x')} }} }}"
        )
        rows, _ = state.rows(text, {"ids": sorted(ids)})
        return {row["id"]: _node(entity(kind.name, row), self._rest) for row in rows}

    def get_rel_map(
        self,
        graph_nodes: list[LabelledNode],
        depth: int = 2,
        limit: int = 30,
        ignore_rels: list[str] | None = None,
    ) -> list[Triplet]:
        """The edges around some nodes, nearest first, up to a distance and a number."""
        found: dict[tuple[str, str, str], Triplet] = {}
        frontier, ignored = [node.id for node in graph_nodes], set(ignore_rels or ())
        for _ in range(depth):
            if not frontier or len(found) >= limit:
                break
            around = self.get_triplets(ids=frontier)
            fresh = {
                (t[1].label, t[1].source_id, t[1].target_id): t
                for t in around
                if t[1].label not in ignored
            }
            new = {key: t for key, t in fresh.items() if key not in found}
            found |= new
            frontier = sorted({end for _, start, end in new for end in (start, end)})
        return list(found.values())[:limit]

    def structured_query(self, query: str, param_map: dict[str, Any] | None = None) -> Any:
        """The rows of a query that reads, in the language of omnigraph."""
        return self._graph.query(
            query, param_map, branch=self._branch, max_rows=ROWS_MAX
        ).json_rows()

    def vector_query(
        self,
        query: VectorStoreQuery,
        **kwargs: Any,  # noqa: ARG002
    ) -> tuple[list[LabelledNode], list[float]]:
        """The nodes with the nearest vectors, and their scores."""
        retriever = Retriever(self._graph, self._branch, limit=query.similarity_top_k)
        found = retriever.retrieve(query.query_str or "", vector=query.query_embedding)
        nodes = [
            _node({"type": f.type, "id": f.id, "properties": dict(f.properties)}, self._rest)
            for f in found.found
        ]
        return nodes, [f.score for f in found.found]

    # --- writing ---------------------------------------------------------------------------------------------------

    def upsert_nodes(self, nodes: Sequence[LabelledNode]) -> None:
        """Insert nodes, or update those with known ids, as one commit."""
        catalog, records = self._catalog, dict[str, list[dict[str, Any]]]()
        for node in nodes:
            kind = self._type(catalog, node.label)
            records.setdefault(kind.name, []).append(self._record(kind, node))
        self._load(records)

    def upsert_relations(self, relations: list[Relation]) -> None:
        """Insert edges as one commit; those of an edge type with a key are updated if known."""
        catalog, records = self._catalog, dict[str, list[dict[str, Any]]]()
        for relation in relations:
            edge = catalog.edge(self._labels.get(relation.label, relation.label))
            if edge is None:
                raise OptionInvalid(
                    f"no edge type for the label {relation.label!r}",
                    help="Add it to the schema, or name one in `labels`.",
                )
            row = {"from": relation.source_id, "to": relation.target_id}
            row |= self._fitting(edge, relation.properties)
            records.setdefault(edge.name, []).append(row)
        self._load(records)

    def _type(self, catalog: Catalog, label: str) -> NodeType:
        kind = catalog.nodes.get(self._labels.get(label, label))
        if kind is None:
            raise OptionInvalid(
                f"no node type for the label {label!r}",
                help="Add it to the schema, or name one in `labels`.",
            )
        return kind

    def _record(self, kind: NodeType, node: LabelledNode) -> dict[str, Any]:
        row = self._fitting(kind, node.properties)
        if kind.key and len(kind.key) == 1:
            row.setdefault(kind.key[0], node.id)
        else:
            row["id"] = node.id
        if isinstance(node, ChunkNode):
            row[TEXT] = node.text
        if node.embedding is not None:
            vectors = [p.name for p in kind.properties.values() if p.type.is_vector]
            row |= {vectors[0]: node.embedding} if len(vectors) == 1 else {}
        return row

    def _fitting(self, kind: NodeOrEdgeType, given: Mapping[str, Any]) -> dict[str, Any]:
        """Properties of the type; the others go into `rest`, or are refused by the load."""
        if self._rest is None or self._rest not in kind.properties:
            return dict(given)
        known = {n: v for n, v in given.items() if n in kind.properties}
        more = {n: v for n, v in given.items() if n not in known}
        return known | ({self._rest: json.dumps(more, default=str)} if more else {})

    def _load(self, records: Mapping[str, list[dict[str, Any]]]) -> None:
        if records:
            self._graph.load(dict(records), branch=self._branch, actor=self._actor, message=MESSAGE)

    def delete(
        self,
        entity_names: list[str] | None = None,
        relation_names: list[str] | None = None,
        properties: dict[str, Any] | None = None,
        ids: list[str] | None = None,
    ) -> None:
        """Delete nodes with their edges, and all edges of the types named, as one commit."""
        catalog = self._catalog
        doomed: dict[str, list[str]] = {}
        wanted = [*(entity_names or ()), *(ids or ())]
        if wanted or properties:
            for found in self._found(properties, wanted or None):
                doomed.setdefault(found["type"], []).append(found["id"])
        statements = [f"delete {name} where id in $i_{name}" for name in doomed]
        statements += [
            f"delete {edge.name} where from is not null"
            for edge in (self._edges(catalog, relation_names) if relation_names else ())
        ]
        if statements:
            declared = ", ".join(f"$i_{name}: [String]" for name in doomed)
            self._graph.mutate(
                f"query q({declared}) {{ {' '.join(statements)} }}",
                {f"i_{name}": found for name, found in doomed.items()},
                branch=self._branch,
                actor=self._actor,
                message=MESSAGE,
            )


def _node(found: Mapping[str, Any], rest: str | None) -> LabelledNode:
    """A node of the graph as LlamaIndex knows them: one with a text is a chunk."""
    properties = {n: v for n, v in found["properties"].items() if v is not None}
    if rest is not None and isinstance(properties.get(rest), str):
        properties |= json.loads(properties.pop(rest))
    if TEXT in properties:
        text = str(properties.pop(TEXT))
        return ChunkNode(text=text, id_=found["id"], label=found["type"], properties=properties)
    return EntityNode(name=found["id"], label=found["type"], properties=properties)
