"""Merge bases: by the graph of commits, whatever was merged into what, without walking history."""

from __future__ import annotations

import pytest

from omnigraph.core.records import Commit
from omnigraph.graph import Graph
from omnigraph.merge.lineage import (
    HistoryStep,
    ancestry,
    brought_along,
    knowledge,
    merge_base,
    steps,
)
from omnigraph.storage import metrics
from tests.support.people import change, people, rows


def add(graph: Graph, name: str, branch: str = "main") -> Commit:
    change(graph, f'insert City {{ name: "{name}" }}', branch)
    return head(graph, branch)


def head(graph: Graph, branch: str = "main") -> Commit:
    return graph.snapshot(branch).commit


def base(graph: Graph, ours: str, theirs: str) -> str:
    return merge_base(graph._repo, head(graph, ours), head(graph, theirs)).content


@pytest.fixture
def graph() -> Graph:
    return people()


def test_the_base_of_a_branch_is_where_it_was_forked(graph: Graph) -> None:
    fork = head(graph)
    graph.create_branch("a")
    add(graph, "m1")
    add(graph, "a1", "a")
    assert base(graph, "main", "a") == fork.content == base(graph, "a", "main")


def test_the_base_of_two_branches_is_the_older_fork(graph: Graph) -> None:
    fork = head(graph)
    graph.create_branch("a")
    add(graph, "m1")
    graph.create_branch("b")
    add(graph, "a1", "a")
    add(graph, "b1", "b")
    assert base(graph, "a", "b") == fork.content


def test_a_branch_of_a_branch_is_found_through_its_parent(graph: Graph) -> None:
    graph.create_branch("a")
    fork = add(graph, "a1", "a")
    graph.create_branch("b", from_="a")
    add(graph, "b1", "b")
    add(graph, "a2", "a")
    assert base(graph, "a", "b") == fork.content
    assert base(graph, "main", "b") == head(graph).content


def test_the_base_after_a_merge_is_what_was_merged(graph: Graph) -> None:
    graph.create_branch("a")
    merged = add(graph, "a1", "a")
    add(graph, "m1")
    graph.merge("a")
    add(graph, "a2", "a")
    assert base(graph, "main", "a") == merged.content


def test_what_came_along_with_another_branch_counts_as_merged(graph: Graph) -> None:
    for name in ("a", "b"):
        graph.create_branch(name)
    add(graph, "m1")
    add(graph, "a1", "a")
    merged = add(graph, "b1", "b")
    graph.merge("b", into="a")
    graph.merge("a")
    add(graph, "b2", "b")
    assert base(graph, "main", "b") == merged.content
    change(graph, 'delete City where name = "b1"')
    graph.merge("b")
    assert "b1" not in rows(graph, "City"), "a deleted row came back"
    assert "b2" in rows(graph, "City")


def test_a_fork_taken_from_a_merged_state_knows_what_was_merged(graph: Graph) -> None:
    graph.create_branch("a")
    merged = add(graph, "a1", "a")
    add(graph, "m1")
    graph.merge("a")
    graph.create_branch("c")
    add(graph, "c1", "c")
    add(graph, "a2", "a")
    assert base(graph, "c", "a") == merged.content


def test_two_merges_across_each_other_have_one_base_all_the_same(graph: Graph) -> None:
    graph.create_branch("a")
    graph.create_branch("before")
    add(graph, "m1")
    add(graph, "a1", "a")
    graph.merge("main", into="before")
    graph.merge("a")
    graph.merge("before", into="a")
    add(graph, "m2")
    add(graph, "a2", "a")
    assert base(graph, "main", "a") == base(graph, "a", "main")
    assert graph.merge("a").outcome == "merged"
    assert {"m1", "m2", "a1", "a2"} <= set(rows(graph, "City"))


def test_a_base_is_found_without_walking_history(graph: Graph) -> None:
    for number in range(40):
        graph.create_branch(f"b{number}")
        add(graph, f"x{number}", f"b{number}")
        graph.merge(f"b{number}")
    graph.create_branch("last")
    ours, theirs = head(graph), add(graph, "y", "last")
    graph._repo.chains._known.clear()
    with metrics.operation("base") as cost:
        merge_base(graph._repo, ours, theirs)
    assert cost.ops <= 4, f"{cost.ops} requests for one merge base"
    assert len(knowledge(graph._repo, ours)) == 41


def test_the_steps_between_two_commits_are_those_of_both_ways(graph: Graph) -> None:
    graph.create_branch("a")
    ours = [add(graph, f"m{i}") for i in range(2)]
    theirs = [add(graph, f"a{i}", "a") for i in range(3)]
    found = steps(graph._repo, ours[-1], theirs[-1], limit=100)
    assert found is not None
    ends = {(step.commit.chain, step.commit.number) for step in found}
    assert ends >= {(c.chain, c.number) for c in (*ours, *theirs)}
    assert steps(graph._repo, ours[-1], theirs[-1], limit=2) is None


def test_a_fork_through_a_deleted_branch_outlives_a_collection(graph: Graph) -> None:
    graph.create_branch("between")
    graph.create_branch("a", from_="between")
    graph.delete_branch("between")
    for number in range(3):
        add(graph, f"m{number}")
    add(graph, "a1", "a")
    for _ in range(2):
        graph.cleanup(keep=1)
    assert graph.merge("a").outcome == "merged"
    assert {"m2", "a1"} <= set(rows(graph, "City"))


