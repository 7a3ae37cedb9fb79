"""Verdicts are believed as long as what they rest on is the same, and tests are asked in an order that costs little."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.mutation import reach
from tests.mutation.judge import Judgement, Verdict
from tests.mutation.kept import Kept
from tests.mutation.mutants import Mutant
from tests.mutation.reach import Reach, Walk, digest_of

TESTS = ["tests/test_one.py::test_a", "tests/test_two.py::test_b"]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with two test files."""
    monkeypatch.setattr(reach, "ROOT", tmp_path)
    (tmp_path / "tests").mkdir()
    for name in ("one", "two"):
        (tmp_path / "tests" / f"test_{name}.py").write_text(name)
    reach._digest.cache_clear()
    return tmp_path


def rewrite(root: Path, name: str) -> None:
    (root / "tests" / f"test_{name}.py").write_text("another")
    reach._digest.cache_clear()


def mutant(root: Path) -> Mutant:
    return Mutant(root / "sample.py", "sample", 3, 7, "f", "1 -> 2", "the source")


def test_a_run_that_was_stopped_goes_on(root: Path) -> None:
    judged = Judgement(Verdict.KILLED, TESTS[1])
    Kept(root / "kept" / "verdicts").add(mutant(root), TESTS, judged)
    again = Kept(root / "kept" / "verdicts")
    assert again.find(mutant(root), TESTS) == judged
    assert again.find(replace(mutant(root), number=4), TESTS) is None
    assert again.find(replace(mutant(root), source="another"), TESTS) is None


def test_what_was_noticed_rests_on_the_test_that_noticed_it(root: Path) -> None:
    kept = Kept(root / "verdicts")
    kept.add(mutant(root), TESTS, Judgement(Verdict.KILLED, TESTS[1]))
    rewrite(root, "one")
    assert kept.find(mutant(root), TESTS[1:]) is not None
    rewrite(root, "two")
    assert kept.find(mutant(root), TESTS) is None, "the test that noticed it is another"


def test_what_was_not_noticed_rests_on_every_test(root: Path) -> None:
    kept = Kept(root / "verdicts")
    kept.add(mutant(root), TESTS, Judgement(Verdict.SURVIVED))
    assert kept.find(mutant(root), TESTS) is not None
    assert kept.find(mutant(root), TESTS[:1]) is None
    rewrite(root, "one")
    assert kept.find(mutant(root), TESTS) is None


def walk(lines: dict[int, list[str]], seconds: dict[str, float]) -> Walk:
    return Walk("", {"src/sample.py": lines}, seconds)


def test_the_module_s_own_tests_come_first_then_the_quick_ones(root: Path) -> None:
    slow, quick, own = (
        "tests/test_a.py::slow",
        "tests/test_b.py::quick",
        "tests/test_sample.py::own",
    )
    never = "tests/test_b.py::never"
    seconds = {slow: 1.0, quick: 0.1, own: 2.0, never: 9.0}
    tests = list(seconds)
    walks = {
        reach.file_of(test): walk(
            {7: [t for t in tests if reach.file_of(t) == reach.file_of(test)]}, seconds
        )
        for test in tests
    }
    found = Reach(walks).tests_of(root / "src/sample.py", 7, list(walks))
    assert found == [own, quick, slow], "slow tests are for lines nothing else runs"
    alone = {"tests/test_b.py": walk({7: [never]}, {never: 9.0})}
    assert Reach(alone).tests_of(root / "src/sample.py", 7, list(alone)) == [never]


def test_a_test_file_is_run_again_once_it_or_a_source_is_another(root: Path) -> None:
    (root / "src").mkdir()
    (root / "src/sample.py").write_text("source")
    file, source = "tests/test_one.py", "src/sample.py"
    known = Reach({file: Walk(digest_of([file, source]), {source: {1: []}}, {})})
    assert known.stale([file, "tests/test_two.py"]) == ["tests/test_two.py"]
    (root / source).write_text("another")
    reach._digest.cache_clear()
    assert known.stale([file]) == [file]
