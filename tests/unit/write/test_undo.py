"""Taking back and over: always a new commit, with the conflicts of a merge."""

from __future__ import annotations

import threading

import pytest

from omnigraph.errors import CommitNotFound, CommitPruned
from omnigraph.graph import Graph
from omnigraph.write.resolve import Mode
from tests.support.people import change, people, reshape, rows, state
from tests.support.writing import load_plan


@pytest.fixture
def graph() -> Graph:
    return people()


# --- revert ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        'insert Person { name: "n", email: "e" }',
        'update Person set { age: 9 } where name = "a"',
        'delete Person where name = "a"',
        'insert Knows { from: "b", to: "c" }',
        'delete Knows where from = "a"',
    ],
)
def test_reverting_what_was_just_done_gives_the_state_before(graph: Graph, text: str) -> None:
    before = state(graph)
    commit = change(graph, text)
    result = graph.revert(commit, message="no")
    assert result.outcome == "merged"
    assert state(graph) == before
    assert [c.kind for c in graph.log(limit=2)] == ["revert", "mutation"], "history was rewritten"
    assert graph.revert(commit).outcome == "already_up_to_date"


def test_later_work_stays(graph: Graph) -> None:
    commit = change(graph, 'update Person set { age: 9 } where name = "a"')
    change(graph, 'update Person set { nick: "al" } where name = "a"')
    change(graph, 'update Person set { age: 7 } where name = "b"')
    assert graph.revert(commit).outcome == "merged"
    found = rows(graph, "Person")
    assert (found["a"]["age"], found["a"]["nick"], found["b"]["age"]) == (0, "al", 7)


def test_what_was_changed_again_is_a_conflict(graph: Graph) -> None:
    commit = change(graph, 'update Person set { age: 9 } where name = "a"')
    change(graph, 'update Person set { age: 10 } where name = "a"')
    (conflict,) = graph.revert(commit).conflicts
    shown = (conflict.kind, conflict.base, conflict.ours, conflict.theirs)
    assert shown == ("divergent_update", 9, 10, 0)
    assert graph.revert(commit, dry_run=True, strategy="theirs").outcome == "merged"
    assert rows(graph, "Person")["a"]["age"] == 10
    assert graph.revert(commit, strategy="theirs").outcome == "merged"
    assert rows(graph, "Person")["a"]["age"] == 0


def test_reverting_an_insert_does_not_orphan_edges(graph: Graph) -> None:
    commit = change(graph, 'insert Person { name: "n" }')
    change(graph, 'insert Knows { from: "n", to: "a" }')
    assert [c.kind for c in graph.revert(commit).conflicts] == ["orphan_edge"]
    assert graph.revert(commit, strategy="theirs").outcome == "merged"
    assert '["n","a"]' not in rows(graph, "Knows")


def test_a_merge_can_be_reverted(graph: Graph) -> None:
    graph.create_branch("trial")
    change(graph, 'insert City { name: "t" }', "trial")
    change(graph, 'insert City { name: "m" }')
    commit = graph.merge("trial").commit
    assert commit is not None
    graph.revert(commit.id)
    assert set(rows(graph, "City")) == {"x", "y", "m"}


def test_a_schema_change_can_be_reverted(graph: Graph) -> None:
    before = graph.schema()
    reshape(graph, "age: I64?", "age: I64?\n  level: I64? @default(3)")
    change(graph, 'update Person set { age: 9 } where name = "a"')
    graph.revert("main~1")
    assert graph.schema() == before
    assert "level" not in rows(graph, "Person")["a"]
    assert rows(graph, "Person")["a"]["age"] == 9


def test_one_member_of_a_group_is_reverted_alone(graph: Graph) -> None:
    gate = threading.Event()

    def insert(name: str) -> None:
        gate.wait()
        graph.publish(lambda txn: load_plan(txn, Mode.MERGE, {"City": [{"name": name}]}))

    threads = [threading.Thread(target=insert, args=(f"g{i}",)) for i in range(6)]
    for thread in threads:
        thread.start()
    gate.set()
    for thread in threads:
        thread.join()
    commit, (only,) = list(graph.changes().commits())[-1]
    graph.revert(commit)
    left = {f"g{i}" for i in range(6)} - {only.id}
    assert set(rows(graph, "City")) == {"x", "y", *left}


def test_the_first_commit_has_nothing_before_it(graph: Graph) -> None:
    with pytest.raises(CommitNotFound):
        graph.revert(graph.log()[-1].id)


# --- cherry-pick -------------------------------------------------------------------------------------------------


def test_one_commit_is_picked_without_those_around_it(graph: Graph) -> None:
    graph.create_branch("trial")
    change(graph, 'insert City { name: "t1" }', "trial")
    wanted = change(graph, 'insert City { name: "t2" }', "trial")
    change(graph, 'insert City { name: "t3" }', "trial")
    assert graph.cherry_pick(wanted).outcome == "merged"
    assert set(rows(graph, "City")) == {"x", "y", "t2"}
    assert graph.cherry_pick(wanted).outcome == "already_up_to_date"
    assert graph.merge("trial").outcome == "merged"
    assert set(rows(graph, "City")) == {"x", "y", "t1", "t2", "t3"}


def test_a_pick_that_does_not_fit_is_a_conflict(graph: Graph) -> None:
    graph.create_branch("trial")
    change(graph, 'insert Person { name: "n" }', "trial")
    wanted = change(graph, 'insert Knows { from: "n", to: "a" }', "trial")
    assert [c.kind for c in graph.cherry_pick(wanted).conflicts] == ["orphan_edge"]


# --- reset -------------------------------------------------------------------------------------------------------


def test_a_reset_is_a_new_commit_with_an_old_state(graph: Graph) -> None:
    graph.tag("good")
    before = state(graph)
    change(graph, 'delete Person where name = "a"')
    reshape(graph, "age: I64?", "age: I64?\n  level: I64?")
    count = len(graph.log())
    result = graph.reset("good", actor="me")
    assert result.outcome == "merged"
    assert state(graph) == before
    assert len(graph.log()) == count + 1
    assert graph.reset("good").outcome == "already_up_to_date"
    change(graph, 'insert City { name: "w" }')


def test_a_branch_can_be_reset_to_another(graph: Graph) -> None:
    graph.create_branch("trial")
    change(graph, 'insert City { name: "t" }', "trial")
    change(graph, 'insert City { name: "m" }')
    graph.reset("trial")
    assert state(graph) == state(graph, "trial")


def test_a_pruned_commit_cannot_be_reset_to(graph: Graph) -> None:
    first = change(graph, 'insert City { name: "w" }')
    for number in range(4):
        change(graph, f'insert City {{ name: "w{number}" }}')
    graph.cleanup(keep=1)
    with pytest.raises(CommitPruned):
        graph.reset(first)
