"""Export on Spark: each task writes the part of a few fragments; the list of parts comes last."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.core.snapshot import Snapshot
from omnigraph.pipeline.pinned import Pinned
from omnigraph.pipeline.rows import kind_by_table
from omnigraph.pipeline.stage import RESULT_DDL, answer, answered
from omnigraph.pipeline.table_versions import numbers
from omnigraph.read.export import (
    Exported,
    ExportFolder,
    ExportPart,
    check_format,
    chosen_types,
    shares,
    write_part,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Work = tuple[str, tuple[int, ...], int]  # table, fragments, number of the part


def export_on_spark(
    session: SparkSession,
    pinned: Pinned,
    snapshot: Snapshot,
    dest: str | os.PathLike[str],
    format: str = "ndjson",
    types: Sequence[str] | None = None,
) -> Exported:
    """Write one state to files in a folder that all tasks can reach."""
    check_format(format)
    folder = ExportFolder.of(dest)
    work = [item for kind in chosen_types(snapshot, types) for item in _shares(snapshot, kind)]
    task = _task(pinned, folder, format, tuple(work))
    rows = numbers(session, len(work)).mapInArrow(task, RESULT_DDL).collect()
    parts = sorted(answered(rows, ExportPart), key=lambda part: part.file)
    return folder.finish(Exported(snapshot.commit_id, format, tuple(parts)))


def _shares(snapshot: Snapshot, kind: Any) -> Iterator[Work]:
    for number, fragments in enumerate(shares(snapshot, kind)):
        yield kind.table_id, fragments, number


def _task(pinned: Pinned, folder: ExportFolder, format: str, work: tuple[Work, ...]) -> Any:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        snapshot = pinned.snapshot()
        for batch in batches:
            for place in batch.column(0).to_pylist():
                table, fragments, number = work[place]
                kind = kind_by_table(snapshot.catalog, table)
                yield answer(write_part(snapshot, kind, folder, format, fragments, number))

    return run
