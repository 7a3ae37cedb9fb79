"""`omnigraph init`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from omnigraph.cli.app import Verb
from omnigraph.cli.context import actor_of, named, read_text
from omnigraph.cli.options import Show, Writer
from omnigraph.cli.output import answer, note


def init(
    uri: Annotated[str, Argument(help="Where the graph shall live.", metavar="URI")],
    schema: Annotated[str, Option("--schema", help="The schema.", metavar="S.pg")],
    show: Show,
    writer: Writer,
) -> None:
    """Create a graph.

    The address is a path, s3://bucket/prefix or memory://name; nothing may be there yet.
    """
    from omnigraph.lang.diagnostics import LanguageError
    from omnigraph.lang.source import Source
    from omnigraph.opening import init as create

    text = read_text(schema)
    try:
        graph = create(uri, text, actor=actor_of(writer.actor))
    except LanguageError as error:
        raise named(error, Source(text, Path(schema).name)) from error
    commit = graph.log(limit=1)
    answer(
        show, f"initialized {uri}", {"uri": uri, "commit": commit[0].to_json() if commit else None}
    )
    note(show, f"next: omnigraph load --store {uri} --data FILE.jsonl")


COMMAND = Verb(
    init,
    (
        "omnigraph init --schema people.pg new-graph",
        "omnigraph init --schema people.pg --json other-graph",
    ),
)
