"""Temporal values in Cypher: their functions, parts, sums and comparisons.

Constants are computed here, so that a mistake is reported at its place, and filters on stored
times see only the moment.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

from omnigraph.lang import ir
from omnigraph.lang.cypher import ast, types
from omnigraph.lang.cypher.binder import ExprBinder
from omnigraph.lang.cypher.coercion import as_type, compared, null_of
from omnigraph.lang.cypher.functions import BoundCall, FunctionSignature
from omnigraph.lang.ir import CompareOp as Op
from omnigraph.lang.ir import ValueType
from omnigraph.lang.source import Located
from omnigraph.lang.tree import is_constant, is_null_literal
from omnigraph.model.catalog import Property
from omnigraph.model.types import Scalar
from omnigraph.values.temporal.arithmetic import UNITS
from omnigraph.values.temporal.calendar import civil
from omnigraph.values.temporal.kinds import (
    Duration,
    TemporalInvalid,
    ZonedDateTime,
    to_stored,
)
from omnigraph.values.temporal.making import PARTS
from omnigraph.values.temporal.names import TemporalKind, TemporalOp
from omnigraph.values.temporal.operations import apply
from omnigraph.values.temporal.parts import PART_NAMES, TEXTS

K = TemporalKind
MEMBER = "x%"  # a variable of a list that no text can name
NAMES = {
    K.DATE: "date",
    K.LOCAL_TIME: "localtime",
    K.TIME: "time",
    K.LOCAL_DATETIME: "localdatetime",
    K.DATETIME: "datetime",
    K.DURATION: "duration",
}


def type_of(kind: TemporalKind) -> ValueType:
    """The type of the values of a kind; dates are those of properties."""
    return types.DATE if kind is K.DATE else types.temporal(kind)


def call(
    op: TemporalOp, args: tuple[ir.Expr, ...], kind: ValueType, names: tuple[str, ...] = ()
) -> ir.Expr:
    """An operation, computed immediately if its arguments are constants; raises `TemporalInvalid`."""
    if any(is_null_literal(arg) for arg in args):
        return null_of(kind)
    if all(isinstance(arg, ir.Literal) for arg in args):
        values = [arg.value for arg in args if isinstance(arg, ir.Literal)]
        return ir.Literal(apply(op, types.temporal_kind(kind), names, values), kind)
    return ir.TemporalCall(op, names, args, kind)


def reported(binder: ExprBinder, at: Located, compute: Callable[[], ir.Expr]) -> ir.Expr:
    """The result, or a report that it cannot be computed."""
    try:
        return compute()
    except TemporalInvalid as wrong:
        raise binder.wrong(wrong.message, at, wrong.help or "") from wrong


# --- constructors --------------------------------------------------------------------------------------------------


def _now(kind: TemporalKind, zone: ir.Expr | None = None) -> ir.Expr:
    here: ir.Expr = ir.TemporalCall(TemporalOp.CONVERT, (), (ir.Now(),), type_of(K.DATETIME))
    if zone is not None:
        parts = ("datetime", "timezone")
        here = call(TemporalOp.MAKE, (here, zone), type_of(K.DATETIME), parts)
    if kind is K.DATETIME or is_null_literal(here):
        return here if kind is K.DATETIME else null_of(type_of(kind))
    return ir.TemporalCall(TemporalOp.CONVERT, (), (here,), type_of(kind))


def _constructor(kind: TemporalKind) -> FunctionSignature:
    def make(given: BoundCall) -> ir.Expr:
        if not given.args:
            return _now(kind)
        return reported(given.binder, given.node.at, lambda: _made(given, kind))

    return FunctionSignature(1 if kind is K.DURATION else 0, 1, make)


def _made(given: BoundCall, kind: TemporalKind) -> ir.Expr:
    (part,) = given.args
    if is_null_literal(part):
        return null_of(type_of(kind))
    if types.is_string(part.type):
        return call(TemporalOp.READ, (part,), type_of(kind))
    if isinstance(part.type, ir.MapValue):
        parts = _parts(given, part, kind)
        if list(parts) == ["timezone"]:
            return _now(kind, parts["timezone"])
        if not isinstance(part, ir.MakeMap):  # maps of one type may lack parts that others have
            args = tuple(parts.values())
            return ir.TemporalCall(TemporalOp.MAKE_OF_KNOWN, tuple(parts), args, type_of(kind))
        return call(TemporalOp.MAKE, tuple(parts.values()), type_of(kind), tuple(parts))
    found = types.temporal_kind(part.type)
    if found is None or not _converts(found, kind):
        raise given.wrong(0, f"a text or a map{'' if kind is K.DURATION else ', or another time'}")
    return part if part.type == type_of(kind) else call(TemporalOp.CONVERT, (part,), type_of(kind))


def _converts(source: TemporalKind, target: TemporalKind) -> bool:
    """Whether a value of one kind holds one of another."""
    if K.DURATION in (source, target):
        return source is target
    needs_day = target in (K.DATE, K.LOCAL_DATETIME, K.DATETIME)
    has_day = source in (K.DATE, K.LOCAL_DATETIME, K.DATETIME)
    return has_day if needs_day else source is not K.DATE


def _parts(given: BoundCall, part: ir.Expr, kind: TemporalKind) -> dict[str, ir.Expr]:
    """The parts of a map by name, of the types they have."""
    assert isinstance(part.type, ir.MapValue)  # noqa: S101
    if isinstance(part, ir.MakeMap):
        names = (name for name, _ in part.type.fields)
        parts = dict(zip(names, part.items, strict=True))
    else:
        parts = {name: ir.FieldOf(part, name, held) for name, held in part.type.fields}
    known = sorted(PARTS[kind] | (frozenset() if kind is K.DURATION else {"timezone"}))
    for name, item in parts.items():
        if name not in known:
            message = f"{given.node.name}() does not take `{name}`"
            raise given.binder.binding.unknown("C009", message, given.node.at, name, known)
        wanted = _wanted(name, kind)
        if not is_null_literal(item) and not wanted[0](item.type):
            message = f"`{name}` is {wanted[1]}, not {types.name_of(item.type)}"
            raise given.binder.wrong(message, given.node.at)
    return parts


def _wanted(name: str, kind: TemporalKind) -> tuple[Callable[[ValueType], bool], str]:
    if name in ("date", "time", "datetime"):
        return (lambda held: types.temporal_kind(held) not in (None, K.DURATION)), "a date or time"
    if name == "timezone":
        return types.is_string, "a text"
    if kind is K.DURATION:
        return types.is_number, "a number"
    return types.is_integer, "a whole number"


def _clock(kind: TemporalKind) -> FunctionSignature:
    """The current time of the query run, in UTC or a zone."""

    def make(given: BoundCall) -> ir.Expr:
        if not given.args:
            return _now(kind)
        zone = given.of(0, types.is_string, "the name of a time zone")
        return reported(given.binder, given.node.at, lambda: _now(kind, zone))

    return FunctionSignature(0, 1, make)


def _truncation(kind: TemporalKind) -> FunctionSignature:
    def make(given: BoundCall) -> ir.Expr:
        unit = given.of(0, types.is_string, "the name of a unit")
        if isinstance(unit, ir.Literal) and unit.value is not None and unit.value not in UNITS:
            message = f"`{unit.value[:40]}` is not a unit of time"
            at = given.node.args[0].at
            raise given.binder.binding.unknown("C009", message, at, unit.value, UNITS)
        value = given.args[1] if len(given.args) > 1 else _now(kind)
        if is_null_literal(unit) or is_null_literal(value):
            return null_of(type_of(kind))
        if types.temporal_kind(value.type) in (None, K.DURATION):
            raise given.wrong(1, "a date or time")
        parts: dict[str, ir.Expr] = {}
        if len(given.args) > 2:
            if not isinstance(given.args[2].type, ir.MapValue):
                raise given.wrong(2, "a map")
            parts = _parts(given, given.args[2], kind)
        args = (unit, value, *parts.values())
        return reported(
            given.binder,
            given.node.at,
            lambda: call(TemporalOp.TRUNCATE, args, type_of(kind), tuple(parts)),
        )

    return FunctionSignature(1, 3, make)


def _between(op: TemporalOp) -> FunctionSignature:
    def make(given: BoundCall) -> ir.Expr:
        parts = [
            given.of(
                i, lambda k: types.temporal_kind(k) not in (None, K.DURATION), "dates or times"
            )
            for i in (0, 1)
        ]
        args = (parts[0], parts[1])
        return reported(given.binder, given.node.at, lambda: call(op, args, type_of(K.DURATION)))

    return FunctionSignature(2, 2, make)


def _epoch(given: BoundCall) -> ir.Expr:
    numbers = [given.of(i, types.is_integer, "a whole number") for i in range(len(given.args))]
    if len(numbers) == 1:
        names: tuple[str, ...] = ("epochMillis",)
    else:
        names = ("epochSeconds", "nanosecond")
    args = tuple(as_type(number, types.I64) for number in numbers)
    return reported(
        given.binder,
        given.node.at,
        lambda: call(TemporalOp.MAKE, args, type_of(K.DATETIME), names),
    )


TEMPORAL_FUNCTIONS: dict[str, FunctionSignature] = {
    **{name: _constructor(kind) for kind, name in NAMES.items()},
    **{
        f"{name}.{clock}": _clock(kind)
        for kind, name in NAMES.items()
        if kind is not K.DURATION
        for clock in ("transaction", "statement", "realtime")
    },
    **{f"{n}.truncate": _truncation(kind) for kind, n in NAMES.items() if kind is not K.DURATION},
    "duration.between": _between(TemporalOp.BETWEEN),
    "duration.inmonths": _between(TemporalOp.IN_MONTHS),
    "duration.indays": _between(TemporalOp.IN_DAYS),
    "duration.inseconds": _between(TemporalOp.IN_SECONDS),
    "datetime.fromepoch": FunctionSignature(2, 2, _epoch),
    "datetime.fromepochmillis": FunctionSignature(1, 1, _epoch),
}


# --- parts and texts -----------------------------------------------------------------------------------------------


def temporal_part(binder: ExprBinder, part: ir.Expr, name: str, at: Located) -> ir.Expr:
    kind = types.temporal_kind(part.type)
    assert kind is not None  # noqa: S101 - the binder calls this for no other type
    if name not in PART_NAMES[kind]:
        message = f"{types.name_of(part.type)} has no part `{name}`"
        raise binder.binding.unknown("C005", message, at, name, PART_NAMES[kind])
    if name == "epochMillis" and types.is_time(part.type):
        return ir.Call(ir.Function.EPOCH_MILLIS, (part,), types.I64)
    held = types.STRING if name in TEXTS else types.I64
    return reported(binder, at, lambda: call(TemporalOp.PART, (part,), held, (name,)))


def temporal_text(part: ir.Expr) -> ir.Expr:
    return call(TemporalOp.TEXT, (part,), types.STRING)


# --- sums ----------------------------------------------------------------------------------------------------------


def temporal_arithmetic(
    binder: ExprBinder, operator: str, left: ir.Expr, right: ir.Expr, at: Located
) -> ir.Expr:
    """A sum, difference, product or quotient with a temporal value in it."""
    kind = _result(operator, left.type, right.type)
    if kind is None:
        names = f"{types.name_of(left.type)} and {types.name_of(right.type)}"
        raise binder.wrong(f"`{operator}` is not defined for {names}", at)
    if is_null_literal(left) or is_null_literal(right):
        return null_of(kind)
    return reported(binder, at, lambda: call(TemporalOp(operator), (left, right), kind))


def _result(operator: str, left: ValueType, right: ValueType) -> ValueType | None:
    one, other = types.temporal_kind(left), types.temporal_kind(right)
    duration, nothing = type_of(K.DURATION), ir.NULL
    match operator:
        case "+" if other is K.DURATION or (right == nothing and one is not None):
            return duration if one is None else type_of(one)
        case "+" if one is K.DURATION:
            return type_of(other) if other is not None else duration if right == nothing else None
        case "+" if left == nothing and other is not None:
            return type_of(other)
        case "-" if one is not None and (other is K.DURATION or right == nothing):
            return type_of(one)
        case "-" if left == nothing and other is K.DURATION:
            return duration
        case "*" if one is K.DURATION and (types.is_number(right) or right == nothing):
            return duration
        case "*" if other is K.DURATION and (types.is_number(left) or left == nothing):
            return duration
        case "/" if one is K.DURATION and (types.is_number(right) or right == nothing):
            return duration
        case _:
            return None


def total_duration(binder: ExprBinder, node: ast.Call, arg: ir.Expr, members: ir.Expr) -> ir.Expr:
    """The sum or the average of the durations of a list."""
    if types.temporal_kind(arg.type) is not K.DURATION:
        message = f"{node.name}() takes numbers or durations, not {types.name_of(arg.type)}"
        raise binder.wrong(message, node.at)
    kind = type_of(K.DURATION)
    total, member = binder.binding.fresh(), binder.binding.fresh()
    body = ir.TemporalCall(
        TemporalOp.ADD, (), (ir.ValueOf(total, kind), ir.ValueOf(member, kind)), kind
    )
    nothing = ir.Literal(Duration(0, 0, 0, 0), kind)
    added = ir.Fold(total, nothing, member, members, body, kind)
    if node.name == "sum":
        return added
    count = ir.Call(ir.Function.LENGTH, (members,), types.I64)
    some = ir.Compare(Op.GT, count, ir.Literal(0, ir.I64))
    least = ir.Choice(((some, count),), ir.Literal(1, ir.I64), types.I64)
    mean = ir.TemporalCall(TemporalOp.DIVIDE, (), (added, least), kind)
    return ir.Choice(((some, mean),), null_of(kind), kind)


# --- comparisons ---------------------------------------------------------------------------------------------------


def compared_times(op: Op, left: ir.Expr, right: ir.Expr) -> ir.Expr | None:
    """Date-times compare by the moment, and so do times; durations are equal or not. None for different kinds."""
    kinds = types.temporal_kind(left.type), types.temporal_kind(right.type)
    if set(kinds) == {K.DATE, K.DATETIME}:  # a date stands for its midnight in UTC
        left, right = (
            ir.Cast(part, types.DATETIME) if kind is K.DATE else part
            for part, kind in zip((left, right), kinds, strict=True)
        )
    elif kinds[0] is not kinds[1]:
        return None
    elif kinds[0] is K.DURATION and op not in (Op.EQ, Op.NE):
        return null_of(types.BOOL)
    if types.is_time(left.type) or types.is_time(right.type):
        return _with_stored(op, left, right)
    if kinds[0] in (K.DATETIME, K.TIME):
        left, right = _moment(left), _moment(right)
    return ir.Compare(op, left, right)


def _moment(part: ir.Expr) -> ir.Expr:
    if types.temporal_kind(part.type) is K.TIME:
        return call(TemporalOp.MOMENT, (part,), types.I64)
    return call(TemporalOp.MOMENT, (part,), type_of(K.LOCAL_DATETIME))


def _with_stored(op: Op, left: ir.Expr, right: ir.Expr) -> ir.Expr:
    """A stored date-time beside another. A constant becomes an equivalent one that filters can express."""
    if types.is_time(right.type):
        left, right, op = right, left, op.flipped
    if op in (Op.EQ, Op.NE):
        exact = _exact(right)
        if exact is None:
            return ir.Compare(op, _moment(left), _moment(right))
        return ir.Compare(op, left, exact)
    if not is_constant(right) or _is_far(right):
        return ir.Compare(op, _moment(left), _moment(right))
    rounding = TemporalOp.INSTANT if op in (Op.GT, Op.LE) else TemporalOp.INSTANT_UP
    return ir.Compare(op, left, call(rounding, (right,), types.DATETIME))


def _exact(part: ir.Expr) -> ir.Expr | None:
    """A constant as a stored date-time that is the same moment."""
    if not isinstance(part, ir.Literal) or not isinstance(part.value, ZonedDateTime):
        return None
    low, high = (to_stored(part.value.moment, up) for up in (False, True))
    return ir.Literal(low, types.DATETIME) if low == high and not _is_far(part) else None


def _is_far(part: ir.Expr) -> bool:
    """Whether a constant lies outside the years a stored date-time may have, or at their ends."""
    if not isinstance(part, ir.Literal) or not isinstance(part.value, ZonedDateTime):
        return False
    return not 1 < civil(part.value.moment.days)[0] < dt.MAXYEAR


def among_times(binder: ExprBinder, item: ir.Expr, members: ir.Expr) -> ir.Expr | None:
    """Whether a time is one of a list, by the moment; None if that makes no difference."""
    kind = types.item_of(members.type)
    held = {types.temporal_kind(item.type), types.temporal_kind(kind)}
    if not held <= {K.DATETIME, K.TIME} or is_null_literal(item):
        return None
    var = binder.binding.fresh()
    test = compared(Op.EQ, item, ir.ValueOf(var, kind))
    return ir.Quantified(ir.Test.ANY, var, members, test)


# --- one type, and what is stored ----------------------------------------------------------------------------------


def as_temporal(expr: ir.Expr, kind: ValueType) -> ir.Expr:
    """Stored date-times as those that have a zone, in lists, too."""
    if isinstance(kind, ir.TemporalValue):
        return call(TemporalOp.CONVERT, (expr,), kind)
    item = types.item_of(expr.type)
    if isinstance(kind, ir.ListValue) and types.is_time(item):
        body = as_type(ir.ValueOf(MEMBER, item), kind.item)
        return ir.Each(MEMBER, expr, None, body, kind)
    return ir.As(expr, kind)


def stored_time(binder: ExprBinder, expr: ir.Expr, prop: Property, at: Located) -> ir.Expr:
    """A date-time as a property holds it; other temporal values have no property type."""
    kind = types.item_of(expr.type) if types.is_list(expr.type) else expr.type
    fits = prop.type.scalar is Scalar.DATETIME and prop.type.is_list == types.is_list(expr.type)
    if types.temporal_kind(kind) is not K.DATETIME or not fits:
        message = f"`{prop.name}` of type {prop.type.with_nullable(False)} cannot hold "
        message += types.name_of(expr.type)
        help = "Properties hold Date and DateTime; keep others as text with toString()."
        raise binder.wrong(message, at, help)
    if not types.is_list(expr.type):
        return reported(binder, at, lambda: call(TemporalOp.STORE, (expr,), types.DATETIME))
    body = ir.TemporalCall(TemporalOp.STORE, (), (ir.ValueOf(MEMBER, kind),), types.DATETIME)
    return ir.Each(MEMBER, expr, None, body, types.list_of(types.DATETIME))
