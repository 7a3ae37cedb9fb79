"""Writing in Cypher: one commit, the same rules, and what a typed graph refuses."""

from __future__ import annotations

import itertools
import threading
from typing import Any

import pytest

import omnigraph
from omnigraph.errors import OmnigraphError

SCHEMA = """
node Person { name: String @key age: I64? @range(age, 0..150) }
node Note { text: String? }
edge Knows: Person -> Person { since: I64? }
edge Wrote: Person -> Note
"""
numbers = itertools.count()


@pytest.fixture
def graph() -> Any:
    made = omnigraph.init(f"memory://cypher-writes-{next(numbers)}", schema=SCHEMA)
    made.mutate(
        "CREATE (a:Person {name: 'Ada', age: 36})-[:Knows {since: 1}]->(:Person {name: 'Bob'})"
    )
    return made


def ages(graph: Any) -> dict[str, Any]:
    found = graph.query("MATCH (p:Person) RETURN p.name AS name, p.age AS age")
    return {row["name"]: row["age"] for row in found}


def knows(graph: Any) -> set[tuple[str, str, Any]]:
    found = graph.query("MATCH (a)-[k:Knows]->(b) RETURN a.name AS a, b.name AS b, k.since AS s")
    return {(row["a"], row["b"], row["s"]) for row in found}


def test_create_makes_nodes_and_relationships_in_one_commit(graph: Any) -> None:
    before = len(list(graph.log()))
    done = graph.mutate(
        "MATCH (a:Person) CREATE (a)-[:Wrote]->(:Note {text: a.name + '!'})", message="notes"
    )
    assert (done.affected_nodes, done.affected_edges) == (2, 2)
    found = graph.query("MATCH (p)-[:Wrote]->(n) RETURN p.name AS p, n.text AS t ORDER BY p")
    assert [tuple(row.values()) for row in found] == [("Ada", "Ada!"), ("Bob", "Bob!")]
    assert len(list(graph.log())) == before + 1


def test_create_for_each_row_of_a_parameter(graph: Any) -> None:
    rows = [{"name": "Cyd", "age": 1}, {"name": "Dan", "age": None}]
    graph.mutate(
        "UNWIND $rows AS row CREATE (:Person {name: row.name, age: row.age})", {"rows": rows}
    )
    assert ages(graph) == {"Ada": 36, "Bob": None, "Cyd": 1, "Dan": None}


def test_create_of_a_key_that_exists_is_a_conflict(graph: Any) -> None:
    with pytest.raises(OmnigraphError) as raised:
        graph.mutate("CREATE (:Person {name: 'Ada'})")
    assert raised.value.code == "key_conflict"
    assert ages(graph) == {"Ada": 36, "Bob": None}


def test_set_computes_from_the_row_as_it_was(graph: Any) -> None:
    graph.mutate("MATCH (p:Person) SET p.age = coalesce(p.age, 10) + 1")
    assert ages(graph) == {"Ada": 37, "Bob": 11}
    graph.mutate("MATCH (p:Person {name: 'Ada'}) SET p += {age: 5}")
    graph.mutate("MATCH (p:Person {name: 'Bob'}) REMOVE p.age")
    assert ages(graph) == {"Ada": 5, "Bob": None}


def test_set_of_what_an_optional_match_did_not_find_does_nothing(graph: Any) -> None:
    done = graph.mutate("OPTIONAL MATCH (p:Person {name: 'Zoe'}) SET p.age = 1")
    assert done.commit is None


def test_rules_of_the_schema_hold(graph: Any) -> None:
    with pytest.raises(OmnigraphError):
        graph.mutate("MATCH (p:Person) SET p.age = 1000")
    assert ages(graph) == {"Ada": 36, "Bob": None}


def test_merge_takes_what_is_there_and_makes_the_rest_once(graph: Any) -> None:
    text = (
        "UNWIND ['Ada', 'Cyd', 'Cyd'] AS n MERGE (p:Person {name: n}) "
        "ON CREATE SET p.age = 1 ON MATCH SET p.age = 2"
    )
    graph.mutate(text)
    assert ages(graph) == {"Ada": 2, "Bob": None, "Cyd": 1}
    graph.mutate(text)
    assert ages(graph) == {"Ada": 2, "Bob": None, "Cyd": 2}


def test_merge_of_a_relationship(graph: Any) -> None:
    text = (
        "MATCH (a:Person {name: 'Ada'}), (b:Person {name: 'Bob'}) "
        "MERGE (b)-[k:Knows]->(a) ON CREATE SET k.since = 7"
    )
    assert graph.mutate(text).commit is not None
    assert graph.mutate(text).commit is None
    assert knows(graph) == {("Ada", "Bob", 1), ("Bob", "Ada", 7)}


def test_delete_refuses_nodes_with_relationships_and_detach_takes_them(graph: Any) -> None:
    with pytest.raises(OmnigraphError) as raised:
        graph.mutate("MATCH (p:Person {name: 'Ada'}) DELETE p")
    assert raised.value.code == "node_has_edges"
    done = graph.mutate("MATCH (p:Person {name: 'Ada'}) DETACH DELETE p")
    assert (done.affected_nodes, done.affected_edges) == (1, 1)
    assert (ages(graph), knows(graph)) == ({"Bob": None}, set())


def test_delete_of_a_relationship_and_its_nodes_together(graph: Any) -> None:
    graph.mutate("MATCH (a:Person)-[k:Knows]->(b) DELETE a, k, b")
    assert ages(graph) == {}


def test_a_dry_run_changes_nothing(graph: Any) -> None:
    done = graph.mutate("MATCH (p:Person) SET p.age = 9", dry_run=True)
    assert done.affected_nodes == 2
    assert ages(graph) == {"Ada": 36, "Bob": None}


def test_writers_at_once_lose_nothing(graph: Any) -> None:
    def add(i: int) -> None:
        for _ in range(5):
            graph.mutate("MATCH (p:Person {name: 'Ada'}) SET p.age = p.age + 1")
            graph.mutate("MERGE (:Person {name: 'shared'}) ")
            graph.mutate("CREATE (:Note {text: $t})", {"t": str(i)})

    threads = [threading.Thread(target=add, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ages(graph)["Ada"] == 36 + 20
    assert graph.query("MATCH (n:Note) RETURN count(*) AS n").scalar() == 20
    assert graph.query("MATCH (p:Person {name: 'shared'}) RETURN count(*) AS n").scalar() == 1


def test_a_step_of_a_block_that_reads_what_another_wrote_is_refused(graph: Any) -> None:
    block = graph.write()
    block.mutate("CREATE (:Person {name: 'Cyd'})")
    block.mutate("MATCH (p:Person) SET p.age = 1")
    with pytest.raises(OmnigraphError) as raised:
        block.__exit__(None, None, None)
    assert raised.value.code == "writes_unseen"
    assert ages(graph) == {"Ada": 36, "Bob": None}
