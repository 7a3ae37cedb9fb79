"""Time, chance and waiting, in one replaceable value: simulations bring their own."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from omnigraph.core.layout import fresh_id


def _now() -> int:
    return time.time_ns() // 1000


@dataclass(frozen=True, slots=True)
class World:
    """What the core takes from its surroundings besides the stores."""

    now: Callable[[], int] = _now  # microseconds since 1970, UTC
    fresh_id: Callable[[], str] = fresh_id
    pause: Callable[[float], None] = time.sleep
    chance: Callable[[], float] = random.random  # in [0, 1), for jitter

    def back_off(self, attempt: int, first_seconds: float, max_seconds: float) -> None:
        """Wait a random part of an interval that doubles with each attempt."""
        self.pause(self.chance() * min(max_seconds, first_seconds * 2 ** min(attempt, 20)))


REAL = World()
