"""Expressions over whole bags of rows, in Arrow: three-valued, and as `lang/evaluate.py` defines them for one row.

A value is an array with one member per row, or a scalar where it is the same for all rows. What depends on constants
alone is left to the reference evaluator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang import ir
from omnigraph.lang.evaluate import ArithmeticOverflow, is_constant
from omnigraph.lang.evaluate import evaluate as evaluate_constant
from omnigraph.lang.tree import children
from omnigraph.model.columns import arrow_type
from omnigraph.model.types import FLOATS, PropType
from omnigraph.read import functions, lists, numbers, texts, values
from omnigraph.read.arrays import Mask, Value, to_mask
from omnigraph.read.context import Context
from omnigraph.read.rows import Entities, Paths, Rows

Known = dict[
    int, Value
]  # of nodes that occur more than once, by identity: their value, or None until it is computed
NOTHING: Known = {}


def column(expr: ir.Expr, rows: Rows, ctx: Context, known: Known = NOTHING) -> pa.Array:
    """The expression's value for every row."""
    value = evaluate(expr, rows, ctx, known)
    return spread(value, rows.n) if isinstance(value, pa.Scalar) else value


def columns(exprs: Sequence[ir.Expr], rows: Rows, ctx: Context) -> list[pa.Array]:
    """The values of several expressions; what they share, because one names another, is computed once."""
    known = dict.fromkeys(_shared(exprs))
    return [column(expr, rows, ctx, known) for expr in exprs]


def _shared(exprs: Sequence[ir.Expr]) -> set[int]:
    """The nodes that are reached more than once, without walking through them again."""
    seen: set[int] = set()
    again: set[int] = set()
    waiting: list[object] = list(exprs)
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            again.add(id(node))
        else:
            seen.add(id(node))
            waiting.extend(children(node))
    return again


def holds(expr: ir.Expr, rows: Rows, ctx: Context) -> Mask:
    """The rows for which a predicate is true."""
    if isinstance(expr, ir.And):
        return _all_hold(expr.parts, rows, ctx)
    value = evaluate(expr, rows, ctx)
    if isinstance(value, pa.Scalar):
        return np.full(rows.n, value.as_py() is True)
    return to_mask(value)


def _all_hold(parts: tuple[ir.Expr, ...], rows: Rows, ctx: Context) -> Mask:
    mask = holds(parts[0], rows, ctx)
    for part in parts[1:]:
        mask = mask & holds(part, rows, ctx)
    return mask


def spread(value: pa.Scalar, n: int) -> pa.Array:
    """A constant as a column."""
    return pa.repeat(value, n) if value.is_valid else pa.nulls(n, value.type)


def evaluate(expr: ir.Expr, rows: Rows, ctx: Context, known: Known = NOTHING) -> Value:
    """The value of an expression, as a column or a constant."""
    match expr:
        case ir.Literal() | ir.ListOf() | ir.Param() | ir.Now():
            return constant(expr, ctx)
        case ir.Column(var, name):
            return values.entity_column(rows.entities(var), name, ctx)
        case ir.IdOf(var):
            return values.entity_column(rows.entities(var), "id", ctx)
        case ir.EndpointOf(var, end):
            return values.entity_column(rows.entities(var), end.value, ctx)
        case ir.TypeOf(var):
            return _type_names(rows.entities(var))
        case ir.EntityOf(var):
            return values.entities(rows.entities(var), ctx)
        case ir.PathOf(var):
            return values.paths(_paths(rows, var), ctx)
        case ir.PathGet(var, part):
            return values.path_part(_paths(rows, var), part, ctx)
        case ir.ScoreOf(name):
            scores = rows.scores[name]
            return pa.array(scores, mask=np.isnan(scores))
        case ir.Output(name):
            return rows.column(name)
        case ir.Same(left, right):
            return _same(rows.entities(left), rows.entities(right))
        case ir.TextMatch():
            return texts.text_match(expr, rows, ctx)
        case _:
            return _operation(expr, rows, ctx, known)


def constant(expr: ir.Expr, ctx: Context) -> pa.Scalar:
    """A constant in the type it was checked to have."""
    return _scalar(evaluate_constant(expr, ctx.bound), expr.type)


def _scalar(value: object, kind: ir.ValueType) -> pa.Scalar:
    assert isinstance(kind, PropType)  # noqa: S101 - entities and paths are never constant
    try:
        return pa.scalar(_in_type(value, kind), arrow_type(kind))
    except (OverflowError, pa.ArrowInvalid) as misfit:
        raise ArithmeticOverflow(f"a constant does not fit {kind}") from misfit


