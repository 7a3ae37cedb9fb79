"""Output columns: projecting, removing equal rows, sorting, cutting, appending."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import OptionInvalid
from omnigraph.lang import ir
from omnigraph.lang.evaluate import evaluate as evaluate_constant
from omnigraph.model.ordering import compare
from omnigraph.model.predicates import Op
from omnigraph.read.arrays import Ints, to_mask
from omnigraph.read.blocks import encode, number_rows
from omnigraph.read.context import Context
from omnigraph.read.expressions import column, columns
from omnigraph.read.plan import Step
from omnigraph.read.rows import Rows, concat_rows

FEW_ROWS = 64
PICK_ROWS_MIN = 1_000  # below this sorting everything is as quick


def project(step: Step, rows: Rows, ctx: Context) -> Rows:
    op = step.op
    assert isinstance(op, ir.Project)  # noqa: S101
    if step.bag:
        rows = rows.spelled_out()
    values = columns([c.expr for c in op.columns], rows, ctx)
    return Rows(rows.n, columns={c.name: v for c, v in zip(op.columns, values, strict=True)})


def remove_equal(rows: Rows) -> Rows:
    """Each row once."""
    if rows.n <= FEW_ROWS:
        firsts = _firsts_of_few([rows.column(name) for name in rows.columns], rows.n)
    else:
        numbers = [encode_any(rows.column(name)) for name in rows.columns]
        firsts = np.sort(number_rows(list(numbers), rows.n)[1])
    return Rows(rows.n, columns=rows.columns).take(firsts)


def _firsts_of_few(columns: list[pa.Array], n: int) -> Ints:
    """Numbering values costs more than comparing a few rows right here."""
    found: dict[tuple[Any, ...], int] = {}
    ranks = [[_rank(value) for value in values.to_pylist()] for values in columns]
    for i in range(n):
        found.setdefault(tuple(rank[i] for rank in ranks), i)
    return np.array(list(found.values()), np.int64)


def encode_any(values: pa.Array) -> Ints:
    """`encode` for values of any type; lists and structures are numbered by their text."""
    if pa.types.is_nested(values.type):
        members: dict[str, int] = {}
        found = [
            0 if v is None else members.setdefault(_text(v), len(members) + 1)
            for v in values.to_pylist()
        ]
        return np.array(found, np.int64)
    return encode(values)


def _text(value: Any) -> str:
    """The same for equal lists and structures: -0.0 is 0.0."""
    return repr(_one_zero(value))


def _one_zero(value: Any) -> Any:
    match value:
        case float():
            return value + 0.0
        case list():
            return [_one_zero(member) for member in value]
        case dict():
            return {name: _one_zero(member) for name, member in value.items()}
        case _:
            return value


def append(parts: list[Rows]) -> Rows:
    """All rows of all inputs, columns by position."""
    first = list(parts[0].columns)
    kinds = [parts[0].column(name).type for name in first]
    renamed = [_renamed(part.spelled_out(), first, kinds) for part in parts]
    return concat_rows(renamed)


def _renamed(rows: Rows, names: list[str], kinds: list[pa.DataType]) -> Rows:
    made = zip(names, rows.columns, kinds, strict=True)
    return Rows(rows.n, columns={name: _as(rows.column(own), kind) for name, own, kind in made})


def _as(values: pa.Array, kind: pa.DataType) -> pa.Array:
    return values if values.type == kind else values.cast(kind)


# --- order -------------------------------------------------------------------------------------------------------


def sort(step: Step, rows: Rows, ctx: Context) -> Rows:
    """In a total order; with a limit above, only as many rows as that lets through."""
    op = step.op
    assert isinstance(op, ir.Sort)  # noqa: S101
    rows = rows.spelled_out() if step.bag or rows.columns else rows
    wanted = None if step.slice is None else _end(step.slice, ctx)
    keys = [(column(k.expr, rows, ctx), k.descending) for k in op.keys]
    if wanted is not None and keys and rows.n > max(PICK_ROWS_MIN, 4 * wanted):
        kept = _smallest(keys[0][0], keys[0][1], wanted)
        rows = rows.take(kept)
        keys = [(values.take(pa.array(kept)), descending) for values, descending in keys]
    keys += [(column(tie, rows, ctx), False) for tie in op.ties]
    order = order_by(keys, rows.n)
    found = rows.take(order if wanted is None else order[:wanted])
    return found.keep(step.live) if not found.columns else found


def order_by(keys: list[tuple[pa.Array, bool]], n: int) -> Ints:
    """The order of rows by columns ascending or descending; null is smaller, NaN larger than everything."""
    if not keys or n < 2:
        return np.arange(n)
    if n <= FEW_ROWS:
        return _order_of_few(keys, n)
    arrays: list[pa.Array] = []
    sort_keys: list[tuple[str, str, str]] = []
    for values, descending in keys:
        way = ("descending", "at_end") if descending else ("ascending", "at_start")
        for part in _sortable(values):
            sort_keys.append((str(len(arrays)), *way))
            arrays.append(part)
    table = pa.table(arrays, names=[name for name, _, _ in sort_keys])
    found: Ints = pc.sort_indices(table, sort_keys=sort_keys).to_numpy().astype(np.int64)
    return found


def _order_of_few(keys: list[tuple[pa.Array, bool]], n: int) -> Ints:
    """Arrow hands sorting to other threads, which costs more than sorting a few rows right here."""
    found = list(range(n))
    for values, descending in reversed(keys):
        ranks = [_rank(v) for v in values.to_pylist()]
        found.sort(key=ranks.__getitem__, reverse=descending)
    return np.array(found, np.int64)


def _rank(value: Any) -> tuple[int, Any]:
    match value:
        case None:
            return (0, 0)
        case float() if value != value:  # noqa: PLR0124 - only NaN differs from itself
            return (2, 0)
        case str():
            return (1, value.encode())
        case list() | dict():
            return (1, _text(value))
        case _:
            return (1, value)


def _sortable(values: pa.Array) -> list[pa.Array]:
    if pa.types.is_floating(values.type):
        nan = pc.is_nan(values)
        if nan.true_count:
            return [nan, values]
    if pa.types.is_boolean(values.type):
        return [values.cast(pa.int8())]
    if pa.types.is_nested(values.type):
        texts = [None if v is None else _text(v) for v in values.to_pylist()]
        return [pa.array(texts, pa.string())]
    return [values]


def _smallest(values: pa.Array, descending: bool, wanted: int) -> Ints:
    """Rows among which the first ones in this order are, all that equal the last of them included."""
    if not wanted:
        return np.empty(0, np.int64)
    number = pa.types.is_integer(values.type) or pa.types.is_floating(values.type)
    plain = values.to_numpy(zero_copy_only=False) if number and not values.null_count else None
    if plain is None or np.isnan(plain.sum()):
        return _first_in_order(values, descending, wanted)
    at = len(plain) - wanted if descending else wanted - 1
    bound = np.partition(plain, at)[at]
    return np.flatnonzero(plain >= bound if descending else plain <= bound)


def _first_in_order(values: pa.Array, descending: bool, wanted: int) -> Ints:
    if pa.types.is_nested(values.type):
        return np.arange(len(values))
    order = order_by([(values, descending)], len(values))
    last = values[int(order[wanted - 1])]
    equal = compare(Op.EQ, values, last) if last.is_valid else values.is_null()
    return np.union1d(order[:wanted], np.flatnonzero(to_mask(equal)))


def cut(op: ir.Slice, rows: Rows, ctx: Context) -> Rows:
    """Without the first rows, and without those after so many."""
    rows = rows.spelled_out()
    start = min(_count(op.skip, ctx) or 0, rows.n)
    limit = _count(op.limit, ctx)
    end = rows.n if limit is None else min(rows.n, start + limit)
    return rows if (start, end) == (0, rows.n) else rows.take(np.arange(start, end))


def _end(op: ir.Slice, ctx: Context) -> int | None:
    limit = _count(op.limit, ctx)
    return None if limit is None else limit + (_count(op.skip, ctx) or 0)


def _count(expr: ir.Expr | None, ctx: Context) -> int | None:
    if expr is None:
        return None
    value = evaluate_constant(expr, ctx.bound)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise OptionInvalid(f"skip and limit take whole numbers from 0, not {value!r}")
    return value
