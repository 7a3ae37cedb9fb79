"""Kill at every durable write of every verb, with real tables: exactly before, or exactly after (G1, G5).

The store dies at the k-th write for every k there is, with that write applied and without, and comes back for whoever
looks next, who shares no memory with the one that died. The same store loses the acknowledgement of every write in
turn, and whoever wrote must find out: applied exactly once (G4). Each of these is one crash state. Every change runs a
sample of them, drawn by the verb's name; all of them, and pairs of kills, run at night.
"""

from __future__ import annotations

import contextlib
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from omnigraph.errors import GraphNotFound, OmnigraphError
from omnigraph.graph import Graph, init, open_graph
from omnigraph.maintenance.collection import Retention, collect
from tests.support import rings
from tests.support.caches import forget_tables
from tests.support.faulty_s3 import FaultyS3
from tests.support.record import record
from tests.support.s3_objects import Bucket
from tests.support.verbs import add_to_each, build_index, compact
from tests.support.worlds import SCHEMA, add_knows, add_person, dangling, drop_person, edges

pytestmark = pytest.mark.xdist_group("crash states")
ROOT = "graph"
SET_AGE = 'query older() { update Person set { age: 9 } where name = "ann" }'
ROWS = {"Person": [{"name": "fay", "age": 1}, {"name": "ann", "age": 7}], "City": [{"name": "ulm"}]}
Operation = Callable[[str], object]


def on_graph(step: Callable[[Graph], object]) -> Operation:
    return lambda uri: step(open_graph(uri))


OPERATIONS: dict[str, Operation] = {
    "init": lambda uri: init(uri, schema=SCHEMA),
    "insert a node": on_graph(lambda g: g.publish(add_person("dee", age=4))),
    "replace a node": on_graph(lambda g: g.publish(add_person("ann", age=5))),
    "append an edge": on_graph(lambda g: g.publish(add_knows("e9", "cy", "ann"))),
    "delete a node with its edges": on_graph(lambda g: g.publish(drop_person("bob"))),
    "write two tables": on_graph(lambda g: g.publish(add_to_each(["Person", "City"], "ulm"))),
    "write under a key": on_graph(lambda g: g.publish(add_person("zoe"), idempotency_key="k1")),
    "create a branch": on_graph(lambda g: g.create_branch("new")),
    "create a branch from an older commit": on_graph(lambda g: g.create_branch("new", "main~1")),
    "first write on a branch": on_graph(lambda g: g.publish(add_person("eve"), branch="dev")),
    "delete a branch": on_graph(lambda g: g.delete_branch("dev")),
    "create a tag": on_graph(lambda g: g.tag("v1", "main~1")),
    "delete a tag": on_graph(lambda g: g.delete_tag("v0")),
    "build an index": on_graph(lambda g: g.publish(build_index("Person"))),
    "compact a table": on_graph(lambda g: g.publish(compact("Person"))),
    "collect": on_graph(lambda g: collect(g._repo, Retention(keep=1))),
    "mutate": on_graph(lambda g: g.mutate(SET_AGE)),
    "load, merging": on_graph(lambda g: g.load(ROWS)),
    "load, appending": on_graph(lambda g: g.load({"City": [{"name": "ulm"}]}, mode="append")),
    "load, overwriting": on_graph(lambda g: g.load({"City": [{"name": "bonn"}]}, mode="overwrite")),
    "load onto a new branch": on_graph(lambda g: g.load(ROWS, branch="new", create_from="main")),
    "merge, fast forward": on_graph(lambda g: g.merge("main", into="behind")),
    "merge, three ways": on_graph(lambda g: g.merge("dev")),
    "revert": on_graph(lambda g: g.revert("main~1")),
    "cherry-pick": on_graph(lambda g: g.cherry_pick("dev")),
    "reset": on_graph(lambda g: g.reset("main~2")),
    "apply a schema": on_graph(
        lambda g: g.apply_schema(SCHEMA + "node Town { name: String @key }")
    ),
    "apply a schema that drops": on_graph(
        lambda g: g.apply_schema(SCHEMA.replace("since: I64?", ""), allow_data_loss=True)
    ),
    "optimize": on_graph(lambda g: g.optimize()),
    "cleanup": on_graph(lambda g: g.cleanup(keep=2)),
    "clone": lambda uri: open_graph(uri).clone(f"{uri}-copy"),
    "clone a branch": lambda uri: open_graph(uri).clone(f"{uri}-copy", branch="dev"),
}
SAMPLE = rings.count(2, 10_000)  # writes of each operation at which to strike
PAIRS = rings.count(1, 12)  # kills of an operation, then of its repetition


