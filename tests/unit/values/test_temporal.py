"""Temporal values: what texts mean, how values print, and the laws their arithmetic keeps."""

from __future__ import annotations

import contextlib
import datetime as dt
import zoneinfo
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.values.reading import plain
from omnigraph.values.temporal import arithmetic, calendar
from omnigraph.values.temporal.kinds import (
    DAY_NANOS,
    Duration,
    LocalDateTime,
    LocalTime,
    TemporalInvalid,
    Time,
    ZonedDateTime,
    decoded,
    from_python,
    from_stored,
    kind_of,
    to_stored,
)
from omnigraph.values.temporal.making import PARTS, make
from omnigraph.values.temporal.names import TemporalKind as K
from omnigraph.values.temporal.operations import convert, text
from omnigraph.values.temporal.parts import PART_NAMES, part
from omnigraph.values.temporal.reading import read
from omnigraph.values.temporal.zones import at_moment, placed

ZONES = ("Europe/Stockholm", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "UTC")
dates = st.dates()
durations = st.builds(
    Duration,
    st.integers(-50_000, 50_000),
    st.integers(-1_000_000, 1_000_000),
    st.integers(-(10**12), 10**12),
    st.integers(0, 999_999_999),
)
nanos = st.integers(0, DAY_NANOS - 1)
offsets = st.integers(-18 * 3600, 18 * 3600)
local_datetimes = st.builds(LocalDateTime, st.integers(-3_000_000, 3_000_000), nanos)
zoned = st.one_of(
    st.builds(ZonedDateTime, local_datetimes, offsets),
    st.builds(at_moment, local_datetimes, st.sampled_from(ZONES)),
)
values = st.one_of(
    durations, zoned, local_datetimes, st.builds(LocalTime, nanos), st.builds(Time, nanos, offsets)
)


# --- texts and bytes -----------------------------------------------------------------------------------------------


@given(values | dates)
def test_every_value_reads_back_from_its_text(value: Any) -> None:
    assert read(text(value), kind_of(value)) == value


@given(values)
def test_every_value_is_had_back_from_its_bytes(value: Any) -> None:
    assert decoded(value.encoded(), kind_of(value)) == value


@given(zoned, zoned)
def test_bytes_of_date_times_are_ordered_by_the_moment(a: ZonedDateTime, b: ZonedDateTime) -> None:
    if a.moment != b.moment:
        assert (a.encoded() < b.encoded()) is (a.moment < b.moment)


@given(local_datetimes, local_datetimes)
def test_bytes_of_local_date_times_are_ordered_as_they_are(
    a: LocalDateTime, b: LocalDateTime
) -> None:
    assert (a.encoded() < b.encoded()) is (a < b)


@given(durations, durations)
def test_bytes_of_durations_are_ordered_by_their_average_length(a: Duration, b: Duration) -> None:
    length = [(d.months * 2_629_746 + d.days * 86_400 + d.seconds, d.nanos) for d in (a, b)]
    if length[0] != length[1]:
        assert (a.encoded() < b.encoded()) is (length[0] < length[1])


