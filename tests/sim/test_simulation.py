"""The core under simulated disturbance: thousands of worlds, no violation; planted bugs, all caught."""

from __future__ import annotations

import pytest

from tests.sim.planted import BUGS
from tests.sim.scheduler import CALM
from tests.sim.world import CASTS, run
from tests.support.rings import count

SEEDS_PER_TEST = 40
BUG_SEEDS_MAX = 2_000


@pytest.mark.parametrize("part", range(count(5, 250)))
def test_no_world_breaks_a_promise(part: int) -> None:
    for seed in range(part * SEEDS_PER_TEST, (part + 1) * SEEDS_PER_TEST):
        scheduler = run(seed)
        assert scheduler.steps > 0, f"seed {seed} did nothing"


@pytest.mark.parametrize("cast", range(len(CASTS)), ids=["-".join(cast) for cast in CASTS])
def test_calm_worlds_end_well(cast: int) -> None:
    assert run(cast + 11 * 1000, CALM).steps > 0


@pytest.mark.parametrize("seed", range(0, 44, 4))
def test_a_seed_is_a_whole_run(seed: int) -> None:
    assert run(seed).trace == run(seed).trace


@pytest.mark.parametrize("bug", BUGS)
def test_every_planted_bug_is_caught(bug: str) -> None:
    assert caught_at(bug) is not None, f"{bug!r} was not caught within {BUG_SEEDS_MAX} worlds"


def caught_at(bug: str) -> int | None:
    """The first seed whose world shows the bug."""
    broken, cast = BUGS[bug]
    for seed in range(BUG_SEEDS_MAX):
        with broken():
            try:
                run(seed, cast=cast)
            except Exception:  # a violation, or the core stumbling over its own damage
                return seed
    return None
