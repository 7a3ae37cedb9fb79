"""Sums, differences, truncation and the durations between temporal values."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from omnigraph.model.frozen import frozen
from omnigraph.values.temporal import calendar
from omnigraph.values.temporal.kinds import (
    DAY_NANOS,
    DAY_SECONDS,
    SECOND_NANOS,
    Duration,
    LocalDateTime,
    LocalTime,
    Temporal,
    TemporalInvalid,
    Time,
    ZonedDateTime,
    date_days,
    date_of,
    from_stored,
    offset_text,
)
from omnigraph.values.temporal.making import (
    FRACTIONS,
    clock_in,
    day_in,
    day_of_parts,
    exact,
    fraction_of,
    nanos_of_clock,
    spread,
    zone_in,
)
from omnigraph.values.temporal.names import TemporalKind
from omnigraph.values.temporal.zones import at_moment, placed, zone_of


def as_zoned(value: Temporal) -> ZonedDateTime:
    if isinstance(value, dt.datetime):
        return from_stored(value)
    if not isinstance(value, ZonedDateTime):
        raise TemporalInvalid("a value without a zone is not a moment in time")
    return value


# --- sums ----------------------------------------------------------------------------------------------------------


def add(left: Temporal, right: Temporal) -> Temporal:
    """Two durations, or a value and a duration in any order."""
    if isinstance(left, Duration) and not isinstance(right, Duration):
        left, right = right, left
    if not isinstance(right, Duration):
        raise TemporalInvalid("only durations are added")
    match left:
        case Duration():
            total = left.total + right.total
            return Duration.of_nanos(total, left.months + right.months, left.days + right.days)
        case dt.datetime():
            return _moved(from_stored(left), right)
        case dt.date():
            # Whole days of its seconds count, the rest does not.
            clock = abs(right.seconds) // DAY_SECONDS * (1 if right.seconds > 0 else -1)
            days = calendar.plus_months(date_days(left), right.months) + right.days + clock
            return date_of(days)
        case LocalTime(nanos):
            return LocalTime((nanos + right.total) % DAY_NANOS)
        case Time(nanos, offset):
            return Time((nanos + right.total) % DAY_NANOS, offset)
        case LocalDateTime():
            return _shifted(left, right).plus(right.total)
        case ZonedDateTime():
            return _moved(left, right)


def _shifted(value: LocalDateTime, by: Duration) -> LocalDateTime:
    return LocalDateTime(calendar.plus_months(value.days, by.months) + by.days, value.nanos)


def _moved(value: ZonedDateTime, by: Duration) -> ZonedDateTime:
    """Months and days by the calendar of the zone, seconds by the clock."""
    if by.months or by.days:
        value = placed(_shifted(value.local, by), zone_of(value), preferred=value.offset)
    return at_moment(value.moment.plus(by.total), zone_of(value))


def negated(value: Duration) -> Duration:
    return Duration.of_nanos(-value.total, -value.months, -value.days)


def subtract(left: Temporal, right: Temporal) -> Temporal:
    """A duration less, from a value or another duration."""
    if not isinstance(right, Duration):
        raise TemporalInvalid("only durations are subtracted")
    return add(left, negated(right))


def multiply(left: Any, right: Any) -> Duration:
    """A duration multiplied by a number."""
    value, number = (left, right) if isinstance(left, Duration) else (right, left)
    return _times(value, exact(number))


def divide(value: Duration, number: Any) -> Duration:
    by = exact(number)
    if not by:
        raise TemporalInvalid("a duration is divided by zero")
    return _times(value, 1 / by)


def _times(value: Duration, number: Fraction) -> Duration:
    return spread(value.months * number, value.days * number, value.total * number)


# --- truncation ----------------------------------------------------------------------------------------------------

YEARS = {"millennium": 1000, "century": 100, "decade": 10, "year": 1}
CLOCK_NANOS = {
    "day": DAY_NANOS,
    "hour": 3600 * SECOND_NANOS,
    "minute": 60 * SECOND_NANOS,
    "second": SECOND_NANOS,
    "millisecond": 1_000_000,
    "microsecond": 1000,
}
DAY_UNITS = (*YEARS, "weekYear", "quarter", "month", "week", "day")
UNITS = (*DAY_UNITS, *(unit for unit in CLOCK_NANOS if unit != "day"))


def truncate(kind: TemporalKind, unit: str, value: Temporal, parts: Mapping[str, Any]) -> Temporal:
    """The value with everything smaller than a unit at its beginning, and then with these parts."""
    if unit not in UNITS:
        raise TemporalInvalid(f"`{unit[:40]}` is not a unit; the units are {', '.join(UNITS)}")
    dated = kind not in (TemporalKind.LOCAL_TIME, TemporalKind.TIME)
    days, nanos = day_in(value), clock_in(value)
    clocked = unit in CLOCK_NANOS
    if (dated and days is None) or (not dated and (nanos is None or not clocked)):
        raise TemporalInvalid(f"a {kind} cannot be made by truncating this value to a {unit}")
    if unit not in DAY_UNITS and (nanos is None or kind is TemporalKind.DATE):
        raise TemporalInvalid(f"a date has no {unit}")
    if dated and days is not None:
        days = _first_day(days, unit)
        given = {n: v for n, v in parts.items() if n not in ("timezone", *FRACTIONS, *CLOCK_WORDS)}
        days = day_of_parts(given, days)
    nanos = 0 if not clocked else (nanos or 0) // CLOCK_NANOS[unit] * CLOCK_NANOS[unit]
    if kind is TemporalKind.DATE:
        return date_of(days or 0)
    clock = {n: v for n, v in parts.items() if n in CLOCK_WORDS}
    nanos = nanos_of_clock(clock, nanos) + fraction_of(parts)
    if nanos >= DAY_NANOS:
        raise TemporalInvalid("the parts of a second add up to more than one")
    zone = parts.get("timezone") or zone_in(value) or "Z"
    return _assembled(kind, days or 0, nanos, zone)


CLOCK_WORDS = ("hour", "minute", "second")


def _assembled(kind: TemporalKind, days: int, nanos: int, zone: str) -> Temporal:
    match kind:
        case TemporalKind.LOCAL_TIME:
            return LocalTime(nanos)
        case TemporalKind.LOCAL_DATETIME:
            return LocalDateTime(days, nanos)
        case TemporalKind.DATETIME:
            return placed(LocalDateTime(days, nanos), zone)
        case _:
            return Time(nanos, placed(LocalDateTime(days, nanos), zone).offset)


def _first_day(days: int, unit: str) -> int:
    year, month, _ = calendar.civil(days)
    match unit:
        case "weekYear":
            return calendar.week_year_start(calendar.week_of(days)[0])
        case "quarter":
            return calendar.quarter_start(year, (month + 2) // 3)
        case "month":
            return calendar.days_of(year, month, 1)
        case "week":
            return days - calendar.weekday(days) + 1
        case _ if unit in YEARS:
            return calendar.days_of(year // YEARS[unit] * YEARS[unit], 1, 1)
        case _:
            return days


# --- between two values --------------------------------------------------------------------------------------------


@frozen
class _Span:
    """Two values in a common form: in one zone if one of them has one, on one day if one of them has none."""

    start: LocalDateTime
    end: LocalDateTime
    zone: str | None
    dated: bool
    nanos: int  # between the two moments

    def rest(self, from_local: LocalDateTime) -> int:
        """The nanoseconds from a local time to the end."""
        if self.zone is None:
            return self.end.total - from_local.total
        here = placed(from_local, self.zone).moment.total
        return self._end_moment - here

    @property
    def _end_moment(self) -> int:
        assert self.zone is not None  # noqa: S101
        return placed(self.start, self.zone).moment.total + self.nanos


def _span(start: Temporal, end: Temporal) -> _Span:
    days = day_in(start), day_in(end)
    dated = None not in days
    shared = next((day for day in days if day is not None), 0)
    locals_ = [
        LocalDateTime(shared if day is None else day, clock_in(value) or 0)
        for day, value in zip(days, (start, end), strict=True)
    ]
    zones = [_own_zone(start), _own_zone(end)]
    if zones == [None, None]:
        between = locals_[1].total - locals_[0].total
        return _Span(locals_[0], locals_[1], None, dated, between)
    known = [zone or zones[1 - i] or "Z" for i, zone in enumerate(zones)]
    placed_ = [
        as_zoned(value) if isinstance(value, dt.datetime | ZonedDateTime) else placed(local, zone)
        for value, local, zone in zip((start, end), locals_, known, strict=True)
    ]
    nanos = placed_[1].moment.total - placed_[0].moment.total
    end = at_moment(placed_[1].moment, known[0])
    return _Span(placed_[0].local, end.local, known[0], dated, nanos)


def _own_zone(value: Temporal) -> str | None:
    return offset_text(value.offset) if isinstance(value, Time) else zone_in(value)


def _months(start: LocalDateTime, end: LocalDateTime) -> int:
    """Whole months, towards zero."""
    first, last = calendar.civil(start.days), calendar.civil(end.days)
    months = (last[0] - first[0]) * 12 + last[1] - first[1]
    ours, theirs = (first[2], start.nanos), (last[2], end.nanos)
    if months > 0 and theirs < ours:
        months -= 1
    elif months < 0 and theirs > ours:
        months += 1
    return months


def _days(start: LocalDateTime, end: LocalDateTime) -> int:
    total = end.total - start.total
    return abs(total) // DAY_NANOS * (1 if total > 0 else -1)


def between(start: Temporal, end: Temporal) -> Duration:
    """Months, then days, then the rest."""
    span = _span(start, end)
    if not span.dated:
        return Duration.of_nanos(span.nanos)
    months = _months(span.start, span.end)
    near = LocalDateTime(calendar.plus_months(span.start.days, months), span.start.nanos)
    days = _days(near, span.end)
    near = LocalDateTime(near.days + days, near.nanos)
    if not months and not days:
        return Duration.of_nanos(span.nanos)
    return Duration.of_nanos(span.rest(near), months, days)


def in_months(start: Temporal, end: Temporal) -> Duration:
    span = _span(start, end)
    return Duration(_months(span.start, span.end) if span.dated else 0, 0, 0, 0)


def in_days(start: Temporal, end: Temporal) -> Duration:
    span = _span(start, end)
    return Duration(0, _days(span.start, span.end) if span.dated else 0, 0, 0)


def in_seconds(start: Temporal, end: Temporal) -> Duration:
    return Duration.of_nanos(_span(start, end).nanos)
