"""`LanceTables`: the tables under one root. Every method that writes ends in detached commits only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from lance import LanceDataset

from omnigraph.deferred import Deferred
from omnigraph.storage import metrics
from omnigraph.storage.disk import sync_files, sync_parents
from omnigraph.storage.lance.handles import Handles, commit
from omnigraph.storage.lance.reading import LanceTable, manifest_file
from omnigraph.storage.lru import Lru
from omnigraph.storage.objects import fsync_wanted, locate
from omnigraph.storage.tables import NewFragments, Staged, TableEdit, TableRef

if TYPE_CHECKING:
    from omnigraph.storage.lance import altering, indexing, parts, rewriting, staging
    from omnigraph.storage.lance import parts as compaction
    from omnigraph.storage.lance.indexing import IndexChange
    from omnigraph.storage.lance.parts import SegmentPart
    from omnigraph.storage.lance.staging import RowChange
else:  # a process that only reads does not need them
    altering = Deferred("omnigraph.storage.lance.altering")
    compaction = Deferred("omnigraph.storage.lance.parts")
    indexing = Deferred("omnigraph.storage.lance.indexing")
    parts = Deferred("omnigraph.storage.lance.parts")
    rewriting = Deferred("omnigraph.storage.lance.rewriting")
    staging = Deferred("omnigraph.storage.lance.staging")

DURABLE_FILES_MAX = 16_384  # names of synced files that are remembered

# Keys of `Staged.extra`.
INDEX_CHANGE = "index_change"  # lets an index move to another base
INDICES_FAILED = "indices_failed"  # messages about indices that could not be built during a write
DELETIONS = "deletions"  # what fragments became, for the same edit on another base
FILLED = "filled"  # the values of new columns, likewise
REWRITTEN = "rewritten"  # which fragments compaction replaced by which


class LanceTables:
    """See `tables.TableStore`.

    `uri` is a path, `file://…`, `s3://bucket/prefix` or `memory://name`. Options go to Lance's object store;
    for S3 they default to the AWS variables. `fsync=False` (or OMNIGRAPH_FSYNC=0) gives up durability across
    power cuts.
    """

    def __init__(
        self, uri: str, options: dict[str, str] | None = None, *, fsync: bool | None = None
    ) -> None:
        place = locate(uri)
        self._handles = Handles(place if options is None else replace(place, options=options))
        wanted = fsync_wanted() if fsync is None else fsync
        self._fsync = wanted and place.scheme == "file"
        self._durable: Lru[tuple[str, str], bool] = Lru(DURABLE_FILES_MAX)

    # --- opening ---------------------------------------------------------------------------------------------------

    def create(self, path: str, schema: pa.Schema) -> TableRef:
        ref = self._handles.create(path, schema).ref
        if self._fsync:
            folder = self._folder(path)
            sync_files(folder, [manifest_file(ref.version)])
            sync_parents(folder, Path(self._handles.uri))
        return ref

    def open(self, ref: TableRef) -> LanceTable:
        return self._handles.open(ref)

    # --- staging ---------------------------------------------------------------------------------------------------

    def stage(self, base: TableRef, edit: TableEdit) -> Staged:
        table = self.open(base)
        before, change, indices = table, staging.RowChange(), indexing.IndexChange()
        kept = edit.earlier.extra if edit.earlier is not None else {}
        filled, rewritten = kept.get(FILLED), None
        if edit.columns is not None:
            filled = filled or altering.FilledColumns()
            altered = altering.alter_columns(table.handle, edit.columns, base.path, filled)
            table = self._at(base, altered)
        if edit.delete is not None or edit.append is not None or edit.replace_all:
            change = staging.change_rows(table, edit, kept.get(DELETIONS, {}))
            table = self._advance(table, change)
        if edit.compact:
            rewritten = compaction.compact(table)
            table = self._advance(table, rewritten.change())
        if edit.indices or edit.drop_indices:
            alone = table.ref == base
            indices = indexing.build(table, edit.indices, edit.drop_indices, must_succeed=alone)
            if not indices.is_empty:
                table = self._at(base, self._commit_indices(table, indices))
        staged = self._staged(before, table, edit, change, indices)
        again = {DELETIONS: change.deletions, FILLED: filled, REWRITTEN: rewritten}
        return replace(staged, extra=staged.extra | {name: x for name, x in again.items() if x})

    def recommit(self, staged: Staged, base: TableRef) -> Staged | None:
        table = self.open(base)
        old = self.open(staged.base)
        if old.shape != table.shape:
            return None
        if staged.only_appends:
            return self._recommit_rows(staged, table)
        after = self._recommit_rewritten(staged, table)
        if after is None:
            return None
        indices = staged.extra.get(INDEX_CHANGE)
        if indices is not None:
            return self._recommit_indices(staged, after, base, indices)
        moved = replace(staged, ref=after.ref, base=base, rows=after.count())
        return moved if after is not table else None

    def write_fragments(
        self, base: TableRef, rows: pa.Table | Iterable[pa.RecordBatch]
    ) -> NewFragments:
        new = staging.write_new(self.open(base), rows)
        return NewFragments(
            tuple(map(staging.to_description, new)), sum(fragment.num_rows for fragment in new)
        )

    # --- maintenance done elsewhere ----------------------------------------------------------------------------------

    def stage_compacted(self, base: TableRef, answers: Iterable[str]) -> Staged:
        """The version that results from all parts of a compaction of `base`."""
        before = self.open(base)
        rewritten = parts.compacted(before, answers)
        after = self._advance(before, rewritten.change())
        extra = {REWRITTEN: rewritten}
        return Staged(after.ref, base, after.count(), _gone(before, after), extra=extra)

    def stage_segments(
        self, staged: Staged, built: Sequence[SegmentPart], answers: Sequence[bytes]
    ) -> Staged:
        """A staged version with the segments that were built over it."""
        table = self.open(staged.ref)
        indices = parts.segments_of(table, built, answers)
        if indices.is_empty:
            return staged
        after = self._at(table.ref, self._commit_indices(table, indices))
        return replace(staged, ref=after.ref, extra=staged.extra | _extra(indices, may_move=True))

    # --- durability --------------------------------------------------------------------------------------------------

    def sync(self, staged: Sequence[Staged]) -> None:
        if not self._fsync:
            return
        metrics.parallel([partial(self._sync_one, each) for each in staged])

    # --- how it is done --------------------------------------------------------------------------------------------

    def _folder(self, path: str) -> Path:
        return Path(self._handles.uri) / path

    def _at(self, base: TableRef, handle: LanceDataset) -> LanceTable:
        return self._handles.remember(LanceTable(TableRef(base.path, handle.version), handle))

    def _advance(self, table: LanceTable, change: RowChange) -> LanceTable:
        if change.is_empty:
            return table
        after = self._at(table.ref, staging.commit_rows(table, change))
        after.adopt(table)
        return after

    def _commit_indices(self, table: LanceTable, change: IndexChange) -> LanceDataset:
        return commit(table.handle, change.operation(), f"adding indices to {table.ref.path}")

    def _staged(
        self,
        before: LanceTable,
        after: LanceTable,
        edit: TableEdit,
        change: RowChange,
        indices: IndexChange,
    ) -> Staged:
        reshaped = edit.columns is not None or edit.compact
        replaced = _gone(before, after) if reshaped else frozenset(change.replaced)
        appends = not (reshaped or edit.replace_all or edit.delete is not None or edit.indices)
        may_move = edit.columns is None and not edit.replace_all and change.is_empty
        return Staged(
            ref=after.ref,
            base=before.ref,
            rows=after.count(),
            replaced=replaced,
            appended=tuple(map(staging.to_description, change.new)),
            only_appends=appends and not edit.drop_indices,
            written=_data_of(change),
            bytes_written=sum(map(staging.data_bytes, change.new)),
            extra=_extra(indices, may_move=may_move),
        )

    def _recommit_rows(self, staged: Staged, table: LanceTable) -> Staged | None:
        there = {f.identity: f.fragment_id for f in table.fragments()} if staged.replaced else {}
        if not staged.replaced <= there.keys():
            return None
        change = staging.RowChange(
            removed=[there[identity] for identity in staged.replaced],
            new=list(map(staging.from_description, staged.appended)),
        )
        after = self._advance(table, change)
        return replace(staged, ref=after.ref, base=table.ref, rows=after.count())

    def _recommit_rewritten(self, staged: Staged, table: LanceTable) -> LanceTable | None:
        """Another version with the rewritten fragments, if any; None if they do not fit."""
        made = staged.extra.get(REWRITTEN)
        if made is None:
            return table
        moved = rewriting.rebased(made, table, self.open(made.base))
        if moved is None:
            return None
        after = self._advance(table, moved.rows)
        return self._advance(after, staging.delete_rows(after, moved.deletions))

    def _recommit_indices(
        self, staged: Staged, table: LanceTable, base: TableRef, indices: IndexChange
    ) -> Staged | None:
        """`table` is the new version without them."""
        change = indexing.rebase(indices, table)
        if change is None:
            return None
        after = table
        if not change.is_empty:
            after = self._at(table.ref, self._commit_indices(table, change))
        extra = staged.extra | {INDEX_CHANGE: change}
        return replace(staged, ref=after.ref, base=base, rows=after.count(), extra=extra)

    def _sync_one(self, staged: Staged) -> None:
        if staged.ref == staged.base:
            return
        """A write that lost a race has most of its files still; they never change once they are written."""
        files = self.open(staged.ref).files() - self.open(staged.base).files()
        new = {name for name in files if (staged.ref.path, name) not in self._durable}
        sync_files(self._folder(staged.ref.path), new)
        for name in new:
            self._durable.put((staged.ref.path, name), True)


def _extra(indices: IndexChange, *, may_move: bool) -> dict[str, Any]:
    extra: dict[str, Any] = {}
    if may_move and not indices.is_empty:
        extra[INDEX_CHANGE] = indices
    if indices.failed:
        extra[INDICES_FAILED] = indices.failed
    return extra


def _data_of(change: RowChange) -> NewFragments | None:
    """The new rows of a change as files that fit any version of the table."""
    if not change.new or change.absorbs:
        return None
    descriptions = tuple(map(staging.to_description, change.new))
    return NewFragments(descriptions, sum(fragment.num_rows for fragment in change.new))


def _gone(before: LanceTable, after: LanceTable) -> frozenset[str]:
    kept = {fragment.identity for fragment in after.fragments()}
    return frozenset(f.identity for f in before.fragments() if f.identity not in kept)
