"""From input rows to final rows: ids derived, rows completed, new and changed ones separated.

One lookup per type, by id. Columns are processed as a whole, and filtered rather than gathered, to avoid needless large
copies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.core.plan import Append, Overwrite, Remove, TableAction, Upsert
from omnigraph.core.txn import TableView, WriteTxn
from omnigraph.errors import OptionInvalid, TableNotFound, Violation
from omnigraph.model.catalog import Catalog, EdgeType, NodeOrEdgeType
from omnigraph.model.changes import (
    NOWHERE,
    UNMARKED,
    Changes,
    Incoming,
    Marks,
    Origin,
    TypeChanges,
    joined,
)
from omnigraph.model.columns import arrow_schema, one_array
from omnigraph.model.frozen import frozen
from omnigraph.model.keys import fresh_ids, key_ids
from omnigraph.storage.tables import ADDRESS
from omnigraph.validate.findings import VIOLATIONS_MAX
from omnigraph.validate.rules import existing_ids, mismatched_ids, missing_keys, repeated_ids
from omnigraph.values.columns import default_of
from omnigraph.write.repeats import (
    AS_IT_IS,
    Repeats,
    chosen,
    keeping_stored,
    marked,
    not_newer,
    ordered,
    removals,
)

Fresh = Callable[[int, datetime], pa.Array]  # makes this many new ids


class Mode(StrEnum):
    """What to do with rows that already exist."""

    MERGE = "merge"  # they are changed, in the fields that are given
    APPEND = "append"  # they are a conflict
    OVERWRITE = "overwrite"  # all rows of the type are deleted first


@frozen
class Resolved:
    """The changes of a write, and violations found in its input: both go to the validator."""

    changes: Changes
    violations: tuple[Violation, ...] = ()
    counts: Mapping[str, RowCounts] = field(default_factory=dict)  # by table


@frozen
class RowCounts:
    """Counts of what happened to the rows of one type."""

    new: int = 0
    changed: int = 0
    deleted: int = 0
    repeated: int = 0  # skipped: another row has the same id
    late: int = 0  # skipped: the stored row is as new, or does not exist for a deletion

    def to_json(self) -> dict[str, int]:
        """The nonzero counts."""
        return {name: count for name in self.__dataclass_fields__ if (count := getattr(self, name))}

    def __add__(self, other: RowCounts) -> RowCounts:
        return RowCounts(*(getattr(self, n) + getattr(other, n) for n in self.__dataclass_fields__))


def resolve(
    txn: WriteTxn,
    incoming: Sequence[Incoming],
    mode: Mode = Mode.MERGE,
    fresh: Fresh = fresh_ids,
    limit: int = VIOLATIONS_MAX + 1,  # one more shows that there are more
    repeats: Repeats = AS_IT_IS,
) -> Resolved:
    """Complete the rows of one input. Unusable rows are left out and reported, up to a limit per rule."""
    grouped: dict[str, tuple[NodeOrEdgeType, list[Incoming]]] = {}
    for part in incoming:
        kind = kind_of(txn.catalog, part)
        grouped.setdefault(kind.table_id, (kind, []))[1].append(part)
    done = [
        _resolve_type(
            txn, _identified(_together(kind, parts), txn, fresh, limit), mode, limit, repeats
        )
        for kind, parts in grouped.values()
    ]
    return Resolved(
        Changes({change.kind.table_id: change for change, _, _ in done}),
        tuple(violation for _, found, _ in done for violation in found),
        {change.kind.table_id: counts for change, _, counts in done},
    )


def kind_of(catalog: Catalog, part: Incoming) -> NodeOrEdgeType:
    """The type rows belong to."""
    kind = catalog.edges.get(part.type_name) if part.edge else catalog.entity(part.type_name)
    if kind is None:
        what = "edge" if part.edge else "node or edge"
        raise TableNotFound(f"there is no {what} type {part.type_name}")
    return kind


def _resolve_type(
    txn: WriteTxn,
    identified: tuple[Given, list[Violation]],
    mode: Mode,
    limit: int,
    repeats: Repeats,
) -> tuple[TypeChanges, list[Violation], RowCounts]:
    given, violations = identified
    kind, rows = given.kind, len(given)
    if mode is not Mode.MERGE and given.marks.deleted is not None:
        raise OptionInvalid(
            f"change records are merged; mode={mode.value!r} does not support deletions"
        )
    given, repeated = _once_each(ordered(given, repeats), mode, limit, repeats)
    violations += repeated
    given = marked(given, repeats)
    counts = RowCounts(repeated=rows - len(given) - len(repeated))
    if mode is Mode.OVERWRITE:
        change = TypeChanges(
            kind, inserts=_whole_new(given), replaces=True, insert_origin=given.origin
        )
        return change, violations, replace(counts, new=len(given))
    stored = _stored(txn.view(kind.table_id), given, mode, repeats) if given.may_exist else None
    if stored is None or not stored.num_rows:
        new = _without_removals(given, repeats)
        counts = replace(counts, new=len(new), late=len(given) - len(new))
        change = TypeChanges(kind, inserts=_whole_new(new), insert_origin=new.origin)
        return change, violations, counts
    at = pc.index_in(given.ids, value_set=one_array(stored["id"]))
    exists = at.is_valid()
    unknown = given.filter(pc.invert(exists))
    new = _without_removals(unknown, repeats)
    counts = replace(counts, new=len(new), late=len(unknown) - len(new))
    inserts = _whole_new(new) if len(new) else None
    change = TypeChanges(kind, inserts=inserts, insert_origin=new.origin)
    if mode is Mode.APPEND:
        violations += existing_ids(given.ids, exists, kind, given.origin, limit)
        return change, violations, counts
    old = given.filter(exists)
    change, more = _meeting(change, old, stored.take(at.drop_null()), repeats)
    return change, violations, counts + more


def _meeting(
    change: TypeChanges, old: Given, stored: pa.Table, repeats: Repeats
) -> tuple[TypeChanges, RowCounts]:
    """Rows matched with stored ones: those are changed, deleted, or kept because they are newer."""
    rows = len(old)
    late = not_newer(old, stored, repeats)
    if late is not None:
        old, stored = old.filter(pc.invert(late)), stored.filter(pc.invert(late))
    counts = RowCounts(late=rows - len(old))
    columns = [*before_columns(change.kind), ADDRESS]
    gone, deletes = removals(old, repeats), None
    if gone is not None:
        deletes = stored.filter(gone).select(columns)
        old, stored = old.filter(pc.invert(gone)), stored.filter(pc.invert(gone))
        counts = replace(counts, deleted=deletes.num_rows)
    changed = replace(
        change,
        updates=_whole_changed(keeping_stored(old, repeats), stored),
        before=stored.select(columns),
        deletes=deletes,
        update_origin=old.origin,
    )
    return changed, replace(counts, changed=len(old))


def _without_removals(given: Given, repeats: Repeats) -> Given:
    """The rows that are not deletions: a missing row cannot be deleted."""
    gone = removals(given, repeats)
    return given if gone is None else given.filter(pc.invert(gone))


def identify(
    txn: WriteTxn,
    kind: NodeOrEdgeType,
    parts: list[Incoming],
    fresh: Fresh = fresh_ids,
    limit: int = VIOLATIONS_MAX + 1,  # one more shows that there are more
) -> tuple[Given, list[Violation]]:
    """The rows of one type with their ids; those that cannot have one are left out and reported."""
    return _identified(_together(kind, parts), txn, fresh, limit)


# --- what was given ----------------------------------------------------------------------------------------------


@frozen
class Given:
    """The rows of one type: the columns that were given, and for each the rows that left it out (None: no rows)."""

    kind: NodeOrEdgeType
    ids: pa.Array
    columns: Mapping[str, pa.ChunkedArray]  # without `id`; edges: `src`, `dst`; then any properties
    absent: Mapping[str, pa.BooleanArray] = field(default_factory=dict)
    origin: Origin = NOWHERE
    may_exist: bool = True  # False if every id is fresh
    marks: Marks = UNMARKED

    def __len__(self) -> int:
        return len(self.ids)

    def table(self) -> pa.Table:
        return pa.table({"id": self.ids, **self.columns})

    def filter(self, mask: pa.BooleanArray) -> Given:
        """The rows where the mask is true."""
        if pc.all(mask, min_count=0).as_py():
            return self
        return replace(
            self,
            ids=self.ids.filter(mask),
            columns={name: c.filter(mask) for name, c in self.columns.items()},
            absent={name: a.filter(mask) for name, a in self.absent.items()},
            origin=self.origin.filter(mask),
            marks=self.marks.filter(mask),
        )

    def take(self, rows: pa.Array) -> Given:
        """Rows by number."""
        return replace(
            self,
            ids=self.ids.take(rows),
            columns={name: c.take(rows) for name, c in self.columns.items()},
            absent={name: a.take(rows) for name, a in self.absent.items()},
            origin=self.origin.take(rows),
            marks=self.marks.take(rows),
        )


def _together(kind: NodeOrEdgeType, parts: list[Incoming]) -> Given:
    """All rows of a type concatenated, in the column types of its table."""
    schema = arrow_schema(kind)
    names = [n for n in schema.names if any(n in part.rows.column_names for part in parts)]
    columns = {
        name: pa.chunked_array(
            [chunk for part in parts for chunk in _chunks(part.rows, schema.field(name))],
            schema.field(name).type,
        )
        for name in names
    }
    count = sum(part.rows.num_rows for part in parts)
    ids = one_array(columns.pop("id")) if "id" in columns else pa.nulls(count, pa.string())
    absent = {name: _absent(name, parts) for name in names if _leaves_out(name, parts)}
    return Given(kind, ids, columns, absent, _origin(parts), marks=_marks(parts))


def _chunks(rows: pa.Table, field: pa.Field) -> list[pa.Array]:
    if field.name not in rows.column_names:
        return [pa.nulls(rows.num_rows, field.type)]
    values = rows[field.name]
    if values.type == field.type:
        return list(values.chunks)
    try:
        return list(values.cast(field.type).chunks)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as refused:
        raise OptionInvalid(
            f"the column {field.name} holds {values.type}, which does not fit {field.type}: {refused}"
        ) from refused


def _leaves_out(name: str, parts: list[Incoming]) -> bool:
    return any(name in part.absent or name not in part.rows.column_names for part in parts)


def _absent(name: str, parts: list[Incoming]) -> pa.BooleanArray:
    masks = []
    for part in parts:
        nowhere = name not in part.rows.column_names
        whole = pa.array(np.full(part.rows.num_rows, nowhere))
        masks.append(whole if nowhere else part.absent.get(name, whole))
    return pa.concat_arrays(masks)


def _marks(parts: list[Incoming]) -> Marks:
    return (
        parts[0].marks
        if len(parts) == 1
        else joined([p.marks for p in parts], [p.rows.num_rows for p in parts])
    )


def _origin(parts: list[Incoming]) -> Origin:
    if len(parts) == 1:
        return parts[0].origin
    lines = [
        pa.nulls(part.rows.num_rows, pa.int64())
        if part.origin.lines is None
        else part.origin.lines.cast(pa.int64())
        for part in parts
    ]
    files = [
        pa.repeat(pa.scalar(part.origin.file, pa.string()), part.rows.num_rows) for part in parts
    ]
    return Origin(None, pa.concat_arrays(lines), pa.concat_arrays(files))


# --- ids ---------------------------------------------------------------------------------------------------------


def _identified(
    given: Given, txn: WriteTxn, fresh: Fresh, limit: int
) -> tuple[Given, list[Violation]]:
    """Every row with its id: from its key, as given, or fresh."""
    kind = given.kind
    if kind.key is None:
        return _named_or_fresh(given, txn, fresh), []
    nothing = pa.chunked_array([pa.nulls(len(given), pa.string())])
    ids = key_ids([given.columns.get(name, nothing) for name in kind.key])
    rows = given.table()
    violations: list[Violation] = []
    if ids.null_count:
        violations += missing_keys(rows, ids, kind, given.origin, limit)
    if given.ids.null_count < len(given):
        violations += mismatched_ids(rows, ids, kind, given.origin, limit)
    return replace(given, ids=ids).filter(ids.is_valid()), violations


def _named_or_fresh(given: Given, txn: WriteTxn, fresh: Fresh) -> Given:
    missing = given.ids.null_count
    if not missing:
        return given
    made = fresh(missing, txn.now)
    if missing == len(given):
        return replace(given, ids=made, may_exist=False)
    return replace(given, ids=pc.replace_with_mask(given.ids, given.ids.is_null(), made))


def _once_each(
    given: Given, mode: Mode, limit: int, rules: Repeats
) -> tuple[Given, list[Violation]]:
    """Each id once. A key may not repeat, nor any id of an append or overwrite; in a merge later rows win.

    With `repeats`, a load keeps one of them, and so do change records, by their order.
    """
    if not given.may_exist or pc.count_distinct(given.ids).as_py() == len(given):
        return given, []
    codes = given.ids.dictionary_encode().indices.to_numpy(zero_copy_only=False)
    if rules.chooses or given.marks.are_given:
        return chosen(given, codes, rules), []
    firsts = np.unique(codes, return_index=True)[1]
    if rules.keep == "refuse" or given.kind.key is not None or mode is not Mode.MERGE:
        repeats = np.ones(len(codes), np.bool_)
        repeats[firsts] = False
        again = pa.array(repeats)
        found = repeated_ids(given.ids, again, given.kind, given.origin, limit)
        return given.filter(pc.invert(again)), list(found)
    return _later_wins(given, codes), []


def _later_wins(given: Given, codes: np.ndarray[Any, np.dtype[np.int32]]) -> Given:
    groups = int(codes.max()) + 1
    last = _last_rows(codes, groups, None)
    columns, absent = {}, {}
    for name, values in given.columns.items():
        left_out = given.absent.get(name)
        at = last if left_out is None else _last_rows(codes, groups, left_out)
        columns[name] = values.take(pa.array(np.maximum(at, 0)))
        if left_out is not None:
            absent[name] = pa.array(at < 0)
    rows = pa.array(last)
    return replace(
        given,
        ids=given.ids.take(rows),
        columns=columns,
        absent=absent,
        origin=given.origin.take(rows),
        marks=given.marks.take(rows),
    )


def _last_rows(
    codes: np.ndarray[Any, np.dtype[np.int32]], groups: int, absent: pa.BooleanArray | None
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The last row of each group that did not leave the field out; -1 if all did."""
    rows = np.arange(len(codes))
    if absent is not None:
        rows = np.where(absent.to_numpy(zero_copy_only=False), -1, rows)
    last = np.full(groups, -1, np.int64)
    np.maximum.at(last, codes, rows)
    return last


