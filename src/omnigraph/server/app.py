"""One request from its first byte to its last: authenticated, authorised, bounded, run in a thread, answered.

The event loop moves bytes; everything that computes or waits for a store runs in threads.
"""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from contextvars import copy_context
from functools import partial
from itertools import count
from typing import Any, TypeVar

import msgspec
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from omnigraph.errors import Kind, OmnigraphError
from omnigraph.maintenance.upkeep import Upkeep
from omnigraph.model.frozen import frozen
from omnigraph.read.budget import cancelled_by, who_cancels
from omnigraph.server import openapi
from omnigraph.server.access import SAID, Access, Caller, Identity, Origins
from omnigraph.server.bodies import (
    BodyLimits,
    ClientGone,
    announced,
    decode,
    fill,
    media_of,
    new_spool,
    read_all,
    within,
)
from omnigraph.server.counts import Counted, Counts
from omnigraph.server.errors import (
    ContractUnknown,
    RequestInvalid,
    RouteNotFound,
    body_of,
    headers_of,
    status_of,
)
from omnigraph.server.jobs import Jobs
from omnigraph.server.limits import Admission, Gate, Holding
from omnigraph.server.request import (
    GONE,
    OBSERVED,
    STREAMED,
    Answer,
    HttpCall,
    Served,
    read_headers,
    read_query,
)
from omnigraph.server.routes import ROUTES
from omnigraph.server.routes.jobs import start_load
from omnigraph.server.routing import Handler, Route, Routes, RouteWork, routed_path
from omnigraph.server.settings import Bounds, ServerInvalid, graph_id
from omnigraph.server.telemetry import Telemetry, spanned
from omnigraph.server.threads import Threads, Turns
from omnigraph.wire.answers import LoadOutput
from omnigraph.wire.contracts import CONTRACTS, HTTP_API, IF_COMMIT, OLDEST
from omnigraph.wire.requests import GraphQuery

T = TypeVar("T")

