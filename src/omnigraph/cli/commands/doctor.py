"""`omnigraph doctor`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from typer import Option

from omnigraph.cli.app import Verb
from omnigraph.cli.context import open_graph
from omnigraph.cli.exits import FAILURE, OK
from omnigraph.cli.options import Show, Uri, Where, Writer
from omnigraph.cli.output import answer
from omnigraph.cli.progress import telling

if TYPE_CHECKING:
    from omnigraph.core.doctor import Finding


def doctor(
    where: Where,
    show: Show,
    writer: Writer,
    uri: Uri = None,
    deep: Annotated[bool, Option("--deep", help="Read everything.")] = False,
) -> int:
    """Examine a graph: its names, chains, tables, files and store; nothing is changed.

    The exit code is 1 when something is wrong.
    """
    graph = open_graph(where, uri)
    with telling("doctor", writer.progress, quiet=show.quiet):
        found = graph.doctor(deep)
    lines = [line for finding in found.findings for line in _lines(finding)]
    lines.append(f"{len(found.checked)} checks, {len(found.findings)} findings")
    answer(show, "\n".join(lines), found.to_json())
    return OK if found.healthy else FAILURE


def _lines(finding: Finding) -> list[str]:
    return [f"{finding.severity}[{finding.check}]: {finding.message}", f"  = help: {finding.fix}"]


COMMAND = Verb(doctor, ("omnigraph doctor people", "omnigraph doctor --store people --json"))
