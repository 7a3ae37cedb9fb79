"""Casts of single values, and reading dates, times and bytes from text."""

from __future__ import annotations

import base64
import datetime as dt
import math
import re
import struct
from collections.abc import Callable
from typing import Any

from omnigraph.model.types import FLOATS, INTEGER_RANGES, INTEGERS, PropType, Scalar

DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
DATETIME = re.compile(
    r"(\d{4}-\d{2}-\d{2})[Tt ](\d{2}:\d{2})(:\d{2})?(\.\d{1,9})?([Zz]|[+-]\d{2}:?\d{2})?"
)
INTEGER = re.compile(r"[+-]?\d{1,30}")


def parse_date(text: str) -> dt.date | None:
    """The date `YYYY-MM-DD`, or nothing."""
    if not DATE.fullmatch(text):
        return None
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        return None


def parse_datetime(text: str) -> dt.datetime | None:
    """An RFC 3339 instant in UTC with whole milliseconds, or nothing.

    A time without a zone is UTC; a date alone is its midnight.
    """
    found = DATETIME.fullmatch(text)
    if found is None:
        day = parse_date(text)
        return None if day is None else dt.datetime(day.year, day.month, day.day, tzinfo=dt.UTC)
    date, minutes, seconds, fraction, zone = found.groups()
    micros = (fraction or ".0")[1:4].ljust(3, "0")  # finer than a millisecond is cut off
    offset = "+00:00" if zone is None or zone in "Zz" else zone
    try:
        value = dt.datetime.fromisoformat(f"{date}T{minutes}{seconds or ':00'}.{micros}000{offset}")
        return value.astimezone(dt.UTC)
    except (ValueError, OverflowError):
        return None


def parse_bytes(text: str) -> bytes | None:
    """The bytes `base64:` spells; nothing for other texts, and `ValueError` for what is not base64.

    >>> parse_bytes("base64:SGVsbG8=")
    b'Hello'
    """
    if not text.startswith("base64:"):
        return None
    return base64.b64decode(text.removeprefix("base64:"), validate=True)


def cast_value(value: Any, kind: PropType) -> Any:
    """A value in another type; `None` where it has no counterpart there."""
    return None if value is None else CASTS[kind.scalar](value, kind.scalar)


def _to_string(value: Any, _: Scalar) -> str | None:
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return float_text(value)
        case dt.datetime():
            return datetime_text(value)
        case dt.date():
            return value.isoformat()
        case _:
            return str(value)


def datetime_text(value: dt.datetime) -> str:
    """An instant as RFC 3339 in UTC, with milliseconds and four digits of the year.

    >>> datetime_text(dt.datetime(7, 1, 2, tzinfo=dt.UTC))
    '0007-01-02T00:00:00.000Z'
    """
    moment = value.astimezone(dt.UTC).replace(tzinfo=None)
    return moment.isoformat(timespec="milliseconds") + "Z"


def float_text(value: float) -> str:
    """The shortest decimal that reads back as the same number."""
    return repr(value)


def _to_integer(value: Any, scalar: Scalar) -> int | None:
    match value:
        case str():
            text = value.strip()
            number = int(text) if INTEGER.fullmatch(text) else None
        case float():
            number = int(value) if math.isfinite(value) else None
        case int():
            number = int(value)
        case _:
            return None
    low, high = INTEGER_RANGES[scalar]
    return number if number is not None and low <= number <= high else None


def _to_float(value: Any, scalar: Scalar) -> float | None:
    match value:
        case str() | int() | float():
            try:
                number = float(value)
            except (ValueError, OverflowError):
                return None
        case _:
            return None
    if scalar is Scalar.F64:
        return number
    try:
        return float(struct.unpack("<f", struct.pack("<f", number))[0])
    except OverflowError:
        return None


def _to_bool(value: Any, _: Scalar) -> bool | None:
    match value:
        case str():
            return {"true": True, "false": False}.get(value.strip().lower())
        case bool() | int():
            return bool(value)
        case _:
            return None


def _to_date(value: Any, _: Scalar) -> dt.date | None:
    match value:
        case str():
            return parse_date(value.strip())
        case dt.datetime():
            return value.astimezone(dt.UTC).date()
        case dt.date():
            return value
        case _:
            return None


def _to_datetime(value: Any, _: Scalar) -> dt.datetime | None:
    match value:
        case str():
            return parse_datetime(value.strip())
        case dt.datetime():
            return value
        case dt.date():
            return dt.datetime(value.year, value.month, value.day, tzinfo=dt.UTC)
        case _:
            return None


CASTS: dict[Scalar, Callable[[Any, Scalar], Any]] = {
    Scalar.STRING: _to_string,
    Scalar.BOOL: _to_bool,
    Scalar.DATE: _to_date,
    Scalar.DATETIME: _to_datetime,
    **dict.fromkeys(INTEGERS, _to_integer),
    **dict.fromkeys(FLOATS, _to_float),
}
