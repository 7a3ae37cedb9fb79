"""Several processes on one port: what they share, what is lost with one of them, and how settings are renewed."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.errors import Kind, OmnigraphError
from omnigraph.model.limits import machine_bytes
from omnigraph.remote.graph import RemoteGraph
from omnigraph.server.counts import ROWS, Counted, Counts, shared_file
from omnigraph.server.settings import Bounds
from tests.server.process import Running, serving
from tests.support import rings
from tests.support.processes import ROOT
from tests.support.waiting import wait_until

SCHEMA = "node Person { name: String @key }"
ADD = "query add($name: String) { insert Person { name: $name } }"
ALL = "query all() { match { $p: Person } return { $p.name as name } }"
TOKENS = {"ada": "t-ada", "bob": "t-bob"}
POLICY = """
version: 1
groups: {all: [ada, bob]}
rules:
  - {id: all, allow: {actors: {group: all}, actions: [read, export, change]}}
"""
LIMITS = {"actor_in_flight_max": 4, "actor_bytes_max": 100_000, "uploads_max": 4}
CHUNKED = "Transfer-Encoding: chunked\r\n\r\n"


@dataclass
class Served:
    """A server of several processes, and its files."""

    running: Running
    folder: Path

    @property
    def port(self) -> int:
        return int(self.running.address.rpartition(":")[2])

    def workers(self) -> list[int]:
        pid = self.running.process.pid
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

    def call(
        self, method: str, path: str, body: Any = None, actor: str = "ada"
    ) -> tuple[int, dict[str, Any]]:
        """A request on a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        headers = {
            "Authorization": f"Bearer {TOKENS[actor]}",
            "Content-Type": "application/json",
        }
        try:
            connection.request(method, path, json.dumps(body) if body else None, headers)
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        return answer.status, json.loads(text) if text.startswith(b"{") else {"text": text.decode()}

    def query(self, actor: str = "ada") -> tuple[int, dict[str, Any]]:
        return self.call("POST", "/graphs/g/query", {"query": ALL}, actor)

    @contextmanager
    def unfinished(self, path: str, media: str, size: int = 1) -> Iterator[socket.socket]:
        """A request of ada's whose body has begun and does not end."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as client:
            head = f"POST /graphs/g{path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer t-ada\r\n"
            chunk = f"{size:x}\r\n{' ' * size}\r\n"
            client.sendall(f"{head}Content-Type: {media}\r\n{CHUNKED}{chunk}".encode())
            yield client

    def settings(self, **changed: Any) -> None:
        _write_settings(self.folder, **changed)

    def hup(self) -> None:
        self.running.process.send_signal(signal.SIGHUP)


def _write_settings(folder: Path, **changed: Any) -> None:
    settings = {
        "graphs": {"g": {"uri": "graph", "policy": "policy.yaml"}},
        "tokens_file": "tokens.json",
        "limits": LIMITS,
        **changed,
    }
    (folder / "next.json").write_text(json.dumps(settings))
    os.replace(folder / "next.json", folder / "server.yaml")


@contextmanager
def served(folder: Path, *more: str) -> Iterator[Served]:
    omnigraph.init(str(folder / "graph"), SCHEMA).load({"Person": [{"name": "root"}]})
    (folder / "policy.yaml").write_text(POLICY)
    (folder / "tokens.json").write_text(json.dumps(TOKENS))
    _write_settings(folder)
    with (
        open(folder / "log", "w") as log,
        serving("--config", str(folder / "server.yaml"), *more, stderr=log) as running,
    ):
        yield Served(running, folder)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("pair"), "--workers", "2") as here:
        yield here


# --- what they share -------------------------------------------------------------------------------------------------


def _in_flight(here: Served, others: int) -> bool:
    """Whether so many requests are under way besides this question."""
    text = here.call("GET", "/metrics", actor="bob")[1].get("text", "")
    return f"omnigraph_requests_in_flight {others + 1}.0" in text.splitlines()


def _is_idle(here: Served) -> bool:
    return _in_flight(here, 0)


def test_requests_of_an_actor_count_in_all_workers(pair: Served) -> None:
    with ExitStack() as clients:
        for _ in range(4):
            clients.enter_context(pair.unfinished("/query", "application/json"))
        wait_until(lambda: _in_flight(pair, 4), what="four requests to be admitted")
        status, told = pair.query()
        assert status == 429
        assert told["details"] == {"limit": "actor_in_flight_max", "limit_value": 4, "observed": 5}
        assert pair.query("bob")[0] == 200, "one actor is refused because of another"
    wait_until(lambda: _is_idle(pair))


def test_bytes_of_an_actor_count_in_all_workers_however_they_come(pair: Served) -> None:
    with (
        pair.unfinished("/load", "application/x-ndjson", 60_000) as first,
        pair.unfinished("/load", "application/x-ndjson", 60_000) as second,
    ):
        for each in (first, second):
            each.settimeout(0.2)
        answers = b""

        def refused() -> bool:
            nonlocal answers
            for each in (first, second):
                with suppress(TimeoutError):
                    answers += each.recv(65_536)
            return b"actor_bytes_max" in answers

        wait_until(refused)
        assert answers.count(b"HTTP/1.1 429") == 1, "both were refused"
    wait_until(lambda: _is_idle(pair))


def test_streams_of_an_actor_count_in_all_workers(pair: Served) -> None:
    with ExitStack() as clients:
        uploads: list[socket.socket] = []

        def refused() -> Any:
            """Our load, beside two that go on; one whose place ours took is begun again."""
            uploads[:] = filter(_is_unanswered, uploads)
            while len(uploads) < 2:
                upload = pair.unfinished("/load", "application/x-ndjson")
                uploads.append(clients.enter_context(upload))
            line = {"type": "Person", "data": {"name": "Zoe"}}
            status, answer = pair.call("POST", "/graphs/g/load/ndjson?dry_run=true", line)
            return status == 429 and answer

        assert wait_until(refused)["details"]["limit"] == "uploads_max"
    wait_until(lambda: _is_idle(pair))


def _is_unanswered(client: socket.socket) -> bool:
    client.settimeout(0.05)
    try:
        client.recv(1)
    except TimeoutError:
        return True
    except OSError:
        return False
    return False


def test_metrics_are_those_of_all_workers(pair: Served) -> None:
    def counted() -> float:
        text = pair.call("GET", "/metrics")[1]["text"]
        name = 'omnigraph_requests_total{route="GET /healthz",status="200"} '
        return sum(
            float(each.removeprefix(name)) for each in text.splitlines() if each.startswith(name)
        )

    before = counted()
    with ExitStack() as connections:
        opened = []
        for _ in range(10):  # all open at once, so that both workers have some
            connection = http.client.HTTPConnection("127.0.0.1", pair.port, timeout=60)
            connections.callback(connection.close)
            connection.request("GET", "/healthz")
            opened.append(connection)
        for connection in opened:
            assert connection.getresponse().read()
    wait_until(lambda: counted() == before + 10)
    assert {counted() for _ in range(4)} == {before + 10}, "each worker tells something else"


def test_they_share_half_of_the_memory_of_the_machine(pair: Served) -> None:
    def allowed() -> float:
        lines = pair.call("GET", "/metrics")[1]["text"].splitlines()
        known = (each for each in lines if each.startswith("omnigraph_memory_bytes_max{"))
        return sum(float(each.rpartition(" ")[2]) for each in known)

    half = machine_bytes() // 2
    wait_until(lambda: allowed() > 0.9 * half, what="both workers to tell")
    assert allowed() <= half


def test_a_token_that_is_taken_back_is_refused_by_all(pair: Served) -> None:
    (pair.folder / "new.json").write_text(json.dumps({**TOKENS, "bob": "t-new"}))
    os.replace(pair.folder / "new.json", pair.folder / "tokens.json")
    assert wait_until(lambda: [pair.query("bob")[0] for _ in range(4)] == [401] * 4)
    (pair.folder / "new.json").write_text(json.dumps(TOKENS))
    os.replace(pair.folder / "new.json", pair.folder / "tokens.json")
    wait_until(lambda: [pair.query("bob")[0] for _ in range(4)] == [200] * 4)


QUERY_SECONDS = Bounds().query_seconds_max
# Any five of many people, one after the other: hours.
ENDLESS = """query endless() {
  match { $a: Person $b: Person $c: Person $d: Person $e: Person
    $a.name < $b.name $b.name < $c.name $c.name < $d.name $d.name < $e.name }
  return { count(*) as n } }"""


def test_a_query_ends_when_its_client_leaves(tmp_path: Path) -> None:
    body = json.dumps({"query": ENDLESS}).encode()
    head = (
        "POST /graphs/g/query HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer t-ada\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with served(tmp_path, "--workers", "2") as here:
        people = [{"name": f"p{i}"} for i in range(400)]
        omnigraph.open(str(tmp_path / "graph")).load({"Person": people})
        with socket.create_connection(("127.0.0.1", here.port), timeout=60) as client:
            client.sendall(head.encode() + body)
            wait_until(lambda: _in_flight(here, 1), what="the query to run")
        left = time.monotonic()
        wait_until(lambda: _is_idle(here))
        assert time.monotonic() - left < QUERY_SECONDS / 3, "its time limit ended it"


# --- kills -----------------------------------------------------------------------------------------------------------


@dataclass
class Writer:
    """Writes one person after the other, each under a key of its own, and remembers what was acknowledged."""

    address: str
    name: str
    acknowledged: list[str] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)
    failure: BaseException | None = None

    def run(self) -> None:
        graph, number = RemoteGraph(self.address, TOKENS["ada"]), 0
        while not self.stopped.is_set():
            person = f"{self.name}-{number}"
            try:
                graph.mutate(ADD, {"name": person}, idempotency_key=person)
            except OmnigraphError as error:
                if error.kind not in (Kind.UNAVAILABLE, Kind.UNKNOWN_OUTCOME):
                    self.failure = error
                    return
                continue
            self.acknowledged.append(person)
            number += 1


@contextmanager
def writing(address: str, count: int) -> Iterator[list[Writer]]:
    writers = [Writer(address, f"w{n}") for n in range(count)]
    threads = [threading.Thread(target=writer.run) for writer in writers]
    for thread in threads:
        thread.start()
    try:
        yield writers
    finally:
        for writer in writers:
            writer.stopped.set()
        for thread in threads:
            thread.join(120)


def _some_more(writers: list[Writer]) -> None:
    """Wait until some writes were acknowledged."""
    seen = sum(len(writer.acknowledged) for writer in writers)
    wait_until(lambda: sum(len(w.acknowledged) for w in writers) > seen + 4, timeout=120)


def _kill_one(here: Served) -> None:
    victim = here.workers()[0]
    os.kill(victim, signal.SIGKILL)
    wait_until(lambda: len(left := here.workers()) == 2 and victim not in left, timeout=60)


def test_killed_workers_are_replaced_and_lose_nothing_acknowledged(tmp_path: Path) -> None:
    with served(tmp_path, "--workers", "2") as here:
        with writing(here.running.url("g"), 3) as writers:
            for _ in range(rings.count(2, 12)):
                _some_more(writers)
                _kill_one(here)
            _some_more(writers)
        assert [writer.failure for writer in writers] == [None] * 3
        acknowledged = sorted(name for writer in writers for name in writer.acknowledged)
        names = sorted(row["name"] for row in here.query()[1]["rows"])
        assert set(acknowledged) <= set(names), "what was acknowledged is not there"
        assert len(names) == len(set(names))
        # Counts of the dead are not held against anybody.
        wait_until(lambda: all(here.query()[0] == 200 for _ in range(8)))
        assert here.running.stop() == 0


def test_workers_end_with_the_process_that_listens(tmp_path: Path) -> None:
    with served(tmp_path, "--workers", "2") as here:
        workers = here.workers()
        here.running.kill()
        assert wait_until(lambda: not any(map(_lives, workers)), timeout=60)


def _lives(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


# --- settings --------------------------------------------------------------------------------------------------------


def _asking(here: Served, stopped: threading.Event, statuses: list[int]) -> None:
    while not stopped.is_set():
        statuses.append(here.query("bob")[0])


@pytest.mark.parametrize("more", [(), ("--workers", "2")], ids=["one process", "workers"])
def test_settings_are_read_again_while_requests_go_on(
    tmp_path: Path, more: tuple[str, ...]
) -> None:
    with served(tmp_path, *more) as here:
        statuses: list[int] = []
        stopped = threading.Event()
        client = threading.Thread(target=_asking, args=(here, stopped, statuses))
        client.start()
        try:
            here.settings(read_only=True)
            here.hup()
            add = {"query": ADD, "params": {"name": "Ada"}, "dry_run": True}

            def refused(actor: str = "ada") -> bool:
                return here.call("POST", "/graphs/g/mutate", add, actor)[0] == 403

            wait_until(lambda: all(refused() for _ in range(4)), timeout=120)
            here.settings(limits={"nonsense": 1})
            here.hup()
            log = here.folder / "log"
            wait_until(lambda: "were not renewed" in log.read_text(), timeout=60)
            here.settings(graphs={"g": {"uri": "nowhere", "policy": "policy.yaml"}})
            here.hup()
            wait_until(lambda: _says_why(log.read_text()), timeout=60)
            assert all(refused() for _ in range(4)), "settings that cannot be used took effect"
        finally:
            stopped.set()
            client.join(60)
        assert set(statuses) == {200}, "a request was lost while settings were renewed"
        assert here.running.stop() in (0, -15)


def _says_why(log: str) -> bool:
    return log.count("were not renewed") > 1 or "does not start" in log


def test_settings_that_cannot_be_used_do_not_start(tmp_path: Path) -> None:
    from tests.server.process import ADDRESS, _start

    _write_settings(tmp_path)
    process = _start(["--config", str(tmp_path / "server.yaml"), "--workers", "2"], {}, None)
    assert process.stdout is not None
    with process.stdout as out:
        assert ADDRESS not in out.read()
    assert process.wait(60) != 0


# --- counts ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def tables() -> Iterator[Callable[[int], Counts]]:
    file = shared_file(2)
    yield lambda worker: Counts(file, worker, 2)
    os.close(file)


def test_counts_are_added_up_and_those_of_the_dead_forgotten(
    tables: Callable[[int], Counts],
) -> None:
    one, two = tables(0), tables(1)
    for counts, n in ((one, 3), (two, 4)):
        with counts:
            counts.add(Counted.BYTES, "ada", n)
    with two:
        two.add(Counted.BYTES, "bob", 1)
    assert (one.total(Counted.BYTES, "ada"), one.everybody(Counted.BYTES)) == (7, 8)
    one.forget(1)
    assert (two.total(Counted.BYTES, "ada"), two.everybody(Counted.BYTES)) == (3, 3)


def test_actors_who_hold_nothing_make_room_for_others(tables: Callable[[int], Counts]) -> None:
    counts = tables(0)
    with counts:
        counts.add(Counted.JOBS, "ada", 1)
        for n in range(2 * ROWS):
            counts.add(Counted.REQUESTS, f"somebody {n}", 1)
            counts.add(Counted.REQUESTS, f"somebody {n}", -1)
    assert counts.total(Counted.JOBS, "ada") == 1


def take_turns(counts: Counts, rounds: int) -> int:
    """Take the one place there is and give it back so many times; the most that was ever counted."""
    most = taken = 0
    while taken < rounds:
        with counts:
            if counts.held(Counted.JOBS_RUNNING, "x")[1]:
                continue
            counts.add(Counted.JOBS_RUNNING, "x", 1)
        taken += 1
        most = max(most, counts.everybody(Counted.JOBS_RUNNING))
        with counts:
            counts.add(Counted.JOBS_RUNNING, "x", -1)
    return most


OTHER = """
from tests.server.test_workers import Counts, take_turns
print(take_turns(Counts({file}, 1, 2), {rounds}))
"""


def test_two_processes_never_count_past_each_other() -> None:
    file, rounds = shared_file(2), rings.count(200, 5000)
    here, most = Counts(file, 0, 2), 0
    program = [sys.executable, "-c", OTHER.format(file=file, rounds=rounds)]
    with subprocess.Popen(program, cwd=ROOT, pass_fds=[file], stdout=subprocess.PIPE) as other:
        while other.poll() is None:
            most = max(most, take_turns(here, rounds))
        assert other.stdout is not None
        assert (most, int(other.stdout.read())) == (1, 1), "more than the one place was taken"
    os.close(file)
