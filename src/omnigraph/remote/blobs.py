"""The bytes of one blob property of a served graph, in ranges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from omnigraph.model.frozen import frozen
from omnigraph.read.blobs import Blob
from omnigraph.remote.transport import Answer, HttpRequest, RemoteFailure, Transport


@frozen
class RemoteBytes:
    """The bytes of a blob on a server, at one commit."""

    http: Transport
    asked: Mapping[str, Any]
    length: int

    def size(self) -> int:
        return self.length

    def read_range(self, offset: int, size: int) -> bytes:
        headers = {"Range": f"bytes={offset}-{offset + size - 1}"}
        request = HttpRequest("GET", "/blob", self.asked, headers=headers, safe=True)
        return self.http.send(request, lambda answer: bytes(answer.data))


def open_blob(http: Transport, asked: Mapping[str, Any]) -> Blob:
    """Open a blob; raises if it does not exist."""
    try:
        size = http.send(HttpRequest("HEAD", "/blob", asked, safe=True), _length)
    except RemoteFailure:  # a response without a body has no reason
        size = http.send(HttpRequest("GET", "/blob", asked, safe=True), _length)
    return Blob(RemoteBytes(http, asked, size))


def _length(answer: Answer) -> int:
    return int(answer.headers["Content-Length"])
