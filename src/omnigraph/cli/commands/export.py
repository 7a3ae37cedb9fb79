"""`omnigraph export`."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from omnigraph.cli.app import Verb
from omnigraph.cli.context import branch_of, open_graph, point_of
from omnigraph.cli.exits import UsageMistake
from omnigraph.cli.interrupt import leaving
from omnigraph.cli.options import At, Branch, Where, Writer
from omnigraph.cli.progress import telling


def export(
    where: Where,
    writer: Writer,
    out: Annotated[
        str, Option("--out", "-o", help="A folder, or - for stdout.", metavar="DIR")
    ] = "-",
    format: Annotated[str, Option("--format", help="ndjson, parquet, arrow or csv.")] = "ndjson",
    branch: Branch = None,
    at: At = None,
    type_: Annotated[
        list[str] | None, Option("--type", help="Only these types.", metavar="T")
    ] = None,
    engine: Annotated[str, Option("--engine", help="auto, local or spark.")] = "auto",
    order: Annotated[
        str | None, Option("--order", help="id: rows of a type by their ids.", metavar="id")
    ] = None,
    quiet: Annotated[bool, Option("--quiet", "-q", help="Only data and errors.")] = False,
) -> None:
    """Write one state of a graph to files; ndjson can be loaded again."""
    if out == "-" and format != "ndjson":
        raise UsageMistake(f"{format} needs files: give --out DIR")
    graph, branch = open_graph(where), branch_of(branch)
    point = point_of(graph, at, branch)
    left = "the graph was only read" + (
        "" if out == "-" else f"; the files in {out} are not all there"
    )
    with leaving(left), telling("export", writer.progress, quiet=quiet):
        if out == "-":
            _to_stdout(graph, branch, point, type_, engine, order)
            return
        graph.export(out, format, branch, point, type_, engine, order=order)
    if not quiet:
        print(f"exported {graph.uri} to {out}", file=sys.stderr)


def _to_stdout(
    graph: Any,
    branch: str,
    at: str | None,
    types: list[str] | None,
    engine: str,
    order: str | None,
) -> None:
    with tempfile.TemporaryDirectory(prefix="omnigraph-export-") as folder:
        graph.export(folder, "ndjson", branch, at, types, engine, order=order)
        for file in sorted(Path(folder).rglob("*.jsonl")) or sorted(Path(folder).rglob("*.ndjson")):
            with file.open("r", encoding="utf-8") as lines:
                shutil.copyfileobj(lines, sys.stdout)


COMMAND = Verb(
    export,
    (
        "omnigraph export --store people --out - --type Person",
        "omnigraph export --store people --out dump --format parquet",
    ),
)
