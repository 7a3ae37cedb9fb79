"""Rules about more than one row, as exact joins over ids, ends and unique values of an unpublished version.

The version holds stored and new rows together, so each rule looks at the final state. The rules and their messages
are those of `validate.rules`; here each is one query, in the SQL that DuckDB and Spark share: few rows are verified by
the driver alone, many by tasks.
"""

# ruff: noqa: S608 - queries are made of our own view and column names; values never become part of their text

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from omnigraph.core.snapshot import Snapshot
from omnigraph.errors import Kind, OmnigraphError, Violation
from omnigraph.model.catalog import NodeOrEdgeType, NodeType
from omnigraph.model.changes import NOWHERE, Origin
from omnigraph.model.frozen import frozen
from omnigraph.pipeline.row_addresses import NO_ROWS
from omnigraph.pipeline.session import arrow_of
from omnigraph.pipeline.stage import MANY, InputPlace
from omnigraph.pipeline.table_versions import TableVersion, TextColumn, open_table, plain
from omnigraph.storage.tables import RowAddresses
from omnigraph.validate.rules import (
    EdgesPerSource,
    Endpoint,
    Rule,
    Unique,
    existing_ids,
    repeated_ids,
    rules_between,
)
from omnigraph.write.resolve import Mode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

HELD_ROWS_MAX = 2_000_000  # of one version, whose columns are held in memory
MEMORY_MAX = "1GB"  # of comparing larger ones
Locate = Callable[[Mapping[str, frozenset[str]]], list[InputPlace]]
Describe = Callable[[pa.Table, Origin, int], Iterator[Violation]]
R = TypeVar("R", bound=Rule)


class RepeatedRows(OmnigraphError):
    """Rows of a type without a key are given more than once in a bulk load."""

    code, kind = "repeated_rows", Kind.INVALID
    default_help = (
        "Give each id once, give the type a @key, or use engine='local', where later rows win."
    )


@frozen
class Touched:
    """A type with new rows: its version as it was, and as it would be."""

    kind: NodeOrEdgeType
    base: TableVersion
    after: TableVersion
    repeatable: bool  # whether an id may be repeated at all
    changed: RowAddresses = NO_ROWS  # stored rows that new ones replace
    removed: RowAddresses = NO_ROWS  # stored rows that none replaces

    @property
    def new_rows(self) -> int:
        """The number of rows that were written, unless they replace all."""
        return self.after.rows - self.base.rows + len(self.changed) + len(self.removed)


class Judge(Protocol):
    """Runs SQL over columns of table versions."""

    def view(self, version: TableVersion, columns: Sequence[TextColumn]) -> str:
        """Columns as strings, with `addr` and `fresh`, under a name."""
        ...

    def listed(self, ids: list[str]) -> str:
        """Some ids, under a name."""
        ...

    def rows(self, query: str) -> pa.Table:
        """The result of a query."""
        ...

    def close(self) -> None:
        """Remove its temporary files."""
        ...


@frozen
class Broken:
    """The violations of a rule: a query for all of them, and the messages for some."""

    query: str
    by: str  # the column whose smallest values are reported first
    tell: Describe
    table_id: str | None = None  # of the offending rows of the input, by their column `id`


@dataclass(slots=True)
class InProcess:
    """DuckDB, over columns read by this process: those of many rows are put into a file, so that memory is bounded."""

    _views: int = 0
    _duckdb: Any = None
    _folder: tempfile.TemporaryDirectory[str] | None = None

    def view(self, version: TableVersion, columns: Sequence[TextColumn]) -> str:
        if version.rows <= HELD_ROWS_MAX:
            return self._named(version.table(columns))
        given = self._named(version.reader(columns))
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="omnigraph-columns-")
            file = Path(self._folder.name, "columns.duckdb")
            self._duckdb.execute(f"SET memory_limit = '{MEMORY_MAX}'")
            self._duckdb.execute(f"SET temp_directory = '{self._folder.name}'")
            self._duckdb.execute(f"ATTACH '{file}' AS on_disk")
        self._duckdb.execute(f"CREATE TABLE on_disk.{given} AS SELECT * FROM {given}")
        self._duckdb.unregister(given)
        return f"on_disk.{given}"

    def listed(self, ids: list[str]) -> str:
        return self._named(pa.table({"id": pa.array(ids, pa.string())}))

    def _named(self, table: pa.Table | pa.RecordBatchReader) -> str:
        import duckdb

        self._duckdb = self._duckdb or duckdb.connect()
        self._views += 1
        name = f"view_{self._views}"
        self._duckdb.register(name, table)
        return name

    def rows(self, query: str) -> pa.Table:
        return self._duckdb.sql(query).to_arrow_table()

    def close(self) -> None:
        if self._folder is not None:
            self._duckdb.close()
            self._folder.cleanup()


