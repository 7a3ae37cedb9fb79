"""The value of an expression for one row: the reference semantics of every operator and function.

Engines compute whole columns at once; this computes single values. It serves constants (limits, values of an insert,
the constant side of a comparison), and the tests of the engines. It needs no Arrow.
"""

from __future__ import annotations

import datetime as dt
import math
import operator
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from omnigraph.errors import Kind, LimitExceeded, OmnigraphError
from omnigraph.expressions.standard import MATHEMATICS, TEXTS
from omnigraph.lang import ir
from omnigraph.lang.cast import cast_value
from omnigraph.lang.ir import Bound
from omnigraph.lang.ir import CompareOp as Op
from omnigraph.model.types import FLOATS, INTEGER_RANGES, PropType, Scalar
from omnigraph.values.temporal.names import TemporalKind, TemporalOp

NOTHING: Mapping[Any, Any] = MappingProxyType({})


class ArithmeticOverflow(OmnigraphError):
    """The result of a calculation does not fit its type."""

    code, kind = "arithmetic_overflow", Kind.INVALID
    default_help = "Integers are calculated in 64 bits; cast one side to F64 for larger values."


TEXT_BYTES_MAX = 16 << 20  # of a text made by an expression


def text_too_long(size: int) -> LimitExceeded:
    """The error for an expression that would make a longer text."""
    return LimitExceeded(
        f"an expression would make a text of {size:,} bytes; at most {TEXT_BYTES_MAX:,} are allowed",
        help="Join fewer or shorter texts.",
        details={"limit": "text_bytes_max", "limit_value": TEXT_BYTES_MAX, "observed": size},
    )


class NotConstant(Exception):
    """The expression reads something that is not given; callers test `is_constant` first."""


Row = Mapping[
    tuple[str, str], Any
]  # (variable, column) to value: properties, `id`, `type`, `src`, `dst`


def evaluate(expr: ir.Expr, bound: Bound, row: Row = NOTHING) -> Any:
    """The value of an expression; `None` is null and unknown."""
    match expr:
        case ir.Literal(value):
            return value
        case ir.ListOf(items):
            return tuple(evaluate(item, bound, row) for item in items)
        case ir.Param(name):
            return bound.values[name]
        case ir.Now():
            return bound.now
        case ir.Column(var, name):
            return _look_up(row, var, name)
        case ir.IdOf(var):
            return _look_up(row, var, "id")
        case ir.EndpointOf(var, end):
            return _look_up(row, var, end.value)
        case ir.TypeOf(var):
            return _look_up(row, var, "type")
        case ir.Same(left, right):
            return _same(row, left, right)
        case ir.And(parts):
            return _all(evaluate(p, bound, row) for p in parts)
        case ir.Or(parts):
            return _negate(_all(_negate(evaluate(p, bound, row)) for p in parts))
        case ir.Not(part):
            return _negate(evaluate(part, bound, row))
        case ir.IsNull(part, negated):
            return (evaluate(part, bound, row) is None) is not negated
        case ir.Has(items, item):
            return _has(evaluate(items, bound, row), evaluate(item, bound, row))
        case ir.Cast(part, kind):
            return cast_value(evaluate(part, bound, row), kind)
        case ir.Call(ir.Function.COALESCE, args, kind):
            values = (evaluate(a, bound, row) for a in args)
            assert isinstance(kind, PropType)  # noqa: S101 - of single values alone
            return _widened(next((v for v in values if v is not None), None), kind)
        case ir.TemporalCall(TemporalOp.MAKE_OF_KNOWN, _, args):
            return temporal_operation(expr)(*(evaluate(a, bound, row) for a in args))
        case _:
            return _strict(expr, bound, row)


def _look_up(row: Row, var: str, name: str) -> Any:
    try:
        return row[var, name]
    except KeyError:
        raise NotConstant from None


def _same(row: Row, left: str, right: str) -> bool | None:
    """Whether two variables hold one entity: ids are unique within a type only."""
    ids = [_look_up(row, var, "id") for var in (left, right)]
    if None in ids:
        return None
    types = [_look_up(row, var, "type") for var in (left, right)]
    return bool(ids[0] == ids[1] and types[0] == types[1])


def _strict(expr: ir.Expr, bound: Bound, row: Row) -> Any:
    """Expressions that are null as soon as an operand is."""
    operands, apply = _operation(expr)
    values = [evaluate(part, bound, row) for part in operands]
    return None if any(v is None for v in values) else apply(*values)


def _operation(expr: ir.Expr) -> tuple[tuple[ir.Expr, ...], Callable[..., Any]]:
    match expr:
        case ir.Compare(op, left, right):
            return (left, right), lambda a, b: compare(op, a, b)
        case ir.In(item, members):
            return (item, members), lambda a, b: _has(b, a)
        case ir.Contains(text, needle):
            return (text, needle), lambda a, b: b in a
        case ir.StartsWith(text, prefix):
            return (text, prefix), str.startswith
        case ir.RegexMatch(text, pattern):
            return (text, pattern), _regex_match
        case ir.Arithmetic(op, left, right, kind):
            return (left, right), lambda a, b: arithmetic(op, a, b, kind)
        case ir.Call(function, args):
            return args, FUNCTIONS[function]
        case ir.TemporalCall():
            return expr.args, temporal_operation(expr)
        case _:
            raise NotConstant


def temporal_operation(expr: ir.TemporalCall) -> Callable[..., Any]:
    """The result of a temporal operation."""
    from omnigraph.values.temporal.operations import apply

    kind = kind_of_result(expr.type)
    return lambda *args: apply(expr.op, kind, expr.names, list(args))


