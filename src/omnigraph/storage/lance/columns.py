"""Between the columns callers see and the columns Lance stores.

They differ in blobs: callers see `large_binary` with the mark `omnigraph.blob`, Lance stores its blob type, whose bytes
are beside the data file. And identities are compressed in blocks: with millions of edges they are most of the bytes,
and this takes half the time of Lance's default to write and to scan, in less space.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from lance import blob_field

from omnigraph.errors import OmnigraphError

BLOB_MARK = b"omnigraph.blob"
BLOB_EXTENSION = "lance.blob.v2"
IDENTITIES = frozenset({"id", "src", "dst"})
BY_BLOCKS = {"lance-encoding:compression": "lz4"}


def is_marked_blob(field: pa.Field) -> bool:
    """Whether a caller's field is marked to be stored as a blob."""
    return (field.metadata or {}).get(BLOB_MARK) == b"true"


def is_stored_blob(field: pa.Field) -> bool:
    """Whether a stored field is a blob."""
    return getattr(field.type, "extension_name", "") == BLOB_EXTENSION


def stored_field(field: pa.Field) -> pa.Field:
    """How Lance stores a caller's field."""
    if is_marked_blob(field):
        return blob_field(field.name, nullable=field.nullable)
    return field.with_metadata(BY_BLOCKS) if field.name in IDENTITIES else field


def seen_field(field: pa.Field) -> pa.Field:
    """How callers see a stored field."""
    if is_stored_blob(field):
        return pa.field(
            field.name, pa.large_binary(), nullable=field.nullable, metadata={BLOB_MARK: b"true"}
        )
    return field.remove_metadata() if field.name in IDENTITIES else field


def stored_schema(schema: pa.Schema) -> pa.Schema:
    return pa.schema([stored_field(field) for field in schema])


def seen_schema(schema: pa.Schema) -> pa.Schema:
    return pa.schema([seen_field(field) for field in schema])


def blob_columns(stored: pa.Schema) -> tuple[str, ...]:
    """The names of a table's blob columns."""
    return tuple(field.name for field in stored if is_stored_blob(field))


def as_batches(
    rows: pa.Table | Iterable[pa.RecordBatch], batch_rows: int = 65_536
) -> Iterator[pa.RecordBatch]:
    """Rows as a stream of batches of bounded length; nothing is copied."""
    if isinstance(rows, pa.Table):
        yield from rows.to_batches(max_chunksize=batch_rows)
        return
    for batch in rows:
        for start in range(0, batch.num_rows, batch_rows):
            yield batch.slice(start, batch_rows)


def conform(batch: pa.RecordBatch, seen: pa.Schema) -> pa.RecordBatch:
    """The batch with exactly the table's columns, in their order and types; absent nullable columns become null."""
    unknown = set(batch.schema.names) - set(seen.names)
    if unknown:
        raise OmnigraphError(f"rows have columns the table lacks: {', '.join(sorted(unknown))}")
    return pa.record_batch([_conform_column(batch, field) for field in seen], schema=seen)


def _conform_column(batch: pa.RecordBatch, field: pa.Field) -> pa.Array:
    present = field.name in batch.schema.names
    column = batch.column(field.name) if present else pa.nulls(batch.num_rows, field.type)
    column = _cast(column, field)
    if not field.nullable and column.null_count:
        raise OmnigraphError(f"column {field.name} must not be null")
    return column


def _cast(column: pa.Array, field: pa.Field) -> pa.Array:
    if column.type == field.type:
        return column
    try:
        return column.cast(field.type)
    except pa.ArrowException as failure:
        raise OmnigraphError(
            f"column {field.name} of {field.type} cannot take {column.type}: {failure}"
        ) from failure


def to_stored(batch: pa.RecordBatch, stored: pa.Schema) -> pa.RecordBatch:
    """A conforming batch in Lance's form."""
    if not blob_columns(stored):
        return pa.record_batch(batch.columns, schema=stored)
    columns = [
        _blob_array(column, field.type) if is_stored_blob(field) else column
        for column, field in zip(batch.columns, stored, strict=True)
    ]
    return pa.record_batch(columns, schema=stored)


def _blob_array(column: pa.LargeBinaryArray, kind: pa.ExtensionType) -> pa.ExtensionArray:
    parts = [column] + [pa.nulls(len(column), field.type) for field in list(kind.storage_type)[1:]]
    storage = pa.StructArray.from_arrays(
        parts, fields=list(kind.storage_type), mask=column.is_null()
    )
    return pa.ExtensionArray.from_storage(kind, storage)


def to_seen(table: pa.Table, seen: pa.Schema) -> pa.Table:
    """The result of a scan, under the callers' schema (`seen` may lack system columns)."""
    fields = [
        seen.field(field.name) if field.name in seen.names else field for field in table.schema
    ]
    return pa.table(table.columns, schema=pa.schema(fields))
