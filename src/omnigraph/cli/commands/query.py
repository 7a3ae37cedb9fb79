"""`omnigraph query`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

from typer import Option

from omnigraph.cli.app import Verb
from omnigraph.cli.commits import counted, short
from omnigraph.cli.context import branch_of, named, open_graph, params_of, point_of, query_text
from omnigraph.cli.options import At, Branch, File, Format, Name, Params, Show, Text, Where
from omnigraph.cli.output import ROWS_SHOWN_MAX, format_of, note, print_document, print_result

if TYPE_CHECKING:
    from omnigraph.read import Result


def query(
    where: Where,
    show: Show,
    name: Name = None,
    text: Text = None,
    file: File = None,
    params: Params = None,
    branch: Branch = None,
    at: At = None,
    explain: Annotated[bool, Option("--explain", help="Show how it was run, instead.")] = False,
    engine: Annotated[str, Option("--engine", help="local or spark.")] = "local",
    timeout: Annotated[float | None, Option("--timeout", help="Seconds to allow.")] = None,
    rows: Annotated[int, Option("--rows", help="Rows of a table; 0: all.")] = ROWS_SHOWN_MAX,
) -> None:
    """Run a read.

    Give the query with -e, or with --file and the name of one of its queries. A body without `query name() { … }`
    around it is fine with -e. --at reads any point in time with the schema that was in force there.
    """
    from omnigraph.lang.diagnostics import LanguageError

    source = query_text(text, file)
    values = params_of(params)
    graph, branch = open_graph(where), branch_of(branch)
    started = time.perf_counter()
    try:
        result = graph.query(
            source.text,
            values,
            name=name,
            branch=branch,
            at=point_of(graph, at, branch),
            engine=engine,
            timeout=timeout,
            explain=explain,
        )
    except LanguageError as error:
        raise named(error, source) from error
    if explain:
        _print_plan(show, result)
        return
    print_result(show, result, rows_max=rows)
    if format_of(show) is Format.TABLE:
        took = (time.perf_counter() - started) * 1000
        note(show, f"{counted(len(result), 'row')} at {short(result.commit)}, {took:.0f} ms")


def _print_plan(show: Show, result: Result) -> None:
    if format_of(show) is Format.JSON:
        print_document(result.explain().to_json())
    else:
        print(result.explain())


COMMAND = Verb(
    query,
    (
        "omnigraph query --store people -e 'match { $p: Person $p knows $f } return { $p.name, $f.name }'",
        "omnigraph query --store people --file people.gq older --params '{\"age\": 30}' --format json",
    ),
)
