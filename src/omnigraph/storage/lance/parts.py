"""Maintenance in parts run by other processes: a part reads and writes files, and its result is committed here.

Parts and results are plain values, so they can be serialized. A result is valid only on the version its part was made
for.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace

import msgspec
from lance.dataset import Index, IndexFile
from lance.fragment import FragmentMetadata
from lance.optimize import CompactionTask, RewriteResult

from omnigraph.model.frozen import frozen
from omnigraph.storage.lance.failures import lance_errors
from omnigraph.storage.lance.handles import STORAGE_VERSION
from omnigraph.storage.lance.indexing import SEGMENTS_MAX, IndexChange, built, missing, stands_alone
from omnigraph.storage.lance.reading import LanceTable, count_reads_and_writes
from omnigraph.storage.lance.rewriting import Rewriting, rewriting
from omnigraph.storage.tables import FRAGMENT_ROWS_MAX, IndexEdit, rewrite_groups

SEGMENTS_AT_ONCE_MAX = SEGMENTS_MAX // 2  # the others are for later writes


@frozen
class SegmentPart:
    """A segment of an index to be built over some fragments."""

    edit: IndexEdit
    fragments: tuple[int, ...]


# --- compaction --------------------------------------------------------------------------------------------------


def compaction_parts(table: LanceTable) -> tuple[str, ...]:
    """The fragments to rewrite, as tasks of one new fragment each.

    Lance would not merge fragments covered by different index segments, and so never finish.
    """
    live = {each.fragment_id: each.metadata for each in table.handle.get_fragments()}
    groups = rewrite_groups(table.fragments())
    return tuple(_task(table, [live[i] for i in ids]) for ids in groups)


def _task(table: LanceTable, fragments: Sequence[FragmentMetadata]) -> str:
    """A task in Lance's form."""
    return json.dumps(
        {
            "task": {"fragments": [fragment.to_json() for fragment in fragments]},
            "read_version": table.ref.version,
            "options": {
                "target_rows_per_fragment": FRAGMENT_ROWS_MAX,
                "max_rows_per_group": 1024,
                "materialize_deletions": True,
                "materialize_deletions_threshold": 0.0,
                "defer_index_remap": False,
                "enable_binary_copy": False,
                "enable_binary_copy_force": False,
                "data_storage_version": STORAGE_VERSION,
            },
        }
    )


def compact_part(table: LanceTable, part: str) -> str:
    """Rewrite the fragments of one task."""
    with lance_errors(f"compacting table {table.ref.path}"):
        return str(CompactionTask.from_json(part).execute(table.handle).json())


def compacted(table: LanceTable, answers: Iterable[str]) -> Rewriting:
    """The combined result of all tasks."""
    return rewriting(table, [RewriteResult.from_json(answer) for answer in answers])


# --- indices -----------------------------------------------------------------------------------------------------


def segment_parts(table: LanceTable, edits: Sequence[IndexEdit]) -> tuple[SegmentPart, ...]:
    """The missing segments, split into about equal sizes."""
    rows = {f.fragment_id: f.physical_rows for f in table.fragments()}
    found: list[SegmentPart] = []
    for edit in edits:
        needed = missing(table, edit)
        if needed is None:
            continue
        count = 1 if stands_alone(needed.kind) else min(SEGMENTS_AT_ONCE_MAX, len(needed.covering))
        found += [SegmentPart(edit, tuple(part)) for part in _shares(needed.covering, rows, count)]
    return tuple(found)


def _shares(fragments: Sequence[int], rows: dict[int, int], count: int) -> list[list[int]]:
    shares: list[list[int]] = [[] for _ in range(count)]
    held = [0] * count
    for fragment in sorted(fragments, key=lambda f: -rows[f]):
        place = held.index(min(held))
        shares[place].append(fragment)
        held[place] += rows[fragment]
    return [sorted(share) for share in shares]


def build_segment(table: LanceTable, part: SegmentPart) -> bytes:
    """Build one segment; nothing is committed."""
    return msgspec.msgpack.encode(_Answer.of(built(table, part.edit, list(part.fragments))))


def segments_of(
    table: LanceTable, parts: Sequence[SegmentPart], answers: Sequence[bytes]
) -> IndexChange:
    """The combined change of all built segments to the table's indices."""
    made = [msgspec.msgpack.decode(answer, type=_Answer).index() for answer in answers]
    needed = {part.edit.column: missing(table, part.edit) for part in parts}
    new: list[Index] = []
    dropped: dict[str, Index] = {}
    for part, segment in zip(parts, made, strict=True):
        wanted = needed[part.edit.column]
        if wanted is not None:
            new.append(replace(segment, name=wanted.name))
            dropped |= {old.uuid: old for old in wanted.replaced}
    covered = {i for segment in new for i in segment.fragment_ids}
    files = tuple((f.fragment_id, f.files) for f in table.fragments() if f.fragment_id in covered)
    return IndexChange(tuple(new), tuple(dropped.values()), files)


class _Answer(msgspec.Struct, frozen=True):
    """A serialized segment."""

    uuid: str
    fields: list[int]
    dataset_version: int
    fragments: list[int]
    index_version: int
    files: list[tuple[str, int]]
    details: tuple[str, bytes] | None

    @classmethod
    def of(cls, made: Index) -> _Answer:
        return cls(
            made.uuid,
            list(made.fields),
            made.dataset_version,
            sorted(made.fragment_ids),
            made.index_version,
            [(file.path, file.size_bytes) for file in made.files or ()],
            made.index_details,
        )

    def index(self) -> Index:
        return Index(
            uuid=self.uuid,
            name="",
            fields=self.fields,
            dataset_version=self.dataset_version,
            fragment_ids=set(self.fragments),
            index_version=self.index_version,
            files=[IndexFile(path, size) for path, size in self.files],
            index_details=self.details,
        )


def compact(table: LanceTable) -> Rewriting:
    """Write the compacted fragments, all in this process."""
    table.handle.io_stats_incremental()
    answers = [compact_part(table, part) for part in compaction_parts(table)]
    count_reads_and_writes(table.handle)
    return compacted(table, answers)
