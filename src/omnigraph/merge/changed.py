"""The changed rows between two commits, and summaries of changes.

Fragments show the difference directly if few rows are in fragments only one side has. If they do not,
for instance after a compaction, the summaries in the commits between name the ids, and those are looked up.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.core import layout
from omnigraph.core.footprints import Touch
from omnigraph.core.records import TableChange
from omnigraph.core.repository import Repository
from omnigraph.core.snapshot import Snapshot, table_ref
from omnigraph.errors import Corrupt, ObjectNotFound
from omnigraph.merge.lineage import HistoryStep, is_first_ancestor, steps
from omnigraph.merge.rows import (
    Comparison,
    Delta,
    by_fragments,
    by_ids,
    everything,
    ids_by_fragments,
    no_rows,
)
from omnigraph.merge.schema_view import Lens, kinds_of, through
from omnigraph.model.catalog import EdgeType, NodeOrEdgeType
from omnigraph.model.columns import arrow_schema, one_array
from omnigraph.model.limits import Limits
from omnigraph.model.tokens import (
    Footprint,
    Tokens,
    endpoint_tokens,
    id_tokens,
    union,
    unique_tokens,
)
from omnigraph.storage.tables import Table

COMPARED_ROWS_MAX = 20_000  # up to this many rows, fragments are compared directly
LOOKUP_COST = 4  # the cost of looking up a row, in rows read sequentially
STEPS_MAX = 2_048  # commits whose summaries are read
FOOTPRINT_ROWS_MAX = 100_000  # a summary of more rows counts as everything


@dataclass(slots=True)
class Between:
    """Two commits and, on demand, the commits between them."""

    repo: Repository
    one: Snapshot
    other: Snapshot
    limit: int = STEPS_MAX  # commits to read at most
    _steps: list[HistoryStep] | None = None
    _known: bool = field(default=False)

    def delta(self, table_id: str, seen: NodeOrEdgeType) -> Delta:
        """The changed rows of one table, in the columns of `seen`. A table one side lacks is empty there."""
        a, b = _table(self.one, table_id, seen), _table(self.other, table_id, seen)
        columns = arrow_schema(seen).names
        if a is None or b is None:
            nothing = no_rows(arrow_schema(seen))
            return Delta(
                nothing if a is None else everything(a, columns),
                nothing if b is None else everything(b, columns),
            )
        if a.ref == b.ref:
            return Delta(no_rows(arrow_schema(seen)), no_rows(arrow_schema(seen)))
        rows = Comparison.of(a, b, ["id"]).rows
        if rows > COMPARED_ROWS_MAX and _filled(a) == _filled(b):
            ids = self._few_ids(table_id, rows // LOOKUP_COST)
            if ids is not None:
                return by_ids(a, b, ids, columns)
        return by_fragments(a, b, columns)

    def _few_ids(self, table_id: str, most: int) -> pa.Array | None:
        """The ids of all rows that may differ, if summaries show that there are few."""
        return self.touched_ids(table_id) if self._touched_rows(table_id) < most else None

    def _touched_rows(self, table_id: str) -> float:
        """How many rows the commits between list; infinity if unknown."""
        way = self.steps()
        changes = [
            member.changes[table_id]
            for step in way or ()
            for member in step.commit.members
            if table_id in member.changes
        ]
        if way is None or any(change.all for change in changes):
            return math.inf
        return sum(change.inserted + change.updated + change.deleted for change in changes)

    def differs(self, table_id: str) -> bool:
        """Whether a table has another version, which may hold the same rows."""
        mine, yours = (s.commit.tables.get(table_id) for s in (self.one, self.other))
        if mine is None or yours is None:
            return mine is not yours
        return (mine.path, mine.version) != (yours.path, yours.version)

    def is_touched(self, table_id: str) -> bool:
        """Whether a table was written to; maintenance does not count, and unknown cases do."""
        if not self.differs(table_id):
            return False
        way = self.steps()
        return way is None or any(_writes(step, table_id) for step in way)

    def steps(self) -> list[HistoryStep] | None:
        """The commits between; None if unavailable."""
        if not self._known:
            self._steps = steps(self.repo, self.one.commit, self.other.commit, self.limit)
            self._known = True
        return self._steps

    def touched_ids(self, table_id: str) -> pa.Array | None:
        """The ids of all rows that may differ, from summaries; None if they are not complete."""
        way = self.steps()
        if way is None:
            return None
        found = [pa.array([], pa.string())]
        for step in way:
            if _writes(step, table_id):
                ids = _readable_ids(self.repo, step, table_id)
                if ids is None:
                    return None
                found.append(ids)
        return pc.unique(pa.concat_arrays(found))

    def summary(self, table_id: str) -> TableChange:
        """One summary of everything done to a table on the way from the first commit, an ancestor, to the other.

        If the commits between are not enough, or are on two paths, the rows are compared.
        """
        way = (
            self.steps()
            if is_first_ancestor(self.repo, self.one.commit, self.other.commit)
            else None
        )
        written = [s.commit for s in way or () if _writes(s, table_id)]
        parts = [[m.changes[table_id] for m in c.members if table_id in m.changes] for c in written]
        if way is not None and all(parts):
            return combined([change for part in parts for change in part])
        kind = kinds_of(self.other.catalog)[table_id]
        return summary_of(self.delta(table_id, kind), kind, self.repo.limits)


def _table(snapshot: Snapshot, table_id: str, seen: NodeOrEdgeType) -> Table | None:
    kind = kinds_of(snapshot.catalog).get(table_id)
    if kind is None or table_id not in snapshot.commit.tables:
        return None
    return through(snapshot.table(table_id), kind, seen)


def _filled(table: Table) -> frozenset[str]:
    """The columns in the view of a table that it does not have: summaries do not record how rows got or lost them."""
    return table.filled if isinstance(table, Lens) else frozenset()


def _writes(step: HistoryStep, table_id: str) -> bool:
    """Whether a commit gave a table other rows."""
    before, after = step.before.tables.get(table_id), step.commit.tables.get(table_id)
    if before is not None and after is not None:
        if (before.path, before.version) == (after.path, after.version):
            return False
    elif before is after:
        return False
    return any(table_id in m.changes for m in step.commit.members) or not _is_maintenance(step)


def _is_maintenance(step: HistoryStep) -> bool:
    own = layout.content_id(step.commit.chain, step.commit.number, len(step.commit.members))
    return step.commit.content != own


def _readable_ids(repo: Repository, step: HistoryStep, table_id: str) -> pa.Array | None:
    """The same; None for a commit whose files were removed by a cleanup."""
    try:
        return _ids(repo, step, table_id)
    except (Corrupt, ObjectNotFound):
        return None


def _ids(repo: Repository, step: HistoryStep, table_id: str) -> pa.Array | None:
    """The ids one commit touched: as listed, or from the fragments it added."""
    changes = [m.changes[table_id] for m in step.commit.members if table_id in m.changes]
    if changes and all(is_listed(change) for change in changes):
        return pa.array([i for change in changes for i in listed_ids(change)], pa.string())
    before, after = step.before.tables.get(table_id), step.commit.tables.get(table_id)
    if before is None or after is None or before.path != after.path:
        return None
    open_ = repo.tables.open
    return ids_by_fragments(open_(table_ref(before)), open_(table_ref(after)))


def is_listed(change: TableChange) -> bool:
    """Whether a summary lists all its rows."""
    lists = (change.inserted_ids, change.updated_ids, change.deleted_ids)
    return not change.all and all(ids is not None for ids in lists)


def listed_ids(change: TableChange) -> tuple[str, ...]:
    """The ids a summary lists, whatever happened to them."""
    return (
        *(change.inserted_ids or ()),
        *(change.updated_ids or ()),
        *(change.deleted_ids or ()),
    )


# --- summaries ---------------------------------------------------------------------------------------------------


def summary_of(delta: Delta, kind: NodeOrEdgeType, limits: Limits) -> TableChange:
    """The summary of these changes in their commit."""
    few = delta.before.num_rows + delta.after.num_rows <= FOOTPRINT_ROWS_MAX
    return Touch(
        inserted=one_array(delta.inserted["id"]),
        updated=one_array(delta.updated["id"]),
        deleted=one_array(delta.deleted["id"]),
        shown=union(_tokens(delta, kind)) if few else None,
    ).change(limits)


def _tokens(delta: Delta, kind: NodeOrEdgeType) -> Iterable[Tokens]:
    yield id_tokens(delta.before["id"])
    yield id_tokens(delta.after["id"])
    for group in kind.uniques:
        yield unique_tokens(group, [delta.after[name] for name in group])
    yield from _ends(delta, kind)


def _ends(delta: Delta, kind: NodeOrEdgeType) -> Iterable[Tokens]:
    if isinstance(kind, EdgeType):
        for rows in (delta.before, delta.after):
            yield endpoint_tokens("src", rows["src"])
            yield endpoint_tokens("dst", rows["dst"])


def combined(changes: Sequence[TableChange]) -> TableChange:
    """Several changes, in order, as one."""
    if len(changes) < 2:
        return changes[0] if changes else TableChange()
    prints = [Footprint.from_text(change.touched) for change in changes]
    exact = [p.exact for p in prints if p.exact is not None]
    if len(exact) < len(prints) or not all(is_listed(change) for change in changes):
        return _added_up(changes)
    was: dict[str, bool] = {}  # whether the row existed at first, and exists at last
    now: dict[str, bool] = {}
    for change in changes:
        for ids, before, after in (
            (change.deleted_ids, True, False),
            (change.updated_ids, True, True),
            (change.inserted_ids, False, True),
        ):
            for i in ids or ():
                was.setdefault(i, before)
                now[i] = after
    inserted = tuple(i for i in now if not was[i] and now[i])
    updated = tuple(i for i in now if was[i] and now[i])
    deleted = tuple(i for i in now if was[i] and not now[i])
    touched = Footprint.of(union([np.asarray(tokens) for tokens in exact]))
    return TableChange(
        inserted=len(inserted),
        updated=len(updated),
        deleted=len(deleted),
        touched=touched.to_text(),
        inserted_ids=inserted,
        updated_ids=updated,
        deleted_ids=deleted,
    )


def _added_up(changes: Sequence[TableChange]) -> TableChange:
    return TableChange(
        inserted=sum(change.inserted for change in changes),
        updated=sum(change.updated for change in changes),
        deleted=sum(change.deleted for change in changes),
        all=any(change.all for change in changes),
        touched=Footprint(everything=True).to_text(),
    )
