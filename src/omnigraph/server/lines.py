"""The records of a compatible JSON body: what their envelopes say besides is ignored, and nothing is held twice."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from omnigraph.server.errors import RequestInvalid

BLOCK_BYTES = 256 << 10


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
        self._left = memoryview(text.encode("utf-8", "surrogatepass"))
        self._line = 0
        self.digest = hashlib.sha256(self._left).hexdigest()

    def read(self, _: int = -1) -> bytes:
        """The next records; none are left when it is empty."""
        while self._left:
            block = self._next()
            if not block.strip():
                self._line += block.count(b"\n")
                continue
            found = b"".join(self._kept(line) for line in block.splitlines())
            if found:
                return found
        return b""

    def _next(self) -> bytes:
        """A block of whole lines."""
        block = bytes(self._left[:BLOCK_BYTES])
        if len(block) < len(self._left):
            end = block.rfind(b"\n") + 1
            block = block[:end] if end else self._to_line_end()
        self._left = self._left[len(block) :]
        return block

    def _to_line_end(self) -> bytes:
        whole = bytes(self._left)
        end = whole.find(b"\n") + 1
        return whole[: end or None]

    def _kept(self, line: bytes) -> bytes:
        self._line += 1
        if not line.strip():
            return b""
        try:
            envelope: Any = _decoder.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise RequestInvalid(f"line {self._line} is no record: {error}") from None
        return _encoder.encode(envelope) + b"\n"