@pytest.mark.parametrize(
    ("given", "kind", "expected"),
    [
        ("2015-Q2-60", K.DATE, "2015-05-30"),
        ("2015Q260", K.DATE, "2015-05-30"),
        ("2020-366", K.DATE, "2020-12-31"),
        ("2020-W53-5", K.DATE, "2021-01-01"),
        ("-0044-03-15", K.LOCAL_DATETIME, "-0044-03-15T00:00"),
        ("+12345-01-02T03", K.LOCAL_DATETIME, "+12345-01-02T03:00"),
        ("21:40:32,5", K.LOCAL_TIME, "21:40:32.5"),
        ("214032.000000001-0130", K.TIME, "21:40:32.000000001-01:30"),
        ("2015-07-21 21:40z", K.DATETIME, "2015-07-21T21:40Z"),
        ("2015-07-21", K.DATETIME, "2015-07-21T00:00Z"),
        ("P20150102T101112", K.DURATION, "P2015Y1M2DT10H11M12S"),
        ("-P1Y-2M", K.DURATION, "P-10M"),
        ("PT-0.000000001S", K.DURATION, "PT-0.000000001S"),
        ("P1.5Y", K.DURATION, "P1Y6M"),
    ],
)
def test_texts_in_the_forms_of_iso_8601(given: str, kind: K, expected: str) -> None:
    assert text(read(given, kind)) == expected


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ("", K.DATE),
        ("2015-02-29", K.DATE),
        ("2015-366", K.DATE),
        ("2015-W54", K.DATE),
        ("2015-W30-8", K.DATE),
        ("2015-Q5", K.DATE),
        ("0000-01-01", K.DATE),
        ("+10000-01-01", K.DATE),
        ("-9999999999-01-01", K.LOCAL_DATETIME),
        ("24:00", K.LOCAL_TIME),
        ("12:00Z", K.LOCAL_TIME),
        ("12:00:60", K.LOCAL_TIME),
        ("12:00:00.1234567890", K.LOCAL_TIME),
        ("12:00+19:00", K.TIME),
        ("12:00+01:60", K.TIME),
        ("12:00[Europe/Stockholm]", K.TIME),
        ("2015-07-21T12:00+05:00[Europe/Stockholm]", K.DATETIME),
        ("2015-07-21T12:00[../../../etc/passwd]", K.DATETIME),
        ("2015-07-21T12:00[/etc/localtime]", K.DATETIME),
        ("2015-07-21T12:00[Europe]", K.DATETIME),
        ("P", K.DURATION),
        ("PT", K.DURATION),
        ("P1DT", K.DURATION),
        ("P1S", K.DURATION),
        ("P999999999999999999Y", K.DURATION),
        ("PT999999999999999999H", K.DURATION),
        ("P" + "9" * 4000 + "D", K.DURATION),
        ("1" * 1_000_000, K.DATETIME),
        ("".join(chr(0x660 + int(digit)) for digit in "20150721"), K.DATE),
    ],
)
def test_texts_that_are_refused(given: str, kind: K) -> None:
    with pytest.raises(TemporalInvalid):
        read(given, kind)


@given(st.text(max_size=40), st.sampled_from(list(K)))
def test_any_text_is_read_or_refused(given: str, kind: K) -> None:
    with contextlib.suppress(TemporalInvalid):
        assert kind_of(read(given, kind)) is kind


@given(
    st.sampled_from(list(K)),
    st.dictionaries(
        st.sampled_from(sorted(set().union(*PARTS.values()))),
        st.integers() | st.floats() | st.text(max_size=8) | values | dates | st.booleans(),
        max_size=5,
    ),
)
def test_any_map_makes_a_value_or_is_refused(kind: K, parts: dict[str, Any]) -> None:
    with contextlib.suppress(TemporalInvalid):
        assert kind_of(make(kind, parts)) is kind


# --- the calendar --------------------------------------------------------------------------------------------------


@given(dates)
def test_the_calendar_is_that_of_python(day: dt.date) -> None:
    number = calendar.days_of(day.year, day.month, day.day)
    assert calendar.civil(number) == (day.year, day.month, day.day)
    assert (*calendar.week_of(number), calendar.weekday(number)) == tuple(day.isocalendar())
    assert part(day, "ordinalDay") == day.timetuple().tm_yday


@given(st.integers(-(10**11), 10**11))
def test_days_and_years_are_inverse_far_outside(number: int) -> None:
    assert calendar.days_of(*calendar.civil(number)) == number


@given(dates)
def test_a_day_is_the_same_by_month_week_quarter_and_number(day: dt.date) -> None:
    ways = (
        ("year", "month", "day"),
        ("year", "quarter", "dayOfQuarter"),
        ("year", "ordinalDay"),
    )
    for way in ways:
        assert make(K.DATE, {name: part(day, name) for name in way}) == day
    week = {"year": part(day, "weekYear"), "week": part(day, "week")}
    if 1 <= int(week["year"]) <= 9999:
        assert make(K.DATE, {**week, "dayOfWeek": part(day, "weekDay")}) == day


