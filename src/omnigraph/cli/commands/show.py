"""`omnigraph show`."""

from __future__ import annotations

from typing import Annotated

from typer import Argument

from omnigraph.cli.app import Verb
from omnigraph.cli.commits import whole
from omnigraph.cli.context import branch_of, open_graph, point_of
from omnigraph.cli.options import Branch, Show, Where
from omnigraph.cli.output import answer


def show(
    commit: Annotated[str, Argument(help="A commit, tag, branch or time.", metavar="COMMIT")],
    where: Where,
    show: Show,
    branch: Branch = None,
) -> None:
    """Show one commit: who, when, why and what changed."""
    graph = open_graph(where)
    found = graph.commit(point_of(graph, commit, branch_of(branch)) or commit)
    answer(show, whole(found), found.to_json())


COMMAND = Verb(
    show, ("omnigraph show main --store people", "omnigraph show main~1 --store people --json")
)
