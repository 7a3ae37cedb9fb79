"""The change feed: in order, whole, resumable, and honest about what was pruned."""

from __future__ import annotations

import threading
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.errors import CommitNotFound, CommitPruned, OptionInvalid
from omnigraph.graph import Graph
from omnigraph.merge import feed
from omnigraph.merge.feed import Change, changes
from omnigraph.model.tokens import id_tokens
from omnigraph.write.resolve import Mode
from tests.support.people import change, folded, people, reshape, state
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


# --- the members of one commit -----------------------------------------------------------------------------------


def test_a_cursor_inside_a_group_goes_on_with_its_next_member(graph: Graph) -> None:
    start = change(graph, 'insert City { name: "before" }')
    ids = folded(graph, *(f'insert City {{ name: "g{i}" }}' for i in range(4)))
    change(graph, 'insert City { name: "after" }')
    every = ["g0", "g1", "g2", "g3", "after"]
    assert [c.id for c in graph.changes(after=start)] == every
    assert [c for c, _ in graph.changes(after=start).commits()][:4] == ids
    for number, id in enumerate(ids):
        assert [c.id for c in graph.changes(after=id)] == every[number + 1 :], f"after {id}"
        assert graph.changes(after=id).start == id


def test_each_member_has_its_own_part_and_the_last_has_what_several_wrote(graph: Graph) -> None:
    start = change(graph, 'insert City { name: "before" }')
    folded(
        graph,
        'update Person set { age: 11 } where name = "a" or name = "b"',
        'insert City { name: "w" }',
        'update Person set { age: 12 } where name = "a"',
        'update Person set { age: 13 } where name = "c"',
    )
    parts = [[shown(c) for c in found] for _, found in graph.changes(after=start).commits()]
    assert parts == [
        [("update", "Person", "b")],
        [("insert", "City", "w")],
        [("update", "Person", "a")],
        [("update", "Person", "c")],
    ]


