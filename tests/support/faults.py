"""What can go wrong between a client and a store, and when.

A fault strikes once: at the k-th request it matches, counted from the moment it is injected.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

from tests.support.s3_objects import Request

Matcher = Callable[[Request], bool]


def everything(request: Request) -> bool:
    return True


class Effect(Enum):
    """What happens to the struck request."""

    DIE_BEFORE = auto()  # the change does not happen, and the store is gone from then on
    DIE_AFTER = auto()  # the change happens, nobody hears of it, and the store is gone from then on
    CUT_BEFORE = auto()  # the change does not happen, the connection breaks
    CUT_AFTER = auto()  # the change happens, the connection breaks
    ERROR_AFTER = auto()  # the change happens, the client hears 500
    SLOW_DOWN = auto()  # the change does not happen, the client hears 503
    HOLD = auto()  # nothing happens until the gate opens


class Gate:
    """Holds a request back: it says when one has arrived, and `open` lets it go on."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._reached = threading.Event()
        self._released = asyncio.Event()

    def wait_reached(self, timeout: float = 30.0) -> None:
        if not self._reached.wait(timeout):
            raise TimeoutError(f"no request came to the gate within {timeout:g} s")

    def open(self) -> None:
        self._loop.call_soon_threadsafe(self._released.set)

    async def hold(self) -> None:
        self._reached.set()
        await self._released.wait()


@dataclass(slots=True)
class Fault:
    """Strikes the `at`-th request that counts.

    Requests of `actor` count (None: of everybody), those that `matches`, and with `durable` only those that would
    change something. A store that dies is dead to that actor, and cuts the connection or, with `deny`, denies access.
    """

    effect: Effect
    at: int = 1
    actor: str | None = None
    matches: Matcher = everything
    durable: bool = True
    deny: bool = False
    gate: Gate | None = None
    seen: int = 0

    def concerns(self, request: Request) -> bool:
        return self.actor in (None, request.actor)

    def strikes(self, request: Request, *, durable: bool) -> bool:
        if (
            not self.concerns(request)
            or (self.durable and not durable)
            or not self.matches(request)
        ):
            return False
        self.seen += 1
        return self.seen == self.at