# --- whole rows --------------------------------------------------------------------------------------------------


def before_columns(kind: NodeOrEdgeType) -> list[str]:
    """The columns kept of changed or deleted rows: identity, ends, and the members of unique groups."""
    structural = ["id", "src", "dst"] if isinstance(kind, EdgeType) else ["id"]
    return list(dict.fromkeys([*structural, *(name for group in kind.uniques for name in group)]))


def _stored(view: TableView, given: Given, mode: Mode, repeats: Repeats) -> pa.Table | None:
    """The stored rows with one of the ids: what `before` needs, and the columns some row left out."""
    if not view.count():
        return None
    kept = [name for name in given.kind.properties if name in given.absent]
    kept += [name for name in given.kind.properties if name not in given.columns]
    kept += [name for name in (repeats.version_of(given.kind),) if name is not None]
    if repeats.tombstone_of(given.kind) is not None:
        kept += given.kind.properties
    columns = ["id"] if mode is Mode.APPEND else [*before_columns(given.kind), *kept]
    return view.lookup("id", given.ids, list(dict.fromkeys(columns)))


def _whole_new(given: Given) -> pa.Table:
    """New rows: omitted fields take their defaults."""
    schema = arrow_schema(given.kind)
    columns = [given.ids]
    for name in schema.names[1:]:
        prop = given.kind.properties.get(name)
        fill = default_of(prop) if prop else pa.scalar(None, pa.string())
        columns.append(_completed(given, name, fill))
    return pa.table(columns, schema=schema)