@dataclass(frozen=True, slots=True)
class Stage:
    """A store, the state an operation starts from, and how far the operation gets undisturbed."""

    store: FaultyS3
    start: Bucket
    writes: int
    before: dict[str, Any]
    after: dict[str, Any]

    @property
    def uri(self) -> str:
        return self.store.address.uri(ROOT)

    def again(self) -> None:
        """The same start for somebody who knows nothing of it yet."""
        self.store.restore(self.start)
        forget_tables()


def populate(uri: str) -> None:
    graph = init(uri, schema=SCHEMA)
    for name in ("ann", "bob", "cy"):
        graph.publish(add_person(name))
    graph.publish(add_knows("e1", "ann", "bob"))
    graph.publish(build_index("Person", "name"))
    graph.publish(add_person("old"))
    graph.tag("v0")
    graph.create_branch("behind")
    graph.publish(drop_person("old"))
    graph.create_branch("dev")
    graph.publish(add_person("dan"), branch="dev")
    graph.publish(add_person("mia"))


def seen(uri: str) -> dict[str, Any]:
    """Everything a reader can see, by somebody who has not seen anything yet."""
    forget_tables()
    try:
        graph = open_graph(uri)
    except GraphNotFound:
        return {}
    found: dict[str, Any] = {"tags": sorted(graph.tags())}
    for branch in graph.branches():
        found[branch] = content(graph, branch)
    if not uri.endswith("-copy"):
        found["copy"] = seen(f"{uri}-copy")
    return found


def content(graph: Graph, branch: str) -> tuple[Any, ...]:
    snapshot = graph.snapshot(branch)
    nodes = [
        sorted(snapshot.table_of(kind).scan(["id"])["id"].to_pylist())
        for kind in snapshot.catalog.nodes.values()
    ]
    ages = snapshot.table_of(snapshot.catalog.nodes["Person"]).scan(["id", "age"]).to_pylist()
    assert not dangling(graph._repo, branch), f"{branch} has an edge without its node"
    shown = [commit.kind for commit in graph.log(branch)]
    return (nodes, sorted(map(str, ages)), edges(graph._repo, branch), shown, graph.schema(branch))


@pytest.fixture
def stage(faulty_s3: FaultyS3, name: str) -> Stage:
    """Each is worked out once; the store is new for every test."""
    if name not in _STAGES:
        _STAGES[name] = _undisturbed(faulty_s3, name)
    return replace(_STAGES[name], store=faulty_s3)


_STAGES: dict[str, Stage] = {}


def _undisturbed(store: FaultyS3, name: str) -> Stage:
    uri = store.address.uri(ROOT)
    forget_tables()
    if name != "init" and _STARTS:
        store.restore(_STARTS[0])
    elif name != "init":
        populate(uri)
        _STARTS.append(store.snapshot())
    start, before = store.snapshot(), seen(uri)
    store.clear_log()
    OPERATIONS[name](uri)
    writes = store.durable_writes()
    assert writes > 0
    return Stage(store, start, writes, before, seen(uri))


_STARTS: list[Bucket] = []  # what all operations but the first begin with, once it is there


@dataclass(slots=True)
class States:
    """Counts crash states by kind. All tests of this file run in one process, so the sum is that of the run."""

    made: Counter[str] = field(default_factory=Counter)
    violations: Counter[str] = field(default_factory=Counter)

    @contextlib.contextmanager
    def one(self, kind: str) -> Iterator[None]:
        """Inside, a state is made and looked at."""
        self.made[kind] += 1
        try:
            yield
        except Exception:
            self.violations[kind] += 1
            raise


