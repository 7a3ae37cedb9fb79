"""Commands about a graph as a whole: init, clone, optimize, cleanup, doctor, upgrade, version."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from omnigraph.cli.commits import human_bytes
from omnigraph.cli.context import (
    actor_of,
    address,
    branch_of,
    confirm,
    errors_in,
    open_graph,
    read_text,
)
from omnigraph.cli.exits import FAILURE, OK
from omnigraph.cli.options import Branch, DryRun, Engine, Show, Uri, Where, Writer, examples
from omnigraph.cli.output import Sheet, answer, note, print_sheet
from omnigraph.cli.progress import reporting, running, writing

if TYPE_CHECKING:
    from omnigraph.core.doctor import Finding
    from omnigraph.core.gc import Collected
    from omnigraph.write.maintain import TableReport


@examples(
    "omnigraph init --schema people.pg new-graph",
    "omnigraph init --schema people.pg --json other-graph",
)
def init(
    uri: Annotated[str, Argument(help="Where to create the graph.", metavar="URI")],
    schema: Annotated[str, Option("--schema", help="Schema file.", metavar="S.pg")],
    show: Show,
    writer: Writer,
) -> None:
    """Create a graph.

    The address is a path, s3://bucket/prefix or memory://name, and must be empty.
    """
    from omnigraph.lang.source import Source
    from omnigraph.opening import init as create

    text = read_text(schema)
    with errors_in(Source(text, Path(schema).name)):
        graph = create(uri, text, actor=actor_of(writer.actor))
    commit = graph.log(limit=1)
    document = {"uri": uri, "commit": commit[0].to_json() if commit else None}
    answer(show, f"initialized {uri}", document)
    note(show, f"next: omnigraph load --store {uri} --data FILE.jsonl")


@examples(
    "omnigraph clone copy --store people",
    "omnigraph clone draft-copy --store people --branch draft --json",
)
def clone(
    dest: Annotated[str, Argument(help="Where to put the copy.", metavar="DEST")],
    where: Where,
    show: Show,
    writer: Writer,
    branch: Annotated[
        str | None, Option("--branch", "-b", help="Only this branch, as main.", metavar="B")
    ] = None,
) -> None:
    """Copy a graph, or one branch of it, to another place."""
    graph = open_graph(where)
    leaves = f"the copy in {dest} is incomplete; remove it before trying again"
    with running("clone", writer, quiet=show.quiet, leaves=leaves):
        done = graph.clone(dest, branch)
    text = f"cloned {graph.uri} to {dest}: {done.rows:,} rows, {human_bytes(done.bytes)}"
    answer(show, text, asdict(done))


@examples("omnigraph optimize people", "omnigraph optimize --store people --branch draft --json")
def optimize(
    where: Where,
    show: Show,
    writer: Writer,
    uri: Uri = None,
    branch: Branch = None,
    engine: Engine = "auto",
) -> None:
    """Compact tables and update indices; rows do not change."""
    graph, branch = open_graph(where, uri), branch_of(branch)
    with writing(graph, branch, "optimize", writer, show):
        reports = graph.optimize(branch, engine=engine)
    columns = ["type", "rows", "fragments", "indexed", "topology", "note"]
    rows = [_table_row(report) for report in reports]
    document = {"branch": branch, "tables": [report.to_json() for report in reports]}
    print_sheet(show, Sheet(columns, rows, document=document), rows_max=0)


def _table_row(report: TableReport) -> list[Any]:
    fragments = f"{report.fragments_before} → {report.fragments_after}"
    topology = human_bytes(report.topology_bytes) if report.topology_bytes else ""
    indexed = ", ".join(report.indexed)
    return [report.type, report.rows, fragments, indexed, topology, report.note or ""]


@examples(
    "omnigraph cleanup people --dry-run",
    "omnigraph cleanup --store people --keep 5 --yes --json",
)
def cleanup(
    where: Where,
    show: Show,
    writer: Writer,
    uri: Uri = None,
    keep: Annotated[int, Option("--keep", help="Commits to keep on each branch.")] = 10,
    older_than: Annotated[
        float | None, Option("--older-than", help="Only commits older than this.", metavar="DAYS")
    ] = None,
    dry_run: DryRun = False,
    yes: Annotated[
        bool, Option("--yes", "-y", "--confirm", help="Do not ask for confirmation.")
    ] = False,
) -> None:
    """Remove old history and unused files.

    The newest commits of each branch and all tagged commits stay readable. It shows what would be removed first, and
    asks for confirmation: --yes (or --confirm), or an answer on a terminal.
    """
    graph = open_graph(where, uri)
    if not dry_run and not yes:
        plan = graph.cleanup(keep, older_than, dry_run=True)
        place = address(where, uri)
        confirm(f"This {_removed(plan)} of {place} permanently. Continue?", yes=yes)
    leaves = "some old history is removed; everything to keep is still there"
    with running("cleanup", writer, quiet=show.quiet, leaves=leaves):
        done = graph.cleanup(keep, older_than, dry_run=dry_run)
    answer(show, _removed(done), asdict(done))


def _removed(done: Collected) -> str:
    verb = "would remove" if done.dry_run else "removed"
    objects = f"{done.objects_deleted:,} objects, {human_bytes(done.bytes_deleted)}"
    return f"{verb} {done.commits_pruned:,} commits, {objects}"


@examples("omnigraph doctor people", "omnigraph doctor --store people --json")
def doctor(
    where: Where,
    show: Show,
    writer: Writer,
    uri: Uri = None,
    deep: Annotated[bool, Option("--deep", help="Read all data.")] = False,
) -> int:
    """Check the integrity of a graph: names, history, tables, files and store; changes nothing.

    The exit code is 1 when something is wrong.
    """
    graph = open_graph(where, uri)
    with reporting("doctor", writer.progress, quiet=show.quiet):
        found = graph.doctor(deep)
    lines = [line for finding in found.findings for line in _finding_lines(finding)]
    lines.append(f"{len(found.checked)} checks, {len(found.findings)} findings")
    answer(show, "\n".join(lines), found.to_json())
    return OK if found.healthy else FAILURE


def _finding_lines(finding: Finding) -> list[str]:
    return [f"{finding.severity}[{finding.check}]: {finding.message}", f"  = help: {finding.fix}"]


@examples("omnigraph upgrade people", "omnigraph upgrade --store people --json")
def upgrade(where: Where, show: Show, uri: Uri = None) -> None:
    """Upgrade a graph to the newest storage format.

    There is only one format so far: every graph that opens is up to date.
    """
    graph = open_graph(where, uri)
    text = f"{graph.uri} has the newest storage format: nothing to do"
    answer(show, text, {"uri": graph.uri, "upgraded": False})


@examples("omnigraph version", "omnigraph version --json")
def version(show: Show) -> None:
    """Print the version."""
    import omnigraph

    answer(show, f"omnigraph {omnigraph.__version__}", {"version": omnigraph.__version__})
