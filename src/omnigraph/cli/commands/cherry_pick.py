"""`omnigraph cherry-pick`."""

from __future__ import annotations

from typing import Annotated

from typer import Argument

from omnigraph.cli.app import Verb
from omnigraph.cli.commands.merge import DryRun, Strategy
from omnigraph.cli.commits import merge_text, short
from omnigraph.cli.context import actor_of, branch_of, open_graph, point_of
from omnigraph.cli.exits import EXIT_CODES, OK
from omnigraph.cli.options import Branch, Message, Show, Where, Writer
from omnigraph.cli.output import answer, note
from omnigraph.cli.progress import working
from omnigraph.errors import Kind


def cherry_pick(
    commit: Annotated[str, Argument(help="The commit to repeat.", metavar="COMMIT")],
    where: Where,
    show: Show,
    writer: Writer,
    branch: Branch = None,
    dry_run: DryRun = False,
    message: Message = None,
    strategy: Strategy = None,
) -> int:
    """Do what one commit did, wherever it is, on a branch.

    A conflict changes nothing: it is listed with its three values, and the exit code is 4.
    """
    graph, branch = open_graph(where), branch_of(branch)
    id = graph.commit(point_of(graph, commit, branch) or commit).id
    with working(graph, branch, "cherry-pick", writer, show):
        result = graph.cherry_pick(
            id,
            branch,
            dry_run,
            strategy=strategy,
            message=message,
            actor=actor_of(writer.actor),
        )
    said = f"{'would pick' if dry_run else 'picked'} {short(id)} on {branch}"
    answer(show, merge_text(result, said), result.to_json())
    if dry_run:
        note(show, "nothing was changed")
    return EXIT_CODES[Kind.CONFLICT] if result.outcome == "conflict" else OK


COMMAND = Verb(
    cherry_pick,
    (
        "omnigraph cherry-pick draft --store people --dry-run",
        "omnigraph cherry-pick draft --store people -m 'as on draft' --json",
    ),
    name="cherry-pick",
)
