"""Agents: MCP over streamable HTTP, one request at a time.

A request is authenticated, authorised and bounded like every other before the SDK sees it; its tools run in the
threads of the server, on the graph as the actor may use it.
"""

from __future__ import annotations

from typing import Any, Literal
from urllib.parse import unquote

import msgspec
from starlette.types import Message, Receive, Scope, Send

from omnigraph.agents.answers import ToolAnswer
from omnigraph.agents.toolbox import McpMissing, Provenance, Toolbox, ToolLimits
from omnigraph.server.errors import RequestInvalid
from omnigraph.server.request import OBSERVED, Answer, HttpCall

PERSON = "omnigraph-on-behalf-of"
CONVERSATION = "omnigraph-conversation"
LEFT_OUT = frozenset((b"content-encoding", b"content-length", b"transfer-encoding"))


def mcp(call: HttpCall) -> Answer:
    """MCP for agents: tools, resources and prompts for one graph, over streamable HTTP without sessions."""
    try:
        from omnigraph.agents import protocol
    except ModuleNotFoundError as missing:
        raise McpMissing(f"the package {missing.name} is not installed") from missing
    _check_message(call.raw)
    box, server = _toolbox(call), call.state

    async def runs(tool: Any, work: Any) -> Any:
        if tool is not None and tool.is_load:
            return await server.in_load_thread(call.actor, work)
        return await server.in_thread(work)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        def record(answer: ToolAnswer) -> None:
            scope[OBSERVED].record["commit"] = answer.commit

        headers = [(name, value) for name, value in scope["headers"] if name not in LEFT_OUT]
        made = protocol.server(box, runs, record)
        answering = protocol.one_request(made, max(1, len(call.raw)))
        await answering({**scope, "headers": headers}, _replayed(call.raw, receive), send)

    return Answer(app=app)


class _Message(msgspec.Struct):
    """A JSON-RPC request or response."""

    jsonrpc: Literal["2.0"]
    method: str | None = None
    id: int | str | None = None
    params: dict[str, Any] | None = None


def _check_message(raw: bytes) -> None:
    """Refuse what is not a message: the SDK would quote it in its response."""
    try:
        msgspec.json.decode(raw, type=_Message)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise RequestInvalid("the body is not a JSON-RPC 2.0 message") from None


def _replayed(body: bytes, receive: Receive) -> Receive:
    """The body that was already read, then further messages."""
    left = [body]

    async def again() -> Message:
        if left:
            return {"type": "http.request", "body": left.pop(), "more_body": False}
        return await receive()

    return again


def _toolbox(call: HttpCall) -> Toolbox:
    assert call.served is not None  # noqa: S101
    bounds, usual = call.bounds, ToolLimits()
    person = call.person or _header(call, PERSON)
    provenance = Provenance(call.actor, person=person, conversation=_header(call, CONVERSATION))
    limits = ToolLimits(
        min(usual.query_seconds_max, bounds.query_seconds_max),
        min(usual.write_seconds_max, bounds.write_seconds_max),
        min(usual.query_rows_max, bounds.query_rows_max),
    )
    return Toolbox(call.graph, provenance, call.served.queries, limits)


def _header(call: HttpCall, name: str) -> str | None:
    """The value of a header, percent-encoded unless it is ASCII."""
    return unquote(call.headers.get(name, "")).strip() or None
