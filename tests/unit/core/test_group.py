"""Folded writes: each is judged on the base plus those before it, and one bad write never fails its neighbours."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from omnigraph.core.clock import Deadline
from omnigraph.core.group import Writers
from omnigraph.core.plan import PublishPlan, Request, Verb
from omnigraph.core.publisher import Published, Ticket, publish
from omnigraph.core.repository import Repository
from omnigraph.core.txn import WriteTxn
from omnigraph.errors import Cancelled, CommitUnknown, DeadlineExceeded
from omnigraph.graph import Graph
from omnigraph.model.limits import Limits
from omnigraph.model.names import MAIN
from tests.support.waiting import wait_until
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
            repo.clock.fresh_id(),
            instant=repo.clock.now(),
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


# --- queues --------------------------------------------------------------------------------------------------------


class Line:
    """Writers of one branch in threads of their own. The first one is held inside its verb until the others queue."""

    def __init__(self, repo: Repository, *, grouping: bool = True) -> None:
        self.repo = repo
        self.writers = Writers(repo, grouping=grouping)
        self.outcomes: dict[str, Published | BaseException] = {}
        self.threads: list[threading.Thread] = []

    def join_in(self, name: str, verb: Verb, **options: object) -> None:
        """Queue up behind everybody who came before."""
        request = Request(branch=MAIN, verb=verb, **options)  # type: ignore[arg-type]
        waiting = len(self.waiting())
        thread = threading.Thread(target=self._submit, args=(name, request))
        self.threads.append(thread)
        thread.start()
        wait_until(lambda: len(self.waiting()) > waiting, timeout=60, what=f"{name} in the queue")

    def waiting(self) -> list[object]:
        queue = self.writers._queues.get(MAIN)
        return [] if queue is None else list(queue.waiting)

    def _submit(self, name: str, request: Request) -> None:
        try:
            self.outcomes[name] = self.writers.submit(request)
        except BaseException as error:
            self.outcomes[name] = error

    @contextmanager
    def held(self) -> Iterator[None]:
        """Others queue up inside; then everything goes on to its end."""
        entered, release = threading.Event(), threading.Event()

        def slow(txn: WriteTxn) -> PublishPlan:
            entered.set()
            assert release.wait(60)
            return add_person("slow")(txn)

        leader = threading.Thread(
            target=self._submit, args=("slow", Request(branch=MAIN, verb=slow))
        )
        self.threads.append(leader)
        leader.start()
        assert entered.wait(60)
        try:
            yield
        finally:
            release.set()
            for thread in self.threads:
                thread.join(60)
                assert not thread.is_alive(), "a writer waits for ever"

    def number(self, name: str) -> int:
        done = self.outcomes[name]
        assert isinstance(done, Published), f"{name}: {done}"
        assert done.commit is not None
        return done.commit.number


def test_those_who_waited_share_the_next_commit(repo: Repository) -> None:
    line = Line(repo)
    with line.held():
        for name in ("a", "b", "c"):
            line.join_in(name, add_person(name))
    assert line.number("a") == line.number("b") == line.number("c") == line.number("slow") + 1
    assert people(repo) == ["a", "ann", "b", "bob", "c", "slow"]


def test_without_grouping_everybody_has_a_commit_of_their_own(repo: Repository) -> None:
    line = Line(repo, grouping=False)
    with line.held():
        for name in ("a", "b"):
            line.join_in(name, add_person(name))
    assert line.number("b") == line.number("a") + 1 == line.number("slow") + 2


def test_who_must_be_alone_is_alone(repo: Repository) -> None:
    line = Line(repo)
    with line.held():
        line.join_in("a", add_person("a"))
        line.join_in("lone", add_person("lone"), alone=True)
        line.join_in("b", add_person("b"))
        line.join_in("c", add_person("c"))
    numbers = [line.number(name) for name in ("slow", "a", "lone", "b", "c")]
    first = numbers[0]
    assert numbers == [first, first + 1, first + 2, first + 3, first + 3]


def test_a_writer_taken_along_hears_how_it_ended_even_if_its_time_is_over(
    repo: Repository,
) -> None:
    line, deadline = Line(repo), Deadline(0.2)

    def patient(txn: WriteTxn) -> PublishPlan:
        """Leads the next group, and works until the time of those behind it is over."""
        wait_until(lambda: deadline.over, timeout=60, what="the end of the deadline")
        return add_person("patient")(txn)

    with line.held():
        line.join_in("patient", patient)
        line.join_in("hasty", add_person("hasty"), deadline=deadline)
    assert isinstance(line.outcomes["patient"], Published)
    assert isinstance(line.outcomes["hasty"], DeadlineExceeded)
    assert people(repo) == ["ann", "bob", "patient", "slow"]


def test_a_leader_that_is_interrupted_tells_its_group_and_leaves_the_branch_usable(
    repo: Repository,
) -> None:
    line = Line(repo)

    def interrupted(txn: WriteTxn) -> PublishPlan:
        raise KeyboardInterrupt

    with line.held():
        line.join_in("leader", interrupted)
        line.join_in("follower", add_person("follower"))
    assert isinstance(line.outcomes["leader"], KeyboardInterrupt)
    told = line.outcomes["follower"]
    assert isinstance(told, CommitUnknown)
    assert told.details["operation_ids"]
    line.writers.submit(Request(branch=MAIN, verb=add_person("next")))
    assert people(repo) == ["ann", "bob", "next", "slow"]


def test_a_write_that_was_refused_before_the_interruption_stays_refused(repo: Repository) -> None:
    line = Line(repo)

    def refused(txn: WriteTxn) -> PublishPlan:
        raise Rejected("no")

    def interrupted(txn: WriteTxn) -> PublishPlan:
        raise KeyboardInterrupt

    with line.held():
        line.join_in("leader", add_person("leader"))
        line.join_in("refused", refused)
        line.join_in("interrupting", interrupted)
    assert isinstance(line.outcomes["leader"], KeyboardInterrupt)
    assert isinstance(line.outcomes["refused"], Rejected)
    assert isinstance(line.outcomes["interrupting"], CommitUnknown)


@pytest.mark.parametrize("count", [1, 5])
def test_a_group_has_a_largest_size(count: int) -> None:
    repo = memory_repository(limits=Limits(group_members_max=2))
    line = Line(repo)
    names = [f"p{number}" for number in range(count)]
    with line.held():
        for name in names:
            line.join_in(name, add_person(name))
    first = line.number("slow")
    assert [line.number(name) - first for name in names] == [1 + n // 2 for n in range(count)]