@pytest.mark.parametrize(
    ("start", "by", "expected"),
    [
        ("2016-02-29", "P1Y", "2017-02-28"),
        ("2016-02-29", "P4Y", "2020-02-29"),
        ("2015-01-31", "P1M", "2015-02-28"),
        ("2016-03-31", "P-1M", "2016-02-29"),
        ("2015-12-31", "P2M", "2016-02-29"),
        ("1984-10-11", "P1M-14DT16H-12M70S", "1984-10-28"),
        ("2015-01-01", "PT47H59M", "2015-01-02"),
        ("2015-01-01", "PT-47H", "2014-12-31"),
    ],
)
def test_months_end_where_they_end(start: str, by: str, expected: str) -> None:
    assert text(arithmetic.add(read(start, K.DATE), read(by, K.DURATION))) == expected


# --- arithmetic ----------------------------------------------------------------------------------------------------


@given(durations, durations)
def test_what_was_added_can_be_subtracted(a: Duration, b: Duration) -> None:
    assert arithmetic.subtract(arithmetic.add(a, b), b) == a
    assert arithmetic.add(a, b) == arithmetic.add(b, a)


@given(durations, st.integers(-20, 20))
def test_a_product_is_a_sum(value: Duration, times: int) -> None:
    total: Any = Duration(0, 0, 0, 0)
    for _ in range(abs(times)):
        total = arithmetic.add(total, value)
    wanted = total if times >= 0 else arithmetic.negated(total)
    assert arithmetic.multiply(value, times) == wanted == arithmetic.multiply(times, value)


@given(local_datetimes, local_datetimes)
def test_the_duration_between_two_local_times_leads_from_one_to_the_other(
    a: LocalDateTime, b: LocalDateTime
) -> None:
    assert arithmetic.add(a, arithmetic.between(a, b)) == b
    assert arithmetic.add(a, arithmetic.in_seconds(a, b)) == b
    assert arithmetic.in_seconds(a, b) == arithmetic.negated(arithmetic.in_seconds(b, a))


@given(zoned, zoned)
def test_the_duration_between_two_moments_leads_from_one_to_the_other(
    a: ZonedDateTime, b: ZonedDateTime
) -> None:
    for span in (arithmetic.between(a, b), arithmetic.in_seconds(a, b)):
        reached = arithmetic.add(a, span)
        assert isinstance(reached, ZonedDateTime)
        assert reached.moment == b.moment


@given(dates, dates)
def test_dates_are_months_and_days_apart(a: dt.date, b: dt.date) -> None:
    span = arithmetic.between(a, b)
    assert (span.seconds, span.nanos) == (0, 0)
    assert arithmetic.add(a, span) == b
    assert arithmetic.in_days(a, b).days == (b - a).days


@given(local_datetimes, st.sampled_from(arithmetic.UNITS))
def test_truncation_goes_back_and_stays(value: LocalDateTime, unit: str) -> None:
    once = arithmetic.truncate(K.LOCAL_DATETIME, unit, value, {})
    assert isinstance(once, LocalDateTime)
    assert once <= value
    assert arithmetic.truncate(K.LOCAL_DATETIME, unit, once, {}) == once


@given(durations)
def test_the_parts_of_a_duration_add_up(value: Duration) -> None:
    known = {name: part(value, name) for name in PART_NAMES[K.DURATION] if name != "nanoseconds"}
    number = {name: int(found) for name, found in known.items()}
    assert number["years"] * 12 + number["monthsOfYear"] == value.months
    assert number["quarters"] * 3 + number["monthsOfQuarter"] == value.months
    assert number["weeks"] * 7 + number["daysOfWeek"] == value.days
    assert number["minutes"] * 60 + number["secondsOfMinute"] == value.seconds
    assert make(
        K.DURATION, {"months": value.months, "days": value.days, "nanoseconds": value.total}
    )


def test_a_number_is_taken_as_it_is_written() -> None:
    assert text(make(K.DURATION, {"seconds": 0.7})) == "PT0.7S"
    assert text(arithmetic.multiply(read("PT1S", K.DURATION), 0.1)) == "PT0.1S"


@pytest.mark.parametrize("number", [float("inf"), float("nan"), 1e308, 10**30, -(10**30)])
def test_products_that_durations_cannot_hold(number: float) -> None:
    with pytest.raises(TemporalInvalid):
        arithmetic.multiply(read("P1D", K.DURATION), number)


