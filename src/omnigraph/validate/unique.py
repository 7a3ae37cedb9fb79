"""Uniqueness of the final image: among the new and changed rows, and against the stored rows that stay as they are.

A value that one row gives up may be taken by another in the same write. A tuple with a null is exempt.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.core.plan import Reads
from omnigraph.core.txn import TableView
from omnigraph.errors import Violation
from omnigraph.model.catalog import EntityType
from omnigraph.model.changes import TypeChanges
from omnigraph.model.keys import value_texts
from omnigraph.model.predicates import And, In
from omnigraph.model.tokens import unique_tokens
from omnigraph.validate.findings import (
    VIOLATIONS_MAX,
    Case,
    Finding,
    Looked,
    column,
    joined,
    plain,
    shown,
)
from omnigraph.validate.keys import key_name

PROBE_VALUES_MAX = 1_000  # up to so many, several columns are asked for at once
PROBED_FIRST = ("src", "dst")  # always indexed


def check_unique(case: Case) -> Iterator[Finding]:
    """No two rows of the final image share the values of a unique group."""
    for change in case.changes:
        for group in change.kind.uniques:
            rows = _with_values(
                joined(change.inserts, change.updates, columns=("id", *group)), group
            )
            if rows is None:
                continue
            yield from shared_values(rows, change.kind, group, case.limit)
            if not change.replaces:
                values = unique_tokens(group, [rows[name] for name in group])
                yield Looked(change.kind.table_id, Reads(values))
                taken = _taken(case.txn.view(change.kind.table_id), change, rows, group)
                yield from held_twice(taken, change.kind, group, case.limit)


def shared_values(
    rows: pa.Table, kind: EntityType, group: tuple[str, ...], limit: int = VIOLATIONS_MAX
) -> Iterator[Violation]:
    """The rows among these that share a group's values with another of them. Needs `id` and the members."""
    complete = _with_values(rows, group)
    if complete is None:
        return
    hashes = unique_tokens(group, [complete[name] for name in group])
    order = np.sort(hashes)
    repeated = np.unique(order[1:][order[1:] == order[:-1]])
    if not len(repeated):
        return
    suspects = complete.filter(pa.array(np.isin(hashes, repeated)))
    texts = value_texts([suspects[name] for name in group])
    yield from held_twice(_pairs(suspects.append_column("text", texts)), kind, group, limit)


def _pairs(rows: pa.Table) -> pa.Table:
    """Each value held by several ids, with the two smallest of them."""
    ordered = rows.sort_by([("text", "ascending"), ("id", "ascending")])
    text, ids = column(ordered, "text"), column(ordered, "id")
    same = pc.equal(text[1:], text[:-1]).to_numpy(zero_copy_only=False)
    first = same & ~np.concatenate([[False], same[:-1]])  # one pair for each value
    at = np.flatnonzero(first)
    mine, other = pa.array(at + 1), pa.array(at)
    return ordered.take(mine).append_column("holder", ids.take(other))


def _taken(
    view: TableView, change: TypeChanges, rows: pa.Table, group: tuple[str, ...]
) -> pa.Table:
    """The rows whose values a stored row holds that this write leaves alone."""
    rows = _changed(rows, change, group)
    nothing = rows.slice(0, 0).append_column("holder", pa.array([], pa.string()))
    if not rows.num_rows or not view.count():
        return nothing
    found = _probe(view, rows, group)
    own = [part for part in (change.updates, change.deletes) if part is not None and part.num_rows]
    for part in own:
        found = found.filter(pc.invert(pc.is_in(found["id"], value_set=column(part, "id"))))
    if not found.num_rows:
        return nothing
    held = value_texts([found[name] for name in group])
    at = pc.index_in(value_texts([rows[name] for name in group]), value_set=held)
    hit = at.is_valid()
    return rows.filter(hit).append_column("holder", column(found, "id").take(at.drop_null()))


def _changed(rows: pa.Table, change: TypeChanges, group: Sequence[str]) -> pa.Table:
    """Without the rows that held the same values before."""
    if change.before is None or not change.before.num_rows:
        return rows
    texts = value_texts([rows["id"], *(rows[name] for name in group)])
    before = value_texts([change.before["id"], *(change.before[name] for name in group)])
    return rows.filter(pc.invert(pc.is_in(texts, value_set=before)))


def _probe(view: TableView, rows: pa.Table, group: tuple[str, ...]) -> pa.Table:
    first = next((name for name in PROBED_FIRST if name in group), group[0])
    if len(group) == 1 or rows.num_rows > PROBE_VALUES_MAX:
        return view.lookup(first, pc.unique(column(rows, first)), list(group))
    wanted = And(tuple(In(n, tuple(pc.unique(column(rows, n)).to_pylist())) for n in group))
    return view.scan(list(group), wanted)


def _with_values(rows: pa.Table | None, group: tuple[str, ...]) -> pa.Table | None:
    """The rows without a null in the group."""
    complete = None if rows is None else rows.select(["id", *group]).drop_null()
    return complete if complete is not None and complete.num_rows else None


def held_twice(
    rows: pa.Table, kind: EntityType, group: tuple[str, ...], limit: int
) -> Iterator[Violation]:
    """The first rows by id, each with the id of the row that has its values too, as `holder`."""
    for row in rows.sort_by("id").slice(0, limit).to_pylist():
        values = [row[name] for name in group]
        value = values[0] if len(group) == 1 else values
        held = f"held by {shown(row['id'])} and {shown(row['holder'])}"
        yield Violation(
            rule="unique",
            type_name=kind.name,
            id=row["id"],
            property=group[0] if len(group) == 1 else None,
            value=plain(value),
            message=f"{kind.name}.{key_name(group)} is @unique, but {shown(value)} would be {held}",
            extra={"other_id": row["holder"], "properties": list(group)},
        )
