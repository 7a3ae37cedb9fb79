"""Procedures about schema and history: what they tell, in the middle of queries, at the state the query reads."""

from __future__ import annotations

import random
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import OmnigraphError
from omnigraph.guarded import GuardedGraph
from omnigraph.lang.cypher import metadata
from omnigraph.policy.guard import Guard
from omnigraph.procedures import ROWS_MAX, STORED
from tests.server.world import policy

SCHEMA = """
interface Named { name: String }
node Person implements Named { name: String @key  age: I64?  photo: Blob? }
node City implements Named { name: String @key }
node Salary { of: String @key  amount: I64 }
edge Knows: Person -> Person { since: I64? }
edge LivesIn: Person -> City @label("LIVES_IN")
edge Earns: Person -> Salary
"""


@pytest.fixture
def graph() -> Graph:
    g = omnigraph.init(f"memory://procedures{random.getrandbits(60)}", schema=SCHEMA)
    people: dict[str, Any] = {
        "Person": [{"name": "Ada", "age": 36}, {"name": "Bob"}],
        "City": [{"name": "London"}],
        "Salary": [{"of": "Ada", "amount": 10}],
        "LivesIn": [{"id": "l1", "from": "Ada", "to": "London"}],
    }
    g.load(people, actor="eve", message="people")
    g.mutate("MATCH (p:Person {name: 'Ada'}) SET p.age = 37", actor="max", message="birthday")
    g.mutate("MATCH (s:Salary) SET s.amount = 11", actor="max")
    return g


def rows(graph: Graph, text: str, **options: Any) -> list[dict[str, Any]]:
    return graph.query(text, **options).rows


# --- the schema ------------------------------------------------------------------------------------------------------


def test_the_schema_is_told_as_rows(graph: Graph) -> None:
    text = """
        CALL omnigraph.schema.types() YIELD name, kind WITH kind, name ORDER BY name
        RETURN kind, collect(name) AS names
    """
    found = {row["kind"]: row["names"] for row in rows(graph, text)}
    assert found == {
        "node": ["City", "Person", "Salary"],
        "relationship": ["Earns", "Knows", "LivesIn"],
        "interface": ["Named"],
    }
    assert [r["label"] for r in rows(graph, "CALL db.labels()")] == [
        "City",
        "Named",
        "Person",
        "Salary",
    ]
    kinds = "CALL db.relationshipTypes() YIELD relationshipType AS t RETURN collect(t) AS ts"
    assert rows(graph, kinds) == [{"ts": ["Earns", "Knows", "LIVES_IN"]}]
    keys = "CALL db.propertyKeys() YIELD propertyKey AS k WHERE k STARTS WITH 'a' RETURN k"
    assert [row["k"] for row in rows(graph, keys)] == ["age", "amount"]
    key = "CALL omnigraph.schema.nodes() YIELD label, key WHERE label = 'Person' RETURN key"
    assert rows(graph, key) == [{"key": ["name"]}]
    text = """
        CALL omnigraph.schema.properties() YIELD owner, property, nullable WHERE NOT nullable
        RETURN owner, property
    """
    assert {(r["owner"], r["property"]) for r in rows(graph, text)} == {
        ("City", "name"),
        ("Person", "name"),
        ("Salary", "amount"),
        ("Salary", "of"),
    }


def test_the_schema_is_that_of_the_state_the_query_reads(graph: Graph) -> None:
    graph.apply_schema(SCHEMA + "node Later { name: String @key }")
    assert {"label": "Later"} in rows(graph, "CALL db.labels()")
    assert {"label": "Later"} not in rows(graph, "CALL db.labels()", at="main~1")


def test_a_write_may_ask_for_the_schema_and_not_for_history(graph: Graph) -> None:
    text = "CALL db.labels() YIELD label CREATE (:City {name: label})"
    assert graph.mutate(text).affected_nodes == 4
    with pytest.raises(OmnigraphError) as failed:
        graph.mutate("CALL omnigraph.history.log() YIELD commit CREATE (:City {name: commit})")
    assert failed.value.details["diagnostics"][0]["code"] == "C013"


