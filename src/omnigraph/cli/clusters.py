"""Commands about clusters: graphs, queries and policies that files describe."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from omnigraph.cli.commits import coloured, step_line
from omnigraph.cli.context import actor_of
from omnigraph.cli.exits import FAILURE, OK, USAGE, UsageError
from omnigraph.cli.options import Server, Show, Yes, examples
from omnigraph.cli.output import Sheet, answer, note, print_sheet, warn
from omnigraph.cli.removals import confirm
from omnigraph.model.instants import time_of
from omnigraph.wording import counted

if TYPE_CHECKING:
    from omnigraph.cluster.plan import Plan, PlannedChange
    from omnigraph.cluster.report import Status

Folder = Annotated[str, Option("--config", help="Folder with cluster.yaml.", metavar="DIR")]
SIGNS = {"create": "+", "adopt": "+", "update": "~", "delete": "-", "release": "-"}
DROPPED = "Dropped data remains in the history only"


@examples("omnigraph cluster validate", "omnigraph cluster validate --config . --json")
def validate_cluster(show: Show, folder: Folder = ".") -> int:
    """Check a folder: its cluster.yaml, schemas, queries and policies."""
    from omnigraph.cluster.files import read_folder
    from omnigraph.cluster.resources import ClusterInvalid

    try:
        wanted = read_folder(folder)
    except ClusterInvalid as error:
        problems = (error.details or {}).get("diagnostics")
        if problems is None:
            raise
        lines = [f"{p['path']}: {p['message']} [{p['code']}]" for p in problems]
        text = "\n".join([*lines, counted(len(lines), "problem")])
        answer(show, text, {"ok": False, "diagnostics": problems})
        return FAILURE
    addresses = sorted(wanted.resources)
    document = {"ok": True, "config_digest": wanted.digest, "resources": addresses}
    answer(show, f"valid: {counted(len(addresses), 'resource')}", document)
    return OK


@examples(
    "omnigraph cluster plan",
    "omnigraph cluster plan --config . --out next.plan --exit-code",
)
def plan_cluster(
    show: Show,
    folder: Folder = ".",
    out: Annotated[
        str | None, Option("--out", help="Save the plan to apply it later.", metavar="FILE")
    ] = None,
    exit_code: Annotated[
        bool, Option("--exit-code", help="Exit with 2 if there are changes.")
    ] = False,
    server: Server = None,
) -> int:
    """Show what applying a folder would change; changes nothing.

    With --server, the server of the cluster makes the plan, under its policy (`cluster_plan`).
    """
    from omnigraph.cluster.plan import save_plan

    if server is not None:
        return _plan_on(server, folder, show, out, exit_code)
    plan = _planned(folder)
    answer(show, "\n".join(_plan_lines(plan)), plan.to_json())
    if out is not None:
        Path(out).write_bytes(save_plan(plan))
        note(show, f"saved to {out}; apply it with `omnigraph cluster apply {out}`")
    if plan.blocked:
        return FAILURE
    return USAGE if exit_code and plan.changes else OK


@examples(
    "omnigraph cluster apply --yes",
    "omnigraph cluster apply --config . --yes --as ada --json",
)
def apply_cluster(
    show: Show,
    plan_file: Annotated[
        str | None, Argument(help="Plan that `cluster plan --out` saved.", metavar="[PLAN]")
    ] = None,
    folder: Folder = ".",
    delete: Annotated[
        list[str] | None,
        Option("--delete", help="Graph that may be deleted; repeatable.", metavar="NAME"),
    ] = None,
    yes: Yes = False,
    actor: Annotated[str | None, Option("--as", help="Actor who applies.", metavar="ACTOR")] = None,
    server: Server = None,
) -> int:
    """Make graphs, queries and policies match a folder.

    The plan is shown first and needs confirmation: --yes, or an answer on a terminal; a saved plan is applied without
    confirmation, exactly or not at all. Deleting a graph needs its name: --delete NAME. An interrupted apply is
    continued by the next one. With --server, the server of the cluster applies the plan, under its policy
    (`cluster_apply`); the actor is the owner of the token.
    """
    from omnigraph.cluster.apply import apply_plan
    from omnigraph.cluster.plan import read_plan

    if server is not None:
        if actor is not None:
            raise UsageError("on a server the actor is the owner of the token; omit --as")
        return _apply_on(server, folder, show, plan_file, delete or [], yes)
    if plan_file is None:
        plan = _planned(folder)
        note(show, "\n".join(_plan_lines(plan)))
        if plan.changes and not plan.blocked:
            confirm("Apply these changes?", yes=yes)
    else:
        plan = read_plan(_bytes(plan_file), plan_file)
    done = apply_plan(
        plan,
        delete=frozenset(delete or ()),
        actor=actor_of(actor),
        progress=lambda change: note(show, f"{change} …"),
    )
    if done is None:
        answer(show, "nothing to change", {"converged": True, "changes": []})
        return OK
    failed = [f"{address}: {why}" for address, why in done.revision.errors.items()]
    for line in failed:
        warn(line)
    made = counted(len(done.changes) - len(failed), "change")
    text = f"applied {made}: revision {done.revision.number}"
    answer(show, f"{text}, {len(failed)} failed" if failed else text, done.to_json())
    return FAILURE if failed else OK


@examples("omnigraph cluster status", "omnigraph cluster status --config . --json")
def cluster_status(show: Show, folder: Folder = ".") -> int:
    """Show what was applied, and where graphs differ from it; the exit code is 1 if they do."""
    from omnigraph.cluster.files import root_of
    from omnigraph.cluster.report import status

    found = status(root_of(folder))
    answer(show, "\n".join(_status_lines(found)), found.to_json())
    return FAILURE if found.drift or found.revision.state != "applied" else OK


@examples("omnigraph cluster history", "omnigraph cluster history --config . --json")
def cluster_history(show: Show, folder: Folder = ".") -> None:
    """List the revisions of a cluster, newest first."""
    import msgspec

    from omnigraph.cluster.files import root_of
    from omnigraph.cluster.ledger import Ledger
    from omnigraph.drawing.history import ago

    found = list(Ledger(root_of(folder)).history())
    rows = [
        [r.number, r.state, r.actor or "", ago(time_of(r.time)), ", ".join(r.changes)]
        for r in found
    ]
    columns = ["revision", "state", "actor", "when", "changes"]
    print_sheet(show, Sheet(columns, rows, document=[msgspec.to_builtins(r) for r in found]))


@examples("omnigraph cluster diff", "omnigraph cluster diff 0 1 --config .")
def diff_cluster(
    show: Show,
    first: Annotated[
        int | None, Argument(help="Revision (default: the newest).", metavar="[A]")
    ] = None,
    second: Annotated[
        int | None, Argument(help="Revision (default: the folder).", metavar="[B]")
    ] = None,
    folder: Folder = ".",
) -> None:
    """Show the texts that differ between two revisions, or between one and the folder."""
    from omnigraph.cluster.files import read_folder, root_of
    from omnigraph.cluster.ledger import Ledger
    from omnigraph.cluster.report import compare, newest_of

    ledger = Ledger(root_of(folder))
    old = newest_of(ledger) if first is None else _revision(ledger, first)
    wanted = read_folder(folder) if second is None else None
    new = wanted.resources if wanted else _revision(ledger, second or 0).resources
    lines = list(compare(ledger, old.resources, new, wanted))
    answer(show, "\n".join(map(coloured, lines)) or "no difference", {"diff": lines})


# --- through a server --------------------------------------------------------------------------------------------


def _ask(server: str, path: str, content: Any) -> dict[str, Any]:
    from omnigraph.cli.context import config
    from omnigraph.remote.transport import Transport

    found = Transport(config().servers.get(server, server), whole=True)
    answered: dict[str, Any] = found.json(dict[str, Any], "POST", path, content)
    return answered


def _plan_on(server: str, folder: str, show: Show, out: str | None, exit_code: bool) -> int:
    """A plan made by the server; it is saved as the folder's files and the digest of the plan."""
    from omnigraph.cluster.files import read_files

    files = read_files(folder)
    plan = _ask(server, "/cluster/plan", {"files": files})
    answer(show, "\n".join(_served_lines(plan)), plan)
    if out is not None:
        saved = {"server": server, "files": files, "plan": plan["plan"]}
        Path(out).write_text(json.dumps(saved), encoding="utf-8")
        note(
            show, f"saved to {out}; apply it with `omnigraph cluster apply {out} --server {server}`"
        )
    if not plan["supported"]:
        return FAILURE
    return USAGE if exit_code and plan["changes"] else OK


