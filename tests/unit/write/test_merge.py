"""Merges: what is taken over, what is decided, what is refused, and what happens when somebody writes meanwhile."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.core.plan import Adopt, PublishPlan, Verb
from omnigraph.core.txn import WriteTxn
from omnigraph.errors import BranchNotFound, OptionInvalid
from omnigraph.graph import Graph, open_graph
from omnigraph.write.merge import MergeOutcome, merge
from tests.support.people import change, people, reshape, rows, state


@pytest.fixture
def graph() -> Graph:
    made = people()
    made.create_branch("trial")
    return made


def planned(graph: Graph, source: str = "trial", into: str = "main") -> PublishPlan:
    """What a merge would publish."""
    seen: list[PublishPlan] = []

    def look(txn: WriteTxn) -> PublishPlan:
        seen.append(merge(graph._repo, source, into)(txn))
        return PublishPlan(kind="look", empty=True)

    graph.publish(look, branch=into, alone=True)
    return seen[0]


# --- taking over -------------------------------------------------------------------------------------------------


def test_an_unchanged_target_takes_over_the_table_map_and_touches_no_data(tmp_path: Path) -> None:
    graph = people(tmp_path / "g")
    graph.create_branch("trial")
    change(graph, 'update Person set { age: 9 } where name = "a"', "trial")
    files = {f for f in (tmp_path / "g").rglob("*") if "__manifest" not in str(f)}
    assert graph.merge("trial").outcome == "fast_forward"
    after = {f for f in (tmp_path / "g").rglob("*") if "__manifest" not in str(f)}
    assert after == files, f"a fast forward wrote {after - files}"
    assert graph.snapshot().commit.tables == graph.snapshot("trial").commit.tables


def test_a_fast_forward_says_what_it_brought(graph: Graph) -> None:
    change(graph, 'insert Person { name: "n" }', "trial")
    change(graph, 'update Person set { age: 1 } where name = "n"', "trial")
    change(graph, 'delete Person where name = "d"', "trial")
    result = graph.merge("trial", message="bring it", actor="me")
    assert result.counts == {"Person": {"inserted": 1, "updated": 0, "deleted": 1}}
    assert result.commit is not None
    assert (result.commit.message, result.commit.actor) == ("bring it", "me")
    assert len(result.commit.parents) == 2, "a merge has two parents"


def test_maintenance_of_the_target_does_not_hinder_a_fast_forward(graph: Graph) -> None:
    change(graph, 'insert City { name: "w" }', "trial")
    graph.optimize()
    assert graph.merge("trial").outcome == "fast_forward"
    assert set(rows(graph, "City")) == {"x", "y", "w"}


def test_a_table_only_the_source_changed_is_adopted_by_reference(graph: Graph) -> None:
    change(graph, 'insert City { name: "w" }', "trial")
    change(graph, 'update Person set { age: 9 } where name = "a"')
    actions = planned(graph).actions
    assert [type(action) for action in actions] == [Adopt], f"rows are written: {actions}"
    assert graph.merge("trial").outcome == "merged"
    city = graph.snapshot().catalog.nodes["City"].table_id
    assert graph.snapshot().entry(city) == graph.snapshot("trial").entry(city)


def test_an_adopted_table_is_validated_against_what_the_target_did(graph: Graph) -> None:
    change(graph, 'insert Lives { from: "a", to: "x" }', "trial")
    change(graph, 'delete City where name = "x"')
    result = graph.merge("trial")
    assert [c.kind for c in result.conflicts] == ["orphan_edge"]
    assert not rows(graph, "Lives")


def test_only_the_changed_rows_of_an_overlapping_table_are_written(graph: Graph) -> None:
    change(graph, 'update Person set { age: 9 } where name = "a"', "trial")
    change(graph, 'update Person set { age: 9 } where name = "b"')
    (action,) = planned(graph).actions
    assert getattr(action, "rows").num_rows == 1  # noqa: B009 - one kind of action has rows
    graph.merge("trial")
    assert {i: r["age"] for i, r in rows(graph, "Person").items()} == {
        "a": 9,
        "b": 9,
        "c": 2,
        "d": 3,
    }


def test_merging_twice_and_back_brings_nothing_new(graph: Graph) -> None:
    change(graph, 'update Person set { age: 9 } where name = "a"', "trial")
    change(graph, 'update Person set { nick: "n" } where name = "a"')
    assert graph.merge("trial").outcome == "merged"
    assert graph.merge("trial").outcome == "already_up_to_date"
    assert graph.merge("main", into="trial").outcome == "fast_forward"
    assert state(graph) == state(graph, "trial")
    assert graph.merge("trial").outcome == "already_up_to_date"


# --- deciding ----------------------------------------------------------------------------------------------------


def conflicting(graph: Graph) -> None:
    """Three conflicts: two fields of one row, and a row of another type."""
    change(graph, 'update Person set { age: 8, nick: "t" } where name = "a"', "trial")
    change(graph, 'update Person set { age: 9, nick: "o" } where name = "a"')
    change(graph, 'update Knows set { since: 8 } where from = "a"', "trial")
    change(graph, 'update Knows set { since: 9 } where from = "a"')


def test_a_conflict_shows_all_sides_and_publishes_nothing(graph: Graph) -> None:
    conflicting(graph)
    before = graph.snapshot().commit_id
    result = graph.merge("trial")
    assert graph.snapshot().commit_id == before
    shown = [(c.type, c.id, c.field, c.base, c.ours, c.theirs) for c in result.conflicts]
    assert shown == [
        ("Person", "a", "age", 0, 9, 8),
        ("Person", "a", "nick", None, "o", "t"),
        ("Knows", '["a","b"]', "since", 1, 9, 8),
    ]
    assert result.to_json()["conflicts"][0]["kind"] == "divergent_update"


def test_a_strategy_may_depend_on_the_type(graph: Graph) -> None:
    conflicting(graph)
    result = graph.merge("trial", strategy={"Person": "theirs", "Knows": "ours"})
    assert result.outcome == "merged"
    assert rows(graph, "Person")["a"]["age"] == 8
    assert rows(graph, "Knows")['["a","b"]']["since"] == 9


def test_a_document_decides_field_by_field(graph: Graph) -> None:
    conflicting(graph)
    document: list[dict[str, object]] = [
        {"type": "Person", "id": "a", "field": "age", "value": 77},
        {"type": "Person", "id": "a", "take": "theirs"},
    ]
    result = graph.merge("trial", resolutions=document)
    assert [c.type for c in result.conflicts] == ["Knows"], "what is not decided stays a conflict"
    assert graph.merge("trial", resolutions=document, strategy="ours").outcome == "merged"
    merged = rows(graph, "Person")["a"]
    assert (merged["age"], merged["nick"]) == (77, "t")


@pytest.mark.parametrize(
    "resolution",
    [
        {"type": "Person", "id": "a"},
        {"type": "Person", "take": "ours"},
        {"type": "Person", "id": "a", "take": "mine"},
        {"type": "Person", "id": "a", "value": 1},
        {"type": "Person", "id": "a", "field": "age", "take": "ours", "value": 1},
        {"type": "Person", "id": "a", "take": "ours", "because": "so"},
        {"type": "Person", "id": "a", "field": "age", "value": "many"},
    ],
)
def test_a_document_that_decides_nothing_is_refused(
    graph: Graph, resolution: dict[str, object]
) -> None:
    conflicting(graph)
    with pytest.raises(OptionInvalid):
        graph.merge("trial", resolutions=[resolution])


def test_taking_theirs_brings_a_deleted_node_back_with_its_new_edge(graph: Graph) -> None:
    change(graph, 'insert Knows { from: "c", to: "d" }', "trial")
    change(graph, 'delete Person where name = "d"')
    assert graph.merge("trial", strategy="theirs").outcome == "merged"
    assert "d" in rows(graph, "Person")
    assert '["c","d"]' in rows(graph, "Knows")


def test_taking_ours_leaves_the_new_edge_of_a_deleted_node_out(graph: Graph) -> None:
    change(graph, 'insert Knows { from: "c", to: "d" }', "trial")
    change(graph, 'delete Person where name = "d"')
    assert graph.merge("trial", strategy="ours").outcome == "merged"
    assert "d" not in rows(graph, "Person")
    assert '["c","d"]' not in rows(graph, "Knows")


def test_taking_a_side_of_a_unique_value_settles_both_rows(graph: Graph) -> None:
    change(graph, 'insert Person { name: "t", email: "e" }', "trial")
    change(graph, 'insert Knows { from: "t", to: "a" }', "trial")
    change(graph, 'insert Person { name: "o", email: "e" }')
    graph.create_branch("other")
    assert graph.merge("trial", strategy="theirs").outcome == "merged"
    assert {"t"} == {i for i, r in rows(graph, "Person").items() if r["email"] == "e"}
    assert graph.merge("trial", into="other", strategy="ours").outcome == "merged"
    assert "t" not in rows(graph, "Person", "other")
    assert '["t","a"]' not in rows(graph, "Knows", "other"), "an edge stayed without its node"


# --- schemas -----------------------------------------------------------------------------------------------------


def test_both_sides_extend_the_schema_and_change_rows(graph: Graph) -> None:
    reshape(graph, "age: I64?", "age: I64?\n  level: I64? @default(3)", "trial")
    change(graph, 'update Person set { level: 7 } where name = "b"', "trial")
    reshape(graph, "nick: String?", 'alias: String? @rename_from("nick")')
    change(graph, 'update Person set { alias: "al" } where name = "a"')
    assert graph.merge("trial").outcome == "merged"
    found = rows(graph, "Person")
    assert (found["a"]["alias"], found["a"]["level"]) == ("al", 3)
    assert (found["b"]["alias"], found["b"]["level"]) == (None, 7)
    assert "alias" in graph.schema()
    assert "level" in graph.schema()


def test_a_new_type_comes_with_its_table(graph: Graph) -> None:
    reshape(graph, "node City", "node Pet { name: String @key }\nnode City", "trial")
    change(graph, 'insert Pet { name: "rex" }', "trial")
    change(graph, 'insert City { name: "w" }')
    assert graph.merge("trial").outcome == "merged"
    assert set(rows(graph, "Pet")) == {"rex"}
    change(graph, 'insert Pet { name: "tom" }', "trial")
    assert graph.merge("trial").outcome == "merged"
    assert set(rows(graph, "Pet")) == {"rex", "tom"}


# --- others ------------------------------------------------------------------------------------------------------


def test_only_two_branches_that_exist_can_be_merged(graph: Graph) -> None:
    with pytest.raises(OptionInvalid):
        graph.merge("trial", into="trial")
    with pytest.raises(BranchNotFound):
        graph.merge("nowhere")
    with pytest.raises(BranchNotFound):
        graph.merge("trial", into="nowhere")


def meanwhile(verb: Verb, act: list[str], graph: Graph, branch: str = "main") -> Verb:
    """The verb, with somebody else's writes between its decision and its commit; each time one of them."""
    other = open_graph(graph.uri)

    def wrapped(txn: WriteTxn) -> PublishPlan:
        plan = verb(txn)
        if act:
            change(other, act.pop(0), branch)
        return plan

    return wrapped


