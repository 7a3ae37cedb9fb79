"""Load inputs of any size as one commit: stage in tasks, verify on a version nobody sees, publish like any write.

Staging and verifying happen before the write is queued, so that other writers of the process do not wait for them. If
the branch moved meanwhile, the verdict is found again; rows are read again only where they merge with stored ones.
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
import pyarrow as pa

from omnigraph.core.leases import load_plan, remove_plan, renewed, save_plan, still_honoured
from omnigraph.core.plan import Append, Overwrite, PublishPlan, TableAction, Upsert, read_whole
from omnigraph.core.publisher import carries_over
from omnigraph.core.records import StoredPlan
from omnigraph.core.repository import Repository
from omnigraph.core.snapshot import Snapshot
from omnigraph.core.stage import found_again
from omnigraph.core.txn import WriteTxn
from omnigraph.errors import Violation, WriteConflict
from omnigraph.model.catalog import EdgeType
from omnigraph.pipeline.facts import LoadFacts
from omnigraph.pipeline.failures import spark_failures
from omnigraph.pipeline.lookups import are_few, nothing_is_wrong
from omnigraph.pipeline.pinned import pin
from omnigraph.pipeline.progress import STAGED_PART, VERIFIED_PART, Counters, Meter, watched
from omnigraph.pipeline.rows import kind_by_table
from omnigraph.pipeline.screen import keys_hold
from omnigraph.pipeline.session import beside_each_other, parallelism
from omnigraph.pipeline.sources import SPLIT_BYTES, Inputs, Split, cut, packed
from omnigraph.pipeline.stage import (
    FLUSH_BYTES,
    MANY,
    RESULT_DDL,
    SEED_BITS,
    InputPlace,
    LoadJob,
    StagedSplit,
    Staging,
    answered,
    first_keys,
    frame_task,
    from_ipc,
    in_order,
    locate_task,
    located,
    placed,
    stage_task,
)
from omnigraph.pipeline.table_versions import TableVersion, numbers
from omnigraph.pipeline.verify import (
    OnSpark,
    Touched,
    Verification,
    counts_hold,
    judge_for,
    verify,
)
from omnigraph.pipeline.violation_report import offenders, unreadable
from omnigraph.storage import metrics
from omnigraph.storage.tables import ADDRESS, NewFragments, TableEdit
from omnigraph.validate.evaluate import report_of
from omnigraph.validate.listing import Destination, listing
from omnigraph.write.embed import settings_here
from omnigraph.write.input.options import Options
from omnigraph.write.input.problems import Problems
from omnigraph.write.load import LoadOutcome, mode_of
from omnigraph.write.resolve import Mode

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("omnigraph.pipeline")
Progress = Callable[[str, int, int], None]  # phase, done, of how many
Unit = tuple[Split, ...]  # what one task reads


@dataclass(frozen=True, slots=True)
class Tuning:
    """How a bulk load is cut up."""

    split_bytes: int = SPLIT_BYTES
    flush_bytes: int = FLUSH_BYTES
    wave_units: int | None = (
        None  # of splits between two notes of progress; by default one per core
    )
    waves_at_once: int = 3  # so that no core waits for the last task of a wave
    notes_apart: float = 20  # times as long as a note of progress took, before the next
    judged_rows_max: int = (
        8_000_000  # rows whose ids, ends and unique values the driver compares alone
    )


def logged(phase: str, done: int, total: int) -> None:
    """Progress for whoever listens to the log."""
    log.info("%s: %d of %d", phase, done, total)


@dataclass(slots=True)
class BulkLoad:
    """One load: call `prepare` to do the work, then publish `verb`; `finish` when it is over."""

    repo: Repository
    session: SparkSession
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

    def prepare(self, snapshot: Snapshot) -> VerifiedLoad:
        """Stage and verify on a state; raises what is wrong with the input."""
        with spark_failures():
            staged = self._staging(snapshot)
            self.progress("verify", 0, 1)
            metrics.progress("verifying", part=STAGED_PART)
            limit, lists = self.tuning.judged_rows_max, self.violations
            self._work = verified(staged, snapshot, self.session, limit, lists)
        self.progress("verify", 1, 1)
        metrics.progress("publishing", part=VERIFIED_PART)
        return self._work

    def verb(self, txn: WriteTxn) -> PublishPlan:
        """What the load wants, judged on the state it is given."""
        work = self._work
        if work is None or not self._holds(work, txn.snapshot):
            work = self.prepare(txn.snapshot)
        self._work = work = work.on(txn.snapshot)
        return work.plan(self.mode, self.plan_id)

    def finish(self) -> None:
        """The load is over: its plan is not needed any more."""
        if self._plan is not None:
            remove_plan(self.repo, self._plan.plan)
            self._plan = None

    # --- staging ---------------------------------------------------------------------------------------------------

    @property
    def plan_id(self) -> str | None:
        return None if self._plan is None else self._plan.plan

    def _staging(self, snapshot: Snapshot) -> Staging:
        """What was staged on this state before, or is now. Splits that are done are not read again."""
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
            settings_here(),
        )
        done = {k["split"]: StagedSplit.from_json(k) for k in plan.state.get("done", ())}
        units = tuple(packed(inputs.splits, self.tuning.split_bytes))
        with watched(self._meter(inputs, done.values())) as counters:
            left = [unit for unit in units if unit[0].index not in done]
            waves, at_once = self._in_waves(left), self.tuning.waves_at_once
            for some in _waves(self.session, job, waves, counters, at_once):
                done |= {one.split: one for one in some}
                self._note(done, units)
                self.progress("stage", len(done), len(inputs.splits))
            more, firsts = _run_frames(job, inputs, counters)
        self.progress("stage", len(inputs.splits), len(inputs.splits))
        done |= more
        return Staging(job, inputs, tuple(done[k] for k in sorted(done)), firsts)

    def _meter(self, inputs: Inputs, done: Collection[StagedSplit]) -> Meter:
        rows = sum(one.rows for one in done)
        total = None if inputs.frames else len(inputs.splits)
        return Meter(Counters.of(self.session), total, len(done), rows)

    def _in_waves(self, units: Sequence[Unit]) -> Iterable[Sequence[Unit]]:
        size = self.tuning.wave_units or parallelism(self.session)
        return (units[at : at + size] for at in range(0, len(units), size))

    def _begun(self, snapshot: Snapshot, inputs: Inputs) -> StoredPlan:
        """A lease on what is about to be written, and the place where progress is noted."""
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
        """The plan of an earlier run of the same load, if its files are still there."""
        if self.load_id is None:
            return None
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
        """What a repetition is compared by: with anything else, staged splits would be of another load."""
        files = sorted(inputs.files.items())
        how = repr((self.options, settings_here()))  # the key of a provider does not show
        what = (self.mode, self.branch, files, inputs.splits, how)
        return hashlib.sha256(msgspec.json.encode(what)).hexdigest()

    def _note(self, done: Mapping[int, StagedSplit], units: Iterable[Unit]) -> None:
        """A sign of life, with progress that a later run may rely on; it takes a small part of the time."""
        apart = self.tuning.notes_apart * self._note_seconds
        if self._plan is None or monotonic() < self._noted + apart:
            return
        began = monotonic()
        kept: list[Any] = []
        for unit in units if self.load_id else ():  # what a unit wrote belongs to it as a whole
            found = [done[split.index] for split in unit if split.index in done]
            if len(found) == len(unit) and all(one.is_clean for one in found):
                kept += [one.to_json() for one in found]
        self._plan = renewed(self.repo, self._plan, done=kept)
        self._noted = monotonic()
        self._note_seconds = self._noted - began

    def _holds(self, work: VerifiedLoad, snapshot: Snapshot) -> bool:
        """Whether the verdict and the files are good for another state: nothing they rest on has changed since."""
        plan = work.plan(self.mode, self.plan_id)
        return carries_over(self.repo, plan, work.base, snapshot)


def bulk_load(
    repo: Repository,
    session: SparkSession,
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
    job: LoadJob, table_id: str, staged: Sequence[StagedSplit]
) -> Callable[[WriteTxn], PublishPlan]:
    """The write that publishes splits somebody else staged, in a process that has no Spark session."""
    staging = Staging(job, Inputs(named=(table_id,)), tuple(sorted(staged, key=lambda s: s.split)))
    base = job.pinned.snapshot().commit

    def verb(txn: WriteTxn) -> PublishPlan:
        now = txn.snapshot.commit
        merged = job.mode is Mode.MERGE and base.tables != now.tables
        if base.schema != now.schema or base.gc_epoch != now.gc_epoch or merged:
            raise WriteConflict(
                f"branch {job.branch!r} changed while rows were being written to it",
                help="Nothing was changed. Write again.",
            )
        return verified(staging, txn.snapshot, None).plan(job.mode)

    return verb


def _plan_name(load_id: str) -> str:
    return "load-" + hashlib.sha256(load_id.encode()).hexdigest()[:32]


def _versions(snapshot: Snapshot) -> dict[str, str]:
    return {table: entry.version for table, entry in sorted(snapshot.commit.tables.items())}


@dataclass(frozen=True, slots=True)
class VerifiedLoad:
    """A load that is staged and found valid on a state."""

    base: Snapshot
    actions: tuple[TableAction, ...]
    consulted: frozenset[str]
    facts: LoadFacts
    outcome: LoadOutcome

    def plan(self, mode: Mode, plan_id: str | None = None) -> PublishPlan:
        whole = mode is Mode.OVERWRITE
        return PublishPlan(
            kind="load",
            actions=self.actions,
            reads=read_whole(self.consulted) if whole else self.facts.reads(self.consulted),
            strict=whole,
            result=self.outcome.to_json(),
            value=self.outcome,
            plan_id=plan_id,
        )

    def on(self, snapshot: Snapshot) -> VerifiedLoad:
        """The same on a later state, where the rows it replaces may be in other places."""
        if snapshot.commit == self.base.commit:
            return self
        actions = tuple(_found_again(action, self.base, snapshot) for action in self.actions)
        return replace(self, base=snapshot, actions=actions)


def _found_again(action: TableAction, then: Snapshot, now: Snapshot) -> TableAction:
    if not isinstance(action, Upsert):
        return action
    table = action.table_id
    return replace(action, before=found_again(action.before, then.table(table), now.table(table)))


def _waves(
    session: SparkSession,
    job: LoadJob,
    waves: Iterable[Sequence[Unit]],
    counters: Counters,
    at_once: int,
) -> Iterator[list[StagedSplit]]:
    """What becomes of splits, wave by wave."""

    def run(wave: Sequence[Unit]) -> list[StagedSplit]:
        task = stage_task(job, tuple(wave), counters)
        rows = numbers(session, len(wave)).mapInArrow(task, RESULT_DDL)
        return list(answered(rows.collect(), StagedSplit))

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


# --- judging -----------------------------------------------------------------------------------------------------


def verified(
    staging: Staging,
    snapshot: Snapshot,
    session: SparkSession | None,
    judged_rows_max: int = 0,
    violations: Destination | None = None,
) -> VerifiedLoad:
    """Staged splits as a valid write on a state. Without a session the driver judges alone."""
    with listing(violations, lambda: unreadable(session, staging)):
        _refuse_problems(staging)
    actions = tuple(_action(table, staging) for table in sorted(_tables(staging)))
    case = _case(staging, snapshot, actions, session, judged_rows_max)
    if not _is_valid(staging, case, actions):
        with listing(violations, lambda: offenders(session, staging, case)):
            ids, *others = verify(case, lambda wanted: _locate(session, staging, wanted))
            report_of([_keys(staging) + ids, *others]).raise_violations()
    facts = LoadFacts(case.touched, snapshot.catalog)
    return VerifiedLoad(snapshot, actions, _consulted(case), facts, _outcome(staging, snapshot))


def _is_valid(staging: Staging, case: Verification, actions: Iterable[TableAction]) -> bool:
    """Whether nothing is wrong, found out in the way that costs least."""
    if not all(one.is_clean for one in staging.splits):
        return False
    if are_few(case, sum(one.rows for one in staging.splits)):
        txn = WriteTxn(case.snapshot, staging.job.branch, staging.job.now, case.snapshot.catalog)
        before = {a.table_id: a.before for a in actions if isinstance(a, Upsert)}
        return nothing_is_wrong(case, txn, before)
    session = case.judge.session if isinstance(case.judge, OnSpark) else None
    return keys_hold(case, session) and counts_hold(case)


def _case(
    staging: Staging,
    snapshot: Snapshot,
    actions: Sequence[TableAction],
    session: SparkSession | None,
    judged_rows_max: int,
) -> Verification:
    touched = {
        action.table_id: _touched(snapshot, action.table_id, staging, action) for action in actions
    }
    return Verification(
        judge_for(session, touched.values(), judged_rows_max),
        snapshot,
        staging.job.mode,
        _in_order(touched),
        _inner(staging),
        _values(staging),
    )


def _refuse_problems(staging: Staging) -> None:
    """What could not be read at all: the first of it in the order of the input."""
    for one in staging.splits:
        if one.failure is not None:
            raise one.failure.error()
    lines = staging.first_lines()
    forms = {split.index: split.form for split in staging.inputs.splits}
    problems, told = Problems(), set[tuple[str | None, str | None]]()
    for one in staging.splits:
        for problem in one.problems:
            if forms.get(one.split) == "lines":
                problems.add(placed(problem, lines[one.split]))
            elif (problem.file, problem.property) not in told:  # a table tells one per column
                told.add((problem.file, problem.property))
                problems.add(problem)
    problems.settle()


def _tables(staging: Staging) -> set[str]:
    found = set(staging.inputs.named)
    for one in staging.splits:
        found |= one.fragments.keys() | one.before.keys() | one.repeated.keys()
    return found


def _action(table: str, staging: Staging) -> TableAction:
    parts = [part for one in staging.splits for part in one.fragments.get(table, ())]
    rows = NewFragments(tuple(text for text, _ in parts), sum(count for _, count in parts))
    if staging.job.mode is Mode.OVERWRITE:
        return Overwrite(table, rows)
    before = [from_ipc(one.before[table]) for one in staging.splits if table in one.before]
    return Upsert(table, rows, pa.concat_tables(before)) if before else Append(table, rows)


def _touched(snapshot: Snapshot, table: str, staging: Staging, action: TableAction) -> Touched:
    """The version a table would have, written and named by nobody."""
    base = snapshot.table(table)
    match action:
        case Upsert(_, NewFragments() as rows, before):
            once = before.group_by("id").aggregate([(ADDRESS, "min")])
            gone = once[f"{ADDRESS}_min"].combine_chunks()
            edit = TableEdit(delete=gone, append=rows)
        case Overwrite(_, NewFragments() as rows):
            edit = TableEdit(replace_all=True, append=rows)
        case Append(_, NewFragments() as rows):
            edit = TableEdit(append=rows)
        case _:
            raise AssertionError("a bulk load appends, merges or overwrites")
    staged = snapshot.tables.stage(base.ref, edit)
    return Touched(
        kind_by_table(snapshot.catalog, table),
        TableVersion.of(snapshot.root, base),
        TableVersion.of(snapshot.root, snapshot.tables.open(staged.ref), base),
        any(table in one.named for one in staging.splits),
    )


def _in_order(touched: Mapping[str, Touched]) -> dict[str, Touched]:
    """Node types, then edge types, each by name."""

    def place(item: tuple[str, Touched]) -> tuple[bool, str]:
        kind = item[1].kind
        return isinstance(kind, EdgeType), kind.name

    return dict(sorted(touched.items(), key=place))


def _inner(staging: Staging) -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for one in staging.splits:
        for table, ids in one.repeated.items():
            found[table] = found.get(table, frozenset()) | ids
    return {table: frozenset(sorted(ids)[:MANY]) for table, ids in found.items()}


def _values(staging: Staging) -> dict[str, list[Violation]]:
    """Broken values by table, each rule's first by id, rules in the order of the schema."""
    lines = staging.first_lines()
    found: dict[str, list[Violation]] = {}
    for one in staging.splits:
        for table, violations in one.values.items():
            found.setdefault(table, []).extend(placed(v, lines[one.split]) for v in violations)
    catalog = staging.job.pinned.snapshot().catalog
    return {
        table: in_order(violations, kind_by_table(catalog, table))
        for table, violations in found.items()
    }


