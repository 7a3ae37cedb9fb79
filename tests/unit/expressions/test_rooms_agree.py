"""A condition selects the same rows wherever it is evaluated.

Random conditions over every type, on rows with NaN, infinities, both zeros, nulls, empty and huge texts and the ends of
every type, are given to each room that filters rows: `match` over columns in memory and over a table left in storage,
`delete … where` over stored rows and over rows staged by the same write, `update … where`, and a merge's view of rows
through another schema. The reference is the evaluator for one row. `tests/pipeline/test_conditions.py` asks Spark.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.core.plan import Append, Remove, Upsert
from omnigraph.core.snapshot import Snapshot
from omnigraph.core.txn import WriteTxn
from omnigraph.errors import OmnigraphError
from omnigraph.expressions.filters import closed
from omnigraph.expressions.scalar import evaluate
from omnigraph.lang import ir
from omnigraph.lang.query import compile_query
from omnigraph.merge.schema_view import Lens, seen_as
from omnigraph.read import SHARED, columns, scan
from tests.support.random_queries import (
    PROPERTIES,
    QueryMaker,
    Scope,
    json_value,
    random_everything,
)
from tests.support.record import record
from tests.support.rings import count

ROWS = 40
UPDATE = "update Every set { f64: %s } where"
PER_GRAPH = 500
CASES = count(100, 10_000)
INDEXED = ("text", "i64", "f64", "f32", "day")
EARLIER = {"i64": "I32", "u64": "U32", "f64": "F32"}  # types of properties that were widened since
# Which values are calculated, and so overflow, is up to the room.
OVERFLOW = "arithmetic_overflow"


def schema(before: bool = False) -> str:
    """The type, and how it was before properties were renamed, widened and added."""
    lines = ["k: String @key"]
    for name, kind in PROPERTIES["Every"].items():
        index = " @index" if name in INDEXED else ""
        if before:
            lines.append(f"old_{name}: {EARLIER.get(name, kind)}?{index}")
        else:
            lines.append(f'{name}: {kind}? @rename_from("old_{name}"){index}')
    return (
        "node Every { "
        + "  ".join([*lines, *([] if before else ["added: I64? @default(7)"])])
        + " }"
    )


def mutation(statement: str, condition: str) -> str:
    return f"query m() {{ {statement} {condition} }}".replace("$n.", "")


class Rooms:
    """One set of rows, in every room."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        rows = random_everything(rng, ROWS)
        self.graph = omnigraph.init(f"memory://rooms-{seed}", schema=schema())
        records = [{n: json_value(v) for n, v in row.items() if v is not None} for row in rows]
        for half in (records[: ROWS // 2], records[ROWS // 2 :]):
            self.graph.load([{"type": "Every", "data": record} for record in half])
        self.graph.optimize()
        self.now = self._snapshot(self.graph)
        self.kind = self.now.catalog.nodes["Every"]
        stored = self.now.table_of(self.kind)
        self.rows = stored.scan(stored.schema.names)
        self.values = [self._row(row) for row in self.rows.to_pylist()]
        self.held_before: set[str] = set()
        self.seen = self._through_another_schema(f"memory://rooms-before-{seed}", records)

    def _snapshot(self, graph: Graph) -> Snapshot:
        return graph._repo.snapshot(graph._repo.head("main").commit)

    def _row(self, row: dict[str, Any]) -> dict[tuple[str, str], Any]:
        return {(ir.ROW, name): value for name, value in row.items()}

    def _through_another_schema(self, root: str, records: list[dict[str, Any]]) -> Snapshot:
        """The same rows as they were stored before the schema changed, as far as the earlier types held them."""
        graph = omnigraph.init(root, schema=schema(before=True))
        fitting = [
            r for r in records if all(_fitted(r.get(n), kind) for n, kind in EARLIER.items())
        ]
        self.held_before = {r["k"] for r in fitting}
        old = [{n if n == "k" else f"old_{n}": v for n, v in r.items()} for r in fitting]
        graph.load([{"type": "Every", "data": record} for record in old])
        before = self._snapshot(graph)
        graph.apply_schema(schema())
        view = seen_as(before, self._snapshot(graph).catalog)
        assert isinstance(view.table_of(view.catalog.nodes["Every"]), Lens)
        return view

    # --- rooms -----------------------------------------------------------------------------------------------------

    def reference(self, condition: str) -> list[str]:
        predicate = self._predicate(condition)
        holding = (row for row in self.values if evaluate(predicate, ir.Bound(), row) is True)
        return sorted(row[ir.ROW, "id"] for row in holding)

    def pattern(self, condition: str) -> list[str]:
        found = self.graph.query(f"match {{ $n: Every {condition} }} return {{ $n.id as k }}").rows
        return sorted(row["k"] for row in found)

    def large_table(self, condition: str) -> list[str]:
        SHARED.clear()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(scan, "LOAD_ROWS_MAX", 0)
            patch.setattr(columns, "LOAD_ROWS_MAX", 0)
            return self.pattern(condition)

    def statement(self, condition: str) -> list[str]:
        return self._deleted(condition, self._txn())

    def staged_rows(self, condition: str) -> list[str]:
        """Half of the rows are stored and replaced, the other half are new."""
        half = self.rows.slice(0, ROWS // 2)
        stored = self._txn().view(self.kind.table_id).scan(["id"])
        replaced = Upsert(self.kind.table_id, half, stored)
        new = Append(self.kind.table_id, self.rows.slice(ROWS // 2))
        return self._deleted(condition, self._txn().plus([replaced, new]))

    def merge_view(self, condition: str) -> list[str]:
        table = self.seen.table_of(self.seen.catalog.nodes["Every"])
        found = table.scan(["id"], closed(self._predicate(condition), ir.Bound()))
        return sorted(found["id"].to_pylist())

    def updated(self, value: str, condition: str) -> list[tuple[str, float | None]]:
        """What an update would give each row it finds."""
        text = mutation(UPDATE % value, condition)
        plan = self.graph.mutation(text)(self._txn())
        found: list[tuple[str, float | None]] = []
        for action in plan.actions:
            assert isinstance(action, Upsert)
            assert isinstance(action.rows, pa.Table)
            made = zip(action.rows["id"].to_pylist(), action.rows["f64"].to_pylist(), strict=True)
            found.extend(made)
        return sorted(found)

    def expected_update(self, value: str, condition: str) -> list[tuple[str, float | None]]:
        text = mutation(UPDATE % value, condition)
        statement = self._statement(text)
        assert isinstance(statement, ir.Update)
        chosen = [r for r in self.values if evaluate(statement.predicate, ir.Bound(), r) is True]
        new = statement.values[0].value
        return sorted((row[ir.ROW, "id"], evaluate(new, ir.Bound(), row)) for row in chosen)

    # --- how -------------------------------------------------------------------------------------------------------

    def _txn(self) -> WriteTxn:
        return WriteTxn(self.now, "main", datetime.now(UTC), self.now.catalog)

    def _deleted(self, condition: str, txn: WriteTxn) -> list[str]:
        text = mutation("delete Every where", condition)
        plan = self.graph.mutation(text)(txn)
        gone = [action.before for action in plan.actions if isinstance(action, Remove)]
        return sorted(
            i for rows in gone if isinstance(rows, pa.Table) for i in rows["id"].to_pylist()
        )

    def _predicate(self, condition: str) -> ir.Expr:
        text = mutation("delete Every where", condition)
        statement = self._statement(text)
        assert isinstance(statement, ir.Delete)
        return statement.predicate

    def _statement(self, text: str) -> ir.Statement:
        body = compile_query(text, self.now.catalog).body
        assert isinstance(body, ir.Mutation)
        return body.statements[0]


def _fitted(value: Any, kind: str) -> bool:
    """Whether an earlier, narrower type held the value, written in JSON, too."""
    if value is None or isinstance(value, str):
        return True
    if kind == "F32":
        return bool(pa.scalar(value, pa.float32()).as_py() == value)
    return bool(abs(value) < 2**31)


def outcome(ask: Callable[..., list[Any]], *args: str) -> list[Any] | str:
    try:
        return ask(*args)
    except OmnigraphError as error:
        return error.code


def cases() -> Iterator[tuple[Rooms, QueryMaker]]:
    for start in range(0, CASES, PER_GRAPH):
        rooms = Rooms(start)
        for i in range(start, min(start + PER_GRAPH, CASES)):
            yield rooms, QueryMaker(random.Random(i))


def test_a_condition_selects_the_same_rows_in_every_room() -> None:
    compared = 0
    for rooms, maker in cases():
        condition = maker.condition_on_every()
        expected = outcome(rooms.reference, condition)
        for room in (rooms.pattern, rooms.large_table, rooms.statement, rooms.staged_rows):
            found = outcome(room, condition)
            if OVERFLOW not in (expected, found):
                assert found == expected, (room.__name__, condition)
                compared += 1
        viewed = outcome(rooms.merge_view, condition)
        if OVERFLOW not in (expected, viewed):
            assert set(viewed) == set(expected) & rooms.held_before, ("merge_view", condition)
        value = new_value(maker)
        wanted = outcome(rooms.expected_update, value, condition)
        updated = outcome(rooms.updated, value, condition)
        if OVERFLOW not in (wanted, updated):
            assert repr(updated) == repr(wanted), (value, condition)
    assert compared > 2 * CASES, "overflow hides too many"
    figures = {"conditions": CASES, "answers compared": compared, "differences": 0}
    record("random conditions: every room and the evaluator of one row", figures)


def new_value(maker: QueryMaker) -> str:
    """A value for an update, of the row as it was."""
    name, kind = maker.rng.choice([("f64", "F64"), ("f32", "F32"), ("i32", "I32"), ("u64", "U64")])
    return f"cast({maker.value(Scope({'n': 'Every'}), f'$n.{name}', kind)} as F64)"


def test_a_large_table_is_filtered_where_it_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    rooms = Rooms(1)
    monkeypatch.setattr(scan, "LOAD_ROWS_MAX", 0)
    SHARED.clear()
    text = "match { $n: Every $n.f64 > 1.0 } return { $n.id as k }"
    assert "scanned in storage" in str(rooms.graph.query(text, explain=True).explain().to_json())


def test_every_kind_of_value_is_met() -> None:
    """The rows hold what the rules are about."""
    rows = [row for seed in (1, 2) for row in random_everything(random.Random(seed), ROWS)]
    for name in ("f32", "f64"):
        held = [row[name] for row in rows if row[name] is not None]
        assert any(map(math.isnan, held))
        assert {math.inf, -math.inf, 0.0} <= set(held)
        assert any(v == 0 and math.copysign(1, v) < 0 for v in held)
    texts = [row["text"] for row in rows]
    assert "" in texts
    assert None in texts
    assert max(len(text or "") for text in texts) >= 200_000
    days = {row["day"] for row in rows} | {d for row in rows for d in row["days"] or []}
    assert {datetime.min.date(), datetime.max.date()} <= days