def places(found: list[HistoryStep] | None) -> list[tuple[str, int]]:
    assert found is not None
    return [(step.commit.chain, step.commit.number) for step in found]


def test_steps_lead_from_the_fork_to_both_ends_each_from_the_state_before(graph: Graph) -> None:
    fork = head(graph)
    graph.create_branch("a")
    start = head(graph, "a")
    ours = [add(graph, f"m{i}") for i in range(2)]
    theirs = [add(graph, f"a{i}", "a") for i in range(3)]
    found = steps(graph._repo, ours[-1], theirs[-1], limit=100)
    wanted = [*ours, start, *theirs]
    assert places(found) == [(c.chain, c.number) for c in wanted]
    assert found is not None
    before = [(s.before.chain, s.before.number) for s in found]
    expected = [fork, ours[0], fork, start, *theirs[:-1]]
    assert before == [(c.chain, c.number) for c in expected]
    along = [*ours, add(graph, "m2")]
    assert places(steps(graph._repo, fork, along[-1], limit=3)) == [
        (c.chain, c.number) for c in along
    ]


def test_as_many_steps_as_the_limit_are_told_and_none_more(graph: Graph) -> None:
    first = head(graph)
    last = [add(graph, f"m{i}") for i in range(4)][-1]
    assert len(places(steps(graph._repo, first, last, limit=4))) == 4
    assert steps(graph._repo, first, last, limit=3) is None
    assert steps(graph._repo, last, first, limit=3) is None
    graph.create_branch("a")
    theirs = [add(graph, f"a{i}", "a") for i in range(2)][-1]
    ours = add(graph, "m4")
    assert len(places(steps(graph._repo, ours, theirs, limit=4))) == 4
    assert steps(graph._repo, ours, theirs, limit=2) is None
    assert places(steps(graph._repo, ours, ours, limit=0)) == []


def test_steps_that_were_pruned_cannot_be_told(graph: Graph) -> None:
    first = head(graph)
    for number in range(5):
        last = add(graph, f"m{number}")
    assert len(places(steps(graph._repo, first, last, limit=100))) == 5
    graph.cleanup(keep=1)
    graph._repo.chains._known.clear()
    assert steps(graph._repo, first, last, limit=100) is None


def test_a_commit_knows_its_chain_its_forks_and_what_was_merged(graph: Graph) -> None:
    add(graph, "m1")
    fork = head(graph)
    graph.create_branch("a")
    add(graph, "m2")
    inner = add(graph, "a1", "a")
    graph.create_branch("b", from_="a")
    last = add(graph, "b1", "b")
    repo = graph._repo
    assert list(ancestry(repo, last)) == [
        (last.chain, last.number),
        (inner.chain, inner.number),
        (fork.chain, fork.number),
    ]
    assert knowledge(repo, last) == dict(ancestry(repo, last))
    brought = brought_along(repo, head(graph), last)
    assert brought == {c.chain: f"{c.chain}.{c.number}" for c in (last, inner)}
    assert brought_along(repo, last, last) == {}
    graph.merge("b")
    known = knowledge(repo, head(graph))
    assert known == {
        head(graph).chain: head(graph).number,
        last.chain: last.number,
        inner.chain: inner.number,
    }
    assert brought_along(repo, head(graph), last) == {}


def test_of_what_both_know_the_newest_is_the_base(graph: Graph) -> None:
    graph.create_branch("a")
    graph.create_branch("b")
    shared = add(graph, "a1", "a")
    add(graph, "a2", "a")
    add(graph, "b1", "b")
    for target in ("main", "b"):
        graph.merge("a", into=target)
    merged = head(graph, "a")
    assert base(graph, "main", "b") == merged.content != shared.content
    newest = add(graph, "m1")
    graph.merge("main", into="b")
    assert base(graph, "main", "b") == newest.content == base(graph, "b", "main")


def test_a_commit_is_its_own_base(graph: Graph) -> None:
    last = add(graph, "m1")
    graph.create_branch("a")
    assert merge_base(graph._repo, last, last) == last
    assert base(graph, "main", "a") == last.content


def test_of_several_bases_that_do_not_know_each_other_the_youngest_is_taken(graph: Graph) -> None:
    for name in ("a", "c"):
        graph.create_branch(name)
    older = add(graph, "a1", "a")
    graph.merge("a")
    younger = add(graph, "c1", "c")
    for target in ("a", "main"):
        graph.merge("c", into=target)
    add(graph, "a2", "a")
    add(graph, "m2")
    assert older.time < younger.time
    assert base(graph, "main", "a") == younger.content == base(graph, "a", "main")


def test_maintenance_makes_no_base_younger(graph: Graph) -> None:
    graph.create_branch("a")
    for name in ("a1", "a2", "a3"):
        older = add(graph, name, "a")
    younger = add(graph, "m1")
    graph.create_branch("c")
    graph.optimize("a")
    assert head(graph, "a").content == older.content
    assert head(graph, "a").time > younger.time, "optimize has made a commit"
    for target in ("main", "c"):
        graph.merge("a", into=target)
    assert base(graph, "main", "c") == younger.content == base(graph, "c", "main")
