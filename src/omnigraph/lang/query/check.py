"""Checking a query against a schema: every name resolved, every expression typed, several errors at once."""

from __future__ import annotations

from omnigraph.lang import ir
from omnigraph.lang.diagnostics import Diagnostics
from omnigraph.lang.query import ast, checked
from omnigraph.lang.query.mutations import check_mutation
from omnigraph.lang.query.patterns import Anonymous, PatternChecker
from omnigraph.lang.query.returns import OrderChecker, ReturnChecker
from omnigraph.lang.query.scope import RESERVED_PARAM, Context, Scope
from omnigraph.lang.query.typing_rules import is_integer
from omnigraph.lang.query.union import check_union
from omnigraph.model.catalog import Catalog
from omnigraph.model.types import PropType


def check(query: ast.Query, catalog: Catalog, diagnostics: Diagnostics) -> checked.Query:
    """The checked query; only meaningful when no error was reported."""
    context = Context(catalog, diagnostics, _params(query, diagnostics))
    body = _body(context, query.body)
    params = tuple(ir.ParamDecl(name, kind) for name, kind in context.params.items())
    return checked.Query(query.name, params, body, query.description, query.instruction)


def _body(context: Context, body: ast.Read | ast.Mutation) -> checked.Read | ir.Mutation:
    return _read(context, body) if isinstance(body, ast.Read) else check_mutation(context, body)


def _params(query: ast.Query, diagnostics: Diagnostics) -> dict[str, PropType]:
    params: dict[str, PropType] = {}
    for param in query.params:
        if param.name == RESERVED_PARAM:
            message = f"the parameter `${param.name}` is reserved"
            diagnostics.error("Q003", message, param.at)
        elif param.name in params:
            diagnostics.error("Q003", f"the parameter `${param.name}` is declared twice", param.at)
        params.setdefault(param.name, param.type)
    return params


def _read(context: Context, read: ast.Read) -> checked.Read:
    skip, limit = _count(context, read.skip), _count(context, read.limit)
    if len(read.branches) > 1:
        branches = tuple(_branch(context, branch, None) for branch in read.branches)
        order = check_union(context, read, branches)
        return checked.Read(branches, read.keeps_duplicates, order, skip, limit)
    return checked.Read((_branch(context, read.branches[0], read),), (), (), skip, limit)


def _branch(context: Context, branch: ast.Branch, read: ast.Read | None) -> checked.Branch:
    """One branch; with `read` it is the only one, and the order is its own."""
    scope = Scope()
    block = PatternChecker(context, scope, Anonymous()).block(branch.clauses)
    returns = ReturnChecker(context, scope, branch)
    returns.check()
    having = returns.having()
    order, rank = OrderChecker(returns, read).check() if read else ((), None)
    columns = returns.final_columns()
    scores = tuple(checked.ScoreColumn(name, found) for found, name in returns.scores.items())
    return checked.Branch(
        block, columns, returns.grouping(), having, branch.distinct, scores, rank, order
    )


def _count(context: Context, node: ast.Expr | None) -> ir.Expr | None:
    """A literal or an integer parameter after `skip` or `limit`."""
    if node is None:
        return None
    if isinstance(node, ast.Literal):
        return ir.Literal(node.value, ir.I64)
    name = node.name if isinstance(node, ast.Variable) else ""
    kind = context.params.get(name)
    if kind is None:
        options = [f"${known}" for known in context.params]
        message = f"`${name}` is not a parameter of the query"
        context.diagnostics.unknown("Q011", message, node.at, word=f"${name}", options=options)
        return None
    if not is_integer(kind) or kind.nullable:
        message = f"a count is a whole number, and `${name}` is {kind}"
        context.diagnostics.error("Q011", message, node.at)
        return None
    return ir.Param(name, kind)
