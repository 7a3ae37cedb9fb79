"""Retries of HTTP requests: after pauses that double, or as long as the server asks for."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

from omnigraph.errors import OmnigraphError
from omnigraph.model.frozen import frozen

T = TypeVar("T")
RETRY_AFTER = "retry_after"  # the error detail with the seconds a server asks to wait


@frozen
class Retry:
    """How often to retry, and after which pauses."""

    attempts_max: int
    pause_first_seconds: float
    pause_seconds_max: float
    sleep: Callable[[float], None] = time.sleep

    def run(self, work: Callable[[], T], may_retry: Callable[[OmnigraphError], bool]) -> T:
        """Run some work, and retry it while its failures may be transient."""
        for attempt in range(self.attempts_max - 1):
            try:
                return work()
            except OmnigraphError as error:
                if not may_retry(error):
                    raise
                self.sleep(self.pause(attempt, error))
        return work()

    def pause(self, attempt: int, error: OmnigraphError) -> float:
        """How long to wait after an attempt that failed with this error."""
        asked = str(error.details.get(RETRY_AFTER, ""))
        if asked.isascii() and asked.isdecimal():
            return min(float(asked), self.pause_seconds_max)
        longest = min(self.pause_seconds_max, self.pause_first_seconds * 2**attempt)
        return random.uniform(
            longest / 2, longest
        )  # so that many clients do not retry at the same time
