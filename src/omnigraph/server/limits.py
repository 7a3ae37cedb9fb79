"""How much at once: requests and bytes of one actor, requests of everybody, loads and exports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from omnigraph.errors import Kind, OmnigraphError
from omnigraph.server.settings import Bounds

RETRY_AFTER_SECONDS = 60
BUSY_RETRY_AFTER_SECONDS = 1


class TooManyRequests(OmnigraphError):
    """An actor asks for too much at once."""

    code, kind = "too_many_requests", Kind.LIMIT
    default_help = "Wait for earlier requests to end; the header Retry-After says how long at most."
    retry_after = RETRY_AFTER_SECONDS


class ServerBusy(OmnigraphError):
    """The server has as much to do as it may; nothing happened."""

    code, kind = "server_busy", Kind.UNAVAILABLE
    default_help = "Try again in a moment."
    retry_after = BUSY_RETRY_AFTER_SECONDS


class Admission:
    """Counts of what is in flight. Used only on the event loop, so it needs no lock."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self.requests = 0
        self.slots: Counter[str] = Counter()
        self._actors: Counter[str] = Counter()
        self._bytes: Counter[str] = Counter()
        self.closing = False

    @contextmanager
    def request(self, actor: str) -> Iterator[None]:
        """Admit one request of an actor for as long as it lasts."""
        if self.closing:
            raise ServerBusy("the server is shutting down")
        if self.requests >= self._bounds.in_flight_max:
            raise ServerBusy(
                "the server is busy",
                details=exceeded("in_flight_max", self._bounds.in_flight_max, self.requests + 1),
            )
        self._check(actor, "actor_in_flight_max", self._bounds.actor_in_flight_max, self._actors)
        self.requests += 1
        self._actors[actor] += 1
        try:
            yield
        finally:
            self.requests -= 1
            _less(self._actors, actor, 1)

    @contextmanager
    def bytes(self, actor: str, size: int) -> Iterator[None]:
        """Admit a body of this size."""
        held, limit = self._bytes[actor] + size, self._bounds.actor_bytes_max
        if held > limit:
            raise TooManyRequests(
                f"{held} bytes of requests in flight are more than actor_bytes_max={limit}",
                details=exceeded("actor_bytes_max", limit, held),
            )
        self._bytes[actor] += size
        try:
            yield
        finally:
            _less(self._bytes, actor, size)

    @contextmanager
    def slot(self, name: str, limit: int) -> Iterator[None]:
        """Admit one of few: a load, an export."""
        self._check(name, name, limit, self.slots)
        self.slots[name] += 1
        try:
            yield
        finally:
            _less(self.slots, name, 1)

    def _check(self, key: str, name: str, limit: int, counts: Counter[str]) -> None:
        if counts[key] >= limit:
            raise TooManyRequests(
                f"{counts[key] + 1} at once are more than {name}={limit}",
                details=exceeded(name, limit, counts[key] + 1),
            )


def exceeded(name: str, limit: float, observed: float) -> dict[str, object]:
    """The details of a limit that was exceeded: its name, its value, and what was seen."""
    return {"limit": name, "limit_value": limit, "observed": observed}


def _less(counts: Counter[str], key: str, n: int) -> None:
    counts[key] -= n
    if counts[key] <= 0:
        del counts[key]