def _keys(staging: Staging) -> list[Violation]:
    lines = staging.first_lines()
    return first_keys([placed(v, lines[one.split]) for one in staging.splits for v in one.keys])


def _locate(
    session: SparkSession | None, staging: Staging, wanted: Mapping[str, frozenset[str]]
) -> list[InputPlace]:
    """Read the input once more, for the rows somebody asks about. Rows of DataFrames have no place."""
    splits = staging.inputs.splits
    if session is None:
        found = [place for split in splits for place in located(staging.job, split, wanted)]
    else:
        task = locate_task(staging.job, splits, wanted)
        rows = numbers(session, len(splits)).mapInArrow(task, RESULT_DDL).collect()
        found = [place for places in answered(rows, list[InputPlace]) for place in places]
    lines = staging.first_lines()
    return [
        place if place.line is None else replace(place, line=place.line + lines[place.split])
        for place in found
    ]


def _consulted(case: Verification) -> frozenset[str]:
    """The tables the verdict rests on: those written, the nodes of their edges, the edges of nodes that go."""
    found = set(case.touched)
    catalog = case.snapshot.catalog
    for touched in case.touched.values():
        kind = touched.kind
        if isinstance(kind, EdgeType):
            found |= {catalog.nodes[name].table_id for name in (kind.from_type, kind.to_type)}
        elif case.mode is Mode.OVERWRITE:
            found |= {edge.table_id for edge in catalog.incident_edges(kind.name)}
    return frozenset(found)


def _outcome(staging: Staging, snapshot: Snapshot) -> LoadOutcome:
    nodes: dict[str, int] = {}
    edges: dict[str, int] = {}
    fresh: dict[str, int] = {}
    for table in staging.inputs.named:
        kind = kind_by_table(snapshot.catalog, table)
        (edges if isinstance(kind, EdgeType) else nodes)[kind.name] = 0
    for one in staging.splits:
        for counts, more in ((nodes, one.nodes), (edges, one.edges), (fresh, one.new_each_time)):
            for name, count in more.items():
                counts[name] = counts.get(name, 0) + count
    return LoadOutcome(nodes, edges, fresh)
