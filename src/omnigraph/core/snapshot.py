"""One pinned state of a graph: a commit, its schema, and its tables at exactly the versions it names."""

from __future__ import annotations

from omnigraph.core.records import Commit, TableEntry
from omnigraph.errors import Corrupt, TableNotFound
from omnigraph.model.catalog import Catalog, EntityType
from omnigraph.model.embedding import EmbedSettings
from omnigraph.model.frozen import frozen
from omnigraph.storage.tables import Table, TableRef, TableStore

VERSIONS = 1 << 64


@frozen
class Snapshot:
    """The state a query or a write reads. Immutable: concurrent writes do not change it."""

    commit: Commit
    catalog: Catalog
    tables: TableStore
    root: str  # the canonical address of the graph, for caches
    passing: bool = False  # a state during a write, which only that write reads
    embedding: EmbedSettings | None = None  # for its texts; None: the configuration of the process

    @property
    def commit_id(self) -> str:
        """The id users see: maintenance commits do not count."""
        return self.commit.content

    def entry(self, table_id: str) -> TableEntry:
        """The version of a table in this state."""
        found = self.commit.tables.get(table_id)
        if found is None:
            raise TableNotFound(f"commit {self.commit_id} has no table {table_id}")
        return found

    def ref(self, table_id: str) -> TableRef:
        return table_ref(self.entry(table_id))

    def table(self, table_id: str) -> Table:
        """The opened table; cached."""
        return self.tables.open(self.ref(table_id))

    def dataset(self, type_name: str) -> Dataset:
        """Where other tools find the rows of a type."""
        kind = self.catalog.entity(type_name)
        if kind is None:
            raise TableNotFound(f"commit {self.commit_id} has no type {type_name!r}")
        ref = self.ref(kind.table_id)
        return Dataset(f"{self.root}/{ref.path}", ref.version)

    def table_of(self, kind: EntityType) -> Table:
        """The opened table of a node or edge type."""
        return self.table(kind.table_id)


@frozen
class Dataset:
    """Where the rows of one type are at one commit: a Lance dataset, and the version of it to read.

    `lance.dataset(found.uri, version=found.version)` reads them. Without the version Lance shows the table as
    created, without rows: a commit decides which version is current, and Lance's own newest version is never one.
    """

    uri: str
    version: int


def table_ref(entry: TableEntry) -> TableRef:
    """Where the storage finds the version an entry names."""
    version = int(entry.version)
    if version >= VERSIONS:
        raise Corrupt(
            f"table {entry.path} has no version {entry.version}: it is not a 64-bit number"
        )
    return TableRef(entry.path, version)
