"""Tables in untrusted files, read only if they fit: a few of their bytes may expand to very many rows.

Parquet stores a value once and refers to it often, and Arrow's buffers may be compressed. Both record the expanded
size: it is added up before anything is unpacked.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from omnigraph.errors import LimitExceeded
from omnigraph.model.frozen import frozen
from omnigraph.write.input.files import open_file

if TYPE_CHECKING:
    import pyarrow.parquet as pq

CHUNKS_MAX = 100_000  # columns of row groups
ROW_BYTES = 8  # of an empty row
MAGIC = b"ARROW1"  # an Arrow file is a stream between this, padded to eight bytes, and a footer
WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}
TEXT_BYTES = 8  # of an empty text
WIDEST = 16  # of a kind not listed here
SHARED = frozenset({"RLE_DICTIONARY", "PLAIN_DICTIONARY"})  # encodings that refer to a value
CHUNKS = "SELECT column_id, type, encodings, num_values, total_uncompressed_size FROM parquet_metadata(?)"
PREFIXED = "DELTA_BYTE_ARRAY"  # repeats the beginning of the previous value
BATCH_ROWS = 65_536
# The numbers of fields, and a kind of header, in Arrow's format.
HEADER_TYPE, HEADER = 1, 2
LENGTH, BUFFERS, COMPRESSION = 0, 2, 3
DICTIONARY_BATCH, DICTIONARY_DATA = 2, 1


def refuse_more_than(bytes_max: int, size: int) -> None:
    """Refuse data larger than this."""
    if size > bytes_max:
        raise LimitExceeded(
            f"the rows take {size} bytes when unpacked, more than {bytes_max}",
            help="A server takes `unpack_ratio_max` times the size of a body, and no more than `load_bytes_max`.",
            details={"limit": "unpacked_bytes_max", "max": bytes_max, "actual": size},
        )


# --- Parquet -----------------------------------------------------------------------------------------------------


def read_parquet_file(file: str, bytes_max: int | None, rows: int | None = None) -> pa.Table:
    """The rows of a Parquet file, or the first of them. An untrusted file must be on this machine's disk."""
    import pyarrow.parquet as pq

    with open_file(file) as stream:
        source = pa.PythonFile(stream)
        opened = pq.ParquetFile(source)
        if bytes_max is None and rows is None:
            return opened.read()
        schema = opened.schema_arrow
        shared = [] if bytes_max is None else _shared_texts(file, opened, bytes_max)
        opened = pq.ParquetFile(source, metadata=opened.metadata, read_dictionary=shared)
        found, size, left = [], 0, opened.metadata.num_rows if rows is None else rows
        for table in _batches(opened, left):
            size += spread_size(table)
            if bytes_max is not None:
                refuse_more_than(bytes_max, size)
            found.append(table.slice(0, left).cast(schema))
            left -= table.num_rows
    return pa.concat_tables(found) if found else schema.empty_table()


def _batches(opened: pq.ParquetFile, rows: int) -> Iterator[pa.Table]:
    """Batch by batch, until there are as many rows; dictionary-encoded texts stay encoded."""
    for number in range(opened.num_row_groups):
        if rows <= 0:
            return
        batches = opened.iter_batches(min(rows, BATCH_ROWS), row_groups=[number])
        while (batch := _next(batches)) is not None:
            rows -= batch.num_rows
            yield pa.Table.from_batches([batch])
            if rows <= 0:
                return


def _next(batches: Iterator[pa.RecordBatch]) -> pa.RecordBatch | None:
    """Arrow cannot keep dictionary-encoded texts in lists if the file starts a new dictionary."""
    try:
        return next(batches, None)
    except pa.ArrowNotImplementedError:
        raise LimitExceeded(
            "lists of dictionary-encoded texts may take any amount of memory",
            help="Write the file without dictionaries for its lists of texts.",
            details={"limit": "unpacked_bytes_max"},
        ) from None


def _shared_texts(file: str, opened: pq.ParquetFile, bytes_max: int) -> list[str]:
    """The columns whose texts are referenced so often that they may not fit. Sizes of others are in the file."""
    chunks = opened.metadata.num_row_groups * opened.metadata.num_columns
    if chunks > CHUNKS_MAX:
        raise LimitExceeded(
            f"the file has {chunks} columns of row groups, more than {CHUNKS_MAX}",
            details={"limit": "chunks_max", "max": CHUNKS_MAX, "actual": chunks},
        )
    shared: dict[str, int] = {}
    size = opened.metadata.num_rows * ROW_BYTES
    for chunk in _chunks(file):
        column = opened.schema.column(chunk.column)
        size += chunk.said_size(column.length)
        if chunk.kind == "BYTE_ARRAY" and SHARED & chunk.encodings:
            shared[column.path] = shared.get(column.path, 0) + chunk.values * chunk.bytes
    refuse_more_than(bytes_max, size)
    return sorted(path for path, most in shared.items() if most > bytes_max)


@frozen
class _Chunk:
    """A column of a row group, as its file describes it."""

    column: int
    kind: str
    encodings: frozenset[str]
    values: int
    bytes: int  # uncompressed

    def said_size(self, width: int) -> int:
        """The size of its values, except for dictionary-encoded texts."""
        match self.kind:
            case "BYTE_ARRAY":
                often = self.values if PREFIXED in self.encodings else 1
                return self.values * TEXT_BYTES + self.bytes * often
            case "FIXED_LEN_BYTE_ARRAY":
                return max(self.values * width, self.bytes)
            case kind:
                return max(self.values * WIDTHS.get(kind, WIDEST), self.bytes)


