"""An S3 stand-in that dies, lies and forgets on command.

    with FaultyS3() as store:
        start = store.snapshot()
        store.die_at(3, applied=True)
        ...                                 # what is tested talks to store.address
        store.restore(start)                # the same state again, no faults, empty log

It runs in a thread of the test process, so that a test holds the objects themselves; children connect by the port.
Every request is handled in one step of one event loop, hence atomically. A client is known by its access key, so a
fault can strike one of several writers.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Self, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.support import http_wire
from tests.support.faults import Effect, Fault, Gate, Matcher, everything
from tests.support.http_wire import GOODBYES, Head
from tests.support.s3_objects import Bucket, Outcome, Refused, Request, Response
from tests.support.s3server import BUCKET, S3Address

T = TypeVar("T")
BEFORE = frozenset({Effect.DIE_BEFORE, Effect.CUT_BEFORE, Effect.SLOW_DOWN})
DENIED = Refused(403, "AccessDenied").response()
CREDENTIAL = re.compile(r"Credential=([^/]+)/")


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the request log. `status` is what the client heard; None when the connection was cut."""

    method: str
    key: str
    query: str
    actor: str
    status: int | None
    durable: bool
    applied: bool


class FaultyS3:
    """A bucket behind a loopback port, as a context manager. All methods may be called from any thread."""

    def __init__(self, bucket: str = BUCKET) -> None:
        self._bucket = Bucket(bucket)
        self._faults: list[Fault] = []
        self._log: list[Entry] = []
        self._latency = 0.0
        self._death: Fault | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.died = threading.Event()

    # --- life

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="faulty-s3", daemon=True
        )
        self._thread.start()
        self._listener = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result()
        self.address = S3Address(
            self._listener.sockets[0].getsockname()[1], self._bucket.name, actor="tests"
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._shut_down(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _listen(self) -> asyncio.Server:
        return await asyncio.start_server(
            self._serve_client, "127.0.0.1", 0, limit=http_wire.HEAD_BYTES_MAX
        )

    async def _shut_down(self) -> None:
        self._listener.close()
        self._cut_all()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def address_of(self, actor: str) -> S3Address:
        """The address with credentials by which faults and the log tell this client from others."""
        return replace(self.address, actor=actor)

    # --- state

    def snapshot(self) -> Bucket:
        """The whole state, cheap to take and to go back to."""
        return self._do(self._bucket.copy)

    def restore(self, snapshot: Bucket) -> None:
        """Back to that state, alive, without faults, latency or log. Connections still open are cut."""

        def restore() -> None:
            self._bucket = snapshot.copy()
            self._faults, self._log, self._latency = [], [], 0.0
            self._revive()
            self._cut_all()

        self._do(restore)

    def objects(self) -> dict[str, bytes]:
        return self._do(lambda: {key: o.body for key, o in self._bucket.objects.items()})

    def log(self) -> list[Entry]:
        return self._do(lambda: list(self._log))

    def clear_log(self) -> None:
        self._do(self._log.clear)

    def durable_writes(self) -> int:
        """How many requests since the log was cleared changed something, or would have but for a fault."""
        return sum(entry.durable for entry in self.log())

    def page_keys_max(self, keys: int) -> None:
        """Make listings come in pages of at most this many entries."""

        def limit() -> None:
            self._bucket.page_keys_max = keys

        self._do(limit)

    def ignore_conditions(self) -> None:
        """Accept conditional writes and ignore the condition."""

        def ignore() -> None:
            self._bucket.ignores_conditions = True

        self._do(ignore)

    # --- faults

    def inject(self, fault: Fault) -> None:
        self._do(lambda: self._faults.append(fault))

    def clear_faults(self) -> None:
        """No more faults and no latency; a dead store stays dead."""

        def clear() -> None:
            self._faults, self._latency = [], 0.0

        self._do(clear)

    def latency(self, seconds: float) -> None:
        def delay() -> None:
            self._latency = seconds

        self._do(delay)

    def die_at(
        self,
        write: int,
        *,
        applied: bool,
        deny: bool = False,
        actor: str | None = None,
        matches: Matcher = everything,
    ) -> None:
        """Be gone from the k-th durable write on.

        Every connection breaks, and what is tested tries again until it is killed: for children. With `deny` it is
        refused instead and fails at once: the same for the state of the store, and quick within one process.
        """
        effect = Effect.DIE_AFTER if applied else Effect.DIE_BEFORE
        self.inject(Fault(effect, write, actor, matches, deny=deny))

    def lose_acknowledgement(
        self,
        write: int,
        *,
        cut: bool = False,
        actor: str | None = None,
        matches: Matcher = everything,
    ) -> None:
        """Apply the k-th durable write, and answer 500 or break the connection."""
        effect = Effect.CUT_AFTER if cut else Effect.ERROR_AFTER
        self.inject(Fault(effect, write, actor, matches))

    def slow_down(
        self, request: int, *, actor: str | None = None, matches: Matcher = everything
    ) -> None:
        """Answer the k-th request with 503 and do nothing."""
        self.inject(Fault(Effect.SLOW_DOWN, request, actor, matches, durable=False))

    def hold(self, at: int = 1, *, actor: str | None = None, matches: Matcher = everything) -> Gate:
        """Hold the k-th matching request back until the gate is opened; others pass meanwhile."""
        gate = Gate(self._loop)
        self.inject(Fault(Effect.HOLD, at, actor, matches, durable=False, gate=gate))
        return gate

    def revive(self) -> None:
        """Come back with the state as it was at death."""
        self._do(self._revive)

    def _revive(self) -> None:
        self._death = None
        self.died.clear()

    # --- serving

    async def _serve_client(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        with suppress(*GOODBYES):
            while await self._serve_request(reader, writer):
                pass
        self._tasks.discard(task)
        self._writers.discard(writer)
        writer.close()

    async def _serve_request(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Whether the connection goes on."""
        head = await http_wire.read_head(reader)
        body = await http_wire.read_body(reader, head.headers)
        request = _request(head, body.content)
        await asyncio.sleep(self._latency)
        await self._pass_gates(request)
        if writer.is_closing():  # the state it was meant for has been replaced meanwhile
            return False
        response = self._handle(request, urlsplit(head.start[1]).query)
        if response is None:
            return False
        content = b"" if request.method == "HEAD" else response.body
        writer.write(http_wire.format_response(response.status, response.headers, content))
        await writer.drain()
        return True

    async def _pass_gates(self, request: Request) -> None:
        for fault in list(self._faults):
            if fault.gate is not None and fault.strikes(request, durable=False):
                await fault.gate.hold()

    def _handle(self, request: Request, query: str) -> Response | None:
        """Answer, change, and log in one step. None: the connection is to be cut."""
        if self._death is not None and self._death.concerns(request):
            outcome, fault = Outcome(DENIED), None
            response = _last_words(self._death)
        else:
            outcome = self._bucket.answer(request)
            fault = self._struck_by(request, outcome)
            response = self._suffer(fault, outcome.response)
        durable = outcome.apply is not None
        applied = durable and (fault is None or fault.effect not in BEFORE)
        if outcome.apply is not None and applied:
            outcome.apply()
        status = response.status if response else None
        entry = Entry(request.method, request.key, query, request.actor, status, durable, applied)
        self._log.append(entry)
        return response

    def _struck_by(self, request: Request, outcome: Outcome) -> Fault | None:
        """Every fault counts the request; the first one that strikes decides."""
        durable = outcome.apply is not None
        candidates = [fault for fault in self._faults if fault.gate is None]
        struck = [fault for fault in candidates if fault.strikes(request, durable=durable)]
        return struck[0] if struck else None

    def _suffer(self, fault: Fault | None, response: Response) -> Response | None:
        match fault and fault.effect:
            case Effect.DIE_BEFORE | Effect.DIE_AFTER:
                self._death = fault
                self.died.set()
                return _last_words(fault)
            case Effect.CUT_BEFORE | Effect.CUT_AFTER:
                return None
            case Effect.ERROR_AFTER:
                return Refused(500, "InternalError").response()
            case Effect.SLOW_DOWN:
                return Refused(503, "SlowDown").response()
            case _:
                return response

    def _cut_all(self) -> None:
        for writer in self._writers:
            writer.close()

    def _do(self, step: Callable[[], T]) -> T:
        """Run a step on the event loop, between requests."""

        async def run() -> T:
            return step()

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result()


def _last_words(death: Fault | None) -> Response | None:
    return DENIED if death is not None and death.deny else None


def _request(head: Head, body: bytes) -> Request:
    url = urlsplit(head.start[1])
    bucket, _, key = unquote(url.path).lstrip("/").partition("/")
    credential = CREDENTIAL.search(head.headers.get("authorization", ""))
    return Request(
        head.start[0],
        bucket,
        key,
        dict(parse_qsl(url.query, keep_blank_values=True)),
        head.headers,
        body,
        credential.group(1) if credential else "",
    )
