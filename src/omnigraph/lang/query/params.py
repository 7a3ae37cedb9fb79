"""Values for the parameters of a query: from JSON values to what the plan's expressions mean by them."""

from __future__ import annotations

import datetime as dt
import math
import struct
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

from omnigraph.errors import Kind, OmnigraphError
from omnigraph.lang import ir
from omnigraph.lang.cast import parse_date, parse_datetime
from omnigraph.lang.diagnostics import did_you_mean
from omnigraph.lang.evaluate import EPOCH, Bound
from omnigraph.lang.query.scope import RESERVED_PARAM
from omnigraph.model.types import FLOATS, INTEGER_RANGES, INTEGERS, PropType, Scalar

DIGITS_MAX = 20  # of an integer given as text: more never fits 64 bits


class ParamMissing(OmnigraphError):
    """A parameter without a value is not nullable."""

    code, kind = "param_missing", Kind.INVALID
    default_help = "Give it a value in params=, or declare it nullable: $name: String?."


class ParamInvalid(OmnigraphError):
    """The value of a parameter does not have its declared type."""

    code, kind = "param_invalid", Kind.INVALID
    default_help = (
        "Values are JSON: texts, numbers, true and false, lists; times are RFC 3339 texts."
    )


class Misfit(Exception):
    """A value does not fit; the text says what was expected."""


def bind_params(
    query: ir.Query, values: Mapping[str, Any] | None = None, now: dt.datetime | None = None
) -> Bound:
    """The values of all parameters, checked against their declared types.

    A nullable parameter may be left out and is null then. Names the query does not declare are ignored.
    """
    given = dict(values or {})
    instant = _now(given.pop(RESERVED_PARAM, None), now)
    bound: dict[str, Any] = {}
    for param in query.params:
        if param.name not in given and not param.type.nullable:
            raise _missing(param, given, query)
        bound[param.name] = _bound(param, given.get(param.name))
    return Bound(bound, instant)


def _now(preset: Any, now: dt.datetime | None) -> dt.datetime:
    """The time of the query; a caller may preset it under a reserved name."""
    if preset is not None:
        return _convert_named(RESERVED_PARAM, ir.DATETIME, preset)  # type: ignore[no-any-return]
    return _whole_millis(now or EPOCH)


def _missing(param: ir.ParamDecl, given: Mapping[str, Any], query: ir.Query) -> ParamMissing:
    declared = {p.name for p in query.params}
    meant = did_you_mean(param.name, [name for name in given if name not in declared])
    help = f"`{meant}` was given; did you mean `{param.name}`?" if meant else None
    message = f"the parameter `${param.name}` of type {param.type} has no value"
    return ParamMissing(message, help=help, details={"param": param.name})


def _bound(param: ir.ParamDecl, value: Any) -> Any:
    if value is None:
        if param.type.nullable:
            return None
        message = f"the parameter `${param.name}` of type {param.type} cannot be null"
        raise ParamInvalid(message, details={"param": param.name})
    return _convert_named(param.name, param.type, value)


def _convert_named(name: str, kind: PropType, value: Any) -> Any:
    try:
        return convert(value, kind)
    except Misfit as misfit:
        message = f"the parameter `${name}` of type {kind}: {misfit}"
        raise ParamInvalid(message, details={"param": name}) from None


def convert(value: Any, kind: PropType) -> Any:
    """A JSON value (or the Python value it stands for) as a value of the type."""
    if kind.vector_dim is not None:
        return _vector(value, kind.vector_dim)
    if kind.is_list:
        if isinstance(value, str | bytes | Mapping | Set) or not hasattr(value, "__len__"):
            raise Misfit(f"expected a list, got {_named(value)}")
        return tuple(None if v is None else SCALARS[kind.scalar](v, kind.scalar) for v in value)
    return SCALARS[kind.scalar](value, kind.scalar)