@dataclass(slots=True)
class OnSpark:
    """Spark, over columns read by tasks."""

    session: SparkSession

    def view(self, version: TableVersion, columns: Sequence[TextColumn]) -> str:
        return self._named(version.frame(self.session, columns))

    def listed(self, ids: list[str]) -> str:
        return self._named(self.session.createDataFrame([(name,) for name in ids], "id string"))

    def _named(self, frame: DataFrame) -> str:
        name = f"omnigraph_{secrets.token_hex(8)}"
        frame.createOrReplaceTempView(name)
        return name

    def rows(self, query: str) -> pa.Table:
        return arrow_of(self.session.sql(query))

    def close(self) -> None:
        """Views are Spark's, which forgets them with the session."""


@frozen
class Verification:
    """The input of the rules."""

    judge: Judge
    snapshot: Snapshot
    mode: Mode
    touched: Mapping[str, Touched]
    inner: Mapping[str, frozenset[str]] = field(default_factory=dict)  # ids repeated within blocks
    values: Mapping[str, Sequence[Violation]] = field(default_factory=dict)
    limit: int = MANY  # violations of one rule that are looked for

    def version(self, kind: NodeOrEdgeType) -> TableVersion:
        """The rows of a type as they would be."""
        known = self.touched.get(kind.table_id)
        return known.after if known is not None else self.stored(kind)

    def stored(self, kind: NodeOrEdgeType) -> TableVersion:
        return TableVersion.of(self.snapshot.root, self.snapshot.table_of(kind))


def judge_for(session: SparkSession | None, touched: Iterable[Touched], rows_max: int) -> Judge:
    """The driver alone for few rows, or without a session."""
    rows = sum(one.after.rows + one.base.rows for one in touched)
    return InProcess() if session is None or rows <= rows_max else OnSpark(session)


def verify(case: Verification, locate: Locate) -> list[list[Violation]]:
    """The violations, by section: ids, then values, unique groups, ends, removed nodes, cardinality."""
    by_table = _duplicates_by_table(case)
    return [
        *_ids(case, by_table, locate),
        *(
            [violation for broken in section for violation in _first_of(case, broken, locate)]
            for section in _sections(case, by_table)
        ),
    ]


def counts_hold(case: Verification) -> bool:
    """Whether every source has the required number of edges, given that all rows count."""
    rows = {table: _effective(case, touched, None) for table, touched in case.touched.items()}
    found = _all(_miscounted(case, rule, rows) for rule in _rules(case, EdgesPerSource))
    return not any(case.judge.rows(f"{broken.query} LIMIT 1").num_rows for broken in found)


def broken_rules(case: Verification) -> Iterator[Broken]:
    """Violations by rows that share no ids."""
    for section in _sections(case, _duplicates_by_table(case)):
        yield from section


def _sections(case: Verification, by_table: Mapping[str, DuplicateIds]) -> list[Iterator[Broken]]:
    """The rules of all touched types, in the order of `validate.CHECKS`."""
    rows = {
        table: _effective(case, touched, by_table.get(table))
        for table, touched in case.touched.items()
    }
    nodes: dict[str, str] = {}
    return [
        _all(_unique(case, rule, rows) for rule in _rules(case, Unique)),
        _all(_dangling(case, rule, rows, nodes) for rule in _rules(case, Endpoint)),
        _orphans(case),
        _all(_miscounted(case, rule, rows) for rule in _rules(case, EdgesPerSource)),
    ]


def _all(found: Iterable[Iterator[Broken]]) -> Iterator[Broken]:
    return (broken for part in found for broken in part)


