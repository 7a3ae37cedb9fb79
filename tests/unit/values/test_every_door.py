"""Every spelling of every type is taken or refused alike at every door, and refused in the same words.

Three doors differ by their nature, as `docs/reference/values.md` says: columns of Arrow have types, cells of CSV are
texts, and a literal in a query has a type of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import product
from pathlib import Path

import pyarrow as pa
import pytest

from omnigraph.errors import OmnigraphError
from omnigraph.lang.diagnostics import LanguageError
from omnigraph.model.types import INTEGER_RANGES
from omnigraph.write.input.options import Options
from omnigraph.write.input.problems import InputInvalid

from . import doors
from .doors import (
    JSON_DOORS,
    PYTHON_DOORS,
    Door,
    cell,
    default,
    lines,
    literal,
    many_lines,
    other_lines,
    record,
    row,
    served,
    table,
)
from .spellings import CELLS, JSON, PYTHON, REFUSED, Case

NUMBERS = ("I32", "U32", "I64", "U64", "F32", "F64")
TIMES = ("Date", "DateTime")
RANGES: dict[str, tuple[int, int]] = {str(s): bounds for s, bounds in INTEGER_RANGES.items()}
SHAPE = re.compile(r" of type .+: expected .+")


def by_kind(cases: Iterable[Case | None]) -> pytest.MarkDecorator:
    """A test for each type, which goes through its spellings."""
    found: dict[str, list[Case]] = {}
    for case in cases:
        if case is not None:
            found.setdefault(case.kind, []).append(case)
    return pytest.mark.parametrize("cases", found.values(), ids=found.keys())


def check(door: Door, case: Case, folder: Path) -> None:
    if case.stored is not REFUSED:
        found = door(case.kind, case.value, folder)
        assert repr(found) == repr(case.stored), f"{door.__name__} takes {case} as {found!r}"
        return
    try:
        taken = door(case.kind, case.value, folder)
    except OmnigraphError as refusal:
        error = refusal
    else:
        pytest.fail(f"{door.__name__} takes {case} as {taken!r}")
    if isinstance(error, LanguageError) or case.kind.startswith("enum") or case.value == "\ud800":
        return  # found by rules of a language, of rows or of requests
    [told, *_] = error.details["violations"]
    assert told["rule"] in ("type", "range", "timezone", "json", "blob_address", "record")
    worded = told["rule"] in ("json", "record") or door is served
    assert worded or SHAPE.search(told["message"]), told["message"]


@by_kind(JSON)
def test_what_json_can_spell(cases: list[Case], tmp_path: Path) -> None:
    for case, door in product(cases, JSON_DOORS):
        if door is not default or _has_default(case):
            check(door, case, tmp_path)


def _has_default(case: Case) -> bool:
    """A blob has no default, and a schema no literal for an object or a null."""
    return case.kind != "Blob" and "{" not in str(case.value) and "None" not in str(case.value)


@by_kind(PYTHON)
def test_what_only_python_holds(cases: list[Case], tmp_path: Path) -> None:
    for case, door in product(cases, PYTHON_DOORS):
        check(door, case, tmp_path)


@pytest.mark.parametrize(
    "door",
    [record, row, lines, many_lines, other_lines, table, cell],
    ids=lambda door: door.__name__,
)
def test_a_load_may_name_the_zone_of_times_without_one(
    door: Door, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doors, "OPTIONS", Options(assume_timezone="Europe/Rome"))
    for text, utc in (
        ("2020-07-01T12:00:00", "2020-07-01T10:00:00Z"),
        ("2020-01-01 12:00", "2020-01-01T11:00:00Z"),
        ("1960-07-01 12:00:00.123456", "1960-07-01T11:00:00.123Z"),
        ("2040-07-01T12:00:00", "2040-07-01T10:00:00Z"),
        ("2020-07-01T12:00:00Z", "2020-07-01T12:00:00Z"),
        ("2020-07-01T12:00:00+05:00", "2020-07-01T07:00:00Z"),
        ("2020-07-01", "2020-07-01T00:00:00Z"),
    ):
        assert door("DateTime", text, tmp_path) == door("DateTime", utc, tmp_path), text
    for twice_or_never in ("2020-10-25T02:30:00", "2020-03-29T02:30:00"):
        with pytest.raises(InputInvalid, match="a time that happens once in Europe/Rome"):
            door("DateTime", twice_or_never, tmp_path)


# --- columns of Arrow have types -----------------------------------------------------------------------------------


def in_a_column(case: Case) -> Case | None:
    """A number without a fraction is a whole number, whatever the type of its column; some values make no column."""
    try:
        kind = pa.array([case.value]).type
    except (pa.ArrowException, OverflowError, UnicodeEncodeError):
        return None
    low, high = RANGES.get(case.kind, (1, 0))
    if isinstance(case.value, float) and case.value.is_integer() and low <= case.value <= high:
        return case._replace(stored=int(case.value))
    return None if pa.types.is_struct(kind) else case


@by_kind(map(in_a_column, JSON))
def test_columns_of_arrow(cases: list[Case], tmp_path: Path) -> None:
    for case in cases:
        check(table, case, tmp_path)


# --- cells of CSV are texts ----------------------------------------------------------------------------------------


def in_a_cell(case: Case) -> Case | None:
    """What JSON spells, spelt in a cell; `CELLS` has what only a cell can spell."""
    is_text, plain = isinstance(case.value, str), "[" not in case.kind and "(2)" not in case.kind
    if is_text and (not case.value or "\ud800" in case.value):
        return None  # an empty cell that is quoted is an empty text; half a character is no UTF-8
    if is_text and (case.kind in NUMBERS or case.kind == "Bool" or not plain):
        return None
    if not is_text and plain and case.kind not in NUMBERS and case.kind != "Bool":
        return case._replace(stored=REFUSED) if case.kind in TIMES else None
    if (
        not is_text
        and isinstance(case.value, bool | int)
        and case.kind in ("Bool", "F32", "F64", "I32", "I64")
    ):
        return None if isinstance(case.value, bool) != (case.kind == "Bool") else case
    return case


@by_kind([*CELLS, *map(in_a_cell, JSON)])
def test_cells_of_csv(cases: list[Case], tmp_path: Path) -> None:
    for case in cases:
        check(cell, case, tmp_path)


# --- a literal has a type of its own -------------------------------------------------------------------------------


def as_literal(case: Case) -> Case | None:
    """A text is a String, never a number; a number is never a time; there are no objects."""
    members = case.value if isinstance(case.value, list) else [case.value]
    if "{" in str(case.value) or "\ud800" in str(case.value):
        return None
    scalar = case.kind.strip("[]")
    crossed = any(isinstance(m, str) for m in members) and scalar in NUMBERS
    crossed |= any(not isinstance(m, str) for m in members) and scalar in TIMES
    return case._replace(stored=REFUSED) if crossed else case


@by_kind(map(as_literal, JSON))
def test_literals(cases: list[Case], tmp_path: Path) -> None:
    for case in cases:
        check(literal, case, tmp_path)