def test_indices_are_told_with_what_they_cover(graph: Graph) -> None:
    graph.load({"City": [{"name": f"c{i}"} for i in range(9)]})
    text = "CALL omnigraph.schema.indices() YIELD owner, property, kind, rows, covered, bytes"
    assert rows(graph, f"{text} WHERE owner = 'City' RETURN rows") == []
    graph.optimize()
    found = rows(graph, f"{text} WHERE owner = 'City' RETURN *")
    assert [(r["property"], r["kind"], r["rows"], r["covered"]) for r in found] == [
        ("id", "BTREE", 10, 10),
        ("name", "BTREE", 10, 10),
    ]
    assert all(r["bytes"] > 0 for r in found)


# --- history ---------------------------------------------------------------------------------------------------------


def test_the_log_leads_to_the_state_the_query_reads(graph: Graph) -> None:
    text = "CALL omnigraph.history.log(10) YIELD commit, actor, message, kind RETURN *"
    found = rows(graph, text)
    assert [row["commit"] for row in found] == [c.id for c in graph.log()]
    assert [row["actor"] for row in found] == ["max", "max", "eve", None]
    assert [row["commit"] for row in rows(graph, text, at="main~1")] == [
        c.id for c in graph.log(at="main~1")
    ]
    one = "CALL omnigraph.history.log($n, $at) YIELD commit, parents RETURN *"
    page = rows(graph, one, params={"n": 1, "at": f"{found[0]['commit']}~1"})
    assert page == [{"commit": found[1]["commit"], "parents": [found[2]["commit"]]}]
    by_actor = """
        CALL omnigraph.history.log() YIELD actor, time
        WITH actor, time WHERE actor IS NOT NULL AND time.year > 2000
        RETURN actor, count(*) AS n ORDER BY n DESC
    """
    assert rows(graph, by_actor) == [{"actor": "max", "n": 2}, {"actor": "eve", "n": 1}]


def test_a_difference_is_joined_with_the_graph(graph: Graph) -> None:
    text = """
        CALL omnigraph.history.diff('main~2', 'main') YIELD type, id, operation, properties, before, after
        WHERE type = 'Person' MATCH (p:Person {name: id})
        RETURN type, p.age AS age, operation, properties, before, after
    """
    assert rows(graph, text) == [
        {
            "type": "Person",
            "age": 37,
            "operation": "update",
            "properties": ["age"],
            "before": '{"age": 36}',
            "after": '{"age": 37}',
        }
    ]
    whole = "CALL omnigraph.history.diff('main~3', 'main', {limit}, {skip}) YIELD id RETURN id"
    every = [row["id"] for row in rows(graph, whole.format(limit=50, skip=0))]
    assert len(every) == 5
    pages = [rows(graph, whole.format(limit=2, skip=skip)) for skip in (0, 2, 4)]
    assert [row["id"] for page in pages for row in page] == every


def test_a_row_knows_its_history_and_who_wrote_its_cells(graph: Graph) -> None:
    text = """
        MATCH (p:Person {age: 37})
        CALL omnigraph.history.entity('Person', 'Ada') YIELD actor, operation, after RETURN *
    """
    found = [(r["actor"], r["operation"], r["after"]) for r in rows(graph, text)]
    assert [f[:2] for f in found] == [("max", "update"), ("eve", "insert")]
    assert found[0][2] == '{"age": 37}'
    before = rows(graph, "CALL omnigraph.history.entity('Person', 'Ada')", at="main~2")
    assert [row["operation"] for row in before] == ["insert"]
    edge = rows(graph, "CALL omnigraph.history.entity('LIVES_IN', 'l1') YIELD operation")
    assert edge == [{"operation": "insert"}]
    text = "CALL omnigraph.history.blame('Person', 'Ada') YIELD property, value, actor RETURN *"
    cells = {(r["property"], r["value"], r["actor"]) for r in rows(graph, text)}
    assert {("age", "37", "max"), ("name", '"Ada"', "eve")} <= cells
    assert rows(graph, "CALL omnigraph.history.blame('Person', 'nobody')") == []