@pytest.fixture(scope="module")
def states() -> Iterator[States]:
    counted = States()
    yield counted
    for kind, made in counted.made.items():
        figures = {"states": made, "violations": counted.violations[kind]}
        record(f"crash states: {kind}", figures)


def struck(stage: Stage, *what: object) -> list[int]:
    """The writes to strike at: all, or a sample that depends on what is tested alone."""
    everything = range(1, stage.writes + 1)
    if stage.writes <= SAMPLE:
        return list(everything)
    return sorted(random.Random(repr(what)).sample(everything, SAMPLE))


@pytest.mark.parametrize("applied", [False, True], ids=["not applied", "applied"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_kill_at_every_durable_write_leaves_before_or_after(
    name: str, applied: bool, stage: Stage, states: States
) -> None:
    for write in struck(stage, name, applied):
        stage.again()
        with states.one("killed once"):
            killed(stage, name, write, applied)
            left = seen(stage.uri)
            assert left in (stage.before, stage.after), f"{name!r} killed at write {write}"
            goes_on(stage.uri, f"{name!r} killed at write {write}")


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_kill_of_the_repetition_leaves_before_or_after(
    name: str, stage: Stage, states: States
) -> None:
    """Whoever repeats what was killed is killed as well, in the middle of what the first one left."""
    chance, possible = random.Random(name), [stage.before, stage.after, done_twice(stage, name)]
    for _ in range(PAIRS):
        first, second = (chance.randint(1, stage.writes) for _ in range(2))
        twice = f"{name!r} killed at write {first} and again at {second}"
        stage.again()
        with states.one("killed twice"):
            killed(stage, name, first, chance.random() < 0.5)
            forget_tables()
            killed(stage, name, second, chance.random() < 0.5)
            assert seen(stage.uri) in possible, twice
            goes_on(stage.uri, twice)


def done_twice(stage: Stage, name: str) -> dict[str, Any]:
    """What is seen when the first got through as well; some are refused the second time."""
    stage.again()
    OPERATIONS[name](stage.uri)
    forget_tables()
    with contextlib.suppress(OmnigraphError):
        OPERATIONS[name](stage.uri)
    return seen(stage.uri)


def killed(stage: Stage, name: str, write: int, applied: bool) -> None:
    stage.store.die_at(write, applied=applied, deny=True)
    stage.store.clear_log()
    with contextlib.suppress(OmnigraphError):
        OPERATIONS[name](stage.uri)
    stage.store.revive()
    stage.store.clear_faults()
    assert stage.store.log(), f"{name!r} did nothing"


@pytest.mark.parametrize(
    "cut",
    [
        pytest.param(False, id="error 500"),
        pytest.param(True, id="connection cut", marks=pytest.mark.nightly),
    ],
)
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_lost_acknowledgement_of_every_durable_write_is_applied_exactly_once(
    name: str, cut: bool, stage: Stage, states: States
) -> None:
    for write in struck(stage, name, cut):
        stage.again()
        with states.one("answer lost"):
            stage.store.lose_acknowledgement(write, cut=cut)
            OPERATIONS[name](stage.uri)
            assert seen(stage.uri) == stage.after, f"{name!r}, write {write} unanswered"
    goes_on(stage.uri, f"{name!r}, write {stage.writes} unanswered")


def goes_on(uri: str, what: str) -> None:
    """The next write works at once, and a collection leaves nothing that nothing refers to."""
    forget_tables()
    try:
        graph = open_graph(uri)
    except GraphNotFound:
        graph = init(uri, schema=SCHEMA)
    graph.publish(add_person("next"))
    for _ in range(2):  # what was unfinished is given up by the second collection
        collect(graph._repo, Retention(keep=1))
    rest = collect(graph._repo, Retention(keep=1), dry_run=True)
    assert (rest.objects_deleted, rest.commits_pruned) == (0, 0), f"rubbish after {what}"
    assert "next" in content_ids(uri), f"the write after {what} is lost"


def content_ids(uri: str) -> list[str]:
    forget_tables()
    graph = open_graph(uri)
    return [name for names in content(graph, "main")[0] for name in names]
