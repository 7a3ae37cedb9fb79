"""Contracts of branches, tags, commits, merges, the change feed and blobs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.server.world import World

ADD = "query add($name: String) { insert Person { name: $name } }"
BLOB = {"entity": "node", "type": "Person", "id": "Alice", "property": "avatar"}


def _add(world: World, name: str, branch: str = "main") -> str:
    content = {"query": ADD, "params": {"name": name}, "branch": branch}
    return str(world.ok("POST", "/mutate", content)["commit"]["graph_commit_id"])


# --- branches ----------------------------------------------------------------------------------------------------


def test_branches_are_made_listed_and_deleted(world: World) -> None:
    made = world.ok("POST", "/branches", {"name": "review/2026"})
    assert (made["name"], made["from"], made["actor_id"]) == ("review/2026", "main", "admin")
    assert world.ok("GET", "/branches")["branches"] == ["main", "review/2026"]
    told = world.refused(409, "POST", "/branches", {"name": "review/2026"})
    assert told["code"] == "conflict"
    gone = world.ok("DELETE", "/branches/review%2F2026")
    assert gone["name"] == "review/2026"
    world.refused(404, "DELETE", "/branches/review%2F2026")


@pytest.mark.parametrize(
    ("content", "status"),
    [({"name": "main"}, 409), ({"name": " "}, 400), ({}, 400), ({"name": "x", "from": "no"}, 404)],
)
def test_branches_that_cannot_be_are_refused(world: World, content: object, status: int) -> None:
    assert world.refused(status, "POST", "/branches", content)


def test_the_main_branch_stays(world: World) -> None:
    assert world.refused(400, "DELETE", "/branches/main")


def test_tags_name_commits(world: World) -> None:
    head = world.graphs["alpha"].snapshot().commit_id
    assert world.ok("POST", "/tags", {"name": "v1"})["graph_commit_id"] == head
    assert world.ok("GET", "/tags")["tags"] == [{"name": "v1", "graph_commit_id": head}]
    world.ok("DELETE", "/tags/v1")
    assert world.ok("GET", "/tags")["tags"] == []


# --- merges ------------------------------------------------------------------------------------------------------


def test_a_branch_is_merged_and_deleted(world: World) -> None:
    world.ok("POST", "/branches", {"name": "side"})
    fresh = world.ok("POST", "/branches/merge", {"source": "side"})
    assert (fresh["outcome"], fresh["commit"]) == ("already_up_to_date", None)
    assert "branch_deleted" not in fresh
    _add(world, "Zoe", "side")
    told = world.ok("POST", "/branches/merge", {"source": "side", "delete_branch": True})
    assert (told["outcome"], told["branch_deleted"]) == ("fast_forward", True)
    assert told["commit"]["merged_parent_commit_id"] is not None
    assert world.ok("GET", "/branches")["branches"] == ["main"]


def test_conflicts_are_told_and_nothing_is_published(world: World) -> None:
    world.ok("POST", "/branches", {"name": "side"})
    text = 'query a($n: I32) { update Person set { age: $n } where name = "Bob" }'
    for branch, age in (("main", 1), ("side", 2)):
        world.ok("POST", "/mutate", {"query": text, "params": {"n": age}, "branch": branch})
    before = world.graphs["alpha"].snapshot().commit_id
    told = world.refused(409, "POST", "/branches/merge", {"source": "side"})
    assert told["code"] == "conflict"
    assert [c["kind"] for c in told["merge_conflicts"]] == ["divergent_update"]
    assert told["merge_conflicts"][0]["entity_id"] == "Bob"
    assert world.graphs["alpha"].snapshot().commit_id == before
    settled = world.ok("POST", "/branches/merge", {"source": "side", "strategy": "theirs"})
    assert settled["outcome"] == "merged"


def test_a_difference_from_the_merge_base_is_what_a_merge_would_do(world: World) -> None:
    world.ok("POST", "/branches", {"name": "side"})
    _add(world, "Zoe", "side")
    _add(world, "Yan")
    asked = {"a": "main", "b": "side", "from_merge_base": "true"}
    told = world.ok("GET", "/diff", params=asked)
    assert [(row["operation"], row["id"]) for row in told["rows"]] == [("insert", "Zoe")]
    heads = world.ok("GET", "/diff", params={"a": "main", "b": "side"})
    assert {row["id"] for row in heads["rows"]} == {"Zoe", "Yan"}


def test_a_branch_is_not_merged_into_itself(world: World) -> None:
    assert world.refused(400, "POST", "/branches/merge", {"source": "main"})
    assert world.refused(404, "POST", "/branches/merge", {"source": "nowhere"})


def test_commits_are_reverted_picked_and_reset(world: World) -> None:
    world.ok("POST", "/branches", {"name": "side"})
    commit = _add(world, "Zoe")
    world.ok("POST", "/cherry-pick", {"commit": commit, "branch": "side"})
    assert world.people("side") == ["Alice", "Bob", "Zoe"]
    world.ok("POST", "/revert", {"commit": commit})
    assert world.people() == ["Alice", "Bob"]
    world.ok("POST", "/reset", {"commit": commit})
    assert world.people() == ["Alice", "Bob", "Zoe"]


# --- history -----------------------------------------------------------------------------------------------------


def test_commits_are_listed_newest_first_and_filtered(world: World) -> None:
    newest = _add(world, "Zoe")
    told = world.ok("GET", "/commits")["commits"]
    assert told[0]["graph_commit_id"] == newest
    assert told[-1]["parent_commit_id"] is None
    kinds = world.ok("GET", "/commits", params={"kind": "mutation"})["commits"]
    assert [c["graph_commit_id"] for c in kinds] == [newest]
    assert world.refused(404, "GET", "/commits/nowhere")["code"] == "not_found"


def test_points_are_compared(world: World) -> None:
    _add(world, "Zoe")
    told = world.ok("GET", "/diff", params={"a": "main~1", "b": "main"})
    assert told["counts"] == {"Person": {"inserted": 1, "updated": 0, "deleted": 0}}
    assert [row["id"] for row in told["rows"]] == ["Zoe"]
    world.refused(413, "GET", "/diff", params={"a": "main~1", "b": "main", "limit": 1 << 30})


# --- the change feed -----------------------------------------------------------------------------------------------


def test_the_feed_goes_on_where_the_baseline_ends(world: World) -> None:
    lines = world.call("POST", "/changes/baseline", {}).text.splitlines()
    last = json.loads(lines[-1])["baseline"]
    assert len(lines) == 5
    assert last["snapshot_commit_id"] == world.graphs["alpha"].snapshot().commit_id
    assert all("baseline" not in json.loads(line) for line in lines[:-1])
    ids = [_add(world, name) for name in ("Yan", "Zoe")]
    told = world.ok("GET", "/changes", params={"cursor": last["resume_cursor"]})
    assert [b["cause"]["graph_commit_id"] for b in told["blocks"]] == ids
    assert told["caught_up"] is True
    assert told["blocks"][0]["changes"][0]["after"]["properties"]["name"] == "Yan"
    again = world.ok("GET", "/changes", params={"cursor": told["cursor"]})
    assert (again["blocks"], again["caught_up"]) == ([], True)


def test_pages_repeat_the_cause_and_lose_nothing(world: World) -> None:
    seen: list[tuple[str, str]] = []
    params: dict[str, Any] = {"start": "beginning", "limit": 1}
    for _ in range(20):
        page = world.ok("GET", "/changes", params=params)
        for block in page["blocks"]:
            seen += [(block["cause"]["graph_commit_id"], c["id"]) for c in block["changes"]]
        if "cursor" in page:
            break
        assert "caught_up" not in page
        params = {"page_token": page["next_page_token"], "limit": 1}
    assert page["caught_up"] is True
    commit = seen[0][0]
    assert [id for _, id in seen][:3] == ["Acme", "Alice", "Bob"], "nodes come before edges"
    whole = world.ok("GET", f"/commits/{commit}/changes")
    assert [(commit, c["id"]) for c in whole["changes"]] == seen


def test_the_changes_of_a_commit_come_in_pages(world: World) -> None:
    head = world.graphs["alpha"].snapshot().commit_id
    first = world.ok("GET", f"/commits/{head}/changes", params={"limit": 3})
    token = first["next_page_token"]
    rest = world.ok("GET", f"/commits/{head}/changes", params={"page_token": token})
    whole = world.ok("GET", f"/commits/{head}/changes")["changes"]
    assert first["changes"] + rest["changes"] == whole
    nodes = world.ok("GET", f"/commits/{head}/changes", params={"kind": "node"})["changes"]
    assert {c["kind"] for c in nodes} == {"node"}
    genesis = world.ok("GET", "/commits")["commits"][-1]["graph_commit_id"]
    told = world.refused(409, "GET", f"/commits/{genesis}/changes")
    assert told["change_diff_refusal"]["reason"] == "parentless_commit"


@pytest.mark.parametrize(
    ("params", "status"),
    [
        ({"cursor": "junk"}, 400),
        ({"page_token": "AAAA"}, 400),
        ({"cursor": "x", "start": "now"}, 400),
        ({"start": "yesterday"}, 400),
        ({"limit": 0}, 400),
        ({"limit": 9000}, 413),
        ({"unknown": 1}, 400),
        ({"op": "rename"}, 400),
        ({"branch": "nowhere"}, 404),
    ],
)
def test_polls_that_make_no_sense_are_refused(
    world: World, params: dict[str, Any], status: int
) -> None:
    assert world.refused(status, "GET", "/changes", params=params)


def test_cursors_are_bound_to_what_they_were_made_for(world: World) -> None:
    world.ok("POST", "/branches", {"name": "side"})
    cursor = world.ok("GET", "/changes")["cursor"]
    for params in ({"branch": "side"}, {"type": "Person"}, {"op": "insert"}):
        told = world.refused(400, "GET", "/changes", params={"cursor": cursor, **params})
        assert told["error"].startswith("change cursor rejected: ")
    told = world.refused(
        400, "GET", "/changes", params={"cursor": cursor}, actor="beta", graph="beta"
    )
    assert told["error"].startswith("change cursor rejected: ")


# --- blobs -------------------------------------------------------------------------------------------------------


def _blob(world: World, method: str = "GET", **headers: str) -> Any:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return world.call(method, "/blob", params=BLOB, headers=named)


def test_a_blob_comes_whole_or_in_parts(world: World) -> None:
    whole = _blob(world)
    assert (whole.status_code, whole.content) == (200, b"Hello World")
    assert whole.headers["accept-ranges"] == "bytes"
    for asked, part, place in (
        ("bytes=0-4", b"Hello", "bytes 0-4/11"),
        ("bytes=6-", b"World", "bytes 6-10/11"),
        ("bytes=-5", b"World", "bytes 6-10/11"),
        ("bytes=6-99", b"World", "bytes 6-10/11"),
    ):
        told = _blob(world, Range=asked)
        assert (told.status_code, told.content) == (206, part)
        assert told.headers["content-range"] == place


def test_ranges_that_are_none_give_the_whole(world: World) -> None:
    for asked in ("bytes=4-1", "lines=0-1", "bytes=0-1,3-4", "bytes=-"):
        assert _blob(world, Range=asked).status_code == 200
    told = _blob(world, Range="bytes=11-")
    assert (told.status_code, told.headers["content-range"]) == (416, "bytes */11")
    assert told.json()["blob_range"] == {"start": 11, "end": 11, "length": 11}


def test_conditions_on_a_blob(world: World) -> None:
    etag = _blob(world).headers["etag"]
    assert _blob(world, If_None_Match=f"W/{etag}").status_code == 304
    assert _blob(world, If_None_Match='"other"').status_code == 200
    assert _blob(world, If_Match=etag).status_code == 200
    lost = _blob(world, If_Match='"other"')
    assert (lost.status_code, lost.json()["error_code"]) == (412, "blob_changed")
    assert lost.headers["etag"] == etag
    assert _blob(world, If_Range='"other"', Range="bytes=0-1").status_code == 200
    assert _blob(world, If_Range=etag, Range="bytes=0-1").status_code == 206


def test_a_head_request_has_no_body(world: World) -> None:
    told = _blob(world, "HEAD", Range="bytes=0-1")
    assert (told.status_code, told.headers["content-length"], told.content) == (200, "11", b"")


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"id": "Nobody"}, 404),
        ({"id": "Bob"}, 404),
        ({"property": "age"}, 400),
        ({"type": "Nobody"}, 400),
        ({"entity": "edge"}, 400),
        ({"entity": "thing"}, 400),
    ],
)
def test_blobs_that_are_not_there(world: World, changed: dict[str, str], status: int) -> None:
    assert world.refused(status, "GET", "/blob", params={**BLOB, **changed})
