"""The Arrow columns of a type's table. Needs pyarrow, so nothing that must start quickly imports it."""

from __future__ import annotations

from typing import TypeVar

import pyarrow as pa

from omnigraph.model.catalog import NodeOrEdgeType, NodeType
from omnigraph.model.types import PropType, Scalar

SCALARS: dict[Scalar, pa.DataType] = {
    Scalar.STRING: pa.string(),
    Scalar.BLOB: pa.large_binary(),
    Scalar.BOOL: pa.bool_(),
    Scalar.I32: pa.int32(),
    Scalar.I64: pa.int64(),
    Scalar.U32: pa.uint32(),
    Scalar.U64: pa.uint64(),
    Scalar.F32: pa.float32(),
    Scalar.F64: pa.float64(),
    Scalar.DATE: pa.date32(),
    Scalar.DATETIME: pa.timestamp("us", tz="UTC"),
}

PROPERTY_TYPES = {kind: PropType(scalar, nullable=True) for scalar, kind in SCALARS.items()}

# Marks a column whose bytes the storage keeps beside the table.
BLOB = {b"omnigraph.blob": b"true"}


def arrow_type(kind: PropType) -> pa.DataType:
    """The Arrow type that stores values of `kind`."""
    if kind.vector_dim is not None:
        return pa.list_(pa.field("item", pa.float32(), nullable=True), kind.vector_dim)
    if kind.is_list:
        return pa.list_(pa.field("item", SCALARS[kind.scalar], nullable=True))
    return SCALARS[kind.scalar]


def property_type(kind: pa.DataType) -> PropType:
    """The type of single values that are stored as `kind`."""
    return PROPERTY_TYPES[kind]


def arrow_schema(kind: NodeOrEdgeType) -> pa.Schema:
    """The columns of a type's table: `id` (and `src`, `dst`), then the properties by name."""
    structural = ["id"] if isinstance(kind, NodeType) else ["id", "src", "dst"]
    fields = [pa.field(name, pa.string(), nullable=False) for name in structural]
    # Nullability is a rule of the schema, judged on the final row; the column itself stays nullable, so that relaxing
    # the rule never rewrites a table.
    fields += [
        pa.field(
            p.name, arrow_type(p.type), nullable=True, metadata=BLOB if p.type.is_blob else None
        )
        for p in kind.properties.values()
    ]
    return pa.schema(fields)


def one_array(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """A column as one array; not copied if it is one already."""
    if not isinstance(values, pa.ChunkedArray):
        return values
    return values.chunk(0) if values.num_chunks == 1 else values.combine_chunks()


Values = TypeVar("Values", pa.Array, pa.ChunkedArray)


def fitted(values: Values, kind: pa.DataType) -> Values:
    """Values in another type; null if not exactly representable."""
    import pyarrow.compute as pc

    if values.type == kind:
        return values
    narrow = values.cast(kind, safe=False)
    back = narrow.cast(values.type, safe=False)
    if pa.types.is_nested(kind):
        pairs = zip(back.to_pylist(), values.to_pylist(), strict=True)
        fits = pa.array([a == b for a, b in pairs], pa.bool_())
    else:
        fits = pc.fill_null(pc.equal(back, values), True)
        if pa.types.is_floating(kind):
            fits = pc.or_(fits, pc.fill_null(pc.is_nan(values), False))
    return pc.if_else(fits, narrow, pa.scalar(None, kind))
