"""Bounds: what is too large, too much at once or too slow is refused, and says which bound it was."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from omnigraph.graph import Graph
from omnigraph.server.settings import Bounds
from tests.server import world as worlds
from tests.server.world import PEOPLE, TOKENS, World
from tests.support.loops import run_apart
from tests.support.waiting import wait_until

NDJSON = {"Content-Type": "application/x-ndjson"}


@contextmanager
def _blocked(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Queries of the graph wait inside."""
    release = threading.Event()
    real = Graph.query

    def waiting(self: Graph, *given: Any, **named: Any) -> Any:
        release.wait(30)
        return real(self, *given, **named)

    monkeypatch.setattr(Graph, "query", waiting)
    try:
        yield
    finally:
        release.set()
        monkeypatch.undo()


def _busy(world: World, count: int) -> list[threading.Thread]:
    """So many requests that are being answered."""
    threads = [
        threading.Thread(target=lambda: world.call("POST", "/query", {"query": PEOPLE}))
        for _ in range(count)
    ]
    for thread in threads:
        thread.start()
    wait_until(lambda: world.server.admission.requests >= count)
    return threads


def test_an_actor_may_have_so_many_requests_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with worlds.world(tmp_path, Bounds(threads_max=4, actor_in_flight_max=2)) as world:
        with _blocked(world.graphs["alpha"], monkeypatch):
            threads = _busy(world, 2)
            answer = world.call("POST", "/query", {"query": PEOPLE})
            other = world.call("GET", "/branches", actor="reader")
        for thread in threads:
            thread.join()
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "60")
    told = answer.json()
    assert told["code"] == "too_many_requests"
    assert told["details"] == {"limit": "actor_in_flight_max", "limit_value": 2, "observed": 3}
    assert other.status_code == 200, "one actor keeps another from working"


def test_the_server_may_have_so_many_requests_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with worlds.world(tmp_path, Bounds(threads_max=4, in_flight_max=1)) as world:
        with _blocked(world.graphs["alpha"], monkeypatch):
            threads = _busy(world, 1)
            answer = world.call("GET", "/branches", actor="reader")
            alive = world.call("GET", "//healthz", actor=None)
        for thread in threads:
            thread.join()
    assert (answer.status_code, answer.json()["error_code"]) == (503, "server_busy")
    assert alive.status_code == 200, "a busy server looks dead"


@pytest.mark.parametrize("announced", [True, False])
def test_a_load_may_be_so_large(tmp_path: Path, announced: bool) -> None:
    raw = b'{"type":"Person","data":{"name":"Zoe"}}\n' * 1000
    with worlds.world(tmp_path, Bounds(threads_max=2, load_bytes_max=10_000)) as world:
        body: Any = raw if announced else iter([raw[:5_000], raw[5_000:]])
        told = world.call("POST", "/load", raw=body, headers=NDJSON)
        assert world.people() == ["Alice", "Bob"]
    assert told.status_code == 413
    assert told.json()["resource_limit"] == {
        "resource": "load_bytes_max",
        "limit": 10_000,
        "actual": len(raw),
    }


def test_a_client_that_stalls_is_cut_off_and_holds_no_thread(tmp_path: Path) -> None:
    server, graphs = worlds.build(
        tmp_path, Bounds(threads_max=1, loads_max=1, stall_seconds_max=0.2)
    )
    sent: list[Any] = []
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/graphs/alpha/load",
        "raw_path": b"/graphs/alpha/load",
        "query_string": b"",
        "headers": [
            (b"authorization", f"Bearer {TOKENS['admin']}".encode()),
            (b"content-type", b"application/x-ndjson"),
        ],
    }
    first = [{"type": "http.request", "body": b'{"type":"Per', "more_body": True}]

    async def receive() -> Any:
        return first.pop() if first else await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message)

    before = graphs["alpha"].snapshot().commit_id
    try:
        run_apart(lambda: asyncio.wait_for(server(scope, receive, send), 20))
    finally:
        server.close()
    assert sent[0]["status"] == 400
    assert b"client_gone" in sent[1]["body"]
    assert graphs["alpha"].snapshot().commit_id == before


def test_a_server_that_shuts_down_refuses_what_is_new(world: World) -> None:
    world.server.admission.closing = True
    answer = world.call("POST", "/query", {"query": PEOPLE})
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert world.call("GET", "//readyz", actor=None).status_code == 503


def test_queries_may_take_so_long(tmp_path: Path) -> None:
    with worlds.world(tmp_path, Bounds(threads_max=2, query_seconds_max=1e-9)) as world:
        told = world.refused(413, "POST", "/query", {"query": PEOPLE})
    assert told["error_code"] == "deadline_exceeded"
    assert told["resource_limit"]["resource"] == "timeout"
