"""Applying a `ColumnEdit`: field list changes in one commit, with a commit before it if values are needed.

Lance knows a column by its field id; data files and indices refer to ids. Renaming, dropping and adding null columns
therefore only change the list of fields. pylance offers no way to do so with ids kept, except through the field
messages a schema is pickled as, which are edited here.

A cast makes a new column of the new type and drops the old one, so nothing else is rewritten and no index can keep
entries of the old values.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa
from lance import LanceDataset, LanceFragment
from lance import LanceOperation as Operation
from lance.fragment import DataFile
from lance.schema import LanceSchema

from omnigraph.errors import OptionInvalid
from omnigraph.model.columns import fitted
from omnigraph.model.frozen import frozen
from omnigraph.storage import metrics
from omnigraph.storage.lance.columns import is_marked_blob, stored_field
from omnigraph.storage.lance.failures import lance_errors
from omnigraph.storage.lance.handles import commit
from omnigraph.storage.lance.reading import describe
from omnigraph.storage.tables import ColumnEdit

FILLING = "__omnigraph_filling_"  # prefix of columns that exist between the two commits


@dataclass(slots=True)
class FilledColumns:
    """The files that hold the values of added and cast columns, by the files they stand beside.

    They fit every version in which a fragment has those files, whatever was deleted from it.
    """

    first_id: int = -1  # of the fields they hold; a different one belongs to another column list
    files: dict[str, list[DataFile]] = dataclasses.field(default_factory=dict)
    schema: LanceSchema | None = None


def alter_columns(
    handle: LanceDataset, edit: ColumnEdit, path: str, written: FilledColumns
) -> LanceDataset:
    """The table with its columns edited, as a new detached version. Files in `written` are reused."""
    doing = f"editing the columns of table {path}"
    _check(handle, edit, path)
    filled = [field for field, value in edit.add if value is not None] + list(edit.cast)
    if filled:
        handle = _fill(handle, edit, doing, written)
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


def _fill(
    handle: LanceDataset, edit: ColumnEdit, doing: str, written: FilledColumns
) -> LanceDataset:
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

    if written.first_id != handle._ds.max_field_id:
        written.first_id, written.schema = handle._ds.max_field_id, None
        written.files.clear()

    def write(fragment: LanceFragment) -> None:
        before = fragment.metadata
        with lance_errors(doing):
            after, written.schema = fragment.merge_columns(fill, columns=source)
        written.files[describe(before).files] = list(after.files[len(before.files) :])

    fragments = {describe(each.metadata).files: each for each in handle.get_fragments()}
    if not fragments:
        return handle
    missing = [partial(write, each) for own, each in fragments.items() if own not in written.files]
    metrics.parallel(missing)
    merged = [
        replace(each.metadata, files=[*each.metadata.files, *written.files[own]])
        for own, each in fragments.items()
    ]
    return commit(handle, Operation.Merge(merged, written.schema), doing)


def _constant(field: pa.Field, value: Any) -> Callable[[pa.RecordBatch], pa.Array]:
    scalar = pa.scalar(value, field.type)
    return lambda batch: pa.repeat(scalar, batch.num_rows)


def _casting(field: pa.Field) -> Callable[[pa.RecordBatch], pa.Array]:
    """Values that do not fit become null: a merge that narrows a column replaces those rows in the same version."""
    return lambda batch: fitted(batch.column(field.name), field.type)


def _edited(handle: LanceDataset, edit: ColumnEdit) -> list[StoredColumn]:
    """The columns of the result, in the order of the original with added ones at the end."""
    columns = {column.name: column for column in columns_of_schema(handle.lance_schema)}
    renames = dict(edit.rename)
    next_id = int(handle._ds.max_field_id) + 1
    result: list[StoredColumn] = []
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


def _filled_or_new(
    columns: dict[str, StoredColumn], field: pa.Field, next_id: int
) -> tuple[StoredColumn, int]:
    """The column `_fill` wrote, under its name; or a new one, all null (or in a table without rows)."""
    filled = columns.get(FILLING + field.name)
    if filled is not None:
        return filled.renamed(field.name), next_id
    column = new_column(stored_field(field), next_id)
    return column, next_id + len(column.fields)


NAME, ID, PARENT = 2, 3, 4  # numbers of the members of a field message
NO_PARENT = 2**64 - 1  # -1 as Lance encodes it
VARINT, BYTES = 0, 2  # wire types


@frozen
class MessageMember:
    number: int
    wire: int
    value: int | bytes


@frozen
class FieldMessage:
    """One field message: a column, or a part of one."""

    members: tuple[MessageMember, ...]

    def number(self, wanted: int) -> int:
        found = [m.value for m in self.members if m.number == wanted and isinstance(m.value, int)]
        return found[0] if found else 0  # absent means zero

    @property
    def name(self) -> str:
        return next(
            m.value.decode()
            for m in self.members
            if m.number == NAME and isinstance(m.value, bytes)
        )

    @property
    def id(self) -> int:
        return self.number(ID)

    @property
    def parent(self) -> int | None:
        parent = self.number(PARENT)
        return None if parent == NO_PARENT else parent

    def renamed(self, name: str) -> FieldMessage:
        return FieldMessage(
            tuple(replace(m, value=name.encode()) if m.number == NAME else m for m in self.members)
        )

    def moved(self, by: int) -> FieldMessage:
        """The same field with ids counted from `by`."""
        parent = NO_PARENT if self.parent is None else self.parent + by
        others = [m for m in self.members if m.number not in (ID, PARENT)]
        numbers = [MessageMember(ID, VARINT, self.id + by), MessageMember(PARENT, VARINT, parent)]
        return FieldMessage(tuple(sorted([*others, *numbers], key=lambda m: m.number)))


@frozen
class StoredColumn:
    """A top-level field with its parts."""

    fields: tuple[FieldMessage, ...]

    @property
    def name(self) -> str:
        return self.fields[0].name

    def renamed(self, name: str) -> StoredColumn:
        return StoredColumn((self.fields[0].renamed(name), *self.fields[1:]))

    def moved(self, by: int) -> StoredColumn:
        return StoredColumn(tuple(field.moved(by) for field in self.fields))


def columns_of_schema(schema: LanceSchema) -> tuple[StoredColumn, ...]:
    """A schema's columns in order."""
    _, (_, *messages) = schema.__reduce__()
    groups: list[list[FieldMessage]] = []
    for message in messages:
        field = decode(message)
        if field.parent is None:
            groups.append([field])
        else:
            groups[-1].append(field)
    return tuple(StoredColumn(tuple(group)) for group in groups)


