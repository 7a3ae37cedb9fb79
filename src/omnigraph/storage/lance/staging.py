"""Rows in, rows out: deletions, appends and absorbed fragments become one detached version."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from lance import LanceDataset
from lance import LanceOperation as Operation
from lance.fragment import FragmentMetadata, write_fragments

from omnigraph.errors import Corrupt, OmnigraphError
from omnigraph.storage import metrics
from omnigraph.storage.lance import absorb, recent
from omnigraph.storage.lance.columns import as_batches, conform, to_stored
from omnigraph.storage.lance.failures import lance_errors
from omnigraph.storage.lance.handles import commit
from omnigraph.storage.lance.reading import LanceTable, by_fragment, describe
from omnigraph.storage.lance.recent import Offsets
from omnigraph.storage.tables import FRAGMENT_ROWS_MAX, NewFragments, TableEdit

FRAGMENT_BYTES_MAX = 4 * 2**30
WRITERS_MAX = min(8, os.cpu_count() or 1)


# By the identity of a fragment: the offsets that were deleted from it, and what it became (None: nothing was left).
Deletions: TypeAlias = dict[str, tuple[Offsets, FragmentMetadata | None]]


@dataclass(slots=True)
class RowChange:
    """A change of a table's fragments: removed, updated with deletions, and added ones."""

    removed: list[int] = field(default_factory=list)
    updated: list[FragmentMetadata] = field(default_factory=list)
    new: list[FragmentMetadata] = field(default_factory=list)
    replaced: set[str] = field(default_factory=set)  # identities of removed and updated fragments
    absorbs: bool = False  # whether the new fragments also hold rows of absorbed ones
    deletions: Deletions = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        return not (self.removed or self.updated or self.new)

    def operation(self) -> Any:
        if not self.removed and not self.updated:
            return Operation.Append(self.new)
        return Operation.Update(
            removed_fragment_ids=self.removed,
            updated_fragments=self.updated,
            new_fragments=self.new,
            update_mode="rewrite_rows",
        )


def change_rows(table: LanceTable, edit: TableEdit, earlier: Deletions) -> RowChange:
    """Write the data and deletion files of an edit; nothing is committed yet. `earlier` are deletions of the same edit
    on another version, whose files are reused for identical fragments."""
    change = RowChange()
    deletions = {} if edit.delete is None else by_fragment(edit.delete)
    if edit.replace_all:
        _remove_all(table, change)
        deletions = {}
    small, rows = _incoming(table, edit, deletions)
    change.absorbs = bool(small)
    for each in small:
        deletions.pop(each.info.fragment_id, None)
        change.removed.append(each.info.fragment_id)
        change.replaced.add(each.info.identity)
    tasks = [
        partial(_delete, table, i, offsets, change, earlier) for i, offsets in deletions.items()
    ]
    tasks.append(partial(_append, table, rows, change))
    _run([*tasks, table.load_indices] if table.remote else tasks, remote=table.remote)
    return change


def delete_rows(table: LanceTable, deletions: Mapping[int, Offsets]) -> RowChange:
    """Write the deletion files for rows of some fragments; nothing is committed yet."""
    change = RowChange()
    tasks = [partial(_delete, table, i, offsets, change, {}) for i, offsets in deletions.items()]
    _run(tasks, remote=table.remote)
    return change


def commit_rows(table: LanceTable, change: RowChange) -> LanceDataset:
    return commit(table.handle, change.operation(), f"committing to table {table.ref.path}")


def write_new(
    table: LanceTable, rows: pa.Table | Iterable[pa.RecordBatch]
) -> list[FragmentMetadata]:
    """Write rows to new data files, streaming."""
    source = _Source(table, rows)
    first = next((batch for batch in source if batch.num_rows), None)
    if first is None:
        return []
    reader = pa.RecordBatchReader.from_batches(table.stored, chain([first], source))
    try:
        with lance_errors(f"writing rows of table {table.ref.path}"):
            new = write_fragments(
                reader,
                table.writer,
                mode="append",
                max_rows_per_file=FRAGMENT_ROWS_MAX,
                max_bytes_per_file=FRAGMENT_BYTES_MAX,
            )
    except OmnigraphError:
        if source.failure is not None:
            raise source.failure from None
        raise
    for fragment in new:
        metrics.request("put", 1, data_bytes(fragment))
    metrics.stage()
    return list(new)


class _Source:
    """Rows as Lance stores them. Keeps an exception of the caller's iterator; Lance would keep only its text."""

    def __init__(self, table: LanceTable, rows: pa.Table | Iterable[pa.RecordBatch]) -> None:
        self.failure: Exception | None = None
        self._table = table
        self._batches = as_batches(rows)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self

    def __next__(self) -> pa.RecordBatch:
        try:
            batch = next(self._batches)
            return to_stored(conform(batch, self._table.schema), self._table.stored)
        except StopIteration:
            raise
        except Exception as failure:
            self.failure = failure
            raise