def test_calculations_outside_the_years_there_are() -> None:
    far = read("+999999999-12-31T23:59:59.999999999", K.LOCAL_DATETIME)
    for value in (far, dt.date.max, convert(K.DATETIME, far)):
        with pytest.raises(TemporalInvalid):
            arithmetic.add(value, read("P1D", K.DURATION))
    with pytest.raises(TemporalInvalid):
        part(read("PT9999999999999H", K.DURATION), "nanoseconds")


# --- zones ---------------------------------------------------------------------------------------------------------


@given(st.datetimes(dt.datetime(1800, 1, 1), dt.datetime(2600, 1, 1)), st.sampled_from(ZONES))
def test_offsets_are_those_of_the_zone_database(moment: dt.datetime, zone: str) -> None:
    here = moment.replace(tzinfo=dt.UTC).astimezone(zoneinfo.ZoneInfo(zone))
    found = at_moment(from_stored(moment.replace(tzinfo=dt.UTC)).moment, zone)
    expected = here.utcoffset()
    assert expected is not None
    assert found.offset == int(expected.total_seconds())


def test_a_time_that_clocks_skip_is_moved_on() -> None:
    skipped = read("2017-03-26T02:30[Europe/Stockholm]", K.DATETIME)
    assert text(skipped) == "2017-03-26T03:30+02:00[Europe/Stockholm]"
    later = arithmetic.add(
        read("2017-03-25T02:30[Europe/Stockholm]", K.DATETIME), read("P1D", K.DURATION)
    )
    assert text(later) == "2017-03-26T03:30+02:00[Europe/Stockholm]"


def test_a_time_that_happens_twice_is_the_first_unless_the_offset_says_so() -> None:
    first = read("2017-10-29T02:30[Europe/Stockholm]", K.DATETIME)
    second = read("2017-10-29T02:30+01:00[Europe/Stockholm]", K.DATETIME)
    assert text(first) == "2017-10-29T02:30+02:00[Europe/Stockholm]"
    assert text(second) == "2017-10-29T02:30+01:00[Europe/Stockholm]"
    assert text(arithmetic.in_seconds(first, second)) == "PT1H"
    assert convert(K.DATETIME, second) == second
    assert make(K.DATETIME, {"datetime": second}) == second
    assert arithmetic.add(second, read("P0D", K.DURATION)) == second


def test_a_day_of_the_calendar_is_no_day_of_the_clock() -> None:
    start = read("2017-10-28T12:00[Europe/Stockholm]", K.DATETIME)
    day = arithmetic.add(start, read("P1D", K.DURATION))
    hours = arithmetic.add(start, read("PT24H", K.DURATION))
    assert text(day) == "2017-10-29T12:00+01:00[Europe/Stockholm]"
    assert text(hours) == "2017-10-29T11:00+01:00[Europe/Stockholm]"
    assert text(arithmetic.between(start, day)) == "P1D"
    assert text(arithmetic.in_seconds(start, day)) == "PT25H"


@pytest.mark.parametrize("year", ["-0100", "+999999999", "+10000", "9999", "0001"])
def test_zones_have_rules_in_years_python_does_not_have(year: str) -> None:
    summer = read(f"{year}-07-01T12:00[Europe/Stockholm]", K.DATETIME)
    assert isinstance(summer, ZonedDateTime)
    assert summer.offset == (7200 if int(year) > 2000 else summer.offset)
    assert at_moment(summer.moment, "Europe/Stockholm") == summer


def test_the_same_moment_in_another_zone() -> None:
    there = read("1984-10-11T12:00[Europe/Stockholm]", K.DATETIME)
    parts = {"datetime": there, "day": 28, "second": 42, "timezone": "Pacific/Honolulu"}
    assert text(make(K.DATETIME, parts)) == "1984-10-28T01:00:42-10:00[Pacific/Honolulu]"
    time = read("12:31:14.645876+01:00", K.TIME)
    assert text(make(K.TIME, {"time": time, "timezone": "+05:00"})) == "16:31:14.645876+05:00"


