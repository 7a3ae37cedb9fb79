"""The text forms of values: dates, times and bytes from their texts, and every value in its JSON shape."""

from __future__ import annotations

import base64
import datetime as dt
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
DATETIME = re.compile(
    r"(\d{4}-\d{2}-\d{2})[Tt ]([01]\d:[0-5]\d|2[0-3]:[0-5]\d)(:[0-5]\d)?(\.\d{1,9})?"
    r"([Zz]|[+-](?:[01]\d|2[0-3]):?[0-5]\d)?",
    re.ASCII,
)
NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
SAFE_INTEGER_MAX = 2**53 - 1


def parse_date(text: str) -> dt.date | None:
    """The date `YYYY-MM-DD`, or None."""
    if not DATE.fullmatch(text):
        return None
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        return None


def parse_datetime(
    text: str, zoned: Callable[[dt.datetime], dt.datetime] | None = None
) -> dt.datetime | None:
    """An RFC 3339 instant in UTC with whole milliseconds, or None.

    A time without a zone is UTC, unless `zoned` gives it one; a date alone is its midnight.
    """
    found = DATETIME.fullmatch(text)
    if found is None:
        day = parse_date(text)
        return None if day is None else midnight(day)
    date, minutes, seconds, fraction, zone = found.groups()
    micros = (fraction or ".0")[1:4].ljust(3, "0")  # finer than a millisecond is truncated
    local = zone is None and zoned is not None
    offset = "" if local else "+00:00" if zone is None or zone in "Zz" else zone
    try:
        value = dt.datetime.fromisoformat(f"{date}T{minutes}{seconds or ':00'}.{micros}000{offset}")
        return (zoned(value) if zoned and local else value).astimezone(dt.UTC)
    except (ValueError, OverflowError):
        return None


def midnight(day: dt.date) -> dt.datetime:
    """The first moment of a day in UTC."""
    return dt.datetime(day.year, day.month, day.day, tzinfo=dt.UTC)


def whole_millis(value: dt.datetime) -> dt.datetime:
    """An instant in UTC; finer than a millisecond is truncated."""
    moment = value.astimezone(dt.UTC)
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def parse_bytes(text: str) -> bytes | None:
    """The bytes of a `base64:` text; None for other texts, and `ValueError` for what is not base64.

    >>> parse_bytes("base64:SGVsbG8=")
    b'Hello'
    """
    if not text.startswith("base64:"):
        return None
    return base64.b64decode(text.removeprefix("base64:"), validate=True)


def bytes_text(value: bytes) -> str:
    """Bytes as a text that reads back as the same.

    >>> bytes_text(b"Hello")
    'base64:SGVsbG8='
    """
    return "base64:" + base64.b64encode(value).decode()


def datetime_text(value: dt.datetime) -> str:
    """An instant as RFC 3339 in UTC, with milliseconds and four digits of the year.

    >>> datetime_text(dt.datetime(7, 1, 2, tzinfo=dt.UTC))
    '0007-01-02T00:00:00.000Z'
    """
    moment = value.astimezone(dt.UTC).replace(tzinfo=None)
    return moment.isoformat(timespec="milliseconds") + "Z"


def time_text(time: dt.datetime) -> str:
    """A time of a commit, a proposal or a run as every surface writes it, to the microsecond."""
    return time.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def fields_json(record: Any) -> dict[str, Any]:
    """A record in its JSON shape: its fields, in order."""
    return {name: _field_json(getattr(record, name)) for name in record.__dataclass_fields__}


def _field_json(value: Any) -> Any:
    match value:
        case dt.datetime():
            return time_text(value)
        case Mapping():
            return {key: _field_json(item) for key, item in value.items()}
        case list() | tuple():
            return [_field_json(item) for item in value]
        case _:
            return value.to_json() if hasattr(value, "to_json") else value


def to_json(value: Any, safe_integers: bool = False) -> Any:
    """A value in its JSON shape; `safe_integers` writes integers JavaScript would round as text.

    >>> to_json(dt.date(2024, 2, 29)), to_json(float("inf"))
    ('2024-02-29', 'Infinity')
    """
    match value:
        case bool() | None | str():
            return value
        case int():
            return str(value) if safe_integers and abs(value) > SAFE_INTEGER_MAX else value
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case dt.datetime():
            return datetime_text(value)
        case dt.date():
            return value.isoformat()
        case list() | tuple():
            return [to_json(v, safe_integers) for v in value]
        case dict():
            return {k: to_json(v, safe_integers) for k, v in value.items()}
        case _:
            return value
