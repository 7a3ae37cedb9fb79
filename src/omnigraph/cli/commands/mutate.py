"""`omnigraph mutate`."""

from __future__ import annotations

from typing import Annotated

from typer import Option

from omnigraph.cli.app import Verb
from omnigraph.cli.commits import counted, published
from omnigraph.cli.context import actor_of, branch_of, named, open_graph, params_of, query_text
from omnigraph.cli.options import Branch, File, Message, Name, Params, Show, Text, Where, Writer
from omnigraph.cli.output import answer
from omnigraph.cli.progress import working


def mutate(
    where: Where,
    show: Show,
    writer: Writer,
    name: Name = None,
    text: Text = None,
    file: File = None,
    params: Params = None,
    branch: Branch = None,
    if_commit: Annotated[
        str | None, Option("--if-commit", help="Only if the branch is there.", metavar="ID")
    ] = None,
    message: Message = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Only say what would change.")] = False,
    key: Annotated[
        str | None, Option("--idempotency-key", help="A repetition with it changes nothing.")
    ] = None,
) -> None:
    """Insert, update or delete, as one commit."""
    from omnigraph.lang.diagnostics import LanguageError

    source = query_text(text, file)
    values = params_of(params)
    graph, branch = open_graph(where), branch_of(branch)
    try:
        with working(graph, branch, "mutate", writer, show):
            result = graph.mutate(
                source.text,
                values,
                name=name,
                branch=branch,
                if_commit=if_commit,
                message=message,
                actor=actor_of(writer.actor),
                idempotency_key=key,
                dry_run=dry_run,
            )
    except LanguageError as error:
        raise named(error, source) from error
    nodes, edges = counted(result.affected_nodes, "node"), counted(result.affected_edges, "edge")
    said = "nothing was changed" if dry_run else published(result.commit, branch)
    answer(show, f"{nodes}, {edges}: {said}", result.to_json())


COMMAND = Verb(
    mutate,
    (
        "omnigraph mutate --store people -e 'insert Person { name: \"Grace\", age: 46 }' -m 'Grace joins'",
        'omnigraph mutate --store people --file people.gq birthday --params \'{"name": "Ada", "age": 37}\' --json',
    ),
)
