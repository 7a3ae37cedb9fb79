"""One state of a graph, serialised for tasks: an address, a commit and a schema, as plain values."""

from __future__ import annotations

import os
from dataclasses import field
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from socket import gethostname

import omnigraph
from omnigraph.core.records import Commit, StoredSchema, decode, encode
from omnigraph.core.repository import Repository
from omnigraph.core.snapshot import Snapshot
from omnigraph.core.txn import WriteTxn
from omnigraph.errors import Kind, OmnigraphError
from omnigraph.lang.schema import catalog_of, decode_ir
from omnigraph.model.embedding import EmbedSettings
from omnigraph.model.frozen import frozen
from omnigraph.pipeline.failures import ExecutorsDiffer
from omnigraph.storage.objects import Location, locate


class NotShared(OmnigraphError):
    """The graph is in the memory or on the disk of one machine, out of reach of Spark tasks."""

    code, kind = "graph_not_shared", Kind.INVALID
    default_help = (
        "Use a graph on an object store or a disk that all machines share, or engine='local'."
    )


@frozen
class Pinned:
    """Everything a task needs to open a state; equal states are opened once per process."""

    uri: str
    commit: bytes
    schema: bytes
    version: str = ""  # of this package, where the state was pinned
    environment: tuple[tuple[str, str], ...] = field(
        default=(), repr=False
    )  # how the driver reaches object stores, including credentials
    embedding: EmbedSettings | None = None

    def snapshot(self) -> Snapshot:
        """The state, opened in this process."""
        return _opened(self)

    def txn(self, branch: str, now: datetime) -> WriteTxn:
        """A write that starts from the state."""
        snapshot = self.snapshot()
        return WriteTxn(snapshot, branch, now, snapshot.catalog)


def pin(repo: Repository, snapshot: Snapshot) -> Pinned:
    """Pin a state for tasks."""
    if repo.place.scheme == "memory":
        raise NotShared(f"{repo.place.uri} lives in the memory of this process")
    stored = repo.schema(snapshot.commit.schema).stored
    return Pinned(
        repo.place.uri,
        encode(snapshot.commit),
        encode(stored),
        omnigraph.__version__,
        store_environment(),
        snapshot.embedding,
    )


def store_environment() -> tuple[tuple[str, str], ...]:
    """The variables of this process that configure object stores."""
    return tuple(sorted((k, v) for k, v in os.environ.items() if k.startswith("AWS_")))


def adopt(environment: tuple[tuple[str, str], ...]) -> None:
    """Reach object stores like the driver: workers may have been started before it was configured."""
    os.environ.update(environment)


def reachable(place: Location) -> Location:
    """A place, if it exists on this machine; otherwise it would look like an empty graph."""
    if place.scheme == "file" and not Path(place.uri).is_dir():
        raise NotShared(f"{place.uri} is not on the machine {gethostname()}, where a task runs")
    return place


@lru_cache(maxsize=4)
def _opened(pinned: Pinned) -> Snapshot:
    from omnigraph.storage.lance import LanceTables

    if pinned.version != omnigraph.__version__:
        raise ExecutorsDiffer(
            f"Spark's executors have omnigraph {omnigraph.__version__}, the driver has {pinned.version}"
        )
    adopt(pinned.environment)
    place = reachable(locate(pinned.uri))
    commit: Commit = decode(Commit, pinned.commit, "commit")
    stored: StoredSchema = decode(StoredSchema, pinned.schema, "schema")
    catalog = catalog_of(decode_ir(stored.ir.encode()))
    tables = LanceTables(place.uri, dict(place.options))
    return Snapshot(commit, catalog, tables, place.uri, embedding=pinned.embedding)
