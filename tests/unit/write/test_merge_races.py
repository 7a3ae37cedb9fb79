"""Merges and resets beside a writer who commits between their plan and their commit.

What a merge found out about its target may be wrong by the time it is published. Whatever comes out must be what the
two would have made one after the other; no commit may break the schema, and no acknowledged write may be lost.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import omnigraph
from omnigraph.graph import Graph
from omnigraph.write import merge as merge_verb

SCHEMA = "node P { k: String @key b: String? n: I32? }\nedge E: P -> P"
RULE = SCHEMA.replace("n: I32?", "n: I32? @range(n, 0..10)")
ALL = "match { $p: P } return { $p.k as k, $p.b as b } order { k }"


@pytest.fixture
def graph(graph_root: str) -> Graph:
    made = omnigraph.init(graph_root, schema=SCHEMA)
    made.load({"P": [{"k": "a"}, {"k": "b"}]})
    made.create_branch("f")
    return made


@pytest.fixture
def meanwhile(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Callable[[Graph], Any]], None]:
    """Somebody else acts once, when the next write of this handle is ready to be published."""

    def arrange(act: Callable[[Graph], Any]) -> None:
        tables = graph._repo.tables
        real, other = tables.sync, omnigraph.open(graph.uri)

        def sync(staged: Any) -> None:
            monkeypatch.setattr(tables, "sync", real)
            act(other)
            real(staged)

        monkeypatch.setattr(tables, "sync", sync)

    return arrange


def kinds(result: Any) -> set[str]:
    return {conflict.kind for conflict in result.conflicts}


def moved_on(graph: Graph, ours: bool) -> None:
    """With a write of its own, the target needs a merge of two sides; else the merge is a fast-forward."""
    if ours:
        graph.load({"P": [{"k": "z"}]})


def is_sound(graph: Graph) -> bool:
    return omnigraph.open(graph.uri).doctor(deep=True).healthy


@pytest.mark.parametrize("two_sides", [False, True])
def test_an_edge_is_not_brought_to_a_node_that_goes_meanwhile(
    graph: Graph, meanwhile: Any, two_sides: bool
) -> None:
    graph.load({"E": [{"from": "a", "to": "b"}]}, branch="f")
    moved_on(graph, two_sides)
    meanwhile(lambda other: other.mutate('delete P where k = "b"'))
    assert kinds(graph.merge("f")) == {"orphan_edge"}
    assert is_sound(graph)


@pytest.mark.parametrize("two_sides", [False, True])
def test_a_rule_is_not_brought_over_a_row_that_breaks_it(
    graph: Graph, meanwhile: Any, two_sides: bool
) -> None:
    graph.apply_schema(RULE, branch="f")
    moved_on(graph, two_sides)
    meanwhile(lambda other: other.mutate('insert P { k: "c", n: 99 }'))
    assert kinds(graph.merge("f")) == {"value_constraint_violation"}
    assert "@range" not in graph.schema()


@pytest.mark.parametrize("two_sides", [False, True])
def test_a_dropped_property_does_not_take_a_value_written_meanwhile(
    graph: Graph, meanwhile: Any, two_sides: bool
) -> None:
    graph.apply_schema(SCHEMA.replace("b: String? ", ""), branch="f")
    moved_on(graph, two_sides)
    meanwhile(lambda other: other.mutate('update P set { b: "new" } where k = "a"'))
    assert kinds(graph.merge("f")) == {"lost_value"}
    assert graph.query(ALL).rows[0] == {"k": "a", "b": "new"}


@pytest.mark.parametrize("two_sides", [False, True])
def test_a_dropped_type_does_not_take_rows_written_meanwhile(
    graph: Graph, meanwhile: Any, two_sides: bool
) -> None:
    graph.apply_schema(SCHEMA.split("\n", maxsplit=1)[0], branch="f")
    moved_on(graph, two_sides)
    meanwhile(lambda other: other.load({"E": [{"from": "a", "to": "b"}]}))
    assert kinds(graph.merge("f")) == {"schema_conflict"}
    assert graph.query("match { $a: P $a e $b } return { count($a) as n }").scalar() == 1


def test_reverting_a_relaxed_rule_sees_the_null_written_meanwhile(
    graph: Graph, meanwhile: Any
) -> None:
    strict = SCHEMA.replace("n: I32?", "n: I32? m: I32 @default(1)")
    graph.apply_schema(strict)
    relaxed = graph.apply_schema(strict.replace("m: I32 ", "m: I32? ")).commit
    assert relaxed is not None
    meanwhile(lambda other: other.mutate('update P set { m: null } where k = "a"'))
    assert kinds(graph.revert(relaxed.id)) == {"value_constraint_violation"}


def test_a_reset_takes_back_what_was_written_meanwhile(graph: Graph, meanwhile: Any) -> None:
    start = graph.log(limit=1)[0].id
    graph.load({"P": [{"k": "c"}]})
    meanwhile(lambda other: other.load({"E": [{"from": "a", "to": "b"}]}))
    graph.reset(start)
    assert graph.diff(start, "main").is_empty


def test_writers_of_other_rows_do_not_make_a_merge_run_again(
    graph: Graph, meanwhile: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An added property asks nothing of rows, and a taken-over table only of its own version."""
    from omnigraph.write import merge as merging

    runs: list[str] = []
    real = merging.three_way

    def three_way(*given: Any, **more: Any) -> Any:
        runs.append("run")
        return real(*given, **more)

    monkeypatch.setattr(merging, "three_way", three_way)
    graph.apply_schema(SCHEMA.replace("n: I32?", "n: I32? m: I32?"), branch="f")
    graph.load({"E": [{"from": "a", "to": "b"}]}, branch="f")
    graph.load({"P": [{"k": "z"}]})
    meanwhile(lambda other: other.load({"P": [{"k": "y"}]}))
    assert graph.merge("f").outcome == "merged"
    assert runs == ["run"]
    assert [row["k"] for row in graph.query(ALL).rows] == ["a", "b", "y", "z"]
    assert is_sound(graph)


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A line for each time a merge of two sides is worked out."""
    runs: list[str] = []
    real = merge_verb.three_way

    def three_way(*args: Any, **more: Any) -> Any:
        runs.append("again")
        return real(*args, **more)

    monkeypatch.setattr(merge_verb, "three_way", three_way)
    return runs


EDGES = "match { $a: P $a e $b } return { $a.k as a, $b.k as b } order { a, b }"


def test_a_table_is_taken_over_beside_a_writer_of_other_rows(
    graph: Graph, meanwhile: Any, planned: list[str]
) -> None:
    graph.load({"E": [{"from": "a", "to": "b"}], "P": [{"k": "new", "b": "f"}]}, branch="f")
    moved_on(graph, True)
    meanwhile(lambda other: other.load({"E": [{"from": "b", "to": "a"}], "P": [{"k": "y"}]}))
    assert graph.merge("f").outcome == "merged"
    assert planned == ["again"], "it was worked out once more"
    assert [row["a"] for row in graph.query(EDGES).rows] == ["a", "b"]
    assert [row["k"] for row in graph.query(ALL).rows] == ["a", "b", "new", "y", "z"]
    assert graph.merge("f").outcome == "already_up_to_date"
    assert is_sound(graph)


@pytest.mark.parametrize("act", ["update", "delete", "insert"])
def test_whoever_writes_a_row_of_the_merge_meanwhile_is_met(
    graph: Graph, meanwhile: Any, planned: list[str], act: str
) -> None:
    graph.load({"P": [{"k": "a", "b": "theirs"}, {"k": "c", "b": "theirs"}]}, branch="f")
    graph.load({"E": [{"from": "a", "to": "b"}]})  # of another table: P is taken over
    meanwhile(
        {
            "update": lambda other: other.load({"P": [{"k": "a", "b": "ours"}]}),
            "delete": lambda other: other.mutate('delete P where k = "a"'),
            "insert": lambda other: other.load({"P": [{"k": "c", "b": "ours"}]}),
        }[act]
    )
    found = graph.merge("f")
    assert found.outcome == "conflict", act
    assert {c.id for c in found.conflicts} == ({"c"} if act == "insert" else {"a"})
    assert len(planned) == 2
    assert is_sound(graph)


def test_updates_of_many_rows_are_put_on_what_others_wrote_beside_them(
    graph: Graph, meanwhile: Any, planned: list[str]
) -> None:
    """Rows with a stored image: they are found again by their ids on the newer version."""
    many = [{"k": f"m{i}", "b": "old"} for i in range(500)]
    graph.load({"P": many})
    graph.create_branch("g")
    graph.load({"P": [{"k": f"m{i}", "b": "new"} for i in range(250)]}, branch="g")
    graph.mutate('delete P where k = "m400"', branch="g")
    graph.load({"E": [{"from": "a", "to": "b"}]})
    meanwhile(lambda other: other.load({"P": [{"k": "m300", "b": "ours"}]}))
    assert graph.merge("g").outcome == "merged"
    assert planned == ["again"]
    rows = {row["k"]: row["b"] for row in graph.query(ALL).rows}
    assert sum(b == "new" for b in rows.values()) == 250
    assert rows["m300"] == "ours"
    assert "m400" not in rows
    assert len(rows) == 501
    assert is_sound(graph)
