"""Maintenance by itself: what is due is done and told, by one process at a time, and writers wait when it is behind."""

from __future__ import annotations

import logging
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from omnigraph.core.records import Commit, MaintenanceAction, RetentionPolicy
from omnigraph.errors import OptionInvalid
from omnigraph.graph import Graph, init, open_graph
from omnigraph.maintenance import status, upkeep
from omnigraph.maintenance.status import Office
from omnigraph.maintenance.upkeep import Maintainer, Upkeep
from omnigraph.write import maintain
from omnigraph.write.maintain import Backlog, backlog
from tests.support.people import people, rows
from tests.support.processes import acknowledge, read_log, spawn
from tests.support.waiting import wait_until


@pytest.fixture
def graph() -> Graph:
    return people()


def load(graph: Graph, prefix: str, count: int) -> None:
    graph.load({"Person": [{"name": f"{prefix}{i}"} for i in range(count)]})


# --- one look ----------------------------------------------------------------------------------------------------


def test_what_is_due_is_done_and_told(graph: Graph) -> None:
    load(graph, "p", 5000)
    (action,) = graph.maintain()
    assert (action.kind, action.branch) == ("optimize", "main")
    assert "Person" in action.detail
    assert graph.maintain() == [], "there was nothing more to do"
    assert graph.maintenance().actions == (action,)
    (made, *_) = graph.log(maintenance=True)
    assert (made.kind, made.message) == ("optimize", "maintenance of Person")


WORDS = "node Doc { slug: String @key  body: String?  v: Vector(4)? }"


def documents(place: Path, count: int) -> Graph:
    made = init(str(place), WORDS)
    docs = [{"slug": f"d{i}", "body": "tea", "v": [float(i), 1.0, 0.0, 0.0]} for i in range(count)]
    made.load({"Doc": docs})
    made.optimize()
    return made


def test_an_index_on_stored_vectors_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintain, "VECTOR_ROWS_MIN", 1_000)
    graph = documents(tmp_path, 5_000)
    assert graph.maintain() == []
    graph.apply_schema(WORDS.replace("Vector(4)?", "Vector(4)? @index"))
    (action,) = graph.maintain()
    assert "indexed v" in action.detail
    graph.apply_schema(WORDS.replace("Vector(4)?", 'Vector(4)? @index @metric("cosine")'))
    (action,) = graph.maintain()
    assert "indexed v" in action.detail
    assert graph.maintain() == []


def test_lost_files_of_words_and_those_of_another_analyzer_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = documents(tmp_path, 5_000)
    maintainer = Maintainer(graph._repo, graph._writers)

    def looked() -> list[str]:
        maintainer.measure()
        return [action.detail for action in maintainer.look()]

    assert looked() == []
    for annotation in ("@index", '@index @analyzer("simple")'):
        graph.apply_schema(WORDS.replace("body: String?", f"body: String? {annotation}"))
        (detail,) = looked()
        assert "indexed body" in detail
    for path in tmp_path.glob("_search/*/*.text"):
        path.unlink()
    assert looked() == [], "nothing was written, and it was examined just now"
    monkeypatch.setattr(upkeep, "LOOK_SECONDS", 0.0)
    (detail,) = looked()
    assert "indexed body" in detail
    assert looked() == []


def test_every_branch_is_looked_after(graph: Graph) -> None:
    graph.create_branch("draft")
    graph.load({"Person": [{"name": f"d{i}"} for i in range(5000)]}, branch="draft")
    assert [action.branch for action in graph.maintain()] == ["draft"]
    assert graph.maintain(["main"]) == []


def test_history_goes_as_the_policy_says(graph: Graph) -> None:
    for number in range(6):
        load(graph, f"p{number}-", 1)
    assert graph.maintain() == [], "without a policy all history stays"
    graph.set_retention(2, every_hours=0.001, actor="dora")
    found = graph.retention()
    assert found is not None
    assert (found.keep, found.days, found.actor) == (2, None, "dora")
    (action,) = graph.maintain()
    assert action.kind == "cleanup"
    assert action.detail.startswith("6 commits")
    assert graph.log(maintenance=True)[0].message == "cleanup 1"
    status.set_retention(graph._repo, RetentionPolicy(1, None, 24.0))
    assert graph.maintain() == [], "it is not time yet"
    graph.set_retention(None)
    assert graph.retention() is None
    assert len(rows(graph, "Person")) == 10


