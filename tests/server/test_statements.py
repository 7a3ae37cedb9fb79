"""Settings and statements in the text of a request: what they answer, and what a policy is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from omnigraph.remote.graph import RemoteGraph
from tests.server import world as worlds
from tests.server.world import PEOPLE, World

SET_AGE = (
    "query set_age($age: I32) { update Person set { age: $age } where name = 'Alice' }".replace(
        "'", '"'
    )
)


def _says(world: World, text: str, **more: Any) -> Any:
    return world.ok("POST", "/mutate", {"query": text}, **more)


def test_statements_about_branches_answer_like_the_mutations_they_are_sent_as(world: World) -> None:
    made = _says(world, "branch create draft;")
    assert made["outcome"] == {"kind": "created", "name": "draft", "from": "main"}
    assert (made["branch"], made["query_name"], made["commit"]) == ("draft", "branch create", None)
    assert (made["affected_nodes"], made["actor_id"]) == (0, "admin")
    listed = world.ok("POST", "/query", {"query": "branch list"})
    assert listed["rows"] == [{"name": "draft"}, {"name": "main"}]
    assert listed["target"] == {"branch": None, "snapshot": None}
    assert "graph_commit_id" not in listed
    changed = {"query": SET_AGE, "params": {"age": 41}, "branch": "draft"}
    world.ok("POST", "/mutate", changed)
    merged = _says(world, "branch merge draft into main")
    assert merged["outcome"]["merge"] == "fast_forward"
    assert merged["branch"] == "main"
    assert merged["commit"] == world.ok("GET", f"/commits/{merged['commit']['graph_commit_id']}")
    assert _says(world, "branch delete draft")["outcome"] == {"kind": "deleted", "name": "draft"}


def test_conflicts_of_a_merge_in_text_are_those_of_the_route(world: World) -> None:
    _says(world, "branch create draft")
    for branch, age in (("draft", 1), ("main", 2)):
        asked = {"query": SET_AGE, "params": {"age": age}, "branch": branch}
        world.ok("POST", "/mutate", asked)
    in_text = world.refused(409, "POST", "/mutate", {"query": "branch merge draft into main"})
    by_route = world.refused(409, "POST", "/branches/merge", {"source": "draft"})
    assert in_text["merge_conflicts"] == by_route["merge_conflicts"]
    assert in_text["merge_conflicts"][0]["kind"] == "divergent_update"


def test_a_policy_is_asked_for_what_the_statement_does(world: World) -> None:
    world.refused(403, "POST", "/mutate", {"query": "branch create draft"}, actor="reader")
    world.refused(403, "POST", "/query", {"query": "branch list"}, actor="stranger")
    world.refused(403, "POST", "/query", {"query": "show all;"}, actor="stranger")
    world.ok("POST", "/query", {"query": "branch list"}, actor="reader")
    assert _says(world, "branch create draft")["outcome"]["kind"] == "created"
    world.refused(403, "POST", "/mutate", {"query": "branch delete draft"}, actor="reader")
    world.refused(403, "POST", "/mutate", {"query": "branch merge draft"}, actor="reader")


def test_whoever_may_only_make_branches_makes_one_in_text(tmp_path: Path) -> None:
    rules = """
version: 1
groups: {readers: [reader]}
rules:
  - {id: make, allow: {actors: {group: readers}, actions: [branch_create]}}
  - {id: see, allow: {actors: {group: readers}, actions: [read]}}
"""
    with worlds.world(tmp_path, rules=rules) as made:
        assert _says(made, "branch create draft", actor="reader")["outcome"]["name"] == "draft"
        made.refused(403, "POST", "/mutate", {"query": "branch delete draft"}, actor="reader")


def test_settings_hold_for_one_request(world: World) -> None:
    limited = world.refused(413, "POST", "/query", {"query": f"set rows_max = 1;\n{PEOPLE}"})
    assert "rows" in limited["error"]
    assert world.ok("POST", "/query", {"query": PEOPLE})["row_count"] == 2
    world.refused(413, "POST", "/query", {"query": PEOPLE, "settings": {"rows_max": 1}})
    shown = world.ok("POST", "/query", {"query": "show rows_max;", "settings": {"rows_max": 9}})
    assert shown["rows"][0] == {
        "name": "rows_max",
        "value": "9",
        "default": None,
        "source": "request",
        "scope": "request",
    }
    world.refused(400, "POST", "/query", {"query": PEOPLE, "settings": {"hops": 1}})
    refused = world.refused(
        400, "POST", "/query", {"query": f"set stage_write_concurrency = 2; {PEOPLE}"}
    )
    assert "process" in refused["error"]
    asked = {"query": "show all;", "settings": {"stage_write_concurrency": 2}}
    world.refused(400, "POST", "/query", asked)
    told = world.refused(400, "POST", "/query", {"query": f"set engine = spark; {PEOPLE}"})
    assert "engine" in told["error"]


def test_explain_answers_with_the_plan_and_asks_for_the_types(world: World) -> None:
    told = world.ok("POST", "/query", {"query": f"explain {PEOPLE}"})
    assert told["query_name"] == "people"
    assert told["columns"] == ["tree", "depth", "node", "detail"]
    assert {"logical", "physical", "plan"} == {row["tree"] for row in told["rows"]}
    world.refused(403, "POST", "/query", {"query": f"explain {PEOPLE}"}, actor="stranger")


def test_a_remote_graph_runs_statements_like_a_local_one(tmp_path: Path) -> None:
    server, _ = worlds.build(tmp_path)
    with worlds.listening(server) as address:
        graph = RemoteGraph(f"{address}/graphs/alpha", worlds.TOKENS["admin"])
        assert graph.mutate("branch create draft").outcome == {
            "kind": "created",
            "name": "draft",
            "from": "main",
        }
        assert graph.query("branch list;").rows == [{"name": "draft"}, {"name": "main"}]
        assert graph.query("show engine").rows[0]["value"] == "local"
        assert len(graph.query(f"explain {PEOPLE}").rows) > 3
