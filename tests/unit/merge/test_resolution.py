"""What breaks only where two valid sides meet: told with the rows of both, and settled by whole rows of one side."""

from __future__ import annotations

from typing import Any

import pytest

from omnigraph.graph import Graph
from omnigraph.merge import resolution as settling
from omnigraph.merge.conflicts import Conflict
from omnigraph.validate import evaluate
from tests.support.people import SCHEMA, change, people, reshape, rows


@pytest.fixture
def graph() -> Graph:
    made = people()
    made.create_branch("trial")
    return made


def only(graph: Graph) -> Conflict:
    found = graph.merge("trial")
    assert found.outcome == "conflict"
    (conflict,) = found.conflicts
    return conflict


def age(row: Any) -> Any:
    return row and row["age"]


# --- what is told ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("gone", "side"), [("c", "src"), ("d", "dst")])
def test_an_edge_to_a_node_ours_deleted(graph: Graph, gone: str, side: str) -> None:
    change(graph, 'insert Knows { from: "c", to: "d", since: 7 }', "trial")
    change(graph, f'delete Person where name = "{gone}"')
    found = only(graph)
    assert (found.kind, found.type, found.id) == ("orphan_edge", "Knows", '["c","d"]')
    assert found.field == side
    assert (found.base, found.ours) == (None, None)
    assert found.theirs == {"id": '["c","d"]', "src": "c", "dst": "d", "since": 7}
    assert gone in found.message


@pytest.mark.parametrize(("gone", "side"), [("c", "src"), ("d", "dst")])
def test_an_edge_of_ours_to_a_node_theirs_deleted(graph: Graph, gone: str, side: str) -> None:
    change(graph, f'delete Person where name = "{gone}"', "trial")
    change(graph, 'insert Knows { from: "c", to: "d" }')
    found = only(graph)
    assert (found.kind, found.type, found.id) == ("orphan_edge", "Knows", '["c","d"]')
    assert found.field == side
    assert (found.base, found.theirs) == (None, None)
    assert found.ours["src"] == "c"


def test_a_unique_value_both_gave_away(graph: Graph) -> None:
    change(graph, 'insert Person { name: "t", email: "e", age: 5 }', "trial")
    change(graph, 'update Person set { email: "e" } where name = "d"')
    found = only(graph)
    assert (found.kind, found.type, found.field) == ("unique_violation", "Person", "email")
    assert found.id == "t"
    assert found.base is None
    assert found.ours["name"] == "d", "the row of ours that holds the value"
    assert found.theirs["name"] == "t"


def test_a_unique_value_of_rows_both_sides_knew(graph: Graph) -> None:
    change(graph, 'update Person set { email: "e" } where name = "c"', "trial")
    change(graph, 'update Person set { email: "e" } where name = "d"')
    found = only(graph)
    assert found.id == "c"
    assert found.base["email"] is None
    assert (found.ours["name"], found.theirs["name"]) == ("d", "c")


def test_a_cardinality_used_up_by_both(graph: Graph) -> None:
    change(graph, 'insert Lives { from: "a", to: "x" }', "trial")
    change(graph, 'insert Lives { from: "a", to: "y" }')
    found = only(graph)
    assert (found.kind, found.type, found.id) == ("cardinality_violation", "Lives", "a")
    assert (found.base, found.ours, found.theirs) == (None, 1, 1)


def test_each_side_s_edges_are_counted_for_themselves() -> None:
    graph = people(schema=SCHEMA.replace("@card(0..1)", "@card(0..2)"))
    graph.create_branch("trial")
    change(graph, 'insert Lives { from: "a", to: "x" }', "trial")
    for city in "xy":
        change(graph, f'insert Lives {{ from: "a", to: "{city}" }}')
    found = only(graph)
    assert (found.kind, found.ours, found.theirs) == ("cardinality_violation", 2, 1)


def test_a_row_of_ours_against_a_rule_theirs_brought(graph: Graph) -> None:
    reshape(graph, "age: I64?", "age: I64?\n  @range(age, 0..15)", "trial")
    change(graph, 'update Person set { age: 40 } where name = "c"')
    change(graph, 'insert Person { name: "n", age: 50 }')
    found = graph.merge("trial").conflicts
    assert {(c.kind, c.type, c.id, c.field) for c in found} == {
        ("value_constraint_violation", "Person", "c", "age"),
        ("value_constraint_violation", "Person", "n", "age"),
    }
    images = {c.id: (age(c.base), age(c.ours), age(c.theirs)) for c in found}
    assert images == {"c": (2, 40, 2), "n": (None, 50, None)}


def test_a_row_of_theirs_against_a_rule_of_ours(graph: Graph) -> None:
    change(graph, 'update Person set { age: 40 } where name = "c"', "trial")
    reshape(graph, "age: I64?", "age: I64?\n  @range(age, 0..15)")
    found = only(graph)
    assert (found.kind, found.id) == ("value_constraint_violation", "c")
    assert (age(found.base), age(found.ours), age(found.theirs)) == (2, 2, 40)


def test_rules_of_types_theirs_left_alone_are_not_asked_again(graph: Graph) -> None:
    reshape(
        graph,
        "node City {\n  name: String @key",
        "node City {\n  name: String @key\n  n: I64?",
        "trial",
    )
    change(graph, 'update Person set { age: 40 } where name = "c"')
    assert graph.merge("trial").outcome == "merged"
    assert rows(graph, "Person")["c"]["age"] == 40


