"""Checks: what they say, what they measure, and that they are versioned with the graph."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import operations
from omnigraph.errors import OmnigraphError
from omnigraph.graph import Graph, init
from omnigraph.lang.checks import CheckInvalid, merge_checks, parse_bound, parse_checks
from omnigraph.lang.query import format_queries

SCHEMA = "node Person { name: String @key  age: I32? }\nedge Knows: Person -> Person"
ALL = "{ match { $p: Person } return { $p.name as name } }"
COUNT = "{ match { $p: Person } return { count($p) as n } }"
AGELESS = "query ageless() { match { $p: Person $p.age is null } return { $p.name as name } }"


@pytest.fixture
def graph(memory_root: str) -> Graph:
    made = init(memory_root, schema=SCHEMA)
    made.load({"Person": [{"name": f"p{n:03}", "age": n} for n in range(100)]})
    return made


def _code(call: Callable[[], object]) -> str:
    with pytest.raises(OmnigraphError) as caught:
        call()
    return caught.value.code


# --- texts -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("0", [0], [1, -1]),
        ("..10", [0, 10, -5], [10.5, 11]),
        ("5..", [5, 1000], [4]),
        ("1..3", [1, 2, 3], [0, 4]),
        ("-1%..5%", [-1, 0, 5], [-1.1, 5.1]),
        ("..0.5%", [0.5], [0.6]),
    ],
)
def test_a_bound_holds_what_lies_within(
    text: str, inside: list[float], outside: list[float]
) -> None:
    bound = parse_bound(text, "c")
    assert all(map(bound.holds, inside))
    assert not any(map(bound.holds, outside))
    assert parse_bound(str(bound), "c") == bound


@pytest.mark.parametrize("text", ["", "..", "a", "1..2..3", "1%..2", "%", "3..1", "1 .. x", "5%%"])
def test_what_is_no_bound_is_refused(text: str) -> None:
    with pytest.raises(CheckInvalid):
        parse_bound(text, "c")


@pytest.mark.parametrize(
    "text",
    [
        f'query a() @rows("1") @value("2") {ALL}',
        f'query a() @severity("fatal") {ALL}',
        f'query a() @new_rows("1%") {ALL}',
        "query a($x: String) { match { $p: Person $p.name = $x } return { $p.name } }",
        'query a() { insert Person { name: "x" } }',
        f"query a() {ALL} query a() {ALL}",
    ],
)
def test_a_text_that_says_no_checks_is_refused(text: str) -> None:
    with pytest.raises(CheckInvalid):
        parse_checks(text)


def test_a_check_must_fit_the_schema(graph: Graph) -> None:
    assert _code(lambda: graph.apply_checks("query a() { match { $x: No } return { $x.y } }"))
    assert graph.checks() == []


def test_annotations_of_checks_survive_formatting() -> None:
    text = f'query a() @description("d") @severity("warning") @lost_rows("..1%") {ALL}'
    again = parse_checks(format_queries(text))[0]
    first = parse_checks(text)[0]
    assert (again.severity, again.measure, again.bound) == (
        first.severity,
        first.measure,
        first.bound,
    )


# --- measures ----------------------------------------------------------------------------------------------------


def _outcome(graph: Graph, note: str, body: str = ALL) -> tuple[str, float | None, int]:
    graph.apply_checks(f"query c() {note} {body}")
    (found,) = graph.check(before="base").results
    return found.outcome, found.measured, len(found.rows)


@pytest.mark.parametrize(
    ("note", "body", "expected"),
    [
        ('@rows("0")', ALL, ("failed", 99.0, 20)),
        ('@rows("90..")', ALL, ("passed", 99.0, 0)),
        ('@new_rows("..1")', ALL, ("passed", 1.0, 0)),
        ('@new_rows("0")', ALL, ("failed", 1.0, 1)),
        ('@lost_rows("..1%")', ALL, ("failed", 2.0, 2)),
        ('@lost_rows("..2")', ALL, ("passed", 2.0, 0)),
        ('@lost_rows("..2%")', ALL, ("passed", 2.0, 0)),
        ('@value("-1%..")', COUNT, ("passed", -1.0, 0)),
        ('@value("0")', COUNT, ("failed", -1.0, 1)),
        ('@value("0")', ALL, ("failed", None, 0)),
    ],
)
def test_what_is_measured(
    graph: Graph, note: str, body: str, expected: tuple[str, float | None, int]
) -> None:
    """Of a hundred people two go and one comes."""
    graph.tag("base")
    graph.mutate('query d() { delete Person where name = "p001" }')
    graph.mutate('query d() { delete Person where name = "p002" }')
    graph.load({"Person": [{"name": "new", "age": 1}]})
    assert _outcome(graph, note, body) == expected


def test_rows_that_were_there_before_are_not_new(graph: Graph) -> None:
    """A rule for the future: what is wrong already is left alone."""
    graph.load({"Person": [{"name": "old mistake"}]})
    graph.apply_checks(AGELESS.replace("()", '() @new_rows("0")'))
    graph.create_branch("draft")
    assert graph.check("draft", before="main").passed
    graph.load({"Person": [{"name": "new mistake"}]}, branch="draft")
    (found,) = graph.check("draft", before="main").results
    assert found.rows == ({"name": "new mistake"},)


def test_a_check_whose_type_is_gone_has_failed(graph: Graph) -> None:
    graph.apply_checks("query k() { match { $a: Person $a knows $b } return { $b.name as n } }")
    graph.apply_schema("node Person { name: String @key  age: I32? }")
    (found,) = graph.check().results
    assert found.outcome == "failed"
    assert found.error is not None


def test_a_warning_fails_nothing(graph: Graph) -> None:
    graph.apply_checks(f'query c() @severity("warning") @rows("0") {ALL}')
    report = graph.check()
    assert report.passed
    assert report.results[0].outcome == "failed"


def test_a_comparison_without_anything_before_is_skipped(memory_root: str) -> None:
    graph = init(memory_root, schema=SCHEMA)
    graph.apply_checks(f'query c() @lost_rows("0") {ALL}')
    assert [r.outcome for r in graph.check(at="main~1").results] == []
    assert graph.check().results[0].outcome == "passed"


def test_all_checks_of_a_run_look_at_one_commit(graph: Graph) -> None:
    graph.apply_checks(f'query a() @rows("100") {ALL}\nquery b() @rows("100") {ALL}')
    seen = graph.snapshot().commit_id
    report = graph.check()
    graph.load({"Person": [{"name": "later"}]})
    assert report.commit == seen
    assert graph.check(at=seen).passed
    assert not graph.check().passed


# --- versions ----------------------------------------------------------------------------------------------------


def test_checks_branch_merge_and_are_looked_back_at(graph: Graph) -> None:
    graph.apply_checks(AGELESS)
    graph.create_branch("draft")
    graph.apply_checks(f"{AGELESS}\nquery mine() {COUNT}")
    graph.apply_checks(f"{AGELESS}\nquery theirs() {COUNT}", branch="draft")
    assert graph.merge("draft").outcome == "merged"
    assert [check.name for check in graph.checks()] == ["ageless", "mine", "theirs"]
    assert [check.name for check in graph.checks(at="main~1")] == ["ageless", "mine"]
    graph.reset("main~2")
    assert [check.name for check in graph.checks()] == ["ageless"]
    graph.revert(graph.log(limit=1)[0].id)
    assert len(graph.checks()) == 3
    assert graph.snapshot().commit.tables == graph.snapshot(at="main~4").commit.tables


def test_a_check_both_sides_changed_is_a_conflict(graph: Graph) -> None:
    graph.apply_checks(AGELESS)
    graph.create_branch("draft")
    graph.apply_checks(AGELESS.replace("()", '() @rows("..1")'))
    graph.apply_checks(AGELESS.replace("()", '() @rows("..2")'), branch="draft")
    found = graph.merge("draft")
    assert [(c.kind, c.id) for c in found.conflicts] == [("check_conflict", "ageless")]
    graph.merge("draft", strategy="theirs")
    assert str(graph.checks()[0].bound) == "..2"


def test_a_side_that_was_removed_stays_removed() -> None:
    a, b, c = (f"query {name}() {ALL}" for name in "abc")
    merged = merge_checks(f"{a}\n{b}", b, f"{a}\n{b}\n{c}")
    assert [check.name for check in parse_checks(merged.text)] == ["b", "c"]
    assert not merged.conflicts
    both = merge_checks(a, "", a.replace("p", "q"))
    assert [conflict.name for conflict in both.conflicts] == ["a"]


def test_a_copy_has_the_checks_and_what_they_found(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "one", schema=SCHEMA)
    graph.apply_checks(AGELESS)
    graph.load({"Person": [{"name": "a"}]})
    graph.check(actor="ada")
    graph.create_branch("draft")
    graph.propose("draft", "Nothing")
    graph.clone(tmp_path / "two")
    copy = omnigraph.open(tmp_path / "two")
    assert [check.name for check in copy.checks()] == ["ageless"]
    assert copy.check_results("main")[0].actor == "ada"
    assert copy.proposal(1).title == "Nothing"
    graph.clone(tmp_path / "three", branch="main")
    assert [c.name for c in omnigraph.open(tmp_path / "three").checks()] == ["ageless"]
    assert omnigraph.open(tmp_path / "three").doctor(deep=True).healthy


def test_what_was_found_is_kept_with_the_commit_without_rows(graph: Graph) -> None:
    graph.apply_checks(AGELESS)
    graph.load({"Person": [{"name": "a"}]})
    graph.check(actor="ada")
    graph.check(actor="bob", record=False)
    (kept,) = graph.check_results("main")
    assert (kept.commit, kept.actor, kept.passed) == (graph.log(limit=1)[0].id, "ada", False)
    assert [(r.name, r.outcome, r.measured, r.rows) for r in kept.results] == [
        ("ageless", "failed", 1.0, ())
    ]
    graph.optimize()
    assert len(graph.check_results("main")) == 1, "maintenance hides what was found"


# --- profiles ----------------------------------------------------------------------------------------------------


def test_a_profile_says_what_columns_hold(graph: Graph) -> None:
    graph.tag("base")
    graph.load({"Person": [{"name": "x"}], "Knows": [{"from": "p001", "to": "p002"}] * 1})
    graph.load([{"edge": "Knows", "from": "p001", "to": "p003"}])
    found = graph.profile(before="base")
    person, knows = found.types
    age = next(column for column in person.columns if column.name == "age")
    assert (person.rows, age.nulls, age.distinct, age.least, age.most) == (101, 1, 100, 0, 99)
    assert age.mean == 49.5
    assert (knows.degrees["out"].most, knows.degrees["in"].most) == (2, 1)
    assert found.before is not None
    assert found.before.types[0].rows == 100


def test_what_was_found_goes_with_its_commit(graph: Graph) -> None:
    graph.apply_checks(AGELESS)
    for n in range(4):
        graph.load({"Person": [{"name": f"n{n}"}]})
        graph.check()
    folders = graph.repository.objects.folders("_checked/" + graph.snapshot().commit.chain)
    assert len(folders) == 4
    graph.cleanup(keep=1)
    left = graph.repository.objects.folders("_checked/" + graph.snapshot().commit.chain)
    assert len(left) == 1
    assert len(graph.check_results("main")) == 1


def test_a_comparison_of_tables_that_did_not_change_reads_nothing(
    memory_root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it costs follows the difference: only checks whose types have other rows than before are asked."""
    graph = init(memory_root, schema="node A { name: String @key }\nnode B { name: String @key }")
    graph.load({"A": [{"name": "a"}], "B": [{"name": "b"}]})
    graph.apply_checks(
        """
        query a_lost() @lost_rows("0") { match { $a: A } return { $a.name as name } }
        query b_lost() @lost_rows("0") { match { $b: B } return { $b.name as name } }
        query b_many() @value("0..") { match { $b: B } return { count($b) as n } }
        """
    )
    graph.mutate('query q() { delete A where name = "a" }')
    asked: list[str] = []
    run = operations.run_query

    def watched(query: Any, *args: Any, **named: Any) -> Any:
        asked.append(query.name)
        return run(query, *args, **named)

    monkeypatch.setattr(operations, "run_query", watched)
    found = {result.name: result for result in graph.check(record=False).results}
    assert asked == ["a_lost", "a_lost", "b_many"], "in both states, not at all, in one"
    assert (found["a_lost"].outcome, found["a_lost"].rows) == ("failed", ({"name": "a"},))
    assert (found["b_lost"].outcome, found["b_lost"].measured) == ("passed", 0.0)
    assert (found["b_many"].outcome, found["b_many"].measured) == ("passed", 0.0)
