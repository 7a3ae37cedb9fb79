"""Comparing columns by value, exactly: numbers of different kinds are never rounded to each other."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.evaluate import compare as compare_values
from omnigraph.model.predicates import Op
from omnigraph.read.arrays import Mask, Value

KERNELS: dict[Op, Callable[[Any, Any], Any]] = {
    Op.EQ: pc.equal,
    Op.NE: pc.not_equal,
    Op.LT: pc.less,
    Op.LE: pc.less_equal,
    Op.GT: pc.greater,
    Op.GE: pc.greater_equal,
}
FLIPPED = {Op.EQ: Op.EQ, Op.NE: Op.NE, Op.LT: Op.GT, Op.LE: Op.GE, Op.GT: Op.LT, Op.GE: Op.LE}
EXACT_IN_FLOAT = 2**53
WIDE = pa.decimal128(20, 0)  # holds every 64-bit integer, signed or not


def compare(op: Op, left: Value, right: Value) -> Value:
    """The three-valued comparison of two columns, or of a column and a constant."""
    if isinstance(left, pa.Scalar) and not isinstance(right, pa.Scalar):
        return compare(FLIPPED[op], right, left)
    if left.type == right.type:
        return KERNELS[op](left, right)
    if not (_is_number(left.type) and _is_number(right.type)):
        return KERNELS[op](left, right.cast(left.type))
    if isinstance(right, pa.Scalar):
        return _with_constant(op, left, right.as_py())
    return _numbers(op, left, right)


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _numbers(op: Op, left: pa.Array, right: pa.Array) -> pa.Array:
    floats = pa.types.is_floating(left.type), pa.types.is_floating(right.type)
    if all(floats):
        return KERNELS[op](left.cast(pa.float64()), right.cast(pa.float64()))
    if not any(floats):
        mixed = pa.types.is_uint64(left.type) or pa.types.is_uint64(right.type)
        wide = WIDE if mixed else pa.int64()
        return KERNELS[op](left.cast(wide), right.cast(wide))
    if floats[0]:
        return _numbers(FLIPPED[op], right, left)
    return _integers_with_floats(op, left, right.cast(pa.float64()))


def _integers_with_floats(op: Op, left: pa.Array, right: pa.Array) -> pa.Array:
    near = KERNELS[op](left.cast(pa.float64(), safe=False), right)
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
    low, high = _range(left.type)
    if low <= value <= high:
        return KERNELS[op](left, pa.scalar(value, left.type))
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
    return KERNELS[op](wide, pa.scalar(float(value), pa.float64()))


def _floats_with_integer(op: Op, left: pa.Array, value: int) -> pa.Array:
    """An integer between two floats is replaced by its neighbour and the comparison that then means the same."""
    near = float(value)
    if int(near) == value:
        return KERNELS[op](left, near)
    if op in (Op.EQ, Op.NE):
        return _always(left, op is Op.NE)
    below = near < value
    less = op in (Op.LT, Op.LE)
    exact = (Op.LE if below else Op.LT) if less else (Op.GT if below else Op.GE)
    return KERNELS[exact](left, near)


def _range(kind: pa.DataType) -> tuple[int, int]:
    info = np.iinfo(kind.to_pandas_dtype())
    return int(info.min), int(info.max)


def _always(left: pa.Array, truth: bool) -> pa.Array:
    mask: Mask | None = left.is_null().to_numpy(zero_copy_only=False) if left.null_count else None
    return pa.array(np.full(len(left), truth), mask=mask)
