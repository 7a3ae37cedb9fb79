"""Loads by reference: nothing is asked of an address that is not allowed."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from omnigraph.server.load_sources import ReferenceRefused, allowed_reference
from tests.server import world as worlds
from tests.server.world import World

LINE = '{"type":"Person","data":{"name":"Zoe"}}\n'


class Canary:
    """Listens, and remembers whether anybody came."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.setblocking(False)
        self.port: int = self._socket.getsockname()[1]

    @property
    def visited(self) -> bool:
        """Whether somebody is waiting at the door: the system lets them in before we do."""
        try:
            self._socket.accept()[0].close()
        except BlockingIOError:
            return False
        return True

    def close(self) -> None:
        self._socket.close()


def test_the_canary_notices_a_visit() -> None:
    canary = Canary()
    assert not canary.visited
    socket.create_connection(("127.0.0.1", canary.port)).close()
    assert canary.visited
    canary.close()


@pytest.fixture
def canary() -> Iterator[Canary]:
    made = Canary()
    yield made
    made.close()


@pytest.fixture
def open_world(tmp_path: Path) -> Iterator[World]:
    """A server that allows loads from one folder and one prefix of a bucket."""
    allowed = tmp_path / "in"
    allowed.mkdir()
    (allowed / "people.jsonl").write_text(LINE)
    (tmp_path / "secret.jsonl").write_text(LINE)
    os.symlink(tmp_path / "secret.jsonl", allowed / "link.jsonl")
    with worlds.world(tmp_path, load_from=[str(allowed), "s3://bucket/in/"]) as made:
        yield made


def test_what_is_allowed_is_loaded(open_world: World, tmp_path: Path) -> None:
    told = open_world.ok("POST", "/load", {"uri": f"file://{tmp_path}/in/people.jsonl"})
    assert told["total_entities"] == 1


@pytest.mark.parametrize(
    "uri",
    [
        "http://127.0.0.1:{port}/x",
        "https://127.0.0.1:{port}/x",
        "HTTP://127.0.0.1:{port}/x",
        "s3://127.0.0.1:{port}/x",
        "s3://bucket/in/../../x",
        "s3://bucket/in-other/x",
        "s3://bucket/in/*.jsonl",
        "s3://other/in/x",
        "gs://bucket/in/x",
        "ftp://127.0.0.1:{port}/x",
        "file:///etc/passwd",
        "file://{tmp}/in/../secret.jsonl",
        "file://{tmp}/in/%2e%2e/secret.jsonl",
        "file://{tmp}/in/./../secret.jsonl",
        "file://{tmp}/in//people.jsonl",
        "file://{tmp}/in/link.jsonl",
        "file://{tmp}/in-other/x",
        "file://localhost{tmp}/in/people.jsonl",
        "{tmp}/in/people.jsonl",
        "/etc/passwd",
        "memory://other",
        "s3://user:password@bucket/in/x",
        "",
    ],
)
def test_everything_else_is_refused_before_anything_is_asked(
    open_world: World,
    canary: Canary,
    tmp_path: Path,
    uri: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{canary.port}")
    address = uri.format(port=canary.port, tmp=tmp_path)
    told = open_world.refused(400, "POST", "/load", {"uri": address})
    assert told["error_code"] == "reference_refused"
    assert not canary.visited, "the server asked an address that is not allowed"
    assert open_world.people() == ["Alice", "Bob"]


def test_blobs_are_not_fetched_from_anywhere(open_world: World, canary: Canary) -> None:
    address = f"http://127.0.0.1:{canary.port}/x"
    line = f'{{"type":"Person","data":{{"name":"Zoe","avatar":"{address}"}}}}\n'
    headers = {"Content-Type": "application/x-ndjson"}
    open_world.refused(400, "POST", "/load", raw=line.encode(), headers=headers)
    text = f'query q() {{ insert Person {{ name: "Zoe", avatar: "{address}" }} }}'
    open_world.refused(400, "POST", "/mutate", {"query": text})
    update = 'query q() { update Person set { avatar: "ADDRESS" } where name = "Alice" }'
    open_world.refused(400, "POST", "/mutate", {"query": update.replace("ADDRESS", address)})
    open_world.refused(400, "POST", "/load", {"data": line})
    assert not canary.visited


def test_uploads_of_the_graph_itself_are_allowed() -> None:
    uri = "s3://bucket/graph/uploads/a.jsonl"
    assert allowed_reference(uri, "s3://bucket/graph", ()) == uri
    for other in ("s3://bucket/graph/nodes/a", "s3://bucket/graph/uploads"):
        with pytest.raises(ReferenceRefused):
            allowed_reference(other, "s3://bucket/graph", ())
