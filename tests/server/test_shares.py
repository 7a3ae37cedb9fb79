"""What one actor takes leaves room for the others: uploads, exports, jobs and bytes, over real connections."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from omnigraph.graph import Graph
from omnigraph.server import threads
from omnigraph.server.app import Server
from omnigraph.server.counts import Counted
from omnigraph.server.errors import ServerBusy, TooManyRequests
from omnigraph.server.limits import SLOTS, check_share
from omnigraph.server.settings import Bounds
from omnigraph.server.threads import Turns
from tests.server import world as worlds
from tests.server.world import TOKENS
from tests.support.waiting import wait_until

RULES = """
version: 1
groups: {all: [admin, reader]}
rules:
  - {id: all, allow: {actors: {group: all}, actions: [read, export, change]}}
"""
LINE = b'{"type":"Person","data":{"name":"Zoe"}}\n'
NDJSON = {"Content-Type": "application/x-ndjson"}


@dataclass
class Served:
    """A server on a port of its own."""

    server: Server
    graph: Graph
    port: int

    def call(
        self, method: str, path: str, body: Any = None, *, actor: str, chunked: bool = False
    ) -> tuple[int, dict[str, Any]]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        headers = {"Authorization": f"Bearer {TOKENS[actor]}", **NDJSON}
        if isinstance(body, dict):
            body, headers["Content-Type"] = json.dumps(body).encode(), "application/json"
        given = iter([body[:100], body[100:]]) if chunked else body
        try:
            connection.request(method, f"/graphs/alpha{path}", given, headers)
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        return answer.status, json.loads(text) if text.startswith(b"{") else {}

    @contextmanager
    def open(self, method: str, path: str, actor: str, more: str) -> Iterator[None]:
        """A request whose client neither goes on nor goes away."""
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            client.connect(("127.0.0.1", self.port))
            head = f"{method} /graphs/alpha{path} HTTP/1.1\r\nHost: x\r\n"
            token = f"Authorization: Bearer {TOKENS[actor]}\r\n"
            client.sendall((head + token + more).encode())
            yield

    def held(self, name: str, actor: str) -> int:
        return self.server.admission.counts.total(SLOTS[name], actor)


@contextmanager
def served(folder: Path, **bounds: Any) -> Iterator[Served]:
    server, graphs = worlds.build(folder, Bounds(threads_max=8, **bounds), rules=RULES)
    with worlds.listening(server) as address:
        yield Served(server, graphs["alpha"], int(address.rsplit(":", 1)[1]))


UPLOAD = "Content-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n \r\n"


def test_uploads_of_one_actor_leave_room_for_another(tmp_path: Path) -> None:
    with served(tmp_path, uploads_max=4) as here, ExitStack() as clients:
        for _ in range(2):
            clients.enter_context(here.open("POST", "/load", "reader", UPLOAD))
        wait_until(lambda: here.held("uploads_max", "reader") == 2)
        status, told = here.call("POST", "/load", LINE, actor="reader")
        assert (status, told["error_code"]) == (429, "too_many_requests")
        assert told["details"] == {"limit": "uploads_max", "limit_value": 2, "observed": 3}
        assert here.call("POST", "/load", LINE, actor="admin")[0] == 200


def test_slow_exports_of_one_actor_leave_room_for_another(tmp_path: Path) -> None:
    with served(tmp_path, exports_max=4) as here, ExitStack() as clients:
        here.graph.load({"Person": [{"name": f"{n:06}" + "x" * 500} for n in range(20_000)]})
        for _ in range(2):
            clients.enter_context(here.open("GET", "/export?types=Person", "reader", "\r\n"))
        wait_until(lambda: here.held("exports_max", "reader") == 2)
        assert here.call("GET", "/export?types=Company", actor="reader")[0] == 429
        assert here.call("GET", "/export?types=Company", actor="admin")[0] == 200


def test_jobs_of_one_actor_leave_room_for_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()
    ended: list[str] = []

    def waiting(*given: Any) -> list[Any]:
        go_on.wait(60)
        ended.append(given[2])
        return []

    monkeypatch.setattr("omnigraph.server.routes.jobs.export_parts", waiting)
    with served(tmp_path, jobs_max=6, jobs_running_max=1) as here:
        begun = [here.call("POST", "/exports", {}, actor="reader") for _ in range(4)]
        assert [status for status, _ in begun] == [202, 202, 202, 429]
        status, told = here.call("POST", "/exports", {}, actor="admin")
        assert status == 202
        go_on.set()
        wait_until(lambda: len(ended) == 4)
    first = [begun[0][1]["job_id"], told["job_id"]]
    assert ended[:2] == first, "whoever has none running waits for all jobs of somebody else"


@pytest.mark.parametrize("chunked", [False, True], ids=["announced", "chunked"])
@pytest.mark.parametrize("path", ["/load", "/query"])
def test_bytes_of_an_actor_are_counted_whether_or_not_they_are_announced(
    tmp_path: Path, chunked: bool, path: str
) -> None:
    body: Any = LINE * 50 if path == "/load" else {"query": "x" * 2000}
    with served(tmp_path, actor_bytes_max=1000) as here:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        status, told = here.call("POST", path, raw, actor="reader", chunked=chunked)
        assert status == 429
        assert told["details"]["limit"] == "actor_bytes_max"
        assert here.call("POST", "/load", LINE, actor="reader", chunked=False)[0] == 200
    assert here.server.admission.counts.everybody(Counted.BYTES) == 0, "bytes are held by nobody"


@pytest.mark.parametrize(("limit", "share"), [(1, 1), (2, 1), (3, 2), (4, 2), (32, 16)])
def test_an_actor_may_have_half(limit: int, share: int) -> None:
    check_share("some_max", limit, share, share, "ada")
    with pytest.raises(TooManyRequests):
        check_share("some_max", limit, share + 1, share + 1, "ada")
    with pytest.raises(ServerBusy):
        check_share("some_max", limit, 1, limit + 1, "eve")
    check_share("some_max", limit, limit, limit, None)
    with pytest.raises(TooManyRequests):
        check_share("some_max", limit, limit + 1, limit + 1, None)


def test_actors_take_turns_with_threads() -> None:
    turns, begin = Turns(1, "test"), threading.Event()
    done: list[Any] = []
    futures: list[Future[Any]] = [turns.submit("ada", lambda: begin.wait(30))]
    futures += [turns.submit("ada", partial(done.append, n)) for n in (1, 2, 3)]
    futures += [turns.submit("bob", lambda: done.append("bob"))]
    futures += [turns.submit("eve", lambda: 1 / 0)]
    begin.set()
    turns.shutdown()
    assert done == ["bob", 1, 2, 3], "somebody waits behind all that another one asked for"
    assert isinstance(futures[-1].exception(), ZeroDivisionError)


def test_actors_who_are_done_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "ACTORS_MAX", 10)
    turns = Turns(1, "test")
    for number in range(100):
        turns.submit(f"actor {number}", lambda: None)
    turns.shutdown()
    assert len(turns._served) <= 11


def test_two_lengths_of_one_body_are_refused(tmp_path: Path) -> None:
    """A proxy that believed the other one would take the rest for a request of somebody else."""
    smuggled = b"GET /graphs/alpha/schema HTTP/1.1\r\nHost: x\r\n\r\n"
    head = (
        f"POST /graphs/alpha/query HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKENS['reader']}\r\n"
        "Content-Type: application/json\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    )
    with (
        served(tmp_path) as here,
        socket.create_connection(("127.0.0.1", here.port), timeout=30) as client,
    ):
        client.sendall(head.encode() + smuggled)
        answers = b"".join(iter(lambda: client.recv(65536), b""))
    assert answers.count(b"HTTP/1.1 ") == 1, "what follows was taken for another request"
    assert answers.startswith(b"HTTP/1.1 400")
    assert b"length_ambiguous" in answers
