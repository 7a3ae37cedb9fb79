"""Work a server goes on with alone: asked about, waited for, called off; and the files an export left."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from omnigraph.errors import Cancelled, Corrupt, Kind, OmnigraphError
from omnigraph.read.export import MANIFEST, Exported, Part
from omnigraph.remote.shapes import EPOCH
from omnigraph.remote.transport import Answer, Asked, Told, Transport, failure_of, segment
from omnigraph.storage import metrics
from omnigraph.write.input.files import expand, size_of

UNFINISHED = ("waiting", "running")
PAUSE_FIRST_SECONDS = 0.05
PAUSE_MAX_SECONDS = 2.0
CHUNK_BYTES = 1 << 20
Progress = Callable[[str, int, int], None]  # phase, done, total


class JobLost(OmnigraphError):
    """The server ended before the job did; nothing half is visible."""

    code, kind = "job_lost", Kind.UNKNOWN_OUTCOME
    default_help = (
        "Start it again. Under the same idempotency key a load happens once, "
        "whether or not it had been published."
    )


@dataclass(frozen=True, slots=True)
class Job:
    """A load or an export of a server, as it was when it was last asked about."""

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
    told: Mapping[str, Any] = field(repr=False)  # everything the server said
    http: Transport = field(repr=False, compare=False)

    @property
    def is_finished(self) -> bool:
        return self.status not in UNFINISHED

    @property
    def result(self) -> Any:
        """What came of it; none while it is not done."""
        return self.told.get("result")

    @property
    def error(self) -> OmnigraphError | None:
        """Why it came to nothing; none where it did not."""
        match self.status:
            case "failed":
                return failure_of(msgspec.convert(self.told["error"], Told), 500)
            case "cancelled":
                return Cancelled("the job was cancelled; nothing was published")
            case "lost":
                return JobLost(f"the job {self.id} was lost", help=self.told.get("hint"))
            case _:
                return None

    def asked_again(self) -> Job:
        """The same job as it is now."""
        return job(self.http, self.id)

    def cancel(self) -> Job:
        """Call it off; it stops at its next step. One that is over stays as it is."""
        told = self.http.json("DELETE", f"/jobs/{segment(self.id)}", safe=True)
        return job_of(self.http, told)

    def wait(self, timeout: float | None = None, progress: Progress | None = None) -> Job:
        """The job once it is over, or as it is after `timeout` seconds; raises why it came to nothing."""
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
        return dict(self.told)


def job_of(http: Transport, told: Mapping[str, Any]) -> Job:
    """A job as a server tells it."""
    progress = told["progress"]
    return Job(
        id=told["job_id"],
        kind=told["kind"],
        status=told["status"],
        branch=told["branch"],
        actor=told["actor_id"],
        created=EPOCH + timedelta(microseconds=told["created_at"]),
        phase=progress["phase"],
        done=progress["done"],
        total=progress["total"],
        commit=told["graph_commit_id"],
        told=told,
        http=http,
    )


def job(http: Transport, id: str) -> Job:
    """One job by its id."""
    return job_of(http, http.json("GET", f"/jobs/{segment(id)}", safe=True))


def jobs(http: Transport) -> list[Job]:
    """The caller's jobs, newest first; of everybody's, for whoever may administer the graph."""
    return [job_of(http, told) for told in http.json("GET", "/jobs", safe=True)["jobs"]]


# --- loads -------------------------------------------------------------------------------------------------------


def bytes_in(source: Any) -> int:
    """How many bytes the files hold that a load names; 0 where it names none."""
    match source:
        case str() | os.PathLike():
            return sum(size_of(file) for file in expand(source))
        case list() | tuple():
            return sum(bytes_in(item) for item in source if isinstance(item, str | os.PathLike))
        case _:
            return 0


def settled(http: Transport, told: Mapping[str, Any]) -> Mapping[str, Any]:
    """The answer to a load, waited for where it became a job."""
    if "job_id" not in told:
        return told
    result: Mapping[str, Any] = job_of(http, told).wait(progress=_say).result
    return result


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
    """Let the server write the parts, which holds the state until it has, and fetch them."""
    content = {"at": commit, "types": types, "format": format}
    begun = job_of(http, http.json("POST", "/exports", content))
    done = begun.wait(progress=_say)
    folder = Path(dest)
    folder.mkdir(parents=True, exist_ok=True)
    parts = tuple(_fetched(http, done.id, part, folder) for part in done.told["parts"])
    exported = Exported(commit, format, parts)
    (folder / MANIFEST).write_bytes(msgspec.json.format(msgspec.json.encode(exported), indent=2))
    return exported


def _fetched(http: Transport, job: str, part: Mapping[str, Any], folder: Path) -> Part:
    """One part, under its name once it is whole and what the server said it would be."""
    name = Path(part["name"]).name
    partial = folder / f".{name}.partial"
    asked = Asked("GET", f"/exports/{segment(job)}/parts/{segment(part['name'])}", safe=True)
    size, digest = http.send(asked, lambda answer: saved(answer, partial))
    if digest != part["sha256"]:
        partial.unlink()
        raise Corrupt(f"the part {name} is not what the server wrote", details={"part": name})
    os.replace(partial, folder / name)
    return Part(name, part["type_name"], part["rows"], size, digest)


def saved(answer: Answer, path: Path) -> tuple[int, str]:
    """The size and the digest of an answer, which is now in a file."""
    size, digest = 0, hashlib.sha256()
    with path.open("wb") as file:
        for block in answer.stream(CHUNK_BYTES):
            file.write(block)
            digest.update(block)
            size += len(block)
    return size, digest.hexdigest()
