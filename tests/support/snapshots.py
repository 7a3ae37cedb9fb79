"""States of graphs made from plain rows: one Lance table per type, no commits, no writer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from omnigraph.core.records import Commit, TableEntry
from omnigraph.core.snapshot import Snapshot
from omnigraph.lang.query import compile_query
from omnigraph.lang.schema import catalog_of, compile_schema
from omnigraph.model.catalog import Catalog, NodeOrEdgeType
from omnigraph.model.columns import arrow_schema
from omnigraph.read import Cache, Result, run_query
from omnigraph.storage.lance import LanceTables
from omnigraph.storage.tables import IndexEdit, TableEdit, TableRef

Row = Mapping[str, Any]
Data = Mapping[str, Sequence[Row] | pa.Table]  # by type; edges have id, src and dst


def catalog_from(text: str) -> Catalog:
    return catalog_of(compile_schema(text))


@dataclass(slots=True)
class Graph:
    """Tables that can be changed one edit at a time; `snapshot` is the state after the last edit."""

    catalog: Catalog
    tables: LanceTables
    root: str
    refs: dict[str, TableRef]
    number: int = 0

    @property
    def snapshot(self) -> Snapshot:
        entries = {
            kind.table_id: TableEntry(
                kind.kind,
                kind.name,
                self.refs[kind.table_id].path,
                str(self.refs[kind.table_id].version),
                0,
            )
            for kind in self.catalog.entities()
        }
        commit = Commit(
            "g", "c", self.number, "main", (), 0, "test", "", 0, f"c.{self.number}", entries
        )
        return Snapshot(commit, self.catalog, self.tables, self.root)

    def kind(self, name: str) -> NodeOrEdgeType:
        found = self.catalog.nodes.get(name) or self.catalog.edges.get(name)
        assert found is not None
        return found

    def edit(self, name: str, edit: TableEdit) -> None:
        table_id = self.kind(name).table_id
        self.refs[table_id] = self.tables.stage(self.refs[table_id], edit).ref
        self.number += 1

    def append(self, name: str, rows: Sequence[Row] | pa.Table) -> None:
        self.edit(name, TableEdit(append=as_table(self.kind(name), rows)))

    def delete(self, name: str, ids: Sequence[str]) -> None:
        table = self.tables.open(self.refs[self.kind(name).table_id])
        found = table.lookup("id", pa.array(list(ids), pa.string()), ["id"], with_address=True)
        self.edit(name, TableEdit(delete=found.column("_rowaddr").combine_chunks()))

    def index(self, name: str, *columns: str) -> None:
        self.edit(name, TableEdit(indices=tuple(IndexEdit(c, "BTREE") for c in columns)))

    def now(self) -> Graph:
        """The same state, to be changed apart."""
        return replace(self, refs=dict(self.refs))


def as_table(kind: NodeOrEdgeType, rows: Sequence[Row] | pa.Table) -> pa.Table:
    if isinstance(rows, pa.Table):
        return rows
    schema = arrow_schema(kind)
    return pa.table(
        {f.name: pa.array([row.get(f.name) for row in rows], f.type) for f in schema}, schema=schema
    )


def make_graph(folder: Path, schema: str | Catalog, data: Data) -> Graph:
    """A graph with these rows; tables of types that are not named are empty."""
    catalog = catalog_from(schema) if isinstance(schema, str) else schema
    tables = LanceTables(str(folder), fsync=False)
    refs = {}
    for kind in catalog.entities():
        ref = tables.create(f"{kind.kind}s/{kind.table_id}", arrow_schema(kind))
        if kind.name in data and len(data[kind.name]):
            ref = tables.stage(ref, TableEdit(append=as_table(kind, data[kind.name]))).ref
        refs[kind.table_id] = ref
    return Graph(catalog, tables, str(folder), refs)


def ask(graph: Graph, text: str, params: Mapping[str, Any] | None = None, **options: Any) -> Result:
    """What a query without its heading answers; parameters are declared by the types of their values."""
    given = dict(params or {})
    heading = ", ".join(f"${name}: {_type_of(value)}" for name, value in given.items())
    query = compile_query(f"query q({heading}) {{ {text} }}", graph.catalog)
    return run_query(query, given, graph.snapshot, **{"cache": Cache(), **options})


def _type_of(value: Any) -> str:
    match value:
        case None:
            return "String?"
        case bool():
            return "Bool"
        case int():
            return "I64"
        case float():
            return "F64"
        case [float(), *rest]:
            return f"Vector({len(rest) + 1})"
        case list():
            return f"[{_type_of(value[0]) if value else 'String'}]"
        case _:
            return "String"
