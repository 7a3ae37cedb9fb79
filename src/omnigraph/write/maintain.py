"""The verb of maintenance: optimize one table without changing rows.

Small fragments and those with many deleted rows are rewritten, and declared indices are completed, as an ordinary
commit that other writers may overtake: the rewritten files and indices are then moved to their version.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from omnigraph.core.plan import CreateIndex, PublishPlan, Rewrite, TableAction, Verb
from omnigraph.core.snapshot import Snapshot
from omnigraph.core.txn import WriteTxn
from omnigraph.model.catalog import Catalog, NodeOrEdgeType, NodeType
from omnigraph.model.frozen import frozen
from omnigraph.read.search.storing import text_coverage
from omnigraph.storage.tables import FragmentInfo, IndexEdit, IndexInfo, Table, rewrite_groups
from omnigraph.values.spelling import fields_json

UNCOVERED_ROWS_MAX = 4_096  # per index, before automatic maintenance acts
REBUILT_PART = 8  # of an index on vectors: one row in this many, if that is more
VECTOR_ROWS_MIN = 20_000  # of a table; fewer vectors are compared as fast as by an index
SMALL_FRAGMENTS_MAX = 8


@frozen
class TableReport:
    """What maintenance found in, and did to, the table of one type."""

    type: str
    kind: str  # node or edge
    rows: int
    fragments_before: int
    fragments_after: int
    indexed: tuple[str, ...] = ()  # columns whose index was built or completed
    topology_bytes: int = 0
    text_bytes: int = 0  # of the built text indices
    note: str | None = None

    def to_json(self) -> dict[str, Any]:
        return fields_json(self)


@frozen
class TableWork:
    """The work a table needs."""

    compact: bool
    indices: tuple[IndexEdit, ...]

    @property
    def is_nothing(self) -> bool:
        return not self.compact and not self.indices

    def action(self, table_id: str) -> TableAction:
        if self.compact:
            return Rewrite(table_id, self.indices)
        return CreateIndex(table_id, self.indices)


def optimize(table_id: str, *, rewrite: bool = True) -> Verb:
    """The verb that optimizes the table of one type, or without `rewrite` only its indices."""

    def verb(txn: WriteTxn) -> PublishPlan:
        kinds = {kind.table_id: kind for kind in txn.catalog.entities()}
        if table_id not in kinds or table_id not in txn.snapshot.commit.tables:
            return PublishPlan(kind="optimize", empty=True, value=TableWork(False, ()))
        work = wanted(txn.snapshot, kinds[table_id], rewrite=rewrite)
        if work.is_nothing:
            return PublishPlan(kind="optimize", empty=True, value=work)
        return PublishPlan(kind="optimize", actions=(work.action(table_id),), value=work)

    return verb


def wanted(snapshot: Snapshot, kind: NodeOrEdgeType, *, rewrite: bool = True) -> TableWork:
    """All maintenance work for a table; empty once done."""
    table = snapshot.table_of(kind)
    compact = rewrite and _is_scattered(table.fragments())
    columns = indexed_columns(snapshot.catalog, kind)
    found = [IndexEdit(c, "BTREE") for c in columns if compact or uncovered_rows(table, c)]
    if table.count() >= VECTOR_ROWS_MIN:
        found += [
            edit
            for edit in _vector_indices(table, kind)
            if compact or edit.replace or uncovered_rows(table, edit.column, "vector")
        ]
    return TableWork(compact, tuple(found) if table.count() else ())


def _vector_indices(table: Table, kind: NodeOrEdgeType) -> Iterator[IndexEdit]:
    """The index kind that builds fastest at equal recall: clusters of similar vectors, one byte per number.

    One that was built by another metric is replaced.
    """
    for name in kind.indexed("vector"):
        metric = kind.properties[name].metric
        built = {i.metric for i in _indices_on(table, name, "vector")}
        yield IndexEdit(name, "IVF_SQ", not built <= {metric}, (("metric", metric),))


def indexed_columns(catalog: Catalog, kind: NodeOrEdgeType) -> list[str]:
    """The columns of a type with an index by value."""
    return [index.column for index in declared_indices(catalog) if _is_of(index, kind)]


def _is_of(index: Any, kind: NodeOrEdgeType) -> bool:
    """Word indices are separate files, and vectors are not indexed in small tables."""
    return bool(index.table_id == kind.table_id and index.kind == "value")


def _is_scattered(fragments: tuple[FragmentInfo, ...]) -> bool:
    """Whether rewriting yields fewer fragments, or removes many deleted rows."""
    return bool(rewrite_groups(fragments))


def uncovered_rows(table: Table, column: str, kind: str = "value") -> int:
    """The number of rows not covered by an index of a kind on a column."""
    found = _indices_on(table, column, kind)
    covered: frozenset[int] = frozenset().union(*(index.covered_fragments for index in found))
    return sum(f.live_rows for f in table.fragments() if f.fragment_id not in covered)


def _indices_on(table: Table, column: str, kind: str) -> list[IndexInfo]:
    return [i for i in table.indices() if i.column == column and i.kind in KINDS[kind]]


# --- index states ---


@frozen
class IndexState:
    """How much of a property an index covers. `TEXT` is stored in files, `EXACT` means that none is needed yet."""

    property: str
    kind: str
    rows: int
    covered_rows: int
    bytes: int

    def to_json(self) -> dict[str, Any]:
        return fields_json(self)


def index_states(snapshot: Snapshot, kind: NodeOrEdgeType) -> list[IndexState]:
    """The indices of a type, by property. For word indices, their files are listed."""
    table = snapshot.table_of(kind)
    sizes = {f.fragment_id: f.live_rows for f in table.fragments()}
    rows = sum(sizes.values())
    found = [
        IndexState(
            i.column, i.kind, rows, sum(sizes.get(f, 0) for f in i.covered_fragments), i.bytes
        )
        for i in table.indices()
    ]
    found += [
        IndexState(text.property, "TEXT", rows, text.covered_rows, text.bytes)
        for text in text_coverage(snapshot, kind)
    ]
    if rows < VECTOR_ROWS_MIN:
        known = {state.property for state in found}
        exact = [name for name in kind.indexed("vector") if name not in known]
        found += [IndexState(name, "EXACT", rows, rows, 0) for name in exact]
    return sorted(found, key=lambda state: (state.property, state.kind))


# --- when to act -------------------------------------------------------------------------------------------------


def due(snapshot: Snapshot) -> Iterator[NodeOrEdgeType]:
    """The types whose tables are worth the work now; reads fragments and indices and lists word files, but no rows."""
    for kind in snapshot.catalog.entities():
        table = snapshot.table_of(kind)
        left = _backlog_of(table, indexed_columns(snapshot.catalog, kind))
        if left.pressure > 1 or _lacks_vectors(table, kind) or _lacks_words(snapshot, kind):
            yield kind


def _lacks_vectors(table: Table, kind: NodeOrEdgeType) -> bool:
    """Whether an index on vectors is worth building: it is always built anew, over all rows."""
    rows = table.count()
    least = max(UNCOVERED_ROWS_MAX, rows // REBUILT_PART)
    return rows >= VECTOR_ROWS_MIN and any(
        edit.replace or uncovered_rows(table, edit.column, "vector") > least
        for edit in _vector_indices(table, kind)
    )


def _lacks_words(snapshot: Snapshot, kind: NodeOrEdgeType) -> bool:
    found = text_coverage(snapshot, kind)
    return any(each.rows - each.covered_rows > UNCOVERED_ROWS_MAX for each in found)


@frozen
class Backlog:
    """Pending maintenance that slows writers down: fragments to merge, and rows to index by value or to remove."""

    fragments: int = 0
    rows: int = 0

    @property
    def pressure(self) -> float:
        """The backlog in relation to what makes maintenance due; it begins at 1."""
        return max(self.fragments / SMALL_FRAGMENTS_MAX, self.rows / UNCOVERED_ROWS_MAX)


def backlog(snapshot: Snapshot) -> Backlog:
    """The backlog of the table that needs maintenance most."""
    found = [
        _backlog_of(snapshot.table_of(kind), indexed_columns(snapshot.catalog, kind))
        for kind in snapshot.catalog.entities()
    ]
    return max(found, key=lambda left: left.pressure, default=Backlog())


def _backlog_of(table: Table, columns: list[str]) -> Backlog:
    fragments = table.fragments()
    chosen = {i for group in rewrite_groups(fragments) for i in group}
    deleted = sum(f.deleted_rows for f in fragments if f.fragment_id in chosen)
    unknown = max((uncovered_rows(table, column) for column in columns), default=0)
    return Backlog(len(chosen), max(deleted, unknown))


KINDS = {
    "value": frozenset({"BTREE", "BITMAP"}),
    "text": frozenset({"INVERTED", "TEXT"}),
    "vector": frozenset({"IVF_FLAT", "IVF_PQ", "IVF_SQ", "IVF_HNSW_FLAT", "IVF_HNSW_SQ"}),
}


@frozen
class DeclaredIndex:
    """An index the schema declares: by value (equality, ranges), over words, or over vectors."""

    type_name: str
    table_id: str
    column: str
    kind: str  # value, text or vector


def declared_indices(catalog: Catalog) -> Iterator[DeclaredIndex]:
    """Every index a schema declares, types by name: ids and ends always, keys, unique groups and `@index`."""
    for kind in catalog.entities():
        columns = ["id"] if isinstance(kind, NodeType) else ["id", "src", "dst"]
        groups = [*kind.uniques, *([kind.key] if kind.key else [])]
        members = [name for group in groups for name in group if name not in columns]
        for name in dict.fromkeys([*columns, *members]):
            yield DeclaredIndex(kind.name, kind.table_id, name, "value")
        for wanted in ("value", "text", "vector"):
            for name in kind.indexed(wanted):
                if wanted != "value" or name not in members:
                    yield DeclaredIndex(kind.name, kind.table_id, name, wanted)
