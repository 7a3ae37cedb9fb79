"""Writing in Cypher: one commit, the same rules, and what a typed graph refuses."""

from __future__ import annotations

import itertools
import threading
import time
from typing import Any

import pytest

import omnigraph
from omnigraph.errors import OmnigraphError
from omnigraph.model.limits import Limits
from omnigraph.read.budget import Budget

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
    graph.mutate(text)  # what the second row makes is there for the third
    assert ages(graph) == {"Ada": 2, "Bob": None, "Cyd": 2}
    graph.mutate("UNWIND ['Dan', 'Dan'] AS n MERGE (p:Person {name: n}) ON CREATE SET p.age = 1")
    assert ages(graph) == {"Ada": 2, "Bob": None, "Cyd": 2, "Dan": 1}


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


def test_a_step_of_a_block_reads_what_another_wrote(graph: Any) -> None:
    before = len(list(graph.log()))
    with graph.write() as block:
        block.mutate("CREATE (:Person {name: 'Cyd'})")
        block.mutate("MATCH (p:Person {name: 'Ada'})-[:Knows]->(q) DETACH DELETE q")
        block.mutate("MATCH (p:Person) SET p.age = 1 RETURN count(*) AS n")
    assert ages(graph) == {"Ada": 1, "Cyd": 1}
    assert block.results[2].answer.scalar() == 2
    assert len(list(graph.log())) == before + 1


RETURNING = (
    ("CREATE (n:Note {text: 'x'}) RETURN n.text AS t", [{"t": "x"}]),
    (
        "CREATE p = (:Person {name: 'C'})-[k:Knows {since: 2}]->(:Person {name: 'D'}) "
        "RETURN length(p) AS n, k.since AS s, [x IN nodes(p) | x.name] AS names",
        [{"n": 1, "s": 2, "names": ["C", "D"]}],
    ),
    (
        "MATCH (p:Person) SET p.age = coalesce(p.age, 0) + 1 RETURN p.name AS n, p.age AS a ORDER BY n",
        [{"n": "Ada", "a": 37}, {"n": "Bob", "a": 1}],
    ),
    ("MATCH (p:Person) SET p.age = 5, p.age = p.age + 1 RETURN sum(p.age) AS s", [{"s": 12}]),
    ("MERGE (p:Person {name: 'Bob'}) ON MATCH SET p.age = 7 RETURN p.age AS a", [{"a": 7}]),
    (
        "UNWIND ['x', 'x', 'Ada'] AS n MERGE (p:Person {name: n}) ON CREATE SET p.age = 1 "
        "ON MATCH SET p.age = coalesce(p.age, 0) + 10 RETURN n, p.age AS a ORDER BY n",
        [{"n": "Ada", "a": 46}, {"n": "x", "a": 11}, {"n": "x", "a": 11}],
    ),
    ("MATCH ()-[k:Knows]->() DELETE k RETURN count(*) AS n", [{"n": 1}]),
    ("MATCH ()-[k:Knows]->() DELETE k RETURN type(k) AS t", [{"t": "Knows"}]),
    (
        "MATCH (p:Person) DETACH DELETE p WITH 1 AS x MATCH (q:Person) RETURN count(*) AS n",
        [{"n": 0}],
    ),
    (
        "MATCH (a:Person {name: 'Ada'}) CREATE (n:Note {text: 'hi'}) CREATE (a)-[:Wrote]->(n) "
        "WITH a MATCH (a)-[:Wrote]->(m)<-[:Wrote]-(b) RETURN count(*) AS n",
        [{"n": 0}],
    ),
    (
        "MATCH (p:Person) WITH collect(p) AS ps CREATE (:Note) RETURN [q IN ps | q.name] AS names",
        [{"names": ["Ada", "Bob"]}],
    ),
    (
        "CREATE (p:Person {name: 'x'}) MERGE (q:Person {name: 'x'}) RETURN p = q AS same",
        [{"same": True}],
    ),
)


@pytest.mark.parametrize("case", RETURNING, ids=[text for text, _ in RETURNING])
def test_rows_are_returned_as_the_commit_has_them(graph: Any, case: tuple[str, Any]) -> None:
    text, wanted = case
    before = len(list(graph.log()))
    done = graph.mutate(text)
    assert done.rows == wanted
    assert len(list(graph.log())) == before + 1
    assert done.result.commit == done.commit.id


