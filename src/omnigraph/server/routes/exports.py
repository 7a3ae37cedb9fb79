"""A whole state as a stream: NDJSON that loads again, Arrow or Parquet of one type, or a part of Arrow for each."""

from __future__ import annotations

import logging
import secrets
import zlib
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any

import pyarrow as pa

from omnigraph.core.repository import Repository
from omnigraph.core.snapshot import Snapshot
from omnigraph.errors import OmnigraphError, StoreDenied
from omnigraph.maintenance.jobs import hold, release
from omnigraph.model.catalog import NodeOrEdgeType
from omnigraph.policy.guard import Need
from omnigraph.policy.questions import Action
from omnigraph.read.export import batches, chosen_types, stream
from omnigraph.server.errors import NotAcceptable
from omnigraph.server.request import LINES, Answer, HttpCall
from omnigraph.server.routes.reading import BLOCK_BYTES, file_blocks, ipc_blocks
from omnigraph.wire.contracts import ARROW, COMMIT_HEADER, NDJSON, PARQUET
from omnigraph.wire.requests import ExportQuery, ExportRequest

MIXED = "multipart/mixed"
FORMATS = (NDJSON, ARROW, PARQUET, MIXED)
log = logging.getLogger("omnigraph.server")


def export_at(call: HttpCall) -> Iterable[Need]:
    """Exporting the branch, or the one a point in time was written on."""
    request: Any = call.query if call.query is not None else call.body
    if request.at is None:
        yield Need(Action.EXPORT, request.branch or "main")
    else:
        call.snapshot(request.branch, request.at, action=Action.EXPORT)


def chosen(
    call: HttpCall, branch: str | None, at: str | None, types: Sequence[str] | None
) -> tuple[Snapshot, list[NodeOrEdgeType]]:
    """The requested state and its types, once the caller is authorised to export them."""
    snapshot = call.snapshot(branch, at, action=Action.EXPORT)
    kinds = chosen_types(snapshot, types)
    where = snapshot.commit.branch if at is not None else branch or "main"
    names = frozenset(kind.name for kind in kinds)
    call.require(Need(Action.EXPORT, where, types=names))
    return snapshot, kinds


def export_state(call: HttpCall) -> Answer:
    """One state, pinned to a commit, in the format of `Accept`."""
    request: ExportQuery = call.query
    snapshot, kinds = chosen(call, request.branch, request.at, request.types)
    media = accepted(call.headers.get("accept", ""), FORMATS)
    match media:
        case "multipart/mixed":
            boundary = secrets.token_hex(16)
            blocks = _parts(snapshot, kinds, boundary, request.order)
            return _answer(call, snapshot, f"{MIXED}; boundary={boundary}", blocks)
        case "application/x-ndjson":
            names = [kind.name for kind in kinds]
            lines = stream(snapshot, names, request.order, request.format or "ndjson")
            return _answer(call, snapshot, LINES, _small(lines))
    if len(kinds) != 1:
        raise NotAcceptable(f"{media} holds one type: name it with types=, or accept {MIXED}")
    make = _arrow if media == ARROW else _parquet
    return _answer(call, snapshot, media, make(snapshot, kinds[0], request.order))


def export(call: HttpCall) -> Answer:
    """The head of a branch as NDJSON."""
    request: ExportRequest = call.body
    snapshot, _ = chosen(call, request.branch, None, request.type_names)
    form = request.format or ("ndjson-0.13" if call.wants_ids_beside else "ndjson")
    lines = stream(snapshot, request.type_names, request.order, form)
    return _answer(call, snapshot, LINES, _small(lines))


def _answer(call: HttpCall, snapshot: Snapshot, media: str, blocks: Iterator[bytes]) -> Answer:
    headers = {COMMIT_HEADER: snapshot.commit_id}
    encoding, smaller = packed(call.headers.get("accept-encoding", ""), blocks)
    if encoding is not None:
        headers |= {"Content-Encoding": encoding, "Vary": "Accept-Encoding"}
    return streamed(call, snapshot, Answer(media=media, headers=headers, blocks=smaller))


