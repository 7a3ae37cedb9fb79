"""Policies on types, over HTTP: whatever route asks, rows of a type nobody allows are neither shown nor changed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.server import world as worlds
from tests.server.world import PEOPLE, World

RULES = """
version: 1
groups: {all: [admin], some: [reader]}
rules:
  - {id: all, allow: {actors: {group: all}, actions: [read, export, change]}}
  - {id: some, allow: {actors: {group: some}, actions: [read, export], types: [Company]}}
  - {id: add, allow: {actors: {group: some}, actions: [change], types: [Company], load_modes: [append]}}
  - {id: call, allow: {actors: {group: some}, actions: [invoke_query]}}
"""
COMPANIES = "query q() { match { $c: Company } return { $c.name as name } }"
BLOB = {"entity": "node", "type": "Person", "id": "Alice", "property": "avatar"}
NDJSON = {"Content-Type": "application/x-ndjson"}
PERSON = b'{"type":"Person","data":{"name":"Zoe"}}\n'
COMPANY = b'{"type":"Company","data":{"name":"Zed"}}\n'
ALICE = b'{"type":"Person","data":{"name":"Alice"}}\n'
FAULTY = b'{"edge":"Knows","from":"Alice","to":"nobody"}\n'
CHECK = {"mode": "append", "check": "true", "format": "ndjson"}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with worlds.world(tmp_path, rules=RULES) as made:
        yield made


REFUSED: list[tuple[str, str, dict[str, Any]]] = [
    ("POST", "/query", {"content": {"query": PEOPLE}}),
    ("POST", "/read", {"content": {"query_source": PEOPLE}}),
    ("POST", "/queries/older", {"content": {"params": {"age": 1}}}),
    ("GET", "/blob", {"params": BLOB}),
    ("GET", "/export", {}),
    ("GET", "/export", {"params": {"types": "Person"}}),
    ("POST", "/export", {"content": {"type_names": ["Person"]}}),
    ("POST", "/exports", {"content": {"types": ["Person"]}}),
    ("POST", "/changes/baseline", {"content": {"type": ["Person"]}}),
    ("GET", "/changes", {"params": {"start": "beginning"}}),
    ("GET", "/changes", {"params": {"start": "beginning", "type": "Person"}}),
    ("GET", "/diff", {"params": {"a": "main~1", "b": "main"}}),
    ("GET", "/entities/Person/Alice", {}),
    ("GET", "/entities/Person/Alice/history", {}),
    ("POST", "/mutate", {"content": {"query": 'query q() { insert Person { name: "x" } }'}}),
    ("POST", "/queries/add_person", {"content": {"params": {"name": "x"}}}),
    ("POST", "/load", {"raw": PERSON, "headers": NDJSON}),
    ("POST", "/load", {"content": {"data": PERSON.decode(), "mode": "append"}}),
    ("POST", "/load", {"raw": COMPANY, "headers": NDJSON, "params": {"mode": "overwrite"}}),
    ("POST", "/load/ndjson", {"raw": COMPANY + PERSON, "headers": NDJSON}),
    ("POST", "/revert", {"content": {"commit": "main"}}),
    (
        "POST",
        "/write",
        {"content": {"steps": [{"query": 'query q() { insert Person { name: "x" } }'}]}},
    ),
    (
        "POST",
        "/write",
        {"content": {"steps": [{"load": {"Person": [{"name": "x"}]}, "mode": "append"}]}},
    ),
    (
        "POST",
        "/write",
        {"content": {"steps": [{"load": {"Company": [{"name": "x"}]}, "mode": "merge"}]}},
    ),
    # what would tell which rows there are, and which there are not
    ("POST", "/load", {"raw": ALICE, "headers": NDJSON, "params": {"mode": "append"}}),
    ("POST", "/load", {"raw": FAULTY, "headers": NDJSON, "params": {"mode": "append"}}),
    ("POST", "/import", {"raw": ALICE, "params": CHECK}),
    ("POST", "/mutate", {"content": {"query": 'query q() { delete Person where name = "x" }'}}),
    ("POST", "/mutate", {"content": {"query": 'query q() { insert Person { name: "Alice" } }'}}),
]


@pytest.mark.parametrize(("method", "path", "how"), REFUSED)
def test_other_types_are_refused_on_every_route(
    world: World, method: str, path: str, how: dict[str, Any]
) -> None:
    before = world.graphs["alpha"].snapshot().commit_id
    told = world.refused(403, method, path, how.get("content"), actor="reader", **_rest(how))
    assert told["error_code"] == "policy_denied"
    assert world.graphs["alpha"].snapshot().commit_id == before


def _rest(how: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in how.items() if name != "content"}


def test_allowed_types_are_served(world: World) -> None:
    asked = {"query": COMPANIES}
    assert world.ok("POST", "/query", asked, actor="reader")["rows"] == [{"name": "Acme"}]
    lines = world.call("GET", "/export", actor="reader", params={"types": "Company"}).text
    assert lines.count("\n") == 1
    told = world.ok(
        "POST", "/load", raw=COMPANY, headers=NDJSON, params={"mode": "append"}, actor="reader"
    )
    assert told["commit"]["actor_id"] == "reader"
    feed = world.ok(
        "GET", "/changes", params={"start": "beginning", "type": "Company"}, actor="reader"
    )
    types = {change["type"]["name"] for block in feed["blocks"] for change in block["changes"]}
    assert types == {"Company"}


def test_a_refused_job_says_so(world: World) -> None:
    headers = {**NDJSON, "Prefer": "respond-async"}
    params = {"mode": "append"}
    begun = world.call("POST", "/load", raw=PERSON, headers=headers, params=params, actor="reader")
    assert begun.status_code == 202
    told = world.finished(begun.json()["job_id"], actor="reader")
    assert (told["status"], told["error"]["error_code"]) == ("failed", "policy_denied")
    assert world.people() == ["Alice", "Bob"]
