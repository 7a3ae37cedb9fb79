"""The cost of a load in pieces, for its report; on Spark with stages, tasks, bytes shuffled or spilled, and skew.

Spark keeps this for some hundred stages; what it has dropped, or does not report with Spark Connect, is left out.
Concurrent stages of other work in the same session are counted, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from statistics import median
from time import monotonic
from typing import TYPE_CHECKING, Any

from omnigraph.pipeline.session import context_of
from omnigraph.pipeline.stage import StagedSplit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

JOBS_READ_MAX = 200  # each takes several calls
SETTLE_MILLISECONDS = 2_000  # that Spark may take to record what has just ended


@dataclass(slots=True)
class LoadCosts:
    """Collects the cost of a load, phase by phase."""

    session: SparkSession | None
    seconds: dict[str, float] = field(default_factory=dict)
    _first_job: int | None = None

    def __post_init__(self) -> None:
        self._first_job = _next_job(self.session)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Count the time inside; a phase may be entered several times."""
        began = monotonic()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + monotonic() - began

    def report(self, input_bytes: int, splits: Iterable[StagedSplit]) -> dict[str, Any]:
        """All of it."""
        rows = [one.rows for one in splits if one.rows]
        engine = "local" if self.session is None else "spark"
        found: dict[str, Any] = {"engine": engine, "bytes": input_bytes, "pieces": len(rows)}
        found["seconds"] = {name: round(taken, 3) for name, taken in self.seconds.items()}
        if rows:
            found["skew"] = round(max(rows) / max(1, median(rows)), 2)
        return found | _stages(self.session, self._first_job)


def _next_job(session: SparkSession | None) -> int | None:
    context = None if session is None else context_of(session)
    if context is None:
        return None
    with suppress(Exception):  # a Spark version that keeps this elsewhere
        return int(context._jsc.sc().dagScheduler().numTotalJobs())
    return None


def _stages(session: SparkSession | None, first: int | None) -> dict[str, int]:
    last = _next_job(session)
    if session is None or first is None or last is None:
        return {}
    with suppress(Exception):
        context = context_of(session)
        inner, tracker = context._jsc.sc(), context.statusTracker()
        inner.listenerBus().waitUntilEmpty(SETTLE_MILLISECONDS)
        jobs = [tracker.getJobInfo(number) for number in range(first, last)[:JOBS_READ_MAX]]
        stages = sorted({stage for job in jobs if job is not None for stage in job.stageIds})
        counts = [found for stage in stages if (found := _stage(inner, stage)) is not None]
        names = ("tasks", "shuffled_bytes", "spilled_bytes", "task_milliseconds")
        added = {name: sum(one[place] for one in counts) for place, name in enumerate(names)}
        return {"stages": len(counts), **added}
    return {}


def _stage(inner: Any, number: int) -> tuple[int, int, int, int] | None:
    with suppress(Exception):  # it was skipped, or is too old
        found = inner.statusStore().lastStageAttempt(number)
        spilled = int(found.memoryBytesSpilled()) + int(found.diskBytesSpilled())
        shuffled = int(found.shuffleWriteBytes())
        return int(found.numTasks()), shuffled, spilled, int(found.executorRunTime())
    return None
