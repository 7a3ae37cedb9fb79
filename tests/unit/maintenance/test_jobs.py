"""What is known of long work: who has fallen silent is lost, parts go when they expire, and a state can be held."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import pytest

from omnigraph.core import layout
from omnigraph.core.clock import Clock
from omnigraph.core.leases import stored_plans
from omnigraph.core.repository import Repository
from omnigraph.core.snapshot import Snapshot
from omnigraph.errors import CommitPruned
from omnigraph.maintenance.collection import Retention, collect
from omnigraph.maintenance.jobs import (
    CANCELLED,
    DONE,
    EXPIRED,
    FINISHED_KEPT_MICROS,
    LOST,
    RUNNING,
    SILENT_MICROS_MAX,
    WAITING,
    JobRecord,
    all_jobs,
    expire,
    hold,
    load_job,
    release,
    save_job,
)
from tests.support.worlds import add_person, another_process, disturbed, memory_repository, submit


@dataclass
class ManualClock:
    micros: int = 1_000_000_000_000

    def now(self) -> int:
        return self.micros


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def repo(clock: ManualClock) -> Repository:
    return memory_repository(clock=Clock(now=clock.now, pause=lambda _seconds: None))


def job(clock: ManualClock, name: str = "j1", kind: str = "export", **fields: object) -> JobRecord:
    made = JobRecord(name, kind, "dora", created=clock.now(), seen=clock.now())
    changed: JobRecord = msgspec.structs.replace(made, **fields)
    return changed


def with_part(repo: Repository, name: str) -> str:
    key = f"{layout.export_folder(name)}/0.ndjson"
    repo.objects.put(key, b"rows")
    return key


def exists(repo: Repository, key: str) -> bool:
    return key in {info.key for info in repo.objects.list(key.rpartition("/")[0])}


def status(repo: Repository, name: str = "j1") -> str | None:
    found = load_job(another_process(repo), name)
    return None if found is None else found.status


def test_a_job_is_told_as_it_was_saved(repo: Repository, clock: ManualClock) -> None:
    saved = job(clock, status=RUNNING, phase="export", done=3, total=9)
    save_job(repo, saved)
    assert load_job(another_process(repo), "j1") == saved
    assert not saved.is_finished
    assert load_job(repo, "other") is None


@pytest.mark.parametrize("state", [WAITING, RUNNING])
def test_a_job_that_fell_silent_is_lost(repo: Repository, clock: ManualClock, state: str) -> None:
    save_job(repo, job(clock, status=state))
    part = with_part(repo, "j1")
    hold(repo, snapshot(repo), "j1")
    clock.micros += SILENT_MICROS_MAX
    assert status(repo) == state, "it may still say something"
    clock.micros += 1
    assert status(repo) == LOST
    assert not exists(repo, part), "nobody will ever fetch its parts"
    assert list(stored_plans(repo)) == [], "its state is held for nobody"


def test_a_sign_of_life_keeps_a_job(repo: Repository, clock: ManualClock) -> None:
    save_job(repo, job(clock, status=RUNNING))
    clock.micros += SILENT_MICROS_MAX + 1
    save_job(repo, job(clock, status=RUNNING))
    assert status(repo) == RUNNING


def test_a_load_that_is_lost_leaves_everything_to_the_run_that_goes_on(
    repo: Repository, clock: ManualClock
) -> None:
    save_job(repo, job(clock, kind="load", status=RUNNING))
    deleted: list[str] = []
    clock.micros += SILENT_MICROS_MAX + 1
    watched = disturbed(repo, lambda verb, key: deleted.append(key) if verb == "delete" else None)
    found = load_job(watched, "j1")
    assert found is not None
    of_others = [key for key in deleted if not key.startswith(f"{layout.JOBS}/")]
    assert (found.status, of_others) == (LOST, [])


@pytest.mark.parametrize("state", [DONE, CANCELLED])
def test_what_has_ended_is_not_lost_by_silence(
    repo: Repository, clock: ManualClock, state: str
) -> None:
    save_job(repo, job(clock, status=state))
    clock.micros += 1000 * SILENT_MICROS_MAX
    assert status(repo) == state


def test_parts_go_when_they_expire_and_the_record_a_week_later(
    repo: Repository, clock: ManualClock
) -> None:
    parts = ({"part": 0, "rows": 3},)
    save_job(repo, job(clock, status=DONE, expires=clock.now() + 10, parts=parts))
    part = with_part(repo, "j1")
    clock.micros += 9
    found = load_job(repo, "j1")
    assert found is not None
    assert found.parts == parts
    assert exists(repo, part)
    clock.micros += 1
    assert status(repo) == EXPIRED
    assert not exists(repo, part)
    clock.micros += FINISHED_KEPT_MICROS
    assert status(repo) == EXPIRED
    clock.micros += 1
    assert status(repo) is None


def test_what_expired_goes_without_anybody_asking(repo: Repository, clock: ManualClock) -> None:
    """Parts of exports, parts without a job, records of jobs that ended long ago; and nothing that is still wanted."""
    names = ("over", "running", "kept")
    parts = {name: with_part(repo, name) for name in (*names, "stray")}
    save_job(repo, job(clock, "over", status=DONE, expires=clock.now() + 5))
    save_job(repo, job(clock, "running", status=RUNNING))
    save_job(repo, job(clock, "kept", status=DONE, expires=clock.now() + FINISHED_KEPT_MICROS * 2))
    save_job(repo, job(clock, "load", kind="load", status=DONE))
    clock.micros += 6
    found = expire(another_process(repo))
    there = {name for name, part in parts.items() if exists(repo, part)}
    assert there == {"running", "kept"}
    assert found.objects >= 1
    clock.micros += FINISHED_KEPT_MICROS + 1
    expire(another_process(repo))
    assert {left.job: left.status for left in all_jobs(repo)} == {"running": LOST, "kept": DONE}


def test_all_jobs_newest_first(repo: Repository, clock: ManualClock) -> None:
    for name in ("a", "b", "c"):
        save_job(repo, job(clock, name))
        clock.micros += 1
    assert [found.job for found in all_jobs(another_process(repo))] == ["c", "b", "a"]


def test_a_job_that_is_cleared_away_during_a_listing_is_left_out(
    repo: Repository, clock: ManualClock
) -> None:
    for name in ("a", "b"):
        save_job(repo, job(clock, name))

    def before(verb: str, key: str) -> None:
        if verb == "get" and key == layout.job_key("a"):
            repo.objects.delete([key])

    assert [found.job for found in all_jobs(disturbed(repo, before))] == ["b"]


# --- holding a state -----------------------------------------------------------------------------------------------


def snapshot(repo: Repository) -> Snapshot:
    return repo.snapshot(repo.head("main").commit)


def rows(held: Snapshot) -> list[str]:
    found: list[str] = held.table_of(held.catalog.nodes["Person"]).scan(["id"])["id"].to_pylist()
    return found


def test_a_held_state_is_read_after_collections_and_goes_when_released(repo: Repository) -> None:
    submit(repo, add_person("ann"))
    held = snapshot(repo)
    hold(repo, held, "j1")
    submit(repo, add_person("bob"))
    for _ in range(2):
        collect(another_process(repo), Retention(keep=1))
    assert rows(held) == ["ann"]
    release(repo, "j1")
    collect(another_process(repo), Retention(keep=1))
    assert collect(another_process(repo), Retention(keep=1), dry_run=True).objects_deleted == 0


def test_a_state_that_was_collected_before_it_could_be_held_is_refused(repo: Repository) -> None:
    submit(repo, add_person("ann"))
    late = snapshot(repo)
    submit(repo, add_person("bob"))
    collect(another_process(repo), Retention(keep=1))
    with pytest.raises(CommitPruned):
        hold(repo, late, "j1")
    assert list(stored_plans(repo)) == [], "the lease is of no use"


def test_a_state_a_collection_has_declared_is_refused(repo: Repository) -> None:
    """Its commit is there still, but the record that came before the lease says that it may go."""
    submit(repo, add_person("ann"))
    late = snapshot(repo)
    submit(repo, add_person("bob"))
    held: list[str] = []

    def before(verb: str, key: str) -> None:
        if verb == "put" and key.startswith(layout.CHAINS) and not held:
            held.append(key)
            with pytest.raises(CommitPruned):
                hold(another_process(repo), late, "j1")

    collect(disturbed(repo, before), Retention(keep=1))
    assert held, "nothing was buried: nothing is tested"
