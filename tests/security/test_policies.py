"""Ways around a policy, over HTTP: copies of what may not be read, blocks of steps, counts, other people's keys."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.server import world as worlds
from tests.server.world import World

ACTORS = ("admin", "brancher", "merger", "modes", "changer", "caller", "a", "a:b", "a%3Ab")
TOKENS = {actor: f"t-{actor}" for actor in ACTORS}
RULES = """
version: 1
groups:
  admins: [admin]
  branchers: [brancher]
  mergers: [merger]
  modes: [modes]
  changers: [changer]
  callers: [caller]
  keys: [a, "a:b", "a%3Ab"]
protected_branches: [main]
rules:
  - {id: a1, allow: {actors: {group: admins}, actions: [read, export, change, admin, invoke_query]}}
  - {id: a2, allow: {actors: {group: admins}, actions: [branch_create, branch_delete, branch_merge]}}
  - {id: b1, allow: {actors: {group: branchers}, actions: [read, export], branch_scope: unprotected}}
  - {id: b2, allow: {actors: {group: branchers}, actions: [branch_create], target_branch_scope: unprotected}}
  - {id: m1, allow: {actors: {group: mergers}, actions: [read, change], branch_scope: unprotected}}
  - {id: m2, allow: {actors: {group: mergers}, actions: [branch_merge], target_branch_scope: unprotected}}
  - {id: l1, allow: {actors: {group: modes}, actions: [change], types: [Company], load_modes: [append]}}
  - {id: l2, allow: {actors: {group: modes}, actions: [change], types: [Person], load_modes: [merge]}}
  - {id: c1, allow: {actors: {group: changers}, actions: [change], types: [Person, Knows]}}
  - {id: q1, allow: {actors: {group: callers}, actions: [invoke_query]}}
  - {id: k1, allow: {actors: {group: keys}, actions: [read, change]}}
