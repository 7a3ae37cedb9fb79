"""The records of a compatible JSON body: what their envelopes say besides is ignored, and nothing is held twice."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from omnigraph.server.errors import RequestInvalid

BLOCK_BYTES = 256 << 10
RECORD = re.compile(rb"\s*(\S[^\n]*)")


class _Envelope(msgspec.Struct, rename={"source": "from", "target": "to"}):
    """What is kept of a record; its values are passed on as they are written."""

    type: Raw | UnsetType = UNSET
    edge: Raw | UnsetType = UNSET
    source: Raw | UnsetType = UNSET
    target: Raw | UnsetType = UNSET
    data: Raw | UnsetType = UNSET


_decoder = msgspec.json.Decoder(_Envelope)
_encoder = msgspec.json.Encoder()


class Lines:
    """A text of records as a stream of bytes. `digest` makes a repetition recognisable."""

    def __init__(self, text: str) -> None:
        self._text = text.encode("utf-8", "surrogatepass")
        self._at = 0
        self._line = 1  # the number of the line at `_at`
        self.digest = hashlib.sha256(self._text).hexdigest()

    def read(self, _: int = -1) -> bytes:
        """The next records; none are left when it is empty."""
        while self._at < len(self._text):
            block = self._next()
            found = b"".join(self._kept(block))
            self._line += block.count(b"\n")
            if found:
                return found
        return b""

    def _next(self) -> bytes:
        """A block of whole lines."""
        text, start = self._text, self._at
        end = text.rfind(b"\n", start, start + BLOCK_BYTES) + 1
        end = end or text.find(b"\n", start + BLOCK_BYTES) + 1 or len(text)
        self._at = end
        return text[start:end]

    def _kept(self, block: bytes) -> Iterator[bytes]:
        """The records of a block. Blank lines are never looked at one by one."""
        for line in RECORD.finditer(block.rstrip()):
            try:
                envelope: Any = _decoder.decode(line[1])
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
                number = self._line + block.count(b"\n", 0, line.start(1))
                raise RequestInvalid(f"line {number} is no record: {error}") from None
            yield _encoder.encode(envelope) + b"\n"
