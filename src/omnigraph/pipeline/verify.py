"""Rules about more than one row, as exact joins over ids, ends and unique values of a version nobody can see.

The version holds stored and new rows together, so each rule looks at the final state. What is found is told in the
words of `validate`. Rules are written in the SQL that DuckDB and Spark share: few rows are judged by the driver alone,
many by tasks.
"""

# ruff: noqa: S608 - queries are made of our own view and column names; values never become part of their text

from __future__ import annotations

import secrets
from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from omnigraph.core.snapshot import Snapshot
from omnigraph.errors import Kind, OmnigraphError, Violation
from omnigraph.model.catalog import EdgeType, NodeType
from omnigraph.model.changes import Origin
from omnigraph.pipeline.images import Column, Image, plain
from omnigraph.pipeline.stage import Place
from omnigraph.storage.tables import Table, TableRef
from omnigraph.validate.cardinality import outside_bounds
from omnigraph.validate.endpoints import SIDES, dangling, node_type, orphaned
from omnigraph.validate.findings import VIOLATIONS_MAX
from omnigraph.validate.keys import existing_ids, repeated_ids
from omnigraph.validate.unique import held_twice
from omnigraph.write.resolve import Mode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Entity = NodeType | EdgeType
MANY = VIOLATIONS_MAX + 1  # one more tells that there are more
Locate = Callable[[Mapping[str, frozenset[str]]], list[Place]]


class RepeatedRows(OmnigraphError):
    """Rows of a type without a key are given more than once in a bulk load."""

    code, kind = "repeated_rows", Kind.INVALID
    default_help = (
        "Give each id once, give the type a @key, or use engine='local', where later rows win."
    )


@dataclass(frozen=True, slots=True)
class Touched:
    """A type the load brings rows of: its version as it was, and as it would be."""

    kind: Entity
    base: Image
    after: Image
    repeatable: bool  # whether an id may be given twice at all


class Judge(Protocol):
    """Runs SQL over columns of images."""

    def view(self, image: Image, columns: Sequence[Column]) -> str:
        """Columns as texts, with `addr` and `fresh`, under a name."""
        ...

    def listed(self, ids: list[str]) -> str:
        """Some ids, under a name."""
        ...

    def rows(self, query: str) -> list[Any]:
        """What a query returns; columns are attributes."""
        ...


@dataclass(slots=True)
class InProcess:
    """DuckDB, over columns read by the driver."""

    _views: int = 0
    _duckdb: Any = None

    def view(self, image: Image, columns: Sequence[Column]) -> str:
        return self._named(image.table(columns))

    def listed(self, ids: list[str]) -> str:
        return self._named(pa.table({"id": pa.array(ids, pa.string())}))

    def _named(self, table: pa.Table) -> str:
        import duckdb

        self._duckdb = self._duckdb or duckdb.connect()
        self._views += 1
        name = f"view_{self._views}"
        self._duckdb.register(name, table)
        return name

    def rows(self, query: str) -> list[Any]:
        found = self._duckdb.execute(query)
        row = namedtuple("row", [column[0] for column in found.description])  # type: ignore[misc]
        return [row(*values) for values in found.fetchall()]


@dataclass(slots=True)
class OnSpark:
    """Spark, over columns read by tasks."""

    session: SparkSession

    def view(self, image: Image, columns: Sequence[Column]) -> str:
        return self._named(image.frame(self.session, columns))

    def listed(self, ids: list[str]) -> str:
        return self._named(self.session.createDataFrame([(name,) for name in ids], "id string"))

    def _named(self, frame: DataFrame) -> str:
        name = f"omnigraph_{secrets.token_hex(8)}"
        frame.createOrReplaceTempView(name)
        return name

    def rows(self, query: str) -> list[Any]:
        return list(self.session.sql(query).collect())


@dataclass(frozen=True, slots=True)
class Verification:
    """Everything the rules look at."""

    judge: Judge
    snapshot: Snapshot
    mode: Mode
    touched: Mapping[str, Touched]
    inner: Mapping[str, frozenset[str]] = field(default_factory=dict)  # ids repeated within blocks
    values: Mapping[str, Sequence[Violation]] = field(default_factory=dict)

    def image(self, kind: Entity) -> Image:
        """The rows of a type as they would be."""
        known = self.touched.get(kind.table_id)
        return known.after if known is not None else self.stored(kind)

    def stored(self, kind: Entity) -> Image:
        return Image.of(self.snapshot.root, self.snapshot.table_of(kind))

    def table(self, ref: TableRef) -> Table:
        return self.snapshot.tables.open(ref)


