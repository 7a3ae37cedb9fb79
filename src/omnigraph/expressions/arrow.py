"""Expressions over whole columns, in Arrow: three-valued, and as `scalar` defines them for one row.

A value is an array with one member per row, or a scalar where it is the same for all rows. What depends on constants
alone is left to `scalar`. A `RowSource` supplies the columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.expressions import functions
from omnigraph.expressions.comparing import Mask, Value, compare, has_member, is_one_of, to_mask
from omnigraph.expressions.scalar import ArithmeticOverflow
from omnigraph.expressions.scalar import evaluate as evaluate_constant
from omnigraph.expressions.shapes import arrow_shape, spread
from omnigraph.lang import ir
from omnigraph.lang.ir.composite import Composite
from omnigraph.lang.tree import children, is_constant, stored_column
from omnigraph.model.columns import arrow_type, one_array
from omnigraph.model.frozen import frozen
from omnigraph.model.types import FLOATS, PropType

# Of nodes that occur more than once, by identity: their value, or None until it is computed.
Known = dict[int, Value]
NOTHING: Known = {}
NO_PARAMETERS = ir.Bound()
COMPOSITE = get_args(Composite)


class RowSource(Protocol):
    """The rows an expression is evaluated for."""

    @property
    def n(self) -> int:
        """The number of rows."""

    @property
    def bound(self) -> ir.Bound:
        """The parameters of the query."""

    def read(self, expr: ir.Expr) -> Value:
        """The column an expression without operands names."""

    def resolve(self, expr: ir.Expr, given: pa.Array) -> pa.Array:
        """The value of an expression over references to entities."""


@frozen
class TableRows:
    """See `RowSource`: rows of one type, in the columns of its table."""

    rows: pa.Table | pa.RecordBatch
    bound: ir.Bound = NO_PARAMETERS

    @property
    def n(self) -> int:
        return int(self.rows.num_rows)

    def read(self, expr: ir.Expr) -> Value:
        name = stored_column(expr)
        assert name is not None  # noqa: S101 - the languages let statements read nothing else
        return one_array(self.rows.column(name))

    def resolve(self, expr: ir.Expr, given: pa.Array) -> pa.Array:  # noqa: ARG002
        raise AssertionError(f"{type(expr).__name__} names entities, and a table has none")


def selected(predicate: ir.Expr, rows: pa.Table) -> pa.Table:
    """The rows of a table for which a predicate without parameters is true."""
    mask = holds(predicate, TableRows(rows))
    return rows if mask.all() else rows.filter(pa.array(mask))


def column(expr: ir.Expr, source: RowSource, known: Known = NOTHING) -> pa.Array:
    """The expression's value for every row."""
    value = evaluate(expr, source, known)
    return spread(value, source.n)


def columns(exprs: Sequence[ir.Expr], source: RowSource) -> list[pa.Array]:
    """The values of several expressions; shared parts, where one names another, are computed once."""
    known = dict.fromkeys(_shared(exprs))
    return [column(expr, source, known) for expr in exprs]


def _shared(exprs: Sequence[ir.Expr]) -> set[int]:
    """The nodes that are reached more than once, each walked once."""
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


def holds(expr: ir.Expr, source: RowSource) -> Mask:
    """The rows for which a predicate is true."""
    if isinstance(expr, ir.And):
        mask = holds(expr.parts[0], source)
        for part in expr.parts[1:]:
            mask = mask & holds(part, source)
        return mask
    value = evaluate(expr, source)
    if isinstance(value, pa.Scalar):
        return np.full(source.n, value.as_py() is True)
    return to_mask(value)


def evaluate(expr: ir.Expr, source: RowSource, known: Known = NOTHING) -> Value:
    """The value of an expression, as a column or a constant."""
    match expr:
        case ir.Literal() | ir.ListOf() | ir.Param() | ir.Now():
            return _constant(expr, source.bound)
        case (
            ir.Column()
            | ir.IdOf()
            | ir.EndpointOf()
            | ir.TypeOf()
            | ir.EntityOf()
            | ir.PathOf()
            | ir.PathGet()
            | ir.ScoreOf()
            | ir.Output()
            | ir.Same()
            | ir.TextMatch()
            | ir.Highlight()
            | ir.RefOf()
            | ir.TrailOf()
            | ir.ValueOf()
            | ir.Apart()
        ):
            return source.read(expr)
        case _:
            return _operation(expr, source, known)


