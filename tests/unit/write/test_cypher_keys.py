"""Writes whose rows name nodes by their keys: they look those up, rest on those, and miss nothing."""

from __future__ import annotations

from typing import Any

import pytest

import omnigraph
from tests.unit.write.test_cypher import ages, graph, rested_on

__all__ = ["graph"]

BY_KEY = (
    "UNWIND [{name: 'Ada', age: 1}, {name: 'gone', age: 2}] AS r MATCH (p:Person {name: r.name}) SET p.age = r.age",
    "UNWIND ['Ada', 'gone'] AS n MATCH (p:Person) WHERE p.name = n AND p.age > 3 SET p.age = 5",
    "UNWIND ['Ada', 'gone'] AS n OPTIONAL MATCH (p:Person {name: n}) SET p.age = 5",
    "UNWIND ['Ada', 'gone'] AS n MERGE (p:Person {name: n}) ON CREATE SET p.age = 3 ON MATCH SET p.age = 4",
    "UNWIND [['Ada', 'Bob']] AS r MATCH (a:Person {name: r[0]}) MATCH (b:Person {name: r[1]}) CREATE (a)-[:Knows]->(b)",
    "UNWIND ['Ada', 'gone'] AS n MATCH (p:Person {name: n})-[k:Knows]->(q) SET k.since = 5",
    "UNWIND ['Ada', 'gone'] AS n MATCH (p:Person {name: n}) DETACH DELETE p",
    "WITH 'Ada' AS n MATCH (p:Person {name: n}) SET p.age = 8",
    "UNWIND ['Ada', 'gone'] AS n WITH n WHERE NOT EXISTS { MATCH (p:Person {name: n}) } CREATE (:Note {text: n})",
    "MATCH (n:Note) SET n.text = 'x' WITH 'Ada' AS m MATCH (p:Person {name: m}) SET p.age = 9",
)


@pytest.mark.parametrize("text", BY_KEY)
def test_rows_that_name_nodes_by_their_keys_rest_on_those_alone(graph: Any, text: str) -> None:
    graph.mutate("UNWIND range(1, 50) AS i CREATE (:Person {name: 'p' + toString(i), age: 1})")
    if "Note) SET" not in text:
        assert rested_on(graph, text) <= {False}
    people = graph.repository.schema(graph.snapshot().commit.schema).catalog.nodes["Person"]
    assert not reads_of(graph, text)[people.table_id].everything


def reads_of(graph: Any, text: str) -> Any:
    plans: list[Any] = []
    verb = graph.mutation(text, None, None, "cypher")

    def seen(txn: Any) -> Any:
        plans.append(verb(txn))
        return plans[-1]

    graph.publish(seen, dry_run=True)
    return plans[-1].reads


def racing(graph: Any, text: str, other: str, params: Any = None) -> int:
    """How often a write runs that is overtaken by another one when it has run for the first time."""
    runs: list[int] = []
    rival = omnigraph.open(graph.uri)
    verb = graph.mutation(text, params, None, "cypher")

    def overtaken(txn: Any) -> Any:
        plan = verb(txn)
        runs.append(txn.snapshot.commit.number)
        if len(runs) == 1:
            rival.mutate(other, language="cypher")
        return plan

    graph.publish(overtaken)
    return len(runs)


UPDATE = "UNWIND $rows AS r MATCH (p:Person {name: r.name}) SET p.age = coalesce(p.age, 0) + r.age"
PUT = "UNWIND $rows AS r MERGE (p:Person {name: r.name}) ON MATCH SET p.age = p.age + r.age ON CREATE SET p.age = r.age"
ROWS = [{"name": "Ada", "age": 1}, {"name": "Zoe", "age": 2}]


@pytest.mark.parametrize("text", [UPDATE, PUT])
@pytest.mark.parametrize(
    "other",
    [
        "MATCH (p:Person {name: 'Bob'}) SET p.age = 99",
        "CREATE (:Person {name: 'Yan'})",
        "MATCH (p:Person {name: 'Bob'}) DETACH DELETE p",
        "CREATE (:Note {text: 'x'})",
    ],
)
def test_a_write_of_other_keys_does_not_make_it_run_again(
    graph: Any, text: str, other: str
) -> None:
    assert racing(graph, text, other, {"rows": ROWS}) == 1
    assert ages(graph)["Ada"] == 37
    assert ages(graph).get("Zoe") == (2 if text is PUT else None)


