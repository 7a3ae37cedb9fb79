"""Typed row predicates: what may be asked of a stored table.

A predicate names columns and values, never text of any engine. `storage/predicates.py` renders it for Lance, `holds`
semantics are SQL's three-valued logic: a row is selected only when the predicate is true for it.

Values are Python values in the column's own meaning: str, bool, int, float, datetime.date for Date columns, an aware
datetime.datetime for DateTime columns. `None` compares like SQL NULL.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Any

from omnigraph.model.value import value


class Op(StrEnum):
    """Comparison operators."""

    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="


@value
class Compare:
    """column op value; numbers compare by value whatever their widths (an I32 column against 2.5 is legal)."""

    column: str
    op: Op
    value: Any


@value
class In:
    """The column equals one of the values. Null members never match."""

    column: str
    values: tuple[Any, ...]


@value
class IsNull:
    column: str
    negated: bool = False


@value
class Contains:
    """The string column contains the needle as an exact, case-sensitive substring."""

    column: str
    needle: str


@value
class StartsWith:
    column: str
    prefix: str


@value
class Has:
    """The list column has a member equal to the value. A null list has none, and the answer for it is false."""

    column: str
    value: Any


@value
class And:
    parts: tuple[Predicate, ...]


@value
class Or:
    parts: tuple[Predicate, ...]


@value
class Not:
    """Three-valued negation: not unknown is unknown."""

    part: Predicate


@value
class IsNotTrue:
    """True where the part is false or unknown."""

    part: Predicate


@value
class Always:
    """The same truth for every row; `None` is unknown, so it selects nothing."""

    truth: bool | None


Predicate = (
    Compare | In | IsNull | Contains | StartsWith | Has | And | Or | Not | IsNotTrue | Always
)


def columns_of(predicate: Predicate) -> Iterator[str]:
    """The columns a predicate looks at, in order of appearance, with repetitions."""
    match predicate:
        case And(parts) | Or(parts):
            for part in parts:
                yield from columns_of(part)
        case Not(part) | IsNotTrue(part):
            yield from columns_of(part)
        case Always():
            return
        case _:
            yield predicate.column