def test_a_write_that_concerns_the_merge_makes_it_run_again(graph: Graph) -> None:
    change(graph, 'update Person set { age: 9 } where name = "a"', "trial")
    change(graph, 'update Person set { age: 8 } where name = "b"')
    verb = merge(graph._repo, "trial", "main")
    writes = ['update Person set { age: 5 } where name = "a"']
    done = graph.publish(meanwhile(verb, writes, graph), alone=True)
    outcome: MergeOutcome = done.value
    assert outcome.outcome == "conflict", "the merge did not see the write it met"
    assert rows(graph, "Person")["a"]["age"] == 5


def test_a_write_elsewhere_does_not_disturb_a_merge(graph: Graph) -> None:
    change(graph, 'update Person set { age: 9 } where name = "a"', "trial")
    change(graph, 'update Person set { age: 8 } where name = "b"')
    verb = merge(graph._repo, "trial", "main")
    writes = ['update Person set { age: 5 } where name = "c"', 'insert City { name: "w" }']
    graph.publish(meanwhile(verb, writes, graph), alone=True)
    found = {i: r["age"] for i, r in rows(graph, "Person").items()}
    assert found == {"a": 9, "b": 8, "c": 5, "d": 3}


def test_an_edge_added_meanwhile_to_a_node_the_merge_deletes_is_seen(graph: Graph) -> None:
    change(graph, 'delete Person where name = "d"', "trial")
    change(graph, 'update Person set { age: 8 } where name = "b"')
    verb = merge(graph._repo, "trial", "main")
    done = graph.publish(
        meanwhile(verb, ['insert Knows { from: "a", to: "d" }'], graph), alone=True
    )
    assert [c.kind for c in done.value.conflicts] == ["orphan_edge"]
    assert "d" in rows(graph, "Person")


def test_a_collection_between_decision_and_commit_costs_nothing_but_time(graph: Graph) -> None:
    change(graph, 'insert City { name: "w" }', "trial")
    change(graph, 'update Person set { age: 8 } where name = "b"')
    other = open_graph(graph.uri)
    verb = merge(graph._repo, "trial", "main")
    runs: list[int] = []

    def wrapped(txn: WriteTxn) -> PublishPlan:
        plan = verb(txn)
        if not runs:
            other.cleanup(keep=1)
        runs.append(1)
        return plan

    assert graph.publish(wrapped, alone=True).value.outcome == "merged"
    assert len(runs) == 2, "versions adopted before a collection were published after it"
    assert set(rows(graph, "City")) == {"x", "y", "w"}
    assert graph.doctor(deep=True).healthy
