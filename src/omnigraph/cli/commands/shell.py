"""`omnigraph shell`."""

from __future__ import annotations

from omnigraph.cli.app import Verb
from omnigraph.cli.context import actor_of, branch_of, open_graph
from omnigraph.cli.options import Branch, Show, Uri, Where, Writer
from omnigraph.cli.output import format_of


def shell(where: Where, show: Show, writer: Writer, uri: Uri = None, branch: Branch = None) -> None:
    """Talk to a graph: queries, mutations, and `.help`.

    Tab completes types, edges and properties of the schema. Without a terminal, statements are read from standard
    input.
    """
    from dataclasses import replace

    from omnigraph.cli.shell import Shell

    graph = open_graph(where, uri)
    shown = replace(show, format=format_of(show), json=False)
    Shell(graph, branch_of(branch), shown, actor_of(writer.actor)).run()


COMMAND = Verb(
    shell, ("omnigraph shell people", "omnigraph shell --store people --branch draft --format json")
)
