"""Commands about the content of a state: its tables, and the bytes of a blob."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import msgspec
from typer import Argument, Option

from omnigraph.cli.context import branch_of, open_graph, point_of
from omnigraph.cli.exits import UsageError
from omnigraph.cli.options import At, Branch, Show, Where, examples, rust_shape
from omnigraph.cli.output import Sheet, answer, print_sheet
from omnigraph.cli.shapes import answers, opened, shaped

TypeName = Annotated[str, Argument(help="Node or edge type.", metavar="TYPE")]
EntityId = Annotated[str, Argument(help="ID of the node or edge.", metavar="ID")]
PropertyName = Annotated[str, Argument(help="Blob property.", metavar="PROPERTY")]
CHUNK_BYTES = 4 << 20


@examples("omnigraph snapshot people", "omnigraph snapshot --store people --branch draft --json")
@rust_shape
def snapshot(where: Where, show: Show, branch: Branch = None, at: At = None) -> None:
    """Show the tables of a state, with their row counts."""
    graph, branch = opened(where, show), branch_of(branch)
    found: Any = graph.snapshot(branch, point_of(graph, at, branch))
    if hasattr(found, "rows"):  # a served one has only the counts
        tables = [
            {"entity_kind": k, "type_name": n, "entity_count": c}
            for (k, n), c in found.rows.items()
        ]
        document = {"graph_branch": branch, "graph_commit_id": found.commit_id, "datasets": tables}
    else:
        document = msgspec.to_builtins(answers.SnapshotOutput.of(found, branch))
    document = shaped(show, graph, document, lambda: answers.SnapshotOutput.of(found, branch))
    rows = [[t["entity_kind"], t["type_name"], t["entity_count"]] for t in document["datasets"]]
    print_sheet(show, Sheet(["kind", "type", "rows"], rows, document=document))


@examples(
    "omnigraph blob get notes Note n1 scan --out n1.png",
    "omnigraph blob get Note n1 scan --store notes --offset 0 --length 16 --out -",
)
def get_blob(
    type_: TypeName,
    id: EntityId,
    property: PropertyName,
    where: Where,
    branch: Branch = None,
    at: At = None,
    offset: Annotated[int, Option("--offset", help="First byte.", metavar="N")] = 0,
    length: Annotated[
        int | None, Option("--length", help="Number of bytes (default: all).", metavar="N")
    ] = None,
    out: Annotated[str, Option("--out", "-o", help="File, or - for stdout.", metavar="F")] = "-",
) -> None:
    """Write the bytes of a Blob property."""
    if length is not None and length < 1:
        raise UsageError("--length must be at least 1")
    graph, branch = open_graph(where), branch_of(branch)
    blob = graph.blob(type_, id, property, branch, point_of(graph, at, branch))
    end = blob.size if length is None else min(blob.size, offset + length)
    parts = (
        blob.read(start, min(start + CHUNK_BYTES, end)) for start in range(offset, end, CHUNK_BYTES)
    )
    if out == "-":
        for part in parts:
            sys.stdout.buffer.write(part)
        return
    with Path(out).open("wb") as file:
        for part in parts:
            file.write(part)


@examples(
    "omnigraph blob stat notes Note n1 scan",
    "omnigraph blob stat Note n1 scan --store notes --json",
)
def stat_blob(
    type_: TypeName,
    id: EntityId,
    property: PropertyName,
    where: Where,
    show: Show,
    branch: Branch = None,
    at: At = None,
) -> None:
    """Show the size of a Blob property."""
    graph, branch = open_graph(where), branch_of(branch)
    size = graph.blob(type_, id, property, branch, point_of(graph, at, branch)).size
    document = {"type_name": type_, "id": id, "property": property, "size": size}
    answer(show, f"{size} bytes", document)
