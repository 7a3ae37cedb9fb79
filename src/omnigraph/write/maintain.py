"""The verb of maintenance: one table in better order, the same rows.

Small fragments and those with many deleted rows are rewritten, and declared indices are completed, as an ordinary
commit that other writers may overtake: it is planned again then. Whoever writes a table all the time may overtake a
rewrite for ever, so after a few attempts only the indices are brought up to date; those fit any newer version.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from omnigraph.core.plan import CreateIndex, PublishPlan, Rewrite, TableAction, Verb
from omnigraph.core.snapshot import Snapshot
from omnigraph.core.txn import WriteTxn
from omnigraph.model.catalog import EdgeType, NodeType
from omnigraph.storage.tables import FragmentInfo, IndexEdit, Table
from omnigraph.write.pending_indices import KINDS, declared_indices

FRAGMENT_ROWS = 2**20  # a full one
REWRITES_MAX = 3  # attempts to rewrite a table under others' hands
DELETED_PART_MAX = 0.1
UNCOVERED_ROWS_MAX = 4_096  # per index, before automatic maintenance acts
SMALL_FRAGMENTS_MAX = 8
SMALL_FRAGMENT_ROWS = FRAGMENT_ROWS // 8

Kind = NodeType | EdgeType


@dataclass(frozen=True, slots=True)
class TableReport:
    """What maintenance found, and did, to the table of one type."""

    type: str
    kind: str  # node or edge
    rows: int
    fragments_before: int
    fragments_after: int
    indexed: tuple[str, ...] = ()  # columns whose index was built or completed
    topology_bytes: int = 0
    note: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {name: _plain(getattr(self, name)) for name in self.__slots__}


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


@dataclass(frozen=True, slots=True)
class Work:
    """What a table needs."""

    compact: bool
    indices: tuple[IndexEdit, ...]

    @property
    def is_nothing(self) -> bool:
        return not self.compact and not self.indices

    def action(self, table_id: str) -> TableAction:
        if self.compact:
            return Rewrite(table_id, self.indices)
        return CreateIndex(table_id, self.indices)


def optimize(table_id: str, attempts: int = 0) -> Verb:
    """The verb that brings the table of one type into order; `attempts` were made before."""

    def verb(txn: WriteTxn) -> PublishPlan:
        nonlocal attempts
        attempts += 1
        kinds = {kind.table_id: kind for kind in txn.catalog.entities()}
        if table_id not in kinds or table_id not in txn.snapshot.commit.tables:
            return PublishPlan(kind="optimize", empty=True, value=Work(False, ()))
        work = wanted(txn.snapshot, kinds[table_id], rewrite=attempts <= REWRITES_MAX)
        if work.is_nothing:
            return PublishPlan(kind="optimize", empty=True, value=work)
        return PublishPlan(kind="optimize", actions=(work.action(table_id),), value=work)

    return verb


def wanted(snapshot: Snapshot, kind: Kind, *, rewrite: bool = True) -> Work:
    """Everything there is to do for a table."""
    table = snapshot.table_of(kind)
    compact = rewrite and _is_scattered(table.fragments())
    declared = [i.column for i in declared_indices(snapshot.catalog) if _is_of(i, kind)]
    edits = (IndexEdit(column, "BTREE") for column in declared)
    found = (edit for edit in edits if compact or uncovered_rows(table, edit.column))
    return Work(compact, tuple(found) if table.count() else ())


def _is_of(index: Any, kind: Kind) -> bool:
    """Words and vectors are searched with structures of our own, so only values are indexed here."""
    return bool(index.table_id == kind.table_id and index.kind == "value")


def _is_scattered(fragments: tuple[FragmentInfo, ...]) -> bool:
    """Whether rewriting gives fewer fragments, or rids the table of many deleted rows."""
    physical = sum(f.physical_rows for f in fragments)
    deleted = sum(f.deleted_rows for f in fragments)
    small = [f for f in fragments if f.physical_rows < FRAGMENT_ROWS]
    return len(small) > 1 or deleted > DELETED_PART_MAX * physical


def uncovered_rows(table: Table, column: str) -> int:
    """The rows no index on a column knows."""
    covered: frozenset[int] = frozenset().union(
        *(
            index.covered_fragments
            for index in table.indices()
            if index.column == column and index.kind in KINDS["value"]
        )
    )
    return sum(
        f.physical_rows - f.deleted_rows for f in table.fragments() if f.fragment_id not in covered
    )


# --- when to act -------------------------------------------------------------------------------------------------


def due(snapshot: Snapshot) -> Iterator[Kind]:
    """The types whose tables are worth the work now: a look at fragments and indices, no row is read."""
    for kind in snapshot.catalog.entities():
        table = snapshot.table_of(kind)
        fragments = table.fragments()
        small = [f for f in fragments if f.physical_rows < SMALL_FRAGMENT_ROWS]
        physical = sum(f.physical_rows for f in fragments)
        deleted = sum(f.deleted_rows for f in fragments)
        if (
            len(small) > SMALL_FRAGMENTS_MAX
            or deleted > max(UNCOVERED_ROWS_MAX, DELETED_PART_MAX * physical)
            or uncovered_rows(table, "id") > UNCOVERED_ROWS_MAX
        ):
            yield kind
