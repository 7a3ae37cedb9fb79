"""The rules, checked by lookups: the cost of a check follows the change, not the table.

A whole table is read only if it is replaced. Each check first declares what its verdict will depend on (`Looked`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.core.footprints import NO_IDS
from omnigraph.core.plan import Reads
from omnigraph.core.txn import TableView
from omnigraph.errors import Violation
from omnigraph.expressions.filters import any_of
from omnigraph.lang.ir import And
from omnigraph.model.catalog import EdgeType, NodeType
from omnigraph.model.changes import Origin, TypeChanges
from omnigraph.model.keys import key_ids, value_texts
from omnigraph.model.tokens import endpoint_tokens, id_tokens, unique_tokens
from omnigraph.storage import metrics
from omnigraph.validate.findings import (
    VIOLATIONS_MAX,
    Case,
    Check,
    Finding,
    Looked,
    column,
    joined,
    offenders,
    shown,
)
from omnigraph.validate.rules import (
    EdgesPerSource,
    Endpoint,
    Rule,
    Unique,
    key_name,
    key_value,
    row_violations,
    rules_between,
)

CORES = os.cpu_count() or 1
ONE_THREAD_ROWS_MAX = 50_000  # a thread costs more than it saves below
PROBE_VALUES_MAX = 1_000  # up to this many, several columns are queried together
PROBED_FIRST = ("src", "dst")  # always indexed
R = TypeVar("R", bound=Rule)


def check_values(case: Case) -> Iterator[Finding]:
    """Every new or changed row obeys the rules of its type about single rows."""
    for change in case.changes:
        for rows, origin in (
            (change.inserts, change.insert_origin),
            (change.updates, change.update_origin),
        ):
            if rows is not None and rows.num_rows:
                yield from row_violations(rows, change.kind, origin, case.limit)


def check_keys(case: Case) -> Iterator[Finding]:
    """The id of every changed row is the one its key gives."""
    for change in case.changes:
        key, rows = change.kind.key, change.updates
        if key is None or rows is None or not rows.num_rows:
            continue
        derived = key_ids([rows[name] for name in key])
        moved = pc.fill_null(pc.not_equal(derived, column(rows, "id")), True)
        for row, file, line in offenders(rows, moved, key, change.update_origin, case.limit):
            yield Violation(
                rule="key",
                type_name=change.kind.name,
                id=row["id"],
                property=key[0] if len(key) == 1 else None,
                value=key_value(row, key),
                message=f"the key {key_name(key)} of {change.kind.name} {shown(row['id'])} cannot change: "
                "delete the entity and insert it again",
                file=file,
                line=line,
            )


def _rules(case: Case, sort: type[R]) -> Iterator[tuple[TypeChanges, R]]:
    """The rules of one sort for the types that change."""
    for change in case.changes:
        for rule in rules_between(change.kind, case.catalog):
            if isinstance(rule, sort):
                yield change, rule


def _untouched(stored: pa.Table, change: TypeChanges) -> pa.Table:
    """The stored rows that the write does not touch."""
    for rows in (change.updates, change.deletes):
        if rows is not None and rows.num_rows:
            own = pc.is_in(stored["id"], value_set=column(rows, "id"))
            stored = stored.filter(pc.invert(own))
    return stored


# --- unique groups -----------------------------------------------------------------------------------------------


def check_unique(case: Case) -> Iterator[Finding]:
    """No two rows of the final image share the values of a unique group.

    A value that one row gives up may be taken by another in the same write.
    """
    for change, rule in _rules(case, Unique):
        group = rule.columns
        rows = _with_values(joined(change.inserts, change.updates, columns=("id", *group)), group)
        if rows is None:
            continue
        yield from shared_values(rows, rule, case.limit)
        if not change.replaces:
            values = unique_tokens(group, [rows[name] for name in group])
            yield Looked(change.kind.table_id, Reads(values))
            taken = _taken(case.txn.view(change.kind.table_id), change, rows, group)
            yield from rule.duplicates(taken, case.limit)


def shared_values(rows: pa.Table, rule: Unique, limit: int = VIOLATIONS_MAX) -> Iterator[Violation]:
    """The rows among these that share a group's values with another of them. Needs `id` and the members."""
    complete = _with_values(rows, rule.columns)
    if complete is None:
        return
    hashes = unique_tokens(rule.columns, [complete[name] for name in rule.columns])
    order = np.sort(hashes)
    repeated = np.unique(order[1:][order[1:] == order[:-1]])
    if not len(repeated):
        return
    suspects = complete.filter(pa.array(np.isin(hashes, repeated)))
    texts = value_texts([suspects[name] for name in rule.columns])
    yield from rule.duplicates(_pairs(suspects.append_column("text", texts)), limit)


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
    """The rows whose values are held by a stored row that this write does not touch."""
    rows = _changed(rows, change, group)
    nothing = rows.slice(0, 0).append_column("holder", NO_IDS)
    if not rows.num_rows or not view.count():
        return nothing
    found = _untouched(_probe(view, rows, group), change)
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
    wanted = And(tuple(any_of(name, pc.unique(column(rows, name))) for name in group))
    return view.scan(list(group), wanted)


