"""Which types are compatible."""

from __future__ import annotations

import datetime as dt
from typing import Any

from omnigraph.lang import ir
from omnigraph.model.types import FLOATS, INTEGERS, PropType, Scalar

UNSIGNED = frozenset({Scalar.U32, Scalar.U64})
TIMES = frozenset({Scalar.DATE, Scalar.DATETIME})
I64_MAX = 2**63 - 1


def is_plain(kind: ir.ValueType) -> bool:
    """A single value that can be compared."""
    return isinstance(kind, PropType) and kind.is_plain


def is_string(kind: ir.ValueType) -> bool:
    return isinstance(kind, PropType) and kind.is_plain and kind.scalar is Scalar.STRING


def is_integer(kind: ir.ValueType) -> bool:
    return isinstance(kind, PropType) and kind.is_plain and kind.scalar in INTEGERS


def is_numeric(kind: ir.ValueType) -> bool:
    return isinstance(kind, PropType) and kind.is_numeric


def is_time(kind: ir.ValueType) -> bool:
    return isinstance(kind, PropType) and kind.is_plain and kind.scalar in TIMES


def is_bool(kind: ir.ValueType) -> bool:
    return isinstance(kind, PropType) and kind.is_plain and kind.scalar is Scalar.BOOL


def compatible(left: ir.ValueType, right: ir.ValueType) -> bool:
    """Whether values of two types can be compared or assigned: the same shape, and the same scalar or two numbers."""
    if not isinstance(left, PropType) or not isinstance(right, PropType):
        return False
    if left.is_list != right.is_list or left.vector_dim != right.vector_dim:
        return False
    numbers = left.scalar in INTEGERS | FLOATS and right.scalar in INTEGERS | FLOATS
    return numbers or left.scalar is right.scalar


def literal_type(value: Any) -> PropType:
    """The type of a constant on its own."""
    match value:
        case None:
            return ir.STRING_OR_NULL
        case bool():
            return ir.BOOL
        case int():
            return ir.I64 if value <= I64_MAX else PropType(Scalar.U64)
        case float():
            return ir.F64
        case dt.datetime():
            return ir.DATETIME
        case dt.date():
            return PropType(Scalar.DATE)
        case _:
            return ir.STRING


def arithmetic_type(op: ir.ArithmeticOp, left: PropType, right: PropType) -> PropType:
    """The type of a calculation; division and remainder may have no result."""
    by_zero = op in (ir.ArithmeticOp.DIV, ir.ArithmeticOp.MOD)
    nullable = left.nullable or right.nullable or by_zero
    if op is ir.ArithmeticOp.DIV or FLOATS & {left.scalar, right.scalar}:
        scalar = Scalar.F64
    elif {left.scalar, right.scalar} <= UNSIGNED:
        scalar = Scalar.U64
    else:
        scalar = Scalar.I64
    return PropType(scalar, nullable)


def common_type(kinds: list[PropType]) -> PropType | None:
    """The type that holds values of all these types, if there is one."""
    first = kinds[0]
    if not all(compatible(first, k) for k in kinds):
        return None
    nullable = any(k.nullable for k in kinds)
    scalars = {k.scalar for k in kinds}
    if len(scalars) == 1:
        enum = first.enum if all(k.enum == first.enum for k in kinds) else None
        return PropType(first.scalar, nullable, first.is_list, first.vector_dim, enum)
    wide = Scalar.F64 if scalars & FLOATS else Scalar.U64 if scalars <= UNSIGNED else Scalar.I64
    return PropType(wide, nullable, first.is_list)


def time_help(kind: PropType, value: ir.Expr) -> str:
    """How to write a date given as a text."""
    word = {Scalar.DATE: "date", Scalar.DATETIME: "datetime"}.get(kind.scalar)
    if word and isinstance(value, ir.Literal) and isinstance(value.value, str):
        return f'Write {word}("{value.value}").'
    return ""