def judge_for(session: SparkSession | None, touched: Iterable[Touched], rows_max: int) -> Judge:
    """The driver alone while there are few rows, or where there is no session."""
    rows = sum(one.after.rows + one.base.rows for one in touched)
    return InProcess() if session is None or rows <= rows_max else OnSpark(session)


def verify(case: Verification, locate: Locate) -> list[list[Violation]]:
    """What is wrong, by section: ids, then values, unique groups, ends, nodes that go, cardinality."""
    trouble = {table: _trouble(case, t) for table, t in case.touched.items()}
    troubled = {table: t for table, t in trouble.items() if t is not None}
    ids, values = _ids(case, troubled, locate)
    rows = {
        table: _effective(case, touched, troubled.get(table))
        for table, touched in case.touched.items()
    }
    return [
        ids,
        values,
        list(_unique(case, rows)),
        list(_endpoints(case, rows, locate)),
        list(_orphans(case)),
        list(_cardinality(case, rows)),
    ]


# --- ids ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Trouble:
    """Ids of one table that several rows have: all of them as a query, and the first of each sort."""

    ids: str  # a view of all ids
    shared: str  # a query: id, rows_n, new_n
    repeated: frozenset[str]
    existing: frozenset[str]


def _trouble(case: Verification, touched: Touched) -> Trouble | None:
    inner = case.inner.get(touched.kind.table_id, frozenset())
    if not touched.repeatable and not inner:
        return None
    ids = case.judge.view(touched.after, plain("id"))
    shared = (
        f"SELECT id, count(*) AS rows_n, sum(CASE WHEN fresh THEN 1 ELSE 0 END) AS new_n "
        f"FROM {ids} GROUP BY id HAVING count(*) > 1"
    )
    again = _first(case, f"SELECT id FROM ({shared}) s WHERE new_n > 1")
    there = _first(case, f"SELECT id FROM ({shared}) s WHERE new_n < rows_n")
    if not (again or there or inner):
        return None
    if touched.kind.key is None and case.mode is not Mode.APPEND and again:
        first = min(again)
        raise RepeatedRows(
            f"{touched.kind.name} {first!r} is given more than once",
            details={"type": touched.kind.name, "ids": sorted(again)},
        )
    return Trouble(ids, shared, again | inner, there)


def _first(case: Verification, query: str) -> frozenset[str]:
    return frozenset(row.id for row in case.judge.rows(f"{query} ORDER BY id LIMIT {MANY}"))


def _ids(
    case: Verification, troubled: Mapping[str, Trouble], locate: Locate
) -> tuple[list[Violation], list[Violation]]:
    """Rows given twice and rows that exist; and the broken values of the rows that are neither."""
    wanted = {
        table: t.repeated | t.existing | _suspects(case, table, t) for table, t in troubled.items()
    }
    places = _by_id(locate(wanted)) if wanted else {}
    found: list[Violation] = []
    values: list[Violation] = []
    for table, touched in case.touched.items():
        trouble = troubled.get(table)
        broken = list(case.values.get(table, ()))
        if trouble is not None:
            there = places.get(table, {})
            found += _told(touched.kind, there, trouble)
            broken = [v for v in broken if _counts(v, there, trouble)]
        values += broken[:MANY]
    return found, values


def _suspects(case: Verification, table: str, trouble: Trouble) -> frozenset[str]:
    """Ids with broken values that several rows have."""
    ids = {v.id for v in case.values.get(table, ()) if v.id is not None}
    if not ids:
        return frozenset()
    wanted = case.judge.listed(sorted(ids))
    query = f"SELECT s.id AS id FROM ({trouble.shared}) s JOIN {wanted} w ON s.id = w.id"
    return frozenset(row.id for row in case.judge.rows(query))


def _by_id(places: list[Place]) -> dict[str, dict[str, list[Place]]]:
    found: dict[str, dict[str, list[Place]]] = {}
    for place in sorted(places, key=lambda p: (p.split, p.row)):
        found.setdefault(place.table_id, {}).setdefault(place.id, []).append(place)
    return found


