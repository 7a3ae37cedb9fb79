"""What is wrong with an input, gathered up to a bound and reported together."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from omnigraph.errors import Kind, OmnigraphError, Violation

PROBLEMS_MAX = 100


class InputInvalid(OmnigraphError):
    """The input of a load cannot be read as rows of the schema.

    Nothing was written. The details list what is wrong, each with its file and line.
    """

    code, kind = "input_invalid", Kind.INVALID
    default_help = "Fix the lines that are listed and load again, or leave them out with --on-error quarantine."
    python_help = "error.details['violations'] lists the lines to fix; Options(quarantine=FILE) loads the others."


class Unsure(Exception):
    """A fast way of reading cannot tell; a slower, exact one decides."""


@dataclass(slots=True)
class Problems:
    """Collects what is wrong; refuses to go on once there is too much."""

    most: ClassVar[int] = PROBLEMS_MAX
    keeps_good: ClassVar[bool] = False  # whether rows are wanted beside those with problems
    found: list[Violation] = field(default_factory=list)

    def add(self, problem: Violation) -> None:
        self.found.append(problem)
        if len(self.found) >= self.most:
            self.settle()

    def extend(self, problems: Sequence[Violation]) -> None:
        for problem in problems:
            self.add(problem)

    def settle(self) -> None:
        """Raise if anything was wrong."""
        if self.found:
            self.found.sort(key=lambda problem: (problem.file or "", problem.line or 0))
            raise InputInvalid(_summary(self.found), details=_details(self.found))


class Gathered(Problems):
    """All of it is kept, and somebody else decides."""

    most = sys.maxsize

    def settle(self) -> None:
        """Nobody is told here."""

    def taken(self) -> tuple[Violation, ...]:
        """What was gathered since the last time."""
        found, self.found = tuple(self.found), []
        return found


class SortedOut(Gathered):
    """All of it is kept, and so are the rows that have no problem."""

    keeps_good = True


def _summary(found: Sequence[Violation]) -> str:
    first = found[0]
    place = f"{first.file}, " if first.file else ""
    place += f"line {first.line}: " if first.line is not None else ""
    more = len(found) - 1
    noun = "problem" if more == 1 else "problems"
    bound = " or more" if len(found) >= PROBLEMS_MAX else ""
    return place + first.message + (f" (and {more}{bound} other {noun})" if more else "")


def _details(found: Sequence[Violation]) -> dict[str, Any]:
    return {"violations": [problem.to_json() for problem in found]}
