"""Concurrency limits: requests and bytes of one actor, requests in total, shares of uploads, exports and jobs.

The limits are those of a server, whatever the number of its workers: see `counts`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from omnigraph.server.access import ANONYMOUS
from omnigraph.server.counts import Counted, Counts
from omnigraph.server.errors import ServerBusy, TooManyRequests, exceeded
from omnigraph.server.settings import Bounds

SLOTS = {
    "uploads_max": Counted.UPLOADS,
    "exports_max": Counted.EXPORTS,
    "jobs_max": Counted.JOBS,
}
GATE_SECONDS = 0.05  # between two checks whether others have finished


class Admission:
    """Decides who may start work, and counts what is held."""

    def __init__(self, bounds: Bounds, counts: Counts) -> None:
        self.bounds = bounds
        self.counts = counts
        self.closing = False

    @property
    def requests(self) -> int:
        """Those in flight, in all workers."""
        return self.counts.everybody(Counted.REQUESTS)

    def request(self, actor: str | None) -> Holding:
        """Admit one request of an actor until the result is released."""
        if self.closing:
            raise ServerBusy("the server is shutting down")
        held = Holding(self, actor)
        held.take(Counted.REQUESTS, 1, self._check_request)
        return held

    def _check_request(self, _: str, mine: int, everybody: int) -> None:
        most, limit = self.bounds.in_flight_max, self.bounds.actor_in_flight_max
        if everybody > most:
            details = exceeded("in_flight_max", most, everybody)
            raise ServerBusy("the server is busy", details=details)
        if mine > limit:
            raise TooManyRequests(
                f"{mine} concurrent requests exceed actor_in_flight_max={limit}",
                details=exceeded("actor_in_flight_max", limit, mine),
            )


class Holding:
    """What one request, or one job, holds of the limits of its actor."""

    def __init__(self, admission: Admission, actor: str | None) -> None:
        self._bounds = admission.bounds
        self._counts = admission.counts
        self._actor = actor
        self._held: dict[Counted, int] = {}
        self._come = 0

    def take(self, kind: Counted, n: int, check: Callable[[str, int, int], None]) -> None:
        """Take `n` more, unless the check refuses the resulting counts of the actor and in total."""
        who = self._actor or ANONYMOUS
        with self._counts:
            mine, everybody = self._counts.held(kind, who)
            check(who, mine + n, everybody + n)
            self._counts.add(kind, who, n)
        self._held[kind] = self._held.get(kind, 0) + n

    def slot(self, name: str) -> None:
        """Take a slot for an upload, an export or a job. No actor has more than half of them."""
        limit = getattr(self._bounds, name)

        def check(_: str, mine: int, everybody: int) -> None:
            check_share(name, limit, mine, everybody, self._actor)

        self.take(SLOTS[name], 1, check)

    def bytes(self, size: int) -> None:
        """Hold this many bytes in total."""
        more = size - self._held.get(Counted.BYTES, 0)
        if more > 0:
            self.take(Counted.BYTES, more, self._check_bytes)

    def come(self, size: int) -> None:
        """Count received bytes: a body need not announce its size, and may be larger than announced."""
        self._come += size
        self.bytes(self._come)

    def _check_bytes(self, _: str, mine: int, __: int) -> None:
        limit = self._bounds.actor_bytes_max
        if mine > limit:
            raise TooManyRequests(
                f"{mine} bytes of requests in flight exceed actor_bytes_max={limit}",
                details=exceeded("actor_bytes_max", limit, mine),
            )

    def release(self) -> None:
        """Release everything."""
        who, held = self._actor or ANONYMOUS, self._held
        if held:
            with self._counts:
                for kind, n in held.items():
                    self._counts.add(kind, who, -n)
            held.clear()


def check_share(name: str, limit: int, mine: int, everybody: int, actor: str | None) -> None:
    """Refuse an actor who would have more than half of a limit, and everyone when it would be exceeded.

    So no single actor can take everything from the others. Without tokens all callers are one actor.
    """
    share = limit if actor is None else (limit + 1) // 2
    if mine > share:
        raise TooManyRequests(
            f"{mine} at a time exceed the share of one actor in {name}={limit}",
            details=exceeded(name, share, mine),
        )
    if everybody > limit:
        raise ServerBusy("the server is busy", details=exceeded(name, limit, everybody))


class Gate:
    """Lets a limited number pass at a time, in all workers."""

    def __init__(self, counts: Counts, kind: Counted, most: int) -> None:
        self._counts = counts
        self._kind = kind
        self._most = most
        self._opened = threading.Event()

    def enter(self) -> None:
        """Wait until there is room."""
        while not self._entered():
            self._opened.wait(GATE_SECONDS)

    def _entered(self) -> bool:
        with self._counts:
            _, everybody = self._counts.held(self._kind, ANONYMOUS)
            has_room = everybody < self._most or self._opened.is_set()
            if has_room:
                self._counts.add(self._kind, ANONYMOUS, 1)
        return has_room

    def leave(self) -> None:
        with self._counts:
            self._counts.add(self._kind, ANONYMOUS, -1)

    def open(self) -> None:
        """Let everyone pass, because everything is being cancelled."""
        self._opened.set()
