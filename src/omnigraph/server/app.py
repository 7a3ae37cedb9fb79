"""One request from its first byte to its last: recognised, allowed, bounded, run in a thread, answered.

The only module that sees ASGI. The event loop moves bytes; everything that thinks or waits for a store runs in threads.
"""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack
from contextvars import copy_context
from itertools import count
from typing import Any, TypeVar
from urllib.parse import parse_qsl

import msgspec

from omnigraph.errors import Kind, OmnigraphError
from omnigraph.server import openapi
from omnigraph.server.access import Access, Need
from omnigraph.server.bodies import (
    BodyLimits,
    ClientGone,
    announced,
    decode,
    fill,
    new_spool,
    read_all,
)
from omnigraph.server.calls import IF_COMMIT, JSON, STREAMED, Answer, Call, Served
from omnigraph.server.errors import (
    LengthAmbiguous,
    RequestInvalid,
    body_of,
    headers_of,
    status_of,
)
from omnigraph.server.identity import Identity
from omnigraph.server.jobs import Jobs
from omnigraph.server.limits import Admission
from omnigraph.server.origins import Origins
from omnigraph.server.routes import ROUTES
from omnigraph.server.routes.jobs import start_load
from omnigraph.server.settings import Bounds, ServerInvalid, graph_id
from omnigraph.server.table import Route, Router, Work
from omnigraph.server.telemetry import SERVER, Telemetry, caller, describe, tracer
from omnigraph.server.turns import Turns
from omnigraph.server.wire import LoadOutput

T = TypeVar("T")
S = TypeVar("S", bound=msgspec.Struct)
Scope = MutableMapping[str, Any]
Send = Callable[[Any], Awaitable[None]]
Receive = Callable[[], Awaitable[Any]]

log = logging.getLogger("omnigraph.server")
ONCE = frozenset(
    (b"authorization", b"content-length", b"content-type", b"content-encoding", b"host",
     b"idempotency-key", IF_COMMIT.encode(), b"origin", b"sec-fetch-site", b"transfer-encoding")
)  # fmt: skip
REQUEST_ID = re.compile(r"[A-Za-z0-9_-]{8,64}")
COMMIT_ID = re.compile(r"[0-9A-Za-z.]{1,64}")
PROTECTIVE = {
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
}
UNKNOWN_ROUTE = "unknown"
DECODED_AT_ONCE_BYTES_MAX = 256 << 10  # a larger body would keep the event loop
BOUNDS = Bounds()
ORIGINS = Origins()
_request_ids = count(
    secrets.randbits(63)
)  # unlike those of other processes, and without a system call


class GraphNotServed(OmnigraphError):
    """The server has no graph of this id."""

    code, kind = "graph_not_served", Kind.NOT_FOUND
    default_help = "`GET /graphs` lists the graphs, if you may see them."


