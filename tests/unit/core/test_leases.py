"""Leases and records of collections: which plan is heard, which has died, and what may be gone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from omnigraph.core import layout
from omnigraph.core.clock import Clock
from omnigraph.core.leases import (
    is_expired,
    load_plan,
    newest_record,
    pruned,
    record,
    remove_plan,
    renewed,
    save_plan,
    still_honoured,
    stored_plans,
)
from omnigraph.core.records import GcRecord, StoredPlan, encode
from omnigraph.core.repository import Repository
from omnigraph.errors import Corrupt
from tests.support.worlds import another_process, memory_repository

SECOND = 1_000_000
PLAN = StoredPlan("p1", "op", "load", "main", 0, 10 * SECOND, ("nodes/n1",), {"step": 1})


class ManualClock:
    def __init__(self) -> None:
        self.micros = 10 * SECOND

    def now(self) -> int:
        return self.micros


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def repo(clock: ManualClock) -> Repository:
    made = memory_repository(clock=Clock(now=clock.now))
    made.limits = replace(made.limits, lease_seconds_max=100)
    return made


def test_a_plan_is_there_until_it_is_removed(repo: Repository) -> None:
    assert load_plan(repo, "p1") is None
    save_plan(repo, PLAN)
    assert load_plan(repo, "p1") == PLAN
    assert list(stored_plans(repo)) == [PLAN]
    remove_plan(repo, "p1")
    assert list(stored_plans(repo)) == []


def test_a_sign_of_life_adds_to_what_was_written_down(repo: Repository, clock: ManualClock) -> None:
    save_plan(repo, PLAN)
    clock.micros += 5 * SECOND
    alive = renewed(repo, PLAN, rows=7)
    assert alive.renewed == clock.micros
    assert alive.state == {"step": 1, "rows": 7}
    assert load_plan(repo, "p1") == alive


def test_a_lease_ends_when_nobody_has_renewed_it(repo: Repository, clock: ManualClock) -> None:
    clock.micros += 100 * SECOND
    assert not is_expired(repo, PLAN), "the last moment counts"
    clock.micros += 1
    assert is_expired(repo, PLAN)
    clock.micros -= 1
    alive = renewed(repo, PLAN)
    clock.micros += 100 * SECOND
    assert not is_expired(repo, alive)
    clock.micros += 1
    assert is_expired(repo, alive)


def collected(repo: Repository, epoch: int, *plans: str) -> GcRecord:
    made = GcRecord(epoch, {}, (), (), plans)
    repo.objects.put(layout.record_key(epoch), encode(made))
    return made


def test_a_plan_must_be_named_by_every_collection_since_its_staging(repo: Repository) -> None:
    collected(repo, 1, "other")
    collected(repo, 2, "p1", "other")
    collected(repo, 3, "p1")
    assert still_honoured(repo, "p1", 1, 3)
    assert still_honoured(repo, "p1", 2, 3)
    assert still_honoured(repo, "p1", 3, 3), "there was no collection since"
    assert not still_honoured(repo, "p1", 0, 3)
    assert not still_honoured(repo, "other", 1, 3)
    assert not still_honoured(repo, None, 3, 3)


def test_records_are_read_once_and_the_newest_is_found(repo: Repository) -> None:
    assert newest_record(repo) is None
    first = collected(repo, 1)
    assert newest_record(repo) == first
    second = collected(repo, 2)
    assert newest_record(repo) == second
    assert newest_record(another_process(repo)) == second
    assert record(repo, 1) is record(repo, 1)
    with pytest.raises(Corrupt):
        record(repo, 3)


def test_what_a_record_declares_may_be_gone() -> None:
    known = GcRecord(1, {"a": 5}, ("d",), (("a", 2), ("d", 1)), ())
    assert not pruned(None, "a", 0)
    assert pruned(known, "a", 4)
    assert not pruned(known, "a", 5)
    assert not pruned(known, "a", 2), "a commit that is kept stays"
    assert pruned(known, "d", 0)
    assert pruned(known, "d", 99)
    assert not pruned(known, "d", 1)
    assert not pruned(known, "other", 0)
