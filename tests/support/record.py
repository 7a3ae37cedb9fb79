"""The figures of long runs, written by the runs themselves.

A test or a tool says what it counted with `record`. Figures are kept, a line each, in a folder git ignores;
`python -m tests.support.record` puts the latest line of every name into the marked section of
docs/reliability.md. Nobody edits that section by hand, and a row stays until the same name is recorded again. What many
tests of one run count together is recorded in parts, which are added up.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from omnigraph import __version__
from tests.support import rings

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reliability.md"
KEPT = ROOT / ".recorded" / "runs.jsonl"
BEGIN = "<!-- recorded runs: begin (python -m tests.support.record) -->"
END = "<!-- recorded runs: end -->"
HEADER = "| what | figures | run | date | version | cores |\n|---|---|---|---|---|---|\n"
ROW = re.compile(r"^\| (?P<name>[^|]+) \| .* \|$", re.MULTILINE)

Figure = int | float | str


@dataclass(frozen=True, slots=True)
class Run:
    """One line of the record: what was counted, when, and on what."""

    name: str
    figures: Mapping[str, Figure]
    ring: str
    date: str
    version: str
    cores: int
    part_of: str = ""  # the run of tests whose parts are added up

    def row(self) -> str:
        told = ", ".join(f"{name} {_written(value)}" for name, value in self.figures.items())
        cells = (self.name, told, self.ring, self.date, self.version, str(self.cores))
        return "| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |"


def record(
    name: str, figures: Mapping[str, Figure], ring: str | None = None, *, part: bool = False
) -> None:
    """Keep what a long run counted; short runs keep nothing, unless the caller names its run.

    A part is added to the other parts of that name in the same run of tests.

    >>> record("kill -9 loops", {"cycles": 2000, "lost acknowledgements": 0})
    """
    ring = ring or rings.ring()
    if ring == rings.TEST:
        return
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M")
    run_of_tests = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
    run = Run(
        name,
        dict(figures),
        ring,
        now,
        __version__,
        os.cpu_count() or 1,
        run_of_tests if part else "",
    )
    _append(KEPT, run)


def latest(kept: Path = KEPT) -> dict[str, Run]:
    """The last line of every name, or the sum of the last parts."""
    lines = kept.read_text().splitlines() if kept.exists() else []
    found: dict[str, Run] = {}
    for run in (Run(**json.loads(line)) for line in lines):
        before = found.get(run.name)
        together = before is not None and run.part_of and run.part_of == before.part_of
        found[run.name] = _sum(before, run) if before is not None and together else run
    return found


def _sum(one: Run, other: Run) -> Run:
    added = {
        name: value if isinstance(value, str) else value + _number(one.figures.get(name))
        for name, value in other.figures.items()
    }
    return replace(other, figures={**one.figures, **added})


def _number(value: Figure | None) -> int | float:
    return 0 if value is None or isinstance(value, str) else value


def rendered(page: str, runs: Mapping[str, Run]) -> str:
    """The page with the rows of these runs; rows of other names stay as they are."""
    before, rest = page.split(BEGIN)
    section, after = rest.split(END)
    rows = {found["name"]: found[0] for found in ROW.finditer(section)}
    rows.pop("what", None)
    rows.update({_key(name): run.row() for name, run in runs.items()})
    table = "".join(f"{rows[name]}\n" for name in sorted(rows))
    return f"{before}{BEGIN}\n\n{HEADER}{table}\n{END}{after}"


def _key(name: str) -> str:
    return name.replace("|", "/")


def _append(kept: Path, run: Run) -> None:
    """One write of one short line: worker processes append to the same file without losing any."""
    kept.parent.mkdir(exist_ok=True)
    fields = {name: getattr(run, name) for name in Run.__slots__}
    line = json.dumps(fields) + "\n"
    file = os.open(kept, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(file, line.encode())
    finally:
        os.close(file)


def _written(value: Figure) -> str:
    match value:
        case str():
            return value
        case int():
            return f"{value:,}"
        case float():
            return f"{value:,.1f}"


def main() -> None:
    page = Path(sys.argv[1]) if len(sys.argv) > 1 else PAGE
    page.write_text(rendered(page.read_text(), latest()))


if __name__ == "__main__":
    main()
