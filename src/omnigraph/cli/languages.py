"""Commands about schemas, queries and error codes: schema, lint, fmt, explain."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from omnigraph.cli.commits import coloured, short, step_line
from omnigraph.cli.context import (
    FileUnreadable,
    actor_of,
    address,
    branch_of,
    errors_in,
    open_graph,
    point_of,
    read_text,
)
from omnigraph.cli.exits import EXIT_CODES, FAILURE, OK, UsageError
from omnigraph.cli.options import (
    At,
    Branch,
    Message,
    OutputFormat,
    Show,
    Where,
    WriterOptions,
    Yes,
    examples,
    rust_shape,
)
from omnigraph.cli.output import (
    Sheet,
    answer,
    contract_of,
    format_of,
    note,
    print_document,
    print_sheet,
)
from omnigraph.cli.progress import writing
from omnigraph.cli.removals import confirm
from omnigraph.cli.shapes import answers, opened, shaped
from omnigraph.errors import CODES, Code, Kind, OmnigraphError
from omnigraph.wording import counted

if TYPE_CHECKING:
    from omnigraph.graph import Graph
    from omnigraph.lang.diagnostics import Diagnostic
    from omnigraph.lang.query import LintReport
    from omnigraph.lang.schema.migrate import MigrationPlan

SchemaFile = Annotated[str, Option("--schema", help="New schema file.", metavar="S.pg")]
Loss = Annotated[
    bool,
    Option("--allow-data-loss", help="Remove dropped data from earlier commits too, permanently."),
]
DROPS = ("drop_type", "drop_property")
DROPPED = "Dropped data leaves the branch; earlier commits keep it until a cleanup. Continue?"
LOST = "Dropped data is lost permanently, with the earlier commits of the branch. Continue?"
LANGUAGES = (
    "omnigraph.lang.schema",
    "omnigraph.lang.query",
    "omnigraph.lang.cypher",
    "omnigraph.cli.context",
)


# --- schema ------------------------------------------------------------------------------------------------------


@examples("omnigraph schema show people", "omnigraph schema show --store people --draw mermaid")
@rust_shape
def show_schema(
    where: Where,
    show: Show,
    branch: Branch = None,
    at: At = None,
    draw: Annotated[
        str | None, Option("--draw", help="Draw as mermaid or svg.", metavar="KIND")
    ] = None,
    indices: Annotated[
        bool, Option("--indices", help="Print the indices: the rows they cover, and their size.")
    ] = False,
) -> None:
    """Print or draw the schema, or print its indices."""
    graph, branch = opened(where, show), branch_of(branch)
    if indices:
        found = graph.query(INDICES, branch=branch, at=point_of(graph, at, branch))
        print_sheet(show, Sheet(found.columns, [list(row.values()) for row in found.rows]))
        return
    text = graph.schema(branch, point_of(graph, at, branch))
    if draw is None:
        document = shaped(show, graph, {"schema": text}, lambda: answers.SchemaOutput(text))
        answer(show, text.rstrip("\n"), document)
        return
    print(_drawn(text, draw))


INDICES = """
    CALL omnigraph.schema.indices() YIELD owner, property, kind, rows, covered, bytes
    RETURN owner AS type, property, kind, rows, covered, bytes
