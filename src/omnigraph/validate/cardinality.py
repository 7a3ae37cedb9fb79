"""How many edges of a type leave one source: judged for every source that gains or loses one.

Edges count by id, so an edge that moves counts at its new source only. A source without a touched edge is not
looked at, and one that goes itself needs no edges.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.core.plan import Reads
from omnigraph.errors import Violation
from omnigraph.model.catalog import EdgeType
from omnigraph.model.changes import TypeChanges
from omnigraph.model.tokens import endpoint_tokens
from omnigraph.validate.endpoints import NO_IDS, moved_rows
from omnigraph.validate.findings import Case, Finding, Looked, column, shown


def check_cardinality(case: Case) -> Iterator[Finding]:
    """Every touched source has at least the minimum and at most the maximum of edges."""
    for change in case.changes:
        kind = change.kind
        if isinstance(kind, EdgeType) and not kind.cardinality.is_free:
            sources = _staying(case, kind, _touched(case, change))
            if len(sources):
                if not change.replaces:
                    yield Looked(kind.table_id, Reads(endpoint_tokens("src", sources)))
                yield from miscounted(kind, sources, _leaving(case, change, sources), case.limit)


def _touched(case: Case, change: TypeChanges) -> pa.Array:
    """The sources that gain or lose an edge."""
    parts = [_ends(change.inserts), _ends(change.deletes)]
    if change.updates is not None and change.before is not None and change.updates.num_rows:
        moved = change.updates.filter(moved_rows(change.updates, change.before, "src"))
        vacated = pc.is_in(change.before["id"], value_set=column(moved, "id"))
        parts += [_ends(moved), _ends(change.before.filter(vacated))]
    if change.replaces:
        parts.append(_ends(case.txn.view(change.kind.table_id).scan(["src"])))
    return pc.unique(pa.concat_arrays(parts)).drop_null()


def _ends(edges: pa.Table | None) -> pa.Array:
    return NO_IDS if edges is None or not edges.num_rows else column(edges, "src")


def _staying(case: Case, kind: EdgeType, sources: pa.Array) -> pa.Array:
    """Without the sources that go themselves."""
    node = case.changes.of(case.catalog.nodes[kind.from_type])
    if node.replaces:
        kept = NO_IDS if node.inserts is None else column(node.inserts, "id")
        return sources.filter(pc.is_in(sources, value_set=kept))
    if node.deletes is None or not node.deletes.num_rows:
        return sources
    return sources.filter(pc.invert(pc.is_in(sources, value_set=column(node.deletes, "id"))))


def _leaving(case: Case, change: TypeChanges, sources: pa.Array) -> pa.Array:
    """The source of each edge of the final image that leaves one of the sources."""
    parts = [_ends(change.inserts), _ends(change.updates)]
    if not change.replaces:
        view = case.txn.view(change.kind.table_id)
        stored = view.lookup("src", sources, ["src"])
        for rows in (change.updates, change.deletes):
            if rows is not None and rows.num_rows:
                own = pc.is_in(stored["id"], value_set=column(rows, "id"))
                stored = stored.filter(pc.invert(own))
        parts.append(_ends(stored))
    return pa.concat_arrays(parts)


def miscounted(
    kind: EdgeType, sources: pa.Array, leaving: pa.Array, limit: int
) -> Iterator[Violation]:
    """The sources with too few or too many edges; `leaving` has the source of every edge."""
    counted = pa.table({"src": leaving}).group_by("src").aggregate([("src", "count")])
    at = pc.index_in(sources, value_set=column(counted, "src"))
    counts = pc.fill_null(column(counted, "src_count").take(at), 0)
    yield from outside_bounds(kind, pa.table({"src": sources, "count": counts}), limit)


def outside_bounds(kind: EdgeType, counted: pa.Table, limit: int) -> Iterator[Violation]:
    """The first sources whose number of edges the type does not allow."""
    counts = counted["count"]
    low, high = kind.cardinality.minimum, kind.cardinality.maximum
    wrong = pc.less(counts, low)
    if high is not None:
        wrong = pc.or_(wrong, pc.greater(counts, high))
    for row in counted.filter(wrong).sort_by("src").slice(0, limit).to_pylist():
        source, count = row["src"], row["count"]
        bound = f"at least {low}" if count < low else f"at most {high}"
        yield Violation(
            rule="cardinality",
            type_name=kind.name,
            id=None,
            property="src",
            value=source,
            message=f"{kind.from_type} {shown(source)} would have {count} {kind.name} edges, but @card allows {bound}",
            extra={"count": count, "minimum": low, "maximum": high},
        )
