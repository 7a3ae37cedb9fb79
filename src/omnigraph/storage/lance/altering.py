"""Carrying out a `ColumnEdit`: list-of-fields changes in one commit, and a commit before it where values are needed.

A cast makes a new column of the new type and drops the old one, so nothing else is rewritten and no index can keep
entries of the old values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from lance import LanceDataset
from lance import LanceOperation as Operation

from omnigraph.errors import OptionInvalid
from omnigraph.model.columns import fitted
from omnigraph.storage.lance.columns import is_marked_blob, stored_field
from omnigraph.storage.lance.commits import commit
from omnigraph.storage.lance.failures import lance_errors
from omnigraph.storage.lance.fields import (
    Column,
    columns_of_schema,
    new_column,
    schema_of_columns,
)
from omnigraph.storage.tables import ColumnEdit

FILLING = "__omnigraph_filling_"  # prefix of columns that exist between the two commits


def alter_columns(handle: LanceDataset, edit: ColumnEdit, path: str) -> LanceDataset:
    """The table with its columns edited, as a new detached version."""
    doing = f"editing the columns of table {path}"
    _check(handle, edit, path)
    filled = [field for field, value in edit.add if value is not None] + list(edit.cast)
    if filled:
        handle = _fill(handle, edit, doing)
    columns = _edited(handle, edit)
    schema = schema_of_columns(columns, handle.lance_schema)
    return commit(handle, Operation.Project(schema), doing)


def _check(handle: LanceDataset, edit: ColumnEdit, path: str) -> None:
    names = set(handle.schema.names)
    needed = {*edit.drop, *(old for old, _ in edit.rename), *(field.name for field in edit.cast)}
    if needed - names:
        raise OptionInvalid(f"table {path} has no columns {', '.join(sorted(needed - names))}")
    for field, value in edit.add:
        if is_marked_blob(field) and value is not None:
            raise OptionInvalid(f"blob column {field.name} cannot be added with a value")
        if not field.nullable and value is None and handle.count_rows():
            raise OptionInvalid(
                f"column {field.name} is added without a value but must not be null"
            )


def _fill(handle: LanceDataset, edit: ColumnEdit, doing: str) -> LanceDataset:
    """Write the values of added and cast columns beside every fragment."""
    makers: list[tuple[pa.Field, Callable[[pa.RecordBatch], pa.Array]]] = []
    for field, value in edit.add:
        if value is not None:
            makers.append((field, _constant(field, value)))
    makers.extend((field, _casting(field)) for field in edit.cast)
    source = [field.name for field in edit.cast] or [handle.schema.names[0]]

    def fill(batch: pa.RecordBatch) -> pa.RecordBatch:
        fields = [pa.field(FILLING + f.name, f.type, nullable=f.nullable) for f, _ in makers]
        return pa.record_batch([make(batch) for _, make in makers], schema=pa.schema(fields))

    with lance_errors(doing):
        merged = [f.merge_columns(fill, columns=source) for f in handle.get_fragments()]
    if not merged:
        return handle
    operation = Operation.Merge([fragment for fragment, _ in merged], merged[-1][1])
    return commit(handle, operation, doing)


def _constant(field: pa.Field, value: Any) -> Callable[[pa.RecordBatch], pa.Array]:
    scalar = pa.scalar(value, field.type)
    return lambda batch: pa.repeat(scalar, batch.num_rows)


def _casting(field: pa.Field) -> Callable[[pa.RecordBatch], pa.Array]:
    """What does not fit becomes null: a merge that narrows a column replaces those rows in the same version."""
    return lambda batch: fitted(batch.column(field.name), field.type)


def _edited(handle: LanceDataset, edit: ColumnEdit) -> list[Column]:
    """The columns of the result, in the order of the original with added ones at the end."""
    columns = {column.name: column for column in columns_of_schema(handle.lance_schema)}
    renames = dict(edit.rename)
    next_id = int(handle._ds.max_field_id) + 1
    result: list[Column] = []
    for name in [name for name in columns if not name.startswith(FILLING)]:
        cast = next((field for field in edit.cast if field.name == name), None)
        if name in edit.drop:
            continue
        column = columns[name]
        if cast is not None:
            column, next_id = _filled_or_new(columns, cast, next_id)
        result.append(column.renamed(renames.get(name, name)))
    for field, _ in edit.add:
        column, next_id = _filled_or_new(columns, field, next_id)
        result.append(column)
    return result


def _filled_or_new(columns: dict[str, Column], field: pa.Field, next_id: int) -> tuple[Column, int]:
    """The column `_fill` wrote, under its name; or a new one, null everywhere (or in a table without rows)."""
    filled = columns.get(FILLING + field.name)
    if filled is not None:
        return filled.renamed(field.name), next_id
    column = new_column(stored_field(field), next_id)
    return column, next_id + len(column.fields)
