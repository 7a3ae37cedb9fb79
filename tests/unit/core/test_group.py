"""Folded writes: each is judged on the base plus those before it, and one bad write never fails its neighbours."""

from __future__ import annotations

import threading

import pytest

from omnigraph.core.deadline import Deadline
from omnigraph.core.group import Writers
from omnigraph.core.plan import PublishPlan, Request, Verb
from omnigraph.core.publisher import Published, Ticket, publish
from omnigraph.core.repository import Repository
from omnigraph.core.txn import WriteTxn
from omnigraph.errors import Cancelled, DeadlineExceeded
from omnigraph.graph import Graph
from omnigraph.model.names import MAIN
from tests.support.worlds import (
    Rejected,
    add_knows,
    add_person,
    drop_person,
    edges,
    memory_repository,
    people,
    submit,
)


@pytest.fixture
def repo() -> Repository:
    repo = memory_repository()
    for name in ("ann", "bob"):
        submit(repo, add_person(name))
    return repo


def fold(repo: Repository, *verbs: Verb) -> list[Ticket]:
    tickets = [
        Ticket(
            Request(branch=MAIN, verb=verb, actor=f"a{i}"),
            repo.world.fresh_id(),
            instant=repo.world.now(),
        )
        for i, verb in enumerate(verbs)
    ]
    publish(repo, tickets)
    return tickets


def test_a_fold_is_one_commit_with_one_entry_per_write(repo: Repository) -> None:
    before = repo.head("main").commit.number
    tickets = fold(repo, add_person("cy"), add_person("dee"), add_knows("e1", "cy", "dee"))
    assert repo.head("main").commit.number == before + 1
    ids = [t.outcome.commit_id for t in tickets if t.outcome is not None]
    assert len(set(ids)) == 3
    assert [c.id for c in Graph(repo).log(limit=3)] == ids[::-1]
    assert [c.actor for c in Graph(repo).log(limit=3)] == ["a2", "a1", "a0"]
    assert Graph(repo).commit(str(ids[2])).changes == {
        "Knows": {"inserted": 1, "updated": 0, "deleted": 0}
    }
    assert edges(repo) == [("e1", "cy", "dee")], "a folded write sees the ones before it"


def test_reading_at_any_member_shows_the_state_of_the_group(repo: Repository) -> None:
    first, second = fold(repo, add_person("cy"), add_person("dee"))
    assert first.outcome is not None
    assert second.outcome is not None
    one = Graph(repo).snapshot(at=first.outcome.commit_id)
    other = Graph(repo).snapshot(at=second.outcome.commit_id)
    assert one.commit == other.commit


def test_a_delete_folded_after_an_edge_takes_the_edge_with_it(repo: Repository) -> None:
    fold(repo, add_knows("e1", "ann", "bob"), drop_person("bob"))
    assert people(repo) == ["ann"]
    assert edges(repo) == []


def test_an_edge_folded_after_the_delete_of_its_node_is_refused_alone(repo: Repository) -> None:
    dropped, edge, other = fold(
        repo, drop_person("bob"), add_knows("e1", "ann", "bob"), add_person("cy")
    )
    assert dropped.outcome is not None
    assert isinstance(edge.error, Rejected)
    assert other.outcome is not None
    assert people(repo) == ["ann", "cy"]
    assert edges(repo) == []


def test_writes_of_one_row_fold_in_order(repo: Repository) -> None:
    fold(
        repo,
        add_person("ann", age=1),
        add_person("ann", age=2),
        drop_person("bob"),
        add_person("bob", age=3),
    )
    snapshot = Graph(repo).snapshot()
    rows = snapshot.table_of(snapshot.catalog.nodes["Person"]).scan(["id", "age"]).to_pylist()
    assert sorted((r["id"], r["age"]) for r in rows) == [("ann", 2), ("bob", 3)]


def test_insert_and_delete_of_one_row_in_a_fold_leaves_nothing(repo: Repository) -> None:
    fold(repo, add_person("cy"), drop_person("cy"))
    assert people(repo) == ["ann", "bob"]


def test_an_exception_of_a_verb_reaches_its_caller_only(repo: Repository) -> None:
    def broken(txn: WriteTxn) -> PublishPlan:
        raise ZeroDivisionError("a bug in a verb")

    bad, good = fold(repo, broken, add_person("cy"))
    assert isinstance(bad.error, ZeroDivisionError)
    assert good.outcome is not None
    assert "cy" in people(repo)


def test_a_write_with_nothing_to_do_makes_no_commit(repo: Repository) -> None:
    before = repo.head("main").commit.number
    (nothing,) = fold(repo, drop_person("nobody"))
    assert nothing.outcome == Published(None)
    assert repo.head("main").commit.number == before


def test_a_deadline_that_is_over_publishes_nothing(repo: Repository) -> None:
    before = repo.head("main").commit.number
    with pytest.raises(DeadlineExceeded):
        Writers(repo).submit(Request(branch=MAIN, verb=add_person("cy"), deadline=Deadline(0.0)))
    assert repo.head("main").commit.number == before


def test_a_call_cancelled_while_its_verb_runs_publishes_nothing(repo: Repository) -> None:
    stop = threading.Event()

    def verb(txn: WriteTxn) -> PublishPlan:
        stop.set()
        return add_person("cy")(txn)

    with pytest.raises(Cancelled):
        Writers(repo).submit(Request(branch=MAIN, verb=verb, deadline=Deadline(None, stop)))
    assert people(repo) == ["ann", "bob"]


def test_a_waiting_writer_whose_time_is_over_leaves_the_queue(repo: Repository) -> None:
    writers = Writers(repo)
    entered, release = threading.Event(), threading.Event()

    def slow(txn: WriteTxn) -> PublishPlan:
        entered.set()
        release.wait(10)
        return add_person("slow")(txn)

    leader = threading.Thread(target=lambda: writers.submit(Request(branch=MAIN, verb=slow)))
    leader.start()
    assert entered.wait(10)
    with pytest.raises(DeadlineExceeded):
        writers.submit(Request(branch=MAIN, verb=add_person("late"), deadline=Deadline(0.05)))
    release.set()
    leader.join()
    assert people(repo) == ["ann", "bob", "slow"]
