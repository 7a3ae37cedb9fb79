"""How much a run should do: a sample for every change, everything at night."""

from __future__ import annotations

import os

NIGHTLY_VARIABLE = "OMNIGRAPH_NIGHTLY"


def is_nightly() -> bool:
    return os.environ.get(NIGHTLY_VARIABLE, "") not in ("", "0")


def count(sample: int, full: int) -> int:
    """`sample` in `make test`, `full` in `make nightly`."""
    return full if is_nightly() else sample
