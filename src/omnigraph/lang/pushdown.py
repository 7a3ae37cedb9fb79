"""Turning what a query asks of one variable into a predicate a stored table can answer.

Pure: engines call it once the parameters are bound. What it cannot express stays with the engine.
"""

from __future__ import annotations

from typing import Any

from omnigraph.lang import ir
from omnigraph.lang.evaluate import Bound, evaluate, is_constant
from omnigraph.lang.tree import conjunction, conjuncts
from omnigraph.model import predicates as p

FLIPPED = {
    p.Op.EQ: p.Op.EQ,
    p.Op.NE: p.Op.NE,
    p.Op.LT: p.Op.GT,
    p.Op.LE: p.Op.GE,
    p.Op.GT: p.Op.LT,
    p.Op.GE: p.Op.LE,
}


class _Inexpressible(Exception):
    """No predicate says this."""


def to_predicate(expr: ir.Expr, var: str, bound: Bound) -> p.Predicate | None:
    """The predicate that has the same truth as the expression for every row of `var`'s table, if there is one."""
    try:
        return _predicate(expr, var, bound)
    except _Inexpressible:
        return None


def split(
    expr: ir.Expr | None, var: str, bound: Bound
) -> tuple[p.Predicate | None, ir.Expr | None]:
    """The part of a conjunction a table can answer, and the rest, which the engine must filter by."""
    told, rest = [], []
    for part in conjuncts(expr):
        predicate = to_predicate(part, var, bound)
        if predicate is None:
            rest.append(part)
        else:
            told.append(predicate)
    pushed = p.And(tuple(told)) if len(told) > 1 else told[0] if told else None
    return pushed, conjunction(tuple(rest))


def _predicate(expr: ir.Expr, var: str, bound: Bound) -> p.Predicate:
    if is_constant(expr):
        return p.Always(evaluate(expr, bound))
    match expr:
        case ir.And(parts):
            return p.And(tuple(_predicate(part, var, bound) for part in parts))
        case ir.Or(parts):
            return p.Or(tuple(_predicate(part, var, bound) for part in parts))
        case ir.Not(part):
            return p.Not(_predicate(part, var, bound))
        case ir.IsNull(part, negated):
            return p.IsNull(_column(part, var), negated)
        case ir.Compare(op, left, right):
            if is_constant(left):
                op, left, right = FLIPPED[op], right, left
            return p.Compare(_column(left, var), op, _value(right, bound))
        case ir.In(item, members):
            return _in(_column(item, var), _value(members, bound))
        case ir.Has(items, item):
            return _has(items, item, var, bound)
        case ir.Contains(text, needle):
            column, value = _column(text, var), _value(needle, bound)
            return p.Always(None) if value is None else p.Contains(column, value)
        case ir.StartsWith(text, prefix):
            column, value = _column(text, var), _value(prefix, bound)
            return p.Always(None) if value is None else p.StartsWith(column, value)
        case ir.Column() if expr.type.scalar is ir.BOOL.scalar:
            return p.Compare(_column(expr, var), p.Op.EQ, True)
        case _:
            raise _Inexpressible


def _in(column: str, members: Any) -> p.Predicate:
    if members is None:
        return p.Always(None)
    return p.In(column, tuple(m for m in members if m is not None))


def _has(items: ir.Expr, item: ir.Expr, var: str, bound: Bound) -> p.Predicate:
    if is_constant(item):
        column, value = _column(items, var), _value(item, bound)
        return p.Always(False) if value is None else p.Has(column, value)
    members = _value(
        items, bound
    )  # a constant list that has the column's value, false where that is null
    column = _column(item, var)
    return p.And((p.IsNull(column, negated=True), _in(column, members or ())))


def _column(expr: ir.Expr, var: str) -> str:
    match expr:
        case ir.Column(v, name) if v == var:
            return name
        case ir.IdOf(v) if v == var:
            return "id"
        case ir.EndpointOf(v, end) if v == var:
            return end.value
        case _:
            raise _Inexpressible


def _value(expr: ir.Expr, bound: Bound) -> Any:
    if not is_constant(expr):
        raise _Inexpressible
    return evaluate(expr, bound)
