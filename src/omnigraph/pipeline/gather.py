"""Groups rows of one id before staging, if a load chooses between them.

Tasks read the input, give rows their ids and partition them by the hashes of their ids, in packed blocks; then each
partition is resolved and written separately, with the code of the local plane, in the order of the input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from omnigraph.errors import OptionInvalid, Violation
from omnigraph.model.catalog import EdgeType
from omnigraph.model.changes import Incoming, Marks, Origin
from omnigraph.model.columns import one_array
from omnigraph.model.tokens import id_tokens
from omnigraph.pipeline.progress import Counters
from omnigraph.pipeline.rows import Piece, frame_pieces, frame_shape, kind_by_table
from omnigraph.pipeline.session import parallelism
from omnigraph.pipeline.sources import FrameRows, Inputs, Split
from omnigraph.pipeline.stage import (
    RESULT_DDL,
    SPLIT_BITS,
    Ids,
    LoadJob,
    StagedSplit,
    StagingWriter,
    answer,
    answered,
    attempted,
    from_ipc,
    note_piece,
    pieces_of,
    to_ipc,
)
from omnigraph.pipeline.table_versions import numbers
from omnigraph.write.input.mapping import RowMapping
from omnigraph.write.input.options import Options
from omnigraph.write.input.parts import to_incoming
from omnigraph.write.resolve import Given, identify, kind_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BLOCKS = pa.schema(
    [("part", pa.int32()), ("place", pa.int64()), ("table", pa.string()), ("body", pa.binary())]
)
BLOCKS_DDL = "part int, place long, table string, body binary"
REPORT = -1  # the partition of reports about splits
LINE_BITS = 40  # of a line; its split is above
ABSENT = "absent of "


def gathers(inputs: Inputs, options: Options) -> bool:
    """Whether rows of one id have to be grouped."""
    mapped = [split.reading.rows for split in inputs.splits]
    mapped += [rows for rows, _ in inputs.frames if isinstance(rows, RowMapping)]
    changes = any(rows is not None and rows.changes is not None for rows in mapped)
    ordered = options.repeats.version is not None
    if options.repeats.chooses and not ordered:
        for rows, _ in inputs.frames:
            if not isinstance(rows, RowMapping) or rows.changes is None:
                raise OptionInvalid(
                    "the rows of a DataFrame have no order: name the property that determines the last one",
                    help="Give a version (--version-property), or write the DataFrame to files first.",
                )
    return changes or options.repeats.chooses


def run_gathered(
    session: SparkSession, job: LoadJob, inputs: Inputs, counters: Counters, split_bytes: int
) -> list[StagedSplit]:
    """Stage all rows: a report for each piece of the input, and the files of each partition."""
    cores = parallelism(session)
    size = sum(split.bytes for split in inputs.splits)
    parts = max(cores, -(-size // split_bytes))
    frames: list[DataFrame] = []
    if inputs.splits:
        task = _split_task(job, inputs.splits, parts, counters)
        frames.append(numbers(session, len(inputs.splits), 0).mapInArrow(task, BLOCKS_DDL))
    first = len(inputs.splits)
    # How many partitions a DataFrame has is not known with Spark Connect: each gets an equal share of the numbers.
    share = ((1 << SPLIT_BITS) - first) // (len(inputs.frames) + 1)
    for rows, frame in inputs.frames:
        task = _frame_task(job, rows, first, parts, counters)
        frames.append(frame.mapInArrow(task, BLOCKS_DDL))
        first += share
    if not frames:
        return []
    blocks = reduce(lambda a, b: a.union(b), frames).repartition(parts, "part")
    found = blocks.mapInArrow(_stage_task(job, first), RESULT_DDL)
    return sorted(answered(found.collect(), StagedSplit), key=lambda done: done.split)


def placed_lines(found: list[StagedSplit], lines: Mapping[int, int]) -> list[StagedSplit]:
    """Violations by their lines in files: those of partitions encode the split in the line."""

    def placed(violation: Violation) -> Violation:
        if violation.line is None:
            return violation
        split, line = divmod(violation.line, 1 << LINE_BITS)
        return replace(violation, line=line + lines.get(split, 0))

    def with_lines(done: StagedSplit) -> StagedSplit:
        values = {table: [placed(v) for v in some] for table, some in done.values.items()}
        return replace(done, values=values)

    return [with_lines(done) for done in found]


# --- into partitions -----------------------------------------------------------------------------------------------


def _split_task(
    job: LoadJob, splits: tuple[Split, ...], parts: int, counters: Counters
) -> Callable[..., Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                split = splits[number]
                yield from _scattered(job, split.index, pieces_of(job, split), parts, counters)

    return run


def _frame_task(
    job: LoadJob, rows: FrameRows, first: int, parts: int, counters: Counters
) -> Callable[..., Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        split = first + (0 if context is None else context.partitionId())
        shape = frame_shape(rows, job.pinned.snapshot().catalog, job.options)
        yield from _scattered(job, split, frame_pieces(batches, shape), parts, counters)

    return run


def _scattered(
    job: LoadJob, split: int, rows: Iterable[Piece], parts: int, counters: Counters
) -> Iterator[pa.RecordBatch]:
    """The rows of a split in blocks by partition, and a report of it."""
    done, blocks = StagedSplit(split), []

    def read() -> None:
        txn, ids, block = job.txn(), Ids(job.seed, split), 0
        for piece in rows:
            if not note_piece(done, piece):
                continue
            incoming = to_incoming(piece.parts)
            done.count(incoming, txn.catalog)
            for part in incoming:
                given, found = identify(txn, kind_of(txn.catalog, part), [part], ids)
                done.add_keys(found)
                if len(given):
                    blocks.append(_partitioned(given, split, block, parts))
                    block += 1

    attempted(done, read)
    counters.add(done.rows)
    yield from blocks if done.failure is None else ()
    yield _block_batch([REPORT], split << 32, "", [bytes(answer(done).column(0)[0].as_py())])


def _partitioned(given: Given, split: int, block: int, parts: int) -> pa.RecordBatch:
    place = (id_tokens(given.ids) % np.uint64(parts)).astype(np.int32)
    order = np.argsort(place, kind="stable")
    rows, place = _packed_rows(given, split).take(pa.array(order)), place[order]
    starts = np.flatnonzero(np.diff(place, prepend=-1))
    ends = [*starts[1:].tolist(), len(place)]
    bodies = [to_ipc(rows.slice(a, b - a)) for a, b in zip(starts.tolist(), ends, strict=True)]
    return _block_batch(place[starts], split << 32 | block, given.kind.table_id, bodies)


def _block_batch(parts: Any, place: int, table: str, bodies: list[bytes]) -> pa.RecordBatch:
    count = len(bodies)
    columns = [
        pa.array(parts, pa.int32()),
        pa.array([place] * count, pa.int64()),
        pa.array([table] * count, pa.string()),
        pa.array(bodies, pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=BLOCKS)


def _packed_rows(given: Given, split: int) -> pa.Table:
    """Rows with all their metadata, as one table."""
    count, origin = len(given), given.origin
    table = given.table()
    for name, mask in given.absent.items():
        table = table.append_column(ABSENT + name, mask)
    lines = pa.nulls(count, pa.int64()) if origin.lines is None else origin.lines.cast(pa.int64())
    numbers_ = pa.array(
        lines.fill_null(0).to_numpy(zero_copy_only=False) | (split << LINE_BITS),
        mask=lines.is_null().to_numpy(zero_copy_only=False),
    )
    files = (
        pa.repeat(pa.scalar(origin.file, pa.string()), count)
        if origin.files is None
        else origin.files
    )
    extras = {"line of row": numbers_, "file of row": files}
    extras["order of row"] = given.marks.order
    extras["deleted row"] = given.marks.deleted
    for name, values in extras.items():
        if values is not None:
            table = table.append_column(name, values)
    return table


# --- out of partitions ---------------------------------------------------------------------------------------------


def _stage_task(job: LoadJob, first: int) -> Callable[..., Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        held: dict[str, list[tuple[int, bytes]]] = {}
        for batch in batches:
            for block in batch.to_pylist():
                if block["part"] == REPORT:
                    yield _report(block["body"])
                else:
                    held.setdefault(block["table"], []).append((block["place"], block["body"]))
        split = first + (0 if context is None else context.partitionId())
        yield answer(_staged(job, split, held))

    return run


def _report(body: bytes) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([body], pa.binary())], names=["body"])


def _staged(job: LoadJob, split: int, held: dict[str, list[tuple[int, bytes]]]) -> StagedSplit:
    writer = StagingWriter(job, job.txn())
    done = writer.begin(split)

    def write() -> None:
        for table in sorted(held):
            kind = kind_by_table(writer.catalog, table)
            blocks = [from_ipc(body) for _, body in sorted(held.pop(table))]
            edge = isinstance(kind, EdgeType)
            writer.add_chosen([_incoming(kind.name, block, edge) for block in blocks])
        writer.finish()

    attempted(done, write)
    return done


def _incoming(type_name: str, table: pa.Table, edge: bool) -> Incoming:
    names = table.column_names
    extra = {"line of row", "file of row", "order of row", "deleted row"}
    absent = {n.removeprefix(ABSENT): one_array(table[n]) for n in names if n.startswith(ABSENT)}

    def mark(name: str) -> Any:
        return one_array(table[name]) if name in names else None

    origin = Origin(None, mark("line of row"), mark("file of row"))
    rows = table.select([n for n in names if n not in extra and not n.startswith(ABSENT)])
    marks = Marks(mark("order of row"), mark("deleted row"))
    return Incoming(type_name, rows, absent, origin, edge, marks)
