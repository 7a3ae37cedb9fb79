"""The openCypher TCK: every scenario passes, or is listed with a reason.

`OMNIGRAPH_DATA` names the folder with `opencypher-tck`, which is not part of this repository; without it these tests
are skipped by name. A node without a label is given a type of its own where it is created, and a set of labels is one
type that implements an interface for each; see `schemas`.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path

import pytest

from tests.support import rings
from tests.tck.gherkin import Scenario, scenarios
from tests.tck.runner import run

DATA = Path(os.environ.get("OMNIGRAPH_DATA", "../shared/data")) / "opencypher-tck" / "tck"
LISTED = Path(__file__).parent / "not_passed.txt"
CHUNKS = 8
SCENARIOS = 2558

pytestmark = pytest.mark.skipif(
    not DATA.is_dir(), reason="the openCypher TCK is not there (OMNIGRAPH_DATA)"
)


def all_scenarios() -> list[Scenario]:
    return scenarios(DATA / "features")


def listed() -> dict[str, str]:
    """The scenarios that are not passed, each with its reason."""
    lines = LISTED.read_text("utf-8").splitlines()
    return dict(line.rsplit(" | ", 1) for line in lines)


def chosen(chunk: int) -> list[Scenario]:
    """A part of what this run looks at: a sample that is the same every time, or everything."""
    found = all_scenarios()
    order = random.Random(9).sample(found, len(found))[: rings.count(240, len(found))]
    return order[chunk::CHUNKS]


def test_the_list_names_scenarios_there_are() -> None:
    keys = Counter(scenario.key for scenario in all_scenarios())
    assert sum(keys.values()) == SCENARIOS
    assert not set(listed()) - set(keys)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_scenarios_pass_or_are_listed(chunk: int) -> None:
    known = listed()
    surprises = []
    for scenario in chosen(chunk):
        outcome = run(scenario, DATA / "graphs")
        if outcome.passed is (scenario.key in known):
            surprises.append((scenario.key, outcome.reason, outcome.seen))
    assert not surprises
