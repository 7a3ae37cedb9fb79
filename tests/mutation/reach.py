"""Which tests run which lines, and how long each takes: found by running the tests once under coverage.

What is known of a test file stays known until it, or a source it runs, is another.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import coverage
import pytest

from tests.support.tidy import ROOT

ROOMS = {
    "core": ("tests/unit/core", "tests/unit/write", "tests/unit/merge"),
    "merge": (
        "tests/unit/merge",
        "tests/unit/write/test_merge.py",
        "tests/unit/write/test_undo.py",
        "tests/merge_truth_table",
        "tests/unit/test_branch.py",
        "tests/unit/test_points.py",
    ),
    "validate": ("tests/unit/validate", "tests/unit/write"),
}
SOURCES = ROOT / "src" / "omnigraph"
SECONDS_MAX = 10.0  # of tests for one change
TEST_SECONDS_MAX = 5.0  # of one test, where others run the same line

Lines = dict[str, dict[int, list[str]]]  # by file and line, the tests that run it


@dataclass(frozen=True, slots=True)
class Walk:
    """What the tests of one file run, and the seconds of each."""

    digest: str
    lines: Lines
    seconds: dict[str, float]


@dataclass(frozen=True, slots=True)
class Reach:
    """What is known, by test file."""

    walks: Mapping[str, Walk] = field(default_factory=dict)

    def tests_of(self, path: Path, line: int, files: Sequence[str]) -> list[str]:
        """The tests of some files to ask about a line: those named after the module first, the quick ones first."""
        source = str(path.relative_to(ROOT))
        walks = [self.walks[file] for file in files]
        seconds = {test: s for walk in walks for test, s in walk.seconds.items()}
        of_file = [walk.lines.get(source, {}) for walk in walks]
        found = {test for lines in of_file for test in lines.get(line, ())}
        found = found or {test for lines in of_file for tests in lines.values() for test in tests}
        named = f"test_{path.stem}.py"
        ordered = sorted(found, key=lambda test: (named not in test, seconds[test], test))
        return list(_affordable(ordered, seconds))

    def seconds(self, test: str) -> float:
        return self.walks[file_of(test)].seconds[test]

    def stale(self, files: Sequence[str]) -> list[str]:
        """Those of the test files of which nothing is known that still holds."""
        return [file for file in files if not self._holds(file)]

    def _holds(self, file: str) -> bool:
        walk = self.walks.get(file)
        return walk is not None and walk.digest == digest_of([file, *walk.lines])

    def save(self, place: Path) -> None:
        place.parent.mkdir(exist_ok=True)
        kept = {
            file: {"digest": walk.digest, "lines": walk.lines, "seconds": walk.seconds}
            for file, walk in self.walks.items()
        }
        place.write_text(json.dumps(kept))

    @classmethod
    def load(cls, place: Path) -> Reach:
        kept = json.loads(place.read_text()) if place.exists() else {}
        return cls({file: _walk(**walk) for file, walk in kept.items()})


def _walk(digest: str, lines: dict[str, dict[str, list[str]]], seconds: dict[str, float]) -> Walk:
    numbered = {path: {int(n): tests for n, tests in of.items()} for path, of in lines.items()}
    return Walk(digest, numbered, seconds)


def _affordable(tests: Sequence[str], seconds: Mapping[str, float]) -> Iterator[str]:
    """Slow tests only where there are no others: one of them, then."""
    quick = [test for test in tests if seconds[test] <= TEST_SECONDS_MAX]
    left = SECONDS_MAX
    for test in quick or sorted(tests, key=lambda test: seconds[test])[:1]:
        left -= seconds[test]
        yield test
        if left < 0:
            return


def file_of(test: str) -> str:
    return test.partition("::")[0]


def files_of(room: str) -> list[str]:
    """The test files of a room."""
    places = [ROOT / place for place in ROOMS[room]]
    found = [
        p for place in places for p in (place.rglob("test_*.py") if place.is_dir() else [place])
    ]
    return sorted({str(path.relative_to(ROOT)) for path in found})


def digest_of(files: Sequence[str]) -> str:
    """Whether some files are still what they were."""
    return hashlib.sha256("".join(_digest(file) for file in sorted(files)).encode()).hexdigest()


@cache
def _digest(file: str) -> str:
    place = ROOT / file
    return hashlib.sha256(place.read_bytes()).hexdigest() if place.exists() else "gone"


# --- running them ------------------------------------------------------------------------------------------------


class _Watch:
    """Tells coverage which test runs, and times it."""

    def __init__(self, watched: coverage.Coverage) -> None:
        self._watched = watched
        self.seconds: dict[str, dict[str, float]] = defaultdict(dict)
        self.failed: set[str] = set()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._watched.switch_context(item.nodeid)
        began = time.process_time()
        yield
        self.seconds[file_of(item.nodeid)][item.nodeid] = time.process_time() - began
        self._watched.switch_context("")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.add(file_of(report.nodeid))


def explore(known: Reach, files: Sequence[str]) -> Reach:
    """Run the tests of some files once; what is known of others stays. A file with a test that fails is left out."""
    folders = [str(SOURCES / room) for room in ROOMS]
    watched = coverage.Coverage(
        data_file=None, source=folders, concurrency=["thread", "greenlet"], config_file=False
    )
    watched.set_option("run:source", folders)
    watch = _Watch(watched)
    watched.start()
    pytest.main(["-q", "-p", "no:cacheprovider", *files], plugins=[watch])
    watched.stop()
    lines = _by_test_file(watched.get_data())
    walks = {
        file: Walk(digest_of([file, *lines[file]]), lines[file], watch.seconds[file])
        for file in files
        if file in watch.seconds and file not in watch.failed
    }
    return Reach({**known.walks, **walks})


def _by_test_file(data: Any) -> dict[str, Lines]:
    found: dict[str, Lines] = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    for source in data.measured_files():
        relative = str(Path(source).relative_to(ROOT))
        for line, tests in data.contexts_by_lineno(source).items():
            for test in sorted(filter(None, tests)):
                found[file_of(test)][relative][line].append(test)
    return found
