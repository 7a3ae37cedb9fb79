"""Work that outlives its request: it runs in separate threads, reports progress, and can be cancelled.

The record of a job is kept in the graph's store (see `core/jobs`), so that it can be read after a restart and from
another server. The work itself is not kept: a job whose process dies is lost, and its record says so.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec

from omnigraph.core.repository import Repository
from omnigraph.errors import Cancelled, Kind, OmnigraphError
from omnigraph.maintenance import jobs as stored
from omnigraph.maintenance.jobs import JobRecord
from omnigraph.server.counts import Counted
from omnigraph.server.errors import body_of
from omnigraph.server.limits import Admission, Gate, Holding
from omnigraph.server.threads import Turns

SAVED_SECONDS = 1.0  # progress is saved at most this often
SEEN_SECONDS = 10.0  # and at least this often
ASKED_SECONDS = 0.5  # between two checks whether another process was asked to cancel a job
log = logging.getLogger("omnigraph.server.jobs")


class JobNotFound(OmnigraphError):
    """The job does not exist, or belongs to another actor."""

    code, kind = "job_not_found", Kind.NOT_FOUND
    default_help = "`GET /graphs/{id}/jobs` lists your jobs."


class JobExpired(OmnigraphError):
    """The result of the job has expired."""

    code, kind = "job_expired", Kind.NOT_FOUND
    default_help = "Start another export."


class RunningJob:
    """A job of this process. Its record changes as the work goes on."""

    def __init__(self, repo: Repository, record: JobRecord, held: Holding) -> None:
        self.repo = repo
        self.held = held  # of the limits of its actor
        self.record = record
        self.cancelled = threading.Event()
        self.was_asked = False  # through the store
        self._lock = threading.Lock()
        self._saved = 0.0

    def progress(self, phase: str, done: int, total: int) -> None:
        """Report progress; raises once the job is cancelled."""
        self.check()
        late = phase != self.record.phase or time.monotonic() - self._saved > SAVED_SECONDS
        self.update(late, phase=phase, done=done, total=total)

    def check(self) -> None:
        if self.cancelled.is_set():
            raise Cancelled("the job was cancelled; nothing was published")

    def update(self, written: bool = True, **changed: Any) -> None:
        with self._lock:
            seen = self.repo.clock.now()
            self.record = msgspec.structs.replace(self.record, seen=seen, **changed)
            if written:
                self._saved = time.monotonic()
                stored.save_job(self.repo, self.record)

    def still_here(self) -> None:
        """Record that the work goes on, if nothing was recorded for a while."""
        if not self.record.is_finished and time.monotonic() - self._saved > SEEN_SECONDS:
            self.update()

    def look_if_cancelled(self) -> None:
        """Another process may have been asked to cancel the job."""
        if not self.cancelled.is_set() and stored.is_asked_to_cancel(self.repo, self.record.job):
            self.was_asked = True
            self.cancelled.set()


class Jobs:
    """The jobs of a server."""

    def __init__(self, admission: Admission) -> None:
        most = admission.bounds.jobs_running_max
        self._admission = admission
        gate = Gate(admission.counts, Counted.JOBS_RUNNING, most)
        self._pool = Turns(most, "omnigraph-job", gate)
        self._lock = threading.Lock()
        self._mine: dict[str, RunningJob] = {}
        self._closed = threading.Event()
        self._speaker: threading.Thread | None = None

    @property
    def is_busy(self) -> bool:
        return bool(self._mine)

    def start(
        self, repo: Repository, record: JobRecord, work: Callable[[RunningJob], Any]
    ) -> JobRecord:
        """Queue work; what it returns becomes the result of the job."""
        job = RunningJob(repo, record, Holding(self._admission, record.actor))
        job.held.slot("jobs_max")
        with self._lock:
            self._mine[record.job] = job
            self._speak()
        try:
            job.update()
            self._pool.submit(record.actor, lambda: self._run(job, work))
        except BaseException:
            self._forget(job)
            raise
        return job.record

    def find(self, repo: Repository, id: str) -> JobRecord | None:
        """The record of a job, wherever it runs or ran."""
        mine = self._mine.get(id)
        return mine.record if mine is not None else stored.load_job(repo, id)

    def cancel(self, repo: Repository, id: str) -> JobRecord | None:
        """Cancel a job. A running one stops at its next step; a finished one stays as it is."""
        mine = self._mine.get(id)
        if mine is not None:
            mine.cancelled.set()
            return mine.record
        found = stored.load_job(repo, id)
        if found is not None and not found.is_finished:  # it runs elsewhere
            stored.ask_to_cancel(repo, id)
        return found

    def close(self) -> None:
        """Cancel everything, and wait until nothing runs any more."""
        self._closed.set()
        for job in list(self._mine.values()):
            job.cancelled.set()
        self._pool.shutdown()
        if self._speaker is not None:
            self._speaker.join()

    # --- running -------------------------------------------------------------------------------------------------

    def _run(self, job: RunningJob, work: Callable[[RunningJob], Any]) -> None:
        try:
            job.check()
            job.update(status=stored.RUNNING)
            result = work(job)
            job.update(status=stored.DONE, result=_plain(result))
        except OmnigraphError as error:
            status = stored.CANCELLED if isinstance(error, Cancelled) else stored.FAILED
            self._failed(job, status, error)
        except Exception:
            log.exception("job %s failed", job.record.job)
            self._failed(job, stored.FAILED, OmnigraphError("internal error", help=""))
        finally:
            if job.was_asked:
                with suppress(OmnigraphError):
                    stored.forget_cancel(job.repo, job.record.job)
            self._forget(job)

    def _failed(self, job: RunningJob, status: str, error: OmnigraphError) -> None:
        with suppress(OmnigraphError):  # without the store, the job will be lost
            job.update(status=status, error=_plain(body_of(error)))

    def _forget(self, job: RunningJob) -> None:
        job.held.release()
        with self._lock:
            self._mine.pop(job.record.job, None)

    # --- heartbeats ------------------------------------------------------------------------------------------------

    def _speak(self) -> None:
        if self._speaker is None:
            self._speaker = threading.Thread(
                target=self._speaking, name="omnigraph-jobs", daemon=True
            )
            self._speaker.start()

    def _speaking(self) -> None:
        while not self._closed.wait(ASKED_SECONDS):
            for job in list(self._mine.values()):
                with suppress(OmnigraphError):
                    job.still_here()
                    job.look_if_cancelled()


def _plain(value: Any) -> Any:
    """A value as JSON shows it."""
    return msgspec.json.decode(msgspec.json.encode(value, enc_hook=str))
