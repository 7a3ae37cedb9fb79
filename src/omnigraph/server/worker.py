"""One worker of a server: a process that receives connections from the one that listens (see `supervisor`).

It starts with two open files, its control socket and the shared memory of the counts. The first message says what to
serve; every later one brings a connection, or the order to finish.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import ssl
import sys
from contextlib import suppress
from typing import Any

import msgspec
import uvicorn

from omnigraph.errors import OmnigraphError
from omnigraph.server.app import Server
from omnigraph.server.boot import BUSY_SECONDS, build, options
from omnigraph.server.counts import Counted, Counts
from omnigraph.server.listening import (
    FAILED,
    FINISH,
    LENGTH,
    READY,
    Listen,
    Orders,
    WorkerFailed,
)
from omnigraph.server.log import log_to_stderr

MESSAGE_BYTES = 256
FILES_MAX = 64  # in one message
IDLE_SECONDS = 2.0  # that a connection without a request is kept while the worker finishes

log = logging.getLogger("omnigraph.server.worker")


class Worker(uvicorn.Server):
    """uvicorn on received connections."""

    def __init__(self, server: Server, listen: Listen, control: socket.socket) -> None:
        super().__init__(uvicorn.Config(server, **options(server, listen)))
        self._server = server
        self._counts = server.admission.counts
        self._control = control
        self._taken = 0
        self._greeted: set[asyncio.Task[None]] = set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:  # noqa: ARG002
        await super().startup([])
        self._control.setblocking(False)
        asyncio.get_running_loop().add_reader(self._control, self._on_message)
        self._control.send(READY)

    async def on_tick(self, counter: int) -> bool:
        self._counts.say(Counted.CONNECTIONS, len(self.server_state.connections))
        self._counts.say(Counted.TAKEN, self._taken)
        if counter % 10 == 0:
            self._server.telemetry.refresh()
        return await super().on_tick(counter)

    def _on_message(self) -> None:
        try:
            message, files, _, _ = socket.recv_fds(self._control, MESSAGE_BYTES, FILES_MAX)
        except BlockingIOError:
            return
        except OSError:
            message, files = b"", []
        for file in files:
            self._taken += 1
            self._keep(self._greet(socket.socket(fileno=file)))
        if not message:  # the supervisor has died: nothing more will come
            asyncio.get_running_loop().remove_reader(self._control)
            self.should_exit = True
        elif FINISH in message:
            self._keep(self._finish())

    def _keep(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._greeted.add(task)
        task.add_done_callback(self._greeted.discard)

    async def _greet(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        with suppress(OSError, ssl.SSLError):  # the client disconnected, or does not speak TLS
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await asyncio.get_running_loop().connect_accepted_socket(
                self._protocol, connection, ssl=self.config.ssl
            )

    def _protocol(self) -> asyncio.Protocol:
        made: Any = self.config.http_protocol_class
        protocol: asyncio.Protocol = made(
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )
        return protocol

    async def _finish(self) -> None:
        """Finish what was begun; further requests are answered with `Connection: close`."""
        self.server_state.default_headers.append((b"connection", b"close"))
        self.config.encoded_headers.append((b"connection", b"close"))
        loop = asyncio.get_running_loop()
        until = loop.time() + IDLE_SECONDS
        while self.server_state.connections and loop.time() < until:
            await asyncio.sleep(BUSY_SECONDS)
        while self._server.is_busy:  # with jobs, too
            await asyncio.sleep(BUSY_SECONDS)
        self.should_exit = True


def main(control: socket.socket, counts_file: int) -> int:
    """Serve until ordered to finish."""
    orders = _orders(control)
    log_to_stderr(orders.log_level)
    counts = Counts(counts_file, orders.number, orders.workers_max)
    try:
        server = build(orders.settings, os.environ, host=orders.host, counts=counts)
    except OmnigraphError as error:
        failed = WorkerFailed(error.message, error.help)
        control.sendall(FAILED + msgspec.json.encode(failed))
        return 1
    listen = Listen(orders.host, 0, orders.tls_cert, orders.tls_key)
    server.maintain()
    try:
        Worker(server, listen, control).run()
    finally:
        server.close()
    return 0


def _orders(control: socket.socket) -> Orders:
    (size,) = LENGTH.unpack(_exactly(control, LENGTH.size))
    return msgspec.json.decode(_exactly(control, size), type=Orders)


def _exactly(control: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        piece = control.recv(size - len(found))
        if not piece:
            raise SystemExit(1)
        found += piece
    return found


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the supervisor decides when it ends
    raise SystemExit(main(socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2])))