"""
NDJSON = {"Content-Type": "application/x-ndjson"}


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr(worlds, "TOKENS", TOKENS)
    monkeypatch.setattr(worlds.tokens_file, "__defaults__", (TOKENS,))
    with worlds.world(tmp_path, rules=RULES) as made:
        made.graphs["alpha"].create_branch("draft")
        made.graphs["alpha"].mutate('query q() { insert Person { name: "new on main" } }')
        yield made


def _add(name: str) -> dict[str, Any]:
    return {"query": f'query q() {{ insert Person {{ name: "{name}" }} }}'}


# --- copies ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("/branches", {"name": "mine"}),
        ("/branches", {"name": "mine", "from": "main"}),
        ("/branches", {"name": "mine", "from": "main~1"}),
        ("/tags", {"name": "mine"}),
        ("/tags", {"name": "mine", "at": "main~1", "branch": "draft"}),
    ],
)
def test_what_may_not_be_read_is_not_forked_or_tagged(
    world: World, path: str, content: dict[str, Any]
) -> None:
    answer = world.call("POST", path, content, actor="brancher")
    assert answer.status_code in (403, 404), answer.text
    assert "mine" not in world.graphs["alpha"].branches()
    assert world.graphs["alpha"].tags() == {}
    world.ok("POST", "/branches", {"name": "mine", "from": "draft"}, actor="brancher")


@pytest.mark.parametrize("dry_run", [True, False])
def test_what_may_not_be_read_is_not_merged(world: World, dry_run: bool) -> None:
    asked = {"source": "main", "target": "draft", "dry_run": dry_run}
    told = world.refused(403, "POST", "/branches/merge", asked, actor="merger")
    assert told["details"]["action"] == "read"
    assert "new on main" not in world.people("draft")


@pytest.mark.parametrize("route", ["/cherry-pick", "/revert", "/reset"])
def test_what_may_not_be_read_is_not_done_again(world: World, route: str) -> None:
    asked = {"commit": "main~0", "branch": "draft"}
    world.refused(404, "POST", route, asked, actor="merger")
    assert "new on main" not in world.people("draft")


def test_permissions_tell_what_would_be_refused(world: World) -> None:
    told = [
        world.ok("GET", "/permissions", params={"branch": name}, actor="brancher")["actions"]
        for name in ("main", "draft")
    ]
    assert [actions["branch_create"] for actions in told] == [False, True]


# --- blocks ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "row", "mode", "allowed"),
    [
        ("Company", {"name": "Acme"}, "merge", False),
        ("Company", {"name": "New"}, "append", True),
        ("Person", {"name": "Alice", "age": 1}, "merge", True),
        ("Person", {"name": "New"}, "append", False),
    ],
)
def test_a_step_asks_what_it_would_ask_alone(
    world: World, kind: str, row: dict[str, Any], mode: str, allowed: bool
) -> None:
    steps = {"steps": [_add("first"), {"load": {kind: [row]}, "mode": mode}]}
    line = json.dumps({"type": kind, "data": row}).encode() + b"\n"
    before = world.graphs["alpha"].snapshot().commit_id
    block = world.call("POST", "/write", steps, actor="modes")
    alone = world.call(
        "POST", "/load", raw=line, headers=NDJSON, params={"mode": mode}, actor="modes"
    )
    assert (block.status_code == 403, alone.status_code == 403) == (not allowed, not allowed)
    assert (world.graphs["alpha"].snapshot().commit_id == before) is not allowed


# --- changing without reading --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "asked",
    [
        {"query": "query q() { update Person set { age: 5 } where age > 26 }"},
        {"query": "query q() { update Person set { age: 5 } where age > 26 }", "dry_run": True},
        {"query": 'query q() { delete Person where name = "Alice" }', "dry_run": True},
        {**_add("Zoe"), "dry_run": True},
    ],
)
def test_counts_are_no_way_to_read(world: World, asked: dict[str, Any]) -> None:
    told = world.refused(403, "POST", "/mutate", asked, actor="changer")
    assert told["details"]["action"] == "read"
    block = {"steps": [{"query": asked["query"]}]}
    if "where" in asked["query"]:
        world.refused(403, "POST", "/write", block, actor="changer")
    assert world.call("POST", "/mutate", _add("Yan"), actor="changer").status_code == 200


@pytest.mark.parametrize("name", ["older", "add_person", "nothing"])
def test_stored_queries_are_not_told_by_a_refusal(world: World, name: str) -> None:
    """The caller may call stored queries, but read nothing: those that are there look like those that are not."""
    answer = world.call("POST", f"/queries/{name}", {"params": {}}, actor="caller")
    assert (answer.status_code, answer.json()["error_code"]) == (404, "stored_query_not_found")


# --- keys ------------------------------------------------------------------------------------------------------------


def test_a_key_belongs_to_its_actor_alone(world: World) -> None:
    pairs = [("a:b", "c"), ("a", "b:c"), ("a%3Ab", "c"), ("a", "%3Ab:c")]
    made = []
    for number, (actor, key) in enumerate(pairs):
        headers = {"Idempotency-Key": key}
        told = world.ok("POST", "/mutate", _add(f"n{number}"), headers=headers, actor=actor)
        assert "replayed" not in told
        made.append(told["commit"]["graph_commit_id"])
    assert len(set(made)) == len(pairs)
    for number, (actor, key) in enumerate(pairs):
        headers = {"Idempotency-Key": key}
        told = world.ok("POST", "/mutate", _add(f"n{number}"), headers=headers, actor=actor)
        assert (told["replayed"], told["commit"]["graph_commit_id"]) == (True, made[number])


def test_keys_made_before_are_still_known(world: World) -> None:
    """An actor without a colon or a percent sign in the name keeps the keys that are stored already."""
    text = _add("Zoe")["query"]
    done = world.graphs["alpha"].mutate(text, name="q", idempotency_key="a:once")
    told = world.ok(
        "POST", "/mutate", {"query": text}, headers={"Idempotency-Key": "once"}, actor="a"
    )
    assert done.commit is not None
    assert (told["replayed"], told["commit"]["graph_commit_id"]) == (True, done.commit.id)


def test_a_key_with_other_steps_is_refused(world: World) -> None:
    def block(*names: str, mode: str = "merge") -> dict[str, Any]:
        return {"steps": [{"load": {"Person": [{"name": n} for n in names]}, "mode": mode}]}

    def sent(content: dict[str, Any]) -> Any:
        return world.call("POST", "/write", content, headers={"Idempotency-Key": "k"})

    first, again = sent(block("W1")), sent(block("W1"))
    assert (first.status_code, again.json()["replayed"]) == (200, True)
    records = {"steps": [{"load": [{"type": "Person", "data": {"name": "W1"}}]}]}
    for other in (
        block("W2"),
        block("W1", "W2"),
        block("W1", mode="append"),
        block(),
        records,
        {"steps": [_add("W1")]},
        {"steps": [*block("W1")["steps"], _add("W2")]},
    ):
        answer = sent(other)
        assert (answer.status_code, answer.json()["error_code"]) == (400, "idempotency_mismatch")
    assert "W2" not in world.people()
