"""The protocol holds in every state within its bounds, and every rule of it is needed."""

from __future__ import annotations

import pytest

from tests.model.scenarios import NEEDED, RULES, SCENARIOS, explore
from tests.support import rings
from tests.support.record import record

STATES_MAX = rings.count(10_000, 400_000)  # all states of a scenario are fewer than the latter
LARGE_STATES_MAX = 100_000


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_state_keeps_every_promise(name: str) -> None:
    found = explore(name, states_max=STATES_MAX)
    assert found.broken is None, told(name, found.broken, found.trace)
    if rings.is_nightly():
        assert found.complete, f"{name}: more than {STATES_MAX} states"


@pytest.mark.nightly
def test_larger_worlds_keep_every_promise() -> None:
    states, complete = 0, 0
    for name in SCENARIOS:
        found = explore(name, large=True, states_max=LARGE_STATES_MAX)
        assert found.broken is None, told(name, found.broken, found.trace)
        states, complete = states + found.states, complete + found.complete
    record(
        "protocol model",
        {
            "states": states,
            "scenarios": len(SCENARIOS),
            "explored to their end": complete,
            "rules shown to be needed": len(NEEDED),
        },
    )
    assert states > 0


@pytest.mark.parametrize("rule", sorted(RULES))
def test_leaving_a_rule_out_breaks_a_promise(rule: str) -> None:
    found = explore(NEEDED[rule], RULES - {rule})
    assert found.broken is not None, f"nothing breaks in {NEEDED[rule]!r} without {rule!r}"
    assert found.trace, "a violation without a way to it"


def test_the_explorer_finds_the_shortest_way() -> None:
    found = explore("an answer that never comes", RULES - {"same number again"})
    assert found.broken == "an operation was reported as failed and is in the history"
    assert "answer lost" in found.trace[-1]
    assert len(found.trace) < 10


def told(name: str, broken: str | None, trace: tuple[str, ...]) -> str:
    return "\n".join([f"{name}: {broken}", *trace])
