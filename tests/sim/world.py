"""One simulated run: a few actors over one store, from a seed to a verdict.

`python -m tests.sim.world 17` runs the world of a seed again, and shows every request in its order.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache, partial
from random import Random

from omnigraph.core import layout
from omnigraph.core.create import fill, fresh_stamp
from omnigraph.core.records import GraphStamp
from omnigraph.core.repository import Repository
from omnigraph.model.limits import Limits
from omnigraph.read.cache import SHARED
from omnigraph.storage.objects import Location
from tests.sim.actors import WORKLOADS, Actor, Log, open_accounts
from tests.sim.judge import judge
from tests.sim.reviewing import REVIEWERS, propose
from tests.sim.scheduler import CALM, LIMITS, Died, Scheduler, Weather
from tests.support import worlds
from tests.support.dict_objects import DictObjects, Shelf
from tests.support.dict_tables import DictTables, Disk
from tests.support.lists import DECLARED
from tests.support.worlds import stored_schema, submit

SCHEMA = stored_schema(worlds.SCHEMA + DECLARED)
WORLDS_BETWEEN_COLLECTIONS = 100
PLACE = Location("memory://simulated", "memory", {})
REMEMBERS_ALL = replace(LIMITS, commits_cached_max=10_000)  # nobody disturbs the judge
CASTS = (
    ("banker", "banker", "auditor"),
    ("banker", "appender", "collector"),
    ("gardener", "gardener", "auditor"),
    ("gardener", "folder", "appender"),
    ("appender", "appender", "collector", "auditor"),
    ("retrier", "retrier", "appender"),
    ("retrier", "appender", "collector"),
    ("sleeper", "appender", "appender", "collector"),
    ("brancher", "brancher", "collector", "auditor"),
    ("brancher", "appender", "collector", "collector"),
    ("brancher", "visitor", "collector"),
    ("tagger", "appender", "collector"),
    ("banker", "gardener", "brancher", "collector"),
    ("lister", "lister", "collector"),
    ("lister", "lister", "lister", "compactor"),
    ("merger", "appender", "collector"),
    ("merger", "merger", "compactor"),
    ("compactor", "appender", "gardener", "collector"),
    ("loader", "appender", "collector", "collector"),
    ("appender", "sweeper", "collector"),
    ("visitor", "brancher", "sweeper", "sweeper"),
    ("merger", "sweeper", "sweeper"),
    ("resetter", "sweeper", "sweeper"),
    ("founder", "sweeper", "collector"),
    ("tagger", "sweeper", "sweeper"),
    ("loader", "sweeper", "sweeper"),
    ("compactor", "sweeper", "sweeper"),
    ("retrier", "sleeper", "sweeper"),
    ("pusher", "approver", "releaser", "releaser"),
    ("approver", "doubter", "releaser", "closer"),
    ("pusher", "approver", "doubter", "releaser", "closer"),
)


def process(
    scheduler: Scheduler, stamp: GraphStamp, store: DictObjects, limits: Limits = LIMITS
) -> Repository:
    """The graph as one process knows it, over the store as this process reaches it."""
    return Repository(
        PLACE, store, DictTables(Disk(store)), stamp, limits=limits, clock=scheduler.core_clock()
    )


@cache
def beginning(proposal: bool = False) -> tuple[Shelf, GraphStamp]:
    """The state every run starts from, made once: a graph with three accounts, and a proposal where it is reviewed."""
    scheduler = Scheduler(2**32, CALM)  # ids of its own: no run has this seed
    stamp = fresh_stamp(scheduler.core_clock())
    repo = process(scheduler, stamp, DictObjects(scheduler.shelf))
    fill(repo, SCHEMA)
    submit(repo, open_accounts)
    if proposal:
        propose(repo)
    return scheduler.shelf, stamp


def run(
    seed: int,
    weather: Weather | None = None,
    cast: tuple[str, ...] | None = None,
    dies_at: tuple[int, bool] | None = None,
) -> Scheduler:
    """Run one world and judge it; the scheduler tells what happened."""
    SHARED.clear()  # worlds begin alike: what one of them read has the name of something else in the next
    actors = cast or CASTS[seed % len(CASTS)]
    shelf, stamp = beginning(any(workload in REVIEWERS for workload in actors))
    scheduler = Scheduler(
        seed, weather if weather is not None else Weather(), shelf.copy(), dies_at=dies_at
    )
    log = Log()
    bodies: dict[str, Callable[[], None]] = {}
    for number, workload in enumerate(actors):
        name = f"{workload}{number}"
        own = process(scheduler, stamp, scheduler.store(name))
        actor = Actor(name, own, Random(seed * 31 + number), log)
        bodies[name] = partial(_live, actor, workload)
    scheduler.run(bodies)
    scheduler.commits = _commits(scheduler.shelf) - _commits(shelf)
    judge(process(scheduler, stamp, DictObjects(scheduler.shelf), REMEMBERS_ALL), log)
    return scheduler


def _live(actor: Actor, workload: str) -> None:
    try:
        (WORKLOADS | REVIEWERS)[workload](actor)
    except Died:
        return  # its process is gone; whatever it was doing is nothing certain


@dataclass(frozen=True, slots=True)
class Runs:
    """How many worlds were run and judged, and what they cost."""

    count: int
    steps: int
    commits: int
    seconds: float  # of processor time

    @property
    def per_minute(self) -> float:
        return self.count / self.seconds * 60


def run_all(seeds: Iterable[int]) -> Runs:
    """Run the worlds of these seeds. Python's own collector runs between them, not within."""
    started, count, steps, commits = time.process_time(), 0, 0, 0
    gc.disable()
    gc.freeze()  # what was there before: no use looking through it again and again
    try:
        for count, seed in enumerate(seeds, 1):
            world = run(seed)
            steps += world.steps
            commits += world.commits
            if count % WORLDS_BETWEEN_COLLECTIONS == 0:
                gc.collect()
    finally:
        gc.unfreeze()
        gc.enable()
    return Runs(count, steps, commits, time.process_time() - started)


def _commits(shelf: Shelf) -> int:
    """How many numbers of all chains are taken, by a commit or what is left of it."""
    chains = (folder for folder in shelf.keys_in if folder.startswith(layout.CHAINS))
    return sum(len(shelf.keys_in[folder]) for folder in chains)


def main(seeds: list[str]) -> None:
    for seed in map(int, seeds):
        for number, step in enumerate(run(seed).trace):
            print(seed, number, *step)


if __name__ == "__main__":
    main(sys.argv[1:])
