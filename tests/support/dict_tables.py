"""Tables in a dictionary: the same promises as the real ones, small enough to simulate thousands of runs a minute."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import Corrupt
from omnigraph.expressions.arrow import selected
from omnigraph.lang.ir import Expr
from omnigraph.storage.tables import (
    ADDRESS,
    FragmentInfo,
    IndexInfo,
    NewFragments,
    Staged,
    TableEdit,
    TableRef,
)
from tests.support.dict_objects import DictObjects


@dataclass(frozen=True)
class Fragment:
    """Rows that were written together, under the name of the file that holds them."""

    number: int
    file: str
    rows: int
    deleted: frozenset[int] = frozenset()

    @property
    def identity(self) -> str:
        return f"{self.file}-{sorted(self.deleted)}"


@dataclass
class Version:
    """What a version consists of; its rows are put together once."""

    schema: pa.Schema
    fragments: tuple[Fragment, ...] = ()
    rows: pa.Table | None = None


class Disk:
    """Where the files of tables lie: among the objects of the same store, so that its hooks and listings see them."""

    def __init__(self, store: DictObjects) -> None:
        self._store = store

    def fresh(self) -> int:
        """A number nobody has used."""
        return self._store.objects.fresh()

    def get(self, name: str) -> Any:
        return self._store.objects.get(name)

    def put(self, name: str, content: Any) -> None:
        self._store.before("file", name)
        self._store.objects[name] = content
        self._store.after("file", name)


class DictTable:
    """One version."""

    def __init__(self, disk: Disk, ref: TableRef, version: Version) -> None:
        self._disk = disk
        self._ref = ref
        self._version = version

    @property
    def ref(self) -> TableRef:
        return self._ref

    @property
    def schema(self) -> pa.Schema:
        return self._version.schema

    def _rows(self) -> pa.Table:
        for fragment in self._version.fragments:
            if self._disk.get(fragment.file) is None:
                raise Corrupt(f"the file {fragment.file} is missing")
        if self._version.rows is None:
            self._version.rows = self._read()
        return self._version.rows

    def _read(self) -> pa.Table:
        parts = []
        for fragment in self._version.fragments:
            rows = self._disk.get(fragment.file)
            kept = _kept(fragment, rows.num_rows)
            addresses = pa.array(kept.astype(np.uint64) | np.uint64(fragment.number << 32))
            parts.append(_taken(rows, kept).append_column(ADDRESS, addresses))
        if not parts:
            return self.schema.append(pa.field(ADDRESS, pa.uint64())).empty_table()
        return pa.concat_tables(parts) if len(parts) > 1 else parts[0]

    def count(self, predicate: Expr | None = None) -> int:
        return int(self.scan(["id"], predicate).num_rows)

    def scan(
        self,
        columns: Sequence[str],
        predicate: Expr | None = None,
        *,
        limit: int | None = None,
        with_address: bool = False,
    ) -> pa.Table:
        rows = self._rows()
        rows = rows if predicate is None else selected(predicate, rows)
        rows = rows if limit is None else rows.slice(0, limit)
        return rows.select([*columns, ADDRESS] if with_address else list(columns))

    def batches(
        self,
        columns: Sequence[str],
        predicate: Expr | None = None,
        *,
        with_address: bool = False,
        batch_rows: int = 65_536,
        fragments: Sequence[int] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        rows = self.scan(columns, predicate, with_address=True)
        if fragments is not None:
            own = pc.shift_right(rows[ADDRESS], pa.scalar(32, pa.uint64()))
            rows = rows.filter(pc.is_in(own, value_set=pa.array(fragments, pa.uint64())))
        rows = rows if with_address else rows.drop_columns([ADDRESS])
        yield from rows.to_batches(max_chunksize=batch_rows)

    def lookup(
        self, column: str, values: pa.Array, columns: Sequence[str], *, with_address: bool = False
    ) -> pa.Table:
        rows = self._rows()
        rows = rows.filter(
            pc.is_in(rows[column], value_set=values.cast(rows.schema.field(column).type))
        )
        return rows.select([*columns, ADDRESS] if with_address else list(columns))

    def take(self, addresses: pa.UInt64Array, columns: Sequence[str]) -> pa.Table:
        rows = self._rows()
        return rows.take(pc.index_in(addresses, value_set=rows[ADDRESS].combine_chunks())).select(
            list(columns)
        )

    def deleted_rows(self, fragment: FragmentInfo) -> pa.UInt32Array:
        held = next(f for f in self._version.fragments if f.number == fragment.fragment_id)
        return pa.array(sorted(held.deleted), pa.uint32())

    def fragments(self) -> tuple[FragmentInfo, ...]:
        return tuple(
            FragmentInfo(f.number, f.rows, len(f.deleted), f.identity, f.file)
            for f in self._version.fragments
        )

    def cells(self, column: str, fragment: FragmentInfo) -> Hashable:
        return fragment.files, column

    def indices(self) -> tuple[IndexInfo, ...]:
        return ()

    def files(self) -> frozenset[str]:
        inside = {f.file.removeprefix(self._ref.path + "/") for f in self._version.fragments}
        return frozenset({*inside, f"v/{self._ref.version}", "v/1"})


class DictTables:
    """A `TableStore` over a shared `Disk`."""

    def __init__(self, disk: Disk) -> None:
        self.disk = disk

    def create(self, path: str, schema: pa.Schema) -> TableRef:
        return self._put(TableRef(path, 1), Version(schema))

    def open(self, ref: TableRef) -> DictTable:
        return DictTable(self.disk, ref, self._version(ref))

    def stage(self, base: TableRef, edit: TableEdit) -> Staged:
        version = self._version(base)
        fragments = () if edit.replace_all else version.fragments
        touched: list[Fragment] = list(version.fragments) if edit.replace_all else []
        if edit.delete is not None:
            fragments, touched = _without(fragments, edit.delete.to_pylist())
        append = edit.append
        plain = not edit.replace_all and edit.delete is None
        if plain and isinstance(append, pa.Table) and fragments:
            fragments, absorbed = fragments[:-1], fragments[-1]
            append = pa.concat_tables([self._live(absorbed), append.cast(version.schema)])
            touched = [absorbed]
        if edit.compact and version.fragments:
            plain, touched = False, list(version.fragments)
            fragments, append = (), pa.concat_tables([self._live(f) for f in version.fragments])
        appended = self._written(base, append)
        fragments = (*fragments, *self._numbered(version, appended))
        ref = self._put(TableRef(base.path, self.disk.fresh()), Version(version.schema, fragments))
        replaced = frozenset(f.identity for f in touched)
        return Staged(ref, base, self._count(fragments), replaced, appended, only_appends=plain)

    def _live(self, fragment: Fragment) -> pa.Table:
        rows = self._file(fragment)
        return _taken(rows, _kept(fragment, rows.num_rows))

    def _count(self, fragments: Sequence[Fragment]) -> int:
        return sum(self._file(f).num_rows - len(f.deleted) for f in fragments)

    def _file(self, fragment: Fragment) -> pa.Table:
        rows = self.disk.get(fragment.file)
        if rows is None:
            raise Corrupt(f"the file {fragment.file} is missing")
        return rows

    def recommit(self, staged: Staged, base: TableRef) -> Staged | None:
        version = self._version(base)
        there = {f.identity for f in version.fragments}
        if not staged.only_appends or not staged.replaced <= there:
            return None
        kept = tuple(f for f in version.fragments if f.identity not in staged.replaced)
        fragments = (*kept, *self._numbered(version, staged.appended))
        ref = self._put(TableRef(base.path, self.disk.fresh()), Version(version.schema, fragments))
        return replace(staged, ref=ref, base=base, rows=self._count(fragments))

    def write_fragments(
        self, base: TableRef, rows: pa.Table | Iterable[pa.RecordBatch]
    ) -> NewFragments:
        table = rows if isinstance(rows, pa.Table) else pa.Table.from_batches(list(rows))
        return NewFragments(self._written(base, table), table.num_rows)

    def sync(self, staged: Sequence[Staged]) -> None:
        """Nothing here is ever lost."""

    def _version(self, ref: TableRef) -> Version:
        found: Version | None = self.disk.get(f"{ref.path}/v/{ref.version}")
        if found is None:
            raise Corrupt(f"version {ref.version} of {ref.path} is missing")
        return found

    def _put(self, ref: TableRef, version: Version) -> TableRef:
        self.disk.put(f"{ref.path}/v/{ref.version}", version)
        return ref

    def _written(self, base: TableRef, rows: Any) -> tuple[str, ...]:
        if rows is None:
            return ()
        if isinstance(rows, NewFragments):
            return rows.descriptions
        table = rows if isinstance(rows, pa.Table) else pa.Table.from_batches(list(rows))
        name = f"{base.path}/data/{self.disk.fresh()}"
        self.disk.put(name, table)
        return (name,)

    def _numbered(self, version: Version, files: Sequence[str]) -> tuple[Fragment, ...]:
        first = max((f.number for f in version.fragments), default=-1) + 1
        return tuple(Fragment(first + i, f, self._rows_in(f)) for i, f in enumerate(files))

    def _rows_in(self, file: str) -> int:
        """A file that a collection took meanwhile is missed by whoever reads it."""
        rows = self.disk.get(file)
        return 0 if rows is None else int(rows.num_rows)


def _kept(fragment: Fragment, rows: int) -> npt.NDArray[np.int64]:
    """The places of the rows that are not deleted."""
    places = np.arange(rows)
    return np.delete(places, sorted(fragment.deleted)) if fragment.deleted else places


def _taken(rows: pa.Table, places: npt.NDArray[np.int64]) -> pa.Table:
    return rows if len(places) == rows.num_rows else rows.take(pa.array(places))


def _without(
    fragments: tuple[Fragment, ...], addresses: Sequence[int]
) -> tuple[tuple[Fragment, ...], list[Fragment]]:
    gone: dict[int, set[int]] = {}
    for address in addresses:
        gone.setdefault(address >> 32, set()).add(address & 0xFFFFFFFF)
    touched = [f for f in fragments if f.number in gone]
    left = tuple(
        Fragment(f.number, f.file, f.rows, f.deleted | frozenset(gone.get(f.number, ())))
        for f in fragments
    )
    return left, touched
