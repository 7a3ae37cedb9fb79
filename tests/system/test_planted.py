"""Every bug that is put into the system is found by running sequences, one after the other, from the first."""

from __future__ import annotations

import pytest

from tests.support.record import record
from tests.support.rings import is_nightly
from tests.system.generate import program
from tests.system.planted import BUGS, planted
from tests.system.run import run

SEQUENCES_MAX = 1_000
SAMPLED = tuple(BUGS)[:: len(BUGS) // 4]


@pytest.mark.parametrize("bug", BUGS if is_nightly() else SAMPLED)
def test_every_planted_bug_is_caught(bug: str) -> None:
    seed = caught_at(bug)
    figures = {"planted": 1, "caught": int(seed is not None), "sequences": (seed or 0) + 1}
    record("system and model: planted bugs", figures, part=True)
    assert seed is not None, f"{bug!r} was not caught within {SEQUENCES_MAX} sequences"


def caught_at(bug: str) -> int | None:
    """The first sequence in which model and system disagree."""
    for seed in range(SEQUENCES_MAX):
        with planted(bug):
            if run(program(seed), bug).failure is not None:
                return seed
    return None


def test_every_bug_has_a_place() -> None:
    """What a bug replaces is still there, which nobody else would notice until all are caught at night."""
    lost = []
    for bug in BUGS:
        try:
            with planted(bug):
                pass
        except AttributeError as gone:
            lost.append(f"{bug}: {gone}")
    assert not lost


def test_there_are_many_bugs_to_plant() -> None:
    assert len(BUGS) >= 30
