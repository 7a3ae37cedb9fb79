"""Kill at every durable write of every kind of operation: the graph is exactly as before, or exactly as after."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from omnigraph.core.repository import Repository
from omnigraph.errors import BranchNotFound, CommitPruned
from omnigraph.graph import Graph
from omnigraph.maintenance.collection import Retention, collect
from tests.support.dict_objects import DictObjects
from tests.support.faults_by_count import Fault, count_writes, strike
from tests.support.worlds import (
    add_knows,
    add_person,
    another_process,
    dangling,
    drop_person,
    edges,
    memory_repository,
    people,
    submit,
)

Operation = Callable[[Repository], object]

OPERATIONS: dict[str, Operation] = {
    "upsert a node": lambda repo: submit(repo, add_person("ann", age=5)),
    "append an edge": lambda repo: submit(repo, add_knows("e9", "cy", "ann")),
    "delete a node with its edges": lambda repo: submit(repo, drop_person("bob")),
    "write under a key": lambda repo: submit(repo, add_person("zoe"), idempotency_key="k1"),
    "create a branch": lambda repo: Graph(repo).create_branch("new"),
    "create a branch from an older commit": lambda repo: Graph(repo).create_branch("new", "main~1"),
    "delete a branch": lambda repo: Graph(repo).delete_branch("dev"),
    "write on a branch": lambda repo: submit(repo, add_person("dee"), branch="dev"),
    "tag": lambda repo: Graph(repo).tag("v1", "main~1"),
    "collect": lambda repo: collect(repo, Retention(keep=1)),
}


def world() -> Repository:
    repo = memory_repository()
    for name in ("ann", "bob", "cy"):
        submit(repo, add_person(name))
    submit(repo, add_knows("e1", "ann", "bob"))
    Graph(repo).create_branch("dev")
    submit(repo, add_person("extra"), branch="dev")
    return repo


def state(repo: Repository) -> dict[str, Any]:
    """Everything a reader can see: branches, tags, rows and logs."""
    fresh = another_process(repo)
    graph = Graph(fresh)
    seen: dict[str, Any] = {"tags": graph.tags()}
    for branch in graph.branches():
        try:
            seen[branch] = (people(fresh, branch), edges(fresh, branch), len(graph.log(branch)))
        except (
            BranchNotFound
        ):  # a name whose branch was never finished, or is sealed: nobody can open it
            continue
        assert not dangling(fresh, branch), f"{branch} has an edge without its node"
    return seen


def copied(repo: Repository) -> Repository:
    there = repo.objects
    assert isinstance(there, DictObjects)
    return another_process(repo, DictObjects(there.objects.copy()))


def forget_generated(seen: dict[str, Any]) -> dict[str, Any]:
    """Ids are drawn at random, so tags are compared by name."""
    return {**seen, "tags": sorted(seen["tags"])}


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("fault", [Fault.DIE_BEFORE, Fault.DIE_AFTER])
def test_a_kill_at_every_durable_write_leaves_before_or_after(name: str, fault: Fault) -> None:
    operation = OPERATIONS[name]
    base = world()
    before = forget_generated(state(base))
    done = copied(base)
    writes = count_writes(done, operation)
    after = forget_generated(state(done))
    assert writes > 0
    for at in range(writes):
        repo = copied(base)
        acknowledged, storm = strike(repo, operation, fault, at)
        assert not acknowledged, f"write {at} of {name!r} ({storm.struck}) was not reached"
        assert forget_generated(state(repo)) in (before, after), (
            f"{name!r}, {fault.value} {storm.struck}"
        )
        continues(repo)


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("fault", [Fault.LOSE_ANSWER, Fault.LOSE_REQUEST])
def test_a_lost_answer_at_every_durable_write_is_applied_exactly_once(
    name: str, fault: Fault
) -> None:
    operation = OPERATIONS[name]
    base = world()
    done = copied(base)
    writes = count_writes(done, operation)
    after = forget_generated(state(done))
    for at in range(writes):
        repo = copied(base)
        acknowledged, storm = strike(repo, operation, fault, at)
        assert acknowledged, f"{name!r} failed at {storm.struck}"
        assert forget_generated(state(repo)) == after, f"{name!r}, {fault.value} {storm.struck}"
        continues(repo)


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_killed_operation_can_simply_be_repeated(name: str) -> None:
    operation = OPERATIONS[name]
    base = world()
    done = copied(base)
    writes = count_writes(done, operation)
    after = forget_generated(state(done))
    for at in range(writes):
        repo = copied(base)
        strike(repo, operation, Fault.DIE_BEFORE, at)
        if forget_generated(state(repo)) != after:
            operation(another_process(repo))
        seen = forget_generated(state(repo))
        assert seen["main"][:2] == after["main"][:2], (
            f"{name!r} repeated after a kill at write {at}"
        )
        assert set(seen) == set(after), f"{name!r} repeated after a kill at write {at}"


def continues(repo: Repository) -> None:
    """Whatever happened, the next write and the next collection work at once, and the collection leaves no rubbish."""
    fresh = another_process(repo)
    submit(fresh, add_person("next"))
    assert "next" in people(fresh)
    collect(fresh, Retention(keep=1))
    collect(fresh, Retention(keep=1))
    assert collect(fresh, Retention(keep=1), dry_run=True).objects_deleted == 0
    assert "next" in people(another_process(repo))


def test_a_pruned_commit_says_so() -> None:
    repo = world()
    old = Graph(repo).log()[2].id
    collect(repo, Retention(keep=1))
    with pytest.raises(CommitPruned):
        Graph(another_process(repo)).snapshot(at=old)
