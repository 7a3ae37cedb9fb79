"""Random work on the whole system and on a model of it; whatever is asked, both answer the same.

One sequence is one seed: about forty steps, with a look at the branch after each commit, reads of every kind between
them, and at the end everything by the tables themselves and through a process that just started. A failure names its
seed; `python -m tests.system.replay SEED` shows the few steps it takes.
"""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support.record import record
from tests.support.rings import count, is_nightly
from tests.system.coverage import pairs_of
from tests.system.generate import program
from tests.system.replay import explained
from tests.system.run import run

STEPS = 40
SEQUENCES = count(200, 20_000)
PER_TEST = count(20, 100)
SAMPLE_SHARE = 0.9  # of the pairs of verbs, that the sample meets


@pytest.mark.parametrize("part", range(SEQUENCES // PER_TEST))
def test_model_and_system_agree(part: int) -> None:
    verbs: Counter[str] = Counter()
    for seed in range(part * PER_TEST, (part + 1) * PER_TEST):
        made = program(seed, STEPS)
        report = run(made)
        verbs.update(report.verbs)
        assert report.failure is None, explained(made, report)
    assert verbs.total() > PER_TEST * STEPS * 0.7, "most steps did nothing"


def test_every_pair_is_met() -> None:
    met = pairs_of(program(seed, STEPS) for seed in range(SEQUENCES))
    print(met)
    verbs, features = met.missing_verbs(), met.missing_features()
    record(
        "system and model",
        {
            "sequences": SEQUENCES,
            "steps each": STEPS,
            "pairs of verbs": len(met.verbs),
            "pairs of features": len(met.features),
            "disagreements": 0,
        },
    )
    if is_nightly():
        assert not verbs, f"never one after the other: {verbs}"
        assert not features, f"never one after the other: {features}"
    assert len(met.verbs) >= SAMPLE_SHARE * (len(met.verbs) + len(verbs)), verbs
    assert len(met.features) >= SAMPLE_SHARE * (len(met.features) + len(features)), features


def test_a_seed_is_one_program() -> None:
    assert [repr(program(seed)) for seed in range(5)] == [repr(program(seed)) for seed in range(5)]
