"""Deleting the edges of deleted nodes: in mutations, and in loads of change records."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.core.plan import Reads
from omnigraph.core.txn import WriteTxn
from omnigraph.model.catalog import EdgeType, NodeType
from omnigraph.model.changes import Changes, TypeChanges
from omnigraph.model.columns import one_array
from omnigraph.model.tokens import endpoint_tokens
from omnigraph.storage import metrics
from omnigraph.storage.tables import ADDRESS
from omnigraph.write.resolve import before_columns


def incident_rows(
    txn: WriteTxn, node: NodeType, removed: pa.Array
) -> Iterator[tuple[EdgeType, pa.Table, Reads]]:
    """The stored edges of nodes by type, each once, and the reads this depends on. Tables are read in parallel."""
    tasks = [
        (edge, side)
        for edge in txn.catalog.incident_edges(node.name)
        for side, name in edge.ends
        if name == node.name
    ]
    found = metrics.parallel([_incident(txn, edge, side, removed) for edge, side in tasks])
    for edge in dict.fromkeys(edge.name for edge, _ in tasks):
        kind = txn.catalog.edges[edge]
        mine = [rows for (e, _), rows in zip(tasks, found, strict=True) if e is kind]
        reads = Reads()
        for side in (s for e, s in tasks if e is kind):
            reads |= Reads(endpoint_tokens(side, removed))
        yield kind, _once_each(pa.concat_tables(mine)), reads


def _incident(
    txn: WriteTxn, edge: EdgeType, side: str, removed: pa.Array
) -> Callable[[], pa.Table]:
    columns = before_columns(edge)
    return lambda: txn.view(edge.table_id).lookup(side, removed, columns)


def _once_each(rows: pa.Table) -> pa.Table:
    """An edge between two deleted nodes is found at both ends."""
    if pc.count_distinct(rows["id"]).as_py() == rows.num_rows:
        return rows
    ids = one_array(rows["id"])
    return rows.take(pc.index_in(pc.unique(ids), value_set=ids))


def with_incident_edges(changes: Changes, txn: WriteTxn) -> Changes:
    """The changes, and the edges of the nodes they delete, except those the same write changes or deletes."""
    tables = dict(changes.tables)
    for change in changes:
        gone = change.deletes
        if not isinstance(change.kind, NodeType) or gone is None or not gone.num_rows:
            continue
        for edge, found, _ in incident_rows(txn, change.kind, one_array(gone["id"])):
            known = tables.get(edge.table_id) or TypeChanges(edge)
            rows = _untouched(found, known)
            if rows.num_rows:
                parts = [part for part in (known.deletes, rows) if part is not None]
                columns = [*before_columns(edge), ADDRESS]
                deletes = pa.concat_tables(part.select(columns) for part in parts)
                tables[edge.table_id] = replace(known, deletes=deletes)
    return Changes(tables)


def _untouched(rows: pa.Table, change: TypeChanges) -> pa.Table:
    touched = [one_array(t["id"]) for t in (change.before, change.deletes) if t is not None]
    return (
        rows.filter(pc.invert(pc.is_in(rows["id"], value_set=pa.concat_arrays(touched))))
        if touched
        else rows
    )
