"""What a collection keeps, what it takes, and how it stays out of everybody's way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from omnigraph.core import layout
from omnigraph.core.branches import (
    Start,
    create_branch,
    create_tag,
    delete_branch,
    delete_tag,
    live_refs,
    tags,
)
from omnigraph.core.clock import Clock
from omnigraph.core.leases import (
    newest_record,
    pruned,
    record,
    remove_plan,
    renewed,
    save_plan,
    stored_plans,
)
from omnigraph.core.plan import PublishPlan, Verb
from omnigraph.core.records import Commit, Seal, StoredPlan, Tombstone
from omnigraph.core.repository import Repository
from omnigraph.core.txn import WriteTxn
from omnigraph.errors import (
    BranchNotFound,
    CommitPruned,
    CommitUnknown,
    Corrupt,
    OptionInvalid,
    RetriesExhausted,
    StoreOutcomeUnknown,
)
from omnigraph.graph import Graph
from omnigraph.maintenance.collection import Collected, Retention, collect
from omnigraph.model.limits import Limits
from omnigraph.model.names import MAIN
from omnigraph.write.undo import cherry_pick, reset, revert
from tests.support.dict_objects import DictObjects, Shelf
from tests.support.faults_by_count import Fault, count_writes, strike
from tests.support.worlds import (
    add_knows,
    add_person,
    another_process,
    disturbed,
    edges,
    memory_repository,
    once_at,
    people,
    submit,
)

HOUR = 3_600_000_000


@pytest.fixture
def repo() -> Repository:
    """Six people, one commit each, an hour apart."""
    times = iter(range(HOUR, 10_000 * HOUR, HOUR))
    repo = memory_repository(clock=Clock(now=lambda: next(times), pause=lambda _seconds: None))
    for name in "abcdef":
        submit(repo, add_person(name))
    return repo


def kinds(repo: Repository, branch: str = "main") -> str:
    """The chain of a branch in one word: c for a commit, t for a tombstone, s for a seal; oldest first."""
    chain = repo.head(branch).commit.chain
    last = repo.chains.newest(chain)
    assert last is not None
    return "".join(letter(repo.chains.read(chain, number)) for number in range(last + 1))


def letter(thing: object) -> str:
    match thing:
        case Commit():
            return "c"
        case Tombstone():
            return "t"
        case Seal():
            return "s"
        case _:
            return "?"


def files(repo: Repository) -> set[str]:
    there = repo.objects
    assert isinstance(there, DictObjects)
    return {key for key in there.objects if key.split("/")[0] in ("nodes", "edges")}


def collect_all(repo: Repository) -> None:
    collect(repo, Retention(keep=1))


def copied(repo: Repository) -> Repository:
    """The same state, apart."""
    return another_process(repo, DictObjects(_objects(repo).copy()))


def clean(repo: Repository) -> bool:
    rest = collect(another_process(repo), Retention(keep=1), dry_run=True)
    return (rest.commits_pruned, rest.objects_deleted) == (0, 0)


# --- retention -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keep", "chain"), [(1, "ttttttcc"), (3, "ttttcccc"), (7, "cccccccc"), (100, "cccccccc")]
)
def test_by_count(repo: Repository, keep: int, chain: str) -> None:
    collect(repo, Retention(keep=keep))
    assert kinds(another_process(repo)) == chain
    assert people(another_process(repo)) == list("abcdef")


def test_epochs_do_not_count_as_history(repo: Repository) -> None:
    for _ in range(3):
        collect(repo, Retention(keep=2))
    assert [c.kind for c in Graph(another_process(repo)).log(limit=2)] == ["mutation"] * 2
    Graph(another_process(repo)).snapshot(at="main~1")


def test_by_age(repo: Repository) -> None:
    young = Graph(repo).log()[3].time.timestamp() * 1_000_000
    collect(repo, Retention(keep=1, younger_than=int(young)))
    fresh = Graph(another_process(repo))
    fresh.snapshot(at="main~3")
    with pytest.raises(CommitPruned):
        fresh.snapshot(at="main~4")


def test_the_public_call_checks_its_argument(repo: Repository) -> None:
    with pytest.raises(OptionInvalid):
        Graph(repo).cleanup(keep=0)


def test_a_collection_says_what_it_did(repo: Repository) -> None:
    before = files(repo)
    done = collect(repo, Retention(keep=1))
    assert done.commits_pruned == 6
    assert done.objects_deleted == len(before) - len(files(repo)) > 0
    assert done.epoch == 1


def test_a_dry_run_changes_nothing_and_foretells_the_rest(repo: Repository) -> None:
    there = repo.objects
    assert isinstance(there, DictObjects)
    before = dict(there.objects)
    foretold = collect(repo, Retention(keep=1), dry_run=True)
    assert there.objects == before
    done = collect(repo, Retention(keep=1))
    assert (foretold.commits_pruned, foretold.objects_deleted) == (
        done.commits_pruned,
        done.objects_deleted,
    )


def test_a_second_collection_finds_nothing(repo: Repository) -> None:
    collect(repo, Retention(keep=1))
    again = collect(another_process(repo), Retention(keep=1))
    assert (again.commits_pruned, again.objects_deleted) == (0, 0)
    assert clean(repo)


# --- what holds commits --------------------------------------------------------------------------------------------


def test_a_tag_keeps_its_commit_and_nothing_around_it(repo: Repository) -> None:
    Graph(repo).tag("v1", "main~3")
    collect(repo, Retention(keep=1))
    assert kinds(another_process(repo)) == "tttcttcc"
    assert _at(repo, "v1") == list("abc")


def test_a_tag_taken_away_lets_its_commit_go(repo: Repository) -> None:
    graph = Graph(repo)
    graph.tag("v1", "main~3")
    collect(repo, Retention(keep=1))
    graph.delete_tag("v1")
    collect(repo, Retention(keep=1))
    assert set(kinds(another_process(repo))[:6]) == {"t"}
    assert clean(repo)


def test_a_commit_that_is_no_longer_kept_is_pruned_and_not_damaged(repo: Repository) -> None:
    """Its collector may die after the record and before the tombstone; the next one remembers."""
    graph = Graph(repo)
    old = graph.tag("v1", "main~3")
    collect(repo, Retention(keep=1))
    graph.delete_tag("v1")
    for at in range(count_writes(copied(repo), collect_all)):
        there = copied(repo)
        strike(there, collect_all, Fault.DIE_BEFORE, at)
        for _ in range(2):
            collect_all(another_process(there))
        with pytest.raises(CommitPruned):
            Graph(another_process(there)).snapshot(at=old)


def test_whatever_interrupts_a_collection_the_next_one_finishes_it(repo: Repository) -> None:
    writes = count_writes(copied(repo), collect_all)
    for at in range(writes):
        there = copied(repo)
        strike(there, collect_all, Fault.DIE_BEFORE, at)
        collect_all(another_process(there))
        collect_all(another_process(there))
        assert kinds(another_process(there)).startswith("tttttt"), f"killed at write {at}"
        assert people(another_process(there)) == list("abcdef")


def test_a_fork_keeps_the_commit_it_started_from(repo: Repository) -> None:
    graph = Graph(repo)
    graph.create_branch("dev", from_="main~3")
    for name in ("x", "y"):
        graph.publish(add_person(name), branch="dev")
    collect(repo, Retention(keep=1))
    fresh = another_process(repo)
    assert people(fresh, "dev") == ["a", "b", "c", "x", "y"]
    assert kinds(fresh)[3] == "c", "the base of later merges is gone"


def test_a_deleted_branch_is_collected(repo: Repository) -> None:
    graph = Graph(repo)
    graph.create_branch("dev")
    before = files(repo)
    graph.publish(add_person("x"), branch="dev")
    graph.delete_branch("dev")
    assert files(repo) - before
    collect(repo, Retention(keep=100))
    assert not files(repo) - before, "files of a deleted branch are left"
    assert people(another_process(repo)) == list("abcdef")


def test_what_never_became_visible_is_collected(repo: Repository) -> None:
    before = files(repo)
    strike(repo, lambda there: submit(there, add_person("z")), Fault.DIE_AFTER, 1)
    assert files(repo) - before, "nothing was staged: nothing is tested"
    collect(repo, Retention(keep=100))
    assert files(repo) <= before


# --- unfinished branches -------------------------------------------------------------------------------------------


def test_an_unfinished_branch_holds_its_source_once_and_is_then_called_off(
    repo: Repository,
) -> None:
    strike(repo, lambda there: Graph(there).create_branch("dev"), Fault.DIE_AFTER, 0)
    chain = live_refs(repo)[0].state.chain
    collect(repo, Retention(keep=1))
    assert "t" not in kinds(another_process(repo)), "its creator may still read any of these"
    assert repo.chains.read(chain, 0) is None
    collect(repo, Retention(keep=1))
    assert isinstance(repo.chains.read(chain, 0), Seal)
    collect(repo, Retention(keep=1))
    assert kinds(another_process(repo)).startswith("tttttt")
    assert clean(repo)


def test_a_creator_that_wakes_up_after_two_collections_fails_cleanly(repo: Repository) -> None:
    def before(verb: str, key: str) -> None:
        if verb == "put_new" and key.startswith(layout.CHAINS) and not done:
            done.append(True)
            for _ in range(2):
                collect(another_process(repo), Retention(keep=1))

    done: list[bool] = []
    with pytest.raises(Exception, match="was aborted"):
        Graph(disturbed(repo, before)).create_branch("dev")
    with pytest.raises(BranchNotFound):
        people(another_process(repo), "dev")


# --- beside others -------------------------------------------------------------------------------------------------


def between(
    repo: Repository, verb: Verb, meanwhile: Callable[[], object]
) -> tuple[Verb, list[int]]:
    """A verb during whose first run something else happens."""
    epochs: list[int] = []

    def wrapped(txn: WriteTxn) -> PublishPlan:
        wanted = verb(txn)
        epochs.append(txn.snapshot.commit.gc_epoch)
        if len(epochs) == 1:
            meanwhile()
        return wanted

    return wrapped, epochs


def test_a_writer_across_an_epoch_stages_again(repo: Repository) -> None:
    verb, epochs = between(
        repo, add_knows("e1", "a", "b"), lambda: collect(another_process(repo), Retention(keep=1))
    )
    submit(repo, verb)
    assert epochs == [0, 1]
    assert edges(another_process(repo)) == [("e1", "a", "b")]
    collect(repo, Retention(keep=1))
    assert edges(another_process(repo)) == [("e1", "a", "b")]
    assert clean(repo)


def test_two_collections_at_once(repo: Repository) -> None:
    """At every request of one collection, another runs from beginning to end."""

    def rival() -> None:
        collect(another_process(repo), Retention(keep=1))

    for at, outcome in _at_every_request(repo, Retention(keep=2), rival, step=7):
        fresh = another_process(repo)
        assert people(fresh) == list("abcdef"), f"after two collections, one at request {at}"
        assert outcome.epoch in (1, 2, 3), "it starts over once at most"
        collect(fresh, Retention(keep=1))
        collect(fresh, Retention(keep=1))
        assert clean(repo)


@pytest.mark.parametrize("remembered", [1, 4096])
def test_a_collection_that_slept_through_writes_and_another_takes_nothing_of_the_head(
    repo: Repository, remembered: int
) -> None:
    """Every commit it would keep is buried when it wakes up; the head of now has tables nobody touched since."""
    repo.limits = replace(repo.limits, commits_cached_max=remembered, read_threads_max=1)
    submit(repo, add_knows("e1", "a", "b"))
    create_branch(repo, "dev", Start(head_of=MAIN))

    def rival() -> None:
        process = another_process(repo)
        for name in ("g", "h"):
            submit(process, add_person(name))
            submit(process, add_person(name), branch="dev")
        collect(process, Retention(keep=1))

    for at, _ in _at_every_request(repo, Retention(keep=1), rival, step=1):
        fresh = another_process(repo)
        for branch in ("main", "dev"):
            head = fresh.head(branch).commit
            given_up = pruned(newest_record(fresh), head.chain, head.number)
            assert not given_up, f"the head of {branch}, asleep at request {at}"
        assert people(fresh) == list("abcdefgh"), f"asleep at request {at}"
        assert edges(fresh) == [("e1", "a", "b")], f"asleep at request {at}"
        assert Graph(fresh).doctor().healthy
        collect(fresh, Retention(keep=1))
        assert clean(repo)


def test_a_reset_beside_a_collection_takes_over_what_stays_or_nothing(repo: Repository) -> None:
    """At every request of a collection, a branch is taken back to a commit that the collection is to prune."""
    told: list[str] = []
    to = commit_number(repo, 2).content

    def rival() -> None:
        process = another_process(repo)
        try:
            submit(process, reset(process, to, "main"))
            told.append("done")
        except CommitPruned:
            told.append("pruned")

    for at, _ in _at_every_request(repo, Retention(keep=1), rival, step=1):
        shown = people(another_process(repo))
        wanted = list("ab") if told[-1] == "done" else list("abcdef")
        assert shown == wanted, f"{told[-1]}, asleep at request {at}"
    assert set(told) == {"done", "pruned"}


def test_a_collection_within_a_reset_leaves_what_it_takes_over(repo: Repository) -> None:
    """At every request of a reset of another branch, a collection prunes the commit it goes to."""
    create_branch(repo, "dev", Start(head_of=MAIN))
    base = {**_objects(repo)}
    to, told = commit_number(repo, 2).content, set[str]()

    def rival() -> None:
        collect(another_process(repo), Retention(keep=1))

    for at in range(40):
        _objects(repo).clear()
        _objects(repo).update(base)
        slow = disturbed(another_process(repo), once_at(at, rival))
        try:
            submit(slow, reset(slow, to, "dev"), branch="dev")
            told.add("done")
            wanted = list("ab")
        except CommitPruned:
            told.add("pruned")
            wanted = list("abcdef")
        assert people(another_process(repo), "dev") == wanted, f"at request {at}"
        rival()
        assert people(another_process(repo), "dev") == wanted, f"at request {at}, then another"
    assert told == {"done", "pruned"}


def test_a_process_that_remembers_a_pruned_commit_says_that_it_is_pruned(repo: Repository) -> None:
    old = commit_number(repo, 2)
    collect(another_process(repo), Retention(keep=1))
    for verb in (reset, revert, cherry_pick):
        with pytest.raises(CommitPruned):
            submit(repo, verb(repo, old.content, "main"))


def _at_every_request(
    repo: Repository, retention: Retention, rival: Callable[[], None], *, step: int
) -> Iterator[tuple[int, Collected]]:
    """A collection from the same beginning again and again; the rival acts at another of its requests each time."""
    base = {**_objects(repo)}
    requests: list[str] = []
    collect(disturbed(another_process(repo), lambda _, key: requests.append(key)), retention)
    for at in range(0, len(requests), step):
        _objects(repo).clear()
        _objects(repo).update(base)
        yield at, collect(disturbed(another_process(repo), once_at(at, rival)), retention)


def test_a_commit_tagged_while_a_record_declared_it_is_buried_once_its_tag_is_gone(
    repo: Repository,
) -> None:
    tagged: list[str] = []

    def before(verb: str, key: str) -> None:
        if verb == "put_new" and key.startswith("_gc/") and not tagged:
            tagged.append(key)
            create_tag(another_process(repo), "early", commit_number(repo, 2))

    collect(disturbed(another_process(repo), before), Retention(keep=1))
    assert tagged
    assert isinstance(repo.chains.read(repo.stamp.main_chain, 2), Commit), "the tag lost its commit"
    collect(another_process(repo), Retention(keep=1))
    delete_tag(another_process(repo), "early")
    for _ in range(2):
        collect(another_process(repo), Retention(keep=1))
    assert isinstance(repo.chains.read(repo.stamp.main_chain, 2), Tombstone), "it was forgotten"


def test_a_collection_that_slept_through_another_keeps_a_tag_made_meanwhile(
    repo: Repository,
) -> None:
    """It looks again at everything, and finds the tag."""
    slow = another_process(repo)
    create_branch(repo, "old", Start(commit=commit_number(repo, 2)))
    create_tag(repo, "early", commit_number(repo, 1))
    asleep: list[str] = []

    def before(verb: str, key: str) -> None:
        if verb == "put_new" and key.startswith("_gc/") and not asleep:
            asleep.append(key)
            delete_branch(another_process(repo), "old")
            collect(another_process(repo), Retention(keep=1))
            collect(another_process(repo), Retention(keep=1))

    collect(disturbed(slow, before), Retention(keep=1))
    assert asleep, "the collection wrote no record"
    fresh = another_process(repo)
    assert people(fresh) == list("abcdef")
    assert tags(fresh), "the tag is gone"
    assert isinstance(fresh.chains.read(fresh.stamp.main_chain, 1), Commit)
    fresh.snapshot(commit_number(fresh, 1)).table_of(
        fresh.schema(commit_number(fresh, 1).schema).catalog.nodes["Person"]
    ).scan(["id"])


def commit_number(repo: Repository, number: int) -> Commit:
    found = repo.chains.read(repo.stamp.main_chain, number)
    assert isinstance(found, Commit)
    return found


def test_a_write_at_every_request_of_a_collection(repo: Repository) -> None:
    requests: list[str] = []
    base = {**_objects(repo)}
    collect(disturbed(repo, lambda verb, key: requests.append(verb)), Retention(keep=1))
    for at in range(len(requests)):
        _objects(repo).clear()
        _objects(repo).update(base)
        seen: list[str] = []

        def before(verb: str, key: str, seen: list[str] = seen, at: int = at) -> None:
            seen.append(key)
            if len(seen) - 1 == at:
                submit(another_process(repo), add_person("z"))

        collect(disturbed(another_process(repo), before), Retention(keep=1))
        assert people(another_process(repo)) == [*"abcdef", "z"], f"a write at request {at} is lost"


# --- plans of long operations --------------------------------------------------------------------------------------


def long_operation(repo: Repository, plan: str) -> StoredPlan:
    table = repo.head("main").commit.tables
    return StoredPlan(
        plan=plan,
        operation_id="operation",
        kind="load",
        branch="main",
        gc_epoch=repo.head("main").commit.gc_epoch,
        created=repo.clock.now(),
        tables=tuple(entry.path for entry in table.values()),
    )


def test_the_lease_of_an_operation_that_died_ends(repo: Repository) -> None:
    dead, asleep = (long_operation(repo, name) for name in ("dead", "asleep"))
    while repo.clock.now() <= dead.created + repo.limits.lease_seconds_max * 1_000_000:
        pass  # every look at this clock is an hour
    save_plan(repo, dead)
    renewed(repo, asleep)
    collect(repo, Retention(keep=1), dry_run=True)
    assert {plan.plan for plan in stored_plans(repo)} == {"dead", "asleep"}
    collect(repo, Retention(keep=1))
    told = newest_record(repo)
    assert told is not None
    assert told.plans == ("asleep",), "a sign of life keeps a lease"
    assert [plan.plan for plan in stored_plans(repo)] == ["asleep"]


def test_a_plan_keeps_what_was_staged_under_it(repo: Repository) -> None:
    save_plan(repo, long_operation(repo, "p1"))
    before = files(repo)
    strike(repo, lambda there: submit(there, add_person("z")), Fault.DIE_AFTER, 1)
    staged = files(repo) - before
    assert staged
    for _ in range(3):
        collect(repo, Retention(keep=1))
        assert staged <= files(repo), "staged files were taken in spite of the plan"
    told = newest_record(repo)
    assert told is not None
    assert told.plans == ("p1",)
    remove_plan(repo, "p1")
    collect(repo, Retention(keep=1))
    assert not staged & files(repo)


def publish_under_a_plan(repo: Repository, plan: str, meanwhile: Callable[[], object]) -> list[int]:
    """A long operation during which something happens; the epochs in which its verb ran."""

    verb, epochs = between(repo, add_knows("e1", "a", "b"), meanwhile)
    submit(repo, lambda txn: replace(verb(txn), plan_id=plan))
    return epochs


def test_an_operation_whose_plan_was_honoured_keeps_what_it_staged(repo: Repository) -> None:
    save_plan(repo, long_operation(repo, "p1"))

    def two_collections() -> None:
        for _ in range(2):
            collect(another_process(repo), Retention(keep=10))

    assert publish_under_a_plan(repo, "p1", two_collections) == [0], "it staged again for nothing"
    assert edges(another_process(repo)) == [("e1", "a", "b")]


def test_an_operation_whose_plan_came_too_late_stages_again(repo: Repository) -> None:
    """That the plan exists proves nothing: a record that does not name it may have taken its files."""

    def collect_then_save() -> None:
        collect(another_process(repo), Retention(keep=10))
        save_plan(repo, long_operation(repo, "p1"))
        collect(another_process(repo), Retention(keep=10))

    assert publish_under_a_plan(repo, "p1", collect_then_save) == [0, 2]
    assert edges(another_process(repo)) == [("e1", "a", "b")]


def test_an_operation_whose_plan_was_removed_meanwhile_stages_again(repo: Repository) -> None:
    save_plan(repo, long_operation(repo, "p1"))

    def remove_then_collect() -> None:
        collect(another_process(repo), Retention(keep=10))
        remove_plan(another_process(repo), "p1")
        collect(another_process(repo), Retention(keep=10))

    assert publish_under_a_plan(repo, "p1", remove_then_collect) == [0, 2]
    assert edges(another_process(repo)) == [("e1", "a", "b")]


# --- readers -------------------------------------------------------------------------------------------------------


def test_numbers_of_pruned_commits_are_never_free_again(repo: Repository) -> None:
    chain = repo.head("main").commit.chain
    collect(repo, Retention(keep=1))
    last = repo.chains.newest(chain)
    assert last is not None
    assert all(repo.chains.read(chain, number) is not None for number in range(last + 1))


def test_records_add_up(repo: Repository) -> None:
    """A record contains what earlier ones declared, so that the newest alone answers."""
    graph = Graph(repo)
    graph.create_branch("dev")
    graph.delete_branch("dev")
    collect(repo, Retention(keep=1))
    first = newest_record(repo)
    collect(repo, Retention(keep=100))
    second = newest_record(repo)
    assert first is not None
    assert second is not None
    assert set(first.dead) <= set(second.dead)
    assert all(second.floors[chain] >= floor for chain, floor in first.floors.items())


def _at(repo: Repository, at: str) -> list[str]:
    snapshot = Graph(another_process(repo)).snapshot(at=at)
    return sorted(
        snapshot.table_of(snapshot.catalog.nodes["Person"]).scan(["id"])["id"].to_pylist()
    )


def _objects(repo: Repository) -> Shelf:
    there = repo.objects
    assert isinstance(there, DictObjects)
    return there.objects


def test_a_derived_file_goes_with_its_table() -> None:
    repo = memory_repository()
    store = repo.objects
    live = repo.head("main").commit.tables[
        repo.snapshot(repo.head("main").commit).catalog.edges["Knows"].table_id
    ]
    kept, gone = f"_topology/{live.path.replace('/', '_')}", "_topology/edges_e99-gone"
    for key in (kept, gone):
        store.put(key, b"arrays")
        store.put(f"{key}.in", b"more arrays")
    collect(repo, Retention(keep=1))
    left = {info.key for info in store.list("_topology")}
    assert left == {kept, f"{kept}.in"}


# --- giving up -----------------------------------------------------------------------------------------------------


def small(limit: int = 2) -> Repository:
    """Three people in a graph where nobody tries anything often."""
    repo = memory_repository(
        limits=Limits(publish_attempts_max=limit), clock=Clock(pause=lambda _seconds: None)
    )
    for name in "abc":
        submit(repo, add_person(name))
    return repo


def before_creates(folder: str, act: Callable[[], object]) -> Callable[[str, str], None]:
    def before(verb: str, key: str) -> None:
        if verb == "put_new" and key.startswith(folder):
            act()

    return before


def no_answer() -> None:
    raise StoreOutcomeUnknown("no answer")


def test_a_collection_that_never_gets_its_record_takes_nothing() -> None:
    repo = small()
    before = files(repo)
    with pytest.raises(RetriesExhausted):
        collect(disturbed(repo, before_creates("_gc/", no_answer)), Retention(keep=1))
    assert files(repo) == before
    assert newest_record(another_process(repo)) is None


def test_a_collection_among_others_gives_up_without_harm() -> None:
    repo = small()

    def rival() -> None:
        collect(another_process(repo), Retention(keep=2))

    with pytest.raises(RetriesExhausted):
        collect(disturbed(repo, before_creates("_gc/", rival)), Retention(keep=1))
    assert people(another_process(repo)) == list("abc")


def test_an_epoch_nobody_answers_for_stops_a_collection() -> None:
    repo = small()
    before = files(repo)
    with pytest.raises(CommitUnknown):
        collect(disturbed(repo, before_creates(layout.CHAINS, no_answer)), Retention(keep=1))
    assert files(repo) == before, "it went on without its epoch"
    collect(another_process(repo), Retention(keep=1))
    assert clean(repo)


def test_a_collection_beside_a_writer_that_never_rests_gives_up() -> None:
    repo = small()
    count = iter(range(1000))

    def rival() -> None:
        submit(another_process(repo), add_person(f"p{next(count)}"))

    before = files(repo)
    with pytest.raises(RetriesExhausted):
        collect(disturbed(repo, before_creates(layout.CHAINS, rival)), Retention(keep=1))
    assert before <= files(repo)
    assert people(another_process(repo)) == ["a", "b", "c", "p0", "p1"]


def test_damage_stops_a_collection(repo: Repository) -> None:
    """What is missing and was not taken by another collection is damage, and nothing is removed on top of it."""
    table = next(e for e in repo.head("main").commit.tables.values() if e.type_name == "Person")
    _objects(repo).pop(f"{table.path}/v/{table.version}")
    before = files(repo)
    with pytest.raises(Corrupt):
        collect(another_process(repo), Retention(keep=1))
    assert files(repo) == before


def test_a_record_that_is_missing_is_damage(repo: Repository) -> None:
    for _ in range(2):
        collect(repo, Retention(keep=100))
    repo.objects.delete([layout.record_key(1)])
    assert record(repo, 1).epoch == 1, "who has read it needs it no more"
    with pytest.raises(Corrupt, match="collection record"):
        record(another_process(repo), 1)


def test_the_history_of_one_branch_alone_can_be_pruned(repo: Repository) -> None:
    graph = Graph(repo)
    graph.create_branch("dev")
    for name in ("x", "y", "z"):
        graph.publish(add_person(name), branch="dev")
    collect(repo, Retention(keep=1, chain=repo.head("dev").commit.chain))
    assert kinds(another_process(repo), "dev") == "tttcc"
    assert "t" not in kinds(another_process(repo))


def test_a_plan_that_ends_during_a_listing_is_left_out(repo: Repository) -> None:
    for name in ("p1", "p2"):
        save_plan(repo, long_operation(repo, name))

    def before(verb: str, key: str) -> None:
        if verb == "get" and key == layout.plan_key("p1"):
            remove_plan(another_process(repo), "p1")

    assert [plan.plan for plan in stored_plans(disturbed(repo, before))] == ["p2"]
