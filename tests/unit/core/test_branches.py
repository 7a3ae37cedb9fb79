"""Names of branches and tags: what they may be, what they share, and what happens when one is used again."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from omnigraph.core import layout
from omnigraph.core.branches import Start, create_branch, live_refs
from omnigraph.core.records import Commit, Seal
from omnigraph.core.repository import Repository
from omnigraph.errors import (
    BranchDeleted,
    BranchExists,
    BranchNotFound,
    BranchProtected,
    CommitNotFound,
    CommitPruned,
    CommitUnknown,
    NameInvalid,
    RetriesExhausted,
    StoreOutcomeUnknown,
)
from omnigraph.graph import Graph
from omnigraph.maintenance.collection import Retention, collect
from omnigraph.model.limits import Limits
from omnigraph.model.names import MAIN
from tests.support.dict_objects import DictObjects
from tests.support.faults_by_count import Died, Fault, strike
from tests.support.worlds import (
    add_person,
    another_process,
    disturbed,
    memory_repository,
    people,
    submit,
)

NAMES = [
    "dev",
    "a",
    "a/b",
    "A",
    "review/häfen",
    "日本語",
    "🌳",
    "with space",
    "a.b",
    "..",
    ".",
    "~",
    "a%2Fb",
    "+",
    "_",
    "con",
    "x" * 255,
    "ü" * 127,
    "/",
    "a//b",
]


@pytest.fixture
def repo() -> Repository:
    repo = memory_repository()
    submit(repo, add_person("ann"))
    return repo


# --- names ---------------------------------------------------------------------------------------------------------


def test_all_kinds_of_names_live_beside_each_other(repo: Repository) -> None:
    graph = Graph(repo)
    for number, name in enumerate(NAMES):
        graph.create_branch(name)
        graph.publish(add_person(f"p{number}"), branch=name)
    fresh = another_process(repo)
    assert sorted(Graph(fresh).branches()) == sorted(["main", *NAMES])
    for number, name in enumerate(NAMES):
        assert people(fresh, name) == ["ann", f"p{number}"], f"{name!r} shows another branch"


def test_two_spellings_of_one_text_are_one_name(repo: Repository) -> None:
    graph = Graph(repo)
    graph.create_branch("h\u00e4fen")
    with pytest.raises(BranchExists):
        graph.create_branch("ha\u0308fen")
    assert people(repo, "ha\u0308fen") == ["ann"]


@pytest.mark.parametrize(
    "name", ["", " ", " a", "a ", "a\n", "a\x00b", "x" * 256, "\ud800", 7, None]
)
def test_a_name_that_is_not_allowed(repo: Repository, name: object) -> None:
    graph = Graph(repo)
    before = dict(_objects(repo))
    with pytest.raises(NameInvalid):
        graph.create_branch(name)  # type: ignore[arg-type]
    with pytest.raises(NameInvalid):
        graph.tag(name)  # type: ignore[arg-type]
    assert _objects(repo) == before


def test_no_name_addresses_anything_outside_its_folder(repo: Repository) -> None:
    graph = Graph(repo)
    for name in NAMES:
        graph.create_branch(name)
    refs = [key for key in _objects(repo) if key.startswith("_refs/")]
    assert len(refs) == len(NAMES)
    for key in refs:
        assert not {"", ".", ".."} & set(key.split("/"))


def test_a_branch_and_a_branch_below_it_do_not_meet(repo: Repository) -> None:
    graph = Graph(repo)
    graph.create_branch("a/b")
    graph.create_branch("a")
    graph.publish(add_person("upper"), branch="a")
    graph.delete_branch("a")
    assert people(another_process(repo), "a/b") == ["ann"]
    with pytest.raises(BranchNotFound):
        people(another_process(repo), "a")


# --- creating ------------------------------------------------------------------------------------------------------


def test_a_branch_starts_where_its_source_is_and_goes_its_own_way(repo: Repository) -> None:
    graph = Graph(repo)
    graph.create_branch("dev")
    graph.publish(add_person("bob"), branch="dev")
    graph.publish(add_person("cy"))
    graph.create_branch("sub", from_="dev")
    assert people(repo, "main") == ["ann", "cy"]
    assert people(repo, "dev") == people(repo, "sub") == ["ann", "bob"]


def test_a_branch_starts_from_any_point(repo: Repository) -> None:
    graph = Graph(repo)
    first = graph.log()[0].id
    graph.tag("v1")
    graph.publish(add_person("bob"))
    for name, point in (("by-id", first), ("by-tag", "v1"), ("by-distance", "main~1")):
        graph.create_branch(name, from_=point)
        assert people(another_process(repo), name) == ["ann"], point


def test_a_branch_from_nothing(repo: Repository) -> None:
    before = dict(_objects(repo))
    with pytest.raises(CommitNotFound):
        Graph(repo).create_branch("dev", from_="nowhere")
    assert _objects(repo) == before


def test_creating_a_branch_copies_nothing(repo: Repository) -> None:
    before = set(_objects(repo))
    Graph(repo).create_branch("dev")
    assert len(set(_objects(repo)) - before) == 2, "more than a name and a first commit"


def test_a_name_in_use_is_refused(repo: Repository) -> None:
    graph = Graph(repo)
    graph.create_branch("dev")
    graph.tag("v1")
    for name in ("main", "dev", "v1"):
        with pytest.raises(BranchExists):
            graph.create_branch(name)
        with pytest.raises(BranchExists):
            graph.tag(name)


# --- deleting, and using a name again ------------------------------------------------------------------------------


def test_main_cannot_be_deleted(repo: Repository) -> None:
    with pytest.raises(BranchProtected):
        Graph(repo).delete_branch("main")


def test_deleting_what_is_not_there(repo: Repository) -> None:
    graph = Graph(repo)
    graph.tag("v1")
    for name in ("nothing", "v1"):
        with pytest.raises(BranchNotFound):
            graph.delete_branch(name)
    with pytest.raises(CommitNotFound):
        graph.delete_tag("nothing")


def test_a_deleted_branch_is_gone_for_everybody(repo: Repository) -> None:
    graph, other = Graph(repo), Graph(another_process(repo))
    graph.create_branch("dev")
    other.snapshot("dev")
    graph.delete_branch("dev")
    for step in (other.snapshot, other.log):
        with pytest.raises(BranchNotFound):
            step("dev")
    with pytest.raises((BranchNotFound, BranchDeleted)):
        other.publish(add_person("late"), branch="dev")
    with pytest.raises(BranchNotFound):
        other.delete_branch("dev")
    assert other.branches() == ["main"]


def test_a_name_used_again_shows_nothing_of_the_old_branch(repo: Repository) -> None:
    graph, warm = Graph(repo), Graph(another_process(repo))
    for round in range(3):
        graph.create_branch("dev")
        graph.publish(add_person(f"round{round}"), branch="dev")
        assert people(warm._repo, "dev") == ["ann", f"round{round}"]
        graph.delete_branch("dev")


def test_a_tag_and_a_branch_may_take_turns_under_one_name(repo: Repository) -> None:
    graph = Graph(repo)
    graph.tag("x")
    graph.delete_tag("x")
    graph.create_branch("x")
    graph.delete_branch("x")
    graph.tag("x")
    assert list(graph.tags()) == ["x"]
    assert graph.branches() == ["main"]


def test_a_deleted_branch_leaves_its_children_alone(repo: Repository) -> None:
    graph = Graph(repo)
    graph.create_branch("dev")
    graph.publish(add_person("bob"), branch="dev")
    graph.create_branch("child", from_="dev")
    graph.delete_branch("dev")
    assert people(another_process(repo), "child") == ["ann", "bob"]
    assert [c.kind for c in graph.log("child")][-1] == "init", "the log stops at the fork"


# --- creations that were never finished ----------------------------------------------------------------------------


def half_created(repo: Repository) -> None:
    """A creator that dies between the name and the first commit."""
    strike(repo, create_dev, Fault.DIE_AFTER, 0)


def create_dev(repo: Repository) -> None:
    Graph(repo).create_branch("dev")


def test_a_branch_that_was_never_finished_does_not_exist(repo: Repository) -> None:
    half_created(repo)
    fresh = Graph(another_process(repo))
    assert [ref.name for ref in live_refs(fresh._repo)] == ["dev"], "the name was not written"
    assert fresh.branches() == ["main"], "a branch is listed that cannot be opened"
    with pytest.raises(BranchNotFound):
        fresh.snapshot("dev")
    with pytest.raises(BranchNotFound):
        fresh.publish(add_person("bob"), branch="dev")


def test_a_branch_whose_deletion_was_not_finished_is_deleted(repo: Repository) -> None:
    Graph(repo).create_branch("dev")
    strike(repo, lambda there: Graph(there).delete_branch("dev"), Fault.DIE_AFTER, 0)
    fresh = Graph(another_process(repo))
    assert [ref.name for ref in live_refs(fresh._repo)] == ["dev"], "the name was ended already"
    assert fresh.branches() == ["main"], "a branch is listed that cannot be opened"
    fresh.create_branch("dev")
    assert fresh.branches() == ["main", "dev"]


def test_an_unfinished_branch_is_called_off_by_the_next_who_wants_the_name(
    repo: Repository,
) -> None:
    half_created(repo)
    fresh = Graph(another_process(repo))
    unfinished = live_refs(fresh._repo)[0].state.chain
    fresh.create_branch("dev")
    assert people(fresh._repo, "dev") == ["ann"]
    assert isinstance(fresh._repo.chains.read(unfinished, 0), Seal)


def test_a_creator_that_was_called_off_says_so(repo: Repository) -> None:
    """The slow creator wakes up before its first commit and finds that somebody else wanted the name."""
    rival = Graph(another_process(repo))

    def before(verb: str, key: str) -> None:
        chain = key.split("/")[1] if key.startswith(layout.CHAINS) else repo.stamp.main_chain
        if verb == "put_new" and chain != repo.stamp.main_chain and not done:
            done.append(True)
            rival.create_branch("dev")

    done: list[bool] = []
    there = repo.objects
    assert isinstance(there, DictObjects)
    slow = another_process(repo, DictObjects(there.objects, before))
    with pytest.raises(BranchExists):
        Graph(slow).create_branch("dev")
    assert people(another_process(repo), "dev") == ["ann"]


def test_death_is_not_an_error_anybody_may_catch() -> None:
    assert not issubclass(Died, Exception)


def test_a_tag_of_a_pruned_commit_is_refused_and_leaves_no_name(repo: Repository) -> None:
    graph = Graph(repo)
    for name in ("bob", "cy", "dee"):
        graph.publish(add_person(name))
    stale = another_process(repo)
    old = Graph(stale).log()[2].id
    graph.cleanup(keep=1)
    with pytest.raises(CommitPruned):
        Graph(stale).tag("v1", old)
    assert Graph(another_process(repo)).tags() == {}


def _objects(repo: Repository) -> dict[str, object]:
    there = repo.objects
    assert isinstance(there, DictObjects)
    return there.objects


# --- stores that do not answer, and others at work -----------------------------------------------------------------


def silent(folder: str, times: int = 10_000) -> Callable[[str, str], None]:
    """Creates in this folder get no answer, and do not happen."""
    left = [times]

    def before(verb: str, key: str) -> None:
        if verb == "put_new" and key.startswith(folder) and left[0]:
            left[0] -= 1
            raise StoreOutcomeUnknown("no answer")

    return before


def test_a_creation_nobody_answers_is_unknown(repo: Repository) -> None:
    with pytest.raises(CommitUnknown):
        Graph(disturbed(repo, silent(layout.CHAINS))).create_branch("dev")
    fresh = Graph(another_process(repo))
    assert fresh.branches() == ["main"]
    fresh.create_branch("dev")
    assert people(fresh._repo, "dev") == ["ann"]


def test_a_deletion_nobody_answers_is_unknown(repo: Repository) -> None:
    Graph(repo).create_branch("dev")
    with pytest.raises(CommitUnknown):
        Graph(disturbed(repo, silent(layout.CHAINS))).delete_branch("dev")
    assert people(another_process(repo), "dev") == ["ann"]


def test_a_branch_is_deleted_though_nobody_answers_for_its_name(repo: Repository) -> None:
    """The seal is what deletes it."""
    Graph(repo).create_branch("dev")
    Graph(disturbed(repo, silent(layout.REFS))).delete_branch("dev")
    fresh = Graph(another_process(repo))
    assert fresh.branches() == ["main"]
    fresh.create_branch("dev")


def test_the_end_of_a_tag_nobody_answers_for_is_unknown(repo: Repository) -> None:
    Graph(repo).tag("v1")
    with pytest.raises(StoreOutcomeUnknown):
        Graph(disturbed(repo, silent(layout.REFS))).delete_tag("v1")
    assert list(Graph(another_process(repo)).tags()) == ["v1"]
    Graph(disturbed(repo, silent(layout.REFS, times=2))).delete_tag("v1")
    assert Graph(another_process(repo)).tags() == {}


def test_a_name_that_never_gets_written_is_given_up(repo: Repository) -> None:
    before = dict(_objects(repo))
    with pytest.raises(RetriesExhausted):
        Graph(disturbed(repo, silent(layout.REFS))).create_branch("dev")
    assert _objects(repo) == before


def test_a_branch_is_deleted_in_spite_of_a_writer(repo: Repository) -> None:
    Graph(repo).create_branch("dev")
    writer = another_process(repo)
    written: list[str] = []

    def before(verb: str, key: str) -> None:
        if verb == "put_new" and key.startswith(layout.CHAINS) and len(written) < 3:
            written.append(key)
            submit(writer, add_person(f"p{len(written)}"), branch="dev")

    Graph(disturbed(repo, before)).delete_branch("dev")
    assert len(written) == 3
    assert Graph(another_process(repo)).branches() == ["main"]


def test_a_writer_that_never_rests_keeps_its_branch() -> None:
    repo = memory_repository(limits=Limits(publish_attempts_max=3))
    Graph(repo).create_branch("dev")
    count = iter(range(1000))

    def before(verb: str, key: str) -> None:
        if verb == "put_new" and key.startswith(layout.CHAINS):
            submit(another_process(repo), add_person(f"p{next(count)}"), branch="dev")

    with pytest.raises(RetriesExhausted):
        Graph(disturbed(repo, before)).delete_branch("dev")
    assert people(another_process(repo), "dev") == ["p0", "p1", "p2"]


def test_two_who_delete_one_branch(repo: Repository) -> None:
    Graph(repo).create_branch("dev")
    done: list[str] = []

    def before(verb: str, key: str) -> None:
        if verb == "put_new" and key.startswith(layout.CHAINS) and not done:
            done.append(key)
            Graph(another_process(repo)).delete_branch("dev")

    slow = disturbed(repo, before)
    slow.head("dev")
    with pytest.raises(BranchNotFound):
        Graph(slow).delete_branch("dev")


def test_a_branch_whose_source_is_deleted_meanwhile(repo: Repository) -> None:
    graph = Graph(repo)
    graph.create_branch("dev")
    done: list[str] = []

    def before(verb: str, key: str) -> None:
        if verb == "put_new" and key.startswith(layout.REFS) and not done:
            done.append(key)
            graph.delete_branch("dev")

    with pytest.raises(CommitPruned):
        Graph(disturbed(repo, before)).create_branch("child", from_="dev")
    assert live_refs(another_process(repo)) == [], "a name is left that leads nowhere"


def test_a_branch_from_a_commit_that_is_pruned_meanwhile(repo: Repository) -> None:
    for name in ("bob", "cy"):
        submit(repo, add_person(name))
    old = repo.chains.expect(repo.stamp.main_chain, 1)
    assert isinstance(old, Commit)
    collect(another_process(repo), Retention(keep=1))
    with pytest.raises(CommitPruned):
        create_branch(repo, "dev", Start(commit=old))
    assert live_refs(another_process(repo)) == []


def test_a_first_commit_that_cannot_be_made_gives_the_name_back(repo: Repository) -> None:
    def refuse(chain: str, base: Commit) -> Commit:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        create_branch(repo, "dev", Start(head_of=MAIN), first=refuse)
    fresh = Graph(another_process(repo))
    assert live_refs(fresh._repo) == []
    fresh.create_branch("dev")
    assert fresh.branches() == ["main", "dev"]
