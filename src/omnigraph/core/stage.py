"""Write a plan's tables, all in parallel, as unpublished versions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.core import layout
from omnigraph.core.footprints import on_newer
from omnigraph.core.plan import (
    Adopt,
    Alter,
    CreateIndex,
    DropTable,
    PublishPlan,
    Register,
    Rewrite,
    TableAction,
)
from omnigraph.core.records import Commit, TableEntry
from omnigraph.core.repository import Repository
from omnigraph.core.snapshot import table_ref
from omnigraph.core.txn import NO_OVERLAY, Overlay
from omnigraph.errors import TableNotFound
from omnigraph.model.columns import one_array
from omnigraph.model.frozen import frozen
from omnigraph.storage import metrics
from omnigraph.storage.tables import (
    ADDRESS,
    RowAddresses,
    Staged,
    Table,
    TableEdit,
    TableRef,
    TableStore,
)

MOVED_AT_ONCE = 100_000  # rows whose ids are read to find them in another version


@frozen
class StagedTables:
    """The entries a commit will name, and what was written for them."""

    entries: Mapping[str, TableEntry | None]  # None: the table leaves the graph
    staged: Mapping[str, Staged]

    def on(self, tables: Mapping[str, TableEntry]) -> dict[str, TableEntry]:
        """A head's table map with these entries inserted."""
        merged = {**tables, **{k: v for k, v in self.entries.items() if v is not None}}
        return {k: v for k, v in merged.items() if self.entries.get(k, v) is not None}


def stage(repo: Repository, base: Commit, plans: Iterable[PublishPlan]) -> StagedTables:
    """Stage the folded plans on a base commit."""
    metrics.progress("writing")
    grouped = _by_table(action for plan in plans for action in plan.actions)
    tasks = [
        lambda table_id=table_id, actions=actions: _stage_table(repo, base, table_id, actions)
        for table_id, actions in grouped.items()
    ]
    done = metrics.parallel(tasks, repo.limits.staging_threads_max)
    staged = {
        table_id: written for table_id, (_, written) in zip(grouped, done, strict=True) if written
    }
    entries = {table_id: entry for table_id, (entry, _) in zip(grouped, done, strict=True)}
    return StagedTables(entries, staged)


def restage(
    repo: Repository,
    earlier: StagedTables,
    planned_on: Commit,
    base: Commit,
    plans: Iterable[PublishPlan],
    *,
    moved: frozenset[str],
) -> StagedTables:
    """The same rows on a newer base: the moved tables are committed again, or staged again if that is not enough.

    `planned_on` is what the plans were made for: their addresses are those of its tables.
    """
    actions = (a for plan in plans for a in plan.actions if a.table_id in moved)
    grouped = _by_table(newer for action in actions for newer in on_newer(action))

    def again(table_id: str, actions: list[TableAction]) -> tuple[TableEntry | None, Staged | None]:
        written = earlier.staged.get(table_id)
        entry = base.tables[table_id]
        if written is not None:
            moved_over = repo.tables.recommit(written, table_ref(entry))
            if moved_over is not None:
                return _entry_of(entry, moved_over), moved_over
        there = table_ref(planned_on.tables[table_id])
        return _stage_table(repo, base, table_id, actions, there, written)

    tasks = [lambda t=table_id, a=actions: again(t, a) for table_id, actions in grouped.items()]
    done = dict(zip(grouped, metrics.parallel(tasks, repo.limits.staging_threads_max), strict=True))
    entries = {**earlier.entries, **{table_id: entry for table_id, (entry, _) in done.items()}}
    staged = {
        **earlier.staged,
        **{table_id: written for table_id, (_, written) in done.items() if written},
    }
    return StagedTables(entries, staged)


def _by_table(actions: Iterable[TableAction]) -> dict[str, list[TableAction]]:
    grouped: dict[str, list[TableAction]] = {}
    for action in actions:
        grouped.setdefault(action.table_id, []).append(action)
    return grouped


def _stage_table(
    repo: Repository,
    base: Commit,
    table_id: str,
    actions: list[TableAction],
    planned_on: TableRef | None = None,
    earlier: Staged | None = None,
) -> tuple[TableEntry | None, Staged | None]:
    """`planned_on`: the version the actions were made for, if the base is a newer one. `earlier`: what the same actions
    produced on another version; its files are reused where they fit."""
    entry = base.tables.get(table_id)
    for action in actions:
        match action:
            case DropTable():
                return None, None
            case Adopt():
                return action.entry, None
            case Register():
                entry = _created(repo, action)
            case Alter() if entry is not None:
                entry = _with(entry, type_name=action.type_name)
    if entry is None:
        raise TableNotFound(f"commit {base.content} has no table {table_id} to write to")
    match actions:
        case [CreateIndex(done=Staged() as done) | Rewrite(done=Staged() as done)]:
            if done.base == table_ref(entry):
                return _entry_of(entry, done), done
    edit = _edit(repo.tables, table_ref(entry), actions, planned_on)
    if edit is None:
        return entry, None
    if earlier is not None:
        data = edit.append if earlier.written is None else earlier.written
        edit = replace(edit, append=data, earlier=earlier)
    written = repo.tables.stage(table_ref(entry), edit)
    return _entry_of(entry, written), written


