"""Bringing expressions to one type, and comparing them whatever their types."""

from __future__ import annotations

from omnigraph.lang import ir
from omnigraph.lang.cypher import types
from omnigraph.lang.ir import CompareOp as Op
from omnigraph.lang.ir import ValueType
from omnigraph.lang.tree import is_null_literal
from omnigraph.model.types import PropType, Scalar


def null_of(kind: ValueType) -> ir.Expr:
    return ir.Literal(None, kind)


def as_type(expr: ir.Expr, kind: ValueType) -> ir.Expr:
    """The same value in a type that holds it."""
    own = types.plain(expr.type)
    if own == kind or types.is_null(kind):
        return expr
    if is_null_literal(expr):
        return ir.Literal(None, kind)
    match expr:
        case ir.MakeList(items):
            item = types.item_of(kind)
            return ir.MakeList(tuple(as_type(i, item) for i in items), kind)
        case ir.MakeMap(items, ir.MapValue(fields)) if isinstance(kind, ir.MapValue):
            held = {name: part for (name, _), part in zip(fields, items, strict=True)}
            wanted = (as_type(held.get(n, null_of(k)), k) for n, k in kind.fields)
            return ir.MakeMap(tuple(wanted), kind)
        case ir.Literal(tuple(values)) if _is_float(types.item_of(kind)):
            return ir.Literal(tuple(float(v) for v in values), kind)
        case ir.Literal(int(number)) if kind == types.F64:
            return ir.Literal(float(number), ir.F64)
        case _ if types.holds_temporal(kind) and not types.is_null(own):
            from omnigraph.lang.cypher.temporal import as_temporal

            return as_temporal(expr, kind)
        case _ if isinstance(own, ir.RefValue | ir.TrailValue):
            return expr  # references are numbers, whatever types they may name
        case _:
            return ir.As(expr, kind)


def _is_float(kind: ValueType) -> bool:
    return types.is_scalar(kind, Scalar.F64)


def compared(op: Op, left: ir.Expr, right: ir.Expr) -> ir.Expr:
    """The comparison of two values. Values of different kinds are unequal, and neither is less."""
    if is_null_literal(left) or is_null_literal(right):
        return null_of(types.BOOL)
    if isinstance(left.type, ir.RefValue) or isinstance(right.type, ir.RefValue):
        return _references(op, left, right)
    left, right = _with_times(left, right), _with_times(right, left)
    kinds = (left.type, right.type)
    if any(isinstance(kind, ir.TemporalValue) for kind in kinds):
        from omnigraph.lang.cypher.temporal import compared_times

        found = compared_times(op, left, right)
        return _different(op, left, right) if found is None else found
    if all(types.is_number(k) for k in kinds) or _one_scalar(*kinds):
        return ir.Compare(op, left, right)
    shared = types.common(kinds)
    if all(isinstance(k, ir.MapValue) for k in kinds) and _keys(kinds[0]) != _keys(kinds[1]):
        return _different(op, left, right)
    if shared is None or (isinstance(shared, ir.MapValue) and op not in (Op.EQ, Op.NE)):
        return _different(op, left, right)
    alike = ir.Alike(as_type(left, shared), as_type(right, shared))
    match op:
        case Op.EQ:
            return alike
        case Op.NE:
            return ir.Not(alike)
        case _:
            return null_of(types.BOOL)


def _keys(kind: ValueType) -> frozenset[str]:
    return (
        frozenset(name for name, _ in kind.fields) if isinstance(kind, ir.MapValue) else frozenset()
    )


def _one_scalar(one: ValueType, other: ValueType) -> bool:
    return (
        isinstance(one, PropType)
        and isinstance(other, PropType)
        and one.is_plain
        and other.is_plain
        and one.scalar is other.scalar
    )


def _with_times(part: ir.Expr, other: ir.Expr) -> ir.Expr:
    """A text compared with a time is the time it spells."""
    if types.is_time(other.type) and types.is_string(part.type):
        return ir.Cast(part, types.plain(other.type))  # type: ignore[arg-type]
    if types.is_scalar(other.type, Scalar.DATETIME) and types.is_scalar(part.type, Scalar.DATE):
        return ir.Cast(part, types.DATETIME)
    return part


def _references(op: Op, left: ir.Expr, right: ir.Expr) -> ir.Expr:
    if not (isinstance(left.type, ir.RefValue) and isinstance(right.type, ir.RefValue)):
        return _different(op, left, right)
    if op not in (Op.EQ, Op.NE):
        return null_of(types.BOOL)
    same: ir.Expr
    if isinstance(left, ir.RefOf) and isinstance(right, ir.RefOf):
        same = ir.Same(left.var, right.var)
    else:
        same = ir.Alike(left, right)
    return same if op is Op.EQ else ir.Not(same)


def _different(op: Op, left: ir.Expr, right: ir.Expr) -> ir.Expr:
    """Two values that cannot be equal: false, or unknown if one is null."""
    if op not in (Op.EQ, Op.NE):
        return null_of(types.BOOL)
    known = ir.And((ir.IsNull(_bare(left), True), ir.IsNull(_bare(right), True)))
    answer = ir.Literal(op is Op.NE, ir.BOOL)
    return ir.Choice(((known, answer),), null_of(types.BOOL), types.BOOL)


def _bare(expr: ir.Expr) -> ir.Expr:
    return ir.IdOf(expr.var, types.STRING) if isinstance(expr, ir.RefOf) else expr
