"""How much at once: requests and bytes of one actor, requests of everybody, and shares of uploads, exports and jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from omnigraph.errors import Kind, OmnigraphError
from omnigraph.server.access import ANONYMOUS
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
        self.slots: dict[str, Counter[str]] = {}  # by name, then by actor
        self._actors: Counter[str] = Counter()
        self._bytes: Counter[str] = Counter()
        self.closing = False

    @contextmanager
    def request(self, actor: str | None) -> Iterator[None]:
        """Admit one request of an actor for as long as it lasts."""
        who = actor or ANONYMOUS
        if self.closing:
            raise ServerBusy("the server is shutting down")
        if self.requests >= self._bounds.in_flight_max:
            raise ServerBusy(
                "the server is busy",
                details=exceeded("in_flight_max", self._bounds.in_flight_max, self.requests + 1),
            )
        mine, limit = self._actors[who] + 1, self._bounds.actor_in_flight_max
        if mine > limit:
            raise TooManyRequests(
                f"{mine} at once are more than actor_in_flight_max={limit}",
                details=exceeded("actor_in_flight_max", limit, mine),
            )
        self.requests += 1
        self._actors[who] += 1
        try:
            yield
        finally:
            self.requests -= 1
            _less(self._actors, who, 1)

    @contextmanager
    def body(self, actor: str | None, announced: int) -> Iterator[HeldBytes]:
        """Admit a body: as many bytes as it announces, or as come of it."""
        held = HeldBytes(self._bytes, actor or ANONYMOUS, self._bounds.actor_bytes_max)
        try:
            held.hold(announced)
            yield held
        finally:
            held.release()

    @contextmanager
    def slot(self, name: str, actor: str | None) -> Iterator[None]:
        """Admit one of few: an upload, an export."""
        key = actor or ANONYMOUS
        held = self.slots.setdefault(name, Counter())
        check_share(name, getattr(self._bounds, name), held, actor)
        held[key] += 1
        try:
            yield
        finally:
            _less(held, key, 1)


class HeldBytes:
    """What one body takes of the bytes its actor may have in flight."""

    def __init__(self, counts: Counter[str], actor: str, limit: int) -> None:
        self._counts = counts
        self._actor = actor
        self._limit = limit
        self._held = 0
        self._come = 0

    def hold(self, size: int) -> None:
        """Take so many bytes in all."""
        more = size - self._held
        wanted = self._counts[self._actor] + more
        if wanted > self._limit:
            raise TooManyRequests(
                f"{wanted} bytes of requests in flight are more than actor_bytes_max={self._limit}",
                details=exceeded("actor_bytes_max", self._limit, wanted),
            )
        self._counts[self._actor] += more
        self._held = size

    def come(self, size: int) -> None:
        """Count bytes that came in: a body need not announce its size, and may be larger than it did."""
        self._come += size
        if self._come > self._held:
            self.hold(self._come)

    def release(self) -> None:
        _less(self._counts, self._actor, self._held)


def check_share(name: str, limit: int, held: Mapping[str, int], actor: str | None) -> None:
    """Refuse whoever has half of a limit already, and everybody when nothing of it is left.

    So no actor is refused because of what another one does. Without tokens all callers are one.
    """
    share = limit if actor is None else (limit + 1) // 2
    mine, all_held = held.get(actor or ANONYMOUS, 0), sum(held.values())
    if mine >= share:
        raise TooManyRequests(
            f"{mine + 1} at once are more than one actor may have of {name}={limit}",
            details=exceeded(name, share, mine + 1),
        )
    if all_held >= limit:
        raise ServerBusy("the server is busy", details=exceeded(name, limit, all_held + 1))


def exceeded(name: str, limit: float, observed: float) -> dict[str, object]:
    """The details of a limit that was exceeded: its name, its value, and what was seen."""
    return {"limit": name, "limit_value": limit, "observed": observed}


def _less(counts: Counter[str], key: str, n: int) -> None:
    counts[key] -= n
    if counts[key] <= 0:
        del counts[key]
