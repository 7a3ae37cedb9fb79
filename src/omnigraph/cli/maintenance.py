"""Commands of maintenance: optimize, embed, cleanup, maintain, retention."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from omnigraph.cli.context import actor_of, branch_of, open_graph
from omnigraph.cli.exits import UsageError
from omnigraph.cli.options import (
    Branch,
    DryRun,
    Engine,
    Message,
    Show,
    Where,
    WriterOptions,
    Yes,
    examples,
    rust_shape,
)
from omnigraph.cli.output import Sheet, answer, note, print_sheet
from omnigraph.cli.progress import running, writing
from omnigraph.cli.removals import collected, consent, let_go, pruned, pruned_by_policy
from omnigraph.cli.shapes import maintenance, shaped
from omnigraph.wording import human_bytes

if TYPE_CHECKING:
    from omnigraph.core.records import MaintenanceAction, RetentionPolicy
    from omnigraph.graph import Graph
    from omnigraph.write.maintain import TableReport

DURATION = re.compile(r"(\d+(?:\.\d+)?)([smhdw]?)")
UNIT_DAYS = {"s": 1 / 86_400, "m": 1 / 1_440, "h": 1 / 24, "d": 1.0, "w": 7.0}


@examples("omnigraph optimize people", "omnigraph optimize --store people --branch draft --json")
@rust_shape
def optimize(
    where: Where,
    show: Show,
    writer: WriterOptions,
    branch: Branch = None,
    engine: Engine = "auto",
) -> None:
    """Compact tables and update indices; rows do not change."""
    graph, branch = open_graph(where), branch_of(branch)
    with writing(graph, branch, "optimize", writer, show):
        reports = graph.optimize(branch, engine=engine)
    columns = ["type", "rows", "fragments", "indexed", "words", "topology", "note"]
    rows = [_table_row(report) for report in reports]
    own = {"branch": branch, "tables": [report.to_json() for report in reports]}
    document = shaped(
        show,
        graph,
        own,
        lambda: maintenance.OptimizeOutput.of(reports, graph.uri, graph.snapshot(branch)),
    )
    print_sheet(show, Sheet(columns, rows, document=document), rows_max=0)


def _table_row(report: TableReport) -> list[Any]:
    fragments = f"{report.fragments_before} → {report.fragments_after}"
    topology = human_bytes(report.topology_bytes) if report.topology_bytes else ""
    words = human_bytes(report.text_bytes) if report.text_bytes else ""
    indexed = ", ".join(report.indexed)
    return [report.type, report.rows, fragments, indexed, words, topology, report.note or ""]


@examples("omnigraph embed people --dry-run", "omnigraph embed --store people --branch draft")
def embed(
    where: Where,
    show: Show,
    writer: WriterOptions,
    branch: Branch = None,
    types: Annotated[
        list[str] | None, Option("--type", help="Only this node type; repeatable.", metavar="TYPE")
    ] = None,
    property: Annotated[
        str | None, Option("--property", help="Only this property.", metavar="NAME")
    ] = None,
    every: Annotated[bool, Option("--all", help="Replace existing vectors, too.")] = False,
    message: Message = None,
    dry_run: DryRun = False,
) -> None:
    """Compute missing vectors of @embed properties.

    Each batch is a commit: run it again after an interruption, and it continues with the rest; only the texts of the
    interrupted batch may be sent again. A text that the provider refuses is counted and left without a vector. A dry
    run counts texts and characters without calling the provider.
    """
    graph, branch = open_graph(where), branch_of(branch)
    with writing(graph, branch, "embed", writer, show):
        reports = graph.embed(
            types or None,
            property,
            branch,
            every=every,
            dry_run=dry_run,
            message=message,
            actor=actor_of(writer.actor),
        )
    columns = ["type", "property", "rows", "texts", "characters", "commits", "refused"]
    rows = [list(report.to_json().values()) for report in reports]
    document = {"branch": branch, "dry_run": dry_run, "embedded": [r.to_json() for r in reports]}
    print_sheet(show, Sheet(columns, rows, document=document), rows_max=0)


@examples(
    "omnigraph cleanup people --dry-run",
    "omnigraph cleanup --store people --keep 5 --yes --json",
)
@rust_shape
def cleanup(
    where: Where,
    show: Show,
    writer: WriterOptions,
    keep: Annotated[int, Option("--keep", help="Commits to keep on each branch.")] = 10,
    older_than: Annotated[
        str | None,
        Option("--older-than", help="Only commits older than this: 7, 36h, 2w.", metavar="DAYS"),
    ] = None,
    ended_days: Annotated[
        float | None,
        Option(
            "--proposals", help="Also threads of proposals that ended before then.", metavar="DAYS"
        ),
    ] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Remove old history and unused files.

    The newest commits of each branch and all tagged commits stay readable. It shows what would be removed first, and
    asks for confirmation: --yes (or --confirm), or an answer on a terminal.
    """
    graph, days = open_graph(where), _days(older_than)
    if not dry_run:
        consent(yes, pruned, graph, keep, days, ended_days)
    leaves = "some old history is removed; everything to keep is intact"
    with running("cleanup", writer, quiet=show.quiet, leaves=leaves):
        done = graph.cleanup(keep, days, ended_days=ended_days, dry_run=dry_run)
    document = shaped(
        show, graph, asdict(done), lambda: maintenance.CleanupOutput.of(done, graph.uri, keep, days)
    )
    answer(show, collected(done), document)