def schema_of_columns(columns: Sequence[StoredColumn], like: LanceSchema) -> LanceSchema:
    """A schema of these columns with the metadata of another."""
    _, (metadata, *_) = like.__reduce__()
    messages = [encode(field) for column in columns for field in column.fields]
    return LanceSchema._from_protos(metadata, *messages)


def new_column(field: pa.Field, first_id: int) -> StoredColumn:
    """A column whose ids begin at `first_id`, which no data file of the table may mention."""
    (column,) = columns_of_schema(LanceSchema.from_pyarrow(pa.schema([field])))
    return column.moved(first_id)


# --- the wire format -------------------------------------------------------------------------------------------------


def decode(message: bytes) -> FieldMessage:
    members: list[MessageMember] = []
    position = 0
    while position < len(message):
        key, position = _read_varint(message, position)
        number, wire = key >> 3, key & 7
        value, position = _read_varint(message, position)
        if wire == VARINT:
            members.append(MessageMember(number, wire, value))
        elif wire == BYTES:
            members.append(MessageMember(number, wire, message[position : position + value]))
            position += value
        else:
            raise ValueError(f"field message with wire type {wire}")
    return FieldMessage(tuple(members))


def encode(field: FieldMessage) -> bytes:
    out = bytearray()
    for member in field.members:
        out += _varint(member.number << 3 | member.wire)
        if isinstance(member.value, bytes):
            out += _varint(len(member.value)) + member.value
        else:
            out += _varint(member.value)
    return bytes(out)


def _read_varint(message: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[position]
        value |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:
            return value, position


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
