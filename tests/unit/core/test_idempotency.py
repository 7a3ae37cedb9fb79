"""One key, one application, whatever is repeated, lost or pruned."""

from __future__ import annotations

import pytest

from omnigraph.core.gc import Retention, collect
from omnigraph.core.repository import Repository
from omnigraph.errors import IdempotencyMismatch
from omnigraph.graph import Graph
from omnigraph.model.limits import Limits
from tests.support.faults_by_count import Died, Disturbance, Fault
from tests.support.worlds import (
    add_knows,
    add_person,
    another_process,
    disturbed,
    memory_repository,
    people,
    submit,
)


@pytest.fixture
def repo() -> Repository:
    repo = memory_repository(limits=Limits(recent_commits=4))
    for name in ("ann", "bob"):
        submit(repo, add_person(name))
    return repo


def test_a_repeated_request_returns_the_first_commit(repo: Repository) -> None:
    first = submit(repo, add_knows("e1", "ann", "bob"), idempotency_key="k", fingerprint="f")
    again = submit(
        another_process(repo), add_knows("e2", "ann", "bob"), idempotency_key="k", fingerprint="f"
    )
    assert again.replayed
    assert not first.replayed
    assert again.commit_id == first.commit_id


def test_a_repeated_request_is_found_far_back_in_history(repo: Repository) -> None:
    first = submit(repo, add_person("cy"), idempotency_key="k")
    for number in range(23):
        submit(repo, add_person(f"p{number}"))
    again = submit(another_process(repo), add_person("cy"), idempotency_key="k")
    assert again.replayed
    assert again.commit_id == first.commit_id


def test_a_repeated_request_is_recognised_after_its_commit_was_pruned(repo: Repository) -> None:
    submit(repo, add_person("cy"), idempotency_key="k")
    for number in range(9):
        submit(repo, add_person(f"p{number}"))
    collect(repo, Retention(keep=1))
    length = len(Graph(repo).log(limit=None))
    again = submit(another_process(repo), add_person("cy"), idempotency_key="k")
    assert again.replayed
    assert len(Graph(repo).log(limit=None)) == length, "nothing was applied a second time"


def test_another_request_under_the_key_is_refused(repo: Repository) -> None:
    submit(repo, add_person("cy"), idempotency_key="k", fingerprint="one")
    with pytest.raises(IdempotencyMismatch) as caught:
        submit(repo, add_person("dee"), idempotency_key="k", fingerprint="two")
    assert caught.value.details["differs"] == "fingerprint"


def test_the_key_belongs_to_one_branch(repo: Repository) -> None:
    Graph(repo).create_branch("dev")
    submit(repo, add_person("cy"), idempotency_key="k")
    with pytest.raises(IdempotencyMismatch) as caught:
        submit(repo, add_person("cy"), idempotency_key="k", branch="dev")
    assert caught.value.details["differs"] == "branch"


def test_a_crash_at_any_write_and_a_retry_apply_once(repo: Repository) -> None:
    quiet = Disturbance()
    submit(disturbed(repo, quiet.before, quiet.after), add_person("zero"), idempotency_key="k0")
    for at in range(quiet.writes):
        for fault in (Fault.DIE_BEFORE, Fault.DIE_AFTER):
            key, name = f"key {at} {fault.name}", f"person {at} {fault.name}"
            storm = Disturbance(fault, at)
            length = len(Graph(repo).log(limit=None))
            with pytest.raises(Died):
                submit(
                    disturbed(repo, storm.before, storm.after),
                    add_person(name),
                    idempotency_key=key,
                )
            submit(another_process(repo), add_person(name), idempotency_key=key)
            submit(another_process(repo), add_person(name), idempotency_key=key)
            assert len(Graph(another_process(repo)).log(limit=None)) == length + 1, storm.struck
            assert people(another_process(repo)).count(name) == 1
