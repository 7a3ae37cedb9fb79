"""`omnigraph optimize`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from omnigraph.cli.app import Verb
from omnigraph.cli.commits import human_bytes
from omnigraph.cli.context import branch_of, open_graph
from omnigraph.cli.options import Branch, Show, Uri, Where, Writer
from omnigraph.cli.output import Sheet, print_sheet
from omnigraph.cli.progress import working

if TYPE_CHECKING:
    from omnigraph.write.maintain import TableReport


def optimize(
    where: Where,
    show: Show,
    writer: Writer,
    uri: Uri = None,
    branch: Branch = None,
    engine: Annotated[str, Option("--engine", help="auto, local or spark.")] = "auto",
) -> None:
    """Compact tables and bring indices up to date; rows do not change."""
    graph, branch = open_graph(where, uri), branch_of(branch)
    with working(graph, branch, "optimize", writer, show):
        reports = graph.optimize(branch, engine=engine)
    columns = ["type", "rows", "fragments", "indexed", "topology", "note"]
    rows = [_row(report) for report in reports]
    document = {"branch": branch, "tables": [report.to_json() for report in reports]}
    print_sheet(show, Sheet(columns, rows, document=document), rows_max=0)


def _row(report: TableReport) -> list[Any]:
    fragments = f"{report.fragments_before} → {report.fragments_after}"
    topology = human_bytes(report.topology_bytes) if report.topology_bytes else ""
    return [
        report.type,
        report.rows,
        fragments,
        ", ".join(report.indexed),
        topology,
        report.note or "",
    ]


COMMAND = Verb(
    optimize,
    ("omnigraph optimize people", "omnigraph optimize --store people --branch draft --json"),
)
