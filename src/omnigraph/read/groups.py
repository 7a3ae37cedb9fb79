"""Groups: keys become numbers, and numbers become groups.

A key that depends on one variable is evaluated once per entity, not once per row.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from omnigraph.lang import ir
from omnigraph.lang.tree import variables, walk
from omnigraph.model.frozen import frozen
from omnigraph.read.arrays import Ints, distinct
from omnigraph.read.blocks import encode, number_rows
from omnigraph.read.columns import TableColumns
from omnigraph.read.context import Context
from omnigraph.read.expressions import column
from omnigraph.read.rows import Entities, Rows
from omnigraph.read.sorting import text_of

WHOLE_PART = 16  # above one row in this many of a table, a column is numbered as a whole
DENSE_PART = 4  # with at most this many codes per row, groups are counted in an array


@frozen
class Groups:
    """Which group each row belongs to, and one row of each group."""

    of: Ints
    first: Ints

    def __len__(self) -> int:
        return len(self.first)


def encode_any(values: pa.Array) -> Ints:
    """`encode` for values of any type; lists and structures are numbered by their text."""
    if pa.types.is_nested(values.type):
        members: dict[str, int] = {}
        found = [
            0 if v is None else members.setdefault(text_of(v), len(members) + 1)
            for v in values.to_pylist()
        ]
        return np.array(found, np.int64)
    return encode(values)


def group(keys: tuple[ir.NamedExpr, ...], rows: Rows, ctx: Context) -> Groups:
    if not keys:
        return Groups(np.zeros(rows.n, np.int64), np.zeros(1, np.int64))
    codes, sizes = zip(*(_codes(key.expr, rows, ctx) for key in keys), strict=True)
    whole, size = codes[0], sizes[0]
    for code, more in zip(codes[1:], sizes[1:], strict=True):
        if size * more > 2**62:
            whole, first = number_rows([whole], rows.n)
            size = len(first)
        whole, size = whole * more + code, size * more
    return _number_groups(whole, size, rows.n)


def _number_groups(codes: Ints, size: int, n: int) -> Groups:
    if size > DENSE_PART * n + 1024:
        return Groups(*number_rows([codes], n))
    first = np.full(size, -1, np.int64)
    first[codes[::-1]] = np.arange(n - 1, -1, -1)
    present = np.flatnonzero(first >= 0)
    number = np.zeros(size, np.int64)
    number[present] = np.arange(len(present))
    return Groups(number[codes], first[present])


def _codes(expr: ir.Expr, rows: Rows, ctx: Context) -> tuple[Ints, int]:
    """A key as small numbers, equal exactly where the key is, and their bound."""
    var = _only_variable(expr)
    found = rows.variables.get(var) if var is not None else None
    if not isinstance(found, Entities) or found.code is not None or var is None:
        codes = encode_any(column(expr, rows, ctx))
        return codes, int(codes.max(initial=0)) + 1
    size = ctx.columns(found.types[0], found.edge).n
    position = found.position + 1  # unbound is number 0
    if isinstance(expr, ir.IdOf | ir.EntityOf):
        return position.astype(np.int64), size + 1
    if isinstance(expr, ir.Column) and rows.n * WHOLE_PART > size:
        table = _codes_of_column(expr.property, ctx.columns(found.types[0], found.edge))
        return table[position], int(table.max(initial=0)) + 1
    kinds = distinct(position, size + 1)
    one_each = Rows(
        len(kinds), {var: Entities(found.types, kinds.astype(np.int32) - 1, None, found.edge)}
    )
    of_kind = encode_any(column(expr, one_each, ctx))
    table = np.zeros(size + 1, np.int64)
    table[kinds] = of_kind
    return table[position], int(of_kind.max(initial=0)) + 1


def _codes_of_column(name: str, columns: TableColumns) -> Ints:
    """A whole column as numbers, kept for the next query; the first is that of an unbound variable."""
    return columns.derived(
        f"codes/{name}",
        lambda: np.concatenate(([0], encode_any(columns.column(name)))),
        lambda codes: codes.nbytes,
    )


def _only_variable(expr: ir.Expr) -> str | None:
    if any(isinstance(part, ir.ScoreOf | ir.Output) for part in walk(expr)):
        return None
    read = variables(expr)
    return next(iter(read)) if len(read) == 1 else None
