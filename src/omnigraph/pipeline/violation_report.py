"""All violations of a load, for the file a refused load writes.

A report names the first violations; to name all of them, tasks read the input once more, and the rules about several
rows run without a limit. Only a load with more violations than fit into its report pays for this. Tasks return them in
packed portions, and the driver takes few at a time, so that its memory does not grow with their number.
"""

# ruff: noqa: S608 - queries are made of our own view and column names; values never become part of their text

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from omnigraph.errors import Violation
from omnigraph.model.catalog import NodeOrEdgeType
from omnigraph.model.changes import NOWHERE, Origin
from omnigraph.pipeline.pinned import adopt, store_environment
from omnigraph.pipeline.rows import Piece, frame_pieces, frame_shape
from omnigraph.pipeline.sources import FrameRows, Split
from omnigraph.pipeline.stage import (
    RESULT_DDL,
    Ids,
    LoadJob,
    Staging,
    answer,
    answered,
    answers,
    identified,
    pieces_of,
    placed,
)
from omnigraph.pipeline.table_versions import numbers, plain
from omnigraph.pipeline.verify import (
    Broken,
    Describe,
    Locate,
    OnSpark,
    Verification,
    broken_rules,
    verify,
)
from omnigraph.validate.listing import EVERY, LISTED_MAX, PACKED_AT_ONCE, Packed, packed
from omnigraph.validate.rules import existing_ids, repeated_ids, row_violations
from omnigraph.write.input.parts import to_incoming
from omnigraph.write.resolve import Mode, resolve

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PLACES = pa.schema(
    [
        ("table_id", pa.string()),
        ("id", pa.string()),
        ("split", pa.int64()),
        ("row_at", pa.int64()),
        ("file", pa.string()),
        ("line", pa.int64()),
    ]
)
PLACES_DDL = "table_id string, id string, split long, row_at long, file string, line long"
Look = Callable[[LoadJob, int, Iterable[Piece]], Iterator[Violation]]  # over the rows of one split


def unreadable(session: SparkSession | None, staging: Staging) -> Iterator[Packed]:
    """Everything that cannot be read as rows of the schema."""
    return _of_rows(session, staging, _problems)


def offenders(
    session: SparkSession | None, staging: Staging, case: Verification, locate: Locate
) -> Iterator[Packed]:
    """All violations of rules: single rows, then rows together."""
    yield from _of_rows(session, staging, _broken)
    if session is None:
        ids, _, *together = verify(replace(case, limit=EVERY), locate)
        yield from packed(violation for found in (ids, *together) for violation in found)
        return
    case = replace(case, judge=OnSpark(session))
    with _places(session, staging) as places:
        for broken in (*_id_rules(case, places), *broken_rules(case)):
            query = broken.query if broken.table_id is None else _with_places(broken, places)
            rows = session.sql(query).mapInArrow(_tell_task(broken.tell), RESULT_DDL)
            yield from answered(rows.toLocalIterator(prefetchPartitions=True), Packed)


# --- single rows ---------------------------------------------------------------------------------------------------


def _of_rows(session: SparkSession | None, staging: Staging, look: Look) -> Iterator[Packed]:
    wrong = {s.split: max(s.rows, s.lines) for s in staging.splits if not s.is_clean}
    lines = staging.first_lines()
    splits = [split for split in staging.inputs.splits if split.index in wrong]
    for wave in _waves(splits, wrong):
        task = _split_task(staging.job, tuple(wave), lines, look)
        yield from answers(session, task, len(wave), Packed)
    for (table, frame), first in zip(staging.inputs.frames, staging.frame_splits, strict=True):
        rows = frame.mapInArrow(_frame_task(staging.job, table, first, look), RESULT_DDL)
        yield from answered(rows.toLocalIterator(prefetchPartitions=True), Packed)


def _waves(splits: Sequence[Split], rows: dict[int, int]) -> Iterator[list[Split]]:
    """Groups of splits whose violations fit into the driver together."""
    wave: list[Split] = []
    room = LISTED_MAX
    for split in splits:
        room -= rows[split.index]
        if wave and room < 0:
            yield wave
            wave, room = [], LISTED_MAX - rows[split.index]
        wave.append(split)
    if wave:
        yield wave


