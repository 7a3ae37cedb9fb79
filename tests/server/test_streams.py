"""Exports that are streamed: the state they show is held while a client takes it, and let go afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
import urllib3

from omnigraph.errors import StoreDenied
from omnigraph.graph import Graph, init
from omnigraph.server.request import Served
from omnigraph.server.settings import Bounds
from tests.server import world as worlds
from tests.server.world import RECORDS, SCHEMA, TOKENS, World
from tests.support.waiting import wait_until

PEOPLE = (
    60_000  # with long names: more than fits into the buffers between a server and a slow client
)
PATHS = [("GET", "/export"), ("POST", "/export"), ("POST", "/changes/baseline")]


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, Graph]]:
    """The address of a graph, and the graph: on a disk, where collection does remove files."""
    monkeypatch.setenv("OMNIGRAPH_FSYNC", "0")
    server, _ = worlds.build(tmp_path, Bounds(threads_max=4, stall_seconds_max=600))
    graph = init(tmp_path / "graph", SCHEMA)
    graph.load(RECORDS)
    names = [f"{number:>06}{'x' * 300}" for number in range(PEOPLE)]
    graph.load({"Person": pa.table({"name": names})})
    server.graphs["alpha"] = Served("alpha", graph)
    with worlds.listening(server) as address:
        yield f"{address}/graphs/alpha", graph


def _opened(address: str, method: str, path: str) -> urllib3.BaseHTTPResponse:
    """An export of which only the beginning was taken."""
    headers = {"Authorization": f"Bearer {TOKENS['admin']}", "Content-Type": "application/json"}
    body = b"{}" if method == "POST" else None
    pool = urllib3.PoolManager(timeout=300)
    answer = pool.request(method, address + path, headers=headers, body=body, preload_content=False)
    assert answer.status == 200
    assert answer.read(1000)
    return answer


def _leases(graph: Graph) -> list[str]:
    return [info.key for info in graph.repository.objects.list("__recovery")]


@pytest.mark.parametrize(("method", "path"), PATHS)
def test_a_stream_is_whole_whatever_is_cleaned_up_meanwhile(
    served: tuple[str, Graph], method: str, path: str
) -> None:
    """Edges come after people: they are replaced and collected before the stream gets to them."""
    address, graph = served
    answer = _opened(address, method, path)
    assert len(_leases(graph)) == 1, "nothing holds the state"
    for number in range(3):
        later = {"from": "Bob", "to": "Alice", "since": f"2030-01-0{number + 1}"}
        graph.load({"Knows": [later]}, mode="overwrite")
    assert graph.cleanup(keep=1).commits_pruned
    rest = answer.read()
    assert b'"since":"2024-01-01"' in rest
    assert b"2030-01" not in rest
    wait_until(lambda: not _leases(graph), timeout=300)


def test_a_client_that_goes_away_leaves_nothing_held(served: tuple[str, Graph]) -> None:
    address, graph = served
    answer = _opened(address, "GET", "/export")
    assert _leases(graph)
    answer.close()
    wait_until(lambda: not _leases(graph), timeout=300)


def test_an_export_nobody_takes_leaves_nothing_held(world: World) -> None:
    assert world.call("HEAD", "/export").status_code == 200
    assert world.call("GET", "/export", headers={"Accept": "text/html"}).status_code == 406
    assert _leases(world.graphs["alpha"]) == []


def test_whoever_may_only_read_the_store_streams_all_the_same(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(*_: object) -> None:
        raise StoreDenied("read only")

    monkeypatch.setattr("omnigraph.maintenance.jobs.save_plan", denied)
    assert "Acme" in world.call("GET", "/export").text
