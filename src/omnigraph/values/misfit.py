"""Errors about a value that is not one of its type: the place, the type, what is expected and what was found."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

from omnigraph.errors import Violation
from omnigraph.model.types import PropType

SHOWN_CHARACTERS_MAX = 400  # of a text in a report
DESCRIBED_CHARACTERS_MAX = 60  # of a text in a message
DESCRIBED_BITS_MAX = 512  # of a number in a message


NO_ZONE = "timezone"  # the rule a date-time without a zone breaks


class Misfit(Exception):
    """A value is not one of its type, or a record not one of the schema; the text says what is expected."""

    def __init__(
        self,
        message: str,
        *,
        rule: str = "type",
        name: str | None = None,
        value: Any = None,
        row: int | None = None,
        wrong_kind: bool = False,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.rule = rule
        self.name = name
        self.value = value
        self.row = row  # of a column: which value it is
        self.wrong_kind = wrong_kind  # such as a text for a number, whatever the text is
        self.others: Iterable[Misfit] = ()  # further values of the same column, searched on request

    def __str__(self) -> str:
        return self.message

    def at(self, place: str, kind: PropType, name: str | None = None) -> Misfit:
        """The same with the place of the value, and the name of its property."""
        self.message = f"{place} of type {kind}: {self.message}"
        self.name = name
        return self

    def violation(
        self, type_name: str = "", file: str | None = None, line: int | None = None
    ) -> Violation:
        """The same as a report has it."""
        return Violation(
            rule=self.rule,
            type_name=type_name,
            id=None,
            message=_text(self.message),
            property=None if self.name is None else _text(self.name),
            value=_value(self.value),
            file=file,
            line=line,
        )


def unfit(expected: str, value: Any, *, rule: str = "type", wrong_kind: bool = False) -> Misfit:
    """A value where another was expected."""
    message = f"expected {expected}, got {described(value)}"
    return Misfit(message, rule=rule, value=value, wrong_kind=wrong_kind)


def described(value: Any) -> str:
    """What a value is, in words."""
    match value:
        case None:
            return "null"
        case bool():
            return f"the boolean {json.dumps(value)}"
        case int() if value.bit_length() > DESCRIBED_BITS_MAX:
            return "a far larger number"
        case int() | float():
            return f"the number {value}"
        case str():
            return f"the text {_short(value)!r}"
        case dt.datetime():
            return f"the date-time {value.isoformat()}"
        case dt.date():
            return f"the date {value.isoformat()}"
        case Mapping():
            return "an object"
        case bytes() | bytearray():
            return f"{len(value)} bytes"
        case _:
            return "a list" if isinstance(value, Sequence | Set) else f"a {type(value).__name__}"


def _short(text: str) -> str:
    if len(text) <= DESCRIBED_CHARACTERS_MAX:
        return text
    return text[: DESCRIBED_CHARACTERS_MAX - 3] + "..."


def _text(text: str) -> str:
    """A text as it can be reported: of bounded length, and Unicode; JSON can spell half a character."""
    if len(text) > SHOWN_CHARACTERS_MAX:
        text = text[:SHOWN_CHARACTERS_MAX] + "…"
    return text.encode("utf-8", "backslashreplace").decode()


def _value(value: Any) -> Any:
    """A value as JSON can report it; a number beyond 64 bits as text, since few readers of JSON hold it."""
    match value:
        case str():
            return _text(value)
        case int() if value.bit_length() > 64:
            return described(value).removeprefix("the number ")
        case None | int() | float() | dt.date():
            return value
    try:
        text = json.dumps(value)
    except (RecursionError, TypeError, ValueError):
        return None
    fits = len(text) <= SHOWN_CHARACTERS_MAX and "\\ud" not in text
    return value if fits else _text(text)