def _vector(value: Any, dim: int) -> tuple[float, ...]:
    if isinstance(value, str | bytes | Mapping | Set) or not hasattr(value, "__len__"):
        raise Misfit(f"expected a list of {dim} numbers, got {_named(value)}")
    if len(value) != dim:
        raise Misfit(f"expected {dim} numbers, got {len(value)}")
    whole = _floats(value, f"<{dim}f") if all(type(v) is float for v in value) else None
    return whole or tuple(_float(v, Scalar.F32) for v in value)


def _floats(values: Sequence[float], layout: str) -> tuple[float, ...] | None:
    """All numbers at once, as they would be stored; none if one of them is refused."""
    try:
        stored = struct.unpack(layout, struct.pack(layout, *values))
    except OverflowError:
        return None
    return stored if all(map(math.isfinite, stored)) else None


def _string(value: Any, _: Scalar) -> str:
    if not isinstance(value, str):
        raise Misfit(f"expected a text, got {_named(value)}")
    return value


def _blob(value: Any, _: Scalar) -> str | bytes:
    if not isinstance(value, str | bytes):
        raise Misfit(f"expected a text or bytes, got {_named(value)}")
    return value


def _bool(value: Any, _: Scalar) -> bool:
    if not isinstance(value, bool):
        raise Misfit(f"expected true or false, got {_named(value)}")
    return value


def _integer(value: Any, scalar: Scalar) -> int:
    number = value
    if isinstance(value, str) and value.removeprefix("-").isdecimal() and value.isascii():
        number = int(value) if len(value) <= DIGITS_MAX + 1 else math.inf
    elif hasattr(value, "__index__") and not isinstance(value, bool):
        number = value.__index__()
    if isinstance(number, bool) or not isinstance(number, int | float) or isinstance(value, float):
        raise Misfit(f"expected a whole number, got {_named(value)}")
    low, high = INTEGER_RANGES[scalar]
    if not low <= number <= high:
        raise Misfit(f"{value} is outside {low} to {high}")
    return int(number)


def _float(value: Any, scalar: Scalar) -> float:
    if isinstance(value, bool | str) or not hasattr(value, "__float__"):
        raise Misfit(f"expected a number, got {_named(value)}")
    try:
        number = float(value)
        if scalar is Scalar.F32:
            number = float(struct.unpack("<f", struct.pack("<f", number))[0])
    except OverflowError:
        raise Misfit(f"{value} is too large for {scalar}") from None
    if not math.isfinite(number):
        raise Misfit("expected a finite number")
    return number


def _date(value: Any, _: Scalar) -> dt.date:
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return value
    found = parse_date(value) if isinstance(value, str) else None
    if found is None:
        raise Misfit(f'expected a date such as "2024-05-31", got {_named(value)}')
    return found


def _datetime(value: Any, _: Scalar) -> dt.datetime:
    if isinstance(value, dt.datetime):
        if value.tzinfo is None:
            raise Misfit("expected a datetime with a time zone")
        try:
            return _whole_millis(value)
        except OverflowError:
            raise Misfit("expected a time that UTC can tell") from None
    found = parse_datetime(value) if isinstance(value, str) else None
    if found is None:
        raise Misfit(f'expected a time such as "2024-05-31T12:30:00Z", got {_named(value)}')
    return found


def _whole_millis(value: dt.datetime) -> dt.datetime:
    moment = value.astimezone(dt.UTC)
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def _named(value: Any) -> str:
    """What a value is, for a message."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case str():
            return "a text" if len(value) > 40 else f'the text "{value}"'
        case int() | float():
            return f"the number {value}"
        case Mapping():
            return "an object"
        case _:
            return "a list" if isinstance(value, Sequence) else f"a {type(value).__name__}"


SCALARS: dict[Scalar, Callable[[Any, Scalar], Any]] = {
    Scalar.STRING: _string,
    Scalar.BLOB: _blob,
    Scalar.BOOL: _bool,
    Scalar.DATE: _date,
    Scalar.DATETIME: _datetime,
    **dict.fromkeys(INTEGERS, _integer),
    **dict.fromkeys(FLOATS, _float),
}
