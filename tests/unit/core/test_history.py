"""Points in time and logs: what `at` may say, and how a log walks back over pages, forks and pruned commits."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta

import pytest

from omnigraph.core import history
from omnigraph.core.clock import Clock
from omnigraph.core.plan import NOTHING, Request
from omnigraph.core.publisher import Ticket, publish
from omnigraph.core.repository import Repository
from omnigraph.errors import (
    BranchNotFound,
    CommitNotFound,
    CommitPruned,
    NameInvalid,
    OptionInvalid,
)
from omnigraph.graph import Graph
from omnigraph.model.names import branch_name
from tests.support.worlds import add_person, another_process, memory_repository, people, submit

HOUR = 3_600_000_000
START = int(datetime(2026, 3, 1, 12, tzinfo=UTC).timestamp() * 1_000_000)


class ManualClock:
    """Time that stands still until it is told."""

    def __init__(self) -> None:
        self.micros = START

    def now(self) -> int:
        return self.micros

    def forward(self, hours: float) -> None:
        self.micros += int(hours * HOUR)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def repo(clock: ManualClock) -> Repository:
    """A graph that gains a person at 12:00, 13:00 and 14:00; it is now 15:00."""
    repo = memory_repository(clock=Clock(now=clock.now, pause=lambda _seconds: None))
    for name in ("ann", "bob", "cy"):
        submit(repo, add_person(name), actor=f"by-{name}", message=f"add {name}")
        clock.forward(hours=1)
    return repo


def seen_at(repo: Repository, at: object, branch: str = "main") -> list[str]:
    snapshot = Graph(repo).snapshot(branch, at)
    return sorted(
        snapshot.table_of(snapshot.catalog.nodes["Person"]).scan(["id"])["id"].to_pylist()
    )


# --- points in time ------------------------------------------------------------------------------------------------


def test_by_commit_id(repo: Repository) -> None:
    ids = [commit.id for commit in Graph(repo).log()]
    assert [seen_at(repo, id) for id in ids] == [["ann", "bob", "cy"], ["ann", "bob"], ["ann"], []]


def test_an_id_is_found_with_one_request(repo: Repository) -> None:
    """It says by itself where the commit is."""
    old = Graph(repo).log()[2].id
    asked: list[str] = []
    from tests.support.worlds import disturbed

    fresh = disturbed(repo, lambda verb, key: asked.append(f"{verb} {key}"))
    history.resolve(fresh, old, "main")
    assert len(asked) == 1, asked


def test_by_tag_branch_and_distance(repo: Repository) -> None:
    graph = Graph(repo)
    graph.tag("v1", "main~1")
    graph.create_branch("dev", from_="v1")
    graph.publish(add_person("dee"), branch="dev")
    assert seen_at(repo, "v1") == ["ann", "bob"]
    assert seen_at(repo, "v1~1") == ["ann"]
    assert seen_at(repo, "main~0") == ["ann", "bob", "cy"]
    assert seen_at(repo, "main~2") == ["ann"]
    assert seen_at(repo, "dev") == ["ann", "bob", "dee"]
    assert seen_at(repo, "dev~1") == ["ann", "bob"], "the branch's own first commit does not count"


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        (datetime(2026, 3, 1, 12, 30, tzinfo=UTC), ["ann"]),
        (datetime(2026, 3, 1, 13, 0, tzinfo=UTC), ["ann", "bob"]),
        (datetime(2026, 3, 1, 13, 30), ["ann", "bob"]),
        (date(2026, 3, 2), ["ann", "bob", "cy"]),
        ("2026-03-01T12:30:00Z", ["ann"]),
        ("2026-03-01T14:30:00+01:00", ["ann", "bob"]),
        ("2026-03-02", ["ann", "bob", "cy"]),
        ("@{1 hour ago}", ["ann", "bob", "cy"]),
        ("@{90 minutes ago}", ["ann", "bob"]),
        ("@{170 minutes ago}", ["ann"]),
    ],
)
def test_by_time(repo: Repository, at: object, expected: list[str]) -> None:
    assert seen_at(repo, at) == expected


LIKE_POINTS = (
    "main~1",
    "nothing~1",
    "2026-03-01",
    "2026-03-01T12:30:00Z",
    "20260301",
    "2026-W10-1",
    "@{1 hour ago}",
    "0123456789abcdef.7",
    "0123456789abcdef.7.1",
)


@pytest.mark.parametrize("name", LIKE_POINTS)
def test_no_new_name_can_be_taken_for_a_point(repo: Repository, name: str) -> None:
    graph, before = Graph(repo), (Graph(repo).branches(), Graph(repo).tags())
    verbs: list[Callable[[], object]] = [
        lambda: graph.create_branch(name),
        lambda: graph.tag(name),
        lambda: graph.publish(add_person("dee"), branch=name, create_from="main"),
    ]
    for verb in verbs:
        with pytest.raises(NameInvalid):
            verb()
    assert (graph.branches(), graph.tags()) == before


@pytest.mark.parametrize("name", ["release-2026-03-01", "main~", "~1", "v1.2", "2026-03-01 fix"])
def test_names_that_only_resemble_points_are_names(repo: Repository, name: str) -> None:
    Graph(repo).create_branch(name, "main~1")
    assert seen_at(repo, name) == ["ann", "bob"]


def test_points_win_over_names_of_older_graphs(
    repo: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = Graph(repo)
    with monkeypatch.context() as before:
        before.setattr("omnigraph.core.branches.new_name", branch_name)
        graph.create_branch("main~1")
        graph.tag("2026-03-02", "main~2")
    graph.publish(add_person("eve"), branch="main~1")
    assert seen_at(repo, "main~1") == ["ann", "bob"]
    assert seen_at(repo, "2026-03-02") == ["ann", "bob", "cy"]
    graph.create_branch("copy", "main~1")
    assert seen_at(repo, "copy") == ["ann", "bob"], "a fork starts at the branch of that name"
    # what has such a name stays readable: a branch by branch=, a tag by the id of its commit
    assert seen_at(repo, None, "main~1") == ["ann", "bob", "cy", "eve"]
    assert seen_at(repo, graph.tags()["2026-03-02"]) == ["ann"]
    graph.delete_branch("main~1")
    graph.delete_tag("2026-03-02")


def test_a_point_has_one_spelling(repo: Repository) -> None:
    graph = Graph(repo)
    graph.create_branch("Ko\u0308ln")
    graph.publish(add_person("dee"), branch="Köln")
    assert graph.branches() == ["main", "Köln"]
    for spelled in ("Köln", "Ko\u0308ln"):
        assert seen_at(repo, spelled) == ["ann", "bob", "cy", "dee"]
        assert seen_at(repo, f"{spelled}~1") == ["ann", "bob", "cy"]
        graph.create_branch(f"copy of {spelled == 'Köln'}", spelled)
        assert graph.log(f"copy of {spelled == 'Köln'}")[0].branch == "Köln"


@pytest.mark.parametrize("at", ["@{999999999 weeks ago}", "0001-01-01"])
def test_a_time_before_all_others_is_not_there(repo: Repository, at: str) -> None:
    with pytest.raises(CommitNotFound):
        seen_at(repo, at)


def test_a_time_before_the_fork_is_answered_by_the_source(
    repo: Repository, clock: ManualClock
) -> None:
    graph = Graph(repo)
    graph.create_branch("dev")
    clock.forward(hours=1)
    graph.publish(add_person("dee"), branch="dev")
    assert seen_at(repo, "2026-03-01T13:30:00Z", branch="dev") == ["ann", "bob"]
    assert seen_at(repo, "@{0 seconds ago}", branch="dev") == ["ann", "bob", "cy", "dee"]


@pytest.mark.parametrize(
    "at",
    [
        "",
        "nothing",
        "main~99",
        "nothing~1",
        "2025-01-01",
        "@{9 weeks ago}",
        "@{1 lifetime ago}",
        "0123456789abcdef.1",
        7,
        1.5,
    ],
)
def test_what_names_nothing(repo: Repository, at: object) -> None:
    with pytest.raises(CommitNotFound):
        seen_at(repo, at)


def test_a_number_beyond_the_head_names_nothing(repo: Repository) -> None:
    head = Graph(repo).log()[0].id
    chain, number = head.split(".")
    for text in (f"{chain}.{int(number) + 1}", f"{head}.1"):
        with pytest.raises(CommitNotFound):
            seen_at(repo, text)


def test_times_only_grow_whatever_the_clock_does(repo: Repository, clock: ManualClock) -> None:
    clock.forward(hours=-48)
    submit(repo, add_person("dee"))
    times = [commit.time for commit in Graph(repo).log()]
    assert times == sorted(times, reverse=True)
    assert len(set(times)) == len(times)


# --- logs ----------------------------------------------------------------------------------------------------------


def test_a_log_tells_who_did_what(repo: Repository) -> None:
    newest = Graph(repo).log()[0]
    assert (newest.actor, newest.message, newest.kind) == ("by-cy", "add cy", "mutation")
    assert newest.changes == {"Person": {"inserted": 1, "updated": 0, "deleted": 0}}
    assert newest.branch == "main"


def test_a_log_can_be_cut_and_filtered(repo: Repository) -> None:
    graph = Graph(repo)
    assert [c.message for c in graph.log(limit=2)] == ["add cy", "add bob"]
    assert [c.message for c in graph.log(actor="by-ann")] == ["add ann"]
    assert [c.kind for c in graph.log(kind="init")] == ["init"]
    assert graph.log(limit=0) == []
    with pytest.raises(OptionInvalid):
        graph.log(limit=-1)
    with pytest.raises(BranchNotFound):
        graph.log("nothing")


def test_a_log_from_a_point(repo: Repository) -> None:
    assert [c.message for c in Graph(repo).log(at="main~1")] == ["add bob", "add ann", None]


@pytest.mark.parametrize(
    "extra", [0, 1, history.LOG_PAGE_COMMITS_MAX, 2 * history.LOG_PAGE_COMMITS_MAX + 3]
)
def test_a_log_goes_on_over_pages_and_forks(repo: Repository, extra: int) -> None:
    graph = Graph(repo)
    graph.create_branch("dev", from_="main~1")
    for number in range(extra):
        graph.publish(add_person(f"p{number}"), branch="dev", message=f"add p{number}")
    graph.create_branch("sub", from_="dev")
    graph.publish(add_person("last"), branch="sub", message="add last")
    expected = ["add last", *(f"add p{n}" for n in reversed(range(extra))), "add bob", "add ann"]
    fresh = Graph(another_process(repo))
    log = fresh.log("sub", limit=None)
    assert [c.message for c in log if c.message] == expected
    assert log[-1].kind == "init"


def test_parents_connect_the_log(repo: Repository) -> None:
    log = Graph(repo).log()
    assert all(after.id in before.parents for before, after in itertools.pairwise(log))


def test_parents_are_commits_people_can_see(repo: Repository) -> None:
    """Whatever lies between: the making of a branch, an epoch, a group, a write under a key that did nothing."""
    graph = Graph(repo)
    graph.create_branch("dev")
    forked = graph.log()[0].id
    assert graph.snapshot("dev").commit_id == forked, (
        "a branch that was not written to is at its fork"
    )
    graph.publish(add_person("one"), branch="dev")
    assert graph.log("dev")[0].parents == (forked,)
    graph.cleanup(keep=100)
    graph.publish(lambda _: NOTHING, branch="dev", idempotency_key="nothing")
    verbs = (add_person("two"), add_person("three"))
    asked = [Request(branch=branch_name("dev"), verb=verb) for verb in verbs]
    publish(repo, [Ticket(request, f"op {n}") for n, request in enumerate(asked)])
    graph.publish(add_person("four"), branch="dev")
    log = graph.log("dev", limit=None)
    assert len(log) == 8
    assert all(before.parents == (after.id,) for before, after in itertools.pairwise(log))
    graph.cleanup(keep=1)
    fresh = Graph(another_process(repo)).log("dev", limit=None)
    assert fresh[0].parents == log[0].parents


def test_maintenance_is_hidden_unless_asked_for(repo: Repository) -> None:
    graph = Graph(repo)
    graph.cleanup(keep=100)
    assert next(c.kind for c in graph.log()) == "mutation"
    assert next(c.kind for c in graph.log(maintenance=True)) == "epoch"
    assert graph.snapshot().commit_id == graph.log()[0].id, "an epoch looks like a commit"


def test_a_pruned_commit_is_still_told_but_cannot_be_read(repo: Repository) -> None:
    graph = Graph(repo)
    before = [c.id for c in graph.log()]
    graph.cleanup(keep=1)
    fresh = Graph(another_process(repo))
    assert [c.id for c in fresh.log()] == before
    for at in (before[1], "main~1", "2026-03-01T12:30:00Z"):
        with pytest.raises(CommitPruned):
            fresh.snapshot(at=at)
    assert people(fresh._repo) == ["ann", "bob", "cy"]


def test_history_never_changes(repo: Repository) -> None:
    """Whatever happens later, an old commit answers the same."""
    old = Graph(repo).log()[1].id
    before = seen_at(repo, old)
    steps: list[Callable[[Graph], object]] = [
        lambda g: g.publish(add_person("ann", age=99)),
        lambda g: g.create_branch("dev", from_=old),
        lambda g: g.publish(add_person("dee"), branch="dev"),
        lambda g: g.cleanup(keep=50),
        lambda g: g.delete_branch("dev"),
    ]
    for step in steps:
        step(Graph(repo))
        assert seen_at(another_process(repo), old) == before


def test_one_commit_by_id(repo: Repository) -> None:
    graph = Graph(repo)
    wanted = graph.log()[1]
    assert graph.commit(wanted.id) == wanted
    assert graph.commit("main~1") == wanted
    assert wanted.time.tzinfo is not None
    assert timedelta() <= graph.log()[0].time - wanted.time
