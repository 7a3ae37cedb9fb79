"""Find what no isolated database shows its clients, from the clients' observations alone.

The order in which a list grew can be read off its longest observation. From it follow three kinds of dependency between
operations: one overwrote what the other wrote (ww), one read what the other wrote (wr), one read what the other then
overwrote (rw). A cycle of them is an anomaly, named by its weakest link; snapshot isolation allows only cycles with
two rw dependencies in a row, serializability allows none.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from itertools import pairwise
from math import inf

from tests.support.history import Anomaly, Append, Operation, Read, Status, Value

Edges = dict[str, set[str]]


class Level(Enum):
    SNAPSHOT = auto()
    SERIALIZABLE = auto()


@dataclass(slots=True)
class Observations:
    """What the operations of one branch did and saw, by key."""

    operations: Mapping[str, Operation]
    writers: Mapping[tuple[str, Value], Operation]  # of all branches
    reads: dict[str, list[tuple[Operation, tuple[Value, ...]]]] = field(default_factory=dict)
    order: dict[str, tuple[Value, ...]] = field(default_factory=dict)

    def local_writer(self, key: str, value: Value) -> str | None:
        """Who appended the value, if that was on this branch and did not fail."""
        writer = self.writers.get((key, value))
        return writer.id if writer and writer.id in self.operations else None


def check_isolation(
    operations: Sequence[Operation],
    *,
    level: Level = Level.SNAPSHOT,
    strong: bool = True,
    visible: Mapping[str, Iterable[str]] | None = None,
) -> list[Anomaly]:
    """All anomalies of a history of list appends.

    `strong` requires reads to see what was acknowledged before they began. `visible` names, for a branch, the other
    branches whose writes it may show because it was forked from them or merged them.
    """
    writers = {(a.key, a.value): op for op in operations for a in op.appends}
    anomalies: list[Anomaly] = []
    for branch in sorted({op.branch for op in operations}):
        local = {
            op.id: op for op in operations if op.branch == branch and op.status is not Status.FAIL
        }
        seen = Observations(local, writers)
        allowed = {branch, *(visible or {}).get(branch, ())}
        anomalies += _observe(seen)
        anomalies += _check_values(seen, allowed)
        anomalies += _check_lost_updates(seen)
        anomalies += _check_sessions(seen)
        if strong:
            anomalies += _check_recent(seen)
        anomalies += _check_cycles(seen, level)
    return anomalies


# --- what was read


def _observe(seen: Observations) -> Iterator[Anomaly]:
    """Collect the reads, without the reader's own appends, and the order of each list."""
    for op in seen.operations.values():
        if op.status is Status.OK:
            yield from _collect_reads(op, seen)
    for key, reads in seen.reads.items():
        seen.order[key] = longest = max((values for _, values in reads), key=len)
        for op, values in reads:
            if values != longest[: len(values)]:
                text = f"{op.id} read {key} as {values}, others as {longest}"
                yield Anomaly("incompatible order", text, (op.id,))
            if len(set(values)) < len(values):
                yield Anomaly("duplicate", f"{op.id} read {key} as {values}", (op.id,))


def _collect_reads(op: Operation, seen: Observations) -> Iterator[Anomaly]:
    ever = {(append.key, append.value) for append in op.appends}
    own: dict[str, tuple[Value, ...]] = defaultdict(tuple)
    first: dict[str, tuple[Value, ...]] = {}
    for step in op.steps:
        match step:
            case Append(key, value):
                own[key] += (value,)
            case Read(key, values):
                cut = len(values) - len(own[key])
                outside = values[: max(cut, 0)]
                own_again = any((key, value) in ever for value in outside)
                changed = first.get(key, outside) != outside
                if cut < 0 or values[cut:] != own[key] or own_again or changed:
                    text = f"{op.id} read {key} as {values}, against its own earlier steps"
                    yield Anomaly("internal", text, (op.id,))
                elif key not in first:
                    first[key] = outside
                    seen.reads.setdefault(key, []).append((op, outside))


def _check_values(seen: Observations, allowed: set[str]) -> Iterator[Anomaly]:
    """Nothing that was never written, failed, is from elsewhere, or is half of an operation."""
    finals = {
        (op.id, append.key): append.value
        for op in seen.operations.values()
        for append in op.appends
    }
    for key, reads in seen.reads.items():
        for op, values in reads:
            for value in values:
                yield from _check_value(op, key, value, seen, allowed)
            writer = seen.local_writer(key, values[-1]) if values else None
            if writer and writer != op.id and finals[writer, key] != values[-1]:
                text = f"{op.id} saw {writer} half done: {key} ends with {values[-1]}"
                yield Anomaly("G1b", text, (op.id, writer))