def _rules(case: Verification, sort: type[R]) -> Iterator[R]:
    for touched in case.touched.values():
        for rule in rules_between(touched.kind, case.snapshot.catalog):
            if isinstance(rule, sort):
                yield rule


def _first_of(case: Verification, broken: Broken, locate: Locate) -> list[Violation]:
    first = case.judge.rows(f"{broken.query} ORDER BY {broken.by} LIMIT {case.limit}")
    if not first.num_rows:
        return []
    where = NOWHERE
    if broken.table_id is not None:
        ids = first["id"].to_pylist()
        places = _by_id(locate({broken.table_id: frozenset(ids)})).get(broken.table_id, {})
        where = origin_of([places.get(i, [nowhere(broken.table_id, i)])[0] for i in ids])
    return list(broken.tell(first, where, case.limit))


# --- ids ---------------------------------------------------------------------------------------------------------


@frozen
class DuplicateIds:
    """Duplicate ids of one table: all of them as a query, and the first of each kind."""

    ids: str  # a view of all ids
    shared: str  # a query: id, rows_n, new_n
    repeated: frozenset[str]
    existing: frozenset[str]


def _duplicates_by_table(case: Verification) -> dict[str, DuplicateIds]:
    found = {table: _duplicates(case, touched) for table, touched in case.touched.items()}
    return {table: duplicates for table, duplicates in found.items() if duplicates is not None}


def _duplicates(case: Verification, touched: Touched) -> DuplicateIds | None:
    inner = case.inner.get(touched.kind.table_id, frozenset())
    if not touched.repeatable and not inner:
        return None
    ids = case.judge.view(touched.after, plain("id"))
    shared = (
        f"SELECT id, count(*) AS rows_n, sum(CASE WHEN fresh THEN 1 ELSE 0 END) AS new_n "
        f"FROM {ids} GROUP BY id HAVING count(*) > 1"
    )
    if not inner and not case.judge.rows(f"{shared} LIMIT 1").num_rows:
        return None
    again = _first(case, f"SELECT id FROM ({shared}) s WHERE new_n > 1")
    there = _first(case, f"SELECT id FROM ({shared}) s WHERE new_n < rows_n")
    again |= inner
    if touched.kind.key is None and case.mode is Mode.MERGE and again:
        first = min(again)
        raise RepeatedRows(
            f"{touched.kind.name} {first!r} is given more than once",
            details={"type": touched.kind.name, "ids": sorted(again)},
        )
    return DuplicateIds(ids, shared, again, there)


def _first(case: Verification, query: str) -> frozenset[str]:
    return _named(case, f"{query} ORDER BY id LIMIT {case.limit}")


def _named(case: Verification, query: str) -> frozenset[str]:
    return frozenset(case.judge.rows(query)["id"].to_pylist())


def _ids(
    case: Verification, by_table: Mapping[str, DuplicateIds], locate: Locate
) -> tuple[list[Violation], list[Violation]]:
    """Duplicate rows and existing rows; and the invalid values of the others."""
    wanted = {
        table: t.repeated | t.existing | _suspects(case, table, t) for table, t in by_table.items()
    }
    places = _by_id(locate(wanted)) if wanted else {}
    found: list[Violation] = []
    values: list[Violation] = []
    for table, touched in case.touched.items():
        duplicates = by_table.get(table)
        broken = list(case.values.get(table, ()))
        if duplicates is not None:
            there = places.get(table, {})
            found += _id_violations(touched.kind, there, duplicates, case.limit)
            broken = [v for v in broken if _counts(v, there, duplicates)]
        values += broken[:MANY]
    return found, values


def _suspects(case: Verification, table: str, duplicates: DuplicateIds) -> frozenset[str]:
    """Duplicate ids with invalid values."""
    ids = {v.id for v in case.values.get(table, ()) if v.id is not None}
    if not ids:
        return frozenset()
    wanted = case.judge.listed(sorted(ids))
    query = f"SELECT s.id AS id FROM ({duplicates.shared}) s JOIN {wanted} w ON s.id = w.id"
    return _named(case, query)


