"""Many clients of one graph at once, in processes and threads, each with a part to play.

A part either does so many operations and ends, or goes on until those that count are done. Everything a client does to
lists is logged with what it was told; whoever optimizes, merges, collects or changes the schema is there to be in the
way. `SCENARIOS` say who meets whom; `tests.support.verdict` judges.
"""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omnigraph.core import layout
from omnigraph.core.records import Commit
from omnigraph.errors import CommitPruned, Kind, OmnigraphError
from omnigraph.graph import Graph, init, open_graph
from tests.support.history import read_operations
from tests.support.lists import DECLARED, Seen, edit, look
from tests.support.processes import Child, read_log, spawn
from tests.support.verdict import Logged
from tests.support.waiting import wait_until

SCHEMA = DECLARED + "node Row { name: String @key  size: I64? }\n"
ROUND = 25  # operations of one client on the same few lists, so that lists stay short
LISTS = 4
KEPT = 20  # commits of a branch that a cleanup leaves
REFUSALS = (Kind.CONFLICT, Kind.NOT_FOUND)


@dataclass(frozen=True, slots=True)
class Part:
    """What one thread does: which role, on which branch, how many operations (None: as long as others)."""

    role: str
    branch: str = "main"
    count: int | None = None


Scenario = Sequence[Sequence[Part]]  # a process each, and its threads


# --- in a child process


class Client:
    """One thread: its graph, its name, its log."""

    def __init__(self, graph: Graph, part: Part, name: str, log: Log) -> None:
        self.graph = graph
        self.part = part
        self.name = name
        self.log = log
        self.chance = random.Random(name)

    def keys(self, number: int) -> list[str]:
        return [f"{self.part.branch}.{number // ROUND}.{i}" for i in range(LISTS)]


class Log:
    """The lines of one process; written at once, but not synced: nobody is killed here."""

    def __init__(self, path: Path, stop: Path) -> None:
        self._file = path.open("a")
        self._lock = threading.Lock()
        self.stop = stop

    def line(self, **fields: Any) -> None:
        with self._lock:
            self._file.write(json.dumps({**fields, "time": time.monotonic()}) + "\n")

    def close(self) -> None:
        self._file.close()


