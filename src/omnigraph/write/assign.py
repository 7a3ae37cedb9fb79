"""The values a mutation assigns, as columns of the property's type: widened where nothing is lost, else refused."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.model.catalog import Property
from omnigraph.model.columns import arrow_type
from omnigraph.model.types import FLOATS, INTEGER_RANGES, INTEGERS, PropType, Scalar
from omnigraph.validate.findings import shown
from omnigraph.write.input.exact import blob_bytes
from omnigraph.write.input.options import Options
from omnigraph.write.input.problems import Misfit


def column_of(values: Sequence[Any], prop: Property) -> pa.Array:
    """Single values as a column; raises `Misfit` for one that does not fit, with its row."""
    fitted = []
    for row, value in enumerate(values):
        try:
            fitted.append(fit(value, prop))
        except Misfit as misfit:
            misfit.row = row
            raise
    return pa.array(fitted, arrow_type(prop.type))


def converted(values: pa.Array, prop: Property) -> pa.Array:
    """A computed column in the property's type; raises `Misfit` likewise."""
    kind = arrow_type(prop.type)
    if values.type == kind:
        return values
    if prop.type.is_blob:
        return column_of(values.to_pylist(), prop)  # a text spells the bytes, as in an insert
    try:
        result = values.cast(kind)
    except pa.ArrowInvalid:
        result = None
    if result is None or (pa.types.is_floating(kind) and pc.any(pc.is_inf(result)).as_py()):
        return column_of(values.to_pylist(), prop)  # names the value that does not fit
    return result


def fit(value: Any, prop: Property) -> Any:
    """One value as the property holds it."""
    kind = prop.type
    if value is None:
        return None
    if kind.is_blob:
        return blob_bytes(value, prop.name, Options()) if isinstance(value, str) else value
    if kind.is_list or kind.is_vector:
        return [_fit_number(item, kind, prop.name) for item in value]
    return _fit_number(value, kind, prop.name)


def _fit_number(value: Any, kind: PropType, name: str) -> Any:
    if value is None or kind.scalar not in INTEGERS | FLOATS:
        return value
    number = _as_integer(value, kind) if kind.scalar in INTEGERS else _as_float(value, kind)
    if number is None:
        raise Misfit(f"{name} of type {kind} cannot hold {shown(value)}", name=name, value=value)
    return number


def _as_integer(value: int | float, kind: PropType) -> int | None:
    low, high = INTEGER_RANGES[kind.scalar]
    whole = isinstance(value, int) or value.is_integer()
    return int(value) if whole and low <= value <= high else None


def _as_float(value: int | float, kind: PropType) -> float | None:
    try:
        number = float(value)
        if kind.scalar is Scalar.F32:
            struct.pack("<f", number)
    except OverflowError:
        return None
    exact = isinstance(value, float) or int(number) == value
    return number if exact and math.isfinite(number) else None