log = logging.getLogger("omnigraph.server")
REQUEST_ID = re.compile(r"[A-Za-z0-9_-]{8,64}")
COMMIT_ID = re.compile(r"[0-9A-Za-z.]{1,64}")
POLICY = b"content-security-policy"
PROTECTIVE = (
    (b"x-content-type-options", b"nosniff"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
NOTHING_FROM_ELSEWHERE = b"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
UNKNOWN_ROUTE = "unknown"
DECODED_AT_ONCE_BYTES_MAX = 256 << 10  # a larger body would block the event loop
BOUNDS = Bounds()
ORIGINS = Origins()
BODILESS = frozenset({204, 304})
LENGTH = "Content-Length"
_request_ids = count(
    secrets.randbits(63)
)  # unlike those of other processes, and without a system call


class GraphNotServed(OmnigraphError):
    """The server has no graph of this id."""

    code, kind = "graph_not_served", Kind.NOT_FOUND
    default_help = "`GET /graphs` lists the graphs, if you may see them."


class GraphNotChosen(OmnigraphError):
    """The server has several graphs, and the request names none."""

    code, kind = "graph_not_chosen", Kind.INVALID
    default_help = "Use the path below /graphs/{id}, or name it with `?graph=`."


class Server:
    """The application: its graphs, who may use them, and its metrics."""

    def __init__(
        self,
        graphs: Mapping[str, Served],
        identity: Identity,
        access: Access,
        bounds: Bounds = BOUNDS,
        quarantined: tuple[str, ...] = (),
        origins: Origins = ORIGINS,
        counts: Counts | None = None,
    ) -> None:
        if access.authenticated is not identity.required:
            raise ServerInvalid("tokens and policies do not agree on whether there are tokens")
        self.graphs = dict(sorted(graphs.items()))
        self.identity = identity
        self.access = access
        self.bounds = bounds
        self.quarantined = quarantined
        self.origins = origins
        counts = counts or Counts()
        self.admission = Admission(bounds, counts)
        self.telemetry = Telemetry()
        self.under_way = 0  # requests
        self.router = Routes(ROUTES, self._answering)
        self.pool = Threads(bounds.threads_max, "omnigraph-worker")
        loads = Gate(counts, Counted.LOADS_RUNNING, bounds.loads_max)
        self.load_pool = Turns(bounds.loads_max, "omnigraph-load", loads)
        self.jobs = Jobs(self.admission)
        self.maintains = False
        self.upkeeps: dict[str, Upkeep] = {}
        self.cluster: str | None = None  # the root of the cluster that is served
        self.document = openapi.document(ROUTES, authenticated=identity.required)
        self.docs = openapi.page(ROUTES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        self.under_way += 1
        try:
            await Observed(self, scope, send).run(receive)
        finally:
            self.under_way -= 1

    def _answering(self, route: Route) -> ASGIApp:
        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            with ExitStack() as held:
                await Exchange(self, route, scope, receive, send, held).answer()

        return answer

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Run something that waits, without blocking the event loop."""
        return await self.pool.submit(self._queued(work))

    async def in_load_thread(self, actor: str | None, work: Callable[[], T]) -> T:
        """The same for loads, which have their own threads and take turns."""
        return await asyncio.wrap_future(self.load_pool.submit(actor, self._queued(work)))

    def _queued(self, work: Callable[[], T]) -> Callable[[], T]:
        self.telemetry.queued.inc()
        gone = who_cancels()

        def begin() -> T:
            self.telemetry.queued.dec()
            if gone is not None and gone():
                raise ClientGone("the client disconnected while waiting")
            return work()

        return partial(copy_context().run, begin)

    def maintain(self) -> None:
        """Maintain the graphs in the background if configured, unless another process does."""
        if not self.maintains:
            return
        self.upkeeps = {id: served.graph.upkeep() for id, served in self.graphs.items()}
        self.telemetry.maintenance.upkeeps = self.upkeeps
        for upkeep in self.upkeeps.values():
            upkeep.start()

    @property
    def is_busy(self) -> bool:
        """Whether requests or jobs are under way."""
        return self.under_way > 0 or self.jobs.is_busy

    def close(self) -> None:
        """Refuse new work, and wait for what was begun."""
        self.admission.closing = True
        for upkeep in self.upkeeps.values():
            upkeep.stop()
        self.pool.shutdown()
        self.load_pool.shutdown()
        self.jobs.close()


class Observed:
    """A request from outside: its record, how failures are reported, and what all responses have."""

    def __init__(self, server: Server, scope: Scope, send: Send) -> None:
        self.server = server
        self.scope = scope
        self._send = send
        self.begun = time.perf_counter()
        self.request_id = f"{next(_request_ids):016x}"
        self.started = self.ended = False
        self.gone: Callable[[], bool] = scope.get(GONE, _never)
        self.headers: Mapping[str, str] = {}
        self.record: dict[str, Any] = {
            "method": scope["method"],
            "path": _raw_path(scope).partition(b"?")[0].decode("ascii", "replace"),
            "route": UNKNOWN_ROUTE,
            "status": 0,
            "actor": None,
            "commit": None,
        }

    async def run(self, receive: Receive) -> None:
        """Answer, whatever happens, and log it."""
        self.server.telemetry.begun(self.scope["method"])
        with spanned(self.scope["headers"], self.record):
            try:
                await self._route(receive)
            except OmnigraphError as error:
                await self._fail(error)
            except Exception as error:
                log.exception("request %s failed", self.request_id)
                await self._fail(OmnigraphError("internal error", help=""), error)
            finally:
                self.record["seconds"] = time.perf_counter() - self.begun
                self.record["request_id"] = self.request_id
                self.server.telemetry.answered(self.record)

    async def _route(self, receive: Receive) -> None:
        self.headers = read_headers(self.scope["headers"])
        self.request_id = _request_id(self.headers) or self.request_id
        path = routed_path(_raw_path(self.scope))
        scope = {**self.scope, "path": path, "root_path": "", OBSERVED: self}
        await self.server.router(scope, receive, self.send)
        if not self.ended:
            raise ClientGone("the client disconnected")

    async def send(self, message: Message) -> None:
        """Pass on what is sent: with the headers every response has, and only while the client reads."""
        if message["type"] == "http.response.start":
            self.started, self.record["status"] = True, message["status"]
            headers = message["headers"] = [*message["headers"], *PROTECTIVE]
            headers.append((b"x-request-id", self.request_id.encode()))
            if not any(name == POLICY for name, _ in headers):
                headers.append((POLICY, NOTHING_FROM_ELSEWHERE))
        else:
            self.ended = not message.get("more_body", False)
        try:
            await within(self.server.bounds.stall_seconds_max, self._send(message))
        except TimeoutError:
            raise ClientGone("the client stopped reading the response") from None

    async def _fail(self, error: OmnigraphError, cause: BaseException | None = None) -> None:
        """Report a failure; once a response has begun, the connection can only be closed."""
        self.server.telemetry.failed(error)
        if self.started:
            raise cause or error
        status = status_of(error)
        if status >= 500:
            log.error("request %s: %s: %s", self.request_id, error.code, error.message)
        body = msgspec.json.encode(body_of(error), enc_hook=str)
        await self.whole(Answer(status=status, headers=headers_of(error), raw=body))

    async def whole(self, answer: Answer) -> None:
        """Send a complete response; to a HEAD, all but its body."""
        raw = answer.raw or b""
        headers = _headers(answer)
        if answer.status not in BODILESS and LENGTH not in answer.headers:
            headers.append((b"content-length", b"%d" % len(raw)))
        body = b"" if self.scope["method"] == "HEAD" else raw
        await self.send(
            {"type": "http.response.start", "status": answer.status, "headers": headers}
        )
        await self.send({"type": "http.response.body", "body": body})

    async def begin(self, answer: Answer) -> None:
        """Send the head of a streamed response."""
        headers = _headers(answer)
        await self.send(
            {"type": "http.response.start", "status": answer.status, "headers": headers}
        )

    async def block(self, block: bytes, *, more: bool = True) -> None:
        """Send a part of it, no faster than the client reads."""
        await self.send({"type": "http.response.body", "body": block, "more_body": more})
        if self.gone():
            raise ClientGone("the client disconnected")


@frozen
class Exchange:
    """A request whose route is known, and its response."""

    server: Server
    route: Route
    scope: Scope
    receive: Receive
    send: Send
    held: ExitStack  # what the request holds until it is answered

    async def answer(self) -> None:
        """Do what the route does, if the caller may."""
        route, server, observed = self.route, self.server, self.scope[OBSERVED]
        headers, record = observed.headers, observed.record
        record["route"] = route.name
        if not server.identity.required:
            is_page = route.page or route.public
            server.origins.check(self.scope["method"], headers, is_page=is_page)
        caller = Caller(None) if route.public else await self._caller(headers)
        actor = record["actor"] = caller.actor
        call = self._call(headers, caller)
        if route.work is RouteWork.NONE:
            await self._respond(_made(route.handler(call)))
            return
        holding = server.admission.request(actor)
        self.held.callback(holding.release)
        answer = await self._work(call, holding)
        record["commit"] = answer.commit
        await self._respond(answer)

    async def _caller(self, headers: Mapping[str, str]) -> Caller:
        """The caller; the keys of an issuer are fetched outside the event loop."""
        identity, given = self.server.identity, headers.get("authorization")
        stale = identity.renewal(given)
        if stale is not None:
            await self.server.in_thread(stale.renew)
        return identity.caller(given, headers.get(SAID))

    def _call(self, headers: Mapping[str, str], caller: Caller) -> HttpCall:
        route, server, path = self.route, self.server, self.scope["path_params"]
        actor = caller.actor
        graph = self._chosen_graph() if route.query is GraphQuery else path.get("graph_id")
        guard = server.access.guard(actor, graph)
        call = HttpCall(actor, server.bounds, headers, path, guard, state=server)
        call.person = caller.person
        if graph is not None:
            call.graph_id = graph_id(graph)
            call.served = server.graphs.get(graph)
            if call.served is None:
                raise GraphNotServed(f"graph '{graph}' not found")
        _check_condition(route, headers)
        _check_contract(route, headers)
        if route.query is not None:
            call.query = read_query(self.scope["query_string"], route.query)
        return call

    def _chosen_graph(self) -> str:
        named = read_query(self.scope["query_string"], GraphQuery).graph
        if named is None and len(self.server.graphs) != 1:
            raise GraphNotChosen("this server has several graphs, and the request names none")
        return next(iter(self.server.graphs)) if named is None else named

    # --- the work ------------------------------------------------------------------------------------------------

    async def _work(self, call: HttpCall, holding: Holding) -> Answer:
        route = self.route
        is_load = route.work is RouteWork.LOAD
        cancelled_by(self.scope[OBSERVED].gone)  # queries end when the client has disconnected
        if is_load and (route.streams or media_of(call.headers) in STREAMED):
            await self._receive_load(call, holding)
        elif route.protocol:
            limits = self._limits("body_bytes_max")
            call.raw = await read_all(self._counted(call, holding, limits), call.headers, limits)
        elif route.body is not None:
            call.body = await self._json(call, holding, route.body)
        if route.work is RouteWork.EXPORT:
            holding.slot("exports_max")
        if call.is_async and route.answer is LoadOutput:  # goes on as a job
            return await self.server.in_thread(lambda: _run(route, call, start_load))
        if is_load:
            return await self.server.in_load_thread(call.actor, lambda: _run(route, call, _handle))
        return await self.server.in_thread(lambda: _run(route, call, _handle))

    async def _json(self, call: HttpCall, holding: Holding, shape: type[T]) -> T:
        is_load = self.route.work is RouteWork.LOAD
        limits = self._limits("json_load_bytes_max" if is_load else "body_bytes_max")
        raw = await read_all(self._counted(call, holding, limits), call.headers, limits)
        streamed = STREAMED if is_load else ()
        if len(raw) <= DECODED_AT_ONCE_BYTES_MAX:
            return decode(raw, shape, call.headers, streamed)
        return await self.server.in_thread(lambda: decode(raw, shape, call.headers, streamed))

    async def _receive_load(self, call: HttpCall, holding: Holding) -> None:
        """The body of a load of any size: allowed first, then received to disk."""
        assert self.route.body is not None  # noqa: S101
        call.body = read_query(self.scope["query_string"], self.route.body)
        await self.server.in_thread(lambda: _authorize(self.route, call))
        limits = self._limits("load_bytes_max")
        holding.slot("uploads_max")
        receive = self._counted(call, holding, limits)
        call.spool = new_spool(call.headers, limits)
        self.held.callback(lambda: None if call.goes_on else call.close())
        try:
            async with asyncio.timeout(self.server.bounds.load_seconds_max):
                await fill(call.spool, receive, limits, self.server.in_thread)
        except TimeoutError:
            raise ClientGone("the body took too long") from None

    def _counted(self, call: HttpCall, holding: Holding, limits: BodyLimits) -> Receive:
        """The body of a request, whose bytes its actor holds until the request is answered."""
        holding.bytes(announced(call.headers, limits))

        async def receive() -> Message:
            message = await self.receive()
            holding.come(len(message.get("body", b"")))
            return message

        return receive

    def _limits(self, name: str) -> BodyLimits:
        bounds = self.server.bounds
        return BodyLimits(
            getattr(bounds, name), name, bounds.unpack_ratio_max, bounds.stall_seconds_max
        )

    # --- the answer ----------------------------------------------------------------------------------------------

    async def _respond(self, answer: Answer) -> None:
        observed: Observed = self.scope[OBSERVED]
        try:
            if self.route.successor is not None:
                link = f'<{self.route.successor}>; rel="successor-version"'
                answer.headers |= {"Deprecation": "true", "Link": link}
            if answer.app is not None:
                await answer.app(self.scope, self.receive, self.send)
            elif answer.blocks is None or self.scope["method"] == "HEAD":
                await observed.whole(answer)
            else:
                await self._stream(observed, answer, answer.blocks)
        finally:
            if answer.release is not None:  # in a thread that exists even during shutdown
                await asyncio.to_thread(answer.release)

    async def _stream(self, observed: Observed, answer: Answer, blocks: Iterator[bytes]) -> None:
        """Blocks as they are made, no faster than the client reads."""
        block = await self._next(blocks)  # what fails before it is still an error
        await observed.begin(answer)
        while block is not None:
            await observed.block(block)
            block = await self._next(blocks)
        await observed.block(b"", more=False)

    async def _next(self, blocks: Iterator[bytes]) -> bytes | None:
        """A client that goes away leaves no thread behind."""
        return await asyncio.shield(self.server.in_thread(lambda: next(blocks, None)))


# --- in a thread ---------------------------------------------------------------------------------------------------


def _authorize(route: Route, call: HttpCall) -> None:
    for need in route.needs(call):
        call.require(need)


def _run(route: Route, call: HttpCall, work: Callable[[HttpCall, Handler], Answer]) -> Answer:
    """Nothing below a route happens before it is authorised; a spooled body was authorised before that."""
    if call.spool is None:
        _authorize(route, call)
    return _made(work(call, route.handler))


def _handle(call: HttpCall, handler: Handler) -> Answer:
    return handler(call)


def _made(answer: Answer) -> Answer:
    """The response with its JSON encoded."""
    if answer.raw is None and answer.blocks is None and answer.app is None:
        answer.raw = msgspec.json.encode(answer.content, enc_hook=str)
    return answer


def _headers(answer: Answer) -> list[tuple[bytes, bytes]]:
    headers = [(b"content-type", answer.media.encode("latin-1"))]
    for name, value in answer.headers.items():
        headers.append((name.lower().encode("latin-1"), value.encode("latin-1")))
    return headers


def _never() -> bool:
    return False


def _raw_path(scope: Scope) -> bytes:
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    return raw


def _check_condition(route: Route, headers: Mapping[str, str]) -> None:
    given = headers.get(IF_COMMIT)
    if route.conditional and (given is None or COMMIT_ID.fullmatch(given) is None):
        raise RequestInvalid(f"the header {IF_COMMIT} must hold one commit id")
    if given is not None and not route.conditional:
        raise RequestInvalid(f"conditional writes go to the route that ends in /{IF_COMMIT[10:]}")


def _check_contract(route: Route, headers: Mapping[str, str]) -> None:
    """A client that names a contract gets exactly that one, or an error that lists the versions."""
    named = headers.get(HTTP_API)
    if named is None:
        return
    if named not in CONTRACTS:
        raise ContractUnknown(
            f"this server speaks {' and '.join(CONTRACTS)} of the HTTP interface, not {named!r}",
            {"Omnigraph-Http-Api": ", ".join(CONTRACTS)},
            details={"served": list(CONTRACTS)},
        )
    if route.successor is not None and named != OLDEST:
        raise RouteNotFound(f"the interface {named} has no such route; use /{route.successor}")


def _request_id(headers: Mapping[str, str]) -> str | None:
    given = headers.get("x-request-id", "")
    return given if REQUEST_ID.fullmatch(given) else None
