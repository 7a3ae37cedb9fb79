"""Conditions on the rows of a stored table: the part the table store answers, as filter text, and the rest.

A condition over one type is an expression that names columns and constants; `closed` puts in the parameters. Negation
is pushed down to the tests, because three-valued logic allows it and because Lance's filter parser needs exponential
time for nested NOT. No other module builds filters.

Lance orders floats by their bits: NaN equals itself and lies beyond both infinities, on the side of its sign. So tests
for less and greater say that the value is a number, and their negations that it may not be one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime
from enum import Enum
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import OmnigraphError
from omnigraph.expressions import comparing
from omnigraph.expressions.comparing import fit, is_number
from omnigraph.expressions.scalar import evaluate
from omnigraph.lang import ir
from omnigraph.lang.ir import CompareOp as Op
from omnigraph.lang.tree import conjunction, conjuncts, is_constant, rebuild, stored_column
from omnigraph.model.columns import property_type
from omnigraph.model.frozen import frozen
from omnigraph.model.instants import micros_of

NESTING_MAX = 20  # levels of parentheses passed to Lance's parser
INVERSE = {Op.EQ: Op.NE, Op.NE: Op.EQ, Op.LT: Op.GE, Op.GE: Op.LT, Op.GT: Op.LE, Op.LE: Op.GT}


# --- conditions ----------------------------------------------------------------------------------------------------


def closed(expr: ir.Expr, bound: ir.Bound) -> ir.Expr:
    """The expression with everything that is constant computed."""
    if isinstance(expr, ir.Literal | ir.Column):
        return expr
    if is_constant(expr):
        kind: Any = expr.type
        return ir.Literal(evaluate(expr, bound), kind)
    return rebuild(expr, lambda part: closed(part, bound))


def any_of(name: str, values: pa.Array) -> ir.Expr:
    """That a column holds one of these values of its type. It is how rows are looked up, so NaN finds NaN."""
    kind = property_type(values.type)
    column = ir.Column(ir.ROW, name, kind)
    found = ir.In(column, ir.Literal(tuple(values.to_pylist()), replace(kind, is_list=True)))
    if not pa.types.is_floating(values.type) or not pc.any(pc.is_nan(values)).as_py():
        return found
    return ir.Or((found, ir.Not(ir.Compare(Op.LE, column, ir.Literal(math.inf, kind)))))


def values_tested(part: ir.Expr, of: Callable[[ir.Expr], bool]) -> tuple[ir.Expr, ir.Expr] | None:
    """An expression of some kind, and the constant list it has a value of where the condition is true."""
    match part:
        case ir.Compare(Op.EQ, left, right) if of(left) and is_constant(right):
            return left, ir.ListOf((right,), ir.STRINGS)
        case ir.Compare(Op.EQ, left, right) if of(right) and is_constant(left):
            return right, ir.ListOf((left,), ir.STRINGS)
        case ir.In(item, members) if of(item) and is_constant(members):
            return item, members
        case _:
            return None


# --- push-down -----------------------------------------------------------------------------------------------------


@frozen
class Joined:
    """Tests that must all be true, or one of which must."""

    word: str  # AND or OR
    parts: tuple[Filter, ...]


Filter = str | bool | Joined  # the text of one test, or the same truth for every row


@frozen
class PushedDown:
    """A condition, divided between the table store and the caller."""

    filter: Filter
    pushed: ir.Expr | None
    rest: ir.Expr | None

    @property
    def text(self) -> str | None:
        """Filter text for Lance; None if the filter is the same for every row."""
        return None if isinstance(self.filter, bool) else _text(self.filter)


class _Inexpressible(Exception):
    """Lance's filters cannot express this."""


def push_down(condition: ir.Expr | None, schema: pa.Schema) -> PushedDown:
    """Divide a closed condition into a filter for Lance and the rest, which is evaluated on rows."""
    filters: list[Filter] = []
    pushed: list[ir.Expr] = []
    rest: list[ir.Expr] = []
    for part in conjuncts(condition):
        found = _filter_of(part, schema)
        if found is None:
            rest.append(part)
        else:
            filters.append(found)
            pushed.append(part)
    return PushedDown(_joined("AND", filters), conjunction(tuple(pushed)), conjunction(tuple(rest)))


def _filter_of(part: ir.Expr, schema: pa.Schema) -> Filter | None:
    try:
        found = _selecting(part, schema, TruthWanted.TRUE)
    except _Inexpressible:
        return None
    return found if _nesting(found) < NESTING_MAX else None


