"""The model and the core take the same steps in the same order: neither can change without the other.

Whatever the core does in simulation, the model can do; and whatever the model does, the core was seen doing. To explore
the model takes a minute, so what it does is kept in steps.txt, which is compared with it at night;
`python -m tests.model.test_steps` writes it after a change of the protocol.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from tests.model.scenarios import SCENARIOS, explorer
from tests.model.steps import Pairs, Recorder, model_pairs
from tests.sim.world import CASTS, run
from tests.support import rings
from tests.support.record import record

WORLDS = rings.count(200, 5_000)
WORLDS_MAX = 50_000  # until every step of the model was seen: the rarest needs a collection beside a deletion


KEPT = Path(__file__).with_name("steps.txt")


def of_the_model() -> Pairs:
    lines = (line.split(" | ") for line in KEPT.read_text().splitlines())
    return {(operation, step, after) for operation, step, after in lines}


def explored() -> Pairs:
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
def test_what_is_kept_is_what_the_model_does() -> None:
    assert explored() == of_the_model(), "run python -m tests.model.test_steps"


@pytest.mark.nightly
def test_the_model_takes_no_step_the_core_does_not() -> None:
    unseen, worlds, recorder = of_the_model() - of_the_core(), WORLDS, Recorder()
    with recorder.watching():
        while unseen and worlds < WORLDS_MAX:
            run(worlds)
            worlds += 1
            unseen -= recorder.pairs
    assert not unseen, f"never seen in {worlds} simulated worlds: {sorted(unseen)}"
    record(
        "steps of model and core",
        {"worlds": worlds, "steps of both": len(of_the_model()), "known to one alone": 0},
    )


if __name__ == "__main__":
    KEPT.write_text("".join(" | ".join(pair) + "\n" for pair in sorted(explored())))
