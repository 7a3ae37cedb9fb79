"""Temporal values from their texts: the forms of ISO 8601, with names of zones in brackets."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from fractions import Fraction

from omnigraph.values.temporal.kinds import (
    YEAR_MAX,
    Duration,
    LocalDateTime,
    LocalTime,
    Temporal,
    TemporalInvalid,
    Time,
    ZonedDateTime,
    date_of,
)
from omnigraph.values.temporal.making import day_of_parts, duration_of, nanos_of_clock
from omnigraph.values.temporal.names import TemporalKind
from omnigraph.values.temporal.zones import placed, read_offset

TEXT_CHARACTERS_MAX = 200
DAY = (
    r"(?P<year>\d{4}|[+-]\d{1,9})(?:"
    r"-(?P<month>\d\d)(?:-(?P<day>\d\d))?|-W(?P<week>\d\d)(?:-(?P<weekday>\d))?"
    r"|-Q(?P<quarter>\d)(?:-(?P<of_quarter>\d\d))?|-(?P<ordinal>\d{3})"
    r"|(?P<month2>\d\d)(?P<day2>\d\d)?|W(?P<week2>\d\d)(?P<weekday2>\d)?"
    r"|Q(?P<quarter2>\d)(?P<of_quarter2>\d\d)?|(?P<ordinal2>\d{3}))?"
)
CLOCK = (
    r"(?P<hour>\d\d)(?::(?P<minute>\d\d)(?::(?P<second>\d\d)(?:[.,](?P<fraction>\d{1,9}))?)?"
    r"|(?P<minute2>\d\d)(?:(?P<second2>\d\d)(?:[.,](?P<fraction2>\d{1,9}))?)?)?"
)
ZONE = r"(?P<offset>[Zz]|[+-]\d\d(?::?\d\d(?::?\d\d)?)?)?(?:\[(?P<zone>[^\]]{1,100})\])?"
DATE = re.compile(DAY, re.ASCII)
LOCAL_TIME = re.compile(CLOCK, re.ASCII)
TIME = re.compile(CLOCK + ZONE, re.ASCII)
DATETIME = re.compile(DAY + r"(?:[Tt ]" + CLOCK + ZONE + r")?", re.ASCII)
NUMBER = r"([+-]?\d{1,18}(?:[.,]\d{1,18})?)"
DURATION = re.compile(
    rf"([+-])?P(?:{NUMBER}Y)?(?:{NUMBER}M)?(?:{NUMBER}W)?(?:{NUMBER}D)?"
    rf"(?:T(?:{NUMBER}H)?(?:{NUMBER}M)?(?:{NUMBER}S)?)?",
    re.ASCII,
)
SPELT_OUT = re.compile(
    r"P(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d(?:[.,]\d{1,9})?)"
    r"|P(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d(?:[.,]\d{1,9})?)",
    re.ASCII,
)
UNITS = ("years", "months", "weeks", "days", "hours", "minutes", "seconds")
EXPECTED = {
    TemporalKind.DATE: "a date such as 2015-07-21, 2015-W30-2 or 2015-202",
    TemporalKind.LOCAL_TIME: "a time such as 21:40:32.142",
    TemporalKind.TIME: "a time such as 21:40:32+01:00",
    TemporalKind.LOCAL_DATETIME: "a date and time such as 2015-07-21T21:40:32",
    TemporalKind.DATETIME: "a date and time such as 2015-07-21T21:40:32+02:00[Europe/Stockholm]",
    TemporalKind.DURATION: "a duration such as P1Y2M10DT2H30M",
}


def read(text: str, kind: TemporalKind) -> Temporal:
    """The value of a text; a missing zone is UTC, a missing time midnight."""
    found = READERS[kind](text) if len(text) <= TEXT_CHARACTERS_MAX else None
    if found is None:
        raise TemporalInvalid(f"expected {EXPECTED[kind]}, got `{text[:60]}`")
    return found


def _groups(found: re.Match[str]) -> dict[str, str]:
    """The matched groups, under the same names for every form."""
    return {name.rstrip("2"): part for name, part in found.groupdict().items() if part is not None}


def _days(parts: dict[str, str]) -> int:
    names = {"weekday": "dayOfWeek", "ordinal": "ordinalDay", "of_quarter": "dayOfQuarter"}
    known = ("year", "month", "day", "week", "weekday", "quarter", "of_quarter", "ordinal")
    given = {names.get(name, name): int(parts[name]) for name in known if name in parts}
    if abs(given["year"]) > YEAR_MAX:
        raise TemporalInvalid(f"a year lies outside -{YEAR_MAX} to {YEAR_MAX}")
    return day_of_parts(given, None)


def _nanos(parts: dict[str, str]) -> int:
    known = ("hour", "minute", "second")
    given: dict[str, int] = {name: int(parts[name]) for name in known if name in parts}
    given.setdefault("hour", 0)
    fraction = parts.get("fraction")
    if fraction is not None:
        given["nanosecond"] = int(fraction.ljust(9, "0"))
    return nanos_of_clock(given, None)


def _date(text: str) -> dt.date | None:
    found = DATE.fullmatch(text)
    return None if found is None else date_of(_days(_groups(found)))


def _local_time(text: str) -> LocalTime | None:
    found = LOCAL_TIME.fullmatch(text)
    return None if found is None else LocalTime(_nanos(_groups(found)))


def _time(text: str) -> Time | None:
    found = TIME.fullmatch(text)
    if found is None or found["zone"]:
        return None
    parts = _groups(found)
    return Time(_nanos(parts), read_offset(parts.get("offset", "Z")) or 0)


def _local(parts: dict[str, str]) -> LocalDateTime:
    return LocalDateTime(_days(parts), _nanos(parts))


def _local_datetime(text: str) -> LocalDateTime | None:
    found = DATETIME.fullmatch(text)
    if found is None or found["zone"] or found["offset"]:
        return None
    return _local(_groups(found))


def _datetime(text: str) -> ZonedDateTime | None:
    found = DATETIME.fullmatch(text)
    if found is None:
        return None
    parts = _groups(found)
    offset = parts.get("offset")
    zone = parts.get("zone")
    if zone is None:
        return placed(_local(parts), offset or "Z")
    return placed(_local(parts), zone, None if offset is None else read_offset(offset))


def _number(text: str) -> Fraction:
    return Fraction(text.replace(",", "."))


def _duration(text: str) -> Duration | None:
    spelt = SPELT_OUT.fullmatch(text)
    if spelt is not None:
        numbers = [part for part in spelt.groups() if part is not None]
        names = ("years", "months", "days", "hours", "minutes", "seconds")
        return duration_of({n: _number(t) for n, t in zip(names, numbers, strict=True)})
    found = DURATION.fullmatch(text)
    if found is None or text.endswith(("P", "T")):
        return None
    sign = -1 if found[1] == "-" else 1
    given = zip(UNITS, found.groups()[1:], strict=True)
    return duration_of({unit: sign * _number(part) for unit, part in given if part is not None})


READERS: dict[TemporalKind, Callable[[str], Temporal | None]] = {
    TemporalKind.DATE: _date,
    TemporalKind.LOCAL_TIME: _local_time,
    TemporalKind.TIME: _time,
    TemporalKind.LOCAL_DATETIME: _local_datetime,
    TemporalKind.DATETIME: _datetime,
    TemporalKind.DURATION: _duration,
}
