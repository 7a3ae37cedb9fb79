"""A whole state as a stream: NDJSON that loads again, Arrow or Parquet of one type."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from omnigraph.core.snapshot import Snapshot
from omnigraph.policy.questions import Action
from omnigraph.read.export import Kind, batches, chosen_types, stream
from omnigraph.server.access import Need
from omnigraph.server.calls import ARROW, COMMIT_HEADER, NDJSON, PARQUET, Answer, Call
from omnigraph.server.errors import NotAcceptable
from omnigraph.server.routes.reading import ipc_blocks
from omnigraph.server.wire import ExportQuery, ExportRequest

BLOCK_BYTES = 64 << 10
FORMATS = (NDJSON, ARROW, PARQUET)


def export_at(call: Call) -> Iterable[Need]:
    """Exporting the branch, or the one a point in time was written on."""
    asked: ExportQuery = call.query
    branch = asked.branch or "main"
    if asked.at is not None:
        branch = call.graph.snapshot(branch, asked.at).commit.branch
    yield Need(Action.EXPORT, branch)


def export_state(call: Call) -> Answer:
    """One state, pinned to a commit, in the form `Accept` asks for."""
    asked: ExportQuery = call.query
    snapshot = call.graph.snapshot(asked.branch or "main", asked.at)
    chosen = chosen_types(snapshot, asked.types)
    media = _media(call.headers.get("accept", ""))
    if media == NDJSON:
        return _answer(snapshot, NDJSON, _small(stream(snapshot, [kind.name for kind in chosen])))
    if len(chosen) != 1:
        raise NotAcceptable(f"{media} holds one type: name it with types=")
    make = _arrow if media == ARROW else _parquet
    return _answer(snapshot, media, make(snapshot, chosen[0]))


def export(call: Call) -> Answer:
    """The head of a branch as NDJSON."""
    asked: ExportRequest = call.body
    snapshot = call.graph.snapshot(asked.branch or "main")
    chosen_types(snapshot, asked.type_names)
    return _answer(snapshot, NDJSON, _small(stream(snapshot, asked.type_names)))


def _answer(snapshot: Snapshot, media: str, blocks: Iterator[bytes]) -> Answer:
    headers = {COMMIT_HEADER: snapshot.commit_id}
    return Answer(media=media, headers=headers, blocks=blocks, commit=snapshot.commit_id)


def _media(accept: str) -> str:
    for media in FORMATS[1:]:
        if media in accept:
            return media
    if not accept or any(known in accept for known in (NDJSON, "*/*", "application/*", "json")):
        return NDJSON
    raise NotAcceptable(f"an export is {', '.join(FORMATS)}")


def _small(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in pieces a slow client can take."""
    for block in blocks:
        for start in range(0, len(block), BLOCK_BYTES):
            yield block[start : start + BLOCK_BYTES]


def _arrow(snapshot: Snapshot, kind: Kind) -> Iterator[bytes]:
    rows = batches(snapshot, kind)
    first = next(rows)
    yield from ipc_blocks(first.schema, _chained(first, rows))


def _chained(first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from rest


def _parquet(snapshot: Snapshot, kind: Kind) -> Iterator[bytes]:
    """A Parquet file cannot be sent before it is whole, so it is made on disk."""
    from pyarrow import parquet

    with tempfile.TemporaryFile() as file:
        writer: Any = None
        for batch in batches(snapshot, kind):
            writer = writer or parquet.ParquetWriter(file, batch.schema, compression="zstd")
            writer.write_batch(batch)
        writer.close()
        file.seek(0)
        while block := file.read(BLOCK_BYTES):
            yield block
