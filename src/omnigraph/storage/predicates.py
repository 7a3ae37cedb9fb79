"""The one place that says what a typed predicate means for stored rows.

A predicate is first brought into *selection form*: conjunctions and disjunctions of leaves, without negation, with
constants exact in the column's type. Negation is pushed to the leaves because three-valued logic allows it and because
Lance's filter parser needs exponential time for nested NOT. `render` writes the form as filter text for Lance,
`evaluate` computes the same over Arrow data; nothing else builds filters.

Equality and order are those of `model.ordering`, which Lance and DuckDB share.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import Enum
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import OmnigraphError
from omnigraph.model import ordering
from omnigraph.model.ordering import integer_range
from omnigraph.model.predicates import (
    Always,
    And,
    Compare,
    Contains,
    Has,
    In,
    IsNotTrue,
    IsNull,
    Not,
    Op,
    Or,
    Predicate,
    StartsWith,
)

NESTING_MAX = 20  # levels of parentheses that Lance's parser is asked to read
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
INVERSE = {Op.EQ: Op.NE, Op.NE: Op.EQ, Op.LT: Op.GE, Op.GE: Op.LT, Op.GT: Op.LE, Op.LE: Op.GT}


# --- selection form ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Leaf:
    """One test of one column with an exact constant. `negated` never applies to comparisons: they have inverses."""

    test: Compare | In | IsNull | Contains | StartsWith | Has
    kind: pa.DataType
    negated: bool = False


@dataclass(frozen=True, slots=True)
class All:
    parts: tuple[Selection, ...]


@dataclass(frozen=True, slots=True)
class Either:
    parts: tuple[Selection, ...]


Selection = Leaf | All | Either | bool


class Want(Enum):
    """Which truth values of a predicate select a row."""

    TRUE = "true"
    FALSE = "false"
    NOT_TRUE = "not true"
    NOT_FALSE = "not false"

    @property
    def negated(self) -> bool:
        return self in (Want.FALSE, Want.NOT_TRUE)

    @property
    def takes_unknown(self) -> bool:
        return self in (Want.NOT_TRUE, Want.NOT_FALSE)


_SWAPPED = {
    Want.TRUE: Want.FALSE,
    Want.FALSE: Want.TRUE,
    Want.NOT_TRUE: Want.NOT_FALSE,
    Want.NOT_FALSE: Want.NOT_TRUE,
}


def selection(predicate: Predicate, schema: pa.Schema, want: Want = Want.TRUE) -> Selection:
    """The rows for which the predicate has a wanted truth value, in selection form."""
    match predicate:
        case And(parts):
            join = _any if want.negated else _all
            return join([selection(part, schema, want) for part in parts])
        case Or(parts):
            join = _all if want.negated else _any
            return join([selection(part, schema, want) for part in parts])
        case Not(part):
            return selection(part, schema, _SWAPPED[want])
        case IsNotTrue(part):
            return selection(part, schema, Want.TRUE if want.negated else Want.NOT_TRUE)
        case Always(truth):
            return want.takes_unknown if truth is None else truth is not want.negated
        case IsNull(column, negated):
            return Leaf(IsNull(column, negated is not want.negated), _type(schema, column))
        case Has(column, value):
            return _has(column, value, _type(schema, column), want.negated)
        case In(column, values):
            return _in(column, values, _type(schema, column), want)
        case Compare(column, op, value):
            op = INVERSE[op] if want.negated else op
            if value is None:
                return want.takes_unknown
            return _or_null(
                _compare(column, op, value, _type(schema, column)), column, schema, want
            )
        case Contains(column) | StartsWith(column):
            leaf = Leaf(predicate, _type(schema, column), want.negated)
            return _or_null(leaf, column, schema, want)


def _type(schema: pa.Schema, column: str) -> pa.DataType:
    position = schema.get_field_index(column)
    if position < 0:
        raise OmnigraphError(f"predicate on column {column}, which the table lacks")
    return schema.field(position).type


def _or_null(known: Selection, column: str, schema: pa.Schema, want: Want) -> Selection:
    """A test is unknown exactly where its column is null."""
    if want.takes_unknown:
        return _any([Leaf(IsNull(column), _type(schema, column)), known])
    if known is True:
        return Leaf(IsNull(column, negated=True), _type(schema, column))
    return known


def _all(parts: list[Selection]) -> Selection:
    return _joined(All, parts, neutral=True)


def _any(parts: list[Selection]) -> Selection:
    return _joined(Either, parts, neutral=False)


def _joined(join: type[All] | type[Either], parts: list[Selection], neutral: bool) -> Selection:
    flat: list[Selection] = []
    for part in parts:
        if part is (not neutral):
            return not neutral
        if isinstance(part, join):
            flat.extend(part.parts)
        elif not isinstance(part, bool):
            flat.append(part)
    if not flat:
        return neutral
    return flat[0] if len(flat) == 1 else join(tuple(flat))


# --- constants ------------------------------------------------------------------------------------------------------


def _compare(column: str, op: Op, value: Any, kind: pa.DataType) -> Selection:
    """A comparison whose constant is exact in the column's type; a bool where no value of the type decides."""
    if pa.types.is_integer(kind):
        return _compare_integer(column, op, _number(value, kind), kind)
    if pa.types.is_floating(kind):
        return _compare_float(column, op, _number(value, kind), kind)
    return Leaf(Compare(column, op, exact(value, kind)), kind)


