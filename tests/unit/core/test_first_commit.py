"""A write that makes its own branch: both are there or neither, once for each key, whatever happens in between."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from omnigraph.core.branches import branch_names, delete_branch, live_refs
from omnigraph.core.clock import Deadline
from omnigraph.core.first_commit import publish_first
from omnigraph.core.plan import NewSchema, PublishPlan, Request, Verb
from omnigraph.core.publisher import Published
from omnigraph.core.records import Commit, DeletedRef
from omnigraph.core.repository import Repository
from omnigraph.core.txn import WriteTxn
from omnigraph.errors import BranchExists, BranchNotFound, Cancelled, IdempotencyMismatch
from omnigraph.lang.schema import catalog_of, decode_ir
from omnigraph.maintenance.collection import Retention, collect
from omnigraph.model.names import branch_name
from tests.support.dict_objects import DictObjects
from tests.support.faults_by_count import Fault, count_writes, strike
from tests.support.worlds import (
    SCHEMA,
    Rejected,
    add_knows,
    add_person,
    another_process,
    disturbed,
    drop_person,
    memory_repository,
    people,
    stored_schema,
    submit,
)


@pytest.fixture
def repo() -> Repository:
    repo = memory_repository()
    submit(repo, add_person("ann"))
    return repo


def first(
    repo: Repository, verb: Verb, *, branch: str = "new", source: str = "main", **options: Any
) -> Published:
    return publish_first(
        repo, Request(branch=branch_name(branch), verb=verb, create_from=source, **options)
    )


def meanwhile(repo: Repository, rival: Callable[[], object]) -> Repository:
    """The same graph, where a rival comes in right before the name of the branch is written."""
    done: list[str] = []

    def before(verb: str, key: str) -> None:
        if verb == "put_new" and key.startswith("_refs/") and not done:
            done.append(key)
            rival()

    return disturbed(repo, before)


def keys(repo: Repository) -> set[str]:
    there = repo.objects
    assert isinstance(there, DictObjects)
    return set(there.objects)


# --- one commit ----------------------------------------------------------------------------------------------------


def test_branch_and_write_are_one_commit(repo: Repository) -> None:
    done = first(repo, add_person("bob"), actor="dora", message="hello")
    fresh = another_process(repo)
    head = fresh.head("new").commit
    assert (head.number, head.branch, head.kind) == (0, "new", "mutation")
    assert head.content == done.commit_id, "it counts as a commit with content of its own"
    assert [(m.actor, m.message) for m in head.members] == [("dora", "hello")]
    assert head.parents == (repo.head("main").commit.content,)
    assert people(fresh, "new") == ["ann", "bob"]
    assert people(fresh) == ["ann"]


def test_a_write_that_fails_leaves_no_trace(repo: Repository) -> None:
    before = keys(repo)
    with pytest.raises(Rejected):
        first(repo, add_knows("e1", "ann", "nobody"))
    with pytest.raises(BranchNotFound):
        first(repo, add_person("bob"), source="nowhere")
    assert keys(repo) == before


def test_a_branch_of_that_name_is_in_the_way(repo: Repository) -> None:
    first(repo, add_person("bob"))
    with pytest.raises(BranchExists):
        first(repo, add_person("cy"))
    assert people(another_process(repo), "new") == ["ann", "bob"]


def test_a_new_schema_may_come_with_the_branch(repo: Repository) -> None:
    stored = stored_schema(SCHEMA.replace("age: I64?", "age: I64? @index"))

    def verb(txn: WriteTxn) -> PublishPlan:
        catalog = catalog_of(decode_ir(stored.ir.encode()))
        return PublishPlan(kind="schema", schema=NewSchema(stored, catalog))

    first(repo, verb)
    fresh = another_process(repo)
    assert fresh.schema(fresh.head("new").commit.schema).stored == stored
    assert fresh.schema(fresh.head("main").commit.schema).stored == stored_schema()


# --- while others write --------------------------------------------------------------------------------------------


def test_it_starts_from_what_the_source_is_when_the_name_is_written(repo: Repository) -> None:
    rival = another_process(repo)
    first(meanwhile(repo, lambda: submit(rival, add_person("cy"))), add_person("bob"))
    fresh = another_process(repo)
    assert people(fresh, "new") == ["ann", "bob", "cy"]
    assert fresh.head("new").commit.parents == (fresh.head("main").commit.content,)


def test_a_write_the_source_no_longer_allows_takes_the_name_back(repo: Repository) -> None:
    submit(repo, add_person("bob"))
    rival = another_process(repo)
    busy = meanwhile(repo, lambda: submit(rival, drop_person("bob")))
    with pytest.raises(Rejected):
        first(busy, add_knows("e1", "ann", "bob"))
    fresh = another_process(repo)
    assert branch_names(fresh) == ["main"]
    assert live_refs(fresh) == [], "the name was not given back"
    first(fresh, add_person("cy"))
    assert people(fresh, "new") == ["ann", "cy"]


def test_a_call_cancelled_while_it_stages_leaves_no_branch(repo: Repository) -> None:
    stop = threading.Event()

    def cancel(verb: str, _key: str) -> None:
        if verb == "file":
            stop.set()

    with pytest.raises(Cancelled):
        first(disturbed(repo, cancel), add_person("bob"), deadline=Deadline(None, stop))
    assert branch_names(another_process(repo)) == ["main"]
    collect(repo, Retention(keep=100))
    assert collect(repo, Retention(keep=100), dry_run=True).objects_deleted == 0


def test_a_call_whose_time_is_over_writes_no_name(repo: Repository) -> None:
    stop = threading.Event()

    def verb(txn: WriteTxn) -> PublishPlan:
        stop.set()
        return add_person("bob")(txn)

    before = keys(repo)
    with pytest.raises(Cancelled):
        first(repo, verb, deadline=Deadline(None, stop))
    assert keys(repo) == before


# --- one key, one application --------------------------------------------------------------------------------------


def test_a_repeated_request_finds_its_branch(repo: Repository) -> None:
    made = first(repo, add_person("bob"), idempotency_key="k", fingerprint="f")
    submit(repo, add_person("cy"), branch="new")
    again = first(another_process(repo), add_person("bob"), idempotency_key="k", fingerprint="f")
    assert again.replayed
    assert again.commit_id == made.commit_id
    assert people(another_process(repo), "new") == ["ann", "bob", "cy"]


def test_a_repeated_request_does_not_run_its_verb(repo: Repository) -> None:
    submit(repo, add_person("bob"))
    made = first(repo, add_knows("e1", "ann", "bob"), idempotency_key="k")
    submit(repo, drop_person("bob"))
    again = first(another_process(repo), add_knows("e1", "ann", "bob"), idempotency_key="k")
    assert again.commit_id == made.commit_id, "the source allows it no longer, and need not"


def test_a_repeated_request_is_recognised_after_its_commit_was_pruned(repo: Repository) -> None:
    first(repo, add_person("bob"), idempotency_key="k")
    for name in ("cy", "dee"):
        submit(repo, add_person(name), branch="new")
    collect(repo, Retention(keep=1))
    chain = repo.head("new").commit.chain
    assert not isinstance(another_process(repo).chains.read(chain, 0), Commit), "nothing was pruned"
    again = first(another_process(repo), add_person("bob"), idempotency_key="k")
    assert again.replayed
    assert people(another_process(repo), "new") == ["ann", "bob", "cy", "dee"]


def test_a_repeated_request_does_not_bring_a_deleted_branch_back(repo: Repository) -> None:
    made = first(repo, add_person("bob"), idempotency_key="k")
    delete_branch(repo, "new")
    again = first(another_process(repo), add_person("bob"), idempotency_key="k")
    assert again.replayed
    assert again.commit_id == made.commit_id
    assert branch_names(another_process(repo)) == ["main"]


def test_a_repeated_request_leaves_alone_what_took_its_name(repo: Repository) -> None:
    """By the other way in: whoever finds that the branch exists writes to it."""
    made = first(repo, add_person("bob"), idempotency_key="k")
    delete_branch(repo, "new")
    first(repo, add_person("cy"))
    again = submit(another_process(repo), add_person("bob"), branch="new", idempotency_key="k")
    assert again.replayed
    assert again.commit_id == made.commit_id
    assert people(another_process(repo), "new") == ["ann", "cy"]


def test_a_request_overtaken_by_its_own_repetition_is_applied_once(repo: Repository) -> None:
    """The branch is made and deleted again by somebody with the same key, while this one sleeps."""
    rival = another_process(repo)

    def overtake() -> None:
        first(rival, add_person("bob"), idempotency_key="k")
        delete_branch(rival, "new")

    late = first(meanwhile(repo, overtake), add_person("bob"), idempotency_key="k")
    assert late.replayed
    fresh = another_process(repo)
    assert branch_names(fresh) == ["main"]
    found = fresh.ref_state("_refs/new")
    assert found is not None
    assert isinstance(found[1], DeletedRef), "the name it had taken was not given back"


def test_another_request_under_the_key_is_refused(repo: Repository) -> None:
    first(repo, add_person("bob"), idempotency_key="k", fingerprint="one")
    with pytest.raises(IdempotencyMismatch):
        first(repo, add_person("bob"), idempotency_key="k", fingerprint="two")
    with pytest.raises(IdempotencyMismatch):
        first(repo, add_person("bob"), idempotency_key="k", fingerprint="one", branch="other")


def test_a_branch_somebody_else_made_is_no_answer_to_a_key(repo: Repository) -> None:
    first(repo, add_person("bob"))
    with pytest.raises(BranchExists):
        first(repo, add_person("cy"), idempotency_key="k")
    assert people(another_process(repo), "new") == ["ann", "bob"]


@pytest.mark.parametrize("fault", [Fault.DIE_BEFORE, Fault.DIE_AFTER])
def test_a_crash_at_any_write_and_a_repetition_apply_once(fault: Fault) -> None:
    def create(there: Repository) -> None:
        first(there, add_person("bob"), idempotency_key="k")

    writes = count_writes(memory_repository(), create)
    assert writes >= 4, "a claim, a name, files and a commit"
    for at in range(writes):
        repo = memory_repository()
        acknowledged, storm = strike(repo, create, fault, at)
        assert not acknowledged
        shown = branch_names(another_process(repo))
        assert shown == ["main"] or people(another_process(repo), "new") == ["bob"], storm.struck
        create(another_process(repo))
        create(another_process(repo))
        assert people(another_process(repo), "new") == ["bob"], storm.struck


def test_a_collection_at_any_request_takes_no_file_of_the_branch(repo: Repository) -> None:
    """The files are written before anything refers to them: the collection ends the creation, and it is made again."""
    there = repo.objects
    assert isinstance(there, DictObjects)
    base = {**there.objects}
    for at in range(30):
        there.objects.clear()
        there.objects.update(base)
        countdown = iter(range(at, -1, -1))

        def before(verb: str, key: str, left: Iterator[int] = countdown) -> None:
            if next(left, None) == 0:
                collect(another_process(repo), Retention(keep=1))

        first(disturbed(another_process(repo), before), add_person("bob"))
        assert people(another_process(repo), "new") == ["ann", "bob"], f"at request {at}"
