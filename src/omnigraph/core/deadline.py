"""How long a call may take, and whether somebody has called it off."""

from __future__ import annotations

import threading
import time

from omnigraph.errors import Cancelled, DeadlineExceeded


class Deadline:
    """Asked between the steps of a verb; once a commit is published it is too late to stop it."""

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
