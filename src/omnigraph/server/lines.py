"""The records of a compatible JSON body: JSON objects with white space between them, usually one per line.

What their envelopes say besides is ignored, and nothing is held twice.
"""

from __future__ import annotations

import hashlib
import re

import msgspec
from msgspec import UNSET, Raw, UnsetType

from omnigraph.server.errors import RequestInvalid

BLOCK_BYTES = 256 << 10
RECORD = re.compile(rb"\s*+(\S[^\n]*)")
MARK = re.compile(
    rb'"(?:[^"\\]++|\\.)*+(?:"|\Z)|[{}\[\]]', re.DOTALL
)  # texts, and brackets outside


class _Envelope(msgspec.Struct, rename={"source": "from", "target": "to"}):
    """What is kept of a record; its values are passed on as they are written."""

    type: Raw | UnsetType = UNSET
    edge: Raw | UnsetType = UNSET
    id: Raw | UnsetType = UNSET
    source: Raw | UnsetType = UNSET
    target: Raw | UnsetType = UNSET
    data: Raw | UnsetType = UNSET


_decoder = msgspec.json.Decoder(_Envelope)
_encoder = msgspec.json.Encoder()
UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class Lines:
    """A text of records as a stream of bytes. `digest` makes a repetition recognisable."""

    def __init__(self, text: str) -> None:
        self._text = text.encode("utf-8", "surrogatepass")
        self._at = 0
        self._line = 1  # the number of the line at `_at`
        self.digest = hashlib.sha256(self._text).hexdigest()

    def read(self, _: int = -1) -> bytes:
        """The next records; none are left when it is empty."""
        found = bytearray()
        while len(found) < BLOCK_BYTES and (line := RECORD.match(self._text, self._at)):
            self._line += self._text.count(b"\n", self._at, line.start(1))
            kept, end = self._decoded(line)
            self._line += self._text.count(b"\n", line.start(1), end)
            self._at = end
            found += kept + b"\n"
        return bytes(found)

    def _decoded(self, line: re.Match[bytes]) -> tuple[bytes, int]:
        """The record that begins in a line, and where it ends: usually with the line."""
        try:
            return _kept(line[1]), line.end(1)
        except UNREADABLE as error:
            start, end = line.start(1), _end(self._text, line.start(1))
            if end is None or end == line.end(1):
                raise self._no_record(error) from None
        try:
            return _kept(msgspec.json.format(self._text[start:end], indent=-1)), end
        except UNREADABLE as error:
            raise self._no_record(error) from None

    def _no_record(self, error: Exception) -> RequestInvalid:
        return RequestInvalid(f"line {self._line} is no record: {error}")


def _kept(record: bytes) -> bytes:
    return _encoder.encode(_decoder.decode(record))


def _end(text: bytes, start: int) -> int | None:
    """Where the object or array ends that starts here; None if it does not."""
    depth = 0
    for mark in MARK.finditer(text, start):
        depth += 1 if mark[0] in b"{[" else -1 if mark[0] in b"]}" else 0
        if depth <= 0:
            return mark.end()
    return None
