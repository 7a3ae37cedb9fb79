"""The bytes of one blob property, read in ranges: only the requested bytes are loaded."""

from __future__ import annotations

import pyarrow as pa

from omnigraph.core.snapshot import Snapshot
from omnigraph.errors import Kind, OmnigraphError, OptionInvalid, TableNotFound
from omnigraph.model.frozen import frozen
from omnigraph.storage.tables import ADDRESS, BlobTable, StoredBlob


class BlobNotFound(OmnigraphError):
    """The entity does not exist, or its blob is null."""

    code, kind = "blob_not_found", Kind.NOT_FOUND
    default_help = "Check the id; a query that returns it shows which entities exist."


@frozen
class Blob:
    """A blob at one commit. Concurrent writes do not change it."""

    stored: StoredBlob

    @property
    def size(self) -> int:
        """The number of bytes."""
        return int(self.stored.size())

    def read(self, start: int = 0, end: int | None = None) -> bytes:
        """The bytes from `start` up to `end`, without it."""
        size = self.size
        stop = size if end is None else min(end, size)
        if start < 0 or (end is not None and end < start):
            raise OptionInvalid(f"a range of bytes ascends from 0: {start} to {end}")
        return bytes(self.stored.read_range(start, stop - start)) if start < stop else b""


def open_blob(snapshot: Snapshot, type_name: str, id: str, name: str) -> Blob:
    """The blob property `name` of the entity with this id."""
    kind = snapshot.catalog.entity(type_name)
    if kind is None:
        raise TableNotFound(f"there is no type {type_name}")
    prop = kind.properties.get(name)
    if prop is None or not prop.type.is_blob:
        raise OptionInvalid(f"{type_name} has no Blob property '{name}'")
    table = snapshot.table_of(kind)
    rows = table.lookup("id", pa.array([id], pa.string()), ["id"], with_address=True)
    stored = None
    if rows.num_rows and isinstance(table, BlobTable):
        stored = table.blob(name, rows[ADDRESS][0].as_py())
    if stored is None:
        what = "is null" if rows.num_rows else "does not exist"
        raise BlobNotFound(f"{name} of {type_name} {id!r} {what}", details={"id": id})
    return Blob(stored)
