"""`omnigraph jobs`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from omnigraph.cli.app import Group, Verb
from omnigraph.cli.context import address, open_graph
from omnigraph.cli.exits import UsageMistake
from omnigraph.cli.options import Show, Where
from omnigraph.cli.output import Sheet, answer, print_sheet
from omnigraph.drawing.history import ago

if TYPE_CHECKING:
    from omnigraph.remote.jobs import Job

JobId = Annotated[str, Argument(help="The job.", metavar="ID")]


def list_(where: Where, show: Show) -> None:
    """List your jobs on a server, newest first."""
    found: list[Job] = _served(where).jobs()
    rows = [[j.id, j.kind, j.status, j.branch, ago(j.created), _how_far(j)] for j in found]
    columns = ["job", "kind", "status", "branch", "when", "progress"]
    print_sheet(show, Sheet(columns, rows, document=[j.to_json() for j in found]))


def show_(
    id: JobId,
    where: Where,
    show: Show,
    wait: Annotated[bool, Option("--wait", help="Until it is over.")] = False,
) -> None:
    """Say how far a job is, and what came of it."""
    found: Job = _served(where).job(id)
    if wait:
        found = found.wait()
    answer(show, _sentence(found), found.to_json())


def cancel(id: JobId, where: Where, show: Show) -> None:
    """Call a job off; what it published already stays."""
    found: Job = _served(where).job(id).cancel()
    answer(show, _sentence(found), found.to_json())


def _served(where: Where) -> Any:
    if not address(where).startswith(("http://", "https://")):
        raise UsageMistake(
            "jobs are the work of a server", help="Name it with --server URL --graph ID."
        )
    return open_graph(where)


def _how_far(job: Job) -> str:
    return f"{job.phase} {job.done:,} of {job.total:,}".strip() if job.total else job.phase


def _sentence(job: Job) -> str:
    said = f"{job.kind} {job.id} on {job.branch}: {job.status}"
    far = "" if job.is_finished else _how_far(job)
    return ", ".join(part for part in (said, far, job.error.message if job.error else "") if part)


COMMAND = Group(
    "Look after the long work of a server.",
    (
        Verb(
            list_,
            (
                "omnigraph jobs list --server http://localhost:8080 --graph people",
                "omnigraph jobs list --server http://localhost:8080 --graph people --json",
            ),
        ),
        Verb(
            show_,
            (
                "omnigraph jobs show 01JZX3 --server http://localhost:8080 --graph people",
                "omnigraph jobs show 01JZX3 --server http://localhost:8080 --graph people --wait",
            ),
        ),
        Verb(
            cancel,
            (
                "omnigraph jobs cancel 01JZX3 --server http://localhost:8080 --graph people",
                "omnigraph jobs cancel 01JZX3 --server http://localhost:8080 --graph people --json",
            ),
        ),
    ),
)
