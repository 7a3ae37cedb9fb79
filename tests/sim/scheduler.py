"""Who runs next, and what goes wrong: every choice comes from one random generator, so a seed is a whole run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from greenlet import GreenletExit, greenlet

from omnigraph.core.clock import Clock
from omnigraph.errors import StoreOutcomeUnknown
from omnigraph.model.limits import Limits
from tests.support.dict_objects import DictObjects, Shelf

STEPS_MAX = 20_000
STALL_STEPS_MAX = 200
WRITES = frozenset({"put_new", "put", "delete", "file"})
LIMITS = Limits(
    staging_threads_max=1,
    read_threads_max=1,
    publish_attempts_max=24,
    recent_commits=4,
    commits_cached_max=8,
    unknown_attempts_max=2,
    room_after_losses=2,
    room_after_seconds=0.0,
)


class Died(BaseException):
    """The actor's process was killed."""


@dataclass(frozen=True)
class Weather:
    """How often things go wrong, per durable write."""

    crash: float = 0.004
    lost_answer: float = 0.02
    lost_request: float = 0.01
    late_request: float = 0.01
    stall: float = 0.03  # per request of any kind: others go on for long before this one does


CALM = Weather(0, 0, 0, 0, 0)


@dataclass
class Scheduler:
    """Runs actors one at a time; each request to the store is a chance for another to go first."""

    seed: int
    weather: Weather = field(default_factory=Weather)
    shelf: Shelf = field(default_factory=Shelf)
    trace: list[tuple[str, ...]] = field(default_factory=list)
    dies_at: tuple[int, bool] | None = None  # whoever makes this durable write, before or after it

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        self.clock = 1_800_000_000_000_000
        self.steps = 0
        self.writes = 0
        self.commits = 0  # that were made until the end
        self._ready: dict[str, greenlet] = {}
        self._hub = greenlet.getcurrent()
        self._late: list[tuple[str, Any]] = []
        self._asleep: dict[str, int] = {}  # until which step
        self._over = False

    # --- what the core takes from its surroundings ---------------------------------------------------------------

    def core_clock(self) -> Clock:
        return Clock(
            now=self._now, fresh_id=self._fresh, pause=self._pause, chance=self.random.random
        )

    def _now(self) -> int:
        self.clock += (0, 1, 1000)[int(self.random.random() * 3)]
        return self.clock

    def _fresh(self) -> str:
        return f"{self.random.getrandbits(64):016x}"

    def _pause(self, seconds: float) -> None:
        self._yield("pause")

    def store(self, actor: str) -> DictObjects:
        """The shared store as one actor reaches it."""
        return DictObjects(self.shelf, self._before(actor), self._after)

    # --- turns ---------------------------------------------------------------------------------------------------

    def run(self, actors: dict[str, Callable[[], None]]) -> None:
        """Run all actors to their end."""
        self._hub = greenlet.getcurrent()
        self._ready = {name: greenlet(body) for name, body in actors.items()}
        try:
            while self._ready or self._late:
                self._turn()
        finally:
            self._dismiss()

    def _turn(self) -> None:
        self.steps += 1
        if self.steps > STEPS_MAX:
            raise AssertionError(f"seed {self.seed} does not come to an end")
        if self._late:
            self._deliver()
        if not self._ready:
            return
        name = self._next()
        actor = self._ready[name]
        actor.switch()
        if actor.dead:
            del self._ready[name]

    def _dismiss(self) -> None:
        """End whoever is in the middle of something: the garbage collector would do it later, inside anything."""
        left, self._ready, self._over = list(self._ready.values()), {}, True
        for actor in left:
            if actor:
                actor.throw(GreenletExit)

    def _next(self) -> str:
        """Who goes on: anybody who is not asleep, or the one who wakes first."""
        until = self._asleep
        awake = [name for name in self._ready if name not in until or until[name] <= self.steps]
        if not awake:
            return min(self._ready, key=until.__getitem__)
        name = awake[int(self.random.random() * len(awake))]
        if self.random.random() < self.weather.stall:
            self.note("stall")
            self._asleep[name] = self.steps + int(self.random.random() * STALL_STEPS_MAX)
        return name

    def _yield(self, *what: str) -> None:
        if greenlet.getcurrent() is not self._hub and not self._over:
            self.trace.append(what)
            self._hub.switch()

    # --- disturbances --------------------------------------------------------------------------------------------

    def _before(self, actor: str) -> Callable[[str, str], None]:
        def before(verb: str, key: str) -> None:
            self._yield(actor, verb, key)
            if verb in WRITES:
                self._strike(verb, key)

        return before

    def _strike(self, verb: str, key: str) -> None:
        self.writes += 1
        if self.dies_at == (self.writes, False):
            raise Died
        if self.random.random() < self.weather.crash:
            self.note("crash before a write")
            raise Died
        if verb == "put_new" and self.random.random() < self.weather.lost_request:
            self.note("request lost")
            raise StoreOutcomeUnknown(f"no answer for {key}")

    def _after(self, verb: str, key: str) -> None:
        if verb not in WRITES:
            return
        if self.dies_at == (self.writes, True):
            raise Died
        if self.random.random() < self.weather.crash:
            self.note("crash after a write")
            raise Died
        if verb != "put_new":
            return
        if self.random.random() < self.weather.late_request:
            self.note("request late")
            self._late.append((key, self.shelf.pop(key)))
            raise StoreOutcomeUnknown(f"no answer for {key}")
        if self.random.random() < self.weather.lost_answer:
            self.note("answer lost")
            raise StoreOutcomeUnknown(f"no answer for {key}")

    def _deliver(self) -> None:
        """A request that timed out may still arrive; a create that arrives late finds the key taken, or creates it."""
        if not self._ready or self.random.random() < 0.05:
            key, data = self._late.pop(self.random.randrange(len(self._late)))
            self.note("late request refused" if key in self.shelf else "late request applied")
            self.shelf.setdefault(key, data)

    def note(self, what: str) -> None:
        """A disturbance came about; probes listen here."""
