"""The bytes of a blob property: whole, in ranges, or only if they changed."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from omnigraph.errors import Kind, TableNotFound
from omnigraph.read.blobs import Blob, open_blob
from omnigraph.server.calls import BYTES, Answer, Call
from omnigraph.server.errors import Headed
from omnigraph.server.wire import BlobQuery

READ_BYTES = 1 << 20
RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})")


class BlobChanged(Headed):
    """The blob is not the one the request is about."""

    code, kind = "blob_changed", Kind.CONFLICT
    default_help = "Ask without If-Match to see what is there now."


class RangeUnsatisfiable(Headed):
    """The blob ends before the range begins."""

    code, kind = "range_unsatisfiable", Kind.INVALID
    default_help = "The header Content-Range says how many bytes there are."


@dataclass(frozen=True, slots=True)
class Found:
    """A blob, and the headers that say which."""

    blob: Blob
    etag: str
    headers: dict[str, str]


def _find(call: Call) -> Found:
    asked: BlobQuery = call.query
    snapshot = call.snapshot(asked.branch, asked.snapshot, (asked.type,))
    kind = snapshot.catalog.entity(asked.type)
    if kind is None or kind.kind != asked.entity:
        raise TableNotFound(f"there is no {asked.entity} type {asked.type!r}")
    blob = open_blob(snapshot, asked.type, asked.id, asked.property)
    ref = snapshot.ref(kind.table_id)
    witness = f"{ref.path}\0{ref.version}"
    which = f"{witness}\0{asked.id}\0{asked.property}".encode()
    etag = f'"{hashlib.sha256(which).hexdigest()[:32]}"'
    headers = {
        "Accept-Ranges": "bytes",
        "ETag": etag,
        "Omnigraph-Snapshot-Id": hashlib.sha256(witness.encode()).hexdigest()[:32],
    }
    return Found(blob, etag, headers)


def get_blob(call: Call) -> Answer:
    """A blob; `Range` asks for a part, `If-None-Match` only for another than the one known."""
    found = _find(call)
    unchanged = _conditions(call, found)
    if unchanged is not None:
        return unchanged
    size = found.blob.size
    part = _range(call, found, size)
    if part is None:
        return _bytes(found, 0, size, 200)
    start, end = part
    found.headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
    return _bytes(found, start, end, 206)


def stat_blob(call: Call) -> Answer:
    """How large a blob is, and which."""
    found = _find(call)
    unchanged = _conditions(call, found)
    if unchanged is not None:
        return unchanged
    return _bytes(found, 0, found.blob.size, 200)


def _bytes(found: Found, start: int, end: int, status: int) -> Answer:
    headers = found.headers | {"Content-Length": str(end - start)}
    blocks = _read(found.blob, start, end)
    return Answer(status=status, media=BYTES, headers=headers, blocks=blocks)


def _read(blob: Blob, start: int, end: int) -> Iterator[bytes]:
    for at in range(start, end, READ_BYTES):
        yield blob.read(at, min(at + READ_BYTES, end))


def _conditions(call: Call, found: Found) -> Answer | None:
    wanted = call.headers.get("if-match")
    if wanted is not None and not _matches(wanted, found.etag, weakly=False):
        raise BlobChanged("the blob is another", found.headers)
    known = call.headers.get("if-none-match")
    if known is not None and _matches(known, found.etag, weakly=True):
        return Answer(status=304, media=BYTES, headers=found.headers, raw=b"")
    return None


def _matches(header: str, etag: str, *, weakly: bool) -> bool:
    given = [tag.strip() for tag in header.split(",")]
    if weakly:
        given = [tag.removeprefix("W/") for tag in given]
    return "*" in given or etag in given


def _range(call: Call, found: Found, size: int) -> tuple[int, int] | None:
    """The part asked for; none where the whole is to be sent."""
    fresh = call.headers.get("if-range", found.etag) == found.etag
    parsed = RANGE.fullmatch(call.headers.get("range", "")) if fresh else None
    if parsed is None or parsed[1] == parsed[2] == "":
        return None
    start = int(parsed[1]) if parsed[1] else max(0, size - int(parsed[2]))
    end = min(int(parsed[2]) + 1, size) if parsed[1] and parsed[2] else size
    if parsed[1] and parsed[2] and int(parsed[2]) < int(parsed[1]):
        return None
    if start >= size or start >= end:
        headers = found.headers | {"Content-Range": f"bytes */{size}"}
        raise RangeUnsatisfiable(
            f"the blob has {size} bytes",
            headers,
            details={"start": start, "end": end, "length": size},
        )
    return start, end
