"""One simulated run: a few actors over one store, from a seed to a verdict."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random

from omnigraph.core.create import fill, fresh_stamp
from omnigraph.core.repository import Repository
from omnigraph.storage.objects import Location
from tests.sim.actors import WORKLOADS, Actor, Log, open_accounts
from tests.sim.judge import judge
from tests.sim.scheduler import CALM, LIMITS, Died, Scheduler, Weather
from tests.support.dict_tables import DictTables, Disk
from tests.support.worlds import stored_schema, submit

SCHEMA = stored_schema()
PLACE = Location("memory://simulated", "memory", {})
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
    ("tagger", "appender", "collector"),
    ("banker", "gardener", "brancher", "collector"),
)


def process(scheduler: Scheduler, repo: Repository, actor: str) -> Repository:
    """The graph as one actor's process knows it."""
    store = scheduler.store(actor)
    return Repository(
        PLACE, store, DictTables(Disk(store)), repo.stamp, limits=LIMITS, world=scheduler.world()
    )


def run(
    seed: int, weather: Weather | None = None, cast: tuple[str, ...] | None = None
) -> Scheduler:
    """Run one world and judge it; the scheduler tells what happened."""
    scheduler = Scheduler(seed, weather if weather is not None else Weather())
    store = scheduler.store("init")
    repo = Repository(
        PLACE,
        store,
        DictTables(Disk(store)),
        fresh_stamp(scheduler.world()),
        limits=LIMITS,
        world=scheduler.world(),
    )
    fill(repo, SCHEMA)
    submit(repo, open_accounts)
    log = Log()
    bodies: dict[str, Callable[[], None]] = {}
    for number, workload in enumerate(cast or CASTS[seed % len(CASTS)]):
        name = f"{workload}{number}"
        actor = Actor(name, process(scheduler, repo, name), Random(seed * 31 + number), log)
        bodies[name] = partial(_live, actor, workload)
    scheduler.run(bodies)
    scheduler.weather = CALM
    judge(process(scheduler, repo, "judge"), log)
    return scheduler


def _live(actor: Actor, workload: str) -> None:
    try:
        WORKLOADS[workload](actor)
    except Died:
        return  # its process is gone; whatever it was doing is nothing certain