class TruthWanted(Enum):
    """Which truth values of a condition select a row."""

    TRUE = "true"
    FALSE = "false"
    NOT_TRUE = "not true"
    NOT_FALSE = "not false"

    @property
    def negated(self) -> bool:
        return self in (TruthWanted.FALSE, TruthWanted.NOT_TRUE)

    @property
    def takes_unknown(self) -> bool:
        return self in (TruthWanted.NOT_TRUE, TruthWanted.NOT_FALSE)

    @property
    def swapped(self) -> TruthWanted:
        """The same of the condition's negation."""
        return _SWAPPED[self]

    @property
    def known(self) -> TruthWanted:
        """The same of a condition that is false instead of unknown."""
        return TruthWanted.NOT_TRUE if self.negated else TruthWanted.TRUE


_SWAPPED = {
    TruthWanted.TRUE: TruthWanted.FALSE,
    TruthWanted.FALSE: TruthWanted.TRUE,
    TruthWanted.NOT_TRUE: TruthWanted.NOT_FALSE,
    TruthWanted.NOT_FALSE: TruthWanted.NOT_TRUE,
}


def _selecting(expr: ir.Expr, schema: pa.Schema, want: TruthWanted) -> Filter:
    """The filter for the rows for which a condition has a wanted truth value."""
    match expr:
        case ir.Literal(truth):
            return want.takes_unknown if truth is None else truth is not want.negated
        case ir.And(parts):
            joins = "OR" if want.negated else "AND"
            return _joined(joins, [_selecting(part, schema, want) for part in parts])
        case ir.Or(parts):
            joins = "AND" if want.negated else "OR"
            return _joined(joins, [_selecting(part, schema, want) for part in parts])
        case ir.Not(part):
            return _selecting(part, schema, want.swapped)
        case ir.IsNull(part, negated):
            return _is_null(_column(part, schema)[0], negated is not want.negated)
        case ir.Has(lists, ir.Literal(value)):
            return _has(*_column(lists, schema), value, want.negated)
        case ir.Has(ir.Literal() as listed, item):
            return _selecting(ir.In(item, listed), schema, want.known)
        case ir.Compare(op, ir.Literal() as left, right) if not isinstance(right, ir.Literal):
            return _selecting(ir.Compare(op.flipped, right, left), schema, want)
        case ir.Column():
            return _selecting(ir.Compare(Op.EQ, expr, ir.Literal(True, ir.BOOL)), schema, want)
        case (
            ir.Compare(_, part, ir.Literal(value))
            | ir.In(part, ir.Literal(value))
            | ir.Contains(part, ir.Literal(value))
            | ir.StartsWith(part, ir.Literal(value))
        ):
            column, kind = _column(part, schema)
            if value is None:
                return want.takes_unknown
            return _or_null(_test(expr, column, kind, value, want.negated), column, want)
        case _:
            raise _Inexpressible


def _column(expr: ir.Expr, schema: pa.Schema) -> tuple[str, pa.DataType]:
    name = stored_column(expr)
    if name is None:
        raise _Inexpressible
    return quoted(name), schema.field(name).type


def _or_null(known: Filter, column: str, want: TruthWanted) -> Filter:
    """A test is unknown exactly where its column is null."""
    if want.takes_unknown:
        return _joined("OR", [_is_null(column), known])
    return _is_null(column, negated=True) if known is True else known


def _is_null(column: str, negated: bool = False) -> str:
    return f"{column} IS {'NOT NULL' if negated else 'NULL'}"


def _joined(word: str, parts: list[Filter]) -> Filter:
    neutral = word == "AND"
    flat: list[Filter] = []
    for part in parts:
        if part is (not neutral):
            return not neutral
        if isinstance(part, Joined) and part.word == word:
            flat.extend(part.parts)
        elif not isinstance(part, bool):
            flat.append(part)
    if not flat:
        return neutral
    return flat[0] if len(flat) == 1 else Joined(word, tuple(flat))


def _nesting(found: Filter) -> int:
    return 1 + max(map(_nesting, found.parts)) if isinstance(found, Joined) else 1


def _text(found: Filter) -> str:
    if isinstance(found, Joined):
        return "(" + f" {found.word} ".join(map(_text, found.parts)) + ")"
    return str(found)


# --- tests of one column -------------------------------------------------------------------------------------------


def _test(expr: ir.Expr, column: str, kind: pa.DataType, value: Any, negated: bool) -> Filter:
    """A test for the rows whose column is not null. `value` is its constant, not null either."""
    match expr:
        case ir.Compare(op):
            return _comparison(column, op, value, kind, negated)
        case ir.In():
            return _in(column, value, kind, negated)
        case ir.Contains():
            return f"{'NOT ' if negated else ''}contains({column}, {string(value)})"
        case _:
            return f"{'NOT ' if negated else ''}starts_with({column}, {string(value)})"