def _whole_changed(given: Given, stored: pa.Table) -> pa.Table:
    """Changed rows: omitted fields keep their stored values. Both sides have the same rows in the same order."""
    schema = arrow_schema(given.kind)
    columns = [given.ids]
    for name in schema.names[1:]:
        old = stored[name] if name in stored.column_names else None
        columns.append(_completed(given, name, old))
    return pa.table(columns, schema=schema)


def _completed(given: Given, name: str, fill: pa.Scalar | pa.ChunkedArray | None) -> Any:
    values, absent = given.columns.get(name), given.absent.get(name)
    if values is None:
        return pa.repeat(fill, len(given)) if isinstance(fill, pa.Scalar) else fill
    return values if absent is None or fill is None else pc.if_else(absent, fill, values)


# --- actions -----------------------------------------------------------------------------------------------------


def actions_of(changes: Changes) -> tuple[TableAction, ...]:
    """The table actions for the changes."""
    return tuple(action for change in changes for action in _actions(change))


def _actions(change: TypeChanges) -> Iterator[TableAction]:
    table = change.kind.table_id
    if change.replaces:
        rows = change.inserts
        yield Overwrite(table, arrow_schema(change.kind).empty_table() if rows is None else rows)
        return
    if change.deletes is not None and change.deletes.num_rows:
        yield Remove(table, change.deletes)
    if change.updates is not None and change.updates.num_rows and change.before is not None:
        yield Upsert(table, change.updates, change.before)
    if change.inserts is not None and change.inserts.num_rows:
        yield Append(table, change.inserts)
