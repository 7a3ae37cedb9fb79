"""Commands about a graph as a whole: init, import-rust, clone, doctor, upgrade, version."""

from __future__ import annotations

import sys
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from omnigraph.cli.context import (
    actor_of,
    address,
    errors_in,
    open_graph,
    read_text,
)
from omnigraph.cli.exits import FAILURE, OK
from omnigraph.cli.options import Show, Where, WriterOptions, examples
from omnigraph.cli.output import Sheet, answer, coloured_error, note, print_sheet
from omnigraph.cli.progress import reporting, running
from omnigraph.wording import counted, human_bytes

if TYPE_CHECKING:
    from omnigraph.maintenance.doctor import Finding


@examples(
    "omnigraph init --schema people.pg new-graph",
    "omnigraph init --schema people.pg --json other-graph",
)
def init(
    where: Where,
    schema: Annotated[str, Option("--schema", help="Schema file.", metavar="S.pg")],
    show: Show,
    writer: WriterOptions,
) -> None:
    """Create a graph.

    The address is a path, s3://bucket/prefix or memory://name, and must be empty.
    """
    from omnigraph.lang.source import Source
    from omnigraph.opening import SchemaWarning
    from omnigraph.opening import init as create

    text, uri = read_text(schema), address(where)
    with errors_in(Source(text, Path(schema).name)), warnings.catch_warnings(record=True) as odd:
        warnings.simplefilter("always", SchemaWarning)
        graph = create(uri, text, actor=actor_of(writer.actor))
    for warning in odd:
        print(coloured_error(str(warning.message)), file=sys.stderr)
    commit = graph.log(limit=1)
    document = {"uri": uri, "commit": commit[0].to_json() if commit else None}
    answer(show, f"initialized {uri}", document)
    note(show, f"next: omnigraph load --store {uri} --data FILE.jsonl")


@examples(
    "omnigraph import-rust old.omni people",
    "omnigraph import-rust s3://bucket/old people --branch review --json",
)
def import_rust(
    source: Annotated[str, Argument(help="Graph folder to read.", metavar="SOURCE")],
    dest: Annotated[str, Argument(help="Where to create the graph.", metavar="DEST")],
    show: Show,
    writer: WriterOptions,
    branch: Annotated[
        list[str] | None,
        Option("--branch", "-b", help="Only main and this branch; repeatable.", metavar="B"),
    ] = None,
) -> None:
    """Import a graph folder of the omnigraph written in Rust.

    Its newest state becomes a new graph: main, and every branch by its name, with ids, blobs and vectors, without
    history. The folder is only read; stop its writers first. If a folder cannot be read, the error explains how to use
    an export instead.
    """
    from omnigraph.importing import import_rust as take_over

    leaves = f"the graph in {dest} is incomplete; remove it before trying again"
    with running("import-rust", writer, quiet=show.quiet, leaves=leaves):
        done = take_over(
            source,
            dest,
            branches=branch,
            actor=actor_of(writer.actor),
            report=lambda text: note(show, text),
        )
    lines = [
        f"{name}: {counted(sum(rows.values()), 'row')} of {counted(len(rows), 'type')}"
        for name, rows in done.rows.items()
    ]
    answer(show, "\n".join([f"imported {source} to {dest}", *lines]), done.to_json())


@examples(
    "omnigraph clone people copy",
    "omnigraph clone draft-copy --store people --branch draft --json",
)
def clone(
    dest: Annotated[str, Argument(help="Where to put the copy.", metavar="DEST")],
    where: Where,
    show: Show,
    writer: WriterOptions,
    branch: Annotated[
        str | None, Option("--branch", "-b", help="Only this branch, as main.", metavar="B")
    ] = None,
) -> None:
    """Copy a graph, or one branch of it, to another place."""
    graph = open_graph(where)
    leaves = f"the copy in {dest} is incomplete; remove it before trying again"
    with running("clone", writer, quiet=show.quiet, leaves=leaves):
        done = graph.clone(dest, branch)
    text = f"cloned {graph.uri} to {dest}: {counted(done.rows, 'row')}, {human_bytes(done.bytes)}"
    answer(show, text, asdict(done))


@examples("omnigraph doctor people", "omnigraph doctor --store people --json")
def doctor(
    where: Where,
    show: Show,
    writer: WriterOptions,
    deep: Annotated[bool, Option("--deep", help="Read all data.")] = False,
    install: Annotated[
        bool, Option("--install", help="Check what is installed instead of a graph.")
    ] = False,
) -> int:
    """Check the integrity of a graph: names, history, tables, files and store; changes nothing.

    The exit code is 1 if it finds a problem. With --install it needs no graph: it lists the installed parts of
    omnigraph, the purpose of each, and how to get the missing ones.
    """
    if install:
        from omnigraph.cli.installed import parts

        rows = [[part.name, part.found or "missing", part.purpose, part.how] for part in parts()]
        print_sheet(show, Sheet(["part", "found", "for", "how to get it"], rows), rows_max=0)
        return OK
    graph = open_graph(where)
    with reporting("doctor", writer.progress, quiet=show.quiet):
        found = graph.doctor(deep)
    lines = [line for finding in found.findings for line in _finding_lines(finding)]
    lines.append(
        f"{counted(len(found.checked), 'check')}, {counted(len(found.findings), 'finding')}"
    )
    answer(show, "\n".join(lines), found.to_json())
    return OK if found.healthy else FAILURE


def _finding_lines(finding: Finding) -> list[str]:
    return [f"{finding.severity}[{finding.check}]: {finding.message}", f"  = help: {finding.fix}"]


@examples("omnigraph upgrade people", "omnigraph upgrade --store people --json")
def upgrade(
    where: Where,
    show: Show,
    check: Annotated[bool, Option("--check", help="Only report what would be done.")] = False,  # noqa: ARG001
) -> None:
    """Upgrade a graph to the newest storage format.

    There is only one format so far: every graph that opens is up to date.
    """
    graph = open_graph(where)
    text = f"{graph.uri} has the newest storage format: nothing to do"
    answer(show, text, {"uri": graph.uri, "upgraded": False})


@examples("omnigraph version", "omnigraph version --json")
def version(show: Show) -> None:
    """Print the version."""
    import omnigraph

    answer(show, f"omnigraph {omnigraph.__version__}", {"version": omnigraph.__version__})
