"""`omnigraph upgrade`."""

from __future__ import annotations

from omnigraph.cli.app import Verb
from omnigraph.cli.context import open_graph
from omnigraph.cli.options import Show, Uri, Where
from omnigraph.cli.output import answer


def upgrade(where: Where, show: Show, uri: Uri = None) -> None:
    """Bring a graph to the newest storage format.

    There is one format so far, so a graph that can be opened is up to date; a newer one says so.
    """
    graph = open_graph(where, uri)
    said = f"{graph.uri} has the newest storage format: nothing to do"
    answer(show, said, {"uri": graph.uri, "upgraded": False})


COMMAND = Verb(upgrade, ("omnigraph upgrade people", "omnigraph upgrade --store people --json"))