def _by_id(places: list[InputPlace]) -> dict[str, dict[str, list[InputPlace]]]:
    found: dict[str, dict[str, list[InputPlace]]] = {}
    for place in sorted(places, key=lambda p: (p.split, p.row)):
        found.setdefault(place.table_id, {}).setdefault(place.id, []).append(place)
    return found


def _id_violations(
    kind: NodeOrEdgeType, places: dict[str, list[InputPlace]], duplicates: DuplicateIds, limit: int
) -> Iterator[Violation]:
    def at(name: str) -> list[InputPlace]:
        return places.get(name) or [nowhere(kind.table_id, name)] * 2

    again = [place for name in sorted(duplicates.repeated) for place in at(name)[1:]]
    there = [place for name in sorted(duplicates.existing) for place in at(name)[:1]]
    for rows, tell in ((again, repeated_ids), (there, existing_ids)):
        if rows:
            ids = pa.array([p.id for p in rows], pa.string())
            yield from tell(ids, pa.array(np.ones(len(rows), bool)), kind, origin_of(rows), limit)


def nowhere(table_id: str, name: str) -> InputPlace:
    """A placeholder for a row without a place: rows of a DataFrame are known by their ids alone."""
    return InputPlace(table_id, name, 0, 0, None, None)


def origin_of(places: Sequence[InputPlace]) -> Origin:
    """The origins of rows, one by one."""
    lines = pa.array([p.line for p in places], pa.int64())
    return Origin(None, lines, pa.array([p.file for p in places], pa.string()))


def _counts(
    violation: Violation, places: dict[str, list[InputPlace]], duplicates: DuplicateIds
) -> bool:
    """Whether the row of a violation counts: the first of its id, and a new one."""
    there = places.get(violation.id or "")
    if not there:
        return True
    first = (there[0].file, there[0].line)
    return violation.id not in duplicates.existing and (violation.file, violation.line) == first


# --- rows that count -----------------------------------------------------------------------------------------------

Rows = Callable[[Sequence[TextColumn]], str]


def _effective(case: Verification, touched: Touched, duplicates: DuplicateIds | None) -> Rows:
    """Columns of the final state, without rows refused for their ids, as a source for queries."""

    def read(columns: Sequence[TextColumn]) -> str:
        rows = case.judge.view(touched.after, columns)
        if duplicates is None:
            return rows
        ids, shared = duplicates.ids, duplicates.shared
        dropped = (
            f"SELECT i.addr FROM {ids} i JOIN ({shared}) s ON i.id = s.id JOIN "
            f"(SELECT id, min(addr) AS first_addr FROM {ids} WHERE fresh GROUP BY id) f ON i.id = f.id "
            f"WHERE i.fresh AND (s.new_n < s.rows_n OR i.addr > f.first_addr)"
        )
        kept = f"NOT EXISTS (SELECT 1 FROM ({dropped}) d WHERE d.addr = r.addr)"
        return f"(SELECT r.* FROM {rows} r WHERE {kept})"

    return read


# --- unique groups -------------------------------------------------------------------------------------------------


def _unique(case: Verification, rule: Unique, rows: Mapping[str, Rows]) -> Iterator[Broken]:
    table = rule.kind.table_id
    read = rows[table]([*plain("id"), TextColumn("value", rule.columns)])
    read = f"(SELECT * FROM {read} u WHERE value IS NOT NULL)"
    shared = f"SELECT value FROM {read} v GROUP BY value HAVING count(*) > 1 LIMIT 1"
    if case.judge.rows(shared).num_rows:
        tell = partial(_tell_held, rule, case.touched[table].after)
        yield from (Broken(query, "id", tell) for query in _holders(read))


def _holders(read: str) -> Iterator[str]:
    """Of each value in several new rows, the second; and new rows with the value of a stored one."""
    by_id = "OVER (PARTITION BY value ORDER BY id)"
    ranked = (
        f"SELECT id, addr, row_number() {by_id} AS place, lag(id) {by_id} AS holder "
        f"FROM {read} n WHERE fresh"
    )
    yield f"SELECT id, addr, holder FROM ({ranked}) p WHERE place = 2"
    yield (
        f"SELECT n.id AS id, n.addr AS addr, s.id AS holder FROM {read} n JOIN {read} s "
        f"ON n.value = s.value WHERE n.fresh AND NOT s.fresh"
    )


