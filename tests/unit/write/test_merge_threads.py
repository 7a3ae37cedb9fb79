"""Merges beside each other and beside writers: each commit or conflict is the outcome of some order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial

from omnigraph.graph import Graph, open_graph
from tests.support import rings
from tests.support.people import change, people, rows

BRANCHES = 4
ROUNDS = rings.count(4, 20)


def together(tasks: Sequence[Callable[[], object]]) -> None:
    """Run tasks at once; an error of any of them is an error."""
    errors: list[BaseException] = []

    def guarded(task: Callable[[], object]) -> None:
        try:
            task()
        except BaseException as error:  # handed to the test below
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(task,)) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def work_on(graph: Graph, branch: str, number: int) -> None:
    """Rows of one's own on a branch, merged round by round by a process of one's own."""
    own = open_graph(graph.uri)
    for step in range(ROUNDS):
        name = f"{branch}-{step}"
        change(own, f'insert Person {{ name: "{name}", age: {number} }}', branch)
        change(own, f'insert Knows {{ from: "{name}", to: "a" }}', branch)
        assert own.merge(branch).outcome in ("merged", "fast_forward")


def test_branches_merged_at_once_all_arrive() -> None:
    graph = people()
    for number in range(BRANCHES):
        graph.create_branch(f"b{number}")
    together([partial(work_on, graph, f"b{n}", n) for n in range(BRANCHES)])
    names = {f"b{n}-{step}" for n in range(BRANCHES) for step in range(ROUNDS)}
    assert names <= set(rows(graph, "Person"))
    assert {f'["{name}","a"]' for name in names} <= set(rows(graph, "Knows"))
    assert graph.doctor(deep=True).healthy


def merge_into(graph: Graph, outcomes: list[str]) -> None:
    outcomes.append(graph.merge("trial").outcome)


def test_a_node_deleted_on_main_never_keeps_an_edge_a_merge_brings() -> None:
    for _ in range(ROUNDS):
        graph = people()
        graph.create_branch("trial")
        change(graph, 'insert Knows { from: "c", to: "d" }', "trial")
        change(graph, 'insert City { name: "m" }')
        mine, other = open_graph(graph.uri), open_graph(graph.uri)
        outcomes: list[str] = []
        deletion = partial(change, other, 'delete Person where name = "d"')
        together([partial(merge_into, mine, outcomes), deletion])
        assert outcomes[0] in ("merged", "conflict")
        assert '["c","d"]' not in rows(graph, "Knows"), f"an edge without its node ({outcomes})"
        assert "d" not in rows(graph, "Person"), "the deletion was lost"
