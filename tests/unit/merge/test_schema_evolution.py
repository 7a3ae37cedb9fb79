"""Schema changes together with merges, reverts, cherry-picks, resets, differences and caches.

Every answer is asked for twice: in this process, whose caches have seen the history, and in one that just started.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.graph import Graph

PLAIN = "node P { k: String @key }"
WITH_B = "node P { k: String @key b: String? }"
ALL = "match { $p: P } return { $p.k as k, $p.b as b } order { k }"
FRESH = """
import json, sys, omnigraph
print(json.dumps(omnigraph.open(sys.argv[1]).query(sys.argv[2], **json.loads(sys.argv[3])).rows))
"""


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return omnigraph.init(str(tmp_path / "g"), schema=WITH_B)


def rows(graph: Graph, query: str = ALL, **where: Any) -> list[dict[str, Any]]:
    """What a query answers, here and in a process that just started."""
    here = graph.query(query, **where).rows
    command = [sys.executable, "-c", FRESH, graph.uri, query, json.dumps(where)]
    there = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert here == there, "a process that just started sees something else"
    return here


def commit_id(result: Any) -> str:
    """The commit a write published."""
    assert result.commit is not None, result
    return str(result.commit.id)


def only(b: Any, k: str = "a") -> list[dict[str, Any]]:
    return [{"k": k, "b": b}]


def lost(result: Any) -> list[tuple[Any, ...]]:
    assert {c.kind for c in result.conflicts} <= {"lost_value"}, result
    return [(c.type, c.id, c.field, c.base, c.ours, c.theirs) for c in result.conflicts]


# --- properties that go and come back ------------------------------------------------------------------------------


@pytest.mark.parametrize("asked_before", [False, True])
def test_reverting_a_drop_restores_the_values(graph: Graph, asked_before: bool) -> None:
    loaded = commit_id(graph.load({"P": [{"k": "a", "b": "x"}, {"k": "c"}]}))
    before = [{"k": "a", "b": "x"}, {"k": "c", "b": None}]
    if asked_before:
        assert graph.query(ALL).rows == before
    dropped = commit_id(graph.apply_schema(PLAIN))
    graph.load({"P": [{"k": "d"}]})
    assert graph.revert(dropped).outcome == "merged"
    assert rows(graph) == [*before, {"k": "d", "b": None}]
    assert rows(graph, at=loaded) == before
    assert graph.diff(loaded, "main").counts == {"P": {"inserted": 1, "updated": 0, "deleted": 0}}
    graph.reset(loaded)
    assert rows(graph) == before


def test_reverting_a_drop_after_compaction_restores_the_values(graph: Graph) -> None:
    graph.load({"P": [{"k": "a", "b": "x"}]})
    dropped = commit_id(graph.apply_schema(PLAIN))
    graph.load({"P": [{"k": "c"}]})
    graph.optimize()
    assert graph.revert(dropped).outcome == "merged"
    assert rows(graph) == [{"k": "a", "b": "x"}, {"k": "c", "b": None}]


def test_reverting_a_merge_that_dropped_a_property_restores_the_values(graph: Graph) -> None:
    graph.load({"P": [{"k": "a", "b": "x"}]})
    graph.create_branch("dev")
    graph.apply_schema(PLAIN, branch="dev")
    graph.load({"P": [{"k": "c", "b": "y"}]})
    graph.mutate('delete P where k = "c"')
    merged = graph.merge("dev")
    assert merged.outcome == "merged"
    assert graph.revert(commit_id(merged)).outcome == "merged"
    assert rows(graph) == only("x")


def test_a_property_that_is_added_again_is_another_one(graph: Graph) -> None:
    loaded = commit_id(graph.load({"P": [{"k": "a", "b": "x"}]}))
    assert graph.query(ALL).rows == only("x")
    graph.apply_schema(PLAIN)
    graph.apply_schema(WITH_B)
    assert rows(graph) == only(None)
    assert rows(graph, at=loaded) == only("x")
    graph.mutate('update P set { b: "new" } where k = "a"')
    assert graph.diff(loaded, "main").rows[0].after == {"b": "new"}
    assert rows(graph, at=loaded) == only("x")


def test_caches_tell_columns_of_one_name_and_file_apart(graph: Graph) -> None:
    graph.load({"P": [{"k": "a", "b": "x"}]})
    texts = {}
    for number, kind in enumerate(("I32?", "String?", "[String]?", "F64?")):
        graph.apply_schema(PLAIN)
        texts[number] = commit_id(graph.apply_schema(f"node P {{ k: String @key b: {kind} }}"))
        assert rows(graph) == only(None)
    for commit in texts.values():
        assert rows(graph, at=commit) == only(None)


# --- both sides ----------------------------------------------------------------------------------------------------

CITY = "node P { k: String @key city: String? }"
CITIES = "match { $p: P } return { $p.k as k, $p.city as c } order { k }"


@pytest.fixture
def forked(tmp_path: Path) -> Graph:
    """Both branches added one property, each by itself."""
    graph = omnigraph.init(str(tmp_path / "g"), schema=PLAIN)
    graph.load({"P": [{"k": "x"}, {"k": "y"}]})
    graph.create_branch("f")
    graph.apply_schema("node P { k: String @key other: I32? }", branch="f")
    graph.apply_schema(CITY, branch="f")
    graph.apply_schema(CITY)
    return graph


def test_a_property_both_sides_added_keeps_the_values_of_both(forked: Graph) -> None:
    forked.mutate('update P set { city: "A" } where k = "x"', branch="f")
    forked.mutate('insert P { k: "new", city: "N" }', branch="f")
    forked.mutate('update P set { city: "B" } where k = "y"')
    assert forked.merge("f", dry_run=True).outcome == "merged"
    assert forked.merge("f").outcome == "merged"
    wanted = [{"k": "new", "c": "N"}, {"k": "x", "c": "A"}, {"k": "y", "c": "B"}]
    assert rows(forked, CITIES) == wanted
    assert forked.merge("f").outcome == "already_up_to_date"
    assert forked.merge("main", into="f").outcome == "fast_forward"
    assert rows(forked, CITIES, branch="f") == wanted


def test_merging_again_brings_later_values(forked: Graph) -> None:
    forked.mutate('update P set { city: "A" } where k = "x"', branch="f")
    forked.merge("f")
    forked.mutate('update P set { city: "C" } where k = "y"', branch="f")
    forked.mutate('update P set { city: "M" } where k = "x"')
    assert forked.merge("f").outcome == "merged"
    assert rows(forked, CITIES) == [{"k": "x", "c": "M"}, {"k": "y", "c": "C"}]


def test_one_cell_written_by_both_sides_is_a_conflict(forked: Graph) -> None:
    forked.mutate('update P set { city: "A" } where k = "x"', branch="f")
    forked.mutate('update P set { city: "B" } where k = "x"')
    (conflict,) = forked.merge("f").conflicts
    assert (conflict.field, conflict.ours, conflict.theirs) == ("city", "B", "A")
    assert rows(forked, CITIES)[0] == {"k": "x", "c": "B"}


def test_a_type_both_sides_added_holds_the_rows_of_both(graph: Graph) -> None:
    graph.create_branch("f")
    text = WITH_B + "\nnode C { name: String @key size: I32? }\nedge In: P -> C"
    for branch, name in (("f", "Oslo"), ("main", "Rome")):
        graph.apply_schema(text, branch=branch)
        graph.load(
            {"P": [{"k": name}], "C": [{"name": name}], "In": [{"from": name, "to": name}]},
            branch=branch,
        )
    assert graph.merge("f").outcome == "merged"
    query = "match { $p: P $p in $c } return { $c.name as n } order { n }"
    assert rows(graph, query) == [{"n": "Oslo"}, {"n": "Rome"}]


def test_properties_of_one_name_and_different_types_are_a_conflict_of_the_schema(
    graph: Graph,
) -> None:
    graph.create_branch("f")
    graph.apply_schema("node P { k: String @key b: String? c: I32? }", branch="f")
    graph.apply_schema("node P { k: String @key b: String? c: String? }")
    (conflict,) = graph.merge("f").conflicts
    assert (conflict.kind, conflict.field) == ("schema_conflict", "c")
    assert (conflict.ours, conflict.theirs) == ("added", "added")


# --- values without a place ----------------------------------------------------------------------------------------


def test_a_value_written_to_a_property_the_other_side_dropped_is_a_conflict(graph: Graph) -> None:
    graph.load({"P": [{"k": "a", "b": "x"}, {"k": "c", "b": "z"}]})
    graph.create_branch("dev")
    graph.mutate('update P set { b: "new" } where k = "a"', branch="dev")
    graph.mutate('insert P { k: "d", b: "in" }', branch="dev")
    graph.mutate('update P set { b: null } where k = "c"', branch="dev")
    graph.apply_schema(PLAIN)
    wanted = [("P", "a", "b", "x", None, "new"), ("P", "d", "b", None, None, "in")]
    assert lost(graph.merge("dev")) == wanted
    assert lost(graph.merge("dev", strategy="theirs")) == wanted
    assert graph.merge("dev", strategy="ours").outcome == "merged"
    query = "match { $p: P } return { $p.k as k } order { k }"
    assert [r["k"] for r in rows(graph, query)] == ["a", "c", "d"]


def test_a_value_we_wrote_to_a_property_theirs_dropped_is_a_conflict(graph: Graph) -> None:
    graph.load({"P": [{"k": "a", "b": "x"}]})
    graph.create_branch("dev")
    graph.apply_schema(PLAIN, branch="dev")
    graph.mutate('update P set { b: "new" } where k = "a"')
    assert lost(graph.merge("dev")) == [("P", "a", "b", "x", "new", None)]
    assert rows(graph) == only("new")


def test_picking_a_commit_that_sets_a_property_the_target_lacks_is_a_conflict(graph: Graph) -> None:
    graph.load({"P": [{"k": "a", "b": "x"}]})
    graph.create_branch("dev")
    graph.apply_schema("node P { k: String @key b: String? c: I32? }", branch="dev")
    picked = commit_id(graph.mutate('update P set { b: "y", c: 5 } where k = "a"', branch="dev"))
    assert lost(graph.cherry_pick(picked)) == [("P", "a", "c", None, None, 5)]
    assert rows(graph) == only("x")


def test_rows_that_are_decided_to_stay_obey_the_rules_that_come(tmp_path: Path) -> None:
    """Ours dropped a required property; taking up again the state that has it cannot keep our rows without it."""
    required = "node P { k: String @key m: I64 }\nnode X { k: String @key }"
    graph = omnigraph.init(str(tmp_path / "g"), schema=required)
    graph.load({"P": [{"k": "a", "m": 5}]})
    for branch in ("one", "two"):
        graph.create_branch(branch)
    graph.apply_schema(required.replace("m: I64 ", ""), branch="two")
    graph.apply_schema("node X { k: String @key }", branch="one")
    back = commit_id(graph.reset("main", branch="one"))
    found = graph.cherry_pick(back, branch="two", strategy="ours")
    assert {c.kind for c in found.conflicts} == {"value_constraint_violation"}
    assert graph.cherry_pick(back, branch="two", strategy="theirs").outcome == "merged"
    query = "match { $p: P } return { $p.k as k, $p.m as b }"
    assert rows(graph, query, branch="two") == only(5)


WIDE, NARROW = "node P { k: String @key b: I64? }", "node P { k: String @key b: I32? }"


def test_reverting_a_widening_after_a_large_value_is_a_conflict(tmp_path: Path) -> None:
    graph = omnigraph.init(str(tmp_path / "g"), schema=NARROW)
    graph.load({"P": [{"k": "a", "b": 1}]})
    widened = commit_id(graph.apply_schema(WIDE))
    graph.load({"P": [{"k": "c", "b": 2}]})
    graph.mutate('update P set { b: 5000000000 } where k = "a"')
    assert lost(graph.revert(widened)) == [("P", "a", "b", 1, 5_000_000_000, 1)]
    graph.mutate('update P set { b: 7 } where k = "a"')
    assert graph.revert(widened).outcome == "merged"
    assert rows(graph) == [{"k": "a", "b": 7}, {"k": "c", "b": 2}]
    assert str(graph.snapshot().catalog.nodes["P"].properties["b"].type) == "I32?"


def test_a_value_that_does_not_fit_our_type_is_a_conflict(tmp_path: Path) -> None:
    graph = omnigraph.init(str(tmp_path / "g"), schema=NARROW)
    graph.load({"P": [{"k": "a", "b": 1}]})
    widened = commit_id(graph.apply_schema(WIDE))
    graph.create_branch("dev")
    graph.load({"P": [{"k": "a", "b": 5_000_000_000}, {"k": "d", "b": 3}]}, branch="dev")
    graph.revert(widened)
    assert lost(graph.merge("dev")) == [("P", "a", "b", 1, 1, 5_000_000_000)]
    assert rows(graph) == only(1)


def test_reverting_a_merge_that_widened_takes_its_large_values_back(tmp_path: Path) -> None:
    graph = omnigraph.init(str(tmp_path / "g"), schema=NARROW)
    graph.load({"P": [{"k": "a", "b": 1}]})
    graph.create_branch("dev")
    graph.apply_schema(WIDE, branch="dev")
    graph.mutate('update P set { b: 5000000000 } where k = "a"', branch="dev")
    graph.mutate('insert P { k: "big", b: 6000000000 }', branch="dev")
    graph.load({"P": [{"k": "c", "b": 2}]})
    merged = graph.merge("dev")
    assert graph.revert(commit_id(merged)).outcome == "merged"
    assert rows(graph) == [{"k": "a", "b": 1}, {"k": "c", "b": 2}]


# --- after ordinary changes ----------------------------------------------------------------------------------------

CHANGES: dict[str, tuple[str, Callable[[str], str]]] = {
    "a property that sorts first": ("node P { k: String @key b: String? a: I32? }", str),
    "a property that sorts last": ("node P { k: String @key b: String? z: I32? }", str),
    "a property with a default": ("node P { k: String @key b: String? a: I32 @default(3) }", str),
    "a renamed property": (
        'node P { k: String @key z: String? @rename_from("b") }',
        lambda text: text.replace(" b:", " z:"),
    ),
    "a renamed type": (
        'node Q @rename_from("P") { k: String @key b: String? }',
        lambda text: text.replace(" P ", " Q "),
    ),
}


@pytest.mark.parametrize("optimised", [(), ("main",), ("dev",), ("main", "dev")])
@pytest.mark.parametrize("change", CHANGES)
def test_rows_of_a_changed_type_are_merged_field_by_field(
    graph: Graph, change: str, optimised: tuple[str, ...]
) -> None:
    schema, words = CHANGES[change]
    name = "Q" if "Q" in schema else "P"
    mine = "z" if "z: String" in schema else "b"
    other = next((p for p in ("a", "z") if f" {p}: I32" in schema), "k")
    graph.load({"P": [{"k": "p", "b": "0"}, {"k": "q", "b": "0"}]})
    graph.apply_schema(schema)
    graph.create_branch("dev")
    update = 'update P set { b: "1" } where k = "q"'
    picked = commit_id(graph.mutate(words(update), branch="dev"))
    graph.load({name: [{"k": "r", mine: "2"}]})
    if other != "k":
        graph.load({name: [{"k": "q", other: 2}]})
    for branch in optimised:
        graph.optimize(branch)
    query = words(ALL)
    query = query.replace("$p.b", f"$p.{mine}").replace(": P ", f": {name} ")
    wanted = [{"k": "p", "b": "0"}, {"k": "q", "b": "1"}, {"k": "r", "b": "2"}]
    assert graph.merge("dev", dry_run=True).outcome == "merged"
    graph.create_branch("picked")
    assert graph.cherry_pick(picked, branch="picked").outcome == "merged"
    assert rows(graph, query, branch="picked") == wanted
    merged = graph.merge("dev")
    assert merged.outcome == "merged"
    assert rows(graph, query) == wanted
    assert len(list(graph.diff("dev", "main"))) == (1 if other == "k" else 2)
    assert graph.revert(commit_id(merged)).outcome == "merged"
    assert rows(graph, query) == [wanted[0], {"k": "q", "b": "0"}, wanted[2]]


def test_a_default_that_changed_later_does_not_change_what_rows_hold(graph: Graph) -> None:
    graph.load({"P": [{"k": "a", "b": "x"}]})
    graph.create_branch("dev")
    text = "node P {{ k: String @key b: String? n: I32 @default({}) }}"
    graph.apply_schema(text.format(1), branch="dev")
    graph.apply_schema(text.format(2), branch="dev")
    graph.load({"P": [{"k": "c"}]})
    assert graph.merge("dev").outcome == "merged"
    query = "match { $p: P } return { $p.k as k, $p.n as n } order { k }"
    assert rows(graph, query) == [{"k": "a", "n": 1}, {"k": "c", "n": 2}]
