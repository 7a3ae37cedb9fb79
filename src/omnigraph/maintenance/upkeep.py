"""Maintenance of a whole graph: on request, or in the background of a long-running process.

One pass does the work that is due: tables are compacted and indexed, missing vectors computed, expired objects removed,
and history pruned by the graph's own policy. Of all processes, only one maintains (see `status`); each of them slows
its writers down while the backlog is too large.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import TracebackType

from omnigraph.core import layout
from omnigraph.core.branches import branch_names
from omnigraph.core.clock import NEVER, Deadline
from omnigraph.core.group import Writers
from omnigraph.core.plan import Request, Verb
from omnigraph.core.records import Commit, MaintenanceAction, RetentionPolicy, Tombstone
from omnigraph.core.repository import Repository
from omnigraph.core.snapshot import Snapshot
from omnigraph.errors import OmnigraphError, RetriesExhausted
from omnigraph.maintenance import status
from omnigraph.maintenance.collection import bury, collect, retained
from omnigraph.maintenance.embedding import EmbedReport, embed_missing, embedded_properties
from omnigraph.maintenance.jobs import expire
from omnigraph.maintenance.reviews import forget_reviews
from omnigraph.model.catalog import EdgeType, NodeOrEdgeType
from omnigraph.model.names import branch_name
from omnigraph.pipeline.engine import maintaining
from omnigraph.read import persist_topology
from omnigraph.read.search import segments
from omnigraph.read.search.embed import settings_of
from omnigraph.read.search.storing import store_missing
from omnigraph.write.maintain import Backlog, TableReport, TableWork, backlog, due

EXPIRE_SECONDS = 3600.0
BURIED_PER_PASS = (
    4096  # pruned commits; at a pass every 30 s, a hundred commits a second do not pile up
)
LOOK_SECONDS = 300.0  # after which a state is examined again: files of words may be lost or damaged
SLOWED_FROM = 8.0  # pressure above which writers wait
SLOWED_SECONDS_MAX = 0.25  # for each commit
log = logging.getLogger("omnigraph.maintenance.upkeep")


def optimize_branch(
    repo: Repository,
    writers: Writers,
    branch: str,
    kinds: Iterable[NodeOrEdgeType] | None = None,
    *,
    deadline: Deadline,
    engine: str = "local",
) -> list[TableReport]:
    """Optimize the tables of a branch, one commit each, so that each contends with few writers."""
    snapshot = repo.snapshot(repo.head(branch).commit)
    chosen = list(snapshot.catalog.entities() if kinds is None else kinds)
    return [_optimize_table(repo, writers, branch, kind, deadline, engine) for kind in chosen]


def _optimize_table(
    repo: Repository,
    writers: Writers,
    branch: str,
    kind: NodeOrEdgeType,
    deadline: Deadline,
    engine: str,
) -> TableReport:
    before = repo.snapshot(repo.head(branch).commit).table_of(kind)
    note, work = None, TableWork(False, ())
    try:
        with maintaining(repo, kind.table_id, branch, engine) as verb:
            request = Request(
                branch=branch_name(branch),
                verb=verb,
                message=f"maintenance of {kind.name}",
                alone=True,
                deadline=deadline,
            )
            work = writers.submit(request).value
    except RetriesExhausted:
        note = "other writers kept changing it: left unchanged"
    after = repo.snapshot(repo.head(branch).commit)
    texts, text_bytes = store_missing(after, kind)
    return TableReport(
        type=kind.name,
        kind=kind.kind,
        rows=after.table_of(kind).count(),
        fragments_before=len(before.fragments()),
        fragments_after=len(after.table_of(kind).fragments()),
        indexed=tuple(dict.fromkeys([*(edit.column for edit in work.indices), *texts])),
        text_bytes=text_bytes,
        topology_bytes=_persisted(after, kind),
        note=note,
    )


def _persisted(snapshot: Snapshot, kind: NodeOrEdgeType) -> int:
    return persist_topology(snapshot, kind.name) if isinstance(kind, EdgeType) else 0


def store_loaded(
    repo: Repository, commit: Commit | Tombstone | None, rows: Mapping[str, int]
) -> None:
    """Build the text indices of rows written by a load, if there are enough to be worth a file.

    The load is already published: failures here are left to maintenance.
    """
    many = {name for name, count in rows.items() if count >= segments.STORED_ROWS_MIN}
    if not isinstance(commit, Commit) or not many:
        return
    try:
        snapshot = repo.snapshot(commit)
        for kind in snapshot.catalog.entities():
            if kind.name in many:
                store_missing(snapshot, kind)
    except OmnigraphError as error:
        log.warning("the text indices of a load are left to maintenance: %s", error.message)


# --- what is due -------------------------------------------------------------------------------------------------


class Maintainer:
    """Maintenance passes, one at a time, and their results."""

    def __init__(
        self, repo: Repository, writers: Writers, branches: Sequence[str] | None = None
    ) -> None:
        self._repo = repo
        self._writers = writers
        self._branches = branches
        self._measured: dict[str, tuple[str, Backlog]] = {}  # by branch: a commit, and its backlog
        self._embedded: dict[
            str, str
        ] = {}  # by branch: a commit that was searched for missing vectors
        self._pruned: Sequence[tuple[str, int]] = ()  # commits still to be replaced by tombstones
        self._examined: dict[str, tuple[str, float]] = {}  # by branch: a commit, and when
        self.office = status.Office(repo)
        self.counts: Counter[str] = Counter()  # of actions, and of failed ones
        self.backlog = Backlog()

    def measure(self) -> float:
        """The current pressure: that of the branch that needs maintenance most."""
        names = self._branches if self._branches is not None else branch_names(self._repo)
        heads = {name: head for name in names if (head := self._head(name)) is not None}
        self._measured = {name: self._measure(name, head) for name, head in heads.items()}
        found = [left for _, left in self._measured.values()]
        self.backlog = max(found, key=lambda left: left.pressure, default=Backlog())
        return self.backlog.pressure

    def _head(self, name: str) -> Commit | None:
        try:
            return self._repo.head(name).commit
        except OmnigraphError as error:
            self._failed("optimize", name, error)
            return None

    def _measure(self, name: str, head: Commit) -> tuple[str, Backlog]:
        known, id = self._measured.get(name), layout.commit_id(head.chain, head.number)
        if known is not None and known[0] == id:
            return known
        return id, backlog(self._repo.snapshot(head))

    def look(self, deadline: Deadline = NEVER) -> list[MaintenanceAction]:
        """Do everything that is due, as measured."""
        done: list[MaintenanceAction] = []
        for branch, (id, left) in self._measured.items():
            if left.pressure > 1 or self._is_unexamined(branch, id):
                done += self._attempt("optimize", branch, partial(self._optimize, branch, deadline))
            done += self._attempt("embed", branch, partial(self._embed, branch, deadline))
        known, policy = status.status(self._repo), status.retention(self._repo)
        if self._is_time(known.expired, EXPIRE_SECONDS):
            done += self._attempt("expire", None, partial(_expire, self._repo))
        if policy is not None and self._is_time(known.cleaned, policy.every_hours * 3600):
            done += self._attempt("cleanup", None, partial(self._clean, policy, deadline))
        if self._pruned:
            done += self._attempt("tombstones", None, partial(self._bury, deadline))
        return done

    def _is_unexamined(self, branch: str, id: str) -> bool:
        """Whether a state is new here, or has not been examined for a while."""
        known, when = self._examined.get(branch, ("", 0.0))
        return known != id or time.monotonic() - when >= LOOK_SECONDS

    def _is_time(self, last: int, every_seconds: float) -> bool:
        return self._repo.clock.now() - last >= every_seconds * 1_000_000

    def _attempt(
        self, kind: str, branch: str | None, work: Callable[[], str]
    ) -> list[MaintenanceAction]:
        """Do something and record it; a failure is logged, and retried at the next pass."""
        began = time.monotonic()
        try:
            with self.office.kept():
                detail = work()
            seconds = round(time.monotonic() - began, 3)
            action = MaintenanceAction(self._repo.clock.now(), kind, branch, detail, seconds)
            if detail or kind in status.MARKED:
                self.office.report(kind, action if detail else None)
        except OmnigraphError as error:
            self._failed(kind, branch, error)
            return []
        if not detail:
            return []
        log.info("%s of %s: %s", kind, branch or "the graph", detail)
        self.counts[kind] += 1
        return [action]

    def _failed(self, kind: str, branch: str | None, error: OmnigraphError) -> None:
        log.warning("%s of %s failed: %s", kind, branch or "the graph", f"{error}")
        self.counts["failed"] += 1

    def _optimize(self, branch: str, deadline: Deadline) -> str:
        state, began = self._repo.snapshot(self._repo.head(branch).commit), time.monotonic()
        kinds = list(due(state))
        done = optimize_branch(self._repo, self._writers, branch, kinds, deadline=deadline)
        self._examined[branch] = (state.commit_id, began)
        return "; ".join(map(_summary, done))

    def _embed(self, branch: str, deadline: Deadline) -> str:
        """Compute missing vectors, if a provider is configured; a state is searched once."""
        state = self._repo.snapshot(self._repo.head(branch).commit)
        settings = settings_of(state)
        chosen = embedded_properties(state, None, None)
        if settings.kind is None or not chosen or self._embedded.get(branch) == state.commit_id:
            return ""

        def publish(verb: Verb) -> int:
            name = branch_name(branch)
            request = Request(branch=name, verb=verb, message="embed", deadline=deadline)
            return int(self._writers.submit(request).value)

        done = [embed_missing(state, what, settings, publish) for what in chosen]
        self._embedded[branch] = state.commit_id
        return "; ".join(map(_embedded, (report for report in done if report.rows)))

    def _clean(self, policy: RetentionPolicy, deadline: Deadline) -> str:
        """Remove history that the policy does not keep. Without writes since the last time, there is none."""
        heads = [self._repo.head(name).commit for name in self._measured]
        if all(head.kind == "epoch" for head in heads):
            return ""
        kept = retained(self._repo, policy.keep, policy.days)
        done = forget_reviews(self._repo, collect(self._repo, kept, deadline=deadline), None)
        self._pruned = done.left
        return f"{done.commits_pruned} commits, {done.objects_deleted} files, {done.bytes_deleted} bytes"

    def _bury(self, deadline: Deadline) -> str:
        """Replace more of what the last cleanup pruned. A cleanup by hand is to be short; here there is time."""
        some = self._pruned[:BURIED_PER_PASS]
        bury(self._repo, some, deadline)
        self._pruned = self._pruned[len(some) :]
        return f"{len(some)} removed commits replaced, {len(self._pruned)} left"


def _expire(repo: Repository) -> str:
    done = expire(repo)
    return (
        f"{done.objects} files, {done.bytes} bytes of exports and uploads" if done.objects else ""
    )


def _embedded(report: EmbedReport) -> str:
    refused = f" ({report.refused} texts refused)" if report.refused else ""
    return f"{report.type}.{report.property}: {report.rows} vectors{refused}"


def _summary(report: TableReport) -> str:
    indexed = f", indexed {', '.join(report.indexed)}" if report.indexed else ""
    fragments = f"{report.fragments_before} to {report.fragments_after} fragments"
    return f"{report.type}: {fragments}{indexed}" + (f" ({report.note})" if report.note else "")


# --- in the background -------------------------------------------------------------------------------------------


class Upkeep:
    """A thread that regularly checks for due maintenance, and does it if this process is in charge.

    A check costs two requests, and one for each branch, while nothing changes.
    """

    def __init__(
        self,
        repo: Repository,
        writers: Writers,
        branches: Sequence[str] | None = None,
        every_seconds: float = 30.0,
        then: Callable[[list[MaintenanceAction]], None] | None = None,
    ) -> None:
        self.maintainer = Maintainer(repo, writers, branches)
        self._writers = writers
        self._every = every_seconds
        self._then = then
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="omnigraph-upkeep", daemon=True)

    @property
    def waited_seconds(self) -> float:
        """How long writers of this process have waited in total."""
        return self._writers.waited

    def start(self) -> Upkeep:
        self._thread.start()
        return self

    def stop(self) -> None:
        """Stop after the current table; returns once the thread has ended."""
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
        deadline = Deadline(cancelled=self._stopped)
        while not self._stopped.is_set():
            self._guarded(lambda: self._look(deadline))
            self._stopped.wait(self._every)
        self._writers.slowed = 0.0
        self._guarded(self.maintainer.office.leave)

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except OmnigraphError as error:
            log.warning("maintenance failed: %s", f"{error}")
            self.maintainer.counts["failed"] += 1
        except Exception:
            log.exception("maintenance failed")
            self.maintainer.counts["failed"] += 1

    def _look(self, deadline: Deadline) -> None:
        self._slow_down(self.maintainer.measure())
        if self.maintainer.office.take():
            done = self.maintainer.look(deadline)
            if done and self._then is not None:
                self._then(done)
            if done:
                self._slow_down(self.maintainer.measure())

    def _slow_down(self, pressure: float) -> None:
        """Let writers of this process wait before each commit while maintenance is far behind."""
        before, over = self._writers.slowed, pressure / SLOWED_FROM
        self._writers.slowed = 0.0 if over < 1 else SLOWED_SECONDS_MAX * min(1.0, over / 8)
        if self._writers.slowed and not before:
            left = self.maintainer.backlog
            log.warning(
                "maintenance is behind: %d fragments and %d rows are left, so writes wait %.0f ms",
                left.fragments,
                left.rows,
                self._writers.slowed * 1000,
            )
        elif before and not self._writers.slowed:
            log.info("maintenance has caught up")
