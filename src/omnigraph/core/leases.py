"""Stored plans of long operations: a lease on staged files, their progress, and where to resume.

A plan does not make anything visible. It makes garbage collection keep the unreferenced files of its tables; whether it
was honoured is read from the collection records, never from the plan's own existence.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from omnigraph.core import layout
from omnigraph.core.records import (
    Commit,
    GcRecord,
    StoredPlan,
    Tombstone,
    decode,
    encode,
    object_at,
)
from omnigraph.core.repository import Repository
from omnigraph.errors import Corrupt, ObjectNotFound


def save_plan(repo: Repository, plan: StoredPlan) -> None:
    """Write a plan, or its progress."""
    repo.objects.put(layout.plan_key(plan.plan), encode(plan))


def renewed(repo: Repository, plan: StoredPlan, **state: Any) -> StoredPlan:
    """Renew the lease, and store progress."""
    alive: StoredPlan = msgspec.structs.replace(
        plan, renewed=repo.clock.now(), state={**plan.state, **state}
    )
    save_plan(repo, alive)
    return alive


def is_expired(repo: Repository, plan: StoredPlan) -> bool:
    """Whether its process must have died.

    Being wrong is safe: an operation that was only asleep finds that no collection named its plan, and stages again.
    """
    silent = repo.clock.now() - max(plan.created, plan.renewed)
    return silent > repo.limits.lease_seconds_max * 1_000_000


def load_plan(repo: Repository, plan: str) -> StoredPlan | None:
    """A plan by its id."""
    key = layout.plan_key(plan)
    found = object_at(repo.objects, StoredPlan, key)
    if found is not None and found.plan != plan:
        raise Corrupt(f"the object {key} says it is plan {found.plan!r}", details={"object": key})
    return found


def remove_plan(repo: Repository, plan: str) -> None:
    """The operation is finished or abandoned: its files are ordinary garbage now."""
    repo.objects.delete([layout.plan_key(plan)])


def stored_plans(repo: Repository) -> Iterator[StoredPlan]:
    """All stored plans."""
    for info in repo.objects.list(layout.PLANS):
        name = info.key.rsplit("/", 1)[-1].removesuffix(".json")
        plan = load_plan(repo, name)
        if plan is not None:
            yield plan


def still_honoured(repo: Repository, plan: str | None, staged_in: int, now_in: int) -> bool:
    """Whether every collection since the staging named the plan, so that its files still exist."""
    if plan is None:
        return False
    return all(plan in record(repo, epoch).plans for epoch in range(staged_in + 1, now_in + 1))


def record(repo: Repository, epoch: int) -> GcRecord:
    """The record of a collection that is known to have begun."""
    known = repo.records.get(epoch)
    if known is not None:
        return known
    key = layout.record_key(epoch)
    try:
        found: GcRecord = decode(GcRecord, repo.objects.get(key), key)
    except ObjectNotFound as error:
        raise Corrupt(f"the collection record {key} is missing", details={"object": key}) from error
    repo.records[epoch] = found
    return found


def newest_record(repo: Repository) -> GcRecord | None:
    """The record of the latest collection, if any."""
    number = repo.objects.newest(layout.RECORDS, max(repo.records, default=0) - 1)
    return None if number is None else record(repo, number + 1)


def may_adopt(repo: Repository, record: GcRecord | None, chain: str, number: int) -> bool:
    """Whether no collection up to this one takes what a commit has: its branch, or the one it was forked from, is known
    to the record, and the record does not declare the commit there."""
    while record is not None and not pruned(record, chain, number):
        zero = repo.chains.expect(chain, 0) if chain not in record.floors else None
        if not isinstance(zero, Commit | Tombstone) or not zero.parents:
            return True
        chain, number, _ = layout.parse_commit_id(zero.parents[0])
    return record is None


def pruned(record: GcRecord | None, chain: str, number: int) -> bool:
    """Whether a collection has declared that this commit may be gone."""
    if record is None or (chain, number) in record.kept:
        return False
    return chain in record.dead or number < record.floors.get(chain, 0)