def _check_value(
    op: Operation, key: str, value: Value, seen: Observations, allowed: set[str]
) -> Iterator[Anomaly]:
    writer = seen.writers.get((key, value))
    if writer is None:
        yield Anomaly("unwritten", f"{op.id} read {value} from {key}; nobody wrote it", (op.id,))
    elif writer.status is Status.FAIL:
        text = f"{op.id} read {value} from {key}, which {writer.id} failed to write"
        yield Anomaly("G1a", text, (op.id, writer.id))
    elif writer.branch not in allowed:
        text = f"{op.id} on {op.branch} read {value} from {key}, written on {writer.branch}"
        yield Anomaly("foreign branch", text, (op.id, writer.id))


def _check_lost_updates(seen: Observations) -> Iterator[Anomaly]:
    """Two operations that both read one version of a list and both appended to it."""
    for key, reads in seen.reads.items():
        updaters: dict[int, list[str]] = defaultdict(list)
        for op, values in reads:
            if any(append.key == key for append in op.appends):
                updaters[len(values)].append(op.id)
        for length, ids in updaters.items():
            if len(ids) > 1:
                text = f"{', '.join(ids)} all appended to {key} as they read it at length {length}"
                yield Anomaly("lost update", text, tuple(ids))


def _check_sessions(seen: Observations) -> Iterator[Anomaly]:
    """A client never sees less of a list than it saw or wrote before."""
    lengths: dict[str, dict[str, float]] = defaultdict(dict)
    for key, reads in seen.reads.items():
        for op, values in reads:
            lengths[op.id][key] = len(values)
    places = {key: _places(order) for key, order in seen.order.items()}
    known: dict[tuple[str, str], float] = defaultdict(float)
    for op in _acknowledged(seen):
        reached = lengths[op.id]
        for key, length in reached.items():
            if length < known[op.process, key]:
                text = f"{op.process} saw less of {key} in {op.id} than before"
                yield Anomaly("non-monotonic session", text, (op.id,))
        for append in op.appends:
            place = places.get(append.key, {}).get(append.value, inf)
            reached[append.key] = max(reached.get(append.key, 0), place + 1)
        for key, length in reached.items():
            known[op.process, key] = max(known[op.process, key], length)


def _acknowledged(seen: Observations) -> list[Operation]:
    """In the order in which they ended, which within one client is the order they were made in."""
    done = (op for op in seen.operations.values() if op.status is Status.OK)
    return sorted(done, key=lambda op: op.completed)


def _places(order: Sequence[Value]) -> dict[Value, int]:
    return {value: index for index, value in enumerate(order)}


def _check_recent(seen: Observations) -> Iterator[Anomaly]:
    """What was acknowledged before a read began is in it."""
    acknowledged: dict[str, list[tuple[float, Value]]] = defaultdict(list)
    for op in _acknowledged(seen):
        for append in op.appends:
            acknowledged[append.key].append((op.completed, append.value))
    for key, reads in seen.reads.items():
        place = _places(seen.order[key])
        ended = acknowledged[key]
        needed, next_ended = 0.0, 0
        for op, values in sorted(reads, key=lambda read: read[0].invoked):
            while next_ended < len(ended) and ended[next_ended][0] < op.invoked:
                needed = max(needed, place.get(ended[next_ended][1], inf) + 1)
                next_ended += 1
            if len(values) < needed:
                text = f"{op.id} read {key} without what had been acknowledged before"
                yield Anomaly("stale read", text, (op.id,))


# --- cycles


@dataclass(frozen=True, slots=True)
class Dependencies:
    ww: Edges
    wr: Edges
    rw: Edges
    session: Edges


def _check_cycles(seen: Observations, level: Level) -> Iterator[Anomaly]:
    edges = _dependencies(seen)
    everything = _union(edges.ww, edges.wr, edges.rw, edges.session)
    for knot in _knots(everything):
        found = _classify(_within(edges, knot), level)
        if found is not None:
            kind, cycle = found
            yield Anomaly(kind, " before ".join([*cycle, cycle[0]]), tuple(cycle))


