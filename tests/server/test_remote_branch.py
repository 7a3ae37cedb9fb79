"""A branch of a served graph: bound verbs, blocks that are one commit, and all else that a local graph has."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.branch import WriteBlock
from omnigraph.errors import IdempotencyMismatch, OptionInvalid, PreconditionFailed
from omnigraph.graph import Graph
from omnigraph.read.blobs import BlobNotFound
from omnigraph.remote.graph import RemoteGraph
from omnigraph.remote.transport import NotServed
from omnigraph.validate import ValidationFailed
from tests.server import world as worlds
from tests.server.world import PEOPLE, TOKENS, World

ADD = "query add($name: String) { insert Person { name: $name } }"
KNOWS = "query k($a: String, $b: String) { insert Knows { from: $a, to: $b } }"


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[RemoteGraph, Graph]]:
    """A graph, and the same graph through a server, with a branch `draft`."""
    server, graphs = worlds.build(tmp_path)
    graphs["alpha"].create_branch("draft")
    with worlds.listening(server) as address:
        yield RemoteGraph(f"{address}/graphs/alpha", TOKENS["admin"]), graphs["alpha"]


def names(graph: Any, branch: str) -> list[str]:
    return [row["name"] for row in graph.query(PEOPLE, branch=branch).rows]


# --- bound verbs -------------------------------------------------------------------------------------------------


def test_the_verbs_of_a_branch_are_bound_to_it(pair: tuple[RemoteGraph, Graph]) -> None:
    remote, local = pair
    draft = remote.branch("draft")
    draft.mutate(ADD, {"name": "Yan"})
    draft.load([{"type": "Person", "data": {"name": "Zoe"}}])
    assert [row["name"] for row in draft.query(PEOPLE)] == ["Alice", "Bob", "Yan", "Zoe"]
    assert draft.log(limit=1) == local.log("draft", limit=1)
    assert draft.schema() == local.schema("draft")
    assert names(local, "main") == ["Alice", "Bob"]
    assert remote.branch("main").merge("draft").outcome == "fast_forward"
    assert repr(draft) == f"{remote!r}.branch('draft')"


def test_what_no_server_does_is_refused_by_name(pair: tuple[RemoteGraph, Graph]) -> None:
    remote, _ = pair
    with pytest.raises(NotServed, match="optimize"):
        remote.branch("draft").optimize()
    with pytest.raises(AttributeError):
        remote.branch("draft").delete_branch("main")  # type: ignore[attr-defined]


# --- blocks ------------------------------------------------------------------------------------------------------


def test_a_block_is_one_commit_and_its_writes_see_each_other(
    pair: tuple[RemoteGraph, Graph],
) -> None:
    remote, local = pair
    before = len(local.log("draft"))
    with remote.branch("draft").write("people and an edge") as block:
        block.load({"Person": [{"name": "Yan"}, {"name": "Zoe", "age": 3}]})
        block.mutate(KNOWS, {"a": "Yan", "b": "Zoe"})
        block.mutate('query none() { delete Person where name = "Nobody" }')
    assert len(local.log("draft")) == before + 1
    assert block.commit == local.log("draft", limit=1)[0]
    assert (block.commit.message, block.commit.actor) == ("people and an edge", "admin")
    with local.branch("main").write() as mine:
        mine.load({"Person": [{"name": "Yan"}, {"name": "Zoe", "age": 3}]})
        mine.mutate(KNOWS, {"a": "Yan", "b": "Zoe"})
        mine.mutate('query none() { delete Person where name = "Nobody" }')
    assert block.results == mine.results
    assert names(remote, "draft") == ["Alice", "Bob", "Yan", "Zoe"]


def test_a_block_takes_what_loads_take(pair: tuple[RemoteGraph, Graph], tmp_path: Path) -> None:
    remote, local = pair
    file = tmp_path / "people.jsonl"
    file.write_text('{"type":"Person","data":{"name":"File"}}\n\n')
    sources: list[Any] = [
        [{"type": "Person", "data": {"name": "Record", "avatar": b"\x00\x01"}}],
        ({"type": "Person", "data": {"name": f"Made {i}"}} for i in range(2)),
        {"Person": pa.table({"name": ["Table"], "age": [1]})},
        {"Person": ({"name": name} for name in ("Row",)), "Knows": [{"from": "Row", "to": "Bob"}]},
        str(file),
    ]
    with remote.branch("draft").write() as block:
        for source in sources:
            block.load(source)
    found = names(local, "draft")
    assert found == ["Alice", "Bob", "File", "Made 0", "Made 1", "Record", "Row", "Table"]
    assert local.blob("Person", "Record", "avatar", branch="draft").read() == b"\x00\x01"


def test_a_block_that_fails_publishes_nothing(pair: tuple[RemoteGraph, Graph]) -> None:
    remote, local = pair
    before = local.log("draft")
    for write, error in ((half_bad, ValidationFailed), (overwriting, OptionInvalid)):
        with pytest.raises(error), remote.branch("draft").write() as block:
            write(block)
    assert local.log("draft") == before


def half_bad(block: WriteBlock) -> None:
    block.mutate(ADD, {"name": "Yan"})
    block.mutate(KNOWS, {"a": "Yan", "b": "Nobody"})


def overwriting(block: WriteBlock) -> None:
    block.mutate(ADD, {"name": "Yan"})
    block.load({"Person": []}, mode="overwrite")


def test_a_block_may_depend_on_what_was_read(pair: tuple[RemoteGraph, Graph]) -> None:
    remote, local = pair
    seen = remote.snapshot("draft").commit_id
    with remote.branch("draft").write(if_commit=seen) as block:
        block.mutate(ADD, {"name": "Yan"})
    assert block.commit is not None
    with pytest.raises(PreconditionFailed), remote.branch("draft").write(if_commit=seen) as late:
        late.mutate(ADD, {"name": "Zoe"})
    assert names(local, "draft") == ["Alice", "Bob", "Yan"]


def test_a_block_with_a_key_happens_once(pair: tuple[RemoteGraph, Graph]) -> None:
    remote, local = pair
    done = []
    for _ in range(2):
        with remote.branch("draft").write("once", idempotency_key="k") as block:
            block.mutate(ADD, {"name": "Yan"})
            block.load({"Person": [{"name": "Zoe"}]})
        done.append(block)
    first, again = done
    assert (first.replayed, again.replayed) == (False, True)
    assert (again.commit, again.results) == (first.commit, first.results)
    assert names(local, "draft") == ["Alice", "Bob", "Yan", "Zoe"]
    draft = remote.branch("draft")
    with pytest.raises(IdempotencyMismatch), draft.write(idempotency_key="k") as other:
        other.mutate(ADD, {"name": "Somebody else"})


def test_an_empty_block_asks_nothing(pair: tuple[RemoteGraph, Graph]) -> None:
    remote, _ = pair
    with remote.branch("draft").write() as block:
        pass
    assert block.commit is None


# --- the route ---------------------------------------------------------------------------------------------------


def test_a_step_is_a_query_or_a_load(world: World) -> None:
    for step in ({}, {"query": ADD, "load": []}):
        told = world.refused(400, "POST", "/write", {"steps": [{"query": PEOPLE}, step]})
        assert "step 2 needs" in told["error"]
    told = world.ok("POST", "/write", {"steps": []})
    assert told["commit"] is None


def test_a_block_is_allowed_by_what_it_changes(world: World) -> None:
    told = world.refused(403, "POST", "/write", {"steps": [{"query": ADD}]}, actor="reader")
    assert told["error_code"] == "policy_denied"
    assert world.people() == ["Alice", "Bob"]


# --- all else a local graph has ----------------------------------------------------------------------------------


def test_what_the_server_decides_is_refused_not_ignored(pair: tuple[RemoteGraph, Graph]) -> None:
    remote, _ = pair
    with pytest.raises(NotServed, match="timeout"):
        remote.merge("draft", timeout=1.0)


def test_a_blob_is_read_in_ranges(pair: tuple[RemoteGraph, Graph]) -> None:
    remote, local = pair
    mine, theirs = (g.blob("Person", "Alice", "avatar") for g in (local, remote))
    assert theirs.size == mine.size == 11
    assert theirs.read() == mine.read() == b"Hello World"
    assert theirs.read(6, 100) == b"World"
    assert theirs.read(3, 3) == b""
    with pytest.raises(BlobNotFound):
        remote.blob("Person", "Bob", "avatar")


def test_a_notebook_shows_a_served_graph_as_a_local_one(pair: tuple[RemoteGraph, Graph]) -> None:
    remote, local = pair
    assert remote._repr_html_().partition("</p>")[2] == local._repr_html_().partition("</p>")[2]
    text = (
        "query q() { match { $p: Person $p $e:knows $q } return { entity($e) as e, $p.age as a } }"
    )
    shown = remote.query(text)._repr_html_()
    assert "<small>Edge</small>" in shown
    assert "<small>I32</small>" in shown
    assert "graph: 2 nodes, 1 edge" in shown
    remote.mutate(ADD, {"name": "Yan"}, branch="draft")
    mine, theirs = local.diff("main", "draft"), remote.diff("main", "draft")
    assert (str(theirs), theirs._repr_html_()) == (str(mine), mine._repr_html_())
    more = local.schema() + "\nnode Film { title: String @key }"
    assert remote.plan_schema(more)._repr_html_() == local.plan_schema(more)._repr_html_()


def test_a_body_alone_is_a_query_there_too(pair: tuple[RemoteGraph, Graph]) -> None:
    remote, local = pair
    remote.mutate('insert Person { name: "Yan" }')
    found = remote.query("match { $p: Person } return { $p.name as name } order { name }")
    assert [row["name"] for row in found] == names(local, "main") == ["Alice", "Bob", "Yan"]


def test_a_feed_starts_from_all_rows(pair: tuple[RemoteGraph, Graph]) -> None:
    remote, local = pair
    mine, theirs = local.changes().baseline(), remote.changes().baseline()
    assert theirs.cursor == mine.cursor
    keys = [{(c.type, c.kind, c.operation, c.id) for c in all_rows} for all_rows in (mine, theirs)]
    assert keys[0] == keys[1]
    (edge,) = (c for c in theirs if c.type == "Knows")
    assert edge.after is not None
    assert (edge.after["src"], edge.after["dst"]) == ("Alice", "Bob")
    assert {c.type for c in remote.changes(types=["Company"]).baseline()} == {"Company"}


def test_parameters_may_be_of_other_libraries(pair: tuple[RemoteGraph, Graph]) -> None:
    remote, local = pair
    text = "query q($age: I32) { match { $p: Person $p.age > $age } return { $p.name as n } }"
    for age in (np.int32(26), np.array(26)):
        assert remote.query(text, {"age": age}).rows == [{"n": "Alice"}]
    assert local.query(text, {"age": 26}).rows == [{"n": "Alice"}]
