"""When values in Arrow columns are equal, and which is less.

Comparisons are three-valued: null makes them unknown. Numbers of different types compare by value and are never rounded
to each other. 0.0 equals -0.0. NaN satisfies no comparison: it is neither equal to, less nor greater than any number,
itself included, and `!=`, the negation of `=`, is true for it. For groups, distinct rows, look-ups and order NaN is the
same as itself and comes last: `canonical`, `is_in` and `same_as` work this way.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.expressions.scalar import compare as compare_values
from omnigraph.lang.ir import CompareOp as Op

Value = Any  # of an expression: a pyarrow Array, or a Scalar where it is the same for all rows
Mask = npt.NDArray[np.bool_]

KERNELS: dict[Op, Callable[[Any, Any], Any]] = {
    Op.EQ: pc.equal,
    Op.NE: pc.not_equal,
    Op.LT: pc.less,
    Op.LE: pc.less_equal,
    Op.GT: pc.greater,
    Op.GE: pc.greater_equal,
}
I64_MIN, I64_MAX, U64_MAX = -(2**63), 2**63 - 1, 2**64 - 1
FLOAT_MAX = int(sys.float_info.max)
EXACT_IN_FLOAT = 2**53
WIDE = pa.decimal128(20, 0)  # holds every 64-bit integer, signed or not


def is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def integer_range(kind: pa.DataType) -> tuple[int, int]:
    """The least and the greatest value of an integer type."""
    if pa.types.is_signed_integer(kind):
        return -(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1) - 1
    return 0, 2**kind.bit_width - 1


def to_mask(truth: pa.Array) -> Mask:
    """Where a three-valued column is true."""
    if truth.null_count:
        truth = truth.fill_null(False)
    found: Mask = truth.to_numpy(zero_copy_only=False)
    return found


# --- comparing -----------------------------------------------------------------------------------------------------


def compare(op: Op, left: Value, right: Value) -> Value:
    """The three-valued comparison of two columns, or of a column and a constant."""
    if isinstance(left, pa.Scalar) and not isinstance(right, pa.Scalar):
        return compare(op.flipped, right, left)
    if left.type == right.type:
        return KERNELS[op](left, right)
    if not (is_number(left.type) and is_number(right.type)):
        return KERNELS[op](left, right.cast(left.type))
    if isinstance(right, pa.Scalar):
        return compare_with(op, left, right.as_py())
    return _numbers(op, left, right)


def compare_with(op: Op, left: pa.Array, value: int | float | None) -> pa.Array:
    """The three-valued comparison of numbers with a constant of any type."""
    if value is None:
        return pa.nulls(len(left), pa.bool_())
    found = fit(op, value, left.type)
    if isinstance(found, bool):
        mask: Mask | None = None
        if left.null_count:
            mask = left.is_null().to_numpy(zero_copy_only=False)
        return pa.array(np.full(len(left), found), mask=mask)
    return KERNELS[found[0]](left, pa.scalar(found[1], left.type))


def _numbers(op: Op, left: pa.Array, right: pa.Array) -> pa.Array:
    floats = pa.types.is_floating(left.type), pa.types.is_floating(right.type)
    if all(floats):
        return KERNELS[op](left.cast(pa.float64()), right.cast(pa.float64()))
    if not any(floats):
        mixed = pa.types.is_uint64(left.type) or pa.types.is_uint64(right.type)
        wide = WIDE if mixed else pa.int64()
        return KERNELS[op](left.cast(wide), right.cast(wide))
    if floats[0]:
        return _numbers(op.flipped, right, left)
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


# --- a constant in the type of a column ----------------------------------------------------------------------------


def fit(op: Op, value: int | float, kind: pa.DataType) -> bool | tuple[Op, int | float]:
    """The comparison of numbers of a type with a constant of any type, as one with a constant of theirs.

    A truth value if it is the same for every number of the type.
    """
    if isinstance(value, float) and math.isnan(value):
        return op is Op.NE
    return (_fit_integer if pa.types.is_integer(kind) else _fit_float)(op, value, kind)


def _fit_integer(op: Op, value: int | float, kind: pa.DataType) -> bool | tuple[Op, int]:
    low, high = integer_range(kind)
    if value < low or value > high:
        return compare_values(op, 0, 1 if value > high else -1)
    whole = math.floor(value)
    if whole == value:
        return op, whole
    match op:  # strictly between two integers
        case Op.EQ | Op.NE:
            return op is Op.NE
        case Op.LT | Op.LE:
            return Op.LE, whole
        case Op.GT | Op.GE:
            return Op.GT, whole


def _fit_float(op: Op, value: int | float, kind: pa.DataType) -> bool | tuple[Op, float]:
    near = _rounded(value, kind)
    if near == value:  # Python compares ints and floats exactly
        return op, near
    above = near > value
    match op:  # no value of the type equals the constant, and `near` lies beside it
        case Op.EQ | Op.NE:
            return op is Op.NE
        case Op.LT | Op.LE:
            return Op.LT if above else Op.LE, near
        case Op.GT | Op.GE:
            return Op.GE if above else Op.GT, near


def _rounded(value: int | float, kind: pa.DataType) -> float:
    try:
        wide = float(value)
    except OverflowError:
        wide = math.inf if value > 0 else -math.inf
    if kind.bit_width == 64:
        return wide
    with np.errstate(over="ignore"):
        return float(np.float32(wide))


def members(values: Iterable[Any], kind: pa.DataType) -> pa.Array:
    """Those of some constants that a value of this type can be equal to, in the type. Numbers may be of any kind."""
    known = [value for value in values if value is not None]
    if not is_number(kind):
        return pa.array(known, kind)
    integers = [value for value in known if isinstance(value, int)]
    floats = [value for value in known if not isinstance(value, int) and not math.isnan(value)]
    beyond = [v for v in integers if not I64_MIN <= v <= U64_MAX]
    parts = [
        pa.array([v for v in integers if I64_MIN <= v <= I64_MAX], pa.int64()),
        pa.array([v for v in integers if I64_MAX < v <= U64_MAX], pa.uint64()),
        pa.array(floats + [float(v) for v in beyond if _is_float(v)], pa.float64()),
    ]
    return pa.concat_arrays([exactly(part, kind).drop_null() for part in parts])


def _is_float(value: int) -> bool:
    return abs(value) <= FLOAT_MAX and int(float(value)) == value


def exactly(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Numbers in another type; null where that type has no equal number."""
    if values.type == kind:
        return values
    known = values.is_valid().to_numpy(zero_copy_only=False)
    given = values.fill_null(0).to_numpy(zero_copy_only=False)
    with np.errstate(all="ignore"):
        if pa.types.is_integer(kind):
            found, fits = _as_integers(given, kind)
        else:
            found, fits = _as_floats(given, kind)
    return pa.array(found, kind, mask=~(known & fits))


