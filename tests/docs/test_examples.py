"""Every example of the documentation is run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from docs.generate.pages import PAGES as REFERENCE

from tests.docs.pages import (
    NOT_RUN,
    ROOT,
    blocks,
    every_page,
    matches,
    parse_command,
    relative,
    run_page,
)
from tests.support.rust_graph import RustFolder

# Pages whose examples are run by a test beside the code they describe.
ELSEWHERE = {"docs/guides/spark.md": "tests/pipeline/test_guide.py"}
GENERATED = set(REFERENCE)
OUTSIDE = {  # they need a bucket, a port or a browser: parsed, not run
    "docs/guides/operating.md",
    "docs/guides/clusters.md",
    "docs/guides/server.md",
    "docs/tutorial/explorer.md",
    "docs/tutorial/your-data.md",
    "docs/install.md",  # a clean environment: tests/install/test_newcomer.py
}
NEEDS = {"docs/guides/search.md": "wordllama"}  # the package of an extra that is not always there
RUNNABLE = re.compile(r"\$ |>>> |import |query \w+\(|node [A-Z]")
COMMAND = re.compile(r"(\w+=\S+ )?omnigraph [a-z]")
PAGES = [page for page in every_page() if relative(page) not in ELSEWHERE and blocks(page)]


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "")  # put back, should the page set it
    if relative(page) in NEEDS:
        pytest.importorskip(NEEDS[relative(page)], reason="the model of this page is not installed")
    if "import-rust old.omni" in page.read_text(encoding="utf-8"):
        rust_folder(tmp_path / "old.omni")
    assert run_page(page, tmp_path) == len(blocks(page))


def rust_folder(root: Path) -> None:
    """The graph folder that pages take over."""
    folder = RustFolder(root, 14)
    people = [{"id": name, "name": name} for name in ("ada", "alan")]
    knows = [{"id": "k1", "src": "ada", "dst": "alan"}]
    folder.publish({"node:Person": people, "node:Note": [], "edge:Knows": knows, "edge:Wrote": []})
    folder.publish({"edge:Knows": []}, "review")


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
    assert not {"python", "console", "pg", "gq", "pycon", "bash", "sh"} & set(NOT_RUN)


@pytest.mark.parametrize("page", every_page(), ids=relative)
def test_what_is_not_run_could_not_be(page: Path) -> None:
    """Plain blocks show output, layouts and drawings; commands and programs say what they are."""
    if page.name in GENERATED:
        return  # their commands are run by the tests of the commands
    for block in blocks(page):
        if block.language in NOT_RUN and block.language != "dockerfile":
            runs = [line for line in block.body.splitlines() if RUNNABLE.match(line)]
            assert not runs, f"{relative(page)}:{block.line} shows {runs} without running it"
            named = [line for line in block.body.splitlines() if COMMAND.match(line)]
            assert not named or relative(page) in OUTSIDE, f"{relative(page)} does not run {named}"
            for line in named:
                parse_command(line)


def test_pages_run_elsewhere_are_run_there() -> None:
    for page, test in ELSEWHERE.items():
        assert (ROOT / page).is_file()
        assert Path(page).name in (ROOT / test).read_text(encoding="utf-8"), (
            f"{test} does not read {page}"
        )