def test_nothing_is_collected_where_nothing_was_written(graph: Graph) -> None:
    graph.set_retention(1, every_hours=0.001)
    maintainer = Maintainer(graph._repo, graph._writers)
    clock = graph._repo.clock
    maintainer.measure()
    assert [action.kind for action in maintainer.look()] == ["cleanup"]
    graph._repo.clock = replace(clock, now=lambda: clock.now() + 10**10)
    head = graph.snapshot().commit
    maintainer.measure()
    assert maintainer.look() == []
    assert graph.snapshot().commit == head


def test_removed_commits_are_replaced_as_fast_as_others_are_made(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cleanup replaces few, however many it removes; the passes after it go on, until none is left."""
    for number in range(12):
        load(graph, f"p{number}-", 1)
    graph._repo.limits = replace(graph._repo.limits, tombstones_max=2)
    monkeypatch.setattr(upkeep, "BURIED_PER_PASS", 4)
    graph.set_retention(1, every_hours=1)
    maintainer = Maintainer(graph._repo, graph._writers)
    maintainer.measure()
    told = [action.kind for _ in range(4) for action in maintainer.look()]
    assert told == ["cleanup", "tombstones", "tombstones", "tombstones"]
    head = graph.snapshot().commit
    there = [graph._repo.chains.read(head.chain, number) for number in range(head.number)]
    left = [thing.number for thing in there if isinstance(thing, Commit)]
    assert left == [head.number - 1], "the newest with content"


def test_days_keep_what_is_young(graph: Graph) -> None:
    for number in range(4):
        load(graph, f"p{number}-", 1)
    graph.set_retention(1, days=1, every_hours=0.001)
    assert [a.detail.split()[0] for a in graph.maintain()] in ([], ["0"])
    graph.snapshot(at="main~3")


def test_missing_vectors_are_made_where_there_is_a_provider(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OMNIGRAPH_EMBED_PROVIDER", raising=False)
    schema = 'node Note { title: String @key  body: String?  vector: Vector(4)? @embed("body") }'
    graph = init("memory://upkeep-embed", schema=schema)
    graph.load({"Note": [{"title": "a", "body": "tea"}, {"title": "b", "body": "tea"}]})
    assert graph.maintain() == []
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "mock")
    assert [action.detail for action in graph.maintain()] == ["Note.vector: 2 vectors"]
    assert graph.maintain() == []


@pytest.mark.parametrize(
    "wrong", [{"keep": 0}, {"keep": 1, "days": -1}, {"keep": 1, "every_hours": 0}]
)
def test_a_policy_that_makes_no_sense_is_refused(graph: Graph, wrong: dict[str, float]) -> None:
    with pytest.raises(OptionInvalid):
        graph.set_retention(**wrong)  # type: ignore[arg-type]
    assert graph.retention() is None


# --- one process at a time ---------------------------------------------------------------------------------------


def test_the_place_is_held_by_one_and_passed_on(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status, "SETTLE_SECONDS", 0.0)
    one, other = Office(graph._repo), Office(graph._repo)
    assert one.take()
    assert not other.take()
    assert one.take(), "who has it keeps it"
    one.leave()
    assert other.take()
    clock = graph._repo.clock
    late = int(status.LEASE_SECONDS * 1_000_000) + 1
    graph._repo.clock = replace(clock, now=lambda: clock.now() + late)
    assert one.take(), "who is silent for too long loses it"
    assert not other.take()


def test_the_place_is_kept_while_an_action_takes_long(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status, "RENEW_SECONDS", 0.01)
    office = Office(graph._repo)
    assert office.take()
    known = status.status(graph._repo).until
    with office.kept():
        wait_until(lambda: status.status(graph._repo).until > known, what="a renewal")
    assert not renewing(), "only as long as the action runs"
    with Office(graph._repo).kept():
        assert not renewing(), "only by who has the place"


def renewing() -> bool:
    return "omnigraph-role" in {thread.name for thread in threading.enumerate()}


def test_who_hangs_in_an_action_loses_the_place(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status, "SETTLE_SECONDS", 0.0)
    monkeypatch.setattr(status, "RENEW_SECONDS", 0.01)
    monkeypatch.setattr(status, "RENEWALS_MAX", 3)
    office, other = Office(graph._repo), Office(graph._repo)
    assert office.take()
    with office.kept():
        wait_until(lambda: not renewing(), what="the last renewal")
        clock = graph._repo.clock
        late = int(status.LEASE_SECONDS * 1_000_000) + 1
        graph._repo.clock = replace(clock, now=lambda: clock.now() + late)
        assert other.take()


def test_of_two_who_claim_the_place_at_once_one_has_it(graph: Graph) -> None:
    both = [Office(graph._repo), Office(graph._repo)]
    barrier = threading.Barrier(2)
    took: list[bool] = []

    def take(office: Office) -> None:
        barrier.wait()
        took.append(office.take())

    threads = [threading.Thread(target=take, args=(office,)) for office in both]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(took) == [False, True]


def maintaining(uri: str) -> None:
    graph = open_graph(uri)

    def then(actions: list[MaintenanceAction]) -> None:
        for action in actions:
            acknowledge({"kind": action.kind})

    with Upkeep(graph._repo, graph._writers, every_seconds=0.1, then=then):
        threading.Event().wait(60)


def test_a_process_takes_over_from_one_that_was_killed(tmp_path: Path) -> None:
    graph = people(tmp_path / "graph")
    load(graph, "p", 5000)
    log = tmp_path / "child.log"
    child = spawn(maintaining, {"uri": graph.uri}, log=log)
    wait_until(lambda: log.exists() and bool(read_log(log)), timeout=60, what="maintenance")
    ours = Office(graph._repo)
    assert not ours.take(), "another process maintains it"
    child.kill()
    assert [done["kind"] for done in read_log(log)] == ["optimize"]
    late = graph._repo.clock.now() + int(status.LEASE_SECONDS * 2_000_000)
    graph._repo.clock = replace(graph._repo.clock, now=lambda: late)
    assert ours.take(), "nobody has heard of it for long"


# --- in the background -------------------------------------------------------------------------------------------


def test_a_failure_is_told_and_tried_again(
    graph: Graph, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    load(graph, "p", 5000)
    failures = iter([True])

    def failing(*args: object, **options: object) -> object:
        if next(failures, False):
            raise OptionInvalid("not today")
        return original(*args, **options)  # type: ignore[arg-type]

    original = upkeep.optimize_branch
    monkeypatch.setattr(upkeep, "optimize_branch", failing)
    done = threading.Event()
    with Upkeep(graph._repo, graph._writers, None, 0.01, lambda _: done.set()) as thread:
        wait_until(done.is_set, timeout=30, what="the second attempt")
    assert thread.maintainer.counts["failed"] == 1
    assert thread.maintainer.counts["optimize"] == 1
    assert "not today" in caplog.text


def test_writers_wait_while_maintenance_is_behind(
    graph: Graph, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    load(graph, "p", 5000)
    waits: list[float] = []
    monkeypatch.setattr(upkeep, "SLOWED_FROM", 1.0)
    caplog.set_level(logging.INFO, "omnigraph.maintenance")
    thread = Upkeep(graph._repo, graph._writers)
    thread._slow_down(thread.maintainer.measure())
    assert graph._writers.slowed > 0
    assert "maintenance is behind" in caplog.text
    clock = graph._repo.clock
    graph._repo.clock = replace(clock, pause=waits.append)
    load(graph, "q", 1)
    assert waits
    assert thread.waited_seconds == sum(waits)
    graph._repo.clock = clock
    graph.maintain()
    thread._slow_down(thread.maintainer.measure())
    assert graph._writers.slowed == 0.0
    assert "caught up" in caplog.text


def test_a_backlog_is_the_most_any_table_lacks(graph: Graph) -> None:
    load(graph, "p", 5000)
    left = backlog(graph.snapshot())
    assert left.rows >= 5000
    assert left.pressure > 1
    graph.optimize()
    assert backlog(graph.snapshot()) == Backlog()
