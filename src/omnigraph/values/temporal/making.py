"""Temporal values from their parts: maps of years, weeks, hours, zones and other temporal values."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from omnigraph.values.temporal import calendar
from omnigraph.values.temporal.kinds import (
    DAY_NANOS,
    DAY_SECONDS,
    SECOND_NANOS,
    YEAR_MAX,
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
from omnigraph.values.temporal.names import TemporalKind
from omnigraph.values.temporal.zones import at_moment, is_zone, placed, read_offset, zone_of

CALENDAR = ("month", "day")
WEEK = ("week", "dayOfWeek")
QUARTER = ("quarter", "dayOfQuarter")
ORDINAL = ("ordinalDay",)
DAY_PARTS = ("year", *CALENDAR, *WEEK, *QUARTER, *ORDINAL)
FRACTIONS = ("millisecond", "microsecond", "nanosecond")
CLOCK_PARTS = ("hour", "minute", "second", *FRACTIONS)
DURATION_PARTS = (
    "years",
    "quarters",
    "months",
    "weeks",
    "days",
    "hours",
    "minutes",
    "seconds",
    "milliseconds",
    "microseconds",
    "nanoseconds",
)
MONTH_DAYS = Fraction(30_436_875, 1_000_000)  # of an average month
PARTS: Mapping[TemporalKind, frozenset[str]] = {
    TemporalKind.DATE: frozenset({*DAY_PARTS, "date", "datetime"}),
    TemporalKind.LOCAL_TIME: frozenset({*CLOCK_PARTS, "time", "datetime"}),
    TemporalKind.TIME: frozenset({*CLOCK_PARTS, "time", "datetime", "timezone"}),
    TemporalKind.LOCAL_DATETIME: frozenset({*DAY_PARTS, *CLOCK_PARTS, "date", "time", "datetime"}),
    TemporalKind.DATETIME: frozenset(
        {
            *DAY_PARTS,
            *CLOCK_PARTS,
            "date",
            "time",
            "datetime",
            "timezone",
            "epochSeconds",
            "epochMillis",
        }
    ),
    TemporalKind.DURATION: frozenset(DURATION_PARTS),
}


def _whole(parts: Mapping[str, Any], name: str, low: int, high: int, missing: int) -> int:
    value = parts.get(name, missing)
    if not isinstance(value, int) or isinstance(value, bool):
        raise TemporalInvalid(f"`{name}` is a whole number")
    if not low <= value <= high:
        raise TemporalInvalid(f"`{name}` is a number from {low} to {high}, not {value}")
    return value


# --- days ----------------------------------------------------------------------------------------------------------


def day_of_parts(parts: Mapping[str, Any], base: int | None) -> int:
    """The number of the day with these parts; missing parts are those of the base, or the first ones."""
    ways = [way for way in (CALENDAR, WEEK, QUARTER, ORDINAL) if any(n in parts for n in way)]
    if len(ways) > 1:
        names = ", ".join(f"`{n}`" for way in ways for n in way if n in parts)
        raise TemporalInvalid(f"{names} name a day in different ways; use one of them")
    if base is None:
        if "year" not in parts:
            raise TemporalInvalid("a date needs a `year`")
        for name, needed in (("day", "month"), ("dayOfWeek", "week"), ("dayOfQuarter", "quarter")):
            if name in parts and needed not in parts:
                raise TemporalInvalid(f"`{name}` needs a `{needed}`")
    way = ways[0] if ways else CALENDAR
    if way is CALENDAR:
        return _calendar_day(parts, base)
    own = calendar.week_of(base)[0] if base is not None and way is WEEK else None
    if own is None:
        own = 0 if base is None else calendar.civil(base)[0]
    year = _whole(parts, "year", -YEAR_MAX, YEAR_MAX, own)
    if way is WEEK:
        return _week_day(parts, base, year)
    return _quarter_day(parts, base, year) if way is QUARTER else _ordinal_day(parts, year)


def _calendar_day(parts: Mapping[str, Any], base: int | None) -> int:
    own = (0, 1, 1) if base is None else calendar.civil(base)
    year = _whole(parts, "year", -YEAR_MAX, YEAR_MAX, own[0])
    month = _whole(parts, "month", 1, 12, own[1])
    last = calendar.month_days(year, month)
    day = _whole(parts, "day", 1, last, min(own[2], last))
    return calendar.days_of(year, month, day)


def _week_day(parts: Mapping[str, Any], base: int | None, year: int) -> int:
    own = 1 if base is None else calendar.week_of(base)[1]
    weeks = calendar.weeks_in(year)
    week = _whole(parts, "week", 1, weeks, min(own, weeks))
    day = _whole(parts, "dayOfWeek", 1, 7, 1 if base is None else calendar.weekday(base))
    return calendar.week_year_start(year) + week * 7 - 7 + day - 1


def _quarter_day(parts: Mapping[str, Any], base: int | None, year: int) -> int:
    own, of_quarter = 1, 1
    if base is not None:
        own_year, month, _ = calendar.civil(base)
        own = (month + 2) // 3
        of_quarter = base - calendar.quarter_start(own_year, own) + 1
    quarter = _whole(parts, "quarter", 1, 4, own)
    start = calendar.quarter_start(year, quarter)
    following = calendar.days_of(
        *((year + 1, 1, 1) if quarter == 4 else (year, quarter * 3 + 1, 1))
    )
    last = following - start
    return start + _whole(parts, "dayOfQuarter", 1, last, min(of_quarter, last)) - 1


def _ordinal_day(parts: Mapping[str, Any], year: int) -> int:
    last = 366 if calendar.is_leap(year) else 365
    return calendar.days_of(year, 1, 1) + _whole(parts, "ordinalDay", 1, last, 1) - 1


# --- times of day --------------------------------------------------------------------------------------------------


def nanos_of_clock(parts: Mapping[str, Any], base: int | None) -> int:
    """The nanoseconds since midnight; missing parts are those of the base, or 0."""
    if base is None:
        for name, needed in (("minute", "hour"), ("second", "minute")):
            if name in parts and needed not in parts:
                raise TemporalInvalid(f"`{name}` needs `{needed}`")
        if "second" not in parts and any(n in parts for n in FRACTIONS):
            raise TemporalInvalid("parts of a second need a `second`")
    seconds, fraction = divmod(base or 0, SECOND_NANOS)
    hour = _whole(parts, "hour", 0, 23, seconds // 3600)
    minute = _whole(parts, "minute", 0, 59, seconds // 60 % 60)
    second = _whole(parts, "second", 0, 59, seconds % 60)
    if any(name in parts for name in FRACTIONS):
        fraction = fraction_of(parts)
    return (hour * 3600 + minute * 60 + second) * SECOND_NANOS + fraction


def fraction_of(parts: Mapping[str, Any]) -> int:
    """The nanoseconds of parts of a second, each of which counts what a larger one beside it leaves."""
    millis = "millisecond" in parts
    micros = "microsecond" in parts
    total = _whole(parts, "millisecond", 0, 999, 0) * 1_000_000
    total += _whole(parts, "microsecond", 0, 999 if millis else 999_999, 0) * 1000
    most = 999 if micros else 999_999 if millis else SECOND_NANOS - 1
    return total + _whole(parts, "nanosecond", 0, most, 0)


# --- what another value has of a day, a time and a zone ------------------------------------------------------------


def day_in(value: Temporal) -> int | None:
    match value:
        case dt.datetime():
            return from_stored(value).local.days
        case dt.date():
            return date_days(value)
        case LocalDateTime():
            return value.days
        case ZonedDateTime():
            return value.local.days
        case _:
            return None


def clock_in(value: Temporal) -> int | None:
    match value:
        case dt.datetime():
            return from_stored(value).local.nanos
        case LocalTime() | Time() | LocalDateTime():
            return value.nanos
        case ZonedDateTime():
            return value.local.nanos
        case _:
            return None


def zone_in(value: Temporal) -> str | None:
    match value:
        case dt.datetime():
            return "Z"
        case Time():
            return offset_text(value.offset)
        case ZonedDateTime():
            return zone_of(value)
        case _:
            return None


# --- values from maps ----------------------------------------------------------------------------------------------


def make(kind: TemporalKind, parts: Mapping[str, Any]) -> Temporal:
    """The value of a kind with these parts."""
    unknown = sorted(parts.keys() - PARTS[kind])
    if unknown:
        raise TemporalInvalid(f"a {kind} has no part `{unknown[0]}`")
    if kind is TemporalKind.DURATION:
        return duration_of({name: exact(value) for name, value in parts.items()})
    if "epochSeconds" in parts or "epochMillis" in parts:
        return _since_epoch(parts)
    zone = parts.get("timezone")
    if zone is not None and not isinstance(zone, str):
        raise TemporalInvalid("`timezone` is a text")
    given = _in_zone(kind, parts, zone)
    return _made(kind, given, zone)


def _in_zone(kind: TemporalKind, parts: Mapping[str, Any], zone: str | None) -> Mapping[str, Any]:
    """Values of another zone are those of the same moment in this one."""
    found = dict(parts)
    for name in ("datetime", "time"):
        value = parts.get(name)
        if isinstance(value, dt.datetime):
            value = found[name] = from_stored(value)
        if zone is None:
            continue
        if isinstance(value, ZonedDateTime):
            found[name] = at_moment(value.moment, zone)
        elif isinstance(value, Time):
            offset = _offset_on(kind, parts, zone)
            found[name] = Time((value.moment + offset * SECOND_NANOS) % DAY_NANOS, offset)
    return found


def _offset_on(kind: TemporalKind, parts: Mapping[str, Any], zone: str) -> int:
    """The offset of a zone at noon of the day of these parts."""
    if kind is not TemporalKind.DATETIME:
        return _offset_of_time(None, zone)
    days = day_of_parts(parts, _base(parts, ("date", "datetime"), day_in))
    return placed(LocalDateTime(days, DAY_NANOS // 2), zone).offset


def _base(parts: Mapping[str, Any], names: tuple[str, ...], part: Any) -> Any:
    for name in names:
        if name in parts:
            found = part(parts[name])
            if found is None:
                raise TemporalInvalid(f"`{name}` is a value without this part")
            return found
    return None


def _made(kind: TemporalKind, parts: Mapping[str, Any], zone: str | None) -> Temporal:
    if "datetime" in parts and ("date" in parts or "time" in parts):
        raise TemporalInvalid("`datetime` stands for `date` and `time`; use one of them")
    days = 0
    if kind not in (TemporalKind.LOCAL_TIME, TemporalKind.TIME):
        days = day_of_parts(parts, _base(parts, ("date", "datetime"), day_in))
    if kind is TemporalKind.DATE:
        return date_of(days)
    dated = kind in (TemporalKind.LOCAL_DATETIME, TemporalKind.DATETIME)
    if not dated and not parts.keys() & {"hour", "time", "datetime"}:
        raise TemporalInvalid("a time needs an `hour`")
    nanos = nanos_of_clock(parts, _base(parts, ("time", "datetime"), clock_in))
    source = parts.get("time", parts.get("datetime"))
    wanted = zone or (zone_in(source) if source is not None else None) or "Z"
    match kind:
        case TemporalKind.LOCAL_TIME:
            return LocalTime(nanos)
        case TemporalKind.LOCAL_DATETIME:
            return LocalDateTime(days, nanos)
        case TemporalKind.DATETIME:
            return placed(LocalDateTime(days, nanos), wanted, _kept_offset(parts, source))
        case _:
            return Time(nanos, _offset_of_time(source, wanted))


def _kept_offset(parts: Mapping[str, Any], source: Any) -> int | None:
    """Which of two moments of the same local time it is, if only the value itself was given."""
    alone = len(parts.keys() - {"timezone"}) == 1
    return source.offset if alone and isinstance(source, ZonedDateTime) and source.zone else None


def _offset_of_time(source: Any, zone: str) -> int:
    if isinstance(source, ZonedDateTime):
        return source.offset
    found = read_offset(zone)
    if found is None:
        is_zone(zone)
        raise TemporalInvalid(
            f"the offset of `{zone}` depends on the day, and a time has none",
            help="Give an offset such as +01:00, or a datetime.",
        )
    return found


def _since_epoch(parts: Mapping[str, Any]) -> ZonedDateTime:
    others = parts.keys() - {"epochSeconds", "epochMillis", "nanosecond", "timezone"}
    if others or {"epochSeconds", "epochMillis"} <= parts.keys():
        raise TemporalInvalid(
            "a moment since 1970 takes only `nanosecond` and `timezone` beside it"
        )
    most = 10**17
    seconds = _whole(parts, "epochSeconds", -most, most, 0)
    millis = _whole(parts, "epochMillis", -most, most, 0)
    nanos = _whole(parts, "nanosecond", 0, SECOND_NANOS - 1, 0)
    return from_epoch(seconds, millis * 1_000_000 + nanos, parts.get("timezone", "Z"))


def from_epoch(seconds: int, nanos: int, zone: str = "Z") -> ZonedDateTime:
    """The moment at an offset from 1970-01-01T00:00Z."""
    days, rest = divmod(seconds * SECOND_NANOS + nanos, DAY_NANOS)
    return at_moment(LocalDateTime(days, rest), zone)


# --- durations -----------------------------------------------------------------------------------------------------


def exact(value: Any) -> Fraction:
    """A number as it is written: 0.7 is seven tenths."""
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction):
        raise TemporalInvalid("the parts of a duration are numbers")
    try:
        return Fraction(str(value)) if isinstance(value, float) else Fraction(value)
    except ValueError:
        raise TemporalInvalid("the parts of a duration are finite numbers") from None


def duration_of(parts: Mapping[str, Fraction]) -> Duration:
    """Parts of a month are days of an average month, and parts of a day are seconds."""
    get = {name: parts.get(name, Fraction(0)) for name in DURATION_PARTS}
    seconds = get["hours"] * 3600 + get["minutes"] * 60 + get["seconds"]
    nanos = get["milliseconds"] * 1_000_000 + get["microseconds"] * 1000 + get["nanoseconds"]
    return spread(
        get["years"] * 12 + get["quarters"] * 3 + get["months"],
        get["weeks"] * 7 + get["days"],
        seconds * SECOND_NANOS + nanos,
    )


def spread(months: Fraction, days: Fraction, nanos: Fraction) -> Duration:
    whole_months = int(months)
    days += (months - whole_months) * MONTH_DAYS
    whole_days = int(days)
    nanos += (days - whole_days) * DAY_SECONDS * SECOND_NANOS
    return Duration.of_nanos(int(nanos), whole_months, whole_days)
