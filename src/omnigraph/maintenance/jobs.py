"""Records of long-running jobs, kept in the store, so that every server can report their status.

A record is written by the process that does the work, which renews it regularly. A job that is no longer renewed is
lost: its work died with its process, and anything it published is complete.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec

from omnigraph.core import layout
from omnigraph.core.history import is_pruned_now, pruned_error
from omnigraph.core.leases import remove_plan, save_plan
from omnigraph.core.records import StoredPlan, Struct, encode, object_at
from omnigraph.core.repository import Repository
from omnigraph.core.snapshot import Snapshot
from omnigraph.errors import Corrupt, ObjectNotFound
from omnigraph.model.frozen import frozen
from omnigraph.storage import metrics

WAITING, RUNNING, DONE = "waiting", "running", "done"
FAILED, CANCELLED, LOST, EXPIRED = "failed", "cancelled", "lost", "expired"
UNFINISHED = (WAITING, RUNNING)
SILENT_MICROS_MAX = 60_000_000
FINISHED_KEPT_MICROS = 7 * 86_400_000_000  # how long the record of a finished job is kept
UPLOADS_KEPT_MICROS = 30 * 86_400_000_000


class JobRecord(Struct, frozen=True):
    """The record of a job."""

    job: str
    kind: str  # load or export
    actor: str | None
    created: int  # microseconds since 1970, as all times here
    seen: int  # when its process last worked on it
    status: str = WAITING
    branch: str = "main"
    types: tuple[str, ...] = ()
    phase: str = ""
    done: int = 0
    total: int = 0
    commit: str | None = None
    format: str | None = None
    expires: int | None = None
    parts: tuple[dict[str, Any], ...] = ()
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None

    @property
    def is_finished(self) -> bool:
        return self.status not in UNFINISHED


def save_job(repo: Repository, record: JobRecord) -> None:
    repo.objects.put(layout.job_key(record.job), encode(record))


def load_job(repo: Repository, job: str) -> JobRecord | None:
    """A record by its id, with its current status; None if there is no such job."""
    key = layout.job_key(job)
    found = object_at(repo.objects, JobRecord, key)
    if found is None:
        return None
    if found.job != job:  # finished jobs are deleted under this name
        raise Corrupt(f"the object {key} says it is job {found.job!r}", details={"object": key})
    return _judged(repo, found)


def all_jobs(repo: Repository) -> list[JobRecord]:
    """All jobs, newest first; expired ones are removed."""
    names = (info.key.rsplit("/", 1)[-1] for info in repo.objects.list(layout.JOBS))
    ids = (name.removesuffix(".json") for name in names if name.endswith(".json"))
    tasks = [partial(load_job, repo, id) for id in ids]
    found = metrics.parallel(tasks, repo.limits.read_threads_max)
    return sorted(filter(None, found), key=lambda job: job.created, reverse=True)


def ask_to_cancel(repo: Repository, job: str) -> None:
    """Request cancellation of a job from the process that runs it."""
    repo.objects.put(layout.job_cancel_key(job), b"")


def is_asked_to_cancel(repo: Repository, job: str) -> bool:
    try:
        repo.objects.get(layout.job_cancel_key(job))
    except ObjectNotFound:
        return False
    return True


def forget_cancel(repo: Repository, job: str) -> None:
    """Remove the cancellation request, once the job is over."""
    repo.objects.delete([layout.job_cancel_key(job)])


def _judged(repo: Repository, record: JobRecord) -> JobRecord | None:
    now = repo.clock.now()
    if not record.is_finished and now - record.seen > SILENT_MICROS_MAX:
        return _over(repo, record, LOST)
    if record.status == DONE and record.expires is not None and now >= record.expires:
        return _over(repo, record, EXPIRED)
    ended = max(record.expires or 0, record.seen)
    if record.is_finished and now - ended > FINISHED_KEPT_MICROS:
        repo.objects.delete([layout.job_key(record.job)])
        return None
    return record


@frozen
class Expired:
    """What had expired and was removed."""

    objects: int
    bytes: int


def expire(repo: Repository) -> Expired:
    """Remove parts of exports that expired or whose job is gone, records of jobs that ended long ago, and files
    uploaded for loading more than a month ago."""
    exports = list(repo.objects.list(layout.EXPORTS))  # before the jobs: each has a record first
    uploads = list(repo.objects.list(layout.UPLOADS))
    kept = {job.job for job in all_jobs(repo) if job.status != EXPIRED}
    doomed = [info for info in exports if info.key.split("/")[1] not in kept]
    horizon = repo.clock.now() - UPLOADS_KEPT_MICROS
    doomed += [info for info in uploads if info.modified.timestamp() * 1_000_000 < horizon]
    repo.objects.delete([info.key for info in doomed])
    return Expired(len(doomed), sum(info.size for info in doomed))


def _over(repo: Repository, record: JobRecord, status: str) -> JobRecord:
    """A job that was lost, or whose parts are no longer kept."""
    over = msgspec.structs.replace(record, status=status, seen=repo.clock.now(), parts=())
    forget_cancel(repo, record.job)
    if record.kind == "export":
        discard_parts(repo, record.job)
        release(repo, record.job)
    save_job(repo, over)
    return over


def discard_parts(repo: Repository, job: str) -> None:
    """Remove the parts of an export."""
    folder = layout.export_folder(job)
    repo.objects.delete([info.key for info in repo.objects.list(folder)])


# --- a state that must not be collected --------------------------------------------------------------------------


def hold(repo: Repository, snapshot: Snapshot, job: str) -> None:
    """Keep the files of a state from collection until `release`; raises if one has begun to remove them."""
    commit = snapshot.commit
    plan = StoredPlan(
        plan=_lease(job),
        operation_id=job,
        kind="export",
        branch=commit.branch,
        gc_epoch=commit.gc_epoch,
        created=repo.clock.now(),
        tables=tuple(sorted(entry.path for entry in commit.tables.values())),
    )
    save_plan(repo, plan)
    # A collection records what it may remove before it does: one that starts later sees the lease.
    if is_pruned_now(repo, commit):
        release(repo, job)
        raise pruned_error(snapshot.commit_id)


def release(repo: Repository, job: str) -> None:
    remove_plan(repo, _lease(job))


def _lease(job: str) -> str:
    return f"export-{job}"
