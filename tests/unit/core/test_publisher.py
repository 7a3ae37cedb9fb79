"""Losing a race: who may go on with what was staged, who runs again, and who gets the conflict."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.core.clock import Clock
from omnigraph.core.plan import NewSchema, Overwrite, PublishPlan, Reads, Verb
from omnigraph.core.repository import Repository
from omnigraph.core.txn import WriteTxn
from omnigraph.errors import (
    BranchDeleted,
    BranchNotFound,
    CommitUnknown,
    Corrupt,
    PreconditionFailed,
    RetriesExhausted,
    StoreOutcomeUnknown,
    StoreUnavailable,
    WriteConflict,
)
from omnigraph.graph import Graph
from omnigraph.lang.schema import catalog_of, decode_ir
from omnigraph.maintenance.collection import Retention, collect
from omnigraph.model.limits import Limits
from omnigraph.model.tokens import endpoint_tokens
from tests.support.dict_objects import DictObjects
from tests.support.worlds import (
    SCHEMA,
    Rejected,
    add_knows,
    add_person,
    another_process,
    dangling,
    disturbed,
    drop_person,
    edges,
    memory_repository,
    people,
    plan,
    rows_of,
    stored_schema,
    submit,
)


@pytest.fixture
def repo() -> Repository:
    repo = memory_repository()
    for name in ("ann", "bob", "cy"):
        submit(repo, add_person(name))
    return repo


def racing(verb: Verb, rival: Callable[[], Any]) -> tuple[Verb, list[int]]:
    """A verb that lets a rival publish right after its first run, and counts its runs."""
    runs: list[int] = []

    def wrapped(txn: WriteTxn) -> PublishPlan:
        wanted = verb(txn)
        runs.append(txn.snapshot.commit.number)
        if len(runs) == 1:
            rival()
        return wanted

    return wrapped, runs


def test_writers_of_different_rows_do_not_disturb_each_other(repo: Repository) -> None:
    verb, runs = racing(add_person("dee"), lambda: submit(another_process(repo), add_person("eve")))
    submit(repo, verb)
    assert len(runs) == 1, "disjoint rows must not make a verb run again"
    assert people(repo) == ["ann", "bob", "cy", "dee", "eve"]


def test_writers_of_one_row_are_serialised(repo: Repository) -> None:
    verb, runs = racing(
        add_person("ann", age=1), lambda: submit(another_process(repo), add_person("ann", age=2))
    )
    submit(repo, verb)
    assert len(runs) == 2, "the second writer of a row must see the first"
    assert people(repo).count("ann") == 1


def test_an_update_is_staged_again_when_its_table_moved(repo: Repository) -> None:
    verb, runs = racing(
        add_person("ann", age=7), lambda: submit(another_process(repo), drop_person("bob"))
    )
    submit(repo, verb)
    assert len(runs) == 1
    assert people(repo) == ["ann", "cy"]


def test_an_edge_to_a_node_being_deleted_never_commits_edge_first(repo: Repository) -> None:
    rival = another_process(repo)
    verb, _ = racing(drop_person("bob"), lambda: submit(rival, add_knows("e1", "ann", "bob")))
    submit(repo, verb)
    assert people(repo) == ["ann", "cy"]
    assert edges(repo) == [], "the cascade must take the edge that was added meanwhile"


def test_an_edge_to_a_node_being_deleted_never_commits_delete_first(repo: Repository) -> None:
    verb, runs = racing(
        add_knows("e1", "ann", "bob"), lambda: submit(another_process(repo), drop_person("bob"))
    )
    with pytest.raises(Rejected):
        submit(repo, verb)
    assert len(runs) == 1  # the second run refuses before it is counted
    assert not dangling(repo)


def test_a_unique_value_is_taken_once(repo: Repository) -> None:
    rival = another_process(repo)
    verb, _ = racing(add_person("dee", "x@x"), lambda: submit(rival, add_person("eve", "x@x")))
    with pytest.raises(Rejected):
        submit(repo, verb)
    assert people(repo) == ["ann", "bob", "cy", "eve"]


def test_edges_of_one_source_do_not_conflict_unless_somebody_counts_them(repo: Repository) -> None:
    rival = another_process(repo)
    verb, runs = racing(
        add_knows("e1", "ann", "bob"), lambda: submit(rival, add_knows("e2", "ann", "cy"))
    )
    submit(repo, verb)
    assert len(runs) == 1

    def counting(txn: WriteTxn) -> PublishPlan:
        wanted = add_knows("e3", "ann", "bob")(txn)
        table = txn.catalog.edges["Knows"].table_id
        counted = Reads(endpoint_tokens("src", pa.array(["ann"])))
        return plan(wanted.actions, {**wanted.reads, table: wanted.reads[table] | counted})

    verb, runs = racing(counting, lambda: submit(rival, add_knows("e4", "ann", "cy")))
    submit(repo, verb)
    assert len(runs) == 2, "who counted the edges of a source must look again when one was added"


def overwrite_people(*names: str) -> Verb:
    def verb(txn: WriteTxn) -> PublishPlan:
        rows = rows_of(txn, "Person", [{"id": n, "name": n} for n in names])
        return plan([Overwrite(txn.catalog.nodes["Person"].table_id, rows)], strict=True)

    return verb


def test_a_strict_write_answers_with_the_conflict(repo: Repository) -> None:
    rival = another_process(repo)
    verb, runs = racing(
        overwrite_people("new"),
        lambda: submit(rival, add_person("dee"), actor="dora", message="hello"),
    )
    with pytest.raises(WriteConflict) as caught:
        submit(repo, verb, alone=True)
    assert len(runs) == 1
    assert caught.value.details["actor"] == "dora"
    assert caught.value.details["types"] == ["Person"]
    assert caught.value.details["commit"] == Graph(repo).log()[0].id
    assert people(repo) == ["ann", "bob", "cy", "dee"]


def test_a_strict_write_is_not_concerned_by_other_tables(repo: Repository) -> None:
    verb, runs = racing(
        overwrite_people("new", "ann", "bob"),
        lambda: submit(another_process(repo), add_knows("e1", "ann", "bob")),
    )
    submit(repo, verb, alone=True)
    assert len(runs) == 1
    assert people(repo) == ["ann", "bob", "new"]


def test_a_strict_write_survives_a_collection(repo: Repository) -> None:
    verb, runs = racing(
        overwrite_people("new"), lambda: collect(another_process(repo), Retention(keep=1))
    )
    submit(repo, verb, alone=True)
    assert len(runs) == 2, "a newer epoch means staging from scratch"
    assert people(repo) == ["new"]


def test_a_conditional_write_names_both_commits(repo: Repository) -> None:
    seen = Graph(repo).log()[0].id
    submit(repo, add_person("dee"), if_commit=seen)
    with pytest.raises(PreconditionFailed) as caught:
        submit(repo, add_person("eve"), if_commit=seen)
    assert caught.value.details == {"expected": seen, "actual": Graph(repo).log()[0].id}


def test_a_conditional_write_loses_a_race(repo: Repository) -> None:
    seen = Graph(repo).log()[0].id
    verb, _ = racing(
        add_person("dee"), lambda: submit(another_process(repo), add_knows("e1", "ann", "bob"))
    )
    with pytest.raises(PreconditionFailed):
        submit(repo, verb, if_commit=seen)
    assert people(repo) == ["ann", "bob", "cy"]


def test_a_conditional_write_is_not_disturbed_by_maintenance(repo: Repository) -> None:
    seen = Graph(repo).log()[0].id
    collect(repo, Retention(keep=5))
    submit(repo, add_person("dee"), if_commit=seen)
    assert "dee" in people(repo)


def test_a_writer_of_a_deleted_branch_loses(repo: Repository) -> None:
    Graph(repo).create_branch("dev")
    verb, _ = racing(add_person("dee"), lambda: Graph(another_process(repo)).delete_branch("dev"))
    with pytest.raises(BranchDeleted):
        submit(repo, verb, branch="dev")
    with pytest.raises(BranchNotFound):
        submit(repo, add_person("dee"), branch="dev")


def test_a_stalled_writer_cannot_publish_what_a_collection_took(repo: Repository) -> None:
    rival = another_process(repo)

    def meanwhile() -> None:
        submit(rival, add_knows("e1", "ann", "bob"))
        collect(rival, Retention(keep=1))
        collect(rival, Retention(keep=1))

    verb, runs = racing(add_person("dee"), meanwhile)
    submit(repo, verb)
    assert len(runs) == 2
    assert people(another_process(repo)) == ["ann", "bob", "cy", "dee"]


def overtaken(verb: Verb, rival: Callable[[], Any]) -> Verb:
    """A verb during whose first run, before it has read anything, a rival does its work."""
    runs: list[int] = []

    def wrapped(txn: WriteTxn) -> PublishPlan:
        runs.append(txn.snapshot.commit.number)
        if len(runs) == 1:
            rival()
        return verb(txn)

    return wrapped


def test_a_writer_that_slept_through_collections_reads_again_and_sees_no_damage(
    repo: Repository,
) -> None:
    rival = another_process(repo)

    def meanwhile() -> None:
        submit(rival, drop_person("ann"))
        collect(rival, Retention(keep=1))

    submit(repo, overtaken(add_person("dee"), meanwhile))
    assert people(another_process(repo)) == ["bob", "cy", "dee"]


def test_a_missing_file_is_damage_whatever_collections_there_were(repo: Repository) -> None:
    rival = another_process(repo)
    store = repo.objects
    assert isinstance(store, DictObjects)

    def meanwhile() -> None:
        collect(rival, Retention(keep=1))
        for key in [key for key in store.objects if "/data/" in key]:
            store.objects.pop(key)

    with pytest.raises(Corrupt):
        submit(repo, overtaken(add_person("dee"), meanwhile))


def test_a_store_that_never_answers_gives_an_unknown_outcome(repo: Repository) -> None:
    def silent(verb: str, key: str) -> None:
        if verb == "put_new" and key.startswith("__manifest"):
            raise StoreOutcomeUnknown("no answer")

    with pytest.raises(CommitUnknown) as caught:
        submit(disturbed(repo, before=silent), add_person("dee"))
    assert caught.value.details["operation_ids"], (
        "the operation id is what the caller looks for later"
    )
    assert not caught.value.retryable


def test_a_late_answer_is_recognised(repo: Repository) -> None:
    """The create times out, lands later, and the repeated create meets it."""
    late: list[str] = []

    def lost(verb: str, key: str) -> None:
        if verb == "put_new" and key.startswith("__manifest") and not late:
            late.append(key)
            raise StoreOutcomeUnknown("no answer")

    done = submit(disturbed(repo, after=lost), add_person("dee"))
    assert done.commit_id == Graph(another_process(repo)).log()[0].id
    assert len(Graph(another_process(repo)).log()) == 5


def test_threads_of_one_process_share_commits(repo: Repository) -> None:
    graph = Graph(repo)
    barrier = threading.Barrier(16)
    failures: list[BaseException] = []

    def work(number: int) -> None:
        barrier.wait()
        try:
            graph.publish(add_person(f"t{number:02d}"), actor=f"actor{number}")
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    log = [c for c in graph.log() if c.actor and c.actor.startswith("actor")]
    assert sorted(c.actor or "" for c in log) == sorted(f"actor{n}" for n in range(16))
    assert len({c.id for c in log}) == 16, "every folded write keeps an identity of its own"
    assert repo.head("main").commit.number < 3 + 16, "some of them must have shared a commit"
    assert {f"t{n:02d}" for n in range(16)} <= set(people(repo))


# --- giving up -----------------------------------------------------------------------------------------------------


def before_each_commit(rival: Callable[[int], object]) -> Callable[[str, str], None]:
    """A rival comes in right before every create of a commit."""
    count = iter(range(1000))

    def before(verb: str, key: str) -> None:
        if verb == "put_new" and key.startswith("__manifest"):
            rival(next(count))

    return before


@pytest.mark.parametrize("same_row", [True, False], ids=["the same row", "another row"])
def test_a_writer_that_always_loses_says_so_in_the_end(same_row: bool) -> None:
    repo = memory_repository(
        limits=Limits(publish_attempts_max=3), clock=Clock(pause=lambda _seconds: None)
    )

    def rival(number: int) -> None:
        name = "mine" if same_row else f"p{number}"
        submit(another_process(repo), add_person(name, age=number))

    with pytest.raises(WriteConflict if same_row else RetriesExhausted) as raised:
        submit(disturbed(repo, before_each_commit(rival)), add_person("mine", age=-1))
    assert not same_row or raised.value.details["types"] == ["Person"], "it says who was in the way"
    shown = Graph(another_process(repo)).log(limit=None)
    assert len(shown) == repo.head("main").commit.number + 1
    assert ("mine" in people(another_process(repo))) is same_row, "it did not happen"


def test_a_writer_that_loses_often_wins_in_the_end() -> None:
    waited: list[float] = []
    repo = memory_repository(clock=Clock(pause=waited.append, chance=lambda: 1.0))

    def rival(number: int) -> None:
        if number < 4:
            submit(another_process(repo), add_person(f"p{number}"))

    submit(disturbed(repo, before_each_commit(rival)), add_person("mine"))
    assert people(another_process(repo)) == ["mine", "p0", "p1", "p2", "p3"]
    assert waited == sorted(waited, reverse=True), "whoever lost more often tries sooner"
    assert len(waited) == 3, "the first loss is tried again at once"


def test_what_was_staged_goes_on_other_heads_without_writing_again(repo: Repository) -> None:
    """The winners wrote other tables: the same version is named by another commit."""
    staged: list[str] = []

    def count(verb: str, key: str) -> None:
        if verb == "file" and "/edges/" not in f"/{key}":
            staged.append(key)

    rival = another_process(repo)
    busy = before_each_commit(
        lambda n: submit(rival, add_knows(f"e{n}", "ann", "bob")) if n < 2 else None
    )

    def before(verb: str, key: str) -> None:
        count(verb, key)
        busy(verb, key)

    submit(disturbed(repo, before), add_person("dee"))
    assert len(staged) == 2, f"a data file and a version: {staged}"
    assert people(another_process(repo)) == ["ann", "bob", "cy", "dee"]
    assert len(edges(another_process(repo))) == 2


def test_a_schema_nobody_answers_for_is_an_unknown_outcome_and_no_commit(repo: Repository) -> None:
    def silent(verb: str, key: str) -> None:
        if verb == "put_new" and key.startswith("_schemas/"):
            raise StoreOutcomeUnknown("no answer")

    def verb(txn: WriteTxn) -> PublishPlan:
        stored = stored_schema(SCHEMA + "node Town { name: String @key }")
        catalog = catalog_of(decode_ir(stored.ir.encode()))
        return PublishPlan(kind="schema", schema=NewSchema(stored, catalog))

    before = repo.head("main").commit.number
    with pytest.raises(StoreOutcomeUnknown):
        submit(disturbed(repo, silent), verb)
    assert another_process(repo).head("main").commit.number == before


def test_a_write_whose_answer_was_lost_is_recognised_by_its_tombstone(repo: Repository) -> None:
    """Landed, unanswered, overtaken and pruned before its writer looks again."""
    rival = another_process(repo)
    lost: list[str] = []

    def after(verb: str, key: str) -> None:
        if verb == "put_new" and key.startswith("__manifest") and not lost:
            lost.append(key)
            for name in ("eve", "fay"):
                submit(rival, add_person(name))
            collect(rival, Retention(keep=1))
            raise StoreOutcomeUnknown("no answer")

    done = submit(disturbed(repo, after=after), add_person("dee"))
    assert done.commit is None, "its commit cannot be shown any more"
    assert people(another_process(repo)) == ["ann", "bob", "cy", "dee", "eve", "fay"]
    assert len(Graph(another_process(repo)).log(limit=None)) == 7, "it was applied twice"


def test_a_store_that_is_away_while_it_is_asked_is_asked_again(repo: Repository) -> None:
    """The create gets no answer, and neither does the question what became of it."""
    calls: list[str] = []

    def before(verb: str, key: str) -> None:
        if not key.startswith("__manifest"):
            return
        if verb == "put_new":
            calls.append("create")
        if calls == ["create"]:
            if verb == "put_new":
                raise StoreOutcomeUnknown("no answer")
            calls.append("away")
            raise StoreUnavailable("away")

    submit(disturbed(repo, before), add_person("dee"))
    assert calls == ["create", "away", "create"]
    assert people(another_process(repo)) == ["ann", "bob", "cy", "dee"]


def test_a_conditional_write_on_a_deleted_branch(repo: Repository) -> None:
    Graph(repo).create_branch("dev")
    seen = repo.head("dev").commit.content
    verb, _ = racing(add_person("dee"), lambda: Graph(another_process(repo)).delete_branch("dev"))
    with pytest.raises(BranchDeleted):
        submit(repo, verb, branch="dev", if_commit=seen)
