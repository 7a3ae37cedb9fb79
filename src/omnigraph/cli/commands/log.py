"""`omnigraph log`."""

from __future__ import annotations

from typing import Annotated

from typer import Option

from omnigraph.cli.app import Verb
from omnigraph.cli.commits import one_line
from omnigraph.cli.context import branch_of, open_graph, point_of
from omnigraph.cli.options import At, Branch, Format, Server, Show, Store, Uri, Where
from omnigraph.cli.output import Sheet, format_of, print_sheet, styled

COLOURS = {"id": "33", "names": "1;32", "dim": "2"}
COLUMNS = ["id", "time", "actor", "kind", "message", "changes"]


def log(
    show: Show,
    uri: Uri = None,
    store: Store = None,
    server: Server = None,
    graph_id: Annotated[
        str | None, Option("--graph-id", help="The graph on the server.", metavar="ID")
    ] = None,
    branch: Branch = None,
    at: At = None,
    limit: Annotated[int, Option("--limit", "-n", help="How many commits.")] = 20,
    actor: Annotated[str | None, Option("--actor", help="Only theirs.")] = None,
    kind: Annotated[str | None, Option("--kind", help="Only of this kind.")] = None,
    graph: Annotated[bool, Option("--graph", help="Draw all branches and merges.")] = False,
    maintenance: Annotated[bool, Option("--maintenance", help="Optimizations too.")] = False,
) -> None:
    """Show the commits of a branch, newest first."""
    opened, branch = open_graph(Where(store, server, graph_id), uri), branch_of(branch)
    if graph:
        from omnigraph.drawing.history import draw_history

        print(draw_history(opened, limit, lambda text, role: styled(text, COLOURS[role])))
        return
    commits = opened.log(
        branch, limit, actor, kind, at=point_of(opened, at, branch), maintenance=maintenance
    )
    if format_of(show) is Format.TABLE:
        print("\n".join(one_line(commit) for commit in commits))
        return
    documents = [commit.to_json() for commit in commits]
    rows = [[document[name] for name in COLUMNS] for document in documents]
    print_sheet(show, Sheet(COLUMNS, rows, document=documents))


COMMAND = Verb(
    log,
    (
        "omnigraph log --store people --graph",
        "omnigraph log --store people --branch draft --limit 3 --json",
    ),
)
