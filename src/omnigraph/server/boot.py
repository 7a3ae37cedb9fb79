"""From settings to a running server: open the graphs, read the rules, then listen."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from starlette.types import Receive, Scope, Send

from omnigraph.cluster.serving import embed_settings
from omnigraph.errors import OmnigraphError
from omnigraph.graph import open_graph
from omnigraph.policy.cedar import Policy, read_policy
from omnigraph.server.access import Access, Identity, Origins
from omnigraph.server.app import Server
from omnigraph.server.counts import Counts
from omnigraph.server.listening import Listen, bound
from omnigraph.server.oidc import Issuers
from omnigraph.server.request import Served
from omnigraph.server.settings import GraphSettings, ServerInvalid, Settings, from_environment
from omnigraph.server.stored_queries import stored_queries

OPENED_AT_ONCE = 4
KEEP_ALIVE_SECONDS = 30
BUSY_SECONDS = 0.1  # between two checks

log = logging.getLogger("omnigraph.server")


LOCALLY = Listen()


def build(
    settings: Settings,
    environment: Mapping[str, str] = os.environ,
    *,
    host: str = "",
    secret: str | None = None,
    holder: str | None = None,
    counts: Counts | None = None,
) -> Server:
    """The application for some settings; unsafe or ambiguous settings refuse to start.

    `host` is the name it will listen on. With a secret, only its `holder` is served. Workers share `counts`.
    """
    settings = from_environment(settings, environment)
    issuers = Issuers(settings.oidc, settings.oidc_keys_from)
    identity = Identity(settings.tokens_file, environment, secret, holder, issuers)
    policies = {
        id: _policy(graph.policy, for_server=False)
        for id, graph in settings.graphs.items()
        if graph.policy is not None
    }
    server_policy = None
    if settings.policy is not None:
        server_policy = _policy(settings.policy, for_server=True)
    _check_identity(settings, identity, any_policy=bool(policies) or server_policy is not None)
    graphs, quarantined = _opened(settings, environment)
    access = Access(identity.required, server_policy, policies, settings.read_only)
    origins = Origins(frozenset(name.lower() for name in settings.hosts), host.lower())
    server = Server(graphs, identity, access, settings.limits, quarantined, origins, counts)
    server.cluster = settings.cluster
    server.maintains = settings.maintain and not settings.read_only
    return server


def _policy(path: str, *, for_server: bool) -> Policy:
    policy = read_policy(path)
    if policy.rules.for_server not in (None, for_server):
        scope = "a server" if for_server else "a graph"
        raise ServerInvalid(f"{path} holds rules that do not apply to {scope}")
    return policy


def _check_identity(settings: Settings, identity: Identity, *, any_policy: bool) -> None:
    if identity.required:
        return
    if any_policy:
        raise ServerInvalid(
            "policies need tokens: without them, callers cannot be identified",
            help="Name a file with --tokens-file, or set OMNIGRAPH_SERVER_BEARER_TOKEN.",
        )
    if not settings.unauthenticated:
        raise ServerInvalid(
            "without tokens, anyone could do anything",
            help="Name a file with --tokens-file, set OMNIGRAPH_SERVER_BEARER_TOKEN, "
            "or pass --unauthenticated if that is intended.",
        )


def _opened(
    settings: Settings, environment: Mapping[str, str]
) -> tuple[dict[str, Served], tuple[str, ...]]:
    """The graphs that can be served, and the ids of those that cannot."""
    if not settings.graphs:
        raise ServerInvalid("no graphs to serve")
    with ThreadPoolExecutor(OPENED_AT_ONCE) as pool:
        tried = {
            id: pool.submit(_open, id, graph, settings, environment)
            for id, graph in settings.graphs.items()
        }
    found: dict[str, Served] = {}
    failed: list[str] = []
    for id, future in tried.items():
        try:
            found[id] = future.result()
        except OmnigraphError as error:
            if settings.require_all_graphs or len(settings.graphs) == 1:
                raise
            log.error("graph %s is not served: %s", id, error.render())  # noqa: TRY400
            failed.append(id)
    if not found:
        raise ServerInvalid("none of the graphs can be served; the log says why")
    return found, tuple(failed)


def _open(
    id: str, graph: GraphSettings, settings: Settings, environment: Mapping[str, str]
) -> Served:
    said = graph.embedding
    provider = None if said is None else embed_settings(said, environment)
    opened = open_graph(graph.uri, group_commit=settings.group_commit, embedding=provider)
    queries = stored_queries(graph.queries, opened.snapshot().catalog)
    return Served(id, opened, queries, tuple(settings.load_from))


# --- listening -----------------------------------------------------------------------------------------------------


class Current:
    """The server in force; when another one replaces it, it finishes what it has begun."""

    def __init__(self, server: Server, again: Callable[[Server], Server] | None) -> None:
        self.server = server
        self._again = again
        self._asked = False
        self._renewing: asyncio.Task[None] | None = None
        self._ending: set[asyncio.Task[None]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.server(scope, receive, send)

    def renew(self) -> None:
        """Reload the settings and serve by them from now on; invalid ones leave the old settings in force."""
        self._asked = True
        if self._again is not None and (self._renewing is None or self._renewing.done()):
            self._renewing = asyncio.get_running_loop().create_task(self._renew_all(self._again))

    async def _renew_all(self, again: Callable[[Server], Server]) -> None:
        while self._asked:
            self._asked = False
            await self._renew(again)

    async def _renew(self, again: Callable[[Server], Server]) -> None:
        old = self.server
        try:
            new = await asyncio.to_thread(again, old)
        except OmnigraphError as error:
            log.error("the settings were not renewed: %s", error.message)  # noqa: TRY400
            return
        new.telemetry = old.telemetry
        new.maintain()
        self.server = new
        log.info("the settings were renewed")
        ending = asyncio.get_running_loop().create_task(_end(old))
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)


async def _end(server: Server) -> None:
    """Close a server once it has finished what it had begun."""
    while server.is_busy:
        await asyncio.sleep(BUSY_SECONDS)
    await asyncio.to_thread(server.close)


def serve(
    server: Server,
    listen: Listen,
    announce: Callable[[str], None],
    again: Callable[[Server], Server] | None = None,
) -> None:
    """Listen until stopped, then finish what was begun. `announce` gets the address.

    On SIGHUP, `again` makes the server that replaces the one it is given.
    """
    import uvicorn

    current = Current(server, again)

    class Announcing(uvicorn.Server):
        """Announces its address once it listens."""

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if again is not None:
                asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, current.renew)
            for each in sockets or ():
                host, port = each.getsockname()[:2]
                announce(f"{host}:{port}")

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            current.server.admission.closing = True
            await super().shutdown(sockets)

    own = bound(listen)
    server.maintain()
    try:
        Announcing(uvicorn.Config(current, **options(server, listen))).run(sockets=[own])
    finally:
        current.server.close()


def options(server: Server, listen: Listen = LOCALLY) -> dict[str, Any]:
    """The options of uvicorn."""
    from omnigraph.server.protocol import Connection

    return {
        "http": Connection,
        "ws": "none",
        "interface": "asgi3",
        "lifespan": "off",
        "log_config": None,
        "access_log": False,
        "server_header": False,
        "proxy_headers": False,
        "timeout_keep_alive": KEEP_ALIVE_SECONDS,
        "timeout_graceful_shutdown": int(server.bounds.shutdown_seconds_max),
        "ssl_certfile": listen.tls_cert,
        "ssl_keyfile": listen.tls_key,
    }
