"""`omnigraph tag`."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Option

from omnigraph.cli.app import Verb
from omnigraph.cli.commits import short
from omnigraph.cli.context import actor_of, branch_of, open_graph, point_of
from omnigraph.cli.options import At, Branch, Show, Where, Writer
from omnigraph.cli.output import Sheet, answer, print_sheet


def tag(
    where: Where,
    show: Show,
    writer: Writer,
    name: Annotated[str | None, Argument(help="The tag to make.", metavar="[NAME]")] = None,
    at: At = None,
    branch: Branch = None,
    delete: Annotated[
        str | None, Option("--delete", "-d", help="A tag to remove.", metavar="NAME")
    ] = None,
) -> None:
    """Name a commit so that it stays; without a name, list the tags."""
    graph, branch = open_graph(where), branch_of(branch)
    if delete is not None:
        graph.delete_tag(delete)
        answer(show, f"deleted tag {delete}", {"name": delete, "deleted": True})
    elif name is None:
        tags = graph.tags()
        print_sheet(
            show, Sheet(["tag", "commit"], [[n, short(i)] for n, i in tags.items()], document=tags)
        )
    else:
        point = point_of(graph, at, branch)
        id = graph.tag(name, point, branch=branch, actor=actor_of(writer.actor))
        answer(show, f"tagged {short(id)} as {name}", {"name": name, "commit": id})


COMMAND = Verb(
    tag,
    ("omnigraph tag v1 --store people", "omnigraph tag before --at main~1 --store people --json"),
)
