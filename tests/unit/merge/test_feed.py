"""The change feed: in order, whole, resumable, and honest about what was pruned."""

from __future__ import annotations

import threading

import pytest

from omnigraph.errors import CommitNotFound, CommitPruned, OptionInvalid
from omnigraph.graph import Graph
from omnigraph.merge.feed import Change
from omnigraph.write.resolve import Mode
from tests.support.people import change, people, state
from tests.support.writing import load_plan


@pytest.fixture
def graph() -> Graph:
    return people()


def shown(change: Change) -> tuple[str, str, str]:
    return change.operation, change.type, change.id


def test_changes_come_in_the_order_of_commits_with_both_images(graph: Graph) -> None:
    start = graph.changes().baseline().cursor
    change(graph, 'update Person set { age: 9 } where name = "a"')
    change(graph, 'delete Person where name = "b"')
    found = list(graph.changes(after=start))
    assert [shown(c) for c in found] == [
        ("update", "Person", "a"),
        ("delete", "Knows", '["a","b"]'),
        ("delete", "Person", "b"),
    ]
    update = found[0]
    assert update.before is not None
    assert update.after is not None
    assert (update.before["age"], update.after["age"]) == (0, 9)
    assert found[2].after is None


def test_a_reader_who_stops_goes_on_where_it_was(graph: Graph) -> None:
    start = graph.changes().baseline().cursor
    for number in range(5):
        change(graph, f'insert City {{ name: "w{number}" }}')
    seen: list[str] = []
    cursor = start
    while True:
        page = graph.changes(after=cursor, limit=2)
        names = [c.id for c in page]
        if not names:
            break
        seen += names
        cursor = page.cursor
    assert seen == [f"w{number}" for number in range(5)]
    assert graph.changes(after=cursor).cursor == cursor


def test_baseline_and_changes_together_give_the_present(graph: Graph) -> None:
    baseline = graph.changes().baseline()
    held = {(c.type, c.id): c.after for c in baseline}
    change(graph, 'insert City { name: "w" }')
    change(graph, 'delete Person where name = "a"')
    graph.optimize()
    for each in graph.changes(after=baseline.cursor):
        if each.after is None:
            del held[each.type, each.id]
        else:
            held[each.type, each.id] = each.after
    now = {(t, i): row for t, rows in state(graph).items() for i, row in rows.items()}
    assert held == now


def test_a_merge_shows_what_it_brought(graph: Graph) -> None:
    graph.create_branch("trial")
    change(graph, 'insert City { name: "t" }', "trial")
    start = change(graph, 'insert City { name: "m" }')
    graph.merge("trial")
    assert [shown(c) for c in graph.changes(after=start)] == [("insert", "City", "t")]


def test_a_branch_goes_on_where_it_was_forked(graph: Graph) -> None:
    start = graph.changes().baseline().cursor
    change(graph, 'insert City { name: "m" }')
    graph.create_branch("trial")
    change(graph, 'insert City { name: "t" }', "trial")
    change(graph, 'insert City { name: "later" }')
    assert [c.id for c in graph.changes(after=start, branch="trial")] == ["m", "t"]


def test_filters(graph: Graph) -> None:
    start = graph.changes().baseline().cursor
    change(graph, 'insert City { name: "w" }')
    change(graph, 'update Person set { age: 9 } where name = "a"')
    change(graph, 'delete City where name = "w"')
    found = graph.changes(after=start, types=["City"], operations=["delete"])
    assert [shown(c) for c in found] == [("delete", "City", "w")]
    with pytest.raises(OptionInvalid):
        graph.changes(operations=["upsert"])
    with pytest.raises(OptionInvalid):
        graph.changes(limit=0)


def test_members_of_a_group_have_their_own_changes(graph: Graph) -> None:
    start = graph.changes().baseline().cursor
    gate = threading.Event()
    threads = [threading.Thread(target=_insert, args=(graph, f"g{i}", gate)) for i in range(6)]
    for thread in threads:
        thread.start()
    gate.set()
    for thread in threads:
        thread.join()
    commits = list(graph.changes(after=start).commits())
    assert sorted(c.id for _, found in commits for c in found) == [f"g{i}" for i in range(6)]
    assert all(len(found) == 1 for _, found in commits), f"commits share changes: {commits}"
    for number, (commit, _) in enumerate(commits):
        later = [c.id for _, found in commits[number + 1 :] for c in found]
        assert [c.id for c in graph.changes(after=commit)] == later, f"after {commit}"


def _insert(graph: Graph, name: str, gate: threading.Event) -> None:
    gate.wait()
    graph.publish(lambda txn: load_plan(txn, Mode.MERGE, {"City": [{"name": name}]}))


def test_pruned_history_is_an_error_and_not_a_gap(graph: Graph) -> None:
    start = graph.changes().baseline().cursor
    for number in range(6):
        change(graph, f'insert City {{ name: "w{number}" }}')
    graph.cleanup(keep=2)
    with pytest.raises(CommitPruned):
        list(graph.changes(after=start))
    with pytest.raises(CommitPruned):
        list(graph.changes())
    assert len(list(graph.changes().baseline())) == 13


def test_a_cursor_of_another_branch_is_refused(graph: Graph) -> None:
    graph.create_branch("trial")
    cursor = change(graph, 'insert City { name: "t" }', "trial")
    with pytest.raises(CommitNotFound):
        list(graph.changes(after=cursor))
