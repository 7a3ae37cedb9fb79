"""Rows of one type as they come out of a reader."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace

import numpy as np
import pyarrow as pa

from omnigraph.model.catalog import EdgeType, NodeOrEdgeType
from omnigraph.model.changes import UNMARKED, Incoming, Marks, Origin, joined
from omnigraph.model.columns import arrow_schema
from omnigraph.model.frozen import frozen
from omnigraph.values.columns import Column


@frozen
class InputPart:
    """Some rows of one type: the columns that were given, where a field was left out, and the rows' line numbers."""

    kind: NodeOrEdgeType
    columns: Mapping[str, Column]
    rows: int
    absent: Mapping[str, pa.BooleanArray] = field(default_factory=dict)
    lines: pa.Int64Array | None = None
    file: str | None = None
    marks: Marks = UNMARKED

    def filter(self, mask: pa.BooleanArray) -> InputPart:
        """The rows where the mask is true."""
        return replace(
            self,
            columns={name: values.filter(mask) for name, values in self.columns.items()},
            rows=mask.true_count,
            absent={name: left_out.filter(mask) for name, left_out in self.absent.items()},
            lines=None if self.lines is None else self.lines.filter(mask),
            marks=self.marks.filter(mask),
        )


def in_line_order(parts: Sequence[InputPart]) -> Sequence[InputPart]:
    """The parts of one block as one part per type, its rows in the order of their lines."""
    by_table: dict[str, list[InputPart]] = {}
    for part in parts:
        by_table.setdefault(part.kind.table_id, []).append(part)
    return [group[0] if len(group) == 1 else _sorted(group) for group in by_table.values()]


def _sorted(parts: Sequence[InputPart]) -> InputPart:
    names = _names(parts)
    table, absent = _stacked(parts, names), _absences(parts, names)
    lines = pa.concat_arrays([part.lines for part in parts if part.lines is not None])
    order = pa.array(np.argsort(lines.to_numpy(), kind="stable"))
    columns = {name: table[name].take(order) for name in names}
    absent = {name: mask.take(order) for name, mask in absent.items()}
    return InputPart(parts[0].kind, columns, table.num_rows, absent, lines.take(order))


def to_incoming(parts: Iterable[InputPart]) -> list[Incoming]:
    """All rows of each type and file together, in order of first appearance."""
    groups: dict[tuple[str, str | None], list[InputPart]] = {}
    for part in parts:
        groups.setdefault((part.kind.table_id, part.file), []).append(part)
    return [_incoming(group) for group in groups.values()]


def _incoming(parts: Sequence[InputPart]) -> Incoming:
    kind, names = parts[0].kind, _names(parts)
    lines = [part.lines for part in parts if part.lines is not None]
    origin = Origin(parts[0].file, pa.concat_arrays(lines) if lines else None)
    rows, absent = _stacked(parts, names), _absences(parts, names)
    marks = joined([part.marks for part in parts], [part.rows for part in parts])
    return Incoming(kind.name, rows, absent, origin, isinstance(kind, EdgeType), marks)


def _names(parts: Sequence[InputPart]) -> list[str]:
    """The columns any part has, in the order of the table."""
    given = {name for part in parts for name in part.columns}
    return [name for name in arrow_schema(parts[0].kind).names if name in given]


def _stacked(parts: Sequence[InputPart], names: Sequence[str]) -> pa.Table:
    schema = arrow_schema(parts[0].kind)
    fields = [schema.field(name).with_nullable(True) for name in names]
    columns = [_column(parts, field) for field in fields]
    if not fields:  # a table without columns has no length; an id that is null asks for a fresh one
        fields = [pa.field("id", pa.string())]
        columns = [pa.chunked_array([pa.nulls(sum(p.rows for p in parts), pa.string())])]
    return pa.table(columns, schema=pa.schema(fields))


def _column(parts: Sequence[InputPart], field: pa.Field) -> pa.ChunkedArray:
    chunks: list[pa.Array] = []
    for part in parts:
        found = part.columns.get(field.name)
        if found is None:
            chunks.append(pa.nulls(part.rows, field.type))
        elif isinstance(found, pa.ChunkedArray):
            chunks.extend(found.chunks)
        else:
            chunks.append(found)
    return pa.chunked_array(chunks, field.type)


def _absences(parts: Sequence[InputPart], names: Sequence[str]) -> dict[str, pa.BooleanArray]:
    properties = [name for name in names if name in parts[0].kind.properties]
    found = {}
    for name in properties:
        if any(name in part.absent or name not in part.columns for part in parts):
            found[name] = pa.concat_arrays([_absence(part, name) for part in parts])
    return found


def _absence(part: InputPart, name: str) -> pa.BooleanArray:
    if name in part.absent:
        return part.absent[name]
    return pa.array(np.full(part.rows, name not in part.columns), pa.bool_())
