"""The times of commits. On a chain they only grow, so that a point in time is found by a binary search.

One writer whose clock is years ahead would therefore move all later commits there, too. No writer knows whose clock is
right; but one that finds a branch untouched for long asks the store for the time before it trusts its own clock.
"""

from __future__ import annotations

from contextlib import suppress

from omnigraph.core.repository import Repository
from omnigraph.errors import Kind, OmnigraphError, StoreError
from omnigraph.storage.objects import ObjectInfo

FOLDER = "_tmp/clock"
MICROS = 1_000_000


class ClockWrong(OmnigraphError):
    """The clock of this machine is far ahead of the store's.

    Times of commits only grow. A commit from the future would impose its time on all later commits, by any writer.
    """

    code, kind = "clock_wrong", Kind.INVALID
    default_help = "Nothing was changed. Correct the clock of this machine, then try again."


def commit_time(repo: Repository, parent: int) -> int:
    """The time of a commit after one of this time: now, but always later than it."""
    now = repo.clock.now()
    skew = repo.limits.clock_skew_seconds_max * MICROS
    if now - parent > skew:
        _check(repo, now, skew)
    return max(now, parent + 1)


def _check(repo: Repository, now: int, skew: int) -> None:
    store_time = _store_time(repo)
    if store_time is not None and now - store_time > skew:
        days = (now - store_time) // (86_400 * MICROS)
        raise ClockWrong(
            f"the clock of this machine is {days} days ahead of the store {repo.objects.uri}",
            details={"ahead_seconds": (now - store_time) // MICROS},
        )


def _store_time(repo: Repository) -> int | None:
    """When the store says a new object was written; None if it does not say."""
    folder = f"{FOLDER}/{repo.clock.fresh_id()}"
    key = f"{folder}/now"
    found: list[ObjectInfo] = []
    with suppress(StoreError):
        repo.objects.put(key, b"")
        found = list(repo.objects.list(folder))
        repo.objects.delete([key])
    return int(found[0].modified.timestamp() * MICROS) if found else None
