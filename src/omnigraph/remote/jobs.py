"""Background work of a server: polled, waited for, cancelled; and the files of an export."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import field
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from omnigraph.errors import Cancelled, Corrupt, Kind, OmnigraphError
from omnigraph.model.frozen import frozen
from omnigraph.model.instants import time_of
from omnigraph.read.export import Exported, ExportFolder, ExportPart
from omnigraph.remote.transport import (
    Answer,
    ErrorBody,
    HttpRequest,
    Transport,
    failure_of,
    segment,
)
from omnigraph.storage import metrics
from omnigraph.wire.answers import LoadOutput
from omnigraph.wire.jobs import JobOutput, JobsOutput, PartOutput
from omnigraph.write.input.files import expand, size_of

UNFINISHED = ("waiting", "running")
PAUSE_FIRST_SECONDS = 0.05
PAUSE_MAX_SECONDS = 2.0
CHUNK_BYTES = 1 << 20
Progress = Callable[[str, int, int], None]  # phase, done, total


class JobLost(OmnigraphError):
    """The server ended before the job did; no partial result is visible."""

    code, kind = "job_lost", Kind.UNKNOWN_OUTCOME
    default_help = (
        "Start it again. With the same idempotency key a load happens once, "
        "whether or not it had been published."
    )


@frozen
class Job:
    """A load or an export of a server, as last reported."""

    id: str
    kind: str  # load or export
    status: str  # waiting, running, done, failed, cancelled, lost or expired
    branch: str
    actor: str | None
    created: datetime
    phase: str
    done: int
    total: int
    commit: str | None
    answer: JobOutput = field(repr=False)  # the whole response
    http: Transport = field(repr=False, compare=False)

    @property
    def is_finished(self) -> bool:
        return self.status not in UNFINISHED

    @property
    def result(self) -> Any:
        """The result; None until the job is done."""
        return self.answer.result or None

    @property
    def error(self) -> OmnigraphError | None:
        """Why it failed; None if it did not."""
        match self.status:
            case "failed":
                return failure_of(msgspec.convert(self.answer.error, ErrorBody), 500)
            case "cancelled":
                return Cancelled("the job was cancelled; nothing was published")
            case "lost":
                return JobLost(f"the job {self.id} was lost", help=self.answer.hint or None)
            case _:
                return None

    def asked_again(self) -> Job:
        """The current state of the job."""
        return job(self.http, self.id)

    def cancel(self) -> Job:
        """Cancel it; it stops at its next step. A finished job stays as it is."""
        path = f"/jobs/{segment(self.id)}"
        return job_of(self.http, self.http.json(JobOutput, "DELETE", path, safe=True))

    def wait(self, timeout: float | None = None, progress: Progress | None = None) -> Job:
        """The job once it is finished, or after `timeout` seconds; raises its error if it failed."""
        until = None if timeout is None else time.monotonic() + timeout
        now, pause = self, PAUSE_FIRST_SECONDS
        while not now.is_finished and (until is None or time.monotonic() < until):
            if progress is not None:
                progress(now.phase, now.done, now.total)
            time.sleep(pause)
            now, pause = now.asked_again(), min(2 * pause, PAUSE_MAX_SECONDS)
        if now.error is not None:
            raise now.error
        return now

    def to_json(self) -> dict[str, Any]:
        found: dict[str, Any] = msgspec.to_builtins(self.answer)
        return found


def job_of(http: Transport, answer: JobOutput) -> Job:
    """A job as a server describes it."""
    return Job(
        id=answer.job_id,
        kind=answer.kind,
        status=answer.status,
        branch=answer.branch,
        actor=answer.actor_id,
        created=time_of(answer.created_at),
        phase=answer.progress.phase,
        done=answer.progress.done,
        total=answer.progress.total,
        commit=answer.graph_commit_id,
        answer=answer,
        http=http,
    )


def job(http: Transport, id: str) -> Job:
    """One job by its id."""
    return job_of(http, http.json(JobOutput, "GET", f"/jobs/{segment(id)}", safe=True))


def jobs(http: Transport) -> list[Job]:
    """The caller's jobs, newest first; with the permission `admin`, those of all actors."""
    found = http.json(JobsOutput, "GET", "/jobs", safe=True)
    return [job_of(http, answer) for answer in found.jobs]


# --- loads -------------------------------------------------------------------------------------------------------


def bytes_in(source: Any) -> int:
    """The total size of the files a load names; 0 if it names none."""
    match source:
        case str() | os.PathLike():
            return sum(size_of(file) for file in expand(source))
        case list() | tuple():
            return sum(bytes_in(item) for item in source if isinstance(item, str | os.PathLike))
        case _:
            return 0


def settled(http: Transport, answer: dict[str, Any]) -> LoadOutput:
    """The result of a load; waits for it if it became a job."""
    if "job_id" in answer:
        answer = job_of(http, msgspec.convert(answer, JobOutput)).wait(progress=_say).result
    return msgspec.convert(answer, LoadOutput)


def _say(phase: str, done: int, total: int) -> None:
    metrics.progress(phase, part=done / total if total else None)


# --- exports -----------------------------------------------------------------------------------------------------


def export_by_job(
    http: Transport,
    dest: str | os.PathLike[str],
    format: str,
    commit: str,
    types: Sequence[str] | None,
) -> Exported:
    """Have the server write the parts, holding the state until then, and fetch them."""
    content = {"at": commit, "types": types, "format": format}
    begun = job_of(http, http.json(JobOutput, "POST", "/exports", content))
    done = begun.wait(progress=_say)
    folder = ExportFolder.of(dest)
    parts = tuple(_fetched(http, done.id, part, folder) for part in done.answer.parts or ())
    return folder.finish(Exported(commit, format, parts))


def _fetched(http: Transport, job: str, part: PartOutput, folder: ExportFolder) -> ExportPart:
    """Fetch one part; it gets its name once it is complete and verified."""
    name = Path(part.name).name
    asked = HttpRequest("GET", f"/exports/{segment(job)}/parts/{segment(part.name)}", safe=True)
    with folder.file(name) as path:
        size, digest = http.send(asked, lambda answer: saved(answer, path))
        if digest != part.sha256:
            raise Corrupt(
                f"the part {name} differs from what the server wrote", details={"part": name}
            )
    return ExportPart(name, part.type_name, part.rows, size, digest)


def saved(answer: Answer, path: Path) -> tuple[int, str]:
    """Save a response to a file; returns its size and digest."""
    size, digest = 0, hashlib.sha256()
    with path.open("wb") as file:
        for block in answer.stream(CHUNK_BYTES):
            file.write(block)
            digest.update(block)
            size += len(block)
    return size, digest.hexdigest()
