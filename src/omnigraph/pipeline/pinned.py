"""One state of a graph as it travels to tasks: an address, a commit and a schema, as plain values."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache

from omnigraph.core.records import Commit, StoredSchema, decode, encode
from omnigraph.core.repository import Repository
from omnigraph.core.snapshot import Snapshot
from omnigraph.core.txn import WriteTxn
from omnigraph.errors import Kind, OmnigraphError
from omnigraph.lang.schema import catalog_of, decode_ir
from omnigraph.storage.objects import locate


class NotShared(OmnigraphError):
    """The graph lives in the memory of one process, where Spark's tasks cannot see it."""

    code, kind = "graph_not_shared", Kind.INVALID
    default_help = "Use a graph on a disk or an object store, or engine='local'."


@dataclass(frozen=True, slots=True)
class Pinned:
    """Everything a task needs to open a state; equal states are opened once per process."""

    uri: str
    commit: bytes
    schema: bytes
    environment: tuple[tuple[str, str], ...] = field(
        default=(), repr=False
    )  # how the driver reaches object stores, credentials among it

    def snapshot(self) -> Snapshot:
        """The state, opened in this process."""
        return _opened(self)

    def txn(self, branch: str, now: datetime) -> WriteTxn:
        """A write that starts from the state."""
        snapshot = self.snapshot()
        return WriteTxn(snapshot, branch, now, snapshot.catalog)


def pin(repo: Repository, snapshot: Snapshot) -> Pinned:
    """A state to send to tasks."""
    if repo.place.scheme == "memory":
        raise NotShared(f"{repo.place.uri} lives in the memory of this process")
    stored = repo.schema(snapshot.commit.schema).stored
    return Pinned(repo.place.uri, encode(snapshot.commit), encode(stored), store_environment())


def store_environment() -> tuple[tuple[str, str], ...]:
    """The variables of this process that say how to reach object stores."""
    return tuple(sorted((k, v) for k, v in os.environ.items() if k.startswith("AWS_")))


def adopt(environment: tuple[tuple[str, str], ...]) -> None:
    """Reach object stores as the driver does: workers may have been started before it knew how."""
    os.environ.update(environment)


@lru_cache(maxsize=4)
def _opened(pinned: Pinned) -> Snapshot:
    from omnigraph.storage.lance import LanceTables

    adopt(pinned.environment)
    place = locate(pinned.uri)
    commit: Commit = decode(Commit, pinned.commit, "commit")
    stored: StoredSchema = decode(StoredSchema, pinned.schema, "schema")
    catalog = catalog_of(decode_ir(stored.ir.encode()))
    return Snapshot(commit, catalog, LanceTables(place.uri, dict(place.options)), place.uri)
