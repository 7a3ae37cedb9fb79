"""Maintenance: the same rows in better order, reported, and never in a writer's way."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from omnigraph.core.plan import CreateIndex, PublishPlan, Rewrite
from omnigraph.core.txn import WriteTxn
from omnigraph.graph import Graph, open_graph
from omnigraph.upkeep import Upkeep
from omnigraph.write.maintain import REWRITES_MAX, due, optimize, uncovered_rows
from omnigraph.write.pending_indices import pending_indices
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
    assert not [p for p in pending_indices(snapshot) if p.index.kind == "value"]
    assert uncovered_rows(snapshot.table_of(snapshot.catalog.nodes["Person"]), "id") == 0


def test_deleted_rows_are_given_up(graph: Graph) -> None:
    graph.load({"Person": [{"name": f"p{i}"} for i in range(100)]})
    graph.optimize()
    change(graph, "delete Person where age is null")
    graph.optimize()
    snapshot = graph.snapshot()
    table = snapshot.table_of(snapshot.catalog.nodes["Person"])
    assert sum(f.deleted_rows for f in table.fragments()) == 0
    assert set(rows(graph, "Person")) == {"a", "b", "c", "d"}


def test_a_rewrite_that_is_overtaken_is_planned_again(graph: Graph) -> None:
    pieces(graph, 3)
    other = open_graph(graph.uri)
    table = graph.snapshot().catalog.nodes["Person"].table_id
    verb = optimize(table)
    kinds: list[type] = []

    def overtaken(txn: WriteTxn) -> PublishPlan:
        plan = verb(txn)
        kinds.extend(type(action) for action in plan.actions)
        if len(kinds) <= REWRITES_MAX:
            change(other, f'insert Person {{ name: "a", age: {len(kinds)} }}')
        return plan

    graph.publish(overtaken, alone=True)
    assert kinds == [Rewrite] * REWRITES_MAX + [CreateIndex], "a busy table is rewritten for ever"
    assert rows(graph, "Person")["a"]["age"] == REWRITES_MAX


def test_an_index_fits_a_table_that_moved_meanwhile(graph: Graph) -> None:
    graph.optimize()
    graph.load({"Person": [{"name": f"p{i}"} for i in range(5000)]})
    other = open_graph(graph.uri)
    table = graph.snapshot().catalog.nodes["Person"].table_id
    verb = optimize(table)
    runs: list[int] = []

    def overtaken(txn: WriteTxn) -> PublishPlan:
        for _ in range(REWRITES_MAX):
            plan = verb(txn)  # as if rewriting had failed before
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
    seconds = rings.count(4, 60)
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