def _as_integers(given: Any, kind: pa.DataType) -> tuple[Any, Any]:
    low, high = integer_range(kind)
    if given.dtype.kind == "f":
        fits = (given >= float(low)) & (given < float(high + 1)) & (np.floor(given) == given)
    else:
        own = np.iinfo(given.dtype)
        fits = (given >= max(low, int(own.min))) & (given <= min(high, int(own.max)))
    return np.where(fits, given, 0).astype(kind.to_pandas_dtype()), fits


def _as_floats(given: Any, kind: pa.DataType) -> tuple[Any, Any]:
    wide = given.astype(np.float64)
    fits = np.ones(len(given), np.bool_)
    if given.dtype.kind != "f":
        # An integer that rounds up to more than its type holds cannot be turned back, and differs from the float.
        below = wide < float(int(np.iinfo(given.dtype).max) + 1)
        fits = below & (np.where(below, wide, 0).astype(given.dtype) == given)
    found = wide.astype(kind.to_pandas_dtype())
    return found, fits & (found.astype(np.float64) == wide)


# --- the same value ------------------------------------------------------------------------------------------------


def canonical(values: pa.Array) -> pa.Array:
    """The same values, with those that are the same equal in their bits: one zero, and one NaN."""
    if not pa.types.is_floating(values.type):
        return values
    one_zero = pc.add(values, pa.scalar(0.0, values.type))
    return pc.if_else(pc.is_nan(one_zero), pa.scalar(math.nan, values.type), one_zero)


def is_in(column: pa.Array, values: pa.Array) -> pa.BooleanArray:
    """Whether each value is the same as one of some of its type; null where it is null."""
    found = pc.is_in(canonical(column), value_set=canonical(values.drop_null()))
    return found if not column.null_count else pc.if_else(column.is_valid(), found, None)


def same_as(column: pa.Array, one: pa.Scalar) -> pa.BooleanArray:
    """Whether each value is the same as one of its type, which is not null."""
    if pa.types.is_floating(column.type) and math.isnan(one.as_py()):
        return pc.is_nan(column)
    return pc.equal(column, one)


def can_equal(values: pa.Array) -> Mask:
    """Which values may be equal to another: null and NaN are equal to none."""
    if pa.types.is_floating(values.type):
        return ~to_mask(pc.is_nan(values).fill_null(True))
    found: Mask = values.is_valid().to_numpy(zero_copy_only=False)
    return found


# --- membership in lists -------------------------------------------------------------------------------------------


def is_one_of(item: pa.Array, values: Iterable[Any] | None, two_valued: bool) -> pa.Array:
    """Whether the item equals one of some constants, null for a null item or list; `two_valued`: false instead."""
    if values is None:
        return pa.array(np.zeros(len(item), np.bool_), mask=np.full(len(item), not two_valued))
    found = is_in(item, members(values, item.type))
    return found.fill_null(False) if two_valued else found


def has_member(lists: Value, item: Value, n: int, two_valued: bool) -> pa.Array:
    """Whether each list has the item, null for a null item or list; `two_valued`: false instead."""
    flat = pc.list_flatten(lists)
    parents = pc.list_parent_indices(lists).to_numpy(zero_copy_only=False)
    wanted = item if isinstance(item, pa.Scalar) else item.take(pa.array(parents))
    found = np.zeros(n, np.bool_)
    found[parents[to_mask(compare(Op.EQ, flat, wanted))]] = True
    known = _known(lists, n) & _known(item, n)
    return pa.array(found & known) if two_valued else pa.array(found, mask=~known)


def _known(value: Value, n: int) -> Mask:
    if isinstance(value, pa.Scalar):
        return np.full(n, value.is_valid)
    found: Mask = value.is_valid().to_numpy(zero_copy_only=False)
    return found
