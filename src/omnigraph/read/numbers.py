"""Comparing columns by value, exactly: numbers of different kinds are never rounded to each other."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.lang.evaluate import compare as compare_values
from omnigraph.model import ordering
from omnigraph.model.ordering import FLIPPED, integer_range, is_number
from omnigraph.model.predicates import Op
from omnigraph.read.arrays import Mask, Value

EXACT_IN_FLOAT = 2**53
WIDE = pa.decimal128(20, 0)  # holds every 64-bit integer, signed or not


def compare(op: Op, left: Value, right: Value) -> Value:
    """The three-valued comparison of two columns, or of a column and a constant."""
    if isinstance(left, pa.Scalar) and not isinstance(right, pa.Scalar):
        return compare(FLIPPED[op], right, left)
    if left.type == right.type:
        return ordering.compare(op, left, right)
    if not (is_number(left.type) and is_number(right.type)):
        return ordering.compare(op, left, right.cast(left.type))
    if isinstance(right, pa.Scalar):
        return _with_constant(op, left, right.as_py())
    return _numbers(op, left, right)


def _numbers(op: Op, left: pa.Array, right: pa.Array) -> pa.Array:
    floats = pa.types.is_floating(left.type), pa.types.is_floating(right.type)
    if all(floats):
        return ordering.compare(op, left.cast(pa.float64()), right.cast(pa.float64()))
    if not any(floats):
        mixed = pa.types.is_uint64(left.type) or pa.types.is_uint64(right.type)
        wide = WIDE if mixed else pa.int64()
        return ordering.compare(op, left.cast(wide), right.cast(wide))
    if floats[0]:
        return _numbers(FLIPPED[op], right, left)
    return _integers_with_floats(op, left, right.cast(pa.float64()))


def _integers_with_floats(op: Op, left: pa.Array, right: pa.Array) -> pa.Array:
    near = ordering.compare(op, left.cast(pa.float64(), safe=False), right)
    if left.type.bit_width < 64:
        return near
    values = left.fill_null(0).to_numpy(zero_copy_only=False)
    large = np.flatnonzero((values >= EXACT_IN_FLOAT) | (values <= -EXACT_IN_FLOAT))
    if not len(large):
        return near
    # Rounding may have made different numbers equal; these few are compared as Python compares them.
    exact = near.to_pylist()
    for i in large.tolist():
        a, b = left[i].as_py(), right[i].as_py()
        exact[i] = None if a is None or b is None else compare_values(op, a, b)
    return pa.array(exact, pa.bool_())


def _with_constant(op: Op, left: pa.Array, value: Any) -> pa.Array:
    if value is None:
        return pa.nulls(len(left), pa.bool_())
    if pa.types.is_floating(left.type):
        return _floats_with_constant(op, left, value)
    if isinstance(value, float):
        return _integers_with_float(op, left, value)
    low, high = integer_range(left.type)
    if low <= value <= high:
        return ordering.compare(op, left, pa.scalar(value, left.type))
    return _always(left, compare_values(op, 0, value))


def _integers_with_float(op: Op, left: pa.Array, value: float) -> pa.Array:
    if not math.isfinite(value):
        return _always(left, compare_values(op, 0, value))
    if value == math.floor(value):
        return _with_constant(op, left, int(value))
    match op:
        case Op.EQ | Op.NE:
            return _always(left, op is Op.NE)
        case Op.LT | Op.LE:
            return _with_constant(Op.LE, left, math.floor(value))
        case _:
            return _with_constant(Op.GT, left, math.floor(value))


def _floats_with_constant(op: Op, left: pa.Array, value: int | float) -> pa.Array:
    wide = left.cast(pa.float64())
    if isinstance(value, int) and abs(value) > EXACT_IN_FLOAT:
        return _floats_with_integer(op, wide, value)
    return ordering.compare(op, wide, pa.scalar(float(value), pa.float64()))


def _floats_with_integer(op: Op, left: pa.Array, value: int) -> pa.Array:
    """An integer between two floats is replaced by its neighbour and the comparison that then means the same."""
    near = float(value)
    if int(near) == value:
        return ordering.compare(op, left, pa.scalar(near))
    if op in (Op.EQ, Op.NE):
        return _always(left, op is Op.NE)
    below = near < value
    less = op in (Op.LT, Op.LE)
    exact = (Op.LE if below else Op.LT) if less else (Op.GT if below else Op.GE)
    return ordering.compare(exact, left, pa.scalar(near))


def _always(left: pa.Array, truth: bool) -> pa.Array:
    mask: Mask | None = left.is_null().to_numpy(zero_copy_only=False) if left.null_count else None
    return pa.array(np.full(len(left), truth), mask=mask)
