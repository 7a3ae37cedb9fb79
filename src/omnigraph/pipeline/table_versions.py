"""Columns of table versions as DataFrames: tasks read fragments, each its own share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.types as at

from omnigraph.model.frozen import frozen
from omnigraph.model.keys import value_texts
from omnigraph.pipeline.pinned import adopt, reachable, store_environment
from omnigraph.pipeline.session import parallelism
from omnigraph.storage.objects import locate
from omnigraph.storage.tables import ADDRESS, Table, TableRef

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from omnigraph.storage.lance import LanceTables
    from omnigraph.storage.lance.reading import LanceTable

SHARES_PER_CORE = 2
NUMBER_BYTES = 8
TEXT_BYTES = 24  # of one value, about: names and ids
BLOB_BYTES = 4_096  # of one value, at least
LIST_VALUES = 8  # of one list, about
NUMBERS_MAX = 1 << 28  # two gigabytes: more would not be broadcast either


def numbers(
    session: SparkSession, count: int, rows: int = 0, types: Iterable[pa.DataType] = (pa.string(),)
) -> DataFrame:
    """0 to count - 1, each in its own partition: the work list of a job whose tasks return `rows` rows of these types.

    Spark estimates the output of tasks to be as large as their input, and broadcasts small results. So the list has as
    many numbers as the rows will need bytes, all but one in each partition filtered out immediately.
    """
    row_bytes = NUMBER_BYTES + sum(map(_value_bytes, types))
    total = min(rows * row_bytes // NUMBER_BYTES, NUMBERS_MAX)
    step = max(1, total // max(1, count))
    if step == 1:
        return session.range(0, count, 1, max(1, count))
    every = session.range(0, count * step, 1, count)
    return every.where(f"id % {step} = 0").selectExpr(f"id DIV {step} AS id")


def _value_bytes(kind: pa.DataType) -> int:
    """The bytes of one value, about."""
    if at.is_fixed_size_list(kind):
        return int(kind.list_size) * _value_bytes(kind.value_type)
    if at.is_list(kind):
        return LIST_VALUES * _value_bytes(kind.value_type)
    if at.is_struct(kind):
        return sum(_value_bytes(field.type) for field in kind)
    if at.is_binary(kind) or at.is_large_binary(kind):
        return BLOB_BYTES
    return TEXT_BYTES if at.is_string(kind) or at.is_large_string(kind) else NUMBER_BYTES


@frozen
class TextColumn:
    """A column to read: one of the table, or a string that encodes the values of several."""

    name: str
    members: tuple[str, ...]


@frozen
class TableVersion:
    """A version of a table: its fragments, and which of them are new."""

    uri: str
    ref: TableRef
    rows: int
    fragments: tuple[int, ...]
    fresh: frozenset[int] = frozenset()

    @classmethod
    def of(cls, uri: str, table: Table, base: Table | None = None) -> TableVersion:
        """A version; with a base, fragments whose files the base does not have are fresh."""
        infos = table.fragments()
        known = {info.files for info in base.fragments()} if base is not None else None
        fresh = frozenset(
            i.fragment_id for i in infos if known is not None and i.files not in known
        )
        return cls(uri, table.ref, table.count(), tuple(info.fragment_id for info in infos), fresh)

    def frame(self, session: SparkSession, columns: Sequence[TextColumn]) -> DataFrame:
        """Some columns as strings, with `addr` and `fresh` for each row, read by tasks."""
        count = min(len(self.fragments), parallelism(session) * SHARES_PER_CORE)
        shares = tuple(self.fragments[place::count] for place in range(count))
        ddl = ", ".join([*(f"{c.name} string" for c in columns), "addr long", "fresh boolean"])
        task = _texts_task(self, shares, tuple(columns))
        types = [*(pa.string() for _ in columns), pa.int64(), pa.bool_()]
        return numbers(session, count, self.rows, types).mapInArrow(task, ddl)

    def table(self, columns: Sequence[TextColumn]) -> pa.Table:
        """The same, read in this process."""
        return self.reader(columns).read_all()

    def reader(self, columns: Sequence[TextColumn]) -> pa.RecordBatchReader:
        """The same, block by block."""
        fields = [(c.name, pa.string()) for c in columns]
        schema = pa.schema([*fields, ("addr", pa.int64()), ("fresh", pa.bool_())])
        table = open_table(self.uri, self.ref)
        batches = _read(table, self, self.fragments, tuple(columns))
        return pa.RecordBatchReader.from_batches(schema, batches)


def plain(*names: str) -> list[TextColumn]:
    """Columns that already are strings."""
    return [TextColumn(name, (name,)) for name in names]


def _texts_task(
    version: TableVersion, shares: tuple[tuple[int, ...], ...], columns: tuple[TextColumn, ...]
) -> Any:
    environment = store_environment()

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        adopt(environment)
        table = open_table(version.uri, version.ref)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from _read(table, version, shares[number], columns)

    return run


def _read(
    table: Table, version: TableVersion, fragments: Sequence[int], columns: tuple[TextColumn, ...]
) -> Iterator[pa.RecordBatch]:
    members = list(dict.fromkeys(name for c in columns for name in c.members))
    for fragment in fragments:
        read = table.batches(members, with_address=True, fragments=[fragment])
        yield from (_as_texts(b, columns, fragment in version.fresh) for b in read)


def _as_texts(
    batch: pa.RecordBatch, columns: tuple[TextColumn, ...], fresh: bool
) -> pa.RecordBatch:
    arrays = [value_texts([batch.column(name) for name in c.members]) for c in columns]
    arrays.append(batch.column(ADDRESS).cast(pa.int64()))
    arrays.append(pa.repeat(pa.scalar(fresh), batch.num_rows))
    return pa.RecordBatch.from_arrays(arrays, [*(c.name for c in columns), "addr", "fresh"])


def open_table(uri: str, ref: TableRef) -> LanceTable:
    """Open a version in this process."""
    return open_tables(uri).open(ref)


def open_tables(uri: str) -> LanceTables:
    """Open the tables of a graph in this process."""
    from omnigraph.storage.lance import LanceTables

    place = reachable(locate(uri))
    return LanceTables(place.uri, dict(place.options))