def _split_task(job: LoadJob, splits: tuple[Split, ...], lines: dict[int, int], look: Look) -> Any:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                split = splits[number]
                found = look(job, split.index, pieces_of(job, split))
                yield from map(answer, packed(placed(v, lines[split.index]) for v in found))

    return run


def _frame_task(job: LoadJob, given: FrameRows, first_split: int, look: Look) -> Any:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        split, rows = _partition(job, given, first_split, batches)
        yield from map(answer, packed(look(job, split, rows)))

    return run


def _partition(
    job: LoadJob, given: FrameRows, first_split: int, batches: Iterator[pa.RecordBatch]
) -> tuple[int, Iterator[Piece]]:
    from pyspark import TaskContext

    context = TaskContext.get()
    split = first_split + (0 if context is None else context.partitionId())
    shape = frame_shape(given, job.pinned.snapshot().catalog, job.options)
    return split, frame_pieces(batches, shape)


def _problems(_job: LoadJob, _split: int, rows: Iterable[Piece]) -> Iterator[Violation]:
    for piece in rows:
        yield from piece.problems


def _broken(job: LoadJob, split: int, rows: Iterable[Piece]) -> Iterator[Violation]:
    """Rows without an id, and invalid values of the others."""
    txn, ids = job.txn(), Ids(job.seed, split)
    for piece in rows:
        resolved = resolve(txn, to_incoming(piece.parts), job.mode, ids, EVERY)
        yield from (v for v in resolved.violations if v.rule != "duplicate")
        for change in job.embedded(resolved.changes, txn, _any_vectors):
            for found, origin in (
                (change.inserts, change.insert_origin),
                (change.updates, change.update_origin),
            ):
                if found is not None:
                    for some, places in _portions(found, origin):
                        yield from row_violations(some, change.kind, places, EVERY)


def _any_vectors(texts: Sequence[str], dim: int, _model: str | None) -> list[list[float]]:
    """Placeholder vectors for rows that are only checked: a provider is not called again for a refused load."""
    return [[1.0] * dim] * len(texts)


def _portions(rows: pa.Table, origin: Origin) -> Iterator[tuple[pa.Table, Origin]]:
    """A few rows at a time: violations take more room than their rows."""
    for start in range(0, rows.num_rows, PACKED_AT_ONCE):
        some = rows.slice(start, PACKED_AT_ONCE)
        yield some, origin.take(pa.array(np.arange(start, start + some.num_rows)))


# --- rows together -------------------------------------------------------------------------------------------------


def _tell_task(tell: Describe) -> Any:
    environment = store_environment()

    def found(batches: Iterator[pa.RecordBatch]) -> Iterator[Violation]:
        for batch in batches:
            rows = pa.Table.from_batches([batch])
            if rows.num_rows:
                yield from tell(rows, _origin(rows), EVERY)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        adopt(environment)
        yield from map(answer, packed(found(batches)))

    return run


def _origin(rows: pa.Table) -> Origin:
    if "line" not in rows.column_names:
        return NOWHERE
    return Origin(None, rows["line"].combine_chunks(), rows["file"].combine_chunks())


