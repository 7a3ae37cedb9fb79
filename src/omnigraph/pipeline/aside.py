"""The quarantine of a bulk load: rows that are left out and written to a file, as on the local plane.

Violations are found as for a refusal, with the file and line of every row; then the affected pieces are staged again
without those rows, until there are none. Rows that referred to rows left out are found in the next round.
"""

from __future__ import annotations

import json
import tempfile
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from pathlib import Path

from omnigraph.errors import OmnigraphError, OptionInvalid, Violation
from omnigraph.pipeline.judging import VerifiedLoad
from omnigraph.pipeline.stage import LeftOut, Staging
from omnigraph.validate.listing import Destination
from omnigraph.write.input.options import Options
from omnigraph.write.input.quarantine import (
    QUARANTINE_ROUNDS_MAX,
    Place,
    endless,
    left_out,
    refuse_too_many,
    require_new,
    write_quarantine,
)

Stage = Callable[[LeftOut], Staging]
Judge = Callable[[Staging, Destination], VerifiedLoad]
KNOWN = ("rule", "type", "id", "property", "value", "message", "file", "line")


@dataclass(slots=True)
class Aside:
    """The rows a load leaves out."""

    options: Options
    rows: dict[Place, tuple[Violation, ...]] = field(default_factory=dict)
    written: bool = False

    def sorted_out(self, stage: Stage, judge: Judge) -> VerifiedLoad:
        """A valid load of the valid rows; the others are written to the quarantine."""
        if not self.written:
            require_new(self.path)
        self.rows = {}
        skip: LeftOut = {}
        with tempfile.TemporaryDirectory(prefix="omnigraph-aside-") as folder:
            for _ in range(QUARANTINE_ROUNDS_MAX):
                staging = stage(skip)
                if staging.gathered:
                    raise OptionInvalid(
                        "a load on Spark can choose between rows of one id or keep a quarantine, not both",
                        help="Load with engine='local', or in two steps.",
                    )
                try:
                    return self._with_failures(
                        judge(staging, Destination(Path(folder), always=True))
                    )
                except OmnigraphError as error:
                    skip = self._more(error, staging)
        raise endless()

    @property
    def path(self) -> str:
        return self.options.quarantine or ""

    def _more(self, error: OmnigraphError, staging: Staging) -> LeftOut:
        """Further rows to leave out, from the list of a refusal; one that lists nothing is raised again."""
        file = error.details.get("violations_file")
        if file is None:
            raise error
        for place, why in left_out(_listed(Path(file))).items():
            self.rows[place] = (*self.rows.get(place, ()), *why)
        refuse_too_many(len(self.rows), self.options)
        return _by_split(self.rows, staging)

    def _with_failures(self, work: VerifiedLoad) -> VerifiedLoad:
        if not self.rows:
            return work
        if self.written:
            Path(self.path).unlink(missing_ok=True)
        self.written = True
        counts = write_quarantine(self.path, self.rows)
        return replace(work, outcome=replace(work.outcome, quarantined=counts))


def _listed(file: Path) -> Iterator[Violation]:
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            given = json.loads(line)
            extra = {name: value for name, value in given.items() if name not in KNOWN}
            rule, name, ident, prop, value, message, place, number = (given[n] for n in KNOWN)
            yield Violation(rule, name, ident, message, prop, value, place, number, extra)


def _by_split(rows: Iterable[Place], staging: Staging) -> LeftOut:
    """The lines to leave out of each split, in its numbering."""
    before = staging.first_lines()
    taken = {one.split: one.lines for one in staging.splits}
    of_file: dict[str, list[tuple[int, int]]] = {}  # the first line of each split
    for split in staging.inputs.splits:
        first = before[split.index] + 1 if taken[split.index] else split.first_line
        of_file.setdefault(split.file, []).append((first, split.index))
    for firsts in of_file.values():
        firsts.sort()
    found: dict[int, set[tuple[str, int]]] = {}
    for name, file, line in rows:
        for index in _splits_of(line, of_file.get(file or "", [])):
            found.setdefault(index, set()).add((name, line - before[index]))
    return {split: frozenset(lines) for split, lines in found.items()}


def _splits_of(line: int, firsts: Sequence[tuple[int, int]]) -> Iterator[int]:
    """The splits with a line, given the first line of each in order; several if the file is given several times."""
    at = bisect_right(firsts, line, key=itemgetter(0)) - 1
    begin = firsts[at][0] if at >= 0 else None
    while at >= 0 and firsts[at][0] == begin:
        yield firsts[at][1]
        at -= 1
