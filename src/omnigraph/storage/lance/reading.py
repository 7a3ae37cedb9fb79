"""One opened version of a table: all reading."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from lance import LanceDataset, LanceFragment
from lance.fragment import DataFile, FragmentMetadata

from omnigraph.errors import Corrupt
from omnigraph.expressions.arrow import selected
from omnigraph.expressions.comparing import canonical, is_in
from omnigraph.expressions.filters import any_of, push_down
from omnigraph.lang.ir import Expr
from omnigraph.lang.tree import stored_columns
from omnigraph.model.columns import one_array
from omnigraph.storage import metrics
from omnigraph.storage.lance import recent
from omnigraph.storage.lance.columns import blob_columns, seen_schema, to_seen
from omnigraph.storage.lance.failures import lance_errors
from omnigraph.storage.tables import (
    ADDRESS,
    Cells,
    FragmentInfo,
    IndexInfo,
    StoredBlob,
    TableRef,
)

POINTS_MAX = 4  # values looked up one by one
BLOB_ELSEWHERE = 3  # how Lance marks a blob that is stored as an address
DETACHED = 1 << 63  # set in every version but a table's first
AHEAD_OF_VECTORS = {
    "io_buffer_size": 32 << 20,
    "fragment_readahead": 2,
}  # by default Lance holds gigabytes of them
KINDS = {
    "BTree": "BTREE",
    "Bitmap": "BITMAP",
    "LabelList": "LABEL_LIST",
    "Inverted": "INVERTED",
    "NGram": "NGRAM",
    "ZoneMap": "ZONEMAP",
    "BloomFilter": "BLOOMFILTER",
}


class LanceTable:
    """See `tables.Table`. Holds nothing but an immutable handle, so threads may share it."""

    def __init__(self, ref: TableRef, handle: LanceDataset) -> None:
        self.ref = ref
        self.handle = handle
        self.writer = handle  # data files are independent of a version: any handle with these columns can write them
        self._descriptions: list[Any] | None = None
        self._blobs_checked = False

    @property
    def remote(self) -> bool:
        """Whether a request has latency worth hiding."""
        return str(self.handle.uri).startswith("s3://")

    @cached_property
    def stored(self) -> pa.Schema:
        return self.handle.schema

    @cached_property
    def schema(self) -> pa.Schema:
        return seen_schema(self.stored)

    @cached_property
    def shape(self) -> recent.Shape:
        """Names, field ids and types of the columns: equal exactly when rows mean the same in two versions."""
        fields = self.handle.lance_schema.fields()
        ids = tuple((field.name(), int(field.id())) for field in fields)
        return ids, tuple(str(field.type) for field in self.stored)

    @cached_property
    def _columns(self) -> dict[str, tuple[frozenset[int], str]]:
        """By column, the field ids under which data files hold it, and its type."""
        fields = self.handle.lance_schema.fields()
        kinds = (str(field.type) for field in self.stored)
        return {f.name(): (_ids_of(f), kind) for f, kind in zip(fields, kinds, strict=True)}

    # --- rows ------------------------------------------------------------------------------------------------------

    def count(self, predicate: Expr | None = None) -> int:
        if predicate is None:
            return int(self.handle.count_rows())
        down = push_down(predicate, self.schema)
        if down.filter is False:
            return 0
        if down.rest is not None or down.text is None:
            return int(self.scan([], predicate, with_address=True).num_rows)
        with self._reading():
            scanner = self.handle.scanner(columns=[], filter=down.text, with_row_id=True)
            return int(scanner.count_rows())

    def scan(
        self,
        columns: Sequence[str],
        predicate: Expr | None = None,
        *,
        limit: int | None = None,
        with_address: bool = False,
    ) -> pa.Table:
        plan = self._plan(columns, predicate, with_address)
        if plan is None or limit == 0:
            return self._empty(columns, with_address)
        if plan.keep is not None:
            batches = self._stream(plan, {})
            kept = pa.Table.from_batches(batches, self._output(columns, with_address))
            return kept if limit is None else kept.slice(0, limit)
        with self._reading():
            table = self.handle.scanner(limit=limit, **plan.arguments).to_table()
        return self._shaped(table, columns, with_address)

    def batches(
        self,
        columns: Sequence[str],
        predicate: Expr | None = None,
        *,
        with_address: bool = False,
        batch_rows: int = 65_536,
        fragments: Sequence[int] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        plan = self._plan(columns, predicate, with_address)
        if plan is None:
            return
        more: dict[str, Any] = {"batch_size": batch_rows}
        if any(pa.types.is_fixed_size_list(self.schema.field(name).type) for name in columns):
            more |= AHEAD_OF_VECTORS
        if fragments is not None:
            more["fragments"] = [self._fragment(fragment_id) for fragment_id in fragments]
        yield from self._stream(plan, more)

    def lookup(
        self, column: str, values: pa.Array, columns: Sequence[str], *, with_address: bool = False
    ) -> pa.Table:
        wanted = _distinct(values, self.schema.field(column).type)
        if not len(wanted):
            return self._empty(columns, with_address)
        if len(wanted) > self._in_list_max():
            return self._lookup_by_scan(column, wanted, columns, with_address)
        known, rest = self._known_rows(column)
        found = [rows.filter(is_in(one_array(rows[column]), wanted)) for rows in known]
        names = list(dict.fromkeys(columns))
        if rest:
            found.append(self._lookup_stored(column, wanted, names, rest if known else None))
        if not found:
            return self._empty(columns, with_address)
        table = pa.concat_tables(rows.select([*names, ADDRESS]) for rows in found)
        return self._shaped(table.sort_by(ADDRESS), columns, with_address)

    def take(self, addresses: pa.UInt64Array, columns: Sequence[str]) -> pa.Table:
        if not len(addresses) or not columns:
            return self._empty(columns, False) if columns else _rows_without_columns(addresses)
        blobs = set(blob_columns(self.stored)) & set(columns)
        plain = [name for name in columns if name not in blobs] or [self._first_plain()]
        with self._reading():
            table = self.handle._take_rows(addresses, columns=plain)
            if table.num_rows != len(addresses):
                raise Corrupt(f"table {self.ref.path} lacks rows requested by address")
            for name in blobs:
                refuse_foreign_blobs(
                    self.ref, self.handle._take_rows(addresses, columns=[name])[name]
                )
                read = self.handle.read_blobs(name, addresses=addresses, preserve_order=True)
                table = table.append_column(
                    name, pa.array([blob for _, blob in read], pa.large_binary())
                )
        return to_seen(table.select(list(columns)), self.schema)

    def blob(self, column: str, address: int) -> StoredBlob | None:
        with self._reading():
            here = pa.array([address], pa.uint64())
            refuse_foreign_blobs(self.ref, self.handle._take_rows(here, columns=[column])[column])
            found: StoredBlob | None = self.handle.take_blobs(column, addresses=[address])[0]
        return found

    def _known_rows(self, column: str) -> tuple[list[pa.Table], list[int]]:
        """Rows that are still in memory, of fragments no index on the column covers; and the other fragments."""
        covered: frozenset[int] = frozenset().union(
            *(index.covered_fragments for index in self.indices() if index.column == column)
        )
        known: list[pa.Table] = []
        rest: list[int] = []
        for fragment in self._fragments:
            uncovered = fragment.fragment_id not in covered
            rows = recent.live_rows(self.shape, fragment) if uncovered else None
            if rows is None:
                rest.append(fragment.fragment_id)
            else:
                known.append(rows)
        return known, rest

    def near(self, column: str, vector: Sequence[float], count: int, probes: int) -> pa.UInt64Array:
        asked = {"column": column, "q": list(vector), "k": count, "nprobes": probes}
        with self._reading():
            found = self.handle.scanner(
                columns=["_distance"], with_row_address=True, nearest=asked
            ).to_table()
        return one_array(found[ADDRESS])

    # --- structure -------------------------------------------------------------------------------------------------

    @cached_property
    def _fragments(self) -> tuple[FragmentInfo, ...]:
        return tuple(describe(fragment.metadata) for fragment in self.handle.get_fragments())

    def fragments(self) -> tuple[FragmentInfo, ...]:
        return self._fragments

    def cells(self, column: str, fragment: FragmentInfo) -> Cells:
        ids, kind = self._columns[column]
        held = (file for file, fields in fragment.beside if not ids.isdisjoint(fields))
        named = ",".join(map(str, sorted(ids)))
        return Cells(next(held, fragment.rows_file), f"{named} {kind}")

    def written(self, column: str, fragment: FragmentInfo) -> Iterator[pa.Array]:
        with self._reading():
            scanner = self.handle.scanner(
                columns=[column],
                fragments=[self._fragment(fragment.fragment_id)],
                scan_in_order=True,
                with_row_id=True,
                include_deleted_rows=True,
            )
            for batch in scanner.to_batches():
                yield batch.column(column)

    def deleted_rows(self, fragment: FragmentInfo) -> pa.UInt32Array:
        known = recent.deletions(fragment)
        if known is None:
            known = self._read_deletions(fragment)
            recent.keep_deletions(fragment, known)
        return pa.array(known)

    def _read_deletions(self, fragment: FragmentInfo) -> recent.Offsets:
        listed = self._listed_deletions(fragment)
        if listed is not None:
            return listed
        gone = np.ones(fragment.physical_rows, np.bool_)
        for batch in self.batches([], with_address=True, fragments=[fragment.fragment_id]):
            places = batch.column(ADDRESS).to_numpy(zero_copy_only=False)
            gone[(places & np.uint64(0xFFFFFFFF)).astype(np.int64)] = False
        return np.flatnonzero(gone).astype(np.uint32)

    def _listed_deletions(self, fragment: FragmentInfo) -> recent.Offsets | None:
        """The content of a local deletion file; few deletions are an Arrow file, many a bitmap, not read here."""
        file = self._fragment(fragment.fragment_id).metadata.deletion_file
        path = Path(str(self.handle.uri)) / (file.path(fragment.fragment_id) if file else "")
        if path.suffix != ".arrow" or not path.is_file():
            return None
        metrics.request("get", 1, path.stat().st_size)
        with lance_errors(f"reading the deletions of table {self.ref.path}"):
            listed = pa.ipc.open_file(path.read_bytes()).read_all().column(0)
        return np.sort(listed.to_numpy())

    def indices(self) -> tuple[IndexInfo, ...]:
        live = frozenset(int(fragment.fragment_id) for fragment in self.handle.get_fragments())
        return tuple(
            IndexInfo(
                name=index.name,
                column=index.field_names[0],
                kind=KINDS.get(index.index_type, index.index_type.upper()),
                covered_fragments=live & _covered(index),
                bytes=index.total_size_bytes or 0,
                metric=_metric(index),
            )
            for index in self.descriptions
        )

    @property
    def descriptions(self) -> list[Any]:
        """The indices as Lance describes them."""
        if self._descriptions is None:
            self._descriptions = self._load_descriptions()
        return self._descriptions

    def adopt(self, before: LanceTable) -> None:
        """Reuse the cached facts of the previous version if only rows changed: columns and indices are then the same.

        Writing data files through the older handle saves a read, because Lance first loads a handle's indices.
        """
        self._descriptions = before._descriptions
        self.writer = before.writer

    def load_indices(self) -> None:
        """Make Lance load the index data a commit on this version needs, so that the commit need not wait."""
        if self.descriptions:
            self._load_descriptions()

    def _load_descriptions(self) -> list[Any]:
        with self._reading():
            return list(self.handle.describe_indices())

    def files(self) -> frozenset[str]:
        """The first version's manifest is kept forever: without it Lance sees no table in the folder."""
        names = {
            "_versions/latest_version_hint.json",
            manifest_file(1),
            manifest_file(self.ref.version),
        }
        has_blobs = bool(blob_columns(self.stored))
        for fragment in self.handle.get_fragments():
            names |= fragment_files(fragment.metadata, has_blobs)
        for index in self.descriptions:
            names |= {f"_indices/{segment.uuid}/" for segment in index.segments}
        return frozenset(names)

    # --- how it is done --------------------------------------------------------------------------------------------

    def _plan(
        self, columns: Sequence[str], predicate: Expr | None, with_address: bool
    ) -> _Plan | None:
        """The arguments of a Lance scan; None if the predicate can never select a row."""
        down = push_down(predicate, self.schema)
        if down.filter is False:
            return None
        read = list(dict.fromkeys([*columns, *stored_columns(down.rest)]))
        arguments = self._arguments(read, with_address or not columns)
        if down.text is not None:
            arguments["filter"] = down.text
        return _Plan(arguments, None if down.rest is None else _Keep(down.rest, columns))

    def _check_blobs(self) -> None:
        """Check once where the blobs of this version are stored, before any of them is read."""
        if self._blobs_checked:
            return
        names = list(blob_columns(self.stored))
        with self._reading():
            described = self.handle.scanner(columns=names, blob_handling="blobs_descriptions")
            for batch in described.to_batches():
                for name in names:
                    refuse_foreign_blobs(self.ref, batch.column(name))
        self._blobs_checked = True

    def _arguments(self, columns: Sequence[str], with_address: bool) -> dict[str, Any]:
        arguments: dict[str, Any] = {"columns": list(columns), "scan_in_order": True}
        if with_address or not columns:
            arguments["with_row_address"] = True
        blobs = blob_columns(self.stored)
        if blobs:
            arguments["blob_handling"] = "all_binary"
        if not set(columns).isdisjoint(blobs):
            self._check_blobs()
        return arguments

    def _stream(self, plan: _Plan, more: dict[str, Any]) -> Iterator[pa.RecordBatch]:
        with self._reading():
            for batch in self.handle.scanner(**plan.arguments, **more).to_batches():
                yield from self._kept(pa.Table.from_batches([batch]), plan)

    def _kept(self, rows: pa.Table, plan: _Plan) -> list[pa.RecordBatch]:
        names = plan.arguments["columns"]
        if plan.keep is not None:
            rows = selected(plan.keep.predicate, rows)
            names = plan.keep.columns
        shaped = self._shaped(rows, names, "with_row_address" in plan.arguments)
        return list(shaped.to_batches())

    def _shaped(self, table: pa.Table, columns: Sequence[str], with_address: bool) -> pa.Table:
        names = [*columns, ADDRESS] if with_address or not columns else list(columns)
        return to_seen(table.select(names), self.schema)

    def _output(self, columns: Sequence[str], with_address: bool) -> pa.Schema:
        fields = [self.schema.field(name) for name in columns]
        if with_address or not columns:
            fields.append(pa.field(ADDRESS, pa.uint64()))
        return pa.schema(fields)

    def _empty(self, columns: Sequence[str], with_address: bool) -> pa.Table:
        return self._output(columns, with_address).empty_table()

    def _in_list_max(self) -> int:
        """Up to here an IN list is quicker than reading the whole column (measured: docs/decisions)."""
        return max(32, int(self.handle.count_rows()) // 200)

    def _lookup_stored(
        self, column: str, wanted: pa.Array, columns: Sequence[str], fragments: list[int] | None
    ) -> pa.Table:
        """Look up in these fragments (None: in all). One value at a time if no other column is needed: then the index
        suffices, and no data file is read."""
        if not set(columns) <= {column} or len(wanted) > POINTS_MAX:
            return self._matching(columns, column, wanted, fragments)
        tasks = [
            partial(self._point, column, wanted.slice(i, 1), fragments) for i in range(len(wanted))
        ]
        return pa.concat_tables(metrics.parallel(tasks) if self.remote else [t() for t in tasks])

    def _point(self, column: str, value: pa.Array, fragments: list[int] | None) -> pa.Table:
        found = self._matching([], column, value, fragments)
        repeated = pa.repeat(value[0], found.num_rows)
        return found.add_column(0, self.schema.field(column), repeated)

    def _matching(
        self, columns: Sequence[str], column: str, wanted: pa.Array, fragments: list[int] | None
    ) -> pa.Table:
        batches = self.batches(
            columns, any_of(column, wanted), with_address=True, fragments=fragments
        )
        return pa.Table.from_batches(batches, self._output(columns, True))

    def _lookup_by_scan(
        self, column: str, wanted: pa.Array, columns: Sequence[str], with_address: bool
    ) -> pa.Table:
        names = list(dict.fromkeys([*columns, column]))
        batch_rows = max(65_536, 2 * len(wanted))  # the values are hashed once per batch
        found = [
            batch.filter(is_in(batch.column(column), wanted))
            for batch in self.batches(names, with_address=with_address, batch_rows=batch_rows)
        ]
        table = pa.Table.from_batches(found, self._output(names, with_address))
        return self._shaped(table, columns, with_address)

    def _first_plain(self) -> str:
        return str(
            next(name for name in self.stored.names if name not in blob_columns(self.stored))
        )

    def _fragment(self, fragment_id: int) -> LanceFragment:
        fragment = self.handle.get_fragment(fragment_id)
        if fragment is None:
            raise Corrupt(f"table {self.ref.path} has no fragment {fragment_id}")
        return fragment

    def _reading(self) -> _Reading:
        return _Reading(self)


class _Keep:
    """The part of a predicate Lance's filters cannot express, applied to the rows it returns."""

    __slots__ = ("columns", "predicate")

    def __init__(self, predicate: Expr, columns: Sequence[str]) -> None:
        self.predicate = predicate
        self.columns = columns


class _Plan:
    """Arguments for a scanner, and the filter left for its rows."""

    __slots__ = ("arguments", "keep")

    def __init__(self, arguments: dict[str, Any], keep: _Keep | None = None) -> None:
        self.arguments = arguments
        self.keep = keep


class _Reading:
    """Translates errors, and counts the requests Lance makes meanwhile."""

    __slots__ = ("_errors", "_table")

    def __init__(self, table: LanceTable) -> None:
        ref = table.ref
        self._table = table
        self._errors = lance_errors(f"reading version {ref.version} of table {ref.path}")

    def __enter__(self) -> None:
        self._table.handle.io_stats_incremental()  # forget what was read before
        self._errors.__enter__()

    def __exit__(self, *failure: Any) -> bool | None:
        count_reads(self._table.handle)
        return self._errors.__exit__(*failure)


def count_reads(handle: LanceDataset) -> None:
    """Count what Lance has read through a handle since the last call."""
    stats = handle.io_stats_incremental()
    if stats.read_iops:
        metrics.request("get", stats.read_iops, stats.read_bytes)
        metrics.stage()


def count_reads_and_writes(handle: LanceDataset) -> None:
    """The same, if Lance also writes an unknown number of files."""
    stats = handle.io_stats_incremental()
    metrics.request("get", stats.read_iops, stats.read_bytes)
    metrics.request("put", stats.write_iops, stats.written_bytes)
    metrics.stage((stats.read_iops > 0) + (stats.write_iops > 0))


def describe(fragment: FragmentMetadata) -> FragmentInfo:
    """A fragment as callers see it."""
    _, *beside = fragment.files
    files = ",".join(map(data_path, fragment.files))
    deletions = fragment.deletion_file
    return FragmentInfo(
        fragment_id=fragment.id,
        physical_rows=fragment.physical_rows,
        deleted_rows=fragment.num_deletions,
        identity=f"{files}|{deletions.path(fragment.id) if deletions else ''}",
        files=files,
        beside=tuple((data_path(file), frozenset(file.fields)) for file in beside),
    )


def data_path(file: DataFile) -> str:
    """The path of a data file. Lance's own property creates a class on each access."""
    return str(file._path)


def _ids_of(field: Any) -> frozenset[int]:
    """The ids of a field and its parts."""
    return frozenset({int(field.id())}).union(*(_ids_of(part) for part in field.children()))


def refuse_foreign_blobs(ref: TableRef, described: pa.Array | pa.ChunkedArray) -> None:
    """Lance can store the address of a blob instead of its bytes. We never do: it could read any file."""
    kinds = pc.struct_field(described, "kind")
    if pc.any(pc.equal(kinds, BLOB_ELSEWHERE)).as_py():
        raise Corrupt(
            f"table {ref.path} leads out of the graph: a blob is stored as an address",
            details={"path": ref.path, "version": ref.version},
        )


def manifest_file(version: int) -> str:
    """Where Lance keeps the manifest of a version: ordinary ones sort newest first."""
    if version >= DETACHED:
        return f"_versions/d{version}.manifest"
    return f"_versions/{2**64 - 1 - version:020d}.manifest"


def fragment_files(fragment: FragmentMetadata, has_blobs: bool) -> set[str]:
    """The files of a fragment, relative to its table; a trailing slash names a whole folder."""
    paths = [data_path(file) for file in fragment.files]
    names = {f"data/{path}" for path in paths}
    if has_blobs:
        names |= {f"data/{path.removesuffix('.lance')}/" for path in paths}
    if fragment.deletion_file is not None:
        names.add(fragment.deletion_file.path(fragment.id))
    return names


def _metric(index: Any) -> str:
    return str((index.details or {}).get("metric_type", "")).lower()


def _covered(index: Any) -> frozenset[int]:
    return frozenset(i for segment in index.segments for i in segment.fragment_ids)


def _distinct(values: pa.Array, kind: pa.DataType) -> pa.Array:
    with lance_errors(f"looking up {values.type} in a column of {kind}"):
        return pc.unique(canonical(one_array(values).drop_null().cast(kind)))


def _rows_without_columns(addresses: pa.UInt64Array) -> pa.Table:
    return pa.table({ADDRESS: addresses})


def by_fragment(addresses: pa.UInt64Array) -> dict[int, np.ndarray[Any, np.dtype[np.uint32]]]:
    """Row addresses as sorted, distinct offsets within each fragment."""
    ordered = np.sort(addresses.to_numpy(zero_copy_only=False))
    unique = ordered[np.concatenate(([True], ordered[1:] != ordered[:-1]))[: len(ordered)]]
    ids = (unique >> np.uint64(32)).astype(np.int64)
    offsets = (unique & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    ends = [*(np.flatnonzero(np.diff(ids)) + 1).tolist(), len(ids)]
    starts = [0, *ends[:-1]]
    return {
        int(ids[start]): offsets[start:end]
        for start, end in zip(starts, ends, strict=True)
        if start < end
    }
