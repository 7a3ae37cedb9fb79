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
from tests.system.coverage import Pairs
from tests.system.generate import program
from tests.system.replay import explained
from tests.system.run import run

STEPS = 40
SEQUENCES = count(200, 20_000)
PER_TEST = count(20, 100)
SAMPLED = 200  # sequences between looks at what is missing
NAME = f"system and model, sequences of {STEPS} steps"
SAMPLE_SHARE = 0.9  # of the pairs of verbs, that the sample meets


@pytest.mark.parametrize("part", range(SEQUENCES // PER_TEST))
def test_model_and_system_agree(part: int) -> None:
    verbs: Counter[str] = Counter()
    for seed in range(part * PER_TEST, (part + 1) * PER_TEST):
        made = program(seed, STEPS)
        report = run(made)
        verbs.update(report.verbs)
        if report.failure is not None:
            record(NAME, {"sequences": 1, "disagreements": 1}, part=True)
        assert report.failure is None, explained(made, report)
    figures = {"sequences": PER_TEST, "steps done": verbs.total(), "disagreements": 0}
    record(NAME, figures, part=True)
    assert verbs.total() > PER_TEST * STEPS * 0.7, "most steps did nothing"


def test_every_pair_is_met() -> None:
    made = 0
    met = Pairs()
    while made < SEQUENCES and (made < SAMPLED or met.missing_verbs() or met.missing_features()):
        met.add_all(program(seed, STEPS) for seed in range(made, made + SAMPLED))
        made += SAMPLED
    print(met)
    verbs, features = met.missing_verbs(), met.missing_features()
    record(
        "system and model: what came after what",
        {
            "pairs of verbs": len(met.verbs),
            "pairs of features": len(met.features),
            "never met": len(verbs) + len(features),
            "within sequences": made,
        },
    )
    if is_nightly():
        assert not verbs, f"never one after the other: {verbs}"
        assert not features, f"never one after the other: {features}"
    assert len(met.verbs) >= SAMPLE_SHARE * (len(met.verbs) + len(verbs)), verbs
    assert len(met.features) >= SAMPLE_SHARE * (len(met.features) + len(features)), features


def test_a_seed_is_one_program() -> None:
    assert [repr(program(seed)) for seed in range(5)] == [repr(program(seed)) for seed in range(5)]
