"""The counting proxy itself: one process between S3 clients and a server, steered by lines of JSON on its input.

It keeps its own process so that the code under measurement does not wait for it. Each input line is a command and is
answered by one output line; the end of the input ends the process.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

from tests.support import http_wire
from tests.support.http_wire import GOODBYES, Head

LOGGED_HEADERS = ("if-none-match", "if-match", "range", "x-amz-copy-source")


@dataclass(slots=True)
class State:
    """What the commands steer and what they ask for."""

    backend_port: int
    latency: float = 0.0
    concurrency: int = 8
    in_flight: int = 0
    in_flight_max: int = 0
    keeps_log: bool = True
    log: list[dict[str, Any]] = field(default_factory=list)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def enter(self) -> None:
        async with self.changed:
            await self.changed.wait_for(lambda: self.in_flight < self.concurrency)
            self.in_flight += 1
            self.in_flight_max = max(self.in_flight_max, self.in_flight)

    async def leave(self) -> None:
        async with self.changed:
            self.in_flight -= 1
            self.changed.notify_all()

    async def command(self, name: str, value: Any) -> Any:
        match name:
            case "latency":
                self.latency = float(value)
            case "concurrency":
                async with self.changed:
                    self.concurrency = int(value)
                    self.changed.notify_all()
            case "reset":
                self.log, self.in_flight_max = [], self.in_flight
            case "keep_log":
                self.keeps_log = bool(value)
            case "requests":
                return self.log
            case "in_flight_max":
                return self.in_flight_max
        return None


@dataclass(slots=True)
class Link:
    """One client connection and the server connection that belongs to it."""

    state: State
    client: tuple[asyncio.StreamReader, asyncio.StreamWriter]
    server: tuple[asyncio.StreamReader, asyncio.StreamWriter]

    async def relay_one(self) -> None:
        """One request and its response. Its time includes the wait for a free slot."""
        head = await http_wire.read_head(self.client[0])
        started = time.monotonic()
        body = await http_wire.read_body(self.client[0], head.headers)
        await self.state.enter()
        try:
            await asyncio.sleep(self.state.latency)
            self.server[1].write(head.raw + body.raw)
            response, content = await self._read_response(head.start[0])
            record = _record(head, response, started, len(body.content), len(content.content))
            self.client[1].write(response.raw + content.raw)
            record["end"] = time.monotonic()
            if self.state.keeps_log:
                self.state.log.append(record)
            await self.client[1].drain()
        finally:
            await self.state.leave()

    async def _read_response(self, method: str) -> tuple[Head, http_wire.Body]:
        while True:
            head = await http_wire.read_head(self.server[0])
            status = int(head.start[1])
            if status >= 200:
                break
            self.client[1].write(head.raw)
        if not http_wire.has_response_body(method, status):
            return head, http_wire.Body(b"", b"")
        return head, await http_wire.read_body(self.server[0], head.headers)


def _record(head: Head, response: Head, started: float, sent: int, received: int) -> dict[str, Any]:
    url = urlsplit(head.start[1])
    return {
        "method": head.start[0],
        "key": unquote(url.path).lstrip("/").partition("/")[2],
        "query": url.query,
        "headers": {name: head.headers[name] for name in LOGGED_HEADERS if name in head.headers},
        "status": int(response.start[1]),
        "start": started,
        "bytes_sent": sent,
        "bytes_received": received,
    }


async def serve_client(
    state: State, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    server_writer: asyncio.StreamWriter | None = None
    with suppress(*GOODBYES):
        server = await asyncio.open_connection(
            "127.0.0.1", state.backend_port, limit=http_wire.HEAD_BYTES_MAX
        )
        server_writer = server[1]
        link = Link(state, (reader, writer), server)
        while True:
            await link.relay_one()
    for each in (writer, server_writer):
        if each is not None:
            each.close()


async def main(backend_port: int) -> None:
    state = State(backend_port)
    listener = await asyncio.start_server(
        lambda reader, writer: serve_client(state, reader, writer),
        "127.0.0.1",
        0,
        limit=http_wire.HEAD_BYTES_MAX,
    )
    _answer({"port": listener.sockets[0].getsockname()[1]})
    commands = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(commands), sys.stdin
    )
    while line := await commands.readline():
        name, value = json.loads(line)
        _answer(await state.command(name, value))


def _answer(value: object) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