def _compare_integer(column: str, op: Op, value: int | float, kind: pa.DataType) -> Selection:
    low, high = integer_range(kind)
    if isinstance(value, float):
        if math.isnan(value) or math.isinf(value):
            above = math.isnan(value) or value > 0
            return _beyond(op, above)
        floor = math.floor(value)
        if floor != value:
            return _between(column, op, floor, kind)
        value = floor
    if value < low or value > high:
        return _beyond(op, value > high)
    return Leaf(Compare(column, op, value), kind)


def _between(column: str, op: Op, floor: int, kind: pa.DataType) -> Selection:
    """A constant strictly between two integers, `floor` and the next."""
    match op:
        case Op.EQ | Op.NE:
            return op is Op.NE
        case Op.LT | Op.LE:
            return _compare_integer(column, Op.LE, floor, kind)
        case Op.GT | Op.GE:
            return _compare_integer(column, Op.GT, floor, kind)


def _beyond(op: Op, above: bool) -> bool:
    """A constant above (or below) every value of the column."""
    return op is Op.NE or op in ((Op.LT, Op.LE) if above else (Op.GT, Op.GE))


def _compare_float(column: str, op: Op, value: int | float, kind: pa.DataType) -> Selection:
    near = _rounded(value, kind)
    if math.isnan(near) or near == value:  # Python compares ints and floats exactly
        return Leaf(Compare(column, op, near), kind)
    # No value of the type equals the constant, and `near` lies beside it.
    above = near > value
    match op:
        case Op.EQ | Op.NE:
            return op is Op.NE
        case Op.LT | Op.LE:
            return Leaf(Compare(column, Op.LT if above else Op.LE, near), kind)
        case Op.GT | Op.GE:
            return Leaf(Compare(column, Op.GE if above else Op.GT, near), kind)


def _rounded(value: int | float, kind: pa.DataType) -> float:
    try:
        wide = float(value)
    except OverflowError:
        wide = math.inf if value > 0 else -math.inf
    if kind.bit_width == 64:
        return wide
    with np.errstate(over="ignore"):
        return float(np.float32(wide))


def _number(value: Any, kind: pa.DataType) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise OmnigraphError(f"a column of {kind} is compared with {type(value).__name__}")
    return value


def exact(value: Any, kind: pa.DataType) -> Any:
    """A non-numeric constant as the column stores it: str, bool, date, or microseconds since 1970 in UTC."""
    match value:
        case bool() if pa.types.is_boolean(kind):
            return value
        case str() if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            return value
        case datetime() if pa.types.is_timestamp(kind) and value.tzinfo is not None:
            return (value - EPOCH) // timedelta(microseconds=1)
        case date() if pa.types.is_date(kind) and not isinstance(value, datetime):
            return value
    raise OmnigraphError(f"a column of {kind} is compared with {type(value).__name__}")


def _in(column: str, values: tuple[Any, ...], kind: pa.DataType, want: Want) -> Selection:
    """Null members never match; members no value of the column can equal are dropped."""
    wanted = [value for value in values if value is not None]
    if not wanted:
        return want.negated
    if ordering.is_number(kind):
        constants = ordering.members([_number(v, kind) for v in wanted], kind).to_pylist()
    else:
        constants = [exact(value, kind) for value in wanted]
    known: Selection = want.negated
    if constants:
        known = Leaf(In(column, tuple(dict.fromkeys(constants))), kind, want.negated)
    return _or_null(known, column, pa.schema([(column, kind)]), want)


def _has(column: str, value: Any, kind: pa.DataType, negated: bool) -> Selection:
    """Two-valued: a null list has no members."""
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        raise OmnigraphError(f"membership in column {column}, which is no list")
    equal: Selection = False
    if value is not None:
        equal = _compare(column, Op.EQ, value, kind.value_type)
    if not isinstance(equal, Leaf) or not isinstance(equal.test, Compare):
        return negated
    return Leaf(Has(column, equal.test.value), kind, negated)


# --- text for Lance ------------------------------------------------------------------------------------------------


def render(selected: Selection) -> str | None:
    """Filter text for Lance; None where the nesting is deeper than its parser allows."""
    if _nesting(selected) > NESTING_MAX:
        return None
    return _text(selected)


def _nesting(selected: Selection) -> int:
    match selected:
        case All(parts) | Either(parts):
            return 1 + max(_nesting(part) for part in parts)
        case _:
            return 1


