"""Work that outlives its request: it runs in threads of its own, tells how far it is, and can be called off.

What is known of a job is kept in the graph's store (see `core/jobs`), so that a job can be asked about after a restart
and at another server. The work itself is not kept: a job whose process dies is lost, and says so.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec

from omnigraph.core import jobs as stored
from omnigraph.core.jobs import JobRecord
from omnigraph.core.repository import Repository
from omnigraph.errors import Cancelled, Kind, OmnigraphError
from omnigraph.server.access import ANONYMOUS
from omnigraph.server.errors import body_of
from omnigraph.server.limits import check_share
from omnigraph.server.settings import Bounds
from omnigraph.server.turns import Turns

TOLD_SECONDS = 1.0  # progress is written at most so often
SEEN_SECONDS = 10.0  # and at least so often
log = logging.getLogger("omnigraph.server.jobs")


class JobNotFound(OmnigraphError):
    """There is no such job, or it is somebody else's."""

    code, kind = "job_not_found", Kind.NOT_FOUND
    default_help = "`GET /graphs/{id}/jobs` lists your jobs."


class JobExpired(OmnigraphError):
    """What the job made is not kept any longer."""

    code, kind = "job_expired", Kind.NOT_FOUND
    default_help = "Start another export."


class Job:
    """A job of this process. Its record changes as the work goes on."""

    def __init__(self, repo: Repository, record: JobRecord) -> None:
        self.repo = repo
        self.record = record
        self.cancelled = threading.Event()
        self._lock = threading.Lock()
        self._told = 0.0

    def progress(self, phase: str, done: int, total: int) -> None:
        """Say how far the work is; raises where somebody called it off."""
        self.check()
        late = phase != self.record.phase or time.monotonic() - self._told > TOLD_SECONDS
        self.update(late, phase=phase, done=done, total=total)

    def check(self) -> None:
        if self.cancelled.is_set():
            raise Cancelled("the job was cancelled; nothing was published")

    def update(self, written: bool = True, **changed: Any) -> None:
        with self._lock:
            seen = self.repo.world.now()
            self.record = msgspec.structs.replace(self.record, seen=seen, **changed)
            if written:
                self._told = time.monotonic()
                stored.save_job(self.repo, self.record)

    def still_here(self) -> None:
        """Say that the work goes on, where nothing was said for a while."""
        if not self.record.is_finished and time.monotonic() - self._told > SEEN_SECONDS:
            self.update()


class Jobs:
    """The jobs of a server."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._pool = Turns(bounds.jobs_running_max, "omnigraph-job")
        self._lock = threading.Lock()
        self._mine: dict[str, Job] = {}
        self._closed = threading.Event()
        self._speaker: threading.Thread | None = None

    def start(self, repo: Repository, record: JobRecord, work: Callable[[Job], Any]) -> JobRecord:
        """Queue work; what it returns becomes the result of the job."""
        job = Job(repo, record)
        with self._lock:
            held = Counter(_owner(other) for other in self._mine.values())
            check_share("jobs_max", self._bounds.jobs_max, held, record.actor)
            self._mine[record.job] = job
            self._speak()
        try:
            job.update()
            self._pool.of(record.actor).submit(self._run, job, work)
        except BaseException:
            self._forget(job)
            raise
        return job.record

    def find(self, repo: Repository, id: str) -> JobRecord | None:
        """What is known of a job, wherever it runs or ran."""
        mine = self._mine.get(id)
        return mine.record if mine is not None else stored.load_job(repo, id)

    def cancel(self, repo: Repository, id: str) -> JobRecord | None:
        """Call a job off. What runs stops at its next step; what is over stays as it is."""
        mine = self._mine.get(id)
        if mine is not None:
            mine.cancelled.set()
        return self.find(repo, id)

    def close(self) -> None:
        """Call everything off, and wait until nothing runs any more."""
        self._closed.set()
        for job in list(self._mine.values()):
            job.cancelled.set()
        self._pool.shutdown()
        if self._speaker is not None:
            self._speaker.join()

    # --- running -------------------------------------------------------------------------------------------------

    def _run(self, job: Job, work: Callable[[Job], Any]) -> None:
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
            self._forget(job)

    def _failed(self, job: Job, status: str, error: OmnigraphError) -> None:
        with suppress(OmnigraphError):  # a store that is gone cannot be told; the job will be lost
            job.update(status=status, error=_plain(body_of(error)))

    def _forget(self, job: Job) -> None:
        with self._lock:
            self._mine.pop(job.record.job, None)

    # --- saying that the work goes on ------------------------------------------------------------------------------

    def _speak(self) -> None:
        if self._speaker is None:
            self._speaker = threading.Thread(
                target=self._speaking, name="omnigraph-jobs", daemon=True
            )
            self._speaker.start()

    def _speaking(self) -> None:
        while not self._closed.wait(SEEN_SECONDS / 2):
            for job in list(self._mine.values()):
                with suppress(OmnigraphError):
                    job.still_here()


def _owner(job: Job) -> str:
    return job.record.actor or ANONYMOUS


def _plain(value: Any) -> Any:
    """A value as JSON will show it."""
    return msgspec.json.decode(msgspec.json.encode(value, enc_hook=str))
