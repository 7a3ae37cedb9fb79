"""Cypher: the openCypher language over the same plans as `.gq`.

In the order of control flow:

- `lexer`        text to tokens; `expressions` and `parser` tokens to a tree: the docstrings are the grammar; `ast`
- `types`        the types of values and which are compatible; `coercion` brings expressions to one type
- `scope`        the meaning of names, and the plan so far
- `binder`       expressions to typed expressions; `functions` the functions, `temporal` those of times and durations;
                 `mixed` lists without a type
- `patterns`     patterns to operators
- `projecting`   WITH and RETURN: columns, grouping, order and cut
- `bind`         whole queries, clause by clause; `writing` those that write
- `procedures`   what CALL takes; `metadata` those about schema and history
- `codes`        the catalogue of codes
- `format`       the canonical layout of a text; `lint` its warnings

A query is bound for the types its parameters have, because Cypher does not declare them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import omnigraph.lang.cypher.codes  # noqa: F401  every diagnostic looks its code up in the catalogue
from omnigraph.lang import ir
from omnigraph.lang.cypher import ast, types
from omnigraph.lang.cypher.bind import WRITING, bind_read
from omnigraph.lang.cypher.parser import parse
from omnigraph.lang.cypher.scope import parts_of
from omnigraph.lang.diagnostics import Diagnostics
from omnigraph.lang.rewrite import rewrite
from omnigraph.lang.source import Source
from omnigraph.model.catalog import Catalog

__all__ = ["compile_cypher", "kinds_of", "parameters_of", "parse_cypher", "writes"]


def parse_cypher(text: str, name: str = "") -> ast.Query:
    """The syntax tree of a text; `name` is the file it came from."""
    return parse(Source(text, name))


def kinds_of(values: Mapping[str, Any] | None) -> tuple[tuple[str, ir.ValueType | None], ...]:
    """The types of the parameters' values: a text is compiled once for each of them."""
    return tuple((name, types.of_value(value)) for name, value in sorted((values or {}).items()))


def compile_cypher(
    text: str, catalog: Catalog, values: Mapping[str, Any] | None = None
) -> ir.Query:
    """The plan of a text, for parameters of these types."""
    source = Source(text)
    tree = parse(source)
    diagnostics = Diagnostics(source)
    if not writes(tree):
        query = bind_read(tree, catalog, diagnostics, values or {})
        diagnostics.raise_errors()
        return rewrite(query)
    from omnigraph.lang.cypher.writing import bind_write

    query = bind_write(tree, catalog, diagnostics, values or {})
    diagnostics.raise_errors()
    return _rewritten(query)


def _rewritten(query: ir.Query) -> ir.Query:
    """A mutation whose reads are rewritten like any read."""
    assert isinstance(query.body, ir.Mutation)  # noqa: S101 - of a text that writes
    (change,) = query.body.statements
    assert isinstance(change, ir.PatternChange)  # noqa: S101 - the only one Cypher makes

    def of(read: ir.Read) -> ir.Read:
        whole = rewrite(replace(query, body=read))
        assert isinstance(whole.body, ir.Read)  # noqa: S101
        return whole.body

    stages = tuple(replace(stage, read=of(stage.read)) for stage in change.stages)
    returns = None if change.returns is None else of(change.returns)
    return replace(query, body=ir.Mutation((replace(change, stages=stages, returns=returns),)))


def parameters_of(tree: ast.Query) -> tuple[str, ...]:
    """The names of the parameters a query reads."""
    found = (n.name for n in parts_of(tree) if isinstance(n, ast.Parameter))
    return tuple(dict.fromkeys(found))


def writes(tree: ast.Query) -> bool:
    """Whether a query changes the graph."""
    return any(isinstance(clause, WRITING) for part in tree.parts for clause in part.clauses)
