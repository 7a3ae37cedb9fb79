"""USE is no way around a policy: what a branch is protected from, a text is refused, however it spells the name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from omnigraph.agents.stored import StoredQuery
from omnigraph.errors import OmnigraphError
from omnigraph.graph import Graph
from omnigraph.guarded import GuardedGraph
from omnigraph.policy.guard import Guard
from tests.security.test_names import ALIKE, RULES, SAME, VAULT, _world
from tests.server import world as worlds
from tests.server.world import World

READ = "MATCH (p:Person) RETURN p.name AS name"
ADD = "CREATE (:Person {name: 'new'})"
FORMS = (
    "USE `{}` {}",
    "use '{}' {}",
    'USE graph.byName("{}") {}',
    "USE\n/* hush */ graph . byName ( '{}' ) {}",
)
POINTS = ("{}@{}~1", "@{}", "{}@2999-01-01", "draft@{}", "draft@{}~1")
SPELLINGS = (VAULT, "main", *SAME.values(), *(f"\\u004b{VAULT[1:]}",))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with _world(tmp_path_factory.mktemp("use")) as made:
        yield made


@pytest.fixture
def drafter(world: World) -> Graph:
    return GuardedGraph(world.graphs["alpha"], Guard(worlds.policy(RULES), "reader", "g"))


def _heads(world: World) -> dict[str, str]:
    graph = world.graphs["alpha"]
    return {name: graph.snapshot(name).commit_id for name in graph.branches()}


def _texts(name: str, rest: str) -> Iterator[str]:
    for form in FORMS:
        if "\\" not in name or "`" not in form:  # escapes are read in strings alone
            yield form.format(name, rest)


@pytest.mark.parametrize("name", SPELLINGS)
@pytest.mark.parametrize("rest", [READ, ADD])
def test_a_protected_branch_is_not_used(world: World, drafter: Graph, name: str, rest: str) -> None:
    before = _heads(world)
    path = "/query" if rest is READ else "/mutate"
    for text in _texts(name, rest):
        with pytest.raises(OmnigraphError) as failed:
            (drafter.query if rest is READ else drafter.mutate)(text)
        assert failed.value.code == "policy_denied"
        answer = world.call("POST", path, {"query": text}, actor="reader")
        assert answer.status_code == 403, answer.text
        given = world.call("POST", path, {"query": text, "branch": "draft"}, actor="reader")
        assert given.json()["error_code"] == "use_contradicted", (
            "what was allowed is not what it does"
        )
    assert _heads(world) == before


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("name", [VAULT, *SAME.values()])
def test_no_point_leads_to_a_protected_branch(
    world: World, drafter: Graph, point: str, name: str
) -> None:
    nobody = "nobody"
    for text in _texts(point.format(name, name), READ):
        with pytest.raises(OmnigraphError) as failed:
            drafter.query(text)
        assert failed.value.code in ("policy_denied", "commit_not_found")
        answer = world.call("POST", "/query", {"query": text}, actor="reader")
        assert answer.status_code in (403, 404), answer.text
        many = {"query": text, "params": [{}]}
        assert world.call("POST", "/query/many", many, actor="reader").status_code in (403, 404)
    if point.startswith(("@", "draft")):  # it looks like one that is not there
        told = [_told(drafter, point.format(each, each)) for each in (name, nobody)]
        assert told[0].replace(name, nobody).replace(VAULT, nobody) == told[1]


def _told(graph: Graph, place: str) -> str:
    with pytest.raises(OmnigraphError) as failed:
        graph.query(f"USE '{place}' {READ}")
    return f"{failed.value.code} {failed.value.message}"


def test_a_tag_of_a_protected_branch_is_not_used(drafter: Graph) -> None:
    assert _told(drafter, "of-secret").replace("of-secret", "x") == _told(
        drafter, "of-nobody"
    ).replace("of-nobody", "x")
    assert drafter.query(f"USE `of-draft` {READ}").rows


@pytest.mark.parametrize("name", ALIKE.values())
def test_a_name_that_only_looks_alike_is_another(drafter: Graph, name: str) -> None:
    with pytest.raises(OmnigraphError) as failed:
        drafter.query(f"USE `{name}` {READ}")
    assert failed.value.code in ("branch_not_found", "policy_denied")
    with pytest.raises(OmnigraphError):
        drafter.mutate(f"USE `{name}` {ADD}")


def test_blocks_and_verbs_do_not_go_elsewhere(world: World, drafter: Graph) -> None:
    before = _heads(world)
    steps: dict[str, Any] = {"branch": "draft", "steps": [{"query": f"USE `{VAULT}` {ADD}"}]}
    answer = world.call("POST", "/write", steps, actor="reader")
    assert answer.json()["error_code"] == "use_contradicted"
    with pytest.raises(OmnigraphError):
        drafter.publish(drafter.mutation(f"USE `{VAULT}` {ADD}"), branch="draft")
    assert _heads(world) == before


def test_a_stored_query_asks_for_the_branch_it_uses(world: World) -> None:
    before = _heads(world)
    served = world.server.graphs["alpha"]
    texts = {
        f"{branch}{i}": f"USE `{branch}` {rest}"
        for branch in (VAULT, "draft")
        for i, rest in enumerate((READ, ADD))
    }
    stored = {name: StoredQuery.of_cypher(text, name) for name, text in texts.items()}
    world.server.graphs["alpha"] = replace(served, queries=stored)
    try:
        for name in (f"{VAULT}0", f"{VAULT}1"):
            answer = world.call("POST", f"/queries/{quote(name)}", {}, actor="reader")
            assert answer.status_code in (403, 404), answer.text
        assert _heads(world) == before
        assert (
            world.ok("POST", "/queries/draft0", {}, actor="reader")["target"]["branch"] == "draft"
        )
        assert world.ok("POST", "/queries/draft1", {}, actor="reader")["branch"] == "draft"
    finally:
        world.server.graphs["alpha"] = served


def test_what_is_allowed_may_be_used(tmp_path: Path) -> None:
    with _world(tmp_path) as made:
        answer = made.ok("POST", "/query", {"query": f"USE draft {READ}"}, actor="reader")
        assert {"name": "on draft"} in answer["rows"]
        assert answer["target"]["branch"] == "draft"
        done = made.ok("POST", "/mutate", {"query": f"USE draft {ADD}"}, actor="reader")
        assert done["branch"] == "draft"
        assert made.graphs["alpha"].log("draft", 1)[0].kind == "mutation"