def kind_of_result(kind: ir.ValueType) -> TemporalKind | None:
    """The temporal kind of a type that has one."""
    if isinstance(kind, ir.TemporalValue):
        return kind.kind
    date = isinstance(kind, PropType) and kind.scalar is Scalar.DATE
    return TemporalKind.DATE if date else None


# --- truth -------------------------------------------------------------------------------------------------------


def _all(values: Any) -> bool | None:
    answer: bool | None = True
    for value in values:
        if value is False:
            return False
        if value is None:
            answer = None
    return answer


def _negate(value: bool | None) -> bool | None:
    return None if value is None else not value


def _has(items: Any, item: Any) -> bool:
    if items is None or item is None:
        return False
    return any(m is not None and compare(Op.EQ, m, item) for m in items)


OPERATORS: Mapping[Op, Callable[[Any, Any], Any]] = {
    Op.EQ: operator.eq,
    Op.NE: operator.ne,
    Op.LT: operator.lt,
    Op.LE: operator.le,
    Op.GT: operator.gt,
    Op.GE: operator.ge,
}


def compare(op: Op, left: Any, right: Any) -> bool:
    """Strings compare by UTF-8 bytes, everything else by value; NaN satisfies no comparison but `!=`."""
    if isinstance(left, str) and isinstance(right, str):
        left, right = left.encode(), right.encode()
    return bool(OPERATORS[op](left, right))


# --- numbers -----------------------------------------------------------------------------------------------------


def arithmetic(op: ir.ArithmeticOp, left: Any, right: Any, kind: PropType) -> Any:
    """A calculation in the type that was resolved for it."""
    if kind.scalar is Scalar.F64:
        return _float_arithmetic(op, float(left), float(right))
    left, right = _in_range(left, kind), _in_range(right, kind)
    match op:
        case ir.ArithmeticOp.ADD:
            result = left + right
        case ir.ArithmeticOp.SUB:
            result = left - right
        case ir.ArithmeticOp.MUL:
            result = left * right
        case _:
            sign = -1 if left < 0 else 1
            result = None if right == 0 else sign * (abs(left) % abs(right))
    return _fits(result, kind)


def _float_arithmetic(op: ir.ArithmeticOp, left: float, right: float) -> float | None:
    match op:
        case ir.ArithmeticOp.ADD:
            return left + right
        case ir.ArithmeticOp.SUB:
            return left - right
        case ir.ArithmeticOp.MUL:
            return left * right
        case ir.ArithmeticOp.DIV:
            return None if right == 0 else left / right
        case ir.ArithmeticOp.MOD:
            return None if right == 0 or math.isinf(left) else math.fmod(left, right)


def _fits(value: int | None, kind: PropType) -> int | None:
    return None if value is None else _in_range(value, kind)


def _in_range(value: int, kind: PropType) -> int:
    low, high = INTEGER_RANGES[kind.scalar]
    if not low <= value <= high:
        raise ArithmeticOverflow(f"{value} does not fit {kind.scalar}")
    return value


def _widened(value: Any, kind: PropType) -> Any:
    """A number in the type that holds all arguments."""
    if isinstance(value, bool) or not isinstance(value, int):
        return value
    return float(value) if kind.scalar in FLOATS else _in_range(value, kind)


def _negative(value: Any) -> Any:
    return -value if isinstance(value, float) else _fits(-_in_range(value, ir.I64), ir.I64)


# --- text and time -----------------------------------------------------------------------------------------------


def _per_character(change: Callable[[str], str]) -> Callable[[str], str]:
    """Change characters one by one, leaving those alone that would become several: every engine agrees on these."""
    return lambda text: "".join(new if len(new := change(c)) == 1 else c for c in text)


def _regex_match(text: str, pattern: str) -> bool:
    """Arrow's RE2 decides, because the engines use it; it is loaded only for the first pattern."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return bool(pc.match_substring_regex(pa.array([text]), pattern)[0].as_py())


def _concat(*texts: str) -> str:
    size = sum(len(text.encode()) for text in texts)
    if size > TEXT_BYTES_MAX:
        raise text_too_long(size)
    return "".join(texts)


def _substring(text: str, start: int, count: int | None = None) -> str:
    first = max(start, 0)
    return text[first:] if count is None else text[first : first + max(count, 0)]


def _shift(value: dt.date, days: int) -> dt.date | None:
    try:
        return value + dt.timedelta(days=days)
    except OverflowError:
        return None


def _days_between(start: dt.date, end: dt.date) -> int:
    seconds = (_instant(end) - _instant(start)).total_seconds()
    return int(seconds / 86_400)


def _instant(value: dt.date) -> dt.datetime:
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.UTC)
    return dt.datetime(value.year, value.month, value.day, tzinfo=dt.UTC)


def _part(name: str) -> Callable[[dt.date], int]:
    return lambda value: int(getattr(_instant(value), name))


FUNCTIONS: Mapping[ir.Function, Callable[..., Any]] = {
    ir.Function.LOWER: _per_character(str.lower),
    ir.Function.UPPER: _per_character(str.upper),
    ir.Function.TRIM: str.strip,
    ir.Function.LENGTH: len,
    ir.Function.CONCAT: _concat,
    ir.Function.SUBSTRING: _substring,
    **{
        function: _part(function.value)
        for function in (
            ir.Function.YEAR,
            ir.Function.MONTH,
            ir.Function.DAY,
            ir.Function.HOUR,
            ir.Function.MINUTE,
            ir.Function.SECOND,
        )
    },
    ir.Function.DATE_ADD: _shift,
    ir.Function.DATE_SUB: lambda value, days: _shift(value, -days),
    ir.Function.DAYS_BETWEEN: _days_between,
    ir.Function.NEGATE: _negative,
    **MATHEMATICS,
    **TEXTS,
}