def _apply_on(
    server: str, folder: str, show: Show, plan_file: str | None, delete: list[str], yes: bool
) -> int:
    from omnigraph.cluster.files import read_files
    from omnigraph.cluster.plan import PlanInvalid

    if plan_file is None:
        request: dict[str, Any] = {"files": read_files(folder)}
        plan = _ask(server, "/cluster/plan", request)
        note(show, "\n".join(_served_lines(plan)))
        if plan["changes"] and plan["supported"]:
            confirm("Apply these changes?", yes=yes)
        request["plan"] = plan["plan"]
    else:
        try:
            saved = json.loads(_bytes(plan_file))
            request = {"files": saved["files"], "plan": saved["plan"]}
        except (ValueError, KeyError, TypeError) as error:
            raise PlanInvalid(f"{plan_file} is not a plan of a server") from error
    done = _ask(server, "/cluster/apply", {**request, "delete": delete})
    for address, why in done["errors"].items():
        warn(f"{address}: {why}")
    text = f"applied {counted(done['applied_count'], 'change')}: revision {done.get('revision')}"
    answer(show, text if done["changes"] else "nothing to change", done)
    return FAILURE if done["errors"] else OK


def _served_lines(plan: dict[str, Any]) -> Iterator[str]:
    from omnigraph.cluster.plan import PlannedChange

    for change in plan["changes"]:
        known = {name: value for name, value in change.items() if name != "drops"}
        yield from _change_lines(PlannedChange(**known))
    if not plan["changes"]:
        yield "no changes: the cluster is as the folder describes it"
    if plan["deletions"]:
        yield f"Deleting needs --delete {' --delete '.join(plan['deletions'])}"