def test_a_time_has_no_zone_by_name() -> None:
    with pytest.raises(TemporalInvalid, match="depends on the day"):
        make(K.TIME, {"hour": 12, "timezone": "Europe/Stockholm"})


def test_a_preferred_offset_counts_only_where_clocks_show_a_time_twice() -> None:
    local = read("2017-06-01T12:00", K.LOCAL_DATETIME)
    assert isinstance(local, LocalDateTime)
    assert placed(local, "Europe/Stockholm", preferred=3600).offset == 7200


# --- other values --------------------------------------------------------------------------------------------------


@given(st.datetimes(timezones=st.just(dt.UTC)))
def test_stored_date_times_are_had_back(moment: dt.datetime) -> None:
    value = from_stored(moment)
    assert to_stored(value.moment) == moment == to_stored(value.moment, up=True)


def test_moments_between_microseconds_and_outside_the_years_are_rounded_to_what_compares_alike() -> (
    None
):
    between = read("2015-07-21T12:00:00.000000001Z", K.DATETIME)
    assert isinstance(between, ZonedDateTime)
    low, high = to_stored(between.moment), to_stored(between.moment, up=True)
    assert (high - low) == dt.timedelta(microseconds=1)
    far = read("+20000-01-01", K.LOCAL_DATETIME)
    assert isinstance(far, LocalDateTime)
    assert to_stored(far) == dt.datetime.max.replace(tzinfo=dt.UTC)


@given(st.timedeltas())
def test_a_duration_of_python_is_what_its_text_says(value: dt.timedelta) -> None:
    """As which it goes to a server."""
    assert from_python(value) == read(plain(value), K.DURATION)


def test_values_of_python() -> None:
    assert str(from_python(-dt.timedelta(days=1, seconds=1, microseconds=2))) == "P-1DT-1.000002S"
    assert str(from_python(dt.time(12, 30))) == "12:30"
    east = dt.timezone(dt.timedelta(hours=2))
    assert str(from_python(dt.time(12, 30, tzinfo=east))) == "12:30+02:00"
    with pytest.raises(TemporalInvalid):
        from_python(dt.time(12, tzinfo=zoneinfo.ZoneInfo("Europe/Stockholm")))


@pytest.mark.parametrize(
    ("kind", "parts", "said"),
    [
        (K.DATE, {}, "year"),
        (K.DATE, {"year": 2015, "day": 1}, "month"),
        (K.DATE, {"year": 2015, "month": 1, "week": 2}, "different ways"),
        (K.DATE, {"year": 2015, "month": 2, "day": 29}, "from 1 to 28"),
        (K.DATE, {"year": True}, "whole number"),
        (K.DATE, {"date": LocalTime(0)}, "without this part"),
        (K.LOCAL_TIME, {"minute": 1}, "hour"),
        (K.LOCAL_DATETIME, {"year": 2015, "minute": 1}, "hour"),
        (K.LOCAL_TIME, {"hour": 1, "minute": 1, "nanosecond": 1}, "second"),
        (K.LOCAL_TIME, {"hour": 1, "minute": 1, "second": 1, "millisecond": 1000}, "999"),
        (K.DATETIME, {"epochSeconds": 1, "year": 2015}, "since 1970"),
        (K.DATETIME, {"epochSeconds": 10**40}, "epochSeconds"),
        (K.DURATION, {"days": "1"}, "numbers"),
        (K.DURATION, {"day": 1}, "day"),
    ],
)
def test_parts_that_make_no_value(kind: K, parts: dict[str, Any], said: str) -> None:
    with pytest.raises(TemporalInvalid, match=said):
        make(kind, parts)


def test_parts_of_another_value_are_taken_over_as_far_as_the_month_goes() -> None:
    other = dt.date(1984, 10, 31)
    assert make(K.DATE, {"date": other, "month": 2}) == dt.date(1984, 2, 29)
    assert make(K.DATE, {"date": other, "week": 1}) == dt.date(1984, 1, 4)
    assert make(K.DATE, {"date": other, "quarter": 3}) == dt.date(1984, 7, 31)
    assert make(K.DATE, {"date": other, "ordinalDay": 60}) == dt.date(1984, 2, 29)
