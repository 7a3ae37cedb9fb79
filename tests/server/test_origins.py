"""A server without tokens serves programs and its own pages, and nothing that a page of somebody else can send."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import omnigraph
from omnigraph.remote.graph import RemoteGraph
from omnigraph.server.boot import build
from omnigraph.server.settings import GraphSettings, Settings
from tests.server.process import serving

HERE = "127.0.0.1:8080"
COUNT = "match { $p: Person } return { count($p) as n }"
INSERT = {"query": 'query q() { insert Person { name: "Eve" } }'}
LINE = b'{"type": "Person", "data": {"name": "Eve"}}\n'


@pytest.fixture
def graph(tmp_path: Path) -> omnigraph.Graph:
    made = omnigraph.init(tmp_path / "people", "node Person { name: String @key }")
    made.load({"Person": [{"name": "Ada"}]})
    return made


@pytest.fixture
def client(graph: omnigraph.Graph) -> Iterator[TestClient]:
    settings = Settings(
        {"people": GraphSettings(graph.uri)}, unauthenticated=True, hosts=["graphs.example"]
    )
    server = build(settings, {}, host="Box")
    yield TestClient(server, base_url=f"http://{HERE}")
    server.close()


def count(graph: omnigraph.Graph) -> Any:
    return graph.query(COUNT).scalar()


@pytest.mark.parametrize(
    "host",
    ["localhost", "LOCALHOST:8080", "localhost.", "127.0.0.1:1", "[::1]:8080", "192.168.0.7", "graphs.example:80",
     "box"],
)  # fmt: skip
def test_it_answers_to_its_names_and_to_addresses(client: TestClient, host: str) -> None:
    assert client.get("/graphs/people/schema", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "evil.example:8080", "graphs.example.evil.org",
     "localhost@evil.example", "2130706433", "0x7f.1", "[::1", "-", "a" * 300],
)  # fmt: skip
@pytest.mark.parametrize(
    "path", ["/graphs/people/export", "/ui", "/healthz", "/openapi.json", "/session"]
)
def test_a_name_it_does_not_go_by_is_refused(client: TestClient, host: str, path: str) -> None:
    """A page can make its own name lead here."""
    answer = client.get(path, headers={"Host": host})
    assert answer.status_code == 403, answer.text
    assert answer.json()["error_code"] == "host_refused"


@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "null", "http://box", "http://box:81", "https://graphs.example:8443",
     "http://127.0.0.1:8081", "http://localhost:8080", "", "file://",
     "http://127.0.0.1:8080.evil.example", "http://[", "chrome-extension://127.0.0.1:8080"],
)  # fmt: skip
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_pages_of_other_origins_are_refused(
    client: TestClient, graph: omnigraph.Graph, origin: str, method: str
) -> None:
    path = {"GET": "/export", "POST": "/mutate", "DELETE": "/branches/dev"}[method]
    graph.create_branch("dev")
    body: dict[str, Any] = {"json": INSERT} if method == "POST" else {}
    answer = client.request(method, f"/graphs/people{path}", headers={"Origin": origin}, **body)
    assert answer.status_code == 403, answer.text
    assert answer.json()["error_code"] == "origin_refused"
    assert count(graph) == 1
    assert "dev" in graph.branches()


@pytest.mark.parametrize("origin", [f"http://{HERE}", f"https://{HERE}", "https://graphs.example"])
def test_its_own_pages_and_those_it_was_told_of_may(client: TestClient, origin: str) -> None:
    answer = client.post("/graphs/people/mutate", json=INSERT, headers={"Origin": origin})
    assert answer.status_code == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
@pytest.mark.parametrize("mode", ["no-cors", "navigate", "cors"])
def test_what_a_page_embeds_is_refused_and_links_to_pages_are_not(
    client: TestClient, site: str, mode: str
) -> None:
    said = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode}
    assert client.get("/graphs/people/export", headers=said).status_code == 403
    assert client.get("/docs", headers=said).status_code == (200 if mode == "navigate" else 403)
    own = {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": mode}
    assert client.get("/graphs/people/export", headers=own).status_code == 200


@pytest.mark.parametrize(
    "media", [None, "text/plain", "text/plain; charset=utf-8", "TEXT/PLAIN", "application/x-www-form-urlencoded",
              "multipart/form-data; boundary=x"],
)  # fmt: skip
@pytest.mark.parametrize(
    "path", ["/load/ndjson", "/import?type=Person&format=ndjson", "/exports", "/mutate", "/reset"]
)
def test_bodies_any_page_can_send_are_refused(
    client: TestClient, graph: omnigraph.Graph, path: str, media: str | None
) -> None:
    headers = {} if media is None else {"Content-Type": media}
    for body in (LINE, b""):
        answer = client.post(f"/graphs/people{path}", content=body, headers=headers)
        assert answer.status_code == 415, answer.text
        assert answer.json()["error_code"] == "media_unsupported"
    assert count(graph) == 1
    assert client.get("/graphs/people/jobs").json() == {"jobs": []}


def test_no_page_is_told_that_it_may(client: TestClient) -> None:
    asked = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    answer = client.options("/graphs/people/query", headers=asked)
    assert answer.status_code in (403, 405)
    assert not [name for name in answer.headers if name.startswith("access-control")]
    found = client.get("/graphs/people/schema")
    assert found.headers["cross-origin-resource-policy"] == "same-origin"


def test_programs_are_served_as_before(graph: omnigraph.Graph) -> None:
    with serving("--store", graph.uri, "--unauthenticated") as running:
        remote = RemoteGraph(running.url())
        remote.mutate(INSERT["query"])
        remote.load([{"type": "Person", "data": {"name": "Zoe"}}])
        assert remote.query(COUNT).scalar() == 3
        remote.create_branch("dev")
        remote.delete_branch("dev")


def test_with_tokens_names_do_not_matter(graph: omnigraph.Graph) -> None:
    """A page has no token, and no browser sends one by itself."""
    settings = Settings({"people": GraphSettings(graph.uri)})
    server = build(settings, {"OMNIGRAPH_SERVER_BEARER_TOKEN": "t"})
    client = TestClient(server, base_url="https://graphs.example")
    headers = {"Authorization": "Bearer t", "Origin": "https://other.example"}
    assert client.get("/graphs/people/schema", headers=headers).status_code == 200
    assert client.get("/graphs/people/schema").status_code == 401
    server.close()
