"""Time: the clock of the core, with randomness and waiting, which simulations replace; and deadlines of calls."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable

from omnigraph.core.layout import fresh_id
from omnigraph.errors import Cancelled, DeadlineExceeded
from omnigraph.model.frozen import frozen


def _now() -> int:
    return time.time_ns() // 1000


@frozen
class Clock:
    """What the core takes from its environment besides the stores."""

    now: Callable[[], int] = _now  # microseconds since 1970, UTC
    fresh_id: Callable[[], str] = fresh_id
    pause: Callable[[float], None] = time.sleep
    chance: Callable[[], float] = random.random  # in [0, 1), for jitter

    def back_off(self, attempt: int, first_seconds: float, max_seconds: float) -> None:
        """Wait a random part of an interval that doubles with each attempt."""
        self.pause(self.chance() * min(max_seconds, first_seconds * 2 ** min(attempt, 20)))


REAL = Clock()


class Deadline:
    """Checked between the steps of a verb; once a commit is published it cannot be stopped."""

    __slots__ = ("_allowed", "_cancelled", "_ends")

    def __init__(
        self, seconds: float | None = None, cancelled: threading.Event | None = None
    ) -> None:
        self._allowed = seconds
        self._ends = None if seconds is None else time.monotonic() + seconds
        self._cancelled = cancelled

    @property
    def over(self) -> bool:
        """Whether the time is used up or the call was cancelled."""
        if self._cancelled is not None and self._cancelled.is_set():
            return True
        return self._ends is not None and time.monotonic() >= self._ends

    def remaining(self) -> float | None:
        """Seconds left; None without a limit."""
        return None if self._ends is None else max(0.0, self._ends - time.monotonic())

    def error(self) -> Cancelled | DeadlineExceeded:
        """Why the call must end."""
        if self._cancelled is not None and self._cancelled.is_set():
            return Cancelled("the call was cancelled; nothing was published")
        return DeadlineExceeded(
            f"the call took longer than {self._allowed} s; nothing was published",
            details={"limit": "timeout", "seconds": self._allowed},
        )

    def check(self) -> None:
        if self.over:
            raise self.error()


NEVER = Deadline()