def _chunks(file: str) -> Iterator[_Chunk]:
    """Read by DuckDB: damaged metadata crashes the process if read by Arrow."""
    import duckdb

    try:
        with duckdb.connect() as engine:
            described = engine.execute(CHUNKS, [file]).fetchall()
    except duckdb.Error as error:
        raise pa.ArrowInvalid(f"its metadata cannot be read: {error}") from error
    for column, kind, encodings, values, size in described:
        if min(column, values, size) < 0:
            raise pa.ArrowInvalid("its metadata has negative numbers")
        yield _Chunk(column, kind, frozenset(encodings.split(", ")), values, size)


def spread_size(table: pa.Table) -> int:
    """The size of the values of a table, each counted separately."""
    chunks = (chunk for column in table.columns for chunk in column.chunks)
    return int(table.num_rows * ROW_BYTES) + sum(_spread_size(chunk) for chunk in chunks)


def _spread_size(values: pa.Array) -> int:
    kind = values.type
    if isinstance(kind, pa.BaseExtensionType):
        return _spread_size(values.storage)
    if at.is_dictionary(kind):
        return _named_size(values)
    if at.is_string_view(kind) or at.is_binary_view(kind):
        views = np.frombuffer(values.buffers()[1], np.int32).reshape(-1, 4)
        return int(views[values.offset : values.offset + len(values), 0].sum(dtype=np.int64))
    if at.is_list(kind) or at.is_large_list(kind) or at.is_fixed_size_list(kind):
        return len(values) * ROW_BYTES + _spread_size(values.flatten())
    if at.is_list_view(kind) or at.is_large_list_view(kind):
        named = int(values.value_lengths().cast(pa.int64()).fill_null(0).to_numpy().sum())
        return len(values) * ROW_BYTES + named * _largest(values.values)
    if at.is_struct(kind):
        return sum(_spread_size(child) for child in values.flatten())
    return int(values.nbytes)


def _largest(items: pa.Array) -> int:
    """An upper bound for the size of the largest of them."""
    if not (at.is_string(items.type) or at.is_binary(items.type) or _is_large_text(items.type)):
        return items.type.bit_width // 8 + 1 if at.is_primitive(items.type) else _spread_size(items)
    return TEXT_BYTES + int(pc.max(pc.binary_length(items)).as_py() or 0)


def _named_size(values: pa.DictionaryArray) -> int:
    """The size of dictionary-encoded values, each counted as often as it is referenced."""
    kind = values.type.value_type
    if not (at.is_binary(kind) or at.is_string(kind) or _is_large_text(kind)):
        each = values.dictionary.nbytes // max(len(values.dictionary), 1) + 1
        return int(each) * len(values)
    lengths = pc.binary_length(values.dictionary).cast(pa.int64())
    return int(pc.sum(lengths.take(values.indices)).as_py() or 0)


def _is_large_text(kind: pa.DataType) -> bool:
    return bool(at.is_large_string(kind) or at.is_large_binary(kind))


# --- Arrow -------------------------------------------------------------------------------------------------------


def read_ipc(data: pa.Buffer, bytes_max: int | None) -> pa.Table:
    """The table in an Arrow file or stream."""
    stream = data.slice(8) if data.slice(0, len(MAGIC)).to_pybytes() == MAGIC else data
    if bytes_max is not None:
        refuse_more_than(bytes_max, sum(_message_sizes(stream)))
    table = pa.ipc.open_stream(stream).read_all()
    if bytes_max is not None:
        table.validate(full=True)  # before anything reads it
        refuse_more_than(bytes_max, spread_size(table))
    return table


def _message_sizes(stream: pa.Buffer) -> Iterator[int]:
    """The sizes of the parts of a stream, one by one, by their headers."""
    for message in pa.ipc.MessageReader.open_stream(stream):
        if message.type in ("record batch", "dictionary"):
            try:
                yield _batch_size(memoryview(message.metadata), memoryview(message.body))
            except (struct.error, IndexError, TypeError) as error:
                raise pa.ArrowInvalid(f"a batch has no valid header: {error}") from error


def _batch_size(header: memoryview, body: memoryview) -> int:
    """The size of the rows and buffers of a batch, by its header: a FlatBuffer of the form Message."""
    message = _Table(header, 0).follow()
    batch = message.field(HEADER).follow()
    if message.field(HEADER_TYPE).number("<B") == DICTIONARY_BATCH:
        batch = batch.field(DICTIONARY_DATA).follow()
    buffers = batch.field(BUFFERS).follow()
    packed = batch.has(COMPRESSION)
    rows = batch.field(LENGTH).number("<q") if batch.has(LENGTH) else 0
    size = _counted(rows) * ROW_BYTES
    for number in range(buffers.number("<I")):
        offset, length = struct.unpack_from("<2q", header, buffers.place + 4 + 16 * number)
        said = _Table(body, offset).number("<q") if packed and length else -1
        size += _counted(said if said >= 0 else length)
    return size


def _counted(number: int) -> int:
    if number < 0:
        raise IndexError("a negative number")
    return number


@frozen
class _Table:
    """A position in a FlatBuffer; if it is a table, its fields are found through its vtable."""

    data: memoryview
    place: int

    def number(self, form: str, after: int = 0) -> int:
        if self.place + after < 0:
            raise IndexError("a reference out of bounds")
        return int(struct.unpack_from(form, self.data, self.place + after)[0])

    def follow(self) -> _Table:
        return _Table(self.data, self.place + self.number("<I"))

    def has(self, field: int) -> bool:
        return self._offset(field) > 0

    def field(self, field: int) -> _Table:
        if not self.has(field):
            raise IndexError("a part is missing")
        return _Table(self.data, self.place + self._offset(field))

    def _offset(self, field: int) -> int:
        vtable = _Table(self.data, self.place - self.number("<i"))
        slot = 4 + 2 * field
        return vtable.number("<H", slot) if slot < vtable.number("<H") else 0