class _Places:
    """The places of the input rows, by table; the input is read on the first use."""

    def __init__(self, session: SparkSession, staging: Staging) -> None:
        self._session, self._staging = session, staging
        self._frame: DataFrame | None = None

    def of(self, table_id: str) -> str:
        """The rows of a type, under a name: `id`, `file`, `line`, and the ordinal among the rows with its id."""
        from pyspark.sql import functions

        if self._frame is None:
            self._frame = self._read()
        name = f"omnigraph_{secrets.token_hex(8)}"
        mine = self._frame.where(functions.col("table_id") == table_id)
        mine.createOrReplaceTempView(name)
        turn = "row_number() OVER (PARTITION BY id ORDER BY split, row_at) AS turn"
        return f"(SELECT id, file, line, {turn} FROM {name})"

    def _read(self) -> DataFrame:
        from pyspark import StorageLevel

        staging = self._staging
        splits, lines = staging.inputs.splits, staging.first_lines()
        task = _places_task(staging.job, splits, lines)
        rows = sum(one.rows for one in staging.splits)
        frames = [
            numbers(self._session, len(splits), rows, PLACES.types).mapInArrow(task, PLACES_DDL)
        ]
        for (table, frame), first in zip(staging.inputs.frames, staging.frame_splits, strict=True):
            of_frame = _frame_places_task(staging.job, table, first)
            frames.append(frame.mapInArrow(of_frame, PLACES_DDL))
        return reduce(lambda a, b: a.union(b), frames).persist(StorageLevel.DISK_ONLY)

    def close(self) -> None:
        if self._frame is not None:
            self._frame.unpersist()


@contextmanager
def _places(session: SparkSession, staging: Staging) -> Iterator[_Places]:
    made = _Places(session, staging)
    try:
        yield made
    finally:
        made.close()


def _places_task(job: LoadJob, splits: tuple[Split, ...], lines: dict[int, int]) -> Any:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                split = splits[number]
                yield from _places_of_rows(
                    job, split.index, pieces_of(job, split), lines[split.index]
                )

    return run


def _frame_places_task(job: LoadJob, given: FrameRows, first_split: int) -> Any:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        split, rows = _partition(job, given, first_split, batches)
        yield from _places_of_rows(job, split, rows, 0)

    return run


def _places_of_rows(
    job: LoadJob, split: int, rows: Iterable[Piece], lines_before: int
) -> Iterator[pa.RecordBatch]:
    import pyarrow.compute as pc

    for given, seen in identified(job, split, rows):
        count, origin = len(given), given.origin
        lines = pa.nulls(count, pa.int64()) if origin.lines is None else origin.lines
        files = pa.repeat(pa.scalar(origin.file, pa.string()), count)
        yield pa.RecordBatch.from_arrays(
            [
                pa.repeat(pa.scalar(given.kind.table_id), count),
                given.ids,
                pa.repeat(pa.scalar(split, pa.int64()), count),
                pa.array(np.arange(seen, seen + count, dtype=np.int64)),
                files if origin.files is None else origin.files,
                pc.add(lines.cast(pa.int64()), lines_before),
            ],
            schema=PLACES,
        )


def _with_places(broken: Broken, places: _Places) -> str:
    """The rows that violate a rule, each with its first place in the input."""
    there = places.of(broken.table_id or "")
    return (
        f"SELECT r.*, p.file AS file, p.line AS line FROM ({broken.query}) r "
        f"LEFT JOIN (SELECT * FROM {there} WHERE turn = 1) p ON r.id = p.id"
    )


def _id_rules(case: Verification, places: _Places) -> Iterator[Broken]:
    """Rows with a repeated id, and rows that must be new but exist."""
    for table, touched in case.touched.items():
        kind, append = touched.kind, case.mode is Mode.APPEND
        if not touched.repeatable or (kind.key is None and case.mode is Mode.MERGE):
            continue
        given = places.of(table)
        again = f"SELECT id, file, line FROM {given} g WHERE turn > 1"
        yield Broken(again, "id", partial(_tell_ids, repeated_ids, kind))
        if append:
            stored = case.judge.view(touched.base, plain("id"))
            there = f"EXISTS (SELECT 1 FROM {stored} s WHERE s.id = g.id)"
            first = f"SELECT id, file, line FROM {given} g WHERE turn = 1 AND {there}"
            yield Broken(first, "id", partial(_tell_ids, existing_ids, kind))


def _tell_ids(
    words: Any, kind: NodeOrEdgeType, rows: pa.Table, origin: Origin, limit: int
) -> Iterator[Violation]:
    ids = rows["id"].combine_chunks()
    everyone = pa.array([True] * len(ids))
    found: Iterator[Violation] = words(ids, everyone, kind, origin, limit)
    return found
