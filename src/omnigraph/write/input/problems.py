"""What is wrong with an input, gathered up to a bound and reported together."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from omnigraph.errors import Kind, OmnigraphError, Violation

PROBLEMS_MAX = 100
SHOWN_CHARACTERS_MAX = 400  # of a text in a report


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

    most: ClassVar[int] = PROBLEMS_MAX
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


def violation(
    misfit: Misfit, type_name: str, file: str | None = None, line: int | None = None
) -> Violation:
    """A misfit at its place."""
    return Violation(
        rule=misfit.rule,
        type_name=type_name,
        id=None,
        message=_text(misfit.message),
        property=None if misfit.name is None else _text(misfit.name),
        value=_value(misfit.value),
        file=file,
        line=line,
    )


def _text(text: str) -> str:
    """A text as it can be reported: of bounded length, and Unicode; JSON can spell half a character."""
    if len(text) > SHOWN_CHARACTERS_MAX:
        text = text[:SHOWN_CHARACTERS_MAX] + "…"
    return text.encode("utf-8", "backslashreplace").decode()


def _value(value: Any) -> Any:
    match value:
        case str():
            return _text(value)
        case list() | dict():
            text = _spelt(value)
            fits = len(text) <= SHOWN_CHARACTERS_MAX and "\\ud" not in text
            return value if fits else _text(text)
        case _:
            return value


def _spelt(value: Any) -> str:
    try:
        return json.dumps(value)
    except RecursionError:
        return "…"


def _summary(found: Sequence[Violation]) -> str:
    first = found[0]
    place = f"{first.file}, " if first.file else ""
    place += f"line {first.line}: " if first.line is not None else ""
    more = len(found) - 1
    bound = " or more" if len(found) >= PROBLEMS_MAX else ""
    return place + first.message + (f" (and {more}{bound} other problems)" if more else "")


def _details(found: Sequence[Violation]) -> dict[str, Any]:
    return {"violations": [problem.to_json() for problem in found]}
