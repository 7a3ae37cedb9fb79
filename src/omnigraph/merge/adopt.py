"""Versions a merge adopts unchanged, instead of writing rows."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from omnigraph.core.plan import Adopt, Alter, DropTable, TableAction
from omnigraph.core.records import Commit
from omnigraph.core.repository import Repository
from omnigraph.core.snapshot import Snapshot
from omnigraph.merge.changed import Between, summary_of
from omnigraph.merge.resolution import Settled
from omnigraph.merge.schema_view import column_edit, kinds_of
from omnigraph.merge.three_way import Sides
from omnigraph.model.catalog import NodeOrEdgeType

OWN_STEPS_MAX = (
    64  # commits of ours that are read to see whether a new version of a table has new rows
)


def fast_forward(between: Between, ours: Commit) -> Iterator[TableAction]:
    """Ours is unchanged since the base: the table map of theirs is adopted, and no row is read.

    The image is one that theirs has published, so it is valid as a whole. Tables theirs did not touch stay as ours has
    them, which may be better optimized.
    """
    base, theirs = between.one.commit, between.other.commit
    for table_id, entry in theirs.tables.items():
        mine = ours.tables.get(table_id)
        if mine is None or entry not in (mine, base.tables.get(table_id)):
            yield Adopt(table_id, entry, between.summary(table_id), (theirs.chain, theirs.number))
    yield from (DropTable(table_id) for table_id in ours.tables if table_id not in theirs.tables)


def adopted(settled: Settled, sides: Sides, before: Snapshot, source: Snapshot) -> dict[str, Adopt]:
    """The tables that become exactly what theirs has: ours has not changed them since the base, in rows or columns.

    `before` and `source` are ours and theirs under their own schemas.
    """
    if sides.part is not None:
        return {}
    mine = Between(sides.repo, sides.base, sides.ours, OWN_STEPS_MAX)
    own, theirs = kinds_of(before.catalog), kinds_of(source.catalog)
    place = source.commit.chain, source.commit.number
    found: dict[str, Adopt] = {}
    for kind in sides.catalog.entities():
        table = kind.table_id
        merged = settled.tables.get(table)
        if merged is None or table in settled.overridden or not merged.as_theirs:
            continue
        if table in own and (merged.delta.is_empty or mine.is_touched(table)):
            continue
        if column_edit(theirs[table], kind) is None and not _reshaped(sides, own.get(table)):
            entry = msgspec.structs.replace(source.entry(table), type_name=kind.name)
            change = summary_of(merged.delta, kind, sides.repo.limits)
            found[table] = Adopt(table, entry, change, place)
    return found


def _reshaped(sides: Sides, kind: NodeOrEdgeType | None) -> bool:
    """Whether ours has other columns than the base had."""
    if kind is None:
        return False
    stored = kinds_of(sides.repo.schema(sides.base.commit.schema).catalog).get(kind.table_id)
    return stored is None or column_edit(stored, kind) is not None


def reshaped(sides: Sides, before: Snapshot) -> Iterator[TableAction]:
    """The actions that bring the tables of ours under the merged schema; `before` is ours under its own."""
    old = kinds_of(before.catalog)
    merged = kinds_of(sides.catalog)
    for table_id in before.commit.tables:
        kind = merged.get(table_id)
        if kind is None:
            yield DropTable(table_id)
            continue
        edit = column_edit(old[table_id], kind)
        if edit is not None or old[table_id].name != kind.name:
            yield Alter(table_id, kind.name, edit)


def taken_over(repo: Repository, head: Snapshot, wanted: Snapshot) -> Iterator[TableAction]:
    """The actions that make a head equal to another state, only by reference."""
    between = Between(repo, head, wanted)
    kinds = kinds_of(wanted.catalog)
    for table_id, entry in wanted.commit.tables.items():
        if entry != head.commit.tables.get(table_id):
            kind = kinds[table_id]
            change = summary_of(between.delta(table_id, kind), kind, repo.limits)
            yield Adopt(table_id, entry, change, (wanted.commit.chain, wanted.commit.number))
    for table_id in head.commit.tables:
        if table_id not in wanted.commit.tables:
            yield DropTable(table_id)
