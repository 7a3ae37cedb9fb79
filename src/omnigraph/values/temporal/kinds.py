"""The temporal values of openCypher: what each holds, and its bytes, which are ordered as the values are.

A date is Python's `date`, and what a DateTime property holds is Python's `datetime` in UTC; these are the others. All
count nanoseconds. Bytes are what engines compute with: compared, sorted and grouped without being taken apart.
"""

from __future__ import annotations

import datetime as dt
import struct
from dataclasses import dataclass

from omnigraph.errors import Kind, OmnigraphError
from omnigraph.model.frozen import frozen
from omnigraph.values.temporal.calendar import EPOCH_ORDINAL, civil, days_of
from omnigraph.values.temporal.names import TemporalKind

SECOND_NANOS = 1_000_000_000
DAY_SECONDS = 86_400
DAY_NANOS = DAY_SECONDS * SECOND_NANOS
YEAR_MAX = 999_999_999  # of a date-time, in both directions; dates end with the year 9999
DAYS_MIN, DAYS_MAX = days_of(-YEAR_MAX, 1, 1), days_of(YEAR_MAX, 12, 31)
OFFSET_SECONDS_MAX = 18 * 3600
MONTHS_MAX = 24_000_000_000  # of a duration, like the two below, in both directions
DAYS_SPAN_MAX = 1_000_000_000_000
SECONDS_MAX = 1_000_000_000_000_000_000
MONTH_SECONDS = 2_629_746  # of an average month, a twelfth of 365.2425 days

_SIGN = 1 << 63
_OFFSET = 1 << 31
_MOMENT = struct.Struct(">QI")
_TIME = struct.Struct(">QI")
_ZONED = struct.Struct(">QII")
_DURATION = struct.Struct(">QIQQQ")
MOMENT_BYTES = _MOMENT.size


class TemporalInvalid(OmnigraphError):
    """An invalid date, time or duration.

    The text is not one of the ISO 8601 forms, a part is outside its range, the time zone does not exist, or the result
    of a calculation lies outside the years and lengths that can be held.
    """

    code, kind = "temporal_invalid", Kind.INVALID
    default_help = "See the page about Cypher for the forms and ranges of temporal values."


@dataclass(frozen=True, slots=True, order=True)
class LocalTime:
    """A time of day without a zone."""

    nanos: int  # since midnight

    def encoded(self) -> bytes:
        return struct.pack(">Q", self.nanos)

    def __str__(self) -> str:
        return clock_text(self.nanos)


@frozen
class Time:
    """A time of day at an offset from UTC."""

    nanos: int  # since midnight, where it is
    offset: int  # in seconds

    @property
    def moment(self) -> int:
        """Nanoseconds since midnight in UTC; may be of the day before or after."""
        return self.nanos - self.offset * SECOND_NANOS

    def encoded(self) -> bytes:
        return _TIME.pack(self.moment + _SIGN, self.offset + _OFFSET)

    def __str__(self) -> str:
        return clock_text(self.nanos) + offset_text(self.offset)


@dataclass(frozen=True, slots=True, order=True)
class LocalDateTime:
    """A day and a time without a zone."""

    days: int  # since 1970-01-01
    nanos: int  # since midnight

    def __post_init__(self) -> None:
        if not DAYS_MIN <= self.days <= DAYS_MAX:
            raise TemporalInvalid(f"a date-time lies outside the years -{YEAR_MAX} to {YEAR_MAX}")

    @property
    def seconds(self) -> int:
        """Since 1970-01-01, as if it were UTC."""
        return self.days * DAY_SECONDS + self.nanos // SECOND_NANOS

    @property
    def total(self) -> int:
        """The same in nanoseconds."""
        return self.days * DAY_NANOS + self.nanos

    def plus(self, nanos: int) -> LocalDateTime:
        days, rest = divmod(self.nanos + nanos, DAY_NANOS)
        return LocalDateTime(self.days + days, rest)

    def encoded(self) -> bytes:
        return _MOMENT.pack(self.seconds + _SIGN, self.nanos % SECOND_NANOS)

    def __str__(self) -> str:
        return f"{day_text(self.days)}T{clock_text(self.nanos)}"


