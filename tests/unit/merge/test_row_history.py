"""What happened to one row: its commits alone, newest first, whatever else was written and however it was called."""

from __future__ import annotations

import threading

import pytest

from omnigraph.errors import TableNotFound
from omnigraph.graph import Graph
from omnigraph.merge.row_history import RowHistory, row_history
from omnigraph.outcomes import EntityChange
from tests.support.people import change, folded, people, reshape


@pytest.fixture
def graph() -> Graph:
    return people()


def ages(changes: tuple[EntityChange, ...]) -> list[tuple[str, object, object]]:
    return [
        (c.operation, c.before and c.before["age"], c.after and c.after["age"]) for c in changes
    ]


def age_of_a(graph: Graph, age: int) -> None:
    graph.mutate(
        'query q($age: I64) { update Person set { age: $age } where name = "a" }', {"age": age}
    )


def test_only_commits_that_changed_the_row_are_told(graph: Graph) -> None:
    change(graph, 'update Person set { age: 9 } where name = "a"')
    change(graph, 'update Person set { age: 8 } where name = "b"')
    change(graph, 'delete Person where name = "a"')
    change(graph, 'insert Person { name: "a", age: 7 }')
    found = graph.history("Person", "a")
    assert found.rest is None
    assert ages(found.changes) == [
        ("insert", None, 7),
        ("delete", 9, None),
        ("update", 0, 9),
        ("insert", None, 0),
    ]


def test_edges_have_a_history_too(graph: Graph) -> None:
    change(graph, 'update Knows set { since: 2 } where from = "a"')
    found = graph.history("Knows", '["a","b"]')
    assert [c.operation for c in found.changes] == ["update", "insert"]
    assert found.changes[0].after is not None
    assert found.changes[0].after["since"] == 2


def test_a_branch_has_what_it_inherited_and_its_own(graph: Graph) -> None:
    change(graph, 'update Person set { age: 1 } where name = "a"')
    graph.create_branch("side")
    change(graph, 'update Person set { age: 2 } where name = "a"', "side")
    change(graph, 'update Person set { age: 3 } where name = "a"')
    assert [a for _, _, a in ages(graph.history("Person", "a", "side").changes)] == [2, 1, 0]
    assert [a for _, _, a in ages(graph.history("Person", "a").changes)] == [3, 1, 0]
    assert [a for _, _, a in ages(graph.branch("side").history("Person", "a").changes)] == [2, 1, 0]


def test_a_merge_is_an_event_of_the_rows_it_brought(graph: Graph) -> None:
    graph.create_branch("side")
    change(graph, 'update Person set { age: 5 } where name = "a"', "side")
    change(graph, 'update Person set { age: 6 } where name = "b"')
    merged = graph.merge("side")
    assert merged.commit is not None
    found = graph.history("Person", "a").changes
    assert ages(found)[0] == ("update", 0, 5)
    assert found[0].commit.id == merged.commit.id
    assert ages(graph.history("Person", "b").changes) == [("update", 1, 6), ("insert", None, 1)]


def test_rows_are_shown_in_the_words_of_the_state_that_was_asked(graph: Graph) -> None:
    change(graph, 'update Person set { nick: "A" } where name = "a"')
    before = graph.log(limit=1)[0].id
    reshape(graph, "nick: String?", 'alias: String? @rename_from("nick")')
    newest = graph.history("Person", "a").changes[0]
    assert newest.after is not None
    assert newest.after["alias"] == "A"
    older = graph.history("Person", "a", at=before).changes[0]
    assert older.after is not None
    assert older.after["nick"] == "A"


def test_a_long_history_comes_in_pages(graph: Graph) -> None:
    for age in range(1, 8):
        age_of_a(graph, age)
    seen: list[object] = []
    at = None
    while True:
        page = graph.history("Person", "a", at=at, limit=3)
        seen += [after for _, _, after in ages(page.changes)]
        if page.rest is None:
            break
        at = page.rest
    assert seen == [7, 6, 5, 4, 3, 2, 1, 0]


