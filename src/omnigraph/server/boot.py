"""From settings to a running server: open the graphs, read the rules, then listen."""

from __future__ import annotations

import logging
import os
import socket
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from omnigraph.errors import OmnigraphError
from omnigraph.graph import open_graph
from omnigraph.policy.cedar import Policy, read_policy
from omnigraph.server.access import Access
from omnigraph.server.app import Server
from omnigraph.server.calls import Served
from omnigraph.server.identity import Identity
from omnigraph.server.origins import Origins
from omnigraph.server.settings import GraphSettings, ServerInvalid, Settings, from_environment
from omnigraph.server.stored import stored_queries

OPENED_AT_ONCE = 4
KEEP_ALIVE_SECONDS = 30
HEADER_BYTES_MAX = 64 << 10

log = logging.getLogger("omnigraph.server")


@dataclass(frozen=True, slots=True)
class Listen:
    """Where a server listens, and how."""

    host: str = "127.0.0.1"
    port: int = 8080
    tls_cert: str | None = None
    tls_key: str | None = None


def build(
    settings: Settings,
    environment: Mapping[str, str] = os.environ,
    *,
    host: str = "",
    secret: str | None = None,
) -> Server:
    """The application for some settings; whatever is unsafe or unclear refuses to start.

    `host` is the name it will listen on. With a secret, only who has it is served.
    """
    settings = from_environment(settings, environment)
    identity = Identity(settings.tokens_file, environment, secret)
    policies = {
        id: _policy(graph.policy, for_server=False)
        for id, graph in settings.graphs.items()
        if graph.policy is not None
    }
    server_policy = None
    if settings.policy is not None:
        server_policy = _policy(settings.policy, for_server=True)
    _check_identity(settings, identity, any_policy=bool(policies) or server_policy is not None)
    graphs, quarantined = _opened(settings)
    access = Access(identity.required, server_policy, policies, settings.read_only)
    origins = Origins(frozenset(name.lower() for name in settings.hosts), host.lower())
    return Server(graphs, identity, access, settings.limits, quarantined, origins)


def _policy(path: str, *, for_server: bool) -> Policy:
    policy = read_policy(path)
    if policy.rules.for_server not in (None, for_server):
        scope = "a server" if for_server else "a graph"
        raise ServerInvalid(f"{path} holds rules that do not concern {scope}")
    return policy


def _check_identity(settings: Settings, identity: Identity, *, any_policy: bool) -> None:
    if identity.required:
        return
    if any_policy:
        raise ServerInvalid(
            "there are policies but no tokens: nobody could be told apart",
            help="Name a file with --tokens-file, or set OMNIGRAPH_SERVER_BEARER_TOKEN.",
        )
    if not settings.unauthenticated:
        raise ServerInvalid(
            "there are no tokens, so anybody could do anything",
            help="Name a file with --tokens-file, set OMNIGRAPH_SERVER_BEARER_TOKEN, "
            "or say --unauthenticated if that is what you want.",
        )


def _opened(settings: Settings) -> tuple[dict[str, Served], tuple[str, ...]]:
    """The graphs that can be served, and the ids of those that cannot."""
    if not settings.graphs:
        raise ServerInvalid("there is no graph to serve")
    with ThreadPoolExecutor(OPENED_AT_ONCE) as pool:
        tried = {id: pool.submit(_open, id, g, settings) for id, g in settings.graphs.items()}
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


def _open(id: str, graph: GraphSettings, settings: Settings) -> Served:
    opened = open_graph(graph.uri, group_commit=settings.group_commit)
    queries = stored_queries(graph.queries, opened.snapshot().catalog)
    return Served(id, opened, queries, tuple(settings.load_from))


# --- listening -----------------------------------------------------------------------------------------------------


def serve(server: Server, listen: Listen, announce: Callable[[str], None]) -> None:
    """Listen until told to stop; then finish what was begun. `announce` is told the address."""
    import uvicorn

    class Announcing(uvicorn.Server):
        """Says where it listens once it does."""

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            for bound in sockets or ():
                host, port = bound.getsockname()[:2]
                announce(f"{host}:{port}")

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            server.admission.closing = True
            await super().shutdown(sockets)

    bound = _bound(listen)
    try:
        Announcing(uvicorn.Config(server, **_options(server, listen))).run(sockets=[bound])
    finally:
        server.close()


def _bound(listen: Listen) -> socket.socket:
    family = socket.AF_INET6 if ":" in listen.host else socket.AF_INET
    # With the protocol named, asyncio sends small answers at once instead of waiting for acknowledgements.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((listen.host, listen.port))
    except OSError as error:
        bound.close()
        raise ServerInvalid(f"cannot listen on {listen.host}:{listen.port}: {error}") from error
    return bound


def _options(server: Server, listen: Listen) -> dict[str, Any]:
    return {
        "lifespan": "off",
        "log_config": None,
        "access_log": False,
        "server_header": False,
        "proxy_headers": False,
        "timeout_keep_alive": KEEP_ALIVE_SECONDS,
        "timeout_graceful_shutdown": int(server.bounds.shutdown_seconds_max),
        "h11_max_incomplete_event_size": HEADER_BYTES_MAX,
        "ssl_certfile": listen.tls_cert,
        "ssl_keyfile": listen.tls_key,
    }


def log_to_stderr(level: int = logging.INFO) -> None:
    """Log lines with their time, for people and for collectors."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    root = logging.getLogger("omnigraph")
    root.addHandler(handler)
    root.setLevel(level)
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL)  # what concerns requests is ours to say