def to_description(fragment: FragmentMetadata) -> str:
    return json.dumps(fragment.to_json())


def from_description(text: str) -> FragmentMetadata:
    return FragmentMetadata.from_json(text)


def data_bytes(fragment: FragmentMetadata) -> int:
    return sum(file.file_size_bytes or 0 for file in fragment.files)


# --- the parts of a change -----------------------------------------------------------------------------------------


def _remove_all(table: LanceTable, change: RowChange) -> None:
    for fragment in table.fragments():
        change.removed.append(fragment.fragment_id)
        change.replaced.add(fragment.identity)


Incoming: TypeAlias = pa.Table | Iterable[pa.RecordBatch] | NewFragments | None


def _incoming(
    table: LanceTable,
    edit: TableEdit,
    deletions: dict[int, Offsets],
) -> tuple[list[absorb.Small], Incoming]:
    """The rows to write, and the small fragments absorbed into them."""
    rows = edit.append
    if rows is None or isinstance(rows, NewFragments):
        return [], rows
    few, rest = _first_rows(rows)
    if few is None:
        return [], rest
    few = _conformed(few, table.schema)
    if not few.num_rows or edit.replace_all:
        return [], few
    small = absorb.choose(table, few.num_rows, deletions)
    # One chunk, because every chunk is one more batch to hand over; there are few bytes to copy.
    return small, pa.concat_tables([*absorb.live_rows(table, small), few]).combine_chunks()


def _first_rows(
    rows: pa.Table | Iterable[pa.RecordBatch],
) -> tuple[pa.Table | None, Incoming]:
    """The rows as a table if they are few enough to absorb others; else None and all of them as a stream."""
    if isinstance(rows, pa.Table):
        return (rows, None) if _is_few(rows.num_rows, rows.nbytes) else (None, rows)
    batches: Iterator[pa.RecordBatch] = iter(rows)
    held: list[pa.RecordBatch] = []
    count = nbytes = 0
    for batch in batches:
        held.append(batch)
        count, nbytes = count + batch.num_rows, nbytes + batch.nbytes
        if not _is_few(count, nbytes):
            return None, chain(held, batches)
    return (pa.Table.from_batches(held) if held else None), None


def _is_few(rows: int, nbytes: int) -> bool:
    return rows <= absorb.ABSORB_ROWS_MAX and nbytes <= absorb.ABSORB_BYTES_MAX


def _conformed(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    return pa.Table.from_batches([conform(b, schema) for b in rows.to_batches()], schema)


def _delete(
    table: LanceTable,
    fragment_id: int,
    offsets: Offsets,
    change: RowChange,
    earlier: Deletions,
) -> None:
    fragment = table.handle.get_fragment(fragment_id)
    if fragment is None:
        raise Corrupt(f"table {table.ref.path} has no fragment {fragment_id} to delete rows from")
    before = describe(fragment.metadata)
    known = earlier.get(before.identity)
    if known is not None and np.array_equal(known[0], offsets):
        kept = known[1]
    else:
        with lance_errors(f"deleting rows of table {table.ref.path}"):
            kept = fragment.delete_rows(offsets.tolist())
        if kept is not None:
            metrics.request("put", 1)
            metrics.stage()
    change.deletions[before.identity] = (offsets, kept)
    change.replaced.add(before.identity)
    if kept is None:
        change.removed.append(fragment_id)
        return
    change.updated.append(kept)
    recent.remember_deletions(before, describe(kept), offsets)


def _append(table: LanceTable, rows: Incoming, change: RowChange) -> None:
    match rows:
        case None:
            return
        case NewFragments():
            change.new.extend(map(from_description, rows.descriptions))
        case pa.Table():
            # A file is written by one thread, so the files of a large table are written in parallel.
            tasks = [partial(write_new, table, part) for part in _parts(rows)]
            change.new.extend(chain.from_iterable(metrics.parallel(tasks, WRITERS_MAX)))
            if len(change.new) == 1:
                recent.remember_rows(table.shape, describe(change.new[0]), rows)
        case _:
            change.new.extend(write_new(table, rows))


def _parts(rows: pa.Table) -> list[pa.Table]:
    """The rows of each fragment: all full but the last, so that compaction leaves them as they are."""
    starts = range(0, rows.num_rows, FRAGMENT_ROWS_MAX)
    return [rows.slice(start, FRAGMENT_ROWS_MAX) for start in starts]


def _run(tasks: Sequence[Callable[[], None]], *, remote: bool) -> None:
    """In parallel if requests have latency; on a local disk threads would cost more than they save."""
    if remote:
        metrics.parallel(tasks)
        return
    for task in tasks:
        task()
