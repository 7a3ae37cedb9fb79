"""`omnigraph revert`."""

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


def revert(
    commit: Annotated[str, Argument(help="The commit to undo.", metavar="COMMIT")],
    where: Where,
    show: Show,
    writer: Writer,
    branch: Branch = None,
    dry_run: DryRun = False,
    message: Message = None,
    strategy: Strategy = None,
) -> int:
    """Undo one commit with a new one; history stays as it was.

    What was changed again since is a conflict: it is listed, nothing is changed, and the exit code is 4.
    """
    graph, branch = open_graph(where), branch_of(branch)
    id = graph.commit(point_of(graph, commit, branch) or commit).id
    with working(graph, branch, "revert", writer, show):
        result = graph.revert(
            id,
            branch,
            dry_run,
            strategy=strategy,
            message=message,
            actor=actor_of(writer.actor),
        )
    said = f"{'would revert' if dry_run else 'reverted'} {short(id)} on {branch}"
    answer(show, merge_text(result, said), result.to_json())
    if dry_run:
        note(show, "nothing was changed")
    return EXIT_CODES[Kind.CONFLICT] if result.outcome == "conflict" else OK


COMMAND = Verb(
    revert,
    (
        "omnigraph revert main --store people",
        "omnigraph revert draft --store people --branch draft --json",
    ),
)
