"""The model and the core take the same steps in the same order: neither can change without the other.

Whatever the core does in simulation, the model can do; and whatever the model does, the core was seen doing.
"""

from __future__ import annotations

from functools import cache

import pytest

from tests.model.scenarios import SCENARIOS, explorer
from tests.model.steps import Pairs, Recorder, model_pairs
from tests.sim.world import CASTS, run
from tests.support import rings
from tests.support.record import record

WORLDS = rings.count(200, 10_000)


@cache
def of_the_model() -> Pairs:
    found: Pairs = set()
    for name in SCENARIOS:
        world = explorer(name)
        world.run()
        found |= model_pairs(world)
    return {pair for pair in found if pair[1] != pair[2] and pair[0] in OPERATIONS}


# a merge takes over versions that exist and stages nothing; the model has no merges
MERGES = {("publish", "start", "create commit")}


@cache
def of_the_core() -> Pairs:
    recorder = Recorder()
    with recorder.watching():
        for seed in range(WORLDS):
            run(seed)
    return recorder.pairs - MERGES


OPERATIONS = ("publish", "create_branch", "delete_branch", "create_tag", "collect")


def test_the_core_takes_no_step_the_model_does_not_know() -> None:
    unknown = sorted(of_the_core() - of_the_model())
    assert not unknown, f"extend tests/model/protocol.py: the core does {unknown}"
    assert len(of_the_core()) > len(CASTS), "the core was not seen doing much"


@pytest.mark.nightly
def test_the_model_takes_no_step_the_core_does_not() -> None:
    unseen = sorted(of_the_model() - of_the_core())
    assert not unseen, f"never seen in {WORLDS} simulated worlds: {unseen}"
    record(
        "steps of model and core",
        {"worlds": WORLDS, "steps of both": len(of_the_model()), "known to one alone": 0},
    )
