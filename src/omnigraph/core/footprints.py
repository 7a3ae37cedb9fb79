"""What a plan does to each table, as other writers need it: counts, ids and footprints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.core.plan import (
    Adopt,
    Append,
    Overwrite,
    PublishPlan,
    Remove,
    TableAction,
    Upsert,
)
from omnigraph.core.records import TableChange
from omnigraph.model.catalog import Catalog, EdgeType, EntityType
from omnigraph.model.frozen import frozen
from omnigraph.model.limits import Limits
from omnigraph.model.tokens import (
    NO_TOKENS,
    TOKENS_MAX,
    Footprint,
    Tokens,
    endpoint_tokens,
    id_tokens,
    union,
    unique_tokens,
)
from omnigraph.storage.tables import NewFragments, RowAddresses

NO_IDS = pa.array([], pa.string())


@frozen
class Touch:
    """What a plan does to one table.

    `own` are the facts that must not have changed meanwhile (ids it writes, unique values it takes); `shown` is `own`
    plus what only other writers check (the endpoints of edges).
    """

    inserted: pa.Array = field(default_factory=lambda: NO_IDS)
    updated: pa.Array = field(default_factory=lambda: NO_IDS)
    deleted: pa.Array = field(default_factory=lambda: NO_IDS)
    inserted_rows: int = 0
    updated_rows: int = 0  # besides those whose ids are known, likewise of deleted ones
    deleted_rows: int = 0
    own_parts: tuple[Callable[[], Tokens], ...] = ()
    shown: Tokens | None = field(default_factory=lambda: NO_TOKENS)  # None: too many to list
    everything: bool = False

    @property
    def own(self) -> Tokens:
        """Computed on demand: only a writer that lost a race needs it, and a large load has millions."""
        return union(part() for part in self.own_parts)

    def change(self, limits: Limits) -> TableChange:
        """The summary that is stored in the commit."""
        exact = None if self.everything else self.shown
        footprint = Footprint(everything=True) if exact is None else Footprint.of(exact)
        return TableChange(
            inserted=max(self.inserted_rows, len(self.inserted)),
            updated=self.updated_rows + len(self.updated),
            deleted=self.deleted_rows + len(self.deleted),
            all=self.everything,
            touched=footprint.to_text(),
            inserted_ids=_listed(self.inserted, self, limits),
            updated_ids=_listed(self.updated, self, limits),
            deleted_ids=_listed(self.deleted, self, limits),
        )


def _listed(ids: pa.Array, touch: Touch, limits: Limits) -> tuple[str, ...] | None:
    if touch.everything or touch.inserted_rows > len(touch.inserted):
        return None
    return tuple(ids.to_pylist()) if len(ids) <= limits.changed_ids_max else None


def touches(plan: PublishPlan, catalog: Catalog) -> dict[str, Touch]:
    """What the plan does to each table whose rows it writes. Maintenance touches nothing."""
    types = {kind.table_id: kind for kind in catalog.entities()}
    grouped: dict[str, list[TableAction]] = {}
    for action in plan.actions:
        grouped.setdefault(action.table_id, []).extend(on_newer(action))
    found = {table: _touch(actions, types.get(table)) for table, actions in grouped.items()}
    return {table: touch for table, touch in found.items() if touch is not None}


def on_newer(action: TableAction) -> tuple[TableAction, ...]:
    """What an action means for a version newer than the one it was made for."""
    return action.instead if isinstance(action, Adopt) and action.instead else (action,)


def changes(
    plan: PublishPlan, touched: Mapping[str, Touch], limits: Limits
) -> dict[str, TableChange]:
    """The change summaries of a plan, as its commit stores them."""
    adopted = {a.table_id: a.change for a in plan.actions if isinstance(a, Adopt)}
    return {table: touch.change(limits) for table, touch in touched.items()} | adopted


def _touch(actions: Iterable[TableAction], kind: EntityType | None) -> Touch | None:
    inserted: list[pa.Array] = []
    updated: list[pa.Array] = []
    deleted: list[pa.Array] = []
    own: list[Callable[[], Tokens]] = []
    ends: list[pa.Table] = []
    everything = known = False
    hidden_rows = replaced_rows = removed_rows = 0
    for action in actions:
        match action:
            case Append(_, NewFragments() as written) | Overwrite(_, NewFragments() as written):
                everything, hidden_rows = True, hidden_rows + written.rows
            case Append(_, rows):
                inserted.append(_ids(rows))
                own.append(partial(_own, rows, kind))
                ends.append(rows)
            case Overwrite(_, pa.Table() as table):
                everything, hidden_rows = True, hidden_rows + int(table.num_rows)
            case Upsert(_, NewFragments() as written, RowAddresses() as replaced):
                everything = True
                hidden_rows += written.rows - len(replaced)
                replaced_rows += len(replaced)
            case Upsert(_, rows, before):
                old = _ids(before)
                new = _ids(rows)
                updated.append(old)
                inserted.append(new.filter(pc.invert(pc.is_in(new, value_set=old))))
                own.append(partial(_own, rows, kind))
                ends += [rows, before]
            case Remove(_, RowAddresses() as removed):
                everything, removed_rows = True, removed_rows + len(removed)
            case Remove(_, pa.Table() as before):
                deleted.append(_ids(before))
                own.append(partial(id_tokens, before["id"]))
                ends.append(before)
            case Adopt():
                everything = True
            case _:
                continue
        known = True
    if not known:
        return None
    return Touch(
        inserted=_joined(inserted),
        updated=_joined(updated),
        deleted=_joined(deleted),
        inserted_rows=hidden_rows,
        updated_rows=replaced_rows,
        deleted_rows=removed_rows,
        own_parts=tuple(own),
        shown=_shown(own, ends, kind),
        everything=everything,
    )


def _shown(
    own: list[Callable[[], Tokens]], ends: list[pa.Table], kind: EntityType | None
) -> Tokens | None:
    """The facts for other writers; None if a footprint could not hold them anyway."""
    if sum(rows.num_rows for rows in ends) > TOKENS_MAX:
        return None
    return union([*(part() for part in own), *(t for rows in ends for t in _ends(rows, kind))])


def _ids(rows: pa.Table) -> pa.Array:
    return _joined(rows["id"].chunks)


def _joined(parts: list[pa.Array]) -> pa.Array:
    filled = [_as_strings(part) for part in parts if len(part)]
    if len(filled) == 1:
        return filled[0]
    return pa.concat_arrays(filled) if filled else NO_IDS


def _as_strings(ids: pa.Array) -> pa.Array:
    return ids if ids.type == NO_IDS.type else ids.cast(NO_IDS.type)


def _own(rows: pa.Table, kind: EntityType | None) -> Tokens:
    groups = kind.uniques if kind is not None else ()
    present = [group for group in groups if set(group) <= set(rows.column_names)]
    values = [unique_tokens(group, [rows[name] for name in group]) for group in present]
    return union([id_tokens(rows["id"]), *values])


def _ends(rows: pa.Table, kind: EntityType | None) -> list[Tokens]:
    if not isinstance(kind, EdgeType):
        return []
    return [
        endpoint_tokens(side, rows[side]) for side in ("src", "dst") if side in rows.column_names
    ]