def _told(kind: Entity, places: dict[str, list[Place]], trouble: Trouble) -> Iterator[Violation]:
    def at(name: str) -> list[Place]:
        return places.get(name) or [nowhere(kind, name)] * 2

    again = [place for name in sorted(trouble.repeated) for place in at(name)[1:]]
    there = [place for name in sorted(trouble.existing) for place in at(name)[:1]]
    for rows, tell in ((again, repeated_ids), (there, existing_ids)):
        if rows:
            ids = pa.array([p.id for p in rows], pa.string())
            yield from tell(ids, pa.array([True] * len(rows)), kind, origin_of(rows))


def nowhere(kind: Entity, name: str) -> Place:
    """The place of a row that has none: rows of a DataFrame are known by their ids alone."""
    return Place(kind.table_id, name, 0, 0, None, None)


def origin_of(places: Sequence[Place]) -> Origin:
    """Where rows came from, one by one."""
    lines = pa.array([p.line for p in places], pa.int64())
    return Origin(None, lines, pa.array([p.file for p in places], pa.string()))


def _counts(violation: Violation, places: dict[str, list[Place]], trouble: Trouble) -> bool:
    """Whether the row of a violation is one that is looked at: the first of its id, and a new one."""
    there = places.get(violation.id or "")
    if not there:
        return True
    first = (there[0].file, there[0].line)
    return violation.id not in trouble.existing and (violation.file, violation.line) == first


# --- rows that count -----------------------------------------------------------------------------------------------

Rows = Callable[[Sequence[Column]], str]


def _effective(case: Verification, touched: Touched, trouble: Trouble | None) -> Rows:
    """Gives columns of the final state, without the rows that were refused for their ids, as a source for queries."""

    def read(columns: Sequence[Column]) -> str:
        rows = case.judge.view(touched.after, columns)
        if trouble is None:
            return rows
        ids, shared = trouble.ids, trouble.shared
        dropped = (
            f"SELECT i.addr FROM {ids} i JOIN ({shared}) s ON i.id = s.id JOIN "
            f"(SELECT id, min(addr) AS first_addr FROM {ids} WHERE fresh GROUP BY id) f ON i.id = f.id "
            f"WHERE i.fresh AND (s.new_n < s.rows_n OR i.addr > f.first_addr)"
        )
        kept = f"NOT EXISTS (SELECT 1 FROM ({dropped}) d WHERE d.addr = r.addr)"
        return f"(SELECT r.* FROM {rows} r WHERE {kept})"

    return read


# --- unique groups -------------------------------------------------------------------------------------------------


def _unique(case: Verification, rows: Mapping[str, Rows]) -> Iterator[Violation]:
    for table, touched in case.touched.items():
        for group in touched.kind.uniques:
            read = rows[table]([*plain("id"), Column("value", group)])
            read = f"(SELECT * FROM {read} u WHERE value IS NOT NULL)"
            shared = f"SELECT value FROM {read} v GROUP BY value HAVING count(*) > 1 LIMIT 1"
            if case.judge.rows(shared):
                yield from _holders(case, touched, group, read)


def _holders(
    case: Verification, touched: Touched, group: tuple[str, ...], read: str
) -> Iterator[Violation]:
    by_id = "OVER (PARTITION BY value ORDER BY id)"
    ranked = (
        f"SELECT id, addr, row_number() {by_id} AS place, lag(id) {by_id} AS holder "
        f"FROM {read} n WHERE fresh"
    )
    among = f"SELECT id, addr, holder FROM ({ranked}) p WHERE place = 2"
    taken = (
        f"SELECT n.id AS id, n.addr AS addr, s.id AS holder FROM {read} n JOIN {read} s "
        f"ON n.value = s.value WHERE n.fresh AND NOT s.fresh"
    )
    for pairs in (among, taken):
        first = case.judge.rows(f"{pairs} ORDER BY id LIMIT {MANY}")
        if first:
            values = _at(case.table(touched.after.ref), [row.addr for row in first], group)
            values = values.append_column("holder", pa.array([row.holder for row in first]))
            yield from held_twice(values, touched.kind, group, MANY)


def _at(table: Table, addresses: list[int], columns: Sequence[str]) -> pa.Table:
    return table.take(pa.array(addresses, pa.uint64()), list(dict.fromkeys(["id", *columns])))


# --- edges and their nodes -------------------------------------------------------------------------------------------


