"""The parts of temporal values, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from omnigraph.values.temporal import calendar
from omnigraph.values.temporal.kinds import (
    SECOND_NANOS,
    Duration,
    Temporal,
    TemporalInvalid,
    Time,
    ZonedDateTime,
    offset_text,
)
from omnigraph.values.temporal.making import clock_in, day_in, zone_in
from omnigraph.values.temporal.names import TemporalKind


def _quarter(days: int) -> int:
    return (calendar.civil(days)[1] + 2) // 3


def _day_of_quarter(days: int) -> int:
    return days - calendar.quarter_start(calendar.civil(days)[0], _quarter(days)) + 1


OF_DAY: Mapping[str, Callable[[int], int]] = {
    "year": lambda days: calendar.civil(days)[0],
    "quarter": _quarter,
    "month": lambda days: calendar.civil(days)[1],
    "week": lambda days: calendar.week_of(days)[1],
    "weekYear": lambda days: calendar.week_of(days)[0],
    "day": lambda days: calendar.civil(days)[2],
    "ordinalDay": lambda days: days - calendar.days_of(calendar.civil(days)[0], 1, 1) + 1,
    "weekDay": calendar.weekday,
    "dayOfWeek": calendar.weekday,
    "dayOfQuarter": _day_of_quarter,
}
OF_CLOCK: Mapping[str, Callable[[int], int]] = {
    "hour": lambda nanos: nanos // (3600 * SECOND_NANOS),
    "minute": lambda nanos: nanos // (60 * SECOND_NANOS) % 60,
    "second": lambda nanos: nanos // SECOND_NANOS % 60,
    "millisecond": lambda nanos: nanos // 1_000_000 % 1000,
    "microsecond": lambda nanos: nanos // 1000 % 1_000_000,
    "nanosecond": lambda nanos: nanos % SECOND_NANOS,
}
OF_ZONE = ("timezone", "offset", "offsetMinutes", "offsetSeconds")
OF_MOMENT = ("epochSeconds", "epochMillis")
TEXTS = frozenset({"timezone", "offset"})


def _cut(value: int, by: int) -> int:
    """Divided towards zero."""
    return value // by if value >= 0 else -(-value // by)


def _rest(value: int, by: int) -> int:
    return value - _cut(value, by) * by


OF_DURATION: Mapping[str, Callable[[Duration], int]] = {
    "years": lambda d: _cut(d.months, 12),
    "quarters": lambda d: _cut(d.months, 3),
    "months": lambda d: d.months,
    "weeks": lambda d: _cut(d.days, 7),
    "days": lambda d: d.days,
    "hours": lambda d: _cut(d.seconds, 3600),
    "minutes": lambda d: _cut(d.seconds, 60),
    "seconds": lambda d: d.seconds,
    "milliseconds": lambda d: d.seconds * 1000 + d.nanos // 1_000_000,
    "microseconds": lambda d: d.seconds * 1_000_000 + d.nanos // 1000,
    "nanoseconds": lambda d: d.seconds * SECOND_NANOS + d.nanos,
    "quartersOfYear": lambda d: _rest(_cut(d.months, 3), 4),
    "monthsOfQuarter": lambda d: _rest(d.months, 3),
    "monthsOfYear": lambda d: _rest(d.months, 12),
    "daysOfWeek": lambda d: _rest(d.days, 7),
    "minutesOfHour": lambda d: _rest(_cut(d.seconds, 60), 60),
    "secondsOfMinute": lambda d: _rest(d.seconds, 60),
    "millisecondsOfSecond": lambda d: d.nanos // 1_000_000,
    "microsecondsOfSecond": lambda d: d.nanos // 1000,
    "nanosecondsOfSecond": lambda d: d.nanos,
}
PART_NAMES: Mapping[TemporalKind, tuple[str, ...]] = {
    TemporalKind.DATE: tuple(OF_DAY),
    TemporalKind.LOCAL_TIME: tuple(OF_CLOCK),
    TemporalKind.TIME: (*OF_CLOCK, *OF_ZONE),
    TemporalKind.LOCAL_DATETIME: (*OF_DAY, *OF_CLOCK),
    TemporalKind.DATETIME: (*OF_DAY, *OF_CLOCK, *OF_ZONE, *OF_MOMENT),
    TemporalKind.DURATION: tuple(OF_DURATION),
}
INTEGER_MAX = 2**63 - 1


def part(value: Temporal, name: str) -> int | str:
    """A part of a value: a text for zones, else a whole number of 64 bits."""
    found = _part(value, name)
    if isinstance(found, int) and abs(found) > INTEGER_MAX:
        raise TemporalInvalid(f"`{name}` of this value is larger than an integer of 64 bits")
    return found


def _part(value: Temporal, name: str) -> int | str:
    if isinstance(value, Duration):
        return OF_DURATION[name](value)
    if name in OF_DAY:
        days = day_in(value)
        assert days is not None  # noqa: S101 - the languages see to it
        return OF_DAY[name](days)
    if name in OF_CLOCK:
        return OF_CLOCK[name](clock_in(value) or 0)
    if name == "timezone":
        return zone_in(value) or ""
    offset = value.offset if isinstance(value, Time | ZonedDateTime) else 0
    match name:
        case "offset":
            return offset_text(offset)
        case "offsetMinutes":
            return _cut(offset, 60)
        case "offsetSeconds":
            return offset
        case _:
            return _since_epoch(value, name)


def _since_epoch(value: Temporal, name: str) -> int:
    from omnigraph.values.temporal.arithmetic import as_zoned

    moment = as_zoned(value).moment
    return moment.seconds if name == "epochSeconds" else moment.total // 1_000_000