def play(uri: str, parts: Sequence[Sequence[Any]], process: str, folder: str) -> None:
    """All parts of one process, over one graph."""
    graph = open_graph(uri)
    log = Log(Path(folder, f"{process}.log"), Path(folder, "stop"))
    clients = [
        Client(graph, Part(*part), f"{process}.{index}", log) for index, part in enumerate(parts)
    ]
    failures: list[BaseException] = []

    def run(client: Client) -> None:
        try:
            ROLES[client.part.role](client)
            if client.part.count is not None:
                log.stop.with_name(f"{client.name}.done").touch()
        except BaseException as error:
            failures.append(error)
            raise

    threads = [threading.Thread(target=run, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log.close()
    if failures:
        raise failures[0]


def rounds(client: Client) -> Iterator[int]:
    """Numbers, until this part is done or all others are."""
    number = 0
    while (
        number < client.part.count
        if client.part.count is not None
        else not client.log.stop.exists()
    ):
        yield number
        number += 1


def now_and_then(client: Client, commits: int) -> Iterator[int]:
    """The same, each time after its branch has moved on: in the way of others, and not a load of its own."""
    last = -commits

    def due() -> bool:
        moved = client.graph._repo.head(client.part.branch).commit.number >= last + commits
        return moved or client.log.stop.exists()

    for number in rounds(client):
        wait_until(due, timeout=3600, interval=0.1, what=f"{commits} commits of others")
        last = client.graph._repo.head(client.part.branch).commit.number
        yield number


def writer(client: Client) -> None:
    """Reads one or two lists and appends to one or two; now and then only reads."""
    for number in rounds(client):
        keys = client.keys(number)
        mine = client.chance.sample(keys, 1 + number % 2)
        appends = dict.fromkeys(mine, f"{client.name}-{number}")
        _write(client, number, client.chance.sample(keys, 1), appends)
        if number % 4 == 0:
            _read(client, number, keys)


def reader(client: Client) -> None:
    """Reads whole snapshots of its branch, its own lists and those that may have been merged."""
    for number in rounds(client):
        at = client.chance.randrange(number + 1)
        _read(client, number, [*client.keys(at), *(f"dev.{at // ROUND}.{i}" for i in range(LISTS))])


def _write(client: Client, number: int, reads: Sequence[str], appends: Mapping[str, str]) -> None:
    name = f"{client.name}-{number}"
    common = {"id": name, "process": client.name, "branch": client.part.branch}
    client.log.line(type="invoke", **common, steps=Seen(0, {}).steps(appends))
    try:
        done = client.graph.publish(edit(reads, appends), branch=client.part.branch, message=name)
    except OmnigraphError as error:
        told = "info" if error.kind in (Kind.UNKNOWN_OUTCOME, Kind.UNAVAILABLE) else "fail"
        client.log.line(type=told, **common, error=error.code)
        return
    assert isinstance(done.commit, Commit)
    client.log.line(
        type="ok",
        **common,
        steps=done.value.steps(appends),
        commit=done.commit.number,
        operation=done.commit.members[done.member].operation_id,
    )


def _read(client: Client, number: int, keys: Sequence[str]) -> None:
    common = {
        "id": f"{client.name}-r{number}",
        "process": client.name,
        "branch": client.part.branch,
    }
    client.log.line(type="invoke", **common)
    try:
        with client.graph._readable(snapshot := client.graph.snapshot(client.part.branch)):
            seen = look(snapshot, keys)
    except CommitPruned:
        client.log.line(type="fail", **common)
        return
    client.log.line(type="ok", **common, steps=seen.steps(), snapshot=seen.number)


@contextmanager
def refused_at_most() -> Iterator[None]:
    """A conflict, or something that went away meanwhile, is an answer; anything else is a failure."""
    try:
        yield
    except OmnigraphError as error:
        if error.kind not in REFUSALS:
            raise


def merger(client: Client) -> None:
    """Brings dev to main, again and again."""
    for number in now_and_then(client, 3):
        with refused_at_most():
            done = client.graph.merge("dev", into="main", message=f"{client.name}-{number}")
            if done.commit is None:
                continue
            commit = client.graph._repo.chains.expect(*_place(done.commit.id))
            assert isinstance(commit, Commit)
            client.log.line(
                type="merge", branch="main", commit=commit.number, merged=dict(commit.merged)
            )


def optimizer(client: Client) -> None:
    for _ in now_and_then(client, 10):
        with refused_at_most():
            client.graph.optimize(client.part.branch)


def collector(client: Client) -> None:
    for _ in now_and_then(client, KEPT):
        with refused_at_most():
            client.graph.cleanup(keep=KEPT)


def brancher(client: Client) -> None:
    """Makes, writes and deletes branches nobody else knows, and tags."""
    for number in now_and_then(client, 5):
        name = f"{client.name}-{number}"
        with refused_at_most():
            client.graph.create_branch(name)
            client.graph.load({"Row": [{"name": name}]}, branch=name)
            client.graph.tag(f"t-{name}", name)
            client.graph.delete_branch(name)
            client.graph.delete_tag(f"t-{name}")


def reformer(client: Client) -> None:
    """Changes the schema: a new property each time."""
    for number in now_and_then(client, 5):
        fields = " ".join(f"p{i}: I64?" for i in range(number % 8 + 1))
        text = DECLARED + f"node Row {{ name: String @key  size: I64?  {fields} }}\n"
        with refused_at_most():
            client.graph.apply_schema(text, allow_data_loss=True)


def loader(client: Client) -> None:
    """Loads rows, one batch a commit, and logs each as an append to a list nobody reads."""
    for number in rounds(client):
        name = f"{client.name}-{number}"
        common = {"id": name, "process": client.name, "branch": client.part.branch}
        client.log.line(type="invoke", **common, steps=[["append", "rows", name]])
        done = client.graph.load(
            {"Row": [{"name": name, "size": number}]}, branch=client.part.branch, message=name
        )
        assert done.commit is not None
        commit = client.graph._repo.chains.expect(*_place(done.commit.id))
        assert isinstance(commit, Commit)  # this process wrote it, so it is remembered
        client.log.line(
            type="ok",
            **common,
            steps=[["append", "rows", name]],
            commit=commit.number,
            operation=commit.members[0].operation_id,
        )


def _place(commit_id: str) -> tuple[str, int]:
    chain, number, _ = layout.parse_commit_id(commit_id)
    return chain, number


ROLES: dict[str, Callable[[Client], None]] = {
    "writer": writer,
    "reader": reader,
    "merger": merger,
    "optimizer": optimizer,
    "collector": collector,
    "brancher": brancher,
    "reformer": reformer,
    "loader": loader,
}


# --- who meets whom


def scenarios(count: int) -> dict[str, Scenario]:
    """Each writer makes `count` commits; four processes, or eight threads where it is about one branch."""
    write = Part("writer", count=count)
    on_dev = Part("writer", "dev", count)
    load = Part("loader", count=count)
    return {
        "one branch, threads": [[write] * 8],
        "one branch, processes": [[write] * 2 for _ in range(4)],
        "many branches": [
            [Part("writer", f"b{i}", count), Part("reader", f"b{i}")] for i in range(4)
        ],
        "merge and write": [
            [write, Part("reader")],
            [on_dev] * 2,
            [Part("merger"), Part("reader")],
        ],
        "compaction and write": [[write] * 2, [write, load], [Part("optimizer"), Part("reader")]],
        "schema and load": [[load] * 2, [load, write], [Part("reformer")]],
        "cleanup and everything": [
            [write, load],
            [on_dev, Part("reader")],
            [Part("merger"), Part("optimizer")],
            [Part("collector"), Part("brancher"), Part("collector")],
        ],
    }


def branches_of(scenario: Scenario) -> list[str]:
    names = {part.branch for parts in scenario for part in parts}
    return sorted(names - {"main"})


@dataclass(frozen=True, slots=True)
class Storm:
    """What a scenario left: the clients' side of it."""

    logged: Logged
    acknowledged: int
    seconds: float

    @property
    def rate(self) -> float:
        return self.acknowledged / self.seconds


def rage(uri: str, scenario: Scenario, folder: Path, *, timeout: float) -> Storm:
    """Run a scenario to its end and read the logs."""
    graph = init(uri, schema=SCHEMA)
    for branch in branches_of(scenario):
        graph.create_branch(branch)
    children = [_start(uri, parts, f"p{i}", folder) for i, parts in enumerate(scenario)]
    wanted = sum(part.count is not None for parts in scenario for part in parts)
    try:
        wait_until(
            lambda: (
                len(list(folder.glob("*.done"))) == wanted
                or any(child.has_ended() and child.process.returncode for child in children)
            ),
            timeout=timeout,
            what="the end of all writers",
        )
        (folder / "stop").touch()
        for child in children:
            child.wait(timeout=600)
    finally:
        for child in children:
            child.kill()
    records = [record for log in sorted(folder.glob("p*.log")) for record in read_log(log)]
    return storm_of(records)


def storm_of(records: Sequence[Mapping[str, Any]]) -> Storm:
    """What the clients' lines say."""
    merges = {(r["branch"], r["commit"]): r["merged"] for r in records if r["type"] == "merge"}
    operations = read_operations(r for r in records if r["type"] != "merge")
    names = {r["operation"]: r["id"] for r in records if "operation" in r}
    writes = [op for op in operations if op.commit is not None]
    seconds = max(op.completed for op in writes) - min(op.invoked for op in writes)
    return Storm(Logged(operations, names, merges), len(writes), seconds)


def _start(uri: str, parts: Sequence[Part], process: str, folder: Path) -> Child:
    arguments = {
        "uri": uri,
        "parts": [[part.role, part.branch, part.count] for part in parts],
        "process": process,
        "folder": str(folder),
    }
    environment = {name: text for name, text in os.environ.items() if name.startswith("AWS_")}
    return spawn(play, arguments, log=folder / f"{process}.acks", environment=environment)
