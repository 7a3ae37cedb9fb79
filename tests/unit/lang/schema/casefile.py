"""Reads the case files of tests/cases/schema."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CASES = Path(__file__).parents[3] / "cases" / "schema"
HARBOUR = (CASES / "harbour.pg").read_text()


@dataclass(frozen=True)
class Expected:
    """One line after `=>`: a finding, its place, the suggestion and words of the message."""

    severity: str
    code: str
    line: int
    column: int
    suggestion: str | None
    words: tuple[str, ...]


@dataclass(frozen=True)
class Case:
    title: str
    text: str
    expected: tuple[Expected, ...]


EXPECTED = re.compile(
    r"=> (?P<warning>warning )?(?P<code>\S+) (?P<line>\d+):(?P<column>\d+)"
    r"(?: \[(?P<suggestion>\S+)\])?(?P<words>.*)"
)


def rules() -> list[Case]:
    """The cases of rules.txt: `# title`, the schema text, then `=>` lines."""
    found = []
    for chunk in re.split(r"(?m)^# ", (CASES / "rules.txt").read_text())[1:]:
        title, _, rest = chunk.partition("\n")
        text, _, expected = rest.partition("\n=> ")
        lines = ("=> " + expected).rstrip().splitlines()
        found.append(Case(title, text, tuple(_expected(line) for line in lines if line != "=> ok")))
    return found


def _expected(line: str) -> Expected:
    match = EXPECTED.fullmatch(line)
    assert match is not None, f"not an expectation: {line!r}"
    return Expected(
        "warning" if match["warning"] else "error",
        match["code"],
        int(match["line"]),
        int(match["column"]),
        match["suggestion"],
        tuple(match["words"].split()),
    )


@dataclass(frozen=True)
class Typo:
    right: str
    wrong: str
    suggestion: str


def typos() -> list[Typo]:
    """The lines of typos.txt: what the harbour schema says, what was typed, what was meant."""
    lines = (CASES / "typos.txt").read_text().splitlines()
    return [Typo(*line.replace("\\n", "\n").split(" => ")) for line in lines]


def conformance() -> list[dict[str, Any]]:
    """The conformance cases about schemas and their migrations."""
    return [json.loads(line) for line in (CASES / "conformance.jsonl").read_text().splitlines()]


@dataclass(frozen=True)
class Migration:
    title: str
    before: str
    after: str
    expected: tuple[str, ...]


def migrations() -> list[Migration]:
    """The cases of migrations.txt: `# title`, the accepted schema, `>>>`, the desired one, then `=>` lines."""
    found = []
    for chunk in re.split(r"(?m)^# ", (CASES / "migrations.txt").read_text())[1:]:
        title, _, rest = chunk.partition("\n")
        before, _, rest = rest.partition("\n>>>\n")
        after, *expected = rest.rstrip().split("\n=> ")
        found.append(Migration(title, before, after, tuple(expected)))
    return found


@dataclass(frozen=True)
class Merge:
    title: str
    base: str
    ours: str
    theirs: str
    merged: str | None
    conflicts: tuple[str, ...]


def merges() -> list[Merge]:
    """The cases of merges.txt: three schemas, then `=>` with the merged one or `!!` lines with conflicts."""
    found = []
    for chunk in re.split(r"(?m)^# ", (CASES / "merges.txt").read_text())[1:]:
        title, _, rest = chunk.partition("\n")
        base, _, rest = rest.partition("\n>>> ours\n")
        ours, _, rest = rest.partition("\n>>> theirs\n")
        theirs, *conflicts = rest.rstrip().split("\n!! ")
        theirs, _, merged = theirs.partition("\n=> ")
        found.append(Merge(title, base, ours, theirs, merged or None, tuple(conflicts)))
    return found
