"""The one instrumented opener. Handles are immutable versions, so all threads of the process share one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
from lance import LanceDataset, Transaction

from omnigraph.errors import Corrupt
from omnigraph.storage import metrics
from omnigraph.storage.disk import checked, inside
from omnigraph.storage.lance.columns import stored_schema
from omnigraph.storage.lance.failures import lance_errors
from omnigraph.storage.lance.foreign import refuse_foreign_files, refuse_linked_folders
from omnigraph.storage.lance.reading import LanceTable
from omnigraph.storage.lru import HANDLES_MAX, Lru
from omnigraph.storage.objects import Location
from omnigraph.storage.tables import TableRef

STORAGE_VERSION = "2.2"  # the first with blobs beside the data file
CLEANUP_KEY = "lance.auto_cleanup."
MEMORY = "memory://"
INDEX_CACHE_BYTES_MAX = 2**30
METADATA_CACHE_BYTES_MAX = 256 * 2**20

_opened: Lru[tuple[str, str, int], LanceTable] = Lru(HANDLES_MAX)


def _session() -> lance.Session:
    return lance.Session(
        index_cache_size_bytes=INDEX_CACHE_BYTES_MAX,
        metadata_cache_size_bytes=METADATA_CACHE_BYTES_MAX,
    )


_shared_session = _session()
_memory_sessions: dict[str, lance.Session] = {}
# One table of each memory graph stays open forever: Lance drops a memory store without open handles.
_memory_tables: dict[str, LanceDataset] = {}


def session_of(uri: str) -> lance.Session:
    """The process's session. A memory graph lives inside its session, so each has its own."""
    if not uri.startswith(MEMORY):
        return _shared_session
    return _memory_sessions.setdefault(_memory_of(uri), _session())


def _memory_of(uri: str) -> str:
    return uri.removeprefix(MEMORY).split("/")[0]


class Handles:
    """Opens and caches versions of the tables under one root."""

    def __init__(self, place: Location) -> None:
        self.uri = place.uri
        self.options = dict(place.options)
        self.local = Path(place.uri) if place.scheme == "file" else None
        self.session = session_of(place.uri)

    def address(self, path: str) -> str:
        """The address of a table; a path that leads out of the graph, or through a link, is refused."""
        if self.local is not None:
            return str(inside(self.local, path))
        return f"{self.uri}/{checked(path)}"

    def open(self, ref: TableRef) -> LanceTable:
        """A version, from the cache or the store."""
        table = _opened.get((self.uri, ref.path, ref.version))
        return self.remember(LanceTable(ref, self._open(ref))) if table is None else table

    def remember(self, table: LanceTable) -> LanceTable:
        _opened.put((self.uri, table.ref.path, table.ref.version), table)
        return table

    def create(self, path: str, schema: pa.Schema) -> LanceTable:
        """A new table without rows. This is the only ordinary commit of a table."""
        with lance_errors(f"creating table {path}"):
            handle = lance.write_dataset(
                stored_schema(schema).empty_table(),
                self.address(path),
                mode="create",
                storage_options=self.options or None,
                data_storage_version=STORAGE_VERSION,
                enable_stable_row_ids=False,
                session=self.session,
            )
        if self.uri.startswith(MEMORY):
            _memory_tables.setdefault(_memory_of(self.uri), handle)
        metrics.request("list", 2)
        metrics.request("put", 2)
        metrics.stage(4)
        return self.remember(LanceTable(TableRef(path, handle.version), handle))

    def _open(self, ref: TableRef) -> LanceDataset:
        metrics.opened()
        metrics.request("get", 2)
        metrics.stage(2)
        address = self.address(ref.path)
        if self.local is not None:
            refuse_linked_folders(ref, self.local)
        with lance_errors(f"opening version {ref.version} of table {ref.path}"):
            handle = lance.dataset(
                address,
                version=ref.version,
                storage_options=self.options or None,
                session=self.session,
            )
        _refuse_cleanup(ref, handle)
        refuse_foreign_files(ref, handle, self.local)
        return handle


def _refuse_cleanup(ref: TableRef, handle: LanceDataset) -> None:
    """Lance's cleanup deletes files that only detached versions use, so a table that would run it is refused."""
    bad = sorted(key for key in handle.config() if key.startswith(CLEANUP_KEY))
    if bad:
        raise Corrupt(
            f"table {ref.path} lets Lance clean up automatically ({', '.join(bad)}), which destroys committed data",
            help="Remove these keys from the table's config with Lance, then open the graph again.",
            details={"path": ref.path, "keys": bad},
        )


def commit(handle: LanceDataset, operation: Any, doing: str) -> LanceDataset:
    """A new version on exactly the version `handle` is at, invisible until a graph commit names it.

    Lance checks no conflicts here and takes the handle's version as base whatever the transaction says, so the two
    must be the same.
    """
    transaction = Transaction(handle.version, operation)
    assert transaction.read_version == handle.version  # noqa: S101
    with lance_errors(doing):
        new = LanceDataset.commit(handle, transaction, detached=True)
    metrics.request("put", 2)
    metrics.stage(2)
    return new
