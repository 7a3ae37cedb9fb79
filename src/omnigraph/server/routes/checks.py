"""What the languages say about a text before it is run, and the schema as data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from omnigraph.core.snapshot import Snapshot
from omnigraph.lang.diagnostics import Diagnostics, LanguageError
from omnigraph.lang.query import parse_queries
from omnigraph.lang.query.check import check
from omnigraph.lang.schema import lint_schema
from omnigraph.lang.source import Source
from omnigraph.model.catalog import Catalog, EdgeType, EntityType, NodeType, Property
from omnigraph.read.result import to_json
from omnigraph.server.calls import Answer, Call
from omnigraph.server.stored import StoredQuery
from omnigraph.server.wire import CheckOutput, QueryCheckRequest, SchemaCheckRequest

# --- texts -------------------------------------------------------------------------------------------------------


def check_query(call: Call) -> Answer:
    """Everything the compiler says about a text of queries, and what each of them takes."""
    asked: QueryCheckRequest = call.body
    catalog = call.snapshot(asked.branch, asked.at).catalog
    try:
        tree = parse_queries(asked.query, bare=True)
    except LanguageError as broken:
        return Answer(CheckOutput([d.to_json() for d in broken.diagnostics], []))
    diagnostics = Diagnostics(Source(asked.query))
    for query in tree.queries:
        check(query, catalog, diagnostics)
    described = [StoredQuery(asked.query, query).to_json() for query in tree.queries]
    return Answer(CheckOutput([d.to_json() for d in diagnostics.sorted()], described))


def check_schema(call: Call) -> Answer:
    """Everything the compiler says about the text of a schema."""
    asked: SchemaCheckRequest = call.body
    return Answer(CheckOutput([d.to_json() for d in lint_schema(asked.schema_source)], []))


# --- the schema in force ---------------------------------------------------------------------------------------------


def catalog(call: Call) -> Answer:
    """The types in force: properties, rules, indices with their coverage, and how many rows there are."""
    snapshot = call.snapshot(call.query.branch, call.query.at)
    found = snapshot.catalog
    return Answer(
        {
            "graph_commit_id": snapshot.commit_id,
            "nodes": [_node(snapshot, found.nodes[name]) for name in sorted(found.nodes)],
            "edges": [_edge(snapshot, found.edges[name]) for name in sorted(found.edges)],
            "interfaces": list(_interfaces(found)),
        },
        commit=snapshot.commit_id,
    )


def _node(snapshot: Snapshot, kind: NodeType) -> dict[str, Any]:
    return {**_type(snapshot, kind, "node"), "implements": list(kind.implements)}


def _edge(snapshot: Snapshot, kind: EdgeType) -> dict[str, Any]:
    ends = {"from": kind.from_type, "to": kind.to_type, "cardinality": str(kind.cardinality)}
    return {**_type(snapshot, kind, "edge"), **ends}


def _type(snapshot: Snapshot, kind: EntityType, word: str) -> dict[str, Any]:
    return {
        "kind": word,
        "name": kind.name,
        "description": kind.description,
        "count": snapshot.entry(kind.table_id).rows,
        "key": list(kind.key or ()),
        "properties": [_property(p) for p in kind.properties.values()],
        "uniques": [list(group) for group in kind.uniques],
        "ranges": [
            {"property": r.property, "minimum": r.minimum, "maximum": r.maximum}
            for r in kind.ranges
        ],
        "checks": [{"property": c.property, "pattern": c.pattern} for c in kind.checks],
        "declared_indices": [list(group) for group in kind.indices],
        "indices": list(_indices(snapshot, kind)),
    }


def _property(prop: Property) -> dict[str, Any]:
    return {
        "name": prop.name,
        "type": str(prop.type).removesuffix("?"),
        "nullable": prop.type.nullable,
        "enum": None if prop.type.enum is None else list(prop.type.enum),
        "default": to_json(prop.default),
        "description": prop.description,
    }


def _indices(snapshot: Snapshot, kind: EntityType) -> Iterator[dict[str, Any]]:
    table = snapshot.table_of(kind)
    sizes = {f.fragment_id: f.physical_rows - f.deleted_rows for f in table.fragments()}
    for index in sorted(table.indices(), key=lambda index: index.column):
        covered = sum(sizes.get(i, 0) for i in index.covered_fragments)
        yield {
            "property": index.column,
            "kind": index.kind,
            "rows": sum(sizes.values()),
            "covered_rows": covered,
        }


def _interfaces(found: Catalog) -> Iterator[dict[str, Any]]:
    for name in sorted(found.interfaces):
        kind = found.interfaces[name]
        yield {
            "name": name,
            "description": kind.description,
            "properties": [_property(p) for p in kind.properties.values()],
        }
