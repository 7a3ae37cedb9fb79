"""Referential integrity: edges end at nodes of the final image, and no node leaves an edge behind."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.core.plan import Reads
from omnigraph.errors import Violation
from omnigraph.model.catalog import EdgeType, NodeType
from omnigraph.model.changes import Origin, TypeChanges
from omnigraph.model.tokens import endpoint_tokens, id_tokens
from omnigraph.storage import metrics
from omnigraph.validate.findings import Case, Finding, Looked, column, offenders, shown

SIDES = ("src", "dst")
NO_IDS = pa.array([], pa.string())
CORES = os.cpu_count() or 1
ONE_THREAD_ROWS_MAX = 50_000  # a thread costs more than it saves below


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
    for change, side in _sides(case):
        yield from _dangling(change, side, missing, case.limit)


def _named_ends(case: Case) -> dict[str, list[pa.Array]]:
    """For each node type the ids that new and moved ends name, each once from every side."""
    ends = [
        (node_type(change.kind, side), rows[side])
        for change, side in _sides(case)
        for rows, _ in _parts(change, side)
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
    """Looks up which of the ids will not be there, given that the write itself does not bring them."""
    if not len(ids) or change.replaces:
        return lambda: ids
    view, deleted = case.txn.view(change.kind.table_id), _ids(change.deletes)
    return lambda: _without(ids, _without(view.existing(ids), deleted))


def _sides(case: Case) -> Iterator[tuple[TypeChanges, str]]:
    for change in case.changes:
        if isinstance(change.kind, EdgeType):
            yield change, "src"
            yield change, "dst"


def _ids(rows: pa.Table | None) -> pa.Array:
    return NO_IDS if rows is None else column(rows, "id")


def node_type(kind: NodeType | EdgeType, side: str) -> str:
    """The name of the node type at one side of an edge type."""
    assert isinstance(kind, EdgeType)  # noqa: S101 - only edge types have sides
    return kind.from_type if side == "src" else kind.to_type


def _parts(change: TypeChanges, side: str) -> Iterator[tuple[pa.Table, Origin]]:
    """New edges, and changed ones whose end at this side is another than before."""
    if change.inserts is not None and change.inserts.num_rows:
        yield change.inserts, change.insert_origin
    if change.updates is not None and change.before is not None and change.updates.num_rows:
        moved = moved_rows(change.updates, change.before, side)
        if pc.any(moved).as_py():
            yield change.updates.filter(moved), change.update_origin.filter(moved)


def moved_rows(updates: pa.Table, before: pa.Table, side: str) -> pa.BooleanArray:
    """Which changed edges had another node at this side before. Both tables may be ordered differently."""
    at = pc.index_in(column(updates, "id"), value_set=column(before, "id"))
    return pc.not_equal(column(before, side).take(at), column(updates, side)).fill_null(True)


def _not_given(change: TypeChanges, ids: pa.Array) -> pa.Array:
    """Without the nodes this very write puts there."""
    for rows in (change.inserts, change.updates):
        if rows is not None and rows.num_rows and len(ids):
            ids = _without(ids, column(rows, "id"))
    return ids


def _without(ids: pa.Array, others: pa.Array) -> pa.Array:
    return ids.filter(pc.invert(pc.is_in(ids, value_set=others)))


def _dangling(
    change: TypeChanges, side: str, missing: Mapping[str, pa.Array], limit: int
) -> Iterator[Violation]:
    kind, name = change.kind, node_type(change.kind, side)
    nowhere = missing.get(name, NO_IDS)
    for rows, origin in _parts(change, side) if len(nowhere) else ():
        mask = pc.is_in(rows[side], value_set=nowhere)
        yield from dangling(rows, mask, kind, side, origin, limit)


def dangling(
    rows: pa.Table,
    mask: pa.Array | pa.ChunkedArray,
    kind: NodeType | EdgeType,
    side: str,
    origin: Origin,
    limit: int,
) -> Iterator[Violation]:
    """The first edges by id, among those of the mask, whose end at a side is no node."""
    for row, file, line in offenders(rows, mask, (side,), origin, limit):
        name = node_type(kind, side)
        yield Violation(
            rule="endpoint",
            type_name=kind.name,
            id=row["id"],
            property=side,
            value=row[side],
            message=f"{side} {shown(row[side])} of {kind.name} is not found in {name}",
            file=file,
            line=line,
        )


# --- nodes that go -----------------------------------------------------------------------------------------------


def check_orphans(case: Case) -> Iterator[Finding]:
    """No edge stays whose node goes."""
    for change in case.changes:
        if isinstance(change.kind, NodeType):
            removed = removed_nodes(case, change)
            if len(removed):
                for edge in case.catalog.incident_edges(change.kind.name):
                    yield from _left_behind(case, change.kind, removed, edge)


def removed_nodes(case: Case, change: TypeChanges) -> pa.Array:
    """The ids of nodes that are stored and will not be there."""
    if change.replaces:
        stored = column(case.txn.view(change.kind.table_id).scan(["id"]), "id")
        return _without(stored, _ids(change.inserts))
    return _ids(change.deletes)


def _left_behind(
    case: Case, node: NodeType, removed: pa.Array, edge: EdgeType
) -> Iterator[Finding]:
    change = case.changes.of(edge)
    if change.replaces:
        return  # the edges that will be there are new ones, and checked as such
    view = case.txn.view(edge.table_id)
    for side in SIDES:
        if node_type(edge, side) != node.name:
            continue
        yield Looked(edge.table_id, Reads(endpoint_tokens(side, removed)))
        if node.table_id in case.cascaded or not view.count():
            continue
        found = view.lookup(side, removed, [side])
        for rows in (change.updates, change.deletes):
            if rows is not None and rows.num_rows:
                found = found.filter(pc.invert(pc.is_in(found["id"], value_set=column(rows, "id"))))
        yield from orphaned(found, edge, side, node, case.limit)
        if change.updates is not None and change.updates.num_rows:
            stay = pc.is_in(change.updates[side], value_set=removed)
            yield from orphaned(change.updates.filter(stay), edge, side, node, case.limit)


def orphaned(
    edges: pa.Table, kind: EdgeType, side: str, node: NodeType, limit: int
) -> Iterator[Violation]:
    """The first edges by id that would lose their node."""
    for row in edges.select(["id", side]).sort_by("id").slice(0, limit).to_pylist():
        yield Violation(
            rule="orphan_edge",
            type_name=kind.name,
            id=row["id"],
            property=side,
            value=row[side],
            message=f"{node.name} {shown(row[side])} would go, but {kind.name} {shown(row['id'])} "
            f"still has it as {side}",
        )
