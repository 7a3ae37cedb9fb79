"""A source text and the places in it."""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property
from typing import NamedTuple, Protocol

from omnigraph.errors import Span


class Located(Protocol):
    """Anything that has a place in a text: a token, a tree node's place."""

    @property
    def start(self) -> int: ...

    @property
    def end(self) -> int: ...


class Place(NamedTuple):
    """A stretch of the text, as character offsets. Lines and columns are computed only for what is reported."""

    start: int
    end: int


NOWHERE = Place(0, 0)


def between(first: Located, last: Located) -> Place:
    """From the start of one place to the end of another."""
    return Place(first.start, last.end)


class Source:
    """A text with a name, which turns offsets into lines and columns.

    >>> Source("node A {\\n  b: I32\\n}", "x.pg").span(Place(11, 12)).line
    2
    """

    def __init__(self, text: str, name: str = "") -> None:
        self.text = text
        self.name = name

    def __reduce__(self) -> tuple[type[Source], tuple[str, str]]:
        return Source, (self.text, self.name)

    @cached_property
    def line_starts(self) -> list[int]:
        starts = [0]
        while (found := self.text.find("\n", starts[-1])) >= 0:
            starts.append(found + 1)
        return starts

    def line_of(self, offset: int) -> int:
        """The line of an offset, counted from 1."""
        return bisect_right(self.line_starts, offset)

    def line_text(self, line: int) -> str:
        """One line without its ending."""
        starts = self.line_starts
        end = starts[line] if line < len(starts) else len(self.text)
        return self.text[starts[line - 1] : end].rstrip("\r\n")

    def span(self, at: Located) -> Span:
        """The full description of a place; an empty place is widened by one character if possible."""
        start = min(max(at.start, 0), len(self.text))
        end = min(max(at.end, start + 1), len(self.text))
        line = self.line_of(start)
        start16 = self._utf16(0, start)
        return Span(
            start=start,
            end=end,
            line=line,
            column=start - self.line_starts[line - 1] + 1,
            start16=start16,
            end16=start16 + self._utf16(start, end),
            source=self.name,
        )

    def _utf16(self, start: int, end: int) -> int:
        piece = self.text[start:end]
        return len(piece) if piece.isascii() else sum(2 if c > "\uffff" else 1 for c in piece)
