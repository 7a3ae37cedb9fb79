"""Every verb beside a collection, and beside every other: at every request of the one, the other runs as a whole.

Whatever the verb was told is true afterwards, every branch and tag can be read whole, nobody speaks of damage, and what
is not needed goes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from omnigraph.core.branches import (
    Start,
    branch_names,
    create_branch,
    create_tag,
    delete_branch,
    tags,
)
from omnigraph.core.first_commit import publish_first
from omnigraph.core.history import commit_at, resolve
from omnigraph.core.leases import newest_record, pruned
from omnigraph.core.plan import Request, Verb
from omnigraph.core.records import Commit
from omnigraph.core.repository import Repository
from omnigraph.errors import Kind, OmnigraphError
from omnigraph.maintenance.collection import Retention, collect
from omnigraph.model.names import MAIN, branch_name
from omnigraph.write.merge import merge
from omnigraph.write.undo import cherry_pick, reset, revert
from tests.support.dict_objects import DictObjects, Shelf
from tests.support.rings import count
from tests.support.verbs import compact
from tests.support.worlds import (
    add_knows,
    add_person,
    another_process,
    disturbed,
    drop_person,
    edges,
    memory_repository,
    once_at,
    people,
    submit,
)

Act = Callable[[Repository], object]
Shown = Callable[[Repository], bool]

REQUESTS_MAX = 400
STEP = count(5, 1)  # requests from one meeting to the next


def beginning() -> Repository:
    """Six people on main, a branch with one more, one without, and a tag on an old commit."""
    repo = memory_repository()
    for name in "abcdef":
        submit(repo, add_person(name))
    submit(repo, add_knows("e1", "a", "b"))
    for branch in ("dev", "idle"):
        create_branch(repo, branch, Start(head_of=MAIN))
    submit(repo, add_person("d"), branch="dev")
    submit(repo, add_person("x"), branch="dev")
    submit(repo, add_person("m"))
    create_tag(repo, "old", number(repo, 3))
    return repo


def number(repo: Repository, at: int, branch: str = "main") -> Commit:
    return commit_at(repo, repo.head(branch).commit.chain, at)


def to_main(verb: Verb) -> Act:
    return lambda repo: submit(repo, verb)


def of(make: Callable[[Repository], Verb], branch: str = "main") -> Act:
    return lambda repo: submit(repo, make(repo), branch=branch)


def found(repo: Repository) -> object:
    request = Request(branch=branch_name("new"), verb=add_person("z"), create_from="main")
    return publish_first(repo, request)


VERBS: dict[str, tuple[Act, Shown]] = {
    "insert": (to_main(add_person("z")), lambda r: "z" in people(r)),
    "link": (to_main(add_knows("e2", "b", "c")), lambda r: ("e2", "b", "c") in edges(r)),
    "drop": (to_main(drop_person("a")), lambda r: "a" not in people(r) and not edges(r)),
    "compact": (to_main(compact("Person")), lambda r: "a" in people(r)),
    "merge": (of(lambda r: merge(r, "dev", "main")), lambda r: {"m", "x"} <= set(people(r))),
    "fast forward": (
        of(lambda r: merge(r, "dev", "idle"), "idle"),
        lambda r: "x" in people(r, "idle"),
    ),
    "reset": (
        of(lambda r: reset(r, number(r, 3).content, "dev"), "dev"),
        lambda r: not {"e", "f"} & set(people(r, "dev")),
    ),
    "reset to a tag": (
        of(lambda r: reset(r, "old", "dev"), "dev"),
        lambda r: not {"e", "f"} & set(people(r, "dev")),
    ),
    "revert": (
        of(lambda r: revert(r, number(r, 6).content, "main")),
        lambda r: "f" not in people(r),
    ),
    "pick": (
        of(lambda r: cherry_pick(r, number(r, 2, "dev").content, "main")),
        lambda r: "x" in people(r),
    ),
    "branch": (
        lambda r: create_branch(r, "new", Start(head_of=MAIN)),
        lambda r: "a" in people(r, "new"),
    ),
    "branch of a commit": (
        lambda r: create_branch(r, "new", Start(commit=number(r, 4))),
        lambda r: not {"e", "f"} & set(people(r, "new")),
    ),
    "branch with a write": (found, lambda r: "z" in people(r, "new")),
    "tag": (lambda r: create_tag(r, "new", number(r, 4)), lambda r: "new" in tags(r)),
    "delete": (lambda r: delete_branch(r, "dev"), lambda r: "dev" not in branch_names(r)),
}


def sweep(repo: Repository) -> None:
    """Every branch moves on, and nothing stays but its head."""
    for name in ("u", "v"):
        for branch in branch_names(repo):
            submit(repo, add_person(name), branch=branch)
    collect(repo, Retention(keep=1))


RIVALS: dict[str, Act] = {"collect": partial(collect, retention=Retention(keep=1)), "sweep": sweep}


def told(act: Act, repo: Repository) -> bool:
    """Whether it succeeded; damage is never an answer."""
    try:
        act(repo)
    except OmnigraphError as error:
        if error.kind is Kind.CORRUPT:
            raise
        return False
    return True


def check(repo: Repository) -> None:
    fresh = another_process(repo)
    record = newest_record(fresh)
    for branch in branch_names(fresh):
        head = fresh.head(branch).commit
        assert set("abc") <= {*people(fresh, branch), "a"}, branch
        assert all(
            end in people(fresh, branch) for edge in edges(fresh, branch) for end in edge[1:]
        )
        assert not pruned(record, head.chain, head.number), f"the head of {branch} is given up"
    for tag in tags(fresh):
        snapshot = fresh.snapshot(resolve(fresh, tag, "main").commit)
        assert snapshot.table_of(snapshot.catalog.nodes["Person"]).count() in (3, 4)


def settled(repo: Repository) -> None:
    check(repo)
    for _ in range(2):
        collect(another_process(repo), Retention(keep=1))
    check(repo)
    rest = collect(another_process(repo), Retention(keep=1), dry_run=True)
    assert (rest.commits_pruned, rest.objects_deleted) == (0, 0)


class Beginning:
    """The same state again and again."""

    def __init__(self) -> None:
        self.repo = beginning()
        there = self.repo.objects
        assert isinstance(there, DictObjects)
        self.shelf: Shelf = there.objects
        self.state = {**self.shelf}

    def again(self) -> Repository:
        self.shelf.clear()
        self.shelf.update(self.state)
        return self.repo

    def requests(self, act: Act) -> int:
        seen: list[str] = []
        told(act, disturbed(self.again(), lambda _, key: seen.append(key)))
        assert len(seen) < REQUESTS_MAX
        return len(seen)


@pytest.mark.parametrize("rival", RIVALS)
@pytest.mark.parametrize("verb", VERBS)
def test_at_every_request_of_a_verb(verb: str, rival: str) -> None:
    act, shown = VERBS[verb]
    world = Beginning()
    answers = set()
    for at in range(world.requests(act), -1, -STEP):  # the last is after everything
        repo = world.again()
        hook = once_at(at, lambda repo=repo: RIVALS[rival](another_process(repo)))  # type: ignore[misc]
        done = told(act, disturbed(repo, hook))
        answers.add(done)
        assert not done or shown(another_process(repo)), f"not there, asleep at request {at}"
        settled(repo)
        assert not done or shown(another_process(repo)), f"gone, asleep at request {at}"
    assert True in answers


@pytest.mark.parametrize("verb", VERBS)
def test_at_every_request_of_a_collection(verb: str) -> None:
    act, shown = VERBS[verb]
    world = Beginning()
    keep = partial(collect, retention=Retention(keep=2))
    for at in range(0, world.requests(keep), STEP):
        repo = world.again()
        answers: list[bool] = []

        def between(repo: Repository = repo, answers: list[bool] = answers) -> None:
            process = another_process(repo)
            answers.append(told(act, process))
            sweep(process)

        keep(disturbed(repo, once_at(at, between)))
        assert not answers[0] or shown(another_process(repo)), f"asleep at request {at}"
        settled(repo)


@pytest.mark.parametrize("other", VERBS)
@pytest.mark.parametrize("verb", VERBS)
def test_at_every_request_of_another_verb(verb: str, other: str) -> None:
    act, shown = VERBS[other]
    world = Beginning()
    for at in range(0, world.requests(VERBS[verb][0]) + 1, STEP):
        repo = world.again()

        def between(repo: Repository = repo, at: int = at) -> None:
            done = told(act, another_process(repo))
            assert not done or shown(another_process(repo)), f"not there, asleep at request {at}"

        told(VERBS[verb][0], disturbed(repo, once_at(at, between)))
        settled(repo)
