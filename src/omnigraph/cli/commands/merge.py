"""`omnigraph merge`."""

from __future__ import annotations

from typing import Annotated, Any

from typer import Argument, Option

from omnigraph.cli.app import Verb
from omnigraph.cli.commits import merge_text
from omnigraph.cli.context import actor_of, branch_of, open_graph
from omnigraph.cli.exits import EXIT_CODES, OK
from omnigraph.cli.options import Message, Show, Where, Writer
from omnigraph.cli.output import answer, note
from omnigraph.cli.progress import working
from omnigraph.errors import Kind

Into = Annotated[
    str | None, Option("--into", help="The branch to merge into; default main.", metavar="DST")
]

DryRun = Annotated[bool, Option("--dry-run", help="Only say what would happen.")]
Strategy = Annotated[
    str | None, Option("--strategy", help="Settle conflicts: ours or theirs.", metavar="SIDE")
]


def merge(
    source: Annotated[str, Argument(help="The branch to merge.", metavar="SRC")],
    where: Where,
    show: Show,
    writer: Writer,
    into: Into = None,
    dry_run: DryRun = False,
    message: Message = None,
    strategy: Strategy = None,
) -> int:
    """Merge a branch into another.

    A conflict changes nothing: it is listed with its three values, and the exit code is 4.
    """
    graph, into = open_graph(where), branch_of(into)
    options: dict[str, Any] = {"strategy": strategy} if strategy else {}
    with working(graph, into, "merge", writer, show):
        result = graph.merge(
            source, into, dry_run, message=message, actor=actor_of(writer.actor), **options
        )
    said = f"{'would merge' if dry_run else 'merged'} {source} into {into}"
    answer(show, merge_text(result, said), result.to_json())
    if dry_run:
        note(show, "nothing was changed")
    return EXIT_CODES[Kind.CONFLICT] if result.outcome == "conflict" else OK


COMMAND = Verb(
    merge,
    (
        "omnigraph merge draft --into main --dry-run --store people",
        "omnigraph merge draft --into main --store people --json",
    ),
)
