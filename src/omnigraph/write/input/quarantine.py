"""Rows rejected by a load, in a file: the errors of each, and the row itself if it is from a file.

The file has JSON lines, one per row, on every plane:

    {"type": "Person", "file": "people.csv", "line": 8, "row": "Ada,old", "reasons": [{"rule": "type", …}]}

`reasons` are violations in the form of reports. `row` is the text of the row in its file, None for rows from
memory. Fix the rows, and load them like any other file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from omnigraph.errors import Kind, OmnigraphError, OptionInvalid, Violation
from omnigraph.model.frozen import frozen
from omnigraph.write.input.files import is_one_array, open_file
from omnigraph.write.input.options import Options
from omnigraph.write.input.tables import suffix_of

QUARANTINE_ROUNDS_MAX = 64  # each rejects rows that depend on those rejected before
ROW_LINES_MAX = 1_000  # of a row whose cells have line breaks
QUOTE = b'"'
BLOCK_BYTES = 4 << 20
TEXTS = (".csv", ".tsv", ".ndjson", ".jsonl", ".json", "")
Place = tuple[str, str | None, int]  # of a row: its type, its file, its line


@frozen
class QuarantinedRow:
    """A rejected row, and why."""

    type_name: str
    file: str | None
    line: int
    reasons: tuple[Violation, ...]
    row: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The content of a line of the file."""
        return {
            "type": self.type_name,
            "file": self.file,
            "line": self.line,
            "row": self.row,
            "reasons": [reason.to_json() for reason in self.reasons],
        }


class TooManyFailures(OmnigraphError):
    """A load would reject more rows than allowed."""

    code, kind = "too_many_failures", Kind.INVALID
    default_help = "Nothing was changed. Fix the input, or allow more with --max-failures."
    python_help = "Nothing was changed. Fix the input, or allow more with Options(failures_max=N)."


def refuse_too_many(rows: int, options: Options) -> None:
    """Reject a load that leaves out more rows than allowed."""
    most = options.failures_max
    if most is not None and rows > most:
        raise TooManyFailures(
            f"{rows:,} rows or more cannot be loaded, and {most:,} may be left out",
            details={"limit": "failures_max", "max": most, "actual": rows},
        )


def endless() -> OmnigraphError:
    """Each round of rejected rows leaves others without their ends."""
    return OptionInvalid("the rows that are left out leave ever more rows without their ends")


def left_out(found: Iterable[Violation]) -> dict[Place, tuple[Violation, ...]]:
    """Violations by row; each must be about a row with a line."""
    places: dict[Place, list[Violation]] = {}
    for violation in found:
        if violation.line is None:
            raise OptionInvalid(
                f"a quarantine is for rows, and this is not about one: {violation.message}",
                help="Fix it, or load without a quarantine to see all errors.",
            )
        place = (violation.type_name, violation.file, violation.line)
        places.setdefault(place, []).append(violation)
    return {place: tuple(why) for place, why in places.items()}


def write_quarantine(
    path: str | os.PathLike[str], rows: Mapping[Place, Sequence[Violation]]
) -> dict[str, int]:
    """Write the file, which must not exist yet; how many rows of each type are in it."""
    counts: dict[str, int] = {}
    target = Path(path)
    try:
        with target.open("x", encoding="utf-8") as out:
            for row in _with_text(rows):
                out.write(json.dumps(row.to_json(), ensure_ascii=False, default=str) + "\n")
                counts[row.type_name] = counts.get(row.type_name, 0) + 1
    except FileExistsError:
        raise OptionInvalid(
            f"the quarantine {target} already exists", help="Name a new file."
        ) from None
    except OSError as failure:
        raise OptionInvalid(f"the quarantine {target} cannot be written: {failure}") from failure
    return counts


def require_new(path: str | os.PathLike[str]) -> None:
    """Refuse an existing file, before anything is read."""
    if Path(path).exists():
        raise OptionInvalid(f"the quarantine {path} already exists", help="Name a new file.")


def _with_text(rows: Mapping[Place, Sequence[Violation]]) -> Iterator[QuarantinedRow]:
    ordered = sorted(rows, key=lambda place: (place[1] or "", place[2], place[0]))
    for file, places in groupby(ordered, key=lambda place: place[1]):
        these = list(places)
        texts = {} if file is None else _texts(file, {line for _, _, line in these})
        for place in these:
            name, _, line = place
            yield QuarantinedRow(name, file, line, tuple(rows[place]), texts.get(line))


def _texts(file: str, lines: set[int]) -> dict[int, str]:
    """Rows as written in a text file, by the line they begin at; empty for binary files."""
    if suffix_of(file) not in TEXTS:
        return {}
    lines_max = ROW_LINES_MAX if suffix_of(file) in (".csv", ".tsv") else 1
    try:
        if is_one_array(file):
            return {}
        with open_file(file) as stream:
            return {
                line: row.decode("utf-8", "replace").rstrip("\r\n")
                for line, row in _rows_at(stream, sorted(lines), lines_max)
            }
    except OmnigraphError:  # a stream that can be read only once
        return {}


def _rows_at(stream: Any, lines: Sequence[int], lines_max: int) -> Iterator[tuple[int, bytes]]:
    """The rows that begin at some lines, given in order: each has several lines while a quote is open."""
    blocks = _blocks_of_lines(stream)
    held, first = [b""], 0  # some lines, and the number of the first
    for line in lines:
        while first + len(held) < line + lines_max and (more := next(blocks, None)) is not None:
            kept = held[line - first :]
            held, first = kept + more, first + len(held) - len(kept)
        row: list[bytes] = []
        quotes = 0
        for text in held[line - first : line - first + lines_max]:
            row.append(text)
            quotes += text.count(QUOTE)
            if quotes % 2 == 0:
                break
        if row:
            yield line, b"\n".join(row)


def _blocks_of_lines(stream: Any) -> Iterator[list[bytes]]:
    rest = b""
    while block := bytes(stream.read(BLOCK_BYTES)):
        *lines, rest = (rest + block).split(b"\n")
        yield lines
    yield [rest]