"""


def _drawn(text: str, kind: str) -> str:
    from omnigraph.drawing import schema_mermaid, schema_svg
    from omnigraph.lang.schema import catalog_of, compile_schema

    drawings = {"mermaid": schema_mermaid, "svg": schema_svg}
    if kind not in drawings:
        raise UsageError(f"--draw must be mermaid or svg, not {kind!r}")
    return drawings[kind](catalog_of(compile_schema(text)))


@examples(
    "omnigraph schema plan people --schema next.pg",
    "omnigraph schema plan --store people --schema next.pg --json",
)
@rust_shape
def plan_schema(
    where: Where,
    show: Show,
    schema: SchemaFile,
    branch: Branch = None,
    allow_data_loss: Loss = False,
) -> int:
    """Show what a new schema would change; changes nothing."""
    graph, branch = opened(where, show), branch_of(branch)
    plan = _planned(graph, schema, branch, allow_data_loss)
    document = shaped(show, graph, plan.to_json(), lambda: answers.PlanOutput.of(plan))
    place = {} if contract_of(show) is None else {"uri": graph.uri}
    answer(show, plan_text(plan), place | document)
    note(show, "nothing was changed")
    return OK if plan.supported else FAILURE


@examples(
    "omnigraph schema apply people --schema next.pg",
    "omnigraph schema apply --store people --schema next.pg --branch draft --yes --json",
)
@rust_shape
def apply_schema(
    where: Where,
    show: Show,
    writer: WriterOptions,
    schema: SchemaFile,
    branch: Branch = None,
    allow_data_loss: Loss = False,
    message: Message = None,
    yes: Yes = False,
) -> int:
    """Change the schema, as one commit.

    The plan is shown first, and dropping a type or a property needs confirmation: --yes, or an answer on a terminal.
    Earlier commits keep dropped data until a cleanup; with --allow-data-loss it is removed from them immediately.
    """
    graph, branch = opened(where, show), branch_of(branch)
    plan = _planned(graph, schema, branch, allow_data_loss)
    note(show, plan_text(plan))
    if plan.supported and any(step.kind in DROPS for step in plan.steps):
        confirm(LOST if allow_data_loss else DROPPED, yes=yes)
    with writing(graph, branch, "schema apply", writer, show):
        done = graph.apply_schema(
            read_text(schema),
            branch,
            allow_data_loss,
            message=message,
            actor=actor_of(writer.actor),
        )
    text = (
        f"applied: commit {short(done.commit.id)} on {branch}"
        if done.commit
        else "the schema is already up to date"
    )
    document = shaped(
        show,
        graph,
        done.to_json(),
        lambda: answers.AppliedOutput.of(done, graph.uri, graph.snapshot(branch)),
    )
    answer(show, text, document)
    return OK


def _planned(graph: Graph, file: str, branch: str, allow_data_loss: bool) -> MigrationPlan:
    from omnigraph.lang.source import Source

    text = read_text(file)
    with errors_in(Source(text, file)):
        return graph.plan_schema(text, branch, allow_data_loss=allow_data_loss)


def plan_text(plan: MigrationPlan) -> str:
    """The steps, one per line with its sign, and their number."""
    lines = [step_line(step.to_json()) for step in plan.steps]
    if not lines:
        return "no difference"
    unsupported = "" if plan.supported else "; the plan is not supported"
    return "\n".join([*map(coloured, lines), f"{counted(len(lines), 'step')}{unsupported}"])


@examples(
    "omnigraph schema translate kuzu.cypher",
    "omnigraph schema translate constraints.cypher --out schema.pg",
)
def translate_schema(
    file: Annotated[str, Argument(help="File of statements; - for stdin.", metavar="FILE")],
    out: Annotated[
        str | None, Option("--out", "-o", help="Write the schema here.", metavar="FILE")
    ] = None,
) -> None:
    """Translate a schema of Kuzu or Neo4j: tables, constraints and indices become a .pg file for editing.

    Anything without a counterpart is listed in comments at the top.
    """
    from omnigraph.lang.schema.translate import translate_schema as translated

    text = translated(read_text(file))
    if out is None:
        print(text, end="")
    else:
        Path(out).write_text(text, encoding="utf-8")


# --- lint --------------------------------------------------------------------------------------------------------


@examples(
    "omnigraph lint --schema people.pg --query people.gq",
    "omnigraph lint --schema people.pg --query people.gq --json",
)
@rust_shape
def lint(
    where: Where,
    show: Show,
    schema: Annotated[str | None, Option("--schema", help="Schema file.", metavar="S.pg")] = None,
    query: Annotated[
        list[str] | None,
        Option("--query", help="Query file (.gq or .cypher); repeatable.", metavar="F.gq"),
    ] = None,
    branch: Branch = None,
) -> int:
    """Check a schema and query files without running anything.

    Without --schema, the schema of the graph is used. The exit code is 1 if there are errors, 0 if only warnings.
    """
    from omnigraph.lang.schema import lint_schema

    text, origin = _schema_to_lint(where, schema, branch)
    findings = lint_schema(text, schema or "")
    broken = any(d.severity == "error" for d in findings)
    reports = [] if broken else [_lint_file(file, text, origin) for file in query or []]
    if format_of(show) in (OutputFormat.JSON, OutputFormat.JSONL):
        document = _lint_document(findings, reports, origin, query)
        print_document(document, pretty=contract_of(show) is not None)
    else:
        print(_lint_text(text, schema or "schema", findings, reports))
    return FAILURE if broken or any(r.errors for r in reports) else OK


def _schema_to_lint(
    where: Where, file: str | None, branch: str | None
) -> tuple[str, dict[str, Any]]:
    if file is not None:
        return read_text(file), {"kind": "file", "path": file}
    return open_graph(where).schema(branch_of(branch)), {"kind": "graph", "uri": address(where)}


def _lint_file(file: str, schema: str, origin: dict[str, Any]) -> LintReport:
    from omnigraph.lang.languages import lint_cypher
    from omnigraph.lang.query import lint_queries
    from omnigraph.lang.schema import catalog_of, compile_schema

    check = lint_cypher if Path(file).suffix == ".cypher" else lint_queries
    return check(read_text(file), catalog_of(compile_schema(schema)), file, origin)


def _totals(findings: tuple[Diagnostic, ...], reports: list[LintReport]) -> tuple[int, int]:
    """How many errors and warnings there are."""
    errors = sum(d.severity == "error" for d in findings) + sum(r.errors for r in reports)
    warnings = sum(d.severity == "warning" for d in findings) + sum(r.warnings for r in reports)
    return errors, warnings


def _lint_document(
    findings: tuple[Diagnostic, ...],
    reports: list[LintReport],
    origin: dict[str, Any],
    files: list[str] | None,
) -> dict[str, Any]:
    """The report of a single query file; several are listed under `files`."""
    about_schema = [d.to_json() for d in findings]
    if len(reports) == 1:
        return reports[0].to_json() | {"schema_findings": about_schema}
    errors, warnings = _totals(findings, reports)
    return {
        "status": "error" if errors else "ok",
        "schema_source": origin,
        "query_path": files[0] if files and len(files) == 1 else None,
        "queries_processed": sum(len(r.results) for r in reports),
        "errors": errors,
        "warnings": warnings,
        "infos": 0,
        "results": [],
        "findings": about_schema,
        "files": [report.to_json() for report in reports],
    }


def _lint_text(
    schema: str, name: str, findings: tuple[Diagnostic, ...], reports: list[LintReport]
) -> str:
    from omnigraph.lang.diagnostics import render
    from omnigraph.lang.source import Source

    lines = [render(d, Source(schema, name)) for d in findings]
    for report in reports:
        path = report.query_path
        source = Source(read_text(path), path)
        lines += [render(d, source) for result in report.results for d in result.errors]
        lines += [f"warning: {path}: {r.name}: {w}" for r in report.results for w in r.warnings]
        lines += [
            render(found.diagnostic, source)
            if found.diagnostic
            else f"{found.severity}[{found.code}]: {path}: {found.message}"
            for found in report.findings
        ]
    errors, warnings = _totals(findings, reports)
    queries = counted(sum(len(r.results) for r in reports), "query")
    found = f"{counted(errors, 'error')}, {counted(warnings, 'warning')}"
    return "\n\n".join([*lines, f"{queries} checked: {found}"])


# --- fmt ---------------------------------------------------------------------------------------------------------


@examples("omnigraph fmt people.pg people.gq", "omnigraph fmt --check people.gq")
def fmt(
    files: Annotated[
        list[str], Argument(help="Schema and query files; - for stdin.", metavar="FILE…")
    ],
    show: Show,
    check: Annotated[
        bool, Option("--check", help="List files that would change; write nothing.")
    ] = False,
    schema: Annotated[bool, Option("--schema", help="Standard input is a schema.")] = False,
) -> int:
    """Format .pg, .gq and .cypher files; comments are kept.

    With --check nothing is written, and the exit code is 1 if a file would change.
    """
    changed = [file for file in files if _format(file, check, schema)]
    for file in changed:
        note(show, f"{'would format' if check else 'formatted'} {file}")
    return FAILURE if check and changed else OK


def _format(file: str, check: bool, is_schema: bool) -> bool:
    """Format a file; returns whether it was, or would be, changed."""
    before = read_text(file)
    after = formatted(before, file, is_schema)
    if file == "-" and not check:
        sys.stdout.write(after)
        return False
    if before != after and not check:
        try:
            Path(file).write_text(after, encoding="utf-8")
        except OSError as error:
            raise FileUnreadable(f"{file} cannot be written: {error}") from error
    return before != after


def formatted(text: str, file: str, is_schema: bool = False) -> str:
    """The canonical form of a file's text."""
    match Path(file).suffix:
        case ".pg":
            is_schema = True
        case ".gq":
            is_schema = False
        case ".cypher":
            return _cypher_formatted(text, file)
        case _ if file != "-":
            raise UsageError(f"{file} is neither a schema (.pg) nor a query (.gq or .cypher)")
    if is_schema:
        from omnigraph.lang.schema import format_schema

        return format_schema(text, file)
    from omnigraph.lang.languages import is_cypher_text
    from omnigraph.lang.query import format_queries

    if file == "-" and is_cypher_text(text):
        return _cypher_formatted(text, file)
    return format_queries(text, file)


