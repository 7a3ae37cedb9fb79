"""`omnigraph lint`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from omnigraph.cli.app import Verb
from omnigraph.cli.context import address, branch_of, open_graph, read_text
from omnigraph.cli.exits import FAILURE, OK
from omnigraph.cli.options import Branch, Format, Show, Where
from omnigraph.cli.output import format_of, print_document

if TYPE_CHECKING:
    from omnigraph.lang.diagnostics import Diagnostic
    from omnigraph.lang.query import LintReport


def lint(
    where: Where,
    show: Show,
    schema: Annotated[str | None, Option("--schema", help="The schema.", metavar="S.pg")] = None,
    query: Annotated[list[str] | None, Option("--query", help="Queries.", metavar="F.gq")] = None,
    branch: Branch = None,
) -> int:
    """Check a schema and files of queries without running anything.

    Without --schema, the schema of a graph is used. The exit code is 1 when there is an error; warnings alone are fine.
    """
    from omnigraph.lang.schema import lint_schema

    text, origin = _schema(where, schema, branch)
    findings = lint_schema(text, schema or "")
    broken = any(d.severity == "error" for d in findings)
    reports = [] if broken else [_lint_file(file, text, origin) for file in query or []]
    if format_of(show) in (Format.JSON, Format.JSONL):
        print_document(_document(findings, reports, origin, query))
    else:
        print(_text(text, schema or "schema", findings, reports))
    return FAILURE if broken or any(r.errors for r in reports) else OK


def _schema(where: Where, file: str | None, branch: str | None) -> tuple[str, dict[str, Any]]:
    if file is not None:
        return read_text(file), {"kind": "file", "path": file}
    return open_graph(where).schema(branch_of(branch)), {"kind": "graph", "uri": address(where)}


def _lint_file(file: str, schema: str, origin: dict[str, Any]) -> LintReport:
    from omnigraph.lang.query import lint_queries
    from omnigraph.lang.schema import catalog_of, compile_schema

    return lint_queries(read_text(file), catalog_of(compile_schema(schema)), file, origin)


def _document(
    findings: tuple[Diagnostic, ...],
    reports: list[LintReport],
    origin: dict[str, Any],
    files: list[str] | None,
) -> dict[str, Any]:
    """One file of queries is its own report; otherwise the reports are listed under `files`."""
    about_schema = [d.to_json() for d in findings]
    if len(reports) == 1:
        return reports[0].to_json() | {"schema_findings": about_schema}
    errors = sum(d.severity == "error" for d in findings) + sum(r.errors for r in reports)
    warnings = sum(d.severity == "warning" for d in findings) + sum(r.warnings for r in reports)
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


def _text(
    schema: str, name: str, findings: tuple[Diagnostic, ...], reports: list[LintReport]
) -> str:
    from omnigraph.lang.diagnostics import render
    from omnigraph.lang.source import Source

    lines = [render(d, Source(schema, name)) for d in findings]
    for report in reports:
        source = Source(read_text(report.query_path), report.query_path)
        lines += [render(d, source) for result in report.results for d in result.errors]
        lines += [
            _warning(report.query_path, result.name, w)
            for result in report.results
            for w in result.warnings
        ]
        for found in report.findings:
            place = found.diagnostic
            lines.append(render(place, source) if place else _finding(report.query_path, found))
    errors = sum(d.severity == "error" for d in findings) + sum(r.errors for r in reports)
    warnings = sum(d.severity == "warning" for d in findings) + sum(r.warnings for r in reports)
    queries = sum(len(r.results) for r in reports)
    return "\n\n".join([*lines, f"{queries} queries checked: {errors} errors, {warnings} warnings"])


def _warning(path: str, query: str, text: str) -> str:
    return f"warning: {path}: {query}: {text}"


def _finding(path: str, found: Any) -> str:
    return f"{found.severity}[{found.code}]: {path}: {found.message}"


COMMAND = Verb(
    lint,
    (
        "omnigraph lint --schema people.pg --query people.gq",
        "omnigraph lint --schema people.pg --query people.gq --json",
    ),
)