def _constant(expr: ir.Expr, bound: ir.Bound) -> pa.Scalar:
    """A constant in its checked type."""
    kind = expr.type
    shape = arrow_shape(kind)
    try:
        value = evaluate_constant(expr, bound)
        if isinstance(kind, ir.TemporalValue) and value is not None:
            return pa.scalar(value.encoded(), shape)
        return pa.scalar(_in_type(value, kind) if isinstance(kind, PropType) else value, shape)
    except (OverflowError, pa.ArrowInvalid) as misfit:
        raise ArithmeticOverflow(f"a constant does not fit {kind}") from misfit


def _in_type(value: object, kind: PropType) -> object:
    if isinstance(value, tuple):
        return [_in_type(member, kind) for member in value]
    return float(value) if isinstance(value, int) and kind.scalar in FLOATS else value


# --- operations ----------------------------------------------------------------------------------------------------


def _operation(expr: ir.Expr, source: RowSource, known: Known) -> Value:
    value = known.get(id(expr))
    if value is None:
        value = _computed(expr, source, known)
        if id(expr) in known:
            known[id(expr)] = value
    return value


def _computed(expr: ir.Expr, source: RowSource, known: Known) -> Value:
    if isinstance(expr, COMPOSITE):
        from omnigraph.expressions.composite import computed

        return computed(expr, source)
    match expr:
        case ir.In(item, members) | ir.Has(members, item) if is_constant(members):
            one = evaluate(item, source, known)
            if isinstance(one, pa.Array):
                # A constant list may hold numbers that no single type can hold.
                listed = evaluate_constant(members, source.bound)
                return is_one_of(one, listed, two_valued=isinstance(expr, ir.Has))
        case _:
            pass
    operands = [evaluate(part, source, known) for part in _operands(expr)]
    if all(isinstance(operand, pa.Scalar) for operand in operands):
        return _constant(expr, source.bound)
    return _apply(expr, operands, source.n)


def _operands(expr: ir.Expr) -> tuple[ir.Expr, ...]:
    match expr:
        case ir.Compare(_, left, right) | ir.Arithmetic(_, left, right):
            return (left, right)
        case ir.And(parts) | ir.Or(parts):
            return parts
        case ir.Not(part) | ir.IsNull(part) | ir.Cast(part):
            return (part,)
        case ir.In(item, members):
            return (members, item)
        case ir.Has(members, item):
            return (members, item)
        case ir.Contains(text, other) | ir.StartsWith(text, other) | ir.RegexMatch(text, other):
            return (text, other)
        case ir.Call(_, args) | ir.TemporalCall(args=args):
            return args
        case _:
            raise AssertionError(f"{type(expr).__name__} has no operands")


def _apply(expr: ir.Expr, operands: list[Value], n: int) -> Value:
    match expr:
        case ir.Compare(op):
            return compare(op, operands[0], operands[1])
        case ir.And():
            return _fold(pc.and_kleene, operands)
        case ir.Or():
            return _fold(pc.or_kleene, operands)
        case ir.Not():
            return pc.invert(operands[0])
        case ir.IsNull(_, negated):
            return operands[0].is_valid() if negated else operands[0].is_null()
        case ir.In() | ir.Has():
            return has_member(operands[0], operands[1], n, two_valued=isinstance(expr, ir.Has))
        case ir.Contains():
            return functions.contains(operands[0], operands[1], n)
        case ir.StartsWith():
            return functions.starts_with(operands[0], operands[1], n)
        case ir.RegexMatch():
            return functions.matches_regex(operands[0], operands[1], n)
        case ir.Arithmetic(op):
            return functions.arithmetic(op, operands[0], operands[1], arrow_type(expr.type))
        case ir.Call(function):
            return functions.call(function, operands, arrow_shape(expr.type), n)
        case ir.Cast(_, kind):
            return functions.cast(operands[0], kind)
        case ir.TemporalCall():
            from omnigraph.expressions.temporal import computed

            return computed(expr, operands, n)
        case _:
            raise AssertionError(f"{type(expr).__name__} is not an operation")


def _fold(combine: Callable[[Value, Value], Value], parts: list[Value]) -> Value:
    whole = parts[0]
    for part in parts[1:]:
        whole = combine(whole, part)
    return whole
