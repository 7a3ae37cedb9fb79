"""`omnigraph changes`."""

from __future__ import annotations

from typing import Annotated

from typer import Option

from omnigraph.cli.app import Verb
from omnigraph.cli.commits import change_line, short
from omnigraph.cli.context import branch_of, open_graph, point_of
from omnigraph.cli.options import Branch, Format, Show, Where
from omnigraph.cli.output import format_of, print_document


def changes(
    where: Where,
    show: Show,
    after: Annotated[
        str | None, Option("--after", help="The commit or cursor seen last.", metavar="CURSOR")
    ] = None,
    branch: Branch = None,
    limit: Annotated[int | None, Option("--limit", "-n", help="How many commits.")] = None,
) -> None:
    """Print what changed after a commit, commit by commit, oldest first.

    The cursor at the end says where to go on; give it to --after next time.
    """
    graph, branch = open_graph(where), branch_of(branch)
    feed = graph.changes(after=point_of(graph, after, branch), branch=branch, limit=limit)
    match format_of(show):
        case Format.JSONL:
            for change in feed:
                print_document(change.to_json(), one_line=True)
        case Format.JSON:
            blocks = [
                {"commit": id, "changes": [change.to_json() for change in found]}
                for id, found in feed.commits()
            ]
            print_document({"blocks": blocks, "cursor": feed.cursor})
        case _:
            for id, found in feed.commits():
                print("\n".join([short(id), *(change_line(change) for change in found)]))
            print(f"cursor {feed.cursor}")


COMMAND = Verb(
    changes,
    (
        "omnigraph changes --store people --after main~1",
        "omnigraph changes --store people --branch draft --json",
    ),
)