def _comparison(column: str, op: Op, value: Any, kind: pa.DataType, negated: bool) -> Filter:
    if not is_number(kind):
        return _plain(column, INVERSE[op] if negated else op, stored(value, kind), kind)
    found = fit(op, value, kind)
    if isinstance(found, bool):
        return found is not negated
    op, value = found
    plain = _plain(column, INVERSE[op] if negated else op, value, kind)
    if not pa.types.is_floating(kind) or op in (Op.EQ, Op.NE):
        return plain
    if negated:
        return _joined("OR", [plain, f"isnan({column})"])
    if op in (Op.LT, Op.LE):
        return _joined("AND", [_plain(column, Op.GE, -math.inf, kind), plain])
    return _joined("AND", [plain, _plain(column, Op.LE, math.inf, kind)])


def _plain(column: str, op: Op, value: Any, kind: pa.DataType) -> str:
    return f"{column} {'<>' if op is Op.NE else op.value} {literal(value, kind)}"


def _in(column: str, values: tuple[Any, ...], kind: pa.DataType, negated: bool) -> Filter:
    """Members no value of the column can equal are left out."""
    if is_number(kind):
        constants = comparing.members(values, kind).to_pylist()
    else:
        constants = [stored(value, kind) for value in values if value is not None]
    if not constants:
        return negated
    listed = ", ".join(literal(value, kind) for value in dict.fromkeys(constants))
    if not negated:
        return f"{column} IN ({listed})"
    # Lance joins two lists of NOT IN into the one they share, and takes null for a row outside an empty list.
    return f"({column} IS NOT NULL AND {column} NOT IN ({listed}))"


def _has(column: str, kind: pa.DataType, value: Any, negated: bool) -> Filter:
    """Two-valued: a null list has no members."""
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        raise _Inexpressible
    wanted = _member(value, kind.value_type)
    if wanted is None:
        return negated
    # Lance compares list members bit by bit, so both zeros have to be listed.
    zeros = [0.0, -0.0] if isinstance(wanted, float) and wanted == 0 else [wanted]
    tests = [f"array_has({column}, {_typed_literal(v, kind.value_type)})" for v in zeros]
    if negated:
        absent = " AND ".join(f"NOT {test}" for test in tests)
        return f"({column} IS NULL OR ({absent}))"
    return f"({column} IS NOT NULL AND ({' OR '.join(tests)}))"


def _member(value: Any, kind: pa.DataType) -> Any:
    """A value as lists of this type hold it; None if they cannot."""
    if value is None:
        return None
    if not is_number(kind):
        return stored(value, kind)
    found = fit(Op.EQ, value, kind)
    return None if isinstance(found, bool) else found[1]


# --- constants -----------------------------------------------------------------------------------------------------


def stored(value: Any, kind: pa.DataType) -> Any:
    """A constant other than a number, as a column stores it: str, bool, date, or microseconds since 1970 in UTC."""
    match value:
        case bool() if pa.types.is_boolean(kind):
            return value
        case str() if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            return value
        case datetime() if pa.types.is_timestamp(kind) and value.tzinfo is not None:
            return micros_of(value)
        case date() if pa.types.is_date(kind) and not isinstance(value, datetime):
            return value
    raise _Inexpressible


def quoted(column: str) -> str:
    """A column's name; Lance has no escape for a backtick, and no name of ours contains one."""
    if "`" in column:
        raise OmnigraphError(f"column name {column!r} cannot be used in a filter")
    return f"`{column}`"


def string(value: str) -> str:
    """A string constant. The quote is the only character with a meaning inside."""
    return "'" + value.replace("'", "''") + "'"


def literal(value: Any, kind: pa.DataType) -> str:
    """A constant beside a column, which gives it its type."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return string(value)
        case date():
            return f"date '{value.isoformat()}'"
        case int() if pa.types.is_timestamp(kind):
            return f"arrow_cast({value}, 'Timestamp(Microsecond, Some(\"UTC\"))')"
        case int():
            return str(value) if value > -(2**63) else f"cast('{value}' as bigint)"
        case float() if math.isfinite(value):
            return repr(value)
        case float():
            return f"cast('{value}' as {'double' if kind.bit_width == 64 else 'float'})"
    raise _Inexpressible


ARROW_NAMES: dict[pa.DataType, str] = {
    pa.int32(): "Int32",
    pa.int64(): "Int64",
    pa.uint32(): "UInt32",
    pa.uint64(): "UInt64",
    pa.float32(): "Float32",
    pa.float64(): "Float64",
}


def _typed_literal(value: Any, kind: pa.DataType) -> str:
    """A constant where no column gives it a type."""
    text = literal(value, kind)
    name = ARROW_NAMES.get(kind)
    return f"arrow_cast({text}, '{name}')" if name else text
