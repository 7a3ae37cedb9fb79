"""Procedures that return metadata: about the schema, its indices and the history.

Their rows are computed when the query runs, with the caller's rights, and passed to it as a list of maps. This module
defines what each takes and yields. Functions of the schema:

- `omnigraph.schema.nodes()`, `omnigraph.schema.relationships()`, `omnigraph.schema.types()`,
  `omnigraph.schema.properties()`
- `db.labels()`, `db.relationshipTypes()`, `db.propertyKeys()`: as other products have them

Those about what is stored use the methods of a graph (`omnigraph.procedures`). Points are named as in `at=`; the
default is the state the query reads:

- `omnigraph.schema.indices()`: each index, how many rows it covers and how large it is
- `omnigraph.history.log(limit, at)`: the commits that led there, newest first
- `omnigraph.history.diff(from, to, limit, skip)`: the rows that differ between two points
- `omnigraph.history.entity(type, id, limit, at)`: the commits that changed a node or relationship, newest first
- `omnigraph.history.blame(type, id, at)`: the commit each of its properties is from
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from omnigraph.lang import ir
from omnigraph.lang.cypher import types
from omnigraph.lang.cypher.scope import labels_of_edge
from omnigraph.model.catalog import Catalog
from omnigraph.model.frozen import frozen
from omnigraph.model.types import PropType

Facts = list[tuple[Any, ...]]
Fields = tuple[tuple[str, ir.ValueType], ...]
TEXT, TEXTS = types.STRING, ir.STRINGS.with_nullable(True)
REQUIRED = object()


@frozen
class Argument:
    """A value a procedure takes, the same for all rows."""

    name: str
    type: PropType
    default: Any = REQUIRED


@frozen
class MetadataProcedure:
    """What a procedure takes and yields; `facts` computes its rows from the schema, if it can."""

    name: str
    fields: Fields
    args: tuple[Argument, ...] = ()
    facts: Callable[[Catalog], Facts] | None = None

    @property
    def fewest(self) -> int:
        return sum(arg.default is REQUIRED for arg in self.args)


# --- the schema ----------------------------------------------------------------------------------------------------


def _nodes(catalog: Catalog) -> Facts:
    return [
        (n.name, list(n.implements), list(n.properties), list(n.key or ()))
        for n in catalog.nodes.values()
    ]


def _relationships(catalog: Catalog) -> Facts:
    return [
        (labels_of_edge(e)[-1], e.from_type, e.to_type, list(e.properties))
        for e in catalog.edges.values()
    ]


def _types(catalog: Catalog) -> Facts:
    kinds = (("node", catalog.nodes), ("relationship", catalog.edges))
    found: Facts = [(name, kind) for kind, named in kinds for name in sorted(named)]
    return found + [(name, "interface") for name in sorted(catalog.interfaces)]


def _properties(catalog: Catalog) -> Facts:
    return [
        (kind.name, p.name, str(p.type.with_nullable(False)), p.type.nullable)
        for kind in catalog.entities()
        for p in kind.properties.values()
    ]


def _labels(catalog: Catalog) -> Facts:
    return [(name,) for name in sorted((*catalog.nodes, *catalog.interfaces))]


def _relationship_types(catalog: Catalog) -> Facts:
    return [(name,) for name in sorted({labels_of_edge(e)[-1] for e in catalog.edges.values()})]


def _keys(catalog: Catalog) -> Facts:
    return [(name,) for name in sorted({p for kind in catalog.entities() for p in kind.properties})]


def _texts(*names: str) -> Fields:
    return tuple((name, TEXT) for name in names)


SCHEMA = (
    MetadataProcedure(
        "omnigraph.schema.nodes",
        (*_texts("label"), ("interfaces", TEXTS), ("properties", TEXTS), ("key", TEXTS)),
        facts=_nodes,
    ),
    MetadataProcedure(
        "omnigraph.schema.relationships",
        (*_texts("type", "start", "end"), ("properties", TEXTS)),
        facts=_relationships,
    ),
    MetadataProcedure("omnigraph.schema.types", _texts("name", "kind"), facts=_types),
    MetadataProcedure(
        "omnigraph.schema.properties",
        (*_texts("owner", "property", "type"), ("nullable", types.BOOL)),
        facts=_properties,
    ),
    MetadataProcedure("db.labels", _texts("label"), facts=_labels),
    MetadataProcedure(
        "db.relationshipTypes", _texts("relationshipType"), facts=_relationship_types
    ),
    MetadataProcedure("db.propertyKeys", _texts("propertyKey"), facts=_keys),
)


# --- what is stored ---------------------------------------------------------------------------------------------------

WHEN = ("time", types.DATETIME)
COMMIT: Fields = (*_texts("commit"), WHEN, *_texts("branch", "kind", "actor", "message"))
CHANGE: Fields = (*_texts("operation"), ("properties", TEXTS), *_texts("before", "after"))
AT = Argument("at", TEXT, None)
LIMIT = Argument("limit", types.I64, 50)
TYPE, ID = Argument("type", TEXT), Argument("id", TEXT)

STORED = (
    MetadataProcedure(
        "omnigraph.schema.indices",
        (
            *_texts("owner", "property", "kind"),
            ("rows", types.I64),
            ("covered", types.I64),
            ("bytes", types.I64),
        ),
    ),
    MetadataProcedure("omnigraph.history.log", (*COMMIT, ("parents", TEXTS)), (LIMIT, AT)),
    MetadataProcedure(
        "omnigraph.history.diff",
        (*_texts("type", "id"), *CHANGE),
        (Argument("from", TEXT), Argument("to", TEXT), LIMIT, Argument("skip", types.I64, 0)),
    ),
    MetadataProcedure("omnigraph.history.entity", (*COMMIT, *CHANGE), (TYPE, ID, LIMIT, AT)),
    MetadataProcedure(
        "omnigraph.history.blame",
        (*_texts("property", "value"), *COMMIT, *_texts("via")),
        (TYPE, ID, AT),
    ),
)