def test_conflicts_of_rows_and_of_their_meeting_are_told_together(graph: Graph) -> None:
    change(graph, 'update Person set { age: 8 } where name = "a"', "trial")
    change(graph, 'insert Lives { from: "a", to: "x" }', "trial")
    change(graph, 'update Person set { age: 9 } where name = "a"')
    change(graph, 'delete City where name = "x"')
    kinds = [c.kind for c in graph.merge("trial").conflicts]
    assert kinds == ["divergent_update", "orphan_edge"]


# --- what is settled ---------------------------------------------------------------------------------------------


def test_one_side_of_a_cardinality_keeps_its_edges_alone(graph: Graph) -> None:
    change(graph, 'insert Lives { from: "a", to: "x" }', "trial")
    change(graph, 'insert Lives { from: "b", to: "x" }', "trial")
    change(graph, 'insert Lives { from: "a", to: "y" }')
    graph.create_branch("other")
    for into, side, city in (("main", "theirs", "x"), ("other", "ours", "y")):
        assert graph.merge("trial", into=into, strategy=side).outcome == "merged"
        found = {row["src"]: row["dst"] for row in rows(graph, "Lives", into).values()}
        assert found == {"a": city, "b": "x"}


def test_a_rule_of_theirs_is_kept_by_taking_their_rows(graph: Graph) -> None:
    reshape(graph, "age: I64?", "age: I64?\n  @range(age, 0..15)", "trial")
    change(graph, 'update Person set { age: 40 } where name = "c"')
    change(graph, 'update Person set { age: 14 } where name = "d"')
    change(graph, 'insert Person { name: "n", age: 50 }')
    assert graph.merge("trial", strategy="ours").outcome == "conflict", "a rule cannot go"
    assert graph.merge("trial", strategy="theirs").outcome == "merged"
    assert {i: row["age"] for i, row in rows(graph, "Person").items()} == {
        "a": 0,
        "b": 1,
        "c": 2,
        "d": 14,
    }


def test_taking_theirs_may_reach_tables_theirs_never_touched(graph: Graph) -> None:
    change(graph, 'insert Lives { from: "a", to: "x" }', "trial")
    change(graph, 'delete City where name = "x"')
    assert graph.merge("trial", strategy="theirs").outcome == "merged"
    assert set(rows(graph, "City")) == {"x", "y"}
    assert len(rows(graph, "Lives")) == 1


def test_a_decision_for_one_type_leaves_the_others_open(graph: Graph) -> None:
    change(graph, 'insert Lives { from: "a", to: "x" }', "trial")
    change(graph, 'insert Person { name: "t", email: "e" }', "trial")
    change(graph, 'delete City where name = "x"')
    change(graph, 'insert Person { name: "o", email: "e" }')
    left = graph.merge("trial", strategy={"Lives": "ours"}).conflicts
    assert [c.kind for c in left] == ["unique_violation"]
    left = graph.merge("trial", strategy={"Person": "theirs"}).conflicts
    assert [c.kind for c in left] == ["orphan_edge"]
    done = graph.merge("trial", strategy={"Person": "theirs", "Lives": "ours"})
    assert done.outcome == "merged"
    assert not rows(graph, "Lives")
    assert "o" not in rows(graph, "Person")


def test_rows_decided_and_rows_taken_go_together(graph: Graph) -> None:
    change(graph, 'insert Person { name: "t", email: "e", age: 5 }', "trial")
    change(graph, 'update Person set { age: 7 } where name = "a"', "trial")
    change(graph, 'delete Person where name = "b"', "trial")
    change(graph, 'insert Person { name: "o", email: "e" }')
    change(graph, 'update Person set { nick: "al" } where name = "a"')
    assert graph.merge("trial", strategy="theirs").outcome == "merged"
    found = rows(graph, "Person")
    assert set(found) == {"a", "c", "d", "t"}
    assert (found["a"]["age"], found["a"]["nick"]) == (7, "al")


def test_a_row_of_theirs_is_taken_as_an_update_where_ours_has_it_too(graph: Graph) -> None:
    change(graph, 'update Person set { email: "e", age: 7 } where name = "c"', "trial")
    change(graph, 'update Person set { email: "e", nick: "dd" } where name = "d"')
    assert graph.merge("trial", strategy="theirs").outcome == "merged"
    found = rows(graph, "Person")
    assert (found["c"]["email"], found["c"]["age"]) == ("e", 7)
    assert (found["d"]["email"], found["d"]["nick"]) == (None, None), "the whole row is theirs"
    assert len(found) == 4


# --- how often it is judged --------------------------------------------------------------------------------------


def test_an_image_that_stands_is_judged_once(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    judged: list[int] = []

    def told(*given: Any, **options: Any) -> Any:
        judged.append(1)
        return evaluate(*given, **options)

    monkeypatch.setattr(settling, "evaluate", told)
    change(graph, 'insert Lives { from: "a", to: "x" }', "trial")
    change(graph, 'update Person set { age: 9 } where name = "b"')
    graph.merge("trial", dry_run=True)
    assert len(judged) == 1
    judged.clear()
    change(graph, 'delete City where name = "x"')
    graph.merge("trial", dry_run=True)
    assert len(judged) == 1, "nothing was decided, so nothing changes"
    judged.clear()
    graph.merge("trial", strategy="theirs", dry_run=True)
    assert len(judged) == 2, "once as it is, once as decided"
