"""A stored table seen through another version of its type.

Columns are matched by the identity of their properties: one that was renamed is read under its new name, one that was
widened is cast, one that was added since holds its default. So images of a row under different schemas compare. Values
without a place in the other version are hidden; `lost_cells` reports them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

import pyarrow as pa

from omnigraph.core.snapshot import Snapshot
from omnigraph.expressions.arrow import selected
from omnigraph.expressions.comparing import is_in
from omnigraph.lang.ir import Expr
from omnigraph.lang.tree import stored_columns
from omnigraph.model.catalog import Catalog, NodeOrEdgeType
from omnigraph.model.columns import arrow_schema, arrow_type, fitted, one_array
from omnigraph.model.frozen import frozen
from omnigraph.storage.tables import (
    ADDRESS,
    ColumnEdit,
    FragmentInfo,
    IndexInfo,
    Table,
    TableRef,
    TableStore,
)
from omnigraph.values.columns import default_of


def kinds_of(catalog: Catalog) -> dict[str, NodeOrEdgeType]:
    """The types of a catalog by table."""
    return {kind.table_id: kind for kind in catalog.entities()}


def column_edit(stored: NodeOrEdgeType, seen: NodeOrEdgeType) -> ColumnEdit | None:
    """The edit from the table of one version of a type to that of another; None if the columns are the same."""
    old = {p.property_id: p for p in stored.properties.values()}
    new = {p.property_id: p for p in seen.properties.values()}
    schema = arrow_schema(seen)
    both = [(old[i], new[i]) for i in new if i in old]
    edit = ColumnEdit(
        add=tuple(
            (schema.field(p.name), default_of(p).as_py()) for i, p in new.items() if i not in old
        ),
        rename=tuple((a.name, b.name) for a, b in both if a.name != b.name),
        drop=tuple(p.name for i, p in old.items() if i not in new),
        cast=tuple(
            pa.field(a.name, arrow_type(b.type), nullable=True)
            for a, b in both
            if arrow_type(a.type) != arrow_type(b.type)
        ),
    )
    return None if edit == ColumnEdit() else edit


def through(table: Table, stored: NodeOrEdgeType, seen: NodeOrEdgeType) -> Table:
    """The table in the columns of `seen`."""
    return table if column_edit(stored, seen) is None else Lens(table, stored, seen)


class Lens:
    """See `tables.Table`. Rows, addresses and fragments are those of the table behind it."""

    def __init__(self, table: Table, stored: NodeOrEdgeType, seen: NodeOrEdgeType) -> None:
        self._table = table
        self._schema = arrow_schema(seen)
        names = {p.property_id: p.name for p in stored.properties.values()}
        self._source: dict[str, str] = {name: name for name in ("id", "src", "dst")}
        self._fill: dict[str, pa.Scalar] = {}
        for prop in seen.properties.values():
            if prop.property_id in names:
                self._source[prop.name] = names[prop.property_id]
            else:
                self._fill[prop.name] = default_of(prop)

    @property
    def ref(self) -> TableRef:
        return self._table.ref

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    @property
    def filled(self) -> frozenset[str]:
        """The columns the stored table does not have."""
        return frozenset(self._fill)

    def count(self, predicate: Expr | None = None) -> int:
        if predicate is None:
            return self._table.count()
        return int(self.scan([], predicate).num_rows)

    def scan(
        self,
        columns: Sequence[str],
        predicate: Expr | None = None,
        *,
        limit: int | None = None,
        with_address: bool = False,
    ) -> pa.Table:
        names = list(dict.fromkeys([*columns, *stored_columns(predicate)]))
        rows = self._seen(self._table.scan(self._stored(names), with_address=True), names)
        if predicate is not None:
            rows = selected(predicate, rows)
        rows = rows if limit is None else rows.slice(0, limit)
        return rows.select([*columns, ADDRESS] if with_address or not columns else list(columns))

    def batches(
        self,
        columns: Sequence[str],
        predicate: Expr | None = None,
        *,
        with_address: bool = False,
        batch_rows: int = 65_536,
        fragments: Sequence[int] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        names = list(dict.fromkeys([*columns, *stored_columns(predicate)]))
        kept = [*columns, ADDRESS] if with_address or not columns else list(columns)
        for batch in self._table.batches(
            self._stored(names), with_address=True, batch_rows=batch_rows, fragments=fragments
        ):
            rows = self._seen(pa.Table.from_batches([batch]), names)
            if predicate is not None:
                rows = selected(predicate, rows)
            yield from rows.select(kept).to_batches()

    def lookup(
        self, column: str, values: pa.Array, columns: Sequence[str], *, with_address: bool = False
    ) -> pa.Table:
        kept = [*columns, ADDRESS] if with_address or not columns else list(columns)
        source = self._source.get(column)
        if source is None or self._is_cast(column, source):
            rows = self.scan([*dict.fromkeys([column, *columns])], with_address=True)
            held = one_array(rows[column])
            return rows.filter(is_in(held, values.cast(held.type))).select(kept)
        found = self._table.lookup(source, values, self._stored(columns), with_address=True)
        return self._seen(found, columns).select(kept)

    def take(self, addresses: pa.UInt64Array, columns: Sequence[str]) -> pa.Table:
        found = self._table.take(addresses, self._stored(columns) or ["id"])
        return self._seen(found.append_column(ADDRESS, addresses), columns).select(list(columns))

    def fragments(self) -> tuple[FragmentInfo, ...]:
        return self._table.fragments()

    def cells(self, column: str, fragment: FragmentInfo) -> Hashable:
        fill = self._fill.get(column)
        if fill is not None:
            return "fill", fragment.rows_file, str(fill.type), repr(fill.as_py())
        source = self._source[column]
        held = self._table.cells(source, fragment)
        return (
            (held, str(self._schema.field(column).type)) if self._is_cast(column, source) else held
        )

    def deleted_rows(self, fragment: FragmentInfo) -> pa.UInt32Array:
        return self._table.deleted_rows(fragment)

    def indices(self) -> tuple[IndexInfo, ...]:
        return self._table.indices()

    def files(self) -> frozenset[str]:
        return self._table.files()

    def _is_cast(self, column: str, source: str) -> bool:
        return bool(self._table.schema.field(source).type != self._schema.field(column).type)

    def _stored(self, columns: Sequence[str]) -> list[str]:
        return list(dict.fromkeys(self._source[n] for n in columns if n in self._source))

    def _seen(self, rows: pa.Table, columns: Sequence[str]) -> pa.Table:
        """Rows of the stored table under the names and types wanted, their addresses last."""
        arrays = []
        for name in columns:
            if name in self._fill:
                arrays.append(pa.repeat(self._fill[name], rows.num_rows))
            else:
                arrays.append(fitted(rows[self._source[name]], self._schema.field(name).type))
        fields = [self._schema.field(name) for name in columns] + [pa.field(ADDRESS, pa.uint64())]
        return pa.table([*arrays, rows[ADDRESS]], schema=pa.schema(fields))


@frozen
class LensedTables:
    """See `tables.TableStore`: opens tables through lenses; it never writes."""

    tables: TableStore
    kinds: Mapping[TableRef, tuple[NodeOrEdgeType, NodeOrEdgeType]] = field(default_factory=dict)

    def open(self, ref: TableRef) -> Table:
        table = self.tables.open(ref)
        kinds = self.kinds.get(ref)
        return table if kinds is None else through(table, *kinds)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.tables, name)


def seen_as(snapshot: Snapshot, catalog: Catalog) -> Snapshot:
    """A state under another schema: tables of types both know are read through lenses."""
    if catalog == snapshot.catalog:
        return snapshot
    stored, seen = kinds_of(snapshot.catalog), kinds_of(catalog)
    kinds = {snapshot.ref(t): (stored[t], seen[t]) for t in stored if t in seen}
    tables: Any = LensedTables(snapshot.tables, kinds)
    embedding = snapshot.embedding
    return Snapshot(snapshot.commit, catalog, tables, snapshot.root, embedding=embedding)
