"""Everything that reads has a limit: the worst input is answered in bounded time and memory."""

from __future__ import annotations

import json
import subprocess
import sys
import zlib
from functools import cache

import pytest

from tests.fuzz.seeds import seeds
from tests.fuzz.targets import TARGETS, assert_ours
from tests.security.bombs import BOMBS, Cost
from tests.security.test_attacks import BOMB_BYTES_MAX, BOMB_SECONDS_MAX, bounded
from tests.support import rings

SIZE = rings.count(1 << 16, 1 << 18)
DRAWN = {"schema_grammar", "query_grammar"}  # these choose from the bytes, and never read them all


def oversized() -> dict[str, bytes]:
    return {
        "brackets": b"[" * SIZE,
        "objects": b'{"a":' * (SIZE // 5),
        "line breaks": b"\n" * SIZE,
        "what unpacks to much": b"\x01" + zlib.compress(bytes(100 << 20)),
        "an open text": b'"' + b"a" * SIZE,
        "digits": b"9" * SIZE,
        "not UTF-8": b"\xff" * SIZE,
        "nothing but zeros": bytes(SIZE),
    }


@pytest.mark.parametrize("name", [name for name in TARGETS if name not in DRAWN])
def test_the_worst_input_is_answered_within_bounds(name: str) -> None:
    for kind, data in list(oversized().items())[: rings.count(4, 8)]:
        try:
            with bounded():
                assert_ours(name, data)
        except BaseException as error:
            error.add_note(f"target {name}, {kind}")
            raise


@pytest.mark.parametrize("name", [name for name in TARGETS if name not in DRAWN])
def test_a_valid_input_repeated_is_answered_within_bounds(name: str) -> None:
    longest = max(seeds(name), key=len) or b" "
    with bounded():
        assert_ours(name, longest * (SIZE // len(longest)))


# --- whole bodies ----------------------------------------------------------------------------------------------------

SLOWER_MACHINE = 3.0  # than one on which the bound holds: a busy one pays for its caches as well
ANSWER_BYTES_MAX = 1 << 20


@cache
def costs() -> dict[str, Cost]:
    """What every bomb costs a server of its own."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.security.bombs"],
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    found = (Cost(**json.loads(line)) for line in run.stdout.splitlines())
    return {cost.name: cost for cost in found}


@pytest.mark.xdist_group("bombs")
@pytest.mark.parametrize("name", BOMBS)
def test_bodies_that_are_bombs_go_off_harmlessly(name: str) -> None:
    cost = costs()[name]
    assert cost.status in (200, 400, 413), cost
    assert cost.cpu_seconds < BOMB_SECONDS_MAX * SLOWER_MACHINE, cost
    assert cost.grown_bytes < BOMB_BYTES_MAX, cost
    assert cost.answer_bytes < ANSWER_BYTES_MAX, cost
