"""A writer that falls asleep at the worst moment and wakes up in another world.

The store holds one request of one client back while others go on: they delete what it refers to, collect what it has
staged, prune the number it is about to take. Defends G1, G3 and G6.
"""

from __future__ import annotations

import pytest

from omnigraph.core.records import Commit, Tombstone
from omnigraph.errors import BranchDeleted, BranchNotFound, OmnigraphError
from omnigraph.graph import Graph, init
from omnigraph.maintenance.collection import Retention, collect
from tests.contention.actors import client, stalled, writes_to
from tests.support.caches import forget_tables
from tests.support.faulty_s3 import FaultyS3
from tests.support.worlds import (
    SCHEMA,
    Rejected,
    add_knows,
    add_person,
    dangling,
    drop_person,
    edges,
    people,
)


@pytest.fixture
def uri(faulty_s3: FaultyS3) -> str:
    forget_tables()
    where = faulty_s3.address.uri("graph")
    graph = init(where, schema=SCHEMA)
    for name in ("ann", "bob", "cy"):
        graph.publish(add_person(name))
    graph.publish(add_knows("e1", "ann", "bob"))
    return where


def fresh(store: FaultyS3, uri: str) -> Graph:
    forget_tables()
    return client(store, uri, "somebody else")


def test_an_edge_to_a_node_that_was_removed_meanwhile_is_refused(
    faulty_s3: FaultyS3, uri: str
) -> None:
    slow, quick = client(faulty_s3, uri, "slow"), client(faulty_s3, uri, "quick")
    future = stalled(
        faulty_s3,
        "slow",
        lambda: slow.publish(add_knows("e2", "cy", "bob")),
        lambda: quick.publish(drop_person("bob")),
    )
    with pytest.raises(Rejected):
        future.result()
    reader = fresh(faulty_s3, uri)
    assert dangling(reader._repo) == []
    assert people(reader._repo) == ["ann", "cy"]


def test_a_removal_takes_along_the_edge_that_came_meanwhile(faulty_s3: FaultyS3, uri: str) -> None:
    slow, quick = client(faulty_s3, uri, "slow"), client(faulty_s3, uri, "quick")
    future = stalled(
        faulty_s3,
        "slow",
        lambda: slow.publish(drop_person("bob")),
        lambda: quick.publish(add_knows("e2", "cy", "bob")),
    )
    assert future.result().commit is not None
    reader = fresh(faulty_s3, uri)
    assert dangling(reader._repo) == []
    assert edges(reader._repo) == []


@pytest.mark.parametrize("before", ["data", "_transactions", "_versions", "__manifest"])
def test_a_writer_asleep_during_a_collection_refers_to_nothing_that_is_gone(
    before: str, faulty_s3: FaultyS3, uri: str
) -> None:
    """Held before it writes its data file, its transaction file, its table version, its commit."""
    slow, quick = client(faulty_s3, uri, "slow"), client(faulty_s3, uri, "quick")

    def meanwhile() -> None:
        for _ in range(2):
            collect(quick._repo, Retention(keep=1))

    future = stalled(
        faulty_s3,
        "slow",
        lambda: slow.publish(add_knows("e2", "cy", "bob")),
        meanwhile,
        matches=writes_to(before),
    )
    assert future.result().commit is not None
    reader = fresh(faulty_s3, uri)
    assert edges(reader._repo) == [("e1", "ann", "bob"), ("e2", "cy", "bob")]
    for _ in range(2):
        collect(reader._repo, Retention(keep=1))
    assert edges(fresh(faulty_s3, uri)._repo) == [("e1", "ann", "bob"), ("e2", "cy", "bob")]
    assert collect(reader._repo, Retention(keep=1), dry_run=True).objects_deleted == 0


def test_a_writer_that_slept_cannot_take_a_pruned_number_again(
    faulty_s3: FaultyS3, uri: str
) -> None:
    slow, quick = client(faulty_s3, uri, "slow"), client(faulty_s3, uri, "quick")
    wanted = slow._repo.head("main").commit.number + 1

    def meanwhile() -> None:
        for name in ("dee", "eve", "fay"):
            quick.publish(add_person(name))
        collect(quick._repo, Retention(keep=1))

    future = stalled(faulty_s3, "slow", lambda: slow.publish(add_person("zoe")), meanwhile)
    done = future.result().commit
    reader = fresh(faulty_s3, uri)
    chain = reader._repo.stamp.main_chain
    assert done is not None
    assert isinstance(reader._repo.chains.read(chain, wanted), Tombstone), "the number was retaken"
    assert done.number == reader._repo.head("main").commit.number > wanted
    assert people(reader._repo) == ["ann", "bob", "cy", "dee", "eve", "fay", "zoe"]


def test_a_writer_that_slept_while_its_branch_was_deleted_and_made_again(
    faulty_s3: FaultyS3, uri: str
) -> None:
    slow, quick = client(faulty_s3, uri, "slow"), client(faulty_s3, uri, "quick")
    quick.create_branch("dev")
    quick.publish(add_person("old"), branch="dev")

    def meanwhile() -> None:
        quick.delete_branch("dev")
        quick.create_branch("dev")

    future = stalled(
        faulty_s3,
        "slow",
        lambda: slow.publish(add_person("late"), branch="dev"),
        meanwhile,
    )
    with pytest.raises(BranchDeleted):
        future.result()
    reader = fresh(faulty_s3, uri)
    assert people(reader._repo, "dev") == ["ann", "bob", "cy"], "the old branch shows through"


@pytest.mark.parametrize("before", ["_refs", "__manifest"])
def test_a_branch_made_during_a_collection_is_whole_or_refused(
    before: str, faulty_s3: FaultyS3, uri: str
) -> None:
    slow, quick = client(faulty_s3, uri, "slow"), client(faulty_s3, uri, "quick")
    slow.snapshot()
    old = slow.log()[2].id

    def meanwhile() -> None:
        for _ in range(2):
            collect(quick._repo, Retention(keep=1))

    future = stalled(
        faulty_s3,
        "slow",
        lambda: slow.create_branch("dev", old),
        meanwhile,
        matches=writes_to(before),
    )
    refused = future.exception()
    reader = fresh(faulty_s3, uri)
    if refused is None:
        assert people(reader._repo, "dev") == ["ann", "bob"]
        return
    assert isinstance(refused, OmnigraphError)
    with pytest.raises(BranchNotFound):
        reader.snapshot("dev")


def test_a_late_commit_after_an_unanswered_one_is_not_applied_twice(
    faulty_s3: FaultyS3, uri: str
) -> None:
    slow, quick = client(faulty_s3, uri, "slow"), client(faulty_s3, uri, "quick")
    faulty_s3.lose_acknowledgement(1, actor="slow", matches=lambda r: "/__manifest/" in r.key)
    done = slow.publish(add_knows("e2", "cy", "ann"))
    quick.publish(add_person("dee"))
    reader = fresh(faulty_s3, uri)
    assert isinstance(done.commit, Commit)
    head = reader._repo.head("main").commit
    holding = [
        commit.number
        for commit in reader._repo.chains.range(head.chain, 0, head.number)
        if isinstance(commit, Commit)
        and any(m.operation_id == done.commit.members[0].operation_id for m in commit.members)
    ]
    assert holding == [done.commit.number]
    assert edges(reader._repo) == [("e1", "ann", "bob"), ("e2", "cy", "ann")]
