"""Figures reach the page from the run that counted them, and from nowhere else."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support import record, rings

PAGE = f"# Page\n\nabove\n\n{record.BEGIN}\n\n{record.END}\n\nbelow\n"


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "recorded" / "runs.jsonl"
    monkeypatch.setattr(record, "KEPT", place)
    monkeypatch.setenv(rings.NIGHTLY_VARIABLE, "1")
    monkeypatch.delenv(rings.RING_VARIABLE, raising=False)
    return place


def page_after(page: str, kept: Path) -> str:
    return record.rendered(page, record.latest(kept))


def test_the_last_figures_of_a_name_win(kept: Path) -> None:
    record.record("kill loops", {"cycles": 1, "lost": 0})
    record.record("kill loops", {"cycles": 2_000, "lost": 0})
    page = page_after(PAGE, kept)
    assert "| kill loops | cycles 2,000, lost 0 | make nightly |" in page
    assert page.count("| kill loops |") == 1
    assert page.startswith("# Page\n\nabove")
    assert page.endswith("below\n")


def test_parts_of_one_run_are_added_up(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for run, part in (("one", 5), ("two", 100), ("two", 20)):
        monkeypatch.setenv("PYTEST_XDIST_TESTRUNUID", run)
        record.record("sequences", {"made": part, "wrong": 0, "seed": "any"}, part=True)
    assert "| sequences | made 120, wrong 0, seed any |" in page_after(PAGE, kept)
    record.record("sequences", {"made": 7})
    assert "| sequences | made 7 |" in page_after(PAGE, kept)


def test_rows_of_other_runs_stay(kept: Path) -> None:
    record.record("fuzz", {"seconds": 3600.04}, ring="make fuzz")
    page = page_after(PAGE, kept)
    kept.unlink()
    record.record("another", {"states": "all"})
    again = page_after(page, kept)
    assert "| fuzz | seconds 3,600.0 | make fuzz |" in again
    assert again.index("| another |") < again.index("| fuzz |")
    assert page_after(again, kept) == again


def test_a_name_cannot_break_the_table(kept: Path) -> None:
    record.record("a | b", {"c|d": 1})
    assert "| a / b | c/d 1 |" in page_after(PAGE, kept)
    assert page_after(page_after(PAGE, kept), kept).count("a / b") == 1


def test_short_runs_keep_nothing(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(rings.NIGHTLY_VARIABLE, "")
    record.record("kill loops", {"cycles": 3})
    assert not kept.exists()


def test_a_release_run_says_that_it_is_one(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(rings.RING_VARIABLE, "make release-check")
    record.record("kill loops", {"cycles": 3})
    assert record.latest(kept)["kill loops"].ring == "make release-check"


def test_workers_append_at_once(kept: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: record.record(f"run {n}", {"n": n}), range(200)))
    assert len(record.latest(kept)) == 200


def test_the_page_has_its_section() -> None:
    text = record.PAGE.read_text()
    assert text.count(record.BEGIN) == text.count(record.END) == 1
