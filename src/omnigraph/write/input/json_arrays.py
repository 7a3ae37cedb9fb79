"""JSON files that are one array, as lines: each item on a separate line, so that the line readers can read them.

The bytes keep their positions. Commas between items become line ends, white space and the brackets around them become
spaces; a problem's line is then the number of its item. Blocks are processed as arrays of bytes.
"""

from __future__ import annotations

from typing import IO

import numpy as np
import numpy.typing as npt

from omnigraph.write.input.problems import InputInvalid

QUOTE, BACKSLASH, COMMA, NEWLINE, SPACE = b'"\\,\n '
OPENING, CLOSING = b"[{", b"]}"
WHITE = b" \t\r\n"
PEEK_BYTES = 4096
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def is_array(head: bytes) -> bool:
    """Whether a file with this beginning is one array."""
    return head.removeprefix(BYTE_ORDER_MARK).lstrip(WHITE).startswith(b"[")


class PeekedStream:
    """A stream whose first bytes were already read."""

    def __init__(self, stream: IO[bytes], head: bytes) -> None:
        self._stream, self._head = stream, head

    def read(self, size: int = -1) -> bytes:
        """Some bytes; none at the end."""
        head, self._head = self._head, b""
        if not head:
            return bytes(self._stream.read(size))
        return head + bytes(self._stream.read(size - len(head) if size > len(head) else 0))


def as_lines(stream: IO[bytes], name: str) -> ArrayLines | PeekedStream:
    """A stream of JSON, as lines if it is one array."""
    head = bytes(stream.read(PEEK_BYTES))
    return ArrayLines(stream, head, name) if is_array(head) else PeekedStream(stream, head)


class ArrayLines:
    """A stream of an array as a stream of lines."""

    def __init__(self, stream: IO[bytes], head: bytes, name: str) -> None:
        self._stream, self._head, self._name = stream, head.removeprefix(BYTE_ORDER_MARK), name
        self._depth, self._inside, self._escaped = 0, False, False
        self._closed = False

    def read(self, size: int = -1) -> bytes:
        """Some bytes; none at the end."""
        raw, self._head = self._head, b""
        if not raw:
            raw = bytes(self._stream.read(size))
        if not raw:
            if not self._closed:
                raise self._damaged("its array does not end")
            return b""
        return self._lines(np.frombuffer(raw, np.uint8))

    def _lines(self, raw: npt.NDArray[np.uint8]) -> bytes:
        quotes = (raw == QUOTE) & ~self._escapes(raw)
        opened = np.cumsum(quotes) + self._inside
        inside = (opened % 2).astype(bool) & ~quotes  # of texts, the marks around them left out
        step = np.isin(raw, list(OPENING)).astype(np.int8) - np.isin(raw, list(CLOSING))
        step[inside] = 0
        depth = np.cumsum(step, dtype=np.int64) + self._depth
        outside = depth + (step < 0)  # the depth a bracket itself is at
        white = np.isin(raw, list(WHITE))
        self._check_end(depth, (step < 0) & (depth == 0), white)
        found = raw.copy()
        found[white & ~inside] = SPACE
        found[(outside == 1) & (step != 0)] = SPACE
        found[(raw == COMMA) & ~inside & (depth == 1)] = NEWLINE
        self._depth, self._inside = int(depth[-1]), bool(opened[-1] % 2)
        return found.tobytes()

    def _escapes(self, raw: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
        """The bytes escaped by a backslash; in a run of backslashes, every second one escapes."""
        slashes = raw == BACKSLASH
        found = np.zeros(len(raw) + 1, bool)
        found[0] = self._escaped
        if slashes.any() or self._escaped:
            places = np.arange(len(raw))
            first = slashes & ~np.concatenate([[False], slashes[:-1]])
            start = np.maximum.accumulate(np.where(first, places, -1))
            # The first of the block's backslashes may be escaped itself by one of the block before.
            shift = (start == 0) & self._escaped
            found[1:] = slashes & ((places - start + shift) % 2 == 0)
        self._escaped = bool(found[-1])
        return found[:-1]

    def _check_end(
        self,
        depth: npt.NDArray[np.int64],
        ends: npt.NDArray[np.bool_],
        white: npt.NDArray[np.bool_],
    ) -> None:
        """Only white space may follow the array."""
        after = np.cumsum(ends) - ends + self._closed
        if (~white & ((after > 0) | ((depth <= 0) & ~ends))).any():
            raise self._damaged("there is data after its array")
        self._closed = self._closed or bool(ends.any())

    def _damaged(self, why: str) -> InputInvalid:
        return InputInvalid(f"{self._name} cannot be read: {why}", details={"file": self._name})