def _days(given: str | None) -> float | None:
    """Days, from a number or a duration with its unit."""
    if given is None:
        return None
    found = DURATION.fullmatch(given.strip())
    if found is None:
        raise UsageError(
            f"--older-than takes days, or a number with s, m, h, d or w, not {given!r}"
        )
    return float(found[1]) * UNIT_DAYS[found[2] or "d"]


@examples("omnigraph maintain people --once", "omnigraph maintain --store people --status --json")
def maintain(
    where: Where,
    show: Show,
    writer: WriterOptions,
    once: Annotated[bool, Option("--once", help="Do what is due now, then exit.")] = False,
    every: Annotated[
        float, Option("--every", help="Time between checks.", metavar="SECONDS")
    ] = 30.0,
    status: Annotated[bool, Option("--status", help="Only show what was done.")] = False,
    yes: Yes = False,
) -> None:
    """Maintain a graph: compact and index tables, remove expired jobs, clean history by its retention policy.

    It runs until Ctrl-C and works while no other process, such as a server, maintains the graph. `omnigraph log
    --maintenance` shows its commits, --status everything it did. If the policy removes history, it reports how much
    and asks for confirmation first: --yes (or --confirm), or an answer on a terminal.
    """
    graph = open_graph(where)
    if not status:
        consent(yes, pruned_by_policy, graph)
    if status:
        _show_actions(show, graph.maintenance().actions)
    elif once:
        with running("maintain", writer, quiet=show.quiet, leaves="finished work is kept"):
            done = graph.maintain()
        _show_actions(show, done)
    else:
        _keep_maintaining(show, graph, every)


def _show_actions(show: Show, actions: Sequence[MaintenanceAction]) -> None:
    from omnigraph.model.instants import time_of

    columns = ["time", "kind", "branch", "detail", "seconds"]
    rows = [
        [
            time_of(action.time).isoformat(timespec="seconds"),
            action.kind,
            action.branch,
            action.detail,
            action.seconds,
        ]
        for action in actions
    ]
    documents = [dict(zip(columns, row, strict=True)) for row in rows]
    print_sheet(show, Sheet(columns, rows, document=documents), rows_max=0)


def _keep_maintaining(show: Show, graph: Graph, every: float) -> None:
    import logging
    import threading
    from contextlib import suppress

    if every < 1:
        raise UsageError("--every must be at least 1 second")
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.WARNING)
    logging.getLogger("omnigraph.maintenance").setLevel(logging.INFO)
    note(show, f"maintaining {graph.uri}; press Ctrl-C to stop")
    with suppress(KeyboardInterrupt), graph.upkeep(every):
        threading.Event().wait()


@examples(
    "omnigraph retention people",
    "omnigraph retention --store people --keep 1000 --days 30 --yes --json",
)
def retention(
    where: Where,
    show: Show,
    keep: Annotated[int | None, Option("--keep", help="Commits to keep on each branch.")] = None,
    days: Annotated[
        float | None, Option("--days", help="Keep younger commits, too.", metavar="DAYS")
    ] = None,
    every: Annotated[
        float, Option("--every-hours", help="Hours between cleanups.", metavar="HOURS")
    ] = 1.0,
    keep_all: Annotated[bool, Option("--keep-all", help="Remove no history.")] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Show or set how much history maintenance keeps; by default all of it.

    Setting it asks for confirmation: --yes (or --confirm), or an answer on a terminal.
    """
    graph = open_graph(where)
    if keep_all and keep is not None:
        raise UsageError("--keep and --keep-all exclude each other")
    if days is not None and keep is None:
        raise UsageError("--days needs --keep: the newest commits to keep whatever their age")
    if keep is not None and not dry_run:
        consent(yes, let_go, graph, keep, days)
    if keep_all or keep is not None:
        policy = graph.set_retention(keep, days, every, actor=actor_of(None), dry_run=dry_run)
    else:
        policy = graph.retention()
    answer(show, _policy_text(policy), _policy_document(policy))


def _policy_text(policy: RetentionPolicy | None) -> str:
    if policy is None:
        return "all history is kept"
    younger = "" if policy.days is None else f", and all younger than {policy.days:g} days"
    often = f"every {policy.every_hours:g} hours"
    return f"the newest {policy.keep:,} commits of each branch are kept{younger}; cleaned {often}"


def _policy_document(policy: RetentionPolicy | None) -> dict[str, Any]:
    if policy is None:
        return {"keep": None}
    return {"keep": policy.keep, "days": policy.days, "every_hours": policy.every_hours}
