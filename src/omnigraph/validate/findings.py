"""Inputs and results of checks."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterator
from dataclasses import field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.core.plan import Reads
from omnigraph.core.txn import WriteTxn
from omnigraph.errors import Violation
from omnigraph.model.catalog import Catalog
from omnigraph.model.changes import Changes, Origin
from omnigraph.model.columns import one_array
from omnigraph.model.frozen import frozen
from omnigraph.values.spelling import datetime_text

VIOLATIONS_MAX = 100
SHOWN_CHARACTERS_MAX = 80  # of a value in a message
VALUE_CHARACTERS_MAX = 1_000  # of a value in the details
VALUE_MEMBERS_MAX = 32  # of a list or vector there


@frozen
class Case:
    """A planned write: the state it starts from, and its changes."""

    changes: Changes
    txn: WriteTxn
    limit: int = VIOLATIONS_MAX
    cascaded: frozenset[str] = field(default_factory=frozenset)

    @property
    def catalog(self) -> Catalog:
        return self.txn.catalog


@frozen
class Looked:
    """A check is about to read a table: its verdict holds only as long as these facts do."""

    table_id: str
    reads: Reads


Finding = Violation | Looked
Check = Callable[[Case], Iterator[Finding]]


def column(rows: pa.Table, name: str) -> pa.Array:
    """A column as one array."""
    return one_array(rows.column(name))


def offenders(
    rows: pa.Table,
    mask: pa.Array | pa.ChunkedArray | None,
    columns: tuple[str, ...],
    origin: Origin,
    limit: int,
) -> Iterator[tuple[dict[str, Any], str | None, int | None]]:
    """The rows where the mask is true, the first by id up to a limit: their `id` and columns, file and line."""
    if mask is None or not pc.any(mask).as_py():
        return
    numbers = pc.indices_nonzero(one_array(mask).fill_null(False))
    found = rows.select(_with_id(rows, columns)).take(numbers)
    if "id" in found.column_names:
        order = pc.sort_indices(found["id"])[:limit]
        found, numbers = found.take(order), numbers.take(order)
    for row, number in zip(found.to_pylist()[:limit], numbers.to_pylist(), strict=False):
        yield row, *origin.place(number)


def _with_id(rows: pa.Table, columns: tuple[str, ...]) -> list[str]:
    return [name for name in dict.fromkeys(("id", *columns)) if name in rows.column_names]


def joined(*parts: pa.Table | None, columns: tuple[str, ...]) -> pa.Table | None:
    """Some columns of several tables, concatenated; None for no rows."""
    filled = [part.select(columns) for part in parts if part is not None and part.num_rows]
    return pa.concat_tables(filled) if filled else None


def plain(value: Any) -> Any:
    """A value in its report form: JSON, truncated if long."""
    match value:
        case str() if len(value) > VALUE_CHARACTERS_MAX:
            return value[: VALUE_CHARACTERS_MAX - 3] + "..."
        case dt.datetime():
            return datetime_text(value)
        case dt.date():
            return value.isoformat()
        case float() if not math.isfinite(value):
            return str(value)
        case bytes():
            return f"{len(value)} bytes"
        case list() | tuple():
            return [plain(item) for item in value[:VALUE_MEMBERS_MAX]]
        case _:
            return value


def shown(value: Any) -> str:
    """A value as messages show it: short."""
    value = plain(value)
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= SHOWN_CHARACTERS_MAX else text[: SHOWN_CHARACTERS_MAX - 3] + "..."
