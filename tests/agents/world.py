"""A graph served to agents: actors with different rights, and clients of the SDK that act for them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from omnigraph.graph import Graph
from omnigraph.server.app import Server
from omnigraph.server.settings import Bounds
from tests.server import world as worlds

T = TypeVar("T")
RULES = """
version: 1
groups: {admins: [admin], readers: [reader], drafters: [beta]}
protected_branches: [main]
rules:
  - {id: a1, allow: {actors: {group: admins}, actions: [read, export, change, admin, invoke_query]}}
  - {id: a2, allow: {actors: {group: admins}, actions: [branch_create, branch_delete, branch_merge]}}
  - {id: a3, allow: {actors: {group: admins}, actions: [propose, approve, schema_apply]}}
  - {id: r1, allow: {actors: {group: readers}, actions: [read, invoke_query]}}
  - {id: d1, allow: {actors: {group: drafters}, actions: [read, invoke_query]}}
  - {id: d2, allow: {actors: {group: drafters}, actions: [change], branch_scope: unprotected}}
  - {id: d4, allow: {actors: {group: drafters}, actions: [propose]}}
  - {id: d3, allow: {actors: {group: drafters}, actions: [branch_create], target_branch_scope: unprotected}}
"""
MODES = ("legacy", "auto")  # the handshake of older clients, and the requests of newer ones


@contextmanager
def served(folder: Path, **more: Any) -> Iterator[tuple[str, dict[str, Graph], Server]]:
    """The address of a server with two graphs, of which `alpha` is under the rules above."""
    bounds = more.pop("bounds", Bounds(threads_max=4))
    server, graphs = worlds.build(folder, bounds, rules=more.pop("rules", RULES), **more)
    with worlds.listening(server) as address:
        yield address, graphs, server


@asynccontextmanager
async def client(
    address: str, actor: str | None = "beta", mode: str = "auto", **headers: str
) -> AsyncIterator[Client]:
    """A client of the SDK with the token of an actor."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    if actor is not None:
        sent["Authorization"] = f"Bearer {worlds.TOKENS[actor]}"
    async with (
        httpx2.AsyncClient(headers=sent, timeout=30) as http,
        Client(streamable_http_client(address, http_client=http), mode=mode) as made,
    ):
        yield made


def run(work: Callable[[], Awaitable[T]]) -> T:
    """The outcome of something that is awaited."""

    async def main() -> T:
        return await work()

    return asyncio.run(main())


async def called(made: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """The answer of a tool that must succeed."""
    found = await made.call_tool(tool, arguments)
    assert not found.is_error, found.structured_content
    answer: dict[str, Any] = found.structured_content
    return answer


async def refused(made: Client, tool: str, **arguments: Any) -> str:
    """The code with which a tool refuses; the answer has all that every refusal has."""
    found = await made.call_tool(tool, arguments)
    answer = found.structured_content
    assert found.is_error, answer
    assert answer["error"]["help"] is not None
    assert answer["next"]
    return str(answer["error"]["code"])
