"""Request bodies: received and decompressed within limits, decoded to structs or spooled to disk.

No thread waits for a client: bytes are received on the event loop, and a client that stalls is cut off. A body that is
too large is refused as soon as that is known.
"""

from __future__ import annotations

import asyncio
import hashlib
import tempfile
import zlib
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Generator,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, field
from functools import partial
from typing import IO, Any, TypeVar

import msgspec

from omnigraph.errors import Kind, LimitExceeded, OmnigraphError
from omnigraph.model.frozen import frozen
from omnigraph.server.errors import MediaUnsupported, RequestInvalid, exceeded

T = TypeVar("T")
Receive = Callable[[], Awaitable[Any]]
UNPACK_FREE_BYTES = 16 << 20  # below this, the ratio does not matter
UNPACK_STEP_BYTES = 1 << 20
ZSTD_SLICE_BYTES = 256  # a block of 4 bytes may stand for 128 KiB: small slices bound each step
ZSTD_WINDOW_BYTES_MAX = 32 << 20
SPOOL_MEMORY_BYTES = 4 << 20
GATHER_BYTES = 1 << 20


class ClientGone(OmnigraphError):
    """The client disconnected or stalled before its request was complete; nothing was published."""

    code, kind = "client_gone", Kind.INVALID
    default_help = "Nothing was changed. Send the request again."


@frozen
class BodyLimits:
    """The limits of a body."""

    bytes_max: int
    name: str  # of the limit, for the error
    ratio_max: int
    stall_seconds: float


async def chunks(receive: Receive, stall_seconds: float) -> AsyncIterator[bytes]:
    """The bytes of a body as they come in."""
    more = True
    while more:
        try:
            message = await within(stall_seconds, receive())
        except TimeoutError:
            raise ClientGone(f"no data received for {stall_seconds:g} s") from None
        if message["type"] != "http.request":
            raise ClientGone("the request ended before its body was complete")
        more = message.get("more_body", False)
        if message.get("body"):
            yield message["body"]


class _Begun(Awaitable[T]):
    """The rest of a coroutine that has to wait for something."""

    def __init__(self, waits_for: Any, rest: Generator[Any, Any, T]) -> None:
        self._waits_for = waits_for
        self._rest = rest

    def __await__(self) -> Generator[Any, Any, T]:
        waits_for, rest = self._waits_for, self._rest
        while True:
            try:
                yield waits_for
                resume = partial(rest.send, None)
            except BaseException as error:
                resume = partial(rest.throw, error)
            try:
                waits_for = resume()
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]


async def within(seconds: float, work: Awaitable[T]) -> T:
    """The result of some work, or TimeoutError. Most work does not wait at all, and then needs no timer."""
    rest = work.__await__()
    try:
        waits_for = next(rest)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    async with asyncio.timeout(seconds):
        return await _Begun(waits_for, rest)


def media_of(headers: Mapping[str, str]) -> str:
    """The media type of a body, without its parameters."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def announced(headers: Mapping[str, str], limits: BodyLimits) -> int:
    """The size the headers announce; a clear refusal if it is too large."""
    text = headers.get("content-length", "0")
    size = int(text) if text.isdecimal() else 0
    if size > limits.bytes_max:
        raise too_large(limits, size)
    return size


def too_large(limits: BodyLimits, size: int) -> LimitExceeded:
    return LimitExceeded(
        f"resource limit exceeded for {limits.name}: actual {size}, limit {limits.bytes_max}",
        details=exceeded(limits.name, limits.bytes_max, size),
    )


class Unpacker:
    """Decompresses bytes, never more than a step at a time."""

    def __init__(self, encoding: str, limits: BodyLimits) -> None:
        self._limits = limits
        self._packed = 0
        self._unpacked = 0
        self._new_frame = _frames(encoding)
        self._frame = self._new_frame()
        self._begun = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The decompressed bytes, piece by piece."""
        while data:
            if self._begun and self._frame.eof:  # several streams may follow each other
                self._frame = self._new_frame()
            self._begun = True
            piece, rest = self._frame.step(data)
            self._packed += len(data) - len(rest)
            self._unpacked += len(piece)
            data = rest
            self._check()
            if piece:
                yield piece

    def finish(self) -> None:
        """Refuse a truncated stream."""
        if self._begun and not self._frame.eof:
            raise RequestInvalid("the compressed body ends too early")

    def room(self, size: int) -> int:
        """How many bytes `size` compressed bytes may unpack to."""
        limits = self._limits
        return min(limits.bytes_max, max(UNPACK_FREE_BYTES, size * limits.ratio_max))

    def _check(self) -> None:
        if self._unpacked > self._limits.bytes_max:
            raise too_large(self._limits, self._unpacked)
        ratio = self._unpacked / max(self._packed, 1)
        if self._unpacked > UNPACK_FREE_BYTES and ratio > self._limits.ratio_max:
            raise LimitExceeded(
                f"the body unpacks to {ratio:.0f} times its size",
                details=exceeded("unpack_ratio_max", self._limits.ratio_max, round(ratio)),
            )