def test_writers_folded_into_one_commit_are_told_once(graph: Graph) -> None:
    """Whichever of them were folded, the ages in between that nobody could read are not invented."""
    start = threading.Barrier(4)

    def write(age: int) -> None:
        start.wait()
        age_of_a(graph, age)

    threads = [threading.Thread(target=write, args=(age,)) for age in range(11, 15)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = graph.history("Person", "a").changes
    chain = [(before, after) for _, before, after in ages(found)]
    assert chain[-1] == (None, 0)
    assert [after for _, after in chain[1:]] == [before for before, _ in chain[:-1]]


def test_it_ends_where_history_was_removed(graph: Graph) -> None:
    for age in range(1, 6):
        age_of_a(graph, age)
    graph.cleanup(keep=2)
    found = graph.history("Person", "a")
    assert [after for _, _, after in ages(found.changes)] == [5]
    assert found.rest is None


def test_a_type_that_is_not_there_is_a_clear_error(graph: Graph) -> None:
    with pytest.raises(TableNotFound, match="Nobody"):
        graph.history("Nobody", "a")


def told(graph: Graph, id: str, *, events_max: int = 50, commits_max: int = 50) -> RowHistory:
    head = graph.snapshot()
    kind = head.catalog.nodes["Person"]
    return row_history(graph._repo, head, kind, id, events_max=events_max, commits_max=commits_max)


def test_it_stops_after_as_many_events_or_commits_as_were_asked_for(graph: Graph) -> None:
    for age in range(1, 5):
        age_of_a(graph, age)
    every = [e.after and e.after["age"] for e in told(graph, "a").events]
    assert every == [4, 3, 2, 1, 0]
    for most in range(1, 5):
        for page in (told(graph, "a", events_max=most), told(graph, "a", commits_max=most)):
            assert [e.after and e.after["age"] for e in page.events] == every[:most]
            assert page.rest == graph.log()[most].id
    for page in (told(graph, "a", events_max=5), told(graph, "a", commits_max=5)):
        assert len(page.events) == 5
        assert page.rest is None


def test_commits_that_left_the_row_as_it_was_are_no_events_but_are_counted(graph: Graph) -> None:
    age_of_a(graph, 9)
    folded(
        graph,
        'update Person set { age: 8 } where name = "a"',
        'update Person set { age: 9 } where name = "a"',
    )
    found = told(graph, "a")
    assert [e.after and e.after["age"] for e in found.events] == [9, 0]
    assert told(graph, "a", commits_max=1).events == ()
    assert told(graph, "a", commits_max=1).rest is not None


def test_of_writers_in_one_commit_the_last_is_named(graph: Graph) -> None:
    ids = folded(
        graph,
        'update Person set { age: 8 } where name = "a"',
        'update Person set { age: 7 } where name = "a"',
        'update Person set { age: 6 } where name = "b"',
    )
    event, *_ = told(graph, "a").events
    assert event.entry.id == ids[1]
    assert event.before is not None
    assert event.after is not None
    assert (event.before["age"], event.after["age"]) == (0, 7)
    assert [e.operation for e in told(graph, "b").events] == ["update", "insert"]


def test_a_row_nobody_wrote_has_no_history(graph: Graph) -> None:
    assert told(graph, "nobody") == RowHistory(())


def test_a_type_that_came_later_has_nothing_before(graph: Graph) -> None:
    reshape(graph, "node City", "node Pet { name: String @key }\nnode City")
    change(graph, 'insert Pet { name: "rex" }')
    (event,) = graph.history("Pet", "rex").changes
    assert (event.operation, event.before) == ("insert", None)


def test_what_is_kept_before_a_gap_is_not_told_as_if_there_were_none(graph: Graph) -> None:
    graph.tag("before")
    age_of_a(graph, 1)
    graph.tag("kept")
    for age in range(2, 6):
        age_of_a(graph, age)
    graph.cleanup(keep=2)
    assert graph.snapshot(at="kept").commit_id
    assert [after for _, _, after in ages(graph.history("Person", "a").changes)] == [5]
