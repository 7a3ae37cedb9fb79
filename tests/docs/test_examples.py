"""Every example of the documentation is run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import NOT_RUN, blocks, every_page, matches, relative, run_page

# Pages whose examples are run by a test beside the code they describe.
ELSEWHERE = {
    "docs/guides/branching.md",
    "docs/guides/loading.md",
    "docs/guides/search.md",
    "docs/guides/spark.md",
    "docs/reference/explain.md",
    "docs/reference/query-language.md",
    "docs/reference/schema-language.md",
}
PAGES = [page for page in every_page() if relative(page) not in ELSEWHERE and blocks(page)]


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path / "home"))
    assert run_page(page, tmp_path) == len(blocks(page))


def test_the_readme_is_among_them() -> None:
    assert "README.md" in {relative(page) for page in PAGES}


@pytest.mark.parametrize(
    ("line", "shown", "found"),
    [
        ("commit … on main", "x commit 12.3 on main y", True),
        ("commit … on main", "no commit", False),
    ],
)
def test_printed_lines_are_compared(line: str, shown: str, found: bool) -> None:
    assert matches(line, shown) is found


def test_kinds_of_blocks_that_are_not_run_hold_no_code() -> None:
    assert not {"python", "console", "pg", "gq"} & set(NOT_RUN)
