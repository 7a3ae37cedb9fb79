"""The merged image, judged by the one evaluator; decisions are applied until it is valid or a conflict is undecided.

Both sides are valid, so only their combination can break a rule. A conflict concerns a few rows; taking a side means
that each of them becomes what it is on that side, whichever table it is in. That may break another rule, so it is
judged again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.core.plan import Reads, Register
from omnigraph.core.txn import WriteTxn
from omnigraph.errors import Violation
from omnigraph.merge.conflicts import (
    CARDINALITY,
    ORPHAN_EDGE,
    OURS,
    THEIRS,
    UNIQUE,
    VALUE,
    Conflict,
    Decisions,
)
from omnigraph.merge.rows import equal_rows, positions, without
from omnigraph.merge.schema_view import kinds_of
from omnigraph.merge.three_way import MergedTable, Sides, lookup, merge_table, stacked
from omnigraph.model.catalog import Catalog, EdgeType, NodeOrEdgeType
from omnigraph.model.changes import Changes, TypeChanges
from omnigraph.model.columns import arrow_schema
from omnigraph.model.frozen import frozen
from omnigraph.model.tokens import id_tokens
from omnigraph.storage import metrics
from omnigraph.validate import Report, evaluate

CONFLICTS_MAX = 1_000
ENDPOINTS = ("endpoint", "orphan_edge")  # no schema changes them: the merged image is judged alone
ROUNDS_MAX = 64

RowKey = tuple[str, str]  # table and id
Overrides = dict[str, dict[str, str]]  # by table and id: the side to take
Broken = tuple[Conflict, list[RowKey]]  # a broken rule, and the rows that break it together


@frozen
class Settled:
    """The changes of ours, table by table; or the conflicts to decide first."""

    tables: Mapping[str, MergedTable]
    changes: Changes
    conflicts: tuple[Conflict, ...] = ()
    reads: Mapping[str, Reads] = field(default_factory=dict)
    overridden: frozenset[str] = frozenset()  # tables in which a conflict of the image was decided


def settle(sides: Sides, txn: WriteTxn, decided: Decisions, before: Catalog) -> Settled:
    """Merge all rows and judge the result. `before` is the schema ours had."""
    txn = _transaction(sides, txn)
    tables = _merge_tables(sides, decided)
    overrides: Overrides = {}
    broken = _against_their_rules(sides, txn, before, decided)
    for _ in range(ROUNDS_MAX):
        changes = Changes(
            {t: _overridden(sides, m.change, overrides.get(t)) for t, m in tables.items()}
        )
        report = evaluate(changes, txn, limit=CONFLICTS_MAX)
        found = [*_conflicts(sides, report), *(b for b in broken if not _is_mended(b, overrides))]
        if not _decide(sides, tables, overrides, found, decided):
            break
    conflicts = [c for table in tables.values() for c in table.conflicts]
    conflicts += [conflict for conflict, _ in found]
    return Settled(tables, changes, tuple(conflicts), _reads(tables, report), frozenset(overrides))


def _transaction(sides: Sides, txn: WriteTxn) -> WriteTxn:
    """Ours under the merged schema; types ours does not have yet are empty."""
    new = {
        kind.table_id: Register(kind.table_id, kind.kind, kind.name, arrow_schema(kind))
        for kind in sides.catalog.entities()
        if kind.table_id not in sides.ours.commit.tables
    }
    return replace(txn, snapshot=sides.ours, catalog=sides.catalog, registered=new)


def _merge_tables(sides: Sides, decided: Decisions) -> dict[str, MergedTable]:
    touched = [k for k in sides.catalog.entities() if sides.done.differs(k.table_id)]
    merged = metrics.parallel([partial(merge_table, sides, kind, decided) for kind in touched])
    return {kind.table_id: table for kind, table in zip(touched, merged, strict=True)}


def _reads(tables: Mapping[str, MergedTable], report: Report) -> dict[str, Reads]:
    """The facts the outcome depends on: the rows theirs changed, in ours, and what the checks read."""
    found = dict(report.reads)
    for table, merged in tables.items():
        if not merged.delta.is_empty:
            own = Reads(id_tokens(merged.delta.ids))
            found[table] = found.get(table, Reads()) | own
    return found


# --- rules only theirs has ---------------------------------------------------------------------------------------


def _against_their_rules(
    sides: Sides, txn: WriteTxn, before: Catalog, decided: Decisions
) -> list[Broken]:
    """Check what ours wrote since the base, and rows decided to stay, against rules that theirs changed."""
    old = kinds_of(before)
    changed = {k.table_id for k in sides.catalog.entities() if old.get(k.table_id) != k}
    if not changed & set(sides.ours.commit.tables):
        return []
    other = sides.swapped()
    merged = {t: table.change for t, table in _merge_tables(other, decided.swapped()).items()}
    report = evaluate(Changes(merged), _transaction(other, txn), limit=CONFLICTS_MAX)
    return [
        (_conflict(sides, violation), list(_rows_of(sides, violation)))
        for violation in report.violations
        if violation.rule not in ENDPOINTS and _kind(sides, violation).table_id in changed
    ]


def _is_mended(broken: Broken, overrides: Overrides) -> bool:
    """Whether every row that breaks a rule of theirs becomes what theirs has."""
    return all(overrides.get(table, {}).get(id) == THEIRS for table, id in broken[1])


# --- violations as conflicts -------------------------------------------------------------------------------------


def _conflicts(sides: Sides, report: Report) -> Iterator[Broken]:
    """Each broken rule, and the rows that break it together."""
    for violation in report.violations:
        yield _conflict(sides, violation), list(_rows_of(sides, violation))


def _kind(sides: Sides, violation: Violation) -> NodeOrEdgeType:
    """The type of a violation: a node and an edge type may share a name."""
    edges = (*ENDPOINTS, "cardinality")
    catalog = sides.catalog
    kind = catalog.edges.get(violation.type_name) if violation.rule in edges else None
    found = kind or catalog.entity(violation.type_name)
    assert found is not None  # noqa: S101 - the evaluator speaks of types there are
    return found


def _conflict(sides: Sides, violation: Violation) -> Conflict:
    kind = _kind(sides, violation)
    name, values = _values(sides, kind, violation)
    entity = violation.value if violation.rule == "cardinality" else violation.id
    return Conflict(name, kind.name, entity, violation.property, *values, violation.message)


def _values(
    sides: Sides, kind: NodeOrEdgeType, violation: Violation
) -> tuple[str, tuple[Any, Any, Any]]:
    """The kind of conflict, and the values of the sides: rows, or for a cardinality edge counts."""
    if violation.rule == "cardinality":
        ours, theirs = (len(_leaving(sides, kind, violation.value, s)) for s in (OURS, THEIRS))
        return CARDINALITY, (None, ours, theirs)
    base, ours, theirs = _images(sides, kind, violation.id)
    match violation.rule:
        case "endpoint" | "orphan_edge":
            return ORPHAN_EDGE, (base, ours, theirs)
        case "unique":
            holder = _images(sides, kind, violation.extra["other_id"])[1]
            return UNIQUE, (base, holder if holder is not None else ours, theirs)
        case _:
            return VALUE, (base, ours, theirs)


def _images(sides: Sides, kind: NodeOrEdgeType, id: str | None) -> tuple[Any, Any, Any]:
    """A row at the base, in ours and in theirs."""
    wanted = pa.array([id], pa.string())
    names = arrow_schema(kind).names
    rows = [
        lookup(state, kind, wanted).select(names).to_pylist()
        for state in (sides.base, sides.ours, sides.theirs)
    ]
    base, ours, theirs = (found[0] if found else None for found in rows)
    return base, ours, theirs


def _leaving(sides: Sides, kind: NodeOrEdgeType, source: str, side: str) -> list[str]:
    state = sides.ours if side == OURS else sides.theirs
    if kind.table_id not in state.commit.tables:
        return []
    found = state.table(kind.table_id).lookup("src", pa.array([source]), ["id"])
    return [str(i) for i in found["id"].to_pylist()]


def _rows_of(sides: Sides, violation: Violation) -> Iterator[RowKey]:
    kind = _kind(sides, violation)
    if violation.rule == "cardinality":
        for side in (OURS, THEIRS):
            for edge in _leaving(sides, kind, violation.value, side):
                yield kind.table_id, edge
        return
    if violation.id is not None:
        yield kind.table_id, violation.id
    if violation.rule in ENDPOINTS and isinstance(kind, EdgeType):
        node = kind.from_type if violation.property == "src" else kind.to_type
        yield sides.catalog.nodes[node].table_id, violation.value
    if violation.rule == "unique":
        yield kind.table_id, violation.extra["other_id"]


# --- decisions ---------------------------------------------------------------------------------------------------


def _decide(
    sides: Sides,
    tables: dict[str, MergedTable],
    overrides: Overrides,
    found: list[Broken],
    decided: Decisions,
) -> bool:
    """Apply the decisions about these conflicts; false once nothing changes any more."""
    moved = False
    for conflict, rows in found:
        side = decided.side(conflict.type, conflict.id, conflict.field)
        if side is None:
            continue
        for table, id in rows:
            if id not in overrides.setdefault(table, {}):
                overrides[table][id] = side
                moved = True
            if table not in tables:
                kind = kinds_of(sides.catalog)[table]
                tables[table] = merge_table(sides, kind, decided)
    return moved


def _overridden(sides: Sides, change: TypeChanges, chosen: Mapping[str, str] | None) -> TypeChanges:
    """The change with some rows as one side has them."""
    if not chosen:
        return change
    ids = pa.array(list(chosen), pa.string())
    theirs = pa.array([i for i, side in chosen.items() if side == THEIRS], pa.string())
    after = lookup(sides.theirs, change.kind, theirs)
    stored = lookup(sides.ours, change.kind, theirs)
    names = arrow_schema(change.kind).names
    at = positions(after["id"], stored["id"])
    both = after.filter(at.is_valid())
    old = stored.take(at.drop_null())
    differs = pc.invert(pa.array(equal_rows(both, old, names)))
    return replace(
        change,
        inserts=stacked(_less(change.inserts, ids), without(after, stored["id"]).select(names)),
        updates=stacked(_less(change.updates, ids), both.filter(differs).select(names)),
        before=stacked(_less(change.before, ids), old.filter(differs)),
        deletes=stacked(_less(change.deletes, ids), without(stored, after["id"])),
    )


def _less(rows: pa.Table | None, ids: pa.Array) -> pa.Table | None:
    return None if rows is None else without(rows, ids)