def _text(selected: Selection) -> str:
    match selected:
        case bool():
            return "true" if selected else "false"
        case All(parts):
            return "(" + " AND ".join(map(_text, parts)) + ")"
        case Either(parts):
            return "(" + " OR ".join(map(_text, parts)) + ")"
        case Leaf(Compare(column, op, value), kind):
            return f"{quoted(column)} {'<>' if op is Op.NE else op.value} {literal(value, kind)}"
        case Leaf(In(column, values), kind, negated):
            members = ", ".join(literal(value, kind) for value in values)
            if not negated:
                return f"{quoted(column)} IN ({members})"
            # Lance joins two lists of NOT IN into the one they share, and takes null for a row outside an empty list.
            return f"({quoted(column)} IS NOT NULL AND {quoted(column)} NOT IN ({members}))"
        case Leaf(IsNull(column, negated)):
            return f"{quoted(column)} IS {'NOT NULL' if negated else 'NULL'}"
        case Leaf(Contains(column, needle), _, negated):
            return f"{'NOT ' if negated else ''}contains({quoted(column)}, {string(needle)})"
        case Leaf(StartsWith(column, prefix), _, negated):
            return f"{'NOT ' if negated else ''}starts_with({quoted(column)}, {string(prefix)})"
        case Leaf(Has(column, value), kind, negated):
            return _has_text(column, value, kind, negated)
    raise AssertionError(selected)  # every leaf is named above


def _has_text(column: str, value: Any, kind: pa.DataType, negated: bool) -> str:
    # Lance compares list members bit by bit, so both zeros have to be asked for.
    both_zeros = isinstance(value, float) and value == 0
    members = [0.0, -0.0] if both_zeros else [value]
    tests = [
        f"array_has({quoted(column)}, {typed_literal(member, kind.value_type)})"
        for member in members
    ]
    if negated:
        absent = " AND ".join(f"NOT {test}" for test in tests)
        return f"({quoted(column)} IS NULL OR ({absent}))"
    return f"({quoted(column)} IS NOT NULL AND ({' OR '.join(tests)}))"


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
    raise OmnigraphError(f"no filter constant for {type(value).__name__}")


ARROW_NAMES: dict[pa.DataType, str] = {
    pa.int32(): "Int32",
    pa.int64(): "Int64",
    pa.uint32(): "UInt32",
    pa.uint64(): "UInt64",
    pa.float32(): "Float32",
    pa.float64(): "Float64",
}


def typed_literal(value: Any, kind: pa.DataType) -> str:
    """A constant where no column gives it a type."""
    text = literal(value, kind)
    name = ARROW_NAMES.get(kind)
    return f"arrow_cast({text}, '{name}')" if name else text


# --- over Arrow data -----------------------------------------------------------------------------------------------


def evaluate(predicate: Predicate, rows: pa.Table) -> pa.BooleanArray:
    """True, false or null (unknown) for each row."""
    true = _mask(selection(predicate, rows.schema, Want.TRUE), rows)
    false = _mask(selection(predicate, rows.schema, Want.FALSE), rows)
    return pc.if_else(true, True, pc.if_else(false, False, pa.scalar(None, pa.bool_())))


def selects(predicate: Predicate, rows: pa.Table) -> pa.BooleanArray:
    """True for the rows the predicate selects, false for the others; never null."""
    return _mask(selection(predicate, rows.schema), rows)


def _mask(selected: Selection, rows: pa.Table) -> pa.BooleanArray:
    match selected:
        case bool():
            return pa.array(np.full(rows.num_rows, selected))
        case All(parts):
            return reduce(pc.and_, (_mask(part, rows) for part in parts))
        case Either(parts):
            return reduce(pc.or_, (_mask(part, rows) for part in parts))
        case Leaf(test, kind, negated):
            return _leaf_mask(test, kind, negated, _column(rows, test.column))


def _column(rows: pa.Table, name: str) -> pa.Array:
    column = rows.column(name)
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _leaf_mask(
    test: Compare | In | IsNull | Contains | StartsWith | Has,
    kind: pa.DataType,
    negated: bool,
    column: pa.Array,
) -> pa.BooleanArray:
    match test:
        case IsNull(_, is_negated):
            return pc.is_valid(column) if is_negated else pc.is_null(column)
        case Has(_, value):
            found = _members(column, value, kind)
            return pc.invert(found) if negated else found
        case Compare(_, op, value):
            known = ordering.compare(op, column, pa.scalar(value, kind))
        case In(_, values):
            known = ordering.is_in(column, pa.array(values, kind))
        case Contains(_, needle):
            known = pc.match_substring(column, needle)
        case StartsWith(_, prefix):
            known = pc.starts_with(column, prefix)
    known = pc.invert(known) if negated else known
    return pc.fill_null(pc.and_(known, pc.is_valid(column)), False)


def _members(column: pa.ListArray, value: Any, kind: pa.DataType) -> pa.BooleanArray:
    """For each list whether it has the value."""
    items = column.flatten()  # leaves out what lies behind null lists
    equal = ordering.compare(Op.EQ, items, pa.scalar(value, kind.value_type))
    hits = pc.fill_null(equal, False)
    parents = pc.list_parent_indices(column).filter(hits)
    found = np.zeros(len(column), dtype=bool)
    found[parents.to_numpy(zero_copy_only=False)] = True
    return pa.array(found)
