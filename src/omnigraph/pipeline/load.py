"""Load inputs of any size as one commit: stage in tasks, verify on an unpublished version, publish like any write.

Tasks run on Spark or, without a session, in threads of this process, a few pieces at a time.

Staging and verifying happen before the write is queued, so that other writers of the process do not wait for them. If
others touched meanwhile what the verdict depends on, the load is verified again; its rows are read again only if they
were completed from rows that others touched.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from time import monotonic
from typing import TYPE_CHECKING, Any

import msgspec

from omnigraph.core.leases import load_plan, remove_plan, renewed, save_plan, still_honoured
from omnigraph.core.plan import (
    PublishPlan,
)
from omnigraph.core.records import StoredPlan
from omnigraph.core.repository import Repository
from omnigraph.core.snapshot import Snapshot
from omnigraph.core.txn import WriteTxn
from omnigraph.errors import WriteConflict
from omnigraph.model.frozen import frozen
from omnigraph.pipeline.aside import Aside
from omnigraph.pipeline.failures import failures_of
from omnigraph.pipeline.gather import gathers, placed_lines, run_gathered
from omnigraph.pipeline.job_costs import LoadCosts
from omnigraph.pipeline.judging import VerifiedLoad, verified
from omnigraph.pipeline.pinned import pin
from omnigraph.pipeline.progress import STAGED_PART, VERIFIED_PART, Counters, Meter, watched
from omnigraph.pipeline.session import beside_each_other, parallelism
from omnigraph.pipeline.sources import SPLIT_BYTES, Inputs, Split, cut, packed
from omnigraph.pipeline.stage import (
    FLUSH_BYTES,
    RESULT_DDL,
    SEED_BITS,
    LeftOut,
    LoadJob,
    StagedSplit,
    Staging,
    answered,
    answers,
    frame_task,
    stage_task,
)
from omnigraph.storage import metrics
from omnigraph.validate.listing import Destination
from omnigraph.write.embed import settings_for
from omnigraph.write.input.options import Options
from omnigraph.write.load import mode_of
from omnigraph.write.resolve import Mode

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("omnigraph.pipeline")
Progress = Callable[[str, int, int], None]  # phase, done, total
Unit = tuple[Split, ...]  # the input of one task


@frozen
class Tuning:
    """How a bulk load is divided."""

    split_bytes: int = SPLIT_BYTES
    flush_bytes: int = FLUSH_BYTES
    wave_units: int | None = None  # splits between two progress records; by default one per core
    waves_at_once: int = 3  # so that no core waits for the last task of a wave
    notes_apart: float = 20  # times the duration of a progress record, before the next
    judged_rows_max: int = (
        8_000_000  # rows whose ids, ends and unique values the driver compares alone
    )


def logged(phase: str, done: int, total: int) -> None:
    """Progress in the log."""
    log.info("%s: %d of %d", phase, done, total)


@dataclass(slots=True)
class BulkLoad:
    """One load: call `prepare` to do the work, then publish `verb`; `finish` at the end."""

    repo: Repository
    session: SparkSession | None
    source: Any
    mode: Mode
    branch: str
    options: Options = field(default_factory=Options)
    load_id: str | None = None
    tuning: Tuning = field(default_factory=Tuning)
    progress: Progress = logged
    violations: Destination | None = None
    _work: VerifiedLoad | None = None
    _plan: StoredPlan | None = None
    _noted: float = 0.0
    _note_seconds: float = 0.0
    _aside: Aside | None = None
    _costs: LoadCosts = field(init=False)
    _staged: Staging | None = None  # the last staging

    def __post_init__(self) -> None:
        self._costs = LoadCosts(self.session)
        self._aside = None if self.options.quarantine is None else Aside(self.options)

    def prepare(self, snapshot: Snapshot) -> VerifiedLoad:
        """Stage and verify on a state; raises if the input is invalid."""
        with failures_of(self.session):
            if self._aside is None:
                staged = self._still_staged(snapshot) or self._staging(snapshot, {})
                self._work = self._verified(staged, snapshot, self.violations)
            else:
                self._staged = None  # of another state
                self._work = self._aside.sorted_out(
                    lambda skip: self._staging(snapshot, skip),
                    lambda staged, lists: self._verified(staged, snapshot, lists),
                )
        self._work = self._with_report(self._work)
        self.progress("verify", 1, 1)
        metrics.progress("publishing", part=VERIFIED_PART)
        return self._work

    def _with_report(self, work: VerifiedLoad) -> VerifiedLoad:
        staged = self._staged
        if staged is None:
            return work
        size = sum(split.bytes for split in staged.inputs.splits)
        cost = self._costs.report(size, staged.splits)
        return replace(work, outcome=replace(work.outcome, cost=cost))

    def _verified(
        self, staged: Staging, snapshot: Snapshot, lists: Destination | None
    ) -> VerifiedLoad:
        self.progress("verify", 0, 1)
        metrics.progress("verifying", part=STAGED_PART)
        with self._costs.phase("verify"):
            return verified(staged, snapshot, self.session, self.tuning.judged_rows_max, lists)

    def verb(self, txn: WriteTxn) -> PublishPlan:
        """The plan of the load, verified on the given state."""
        work = self._work
        if work is None or not work.holds_on(self.repo, txn.snapshot, self.plan_id):
            work = self.prepare(txn.snapshot)
        self._work = work = work.on(txn.snapshot)
        return work.plan(self.plan_id)

    def finish(self) -> None:
        """Delete the plan of the load, which has ended."""
        if self._plan is not None:
            remove_plan(self.repo, self._plan.plan)
            self._plan = None

    # --- staging ---------------------------------------------------------------------------------------------------

    @property
    def plan_id(self) -> str | None:
        return None if self._plan is None else self._plan.plan

    def _still_staged(self, snapshot: Snapshot) -> Staging | None:
        """The last staging, if only its verdict does not hold on another state."""
        work = self._work
        if work is None or not work.rows_hold_on(self.repo, snapshot, self.plan_id):
            return None
        return self._staged

    def _staging(self, snapshot: Snapshot, left_out: LeftOut) -> Staging:
        with self._costs.phase("stage"):
            self._staged = self._stage(snapshot, left_out)
        return self._staged

    def _stage(self, snapshot: Snapshot, left_out: LeftOut) -> Staging:
        """The staging on this state, done before or now. Finished splits are not read again."""
        inputs = cut(self.source, snapshot.catalog, self.tuning.split_bytes)
        plan = self._plan or self._stored(snapshot, inputs) or self._begun(snapshot, inputs)
        if not self._usable(plan, snapshot, inputs):
            plan = self._begun(snapshot, inputs)
        self._plan = plan
        now = datetime.fromtimestamp(plan.created / 1_000_000, UTC)
        job = LoadJob(
            pin(self.repo, snapshot),
            self.branch,
            now,
            self.mode,
            self.options,
            plan.state["seed"],
            self.tuning.flush_bytes,
            settings_for(snapshot.embedding),
            left_out,
        )
        if gathers(inputs, self.options):
            return self._gathered(job, inputs)
        done = {k["split"]: StagedSplit.from_json(k) for k in plan.state.get("done", ())}
        units = tuple(packed(inputs.splits, self.tuning.split_bytes))
        done |= self._staged_before(units, left_out)
        with watched(self._meter(inputs, done.values())) as counters:
            left = [unit for unit in units if unit[0].index not in done]
            at_once = self.tuning.waves_at_once if self.session else parallelism(None)
            for some in _waves(self.session, job, self._in_waves(left), counters, at_once):
                done |= {one.split: one for one in some}
                self._note(done, units)
                self.progress("stage", len(done), len(inputs.splits))
            more, firsts = _run_frames(job, inputs, counters)
        self.progress("stage", len(inputs.splits), len(inputs.splits))
        done |= more
        return Staging(job, inputs, tuple(done[k] for k in sorted(done)), firsts)

    def _staged_before(self, units: Iterable[Unit], left_out: LeftOut) -> dict[int, StagedSplit]:
        """Splits of the previous quarantine round from which this one removes no row."""
        last = self._staged
        if self._aside is None or last is None:
            return {}
        known, skipped = {one.split: one for one in last.splits}, last.job.left_out
        found: dict[int, StagedSplit] = {}
        for unit in units:
            numbers = [split.index for split in unit]
            same = all(left_out.get(n) == skipped.get(n) for n in numbers)
            if same and all(n in known and known[n].is_clean for n in numbers):
                found |= {n: known[n] for n in numbers}
        return found

    def _gathered(self, job: LoadJob, inputs: Inputs) -> Staging:
        """Stage all rows in one pass, grouped by id; it cannot be resumed."""
        with watched(self._meter(inputs, ())) as counters:
            found = run_gathered(self.session, job, inputs, counters, self.tuning.split_bytes)
        count = len(inputs.splits)
        self.progress("stage", count, count)
        lines = Staging(job, inputs, tuple(found)).first_lines()
        return Staging(job, inputs, tuple(placed_lines(found, lines)), gathered=True)

    def _meter(self, inputs: Inputs, done: Collection[StagedSplit]) -> Meter:
        rows = sum(one.rows for one in done)
        total = None if inputs.frames else len(inputs.splits)
        return Meter(Counters.of(self.session), total, len(done), rows)

    def _in_waves(self, units: Sequence[Unit]) -> Iterable[Sequence[Unit]]:
        size = self.tuning.wave_units or (1 if self.session is None else parallelism(self.session))
        return (units[at : at + size] for at in range(0, len(units), size))

    def _begun(self, snapshot: Snapshot, inputs: Inputs) -> StoredPlan:
        """A lease on the files to be written, and the record of progress."""
        repo = self.repo
        plan = StoredPlan(
            plan=_plan_name(self.load_id) if self.load_id else repo.clock.fresh_id(),
            operation_id=self.load_id or "",
            kind="load",
            branch=self.branch,
            gc_epoch=snapshot.commit.gc_epoch,
            created=repo.clock.now(),
            tables=tuple(sorted(entry.path for entry in snapshot.commit.tables.values())),
            state={
                "seed": secrets.randbits(SEED_BITS),
                "input": self._fingerprint(inputs),
                "schema": snapshot.commit.schema,
                "versions": _versions(snapshot),
            },
        )
        save_plan(repo, plan)
        return plan

    def _stored(self, snapshot: Snapshot, inputs: Inputs) -> StoredPlan | None:
        """The plan of an earlier run of the same load, if its files still exist."""
        if self.load_id is None or self._aside is not None:
            return None  # the rows of its quarantine are no longer known
        found = load_plan(self.repo, _plan_name(self.load_id))
        return found if found is not None and self._usable(found, snapshot, inputs) else None

    def _usable(self, plan: StoredPlan, snapshot: Snapshot, inputs: Inputs) -> bool:
        state, epoch = plan.state, snapshot.commit.gc_epoch
        return (
            state["input"] == self._fingerprint(inputs)
            and state["schema"] == snapshot.commit.schema
            and (self.mode is not Mode.MERGE or state["versions"] == _versions(snapshot))
            and still_honoured(self.repo, plan.plan, plan.gc_epoch, epoch)
        )

    def _fingerprint(self, inputs: Inputs) -> str:
        """Identifies a repeated load: with any difference, staged splits would be of another load."""
        files = sorted(inputs.files.items())
        how = repr(
            (self.options, settings_for(self.repo.embedding))
        )  # without the key of a provider
        what = (self.mode, self.branch, files, inputs.splits, how)
        return hashlib.sha256(msgspec.json.encode(what)).hexdigest()

    def _note(self, done: Mapping[int, StagedSplit], units: Iterable[Unit]) -> None:
        """A heartbeat with progress a later run can resume from; it takes a small part of the time."""
        apart = self.tuning.notes_apart * self._note_seconds
        if self._plan is None or monotonic() < self._noted + apart:
            return
        began = monotonic()
        kept: list[Any] = []
        for unit in (
            units if self.load_id and self._aside is None else ()
        ):  # files of a unit belong to it as a whole
            found = [done[split.index] for split in unit if split.index in done]
            if len(found) == len(unit) and all(one.is_clean for one in found):
                kept += [one.to_json() for one in found]
        self._plan = renewed(self.repo, self._plan, done=kept)
        self._noted = monotonic()
        self._note_seconds = self._noted - began


def bulk_load(
    repo: Repository,
    session: SparkSession | None,
    source: Any,
    mode: str,
    branch: str,
    *,
    options: Options | None = None,
    load_id: str | None = None,
    tuning: Tuning | None = None,
    progress: Progress = logged,
    violations: Destination | None = None,
) -> BulkLoad:
    """A load to prepare and to publish."""
    return BulkLoad(
        repo,
        session,
        source,
        mode_of(mode),
        branch,
        options or Options(),
        load_id,
        tuning or Tuning(),
        progress,
        violations,
    )


def publishing(
    repo: Repository, job: LoadJob, table_id: str, staged: Sequence[StagedSplit]
) -> Callable[[WriteTxn], PublishPlan]:
    """The write that publishes splits staged elsewhere, in a process without a Spark session. Their rows cannot be
    read again, so that it is a conflict if others touched rows they were completed from."""
    splits = tuple(sorted(staged, key=lambda split: split.split))
    staging = Staging(job, Inputs(named=(table_id,)), splits)
    work: VerifiedLoad | None = None

    def verb(txn: WriteTxn) -> PublishPlan:
        nonlocal work
        work = work or verified(staging, job.pinned.snapshot(), None)
        if not work.holds_on(repo, txn.snapshot):
            if not work.rows_hold_on(repo, txn.snapshot):
                raise WriteConflict(
                    f"branch {job.branch!r} changed while rows were being written to it",
                    help="Nothing was changed. Write again.",
                )
            work = verified(staging, txn.snapshot, None)
        work = work.on(txn.snapshot)
        return work.plan()

    return verb


def _plan_name(load_id: str) -> str:
    return "load-" + hashlib.sha256(load_id.encode()).hexdigest()[:32]


def _versions(snapshot: Snapshot) -> dict[str, str]:
    return {table: entry.version for table, entry in sorted(snapshot.commit.tables.items())}


def _waves(
    session: SparkSession | None,
    job: LoadJob,
    waves: Iterable[Sequence[Unit]],
    counters: Counters,
    at_once: int,
) -> Iterator[list[StagedSplit]]:
    """Stage splits wave by wave."""

    def run(wave: Sequence[Unit]) -> list[StagedSplit]:
        task = stage_task(job, tuple(wave), counters)
        return list(answers(session, task, len(wave), StagedSplit))

    yield from beside_each_other(session, run, waves, at_once)


def _run_frames(
    job: LoadJob, inputs: Inputs, counters: Counters
) -> tuple[dict[int, StagedSplit], tuple[int, ...]]:
    done: dict[int, StagedSplit] = {}
    firsts: list[int] = []
    for table, frame in inputs.frames:
        first = max([len(inputs.splits), *(split + 1 for split in done)])
        firsts.append(first)
        rows = frame.mapInArrow(frame_task(job, table, first, counters), RESULT_DDL).collect()
        done |= {one.split: one for one in answered(rows, StagedSplit)}
    return done, tuple(firsts)