def test_what_is_made_and_deleted_at_once_is_no_change(graph: Any) -> None:
    text = (
        "CREATE (p:Person {name: 'x'}) DELETE p WITH 1 AS i MATCH (q:Person) RETURN count(*) AS n"
    )
    done = graph.mutate(text)
    assert (done.rows, done.commit) == ([{"n": 2}], None)


def test_what_is_returned_is_what_is_read_afterwards(graph: Any) -> None:
    done = graph.mutate("MATCH (p:Person) SET p.age = 3 RETURN p ORDER BY p.name")
    assert done.rows == graph.query("MATCH (p:Person) RETURN p ORDER BY p.name").rows


def test_a_write_that_matches_nothing_still_answers(graph: Any) -> None:
    done = graph.mutate("MATCH (p:Person {name: 'Zoe'}) SET p.age = 1 RETURN count(*) AS n")
    assert (done.rows, done.commit) == ([{"n": 0}], None)


def test_rows_of_a_refused_write_are_not_returned(graph: Any) -> None:
    with pytest.raises(OmnigraphError) as raised:
        graph.mutate("MATCH (p:Person) SET p.age = 1000 WITH p MATCH (p)-->(q) RETURN q")
    assert raised.value.code == "validation_failed"
    assert ages(graph) == {"Ada": 36, "Bob": None}


def test_a_dry_run_returns_rows_and_writes_nothing(graph: Any) -> None:
    done = graph.mutate("CREATE (p:Person {name: 'Cyd'}) RETURN p.name AS n", dry_run=True)
    assert (done.rows, done.commit) == ([{"n": "Cyd"}], None)
    assert "Cyd" not in ages(graph)


def test_a_replay_has_counts_and_no_rows(graph: Any) -> None:
    text = "CREATE (n:Note {text: 'once'}) RETURN n.text AS t"
    first, second = (graph.mutate(text, idempotency_key="k") for _ in range(2))
    assert (first.rows, second.rows) == ([{"t": "once"}], [])
    assert (second.replayed, second.affected_nodes) == (True, 1)


def test_paths_are_deleted_whole(graph: Any) -> None:
    done = graph.mutate("MATCH p = (:Person)-[:Knows]->(:Person) DELETE p")
    assert (done.affected_nodes, done.affected_edges) == (2, 1)
    assert ages(graph) == {}


NARROW = (
    "CREATE (:Person {name: 'x'})",
    "MATCH (p:Person {name: 'Ada'}) SET p.age = p.age + 1",
    "MERGE (p:Person {name: 'x'}) ON CREATE SET p.age = 1 RETURN p.age",
    "UNWIND ['x', 'Ada'] AS n MERGE (p:Person {name: n}) SET p.age = 3",
    "MATCH (a:Person {name: 'Ada'}), (b:Person {name: 'Bob'}) MERGE (a)-[k:Knows]->(b) SET k.since = 3",
    "MATCH (a:Person {name: 'Ada'})-[k:Knows]->(b) SET k.since = 9 RETURN k.since",
    "MATCH (a:Person {name: 'Ada'})-[k:Knows]->(b) SET b.age = 9",
    "MATCH (p:Person {name: 'Bob'}) DETACH DELETE p",
)
WIDE = (
    "MATCH (p:Person) SET p.age = 1",
    "MATCH (a:Person {name: 'Ada'})-[:Knows]->(b) WHERE b.age IS NULL SET b.age = 9",
    "MATCH (a:Person {name: 'Ada'})-[:Knows*1..2]->(b) SET b.age = 9",
)


def rested_on(graph: Any, text: str) -> set[bool]:
    """Whether the write looked at whole tables, of those it looked at."""
    plans = []
    verb = graph.mutation(text, None, None, "cypher")

    def seen(txn: Any) -> Any:
        plans.append(verb(txn))
        return plans[-1]

    graph.publish(seen, branch="main", actor=None, message=None, idempotency_key=None)
    return {reads.everything for reads in plans[-1].reads.values()}


@pytest.mark.parametrize("text", NARROW)
def test_a_write_that_names_its_nodes_rests_on_them_alone(graph: Any, text: str) -> None:
    assert rested_on(graph, text) <= {False}


@pytest.mark.parametrize("text", WIDE)
def test_a_write_that_looks_for_its_nodes_rests_on_their_tables(graph: Any, text: str) -> None:
    assert True in rested_on(graph, text)