def _revision(ledger: Any, number: int) -> Any:
    newest = ledger.number()
    if not 0 <= number <= newest:
        raise UsageError(f"unknown revision {number}: the newest is {newest}")
    return ledger.at(number)


def _planned(folder: str) -> Plan:
    from omnigraph.cluster.files import read_folder
    from omnigraph.cluster.plan import make_plan

    return make_plan(read_folder(folder))


def _bytes(file: str) -> bytes:
    from omnigraph.cli.context import FileUnreadable

    try:
        return sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise FileUnreadable(f"{file} cannot be read: {error}") from error


def _plan_lines(plan: Plan) -> Iterator[str]:
    for change in plan.changes:
        yield from _change_lines(change)
    if not plan.changes:
        yield "no changes: the cluster is as the folder describes it"
        return
    counts = {word: sum(c.operation == word for c in plan.changes) for word in SIGNS}
    yield ", ".join(f"{n} to {word}" for word, n in counts.items() if n)
    if any(change.drops for change in plan.changes):
        yield f"{DROPPED}."
    if plan.deletions:
        yield f"Deleting needs --delete {' --delete '.join(plan.deletions)}"


def _change_lines(change: PlannedChange) -> Iterator[str]:
    yield coloured(f"{SIGNS[change.operation]} {change.operation} {change.address}")
    for step in change.steps:
        yield coloured(f"    {step_line(step)}")
    if change.blocked:
        yield f"    cannot be done: {change.blocked}"


def _status_lines(found: Status) -> Iterator[str]:
    revision = found.revision
    resources = counted(len(revision.resources), "resource")
    yield f"revision {revision.number} ({revision.state}): {resources}"
    for address, why in revision.errors.items():
        yield f"  {address} failed: {why}"
    for address, why in found.drift.items():
        yield f"  {address}: {why}"
    if not found.drift:
        yield "the graphs are as they were applied"