def _with_values(rows: pa.Table | None, group: tuple[str, ...]) -> pa.Table | None:
    """The rows without a null in the group."""
    complete = None if rows is None else rows.select(["id", *group]).drop_null()
    return complete if complete is not None and complete.num_rows else None


# --- edges and their nodes ---------------------------------------------------------------------------------------


def check_endpoints(case: Case) -> Iterator[Finding]:
    """Both ends of every new edge, and every end that moved, are nodes of the final image."""
    wanted = _named_ends(case)
    names = sorted(wanted)
    nodes = [case.changes.of(case.catalog.nodes[name]) for name in names]
    unknown = [
        _not_given(change, pc.unique(pa.concat_arrays(wanted[change.kind.name])))
        for change in nodes
    ]
    for change, ids in zip(nodes, unknown, strict=True):
        if len(ids) and not change.replaces:
            yield Looked(change.kind.table_id, Reads(id_tokens(ids)))
    absent = metrics.parallel(
        [_absent(case, change, ids) for change, ids in zip(nodes, unknown, strict=True)]
    )
    missing = dict(zip(names, absent, strict=True))
    for change, rule in _rules(case, Endpoint):
        yield from _dangling(change, rule, missing, case.limit)


def _named_ends(case: Case) -> dict[str, list[pa.Array]]:
    """For each node type the ids that new and moved ends name, each once from every side."""
    ends = [
        (rule.node.name, rows[rule.side])
        for change, rule in _rules(case, Endpoint)
        for rows, _ in _parts(change, rule.side)
    ]
    many = sum(len(named) for _, named in ends) > ONE_THREAD_ROWS_MAX
    each_once = metrics.parallel(
        [partial(pc.unique, named) for _, named in ends], CORES if many else 1
    )
    wanted: dict[str, list[pa.Array]] = {}
    for (name, _), ids in zip(ends, each_once, strict=True):
        wanted.setdefault(name, []).append(ids.drop_null())
    return wanted


def _absent(case: Case, change: TypeChanges, ids: pa.Array) -> Callable[[], pa.Array]:
    """Looks up which of the ids will be missing, given that the write itself does not add them."""
    if not len(ids) or change.replaces:
        return lambda: ids
    view, deleted = case.txn.view(change.kind.table_id), _ids(change.deletes)
    return lambda: _without(ids, _without(view.existing(ids), deleted))


def _ids(rows: pa.Table | None) -> pa.Array:
    return NO_IDS if rows is None else column(rows, "id")


def _parts(change: TypeChanges, side: str) -> Iterator[tuple[pa.Table, Origin]]:
    """New edges, and changed ones whose end at this side has changed."""
    if change.inserts is not None and change.inserts.num_rows:
        yield change.inserts, change.insert_origin
    if change.updates is not None and change.before is not None and change.updates.num_rows:
        moved = _moved(change.updates, change.before, side)
        if pc.any(moved).as_py():
            yield change.updates.filter(moved), change.update_origin.filter(moved)


def _moved(updates: pa.Table, before: pa.Table, side: str) -> pa.BooleanArray:
    """Which changed edges had another node at this side before. The tables may be in different orders."""
    at = pc.index_in(column(updates, "id"), value_set=column(before, "id"))
    return pc.not_equal(column(before, side).take(at), column(updates, side)).fill_null(True)


def _not_given(change: TypeChanges, ids: pa.Array) -> pa.Array:
    """Without the nodes this write itself adds."""
    for rows in (change.inserts, change.updates):
        if rows is not None and rows.num_rows and len(ids):
            ids = _without(ids, column(rows, "id"))
    return ids


def _without(ids: pa.Array, others: pa.Array) -> pa.Array:
    return ids.filter(pc.invert(pc.is_in(ids, value_set=others)))


def _dangling(
    change: TypeChanges, rule: Endpoint, missing: Mapping[str, pa.Array], limit: int
) -> Iterator[Violation]:
    nowhere = missing.get(rule.node.name, NO_IDS)
    for rows, origin in _parts(change, rule.side) if len(nowhere) else ():
        mask = pc.is_in(rows[rule.side], value_set=nowhere)
        yield from rule.dangling(rows, mask, origin, limit)


