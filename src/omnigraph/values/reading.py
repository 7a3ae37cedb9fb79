"""One value, from JSON, Python or a text cell, as a value of a type. This is the definition; `columns` follows it."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import re
import struct
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from omnigraph.model.frozen import frozen
from omnigraph.model.names import is_unicode
from omnigraph.model.types import FLOATS, INTEGER_RANGES, INTEGERS, PropType, Scalar
from omnigraph.values.misfit import NO_ZONE, Misfit, unfit
from omnigraph.values.spelling import (
    NOT_FINITE,
    bytes_text,
    midnight,
    parse_bytes,
    parse_date,
    parse_datetime,
    to_json,
    whole_millis,
)

WIDE = frozenset({Scalar.I64, Scalar.U64})  # which JSON readers round, so that texts are taken
DIGITS = re.compile(r"[+-]?[0-9]{1,40}")
NUMBER = re.compile(
    r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?(nan|inf|infinity)", re.I
)
BOOLS = {"true": True, "1": True, "false": False, "0": False}
EPOCH = dt.date(1970, 1, 1)
EXPECTED = {
    Scalar.STRING: "a text",
    Scalar.BLOB: 'bytes, written "base64:…"',
    Scalar.BOOL: "true or false",
    Scalar.F32: "a number",
    Scalar.F64: "a number",
    Scalar.DATE: 'a date such as "2025-12-31"',
    Scalar.DATETIME: 'a date-time such as "2025-12-31T23:59:59Z"',
    **{s: f"a whole number from {low} to {high}" for s, (low, high) in INTEGER_RANGES.items()},
}

T = TypeVar("T")


@frozen
class ReadingContext:
    """The options of the place a value is read from."""

    timezone: str | None = None  # of date-times that have none
    fetch: Callable[[str], bytes | str] | None = None  # the bytes an address of a blob holds
    typed: bool = False  # numbers have their own types, converted only without loss


ALONE = ReadingContext()
TYPED = ReadingContext(typed=True)


def read_value(value: Any, kind: PropType, context: ReadingContext = ALONE) -> Any:
    """A JSON value, or the Python value it stands for, as the type stores it; raises `Misfit`.

    Whether it may be null or is a word of an enum are rules about rows, not about values.
    """
    if kind.vector_dim is not None:
        return _vector(value, kind.vector_dim)
    if not kind.is_list:
        return _scalar(value, kind.scalar, context)
    members = _members(value, "a list", wrong_kind=True)
    if any(member is None for member in members):
        raise Misfit("expected a list without nulls, got one that contains a null")
    return tuple(_scalar(member, kind.scalar, context) for member in members)


def read_text(text: str, kind: PropType, context: ReadingContext = ALONE) -> Any:
    """A cell of a file that holds only texts: numbers and booleans are spelt out, lists and vectors are JSON."""
    if kind.is_list or kind.is_vector:
        return read_value(_json_list(text), kind, context)
    if kind.scalar in INTEGERS:
        return _in_range(text, kind.scalar)
    if kind.scalar in FLOATS:
        return _float_text(text, kind.scalar)
    if kind.scalar is Scalar.BOOL:
        found = BOOLS.get(text.lower())
        if found is None:
            raise unfit(EXPECTED[Scalar.BOOL], text)
        return found
    return read_value(text, kind, context)


def plain(value: Any) -> Any:
    """Numbers, texts, lists and times of other libraries, as Python's own; raises `TypeError`."""
    import msgspec

    kept = (bytes, bytearray, dt.datetime, dt.date, decimal.Decimal)
    found = msgspec.to_builtins(value, builtin_types=kept, enc_hook=foreign)
    if is_missing(found):
        return None
    return _number(found) if isinstance(found, decimal.Decimal) else found


def is_missing(value: Any) -> bool:
    """Whether it is one of the two nulls of pandas that are not None."""
    return type(value).__name__ in ("NAType", "NaTType")


def foreign(value: Any) -> Any:
    """A value no encoder supports: numbers and arrays of numpy, times that can spell themselves."""
    if is_missing(value):
        return None
    if hasattr(value, "tolist"):
        return to_json(value.tolist())
    if hasattr(value, "isoformat"):
        return value.isoformat()
    raise Misfit(f"{type(value).__name__} is not a value of a record", rule="record")


