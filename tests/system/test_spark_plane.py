"""The same sequences with their loads on Spark: the plane a load takes must not show in anything."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.pipeline.conftest import nothing_stays_behind, spark
from tests.support.rings import count
from tests.system.generate import Program, Step, program
from tests.system.replay import explained
from tests.system.run import run

__all__ = ["nothing_stays_behind", "spark"]
pytestmark = pytest.mark.xdist_group("spark")
SEEDS = range(3, 3 + 4 * count(2, 20), 4)  # those on a disk


def on_spark(made: Program) -> Program:
    """A program that loads with Spark, from files, wherever nothing else is asked for.

    Spark refuses an id that is given twice where in process the later row wins, as the guide says: those stay there.
    """
    steps = tuple(
        {**step, "engine": "spark", "shape": "file"}
        if step["verb"] == "load" and not step.keys() & {"door", "key"} and not _repeats(step)
        else step
        for step in made.steps
    )
    return replace(made, steps=steps)


def _repeats(step: Step) -> bool:
    """Whether some id is given twice."""
    given = [[row["id"] for row in rows if "id" in row] for rows in step["rows"].values()]
    return any(len(ids) != len(set(ids)) for ids in given)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", SEEDS)
def test_loads_on_spark_are_the_same_loads(seed: int, spark: Any) -> None:
    made = on_spark(program(seed))
    report = run(made)
    assert report.failure is None, explained(made, report)
