"""Cypher returns the same rows on Spark as in process, whatever operators its plan has."""

# ruff: noqa: E501 - one query a line
from __future__ import annotations

import random
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from tests.support.rings import count
from tests.unit.lang.cypher.test_both_languages import PAIRS, ROWS, SCHEMA

# One for each operator and kind of value that `.gq` has no word for.
MORE = (
    "UNWIND [[1], [2, 3], []] AS x RETURN x, size(x) AS n",
    "MATCH (p:Person) WITH p, p.age AS a WHERE a > 30 RETURN p.name, a",
    "MATCH (p:Person) WITH p ORDER BY p.name LIMIT 2 RETURN p.name",
    "MATCH (p:Person)-[:Knows]->(q) WITH p, count(q) AS n RETURN p, n",
    "MATCH (p:Person) RETURN p.name, COUNT { (p)-[:Knows]->() } AS n, EXISTS { (p)-[:LivesIn]->() } AS lives",
    "MATCH (p:Person) RETURN {name: p.name, older: p.age + 1} AS m, [x IN p.langs | toUpper(x)] AS langs",
    "MATCH (p:Person) RETURN CASE WHEN p.age > 30 THEN 'old' ELSE 'young' END AS c, count(*) AS n",
    "MATCH (p:Person)-[k:Knows]->(q) RETURN k, [p, q] AS both, startNode(k).name AS s",
    "MATCH (a:Person {name: 'Ada'})-[:Knows*1..3]->(b) RETURN a.name, b.name",
    "MATCH p = (a:Person {name: 'Ada'})-[:Knows*]->(b) RETURN p, [x IN nodes(p) | x.name] AS names",
    "MATCH (a:Person)-[k:Knows]->(b)-[:Knows*1..2]->(c) RETURN a.name, c.name",
    "MATCH (p:Person) WITH collect(p) AS ps UNWIND ps AS q MATCH (q)-[:LivesIn]->(c) RETURN q.name, c.name",
    "MATCH (p:Person) RETURN p.name, [(p)-[k:Knows {since: 2015}]->(q) | q.age] AS ages",
    "MATCH p = shortestPath((a:Person {name: 'Ada'})-[:Knows*]->(b:Person {name: 'Cyd'})) RETURN [x IN nodes(p) | x.name] AS names",
    "CALL omnigraph.schema.properties() YIELD owner, property RETURN owner, count(*) AS n",
    "CALL omnigraph.history.log() YIELD commit, kind, time RETURN commit, kind, time",
)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    made = omnigraph.init(tmp_path_factory.mktemp("cypher") / "graph", schema=SCHEMA)
    made.load(ROWS, engine="local")
    return made


def rows(graph: Graph, text: str, engine: str) -> list[tuple[Any, ...]]:
    found = graph.query(text, engine=engine, language="cypher")
    listed = [tuple(map(repr, row.values())) for row in found]
    return listed if "ORDER BY" in text else sorted(listed)


@pytest.mark.usefixtures("spark")
def test_spark_answers_like_the_local_engine(graph: Graph) -> None:
    pairs = [cypher for cypher, _ in PAIRS]
    some = random.Random(3).sample(pairs, count(6, len(pairs)))
    others = random.Random(4).sample(MORE, count(9, len(MORE)))
    for text in (*some, *others):
        assert rows(graph, text, "spark") == rows(graph, text, "local"), text
