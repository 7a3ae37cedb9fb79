"""Maintenance of a whole branch: by hand, or in the background of a long-running process."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType

from omnigraph.core.deadline import Deadline
from omnigraph.core.group import Writers
from omnigraph.core.plan import Request
from omnigraph.core.repository import Repository
from omnigraph.core.snapshot import Snapshot
from omnigraph.errors import OmnigraphError, RetriesExhausted
from omnigraph.model.catalog import EdgeType, NodeType
from omnigraph.model.names import branch_name
from omnigraph.pipeline.engine import maintaining
from omnigraph.read import persist_topology
from omnigraph.write.maintain import TableReport, Work, due

log = logging.getLogger("omnigraph.upkeep")
Kind = NodeType | EdgeType


def optimize_branch(
    repo: Repository,
    writers: Writers,
    branch: str,
    kinds: Iterable[Kind] | None = None,
    *,
    deadline: Deadline,
    engine: str = "local",
) -> list[TableReport]:
    """Bring the tables of a branch into order, one commit each, so that each contends with few writers."""
    snapshot = repo.snapshot(repo.head(branch).commit)
    chosen = list(snapshot.catalog.entities() if kinds is None else kinds)
    return [_optimize_table(repo, writers, branch, kind, deadline, engine) for kind in chosen]


def _optimize_table(
    repo: Repository, writers: Writers, branch: str, kind: Kind, deadline: Deadline, engine: str
) -> TableReport:
    before = repo.snapshot(repo.head(branch).commit).table_of(kind)
    note, work = None, Work(False, ())
    try:
        with maintaining(repo, kind.table_id, branch, engine) as verb:
            request = Request(branch=branch_name(branch), verb=verb, alone=True, deadline=deadline)
            work = writers.submit(request).value
    except RetriesExhausted:
        note = "other writers kept changing it: left as it was"
    after = repo.snapshot(repo.head(branch).commit)
    return TableReport(
        type=kind.name,
        kind=kind.kind,
        rows=after.table_of(kind).count(),
        fragments_before=len(before.fragments()),
        fragments_after=len(after.table_of(kind).fragments()),
        indexed=tuple(edit.column for edit in work.indices),
        topology_bytes=_persisted(after, kind),
        note=note,
    )


def _persisted(snapshot: Snapshot, kind: Kind) -> int:
    return persist_topology(snapshot, kind.name) if isinstance(kind, EdgeType) else 0


class Upkeep:
    """A thread that looks from time to time whether tables need maintenance, and does it.

    Looking costs a request per branch while nothing changes. Failures are logged and tried again at the next look.
    """

    def __init__(
        self,
        repo: Repository,
        writers: Writers,
        branches: Sequence[str] = ("main",),
        every_seconds: float = 60.0,
        then: Callable[[list[TableReport]], None] | None = None,
    ) -> None:
        self._repo = repo
        self._writers = writers
        self._branches = tuple(branches)
        self._every = every_seconds
        self._then = then
        self._seen: dict[str, str] = {}
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="omnigraph-upkeep", daemon=True)

    def start(self) -> Upkeep:
        self._thread.start()
        return self

    def stop(self) -> None:
        """Stop after the table in hand; returns once the thread has ended."""
        self._stopped.set()
        self._thread.join()

    def __enter__(self) -> Upkeep:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _run(self) -> None:
        while not self._stopped.is_set():
            for branch in self._branches:
                try:
                    self.look(branch)
                except OmnigraphError as error:
                    log.warning("maintenance of branch %s failed: %s", branch, error)
            self._stopped.wait(self._every)

    def look(self, branch: str) -> list[TableReport]:
        """One look: what is due is done."""
        snapshot = self._repo.snapshot(self._repo.head(branch).commit)
        if self._seen.get(branch) == snapshot.commit_id:
            return []
        deadline = Deadline(cancelled=self._stopped)
        kinds = list(due(snapshot))
        done = optimize_branch(self._repo, self._writers, branch, kinds, deadline=deadline)
        self._seen[branch] = snapshot.commit_id
        if done and self._then is not None:
            self._then(done)
        return done
