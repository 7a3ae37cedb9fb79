"""What an error says: all of it in `str()`, in the words of the surface that shows it."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest

import omnigraph
from omnigraph.cli.main import main
from omnigraph.errors import BranchNotFound, GraphExists, GraphNotFound, OmnigraphError, speaking
from omnigraph.lang.query import parse_queries
from omnigraph.opening import SchemaWarning

SCHEMA = "node Person { name: String @key  age: I32? }\nedge Knows: Person -> Person"
ALL = "match { $p: Person } return { $p.name }"


@pytest.fixture
def graph(memory_root: str) -> omnigraph.Graph:
    return omnigraph.init(memory_root, schema=SCHEMA)


def test_a_query_error_has_message_place_caret_and_suggestion(graph: omnigraph.Graph) -> None:
    with pytest.raises(OmnigraphError) as raised:
        graph.query("match { $a: Persn } return { $a.name }")
    told = str(raised.value).splitlines()
    assert told[0] == "unknown node type `Persn`"
    assert told[3:5] == ["1 | match { $a: Persn } return { $a.name }", "  |             ^^^^^"]
    assert told[5] == "  = help: Did you mean `Person`?"
    assert f"failed: {raised.value}" == "failed: unknown node type `Persn`", "in a sentence"


def test_each_surface_gets_its_own_words(graph: omnigraph.Graph) -> None:
    with pytest.raises(BranchNotFound) as raised:
        graph.query(ALL, branch="x")
    assert "g.branches()" in str(raised.value)
    with speaking("cli"):
        assert "`omnigraph branch list`" in raised.value.help
    copied = copy.copy(raised.value)
    assert copied.help == raised.value.help
    for kind in (GraphExists, GraphNotFound):
        assert "omnigraph." in kind("x").help
        with speaking("cli"):
            assert "omnigraph." not in kind("x").help


def test_a_table_without_a_type_is_explained_to_each(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, file = str(tmp_path / "g"), tmp_path / "ages.csv"
    file.write_text("name,age\nAda,36\n")
    graph = omnigraph.init(store, schema=SCHEMA)
    with pytest.raises(OmnigraphError, match="load") as raised:
        graph.load(file)
    assert "load({'Person': " in str(raised.value)
    assert main(["load", store, "--data", str(file)]) == 1
    told = capsys.readouterr().err
    assert f"--data Person={file}" in told
    assert "{'" not in told


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        ("SELECT name FROM Person WHERE age > 30;", "match { $x: Person  $x.age > 30 } return { $x.name }"),
    ],
)  # fmt: skip
def test_simple_sql_is_translated(text: str, instead: str, graph: omnigraph.Graph) -> None:
    with pytest.raises(OmnigraphError) as raised:
        graph.query(text)
    assert f"`{instead}`" in raised.value.help
    graph.query(instead)  # it is a query


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("MATCH (n) DETACH DELETE n", "Cypher"),
        ("CREATE (p:Person {name: 'Ada'})", "Cypher"),
        ("select count(*) from a join b on a.x = b.x", "SQL"),
        ("INSERT INTO Person VALUES ('Ada')", "SQL"),
    ],
)
def test_other_cypher_and_sql_is_recognised(text: str, language: str) -> None:
    with pytest.raises(OmnigraphError, match=f"This looks like {language}"):
        parse_queries(text, bare=True)


@pytest.mark.parametrize(
    "text", ["match { $p Person } return { $p.name }", "insert Person { name }", "x"]
)
def test_our_own_mistakes_are_not_taken_for_it(text: str) -> None:
    with pytest.raises(OmnigraphError) as raised:
        parse_queries(text, bare=True)
    assert "looks like" not in str(raised.value)


def test_init_warns_of_a_misspelt_annotation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], memory_root: str
) -> None:
    with pytest.warns(SchemaWarning, match="Did you mean `@key`?"):
        omnigraph.init(memory_root, schema="node Person { name: String @ky }")
    file = tmp_path / "s.pg"
    file.write_text("node Person { name: String @ky }\n")
    assert main(["init", str(tmp_path / "g"), "--schema", str(file)]) == 0
    assert "Did you mean `@key`?" in capsys.readouterr().err
