"""The query language `.gq`: text in, a typed plan out.

In the order of control flow:

- `ast`          what was written
- `expressions`  parsing expressions, `parser` queries around them, `files` whole texts: the docstrings are the grammar
- `settings`     the settings a file can make
- `foreign`      Cypher and SQL typed by mistake, and what to write instead
- `scope`        the variables while a query is checked; `typing_rules` which types are compatible
- `typer`        expressions to typed expressions; `calls` the functions, `aggregates`, and `search`
- `patterns`     match blocks, with `edges` for traversals
- `returns`      columns, grouping, having and order; `union` several branches
- `mutations`    insert, update, delete
- `check`        the whole query; its result is in `checked`
- `plan`         what engines run: lowered by `omnigraph.lang.lower`, rewritten by `omnigraph.lang.rewrite`
- `params`       values for the parameters
- `format`       canonical text, with `unparse` for single lines; `lint` and `describe` reports about a file
- `codes`        the catalogue of codes
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

import omnigraph.lang.query.codes  # noqa: F401  every diagnostic looks its code up in the catalogue
from omnigraph.errors import Kind, OmnigraphError
from omnigraph.lang import ir
from omnigraph.lang.diagnostics import Diagnostics, did_you_mean
from omnigraph.lang.ir import Bound
from omnigraph.lang.query import ast, checked
from omnigraph.lang.query.check import check, plan
from omnigraph.lang.query.files import parse
from omnigraph.lang.query.params import ParamInvalid, ParamMissing, bind_params
from omnigraph.lang.source import Source
from omnigraph.model.catalog import Catalog

if TYPE_CHECKING:
    from omnigraph.lang.query.describe import Operation, describe_operation
    from omnigraph.lang.query.lint import LintReport

__all__ = [
    "Bound",
    "LintReport",
    "Operation",
    "ParamInvalid",
    "ParamMissing",
    "QueryAmbiguous",
    "QueryKindMismatch",
    "QueryNotFound",
    "Want",
    "bind_params",
    "check_query",
    "compile_query",
    "describe_operation",
    "format_queries",
    "lint_queries",
    "parse_queries",
]
# Running a query needs no report about it: these are imported on first use.
_LAZY = {"LintReport": "lint", "Operation": "describe", "describe_operation": "describe"}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)


class QueryNotFound(OmnigraphError):
    """The text has no query of this name."""

    code, kind = "query_not_found", Kind.NOT_FOUND
    default_help = "Name a query of the text, or leave the name out when it has only one."


class QueryAmbiguous(OmnigraphError):
    """The text has several queries and none was named."""

    code, kind = "query_ambiguous", Kind.INVALID
    default_help = "Choose one by its name."
    python_help = "Choose one with name=."


class QueryKindMismatch(OmnigraphError):
    """A read was given where a mutation is expected, or the reverse."""

    code, kind = "query_kind", Kind.INVALID
    default_help = "`omnigraph query` runs reads, `omnigraph mutate` runs mutations."
    python_help = "g.query() runs reads, g.mutate() runs mutations."


class Want(Enum):
    """What a caller expects of a query."""

    READ = "read"
    MUTATION = "mutation"


def parse_queries(text: str, name: str = "", *, bare: bool = False) -> ast.QueryFile:
    """The syntax tree of a text; `name` is the file it came from. With `bare` it may be the body of a query alone.

    >>> len(parse_queries("query q() { match { $p: Person } return { $p.name } }").queries)
    1
    >>> parse_queries("match { $p: Person } return { $p.name }", bare=True).queries[0].name
    'q'
    """
    return parse(Source(text, name), bare=bare)


def check_query(query: ast.Query, catalog: Catalog, source: Source) -> checked.CheckedQuery:
    """The query with every name resolved; raises with all its errors."""
    diagnostics = Diagnostics(source)
    result = check(query, catalog, diagnostics)
    diagnostics.raise_errors()
    return result


def compile_query(
    text: str, catalog: Catalog, name: str | None = None, *, want: Want | None = None
) -> ir.Query:
    """The plan of the named query of a text, or of its only one, which may be a body alone."""
    source = Source(text)
    chosen = choose(parse(source, bare=True), name)
    is_read = isinstance(chosen.body, ast.Read)
    if want is not None and is_read is not (want is Want.READ):
        found, wanted = ("read", "mutation") if is_read else ("mutation", "read")
        message = f"the query `{chosen.name}` is a {found}, not a {wanted}"
        raise QueryKindMismatch(message, span=source.span(chosen.name_at))
    return plan(check_query(chosen, catalog, source))


def choose(tree: ast.QueryFile, name: str | None) -> ast.Query:
    """The first query of this name, or the only one."""
    if tree.statement is not None and not tree.queries:
        message = f"`{tree.statement.words}` is a statement, not a query"
        raise QueryNotFound(message, help="Pass it alone to `query` or `mutate`.")
    names = [query.name for query in tree.queries]
    if name is None:
        if not names:
            raise QueryNotFound("the text contains no query", help="Write query q() { … }.")
        if len(names) > 1:
            message = f"the text contains {len(names)} queries: {', '.join(names[:10])}"
            raise QueryAmbiguous(message, details={"queries": names})
        return tree.queries[0]
    found = next((query for query in tree.queries if query.name == name), None)
    if found is None:
        meant = did_you_mean(name, names)
        help = f"Did you mean `{meant}`?" if meant else None
        details = {"queries": names, "suggestion": meant}
        raise QueryNotFound(f"there is no query `{name}`", help=help, details=details)
    return found


def format_queries(text: str, name: str = "") -> str:
    """A text in canonical form; comments survive.

    >>> print(format_queries("query q(){match{$p:Person}return{$p.name}}"), end="")
    query q() {
      match {
        $p: Person
      }
      return { $p.name }
    }
    """
    from omnigraph.lang.query.format import print_queries

    return print_queries(parse_queries(text, name), text)


def lint_queries(
    text: str, catalog: Catalog, name: str = "", schema_source: dict[str, Any] | None = None
) -> LintReport:
    """The full report on a file of queries, without raising."""
    from omnigraph.lang.query.lint import lint

    return lint(Source(text, name), catalog, schema_source or {"kind": "file"})
