"""Writing to small graphs in tests: rows in, commits out, and the rows that are there."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from omnigraph.core.plan import PublishPlan, Verb
from omnigraph.core.publisher import Published
from omnigraph.core.txn import WriteTxn
from omnigraph.errors import OmnigraphError
from omnigraph.graph import Graph, init
from omnigraph.lang.query import Want, compile_query
from omnigraph.model.catalog import Catalog, NodeOrEdgeType
from omnigraph.model.changes import Incoming, Origin
from omnigraph.model.columns import arrow_type
from omnigraph.storage.tables import ADDRESS
from omnigraph.validate import require_valid
from omnigraph.write.mutate import mutate
from omnigraph.write.resolve import Mode, actions_of, resolve

Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Bench:
    """A graph to write to."""

    graph: Graph

    @property
    def catalog(self) -> Catalog:
        return self.graph.snapshot().catalog

    def mutate(self, text: str, **params: Any) -> Published:
        """Run the only query of a text."""
        return self.graph.publish(self.verb(text, **params))

    def verb(self, text: str, **params: Any) -> Verb:
        return mutate(compile_query(text, self.catalog, want=Want.MUTATION), params)

    def put(self, mode: Mode = Mode.MERGE, /, **rows: Rows) -> Published:
        """Write rows by type name; a field left out of a row is absent, `None` is null."""
        return self.graph.publish(lambda txn: load_plan(txn, mode, rows))

    def refused(self, text: str, **params: Any) -> OmnigraphError:
        """The error of a mutation that must not go through, and leaves no trace."""
        before = self.graph.snapshot().commit_id
        try:
            self.mutate(text, **params)
        except OmnigraphError as error:
            assert self.graph.snapshot().commit_id == before, "a refused write made a commit"
            return error
        raise AssertionError(f"accepted: {text}")

    def rows(self, type_name: str) -> list[dict[str, Any]]:
        """All rows of a type, by id."""
        snapshot = self.graph.snapshot()
        table = snapshot.table_of(self.kind(type_name))
        found: list[dict[str, Any]] = table.scan(table.schema.names).sort_by("id").to_pylist()
        return found

    def ids(self, type_name: str) -> list[str]:
        return [row["id"] for row in self.rows(type_name)]

    def kind(self, type_name: str) -> NodeOrEdgeType:
        kind = self.catalog.entity(type_name)
        assert kind is not None
        return kind

    def txn(self) -> WriteTxn:
        """The transaction a write beginning now would get."""
        seen: list[WriteTxn] = []

        def look(txn: WriteTxn) -> PublishPlan:
            seen.append(txn)
            return PublishPlan(kind="look", empty=True)

        self.graph.publish(look)
        return seen[0]


def bench(schema: str) -> Bench:
    """A new graph in memory."""
    return Bench(init(f"memory://{uuid.uuid4().hex}", schema=schema))


def load_plan(txn: WriteTxn, mode: Mode, rows: Mapping[str, Rows]) -> PublishPlan:
    """What a load of these rows wants."""
    given = [incoming(txn.catalog, name, part) for name, part in rows.items()]
    resolved = resolve(txn, given, mode)
    reads = require_valid(resolved.changes, txn, found=resolved.violations)
    return PublishPlan(kind="load", actions=actions_of(resolved.changes), reads=reads)


def incoming(catalog: Catalog, type_name: str, rows: Rows, file: str | None = None) -> Incoming:
    """Rows of one type as a load hands them over."""
    kind = catalog.entity(type_name)
    assert kind is not None
    names = [n for n in ("id", "src", "dst", *kind.properties) if any(n in row for row in rows)]
    columns = {name: pa.array([r.get(name) for r in rows], _type(kind, name)) for name in names}
    absent = {name: pa.array([name not in row for row in rows]) for name in names}
    lines = pa.array(range(1, len(rows) + 1), pa.int64())
    return Incoming(type_name, pa.table(columns), absent, Origin(file, lines))


def _type(kind: NodeOrEdgeType, name: str) -> pa.DataType:
    prop = kind.properties.get(name)
    return pa.string() if prop is None else arrow_type(prop.type)


def plain(table: pa.Table | None) -> list[dict[str, Any]]:
    """Rows without their addresses, by id."""
    if table is None:
        return []
    names = [name for name in table.column_names if name != ADDRESS]
    rows: list[dict[str, Any]] = table.select(names).sort_by("id").to_pylist()
    return rows
