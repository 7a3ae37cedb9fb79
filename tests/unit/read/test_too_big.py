"""Queries that would not fit end right or with an error that says why, and the process stays within the budget."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.rings import count, is_nightly
from tests.support.too_big import QUERIES

BUDGET_MIB = 512
NODES, EDGES = count(20_000, 60_000), count(100_000, 800_000)
SECONDS = count(1, 8)
SAMPLE = (
    "pairs",
    "pairs, distinct",
    "two hops, unique groups",
    "two hops, collected",
    "hub, paths",
    "hub, path spelled out",
    "all, paths spelled out",
    "hub, walks counted",
    "hub, walks spelled out",
    "all, walks",
    "parallel edges, two hops",
    "several types, two hops",
    "six hops, first",
    "join",
    "all, paths",
    "entities",
)
ENDINGS = {"deadline_exceeded", "memory_exceeded"}


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="memory is read from /proc")
def test_memory_stays_within_the_budget() -> None:
    names = tuple(QUERIES) if is_nightly() else SAMPLE
    asked = [f"{BUDGET_MIB}M", str(NODES), str(EDGES), str(SECONDS), *names]
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.too_big", *asked],
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["query"] for one in found] == [*names]
    for one in found:
        assert "rows" in one or one["code"] in ENDINGS, one
        assert one["peak"] < 1.25 * (BUDGET_MIB << 20), one
        if one.get("code") == "memory_exceeded":
            assert one["details"]["operator"], one
            assert one["details"]["limit_value"] == BUDGET_MIB << 20, one