@pytest.mark.parametrize(
    ("text", "other", "wanted"),
    [
        (UPDATE, "MATCH (p:Person {name: 'Ada'}) SET p.age = 50", {"Ada": 51}),
        (UPDATE, "CREATE (:Person {name: 'Zoe', age: 7})", {"Ada": 37, "Zoe": 9}),
        (UPDATE, "MATCH (p:Person {name: 'Ada'}) DETACH DELETE p", {}),
        (PUT, "MATCH (p:Person {name: 'Ada'}) SET p.age = 50", {"Ada": 51, "Zoe": 2}),
        (PUT, "CREATE (:Person {name: 'Zoe', age: 7})", {"Ada": 37, "Zoe": 9}),
        (PUT, "MATCH (p:Person {name: 'Ada'}) DETACH DELETE p", {"Ada": 1, "Zoe": 2}),
    ],
)
def test_a_write_of_the_same_keys_is_seen(
    graph: Any, text: str, other: str, wanted: dict[str, int]
) -> None:
    assert racing(graph, text, other, {"rows": ROWS}) == 2
    assert {k: v for k, v in ages(graph).items() if k != "Bob"} == wanted


def test_nodes_are_looked_up_by_their_keys_and_not_scanned(graph: Any) -> None:
    graph.load({"Person": [{"name": f"p{i}", "age": i % 100} for i in range(5_000)]})
    rows = [{"name": f"p{i}"} for i in (7, 3, 7, 9_999)] + [{"name": None}]
    text = "UNWIND $rows AS r MATCH (p:Person {name: r.name}) WHERE p.age < 50 RETURN p.name AS name, p.age AS age"
    found = graph.query(text, {"rows": rows}, explain=True)
    assert sorted(row["name"] for row in found) == ["p3", "p7", "p7"]
    (scan,) = [line for line in str(found.explain()).splitlines() if "NodeScan" in line]
    assert "by the ids of rows" in scan
    assert measured(found.explain().to_json(), "NodeScan")["rows"] == 2
    done = graph.mutate(
        "UNWIND $rows AS r MATCH (p:Person {name: r.name}) SET p.age = 99 RETURN count(*) AS n",
        {"rows": rows},
    )
    assert done.rows == [{"n": 3}]


def measured(plan: Any, name: str) -> Any:
    """The figures of the first operator of a name."""
    if isinstance(plan, dict):
        if plan.get("name") == name or plan.get("operator") == name:
            return plan
        plan = list(plan.values())
    found = (measured(part, name) for part in plan) if isinstance(plan, list) else ()
    return next((part for part in found if part is not None), None)


def test_keys_of_several_properties_and_of_numbers() -> None:
    schema = """
    interface Numbered { number: I64 }
    node Seat { row: String number: I32 note: String? @key(row, number) }
    node Ticket implements Numbered { number: I64 @key note: String? }
    node Coupon implements Numbered { number: I64 @key note: String? }
    """
    g = omnigraph.init("memory://cypher-keys-of-several", schema=schema)
    g.load(
        {
            "Seat": [{"row": r, "number": n} for r in "abcdefgh" for n in range(1, 11)],
            "Ticket": [{"number": n} for n in range(100)],
            "Coupon": [{"number": n} for n in range(50, 150)],
        }
    )
    seats = "UNWIND $rows AS r MATCH (s:Seat {row: r.row, number: r.number}) SET s.note = 'taken'"
    rows = [{"row": "a", "number": 3}, {"row": "c", "number": 99}, {"row": "h", "number": 10}]
    assert g.mutate(seats, {"rows": rows}).affected_nodes == 2
    assert (
        racing(g, seats, "MATCH (s:Seat {row: 'b', number: 1}) SET s.note = 'x'", {"rows": rows})
        == 1
    )
    assert (
        racing(g, seats, "MATCH (s:Seat {row: 'a', number: 3}) SET s.note = 'x'", {"rows": rows})
        == 2
    )
    both = "UNWIND [1, 60, 120, 999] AS n MATCH (t:Numbered {number: n}) SET t.note = 'seen' RETURN count(*) AS n"
    assert g.mutate(both).rows == [{"n": 4}]
    found = g.query("MATCH (t:Numbered) WHERE t.note IS NOT NULL RETURN t.number AS n ORDER BY n")
    assert [row["n"] for row in found] == [1, 60, 60, 120]
    floats = "UNWIND [1.0, 2.5] AS x MATCH (t:Ticket {number: x}) RETURN t.number AS n"
    assert [row["n"] for row in g.query(floats)] == [1]