def check_orphans(case: Case) -> Iterator[Finding]:
    """No edge stays whose node is deleted."""
    for change in case.changes:
        if isinstance(change.kind, NodeType):
            removed = _removed(case, change)
            for edge in case.catalog.incident_edges(change.kind.name) if len(removed) else ():
                for rule in rules_between(edge, case.catalog):
                    if isinstance(rule, Endpoint) and rule.node.name == change.kind.name:
                        yield from _left_behind(case, rule, removed)


def _removed(case: Case, change: TypeChanges) -> pa.Array:
    """The ids of stored nodes that will be deleted."""
    if change.replaces:
        stored = column(case.txn.view(change.kind.table_id).scan(["id"]), "id")
        return _without(stored, _ids(change.inserts))
    return _ids(change.deletes)


def _left_behind(case: Case, rule: Endpoint, removed: pa.Array) -> Iterator[Finding]:
    change = case.changes.of(rule.kind)
    if change.replaces:
        return  # the remaining edges are new ones, and checked as such
    yield Looked(rule.kind.table_id, Reads(endpoint_tokens(rule.side, removed)))
    view = case.txn.view(rule.kind.table_id)
    if rule.node.table_id in case.cascaded or not view.count():
        return
    stored = _untouched(view.lookup(rule.side, removed, [rule.side]), change)
    yield from rule.orphaned(stored, case.limit)
    if change.updates is not None and change.updates.num_rows:
        stay = pc.is_in(change.updates[rule.side], value_set=removed)
        yield from rule.orphaned(change.updates.filter(stay), case.limit)


# --- edges per source ----------------------------------------------------------------------------------------------


def check_cardinality(case: Case) -> Iterator[Finding]:
    """Every touched source has at least the minimum and at most the maximum of edges.

    Edges count by id, so an edge that moves counts at its new source only.
    """
    for change, rule in _rules(case, EdgesPerSource):
        sources = _staying(case, rule.kind, _touched(case, change))
        if len(sources):
            if not change.replaces:
                yield Looked(rule.kind.table_id, Reads(endpoint_tokens("src", sources)))
            yield from miscounted(rule, sources, _leaving(case, change, sources), case.limit)


def _touched(case: Case, change: TypeChanges) -> pa.Array:
    """The sources that gain or lose an edge."""
    parts = [_sources(change.inserts), _sources(change.deletes)]
    if change.updates is not None and change.before is not None and change.updates.num_rows:
        moved = change.updates.filter(_moved(change.updates, change.before, "src"))
        vacated = pc.is_in(change.before["id"], value_set=column(moved, "id"))
        parts += [_sources(moved), _sources(change.before.filter(vacated))]
    if change.replaces:
        parts.append(_sources(case.txn.view(change.kind.table_id).scan(["src"])))
    return pc.unique(pa.concat_arrays(parts)).drop_null()


def _sources(edges: pa.Table | None) -> pa.Array:
    return NO_IDS if edges is None or not edges.num_rows else column(edges, "src")


def _staying(case: Case, kind: EdgeType, sources: pa.Array) -> pa.Array:
    """Without the sources that are deleted themselves."""
    node = case.changes.of(case.catalog.nodes[kind.from_type])
    if node.replaces:
        return sources.filter(pc.is_in(sources, value_set=_ids(node.inserts)))
    return _without(sources, _ids(node.deletes))


def _leaving(case: Case, change: TypeChanges, sources: pa.Array) -> pa.Array:
    """The source of each edge of the final image that leaves one of the sources."""
    parts = [_sources(change.inserts), _sources(change.updates)]
    if not change.replaces:
        view = case.txn.view(change.kind.table_id)
        parts.append(_sources(_untouched(view.lookup("src", sources, ["src"]), change)))
    return pa.concat_arrays(parts)


def miscounted(
    rule: EdgesPerSource, sources: pa.Array, leaving: pa.Array, limit: int = VIOLATIONS_MAX
) -> Iterator[Violation]:
    """The sources with too few or too many edges; `leaving` has the source of every edge."""
    counted = pa.table({"src": leaving}).group_by("src").aggregate([("src", "count")])
    at = pc.index_in(sources, value_set=column(counted, "src"))
    counts = pc.fill_null(column(counted, "src_count").take(at), 0)
    yield from rule.outside(pa.table({"src": sources, "count": counts}), limit)


CHECKS: tuple[Check, ...] = (
    check_values,
    check_keys,
    check_unique,
    check_endpoints,
    check_orphans,
    check_cardinality,
)
