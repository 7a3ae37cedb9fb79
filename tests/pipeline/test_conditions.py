"""A condition has the same truth on Spark as for one row, and equalities join the rows they are true for.

The other rooms are compared in `tests/unit/expressions/test_rooms_agree.py`. A query on Spark takes a while, so one
query asks for the truth of many conditions.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import OmnigraphError
from tests.support.random_queries import QueryMaker, json_value, random_everything
from tests.support.record import record
from tests.support.rings import count
from tests.unit.expressions.test_rooms_agree import OVERFLOW, schema

CASES = count(60, 10_000)
PER_QUERY = min(CASES, 250)
ROWS = 40
JOINED = [("f64", "f64"), ("f32", "f64"), ("f64", "i64")][: count(1, 3)]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    made = omnigraph.init(tmp_path_factory.mktemp("conditions") / "graph", schema=schema())
    rows = random_everything(random.Random(0), ROWS)
    records = [{n: json_value(v) for n, v in row.items() if v is not None} for row in rows]
    made.load([{"type": "Every", "data": record} for record in records], engine="local")
    return made


def rows_of(graph: Graph, text: str, engine: str) -> list[dict[str, Any]]:
    found = graph.query(text, engine=engine).rows
    return sorted(found, key=lambda row: str(row["k"]) + str(row.get("j")))


def conditions(graph: Graph, start: int) -> list[str]:
    """Conditions that no row makes overflow."""
    made = []
    for i in range(start, start + PER_QUERY):
        condition = QueryMaker(random.Random(i)).condition_on_every()
        try:
            graph.query(f"match {{ $n: Every }} return {{ {condition} as c }}", engine="local")
        except OmnigraphError as error:
            assert error.code == OVERFLOW  # noqa: PT017
            continue
        made.append(condition)
    return made


@pytest.mark.parametrize("start", range(0, CASES, PER_QUERY))
def test_conditions_have_the_same_truth(start: int, graph: Graph, spark: Any) -> None:
    asked = conditions(graph, start)
    assert len(asked) > PER_QUERY // 2
    columns = ", ".join(f"{condition} as c{i}" for i, condition in enumerate(asked))
    text = f"match {{ $n: Every }} return {{ $n.id as k, {columns} }}"
    local, on_spark = (rows_of(graph, text, engine) for engine in ("local", "spark"))
    for one, other in zip(local, on_spark, strict=True):
        for i, condition in enumerate(asked):
            assert one[f"c{i}"] is other[f"c{i}"], (condition, one["k"])
    figures = {"conditions": len(asked), "differences": 0}
    record("random conditions: Spark and the engine", figures, part=True)


@pytest.mark.parametrize("columns", JOINED)
def test_equalities_join_alike(columns: tuple[str, str], graph: Graph, spark: Any) -> None:
    one, other = columns
    text = (
        f"match {{ $n: Every $m: Every $n.{one} = $m.{other} }} return {{ $n.id as k, $m.id as j }}"
    )
    local, on_spark = (rows_of(graph, text, engine) for engine in ("local", "spark"))
    assert on_spark == local
    assert local


def test_temporal_values_are_the_same(graph: Graph, spark: Any) -> None:
    text = """
        MATCH (n:Every) WHERE n.time < datetime('2500-01-01T00:00+02:00') - duration('P1M')
        RETURN n.day.week AS week, date.truncate('quarter', n.day) AS quarter, count(*) AS count,
               max(n.time + duration('P1M1DT0.000000001S')) AS last,
               min(duration.between(n.time, datetime('2020-02-29'))) AS least
        ORDER BY week, quarter
    """
    local, on_spark = (
        graph.query(text, language="cypher", engine=engine).rows for engine in ("local", "spark")
    )
    assert on_spark == local
    assert len(local) > 1
