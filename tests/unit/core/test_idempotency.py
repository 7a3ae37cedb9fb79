"""One key, one application, whatever is repeated, lost or pruned."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from omnigraph import outcomes
from omnigraph.core.idempotency import landed_before
from omnigraph.core.plan import NOTHING, PublishPlan, Request, Verb
from omnigraph.core.publisher import Published, Ticket, publish, replay
from omnigraph.core.records import Commit, buried
from omnigraph.core.repository import Repository
from omnigraph.core.txn import WriteTxn
from omnigraph.errors import CommitPruned, IdempotencyMismatch
from omnigraph.graph import Graph, init, open_graph
from omnigraph.maintenance.collection import Retention, collect
from omnigraph.model.limits import Limits
from omnigraph.model.names import MAIN
from tests.support.faults_by_count import Died, Disturbance, Fault
from tests.support.worlds import (
    add_knows,
    add_person,
    another_process,
    disturbed,
    memory_repository,
    people,
    submit,
)


@pytest.fixture
def repo() -> Repository:
    repo = memory_repository(limits=Limits(recent_commits=4))
    for name in ("ann", "bob"):
        submit(repo, add_person(name))
    return repo


def test_a_repeated_request_returns_the_first_commit(repo: Repository) -> None:
    first = submit(repo, add_knows("e1", "ann", "bob"), idempotency_key="k", fingerprint="f")
    again = submit(
        another_process(repo), add_knows("e2", "ann", "bob"), idempotency_key="k", fingerprint="f"
    )
    assert again.replayed
    assert not first.replayed
    assert again.commit_id == first.commit_id


def test_a_repeated_request_is_found_far_back_in_history(repo: Repository) -> None:
    first = submit(repo, add_person("cy"), idempotency_key="k")
    for number in range(23):
        submit(repo, add_person(f"p{number}"))
    again = submit(another_process(repo), add_person("cy"), idempotency_key="k")
    assert again.replayed
    assert again.commit_id == first.commit_id


def test_a_repeated_request_is_recognised_after_its_commit_was_pruned(repo: Repository) -> None:
    submit(repo, add_person("cy"), idempotency_key="k")
    for number in range(9):
        submit(repo, add_person(f"p{number}"))
    collect(repo, Retention(keep=1))
    length = len(Graph(repo).log(limit=None))
    again = submit(another_process(repo), add_person("cy"), idempotency_key="k")
    assert again.replayed
    assert len(Graph(repo).log(limit=None)) == length, "nothing was applied a second time"


def test_another_request_under_the_key_is_refused(repo: Repository) -> None:
    submit(repo, add_person("cy"), idempotency_key="k", fingerprint="one")
    with pytest.raises(IdempotencyMismatch) as caught:
        submit(repo, add_person("dee"), idempotency_key="k", fingerprint="two")
    assert caught.value.details["differs"] == "fingerprint"


def test_the_key_belongs_to_one_branch(repo: Repository) -> None:
    Graph(repo).create_branch("dev")
    submit(repo, add_person("cy"), idempotency_key="k")
    with pytest.raises(IdempotencyMismatch) as caught:
        submit(repo, add_person("cy"), idempotency_key="k", branch="dev")
    assert caught.value.details["differs"] == "branch"


def test_a_crash_at_any_write_and_a_retry_apply_once(repo: Repository) -> None:
    quiet = Disturbance()
    submit(disturbed(repo, quiet.before, quiet.after), add_person("zero"), idempotency_key="k0")
    for at in range(quiet.writes):
        for fault in (Fault.DIE_BEFORE, Fault.DIE_AFTER):
            key, name = f"key {at} {fault.name}", f"person {at} {fault.name}"
            storm = Disturbance(fault, at)
            length = len(Graph(repo).log(limit=None))
            with pytest.raises(Died):
                submit(
                    disturbed(repo, storm.before, storm.after),
                    add_person(name),
                    idempotency_key=key,
                )
            submit(another_process(repo), add_person(name), idempotency_key=key)
            submit(another_process(repo), add_person(name), idempotency_key=key)
            assert len(Graph(another_process(repo)).log(limit=None)) == length + 1, storm.struck
            assert people(another_process(repo)).count(name) == 1


# --- the answer of a repetition --------------------------------------------------------------------------------------

PEOPLE = "node Person { name: String @key }\nnode Log { text: String }"
Answer = dict[str, Any]


def mutated(graph: Graph, branch: str) -> Answer:
    text = 'insert Log { text: "x" }'
    done = graph.mutate(text, branch=branch, actor="ann", message="one", idempotency_key="mutate")
    return {"replayed": done.replayed, **done.to_json()}


def loaded(graph: Graph, branch: str) -> Answer:
    rows = {"Log": [{"text": "x"}, {"text": "y"}]}
    return graph.load(rows, "append", branch, actor="bob", idempotency_key="load").to_json()


def blocked(graph: Graph, branch: str) -> Answer:
    with graph.branch(branch).write("a block", idempotency_key="block") as block:
        block.mutate('insert Log { text: "x" }')
        block.mutate('delete Person where name = "nobody"')
        block.load({"Log": [{"text": "z"}]}, mode="append")
    assert block.commit is not None
    results = [result.to_json() for result in block.results]
    return {"replayed": block.replayed, "commit": block.commit.to_json(), "results": results}


def did_nothing(graph: Graph, branch: str) -> Answer:
    done = graph.mutate(
        'delete Person where name = "nobody"', branch=branch, idempotency_key="none"
    )
    return {"replayed": done.replayed, **done.to_json()}


def request(verb: Verb, **options: Any) -> Request:
    return Request(branch=MAIN, verb=verb, **options)


WRITES = (mutated, loaded, blocked, did_nothing)


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = init(str(tmp_path / "g"), schema=PEOPLE)
    graph.create_branch("work")
    return graph


def rows_of(graph: Graph) -> int:
    return len(graph.query("match { $l: Log } return { $l.text }", branch="work"))


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("after", ["at once", "a cleanup", "its branch is gone", "both"])
def test_a_repetition_gets_the_first_answer_whatever_happened_since(
    graph: Graph, write: Callable[[Graph, str], Answer], after: str
) -> None:
    first = write(graph, "work")
    rows = rows_of(graph)
    for name in "abc":
        graph.mutate(f'insert Person {{ name: "{name}" }}', branch="work")
    graph.mutate('insert Person { name: "nobody" }', branch="work")
    if after in ("its branch is gone", "both"):
        graph.delete_branch("work")
    if after in ("a cleanup", "both"):
        graph.cleanup(keep=1)
    for handle in (graph, open_graph(graph.uri)):
        again = write(handle, "work")
        assert not first["replayed"]
        assert again == first | {"replayed": True}
    if after in ("at once", "a cleanup"):
        assert rows_of(graph) == rows, "nothing was applied a second time"


def test_a_branch_of_the_same_name_does_not_take_over_the_key(graph: Graph) -> None:
    first = mutated(graph, "work")
    graph.delete_branch("work")
    graph.create_branch("work")
    assert mutated(graph, "work") == first | {"replayed": True}
    assert rows_of(graph) == 0


def test_the_answer_inside_a_group_outlives_a_cleanup(repo: Repository) -> None:
    tickets = [
        Ticket(request(add_person(name), idempotency_key=name), f"op {name}", 0)
        for name in ("cy", "dee")
    ]
    publish(repo, tickets)
    first = [ticket.outcome for ticket in tickets]
    for number in range(3):
        submit(repo, add_person(f"p{number}"))
    collect(repo, Retention(keep=1))
    head = another_process(repo).head("main").commit
    for ticket, before in zip(tickets, first, strict=True):
        found = landed_before(another_process(repo), ticket.operation_id, 0, head)
        assert found is not None
        assert before is not None
        again = replay(found, ticket.operation_id)
        assert again.commit_id == before.commit_id
        assert outcomes.Commit.published(again) == outcomes.Commit.published(before)


def test_a_write_that_did_nothing_is_remembered_where_nobody_looks(graph: Graph) -> None:
    log, head = graph.log("work"), graph.snapshot("work").commit_id
    did_nothing(graph, "work")
    assert graph.log("work") == log
    assert graph.snapshot("work").commit_id == head
    graph.mutate('insert Person { name: "x" }', branch="work", if_commit=head)
    assert next(iter(graph.changes(after=head, branch="work"))).id == "x"


def test_writes_that_do_nothing_stay_apart_from_those_that_do(repo: Repository) -> None:
    one = Ticket(request(lambda _: NOTHING, idempotency_key="none"), "op none", 0)
    other = Ticket(request(add_person("cy"), idempotency_key="some"), "op some", 0)
    publish(repo, [one, other])
    assert one.outcome is not None
    assert other.outcome is not None
    assert one.outcome.commit is None
    assert isinstance(other.outcome.commit, Commit)
    assert [member.kind for member in other.outcome.commit.members] == ["mutation"]


def test_a_twin_that_was_overtaken_says_that_it_is_a_repetition(repo: Repository) -> None:
    """Both work under one key at once; the slower one finds the commit of the other when it wants to publish."""
    twin = another_process(repo)
    first: list[Published] = []

    def overtaken(txn: WriteTxn) -> PublishPlan:
        if not first:
            first.append(submit(twin, add_person("cy"), idempotency_key="k"))
        return add_person("cy")(txn)

    again = submit(repo, overtaken, idempotency_key="k")
    assert again.replayed
    assert again.commit_id == first[0].commit_id
    assert not first[0].replayed


def test_an_answer_that_is_gone_is_an_error_with_a_code(repo: Repository) -> None:
    submit(repo, add_person("cy"), idempotency_key="k")
    head = repo.head("main").commit
    bare = msgspec.structs.replace(buried(head), answers=())
    with pytest.raises(CommitPruned):
        replay(bare, head.members[0].operation_id)


def test_a_crash_at_any_write_of_one_that_does_nothing_and_a_retry_answer_alike(
    repo: Repository,
) -> None:
    quiet = Disturbance()
    store = disturbed(repo, quiet.before, quiet.after)
    submit(store, lambda _: NOTHING, idempotency_key="quiet")
    assert quiet.writes == 2, "the claim, and the commit that remembers it"
    log = Graph(repo).log(limit=None)
    for at in range(quiet.writes):
        for fault in (Fault.DIE_BEFORE, Fault.DIE_AFTER):
            key, storm = f"key {at} {fault.name}", Disturbance(fault, at)
            store = disturbed(repo, storm.before, storm.after)
            with pytest.raises(Died):
                submit(store, lambda _: NOTHING, idempotency_key=key)
            submit(another_process(repo), lambda _: NOTHING, idempotency_key=key)
            again = submit(another_process(repo), add_person("late"), idempotency_key=key)
            assert (again.commit, again.replayed) == (None, True)
    assert Graph(another_process(repo)).log(limit=None) == log
    assert "late" not in people(another_process(repo))