def _cypher_formatted(text: str, file: str) -> str:
    from omnigraph.lang.cypher.format import format_cypher

    return format_cypher(text, file)


# --- explain -----------------------------------------------------------------------------------------------------


class CodeUnknown(OmnigraphError):
    """The error code is unknown."""

    code, kind = "code_unknown", Kind.NOT_FOUND
    default_help = "`omnigraph explain` lists all codes."


@examples("omnigraph explain T1", "omnigraph explain branch_not_found --json")
def explain(
    show: Show,
    code: Annotated[str | None, Argument(help="T3, for error[T3].", metavar="[CODE]")] = None,
) -> None:
    """Explain an error code; without one, list all codes."""
    if code is None:
        rows = [[c.code, str(c.kind), c.title] for c in all_codes().values()]
        print_sheet(show, Sheet(["code", "kind", "title"], rows), rows_max=0)
        return
    found = _code(code)
    document = {"code": found.code, "kind": str(found.kind), "title": found.title}
    document |= {"explanation": found.explanation, "help": found.help}
    answer(show, _code_text(found), document)


def _code(text: str) -> Code:
    """An error code, ignoring case; those of the languages are tried first, since that is quick."""
    for catalogue in (_language_codes, all_codes):
        known = catalogue()
        found = known.get(text) or known.get(text.upper()) or known.get(text.lower())
        if found is not None:
            return found
    from omnigraph.lang.diagnostics import did_you_mean

    meant = did_you_mean(text, list(CODES))
    help = f"Did you mean `{meant}`?" if meant else None
    raise CodeUnknown(f"unknown code {text!r}", help=help)


def _language_codes() -> dict[str, Code]:
    from importlib import import_module

    for module in LANGUAGES:
        import_module(module)
    return CODES


ADAPTERS = ("agents.langchain", "agents.llama_index")  # import whole frameworks, and add no codes


def all_codes() -> dict[str, Code]:
    """All error codes: modules register theirs on import, except for extras that are not installed."""
    from contextlib import suppress
    from importlib import import_module
    from pkgutil import walk_packages

    import omnigraph

    for module in walk_packages(omnigraph.__path__, "omnigraph.", onerror=lambda _: None):
        if not module.name.endswith(("__main__", *ADAPTERS)):
            with suppress(ImportError):
                import_module(module.name)
    return dict(sorted(CODES.items(), key=lambda item: (item[0].islower(), item[0])))


def _code_text(code: Code) -> str:
    paragraphs = [f"{code.code}: {code.title} ({code.kind}, exit code {EXIT_CODES[code.kind]})"]
    paragraphs += [text for text in (code.explanation, f"help: {code.help}") if text]
    return "\n\n".join(paragraphs)
