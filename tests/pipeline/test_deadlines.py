"""A query on Spark ends when its time is over, when nobody waits for it, and when it has too many rows."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph
from omnigraph.errors import OmnigraphError
from omnigraph.graph import Graph
from omnigraph.pipeline.session import arrow_of, context_of
from omnigraph.read import cancelled_by
from omnigraph.read.budget import Budget
from tests.support.waiting import wait_until

PEOPLE = 4_000
# All triples of people, one by one in the executors: hours.
ENDLESS = "match { $a: P $b: P $c: P $a.n + $b.n + $c.n = -1 } return { $a.k as k }"


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory, spark: Any) -> Graph:
    root: Path = tmp_path_factory.mktemp("deadlines") / "g"
    made = omnigraph.init(str(root), schema="node P { k: String @key  n: I64 }")
    made.load({"P": pa.table({"k": [f"p{i}" for i in range(PEOPLE)], "n": range(PEOPLE)})})
    return made


def tasks(spark: Any) -> int:
    """How many jobs run now."""
    return len(context_of(spark).statusTracker().getActiveJobsIds())


@pytest.fixture
def client() -> Iterator[list[bool]]:
    """Whoever waits for the answers: gone once something is in the list."""
    gone: list[bool] = []
    cancelled_by(lambda: bool(gone))
    yield gone
    cancelled_by(None)


def test_its_jobs_end_when_its_time_is_over(graph: Graph, spark: Any) -> None:
    graph.query("match { $a: P } return { $a.k as k } limit 1", engine="spark")  # warm
    begun = time.monotonic()
    with pytest.raises(OmnigraphError) as error:
        graph.query(ENDLESS, engine="spark", timeout=2.0)
    assert error.value.code == "deadline_exceeded"
    assert error.value.details["limit_seconds"] == 2.0
    assert time.monotonic() - begun < 20
    wait_until(lambda: tasks(spark) == 0)
    assert not context_of(spark).getJobTags()


def test_its_jobs_end_when_nobody_waits_for_it(
    graph: Graph, spark: Any, client: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Budget.check

    def leaving(self: Any) -> None:
        if tasks(spark):
            client.append(True)
        real(self)

    monkeypatch.setattr(Budget, "check", leaving)
    with pytest.raises(OmnigraphError) as error:
        graph.query(ENDLESS, engine="spark")
    assert error.value.code == "cancelled"
    wait_until(lambda: tasks(spark) == 0)


def test_no_more_rows_are_collected_than_are_allowed(
    graph: Graph,
    monkeypatch: pytest.MonkeyPatch,
    spark: Any,
) -> None:
    collected = []

    def noted(frame: Any) -> pa.Table:
        collected.append(arrow_of(frame))
        return collected[-1]

    monkeypatch.setattr("omnigraph.pipeline.query.arrow_of", noted)
    text = "match { $a: P } return { $a.k as k } order { $a.n desc }"
    with pytest.raises(OmnigraphError) as error:
        graph.query(text, engine="spark", max_rows=10)
    assert error.value.details == {"limit": "max_rows", "limit_value": 10, "observed": 11}
    assert collected[0].num_rows == 11
    assert len(graph.query(text, engine="spark", max_rows=PEOPLE)) == PEOPLE
    assert [r["k"] for r in graph.query(text + " limit 2", engine="spark", max_rows=2)] == [
        f"p{PEOPLE - 1}",
        f"p{PEOPLE - 2}",
    ]
