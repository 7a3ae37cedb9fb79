"""Columns of table versions as DataFrames: tasks read fragments, each its own share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.model.keys import value_texts
from omnigraph.pipeline.pinned import adopt, store_environment
from omnigraph.storage.objects import locate
from omnigraph.storage.tables import ADDRESS, Table, TableRef

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from omnigraph.storage.lance import LanceTables
    from omnigraph.storage.lance.reading import LanceTable

SHARES_PER_CORE = 2


def parallelism(session: SparkSession) -> int:
    """How many tasks run beside each other."""
    return max(1, int(session.sparkContext.defaultParallelism))


def numbers(session: SparkSession, count: int) -> DataFrame:
    """0 to count - 1, each in a partition of its own: the work list of a job."""
    return session.range(0, count, 1, max(1, count))


@dataclass(frozen=True, slots=True)
class Column:
    """A column to read: one of the table, or the text that stands for the values of several."""

    name: str
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Image:
    """A version of a table: what it is made of, and which fragments a load brought."""

    uri: str
    ref: TableRef
    rows: int
    fragments: tuple[int, ...]
    fresh: frozenset[int] = frozenset()

    @classmethod
    def of(cls, uri: str, table: Table, base: Table | None = None) -> Image:
        """An image; with a base, fragments whose files the base does not have are fresh."""
        infos = table.fragments()
        known = {info.files for info in base.fragments()} if base is not None else None
        fresh = frozenset(
            i.fragment_id for i in infos if known is not None and i.files not in known
        )
        return cls(uri, table.ref, table.count(), tuple(info.fragment_id for info in infos), fresh)

    def frame(self, session: SparkSession, columns: Sequence[Column]) -> DataFrame:
        """Some columns as texts, with `addr` and `fresh` for each row, read by tasks."""
        count = min(len(self.fragments), parallelism(session) * SHARES_PER_CORE)
        shares = tuple(self.fragments[place::count] for place in range(count))
        ddl = ", ".join([*(f"{c.name} string" for c in columns), "addr long", "fresh boolean"])
        return numbers(session, count).mapInArrow(_texts_task(self, shares, tuple(columns)), ddl)

    def table(self, columns: Sequence[Column]) -> pa.Table:
        """The same, read here and now."""
        fields = [(c.name, pa.string()) for c in columns]
        schema = pa.schema([*fields, ("addr", pa.int64()), ("fresh", pa.bool_())])
        table = open_table(self.uri, self.ref)
        return pa.Table.from_batches(
            _read(table, self, self.fragments, tuple(columns)), schema=schema
        )


def plain(*names: str) -> list[Column]:
    """Columns that are texts already."""
    return [Column(name, (name,)) for name in names]


def _texts_task(
    image: Image, shares: tuple[tuple[int, ...], ...], columns: tuple[Column, ...]
) -> Any:
    environment = store_environment()

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        adopt(environment)
        table = open_table(image.uri, image.ref)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from _read(table, image, shares[number], columns)

    return run


def _read(
    table: Table, image: Image, fragments: Sequence[int], columns: tuple[Column, ...]
) -> Iterator[pa.RecordBatch]:
    members = list(dict.fromkeys(name for c in columns for name in c.members))
    for fragment in fragments:
        read = table.batches(members, with_address=True, fragments=[fragment])
        yield from (_as_texts(b, columns, fragment in image.fresh) for b in read)


def _as_texts(batch: pa.RecordBatch, columns: tuple[Column, ...], fresh: bool) -> pa.RecordBatch:
    arrays = [value_texts([batch.column(name) for name in c.members]) for c in columns]
    arrays.append(batch.column(ADDRESS).cast(pa.int64()))
    arrays.append(pa.repeat(pa.scalar(fresh), batch.num_rows))
    return pa.RecordBatch.from_arrays(arrays, [*(c.name for c in columns), "addr", "fresh"])


def open_table(uri: str, ref: TableRef) -> LanceTable:
    """A version, in whichever process this is."""
    return open_tables(uri).open(ref)


def open_tables(uri: str) -> LanceTables:
    """The tables of a graph, in whichever process this is."""
    from omnigraph.storage.lance import LanceTables

    place = locate(uri)
    return LanceTables(place.uri, dict(place.options))
