"""Errors of an input, collected up to a bound and reported together."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from omnigraph.errors import Kind, OmnigraphError, Violation
from omnigraph.values.misfit import NO_ZONE

PROBLEMS_MAX = 100
ZONE_HELPS: dict[str, Any] = {
    "help": "Say in which zone such times are: --assume-timezone Europe/Rome, or assume_timezone in a pipeline file",
    "python_help": "Say in which zone such times are: options=Options(assume_timezone='Europe/Rome')",
}


class InputInvalid(OmnigraphError):
    """The input of a load cannot be read as rows of the schema.

    Nothing was written. The details list the errors, each with its file and line.
    """

    code, kind = "input_invalid", Kind.INVALID
    default_help = "Fix the listed lines and load again, or skip them with --on-error quarantine."
    python_help = "error.details['violations'] lists the lines to fix; Options(quarantine=FILE) loads the others."


class Unsure(Exception):
    """A fast reader cannot decide; a slower, exact one does."""


@dataclass(slots=True)
class Problems:
    """Collects errors; stops once there are too many."""

    most: ClassVar[int] = PROBLEMS_MAX
    keeps_good: ClassVar[bool] = False  # whether rows without problems are wanted, too
    found: list[Violation] = field(default_factory=list)

    def add(self, problem: Violation) -> None:
        self.found.append(problem)
        if len(self.found) >= self.most:
            self.settle()

    def extend(self, problems: Sequence[Violation]) -> None:
        for problem in problems:
            self.add(problem)

    def settle(self) -> None:
        """Raise if there were errors."""
        if self.found:
            self.found.sort(key=lambda problem: (problem.file or "", problem.line or 0))
            helps = ZONE_HELPS if any(p.rule == NO_ZONE for p in self.found) else {}
            raise InputInvalid(_summary(self.found), details=_details(self.found), **helps)


class Gathered(Problems):
    """Keeps all errors for another component to decide."""

    most = sys.maxsize

    def settle(self) -> None:
        """Nothing is raised here."""

    def taken(self) -> tuple[Violation, ...]:
        """The errors collected since the last call."""
        found, self.found = tuple(self.found), []
        return found


class SortedOut(Gathered):
    """Keeps all errors, and the rows without problems."""

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
