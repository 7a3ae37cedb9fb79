"""`omnigraph branch`."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Option

from omnigraph.cli import consent
from omnigraph.cli.app import Group, Verb
from omnigraph.cli.commands.merge import Into, merge
from omnigraph.cli.commits import short
from omnigraph.cli.context import actor_of, address, open_graph
from omnigraph.cli.options import Show, Where, Writer, Yes
from omnigraph.cli.output import Sheet, answer, print_sheet
from omnigraph.drawing.history import ago

BranchName = Annotated[str, Argument(help="The branch.", metavar="NAME")]


def list_(where: Where, show: Show) -> None:
    """List the branches with their newest commits."""
    graph = open_graph(where)
    newest = {name: graph.log(name, limit=1)[0] for name in graph.branches()}
    document = {"branches": list(newest), "heads": {name: c.id for name, c in newest.items()}}
    rows = [[name, short(c.id), ago(c.time), c.message] for name, c in newest.items()]
    print_sheet(show, Sheet(["branch", "commit", "when", "message"], rows, document=document))


def create(
    name: BranchName,
    where: Where,
    show: Show,
    writer: Writer,
    from_: Annotated[
        str, Option("--from", help="A branch, or any point in time.", metavar="POINT")
    ] = "main",
) -> None:
    """Create a branch; nothing is copied."""
    graph = open_graph(where)
    graph.create_branch(name, from_=from_, actor=actor_of(writer.actor))
    answer(show, f"created branch {name} from {from_}", {"name": name, "from": from_})


def delete(name: BranchName, where: Where, show: Show, writer: Writer, yes: Yes = False) -> None:
    """Delete a branch; what others share with it stays."""
    uri = address(where)
    if consent.is_remote(uri):
        consent.ask(f"Delete the branch {name} of {uri}?", yes=yes)
    open_graph(where).delete_branch(name, actor=actor_of(writer.actor))
    answer(show, f"deleted branch {name}", {"name": name, "deleted": True})


def merge_(
    source: Annotated[str, Argument(help="The branch to merge.", metavar="SRC")],
    where: Where,
    show: Show,
    writer: Writer,
    into: Into = None,
    delete_branch: Annotated[
        bool, Option("--delete-branch", help="Delete the branch when it is merged.")
    ] = False,
) -> int:
    """Merge a branch into another, as `omnigraph merge` does."""
    code = merge(source, where, show, writer, into=into)
    if code == 0 and delete_branch:
        open_graph(where).delete_branch(source, actor=actor_of(writer.actor))
    return code


COMMAND = Group(
    "Make, list, merge and delete branches.",
    (
        Verb(
            list_,
            ("omnigraph branch list --store people", "omnigraph branch list --store people --json"),
        ),
        Verb(
            create,
            (
                "omnigraph branch create spring --store people",
                "omnigraph branch create yesterday --store people --from main~1",
            ),
        ),
        Verb(
            delete,
            (
                "omnigraph branch delete stale --store people",
                "omnigraph branch delete stale-too --store people --yes",
            ),
        ),
        Verb(
            merge_,
            (
                "omnigraph branch merge draft --store people",
                "omnigraph branch merge draft --store people --into main --json",
            ),
        ),
    ),
)