def _tell_held(
    rule: Unique, version: TableVersion, rows: pa.Table, _: Origin, limit: int
) -> Iterator[Violation]:
    columns = list(dict.fromkeys(["id", *rule.columns]))
    addresses = rows["addr"].cast(pa.uint64()).combine_chunks()
    values = open_table(version.uri, version.ref).take(addresses, columns)
    yield from rule.duplicates(values.append_column("holder", rows["holder"]), limit)


# --- edges and their nodes -------------------------------------------------------------------------------------------


def _dangling(
    case: Verification, rule: Endpoint, rows: Mapping[str, Rows], nodes: dict[str, str]
) -> Iterator[Broken]:
    table = rule.kind.table_id
    if rule.node.name not in nodes:
        nodes[rule.node.name] = case.judge.view(case.version(rule.node), plain("id"))
    ends = rows[table](plain("id", rule.side))
    lost = f"{_lost(ends, rule.side, nodes[rule.node.name])} AND e.fresh"
    yield Broken(lost, "id", partial(_tell_dangling, rule), table)


def _lost(edges: str, side: str, nodes: str) -> str:
    """Edges whose end on a side is not among the nodes."""
    return (
        f"SELECT e.id AS id, e.{side} AS {side} FROM {edges} e WHERE NOT EXISTS "
        f"(SELECT 1 FROM {nodes} k WHERE k.id = e.{side})"
    )


def _tell_dangling(
    rule: Endpoint, rows: pa.Table, origin: Origin, limit: int
) -> Iterator[Violation]:
    yield from rule.dangling(rows, pa.array([True] * rows.num_rows), origin, limit)


def _orphans(case: Verification) -> Iterator[Broken]:
    """Edges that stay although their node is removed: only if a node type is replaced as a whole."""
    catalog = case.snapshot.catalog
    for touched in case.touched.values() if case.mode is Mode.OVERWRITE else ():
        node = touched.kind
        if not isinstance(node, NodeType):
            continue
        known = case.judge.view(touched.after, plain("id"))
        for edge in catalog.incident_edges(node.name):
            if edge.table_id not in case.touched:
                stored = case.judge.view(case.stored(edge), plain("id", "src", "dst"))
                for rule in rules_between(edge, catalog):
                    if isinstance(rule, Endpoint) and rule.node.name == node.name:
                        lost = _lost(stored, rule.side, known)
                        yield Broken(lost, "id", partial(_tell_orphaned, rule))


def _tell_orphaned(rule: Endpoint, rows: pa.Table, _: Origin, limit: int) -> Iterator[Violation]:
    yield from rule.orphaned(rows, limit)


# --- edges per source ------------------------------------------------------------------------------------------------


def _miscounted(
    case: Verification, rule: EdgesPerSource, rows: Mapping[str, Rows]
) -> Iterator[Broken]:
    """Sources with too few or too many edges, among those that have or had one."""
    table = rule.kind.table_id
    after = rows[table](plain("src"))
    before = case.judge.view(case.touched[table].base, plain("src"))
    counted = (
        f"SELECT src, CAST(sum(n) AS BIGINT) AS edges FROM "
        f"(SELECT src, 1 AS n FROM {after} a UNION ALL SELECT src, 0 AS n FROM {before} b) c GROUP BY src"
    )
    low, high = rule.minimum, rule.maximum
    wrong = f"edges < {low}" + (f" OR edges > {high}" if high is not None else "")
    query = f"SELECT src, edges FROM ({counted}) t WHERE ({wrong})"
    node = case.snapshot.catalog.nodes[rule.kind.from_type]
    there = case.touched.get(node.table_id)
    if there is not None and (case.mode is Mode.OVERWRITE or len(there.removed)):
        known = case.judge.view(case.version(node), plain("id"))
        query += f" AND EXISTS (SELECT 1 FROM {known} k WHERE k.id = t.src)"
    yield Broken(query, "src", partial(_tell_miscounted, rule))


def _tell_miscounted(
    rule: EdgesPerSource, rows: pa.Table, _: Origin, limit: int
) -> Iterator[Violation]:
    yield from rule.outside(rows.rename_columns(["src", "count"]), limit)
