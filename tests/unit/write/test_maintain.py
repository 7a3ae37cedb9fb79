"""Maintenance: the same rows in better order, reported, and never in a writer's way."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.core.plan import PublishPlan, Rewrite
from omnigraph.core.txn import WriteTxn
from omnigraph.graph import Graph, open_graph
from omnigraph.maintenance.upkeep import Upkeep
from omnigraph.write.maintain import due, optimize, uncovered_rows
from tests.support import rings
from tests.support.beside import keep_writing
from tests.support.people import change, people, rows, state
from tests.support.processes import read_log, spawn
from tests.support.waiting import wait_until

WRITERS = 4


@pytest.fixture
def graph() -> Graph:
    return people()


def pieces(graph: Graph, count: int, size: int = 1) -> None:
    """So many commits, the oldest the largest, so that none is absorbed by the next."""
    for number in range(count, 0, -1):
        names = [f"p{number}-{i}" for i in range(size * 2**number)]
        graph.load({"Person": [{"name": name} for name in names]})


def test_optimize_compacts_and_indexes_and_says_so(graph: Graph) -> None:
    pieces(graph, 4)
    before, log = state(graph), len(graph.log())
    reports = {report.type: report for report in graph.optimize()}
    person = reports["Person"]
    assert person.fragments_before > person.fragments_after == 1
    assert set(person.indexed) == {"id", "name", "email"}
    assert set(reports["Knows"].indexed) == {"id", "src", "dst"}
    assert state(graph) == before
    assert len(graph.log()) == log, "maintenance shows in the log"
    assert graph.log(maintenance=True)[0].kind == "optimize"
    assert reports["Person"].to_json()["type"] == "Person"


def test_nothing_is_left_to_do_afterwards(graph: Graph) -> None:
    graph.optimize()
    head = graph.snapshot().commit
    again = graph.optimize()
    assert graph.snapshot().commit == head, "a second optimize made a commit"
    assert not any(report.indexed for report in again)
    snapshot = graph.snapshot()
    assert uncovered_rows(snapshot.table_of(snapshot.catalog.nodes["Person"]), "id") == 0


def test_nothing_is_left_to_do_after_rows_came_and_went(graph: Graph) -> None:
    """Fragments that different segments of an index know are put together like others."""
    graph.load({"Person": [{"name": f"p{i}"} for i in range(1000)]})
    graph.optimize()
    graph.load({"Person": [{"name": f"q{i}"} for i in range(5)]})
    change(graph, 'update Person set { age: 8 } where name = "p7"')
    change(graph, 'delete Person where name = "p8"')
    (first, *_) = [report for report in graph.optimize() if report.type == "Person"]
    assert (first.fragments_after, bool(first.indexed)) == (1, True)
    head = graph.snapshot().commit
    graph.optimize()
    assert graph.snapshot().commit == head, "a second optimize made a commit"
    assert rows(graph, "Person")["p7"]["age"] == 8


def test_segments_of_an_index_stay_few(graph: Graph) -> None:
    table_id = graph.snapshot().catalog.nodes["Person"].table_id
    graph.load({"Person": [{"name": f"p{i}"} for i in range(200)]})
    for step in range(12):
        graph.load({"Person": [{"name": f"q{step}-{i}"} for i in range(20)]})
        graph.publish(optimize(table_id, rewrite=False), alone=True)
    table = graph.snapshot().table(table_id)
    counts = [len(index.segments) for index in table.descriptions]  # type: ignore[attr-defined]
    assert max(counts) <= 5, f"segments pile up: {counts}"
    assert uncovered_rows(table, "id") == 0
    found = graph.query('query q() { match { $p: Person { name: "q3-7" } } return { $p.name } }')
    assert found.scalar() == "q3-7"


def test_deleted_rows_are_given_up(graph: Graph) -> None:
    graph.load({"Person": [{"name": f"p{i}"} for i in range(100)]})
    graph.optimize()
    change(graph, "delete Person where age is null")
    graph.optimize()
    snapshot = graph.snapshot()
    table = snapshot.table_of(snapshot.catalog.nodes["Person"])
    assert sum(f.deleted_rows for f in table.fragments()) == 0
    assert set(rows(graph, "Person")) == {"a", "b", "c", "d"}


def test_a_rewrite_that_is_overtaken_fits_what_others_made_of_the_table(graph: Graph) -> None:
    """They deleted rows of rewritten fragments, replaced some, and added others; indices know what is there now."""
    graph.load({"Person": [{"name": f"p{i:04}", "age": i} for i in range(6000)]})
    graph.load({"Person": [{"name": f"q{i:04}", "age": i} for i in range(6000)]})
    graph.optimize()
    graph.load({"Person": [{"name": f"r{i:04}", "age": i} for i in range(12000)]})
    other = open_graph(graph.uri)
    table_id = graph.snapshot().catalog.nodes["Person"].table_id
    verb = optimize(table_id)
    kinds: list[type] = []

    def overtaken(txn: WriteTxn) -> PublishPlan:
        plan = verb(txn)
        kinds.extend(type(action) for action in plan.actions)
        return plan

    tables, acts = graph._repo.tables, list(MEANWHILE)
    real = tables.sync

    def sync(staged: Any) -> None:
        if acts:
            change(other, acts.pop(0))
        real(staged)

    tables.sync = sync  # type: ignore[method-assign]
    graph.publish(overtaken, alone=True)
    assert (kinds, acts) == ([Rewrite], []), "it was planned again, or nobody came"
    found = rows(graph, "Person")
    assert {"p0003", "q0004"}.isdisjoint(found)
    assert (found["r0005"]["age"], found["p0006"]["age"], found["new"]["age"]) == (-1, -2, 3)
    assert len(found) == len(open_graph(graph.uri).snapshot().table(table_id).scan(["id"]))
    table = graph.snapshot().table(table_id)
    large = [f for f in table.fragments() if f.physical_rows > 5000]
    assert len(large) == 1
    assert uncovered_rows(table, "id") < 10
    ids = pa.array(["p0003", "q0004", "r0005", "p0006", "new", "q5999"])
    assert sorted(table.lookup("id", ids, ["id"])["id"].to_pylist()) == [
        "new",
        "p0006",
        "q5999",
        "r0005",
    ]
    assert open_graph(graph.uri).doctor(deep=True).healthy


MEANWHILE = (
    'delete Person where name = "p0003"',
    'update Person set { age: -1 } where name = "r0005"',
    'insert Person { name: "new", age: 3 }',
    'delete Person where name = "q0004"',
    'update Person set { age: -2 } where name = "p0006"',
)


def test_an_index_fits_a_table_that_moved_meanwhile(graph: Graph) -> None:
    graph.optimize()
    graph.load({"Person": [{"name": f"p{i}"} for i in range(5000)]})
    other = open_graph(graph.uri)
    table = graph.snapshot().catalog.nodes["Person"].table_id
    verb = optimize(table, rewrite=False)
    runs: list[int] = []

    def overtaken(txn: WriteTxn) -> PublishPlan:
        runs.append(1)
        plan = verb(txn)
        change(other, 'update Person set { age: 77 } where name = "a"')
        return plan

    graph.publish(overtaken, alone=True)
    assert len(runs) == 1, "indices were planned again because of one row"
    assert rows(graph, "Person")["a"]["age"] == 77
    snapshot = graph.snapshot()
    assert uncovered_rows(snapshot.table_of(snapshot.catalog.nodes["Person"]), "id") <= 5000


# --- in the background -------------------------------------------------------------------------------------------


def test_a_table_is_due_when_many_rows_are_unknown_to_its_index(graph: Graph) -> None:
    assert not list(due(graph.snapshot()))
    graph.load({"Person": [{"name": f"p{i}"} for i in range(5000)]})
    assert [kind.name for kind in due(graph.snapshot())] == ["Person"]
    graph.optimize()
    assert not list(due(graph.snapshot()))


def test_the_background_does_what_is_due_and_stops(graph: Graph) -> None:
    done = threading.Event()
    upkeep = Upkeep(graph._repo, graph._writers, every_seconds=0.01, then=lambda _: done.set())
    with upkeep:
        graph.load({"Person": [{"name": f"p{i}"} for i in range(5000)]})
        wait_until(done.is_set, timeout=30, what="maintenance")
    assert not list(due(graph.snapshot()))
    assert not upkeep._thread.is_alive()


def test_the_background_survives_a_branch_that_is_gone(graph: Graph) -> None:
    graph.create_branch("trial")
    done = threading.Event()
    upkeep = Upkeep(graph._repo, graph._writers, ("trial", "main"), 0.01, then=lambda _: done.set())
    graph.delete_branch("trial")
    with upkeep:
        graph.load({"Person": [{"name": f"p{i}"} for i in range(5000)]})
        wait_until(done.is_set, timeout=30, what="maintenance of the other branch")
    assert not list(due(graph.snapshot()))


# --- beside writers ----------------------------------------------------------------------------------------------


def test_optimize_and_cleanup_beside_writing_processes(tmp_path: Path) -> None:
    """No error reaches a writer, and everything acknowledged is there."""
    graph = people(tmp_path / "graph")
    seconds = rings.count(4, 20)
    children = [
        spawn(
            keep_writing,
            {"uri": graph.uri, "writer": f"w{i}", "seconds": seconds},
            log=tmp_path / f"w{i}.log",
        )
        for i in range(WRITERS)
    ]
    rounds = 0
    while not all(child.has_ended() for child in children):
        graph.optimize()
        graph.cleanup(keep=3)
        rounds += 1
    for child in children:
        child.wait()
    assert rounds > 1
    people_now, edges = rows(graph, "Person"), rows(graph, "Knows")
    for number in range(WRITERS):
        last: dict[str, int | None] = {}
        links = []
        for record in read_log(tmp_path / f"w{number}.log"):
            if "edge" in record:
                links.append(record["edge"])
            else:
                last[record["name"]] = record["age"]
        assert last, f"writer {number} wrote nothing"
        for name, age in last.items():
            found = people_now.get(name)
            assert (None if found is None else found["age"]) == age, f"{name} was {age}"
        for source, target in links:
            if last[source] is not None and last[target] is not None:
                assert f'["{source}","{target}"]' in edges, f"{source} -> {target} is lost"
    assert graph.doctor(deep=True).healthy, graph.doctor(deep=True).findings