def _in_type(value: object, kind: PropType) -> object:
    if isinstance(value, tuple):
        return [_in_type(member, kind) for member in value]
    return float(value) if isinstance(value, int) and kind.scalar in FLOATS else value


def _operation(expr: ir.Expr, rows: Rows, ctx: Context, known: Known) -> Value:
    value = known.get(id(expr))
    if value is None:
        value = _computed(expr, rows, ctx, known)
        if id(expr) in known:
            known[id(expr)] = value
    return value


def _computed(expr: ir.Expr, rows: Rows, ctx: Context, known: Known) -> Value:
    match expr:
        case ir.In(item, members) | ir.Has(members, item) if is_constant(members):
            one = evaluate(item, rows, ctx, known)
            if isinstance(one, pa.Array):
                # A constant list may hold numbers that no one type does.
                listed = evaluate_constant(members, ctx.bound)
                return lists.is_one_of(one, listed, two_valued=isinstance(expr, ir.Has))
        case _:
            pass
    operands = [evaluate(part, rows, ctx, known) for part in _operands(expr)]
    if all(isinstance(operand, pa.Scalar) for operand in operands):
        return constant(expr, ctx)
    return _apply(expr, operands, rows.n)


def _operands(expr: ir.Expr) -> tuple[ir.Expr, ...]:
    match expr:
        case ir.Compare(_, left, right) | ir.Arithmetic(_, left, right):
            return (left, right)
        case ir.And(parts) | ir.Or(parts):
            return parts
        case ir.Not(part) | ir.IsNull(part) | ir.Cast(part):
            return (part,)
        case ir.In(item, members):
            return (item, members)
        case ir.Has(members, item):
            return (members, item)
        case ir.Contains(text, other) | ir.StartsWith(text, other) | ir.RegexMatch(text, other):
            return (text, other)
        case ir.Call(_, args):
            return args
        case _:
            raise AssertionError(f"{type(expr).__name__} has no operands")


def _apply(expr: ir.Expr, operands: list[Value], n: int) -> Value:
    match expr:
        case ir.Compare(op):
            return numbers.compare(op, operands[0], operands[1])
        case ir.And():
            return _fold(pc.and_kleene, operands)
        case ir.Or():
            return _fold(pc.or_kleene, operands)
        case ir.Not():
            return pc.invert(operands[0])
        case ir.IsNull(_, negated):
            return operands[0].is_valid() if negated else operands[0].is_null()
        case ir.In():
            return lists.is_in(operands[0], operands[1], n)
        case ir.Has():
            return lists.has(operands[0], operands[1], n)
        case ir.Contains():
            return texts.contains(operands[0], operands[1], n)
        case ir.StartsWith():
            return texts.starts_with(operands[0], operands[1], n)
        case ir.RegexMatch():
            return texts.matches_regex(operands[0], operands[1], n)
        case ir.Arithmetic(op):
            return functions.arithmetic(op, operands[0], operands[1], arrow_type(expr.type))
        case ir.Call(function):
            return functions.call(function, operands, arrow_type(expr.type), n)
        case ir.Cast(_, kind):
            return functions.cast(operands[0], kind)
        case _:
            raise AssertionError(f"{type(expr).__name__} is not an operation")


def _fold(combine: Callable[[Value, Value], Value], parts: list[Value]) -> Value:
    whole = parts[0]
    for part in parts[1:]:
        whole = combine(whole, part)
    return whole


def _paths(rows: Rows, var: str) -> Paths:
    found = rows.variables[var]
    assert isinstance(found, Paths)  # noqa: S101
    return found


# --- entities ----------------------------------------------------------------------------------------------------


def _type_names(entities: Entities) -> pa.Array:
    names = pa.array(entities.types, pa.string())
    codes = np.zeros(len(entities.position), np.int32) if entities.code is None else entities.code
    return names.take(pa.array(codes, mask=entities.position < 0))


def _same(left: Entities, right: Entities) -> pa.Array:
    known = (left.position >= 0) & (right.position >= 0)
    equal = left.position == right.position
    if left.types != right.types or left.code is not None:
        equal &= _global_codes(left) == _global_codes(right)
    return pa.array(equal, mask=~known)


def _global_codes(entities: Entities) -> np.ndarray[tuple[int], np.dtype[np.object_]]:
    names = np.array(entities.types, object)
    if entities.code is None:
        return np.full(len(entities.position), names[0])
    return names[entities.code]
