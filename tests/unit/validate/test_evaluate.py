"""The evaluator as a whole: order, bounds, messages, what a verdict rests on, and what it costs."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.core.plan import CreateIndex, PublishPlan, Reads
from omnigraph.core.txn import WriteTxn
from omnigraph.errors import Kind, Violation
from omnigraph.model.tokens import endpoint_tokens, id_tokens, unique_tokens
from omnigraph.storage import metrics
from omnigraph.storage.tables import IndexEdit, Table, TableRef, TableStore
from omnigraph.validate import CHECKS, Report, ValidationFailed, evaluate, require_valid
from omnigraph.validate.evaluate import _until_it_looks, report_of
from omnigraph.validate.findings import Finding, Looked, plain
from omnigraph.write.resolve import resolve
from tests.support.writing import Bench, Rows, bench, incoming

SCHEMA = """
node Person { name: String @key  email: String? @unique  age: I32? @range(age, 0..120) }
node Team { code: String @key }
edge Joins: Person -> Team @card(0..3) { since: I32?  @unique(src, dst) }
"""


def report(graph: Bench, limit: int = 100, /, **rows: Rows) -> Report:
    """What the checks say to a merge of these rows."""
    txn = graph.txn()
    given = [incoming(txn.catalog, name, part, f"{name}.jsonl") for name, part in rows.items()]
    found = resolve(txn, given)
    return evaluate(found.changes, txn, found=found.violations, limit=limit)


@pytest.fixture
def graph() -> Bench:
    made = bench(SCHEMA)
    made.put(Person=[{"name": "Ada", "email": "a@x"}], Team=[{"code": "T"}])
    return made


def test_the_checks_run_in_a_fixed_order() -> None:
    assert [check.__name__ for check in CHECKS] == [
        "check_values",
        "check_keys",
        "check_unique",
        "check_endpoints",
        "check_orphans",
        "check_cardinality",
    ]


def test_violations_are_ordered_by_check_then_type_then_id(graph: Bench) -> None:
    rows: Rows = [
        {"name": "z", "age": 200},
        {"name": "b", "email": "a@x"},
        {"name": "a", "age": -1},
    ]
    found = report(graph, Person=rows, Joins=[{"src": "q", "dst": "T"}])
    assert [(v.rule, v.id if v.type_name == "Person" else None) for v in found.violations] == [
        ("range", "a"),
        ("range", "z"),
        ("unique", "b"),
        ("endpoint", None),
    ]


def test_the_order_of_the_input_does_not_change_the_report(graph: Bench) -> None:
    rows = [{"name": f"p{i}", "age": 200 + i, "email": "a@x"} for i in range(20)]
    one = [v.message for v in report(graph, Person=rows).violations]
    other = [v.message for v in report(graph, Person=rows[::-1]).violations]
    assert [m for m in one if "@range" in m] == [m for m in other if "@range" in m]


def test_the_number_of_violations_is_bounded(graph: Bench) -> None:
    rows = [{"name": f"p{i:03d}", "age": 200} for i in range(50)]
    found = report(graph, 10, Person=rows)
    assert [v.id for v in found.violations] == [f"p{i:03d}" for i in range(10)]
    assert found.more
    assert not report(graph, 50, Person=rows).more


def test_a_violation_names_everything_it_knows(graph: Bench) -> None:
    [found] = report(graph, Person=[{"name": "x"}, {"name": "y", "age": 121}]).violations
    assert found.to_json() == {
        "rule": "range",
        "type": "Person",
        "id": "y",
        "property": "age",
        "value": 121,
        "message": "Person.age of 'y' is 121, above the maximum 120 of its @range",
        "file": "Person.jsonl",
        "line": 2,
    }


def test_the_error_names_the_first_violations_and_how_many_follow(graph: Bench) -> None:
    found = report(graph, Person=[{"name": f"p{i}", "age": 200} for i in range(5)])
    with pytest.raises(ValidationFailed) as caught:
        found.raise_violations()
    error = caught.value
    assert error.kind is Kind.INVALID
    assert error.message.count("maximum 120") == 3
    assert error.message.endswith("and 2 more")
    assert "(Person.jsonl, line 1)" in error.message
    assert len(error.details["violations"]) == 5


def test_a_valid_write_gives_what_its_verdict_rests_on(graph: Bench) -> None:
    txn = graph.txn()
    given = incoming(txn.catalog, "Joins", [{"src": "Ada", "dst": "T"}])
    reads = require_valid(resolve(txn, [given]).changes, txn)
    person, team, joins = (graph.kind(n).table_id for n in ("Person", "Team", "Joins"))
    assert set(reads) == {person, team, joins}
    assert reads[person].tokens.tolist() == id_tokens(pa.array(["Ada"])).tolist()
    pair = unique_tokens(("dst", "src"), [pa.array(["T"]), pa.array(["Ada"])])
    source = endpoint_tokens("src", pa.array(["Ada"]))
    assert set(reads[joins].tokens.tolist()) == {*pair.tolist(), *source.tolist()}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (dt.datetime(2024, 5, 31, 12, 0, 0, 7000, tzinfo=dt.UTC), "2024-05-31T12:00:00.007Z"),
        (dt.date(2024, 5, 31), "2024-05-31"),
        (math.nan, "nan"),
        ([1.5, math.inf], [1.5, "inf"]),
        (b"abc", "3 bytes"),
        ("x" * 5_000, "x" * 997 + "..."),
        ([1.0] * 1_536, [1.0] * 32),
        ("text", "text"),
        (None, None),
    ],
)
def test_values_in_a_report_are_json_and_bounded(value: Any, expected: Any) -> None:
    assert plain(value) == expected
    json.dumps(plain(value), allow_nan=False)


# --- cost --------------------------------------------------------------------------------------------------------


class Watched:
    """A table store that notes which tables are asked for."""

    def __init__(self, tables: TableStore) -> None:
        self._tables = tables
        self.asked: set[str] = set()

    def open(self, ref: TableRef) -> Table:
        self.asked.add(ref.path)
        return self._tables.open(ref)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tables, name)


def watched(txn: WriteTxn) -> tuple[WriteTxn, Watched]:
    tables = Watched(txn.snapshot.tables)
    return replace(txn, snapshot=replace(txn.snapshot, tables=tables)), tables


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ('insert Joins { from: "Ada", to: "T" }', 3),
        ('insert Person { name: "Ada", email: "new@x" }', 1),
        ('insert Team { code: "U" }', 1),
        ('update Person set { age: 3 } where name = "Ada"', 1),
        ('delete Person where name = "Ada"', 2),
        ('delete Team where code = "T"', 2),
    ],
)
def test_a_change_of_one_row_opens_few_tables(graph: Bench, text: str, most: int) -> None:
    txn, tables = watched(graph.txn())
    graph.verb("query m() { " + text + " }")(txn)
    assert len(tables.asked) <= most, tables.asked


def people_of(count: int) -> Iterator[dict[str, Any]]:
    return ({"name": f"p{i:07d}", "email": f"p{i:07d}@x"} for i in range(count))


def indexed(count: int) -> Bench:
    """A graph of so many people, each in one team, with the indices maintenance builds."""
    made = bench(SCHEMA)
    people = list(people_of(count))
    joins = [{"src": p["name"], "dst": "T"} for p in people]
    made.put(Person=people, Team=[{"code": "T"}, {"code": "U"}], Joins=joins)
    wanted = {"Person": ["id", "email"], "Team": ["id"], "Joins": ["id", "src", "dst"]}
    actions = tuple(
        CreateIndex(made.kind(name).table_id, tuple(IndexEdit(c, "BTREE") for c in columns))
        for name, columns in wanted.items()
    )
    made.graph.publish(lambda _: PublishPlan(kind="optimize", actions=actions))
    return made


WRITES = (
    'insert Joins { from: "p0000007", to: "U" }',
    'insert Person { name: "p0000005", email: "fresh@x" }',
    'insert Person { name: "p0000005", age: 4 }',
    'update Person set { age: 3 } where name = "p0000003"',
    'delete Joins where from = "p0000002"',
)


def bytes_read(graph: Bench, text: str) -> int:
    """What the verb reads of tables that are warm: the second of two like it."""
    txn, verb = graph.txn(), graph.verb("query m() { " + text + " }")
    verb(txn)
    with metrics.operation("verb") as cost:
        verb(txn)
    return cost.bytes_read


def test_a_change_of_one_row_reads_the_same_in_a_small_and_in_a_large_graph() -> None:
    small, large = indexed(2_000), indexed(100_000)
    for text in WRITES:
        few, many = bytes_read(small, text), bytes_read(large, text)
        assert many <= few + 8_192, f"{text}: {few} bytes of 2,000 rows, {many} of 100,000"


def broken(property: str | None, message: str) -> Violation:
    return Violation("range", "Person", "a", message, property=property)


def test_violations_of_one_row_come_by_property_and_then_by_what_is_said() -> None:
    found = [broken("b", "1"), broken(None, "9"), broken("a", "3"), broken("a", "2")]
    ordered = report_of([found]).violations
    assert [(v.property, v.message) for v in ordered] == [
        (None, "9"),
        ("a", "2"),
        ("a", "3"),
        ("b", "1"),
    ]


def test_a_check_is_run_up_to_where_it_looks_at_a_table() -> None:
    looked = Looked("n1", Reads())
    findings: Iterator[Finding] = iter([broken("a", "1"), looked, broken("a", "2")])
    assert _until_it_looks(findings) == [broken("a", "1"), looked]
    assert list(findings) == [broken("a", "2")], "the rest is found beside the others"
