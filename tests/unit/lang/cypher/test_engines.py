"""Which plans Spark takes, and that it says so of the others before anything starts."""

from __future__ import annotations

import pytest

from omnigraph.lang.cypher import compile_cypher
from omnigraph.lang.schema import catalog_of, compile_schema
from omnigraph.pipeline.unsupported import NotOnSpark, refuse_unknown
from tests.unit.lang.cypher.test_both_languages import SCHEMA

CATALOG = catalog_of(compile_schema(SCHEMA))


def _runs(text: str) -> bool:
    body = compile_cypher(text, CATALOG).body
    refuse_unknown(body.plan)  # type: ignore[union-attr]
    return True


@pytest.mark.parametrize(
    "text",
    [
        "MATCH (p:Person)-[:Knows]->(q) WHERE q.age > 3 RETURN p.name, q",
        "MATCH (p:Person) OPTIONAL MATCH (p)-[:LivesIn]->(c) RETURN p.age AS age, count(c) AS n, sum(p.age) AS s",
    ],
)
def test_plain_patterns_run_on_spark(text: str) -> None:
    assert _runs(text)


@pytest.mark.parametrize(
    "text",
    [
        "MATCH (p:Person) WITH p ORDER BY p.name RETURN collect(p.name) AS n",
        "MATCH (p:Person) RETURN rand() AS r",
        "MATCH (q:Person)-[r:Knows*1..2 {since: q.age}]->(p) RETURN p.name",
        "MATCH p = shortestPath((a:Person)-[*]-(b:City)) RETURN p",
        "MATCH p = allShortestPaths((a:Person)-[:Knows*]->(b)) RETURN length(p) AS n",
    ],
)
def test_the_others_are_refused(text: str) -> None:
    with pytest.raises(NotOnSpark, match="Spark cannot run"):
        _runs(text)
