"""What a load reads: a received body, the records or the tables in it, or an allowed address."""

from __future__ import annotations

import glob
import hashlib
import io
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, Any

import msgspec
import pyarrow as pa
from msgspec import UNSET, Raw, UnsetType
from python_multipart.multipart import MultipartParser, parse_options_header

from omnigraph.core.layout import UPLOADS
from omnigraph.errors import Kind, OmnigraphError
from omnigraph.model.frozen import frozen
from omnigraph.server.bodies import GATHER_BYTES, Spool
from omnigraph.server.errors import RequestInvalid
from omnigraph.server.jobs import RunningJob
from omnigraph.server.request import HttpCall
from omnigraph.wire.contracts import NDJSON
from omnigraph.write.input.tables import named
from omnigraph.write.input.unpacking import read_ipc, spread_size


@frozen
class Received(os.PathLike[str]):
    """The path of a received body. A repeated request is recognised by its content."""

    path: str
    digest: str

    def __fspath__(self) -> str:
        return self.path


class Watched:
    """A body read by a job."""

    def __init__(self, spool: Spool, job: RunningJob) -> None:
        self._spool = spool
        self._job = job
        self._done = 0
        self.digest = spool.digest

    def read(self, size: int = -1) -> bytes:
        self._job.progress("read", self._done, self._spool.size)
        block = self._spool.read(size)
        self._done += len(block)
        return block


@contextmanager
def readable(call: HttpCall, source: Any) -> Iterator[Any]:
    """What a load reads; a large body as a file, which the pipeline can cut into pieces."""
    if not isinstance(source, Spool):
        yield source
    elif source.size > call.unguarded.repository.limits.interactive_bytes_max:
        with _as_file(source) as path:
            yield path
    else:
        yield source if call.job is None else Watched(source, call.job)


@contextmanager
def _as_file(spool: Spool) -> Iterator[Received]:
    with tempfile.NamedTemporaryFile(prefix="omnigraph-load-", suffix=".ndjson") as file:
        shutil.copyfileobj(spool, file, GATHER_BYTES)
        file.flush()
        yield Received(file.name, spool.digest)


# --- addresses -------------------------------------------------------------------------------------------------------

SCHEMES = ("s3", "file")


class ReferenceRefused(OmnigraphError):
    """Loads from this address are not allowed."""

    code, kind = "reference_refused", Kind.INVALID
    default_help = (
        "Send the records in the request, or ask the operator to allow the address with load_from."
    )


def allowed_reference(uri: str, root: str, allowed: Iterable[str]) -> str:
    """The address, if it is below the graph itself (at `root`) or below what the operator allows.

    This is decided on its text, before anything is opened. Only files and S3 are read: neither can redirect.
    """
    scheme = uri.partition("://")[0] if "://" in uri else ""
    if scheme not in SCHEMES:
        raise _refused(uri, f"only {' and '.join(f'{s}://' for s in SCHEMES)} are read")
    path = uri.partition("://")[2]
    if any(part in ("", ".", "..") for part in path.removeprefix("/").split("/")):
        raise _refused(uri, "it is not a plain path")
    if any(mark in path for mark in "%\\?#@") or glob.has_magic(path) or not path.isprintable():
        raise _refused(uri, "it has characters with a special meaning")
    folders = [_folder(prefix) for prefix in (f"{_absolute(root)}/{UPLOADS}", *allowed)]
    if not any(uri.startswith(folder) for folder in folders):
        raise _refused(uri, "it is not below an allowed address")
    if scheme == "file" and not _stays_below(uri, folders):
        raise _refused(uri, "it links elsewhere")
    if scheme == "file" and os.path.isdir(uri.removeprefix("file://")):
        raise _refused(uri, "it is a folder, whose files may link elsewhere")
    return uri


def _refused(uri: str, why: str) -> ReferenceRefused:
    return ReferenceRefused(f"a load from {uri[:200]!r} is refused: {why}")


def _absolute(root: str) -> str:
    return root.rstrip("/") if "://" in root else f"file://{os.path.abspath(root)}"


def _folder(prefix: str) -> str:
    return _absolute(prefix) + "/"


def _stays_below(uri: str, folders: Iterable[str]) -> bool:
    """Whether a file stays below the folders once links are resolved."""
    real = os.path.realpath(uri.removeprefix("file://"))
    roots = (f for f in folders if f.startswith("file://"))
    return any(real.startswith(os.path.realpath(f.removeprefix("file://")) + "/") for f in roots)


# --- records ---------------------------------------------------------------------------------------------------------

BLOCK_BYTES = 256 << 10
RECORD = re.compile(rb"\s*+(\S[^\n]*)")
MARK = re.compile(
    rb'"(?:[^"\\]++|\\.)*+(?:"|\Z)|[{}\[\]]', re.DOTALL
)  # strings, and brackets outside them


class _RawRecord(msgspec.Struct, rename={"source": "from", "target": "to"}):
    """The parts of a record; its values are passed on unparsed."""

    type: Raw | UnsetType = UNSET
    edge: Raw | UnsetType = UNSET
    id: Raw | UnsetType = UNSET
    source: Raw | UnsetType = UNSET
    target: Raw | UnsetType = UNSET
    data: Raw | UnsetType = UNSET


_decoder = msgspec.json.Decoder(_RawRecord)
_encoder = msgspec.json.Encoder()
UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class BodyLines:
    """The records of a compatible JSON body (objects separated by white space) as a stream, one per line.

    Other fields of their envelopes are ignored, and nothing is held twice. `digest` identifies a repeated request.
    """

    def __init__(self, text: str) -> None:
        self._text = text.encode("utf-8", "surrogatepass")
        self._at = 0
        self._line = 1  # the number of the line at `_at`
        self.digest = hashlib.sha256(self._text).hexdigest()

    def read(self, _: int = -1) -> bytes:
        """The next records; empty at the end."""
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
        return RequestInvalid(f"line {self._line} is not a record: {error}")


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


# --- tables ----------------------------------------------------------------------------------------------------------

PARTS_MAX = 1000
HEADER_BYTES_MAX = 16 << 10
CHUNK_BYTES = 1 << 20


class BodyTables(dict[str, pa.Table | IO[bytes]]):
    """Tables and lines by the names of their types, and the digest of their body."""

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
        """Count bytes of headers: they are read one at a time, so there may not be many."""
        self.header_bytes += size
        if self.header_bytes > HEADER_BYTES_MAX:
            raise RequestInvalid(f"a part has at most {HEADER_BYTES_MAX} bytes of headers")


def tables_in(spool: Spool, content_type: str) -> BodyTables:
    """The tables of a multipart body: a part for each type, named by its Content-Disposition.

    A part is an Arrow IPC stream or, with the media type of NDJSON, one row per line. Parts of the same name are
    concatenated.
    """
    _, options = parse_options_header(content_type)
    boundary = options.get(b"boundary")
    if not boundary:
        raise RequestInvalid("multipart bodies need a boundary")
    found = BodyTables()
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
    """The digest of the parts: their boundary differs each time, so that of the whole body would not do."""
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
    return media.strip().lower() == NDJSON.encode()


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
    """A table from an unchecked stream."""
    try:
        return named(read_ipc(pa.py_buffer(_content(part)), room))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise RequestInvalid(f"the part {name!r} is not an Arrow stream: {error}") from None
