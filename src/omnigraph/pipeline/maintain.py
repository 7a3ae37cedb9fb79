"""Maintenance on Spark: tasks rewrite fragments and build segments of indices; one commit publishes all of it.

The rewritten version is staged first, so that indices can be built over it; neither is visible before the commit. If
the table was written to meanwhile, the results of the tasks are applied to the new version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from omnigraph.core.leases import remove_plan, save_plan, still_honoured
from omnigraph.core.plan import CreateIndex, PublishPlan, Rewrite
from omnigraph.core.records import StoredPlan
from omnigraph.core.repository import Repository
from omnigraph.core.snapshot import Snapshot
from omnigraph.core.txn import WriteTxn
from omnigraph.pipeline.failures import spark_failures
from omnigraph.pipeline.pinned import adopt, store_environment
from omnigraph.pipeline.rows import kind_by_table
from omnigraph.pipeline.stage import RESULT_DDL, answer, answered
from omnigraph.pipeline.table_versions import numbers, open_table, open_tables
from omnigraph.storage.lance.parts import (
    SegmentPart,
    build_segment,
    compact_part,
    compaction_parts,
    segment_parts,
)
from omnigraph.storage.lance.reading import LanceTable
from omnigraph.storage.tables import Staged, TableRef
from omnigraph.write.maintain import TableWork, wanted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")


@dataclass(slots=True)
class BulkUpkeep:
    """Maintenance of one table: `prepare` to do the work, then publish `verb`; `finish` at the end."""

    repo: Repository
    session: SparkSession
    table_id: str
    branch: str
    _done: tuple[TableWork, Staged] | None = None
    _plan: StoredPlan | None = None

    def prepare(self, snapshot: Snapshot) -> None:
        """Rewrite and index in tasks what the table needs on a state."""
        self._done = None
        if self.table_id not in snapshot.commit.tables:
            return
        work = wanted(snapshot, kind_by_table(snapshot.catalog, self.table_id))
        if not work.is_nothing:
            self._begin(snapshot)
            with spark_failures():
                self._done = work, self._staged(snapshot, work)

    def verb(self, txn: WriteTxn) -> PublishPlan:
        """The plan for the table on the given state."""
        if not self._fitted(txn.snapshot):
            self.prepare(txn.snapshot)
        if self._done is None:
            return PublishPlan(kind="optimize", empty=True, value=TableWork(False, ()))
        work, staged = self._done
        action = (Rewrite if work.compact else CreateIndex)(
            self.table_id, work.indices, done=staged
        )
        plan_id = None if self._plan is None else self._plan.plan
        return PublishPlan(kind="optimize", actions=(action,), value=work, plan_id=plan_id)

    def finish(self) -> None:
        """Release the lease of the work, which has ended."""
        if self._plan is not None:
            remove_plan(self.repo, self._plan.plan)
            self._plan = None

    def _fitted(self, snapshot: Snapshot) -> bool:
        """Whether the results are valid on a state, in which the table may have changed."""
        if self._done is None or self._plan is None or self.table_id not in snapshot.commit.tables:
            return False
        if not still_honoured(
            self.repo, self._plan.plan, self._plan.gc_epoch, snapshot.commit.gc_epoch
        ):
            return False
        work, staged = self._done
        now = snapshot.ref(self.table_id)
        if staged.base != now:
            moved = self.repo.tables.recommit(staged, now)
            if moved is None:
                return False
            self._done = work, moved
        return True

    def _begin(self, snapshot: Snapshot) -> None:
        """Take a lease on the files to be written."""
        self.finish()
        clock = self.repo.clock
        self._plan = StoredPlan(
            plan=clock.fresh_id(),
            operation_id="",
            kind="optimize",
            branch=self.branch,
            gc_epoch=snapshot.commit.gc_epoch,
            created=clock.now(),
            tables=(snapshot.commit.tables[self.table_id].path,),
        )
        save_plan(self.repo, self._plan)

    # --- the work ----------------------------------------------------------------------------------------------------

    def _staged(self, snapshot: Snapshot, work: TableWork) -> Staged:
        root, base = snapshot.root, snapshot.ref(self.table_id)
        tables = open_tables(root)
        staged = Staged(base, base, snapshot.table(self.table_id).count())
        if work.compact:
            parts = compaction_parts(tables.open(base))
            answers = self._run(root, base, parts, compact_part, str)
            staged = tables.stage_compacted(base, answers)
        segments = segment_parts(tables.open(staged.ref), work.indices)
        built = self._run(root, staged.ref, segments, build_segment, bytes)
        return tables.stage_segments(staged, segments, built)

    def _run(
        self,
        root: str,
        ref: TableRef,
        parts: tuple[Any, ...],
        do: Callable[[LanceTable, Any], T],
        kind: type[T],
    ) -> list[T]:
        """The answers of tasks that do a part each, in the order of the parts."""
        if not parts:
            return []
        rows = numbers(self.session, len(parts)).mapInArrow(_task(root, ref, parts, do), RESULT_DDL)
        found: dict[int, T] = dict(answered(rows.collect(), tuple[int, kind]))  # type: ignore[valid-type]
        return [found[number] for number in range(len(parts))]


def _task(
    root: str, ref: TableRef, parts: tuple[str | SegmentPart, ...], do: Callable[..., Any]
) -> Any:
    environment = store_environment()

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        adopt(environment)
        table = open_table(root, ref)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield answer((number, do(table, parts[number])))

    return run
