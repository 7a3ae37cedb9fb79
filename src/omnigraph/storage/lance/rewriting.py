"""Rewritten fragments on a newer version than the one they were made for.

Rewriting keeps the order of live rows, so a row that others deleted or moved meanwhile has a known position in the new
fragments and is deleted there. Fragments added since stay unchanged. New fragments keep the ids they were first given,
because indices and deletion files refer to them; so their ids were never used, nor will be soon.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import count

import numpy as np
from lance.fragment import FragmentMetadata
from lance.optimize import RewriteResult

from omnigraph.model.frozen import frozen
from omnigraph.storage import metrics
from omnigraph.storage.lance import recent
from omnigraph.storage.lance.reading import LanceTable, describe
from omnigraph.storage.lance.recent import Offsets
from omnigraph.storage.lance.staging import RowChange, commit_rows
from omnigraph.storage.tables import FragmentInfo, TableRef

IDS_AHEAD = 4096  # fragments that others may add before rewritten ones have found their place,
ROWS_PER_ID_AHEAD = 4096  # plus one per this many rows, which take time to rewrite
IDS_MAX = 2**32 - 2  # a fragment's id is half of a row's address


@frozen
class Rewritten:
    """Fragments of a version, and those that hold the same rows in the same order."""

    old: tuple[FragmentInfo, ...]
    new: tuple[FragmentMetadata, ...]


@frozen
class Rewriting:
    """All rewritten fragments of one version."""

    base: TableRef
    groups: tuple[Rewritten, ...]

    def change(self) -> RowChange:
        """The change to that version: an ordinary Update, because row addresses change. Indices no longer cover the
        rewritten fragments until they are rebuilt over them."""
        old = [info for group in self.groups for info in group.old]
        return RowChange(
            removed=[info.fragment_id for info in old],
            new=[fragment for group in self.groups for fragment in group.new],
            replaced={info.identity for info in old},
        )


def rewriting(table: LanceTable, results: Iterable[RewriteResult]) -> Rewriting:
    """The results of the tasks, with fresh fragment ids."""
    groups = [
        Rewritten(tuple(map(describe, result.original_fragments)), tuple(result.new_fragments))
        for result in results
    ]
    made = Rewriting(table.ref, tuple(groups))
    new = [fragment for group in groups for fragment in group.new]
    for fragment in new:
        fragment.id = 0
    first = _next_id(table, made) + IDS_AHEAD + table.count() // ROWS_PER_ID_AHEAD
    if first + len(new) <= IDS_MAX:  # else Lance assigns them, and they fit only this version
        for fragment, number in zip(new, count(first), strict=False):
            fragment.id = number
    return made


def _next_id(table: LanceTable, made: Rewriting) -> int:
    """The id the next fragment would have. Lance does not expose it, so it assigns one in a throwaway version.

    Ids of removed fragments must not be reused: index segments may still refer to them.
    """
    if not any(group.new for group in made.groups):
        return 0
    there = {fragment.fragment_id for fragment in table.fragments()}
    after = commit_rows(table, made.change())
    assigned = {int(fragment.fragment_id) for fragment in after.get_fragments()} - there
    return min(assigned)


def rebased(made: Rewriting, table: LanceTable, base: LanceTable) -> Moved | None:
    """The same for another version, as far as its fragments still exist; None if it cannot be moved."""
    there = {fragment.fragment_id: fragment for fragment in table.fragments()}
    if table.remote:
        _read_deletions(made, there, table, base)
    moved = Moved(RowChange(), {})
    for group in made.groups:
        alike = {old.fragment_id: _twin(old, there) for old in group.old}
        if not any(alike.values()):
            continue
        if any(fragment.id in there or not fragment.id for fragment in group.new):
            return None
        gone = np.concatenate(
            [_gone(old, alike[old.fragment_id], base, table) for old in group.old]
        )
        moved.rows.removed += [i for i, twin in alike.items() if twin is not None]
        moved.rows.replaced |= {twin.identity for twin in alike.values() if twin is not None}
        moved.rows.new += group.new
        moved.deletions.update(_split(gone, group.new))
    return moved


@frozen
class Moved:
    """A change of fragments, and the rows of new ones that others have deleted meanwhile, by fragment."""

    rows: RowChange
    deletions: dict[int, Offsets]


def _read_deletions(
    made: Rewriting, there: dict[int, FragmentInfo], table: LanceTable, base: LanceTable
) -> None:
    """Read all deletions side by side; what was read is known from then on."""
    olds = [old for group in made.groups for old in group.old]
    twins = filter(None, (_twin(old, there) for old in olds))
    reads = [partial(base.deleted_rows, old) for old in olds]
    reads += [partial(table.deleted_rows, twin) for twin in twins]
    metrics.parallel([read for read in reads if recent.deletions(*read.args) is None])


def _twin(old: FragmentInfo, there: dict[int, FragmentInfo]) -> FragmentInfo | None:
    found = there.get(old.fragment_id)
    return found if found is not None and found.files == old.files else None


def _gone(
    old: FragmentInfo, twin: FragmentInfo | None, base: LanceTable, table: LanceTable
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """For each row of a fragment that was live when rewritten, whether it is deleted now."""
    lived = np.ones(old.physical_rows, np.bool_)
    lived[base.deleted_rows(old).to_numpy()] = False
    if twin is None:
        return np.ones(int(lived.sum()), np.bool_)
    dead = np.zeros(old.physical_rows, np.bool_)
    if twin.identity != old.identity:
        dead[table.deleted_rows(twin).to_numpy()] = True
    found: np.ndarray[tuple[int], np.dtype[np.bool_]] = dead[lived]
    return found


def _split(
    gone: np.ndarray[tuple[int], np.dtype[np.bool_]], new: Sequence[FragmentMetadata]
) -> dict[int, Offsets]:
    found: dict[int, Offsets] = {}
    start = 0
    for fragment in new:
        offsets = np.flatnonzero(gone[start : start + fragment.physical_rows]).astype(np.uint32)
        start += fragment.physical_rows
        if len(offsets):
            found[fragment.id] = offsets
    return found
