"""Which tests run which lines, and how long each takes: found by one run of the tests under coverage."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import coverage
import pytest

from tests.support.tidy import ROOT

ROOMS = {
    "core": ("tests/unit/core", "tests/unit/write", "tests/sim"),
    "merge": ("tests/unit/merge", "tests/unit/write", "tests/merge_truth_table"),
    "validate": ("tests/unit/validate", "tests/unit/write"),
}
SECONDS_MAX = 60.0  # of tests for one change


@dataclass(frozen=True, slots=True)
class Reach:
    """Lines of files, by the tests that run them; `seconds` of each test."""

    lines: dict[str, dict[int, list[str]]]
    seconds: dict[str, float]

    def tests_of(self, path: Path, line: int) -> list[str]:
        """The tests to ask about a line: those named after the module, then quick ones of many files."""
        of_file = self.lines.get(str(path.relative_to(ROOT)), {})
        found = of_file.get(line) or sorted({test for tests in of_file.values() for test in tests})
        named = f"test_{path.stem}.py"
        mixed = sorted(self._mixed(found), key=lambda test: named not in test)
        return list(self._affordable(mixed))

    def _mixed(self, tests: Sequence[str]) -> list[str]:
        """One of each file, then the next of each."""
        by_file: dict[str, list[str]] = defaultdict(list)
        for test in sorted(tests, key=lambda test: (self.seconds.get(test, 0.0), test)):
            by_file[test.partition("::")[0]].append(test)
        ranked = [(rank, test) for group in by_file.values() for rank, test in enumerate(group)]
        return [test for _, test in sorted(ranked)]

    def _affordable(self, tests: Sequence[str]) -> Iterator[str]:
        left = SECONDS_MAX
        for test in tests:
            left -= self.seconds.get(test, 0.0)
            if left < 0:
                return
            yield test

    def save(self, place: Path) -> None:
        place.parent.mkdir(exist_ok=True)
        place.write_text(json.dumps({"lines": self.lines, "seconds": self.seconds}))

    @classmethod
    def load(cls, place: Path) -> Reach:
        kept = json.loads(place.read_text())
        lines = {
            path: {int(line): tests for line, tests in of.items()}
            for path, of in kept["lines"].items()
        }
        return cls(lines, kept["seconds"])


class _Watch:
    """Tells coverage which test runs, and times it."""

    def __init__(self, watched: coverage.Coverage) -> None:
        self._watched = watched
        self.seconds: dict[str, float] = {}

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._watched.switch_context(item.nodeid)
        began = time.process_time()
        yield
        self.seconds[item.nodeid] = time.process_time() - began
        self._watched.switch_context("")


def explore(rooms: Sequence[str]) -> Reach:
    """Run the tests of some rooms once."""
    folders = [str(ROOT / "src" / "omnigraph" / room) for room in rooms]
    watched = coverage.Coverage(
        data_file=None, source=folders, concurrency=["thread", "greenlet"], config_file=False
    )
    watched.set_option("run:source", folders)
    watch = _Watch(watched)
    tests = sorted({test for room in rooms for test in ROOMS[room]})
    watched.start()
    code = pytest.main(["-q", "-p", "no:cacheprovider", *tests], plugins=[watch])
    watched.stop()
    if code != pytest.ExitCode.OK:
        raise RuntimeError("the tests fail without any change")
    return Reach(_by_line(watched.get_data()), watch.seconds)


def _by_line(data: Any) -> dict[str, dict[int, list[str]]]:
    found: dict[str, dict[int, list[str]]] = {}
    for file in data.measured_files():
        by_line = data.contexts_by_lineno(file)
        relative = str(Path(file).relative_to(ROOT))
        found[relative] = {
            line: sorted(name for name in names if name) for line, names in by_line.items()
        }
    return found
