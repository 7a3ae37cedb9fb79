"""The nodes and edges of a pinned state as DataFrames."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.core.repository import Repository
from omnigraph.core.snapshot import Snapshot
from omnigraph.errors import OptionInvalid, TableNotFound
from omnigraph.model.catalog import Catalog, NodeOrEdgeType
from omnigraph.model.columns import arrow_schema
from omnigraph.model.frozen import frozen
from omnigraph.pipeline.pinned import Pinned, pin
from omnigraph.pipeline.rowset import ddl, to_wire
from omnigraph.pipeline.table_versions import numbers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ENDS = {"src": "from", "dst": "to"}  # as loads call them


def outer_names(kind: NodeOrEdgeType) -> dict[str, str]:
    """The stored columns of a type, and their names for users."""
    return {name: ENDS.get(name, name) for name in arrow_schema(kind).names}


def columns_of(kind: NodeOrEdgeType, wanted: Collection[str] = ()) -> dict[str, str]:
    """The stored columns to read, all or those of some names for users, with these names."""
    stored = {outer: name for name, outer in outer_names(kind).items()}
    unknown = set(wanted) - set(stored)
    if unknown:
        raise OptionInvalid(f"{kind.name} has no column {', '.join(sorted(unknown))}")
    return {stored[outer]: outer for outer in wanted or stored}


def entity(catalog: Catalog, name: str) -> NodeOrEdgeType:
    """A type by its name; `node:` or `edge:` before it decides between two of one name."""
    prefix, _, rest = name.rpartition(":")
    found: NodeOrEdgeType | None = catalog.nodes.get(rest) if prefix in ("", "node") else None
    if found is None and prefix in ("", "edge"):
        found = catalog.edge(rest)
    if found is None:
        raise TableNotFound(f"the graph has no type {name!r}", details={"type": name})
    return found


def frame(
    session: SparkSession, pinned: Pinned, kind: NodeOrEdgeType, columns: Sequence[str] = ()
) -> DataFrame:
    """All rows of a type, one task for each fragment; with `columns`, by their stored names, only those."""
    table = pinned.snapshot().table_of(kind)
    fragments = tuple(info.fragment_id for info in table.fragments())
    names = outer_names(kind)
    names = {name: names[name] for name in columns or names}
    stored = arrow_schema(kind)
    types = {outer: stored.field(name).type for name, outer in names.items()}
    task = _task(pinned, kind.table_id, fragments, names)
    rows = numbers(session, len(fragments), table.count(), types.values())
    return rows.mapInArrow(task, ddl(types))


def _task(
    pinned: Pinned, table_id: str, fragments: tuple[int, ...], names: Mapping[str, str]
) -> Any:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        table = pinned.snapshot().table(table_id)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                rows = table.batches(list(names), fragments=[fragments[number]])
                yield from (wired(part, names) for part in rows)

    return run


def wired(rows: pa.RecordBatch, names: Mapping[str, str]) -> pa.RecordBatch:
    """Stored columns in Spark's types, under the names for users."""
    arrays = [to_wire(rows.column(stored)) for stored in names]
    return pa.RecordBatch.from_arrays(arrays, list(names.values()))


@frozen
class GraphFrames:
    """A state of a graph for Spark programs.

    `nodes("Person")` and `edges("Knows")` are DataFrames; edges have the columns `from` and `to`.
    """

    session: SparkSession
    pinned: Pinned
    commit: str

    def nodes(self, name: str, columns: Collection[str] = ()) -> DataFrame:
        """All nodes of a type; with `columns` only these are read."""
        return self._frame(f"node:{name}", columns)

    def edges(self, name: str, columns: Collection[str] = ()) -> DataFrame:
        """All edges of a type; with `columns` only these are read."""
        return self._frame(f"edge:{name}", columns)

    def _frame(self, name: str, columns: Collection[str]) -> DataFrame:
        kind = entity(self._catalog, name)
        return frame(self.session, self.pinned, kind, tuple(columns_of(kind, columns)))

    @property
    def _catalog(self) -> Catalog:
        return self.pinned.snapshot().catalog


def graph_frames(session: SparkSession, repo: Repository, snapshot: Snapshot) -> GraphFrames:
    """A pinned state for Spark programs."""
    return GraphFrames(session, pin(repo, snapshot), snapshot.commit_id)