EVERY = "node E { k: String @key u: U64? s: U32? v: Vector(2)? l: [F64]? b: Blob? w: enum(x, y)? d: DateTime? }"


@pytest.fixture
def every() -> Any:
    made = omnigraph.init(f"memory://cypher-writes-{next(numbers)}", schema=EVERY)
    made.mutate("CREATE (:E {k: '1', s: 1, v: [1, 2], l: [0.5], w: 'x'})")
    return made


NOTHING = dict.fromkeys("usvlbwd")


@pytest.mark.parametrize(
    ("text", "params"),
    [
        ("CREATE (:E {k: '2', u: $n, s: $n, v: $n, l: $n, b: $n, w: $n, d: $n})", {"n": None}),
        ("CREATE (:E {k: '2', u: null, s: null, v: null, l: null, b: null, w: null, d: null})", None),
        ("CREATE (e:E {k: '2'}) SET e += $row", {"row": NOTHING}),
        ("UNWIND $rows AS row CREATE (e:E {k: '2', v: row.v, l: row.l, s: row.s})", {"rows": [NOTHING]}),
        ("MERGE (e:E {k: '2'}) ON CREATE SET e.v = $n, e.b = $n", {"n": None}),
    ],
)  # fmt: skip
def test_null_fits_a_property_of_any_type(every: Any, text: str, params: Any) -> None:
    every.mutate(text, params)
    (found,) = every.query("MATCH (e:E {k: '2'}) RETURN e.u, e.s, e.v, e.l, e.w, e.d").rows
    assert set(found.values()) == {None}


def test_values_only_their_property_can_hold(every: Any) -> None:
    params = {"u": 2**64 - 1, "l": [], "b": b"\x00\xff"}
    done = every.mutate("MATCH (e:E) SET e.u = $u, e.l = $l, e.b = $b, e.v = null", params)
    assert done.affected_nodes == 1, "an entity that is given several values is changed once"
    (found,) = every.query("MATCH (e:E) RETURN e.u AS u, e.l AS l, e.v AS v").rows
    assert found == {"u": 2**64 - 1, "l": [], "v": None}
    assert every.blob("E", "1", "b").read() == b"\x00\xff"


def test_lists_and_bytes_for_no_row_at_all(every: Any) -> None:
    text = "MATCH (e:E {k: 'nobody'}) SET e.v = $v, e.l = $l, e.b = $b"
    done = every.mutate(text, {"v": [1.0, 2.0], "l": [1.0], "b": b"a"})
    assert done.affected_nodes == 0


# --- limits --------------------------------------------------------------------------------------------------------

CROWD = [{"name": f"p{i}", "age": i % 100} for i in range(300)]
PAIRS = "MATCH (a:Person), (b:Person), (c:Person) WHERE a.age + b.age + c.age = -1 "


def test_its_reads_end_when_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = omnigraph.init(f"memory://cypher-late-{next(numbers)}", schema=SCHEMA)
    graph.load({"Person": CROWD})
    late, real = [0.0], time.monotonic
    check = Budget.check

    def slow(self: Budget) -> None:
        late[0] += 1.0
        check(self)

    monkeypatch.setattr(Budget, "check", slow)
    monkeypatch.setattr(time, "monotonic", lambda: real() + late[0])
    before = graph.snapshot().commit_id
    asked = []
    for text in (PAIRS + "SET a.age = 1", "CREATE (n:Note) WITH n " + PAIRS + "RETURN count(*)"):
        late[0] = 0.0
        with pytest.raises(OmnigraphError) as error:
            graph.mutate(text, timeout=5.0)
        assert error.value.code == "deadline_exceeded", text
        assert error.value.details["seconds"] == 5.0
        asked.append(late[0])
    assert max(asked) < 20, "it went on"
    assert graph.snapshot().commit_id == before


def test_its_reads_have_the_memory_of_a_query(memory_root: str) -> None:
    made = omnigraph.init(memory_root, schema=SCHEMA)
    made.load({"Person": CROWD})
    graph = omnigraph.open(memory_root, limits=Limits(query_memory_bytes_max=100_000))
    text = "MATCH (a:Person), (b:Person) WHERE a.age < 50 SET a.age = 1"
    with pytest.raises(OmnigraphError) as error:
        graph.mutate(text)
    assert error.value.code == "memory_exceeded"
    assert error.value.details["limit_value"] == 100_000
    assert made.mutate(text).affected_nodes == 150
