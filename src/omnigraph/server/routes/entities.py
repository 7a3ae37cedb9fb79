"""One node or edge: its properties, edge counts, history, and the bytes of its blobs."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from omnigraph.core.snapshot import Snapshot
from omnigraph.errors import EntityNotFound, Kind, TableNotFound
from omnigraph.model.catalog import EdgeType, NodeOrEdgeType
from omnigraph.model.columns import arrow_schema
from omnigraph.model.frozen import frozen
from omnigraph.model.types import Scalar
from omnigraph.policy.guard import Need
from omnigraph.policy.questions import Action
from omnigraph.read.blobs import Blob, open_blob
from omnigraph.read.edges import Degree, degrees
from omnigraph.server.errors import Headed, within
from omnigraph.server.request import BYTES, Answer, HttpCall
from omnigraph.server.routes.about import may
from omnigraph.server.routes.reading import read_on
from omnigraph.values.spelling import to_json
from omnigraph.wire.answers import (
    EntityHistoryOutput,
    EntityOutput,
    Neighbours,
)
from omnigraph.wire.requests import BlobQuery, EntityHistoryQuery

EVENTS = 50
EVENTS_MAX = 1000


def entity_needs(call: HttpCall) -> Iterable[Need]:
    """Reading rows of the type; a point in time belongs to the branch it was written on."""
    types = frozenset({call.path["type"]})
    return (need.of(types) for need in read_on(call))


def entity(call: HttpCall) -> Answer:
    """One node or edge with all its properties, and the number of its edges by type."""
    request, types = call.query, frozenset({call.path["type"]})
    snapshot = call.snapshot(request.branch, request.at, types)
    kind, id = _kind(snapshot, call.path["type"]), call.path["id"]
    row = _row(snapshot, kind, id)
    if row is None:
        raise EntityNotFound(f"{kind.name} {id!r} not found")
    found = () if isinstance(kind, EdgeType) else degrees(snapshot, kind, id) or ()
    shown = [d for d in found if _may_see(call, d, snapshot)]
    output = EntityOutput(
        type=kind.name,
        kind=kind.kind,
        id=id,
        ends=_ends(row, kind),
        properties=_properties(row),
        neighbours=[Neighbours(d.edge, d.direction, d.type, d.count) for d in shown],
        graph_commit_id=snapshot.commit_id,
    )
    return Answer(output, commit=snapshot.commit_id)


def _may_see(call: HttpCall, degree: Degree, snapshot: Snapshot) -> bool:
    request = call.query
    branch = request.branch or "main" if request.at is None else snapshot.commit.branch
    return may(call.guard, Need(Action.READ, branch, types=frozenset({degree.edge})))


def _kind(snapshot: Snapshot, name: str) -> NodeOrEdgeType:
    kind = snapshot.catalog.entity(name)
    if kind is None:
        raise TableNotFound(f"type {name!r} not found")
    return kind


def _row(snapshot: Snapshot, kind: NodeOrEdgeType, id: str) -> dict[str, Any] | None:
    blobs = {p.name for p in kind.properties.values() if p.type.scalar is Scalar.BLOB}
    names = [name for name in arrow_schema(kind).names if name not in blobs]
    found = snapshot.table_of(kind).lookup("id", pa.array([id], pa.string()), names).to_pylist()
    return dict(found[0]) if found else None


def _ends(row: dict[str, Any], kind: NodeOrEdgeType) -> dict[str, str] | None:
    if not isinstance(kind, EdgeType):
        return None
    return {
        "from": row["src"],
        "to": row["dst"],
        "from_type": kind.from_type,
        "to_type": kind.to_type,
    }


def _properties(row: dict[str, Any]) -> dict[str, Any]:
    return {name: to_json(v) for name, v in row.items() if name not in ("id", "src", "dst")}


def history(call: HttpCall) -> Answer:
    """The commits that changed one node or edge, newest first; `at` continues from an earlier `next`."""
    request: EntityHistoryQuery = call.query
    wanted = EVENTS if request.limit is None else request.limit
    limit = within("events_max", EVENTS_MAX, wanted, least=1)
    found = call.graph.history(
        call.path["type"], call.path["id"], request.branch or "main", request.at, limit
    )
    return Answer(EntityHistoryOutput.of(found))


# --- blobs -----------------------------------------------------------------------------------------------------------

READ_BYTES = 1 << 20
RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})")


class BlobChanged(Headed):
    """The blob is not the one the request is about."""

    code, kind = "blob_changed", Kind.CONFLICT
    default_help = "Send the request without If-Match for the current blob."


class RangeUnsatisfiable(Headed):
    """The range begins after the end of the blob."""

    code, kind = "range_unsatisfiable", Kind.INVALID
    default_help = "The header Content-Range gives the size."


@frozen
class Found:
    """A blob, and the headers that identify it."""

    blob: Blob
    etag: str
    headers: dict[str, str]


def _find(call: HttpCall) -> Found:
    request: BlobQuery = call.query
    snapshot = call.snapshot(request.branch, request.snapshot, (request.type,))
    kind = snapshot.catalog.entity(request.type)
    if kind is None or kind.kind != request.entity:
        raise TableNotFound(f"{request.entity} type {request.type!r} not found")
    blob = open_blob(snapshot, request.type, request.id, request.property)
    ref = snapshot.ref(kind.table_id)
    witness = f"{ref.path}\0{ref.version}"
    which = f"{witness}\0{request.id}\0{request.property}".encode()
    etag = f'"{hashlib.sha256(which).hexdigest()[:32]}"'
    headers = {
        "Accept-Ranges": "bytes",
        "ETag": etag,
        "Omnigraph-Snapshot-Id": hashlib.sha256(witness.encode()).hexdigest()[:32],
    }
    return Found(blob, etag, headers)


def get_blob(call: HttpCall) -> Answer:
    """A blob; `Range` selects a part, `If-None-Match` skips the known one."""
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


def stat_blob(call: HttpCall) -> Answer:
    """The size of a blob, and its ETag."""
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


def _conditions(call: HttpCall, found: Found) -> Answer | None:
    wanted = call.headers.get("if-match")
    if wanted is not None and not _matches(wanted, found.etag, weakly=False):
        raise BlobChanged("the blob has changed", found.headers)
    known = call.headers.get("if-none-match")
    if known is not None and _matches(known, found.etag, weakly=True):
        return Answer(status=304, media=BYTES, headers=found.headers, raw=b"")
    return None


def _matches(header: str, etag: str, *, weakly: bool) -> bool:
    given = [tag.strip() for tag in header.split(",")]
    if weakly:
        given = [tag.removeprefix("W/") for tag in given]
    return "*" in given or etag in given


def _range(call: HttpCall, found: Found, size: int) -> tuple[int, int] | None:
    """The requested range; None for the whole blob."""
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