def spelt(value: Any, context: ReadingContext = ALONE) -> Any:
    """A plain value as JSON can hold it, so that it reads back as the same; `Misfit` for a time without a zone."""
    match value:
        case float():
            return to_json(value)
        case list() | tuple() if not all(type(member) in (int, str) for member in value):
            return [spelt(member, context) for member in value]
        case dict():
            return {name: spelt(member, context) for name, member in value.items()}
        case bytes() | bytearray():
            return bytes_text(bytes(value))
        case dt.datetime():
            return None if is_missing(value) else zoned(value, context)
        case decimal.Decimal():
            return spelt(_number(value))
    return value


def _number(value: decimal.Decimal) -> int | float:
    whole = value.is_finite() and value == value.to_integral_value()
    return int(value) if whole else float(value)


# --- one reader per type -------------------------------------------------------------------------------------------


def _scalar(value: Any, scalar: Scalar, context: ReadingContext) -> Any:
    read = READERS[scalar]
    found = read(value, scalar, context)
    if found is None and type(value).__module__ != "builtins" and value is not None:
        found = read(_simple(value), scalar, context)
    if found is None:
        raise unfit(EXPECTED[scalar], value, wrong_kind=True)
    return found


def _simple(value: Any) -> Any:
    try:
        return plain(value)
    except (Misfit, TypeError, ValueError, OverflowError):
        return None


def _string(value: Any, _scalar: Scalar, _context: ReadingContext) -> str | None:
    if not isinstance(value, str):
        return None
    if not is_unicode(value):
        raise Misfit("expected Unicode text, got half of a surrogate pair", rule="json")
    return value


def _bool(value: Any, _scalar: Scalar, _context: ReadingContext) -> bool | None:
    return value if isinstance(value, bool) else None


def _integer(value: Any, scalar: Scalar, context: ReadingContext) -> int | None:
    if isinstance(value, bool):
        return None
    if context.typed and isinstance(value, float) and value.is_integer():
        return _in_range(int(value), scalar)
    if isinstance(value, int) or (scalar in WIDE and isinstance(value, str)):
        return _in_range(value, scalar)
    return None


def _in_range(value: int | str, scalar: Scalar) -> int:
    """A number, or its digits, if the type holds it."""
    if isinstance(value, str) and not value.lstrip("+-").isdecimal():
        raise unfit(EXPECTED[scalar], value, wrong_kind=True)
    low, high = INTEGER_RANGES[scalar]
    fits = isinstance(value, int) or DIGITS.fullmatch(value)
    number = int(value) if fits else high + 1
    if not low <= number <= high:
        raise unfit(EXPECTED[scalar], value, rule="range")
    return number


def _float(value: Any, scalar: Scalar, context: ReadingContext) -> float | None:
    if isinstance(value, str):
        return NOT_FINITE.get(value)  # as exports write what JSON cannot represent
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = _stored(float(value), scalar)
    except OverflowError:
        raise _too_large(value, scalar) from None
    if context.typed and isinstance(value, int) and number != value:
        raise unfit(f"a number that {scalar} holds exactly", value, rule="range")
    return number


def _float_text(text: str, scalar: Scalar) -> float:
    if not NUMBER.fullmatch(text):
        raise unfit(EXPECTED[scalar], text, wrong_kind=True)
    number = float(text)
    try:
        if math.isinf(number) and text[-1] in "0123456789.":
            raise OverflowError
        return _stored(number, scalar)
    except OverflowError:
        raise _too_large(text, scalar) from None


def _stored(number: float, scalar: Scalar) -> float:
    return (
        number if scalar is Scalar.F64 else float(*struct.unpack("<f", struct.pack("<f", number)))
    )


def _too_large(value: float | str, scalar: Scalar) -> Misfit:
    return unfit(f"a number that is not too large for {scalar}", value, rule="range")


