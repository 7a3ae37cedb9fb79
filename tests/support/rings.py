"""How much a run should do: a sample for every change, everything at night and before a release."""

from __future__ import annotations

import os

NIGHTLY_VARIABLE = "OMNIGRAPH_NIGHTLY"
RING_VARIABLE = "OMNIGRAPH_RING"
TEST, NIGHTLY = "make test", "make nightly"


def ring() -> str:
    """The command this run belongs to."""
    return os.environ.get(RING_VARIABLE) or (NIGHTLY if is_nightly() else TEST)


def is_nightly() -> bool:
    return os.environ.get(NIGHTLY_VARIABLE, "") not in ("", "0")


def count(sample: int, full: int) -> int:
    """`sample` in `make test`, `full` in `make nightly`."""
    return full if is_nightly() else sample
