"""As much HTTP/1.1 as S3 clients speak: read a message, write a message.

Header names are lower case. Bodies are read whole, because the tests need to see them whole.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

HEAD_BYTES_MAX = 1 << 20
BODY_BYTES_MAX = 1 << 30


@dataclass(frozen=True, slots=True)
class Head:
    """The first line of a message, as its three words, and the headers."""

    start: tuple[str, str, str]
    headers: Mapping[str, str]
    raw: bytes


@dataclass(frozen=True, slots=True)
class Body:
    """The content of a message, and the bytes it came as (they differ when it was chunked)."""

    content: bytes
    raw: bytes


class Closed(Exception):
    """The peer went away between two messages."""


# How a conversation ends: between or within messages, or because the server itself is ending.
GOODBYES = (Closed, ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError)


async def read_head(reader: asyncio.StreamReader) -> Head:
    try:
        raw = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError) as error:
        raise Closed from error
    first, *lines = raw[:-4].decode("latin-1").split("\r\n")
    words = [*first.split(" ", 2), "", ""]
    pairs = (line.partition(":") for line in lines)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    return Head((words[0], words[1], words[2]), headers, raw)


async def read_body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> Body:
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return await _read_chunks(reader)
    length = int(headers.get("content-length", "0"))
    if length > BODY_BYTES_MAX:
        raise ValueError(f"a body of {length} bytes")
    content = await reader.readexactly(length)
    return Body(content, content)


async def _read_chunks(reader: asyncio.StreamReader) -> Body:
    content, raw = bytearray(), bytearray()
    while True:
        line = await reader.readline()
        size = int(line.split(b";")[0], 16)
        chunk = await reader.readexactly(size + 2)
        raw += line + chunk
        content += chunk[:-2]
        if size == 0:
            return Body(bytes(content), bytes(raw))


def has_response_body(method: str, status: int) -> bool:
    return method != "HEAD" and status >= 200 and status not in (204, 304)


def format_response(status: int, headers: Mapping[str, str], body: bytes = b"") -> bytes:
    """A whole response. The length is the body's unless a header says otherwise, as in answers to HEAD."""
    fields = {"Content-Length": str(len(body)), **headers}
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}"]
    lines += [f"{name}: {value}" for name, value in fields.items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body