def _date(value: Any, scalar: Scalar, _context: ReadingContext) -> dt.date | None:
    match value:
        case bool() | dt.datetime():
            return None
        case dt.date():
            return value
        case int():
            return _since_epoch(lambda: EPOCH + dt.timedelta(days=value), value, scalar)
        case str():
            return _parsed(parse_date(value), value, scalar)
    return None


def _datetime(value: Any, scalar: Scalar, context: ReadingContext) -> dt.datetime | None:
    match value:
        case bool():
            return None
        case dt.datetime():
            return _since_epoch(lambda: whole_millis(zoned(value, context)), value, scalar)
        case dt.date():
            return midnight(value)
        case int():
            start = midnight(EPOCH)
            return _since_epoch(lambda: start + dt.timedelta(milliseconds=value), value, scalar)
        case str():
            local = None if context.timezone is None else lambda given: zoned(given, context)
            return _parsed(parse_datetime(value, local), value, scalar)
    return None


def zoned(value: dt.datetime, context: ReadingContext) -> dt.datetime:
    """A date-time with the zone it is assumed to have, if it has none."""
    if value.tzinfo is not None:
        return value
    if context.timezone is None:
        message = "expected a date-time with a time zone, got one without"
        raise Misfit(message, rule=NO_ZONE, value=value.isoformat())
    from zoneinfo import ZoneInfo

    found = value.replace(tzinfo=ZoneInfo(context.timezone))
    if found.utcoffset() != found.replace(fold=1 - found.fold).utcoffset():
        once = f"a time that happens once in {context.timezone}"
        raise unfit(once, value.isoformat())
    return found


def _since_epoch(compute: Callable[[], T], value: Any, scalar: Scalar) -> T:
    try:
        return compute()
    except OverflowError:
        raise unfit(f"{EXPECTED[scalar]}, in the years 1 to 9999", value) from None


def _parsed(found: T | None, text: str, scalar: Scalar) -> T:
    if found is None:
        raise unfit(EXPECTED[scalar], text)
    return found


def _blob(value: Any, scalar: Scalar, context: ReadingContext) -> bytes | str | None:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    if not isinstance(value, str):
        return None
    try:
        found = parse_bytes(value)
    except ValueError as bad:
        raise Misfit(f"expected {EXPECTED[scalar]}: {bad}", value=value[:80]) from None
    if found is not None:
        return found
    if context.fetch is None:
        raise unfit(EXPECTED[scalar], value, rule="blob_address")
    return context.fetch(value)


READERS: dict[Scalar, Callable[[Any, Scalar, ReadingContext], Any]] = {
    Scalar.STRING: _string,
    Scalar.BLOB: _blob,
    Scalar.BOOL: _bool,
    Scalar.DATE: _date,
    Scalar.DATETIME: _datetime,
    **dict.fromkeys(INTEGERS, _integer),
    **dict.fromkeys(FLOATS, _float),
}


# --- lists and vectors -----------------------------------------------------------------------------------------------


def _members(value: Any, expected: str, *, wrong_kind: bool) -> Sequence[Any]:
    found = value if isinstance(value, list | tuple) else _simple(value)
    if not isinstance(found, list | tuple):
        raise unfit(expected, value, wrong_kind=wrong_kind)
    return found


def _vector(value: Any, dimension: int) -> tuple[float, ...]:
    members = _members(value, f"a list of {dimension} numbers", wrong_kind=False)
    if len(members) != dimension:
        raise Misfit(f"expected {dimension} numbers, got {len(members)}")
    for member in members:
        if isinstance(member, str) or (isinstance(member, float) and not math.isfinite(member)):
            raise unfit(f"{dimension} finite numbers", member)
    try:
        layout = f"<{dimension}f"
        if all(type(member) is float for member in members):
            return struct.unpack(layout, struct.pack(layout, *members))
    except OverflowError:
        pass  # the one that is too large is named below
    return tuple(_scalar(member, Scalar.F32, ALONE) for member in members)


def _json_list(text: str) -> list[Any]:
    import msgspec

    try:
        return msgspec.json.decode(text, type=list)
    except (msgspec.DecodeError, RecursionError) as bad:
        raise Misfit(f"expected a JSON array: {bad}", value=text) from None