@frozen
class ZonedDateTime:
    """A day and a time at an offset from UTC, and the name of the zone that has it, if it is known by name."""

    local: LocalDateTime
    offset: int  # in seconds
    zone: str = ""

    @property
    def moment(self) -> LocalDateTime:
        """The same moment in UTC."""
        return self.local.plus(-self.offset * SECOND_NANOS)

    def encoded(self) -> bytes:
        moment = self.moment
        nanos = moment.nanos % SECOND_NANOS
        head = _ZONED.pack(moment.seconds + _SIGN, nanos, self.offset + _OFFSET)
        return head + self.zone.encode()

    def __str__(self) -> str:
        name = f"[{self.zone}]" if self.zone else ""
        return f"{self.local}{offset_text(self.offset)}{name}"


@frozen
class Duration:
    """Months, days and seconds, none of which are converted into another: days and months differ in length."""

    months: int
    days: int
    seconds: int
    nanos: int  # from 0 to below a second, also of negative seconds

    def __post_init__(self) -> None:
        if (
            abs(self.months) > MONTHS_MAX
            or abs(self.days) > DAYS_SPAN_MAX
            or abs(self.seconds) > SECONDS_MAX
        ):
            raise TemporalInvalid("a duration is longer than allowed")

    @classmethod
    def of_nanos(cls, nanos: int, months: int = 0, days: int = 0) -> Duration:
        return cls(months, days, *divmod(nanos, SECOND_NANOS))

    @property
    def total(self) -> int:
        """The nanoseconds of its seconds."""
        return self.seconds * SECOND_NANOS + self.nanos

    def encoded(self) -> bytes:
        average = self.months * MONTH_SECONDS + self.days * DAY_SECONDS + self.seconds
        parts = (self.months + _SIGN, self.days + _SIGN, self.seconds + _SIGN)
        return _DURATION.pack(average + _SIGN, self.nanos, *parts)

    def __str__(self) -> str:
        return duration_text(self)


Temporal = dt.date | LocalTime | Time | LocalDateTime | ZonedDateTime | Duration
Encoded = (
    LocalTime | Time | LocalDateTime | ZonedDateTime | Duration
)  # those that are bytes for engines


def kind_of(value: Temporal) -> TemporalKind:
    match value:
        case dt.datetime() | ZonedDateTime():
            return TemporalKind.DATETIME
        case dt.date():
            return TemporalKind.DATE
        case LocalTime():
            return TemporalKind.LOCAL_TIME
        case Time():
            return TemporalKind.TIME
        case LocalDateTime():
            return TemporalKind.LOCAL_DATETIME
        case Duration():
            return TemporalKind.DURATION


def decoded(data: bytes, kind: TemporalKind) -> Encoded:
    """The value of some bytes."""
    match kind:
        case TemporalKind.LOCAL_TIME:
            return LocalTime(*struct.unpack(">Q", data))
        case TemporalKind.TIME:
            moment, offset = _TIME.unpack(data)
            offset -= _OFFSET
            return Time(moment - _SIGN + offset * SECOND_NANOS, offset)
        case TemporalKind.LOCAL_DATETIME:
            return _moment(*_MOMENT.unpack(data))
        case TemporalKind.DATETIME:
            seconds, nanos, offset = _ZONED.unpack_from(data)
            offset -= _OFFSET
            local = _moment(seconds, nanos).plus(offset * SECOND_NANOS)
            return ZonedDateTime(local, offset, data[_ZONED.size :].decode())
        case _:
            _, nanos, months, days, seconds = _DURATION.unpack(data)
            return Duration(months - _SIGN, days - _SIGN, seconds - _SIGN, nanos)


def _moment(seconds: int, nanos: int) -> LocalDateTime:
    days, rest = divmod(seconds - _SIGN, DAY_SECONDS)
    return LocalDateTime(days, rest * SECOND_NANOS + nanos)


# --- dates and stored date-times -----------------------------------------------------------------------------------


def date_days(day: dt.date) -> int:
    return day.toordinal() - EPOCH_ORDINAL