def _dependencies(seen: Observations) -> Dependencies:
    ww, wr, rw, session = (defaultdict[str, set[str]](set) for _ in range(4))
    for key, order in seen.order.items():
        writers = [seen.local_writer(key, value) for value in order]
        for before, after in pairwise(writers):
            _add(ww, before, after)
        for op, values in seen.reads[key]:
            if values:
                _add(wr, writers[len(values) - 1], op.id)
            if len(values) < len(order):
                _add(rw, op.id, writers[len(values)])
    previous: dict[str, str] = {}
    for op in _acknowledged(seen):
        _add(session, previous.get(op.process), op.id)
        previous[op.process] = op.id
    return Dependencies(ww, wr, rw, session)


def _add(edges: Edges, before: str | None, after: str | None) -> None:
    if before is not None and after is not None and before != after:
        edges[before].add(after)


def _classify(edges: Dependencies, level: Level) -> tuple[str, list[str]] | None:
    """The name of the worst cycle and its operations; None if this level allows what is there."""
    direct = _union(edges.ww, edges.wr)
    in_session = _union(direct, edges.session)
    if cycle := _find_cycle(edges.ww):
        return "G0", cycle
    if cycle := _find_cycle(direct):
        return "G1c", cycle
    if cycle := _find_single(direct, edges.rw):
        return "G-single", cycle
    if cycle := _find_cycle(_snapshot_order(direct, edges.rw)):
        return "long fork", cycle
    if cycle := _find_cycle(_snapshot_order(in_session, edges.rw)):
        return "session cycle", cycle
    if level is Level.SERIALIZABLE and (cycle := _find_cycle(_union(in_session, edges.rw))):
        return "write skew", cycle
    return None


def _find_single(direct: Edges, rw: Edges) -> list[str] | None:
    """A cycle with exactly one rw dependency."""
    for before, afters in rw.items():
        for after in sorted(afters):
            if path := _path(direct, after, before):
                return path
    return None


def _snapshot_order(direct: Edges, rw: Edges) -> Edges:
    """What snapshot isolation keeps free of cycles: direct steps, each followed by at most one rw step."""
    order: Edges = defaultdict(set)
    for before, afters in direct.items():
        for after in afters:
            order[before] |= {after, *rw.get(after, ())}
    return order


def _within(edges: Dependencies, knot: set[str]) -> Dependencies:
    def keep(part: Edges) -> Edges:
        return {a: kept for a in part.keys() & knot if (kept := part[a] & knot)}

    return Dependencies(*map(keep, (edges.ww, edges.wr, edges.rw, edges.session)))


def _union(*parts: Edges) -> Edges:
    union: Edges = defaultdict(set)
    for part in parts:
        for before, afters in part.items():
            union[before] |= afters
    return union


def _find_cycle(edges: Edges) -> list[str] | None:
    """A short cycle, if there is one."""
    for knot in _knots(edges):
        start = min(knot)
        inside = {a: edges[a] & knot for a in knot if a in edges}
        for after in sorted(inside[start]):
            if path := _path(inside, after, start):
                return [start, *path[:-1]]
    return None


def _path(edges: Edges, start: str, goal: str) -> list[str] | None:
    """The shortest path, both ends included."""
    came_from: dict[str, str | None] = {start: None}
    queue = deque([start])
    while queue:
        node = queue.popleft()
        if node == goal:
            path = [node]
            while (previous := came_from[path[-1]]) is not None:
                path.append(previous)
            return path[::-1]
        for after in sorted(edges.get(node, ())):
            if after not in came_from:
                came_from[after] = node
                queue.append(after)
    return None


def _knots(edges: Edges) -> list[set[str]]:
    """The strongly connected components in which there is a cycle (Tarjan's algorithm, without recursion)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    knots: list[set[str]] = []

    def enter(node: str) -> tuple[str, Iterator[str]]:
        index[node] = low[node] = len(index)
        stack.append(node)
        on_stack.add(node)
        return node, iter(sorted(edges.get(node, ())))

    def leave(node: str) -> None:
        if low[node] != index[node]:
            return
        knot: set[str] = set()
        while node not in knot:
            knot.add(stack.pop())
        on_stack.difference_update(knot)
        if len(knot) > 1 or node in edges.get(node, ()):
            knots.append(knot)

    for root in sorted(edges):
        work = [enter(root)] if root not in index else []
        while work:
            node, afters = work[-1]
            for after in afters:
                if after not in index:
                    work.append(enter(after))
                    break
                if after in on_stack:
                    low[node] = min(low[node], index[after])
            else:
                work.pop()
                leave(node)
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
    return knots
