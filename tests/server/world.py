"""A server to test against: two graphs, four actors, rules for each, and ways to call it."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import uvicorn
from starlette.testclient import TestClient

from omnigraph.graph import Graph, init
from omnigraph.policy.bundle import parse_bundle
from omnigraph.policy.cedar import Policy, compile_bundle
from omnigraph.server.access import Access, Identity
from omnigraph.server.app import Server
from omnigraph.server.boot import options
from omnigraph.server.request import Served
from omnigraph.server.settings import Bounds
from omnigraph.server.stored_queries import stored_queries
from tests.support.waiting import wait_until

SCHEMA = """
node Person { name: String @key
  age: I32?
  avatar: Blob? }
node Company { name: String @key }
edge Knows: Person -> Person { since: Date? }
edge WorksAt: Person -> Company
"""
RECORDS = [
    {"type": "Person", "data": {"name": "Alice", "age": 30, "avatar": "base64:SGVsbG8gV29ybGQ="}},
    {"type": "Person", "data": {"name": "Bob", "age": 25}},
    {"type": "Company", "data": {"name": "Acme"}},
    {"edge": "Knows", "from": "Alice", "to": "Bob", "data": {"since": "2024-01-01"}},
]
STORED = """
query older($age: I32) @description("People above an age.") {
  match { $p: Person
    $p.age > $age }
  return { $p.name as name }
}
query add_person($name: String) { insert Person { name: $name } }
"""
STORED_CYPHER = """// Gives a person an age.
MATCH (p:Person {name: $name}) SET p.age = $age RETURN p.name AS name, p.age AS age
"""
PEOPLE = "query people() { match { $p: Person } return { $p.name as name } order { $p.name asc } }"
TOKENS = {"admin": "t-admin", "reader": "t-reader", "beta": "t-beta", "stranger": "t-stranger"}
GRAPH_RULES = """
version: 1
groups: {admins: [admin], readers: [reader], betas: [beta]}
protected_branches: [main]
rules:
  - id: admins-do
    allow:
      actors: {group: admins}
      actions: [read, export, change]
      branch_scope: any
  - id: admins-versions
    allow:
      actors: {group: admins}
      actions: [branch_create, branch_delete, branch_merge, schema_apply, propose, approve]
      target_branch_scope: any
  - {id: admins-invoke, allow: {actors: {group: admins}, actions: [invoke_query]}}
  - {id: admins-keep, allow: {actors: {group: admins}, actions: [admin]}}
  - {id: readers-read, allow: {actors: {group: readers}, actions: [read]}}
"""
BETA_RULES = """
version: 1
groups: {betas: [beta]}
rules:
  - {id: betas, allow: {actors: {group: betas}, actions: [read, export, change]}}
"""
SERVER_RULES = """
version: 1
groups: {admins: [admin]}
rules:
  - {id: list, allow: {actors: {group: admins}, actions: [graph_list, cluster_plan, cluster_apply]}}
"""


def policy(text: str) -> Policy:
    return Policy(compile_bundle(parse_bundle(text)))


def graph(name: str = "alpha") -> Graph:
    made = init(f"memory://{name}-{uuid.uuid4().hex}", SCHEMA)
    made.load(RECORDS)
    return made


@dataclass
class World:
    """A server and a client of it."""

    server: Server
    client: TestClient
    graphs: dict[str, Graph] = field(default_factory=dict)

    def call(
        self,
        method: str,
        path: str,
        content: Any = None,
        *,
        actor: str | None = "admin",
        headers: Mapping[str, str] | None = None,
        raw: bytes | None = None,
        params: Any = None,
        graph: str = "alpha",
    ) -> httpx2.Response:
        """A request to a graph, or to the server where the path starts with a double slash."""
        full = path[1:] if path.startswith("//") else f"/graphs/{graph}{path}"
        sent = dict(headers or {})
        if actor is not None:
            sent.setdefault("Authorization", f"Bearer {TOKENS[actor]}")
        if content is not None:
            raw = msgspec.json.encode(content)
            sent.setdefault("Content-Type", "application/json")
        return self.client.request(method, full, content=raw, headers=sent, params=params)

    def ok(self, method: str, path: str, content: Any = None, **more: Any) -> Any:
        """The JSON of a request that must succeed."""
        answer = self.call(method, path, content, **more)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def refused(self, status: int, method: str, path: str, content: Any = None, **more: Any) -> Any:
        """The body of a request that must fail like this."""
        answer = self.call(method, path, content, **more)
        assert answer.status_code == status, f"{answer.status_code}: {answer.text}"
        return answer.json()

    def people(self, branch: str = "main") -> list[str]:
        rows = self.ok("POST", "/query", {"query": PEOPLE, "branch": branch})["rows"]
        return [row["name"] for row in rows]

    def finished(self, job: str, **more: Any) -> Any:
        """What is told of a job once it is over."""
        found: dict[str, Any] = {}

        def over() -> bool:
            found.update(self.ok("GET", f"/jobs/{job}", **more))
            return found["status"] not in ("waiting", "running")

        wait_until(over, timeout=300)
        return found

    def exported(self, graph: str = "alpha") -> str:
        """The id of an export that is done."""
        owner = "admin" if graph == "alpha" else "beta"
        begun = self.call("POST", "/exports", {}, graph=graph, actor=owner)
        assert begun.status_code == 202, begun.text
        job = str(begun.json()["job_id"])
        assert self.finished(job, graph=graph, actor=owner)["status"] == "done"
        return job


def tokens_file(folder: Path, tokens: Mapping[str, str] = TOKENS) -> str:
    path = folder / "tokens.json"
    path.write_text(json.dumps(dict(tokens)))
    return str(path)


def build(
    folder: Path, bounds: Bounds | None = None, **more: Any
) -> tuple[Server, dict[str, Graph]]:
    """A server with two graphs and rules; `more` replaces parts of it."""
    graphs = {"alpha": graph("alpha"), "beta": graph("beta")}
    files = {"stored.gq": STORED, "set_age.cypher": STORED_CYPHER}
    for name, text in files.items():
        (folder / name).write_text(text)
    places = [str(folder / name) for name in files]
    queries = stored_queries(places, graphs["alpha"].snapshot().catalog)
    served = {
        id: Served(id, made, queries, tuple(more.get("load_from", ())))
        for id, made in graphs.items()
    }
    rules = {"alpha": policy(more.get("rules", GRAPH_RULES)), "beta": policy(BETA_RULES)}
    access = Access(True, policy(SERVER_RULES), rules)
    identity = Identity(tokens_file(folder), {})
    return Server(served, identity, access, bounds or Bounds(threads_max=4)), graphs


@contextmanager
def world(folder: Path, bounds: Bounds | None = None, **more: Any) -> Iterator[World]:
    server, graphs = build(folder, bounds, **more)
    try:
        yield World(server, TestClient(server, raise_server_exceptions=False), graphs)
    finally:
        server.close()


@contextmanager
def listening(server: Server) -> Iterator[str]:
    """The server on a port of its own, in a thread; its address."""
    config = uvicorn.Config(server, port=0, **options(server))
    running = uvicorn.Server(config)
    thread = threading.Thread(target=running.run, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{_port(running, thread)}"
    finally:
        running.should_exit = True
        thread.join(30)
        server.close()


def _port(running: uvicorn.Server, thread: threading.Thread) -> int:
    wait_until(lambda: running.started or not thread.is_alive())
    port: int = running.servers[0].sockets[0].getsockname()[1]
    return port
