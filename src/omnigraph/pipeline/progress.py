"""Progress of tasks, for observers of the operation.

Tasks count the rows and pieces they finish; the driver polls the counters. A repeated task may count again, so the
fraction is capped: this is for people, the result has the counts that Spark reported.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import copy_context
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any

from omnigraph.model.frozen import frozen
from omnigraph.pipeline.session import context_of
from omnigraph.storage import metrics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOK_SECONDS = 0.5
STAGED_PART = 0.8  # of a load's work, about; the rest is verifying and publishing
VERIFIED_PART = 0.95


class _Count:
    """A counter of tasks in the threads of this process."""

    def __init__(self) -> None:
        self.value = 0
        self._lock = Lock()

    def add(self, count: int) -> None:
        """Count up."""
        with self._lock:
            self.value += count


class _Uncounted:
    """A substitute counter for tasks without counters."""

    value = 0

    def add(self, count: int) -> None:
        """Discard the count."""


@frozen
class Counters:
    """Counters that tasks add to, wherever they run."""

    rows: Any
    pieces: Any

    @classmethod
    def of(cls, session: SparkSession | None) -> Counters:
        if session is None:
            return cls(_Count(), _Count())
        context = context_of(session)
        if context is None:  # Spark Connect has no accumulators
            return cls(_Uncounted(), _Uncounted())
        return cls(context.accumulator(0), context.accumulator(0))

    def add(self, rows: int) -> None:
        """Count one finished piece and its rows."""
        self.rows.add(rows)
        self.pieces.add(1)


@frozen
class Meter:
    """The amount of staging work, and how much of it was done before."""

    counters: Counters
    total: int | None  # pieces; None for a DataFrame, whose number is unknown until it has run
    pieces_before: int = 0
    rows_before: int = 0

    def tell(self) -> None:
        metrics.progress("staging", self.rows_before + int(self.counters.rows.value), self._part())

    def _part(self) -> float | None:
        if not self.total:
            return None
        done = min(self.total, self.pieces_before + int(self.counters.pieces.value))
        return STAGED_PART * done / self.total


@contextmanager
def watched(meter: Meter) -> Iterator[Counters]:
    """Report the progress of tasks started inside."""
    over = Event()

    def watch() -> None:
        while not over.wait(LOOK_SECONDS):
            meter.tell()

    meter.tell()
    thread = Thread(target=copy_context().run, args=(watch,), name="omnigraph-meter", daemon=True)
    thread.start()
    try:
        yield meter.counters
    finally:
        over.set()
        thread.join()
    meter.tell()
