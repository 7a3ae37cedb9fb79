"""A whole state as a stream: NDJSON that loads again, Arrow or Parquet of one type, or a part of Arrow for each."""

from __future__ import annotations

import logging
import secrets
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from omnigraph.core.jobs import hold, release
from omnigraph.core.repository import Repository
from omnigraph.core.snapshot import Snapshot
from omnigraph.errors import OmnigraphError, StoreDenied
from omnigraph.policy.guard import Need
from omnigraph.policy.questions import Action
from omnigraph.read.export import Kind, batches, chosen_types, stream
from omnigraph.server.calls import ARROW, COMMIT_HEADER, LINES, NDJSON, PARQUET, Answer, Call
from omnigraph.server.errors import NotAcceptable
from omnigraph.server.negotiation import accepted, packed
from omnigraph.server.routes.reading import ipc_blocks
from omnigraph.server.wire import ExportQuery, ExportRequest

BLOCK_BYTES = 64 << 10
MIXED = "multipart/mixed"
FORMATS = (NDJSON, ARROW, PARQUET, MIXED)
log = logging.getLogger("omnigraph.server")


def export_at(call: Call) -> Iterable[Need]:
    """Exporting the branch, or the one a point in time was written on."""
    asked: Any = call.query if call.query is not None else call.body
    if asked.at is None:
        yield Need(Action.EXPORT, asked.branch or "main")
    else:
        call.snapshot(asked.branch, asked.at, action=Action.EXPORT)


def chosen(
    call: Call, branch: str | None, at: str | None, types: Sequence[str] | None
) -> tuple[Snapshot, list[Kind]]:
    """The state that is meant and the types of it, once it is clear that they may be exported."""
    snapshot = call.snapshot(branch, at, action=Action.EXPORT)
    kinds = chosen_types(snapshot, types)
    where = snapshot.commit.branch if at is not None else branch or "main"
    names = frozenset(kind.name for kind in kinds)
    call.require(Need(Action.EXPORT, where, types=names))
    return snapshot, kinds


def export_state(call: Call) -> Answer:
    """One state, pinned to a commit, in the form `Accept` asks for."""
    asked: ExportQuery = call.query
    snapshot, kinds = chosen(call, asked.branch, asked.at, asked.types)
    media = accepted(call.headers.get("accept", ""), FORMATS)
    match media:
        case "multipart/mixed":
            boundary = secrets.token_hex(16)
            blocks = _parts(snapshot, kinds, boundary, asked.order)
            return _answer(call, snapshot, f"{MIXED}; boundary={boundary}", blocks)
        case "application/x-ndjson":
            lines = stream(snapshot, [kind.name for kind in kinds], asked.order)
            return _answer(call, snapshot, LINES, _small(lines))
    if len(kinds) != 1:
        raise NotAcceptable(f"{media} holds one type: name it with types=, or accept {MIXED}")
    make = _arrow if media == ARROW else _parquet
    return _answer(call, snapshot, media, make(snapshot, kinds[0], asked.order))


def export(call: Call) -> Answer:
    """The head of a branch as NDJSON."""
    asked: ExportRequest = call.body
    snapshot, _ = chosen(call, asked.branch, None, asked.type_names)
    lines = stream(snapshot, asked.type_names, asked.order)
    return _answer(call, snapshot, LINES, _small(lines))


def _answer(call: Call, snapshot: Snapshot, media: str, blocks: Iterator[bytes]) -> Answer:
    headers = {COMMIT_HEADER: snapshot.commit_id}
    encoding, smaller = packed(call.headers.get("accept-encoding", ""), blocks)
    if encoding is not None:
        headers |= {"Content-Encoding": encoding, "Vary": "Accept-Encoding"}
    return streamed(call, snapshot, Answer(media=media, headers=headers, blocks=smaller))


def streamed(call: Call, snapshot: Snapshot, answer: Answer) -> Answer:
    """An answer made from a state while the client takes it: until then no collection takes the state away."""
    repo = call.unguarded.repository
    lease = repo.world.fresh_id()
    answer.commit = snapshot.commit_id
    try:
        hold(repo, snapshot, lease)
    except StoreDenied:  # whoever may only read the store cannot hold anything in it
        return answer
    answer.release = partial(_released, repo, lease)
    return answer


def _released(repo: Repository, lease: str) -> None:
    try:
        release(repo, lease)
    except OmnigraphError as error:
        log.warning("the lease %s stays until it ends by itself: %s", lease, error.code)


def _small(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in pieces a slow client can take."""
    for block in blocks:
        for start in range(0, len(block), BLOCK_BYTES):
            yield block[start : start + BLOCK_BYTES]


def _arrow(snapshot: Snapshot, kind: Kind, order: str | None) -> Iterator[bytes]:
    rows = batches(snapshot, kind, order)
    first = next(rows)
    yield from ipc_blocks(first.schema, _chained(first, rows))


def _chained(first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from rest


def _parts(
    snapshot: Snapshot, kinds: Sequence[Kind], boundary: str, order: str | None
) -> Iterator[bytes]:
    """A part for each type, nodes first, in the form in which `POST /load` takes them."""
    for kind in kinds:
        head = (
            f"--{boundary}\r\nContent-Type: {ARROW}\r\n"
            f'Content-Disposition: attachment; name="{kind.name}"\r\n\r\n'
        )
        yield head.encode()
        yield from _arrow(snapshot, kind, order)
        yield b"\r\n"
    yield f"--{boundary}--\r\n".encode()


def _parquet(snapshot: Snapshot, kind: Kind, order: str | None) -> Iterator[bytes]:
    """A Parquet file cannot be sent before it is whole, so it is made on disk."""
    from pyarrow import parquet

    with tempfile.TemporaryFile() as file:
        writer: Any = None
        for batch in batches(snapshot, kind, order):
            writer = writer or parquet.ParquetWriter(file, batch.schema, compression="zstd")
            writer.write_batch(batch)
        writer.close()
        file.seek(0)
        while block := file.read(BLOCK_BYTES):
            yield block
