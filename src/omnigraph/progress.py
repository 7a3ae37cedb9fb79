"""Progress of long work: its measurements, an estimate of the time left, and a thread that polls it.

A terminal shows it as a line (`cli/progress.py`), a notebook as a bar (`magic.py`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape
from threading import Event, Thread
from typing import TYPE_CHECKING

from omnigraph.wording import counted, human_bytes

if TYPE_CHECKING:
    from omnigraph.storage.metrics import Cost

PATIENCE_SECONDS = 0.5  # shorter work is not reported
BAR_WIDTH = 20
NEARLY = 0.99  # unfinished work is never shown as complete


@dataclass(frozen=True, slots=True)
class Moment:
    """The progress of some work at one moment."""

    phase: str
    seconds: float
    rows: int
    requests: int
    bytes_read: int
    bytes_written: int
    part: float | None = None  # of the work, if its size is known
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

    def html(self) -> str:
        """A bar for a notebook, with the same facts below it.

        >>> '<progress max="1" value="0.50">' in Moment("load", 12.0, 0, 7, 0, 0, over=0.5).html()
        True
        """
        value = "" if self.over is None else f' value="{self.over:.2f}"'
        share = "" if self.over is None else f"{self.over:.0%} "
        facts = ", ".join([f"{self.phase}: {self.seconds:.0f} s", *self._facts()])
        return f'<progress max="1"{value}></progress> <small>{share}{escape(facts)}</small>'

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
    """How long the rest takes, at the speed up to the last progress."""

    def __init__(self) -> None:
        self._part = 0.0
        self._whole = 0.0  # seconds
        self._over = 0.0

    def left(self, part: float | None, seconds: float) -> float | None:
        """Seconds left after `seconds`; None if unknown, 0 once the estimate is used up.

        >>> estimate = Estimate()
        >>> estimate.left(None, 1.0), estimate.left(0.25, 2.0), estimate.left(0.25, 5.0)
        (None, 6.0, 3.0)
        """
        if not part:
            return None
        if part > self._part:  # a second attempt starts over: what was measured still holds
            self._part, self._whole = part, seconds / part
        return max(0.0, self._whole - seconds)

    def over(self, part: float | None, seconds: float) -> float | None:
        """The share of the time that is over: it grows while the part stays the same, and never shrinks.

        >>> estimate = Estimate()
        >>> estimate.over(0.5, 9.0), estimate.over(0.5, 13.5), estimate.over(0.6, 15.0)
        (0.5, 0.75, 0.75)
        """
        left = self.left(part, seconds)
        if left is None:
            return None
        self._over = max(self._over, min(NEARLY, seconds / (seconds + left)))
        return self._over


class Watch:
    """Polls the cost of an operation from a background thread, once it has lasted a while."""

    def __init__(
        self, phase: str, cost: Cost, shown: Callable[[Moment], None], every_seconds: float
    ) -> None:
        self._phase, self._cost, self._shown = phase, cost, shown
        self._every = every_seconds
        self._done = Event()
        self._estimate = Estimate()
        self._started = time.monotonic()
        self._thread = Thread(target=self._run, name="omnigraph-progress", daemon=True)
        self.was_shown = False

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._done.set()
        self._thread.join()

    def _run(self) -> None:
        wait = PATIENCE_SECONDS
        while not self._done.wait(wait):
            self.was_shown = True
            self._shown(self.look())
            wait = self._every

    def look(self) -> Moment:
        """The progress now."""
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