def test_a_blob_is_told_by_its_size(graph: Graph) -> None:
    graph.load({"Person": [{"name": "Bob", "photo": b"12345"}]})
    text = "CALL omnigraph.history.diff('main~1', 'main') YIELD after"
    (row,) = rows(graph, text)
    assert "12345" not in row["after"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (f"CALL omnigraph.history.log({ROWS_MAX + 1})", "option_invalid"),
        ("CALL omnigraph.history.log(-1)", "option_invalid"),
        ("CALL omnigraph.history.diff('main~1', 'main', 1, -1)", "option_invalid"),
        ("CALL omnigraph.history.log(1, 'nowhere')", "commit_not_found"),
        ("CALL omnigraph.history.entity('Nothing', 'x')", "type_not_found"),
        ("CALL omnigraph.history.diff('main~1')", "C009"),
        ("CALL omnigraph.history.log('many')", "C009"),
        ("CALL db.labels(1)", "C009"),
        ("MATCH (p:Person) CALL omnigraph.history.entity('Person', p.name) RETURN p", "C009"),
        ("CALL omnigraph.history.log() YIELD comit RETURN comit", "C007"),
    ],
)
def test_what_makes_no_sense_is_refused(graph: Graph, text: str, code: str) -> None:
    with pytest.raises(OmnigraphError) as failed:
        graph.query(text)
    found = failed.value.details.get("diagnostics")
    assert (found[0]["code"] if found else failed.value.code) == code


def test_every_procedure_about_history_has_somebody_who_tells() -> None:
    assert {known.name for known in metadata.STORED} == STORED.keys()
    assert all(known.facts is not None for known in metadata.SCHEMA)


# --- under a policy --------------------------------------------------------------------------------------------------

RULES = """
version: 1
groups: {staff: [ben]}
protected_branches: [vault]
rules:
  - id: s1
    allow:
      actors: {group: staff}
      actions: [read]
      branch_scope: unprotected
      types: [Person, Knows, City, LivesIn, Earns]
"""


@pytest.fixture
def staff(graph: Graph) -> Graph:
    graph.create_branch("vault")
    graph.load({"City": [{"name": "Secret"}]}, branch="vault", message="hush")
    return GuardedGraph(graph, Guard(policy(RULES), "ben", "g"))


def refusal(graph: Graph, text: str) -> str:
    with pytest.raises(OmnigraphError) as failed:
        graph.query(text)
    return f"{failed.value.code} {failed.value.message}"


def test_a_type_that_may_not_be_read_is_not_in_the_schema(staff: Graph) -> None:
    for text in (
        "CALL db.labels()",
        "CALL db.relationshipTypes()",
        "CALL db.propertyKeys()",
        "CALL omnigraph.schema.types()",
        "CALL omnigraph.schema.nodes()",
        "CALL omnigraph.schema.relationships()",
        "CALL omnigraph.schema.properties()",
    ):
        told = str(rows(staff, text))
        assert "Salary" not in told
        assert "amount" not in told
        assert "Earns" not in told, "it leads to what may not be read"
    assert {"label": "Person"} in rows(staff, "CALL db.labels()")


def test_a_type_that_may_not_be_read_has_no_history(staff: Graph) -> None:
    text = "CALL omnigraph.history.diff('main~3', 'main') YIELD type RETURN DISTINCT type"
    assert {row["type"] for row in rows(staff, text)} == {"Person", "City", "LivesIn"}
    assert "amount" not in str(rows(staff, "CALL omnigraph.history.log()"))
    for procedure in ("entity", "blame"):
        call = f"CALL omnigraph.history.{procedure}('{{}}', 'Ada')"
        hidden, absent = (refusal(staff, call.format(n)) for n in ("Salary", "Nobody"))
        assert hidden.replace("Salary", "Nobody") == absent
        assert rows(staff, call.format("Person"))


@pytest.mark.parametrize(
    "text",
    [
        "CALL omnigraph.history.log(5, '{}')",
        "CALL omnigraph.history.diff('main', '{}')",
        "CALL omnigraph.history.diff('{}', 'main')",
        "CALL omnigraph.history.entity('City', 'London', 5, '{}')",
        "CALL omnigraph.history.blame('City', 'London', '{}')",
    ],
)
def test_a_branch_that_may_not_be_read_looks_like_none(staff: Graph, text: str) -> None:
    denied, absent = refusal(staff, text.format("vault")), refusal(staff, text.format("nowhere"))
    assert denied.replace("vault", "nowhere") == absent
