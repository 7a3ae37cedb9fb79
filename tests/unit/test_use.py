"""USE names the branch and the point a text in Cypher is about, as `branch=` and `at=` do."""

from __future__ import annotations

import random
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import OmnigraphError
from omnigraph.lang.cypher.format import format_cypher

NAMES = "MATCH (p:Person) RETURN p.name AS name ORDER BY name"
ADD = "CREATE (:Person {name: 'New'})"


@pytest.fixture
def graph() -> Graph:
    """Ada on main; on dev and on feature/x one more; a tag before Bob came to dev."""
    schema = "node Person { name: String @key }"
    g = omnigraph.init(f"memory://use{random.getrandbits(60)}", schema=schema)
    g.load({"Person": [{"name": "Ada"}]})
    for branch, name in (("dev", "Bob"), ("feature/x", "Cyd")):
        g.create_branch(branch)
        g.tag(f"before-{name}", branch)
        g.load({"Person": [{"name": name}]}, branch=branch)
    return g


def names(graph: Graph, text: str, **options: Any) -> list[str]:
    return [row["name"] for row in graph.query(text, **options)]


@pytest.mark.parametrize(
    ("use", "wanted"),
    [
        ("USE dev", ["Ada", "Bob"]),
        ("use `dev`", ["Ada", "Bob"]),
        ("// where\nUSE 'dev'", ["Ada", "Bob"]),
        ("USE graph.byName('dev')", ["Ada", "Bob"]),
        ('USE Graph.ByName("feature/x")', ["Ada", "Cyd"]),
        ("USE `feature/x`", ["Ada", "Cyd"]),
        ("USE main", ["Ada"]),
        ("USE 'dev@dev~1'", ["Ada"]),
        ("USE `dev@before-Bob`", ["Ada"]),
        ("USE '@before-Bob'", ["Ada"]),
        ("USE `before-Bob`", ["Ada"]),
        ("USE 'dev@2999-01-01'", ["Ada", "Bob"]),
    ],
)
def test_a_text_names_where_it_reads(graph: Graph, use: str, wanted: list[str]) -> None:
    assert names(graph, f"{use} {NAMES}") == wanted
    (found,) = graph.query_many(f"{use} {NAMES}", [{}])
    assert [row["name"] for row in found] == wanted


def test_a_commit_is_a_point_like_any_other(graph: Graph) -> None:
    commit = graph.log("dev")[1].id
    assert names(graph, f"USE 'dev@{commit}' {NAMES}") == ["Ada"]


@pytest.mark.parametrize("use", ["USE dev", "USE `dev`", "USE graph.byName('dev')"])
def test_a_text_names_where_it_writes(graph: Graph, use: str) -> None:
    done = graph.mutate(f"{use} {ADD} WITH 1 AS one MATCH (p:Person) RETURN count(*) AS n")
    assert done.rows == [{"n": 3}]
    assert done.commit is not None
    assert done.commit.branch == "dev"
    assert names(graph, NAMES) == ["Ada"]


def test_what_stands_beside_the_text_says_the_same_or_nothing(graph: Graph) -> None:
    assert names(graph, f"USE dev {NAMES}", branch="dev") == ["Ada", "Bob"]
    assert names(graph, f"USE dev {NAMES}", at="dev~1") == ["Ada"]
    assert names(graph, f"USE 'dev@dev~1' {NAMES}", at="dev~1") == ["Ada"]
    assert graph.mutate(f"USE dev {ADD}", branch="dev").affected_nodes == 1
    with graph.branch("dev").write() as block:
        block.mutate("USE dev CREATE (:Person {name: 'One more'})")
    assert block.commit is not None


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (f"USE dev {NAMES}", {"branch": "feature/x"}),
        (f"USE main {NAMES}", {"branch": "dev"}),
        (f"USE 'dev@dev~1' {NAMES}", {"at": "dev"}),
        (f"USE 'dev@dev~1' {NAMES}", {"branch": "feature/x"}),
    ],
)
def test_a_contradiction_is_an_error(graph: Graph, text: str, options: dict[str, Any]) -> None:
    with pytest.raises(OmnigraphError) as failed:
        graph.query(text, **options)
    assert failed.value.code == "use_contradicted"


def test_a_write_goes_where_its_call_says_or_nowhere(graph: Graph) -> None:
    heads = {name: graph.snapshot(name).commit_id for name in graph.branches()}

    def block() -> None:
        with graph.write(branch="feature/x") as steps:
            steps.mutate(f"USE dev {ADD}")

    refused = [
        lambda: graph.mutate(f"USE dev {ADD}", branch="feature/x"),
        lambda: graph.mutate(f"USE main {ADD}", branch="dev"),
        lambda: graph.mutate(f"USE 'dev@dev~1' {ADD}"),
        lambda: graph.publish(graph.mutation(f"USE dev {ADD}")),
        block,
    ]
    for write in refused:
        with pytest.raises(OmnigraphError) as failed:
            write()
        assert failed.value.code == "use_contradicted"
    assert {name: graph.snapshot(name).commit_id for name in graph.branches()} == heads


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (f"USE nowhere {NAMES}", "branch_not_found"),
        (f"USE 'dev@nowhere' {NAMES}", "commit_not_found"),
        (f"USE `before-Bob` {ADD}", "branch_not_found"),
        (f"USE ' ' {NAMES}", "name_invalid"),
        (f"USE graph.byName($g) {NAMES}", "P1"),
        (f"USE $g {NAMES}", "P1"),
        ("USE dev", "P1"),
        (f"MATCH (p:Person) USE dev {NAMES}", "C013"),
        (f"{NAMES} UNION USE dev {NAMES}", "C013"),
        (f"USE dev USE main {NAMES}", "C013"),
    ],
)
def test_what_cannot_be_used_is_said(graph: Graph, text: str, code: str) -> None:
    with pytest.raises(OmnigraphError) as failed:
        (graph.mutate if "CREATE" in text else graph.query)(text)
    found = failed.value.details.get("diagnostics")
    assert (found[0]["code"] if found else failed.value.code) == code


def test_history_is_that_of_the_branch_that_is_used(graph: Graph) -> None:
    found = graph.query("USE dev CALL omnigraph.history.log(1) YIELD commit RETURN commit")
    assert found.one() == {"commit": graph.snapshot("dev").commit_id}


def test_use_is_a_line_of_its_own() -> None:
    assert format_cypher("use dev match (p) return p") == "USE dev\nMATCH (p)\nRETURN p\n"
