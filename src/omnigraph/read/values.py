"""Columns of bound entities, and whole entities and paths as values."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from omnigraph.lang import ir
from omnigraph.model.catalog import EdgeType, NodeOrEdgeType
from omnigraph.model.columns import arrow_type
from omnigraph.read.arrays import Ints, Positions
from omnigraph.read.context import Context
from omnigraph.read.rows import Entities, Paths


def entity_column(entities: Entities, name: str, ctx: Context) -> pa.Array:
    """A column of the bound entities; null where unbound."""
    if not entities.types:
        return pa.nulls(len(entities.position), pa.string())
    if entities.code is None:
        return ctx.columns(entities.types[0], entities.edge).take(name, entities.position)
    return by_type(
        entities, lambda i, where: ctx.columns(entities.types[i], entities.edge).take(name, where)
    )


def load(entities: Entities, names: Sequence[str], ctx: Context) -> None:
    """Load columns of the bound entities, as far as they are wanted whole."""
    for i, kind in enumerate(entities.types):
        if entities.of_type(i).any():
            columns = ctx.columns(kind, entities.edge)
            columns.load(dict.fromkeys(names), len(entities.position))


def by_type(entities: Entities, fetch: Callable[[int, Positions], pa.Array]) -> pa.Array:
    """A column assembled from the parts of each type for its own rows."""
    parts, order = [], []
    for i in range(len(entities.types)):
        where = np.flatnonzero(entities.of_type(i))
        if len(where):
            parts.append(fetch(i, entities.position[where]))
            order.append(where)
    if not parts:
        kind = fetch(0, entities.position[:0]).type
        return pa.nulls(len(entities.position), kind)
    found = pa.concat_arrays(parts) if len(parts) > 1 else parts[0]
    place = np.full(len(entities.position), -1, np.int64)
    place[np.concatenate(order)] = np.arange(len(found))
    return found.take(pa.array(place, mask=place < 0))


# --- whole entities ----------------------------------------------------------------------------------------------


def entities(found: Entities, wanted: ir.EntityValue, ctx: Context) -> pa.Array:
    """Each entity as one value: `id`, `type`, for edges `from` and `to`, and the properties of any of the types."""
    kinds = [ctx.kind(name, found.edge) for name in found.types]
    if not kinds:
        return pa.nulls(len(found.position), pa.string())
    every = [ctx.kind(name, found.edge) for name in wanted.types]
    shape = plain_shape(every) if wanted.plain else entity_shape(every)
    if found.code is None:
        value = _structs(kinds[0], found.position, shape, found.edge, ctx)
        return _null_where(value, found.position)
    return by_type(found, lambda i, where: _structs(kinds[i], where, shape, found.edge, ctx))


def entity_shape(kinds: list[NodeOrEdgeType]) -> dict[str, pa.DataType]:
    """The fields of entities of these types, in order. Blobs are left out."""
    names = ["id", "type"] + (["from", "to"] if isinstance(kinds[0], EdgeType) else [])
    shape = dict.fromkeys(names, pa.string())
    for kind in kinds:
        for prop in kind.properties.values():
            if not prop.type.is_blob:
                shape.setdefault(prop.name, arrow_type(prop.type))
    return shape


def plain_shape(kinds: list[NodeOrEdgeType]) -> dict[str, pa.DataType]:
    """The fields of nodes that a bare variable returns, in order. Blobs and Vectors are left out."""
    shape = dict.fromkeys(["@id", "@type"] if len(kinds) > 1 else ["@id"], pa.string())
    for kind in kinds:
        for prop in kind.properties.values():
            if not prop.type.is_blob and not prop.type.is_vector:
                shape.setdefault(prop.name, arrow_type(prop.type))
    return shape


def _structs(
    kind: NodeOrEdgeType,
    positions: Positions,
    shape: dict[str, pa.DataType],
    edge: bool,
    ctx: Context,
) -> pa.Array:
    columns = ctx.columns(kind.name, edge)
    stored = {"@id": "id"} | ({"from": "src", "to": "dst"} if edge else {})
    arrays = []
    for name, type_ in shape.items():
        if name in ("type", "@type"):
            arrays.append(pa.repeat(pa.scalar(kind.name), len(positions)))
        elif name in ("id", "@id", "from", "to") or name in kind.properties:
            arrays.append(columns.take(stored.get(name, name), positions))
        else:
            arrays.append(pa.nulls(len(positions), type_))
    fields = [pa.field(name, a.type) for name, a in zip(shape, arrays, strict=True)]
    return pa.StructArray.from_arrays(arrays, fields=fields)


def _null_where(value: pa.Array, positions: Positions) -> pa.Array:
    if not len(positions) or positions.min() >= 0:
        return value
    index = np.arange(len(positions))
    return value.take(pa.array(index, mask=positions < 0))


# --- paths -------------------------------------------------------------------------------------------------------


def paths(found: Paths, ctx: Context) -> pa.Array:
    """Each path as one value: `nodes`, `edges` and `length`."""
    parts = {part.value: path_part(found, part, ctx) for part in ir.PathPart}
    fields = [pa.field(name, a.type) for name, a in parts.items()]
    mask = pa.array(found.length < 0)
    return pa.StructArray.from_arrays(list(parts.values()), fields=fields, mask=mask)


def path_part(found: Paths, part: ir.PathPart, ctx: Context) -> pa.Array:
    match part:
        case ir.PathPart.LENGTH:
            return pa.array(found.length, mask=found.length < 0)
        case ir.PathPart.NODES:
            return _id_lists(
                found.nodes, np.where(found.length < 0, 0, found.length + 1), found, ctx
            )
        case ir.PathPart.EDGES:
            return _id_lists(found.edges, np.maximum(found.length, 0), found, ctx)


def _id_lists(members: Entities | None, counts: Ints, found: Paths, ctx: Context) -> pa.Array:
    assert members is not None  # noqa: S101 - the planner keeps steps whenever they are read
    offsets = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(counts, out=offsets[1:])
    ids = entity_column(members, "id", ctx)
    lists = pa.ListArray.from_arrays(pa.array(offsets), ids)
    if not len(counts) or found.length.min() >= 0:
        return lists
    index = np.arange(len(counts))
    return lists.take(pa.array(index, mask=found.length < 0))