def _created(repo: Repository, action: Register) -> TableEntry:
    """A folder no earlier attempt has used: leftovers are not mixed in."""
    path = layout.table_path(action.kind, action.table_id, repo.clock.fresh_id())
    ref = repo.tables.create(path, action.schema)
    return TableEntry(action.kind, action.type_name, path, str(ref.version), 0)


def _edit(
    tables: TableStore, base: TableRef, actions: list[TableAction], planned_on: TableRef | None
) -> TableEdit | None:
    """All actions on the table, as one edit."""
    overlay = NO_OVERLAY
    edit = TableEdit()
    for action in actions:
        overlay = overlay.plus(action)
        match action:
            case Alter(_, _, columns) if columns is not None:
                edit = replace(edit, columns=columns)
            case CreateIndex(_, indices, drop):
                edit = replace(
                    edit, indices=edit.indices + indices, drop_indices=edit.drop_indices + drop
                )
            case Rewrite(_, indices):
                edit = replace(edit, compact=True, indices=edit.indices + indices)
    edit = replace(
        edit,
        replace_all=overlay.replaced,
        delete=None if overlay.replaced else _addresses(tables, base, overlay, planned_on),
        append=overlay.fragments if overlay.fragments is not None else _filled(overlay.rows),
    )
    return None if edit == TableEdit() else edit


def _filled(rows: pa.Table | None) -> pa.Table | None:
    return rows if rows is not None and rows.num_rows else None


def _addresses(
    tables: TableStore, base: TableRef, overlay: Overlay, planned_on: TableRef | None
) -> pa.UInt64Array | None:
    """Where the rows to remove are, on a base that may not be the verb's."""
    masked, gone = overlay.masked, overlay.gone
    if not masked.num_rows and not gone:
        return None
    if planned_on is not None and planned_on != base:
        then, now = tables.open(planned_on), tables.open(base)
        masked = found_again(masked, then, now)
        gone = tuple(addresses_again(rows, then, now) for rows in gone)
    return pa.concat_arrays([one_array(masked[ADDRESS]), *(rows.addresses for rows in gone)])


def found_again(rows: pa.Table, then: Table, now: Table) -> pa.Table:
    """Rows of a version (`id`, any others, and their addresses) in a newer one, in which they are unchanged.

    In a fragment that both versions have they are where they were; only rows of other fragments are looked up by id.
    """
    stays = pa.array(_staying(rows[ADDRESS].to_numpy(), then, now))
    gone = one_array(rows["id"].filter(pc.invert(stays)))
    if not len(gone):
        return rows
    columns = [name for name in rows.column_names if name != ADDRESS]
    found = now.lookup("id", gone, columns, with_address=True)
    return pa.concat_tables([rows.filter(stays), found.select(rows.column_names).cast(rows.schema)])


def addresses_again(rows: RowAddresses, then: Table, now: Table) -> RowAddresses:
    """The same for rows known by address alone: the ids of those that moved are read, in portions."""
    addresses = rows.addresses.to_numpy()
    stays = _staying(addresses, then, now)
    if stays.all():
        return rows
    moved, found = addresses[~stays], [addresses[stays]]
    for first in range(0, len(moved), MOVED_AT_ONCE):
        ids = then.take(pa.array(moved[first : first + MOVED_AT_ONCE]), ["id"])["id"]
        there = now.lookup("id", one_array(ids), ["id"], with_address=True)
        found.append(there[ADDRESS].to_numpy())
    return RowAddresses.of(np.concatenate(found))


def _staying(addresses: Any, then: Table, now: Table) -> Any:
    """Which rows are in fragments that both versions have."""
    before = {f.fragment_id: f.files for f in then.fragments()}
    same = {f.fragment_id: f.files for f in now.fragments()}.items() & before.items()
    numbers = np.array([number for number, _ in same], np.uint64)
    return np.isin(addresses >> np.uint64(32), numbers)


def _entry_of(entry: TableEntry, written: Staged) -> TableEntry:
    return _with(entry, version=str(written.ref.version), rows=written.rows)


def _with(entry: TableEntry, **fields: object) -> TableEntry:
    import msgspec

    return msgspec.structs.replace(entry, **fields)
