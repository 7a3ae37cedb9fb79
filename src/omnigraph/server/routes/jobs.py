"""Long work outside requests: exports whose parts are fetched later, loads in the background, and their results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import IO, Any, cast

import msgspec
from msgspec import UNSET

from omnigraph.core import layout
from omnigraph.core.repository import Repository
from omnigraph.core.snapshot import Snapshot
from omnigraph.errors import OptionInvalid
from omnigraph.maintenance import jobs as stored
from omnigraph.maintenance.jobs import JobRecord
from omnigraph.model.catalog import NodeOrEdgeType
from omnigraph.policy.guard import Need
from omnigraph.policy.questions import Action
from omnigraph.read.export import export_parts
from omnigraph.server.jobs import JobExpired, JobNotFound, Jobs, RunningJob
from omnigraph.server.request import BYTES, Answer, HttpCall
from omnigraph.server.routes.exports import chosen
from omnigraph.server.routes.reading import BLOCK_BYTES
from omnigraph.storage.objects import LargeObjects
from omnigraph.wire.contracts import COMMIT_HEADER
from omnigraph.wire.jobs import JobOutput, JobProgress, JobsOutput, PartOutput
from omnigraph.wire.requests import ExportJobRequest, LoadRequest

MICROS = 1_000_000
ACTIONS = {"export": Action.EXPORT, "load": Action.CHANGE}
HINTS = {
    "load": "The server ended before the load did; no partial load is visible. Send it again: with the same "
    "Idempotency-Key it happens once, whether or not it had been published.",
    "export": "The server ended before the export did. Start it again.",
}


def _jobs(call: HttpCall) -> Jobs:
    found: Jobs = call.state.jobs
    return found


def _repo(call: HttpCall) -> Repository:
    return call.unguarded.repository


def _accepted(call: HttpCall, record: JobRecord) -> Answer:
    """The response to work that has only begun."""
    folder = "exports" if record.kind == "export" else "jobs"
    place = f"/graphs/{call.graph_id}/{folder}/{record.job}"
    return Answer(_output(call, record), 202, headers={"Location": place}, commit=record.commit)


# --- starting ------------------------------------------------------------------------------------------------------


def start_export(call: HttpCall) -> Answer:
    """Start an export whose parts are fetched later; its commit is held until it is written."""
    request: ExportJobRequest = call.body
    snapshot, kinds = chosen(call, request.branch, request.at, request.types)
    record = _begun(
        call,
        "export",
        branch=snapshot.commit.branch if request.at is not None else request.branch or "main",
        types=tuple(kind.name for kind in kinds),
        commit=snapshot.commit_id,
        format=request.format,
    )
    kept = _ttl(call, request.ttl_seconds) * MICROS
    work = partial(_exported, snapshot=snapshot, kinds=kinds, kept=kept)
    stored.hold(_repo(call), snapshot, record.job)
    try:
        return _accepted(call, _jobs(call).start(_repo(call), record, work))
    except BaseException:
        stored.release(_repo(call), record.job)
        raise


def _ttl(call: HttpCall, wanted: int | None) -> int:
    most = call.bounds.export_ttl_seconds_max
    if wanted is not None and not 0 < wanted <= most:
        raise OptionInvalid(f"ttl_seconds must be 1 to {most}, not {wanted}")
    return wanted or min(call.bounds.export_ttl_seconds, most)


def _begun(call: HttpCall, kind: str, **facts: Any) -> JobRecord:
    clock = _repo(call).clock
    now = clock.now()
    return JobRecord(clock.fresh_id(), kind, call.actor, created=now, seen=now, **facts)


def _exported(
    job: RunningJob, snapshot: Snapshot, kinds: list[NodeOrEdgeType], kept: int
) -> dict[str, Any]:
    """Write the parts; an export that fails leaves none."""
    id, repo = job.record.job, job.repo
    try:
        parts = export_parts(
            repo, snapshot, id, str(job.record.format), kinds, partial(job.progress, "export")
        )
        shown = tuple(msgspec.to_builtins(part) for part in parts)
        job.update(parts=shown, expires=repo.clock.now() + kept)
        return {"rows": sum(part.rows for part in parts), "parts": len(parts)}
    except BaseException:
        stored.discard_parts(repo, id)
        raise
    finally:
        stored.release(repo, id)


def start_load(call: HttpCall, work: Callable[[HttpCall], Answer]) -> Answer:
    """Run a received load in the background."""
    request: LoadRequest = call.body
    record = _begun(call, "load", branch=request.branch or "main")

    def loaded(job: RunningJob) -> Any:
        call.job = job
        try:
            answer = work(call)
        finally:
            call.close()
        job.update(commit=answer.commit)
        return answer.content

    begun = _jobs(call).start(_repo(call), record, loaded)
    call.goes_on = True
    return _accepted(call, begun)


# --- reading -------------------------------------------------------------------------------------------------------


def list_jobs(call: HttpCall) -> Answer:
    """Your jobs, newest first; with the permission `admin`, those of all actors."""
    found = (record for record in stored.all_jobs(_repo(call)) if _is_visible(call, record))
    shown = [_output(call, _jobs(call).find(_repo(call), record.job) or record) for record in found]
    return Answer(JobsOutput(shown))


def _is_visible(call: HttpCall, record: JobRecord) -> bool:
    if call.guard is None:
        return True
    if record.actor != call.actor:
        return call.guard.allows(Need(Action.ADMIN))
    return call.guard.allows(_need(record))


def _need(record: JobRecord) -> Need:
    """An actor who may no longer do this kind of work does not see its jobs either."""
    types = frozenset(record.types)
    return Need(ACTIONS[record.kind], record.branch, types=types, instead=_no_job())


def _no_job() -> JobNotFound:
    return JobNotFound("job not found")


def job_needs(call: HttpCall) -> Iterable[Need]:
    record = _found(call)
    if call.guard is not None and record.actor != call.actor:
        yield Need(Action.ADMIN, instead=_no_job())
    else:
        yield _need(record)


def _found(call: HttpCall) -> JobRecord:
    id = call.path["job_id"]
    known = id.isascii() and id.isalnum() and len(id) <= 64
    record = _jobs(call).find(_repo(call), id) if known else None
    if record is None:
        raise _no_job()
    return record


def get_job(call: HttpCall) -> Answer:
    """The progress of a job, and its result."""
    record = _found(call)
    return Answer(_output(call, record), commit=record.commit)


def cancel_job(call: HttpCall) -> Answer:
    """Cancel a job; a finished one stays as it is."""
    record = _jobs(call).cancel(_repo(call), _found(call).job)
    if record is None:
        raise _no_job()
    return Answer(_output(call, record))


def get_export(call: HttpCall) -> Answer:
    """An export and its parts; 410 once they have expired."""
    record = _export(call)
    return Answer(_output(call, record), commit=record.commit)


def _export(call: HttpCall) -> JobRecord:
    record = _found(call)
    if record.kind != "export":
        raise _no_job()
    if record.status == stored.EXPIRED:
        raise JobExpired(f"the export {record.job} has expired")
    return record


def get_part(call: HttpCall) -> Answer:
    """One part of an export."""
    record = _export(call)
    part = next((p for p in record.parts if p["file"] == call.path["name"]), None)
    if part is None or record.status != stored.DONE:
        raise JobNotFound("export part not found")
    key = f"{layout.export_folder(record.job)}/{part['file']}"
    file = cast(LargeObjects, _repo(call).objects).stream(key)
    headers = {"Content-Length": str(part["bytes"]), COMMIT_HEADER: str(record.commit)}
    return Answer(media=BYTES, headers=headers, blocks=_blocks(file), commit=record.commit)


def _blocks(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        while block := file.read(BLOCK_BYTES):
            yield bytes(block)


# --- responses -----------------------------------------------------------------------------------------------------


def _output(call: HttpCall, record: JobRecord) -> JobOutput:
    is_export = record.kind == "export"
    return JobOutput(
        job_id=record.job,
        kind=record.kind,
        status=record.status,
        actor_id=record.actor,
        branch=record.branch,
        created_at=record.created,
        progress=JobProgress(record.phase, record.done, record.total),
        graph_commit_id=record.commit,
        format=record.format or UNSET,
        expires_at=record.expires or UNSET,
        parts=_parts(call, record) if is_export and record.status == stored.DONE else UNSET,
        result=record.result if record.result is not None else UNSET,
        error=record.error if record.error is not None else UNSET,
        hint=HINTS[record.kind] if record.status == stored.LOST else UNSET,
    )


def _parts(call: HttpCall, record: JobRecord) -> list[PartOutput]:
    return [_part(call, record, part) for part in record.parts]


def _part(call: HttpCall, record: JobRecord, part: dict[str, Any]) -> PartOutput:
    repo, name = _repo(call), part["file"]
    left = ((record.expires or 0) - repo.clock.now()) // MICROS
    seconds = max(1, min(left, call.bounds.signed_seconds_max))
    key = f"{layout.export_folder(record.job)}/{name}"
    signed = cast(LargeObjects, repo.objects).signed(key, seconds)
    own = f"/graphs/{call.graph_id}/exports/{record.job}/parts/{name}"
    facts = {field: part[field] for field in ("type_name", "rows", "bytes", "sha256")}
    return PartOutput(name=name, url=signed or own, presigned=signed is not None, **facts)
