"""What is wrong with an input, gathered up to a bound and reported together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from omnigraph.errors import Kind, OmnigraphError, Violation

PROBLEMS_MAX = 100


class InputInvalid(OmnigraphError):
    """The input of a load cannot be read as rows of the schema.

    Nothing was written. The details list what is wrong, each with its file and line.
    """

    code, kind = "input_invalid", Kind.INVALID
    default_help = "Mend the lines named in the details and load again."


class Misfit(Exception):
    """A value or record does not fit; the text says why."""

    def __init__(
        self, message: str, *, rule: str = "type", name: str | None = None, value: Any = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.rule = rule
        self.name = name
        self.value = value
        self.row: int | None = None  # of a column: which value it is


class Unsure(Exception):
    """A fast way of reading cannot tell; a slower, exact one decides."""


@dataclass(slots=True)
class Problems:
    """Collects what is wrong; refuses to go on once there is too much."""

    found: list[Violation] = field(default_factory=list)

    def add(self, problem: Violation) -> None:
        self.found.append(problem)
        if len(self.found) >= PROBLEMS_MAX:
            self.settle()

    def extend(self, problems: Sequence[Violation]) -> None:
        for problem in problems:
            self.add(problem)

    def settle(self) -> None:
        """Raise if anything was wrong."""
        if self.found:
            raise InputInvalid(_summary(self.found), details=_details(self.found))


def violation(
    misfit: Misfit, type_name: str, file: str | None = None, line: int | None = None
) -> Violation:
    """A misfit at its place."""
    return Violation(
        rule=misfit.rule,
        type_name=type_name,
        id=None,
        message=misfit.message,
        property=misfit.name,
        value=misfit.value,
        file=file,
        line=line,
    )


def _summary(found: Sequence[Violation]) -> str:
    first = found[0]
    place = f"{first.file}, " if first.file else ""
    place += f"line {first.line}: " if first.line is not None else ""
    more = len(found) - 1
    bound = " or more" if len(found) >= PROBLEMS_MAX else ""
    return place + first.message + (f" (and {more}{bound} other problems)" if more else "")


def _details(found: Sequence[Violation]) -> dict[str, Any]:
    return {"violations": [problem.to_json() for problem in found]}