def streamed(call: HttpCall, snapshot: Snapshot, answer: Answer) -> Answer:
    """A response streamed from a state, which is protected from collection until the end."""
    repo = call.unguarded.repository
    lease = repo.clock.fresh_id()
    answer.commit = snapshot.commit_id
    try:
        hold(repo, snapshot, lease)
    except StoreDenied:  # with read-only access to the store, nothing can be held
        return answer
    answer.release = partial(_released, repo, lease)
    return answer


def _released(repo: Repository, lease: str) -> None:
    try:
        release(repo, lease)
    except OmnigraphError as error:
        log.warning("the lease %s stays until it expires: %s", lease, error.code)


def _small(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in pieces a slow client can take."""
    for block in blocks:
        for start in range(0, len(block), BLOCK_BYTES):
            yield block[start : start + BLOCK_BYTES]


def _arrow(snapshot: Snapshot, kind: NodeOrEdgeType, order: str | None) -> Iterator[bytes]:
    rows = batches(snapshot, kind, order)
    first = next(rows)
    yield from ipc_blocks(first.schema, _chained(first, rows))


def _chained(first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from rest


def _parts(
    snapshot: Snapshot, kinds: Sequence[NodeOrEdgeType], boundary: str, order: str | None
) -> Iterator[bytes]:
    """A part for each type, nodes first, in the format of `POST /load`."""
    for kind in kinds:
        head = (
            f"--{boundary}\r\nContent-Type: {ARROW}\r\n"
            f'Content-Disposition: attachment; name="{kind.name}"\r\n\r\n'
        )
        yield head.encode()
        yield from _arrow(snapshot, kind, order)
        yield b"\r\n"
    yield f"--{boundary}--\r\n".encode()


def _parquet(snapshot: Snapshot, kind: NodeOrEdgeType, order: str | None) -> Iterator[bytes]:
    yield from file_blocks(batches(snapshot, kind, order), "parquet")


# --- what a client prefers -------------------------------------------------------------------------------------------

PREFERENCES_MAX = 64
GZIP_LEVEL = 1  # a stream should be smaller, not slower
JSON_TOO = "application/json"  # clients of NDJSON often say that they take JSON


def accepted(header: str, offered: Sequence[str]) -> str:
    """The media type of the response; the first offered one without a preference.

    >>> accepted("text/csv;q=0.9, text/html", ["text/csv", "text/html"])
    'text/html'
    >>> accepted("*/*", ["text/csv", "text/html"])
    'text/csv'
    """
    wanted = _weights(header) or {"*/*": 1.0}
    weights = [_weight(media, wanted, first=media == offered[0]) for media in offered]
    best = max(weights)
    if best <= 0:
        raise NotAcceptable(f"available as {', '.join(offered)}")
    return offered[weights.index(best)]


def _weight(media: str, wanted: dict[str, float], *, first: bool) -> float:
    """The weight of a media type for a client: exact names outweigh wildcards."""
    if media in wanted:
        return wanted[media]
    stars = [wanted[star] for star in (media.partition("/")[0] + "/*", "*/*") if star in wanted]
    if first and JSON_TOO in wanted:
        stars.append(wanted[JSON_TOO])
    return max(stars, default=0.0) * 0.999


def _weights(header: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for part in header.split(",")[:PREFERENCES_MAX]:
        name, *options = (piece.strip().lower() for piece in part.split(";"))
        if name:
            found[name] = _quality(options)
    return found


def _quality(options: Sequence[str]) -> float:
    for option in options:
        if option.startswith("q="):
            try:
                return min(max(float(option[2:]), 0.0), 1.0)
            except ValueError:
                return 0.0
    return 1.0


def packed(header: str, blocks: Iterator[bytes]) -> tuple[str | None, Iterator[bytes]]:
    """The encoding a client accepts, and the blocks in it; otherwise None and the blocks unchanged."""
    wanted = _weights(header)
    zstd, gzip = wanted.get("zstd", 0.0), wanted.get("gzip", 0.0)
    if max(zstd, gzip) <= 0:
        return None, blocks
    if zstd >= gzip:
        import zstandard

        return "zstd", _through(zstandard.ZstdCompressor(level=1).compressobj(), blocks)
    return "gzip", _through(zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, 31), blocks)


def _through(packer: Any, blocks: Iterator[bytes]) -> Iterator[bytes]:
    pieces = chain(map(packer.compress, blocks), (packer.flush() for _ in "x"))
    return (piece for piece in pieces if piece)
