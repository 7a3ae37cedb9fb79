"""What holds at the ends of a chain: its first commit, its newest one, and what is left of it when it is gone."""

from __future__ import annotations

import pytest

from omnigraph.core import history
from omnigraph.core.branches import create_tag, delete_branch
from omnigraph.core.clock import Clock
from omnigraph.core.idempotency import landed_before
from omnigraph.core.leases import newest_record
from omnigraph.core.records import Commit
from omnigraph.core.repository import Repository
from omnigraph.maintenance.collection import Retention, collect
from tests.support.worlds import add_person, graph_over, memory_repository, submit

PEOPLE = "abc"


@pytest.fixture
def repo() -> Repository:
    made = memory_repository()
    for name in PEOPLE:
        submit(made, add_person(name), idempotency_key=f"key-{name}", fingerprint=f"print-{name}")
    return made


def first_commit(repo: Repository) -> Commit:
    found = repo.chains.expect(repo.head("main").commit.chain, 0)
    assert isinstance(found, Commit)
    return found


def test_a_tag_may_name_the_first_commit(repo: Repository) -> None:
    create_tag(repo, "born", first_commit(repo))
    assert history.resolve(repo, "born", "main").commit.number == 0


def test_nothing_comes_after_the_newest_commit(repo: Repository) -> None:
    head = repo.head("main").commit
    assert repo.chains.since(head.chain, head.number) == []
    assert [found.number for found in repo.chains.since(head.chain, 0)] == [1, 2, 3]


def test_an_operation_is_found_wherever_it_landed_after_its_claim(repo: Repository) -> None:
    head = repo.head("main").commit
    operations = {
        found.number: found.members[0].operation_id
        for found in repo.chains.range(head.chain, 1, head.number)
        if isinstance(found, Commit)
    }
    for number, operation in operations.items():
        landed = landed_before(repo, operation, number - 1, head)
        assert landed is not None
        assert landed.number == number
    assert landed_before(repo, "never-happened", 0, head) is None


def test_a_commit_says_under_which_key_and_request_it_was_written(repo: Repository) -> None:
    [member] = repo.head("main").commit.members
    assert (member.idempotency_key, member.fingerprint) == ("key-c", "print-c")


def test_what_one_collection_gave_up_stays_given_up(repo: Repository) -> None:
    graph = graph_over(repo)
    graph.create_branch("short")
    submit(repo, add_person("d"), branch="short")
    chain = repo.head("short").commit.chain
    delete_branch(repo, "short")
    for _ in range(3):
        collect(repo, Retention(keep=1))
        record = newest_record(repo)
        assert record is not None
        assert chain in record.dead


def test_pauses_double_up_to_their_bound() -> None:
    waited: list[float] = []
    world = Clock(pause=waited.append, chance=lambda: 1.0)
    for attempt in range(6):
        world.back_off(attempt, 0.5, 5.0)
    assert waited == [0.5, 1.0, 2.0, 4.0, 5.0, 5.0]
