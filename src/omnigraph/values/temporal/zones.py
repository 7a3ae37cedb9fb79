"""Time zones: offsets, and names of the zone database with their rules."""

from __future__ import annotations

import datetime as dt
import re
from zoneinfo import ZoneInfo

from omnigraph.values.temporal.calendar import CYCLE_DAYS, CYCLE_YEARS, civil
from omnigraph.values.temporal.kinds import (
    OFFSET_SECONDS_MAX,
    SECOND_NANOS,
    LocalDateTime,
    TemporalInvalid,
    ZonedDateTime,
    date_of,
    offset_text,
)

OFFSET = re.compile(r"([+-])(\d{2})(?::?(\d{2})(?::?(\d{2}))?)?", re.ASCII)
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_+-]{0,30}(?:/[A-Za-z0-9_+-]{1,30}){0,3}")


def read_offset(text: str) -> int | None:
    """The seconds of an offset such as `+01:00`, `-0530` or `Z`; None for other texts."""
    if text in ("Z", "z"):
        return 0
    found = OFFSET.fullmatch(text)
    if found is None:
        return None
    hours, minutes, seconds = (int(part or 0) for part in found.groups()[1:])
    offset = hours * 3600 + minutes * 60 + seconds
    if minutes > 59 or seconds > 59 or offset > OFFSET_SECONDS_MAX:
        raise TemporalInvalid(f"`{text}` is not an offset from -18:00 to +18:00")
    return -offset if found[1] == "-" else offset


def _zone(name: str) -> ZoneInfo:
    if NAME.fullmatch(name):
        try:
            return ZoneInfo(name)
        except (KeyError, ValueError, OSError):
            pass
    raise TemporalInvalid(
        f"unknown time zone `{name[:60]}`",
        help="Name a zone of the IANA database such as Europe/Stockholm, or an offset such as "
        "+01:00. Where the system has no such database, install the package tzdata.",
    )


def _offset(zone: ZoneInfo, local: LocalDateTime, fold: int) -> int:
    """The zone's rules. For years `datetime` does not have, those of an equivalent year."""
    days = local.days
    year = civil(days)[0]
    if year < 2:
        days += -((year - 2) // CYCLE_YEARS) * CYCLE_DAYS
    elif year > dt.MAXYEAR - 1:
        days -= -((dt.MAXYEAR - 1 - year) // CYCLE_YEARS) * CYCLE_DAYS
    seconds, nanos = divmod(local.nanos, SECOND_NANOS)
    clock = dt.time(seconds // 3600, seconds // 60 % 60, seconds % 60, nanos // 1000, fold=fold)
    found = dt.datetime.combine(date_of(days), clock, zone).utcoffset()
    assert found is not None  # noqa: S101 - a zone has an offset at any time
    return int(found.total_seconds())


def is_zone(name: str) -> bool:
    """Whether it is a name, not an offset; raises if it is neither."""
    if read_offset(name) is not None:
        return False
    _zone(name)
    return True


def placed(
    local: LocalDateTime, zone: str, offset: int | None = None, preferred: int | None = None
) -> ZonedDateTime:
    """A local time in a zone, which is an offset or a name.

    Of a time that happens twice it is the first, or the one that has the `offset`, which it must have, or the one that
    is `preferred`; a time that clocks skip is moved forward by the gap.
    """
    fixed = read_offset(zone)
    if fixed is not None:
        return ZonedDateTime(local, fixed)
    rules = _zone(zone)
    first, second = (_offset(rules, local, fold) for fold in (0, 1))
    if offset is not None:
        if offset not in (first, second):
            raise TemporalInvalid(f"`{zone}` does not have the offset of the text at {local}")
        first = offset
    elif preferred == second and second < first:  # it happens twice
        first = second
    return at_moment(local.plus(-first * SECOND_NANOS), zone)


def at_moment(moment: LocalDateTime, zone: str) -> ZonedDateTime:
    """A moment in UTC as clocks of a zone show it."""
    fixed = read_offset(zone)
    if fixed is not None:
        return ZonedDateTime(moment.plus(fixed * SECOND_NANOS), fixed)
    rules = _zone(zone)
    year = civil(moment.days)[0]
    if not 2 <= year <= dt.MAXYEAR - 1:
        offset = _offset(rules, moment, 0)
    else:
        midnight = dt.datetime.combine(date_of(moment.days), dt.time(), dt.UTC)
        here = midnight + dt.timedelta(seconds=moment.nanos // SECOND_NANOS)
        found = here.astimezone(rules).utcoffset()
        assert found is not None  # noqa: S101
        offset = int(found.total_seconds())
    return ZonedDateTime(moment.plus(offset * SECOND_NANOS), offset, zone)


def zone_of(value: ZonedDateTime) -> str:
    """The name of its zone, or its offset as a text."""
    return value.zone or offset_text(value.offset)
