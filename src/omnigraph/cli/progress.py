"""Long operations: progress on stderr while they run, and what Ctrl-C leaves behind."""

from __future__ import annotations

import json
import math
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event, Thread
from typing import TYPE_CHECKING

from omnigraph.cli.commits import counted, human_bytes
from omnigraph.cli.exits import Interrupted
from omnigraph.cli.options import ProgressMode, Show, WriterOptions
from omnigraph.errors import OmnigraphError

if TYPE_CHECKING:
    from omnigraph.graph import Graph
    from omnigraph.storage.metrics import Cost

PATIENCE_SECONDS = 0.5  # shorter work is not reported
NEWER_COMMITS_MAX = 100
PERIOD_SECONDS = 0.2
JSON_PERIOD_SECONDS = 1.0
BAR_WIDTH = 20
NEARLY = 0.99  # unfinished work is never shown as complete
CLEAR_LINE = "\r\x1b[K"


@contextmanager
def writing(
    graph: Graph, branch: str, phase: str, writer: WriterOptions, show: Show
) -> Iterator[None]:
    """Around a write: reports progress; on Ctrl-C says whether anything was published."""
    with explaining_interrupts(graph, branch), reporting(phase, writer.progress, quiet=show.quiet):
        yield


@contextmanager
def running(phase: str, writer: WriterOptions, *, quiet: bool, leaves: str) -> Iterator[None]:
    """Around other long work: reports progress; on Ctrl-C says what it leaves behind."""
    try:
        with reporting(phase, writer.progress, quiet=quiet):
            yield
    except KeyboardInterrupt:
        raise Interrupted(leaves) from None


@contextmanager
def reporting(phase: str, mode: ProgressMode, *, quiet: bool = False) -> Iterator[None]:
    """Report on the work inside, in the way that was asked for."""
    from omnigraph.storage import metrics

    with metrics.operation(phase) as cost:
        reporter = _reporter(phase, cost, mode, quiet)
        if reporter is None:
            yield
            return
        reporter.start()
        try:
            yield
        finally:
            reporter.stop()


def _reporter(phase: str, cost: Cost, mode: ProgressMode, quiet: bool) -> Reporter | None:
    if mode is ProgressMode.JSON:
        return Reporter(phase, cost, as_json=True)
    if quiet or mode is ProgressMode.NONE or not sys.stderr.isatty():
        return None
    return Reporter(phase, cost, as_json=False)


# --- interrupts --------------------------------------------------------------------------------------------------


@contextmanager
def explaining_interrupts(graph: Graph, branch: str) -> Iterator[None]:
    """Around a write: an interrupt looks at the branch to say whether anything was published."""
    before = _head(graph, branch)
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(_outcome(graph, branch, before)) from None


def _head(graph: Graph, branch: str) -> str | None:
    try:
        return graph.snapshot(branch).commit_id
    except OmnigraphError:
        return None  # a branch that the write itself would create


def _outcome(graph: Graph, branch: str, before: str | None) -> str:
    after = _head(graph, branch)
    if after == before:
        return f"nothing was published; {branch} is as it was"
    newer: list[str] = []
    for commit in graph.log(branch, limit=NEWER_COMMITS_MAX):
        if commit.id == before:
            break
        newer.append(commit.id)
    return f"{branch} moved meanwhile: {', '.join(newer)} published; `omnigraph show` shows by whom"


