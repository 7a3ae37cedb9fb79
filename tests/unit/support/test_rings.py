"""A run does as much as it was asked to."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.support import rings
from tests.support.tidy import ROOT


@pytest.mark.nightly
def test_only_at_night() -> None:
    assert rings.count(1, 2) in (1, 2)


def collected(*options: str, nightly: str) -> str:
    command = [sys.executable, "-m", "pytest", "--collect-only", *options, __file__]
    environment = {**os.environ, rings.NIGHTLY_VARIABLE: nightly}
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    ).stdout


def test_nightly_tests_are_left_out_unless_asked_for() -> None:
    assert "test_only_at_night" not in collected(nightly="")
    assert "test_only_at_night" in collected(nightly="1")
    assert "test_only_at_night" in collected("-m", "nightly", nightly="")


def test_counts_follow_the_ring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(rings.NIGHTLY_VARIABLE, "0")
    assert rings.count(5, 500) == 5
    monkeypatch.setenv(rings.NIGHTLY_VARIABLE, "1")
    assert rings.count(5, 500) == 500
