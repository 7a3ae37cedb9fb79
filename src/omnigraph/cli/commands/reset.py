"""`omnigraph reset`."""

from __future__ import annotations

from typing import Annotated

from typer import Argument

from omnigraph.cli.app import Verb
from omnigraph.cli.commits import merge_text
from omnigraph.cli.context import actor_of, branch_of, open_graph, point_of
from omnigraph.cli.options import Branch, Message, Show, Where, Writer
from omnigraph.cli.output import answer, note
from omnigraph.cli.progress import working


def reset(
    to: Annotated[str, Argument(help="The point to go back to.", metavar="POINT")],
    where: Where,
    show: Show,
    writer: Writer,
    branch: Branch = None,
    message: Message = None,
) -> None:
    """Make a branch what it was at another point, as a new commit; history stays as it was."""
    graph, branch = open_graph(where), branch_of(branch)
    point = graph.commit(point_of(graph, to, branch) or to).id
    with working(graph, branch, "reset", writer, show):
        result = graph.reset(point, branch, message=message, actor=actor_of(writer.actor))
    answer(show, merge_text(result, f"reset {branch} to {to}"), result.to_json())
    note(show, f"`omnigraph revert {branch}` takes it back")


COMMAND = Verb(
    reset,
    (
        "omnigraph reset main~1 --store people",
        "omnigraph reset main --branch draft --store people --json",
    ),
)