# --- progress ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Moment:
    """How far the work is."""

    phase: str
    seconds: float
    rows: int
    requests: int
    bytes_read: int
    bytes_written: int
    part: float | None = None  # of the work, where it is known how much there is
    seconds_left: float | None = None  # an estimate
    input_read: int = 0  # bytes of files
    input_bytes: int = 0
    over: float | None = None  # of the time it takes, by the estimate; never less than it was

    def to_json(self) -> dict[str, object]:
        return {
            "phase": self.phase,
            "seconds": round(self.seconds, 3),
            "rows": self.rows,
            "rows_per_second": round(self.rows / self.seconds) if self.seconds else 0,
            "requests": self.requests,
            "bytes_read": self.bytes_read,
            "bytes_written": self.bytes_written,
            "input_read": self.input_read,
            "input_bytes": self.input_bytes,
            "part": None if self.part is None else round(self.part, 3),
            "seconds_left": None if self.seconds_left is None else round(self.seconds_left, 1),
        }

    def line(self, width: int) -> str:
        """One line of a terminal: what does not fit is left out, the least important first.

        >>> Moment("load", 12.0, 3000, 7, 0, 2048, 0.5, 12.0, over=0.5).line(46)
        '━━━━━╌╌╌╌╌  50% load: 12 s, about 12 s left'
        """
        parts = [f"{self.phase}: {self.seconds:.0f} s", *self._facts()]
        for size in (BAR_WIDTH, BAR_WIDTH // 2, 0):
            room = width - len(self._bar(size))
            fitting = [n for n in range(len(parts), 0, -1) if len(", ".join(parts[:n])) <= room]
            if fitting and (size == 0 or fitting[0] >= min(2, len(parts))):
                return self._bar(size) + ", ".join(parts[: fitting[0]])
        return parts[0][: max(0, width)]

    def _facts(self) -> Iterator[str]:
        """What else is known, the most important first."""
        if self.seconds_left:
            yield f"about {math.ceil(self.seconds_left)} s left"
        if self.rows:
            yield f"{counted(self.rows, 'row')} ({self.rows / self.seconds:,.0f}/s)"
        if self.input_read < self.input_bytes:
            read, all_of_it = human_bytes(self.input_read), human_bytes(self.input_bytes)
            yield f"{read} of {all_of_it} read"
        yield counted(self.requests, "request")
        if moved := self.bytes_written or self.bytes_read:
            yield human_bytes(moved)

    def _bar(self, size: int) -> str:
        if self.over is None or not size:
            return ""
        full = int(size * self.over)
        return f"{'━' * full}{'╌' * (size - full)} {self.over:4.0%} "


class Estimate:
    """How long the rest takes, if it goes on as it did until the done part last grew."""

    def __init__(self) -> None:
        self._part = 0.0
        self._whole = 0.0  # seconds
        self._over = 0.0

    def left(self, part: float | None, seconds: float) -> float | None:
        """Seconds, after so many of them; none where nothing is known, nothing when the time is up.

        >>> estimate = Estimate()
        >>> estimate.left(None, 1.0), estimate.left(0.25, 2.0), estimate.left(0.25, 5.0)
        (None, 6.0, 3.0)
        """
        if not part:
            return None
        if (
            part > self._part
        ):  # a second attempt begins again: what was known of the work still holds
            self._part, self._whole = part, seconds / part
        return max(0.0, self._whole - seconds)

    def over(self, part: float | None, seconds: float) -> float | None:
        """The share of the time that is over: it moves while the part stays the same, and never goes back.

        >>> estimate = Estimate()
        >>> estimate.over(0.5, 9.0), estimate.over(0.5, 13.5), estimate.over(0.6, 15.0)
        (0.5, 0.75, 0.75)
        """
        left = self.left(part, seconds)
        if left is None:
            return None
        self._over = max(self._over, min(NEARLY, seconds / (seconds + left)))
        return self._over


class Reporter:
    """A thread that watches the cost of an operation and prints it."""

    def __init__(self, phase: str, cost: Cost, *, as_json: bool) -> None:
        self._phase, self._cost, self._as_json = phase, cost, as_json
        self._done = Event()
        self._estimate = Estimate()
        self._started = time.monotonic()
        self._thread = Thread(target=self._run, name="omnigraph-progress", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._done.set()
        self._thread.join()
        if self._as_json:
            self._print({"done": True})

    def _run(self) -> None:
        period = JSON_PERIOD_SECONDS if self._as_json else PERIOD_SECONDS
        if self._done.wait(PATIENCE_SECONDS):
            return
        while True:
            self._print({})
            if self._done.wait(period):
                break
        if not self._as_json:
            sys.stderr.write(CLEAR_LINE)
            sys.stderr.flush()

    def _print(self, extra: dict[str, object]) -> None:
        moment = self._look()
        if self._as_json:
            print(json.dumps(moment.to_json() | extra), file=sys.stderr, flush=True)
        else:
            sys.stderr.write(f"{CLEAR_LINE}{moment.line(_width())}")
            sys.stderr.flush()

    def _look(self) -> Moment:
        cost, seconds = self._cost, time.monotonic() - self._started
        return Moment(
            phase=f"{self._phase}, {cost.phase}" if cost.phase else self._phase,
            seconds=seconds,
            rows=cost.rows,
            requests=cost.ops,
            bytes_read=cost.bytes_read,
            bytes_written=cost.bytes_written,
            part=cost.part,
            seconds_left=self._estimate.left(cost.part, seconds),
            input_read=min(cost.input_read, cost.input_bytes),
            input_bytes=cost.input_bytes,
            over=self._estimate.over(cost.part, seconds),
        )


def _width() -> int:
    """Of the terminal that shows progress, less one: a full line would wrap on some."""
    return shutil.get_terminal_size((80, 24)).columns - 1
