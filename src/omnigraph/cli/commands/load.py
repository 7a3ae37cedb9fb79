"""`omnigraph load`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from omnigraph.cli import consent
from omnigraph.cli.app import Verb
from omnigraph.cli.commits import counted, published
from omnigraph.cli.context import actor_of, address, branch_of, open_graph
from omnigraph.cli.exits import UsageMistake
from omnigraph.cli.options import Branch, Message, Show, Violations, Where, Writer, Yes
from omnigraph.cli.output import answer, note, warn
from omnigraph.cli.progress import working

if TYPE_CHECKING:
    from omnigraph.outcomes import LoadResult
    from omnigraph.write.load import LoadOutcome


def load(
    where: Where,
    show: Show,
    writer: Writer,
    data: Annotated[
        list[str],
        Option("--data", help="A file of records, or Type=FILE for a table.", metavar="FILE"),
    ],
    mode: Annotated[str, Option("--mode", help="merge, append or overwrite.")] = "merge",
    branch: Branch = None,
    create_from: Annotated[
        str | None, Option("--create-from", help="Create the branch from there if it is missing.")
    ] = None,
    engine: Annotated[str, Option("--engine", help="auto, local or spark.")] = "auto",
    load_id: Annotated[
        str | None,
        Option("--load-id", help="A repetition with it resumes or does nothing.", metavar="KEY"),
    ] = None,
    violations: Violations = None,
    message: Message = None,
    check: Annotated[bool, Option("--check", help="Only check; load nothing.")] = False,
    yes: Yes = False,
) -> None:
    """Load files as one commit.

    A file holds one record per line, plain, .gz or .zst: {"type": "Person", "data": {…}} is a node,
    {"edge": "Knows", "from": …, "to": …, "data": {…}} an edge. Type=FILE loads a Parquet, CSV or NDJSON table of one
    type. merge adds and changes, append only adds, overwrite replaces the types present.
    """
    if mode == "overwrite" and consent.is_remote(address(where)):
        consent.ask(f"Overwrite types of {address(where)}?", yes=yes)
    graph, branch = open_graph(where), branch_of(branch)
    if check:
        found = graph.check_load(source_of(data), mode, branch)
        answer(show, f"{_counted(found)} can be loaded", found.to_json())
        note(show, "nothing was changed")
        return
    with working(graph, branch, "load", writer, show):
        result = graph.load(
            source_of(data),
            mode=mode,
            branch=branch,
            create_from=create_from,
            engine=engine,
            message=message,
            actor=actor_of(writer.actor),
            idempotency_key=load_id,
            violations=violations or True,
        )
    again = " (loaded before)" if result.replayed else ""
    said = f"loaded {_counted(result)}: {published(result.commit, branch)}{again}"
    answer(show, said, result.to_json())
    for name, count in result.new_each_time.items():
        warn(f"{count:,} {name} edges have neither id nor key: loading them again adds them again")


def source_of(data: list[str]) -> Any:
    """What --data names: files of records, or tables by type."""
    tables = [item for item in data if "=" in item and "/" not in item.partition("=")[0]]
    if not tables:
        return data[0] if len(data) == 1 else data
    if len(tables) < len(data):
        raise UsageMistake("load files of records and tables of types one after the other")
    return {name: path for name, _, path in (item.partition("=") for item in tables)}


def _counted(result: LoadResult | LoadOutcome) -> str:
    parts = [
        f"{counted(sum(counts.values()), what)} of {counted(len(counts), 'type')}"
        for what, counts in (("node", result.nodes), ("edge", result.edges))
        if counts
    ]
    return ", ".join(parts) or "0 nodes"


COMMAND = Verb(
    load,
    (
        "omnigraph load --store people --data people.jsonl",
        "omnigraph load --store people --data people.jsonl --branch import --create-from main --json",
    ),
)