class Server:
    """The application: its graphs, who may use them, and what it has counted."""

    def __init__(
        self,
        graphs: Mapping[str, Served],
        identity: Identity,
        access: Access,
        bounds: Bounds = BOUNDS,
        quarantined: tuple[str, ...] = (),
        origins: Origins = ORIGINS,
    ) -> None:
        if access.authenticated is not identity.required:
            raise ServerInvalid("tokens and policies do not agree on whether there are tokens")
        self.graphs = dict(sorted(graphs.items()))
        self.identity = identity
        self.access = access
        self.bounds = bounds
        self.quarantined = quarantined
        self.origins = origins
        self.admission = Admission(bounds)
        self.telemetry = Telemetry()
        self.router = Router(ROUTES)
        self.pool = ThreadPoolExecutor(bounds.workers, "omnigraph-worker")
        self.load_pool = Turns(bounds.loads_max, "omnigraph-load")
        self.jobs = Jobs(bounds)
        self.document = openapi.document(ROUTES, authenticated=identity.required)
        self.docs = openapi.page(ROUTES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await Exchange(self, scope, receive, send).run()

    async def in_thread(self, work: Callable[[], T], pool: Executor | None = None) -> T:
        """Run something that waits, without keeping the event loop."""
        self.telemetry.queued.inc()
        started = _Started(self.telemetry.queued.dec)
        context = copy_context()
        return await asyncio.get_running_loop().run_in_executor(
            pool or self.pool, lambda: context.run(started.run, work)
        )

    def close(self) -> None:
        """Refuse what is new, and wait for what was begun."""
        self.admission.closing = True
        self.pool.shutdown(wait=True)
        self.load_pool.shutdown()
        self.jobs.close()


class _Started:
    """Work that says when a thread took it up."""

    def __init__(self, begun: Callable[[], None]) -> None:
        self._begun = begun

    def run(self, work: Callable[[], T]) -> T:
        self._begun()
        return work()


class Exchange:
    """One request and its answer."""

    def __init__(self, server: Server, scope: Scope, receive: Receive, send: Send) -> None:
        self.server = server
        self.scope = scope
        self.receive = receive
        self.send = send
        self.held = ExitStack()  # what the request holds until it is answered
        self.begun = time.perf_counter()
        self.is_head = scope["method"] == "HEAD"
        self.request_id = f"{next(_request_ids):016x}"
        self.started = False
        self.record: dict[str, Any] = {
            "method": scope["method"],
            "path": scope.get("raw_path", b"").split(b"?")[0].decode("ascii", "replace"),
            "route": UNKNOWN_ROUTE,
            "status": 0,
            "actor": None,
            "commit": None,
        }

    async def run(self) -> None:
        """Answer, whatever happens, and write it down."""
        self.server.telemetry.in_flight.inc()
        with tracer.start_as_current_span(
            "request", context=caller(self.scope["headers"]), kind=SERVER
        ) as span:
            try:
                await self._answer()
            except OmnigraphError as error:
                await self._fail(error)
            except Exception as error:
                log.exception("request %s failed", self.request_id)
                await self._fail(OmnigraphError("internal error", help=""), error)
            finally:
                self.held.close()
                self.server.telemetry.in_flight.dec()
                self.record["seconds"] = time.perf_counter() - self.begun
                self.record["request_id"] = self.request_id
                describe(span, self.record)
                self.server.telemetry.answered(self.record)

    async def _answer(self) -> None:
        headers = _headers(self.scope)
        self.request_id = _request_id(headers, self.request_id)
        match = self.server.router.match(self.scope["method"], _raw_path(self.scope))
        route = match.route
        self.record["route"] = route.name
        if not self.server.identity.required:
            is_page = route.page or route.public
            self.server.origins.check(self.scope["method"], headers, is_page=is_page)
        actor = None if route.public else self.server.identity.actor(headers.get("authorization"))
        self.record["actor"] = actor
        call = self._call(route, headers, match.params, actor)
        if route.work is Work.NONE:
            await self._send_answer(route, _made(route.handler(call)))
            return
        self.held.enter_context(self.server.admission.request(actor))
        answer = await self._work(route, call)
        self.record["commit"] = answer.commit
        await self._send_answer(route, answer)

    def _call(
        self, route: Route, headers: Mapping[str, str], params: dict[str, str], actor: str | None
    ) -> Call:
        graph = None if route.flat else params["graph_id"]
        call = Call(
            actor=actor,
            bounds=self.server.bounds,
            headers=headers,
            path=params,
            guard=self.server.access.guard(actor, graph),
            state=self.server,
        )
        if not route.flat:
            call.graph_id = graph_id(params["graph_id"])
            call.served = self.server.graphs.get(call.graph_id)
            if call.served is None:
                raise GraphNotServed(f"graph '{call.graph_id}' not found")
        _check_condition(route, headers)
        if route.query is not None:
            call.query = _query_string(self.scope, route.query)
        return call

    # --- the work ------------------------------------------------------------------------------------------------

    async def _work(self, route: Route, call: Call) -> Answer:
        if route.work is Work.LOAD and _is_stream(route, call):
            return await self._load_stream(route, call)
        if route.body is not None:
            call.body = await self._json(route, call)
        if route.work is Work.EXPORT:
            self.held.enter_context(self.server.admission.slot("exports_max", call.actor))
        if _becomes_job(route, call):
            return await self.server.in_thread(lambda: _begin(route, call))
        pool = self.server.load_pool.of(call.actor) if route.work is Work.LOAD else None
        return await self.server.in_thread(lambda: _run(route, call), pool)

    async def _json(self, route: Route, call: Call) -> Any:
        assert route.body is not None  # noqa: S101
        name = "json_load_bytes_max" if route.work is Work.LOAD else "body_bytes_max"
        limits = self._limits(name)
        raw = await read_all(self._counted(call, limits), call.headers, limits)
        streamed = STREAMED if route.work is Work.LOAD else ()
        if len(raw) <= DECODED_AT_ONCE_BYTES_MAX:
            return decode(raw, route.body, call.headers, streamed)
        shape = route.body
        return await self.server.in_thread(lambda: decode(raw, shape, call.headers, streamed))

    async def _load_stream(self, route: Route, call: Call) -> Answer:
        """A load of any size: allowed first, then received to disk, then read by a thread for loads."""
        assert route.body is not None  # noqa: S101
        call.body = _query_string(self.scope, route.body)
        await self.server.in_thread(lambda: _authorize(route, call))
        limits = self._limits("load_bytes_max")
        self.held.enter_context(self.server.admission.slot("uploads_max", call.actor))
        receive = self._counted(call, limits)
        call.spool = new_spool(call.headers, limits)
        self.held.callback(lambda: None if call.goes_on else call.close())
        receiving = fill(call.spool, receive, limits, self.server.in_thread)
        try:
            await asyncio.wait_for(receiving, self.server.bounds.load_seconds_max)
        except TimeoutError:
            raise ClientGone("the body took too long") from None
        return await self._loaded(route, call)

    def _counted(self, call: Call, limits: BodyLimits) -> Receive:
        """The body of a request, whose bytes its actor holds until the request is answered."""
        size = announced(call.headers, limits)
        held = self.held.enter_context(self.server.admission.body(call.actor, size))

        async def receive() -> Any:
            message = await self.receive()
            held.come(len(message.get("body", b"")))
            return message

        return receive

    async def _loaded(self, route: Route, call: Call) -> Answer:
        """A load whose body is here: done while the client waits, or as a job that is asked about later."""
        if _becomes_job(route, call):
            return await self.server.in_thread(lambda: _made(start_load(call, route.handler)))
        pool = self.server.load_pool.of(call.actor)
        return await self.server.in_thread(lambda: _made(route.handler(call)), pool)

    def _limits(self, name: str) -> BodyLimits:
        bounds = self.server.bounds
        return BodyLimits(
            getattr(bounds, name), name, bounds.unpack_ratio_max, bounds.stall_seconds_max
        )

    # --- the answer ----------------------------------------------------------------------------------------------

    async def _send_answer(self, route: Route, answer: Answer) -> None:
        try:
            await self._send_whole(route, answer)
        finally:
            if answer.release is not None:  # in a thread that is there even while the server ends
                await asyncio.to_thread(answer.release)

    async def _send_whole(self, route: Route, answer: Answer) -> None:
        if route.successor is not None:
            answer.headers |= {
                "Deprecation": "true",
                "Link": f'<{route.successor}>; rel="successor-version"',
            }
        if answer.blocks is not None and not self.is_head:
            await self._stream(answer)
            return
        body = answer.raw or b""
        length = {} if answer.status == 304 else {"Content-Length": str(len(body))}
        await self._start(answer.status, answer.media, length | answer.headers)
        await self._body(b"" if self.is_head else body, more=False)

    async def _stream(self, answer: Answer) -> None:
        """Blocks as they are made, no faster than the client takes them."""
        blocks: Iterator[bytes] = answer.blocks or iter(())
        block = await self._next(blocks)  # what fails before the first block is still an error
        await self._start(answer.status, answer.media, answer.headers)
        gone = asyncio.ensure_future(self._gone())
        try:
            while block is not None:
                if gone.done():
                    raise ClientGone("the client went away")
                await self._body(block, more=True)
                block = await self._next(blocks)
            await self._body(b"", more=False)
        finally:
            gone.cancel()

    async def _gone(self) -> None:
        """Ends when the client goes away."""
        while (await self.receive())["type"] != "http.disconnect":
            pass

    async def _next(self, blocks: Iterator[bytes]) -> bytes | None:
        return await self.server.in_thread(lambda: next(blocks, None))

    async def _start(self, status: int, media: str, headers: Mapping[str, str]) -> None:
        self.record["status"] = status
        sent = {"Content-Type": media, "X-Request-Id": self.request_id, **PROTECTIVE, **headers}
        raw = [
            (k.lower().encode("latin-1"), v.encode("latin-1", "replace")) for k, v in sent.items()
        ]
        self.started = True
        await self.send({"type": "http.response.start", "status": status, "headers": raw})

    async def _body(self, body: bytes, *, more: bool) -> None:
        message = {"type": "http.response.body", "body": body, "more_body": more}
        try:
            async with asyncio.timeout(self.server.bounds.stall_seconds_max):
                await self.send(message)
        except TimeoutError:
            raise ClientGone("the client does not take its answer") from None

    async def _fail(self, error: OmnigraphError, cause: BaseException | None = None) -> None:
        """Tell a failure; once an answer has begun, only breaking it off can."""
        self.server.telemetry.errors.labels(str(error.code), str(error.kind)).inc()
        if self.started:
            raise cause or error
        status = status_of(error)
        if status >= 500:
            log.error("request %s: %s: %s", self.request_id, error.code, error.message)
        body = msgspec.json.encode(body_of(error), enc_hook=str)
        await self._start(status, JSON, {"Content-Length": str(len(body)), **headers_of(error)})
        await self._body(b"" if self.is_head else body, more=False)


# --- in a thread ---------------------------------------------------------------------------------------------------


def _authorize(route: Route, call: Call) -> None:
    need: Need
    for need in route.needs(call):
        call.require(need)


def _run(route: Route, call: Call) -> Answer:
    """Nothing below a route happens before it is allowed."""
    _authorize(route, call)
    return _made(route.handler(call))


def _becomes_job(route: Route, call: Call) -> bool:
    return call.is_async and route.answer is LoadOutput


def _begin(route: Route, call: Call) -> Answer:
    """As `_run`, but what is allowed goes on alone."""
    _authorize(route, call)
    return _made(start_load(call, route.handler))


def _made(answer: Answer) -> Answer:
    """The answer with its JSON written."""
    if answer.raw is None and answer.blocks is None:
        answer.raw = msgspec.json.encode(answer.content, enc_hook=str)
    return answer


# --- reading requests ------------------------------------------------------------------------------------------------


def _headers(scope: Scope) -> dict[str, str]:
    """Headers by name. One that decides something may be there only once: two readers might choose differently."""
    found: dict[str, str] = {}
    for name, value in scope["headers"]:
        lower = name.lower()
        key = lower.decode("latin-1")
        if key in found:
            if lower in ONCE:
                raise RequestInvalid(f"the header {key} is there twice")
            found[key] += "," + value.decode("latin-1")
        else:
            found[key] = value.decode("latin-1")
    if "content-length" in found and "transfer-encoding" in found:
        raise LengthAmbiguous(
            "a request has Content-Length or Transfer-Encoding, not both", {"Connection": "close"}
        )
    return found


def _request_id(headers: Mapping[str, str], fresh: str) -> str:
    given = headers.get("x-request-id", "")
    return given if REQUEST_ID.fullmatch(given) else fresh


def _raw_path(scope: Scope) -> bytes:
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    return raw


def _check_condition(route: Route, headers: Mapping[str, str]) -> None:
    given = headers.get(IF_COMMIT)
    if route.conditional and (given is None or COMMIT_ID.fullmatch(given) is None):
        raise RequestInvalid(f"the header {IF_COMMIT} must hold one commit id")
    if given is not None and not route.conditional:
        raise RequestInvalid(f"conditional writes go to the route that ends in /{IF_COMMIT[10:]}")


def _is_stream(route: Route, call: Call) -> bool:
    media = call.headers.get("content-type", "").partition(";")[0].strip().lower()
    return route.streams or media in STREAMED


def _query_string(scope: Scope, shape: type[S]) -> S:
    """The query string as a struct: lists may repeat, everything else may not."""
    text = scope["query_string"].decode("latin-1")
    fields = {f.encode_name: f for f in msgspec.structs.fields(shape)}
    given: dict[str, Any] = {}
    try:
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=1000, errors="strict")
    except (ValueError, UnicodeDecodeError):
        raise RequestInvalid("the query string cannot be read") from None
    for name, value in pairs:
        if name in fields and "list" in str(fields[name].type):
            given.setdefault(name, []).append(value)
        elif name in given:
            raise RequestInvalid(f"the parameter {name[:80]!r} is there twice")
        else:
            given[name] = value
    try:
        return msgspec.convert(given, shape, strict=False)
    except msgspec.ValidationError as error:
        raise RequestInvalid(f"the query string does not fit: {error}") from None
