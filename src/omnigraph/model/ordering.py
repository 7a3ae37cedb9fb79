"""One equality and one order of the values in Arrow columns, for whoever compares, looks up, groups or joins them.

Floats: 0.0 equals -0.0, and NaN equals itself and is greater than every other number. Numbers of different types are
compared by value and never rounded to each other. Null is no value: what is compared with it is unknown.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.model.predicates import Op

KERNELS: dict[Op, Callable[[Any, Any], Any]] = {
    Op.EQ: pc.equal,
    Op.NE: pc.not_equal,
    Op.LT: pc.less,
    Op.LE: pc.less_equal,
    Op.GT: pc.greater,
    Op.GE: pc.greater_equal,
}
FLIPPED = {Op.EQ: Op.EQ, Op.NE: Op.NE, Op.LT: Op.GT, Op.LE: Op.GE, Op.GT: Op.LT, Op.GE: Op.LE}
I64_MIN, I64_MAX, U64_MAX = -(2**63), 2**63 - 1, 2**64 - 1
FLOAT_MAX = int(sys.float_info.max)


def is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def integer_range(kind: pa.DataType) -> tuple[int, int]:
    """The least and the greatest value of an integer type."""
    if pa.types.is_signed_integer(kind):
        return -(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1) - 1
    return 0, 2**kind.bit_width - 1


# --- comparing -----------------------------------------------------------------------------------------------------


def compare(op: Op, left: pa.Array, right: pa.Array | pa.Scalar) -> pa.BooleanArray:
    """The three-valued comparison of a column with a column or a constant of its type."""
    plain = KERNELS[op](left, right)
    if not pa.types.is_floating(left.type):
        return plain
    if isinstance(right, pa.Scalar) and not _is_nan(right):
        # Arrow finds no NaN greater than anything; in every other comparison with a number it is right.
        return pc.or_(plain, pc.is_nan(left)) if op in (Op.GT, Op.GE) else plain
    one, other = pc.is_nan(left), pc.is_nan(right)
    match op:
        case Op.EQ:
            return pc.or_(plain, pc.and_(one, other))
        case Op.NE:
            return pc.and_not(plain, pc.and_(one, other))
        case Op.LT:
            return pc.or_(plain, pc.and_not(other, one))
        case Op.LE:
            return pc.or_(plain, other)
        case Op.GT:
            return pc.or_(plain, pc.and_not(one, other))
        case Op.GE:
            return pc.or_(plain, one)


def _is_nan(value: pa.Scalar) -> bool:
    return bool(value.is_valid and math.isnan(value.as_py()))


# --- equality by bits ----------------------------------------------------------------------------------------------


def canonical(values: pa.Array) -> pa.Array:
    """The same values, with equal ones equal in their bits: one zero, and one NaN."""
    if not pa.types.is_floating(values.type):
        return values
    one_zero = pc.add(values, pa.scalar(0.0, values.type))
    return pc.if_else(pc.is_nan(one_zero), pa.scalar(math.nan, values.type), one_zero)


def is_in(column: pa.Array, members: pa.Array) -> pa.BooleanArray:
    """Whether each value is one of the members, which have its type; null where it is null."""
    found = pc.is_in(canonical(column), value_set=canonical(members.drop_null()))
    return pc.if_else(column.is_valid(), found, pa.scalar(None, pa.bool_()))


# --- one number in several types -----------------------------------------------------------------------------------


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
        below = wide < float(
            int(np.iinfo(given.dtype).max) + 1
        )  # what rounds up to more fits no integer
        fits = below & (np.where(below, wide, 0).astype(given.dtype) == given)
    found = wide.astype(kind.to_pandas_dtype())
    return found, fits & ((found.astype(np.float64) == wide) | np.isnan(wide))


def members(values: Iterable[Any], kind: pa.DataType) -> pa.Array:
    """Those of some constants that a column of this type can hold, in its type. Numbers may be of any kind."""
    known = [value for value in values if value is not None]
    if not is_number(kind):
        return pa.array(known, kind)
    integers = [value for value in known if isinstance(value, int)]
    floats = [value for value in known if not isinstance(value, int)]
    beyond = [v for v in integers if not I64_MIN <= v <= U64_MAX]
    parts = [
        pa.array([v for v in integers if I64_MIN <= v <= I64_MAX], pa.int64()),
        pa.array([v for v in integers if I64_MAX < v <= U64_MAX], pa.uint64()),
        pa.array(floats + [float(v) for v in beyond if _is_float(v)], pa.float64()),
    ]
    return pa.concat_arrays([exactly(part, kind).drop_null() for part in parts])


def _is_float(value: int) -> bool:
    return abs(value) <= FLOAT_MAX and int(float(value)) == value
