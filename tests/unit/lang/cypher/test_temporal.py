"""Durations, times and zones in Cypher: beside what is stored, in results, and what is said of mistakes."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

import omnigraph
from omnigraph.errors import OmnigraphError
from omnigraph.lang.cypher import compile_cypher
from omnigraph.lang.diagnostics import LanguageError
from omnigraph.lang.plan_text import plan_text

SCHEMA = """
node Event { name: String @key  at: DateTime?  day: Date?  times: [DateTime]?  note: String?  days: I64? }
"""
CREATE = """
CREATE (:Event {name: 'a', at: datetime('2015-07-21T21:40:32.142+02:00[Europe/Stockholm]'),
                day: date('2015-W30-2'), times: [datetime('2015-07-21T21:40+02:00')], note: '2015-07-21'}),
       (:Event {name: 'b', at: datetime({year: 2016, month: 2, day: 29}), day: date('2016-060'), days: 3}),
       (:Event {name: 'c'})
"""


@pytest.fixture(scope="module")
def graph() -> omnigraph.Graph:
    made = omnigraph.init("memory://temporal", schema=SCHEMA)
    made.mutate(CREATE, language="cypher")
    return made


def _values(graph: omnigraph.Graph, text: str, params: Any = None) -> list[Any]:
    rows = graph.query(text, params, language="cypher").rows
    return [tuple(row.values()) if len(row) > 1 else next(iter(row.values())) for row in rows]


def test_what_is_stored_is_the_moment_in_utc(graph: omnigraph.Graph) -> None:
    at, day, times = _values(graph, "MATCH (e:Event {name: 'a'}) RETURN e.at, e.day, e.times")[0]
    assert at == dt.datetime(2015, 7, 21, 19, 40, 32, 142_000, tzinfo=dt.UTC)
    assert day == dt.date(2015, 7, 21)
    assert times == [dt.datetime(2015, 7, 21, 19, 40, tzinfo=dt.UTC)]


@pytest.mark.parametrize(
    ("condition", "names"),
    [
        ("e.at = datetime('2015-07-21T21:40:32.142+02:00')", ["a"]),
        ("datetime('2015-07-21T19:40:32.142Z') = e.at", ["a"]),
        ("e.at <> datetime('2015-07-21T19:40:32.142Z')", ["b"]),
        ("e.at = datetime('2015-07-21T19:40:32.142000001Z')", []),
        ("e.at < datetime('2015-07-21T19:40:32.142000001Z')", ["a"]),
        ("e.at >= datetime('2015-07-21T19:40:32.142000001Z')", ["b"]),
        ("e.at > datetime('2015-07-21T19:40:32.141999999Z')", ["a", "b"]),
        ("e.at <= datetime($text)", ["a"]),
        ("datetime($text) > e.at", ["a"]),
        ("e.at < datetime('+20000-01-01')", ["a", "b"]),
        ("e.at <= datetime('-0001-01-01')", []),
        ("e.at > datetime('9999-12-31T23:59:59.999999999Z')", []),
        ("e.at < $moment", ["a"]),
        ("e.at IN [datetime('2015-07-21T21:40:32.142+02:00'), datetime()]", ["a"]),
        ("datetime('2015-07-21T23:40+04:00') IN e.times", ["a"]),
        ("e.at > datetime('2016-03-01T00:00Z') - duration('P1M')", ["b"]),
        ("e.at + duration('P7M') < datetime('2016-03-01T00:00Z')", ["a"]),
        ("e.day > date('2015-07-21')", ["b"]),
        ("e.day + duration({days: e.days}) = date('2016-03-03')", ["b"]),
        ("e.day < datetime('2015-07-22')", ["a"]),
        ("date(e.note) = e.day", ["a"]),
        ("datetime.truncate('month', e.at) = datetime('2016-02-01')", ["b"]),
        ("duration.inDays(e.day, date('2016-03-01')).days = 1", ["b"]),
        ("e.at.week = 30 AND e.day.dayOfQuarter = 21 AND e.at.millisecond = 142", ["a"]),
        ("e.at.epochSeconds = 1456704000", ["b"]),
        ("localdatetime(e.at) = localdatetime('2016-02-29T00:00')", ["b"]),
        ("localtime(e.at) < localtime('00:01')", ["b"]),
    ],
)
def test_beside_stored_times(graph: omnigraph.Graph, condition: str, names: list[str]) -> None:
    text = f"MATCH (e:Event) WHERE {condition} RETURN e.name ORDER BY e.name"
    moment = dt.datetime(2016, 1, 1, tzinfo=dt.UTC)
    given = {"text": "2015-07-21T22:40:32.142+02:00", "moment": moment}
    assert _values(graph, text, given) == names


def test_constants_reach_the_store_as_moments(graph: omnigraph.Graph) -> None:
    """So that a table and its indices answer for them."""
    text = "MATCH (e:Event) WHERE e.at > datetime('2015-07-21T21:40+02:00') RETURN e.name"
    plan = plan_text(compile_cypher(text, graph.snapshot().catalog))
    assert 'datetime("2015-07-21T19:40:00.000Z")' in plan
    text = "MATCH (e:Event) WHERE e.at > datetime() - duration('P1D') RETURN e.name"
    assert "instant(" in plan_text(compile_cypher(text, graph.snapshot().catalog))


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("[datetime('2015-01-01'), null]", ["2015-01-01T00:00Z", None]),
        ("{a: duration('P1D'), b: [localtime('12:00')]}", {"a": "P1D", "b": ["12:00"]}),
        ("'in ' + duration('PT90S')", "in PT1M30S"),
        ("toString(datetime('2015-07-21T21:40+02:00'))", "2015-07-21T21:40+02:00"),
        ("toStringList([duration('P1D'), duration('PT24H')])", ["P1D", "PT24H"]),
        ("duration('P1D') * 2.5", "P2DT12H"),
        ("2 * duration('P1D')", "P2D"),
        ("duration('P1M') / 2", "P15DT5H14M33S"),
        ("-duration('P1D')", "P-1D"),
        ("duration('P1D') - duration('PT1H')", "P1DT-1H"),
        ("date('2015-01-31') + duration('P1M')", dt.date(2015, 2, 28)),
        ("duration('P1M') + date('2015-01-31')", dt.date(2015, 2, 28)),
        ("date() + null", None),
        ("duration('P1D') * null", None),
        ("duration({days: null})", None),
        ("duration('P1D') < duration('P2D')", None),
        ("duration('P1D') = duration('PT24H')", False),
        ("datetime('2015-01-01T01:00+01:00') = datetime('2015-01-01T00:00Z')", True),
        ("time('12:00+01:00') = time('11:00Z')", True),
        ("time('12:00+01:00') < time('11:30Z')", True),
        ("localtime('12:00') = time('12:00Z')", False),
        ("localtime('12:00') < date('2015-01-01')", None),
        ("date('2015-01-01') = duration('P1D')", False),
        ("datetime.fromepoch(1, 5).nanosecond", 5),
        ("datetime.fromepochmillis(1456704000000)", "2016-02-29T00:00Z"),
        ("datetime({epochMillis: 1, timezone: '+01:00'})", "1970-01-01T01:00:00.001+01:00"),
        ("datetime() = datetime.statement()", True),
        ("date.transaction() = date()", True),
        ("datetime({timezone: 'Asia/Kathmandu'}).offset", "+05:45"),
        ("localdatetime(datetime('2015-01-01T12:00+05:00'))", "2015-01-01T12:00"),
        ("time(datetime('2015-07-01T12:00[Europe/Stockholm]'))", "12:00+02:00"),
        ("time.truncate('hour', time('12:31+01:00'))", "12:00+01:00"),
        ("CASE WHEN true THEN duration('P1D') END", "P1D"),
        ("coalesce(null, localtime('12:00'))", "12:00"),
        ("reduce(t = duration('PT0S'), d IN [duration('P1D'), duration('P2D')] | t + d)", "P3D"),
        ("[d IN [duration('P2D'), duration('P1M')] | d.days]", [2, 0]),
        ("date({year: toInteger('2015'), month: 2})", dt.date(2015, 2, 1)),
    ],
)
def test_expressions(graph: omnigraph.Graph, expression: str, expected: Any) -> None:
    assert _values(graph, f"RETURN {expression} AS value") == [expected]


def test_order_groups_and_aggregates(graph: omnigraph.Graph) -> None:
    days = "[duration('P1M'), duration('P30D'), null, duration('P31D'), duration('P30D')]"
    ordered = _values(graph, f"UNWIND {days} AS d RETURN DISTINCT d ORDER BY d")
    assert ordered == ["P30D", "P1M", "P31D", None]
    found = _values(
        graph, f"UNWIND {days} AS d RETURN min(d), max(d), count(DISTINCT d), sum(d), avg(d)"
    )
    assert found == [("P30D", "P31D", 3, "P1M91D", "P30DT8H37M16.5S")]
    grouped = (
        "UNWIND [time('12:00Z'), time('13:00+01:00'), time('12:00Z')] AS t RETURN t, count(*) AS n"
    )
    assert sorted(_values(graph, grouped)) == [("12:00Z", 2), ("13:00+01:00", 1)]
    none = "UNWIND [] AS x WITH duration({days: x}) AS d RETURN sum(d), avg(d), collect(d)"
    assert _values(graph, none) == [("PT0S", None, [])]


def test_a_stored_time_beside_another_is_one_with_a_zone(graph: omnigraph.Graph) -> None:
    text = (
        "MATCH (e:Event) RETURN coalesce(e.at, datetime('2020-01-01T00:00+05:00')) AS t ORDER BY t"
    )
    assert _values(graph, text)[1:] == ["2016-02-29T00:00Z", "2020-01-01T00:00+05:00"]
    text = "MATCH (e:Event {name: 'a'}) RETURN e.times + [datetime('2020-01-01T00:00+05:00')] AS t"
    assert _values(graph, text) == [["2015-07-21T19:40Z", "2020-01-01T00:00+05:00"]]


def test_maps_of_rows_may_lack_parts_that_others_have(graph: omnigraph.Graph) -> None:
    text = "UNWIND [{year: 2015}, {year: 2016, month: 2}, null] AS m RETURN date(m) AS d"
    assert _values(graph, text) == [dt.date(2015, 1, 1), dt.date(2016, 2, 1), None]
    text = "RETURN date($m) AS d, duration($m) AS e"
    with pytest.raises(LanguageError, match="year"):
        _values(graph, text, {"m": {"year": 2015, "week": 3}})
    found = _values(graph, "RETURN date($m) AS d", {"m": {"year": 2015, "week": 3}})
    assert found == [dt.date(2015, 1, 12)]


def test_values_of_python_as_parameters(graph: omnigraph.Graph) -> None:
    given = {"by": dt.timedelta(days=1), "clock": dt.time(12, 30), "text": "P1D"}
    text = "RETURN date('2015-01-01') + $by, $clock > localtime('12:00'), duration($text) = duration($by)"
    assert _values(graph, text, given) == [(dt.date(2015, 1, 2), True, True)]


def test_results_are_texts_in_arrow_and_json(graph: omnigraph.Graph) -> None:
    result = graph.query(
        "RETURN duration('P1D') AS d, [localtime('12:00')] AS t", language="cypher"
    )
    assert result.to_arrow().to_pylist() == [{"d": "P1D", "t": ["12:00"]}]
    assert result.to_json()["rows"] == [{"d": "P1D", "t": ["12:00"]}]


# text, the words the place covers, what is said
MISTAKES = [
    ("RETURN date('2015-13-01')", "date('2015-13-01')", "from 1 to 12"),
    ("RETURN date({year: 2015, mont: 1})", "date({year: 2015, mont: 1})", "`mont`"),
    ("RETURN date({year: 'x'})", "date({year: 'x'})", "whole number"),
    ("RETURN duration('P999999999999999999Y')", "duration('P999999999999999999Y')", "longer"),
    ("RETURN duration('P1D') * 1e300", "duration('P1D') * 1e300", "longer"),
    ("RETURN duration('P1D').hour", "duration('P1D').hour", "`hour`"),
    ("RETURN time('12:00') + 5", "time('12:00') + 5", "Time and I64"),
    ("RETURN date('2015-01-01') - date('2014-01-01')", None, "Date and Date"),
    ("RETURN datetime('2015-01-01T12:00[Europe/Nowhere]')", None, "Europe/Nowhere"),
    ("RETURN date(5)", "5", "text or a map"),
    ("RETURN date(localtime())", "localtime()", "another time"),
    ("RETURN duration(date())", "date()", "text or a map"),
    ("RETURN date.truncate('moth', date())", "'moth'", "`month`"),
    ("RETURN duration.between(date(), 5)", "5", "dates or times"),
    ("RETURN datetime.trunc('day')", "datetime.trunc('day')", "datetime.trunc"),
    ("MATCH (e:Event) SET e.note = duration('P1D')", "e.note = duration('P1D')", "cannot hold"),
    ("MATCH (e:Event) SET e.at = localdatetime()", "e.at = localdatetime()", "LocalDateTime"),
    ("MATCH (e:Event) SET e.day = datetime()", "e.day = datetime()", "ZonedDateTime"),
    ("CREATE (:Event {name: 'x', times: [localtime()]})", "[localtime()]", "a list of LocalTime"),
    ("CREATE (:Event {name: 'x', at: datetime('+10000-01-01')})", None, "1 to 9999"),
]


@pytest.mark.parametrize(("text", "place", "said"), MISTAKES, ids=[m[0] for m in MISTAKES])
def test_mistakes_are_reported_where_they_stand(
    graph: omnigraph.Graph, text: str, place: str | None, said: str
) -> None:
    run = graph.mutate if text.startswith(("MATCH", "CREATE")) else graph.query
    with pytest.raises(OmnigraphError) as raised:
        run(text, language="cypher")
    assert isinstance(raised.value, LanguageError)
    assert said in str(raised.value)
    span = raised.value.span
    if place is not None:
        assert span is not None
        assert text[span.start : span.end] == place


@pytest.mark.parametrize(
    "text",
    [
        "UNWIND ['2015', 'x'] AS t RETURN date(t)",
        "UNWIND [1, 99999999999] AS n RETURN date('2015-01-01') + duration({days: n})",
        "UNWIND [1, 9000000000000000000] AS n RETURN duration({seconds: n})",
        "UNWIND ['P1D'] AS t RETURN duration(t) * 1e308",
        "UNWIND [13] AS n RETURN date({year: 2015, month: n})",
        "UNWIND ['Europe/Nowhere'] AS z RETURN datetime({timezone: z})",
        "UNWIND [9000000000000000000] AS n RETURN datetime({epochMillis: n})",
        "UNWIND ['x'] AS u RETURN date.truncate(u, date('2015-01-01'))",
        "UNWIND [0] AS n RETURN duration('P1D') / n",
        "MATCH (e:Event) RETURN e.day + duration('P9000Y')",
        "MATCH (e:Event) RETURN date(e.note + 'x')",
    ],
)
def test_values_that_cannot_be_are_refused_while_a_query_runs(
    graph: omnigraph.Graph, text: str
) -> None:
    with pytest.raises(OmnigraphError) as raised:
        graph.query(text, language="cypher")
    assert raised.value.code == "temporal_invalid"
