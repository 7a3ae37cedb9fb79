"""Results of checks, kept beside the commit they were run on: create-only objects `_checked/<chain>/<number>/<k>`.

Only the result of each check is kept, not the rows it found: a commit never changes, so running the check again shows
them, to those who may read them.
"""

from __future__ import annotations

from omnigraph.core import layout
from omnigraph.core.records import Commit, Struct, encode, object_at
from omnigraph.core.repository import Repository
from omnigraph.errors import ObjectExists, StoreOutcomeUnknown
from omnigraph.storage import metrics
from omnigraph.storage.objects import numbered

RUNS_READ_MAX = 10
RUNS_KEPT_MAX = 1_000  # of one commit


class StoredResult(Struct, frozen=True):
    """The result of one check."""

    name: str
    outcome: str
    severity: str
    message: str
    measure: str
    bound: str
    measured: float | None = None
    error: str | None = None


class StoredRun(Struct, frozen=True):
    """One run of checks on a commit."""

    operation_id: str
    commit: str
    before: str | None
    time: int
    actor: str | None
    results: tuple[StoredResult, ...]


def store_run(repo: Repository, commit: Commit, run: StoredRun) -> bool:
    """Store a run after the earlier ones; whether there was room for it."""
    folder = layout.checked_folder(commit.chain, commit.number)
    number = repo.objects.newest(folder)
    place = 0 if number is None else number + 1
    for attempt in range(repo.limits.publish_attempts_max):
        if place >= RUNS_KEPT_MAX:
            return False
        try:
            repo.objects.put_new(numbered(folder, place), encode(run))
            return True
        except ObjectExists:
            there = _read(repo, folder, place)
            if there is not None and there.operation_id == run.operation_id:
                return True  # the store's response was lost
            place += 1
        except StoreOutcomeUnknown:
            repo.back_off(attempt)
    return False


def stored_runs(repo: Repository, commit: Commit) -> list[StoredRun]:
    """The stored runs on a commit, newest first."""
    folder = layout.checked_folder(commit.chain, commit.number)
    last = repo.objects.newest(folder)
    if last is None:
        return []
    places = range(last, max(-1, last - RUNS_READ_MAX), -1)
    tasks = [lambda k=place: _read(repo, folder, k) for place in places]
    found = metrics.parallel(tasks, repo.limits.read_threads_max)
    return [run for run in found if run is not None]


def _read(repo: Repository, folder: str, place: int) -> StoredRun | None:
    return object_at(repo.objects, StoredRun, numbered(folder, place))
