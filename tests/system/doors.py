"""The ways to a graph: as it is, under a policy, and through a server that listens on this machine.

One server runs for all graphs of this process, one after the other; each run puts its own graph behind it.
"""

from __future__ import annotations

import atexit
import json
import tempfile
import threading
from functools import cache
from pathlib import Path
from typing import Any

import uvicorn

from omnigraph.graph import Graph
from omnigraph.guarded import GuardedGraph
from omnigraph.policy.bundle import parse_bundle
from omnigraph.policy.cedar import Policy, compile_bundle
from omnigraph.policy.guard import Guard
from omnigraph.remote.graph import RemoteGraph
from omnigraph.server.access import Access, Identity
from omnigraph.server.app import Server
from omnigraph.server.request import Served
from omnigraph.server.settings import Bounds
from tests.support.waiting import wait_until
from tests.system.policy import ACTORS, RULES

GRAPH = "g"


@cache
def policy() -> Policy:
    return Policy(compile_bundle(parse_bundle(RULES)))


class Switchboard:
    """An application that hands every request to the server of the run that is under way."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="tokens-"))
        tokens = self.folder / "tokens.json"
        tokens.write_text(json.dumps({actor: f"t-{actor}" for actor in ACTORS}))
        self._identity = Identity(str(tokens), {})
        self._access = Access(True, None, {GRAPH: policy()})
        self._server: Server | None = None
        config = uvicorn.Config(self, port=0, lifespan="off", log_config=None, access_log=False)
        self._running = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._running.run, daemon=True)
        self._thread.start()
        wait_until(lambda: self._running.started or not self._thread.is_alive())
        self.address = f"http://127.0.0.1:{self._running.servers[0].sockets[0].getsockname()[1]}"

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        assert self._server is not None
        await self._server(scope, receive, send)

    def serve(self, graph: Graph) -> None:
        """Put a graph behind the address."""
        if self._server is None:
            self._server = Server(
                {GRAPH: Served(GRAPH, graph, {}, ())},
                self._identity,
                self._access,
                Bounds(threads_max=2),
            )
        self._server.graphs = {GRAPH: Served(GRAPH, graph, {}, ())}

    def close(self) -> None:
        self._running.should_exit = True
        self._thread.join(30)
        if self._server is not None:
            self._server.close()


@cache
def switchboard() -> Switchboard:
    """The one of this process."""
    made = Switchboard()
    atexit.register(made.close)
    return made


@cache
def remote(actor: str) -> RemoteGraph:
    """The served graph, in the hands of an actor."""
    return RemoteGraph(f"{switchboard().address}/graphs/{GRAPH}", f"t-{actor}")


def served(graph: Graph, actor: str) -> Any:
    """A graph through the server."""
    switchboard().serve(graph)
    return remote(actor)


def guarded(graph: Graph, actor: str) -> Any:
    """A graph under the policy, opened directly."""
    return GuardedGraph(graph, Guard(policy(), actor, GRAPH))
