"""Checks: named queries that a graph must satisfy, read from a `.gq` text.

Every query of the text is a check of its name. `@description` is the message when it fails, `@severity` is "error" or
"warning", and one more annotation names the measure and its bounds:

    @rows("0")           the rows the query returns; the default
    @new_rows("0")       rows it returns now and did not return before
    @lost_rows("..1%")   rows it returned before and does not return now
    @value("-1%..5%")    the number it returns, as a change since before

A bound is a number, or two with `..` between them of which one may be left out; with `%` it is a share of what was
there before.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from omnigraph.errors import Kind, OmnigraphError
from omnigraph.lang.query import ast
from omnigraph.lang.query.files import parse
from omnigraph.lang.query.parser import CHECK_ANNOTATIONS
from omnigraph.lang.source import Source
from omnigraph.model.frozen import frozen
from omnigraph.values.spelling import fields_json

CHECKS_MAX = 1_000  # of one graph
ERROR, WARNING = "error", "warning"
ROWS, NEW_ROWS, LOST_ROWS, VALUE = MEASURES = CHECK_ANNOTATIONS[1:]
NUMBER = r"[+-]?[0-9]{1,15}(?:\.[0-9]{1,9})?"
BOUND = re.compile(rf"(?P<least>{NUMBER})?(?P<p1>%)?(?P<dots>\.\.)?(?P<most>{NUMBER})?(?P<p2>%)?")


class CheckInvalid(OmnigraphError):
    """A text of checks cannot be used.

    A check is a read without parameters. It has at most one of @rows, @new_rows, @lost_rows and @value, whose text is a
    bound such as "0", "..10", "5.." or "-1%..5%".
    """

    code, kind = "check_invalid", Kind.INVALID
    default_help = "See docs/guides/checks.md for the syntax of checks."


class CheckNotFound(OmnigraphError):
    """No check has this name."""

    code, kind = "check_not_found", Kind.NOT_FOUND
    default_help = "`omnigraph check --list` shows all checks."


@frozen
class CheckBound:
    """What a measure may be."""

    least: float | None = 0
    most: float | None = 0
    percent: bool = False

    def holds(self, measured: float) -> bool:
        """Whether a measure lies within."""
        over = self.least is None or measured >= self.least
        return over and (self.most is None or measured <= self.most)

    def __str__(self) -> str:
        mark = "%" if self.percent else ""
        low, high = ("" if n is None else f"{n:g}{mark}" for n in (self.least, self.most))
        return low if self.least == self.most else f"{low}..{high}"


@frozen
class GraphCheck:
    """One check. `text` is its query as it was written."""

    name: str
    text: str
    message: str
    severity: str = ERROR
    measure: str = ROWS
    bound: CheckBound = CheckBound()

    @property
    def compares(self) -> bool:
        """Whether it compares two states."""
        return self.measure != ROWS

    def to_json(self) -> dict[str, Any]:
        """The shape every surface uses."""
        return fields_json(self) | {"bound": str(self.bound)}


def parse_checks(text: str, name: str = "checks") -> tuple[GraphCheck, ...]:
    """The checks of a text, in its order.

    >>> found = parse_checks('query q() @lost_rows("..1%") { match { $p: Person } return { $p.name } }')
    >>> found[0].measure, str(found[0].bound)
    ('lost_rows', '..1%')
    """
    tree = parse(Source(text, name))
    if tree.statement is not None or tree.settings:
        raise CheckInvalid("checks are queries; settings and statements are not allowed here")
    checks = tuple(_check(query, text) for query in tree.queries)
    seen: set[str] = set()
    for check in checks:
        if check.name in seen:
            raise CheckInvalid(f"two checks are named `{check.name}`")
        seen.add(check.name)
    if len(checks) > CHECKS_MAX:
        raise CheckInvalid(f"there are {len(checks)} checks, more than {CHECKS_MAX}")
    return checks


def _check(query: ast.Query, text: str) -> GraphCheck:
    notes = dict(query.notes)
    severity = notes.pop("severity", ERROR)
    if severity not in (ERROR, WARNING):
        raise CheckInvalid(f"check `{query.name}`: @severity is error or warning, not {severity!r}")
    if query.params or not isinstance(query.body, ast.Read):
        raise CheckInvalid(f"check `{query.name}` must be a read without parameters")
    if len(notes) > 1:
        raise CheckInvalid(f"check `{query.name}` has two measures: @{', @'.join(notes)}")
    measure, given = next(iter(notes.items()), (ROWS, "0"))
    bound = parse_bound(given, query.name)
    if bound.percent and measure in (ROWS, NEW_ROWS):
        raise CheckInvalid(
            f"check `{query.name}`: @{measure} counts rows; it does not take a percentage"
        )
    written = text[query.at.start : query.at.end]
    message = query.description or f"@{measure} is not within {bound}"
    return GraphCheck(query.name, written, message, severity, measure, bound)


def parse_bound(text: str, check: str) -> CheckBound:
    """A bound from its text; `check` is named in errors."""
    found = BOUND.fullmatch(text.replace(" ", ""))
    if found is None or (found["least"], found["most"]) == (None, None):
        raise CheckInvalid(f"check `{check}`: {text!r} is not a bound such as 0, ..10 or -1%..5%")
    if found["dots"] is None and found["most"] is not None:
        raise CheckInvalid(f"check `{check}`: {text!r} is not a bound such as 0, ..10 or -1%..5%")
    given = {side: found[side] for side in ("least", "most") if found[side] is not None}
    marks = {"least": found["p1"], "most": found["p2"]}
    percent = {marks[side] is not None for side in given}
    unused = any(marks[side] is not None for side in marks if side not in given)
    if len(percent) > 1 or unused:
        raise CheckInvalid(
            f"check `{check}`: either both ends of the bound {text!r} are in %, or neither"
        )
    least, most = (None if found[s] is None else float(found[s]) for s in ("least", "most"))
    if found["dots"] is None:
        most = least
    if least is not None and most is not None and least > most:
        raise CheckInvalid(f"check `{check}`: the bound {text!r} is empty")
    return CheckBound(least, most, percent == {True})


# --- three ways --------------------------------------------------------------------------------------------------


@frozen
class CheckConflict:
    """A check that both sides changed differently; None: the side removed it."""

    name: str
    base: str | None
    ours: str | None
    theirs: str | None


@frozen
class MergedChecks:
    """The merged text, or the conflicts to resolve."""

    text: str
    conflicts: tuple[CheckConflict, ...] = ()


def merge_checks(base: str, ours: str, theirs: str, take: str | None = None) -> MergedChecks:
    """Merges two texts of checks with a common base, check by check; `take` prefers a side: ours or theirs."""
    if theirs in (ours, base):
        return MergedChecks(ours)
    if ours == base:
        return MergedChecks(theirs)
    sides = [_by_name(text) for text in (base, ours, theirs)]
    names = dict.fromkeys([*sides[1], *sides[2], *sides[0]])
    merged: dict[str, str] = {}
    conflicts: list[CheckConflict] = []
    for name in names:
        was, mine, yours = (side.get(name) for side in sides)
        if mine != yours and was not in (mine, yours) and take is None:
            conflicts.append(CheckConflict(name, was, mine, yours))
            continue
        chosen = _chosen(was, mine, yours, take)
        if chosen is not None:
            merged[name] = chosen
    return MergedChecks(_text(merged.values()), tuple(conflicts))


def _chosen(was: str | None, mine: str | None, yours: str | None, take: str | None) -> str | None:
    if was in (mine, yours):
        return yours if was == mine else mine
    return yours if take == "theirs" else mine


def _by_name(text: str) -> Mapping[str, str]:
    return {check.name: check.text for check in parse_checks(text)}


def _text(parts: Iterable[str]) -> str:
    return "\n\n".join(parts) + "\n" if parts else ""
