"""Rows by type in a multipart body: one part for each type, named by its Content-Disposition.

A part is a table as an Arrow IPC stream or, with the media type of NDJSON, a row on each line.
"""

from __future__ import annotations

import hashlib
import io
import tempfile
from dataclasses import dataclass, field
from typing import IO, Any

import pyarrow as pa
from python_multipart.multipart import MultipartParser, parse_options_header

from omnigraph.server.bodies import Spool
from omnigraph.server.errors import RequestInvalid
from omnigraph.write.input.tables import named
from omnigraph.write.input.unpacking import read_ipc, spread_size

PARTS_MAX = 1000
HEADER_BYTES_MAX = 16 << 10
CHUNK_BYTES = 1 << 20


class Tables(dict[str, pa.Table | IO[bytes]]):
    """Tables and lines by the names of their types, and the digest of the body they came in."""

    digest: str = ""


@dataclass(slots=True)
class _Part:
    file: IO[bytes] = field(
        default_factory=lambda: tempfile.SpooledTemporaryFile(  # noqa: SIM115
            max_size=CHUNK_BYTES
        )
    )
    headers: dict[bytes, bytes] = field(default_factory=dict)
    name: bytes = b""
    value: bytes = b""
    header_bytes: int = 0

    def take(self, size: int) -> None:
        """Count bytes of headers: they are read one by one, so there may not be many."""
        self.header_bytes += size
        if self.header_bytes > HEADER_BYTES_MAX:
            raise RequestInvalid(f"a part has at most {HEADER_BYTES_MAX} bytes of headers")


def tables_in(spool: Spool, content_type: str) -> Tables:
    """The tables of a body. Two parts of one name follow each other."""
    _, options = parse_options_header(content_type)
    boundary = options.get(b"boundary")
    if not boundary:
        raise RequestInvalid("multipart bodies need a boundary")
    found = Tables()
    parts: list[_Part] = []
    room = spool.room
    try:
        _receive(spool, boundary, parts)
        found.digest = _digest(parts)
        for part in parts:
            name = _name(part)
            if _is_lines(part):
                rows: pa.Table | IO[bytes] = io.BytesIO(_content(part))
            else:
                rows = _table(part, name, room)
                room -= spread_size(rows)
            found[name] = _joined(name, found[name], rows) if name in found else rows
    finally:
        for part in parts:
            part.file.close()
    return found


def _digest(parts: list[_Part]) -> str:
    """What the parts say. What separates them is another text each time, so the body as a whole will not do."""
    whole = hashlib.sha256()
    for part in parts:
        own = hashlib.sha256(repr(sorted(part.headers.items())).encode())
        part.file.seek(0)
        while chunk := part.file.read(CHUNK_BYTES):
            own.update(chunk)
        part.file.seek(0)
        whole.update(own.digest())
    return whole.hexdigest()


def _is_lines(part: _Part) -> bool:
    media = part.headers.get(b"content-type", b"").partition(b";")[0]
    return media.strip().lower() == b"application/x-ndjson"


def _content(part: _Part) -> bytes:
    part.file.seek(0)
    return part.file.read()


def _joined(name: str, *tables: pa.Table | IO[bytes]) -> pa.Table:
    if not all(isinstance(table, pa.Table) for table in tables):
        raise RequestInvalid(f"the rows of {name!r} come in one part, or in several of Arrow")
    try:
        return pa.concat_tables(tables, promote_options="default")
    except pa.ArrowException as error:
        raise RequestInvalid(f"the parts named {name!r} do not fit together: {error}") from error


def _receive(spool: Spool, boundary: bytes, parts: list[_Part]) -> None:
    ended = [False]

    def begin() -> None:
        if len(parts) >= PARTS_MAX:
            raise RequestInvalid(f"a body has at most {PARTS_MAX} parts")
        parts.append(_Part())

    def header_name(data: bytes, start: int, end: int) -> None:
        parts[-1].take(end - start)
        parts[-1].name += data[start:end]

    def header_value(data: bytes, start: int, end: int) -> None:
        parts[-1].take(end - start)
        parts[-1].value += data[start:end]

    def header_end() -> None:
        part = parts[-1]
        part.headers[part.name.lower()] = part.value
        part.name = part.value = b""

    def data(data: bytes, start: int, end: int) -> None:
        parts[-1].file.write(data[start:end])

    def end() -> None:
        ended[0] = True

    callbacks: Any = {
        "on_part_begin": begin,
        "on_header_field": header_name,
        "on_header_value": header_value,
        "on_header_end": header_end,
        "on_part_data": data,
        "on_end": end,
    }
    _feed(MultipartParser(boundary, callbacks), spool)
    if not ended[0]:
        raise RequestInvalid("the multipart body ends too early")


def _feed(parser: MultipartParser, spool: Spool) -> None:
    from python_multipart.exceptions import FormParserError

    try:
        while chunk := spool.read(CHUNK_BYTES):
            parser.write(chunk)
        parser.finalize()
    except FormParserError as error:
        raise RequestInvalid(f"the multipart body cannot be read: {error}") from None


def _name(part: _Part) -> str:
    _, options = parse_options_header(
        part.headers.get(b"content-disposition", b"").decode("latin-1")
    )
    name = options.get(b"name", b"").decode("utf-8", "replace")
    if not name:
        raise RequestInvalid('every part needs `Content-Disposition: attachment; name="Type"`')
    return name


def _table(part: _Part, name: str, room: int) -> pa.Table:
    """A table from a stream nobody has checked."""
    try:
        return named(read_ipc(pa.py_buffer(_content(part)), room))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise RequestInvalid(f"the part {name!r} is no Arrow stream: {error}") from None