def date_of(days: int) -> dt.date:
    """The date of a number of days; dates have the years 1 to 9999."""
    try:
        return dt.date.fromordinal(days + EPOCH_ORDINAL)
    except (ValueError, OverflowError):
        raise TemporalInvalid("a date lies outside the years 1 to 9999") from None


def from_stored(value: dt.datetime) -> ZonedDateTime:
    """What a DateTime property holds."""
    moment = value.astimezone(dt.UTC)
    seconds = moment.hour * 3600 + moment.minute * 60 + moment.second
    nanos = seconds * SECOND_NANOS + moment.microsecond * 1000
    return ZonedDateTime(LocalDateTime(date_days(moment.date()), nanos), 0)


def to_stored(value: LocalDateTime, up: bool = False) -> dt.datetime:
    """A moment in UTC as a `datetime`, its nanoseconds truncated, or rounded `up` to the next microsecond.

    What lies outside the years of `datetime` becomes the first or last value, so that comparisons hold.
    """
    if not 1 <= civil(value.days)[0] <= dt.MAXYEAR:
        edge = dt.datetime.max if value.days > 0 else dt.datetime.min
        return edge.replace(tzinfo=dt.UTC)
    midnight = dt.datetime.combine(date_of(value.days), dt.time(), dt.UTC)
    micros = -(-value.nanos // 1000) if up else value.nanos // 1000
    try:
        return midnight + dt.timedelta(microseconds=micros)
    except OverflowError:
        return dt.datetime.max.replace(tzinfo=dt.UTC)


def from_python(value: dt.time | dt.timedelta) -> LocalTime | Time | Duration:
    """Python's own types: times of day, and durations without months."""
    if isinstance(value, dt.timedelta):
        sign = -1 if value.days < 0 else 1
        whole = abs(value)  # as in its text: whole days, and the rest
        rest = (whole.seconds * 1_000_000 + whole.microseconds) * 1000
        return Duration.of_nanos(sign * rest, 0, sign * whole.days)
    seconds = value.hour * 3600 + value.minute * 60 + value.second
    nanos = seconds * SECOND_NANOS + value.microsecond * 1000
    offset = value.utcoffset()
    if offset is None and value.tzinfo is not None:
        raise TemporalInvalid(f"the offset of {value} depends on the day, and a time has none")
    return LocalTime(nanos) if offset is None else Time(nanos, int(offset.total_seconds()))


# --- texts ---------------------------------------------------------------------------------------------------------


def day_text(days: int) -> str:
    """A day as ISO 8601 has it; years of more than four digits have a sign."""
    year, month, day = civil(days)
    sign = "+" if year > 9999 else "-" if year < 0 else ""
    return f"{sign}{abs(year):04}-{month:02}-{day:02}"


def clock_text(nanos: int) -> str:
    """A time of day: seconds unless zero, and as many digits of them as needed."""
    seconds, fraction = divmod(nanos, SECOND_NANOS)
    text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}"
    if seconds % 60 or fraction:
        text += f":{seconds % 60:02}"
    return text + (f".{fraction:09}".rstrip("0") if fraction else "")


def offset_text(offset: int) -> str:
    if not offset:
        return "Z"
    size = abs(offset)
    seconds = f":{size % 60:02}" if size % 60 else ""
    return f"{'-' if offset < 0 else '+'}{size // 3600:02}:{size // 60 % 60:02}{seconds}"


def duration_text(value: Duration) -> str:
    months = abs(value.months)
    sign = "-" if value.months < 0 else ""
    days = [(sign, months // 12, "Y"), (sign, months % 12, "M")]
    days.append(("-" if value.days < 0 else "", abs(value.days), "D"))
    total = abs(value.total)
    sign = "-" if value.total < 0 else ""
    seconds, nanos = divmod(total, SECOND_NANOS)
    clock = [(sign, seconds // 3600, "H"), (sign, seconds // 60 % 60, "M")]
    first, second = ("".join(f"{s}{n}{unit}" for s, n, unit in part if n) for part in (days, clock))
    if seconds % 60 or nanos:
        fraction = f".{nanos:09}".rstrip("0") if nanos else ""
        second += f"{sign}{seconds % 60}{fraction}S"
    if not first and not second:
        return "PT0S"
    return f"P{first}" + (f"T{second}" if second else "")
