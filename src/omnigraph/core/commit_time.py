"""The times of commits. On a chain they only grow, so that a point in time is found by a binary search.

One writer whose clock is years ahead would therefore move all later commits there, too. No writer can tell by itself
whose clock is right; but whoever finds a branch long untouched asks the store for the time before it believes that.
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

    Times of commits only grow. A commit from the future would give its time to all that follow, whoever makes them.
    """

    code, kind = "clock_wrong", Kind.INVALID
    default_help = "Nothing was changed. Set the clock of this machine right, then try again."


def commit_time(repo: Repository, parent: int) -> int:
    """The time of a commit after one of this time: now, and later than it in any case."""
    now = repo.clock.now()
    skew = repo.limits.clock_skew_seconds_max * MICROS
    if now - parent > skew:
        _check(repo, now, skew)
    return max(now, parent + 1)


def _check(repo: Repository, now: int, skew: int) -> None:
    told = _time_of_the_store(repo)
    if told is not None and now - told > skew:
        days = (now - told) // (86_400 * MICROS)
        raise ClockWrong(
            f"the clock of this machine is {days} days ahead of the store {repo.objects.uri}",
            details={"ahead_seconds": (now - told) // MICROS},
        )


def _time_of_the_store(repo: Repository) -> int | None:
    """When the store says a new object was written; none if it does not say."""
    folder = f"{FOLDER}/{repo.clock.fresh_id()}"
    key = f"{folder}/now"
    found: list[ObjectInfo] = []
    with suppress(StoreError):
        repo.objects.put(key, b"")
        found = list(repo.objects.list(folder))
        repo.objects.delete([key])
    return int(found[0].modified.timestamp() * MICROS) if found else None