class _PlainBody:
    """Uncompressed bytes."""

    eof = True

    def step(self, data: bytes) -> tuple[bytes, bytes]:
        return data, b""


class _Gzip:
    """One member of a gzip stream."""

    def __init__(self) -> None:
        self._stream = zlib.decompressobj(wbits=31)

    @property
    def eof(self) -> bool:
        return self._stream.eof

    def step(self, data: bytes) -> tuple[bytes, bytes]:
        """Some bytes, and the rest to unpack."""
        try:
            piece = self._stream.decompress(data, UNPACK_STEP_BYTES)
        except zlib.error:
            raise RequestInvalid("the body is not gzip") from None
        return piece, self._stream.unused_data if self.eof else self._stream.unconsumed_tail


class _Zstd:
    """One frame of a zstd stream."""

    def __init__(self) -> None:
        import zstandard

        unpack = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW_BYTES_MAX)
        self._failure = zstandard.ZstdError
        self._stream: Any = unpack.decompressobj()

    @property
    def eof(self) -> bool:
        return bool(self._stream.eof)

    def step(self, data: bytes) -> tuple[bytes, bytes]:
        head, rest = data[:ZSTD_SLICE_BYTES], data[ZSTD_SLICE_BYTES:]
        try:
            piece = self._stream.decompress(head)
        except self._failure:
            raise RequestInvalid("the body is not zstd") from None
        return piece, (self._stream.unused_data if self.eof else b"") + rest


def _frames(encoding: str) -> Callable[[], _PlainBody | _Gzip | _Zstd]:
    match encoding.strip().lower():
        case "" | "identity":
            return _PlainBody
        case "gzip" | "x-gzip":
            return _Gzip
        case "zstd":
            return _Zstd
        case other:
            raise MediaUnsupported(
                f"Content-Encoding is gzip, zstd or identity, not {other[:40]!r}"
            )


# --- whole bodies ------------------------------------------------------------------------------------------------


async def read_all(receive: Receive, headers: Mapping[str, str], limits: BodyLimits) -> bytes:
    """A small body, unpacked."""
    announced(headers, limits)
    unpacker = Unpacker(headers.get("content-encoding", ""), limits)
    found = bytearray()
    async for chunk in chunks(receive, limits.stall_seconds):
        for piece in unpacker.feed(chunk):
            found += piece
    unpacker.finish()
    return bytes(found)


def decode(
    raw: bytes, shape: type[T], headers: Mapping[str, str], streamed: Sequence[str] = ()
) -> T:
    """A JSON body as the struct a route takes; an empty one has no fields. `streamed`: other accepted media types."""
    media = media_of(headers)
    if raw and media != "application/json":
        taken = " or ".join(["application/json", *streamed])
        raise MediaUnsupported(f"this route takes {taken}, not {media[:80]!r}")
    if not raw.strip() or raw.strip() == b"null":
        raw = b"{}"
    try:
        return msgspec.json.decode(raw, type=shape)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise RequestInvalid(f"the body does not fit: {error}") from None
    except RecursionError:
        raise RequestInvalid("the body is nested too deeply") from None


# --- bodies of any size --------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Spool:
    """A body on disk (or in memory while it is small), with the digest that identifies a repeated request."""

    file: IO[bytes]
    unpacker: Unpacker
    size: int = 0
    _hash: Any = field(default_factory=hashlib.sha256)

    @property
    def room(self) -> int:
        """How large the tables in the body may be once decompressed."""
        return self.unpacker.room(self.size)

    @property
    def digest(self) -> str:
        return str(self._hash.hexdigest())

    def write(self, packed: bytes) -> None:
        for piece in self.unpacker.feed(packed):
            self.file.write(piece)
            self._hash.update(piece)
            self.size += len(piece)

    def read(self, size: int = -1) -> bytes:
        return self.file.read(size)

    def rewind(self) -> None:
        self.file.seek(0)

    def close(self) -> None:
        self.file.close()


def new_spool(headers: Mapping[str, str], limits: BodyLimits) -> Spool:
    """An empty spool for the body these headers announce."""
    announced(headers, limits)
    unpacker = Unpacker(headers.get("content-encoding", ""), limits)
    return Spool(tempfile.SpooledTemporaryFile(max_size=SPOOL_MEMORY_BYTES), unpacker)


async def fill(
    spool: Spool,
    receive: Receive,
    limits: BodyLimits,
    in_thread: Callable[[Callable[[], None]], Awaitable[None]],
) -> None:
    """Receive a body into a spool. The client is read no faster than the disk is written."""
    held = bytearray()

    async def flush() -> None:
        packed = bytes(held)
        held.clear()
        await in_thread(lambda: spool.write(packed))

    async for chunk in chunks(receive, limits.stall_seconds):
        held += chunk
        if len(held) >= GATHER_BYTES:
            await flush()
    await flush()
    spool.unpacker.finish()
    spool.rewind()
