"""Commands about data: query, mutate, shell, load, infer, export."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from omnigraph.cli import shapes
from omnigraph.cli.commits import changed_branches, checks_text, load_lines, published, short
from omnigraph.cli.context import (
    actor_of,
    address,
    branch_of,
    errors_in,
    open_graph,
    params_of,
    point_of,
    query_text,
    settings_of,
)
from omnigraph.cli.exits import FAILURE, OK, UsageError
from omnigraph.cli.options import (
    At,
    BadRowOptions,
    Branch,
    CsvOptions,
    DryRun,
    Engine,
    File,
    Language,
    LoadId,
    Message,
    Name,
    OutputFormat,
    Params,
    Quiet,
    RepeatOptions,
    Settings,
    Show,
    Text,
    Types,
    ValueOptions,
    Violations,
    Where,
    WriterOptions,
    Yes,
    examples,
    reading,
    rust_shape,
)
from omnigraph.cli.output import (
    ROWS_SHOWN_MAX,
    answer,
    contract_of,
    format_of,
    note,
    print_document,
    print_result,
    warn,
)
from omnigraph.cli.progress import running, writing
from omnigraph.cli.removals import consent, deleted_by, replaced
from omnigraph.wording import counted

if TYPE_CHECKING:
    from omnigraph.graph import Graph
    from omnigraph.outcomes import LoadResult
    from omnigraph.read import Result
    from omnigraph.read.checking import CheckReport


@examples(
    "omnigraph query people -e 'match { $p: Person $p knows $f } return { $p.name, $f.name }'",
    "omnigraph query --store people --file people.gq older --params '{\"age\": 30}' --format json",
)
@rust_shape
def query(
    where: Where,
    show: Show,
    name: Name = None,
    text: Text = None,
    file: File = None,
    params: Params = None,
    branch: Branch = None,
    at: At = None,
    explain: Annotated[bool, Option("--explain", help="Show the plan instead of rows.")] = False,
    engine: Annotated[str, Option("--engine", help="local or spark.")] = "local",
    timeout: Annotated[float | None, Option("--timeout", help="Time limit in seconds.")] = None,
    language: Language = None,
    settings: Settings = None,
    rows: Annotated[
        int, Option("--rows", help="Maximum number of rows in a table; 0 for all.")
    ] = ROWS_SHOWN_MAX,
) -> None:
    """Run a query.

    Give the query with -e, or with --file and the name of one of its queries; the name alone is a stored query of a
    server. -e also accepts the body alone, without `query name() { … }` around it. The text may be Cypher. --at reads
    any point in time, with the schema of that time.
    """
    values = params_of(params)
    started = time.perf_counter()
    if name is not None and text is None and file is None and _is_served(where):
        _run_stored(show, where, name, values, branch_of(branch), at, rows, started)
        return
    source = query_text(text, file)
    graph, branch = shapes.opened(where, show), branch_of(branch)
    point = point_of(graph, at, branch)
    with errors_in(source):
        result = graph.query(
            source.text,
            values,
            name=name,
            branch=branch,
            at=point,
            engine=engine,
            timeout=timeout,
            explain=explain,
            language=language,
            settings=settings_of(settings),
        )
    if contract_of(show) is not None:
        asked = shapes.AskedQuery(source.text, name, language, explain)
        answer(show, "", shapes.query_document(show, result, asked, branch, point))
        return
    if explain:
        _print_plan(show, result)
        return
    _print_rows(show, result, rows, started)


def _print_rows(show: Show, result: Result, rows: int, started: float) -> None:
    print_result(show, result, rows_max=rows)
    if format_of(show) is OutputFormat.TABLE:
        took = (time.perf_counter() - started) * 1000
        at = f" at {short(result.commit)}" if result.commit else ""
        note(show, f"{counted(len(result), 'row')}{at}, {took:.0f} ms")


def _is_served(where: Where) -> bool:
    return address(where).startswith(("http://", "https://"))


def _run_stored(
    show: Show,
    where: Where,
    name: str,
    values: dict[str, Any] | None,
    branch: str,
    at: str | None,
    rows: int,
    started: float,
) -> None:
    """Print the rows of a stored query."""
    graph: Any = shapes.opened(where, show)
    point = point_of(graph, at, branch)
    found: Result = graph.invoke_query(name, values, branch, point)
    if contract_of(show) is None:
        _print_rows(show, found, rows, started)
    else:
        answer(show, "", shapes.read_document(show, found, name, branch, point))


def _print_plan(show: Show, result: Result) -> None:
    if format_of(show) is OutputFormat.JSON:
        print_document(result.explain().to_json())
    else:
        print(result.explain())


@examples(
    "omnigraph mutate people -e 'insert Person { name: \"Grace\", age: 46 }' -m 'Grace joins'",
    'omnigraph mutate --store people --file people.gq birthday --params \'{"name": "Ada", "age": 37}\' --json',
)
@rust_shape
def mutate(
    where: Where,
    show: Show,
    writer: WriterOptions,
    name: Name = None,
    text: Text = None,
    file: File = None,
    params: Params = None,
    branch: Branch = None,
    if_commit: Annotated[
        str | None,
        Option("--if-commit", help="Only if the branch head is this commit.", metavar="ID"),
    ] = None,
    message: Message = None,
    dry_run: DryRun = False,
    key: Annotated[str | None, Option("--idempotency-key", help="Safe-retry key.")] = None,
    language: Language = None,
    yes: Yes = False,
) -> None:
    """Insert, update or delete rows, as one commit.

    The statement `branch delete NAME` asks for confirmation, like the command.
    """
    source = query_text(text, file)
    values = params_of(params)
    graph, branch = shapes.opened(where, show), branch_of(branch)
    if not dry_run:
        consent(yes, deleted_by, graph, source.text, language)
    with errors_in(source), writing(graph, branch, "mutate", writer, show):
        result = graph.mutate(
            source.text,
            values,
            name=name,
            branch=branch,
            if_commit=if_commit,
            message=message,
            actor=actor_of(writer.actor),
            idempotency_key=key,
            language=language,
            dry_run=dry_run,
        )
    asked, actor = shapes.AskedQuery(source.text, name, language), actor_of(writer.actor)
    document = shapes.shaped(
        show, graph, result.to_json(), lambda: shapes.change_output(result, asked, branch, actor)
    )
    if result.outcome is not None:
        text = "nothing was changed" if dry_run else changed_branches(result.outcome)
        answer(show, text, document)
        return
    nodes, edges = counted(result.affected_nodes, "node"), counted(result.affected_edges, "edge")
    outcome = "nothing was changed" if dry_run else published(result.commit, branch)
    said = f"{nodes}, {edges}: {outcome}"
    if result.result is None or format_of(show) in (OutputFormat.JSON, OutputFormat.JSONL):
        answer(show, said, document)
        return
    print_result(show, result.result)
    print(said, file=sys.stderr)


@examples("omnigraph shell people", "omnigraph shell --store people --branch draft --format json")
def shell(
    where: Where, show: Show, writer: WriterOptions, branch: Branch = None, yes: Yes = False
) -> None:
    """Open an interactive shell for queries and mutations; `.help` lists its commands.

    Tab completes types, edges and properties of the schema. Without a terminal, it reads statements from standard
    input.
    """
    from dataclasses import replace

    from omnigraph.cli.shell import Shell

    graph = open_graph(where)
    shown = replace(show, format=format_of(show), json=False)
    Shell(graph, branch_of(branch), shown, actor_of(writer.actor), yes=yes).run()


# --- loading -----------------------------------------------------------------------------------------------------


@examples(
    "omnigraph load people --data people.jsonl",
    "omnigraph load --store people --data people.jsonl --branch import --create-from main --json",
)
@rust_shape
def load(
    where: Where,
    show: Show,
    writer: WriterOptions,
    cells: CsvOptions,
    repeats: RepeatOptions,
    values: ValueOptions,
    bad: BadRowOptions,
    data: Annotated[
        list[str],
        Option("--data", help="File of records, or Type=FILE for a table.", metavar="FILE"),
    ],
    mode: Annotated[str, Option("--mode", help="merge, append or overwrite.")] = "merge",
    branch: Branch = None,
    create_from: Annotated[
        str | None,
        Option("--create-from", help="Create the branch from here if it does not exist."),
    ] = None,
    engine: Engine = "auto",
    load_id: LoadId = None,
    violations: Violations = None,
    message: Message = None,
    check: Annotated[bool, Option("--check", help="Only validate; load nothing.")] = False,
    run_checks: Annotated[
        bool, Option("--run-checks", help="Run the checks of the branch on the new commit.")
    ] = False,
    yes: Yes = False,
) -> int:
    """Load files as one commit.

    A file has one record per line, plain, .gz or .zst: {"type": "Person", "data": {…}} is a node,
    {"edge": "Knows", "from": …, "to": …, "data": {…}} an edge. Type=FILE loads a Parquet, CSV or NDJSON table of one
    type; given more than once, or for a folder, all of its files. merge inserts and updates, append only inserts,
    overwrite replaces the types present in the files.

    A load with invalid rows changes nothing and lists them. With --on-error quarantine --quarantine FILE the valid rows
    are loaded, and the others are written to the file as JSON lines, each with its position, its text and the error.
    """
    options = reading(cells, repeats, values, bad)
    _tell_formats(show, data, options)
    graph, branch = shapes.opened(where, show), branch_of(branch)
    shaped = partial(shapes.load_document, show, graph, mode, create_from, actor_of(writer.actor))
    if check:
        found = graph.load(
            source_of(data),
            mode,
            branch,
            create_from,
            options=options,
            violations=violations or True,
            dry_run=True,
        )
        tell_check(show, found, bad.quarantine, shaped)
        return OK
    if mode == "overwrite":
        again = partial(graph.load, source_of(data), mode, branch, options=options, dry_run=True)
        consent(yes, replaced, graph, branch, None if any(map(_is_stream, data)) else again)
    with writing(graph, branch, "load", writer, show):
        result = graph.load(
            source_of(data),
            mode=mode,
            branch=branch,
            create_from=create_from,
            engine=engine,
            message=message,
            actor=actor_of(writer.actor),
            idempotency_key=load_id,
            options=options,
            violations=violations or True,
        )
    report = None
    if run_checks and result.commit is not None:
        report = graph.check(branch, result.commit.id, actor=actor_of(writer.actor))
    _tell_loaded(show, result, branch, report, shaped)
    _tell_quarantine(result, bad.quarantine)
    return OK if report is None or report.passed else FAILURE


def _is_stream(item: str) -> bool:
    """Whether the file of --data can be read only once."""
    return Path(item.partition("=")[2] or item).is_fifo()


Shaped = Callable[[Any, Any], Any]  # the JSON document of a load, in the requested form


def _tell_loaded(
    show: Show, result: LoadResult, branch: str, report: CheckReport | None, shaped: Shaped
) -> None:
    again = " (loaded before)" if result.replayed else ""
    text = f"loaded {load_counts(result)}: {published(result.commit, branch)}{again}"
    checked = {} if report is None else {"checks": report.to_json()}
    answer(show, text, shaped(result, result.to_json() | checked))
    for name, count in result.new_each_time.items():
        them = "it" if count == 1 else "them"
        edges = counted(count, f"{name} edge")
        warn(f"{edges} without id or key: loading {them} again adds {them} again")
    if report is not None:
        note(show, checks_text(report))


def tell_check(
    show: Show,
    found: LoadResult,
    quarantine: str | None,
    shaped: Shaped = lambda _, own: own,
    **more: Any,
) -> None:
    """Print what a load would change."""
    known = found.to_json()
    names = ("nodes", "edges", "rows", "quarantined", "cost")
    counts = {name: known[name] for name in names if name in known}
    text = "\n".join([f"{load_counts(found)} can be loaded", *load_lines(counts)])
    answer(show, text, shaped(found, counts | more))
    _tell_quarantine(found, quarantine)
    note(show, "nothing was changed")


def _tell_quarantine(result: LoadResult, file: str | None) -> None:
    if result.quarantined:
        rows = counted(sum(result.quarantined.values()), "row")
        warn(f"{rows} left out, with errors: {file}")


def _tell_formats(show: Show, data: list[str], options: Any) -> None:
    """Print how CSV files will be read: the guess can be wrong."""
    from omnigraph.write.input.preview import described_csv

    if show.quiet or format_of(show) is not OutputFormat.TABLE:
        return
    for item in data:
        path = item.partition("=")[2]
        if path.lower().endswith((".csv", ".tsv")) and Path(path).is_file():
            note(show, described_csv(path, options))


def source_of(data: list[str]) -> Any:
    """The files of --data: records, or tables by type."""
    tables = [item for item in data if "=" in item and "/" not in item.partition("=")[0]]
    if not tables:
        return data[0] if len(data) == 1 else data
    if len(tables) < len(data):
        raise UsageError("load files of records and tables of one type separately")
    files: dict[str, list[str]] = {}
    for name, _, path in (item.partition("=") for item in tables):
        files.setdefault(name, []).append(path)
    return {name: paths[0] if len(paths) == 1 else paths for name, paths in files.items()}


def load_counts(result: LoadResult) -> str:
    parts = [
        f"{counted(sum(counts.values()), what)} of {counted(len(counts), 'type')}"
        for what, counts in (("node", result.nodes), ("edge", result.edges))
        if counts
    ]
    return ", ".join(parts) or "0 nodes"


@examples(
    "omnigraph infer customers.csv orders.csv",
    "omnigraph infer Client=customers.csv --out schema.pg --pipeline load.yaml",
)
def infer(
    files: Annotated[list[str], Argument(help="Files, or Type=FILE.", metavar="FILE")],
    cells: CsvOptions,
    repeats: RepeatOptions,
    out: Annotated[
        str | None, Option("--out", "-o", help="Write the schema here.", metavar="FILE")
    ] = None,
    pipeline: Annotated[
        str | None,
        Option("--pipeline", help="Write a pipeline file that loads them.", metavar="FILE"),
    ] = None,
) -> None:
    """Propose a schema for files of rows: types, keys, and edges where values of one file are keys of another.

    The proposal is printed for editing. --pipeline writes a file for `omnigraph pipeline run` that loads the files.
    """
    from omnigraph.write.infer import infer as proposed

    given = source_of(files)
    options = reading(cells, repeats, ValueOptions(), BadRowOptions())
    found = proposed(given if isinstance(given, list | dict) else [given], options)
    for path, text in ((out, found.schema), (pipeline, found.pipeline)):
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
    if out is None:
        print(found.schema, end="")
        return
    graph = Path(out).stem
    load = f"omnigraph pipeline run {graph} {pipeline} --engine local"
    how = (
        f"then {load}" if pipeline else "and --pipeline FILE writes a pipeline that loads the files"
    )
    print(f"next: omnigraph init --schema {out} {graph}, {how}", file=sys.stderr)


# --- exporting ---------------------------------------------------------------------------------------------------


@examples(
    "omnigraph export people --out - --type Person",
    "omnigraph export --store people --out dump --format parquet",
)
def export(
    where: Where,
    writer: WriterOptions,
    out: Annotated[str, Option("--out", "-o", help="Folder, or - for stdout.", metavar="DIR")] = (
        "-"
    ),
    format: Annotated[
        str, Option("--format", help="ndjson, ndjson-0.10, ndjson-0.13, parquet, arrow or csv.")
    ] = "ndjson",
    branch: Branch = None,
    at: At = None,
    type_: Types = None,
    engine: Engine = "auto",
    order: Annotated[
        str | None, Option("--order", help="id: sort the rows of each type by ID.", metavar="id")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Write one state of a graph to files; ndjson can be loaded again."""
    if out == "-" and not format.startswith("ndjson"):
        raise UsageError(f"{format} needs a folder: give --out DIR")
    graph, branch = open_graph(where), branch_of(branch)
    options: dict[str, Any] = {
        "branch": branch,
        "at": point_of(graph, at, branch),
        "types": type_,
        "engine": engine,
        "order": order,
    }
    files = "" if out == "-" else f"; the files in {out} are incomplete"
    leaves = f"the graph was only read{files}"
    with running("export", writer, quiet=quiet, leaves=leaves):
        if out == "-":
            _export_to_stdout(graph, format, options)
            return
        graph.export(out, format, **options)
    if not quiet:
        print(f"exported {graph.uri} to {out}", file=sys.stderr)


def _export_to_stdout(graph: Graph, format: str, options: dict[str, Any]) -> None:
    import shutil
    import tempfile

    with tempfile.TemporaryDirectory(prefix="omnigraph-export-") as folder:
        graph.export(folder, format, **options)
        for file in sorted(Path(folder).rglob("*.jsonl")) or sorted(Path(folder).rglob("*.ndjson")):
            with file.open("r", encoding="utf-8") as lines:
                shutil.copyfileobj(lines, sys.stdout)
