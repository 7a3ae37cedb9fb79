"""Conditions on the columns of a table, as expressions: what a query would say of them."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

from omnigraph.lang import ir
from omnigraph.lang.ir import CompareOp as Op
from omnigraph.model.types import INTEGER_RANGES, PropType, Scalar

TYPES = {bool: Scalar.BOOL, float: Scalar.F64, date: Scalar.DATE, datetime: Scalar.DATETIME}


def column(name: str) -> ir.Column:
    """A column; what it holds is known to its table."""
    return ir.Column(ir.ROW, name, ir.STRING_OR_NULL)


def constant(value: Any) -> ir.Literal:
    """A constant in the type a query would give it."""
    if isinstance(value, tuple):
        known = [v for v in value if v is not None]
        kind = max((_scalar(v) for v in known), default=Scalar.STRING, key=list(Scalar).index)
        return ir.Literal(value, PropType(kind, nullable=True, is_list=True))
    return ir.Literal(value, PropType(_scalar(value), nullable=True))


def _scalar(value: Any) -> Scalar:
    if type(value) is int:
        return Scalar.I64 if value <= INTEGER_RANGES[Scalar.I64][1] else Scalar.U64
    return TYPES.get(type(value), Scalar.STRING)


def compare(name: str, op: Op, value: Any) -> ir.Compare:
    return ir.Compare(op, column(name), constant(value))


def one_of(name: str, *values: Any) -> ir.In:
    return ir.In(column(name), constant(values))


def has(name: str, value: Any) -> ir.Has:
    return ir.Has(column(name), constant(value))


def contains(name: str, needle: str) -> ir.Contains:
    return ir.Contains(column(name), constant(needle))


def starts_with(name: str, prefix: str) -> ir.StartsWith:
    return ir.StartsWith(column(name), constant(prefix))


def is_null(name: str, negated: bool = False) -> ir.IsNull:
    return ir.IsNull(column(name), negated)
