"""HTTP/1.1 on a connection, by httptools: bounded heads, no trailers, and detection of disconnected clients."""

from __future__ import annotations

from typing import Any

import msgspec
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from omnigraph.errors import OmnigraphError
from omnigraph.server.errors import LengthAmbiguous, RequestInvalid, body_of
from omnigraph.server.request import GONE

HEAD_BYTES_MAX = 64 << 10


class Gone:
    """Whether a client has disconnected; any thread may read it."""

    __slots__ = ("is_set",)

    def __init__(self) -> None:
        self.is_set = False

    def __call__(self) -> bool:
        return self.is_set


class Connection(HttpToolsProtocol):
    """One connection. What a parser would collect without bound is bounded: heads, chunk extensions and trailers."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._in_head = False
        self._moved = False  # some part of a request was parsed, besides headers
        self._gathered = 0  # bytes since then
        self._data = b""

    def data_received(self, data: bytes) -> None:
        self._moved, self._data = False, data
        super().data_received(data)
        self._gathered = 0 if self._moved else self._gathered + len(data)
        if self._gathered > HEAD_BYTES_MAX and not self.transport.is_closing():
            error = RequestInvalid(f"the head of a request has at most {HEAD_BYTES_MAX} bytes")
            self._refuse(431, error)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head = self._moved = True
        self.scope[GONE] = Gone()  # type: ignore[literal-required]

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:  # a trailer is not a header: a proxy in front has not checked it
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head, self._moved = False, True
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._moved = True
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._moved = True
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002  uvicorn's signature
        """Refuse what is not a request, in the format of all errors."""
        head = self._data.lower()
        error: OmnigraphError = RequestInvalid("not an HTTP request")
        if b"\ncontent-length:" in head and b"\ntransfer-encoding:" in head:
            error = LengthAmbiguous(
                "a request has Content-Length or Transfer-Encoding, not both", {}
            )
        self._refuse(400, error)

    def _refuse(self, status: int, error: OmnigraphError) -> None:
        body = msgspec.json.encode(body_of(error))
        head = f"content-type: application/json\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
        self.transport.write(STATUS_LINE[status] + head.encode() + body)
        self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        for cycle in (self.cycle, *(waiting for waiting, _ in self.pipeline)):
            if cycle is not None:
                cycle.scope[GONE].is_set = True  # type: ignore[literal-required]
        super().connection_lost(exc)
