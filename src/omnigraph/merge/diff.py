"""Two states of a graph compared: counts by type, changed rows with their changed cells, and the schema.

Types are matched by their tables and columns by their properties' identities, so a rename changes the schema, not
the rows. Rows are compared under the second state's schema: values that schema gave every row are not row changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import Any

import pyarrow as pa

from omnigraph.core.repository import Repository
from omnigraph.core.snapshot import Snapshot
from omnigraph.errors import OptionInvalid, TableNotFound
from omnigraph.lang.schema.migrate import compare
from omnigraph.merge.changed import Between
from omnigraph.merge.rows import Delta, equal_cells, positions
from omnigraph.merge.schema_view import kinds_of, seen_as
from omnigraph.model.catalog import NodeOrEdgeType
from omnigraph.model.columns import arrow_schema
from omnigraph.model.frozen import frozen
from omnigraph.storage import metrics
from omnigraph.storage.tables import ADDRESS
from omnigraph.values.spelling import to_json

INSERT, UPDATE, DELETE = "insert", "update", "delete"
OPERATIONS = (INSERT, UPDATE, DELETE)
SHOWN_ROWS_MAX = 50


@frozen
class RowDiff:
    """One changed row: for an update only the changed cells, otherwise the whole row on its side."""

    type: str
    kind: str  # node or edge
    operation: str  # insert, update or delete
    id: str
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None

    def to_json(self) -> dict[str, Any]:
        return {
            "type": self.type,
            "kind": self.kind,
            "operation": self.operation,
            "id": self.id,
            "before": to_json(self.before),
            "after": to_json(self.after),
        }


@frozen
class TypeDiff:
    """What happened to the rows of one type; `delta` has whole rows."""

    kind: NodeOrEdgeType
    delta: Delta
    operations: frozenset[str] = frozenset(OPERATIONS)

    @property
    def counts(self) -> dict[str, int]:
        parts = {"inserted": INSERT, "updated": UPDATE, "deleted": DELETE}
        return {
            name: getattr(self.delta, name).num_rows if operation in self.operations else 0
            for name, operation in parts.items()
        }

    def rows(self) -> Iterator[RowDiff]:
        """Insertions, updates, deletions, each by id."""
        if INSERT in self.operations:
            for row in _dicts(self.delta.inserted):
                yield self._row(INSERT, row["id"], None, row)
        if UPDATE in self.operations:
            yield from self._updates()
        if DELETE in self.operations:
            for row in _dicts(self.delta.deleted):
                yield self._row(DELETE, row["id"], row, None)

    def _updates(self) -> Iterator[RowDiff]:
        after = self.delta.updated.sort_by("id")
        before = self.delta.before.take(positions(after["id"], self.delta.before["id"]))
        names = [name for name in arrow_schema(self.kind).names if name != "id"]
        differs = {name: ~equal_cells(before[name], after[name]) for name in names}
        pairs = zip(before.to_pylist(), after.to_pylist(), strict=True)
        for number, (old, new) in enumerate(pairs):
            cells = [name for name in names if differs[name][number]]
            yield self._row(
                UPDATE, new["id"], {n: old[n] for n in cells}, {n: new[n] for n in cells}
            )

    def _row(self, operation: str, id: str, before: Any, after: Any) -> RowDiff:
        return RowDiff(self.kind.name, self.kind.kind, operation, id, before, after)

    def table(self) -> pa.Table:
        """The whole rows: operation, id, and both images as structs."""
        rows = pa.concat_tables([self.delta.inserted, self.delta.updated, self.delta.deleted])
        ids = rows["id"].combine_chunks()
        sides = [_structs(part, ids) for part in (self.delta.before, self.delta.after)]
        names = [INSERT] * self.delta.inserted.num_rows + [UPDATE] * self.delta.updated.num_rows
        names += [DELETE] * self.delta.deleted.num_rows
        found = pa.table({"operation": pa.array(names, pa.string()), "id": ids})
        for name, side in zip(("before", "after"), sides, strict=True):
            found = found.append_column(name, side)
        wanted = pa.array([name in self.operations for name in names], pa.bool_())
        return found.filter(wanted)


def _dicts(rows: pa.Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = rows.drop_columns([ADDRESS]).sort_by("id").to_pylist()
    return found


def _structs(rows: pa.Table, ids: pa.Array) -> pa.StructArray:
    at = positions(ids, rows["id"])
    taken = rows.drop_columns([ADDRESS]).take(at)
    return pa.StructArray.from_arrays(
        [column.combine_chunks() for column in taken.columns],
        fields=[pa.field(f.name, f.type) for f in taken.schema],
        mask=at.is_null(),
    )


@frozen
class Diff:
    """The changes from one state to another."""

    from_commit: str
    to_commit: str
    types: tuple[TypeDiff, ...] = ()
    schema: tuple[Mapping[str, Any], ...] = field(default_factory=tuple)  # migration steps

    @property
    def is_empty(self) -> bool:
        return not self.schema and not any(any(t.counts.values()) for t in self.types)

    @property
    def counts(self) -> dict[str, dict[str, int]]:
        """By type: inserted, updated, deleted. Types without changes are left out."""
        return {name: t.counts for name, t in self._labelled() if any(t.counts.values())}

    def _labelled(self) -> Iterator[tuple[str, TypeDiff]]:
        """Types by name; an edge type that shares a node type's name says what it is."""
        nodes = {t.kind.name for t in self.types if t.kind.kind == "node"}
        for t in self.types:
            shared = t.kind.kind == "edge" and t.kind.name in nodes
            yield (f"edge {t.kind.name}" if shared else t.kind.name), t

    def __iter__(self) -> Iterator[RowDiff]:
        """Every changed row, node types first."""
        return (row for each in self.types for row in each.rows())

    @property
    def rows(self) -> list[RowDiff]:
        return list(self)

    def to_json(self) -> dict[str, Any]:
        """The shape every surface uses."""
        return {
            "from": self.from_commit,
            "to": self.to_commit,
            "counts": self.counts,
            "schema": [dict(step) for step in self.schema],
            "rows": [row.to_json() for row in self],
        }

    def to_arrow(self) -> dict[str, pa.Table]:
        """By type: a table with `operation`, `id`, and whole rows `before` and `after`."""
        return {name: t.table() for name, t in self._labelled() if any(t.counts.values())}

    def __str__(self) -> str:
        return "\n".join(_lines(self))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from omnigraph.drawing.notebook import diff_html

        return diff_html(self)


