"""Every order in which processes can make their requests, and every way in which the store can fail them.

A process is a generator: `answer = yield request`. A request is one atomic step of a linearizable store; before each,
anything may happen to anybody. States are explored breadth first, so the trace of a violation is a shortest one.

    ("get", key)             the object, or None
    ("newest", prefix)       the highest number n of the keys (*prefix, n), or None
    ("folders", prefix)      the names one level below a prefix, in one moment
    ("list", prefix)         all (key, object) below a prefix, in one moment
    ("create", key, object)  "ok", "exists" or "unknown": nothing, or something, or something later
    ("put", key, object)     replaces
    ("delete", keys)
    ("files", files)         data files: ((name, rows), …)
    ("rows", names)          the rows of data files, or None when one is missing
    ("missing", names)       which data files are missing

What a process tells its caller is no request: ("told", …) is remembered for the invariants, and ("claim", holds, text)
must hold.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

Key = tuple[Any, ...]
Request = tuple[Any, ...]
Process = Generator[Request, Any, Any]
Store = Mapping[Key, Any]
Told = frozenset[tuple[Any, ...]]
Invariant = Callable[[Store, Told], str | None]
WRITES = frozenset({"create", "put", "delete", "files"})


@dataclass(frozen=True, slots=True)
class Budget:
    """How much may go wrong in one run."""

    crashes: int = 0
    losses: int = 0  # of a create: its answer, or the request itself
    late: int = 0  # lost requests that may arrive after all


@dataclass(frozen=True, slots=True)
class State:
    store: frozenset[tuple[Key, Any]]
    locals: tuple[int, ...]  # the place of each process
    flying: tuple[tuple[Key, Any], ...]
    told: Told
    budget: Budget


@dataclass(frozen=True, slots=True)
class Explored:
    """What was found: how many states, and the first that breaks something with the way to it."""

    states: int
    broken: str | None = None
    trace: tuple[str, ...] = ()
    complete: bool = True


@dataclass(slots=True)
class Explorer:
    """Explores the processes over a store."""

    start: Store
    processes: Mapping[str, Callable[[], Process]]
    invariant: Invariant
    budget: Budget = field(default_factory=Budget)
    states_max: int = 1_000_000
    _places: dict[tuple[Any, ...], int] = field(default_factory=dict)
    _answers: list[tuple[Any, ...]] = field(default_factory=list)  # by place: how to get there
    _requests: list[Request | None] = field(default_factory=list)  # by place: what is asked there
    _moves: dict[tuple[int, int | None, Any], tuple[int, Told, str | None]] = field(
        default_factory=dict
    )
    _stores: dict[frozenset[tuple[Key, Any]], frozenset[tuple[Key, Any]]] = field(
        default_factory=dict
    )

    def run(self) -> Explored:
        began = [self._advance(i, None, None) for i in range(len(self.processes))]
        told: Told = frozenset().union(*(said for _, said, _ in began))
        first = State(
            frozenset(self.start.items()),
            tuple(place for place, _, _ in began),
            (),
            told,
            self.budget,
        )
        came_from: dict[State, tuple[State, str] | None] = {first: None}
        queue = deque([first])
        while queue:
            state = queue.popleft()
            for label, following, claim in self._successors(state):
                if following in came_from and not claim:
                    continue
                broken = claim or self.invariant(dict(following.store), following.told)
                if broken:
                    trace = (*_trace(came_from, state), label)
                    return Explored(len(came_from), broken, trace)
                came_from[following] = (state, label)
                queue.append(following)
            if len(came_from) > self.states_max:
                return Explored(len(came_from), complete=False)
        return Explored(len(came_from))

    def moves(self) -> dict[str, dict[int | None, set[int]]]:
        """Per process: from which of its places it went to which; None is before its first request."""
        names = list(self.processes)
        found: dict[str, dict[int | None, set[int]]] = {name: {} for name in names}
        for (index, at, _), (following, _, _) in self._moves.items():
            found[names[index]].setdefault(at, set()).add(following)
        return found

    def request_at(self, place: int) -> Request | None:
        """What a process asks at one of its places; None where it has ended."""
        return self._requests[place]

    # --- processes

    def _advance(self, index: int, place: int | None, answer: Any) -> tuple[int, Told, str | None]:
        """Where a process is after an answer, what it said on the way, and a claim of its that does not hold."""
        known = self._moves.get((index, place, answer))
        if known is None:
            past = () if place is None else (*self._answers[place], answer)
            known = self._moves[index, place, answer] = self._replay(index, past)
        return known

    def _replay(self, index: int, answers: tuple[Any, ...]) -> tuple[int, Told, str | None]:
        """Run a process from its beginning with the answers it was given; it is a function of them."""
        process = list(self.processes.values())[index]()
        left = list(answers)
        said: set[tuple[Any, ...]] = set()
        broken: str | None = None
        local: Any = "ended"
        request: Request | None = None
        try:
            asked = next(process)
            while True:
                if asked[0] in ("told", "claim"):
                    if asked[0] == "told" and not left:
                        said.add(asked[1:])
                    if asked[0] == "claim" and not left and not asked[1]:
                        broken = asked[2]
                    asked = process.send(None)
                elif left:
                    asked = process.send(left.pop(0))
                else:
                    local, request = _where(process), asked
                    break
        except StopIteration:
            pass
        return self._place(index, local, request, answers), frozenset(said), broken

    def _place(self, index: int, local: Any, request: Request | None, answers: Any) -> int:
        """A number for a local state; two ways to the same variables at the same line are one."""
        key = (index, local, request)
        found = self._places.get(key)
        if found is None:
            found = self._places[key] = len(self._answers)
            self._answers.append(answers)
            self._requests.append(request)
        return found

    # --- steps

    def _successors(self, state: State) -> Iterator[tuple[str, State, str | None]]:
        store = dict(state.store)
        for index, name in enumerate(self.processes):
            request = self._requests[state.locals[index]]
            if request is not None:
                yield from self._steps(state, store, index, name, request)
        for position, (key, thing) in enumerate(state.flying):
            rest = state.flying[:position] + state.flying[position + 1 :]
            applied = state.store if key in store else self._stored({**store, key: thing})
            yield (
                f"the late create of {key} arrives",
                replace(state, store=applied, flying=rest),
                None,
            )

    def _steps(
        self, state: State, store: dict[Key, Any], index: int, name: str, request: Request
    ) -> Iterator[tuple[str, State, str | None]]:
        budget, text = state.budget, f"{name}: {request[0]} {request[1]}"
        if budget.crashes and request[0] in WRITES:
            dead = self._place(index, "crashed", None, ())
            fewer = replace(budget, crashes=budget.crashes - 1)
            locals_ = (*state.locals[:index], dead, *state.locals[index + 1 :])
            yield f"{text}: crash before it", replace(state, locals=locals_, budget=fewer), None
        answer, changed = answer_of(store, request)
        after = state.store if changed is None else self._stored(changed)
        yield self._moved(state, index, answer, f"{text} -> {_short(answer)}", store=after)
        if request[0] != "create" or not budget.losses:
            return
        fewer = replace(budget, losses=budget.losses - 1)
        yield self._moved(
            state, index, "unknown", f"{text}: answer lost ({answer})", store=after, budget=fewer
        )
        if changed is None:
            return
        yield self._moved(state, index, "unknown", f"{text}: request lost", budget=fewer)
        if budget.late:
            yield self._moved(
                state,
                index,
                "unknown",
                f"{text}: no answer, still on its way",
                flying=(*state.flying, (request[1], request[2])),
                budget=replace(fewer, late=budget.late - 1),
            )

    def _stored(self, store: dict[Key, Any]) -> frozenset[tuple[Key, Any]]:
        """Many states share a store; they share its memory too."""
        held = frozenset(store.items())
        return self._stores.setdefault(held, held)

    def _moved(
        self, state: State, index: int, answer: Any, text: str, **changes: Any
    ) -> tuple[str, State, str | None]:
        place, said, broken = self._advance(index, state.locals[index], answer)
        locals_ = (*state.locals[:index], place, *state.locals[index + 1 :])
        told = state.told | said if said else state.told
        return text, replace(state, locals=locals_, told=told, **changes), broken


def answer_of(store: dict[Key, Any], request: Request) -> tuple[Any, dict[Key, Any] | None]:
    """The undisturbed answer, and the store afterwards if it changed."""
    match request:
        case ("get", key):
            return store.get(key), None
        case ("newest", prefix):
            size = len(prefix)
            numbers = [k[-1] for k in store if len(k) == size + 1 and k[:size] == prefix]
            return max(numbers, default=None), None
        case ("folders", prefix):
            size = len(prefix)
            return tuple(sorted({k[size] for k in store if k[:size] == prefix})), None
        case ("list", prefix):
            size = len(prefix)
            return tuple(
                sorted((i for i in store.items() if i[0][:size] == prefix), key=repr)
            ), None
        case ("create", key, _) if key in store:
            return "exists", None
        case ("create" | "put", key, thing):
            return "ok", {**store, key: thing}
        case ("delete", keys):
            return "ok", {key: thing for key, thing in store.items() if key not in keys}
        case ("files", files):
            return "ok", {**store, **{("f", name): rows for name, rows in files}}
        case ("rows", names):
            if any(("f", name) not in store for name in names):
                return None, None
            return tuple(row for name in names for row in store["f", name]), None
        case ("missing", names):
            return tuple(name for name in names if ("f", name) not in store), None
    raise AssertionError(f"no such request: {request}")


def _where(process: Process) -> tuple[Any, ...]:
    """Position and variables of a generator and of all it delegates to: its whole future."""
    found: list[Any] = []
    at: Any = process
    while at is not None and getattr(at, "gi_frame", None) is not None:
        frame = at.gi_frame
        held = {k: v for k, v in frame.f_locals.items() if k != "rules" and not callable(v)}
        found.append((frame.f_code.co_name, frame.f_lasti, frozen(held)))
        at = at.gi_yieldfrom
    return tuple(found)


def frozen(thing: Any) -> Any:
    """The same value, hashable."""
    match thing:
        case dict():
            return tuple(sorted(((k, frozen(v)) for k, v in thing.items()), key=repr))
        case set() | frozenset():
            return frozenset(map(frozen, thing))
        case list():
            return tuple(map(frozen, thing))
        case tuple() if not hasattr(thing, "_fields"):
            return tuple(map(frozen, thing))
        case _:
            return thing


def _trace(came_from: Mapping[State, tuple[State, str] | None], state: State) -> list[str]:
    labels: list[str] = []
    step = came_from[state]
    while step is not None:
        state, label = step
        labels.append(label)
        step = came_from[state]
    return labels[::-1]


def _short(answer: Any) -> str:
    text = str(answer)
    return text if len(text) < 90 else text[:87] + "..."
