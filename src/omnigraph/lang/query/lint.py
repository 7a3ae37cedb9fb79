"""Errors and warnings of a query file, as one report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import field
from typing import Any

from omnigraph.errors import CODES
from omnigraph.lang.diagnostics import Diagnostic, Diagnostics, LanguageError, Severity
from omnigraph.lang.query import ast
from omnigraph.lang.query.check import check, plan
from omnigraph.lang.query.describe import Operation, describe_operation
from omnigraph.lang.query.files import parse
from omnigraph.lang.source import Source
from omnigraph.model.catalog import Catalog, NodeType
from omnigraph.model.frozen import frozen

SEVERITIES = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.INFO: 2}


@frozen
class LintFinding:
    """One finding about the file as a whole."""

    severity: Severity
    code: str
    message: str
    type_name: str | None = None
    property: str | None = None
    query_names: tuple[str, ...] = ()
    diagnostic: Diagnostic | None = None

    def to_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "severity": str(self.severity),
            "code": self.code,
            "message": self.message,
            "help": self.diagnostic.help if self.diagnostic else CODES[self.code].help,
        }
        if self.type_name is not None:
            found["type_name"] = self.type_name
        if self.property is not None:
            found["property"] = self.property
        if self.query_names:
            found["query_names"] = list(self.query_names)
        if self.diagnostic is not None:
            found["span"] = self.diagnostic.span.to_json()
        return found


@frozen
class QueryResult:
    """The lint report on one query."""

    name: str
    kind: str
    warnings: tuple[str, ...]
    errors: tuple[Diagnostic, ...] = ()
    operation: Operation | None = None

    def to_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "name": self.name,
            "kind": self.kind,
            "status": "error" if self.errors else "ok",
            "warnings": list(self.warnings),
        }
        if self.errors:
            found["error"] = f"{self.errors[0].code}: {self.errors[0].message}"
            found["diagnostics"] = [d.to_json() for d in self.errors]
        if self.operation is not None:
            found["operation"] = self.operation.to_json()
        return found


@frozen
class LintReport:
    """The lint report on one file of queries."""

    query_path: str
    results: tuple[QueryResult, ...] = ()
    findings: tuple[LintFinding, ...] = ()
    schema_source: dict[str, Any] = field(default_factory=lambda: {"kind": "file"})

    @property
    def status(self) -> str:
        return "error" if self.errors else "ok"

    @property
    def errors(self) -> int:
        return self._count(Severity.ERROR) + sum(1 for r in self.results if r.errors)

    @property
    def warnings(self) -> int:
        return self._count(Severity.WARNING) + sum(len(r.warnings) for r in self.results)

    def _count(self, severity: Severity) -> int:
        return sum(1 for f in self.findings if f.severity is severity)

    def to_json(self) -> dict[str, Any]:
        return {
            "status": self.status,
            "schema_source": self.schema_source,
            "query_path": self.query_path,
            "queries_processed": len(self.results),
            "errors": self.errors,
            "warnings": self.warnings,
            "infos": self._count(Severity.INFO),
            "results": [r.to_json() for r in self.results],
            "findings": [f.to_json() for f in self.findings],
        }


def lint(source: Source, catalog: Catalog, schema_source: dict[str, Any]) -> LintReport:
    """Check every query of a text, then look at the file as a whole."""
    try:
        tree = parse(source)
    except LanguageError as error:
        first = error.diagnostics[0]
        message = f"{first.message} ({first.code})"
        broken = LintFinding(Severity.ERROR, "Q000", message, diagnostic=first)
        return LintReport(source.name, findings=(broken,), schema_source=schema_source)
    results = tuple(_result(query, catalog, source) for query in tree.queries)
    if tree.statement is not None and not results:
        kind = "mutation" if tree.statement.writes else "read"
        results = (QueryResult(tree.statement.words, kind, ()),)
    findings = [finding for rule in LINTS for finding in rule(tree, catalog)]
    return LintReport(source.name, results, tuple(sorted(findings, key=_place)), schema_source)


def _place(finding: LintFinding) -> tuple[int, str, str, str]:
    where = (finding.type_name or "", finding.property or "")
    return (SEVERITIES[finding.severity], *where, finding.message)


def _result(query: ast.Query, catalog: Catalog, source: Source) -> QueryResult:
    diagnostics = Diagnostics(source)
    checked = check(query, catalog, diagnostics)
    errors = tuple(d for d in diagnostics.sorted() if d.severity is Severity.ERROR)
    kind = "read" if isinstance(query.body, ast.Read) else "mutation"
    operation = None if errors else describe_operation(plan(checked), catalog)
    return QueryResult(query.name, kind, tuple(_warnings(query)), errors, operation)


def _warnings(query: ast.Query) -> Iterator[str]:
    if isinstance(query.body, ast.Mutation):
        if not query.params:
            yield "mutation declares no params; hardcoded mutations are easy to miss"
        return
    for ordering in query.body.order[:1]:
        call = ordering.expr
        if (
            isinstance(call, ast.Call)
            and call.name in ("bm25", "rrf")
            and ordering.descending is False
        ):
            yield f"L204: an ordering by {call.name} puts the best first; `asc` has no effect"


# --- rules about the whole file ----------------------------------------------------------------------------------


def unset_properties(tree: ast.QueryFile, catalog: Catalog) -> Iterator[LintFinding]:
    """Nullable properties of updated node types that no update sets."""
    updaters: dict[str, dict[str, None]] = {}
    assigned: dict[str, set[str]] = {}
    for query in tree.queries:
        for statement in query.body.statements if isinstance(query.body, ast.Mutation) else ():
            if isinstance(statement, ast.Update):
                updaters.setdefault(statement.type_name, {})[query.name] = None
                names = {part.name for part in statement.fields}
                assigned.setdefault(statement.type_name, set()).update(names)
    for name, queries in updaters.items():
        kind = catalog.nodes.get(name)
        for prop in _unset(kind, assigned[name]) if kind else ():
            message = f"{name}.{prop} exists in schema but no update query sets it"
            yield LintFinding(Severity.WARNING, "L201", message, name, prop, tuple(queries))


def _unset(kind: NodeType, assigned: set[str]) -> Iterator[str]:
    key = kind.key or ()
    for prop in kind.properties.values():
        if prop.type.nullable and prop.embed is None and prop.name not in (*key, *assigned):
            yield prop.name


def repeated_names(tree: ast.QueryFile, _: Catalog) -> Iterator[LintFinding]:
    """Queries that can never run, because an earlier one has the same name."""
    for name, count in Counter(query.name for query in tree.queries).items():
        if count > 1:
            message = f"{count} queries are called {name}; the first one runs"
            yield LintFinding(Severity.WARNING, "L203", message, query_names=(name,))


LINTS: tuple[Callable[[ast.QueryFile, Catalog], Iterator[LintFinding]], ...] = (
    unset_properties,
    repeated_names,
)
