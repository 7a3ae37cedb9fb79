"""The bytes of one blob property of a served graph, in ranges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from omnigraph.errors import OptionInvalid
from omnigraph.remote.transport import Answer, Asked, RemoteFailure, Transport


@dataclass(frozen=True, slots=True)
class RemoteBlob:
    """A blob at one commit. It stays the same whoever writes meanwhile."""

    http: Transport
    asked: Mapping[str, Any]
    size: int

    def read(self, start: int = 0, end: int | None = None) -> bytes:
        """The bytes from `start` up to `end`, without it."""
        stop = self.size if end is None else min(end, self.size)
        if start < 0 or (end is not None and end < start):
            raise OptionInvalid(f"a range of bytes ascends from 0: {start} to {end}")
        if start >= stop:
            return b""
        headers = {"Range": f"bytes={start}-{stop - 1}"}
        request = Asked("GET", "/blob", self.asked, headers=headers, safe=True)
        return self.http.send(request, lambda answer: bytes(answer.data))


def open_blob(http: Transport, asked: Mapping[str, Any]) -> RemoteBlob:
    """The blob that is asked for, with its size; an error if it is not there."""
    try:
        size = http.send(Asked("HEAD", "/blob", asked, safe=True), _length)
    except RemoteFailure:  # an answer without a body does not say why
        size = http.send(Asked("GET", "/blob", asked, safe=True), _length)
    return RemoteBlob(http, asked, size)


def _length(answer: Answer) -> int:
    return int(answer.headers["Content-Length"])
