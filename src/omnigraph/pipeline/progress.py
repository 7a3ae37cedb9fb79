"""How far tasks are, for whoever looks at the operation meanwhile.

Tasks count the rows and pieces they finish; the driver looks at the counters from time to time. A task that runs again
may count again, so the part is capped: this is for people, the result counts what Spark reported.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from omnigraph.pipeline.session import context_of
from omnigraph.storage import metrics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOK_SECONDS = 0.5
STAGED_PART = 0.8  # of a load's work, about; the rest is verifying and publishing
VERIFIED_PART = 0.95


class _Uncounted:
    """Takes the place of a counter where tasks have none."""

    value = 0

    def add(self, count: int) -> None:
        """Nobody hears of it."""


@dataclass(frozen=True, slots=True)
class Counters:
    """What tasks add to, wherever they run."""

    rows: Any
    pieces: Any

    @classmethod
    def of(cls, session: SparkSession) -> Counters:
        context = context_of(session)
        if context is None:  # behind Spark Connect nobody adds up
            return cls(_Uncounted(), _Uncounted())
        return cls(context.accumulator(0), context.accumulator(0))

    def add(self, rows: int) -> None:
        """One more piece is done."""
        self.rows.add(rows)
        self.pieces.add(1)


@dataclass(frozen=True, slots=True)
class Meter:
    """Staging: how much there is, and how much of it was done before."""

    counters: Counters
    total: int | None  # pieces; how many a DataFrame has is known when it has run
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
    """Tell how far the tasks started inside are."""
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
