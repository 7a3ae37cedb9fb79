"""List literals whose members have no common type, where each member is treated separately.

No value has several types here, so such a list is not a value. But `x IN [1, 'a']`, a quantifier or a comprehension
over it and a comparison with it use its members one by one, and those are known when the query is compiled.
"""

from __future__ import annotations

from omnigraph.lang import ir
from omnigraph.lang.cypher import ast, types
from omnigraph.lang.cypher.binder import FALSE, TESTS, ExprBinder
from omnigraph.lang.cypher.coercion import as_type, compared, null_of
from omnigraph.lang.ir import CompareOp as Op


def is_mixed(binder: ExprBinder, node: ast.Expr) -> bool:
    """Whether an expression is a list literal without a type."""
    return isinstance(node, ast.ListLiteral) and _kind(binder, node) is None


def _kind(binder: ExprBinder, node: ast.Expr) -> ir.ValueType | None:
    if not isinstance(node, ast.ListLiteral):
        return binder.expr(node).type
    kinds = [_kind(binder, item) for item in node.items]
    known = [kind for kind in kinds if kind is not None]
    item = types.common(known) if len(known) == len(kinds) else None
    return None if item is None else types.list_of(item)


def equal(binder: ExprBinder, left: ast.Expr, right: ast.Expr) -> ir.Expr:
    """Whether two values are equal, at least one of which is such a list or may contain one."""
    mixed = is_mixed(binder, left), is_mixed(binder, right)
    if not any(mixed):
        return compared(Op.EQ, binder.expr(left), binder.expr(right))
    if isinstance(left, ast.ListLiteral) and isinstance(right, ast.ListLiteral):
        if len(left.items) != len(right.items):
            return FALSE
        pairs = zip(left.items, right.items, strict=True)
        return ir.And(tuple(equal(binder, one, other) for one, other in pairs))
    other = binder.expr(right if mixed[0] else left)
    if types.is_list(other.type):  # its members are not known, and have a type
        binder.expr(left if mixed[0] else right)
    known = binder.is_null(other, negated=True)
    return ir.Choice(((known, FALSE),), null_of(types.BOOL), types.BOOL)


def asks_members(binder: ExprBinder, item: ast.Expr, members: ast.Expr) -> bool:
    """Whether the test for a member has to be done member by member."""
    if not isinstance(members, ast.ListLiteral) or not members.items:
        return False
    return is_mixed(binder, members) or is_mixed(binder, item)


def member(binder: ExprBinder, item: ast.Expr, members: ast.Expr) -> ir.Expr:
    """Whether a value is one of the members."""
    assert isinstance(members, ast.ListLiteral)  # noqa: S101 - see `asks_members`
    found = tuple(equal(binder, item, one) for one in members.items)
    return found[0] if len(found) == 1 else ir.Or(found)


def iteration(
    binder: ExprBinder, node: ast.ListComprehension | ast.Quantifier, members: ast.ListLiteral
) -> ir.Expr:
    """The test or expression for each of the members."""
    each = [binder.within({node.var: binder.expr(item)}) for item in members.items]
    var = binder.binding.fresh(node.var)
    if isinstance(node, ast.Quantifier):
        tests = tuple(within.truth(node.predicate) for within in each)
        whole = ir.MakeList(tests, types.list_of(types.BOOL))
        return ir.Quantified(TESTS[node.name], var, whole, ir.ValueOf(var, types.BOOL))
    body = node.body or ast.Variable(node.var, node.at)
    values = [within.expr(body) for within in each]
    kind = binder.common(values, node.at, "the list")
    made = [as_type(value, kind) for value in values]
    if node.predicate is None:
        return ir.MakeList(tuple(made), types.list_of(kind))
    held = ir.MapValue((("keep", types.BOOL), ("value", kind)))
    tests = tuple(within.truth(node.predicate) for within in each)
    rows = tuple(ir.MakeMap(pair, held) for pair in zip(tests, made, strict=True))
    item = ir.ValueOf(var, held)
    kept, value = ir.FieldOf(item, "keep", types.BOOL), ir.FieldOf(item, "value", kind)
    return ir.Each(var, ir.MakeList(rows, ir.ListValue(held)), kept, value, types.list_of(kind))