def _lines(found: Diff) -> Iterator[str]:
    yield f"{found.from_commit}..{found.to_commit}"
    for step in found.schema:
        yield "schema " + " ".join(f"{k}={v}" for k, v in step.items() if v is not None)
    marks = {"inserted": "+", "updated": "~", "deleted": "-"}
    for name, counts in found.counts.items():
        yield f"{name}  " + "  ".join(f"{marks[k]}{n}" for k, n in counts.items() if n)
    total = sum(n for counts in found.counts.values() for n in counts.values())
    for row, _ in zip(found, range(SHOWN_ROWS_MAX), strict=False):
        yield _line(row)
    if total > SHOWN_ROWS_MAX:
        yield f"… and {total - SHOWN_ROWS_MAX} more"


def _line(row: RowDiff) -> str:
    match row.operation:
        case "insert":
            cells = [f"{k}={to_json(v)!r}" for k, v in (row.after or {}).items() if k != "id"]
            mark = "+"
        case "delete":
            cells, mark = [], "-"
        case _:
            old, new = row.before or {}, row.after or {}
            cells = [f"{k}: {to_json(old[k])!r} → {to_json(new[k])!r}" for k in new]
            mark = "~"
    return f"  {mark} {row.type} {row.id}  " + "  ".join(cells)


# --- computing it ------------------------------------------------------------------------------------------------


def diff(
    repo: Repository,
    a: Snapshot,
    b: Snapshot,
    *,
    types: Sequence[str] | None = None,
    operations: Sequence[str] | None = None,
) -> Diff:
    """The changes from state `a` to state `b`."""
    wanted = _operations(operations)
    between = Between(repo, seen_as(a, b.catalog), b)
    kinds = _chosen([*_kinds(a, b)], types)
    touched = [kind for kind in kinds if between.differs(kind.table_id)]
    deltas = metrics.parallel([partial(_delta, between, a, kind) for kind in touched])
    found = tuple(TypeDiff(k, d, wanted) for k, d in zip(touched, deltas, strict=True))
    return Diff(
        a.commit_id,
        b.commit_id,
        tuple(t for t in found if not t.delta.is_empty),
        _steps(repo, a, b),
    )


def _kinds(a: Snapshot, b: Snapshot) -> Iterable[NodeOrEdgeType]:
    """The types of the second state, then the dropped ones."""
    there = kinds_of(b.catalog)
    yield from there.values()
    yield from (kind for table, kind in kinds_of(a.catalog).items() if table not in there)


def _delta(between: Between, a: Snapshot, kind: NodeOrEdgeType) -> Delta:
    if kind.table_id in kinds_of(between.other.catalog):
        return between.delta(kind.table_id, kind)
    return Between(between.repo, a, between.other).delta(kind.table_id, kind)


def _operations(names: Sequence[str] | None) -> frozenset[str]:
    chosen = frozenset(OPERATIONS if names is None else names)
    if not chosen <= set(OPERATIONS):
        raise OptionInvalid(f"operations are {', '.join(OPERATIONS)}; got {sorted(chosen)}")
    return chosen


def _chosen(kinds: list[NodeOrEdgeType], names: Sequence[str] | None) -> list[NodeOrEdgeType]:
    if names is None:
        return kinds
    missing = set(names) - {kind.name for kind in kinds}
    if missing:
        raise TableNotFound(f"there is no type {', '.join(sorted(missing))}")
    return [kind for kind in kinds if kind.name in names]


def _steps(repo: Repository, a: Snapshot, b: Snapshot) -> tuple[Mapping[str, Any], ...]:
    if a.commit.schema == b.commit.schema:
        return ()
    one, other = (repo.schema(s.commit.schema).ir for s in (a, b))
    return tuple(step.to_json() for step in compare(one, other, allow_data_loss=True))
