"""Errors and warnings about a text in Cypher, in the form of a report on a file of queries."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from omnigraph.lang import cypher, ir
from omnigraph.lang.diagnostics import LanguageError
from omnigraph.lang.query.describe import describe_operation
from omnigraph.lang.query.lint import LintReport, QueryResult
from omnigraph.lang.query.params import ParamMissing
from omnigraph.lang.tree import walk
from omnigraph.model.catalog import Catalog

UNCONNECTED = "patterns are not connected: every row of one is joined with every row of the other"
UNBOUNDED = "a walk has no upper bound: every walk is followed to its end"


def lint(text: str, catalog: Catalog, name: str, schema_source: dict[str, Any]) -> LintReport:
    """Check the query of a text."""
    query = PurePath(name).stem or "cypher"
    kind = "read"
    try:
        tree = cypher.parse_cypher(text, name)
        kind = "mutation" if cypher.writes(tree) else "read"
        plan = cypher.compile_cypher(text, catalog)
    except LanguageError as broken:
        result = QueryResult(query, kind, (), broken.diagnostics)
    except ParamMissing:  # what depends on the types of parameters is only known when it runs
        result = QueryResult(query, kind, ())
    else:
        warnings = tuple(dict.fromkeys(_warnings(plan)))
        result = QueryResult(query, kind, warnings, (), describe_operation(plan, catalog))
    return LintReport(name, (result,), (), schema_source)


def _warnings(query: ir.Query) -> Iterator[str]:
    for node in walk(query.body):
        match node:
            case ir.Join(ir.NodeScan() | ir.Expand() | ir.Join(), ir.NodeScan() | ir.Expand(), ()):
                yield UNCONNECTED
            case ir.Trail(max_hops=None):
                yield UNBOUNDED
