"""Index upkeep.

Indices are derived: reads are correct with any coverage. A segment is added for fragments no segment covers, and merges
segments that are no larger; kinds that allow only one segment are rebuilt over everything.
"""

from __future__ import annotations

import math
from copy import copy
from dataclasses import replace
from typing import Any
from uuid import uuid4

from lance import LanceDataset
from lance import LanceOperation as Operation
from lance.dataset import Index

from omnigraph.errors import Kind, OmnigraphError, OptionInvalid
from omnigraph.model.frozen import frozen
from omnigraph.storage.lance.failures import lance_errors
from omnigraph.storage.lance.reading import LanceTable, count_reads_and_writes
from omnigraph.storage.tables import IndexEdit

SEGMENTS_MAX = 8
PARTITION_ROWS, PARTITIONS_MAX = 4096, 256  # of a vector index, by default


@frozen
class IndexChange:
    """Segments built and segments dropped, and the data files of the fragments they were built over."""

    new: tuple[Index, ...] = ()
    dropped: tuple[Index, ...] = ()
    files: tuple[tuple[int, str], ...] = ()
    failed: tuple[str, ...] = ()  # indices that could not be built, and why

    @property
    def is_empty(self) -> bool:
        return not (self.new or self.dropped)

    def operation(self) -> Any:
        return Operation.CreateIndex(list(self.new), list(self.dropped))


def index_name(table: LanceTable, column: str, kind: str) -> str:
    """Named by field id, which a renamed column keeps and a new column of an old name does not get."""
    found = table.handle.lance_schema.field(column)
    if found is None:
        raise OptionInvalid(f"table {table.ref.path} has no column {column} to index")
    return f"{kind.lower()}_{found.id()}"


def build(
    table: LanceTable,
    edits: tuple[IndexEdit, ...],
    drop: tuple[str, ...],
    *,
    must_succeed: bool = True,
) -> IndexChange:
    """Build missing segments; nothing is committed yet. During a write, an index that cannot be built is skipped."""
    new: list[Index] = []
    dropped = [each for each in _segments(table) if each.name in drop]
    failed: list[str] = []
    table.handle.io_stats_incremental()
    for edit in edits:
        try:
            segments, replaced = _build_one(table, edit)
        except OmnigraphError as failure:
            if must_succeed or failure.kind not in (Kind.INTERNAL, Kind.INVALID):
                raise
            failed.append(failure.message)
            continue
        new.extend(segments)
        dropped.extend(each for each in replaced if each.name not in drop)
    count_reads_and_writes(table.handle)
    covered = {i for segment in new for i in segment.fragment_ids}
    files = tuple((f.fragment_id, f.files) for f in table.fragments() if f.fragment_id in covered)
    return IndexChange(tuple(new), tuple(dropped), files, tuple(failed))


def rebase(change: IndexChange, table: LanceTable) -> IndexChange | None:
    """The change for another version of the table: fragments whose data files differ there are not covered."""
    built = dict(change.files)
    same = {f.fragment_id for f in table.fragments() if built.get(f.fragment_id) == f.files}
    there = {segment.uuid for segment in _segments(table)}
    if any(old.uuid not in there for old in change.dropped):
        return None
    new = [
        replace(segment, fragment_ids=set(segment.fragment_ids) & same) for segment in change.new
    ]
    if _overlaps(new, change, table):
        return None
    return replace(change, new=tuple(segment for segment in new if segment.fragment_ids))


def _overlaps(new: list[Index], change: IndexChange, table: LanceTable) -> bool:
    """Whether another writer has covered the same fragments meanwhile."""
    gone = {old.uuid for old in change.dropped}
    return any(
        each.name == segment.name
        and each.uuid not in gone
        and set(each.fragment_ids) & set(segment.fragment_ids)
        for each in _segments(table)
        for segment in new
    )


@frozen
class Missing:
    """What an index lacks: the fragments to cover, and the segments that are replaced when they are covered."""

    name: str
    kind: str
    covering: tuple[int, ...]
    replaced: tuple[Index, ...]


def missing(table: LanceTable, edit: IndexEdit) -> Missing | None:
    """What has to be built; None if the index is complete."""
    kind = edit.kind.upper()
    name = index_name(table, edit.column, kind)
    live = {fragment.fragment_id for fragment in table.fragments()}
    segments = [each for each in _segments(table) if each.name == name]
    uncovered = live - {i for each in segments for i in each.fragment_ids}
    if not live or (not uncovered and not edit.replace):
        return None
    if edit.replace or stands_alone(kind):
        return Missing(name, kind, tuple(sorted(live)), tuple(segments))
    return _completed(table, name, kind, uncovered, segments)


def _completed(
    table: LanceTable, name: str, kind: str, uncovered: set[int], segments: list[Index]
) -> Missing:
    """A segment over uncovered fragments. It replaces smaller ones, so that there are always few segments."""
    rows = {f.fragment_id: f.physical_rows for f in table.fragments()}
    covering, replaced = set(uncovered), list[Index]()
    known = [(sum(rows.get(i, 0) for i in each.fragment_ids), each) for each in segments]
    left = len(known)
    for size, each in sorted(known, key=lambda pair: pair[0]):
        if size > sum(rows[i] for i in covering) and left < SEGMENTS_MAX:
            break
        covering |= set(each.fragment_ids) & rows.keys()
        replaced.append(each)
        left -= 1
    return Missing(name, kind, tuple(sorted(covering)), tuple(replaced))


def _build_one(table: LanceTable, edit: IndexEdit) -> tuple[list[Index], tuple[Index, ...]]:
    needed = missing(table, edit)
    if needed is None:
        return [], ()
    segment = built(table, edit, list(needed.covering))
    return [replace(segment, name=needed.name)], needed.replaced


def built(table: LanceTable, edit: IndexEdit, covering: list[int]) -> Index:
    """A segment over some fragments, not committed yet."""
    kind = edit.kind.upper()
    options = {**_defaults(kind, table.handle), **dict(edit.options)}
    doing = f"building a {kind} index on column {edit.column} of table {table.ref.path}"
    handle = copy(table.handle)  # Lance locks the handle it builds on, and others read through ours
    try:
        with lance_errors(doing):
            # Lance refuses a second segment under a name in use, so it is built under another name.
            segment = handle.create_index_uncommitted(
                edit.column, kind, name=f"building_{uuid4().hex}", fragment_ids=covering, **options
            )
            if kind == "INVERTED":
                segment = handle.merge_existing_index_segments([segment])
            return segment
    except (
        TypeError,
        KeyError,
        NotImplementedError,
    ) as failure:  # a kind that does not fit the column
        raise OptionInvalid(f"{doing} failed: {failure}") from failure


def stands_alone(kind: str) -> bool:
    """Whether an index of this kind has one segment only."""
    return kind.startswith("IVF") or kind == "NGRAM"


def _defaults(kind: str, handle: LanceDataset) -> dict[str, Any]:
    if not kind.startswith("IVF"):
        return {}
    if "HNSW" in kind:
        return {"num_partitions": 1}
    partitions = math.ceil(handle.count_rows() / PARTITION_ROWS)
    return {"num_partitions": max(1, min(PARTITIONS_MAX, partitions))}


def _segments(table: LanceTable) -> list[Index]:
    """The committed segments, as a transaction that drops them needs them."""
    return [
        Index(
            uuid=segment.uuid,
            name=index.name,
            fields=list(index.fields),
            dataset_version=segment.dataset_version_at_last_update,
            fragment_ids=set(segment.fragment_ids),
            index_version=segment.index_version,
        )
        for index in table.descriptions
        for segment in index.segments
    ]
