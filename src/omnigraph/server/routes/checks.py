"""Checks of texts before they are run, and the schema as data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeVar

from omnigraph.agents.stored import StoredQuery
from omnigraph.core.snapshot import Snapshot
from omnigraph.lang.diagnostics import Diagnostics, LanguageError
from omnigraph.lang.languages import check_cypher, is_cypher_text
from omnigraph.lang.query import parse_queries
from omnigraph.lang.query.check import check
from omnigraph.lang.schema import lint_schema, parse_schema
from omnigraph.lang.schema.ast import NodeDecl, PropertyDecl
from omnigraph.lang.source import Source
from omnigraph.model.catalog import (
    Catalog,
    EdgeType,
    EntityType,
    NodeOrEdgeType,
    NodeType,
    Property,
)
from omnigraph.model.names import MAIN
from omnigraph.policy.guard import Need
from omnigraph.server.request import Answer, HttpCall
from omnigraph.server.routes.reading import read_at
from omnigraph.statements import named_place
from omnigraph.values.spelling import to_json
from omnigraph.wire.answers import CheckOutput
from omnigraph.wire.requests import QueryCheckRequest, SchemaCheckRequest
from omnigraph.write.maintain import index_states

T = TypeVar("T")

# --- texts -------------------------------------------------------------------------------------------------------


def check_query(call: HttpCall) -> Answer:
    """All diagnostics of a text of queries, and the parameters of each query."""
    request: QueryCheckRequest = call.body
    catalog = call.snapshot(*_place(request)).catalog
    if is_cypher_text(request.query):
        return Answer(_cypher_checked(request.query, catalog))
    try:
        tree = parse_queries(request.query, bare=True)
    except LanguageError as broken:
        return Answer(CheckOutput([d.to_json() for d in broken.diagnostics], []))
    diagnostics = Diagnostics(Source(request.query))
    for query in tree.queries:
        check(query, catalog, diagnostics)
    described = [StoredQuery.of(request.query, query).to_json() for query in tree.queries]
    return Answer(CheckOutput([d.to_json() for d in diagnostics.sorted()], described))


def check_needs(call: HttpCall) -> Iterable[Need]:
    """Reading the branch that is named in the request or, with USE, in the text."""
    return read_at(call, *_place(call.body))


def _place(request: QueryCheckRequest) -> tuple[str, str | None]:
    """The branch and the point; an unfinished text names none yet."""
    branch = request.branch or MAIN
    try:
        named, point = named_place(request.query, None, branch, request.at)
    except LanguageError:
        return branch, request.at
    return named, None if point is None else str(point)


def _cypher_checked(text: str, catalog: Catalog) -> CheckOutput:
    """The diagnostics of a Cypher text; it is described if it can be parsed."""
    found = [d.to_json() for d in check_cypher(text, catalog)]
    try:
        described = [StoredQuery.of_cypher(text, "cypher").to_json()]
    except LanguageError:
        described = []
    return CheckOutput(found, described)


def check_schema(call: HttpCall) -> Answer:
    """All diagnostics of the text of a schema."""
    request: SchemaCheckRequest = call.body
    return Answer(CheckOutput([d.to_json() for d in lint_schema(request.schema_source)], []))


# --- the schema in force ---------------------------------------------------------------------------------------------


def catalog(call: HttpCall) -> Answer:
    """The types in force: properties, rules, indices with their coverage, and row counts."""
    snapshot = call.snapshot(call.query.branch, call.query.at)
    found = snapshot.catalog
    written = _declared(call.unguarded.repository.schema(snapshot.commit.schema).stored.source)
    return Answer(
        {
            "graph_commit_id": snapshot.commit_id,
            "nodes": [_node(snapshot, kind, written) for kind in _in(found.nodes, written["node"])],
            "edges": [_edge(snapshot, kind, written) for kind in _in(found.edges, written["edge"])],
            "interfaces": list(_interfaces(found, written)),
        },
        commit=snapshot.commit_id,
    )


Declared = Mapping[str, Mapping[str, Sequence[str]]]


@lru_cache(maxsize=64)
def _declared(source: str) -> Declared:
    """Types by kind as they were written, each with its properties: those of its interfaces come first."""
    found: dict[str, dict[str, list[str]]] = {"interface": {}, "node": {}, "edge": {}}
    declarations = parse_schema(source).declarations
    for each in declarations:
        members = [m for m in each.members if isinstance(m, PropertyDecl)]
        found[each.kind][each.name.text] = [member.name.text for member in members]
    for each in declarations:
        if isinstance(each, NodeDecl):
            inherited = [p for i in each.implements for p in found["interface"].get(i.text, ())]
            found["node"][each.name.text][:0] = inherited
    return found


def _in(named: Mapping[str, T], order: Iterable[str]) -> list[T]:
    """Values in the order of the given names; the others come last, by name."""
    places = {name: place for place, name in reversed([*enumerate(order)])}
    names = sorted(named, key=lambda name: (places.get(name, len(places)), name))
    return [named[name] for name in names]


def _node(snapshot: Snapshot, kind: NodeType, written: Declared) -> dict[str, Any]:
    return {**_type(snapshot, kind, "node", written), "implements": list(kind.implements)}


def _edge(snapshot: Snapshot, kind: EdgeType, written: Declared) -> dict[str, Any]:
    ends = {"from": kind.from_type, "to": kind.to_type, "cardinality": str(kind.cardinality)}
    return {**_type(snapshot, kind, "edge", written), **ends}


def _type(snapshot: Snapshot, kind: NodeOrEdgeType, word: str, written: Declared) -> dict[str, Any]:
    return {
        "kind": word,
        "name": kind.name,
        "description": kind.description,
        "count": snapshot.entry(kind.table_id).rows,
        "key": list(kind.key or ()),
        "properties": [
            _property(p) for p in _in(kind.properties, written[word].get(kind.name, ()))
        ],
        "uniques": [list(group) for group in kind.uniques],
        "ranges": [
            {"property": r.property, "minimum": r.minimum, "maximum": r.maximum}
            for r in kind.ranges
        ],
        "checks": [{"property": c.property, "pattern": c.pattern} for c in kind.checks],
        "declared_indices": [list(group) for group in kind.indices if _has_effect(kind, group)],
        "indices": [index.to_json() for index in index_states(snapshot, kind)],
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


def _has_effect(kind: EntityType, group: tuple[str, ...]) -> bool:
    """Whether an index is kept for some member: lists are accepted, but not indexed."""
    known = [kind.properties[name] for name in group if name in kind.properties]
    return not known or any(prop.index_kinds for prop in known)


def _interfaces(found: Catalog, written: Declared) -> Iterator[dict[str, Any]]:
    for kind in _in(found.interfaces, written["interface"]):
        properties = _in(kind.properties, written["interface"].get(kind.name, ()))
        yield {
            "name": kind.name,
            "description": kind.description,
            "properties": [_property(p) for p in properties],
        }
