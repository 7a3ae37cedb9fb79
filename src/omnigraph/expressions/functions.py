"""Arithmetic, tests of text, functions of one row and casts, on whole columns."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import LimitExceeded, OptionInvalid
from omnigraph.expressions import lists
from omnigraph.expressions.comparing import Value
from omnigraph.expressions.scalar import (
    FUNCTIONS,
    TEXT_BYTES_MAX,
    ArithmeticOverflow,
    text_too_long,
)
from omnigraph.expressions.shapes import spread
from omnigraph.expressions.standard import FLOATS_ONLY, LISTS_ONLY
from omnigraph.lang import ir
from omnigraph.lang.cast import cast_value
from omnigraph.model.columns import arrow_type, one_array
from omnigraph.model.frozen import frozen
from omnigraph.model.types import PropType

COLUMN_BYTES_MAX = 2**31 - 1  # of the texts of one column: what its offsets can count
DAY_MICROS = 86_400_000_000
DATE_MIN = (dt.date.min - dt.date(1970, 1, 1)).days
DATE_MAX = (dt.date.max - dt.date(1970, 1, 1)).days
DAYS_MAX = DATE_MAX - DATE_MIN


# --- arithmetic --------------------------------------------------------------------------------------------------


def arithmetic(op: ir.ArithmeticOp, left: Value, right: Value, kind: pa.DataType) -> Value:
    """In the type resolved for it; integers that do not fit raise, a division by zero is null."""
    left, right = _widened(left, kind), _widened(right, kind)
    if op in (ir.ArithmeticOp.DIV, ir.ArithmeticOp.MOD):
        return _divide(op, left, right, kind)
    kernel = {
        ir.ArithmeticOp.ADD: pc.add_checked,
        ir.ArithmeticOp.SUB: pc.subtract_checked,
        ir.ArithmeticOp.MUL: pc.multiply_checked,
    }[op]
    return _checked(lambda: kernel(left, right), kind)


def _checked(compute: Callable[[], Value], kind: pa.DataType) -> Value:
    try:
        return compute()
    except pa.ArrowInvalid as overflow:
        raise ArithmeticOverflow(f"a result does not fit {kind}") from overflow


def _widened(value: Value, kind: pa.DataType) -> Value:
    if value.type == kind:
        return value
    try:
        return pc.cast(value, kind, safe=not pa.types.is_floating(kind))
    except pa.ArrowInvalid as overflow:
        raise ArithmeticOverflow(f"an operand does not fit {kind}") from overflow


def _divide(op: ir.ArithmeticOp, left: Value, right: Value, kind: pa.DataType) -> pa.Array:
    n = len(left) if isinstance(left, pa.Array) else len(right)
    a, b = _plain(left, n), _plain(right, n)
    known = _valid(left, n) & _valid(right, n) & (b != 0)
    if pa.types.is_floating(kind) and op is ir.ArithmeticOp.MOD:
        known &= ~np.isinf(a)
    with np.errstate(all="ignore"):
        safe = np.where(known, b, np.ones_like(b))
        found = a / safe if op is ir.ArithmeticOp.DIV else np.fmod(a, safe)
    return pa.array(found, kind, mask=~known)


def _plain(value: Value, n: int) -> Any:
    if isinstance(value, pa.Scalar):
        zero = pa.scalar(0, value.type)
        value = pa.repeat(value if value.is_valid else zero, n)
    return value.fill_null(0).to_numpy(zero_copy_only=False)


def _valid(value: Value, n: int) -> Any:
    if isinstance(value, pa.Scalar):
        return np.full(n, value.is_valid)
    return value.is_valid().to_numpy(zero_copy_only=False)


# --- tests of text -----------------------------------------------------------------------------------------------


def contains(text: Value, needle: Value, n: int) -> pa.Array:
    if isinstance(needle, pa.Scalar):
        return _with_pattern(text, needle, pc.match_substring, n)
    return _in_duckdb("contains(a, b)", n, text, needle)


def starts_with(text: Value, prefix: Value, n: int) -> pa.Array:
    if isinstance(prefix, pa.Scalar):
        return _with_pattern(text, prefix, pc.starts_with, n)
    return _in_duckdb("starts_with(a, b)", n, text, prefix)


def matches_regex(text: Value, pattern: Value, n: int) -> pa.Array:
    try:
        return _with_pattern(text, pattern, pc.match_substring_regex, n)
    except pa.ArrowInvalid as refused:
        raise OptionInvalid(
            f"the pattern {pattern} is not a regular expression: {refused}",
            help="Patterns are RE2: no look-around, no back-references.",
        ) from refused


def _with_pattern(text: Value, pattern: Value, kernel: Any, n: int) -> pa.Array:
    if not pattern.is_valid:
        return pa.nulls(n, pa.bool_())
    return kernel(text, pattern.as_py())


def _in_duckdb(expression: str, n: int, *operands: Value) -> pa.Array:
    """A SQL expression over columns `a`, `b`, `c`, row by row: for the few functions Arrow has for constants only."""
    import duckdb

    columns = [spread(v, n) for v in operands]
    given = pa.table(columns, names=["a", "b", "c"][: len(columns)])
    with duckdb.connect(":memory:", config={"threads": 1, "preserve_insertion_order": True}) as db:
        db.register("given", given)
        return one_array(db.sql(f"select {expression} as v from given").to_arrow_table()["v"])  # noqa: S608


# --- functions ---------------------------------------------------------------------------------------------------


@frozen
class _Given:
    """The arguments of a function: columns or constants, the type of its result, the number of rows."""

    args: list[Value]
    kind: pa.DataType
    n: int


def call(function: ir.Function, args: list[Value], kind: pa.DataType, n: int) -> Value:
    """A function of one row, for all rows."""
    return CALLS[function](_Given(args, kind, n))


def _changed_case(function: ir.Function, kernel: Callable[[Any], Any]) -> Callable[[_Given], Value]:
    """Arrow has a newer Unicode version than the others, so beyond ASCII the reference handles every distinct text."""

    def change(given: _Given) -> Value:
        (text,) = given.args
        if pc.all(pc.string_is_ascii(text), min_count=0).as_py():
            return kernel(text)
        return _each_distinct(text, FUNCTIONS[function], given.kind)

    return change


def _each_distinct(values: pa.Array, change: Callable[[Any], Any], kind: pa.DataType) -> pa.Array:
    encoded = values.dictionary_encode()
    changed = [change(v) for v in encoded.dictionary.to_pylist()]
    return pa.array(changed, kind).take(encoded.indices)


def _length(given: _Given) -> Value:
    (value,) = given.args
    text = pa.types.is_string(value.type) or pa.types.is_large_string(value.type)
    return pc.cast((pc.utf8_length if text else pc.list_value_length)(value), given.kind)


def _concat(given: _Given) -> Value:
    sizes = sum(_sizes(arg, given.n) for arg in given.args)
    if int(sizes.max(initial=0)) > TEXT_BYTES_MAX:
        raise text_too_long(int(sizes.max()))
    if int(sizes.sum()) > COLUMN_BYTES_MAX:
        raise LimitExceeded(
            f"an expression would make {int(sizes.sum()):,} bytes of text over all rows",
            help="Return fewer rows, or join shorter texts.",
            details={"limit": "column_bytes_max", "limit_value": COLUMN_BYTES_MAX},
        )
    return pc.binary_join_element_wise(*given.args, "", null_handling="emit_null")


def _sizes(value: Value, n: int) -> Any:
    return _plain(pc.cast(pc.binary_length(value), pa.int64()), n)


def _substring(given: _Given) -> Value:
    text, *bounds = given.args
    if not all(isinstance(b, pa.Scalar) for b in bounds):
        count = ", least(greatest(c, 0), 2147483647)::bigint" if len(bounds) == 2 else ""
        start = "least(greatest(b, 0), 2147483646)::bigint + 1"
        return _in_duckdb(f"substring(a, {start}{count})", given.n, text, *bounds)
    if not all(b.is_valid for b in bounds):
        return pa.nulls(given.n, given.kind)
    start = min(max(bounds[0].as_py(), 0), COLUMN_BYTES_MAX)
    stop = start + min(max(bounds[1].as_py(), 0), COLUMN_BYTES_MAX) if len(bounds) == 2 else None
    return pc.utf8_slice_codeunits(text, start, stop)


def _date_part(kernel: Callable[[Any], Any], timed: bool = False) -> Callable[[_Given], Value]:
    def part(given: _Given) -> Value:
        (value,) = given.args
        if timed and pa.types.is_date(value.type):
            midnight, nothing = pa.scalar(0, given.kind), pa.scalar(None, given.kind)
            return pc.if_else(value.is_valid(), midnight, nothing)
        return pc.cast(kernel(value), given.kind)

    return part


def _shift(sign: int) -> Callable[[_Given], Value]:
    def shift(given: _Given) -> Value:
        value, by = given.args
        date = pa.types.is_date(given.kind)
        unit = 1 if date else DAY_MICROS
        start = _plain(pc.cast(pc.cast(value, pa.int32()) if date else value, pa.int64()), given.n)
        days = _plain(by, given.n)
        near = (days <= DAYS_MAX) & (days >= -DAYS_MAX)
        moved = start + np.where(near, days, 0).astype(np.int64) * sign * unit
        fits = near & (moved // unit >= DATE_MIN) & (moved // unit <= DATE_MAX)
        known = _valid(value, given.n) & _valid(by, given.n) & fits
        found = pa.array(np.where(known, moved, 0), mask=~known)
        return found.cast(pa.int32()).cast(given.kind) if date else found.cast(given.kind)

    return shift


def _days_between(given: _Given) -> Value:
    start, end = (_micros(a, given.n) for a in given.args)
    known = _valid(given.args[0], given.n) & _valid(given.args[1], given.n)
    apart = end - start
    found = np.sign(apart) * (np.abs(apart) // DAY_MICROS)
    return pa.array(found, given.kind, mask=~known)


def _micros(value: Value, n: int) -> npt.NDArray[np.int64]:
    stamped = pc.cast(value, pa.timestamp("us")) if pa.types.is_date(value.type) else value
    found: npt.NDArray[np.int64] = _plain(pc.cast(stamped, pa.int64()), n)
    return found


def _negate(given: _Given) -> Value:
    return _checked(lambda: pc.negate_checked(_widened(given.args[0], given.kind)), given.kind)


def _ends_with(text: Value, suffix: Value, n: int) -> Value:
    if isinstance(suffix, pa.Scalar):
        return _with_pattern(text, suffix, pc.ends_with, n)
    return _in_duckdb("ends_with(a, b)", n, text, suffix)


def _split(given: _Given) -> Value:
    text, separator = given.args
    if isinstance(separator, pa.Scalar) and separator.is_valid and separator.as_py():
        found = pc.split_pattern(text, pattern=separator.as_py())
    else:
        found = _in_duckdb("string_split(a, b)", given.n, text, separator)
    return one_array(found).cast(given.kind)


def _reversed(value: Value) -> Value:
    if pa.types.is_string(value.type) or pa.types.is_large_string(value.type):
        return pc.utf8_reverse(value)
    return lists.reversed_lists(value)


def _quotient(given: _Given) -> Value:
    """Integers divided towards zero; null by zero."""
    a, b = (_plain(arg, given.n) for arg in given.args)
    known = _valid(given.args[0], given.n) & _valid(given.args[1], given.n) & (b != 0)
    safe = np.where(known, b, 1)
    found = a // safe
    found = found + ((a % safe != 0) & ((a < 0) != (safe < 0)))
    return pa.array(found.astype(np.int64), given.kind, mask=~known)


def _of_floats(function: ir.Function) -> Callable[[_Given], Value]:
    """What numpy computes; null where that is not a number though its operands are."""

    def compute(given: _Given) -> Value:
        args = [_plain(arg, given.n).astype(np.float64) for arg in given.args]
        known = np.logical_and.reduce([_valid(arg, given.n) for arg in given.args])
        with np.errstate(all="ignore"):
            found = FLOATS_ONLY[function](*args)
        known &= ~np.isnan(found) | np.logical_or.reduce([np.isnan(arg) for arg in args])
        return pa.array(found, given.kind, mask=~known)

    return compute


def _of_lists(function: ir.Function) -> Callable[[_Given], Value]:
    """An aggregate of the members of a list of numbers."""

    def compute(given: _Given) -> Value:
        numbers = given.args[0]
        whole = spread(numbers, given.n)
        share = _plain(given.args[1], given.n) if len(given.args) > 1 else np.zeros(given.n)
        if ((share < 0) | (share > 1)).any():
            raise OptionInvalid("a percentile is a number from 0 to 1")
        found, known = LISTS_ONLY[function](lists.taken_apart(whole), share.astype(np.float64))
        return pa.array(found, given.kind, mask=~known)

    return compute


CALLS: dict[ir.Function, Callable[[_Given], Value]] = {
    ir.Function.LOWER: _changed_case(ir.Function.LOWER, pc.ascii_lower),
    ir.Function.UPPER: _changed_case(ir.Function.UPPER, pc.ascii_upper),
    ir.Function.TRIM: lambda given: pc.utf8_trim_whitespace(*given.args),
    ir.Function.LENGTH: _length,
    ir.Function.CONCAT: _concat,
    ir.Function.SUBSTRING: _substring,
    ir.Function.COALESCE: lambda given: pc.coalesce(*(_widened(a, given.kind) for a in given.args)),
    ir.Function.YEAR: _date_part(pc.year),
    ir.Function.MONTH: _date_part(pc.month),
    ir.Function.DAY: _date_part(pc.day),
    ir.Function.HOUR: _date_part(pc.hour, timed=True),
    ir.Function.MINUTE: _date_part(pc.minute, timed=True),
    ir.Function.SECOND: _date_part(pc.second, timed=True),
    ir.Function.DATE_ADD: _shift(1),
    ir.Function.DATE_SUB: _shift(-1),
    ir.Function.DAYS_BETWEEN: _days_between,
    ir.Function.NEGATE: _negate,
    ir.Function.ENDS_WITH: lambda given: _ends_with(given.args[0], given.args[1], given.n),
    ir.Function.LTRIM: lambda given: pc.utf8_ltrim_whitespace(*given.args),
    ir.Function.RTRIM: lambda given: pc.utf8_rtrim_whitespace(*given.args),
    ir.Function.ABS: lambda given: _checked(lambda: pc.abs_checked(*given.args), given.kind),
    ir.Function.CEIL: lambda given: pc.ceil(*given.args),
    ir.Function.FLOOR: lambda given: pc.floor(*given.args),
    ir.Function.ROUND: lambda given: pc.floor(pc.add(given.args[0], 0.5)),
    ir.Function.SIGN: lambda given: pc.cast(pc.sign(*given.args), given.kind),
    ir.Function.EPOCH_MILLIS: lambda given: pc.cast(
        pc.cast(given.args[0], pa.timestamp("ms", "UTC"), safe=False), given.kind
    ),
    ir.Function.LEFT: lambda given: _substring(
        _Given([given.args[0], pa.scalar(0, pa.int64()), given.args[1]], given.kind, given.n)
    ),
    ir.Function.RIGHT: lambda given: _in_duckdb(
        "CASE WHEN b <= 0 THEN '' ELSE right(a, least(b, 2147483647)::bigint) END",
        given.n,
        *given.args,
    ),
    ir.Function.REPLACE: lambda given: _in_duckdb(
        "CASE WHEN b = '' THEN a ELSE replace(a, b, c) END", given.n, *given.args
    ),
    ir.Function.SPLIT: _split,
    ir.Function.REVERSE: lambda given: _reversed(given.args[0]),
    ir.Function.QUOTIENT: _quotient,
    **{function: _of_floats(function) for function in FLOATS_ONLY},
    **{function: _of_lists(function) for function in LISTS_ONLY},
}


# --- casts -------------------------------------------------------------------------------------------------------


def cast(value: Value, kind: PropType) -> Value:
    """The same value in another type, null where it has none: every distinct value is cast once, by the reference."""
    target = arrow_type(kind)
    if value.type == target:
        return value
    if _always_fits(value.type, target):
        return pc.cast(value, target, safe=False)
    return _each_distinct(value, lambda v: cast_value(v, kind), target)


def _always_fits(source: pa.DataType, target: pa.DataType) -> bool:
    """Casts that Arrow does exactly as we do, for all values."""
    if target == pa.float64():
        return bool(pa.types.is_integer(source) or source == pa.float32())
    if pa.types.is_string(target):
        return bool(pa.types.is_integer(source))
    return bool(target == pa.int64() and pa.types.is_integer(source) and source != pa.uint64())
