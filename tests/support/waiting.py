"""Wait for something that happens elsewhere: polls, and always gives up."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_until(
    condition: Callable[[], T], *, timeout: float = 30.0, interval: float = 0.01, what: str = ""
) -> T:
    """The first truthy answer of `condition`, asked again and again until `timeout` seconds have passed."""
    deadline = time.monotonic() + timeout
    while True:
        answer = condition()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {timeout:g} s for {what or condition}")
        time.sleep(interval)
