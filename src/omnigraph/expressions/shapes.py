"""The Arrow types of values of any type, and constants as columns; the types of properties are in `model.columns`."""

from __future__ import annotations

import pyarrow as pa

from omnigraph.lang import ir
from omnigraph.model.columns import arrow_type
from omnigraph.model.types import PropType

REFERENCE = pa.int64()
ENCODED = pa.binary()  # of temporal values, see `values.temporal.kinds`
TRAIL = pa.struct([("nodes", pa.list_(REFERENCE)), ("edges", pa.list_(REFERENCE))])


def arrow_shape(kind: ir.ValueType) -> pa.DataType:
    """The Arrow type of values of a type, as they are computed with; whole entities have none."""
    match kind:
        case PropType():
            return arrow_type(kind)
        case ir.TemporalValue():
            return ENCODED
        case ir.RefValue():
            return REFERENCE
        case ir.TrailValue():
            return TRAIL
        case ir.ListValue(item):
            return pa.list_(pa.field("item", arrow_shape(item)))
        case ir.MapValue(fields):
            return pa.struct([(name, arrow_shape(part)) for name, part in fields])
        case _:
            raise AssertionError(f"{kind} has no Arrow type")


def spread(value: pa.Scalar | pa.Array, n: int) -> pa.Array:
    """A constant as a column; a column as it is."""
    if not isinstance(value, pa.Scalar):
        return value
    if not n or not value.is_valid:  # Arrow does not repeat a list no times
        return pa.nulls(n, value.type)
    return pa.repeat(value, n)
