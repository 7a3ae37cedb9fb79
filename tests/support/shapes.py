"""Schemas compared by what they say."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from omnigraph.lang.schema import SchemaIR
from omnigraph.model.catalog import EdgeType, EntityType, InterfaceType, NodeType

T = TypeVar("T", InterfaceType, NodeType, EdgeType)


def shape(ir: SchemaIR) -> SchemaIR:
    """The schema without the identities of its parts."""
    return SchemaIR(
        tuple(_bare(kind) for kind in ir.interfaces),
        tuple(_bare(kind) for kind in ir.nodes),
        tuple(_bare(kind) for kind in ir.edges),
    )


def _bare(kind: T) -> T:
    properties = {n: replace(p, property_id=0) for n, p in kind.properties.items()}
    if isinstance(kind, EntityType):
        key = None if kind.key is None else tuple(sorted(kind.key))
        return replace(kind, type_id=0, table_id="", properties=properties, key=key)
    return replace(kind, type_id=0, properties=properties)