def _endpoints(case: Verification, rows: Mapping[str, Rows], locate: Locate) -> Iterator[Violation]:
    known: dict[str, str] = {}
    for table, touched in case.touched.items():
        if not isinstance(touched.kind, EdgeType):
            continue
        ends = rows[table](plain("id", "src", "dst"))
        for side in SIDES:
            nodes = case.snapshot.catalog.nodes[node_type(touched.kind, side)]
            if nodes.name not in known:
                known[nodes.name] = case.judge.view(case.image(nodes), plain("id"))
            lost = (
                f"SELECT e.id AS id, e.{side} AS node FROM {ends} e WHERE e.fresh AND NOT EXISTS "
                f"(SELECT 1 FROM {known[nodes.name]} k WHERE k.id = e.{side})"
            )
            first = case.judge.rows(f"{lost} ORDER BY id LIMIT {MANY}")
            if first:
                yield from _lost(touched.kind, side, first, locate)


def _lost(kind: EdgeType, side: str, first: list[Any], locate: Locate) -> Iterator[Violation]:
    ids = [row.id for row in first]
    places = _by_id(locate({kind.table_id: frozenset(ids)})).get(kind.table_id, {})
    where = [places.get(name, [nowhere(kind, name)])[0] for name in ids]
    table = pa.table({"id": ids, side: [row.node for row in first]})
    mask = pa.array([True] * len(first))
    yield from dangling(table, mask, kind, side, origin_of(where), MANY)


def _orphans(case: Verification) -> Iterator[Violation]:
    """Edges that stay although their node goes: only where a node type is replaced as a whole."""
    if case.mode is not Mode.OVERWRITE:
        return
    for touched in case.touched.values():
        if not isinstance(touched.kind, NodeType):
            continue
        known = case.judge.view(touched.after, plain("id"))
        for edge in case.snapshot.catalog.incident_edges(touched.kind.name):
            if edge.table_id not in case.touched:
                yield from _left_behind(case, touched.kind, edge, known)


def _left_behind(
    case: Verification, node: NodeType, edge: EdgeType, known: str
) -> Iterator[Violation]:
    stored = case.judge.view(case.stored(edge), plain("id", "src", "dst"))
    for side in SIDES:
        if node_type(edge, side) != node.name:
            continue
        lost = (
            f"SELECT e.id AS id, e.{side} AS node FROM {stored} e WHERE NOT EXISTS "
            f"(SELECT 1 FROM {known} k WHERE k.id = e.{side})"
        )
        first = case.judge.rows(f"{lost} ORDER BY id LIMIT {MANY}")
        if first:
            table = pa.table({"id": [r.id for r in first], side: [r.node for r in first]})
            yield from orphaned(table, edge, side, node, MANY)


def _cardinality(case: Verification, rows: Mapping[str, Rows]) -> Iterator[Violation]:
    for table, touched in case.touched.items():
        kind = touched.kind
        if isinstance(kind, EdgeType) and not kind.cardinality.is_free:
            first = case.judge.rows(_miscounted(case, touched, kind, rows[table]))
            if first:
                counted = {"src": [r.src for r in first], "count": [r.edges for r in first]}
                yield from outside_bounds(kind, pa.table(counted), MANY)


def _miscounted(case: Verification, touched: Touched, kind: EdgeType, read: Rows) -> str:
    """Sources with too few or too many edges, among those that have or had one."""
    after = read(plain("src"))
    before = case.judge.view(touched.base, plain("src"))
    counted = (
        f"SELECT src, CAST(sum(n) AS BIGINT) AS edges FROM "
        f"(SELECT src, 1 AS n FROM {after} a UNION ALL SELECT src, 0 AS n FROM {before} b) c GROUP BY src"
    )
    low, high = kind.cardinality.minimum, kind.cardinality.maximum
    wrong = f"edges < {low}" + (f" OR edges > {high}" if high is not None else "")
    query = f"SELECT src, edges FROM ({counted}) t WHERE ({wrong})"
    node = case.snapshot.catalog.nodes[kind.from_type]
    if case.mode is Mode.OVERWRITE and node.table_id in case.touched:
        known = case.judge.view(case.image(node), plain("id"))
        query += f" AND EXISTS (SELECT 1 FROM {known} k WHERE k.id = t.src)"
    return f"{query} ORDER BY src LIMIT {MANY}"
