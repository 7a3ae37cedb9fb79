"""A failing program with as few steps as still fail in the same way."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from tests.system.generate import Program, Step

SECONDS = 120.0


def shrunk(program: Program, fails: Callable[[Program], bool], seconds: float = SECONDS) -> Program:
    """Take runs of steps away, long ones first, as long as the rest fails. Steps that make no sense do nothing."""
    end = time.monotonic() + seconds
    size = max(1, len(program.steps) // 2)
    while size and time.monotonic() < end:
        smaller = _without_runs(program, size, fails, end)
        size = size // 2 if smaller is program or size > 1 else 1
        program = smaller
        if size == 1 and smaller is program and not _one_more(program, fails, end):
            break
    return program


def _one_more(program: Program, fails: Callable[[Program], bool], end: float) -> bool:
    return _without_runs(program, 1, fails, end) is not program


def _without_runs(
    program: Program, size: int, fails: Callable[[Program], bool], end: float
) -> Program:
    at = len(program.steps) - size
    while at >= 0 and time.monotonic() < end:
        steps: tuple[Step, ...] = program.steps[:at] + program.steps[at + size :]
        smaller = replace(program, steps=steps)
        if fails(smaller):
            program = smaller
        at -= size
    return program
