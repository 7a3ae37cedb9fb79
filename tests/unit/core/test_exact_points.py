"""The exact ends of things: the first instant of a graph, the next commit, another process."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from omnigraph.core import layout
from omnigraph.core.branches import live_refs
from omnigraph.core.clock import Clock
from omnigraph.core.history import resolve
from omnigraph.core.plan import PublishPlan, Request
from omnigraph.core.publisher import Ticket, publish
from omnigraph.core.records import Recent, Tombstone
from omnigraph.core.repository import Repository
from omnigraph.core.room import following
from omnigraph.core.txn import WriteTxn
from omnigraph.errors import CommitNotFound, ForkedProcess
from omnigraph.graph import Graph
from omnigraph.maintenance import collection as gc
from omnigraph.maintenance.collection import Retention, collect
from omnigraph.model.names import MAIN
from tests.support.faults_by_count import Fault, strike
from tests.support.worlds import (
    add_knows,
    add_person,
    another_process,
    disturbed,
    memory_repository,
    submit,
)


@pytest.fixture
def repo() -> Repository:
    """A chain with the numbers 0 to 4."""
    made = memory_repository()
    for name in ("ann", "bob", "cy", "dee"):
        submit(made, add_person(name))
    return made


def moment(repo: Repository, number: int) -> datetime:
    commit = repo.chains.expect(repo.stamp.main_chain, number)
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=commit.time)


def test_every_commit_is_there_from_its_own_instant_on(repo: Repository) -> None:
    for number in range(5):
        assert resolve(repo, moment(repo, number), "main").commit.number == number
        if number:
            before = moment(repo, number) - timedelta(microseconds=1)
            assert resolve(repo, before, "main").commit.number == number - 1
    with pytest.raises(CommitNotFound):
        resolve(repo, moment(repo, 0) - timedelta(microseconds=1), "main")


def test_the_next_commit_costs_a_look_and_the_question_whether_there_are_more(
    repo: Repository,
) -> None:
    asked: list[str] = []
    warm = disturbed(repo, lambda verb, key: asked.append(verb))
    warm.head("main")
    submit(repo, add_person("eve"))
    asked.clear()
    assert warm.head("main").commit.number == 5
    assert len(asked) == 2, f"the branch was looked up anew: {asked}"


def test_a_graph_is_not_used_after_a_fork(
    repo: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: own + 1)
    with pytest.raises(ForkedProcess):
        repo.head("main")


def test_an_unfinished_branch_of_one_commit_holds_that_commit_alone(repo: Repository) -> None:
    old = repo.chains.expect(repo.stamp.main_chain, 1)
    strike(
        repo,
        lambda there: Graph(there).create_branch("dev", from_=f"{old.chain}.1"),
        Fault.DIE_AFTER,
        0,
    )
    (ref,) = live_refs(repo)
    assert ref.state.base_number == 1
    collect(repo, Retention(keep=1))
    fresh = another_process(repo)
    buried = [isinstance(fresh.chains.read(old.chain, number), Tombstone) for number in range(4)]
    assert buried == [True, False, True, True]


def test_whoever_lost_more_races_waits_less() -> None:
    waited: list[float] = []
    made = memory_repository(clock=Clock(pause=waited.append, chance=lambda: 1.0))
    for lost in range(5):
        made.stand_back(lost)
    most = made.limits.stand_back_seconds_max
    assert waited == [most, most / 2, most / 3]


def test_every_member_of_a_commit_that_was_missed_counts(repo: Repository) -> None:
    """The first of them wrote elsewhere, the second the very row."""
    runs: list[int] = []

    def verb(txn: WriteTxn) -> PublishPlan:
        wanted = add_person("ann", age=1)(txn)
        if not runs:
            other = another_process(repo)
            members = (add_knows("e1", "ann", "bob"), add_person("ann", age=7))
            publish(
                other, [Ticket(Request(branch=MAIN, verb=v), layout.fresh_id()) for v in members]
            )
        runs.append(1)
        return wanted

    submit(repo, verb)
    assert len(runs) == 2, "a row somebody else changed meanwhile was written over unseen"


def test_a_deleted_branch_is_not_remembered(repo: Repository) -> None:
    graph = Graph(repo)
    graph.create_branch("dev")
    assert repo.knows("dev")
    graph.delete_branch("dev")
    assert not repo.knows("dev")


def test_a_branch_enters_an_epoch_once(repo: Repository) -> None:
    collect(repo, Retention(keep=3))
    head = repo.head("main").commit
    assert head.gc_epoch == 1
    gc._move_epoch(repo, head.chain, 1)
    assert repo.head("main").commit == head
    gc._move_epoch(repo, head.chain, 2)
    moved = repo.head("main").commit
    assert (moved.gc_epoch, moved.number) == (2, head.number + 1)
    assert moved.time > head.time
    assert (moved.content, moved.tables) == (head.content, head.tables)


def test_as_many_commits_back_are_remembered_as_the_limit_says(repo: Repository) -> None:
    repo.limits = replace(repo.limits, recent_commits=3)
    head = msgspec.structs.replace(
        repo.head("main").commit, number=10, recent=tuple(Recent(f"op{n}", n) for n in range(6, 11))
    )
    kept = [known.number for known in following(repo, head, "epoch").recent]
    assert kept == [9, 10], "commit 11 and the two before it"