def test_a_row_of_a_member_too_large_to_list_is_told_once(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed: list[int] = []

    def noted(ids: pa.Array) -> Any:
        hashed.append(len(ids))
        return id_tokens(ids)

    monkeypatch.setattr(feed, "id_tokens", noted)
    many = graph._repo.limits.changed_ids_max + 1
    start = graph.load({"Person": [{"name": f"p{i}"} for i in range(many)]}).commit
    assert start is not None
    folded(
        graph,
        'update Person set { nick: "one" } where name = "a" or name = "p1"',
        'insert City { name: "w" }',
        'update Person set { age: 50 } where name != "a"',
        'update Person set { age: 60 } where name = "p2"',
    )
    parts = [[c.id for c in found] for _, found in graph.changes(after=start.id).commits()]
    assert parts[0] == ["a"], "what a later member wrote as well is the later one's"
    assert parts[1] == ["w"]
    assert len(parts[2]) == many + 3 - 1
    assert parts[3] == ["p2"]
    assert len(hashed) < 10, "ids are compared one by one"


# --- how much of it ----------------------------------------------------------------------------------------------


def test_a_feed_ends_with_the_commit_it_was_asked_for(graph: Graph) -> None:
    start = graph.changes().baseline().cursor
    ids = [change(graph, f'insert City {{ name: "w{i}" }}') for i in range(4)]
    group = folded(graph, *(f'insert City {{ name: "g{i}" }}' for i in range(3)))
    change(graph, 'insert City { name: "after" }')
    found = changes(graph._repo, "main", start, until=ids[1])
    assert [c.id for c in found] == ["w0", "w1"]
    assert found.cursor == ids[1]
    found = changes(graph._repo, "main", ids[3], until=group[1])
    assert [c.id for c in found] == ["g0", "g1"]


def test_a_limit_counts_commits_and_not_rows(graph: Graph) -> None:
    start = graph.changes().baseline().cursor
    graph.load({"City": [{"name": "w0"}, {"name": "w1"}]})
    folded(graph, 'insert City { name: "g0" }', 'insert City { name: "g1" }')
    wanted = [["w0", "w1"], ["w0", "w1", "g0"], ["w0", "w1", "g0", "g1"]]
    for limit, ids in enumerate(wanted, start=1):
        assert [c.id for c in graph.changes(after=start, limit=limit)] == ids
    assert [c.id for c in graph.changes(after=start, limit=9)] == wanted[-1]


def test_without_a_cursor_it_begins_with_the_first_commit(graph: Graph) -> None:
    graph.create_branch("trial")
    change(graph, 'insert City { name: "t" }', "trial")
    whole = list(graph.changes(branch="trial"))
    assert [shown(c) for c in whole][-1] == ("insert", "City", "t")
    assert len(whole) == 8, "the rows of the first load and the one of the branch"
    assert graph.changes(branch="trial").start.endswith(".0")


@pytest.mark.parametrize("page", [1, 2, 3, 5])
def test_pages_of_commits_leave_none_out(
    graph: Graph, monkeypatch: pytest.MonkeyPatch, page: int
) -> None:
    monkeypatch.setattr(feed, "PAGE_COMMITS", page)
    start = change(graph, 'insert City { name: "w" }')
    for number in range(5):
        change(graph, f'insert City {{ name: "w{number}" }}')
    graph.create_branch("trial")
    for number in range(4):
        change(graph, f'insert City {{ name: "t{number}" }}', "trial")
    wanted = [*(f"w{number}" for number in range(5)), *(f"t{number}" for number in range(4))]
    assert [c.id for c in graph.changes(after=start, branch="trial")] == wanted


def test_a_cursor_beyond_where_a_branch_was_forked_is_refused(graph: Graph) -> None:
    graph.create_branch("trial")
    change(graph, 'insert City { name: "t" }', "trial")
    last = graph.log(limit=1)[0].id
    assert [c.id for c in graph.changes(after=last, branch="trial")] == ["t"]
    beyond = change(graph, 'insert City { name: "m" }')
    with pytest.raises(CommitNotFound):
        list(graph.changes(after=beyond, branch="trial"))


def test_maintenance_is_no_commit_of_a_feed(graph: Graph) -> None:
    start = change(graph, 'insert City { name: "w" }')
    graph.optimize()
    last = change(graph, 'insert City { name: "v" }')
    assert [commit for commit, _ in graph.changes(after=start).commits()] == [last]


# --- in whose words ----------------------------------------------------------------------------------------------


def test_rows_are_told_in_the_words_of_their_commit_or_of_the_schema_asked_for(
    graph: Graph,
) -> None:
    start = graph.changes().baseline().cursor
    change(graph, 'update Person set { nick: "al" } where name = "a"')
    reshape(graph, "nick: String?", 'alias: String? @rename_from("nick")')
    change(graph, 'update Person set { alias: "bo" } where name = "b"')
    told = [c.after for c in graph.changes(after=start)]
    assert told[0] is not None
    assert told[-1] is not None
    assert (told[0]["nick"], told[-1]["alias"]) == ("al", "bo")
    now = graph.snapshot().catalog
    first = next(iter(changes(graph._repo, "main", start, catalog=now)))
    assert first.after is not None
    assert first.after["alias"] == "al"


def test_types_that_were_not_asked_for_are_left_out_wherever_they_come(graph: Graph) -> None:
    start = graph.changes().baseline().cursor
    change(graph, 'delete Person where name = "b"')
    for wanted in ("Person", "Knows"):
        assert {c.type for c in graph.changes(after=start, types=[wanted])} == {wanted}
    baseline = graph.changes(types=["City", "Knows"]).baseline()
    assert {name for name, _ in baseline.batches()} == {"City"}
    assert {(c.type, c.kind, c.operation) for c in baseline} == {("City", "node", "insert")}


@pytest.mark.parametrize("operation", ["insert", "update", "delete"])
def test_one_operation_alone(graph: Graph, operation: str) -> None:
    start = graph.changes().baseline().cursor
    change(graph, 'insert City { name: "w" }')
    change(graph, 'update Person set { age: 9 } where name = "a"')
    change(graph, 'delete City where name = "w"')
    found = list(graph.changes(after=start, operations=[operation]))
    assert [c.operation for c in found] == [operation]
    assert len(list(graph.changes(after=start, operations=["insert", "update", "delete"]))) == 3


def test_the_rows_of_a_dropped_type_are_deleted_and_come_back_with_it(graph: Graph) -> None:
    text = graph.schema()
    graph.apply_schema(text + "\nnode Extra { k: String @key }")
    start = graph.load({"Extra": [{"k": "x"}, {"k": "y"}]}).commit
    dropped = graph.apply_schema(text).commit
    assert start is not None
    assert dropped is not None
    told = [shown(c) for c in graph.changes(after=start.id)]
    assert told == [("delete", "Extra", "x"), ("delete", "Extra", "y")]
    assert [shown(c) for c in graph.changes(after=start.id, types=["Person"])] == []
    graph.revert(dropped.id)
    told = [shown(c) for c in graph.changes(after=dropped.id)]
    assert told == [("insert", "Extra", "x"), ("insert", "Extra", "y")]


def test_the_shape_for_machines(graph: Graph) -> None:
    start = graph.changes().baseline().cursor
    commit = change(graph, 'insert City { name: "w" }')
    (found,) = graph.changes(after=start)
    assert found.to_json() == {
        "commit": commit,
        "type": "City",
        "kind": "node",
        "operation": "insert",
        "id": "w",
        "before": None,
        "after": {"id": "w", "name": "w"},
    }


def test_a_limit_of_one_is_allowed(graph: Graph) -> None:
    assert len(list(graph.changes(limit=1).commits())) == 1
