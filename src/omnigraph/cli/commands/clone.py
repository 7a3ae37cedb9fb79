"""`omnigraph clone`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from typer import Argument, Option

from omnigraph.cli.app import Verb
from omnigraph.cli.commits import human_bytes
from omnigraph.cli.context import open_graph
from omnigraph.cli.interrupt import leaving
from omnigraph.cli.options import Show, Where, Writer
from omnigraph.cli.output import answer
from omnigraph.cli.progress import telling


def clone(
    dest: Annotated[str, Argument(help="Where the copy shall live.", metavar="DEST")],
    where: Where,
    show: Show,
    writer: Writer,
    branch: Annotated[
        str | None, Option("--branch", "-b", help="Only this branch, as its main.", metavar="B")
    ] = None,
) -> None:
    """Copy a graph, or one branch of it, to another place."""
    graph = open_graph(where)
    left = f"the copy in {dest} is not complete; remove it before trying again"
    with leaving(left), telling("clone", writer.progress, quiet=show.quiet):
        done = graph.clone(dest, branch)
    said = f"cloned {graph.uri} to {dest}: {done.rows:,} rows, {human_bytes(done.bytes)}"
    answer(show, said, asdict(done))


COMMAND = Verb(
    clone,
    (
        "omnigraph clone copy --store people",
        "omnigraph clone draft-copy --store people --branch draft --json",
    ),
)
