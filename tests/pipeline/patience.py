"""Spark gives a new Python process ten seconds to report back, which a machine under load may not grant it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
ATTEMPTS_MAX = 5
TOO_SLOW = "failed to connect back"


def patiently(work: Callable[[], T]) -> T:
    """What the work gives; started again where Spark failed in a process that was starting."""
    for _ in range(ATTEMPTS_MAX - 1):
        try:
            return work()
        except Exception as error:
            if TOO_SLOW not in str(error):
                raise
    return work()
