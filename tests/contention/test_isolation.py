"""Real races within one machine: write skew, and branch names that are used again (G3, G6)."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from omnigraph.core.plan import NOTHING, PublishPlan, Verb
from omnigraph.core.records import Commit
from omnigraph.core.txn import WriteTxn
from omnigraph.errors import BranchDeleted, BranchExists, BranchNotFound
from omnigraph.graph import Graph, init, open_graph
from tests.support import rings
from tests.support.worlds import SCHEMA, Rejected, add_knows, add_person, drop_person, people

ROUNDS = rings.count(10, 100)


def together(*jobs: Callable[[], None]) -> None:
    """Run the jobs at once; every failure counts."""
    with ThreadPoolExecutor(len(jobs)) as pool:
        for future in [pool.submit(job) for job in jobs]:
            future.result()


def dangling_at(graph: Graph, commit: Commit) -> list[str]:
    snapshot = graph._repo.snapshot(commit)
    there = set(snapshot.table_of(snapshot.catalog.nodes["Person"]).scan(["id"])["id"].to_pylist())
    knows = snapshot.table_of(snapshot.catalog.edges["Knows"]).scan(["id", "src", "dst"])
    return [row["id"] for row in knows.to_pylist() if not {row["src"], row["dst"]} <= there]


def test_no_commit_ever_shows_an_edge_without_its_nodes(graph_root: str) -> None:
    """One connects two people, another removes and returns one of them, as fast as both can."""
    init(graph_root, schema=SCHEMA).publish(add_person("ann"))
    connecting, removing = open_graph(graph_root), open_graph(graph_root)
    results: Counter[str] = Counter()
    over: list[bool] = []

    def connect() -> None:
        for number in itertools.count():
            if over:
                return
            try:
                connecting.publish(add_knows(f"e{number}", "ann", "bob"))
                results["connected"] += 1
            except Rejected:
                results["refused"] += 1

    def remove() -> None:
        """At least so many rounds, and until both things have happened to the other."""
        try:
            for number in range(ROUNDS * 50):
                removing.publish(add_person("bob"))
                removing.publish(drop_person("bob"))
                if number >= ROUNDS and len(results) == 2:
                    return
        finally:
            over.append(True)

    together(connect, remove)
    graph = open_graph(graph_root)
    head = graph._repo.head("main").commit
    commits = graph._repo.chains.range(head.chain, 0, head.number)
    broken = {
        commit.number: dangling_at(graph, commit)
        for commit in commits
        if isinstance(commit, Commit)
    }
    assert not any(broken.values()), f"edges without nodes: {broken}"
    assert results["connected"], "no edge ever got in: nothing was tested"
    assert results["refused"], "no edge was ever refused: nothing was tested"


def sign(writer: str) -> Verb:
    """Add a person named after the incarnation of the branch this write sees."""

    def verb(txn: WriteTxn) -> PublishPlan:
        table = txn.catalog.nodes["Person"].table_id
        seen = txn.view(table).scan(["id"])["id"].to_pylist()
        marks = [name for name in seen if name.startswith("mark-")]
        return add_person(f"{writer}-of-{marks[0]}")(txn) if marks else NOTHING

    return verb


def test_a_name_used_again_never_shows_the_old_branch(graph_root: str) -> None:
    """A branch is made, marked and deleted over and over; others write to it and read it under the same name."""
    init(graph_root, schema=SCHEMA)
    over: list[bool] = []
    reads = [0]

    def recreate() -> None:
        graph = open_graph(graph_root)
        try:
            for number in range(ROUNDS * 50):
                graph.create_branch("dev")
                graph.publish(add_person(f"mark-{number}"), branch="dev")
                graph.delete_branch("dev")
                if number >= ROUNDS and reads[0]:
                    return
        finally:
            over.append(True)

    def write() -> None:
        graph, number = open_graph(graph_root), 0
        while not over:
            number += 1
            try:
                graph.publish(sign(f"w{number}"), branch="dev")
            except (BranchNotFound, BranchDeleted):
                continue

    def read() -> None:
        graph = open_graph(graph_root)
        while not over:
            try:
                names = people(graph._repo, "dev")
            except BranchNotFound:
                continue
            reads[0] += bool(names)
            incarnations = {name.rsplit("-", 1)[1] for name in names}
            assert len(incarnations) <= 1, f"two branches in one: {names}"

    together(recreate, write, read)
    assert reads[0], "the branch was never read: nothing was tested"
    assert open_graph(graph_root).branches() == ["main"]


def test_of_many_who_create_one_branch_exactly_one_does(graph_root: str) -> None:
    init(graph_root, schema=SCHEMA)
    created: list[str] = []

    def create(who: str) -> Callable[[], None]:
        graph = open_graph(graph_root)

        def job() -> None:
            for number in range(ROUNDS):
                try:
                    graph.create_branch(f"b{number}")
                    created.append(f"b{number}")
                except BranchExists:
                    continue

        return job

    together(*(create(f"w{i}") for i in range(4)))
    assert sorted(created) == sorted(f"b{number}" for number in range(ROUNDS))
    assert len(open_graph(graph_root).branches()) == ROUNDS + 1
