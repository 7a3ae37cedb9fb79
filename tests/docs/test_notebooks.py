"""The notebooks of the documentation run from top to bottom, and show what a person can read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

from tests.docs.pages import ROOT

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.chdir(tmp_path)
    made: Any = InteractiveShell.instance()
    yield made
    made.history_manager.end_session()
    InteractiveShell.clear_instance()


def test_there_are_three() -> None:
    names = {path.stem for path in NOTEBOOKS}
    assert names == {"first-graph", "from-a-data-frame", "search-and-embeddings"}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_its_outputs_are_compact(path: Path, shell: Any) -> None:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    shown = []
    for cell in cells:
        if cell["cell_type"] != "code":
            continue
        assert not cell["outputs"], "outputs are made by whoever runs it"
        done = shell.run_cell("".join(cell["source"]))
        done.raise_error()
        if done.result is not None:
            shown.append(shell.display_formatter.format(done.result)[0])
    pages = [output["text/html"] for output in shown if "text/html" in output]
    assert len(pages) >= 4
    assert all(
        "http://" not in page.replace("http://www.w3.org", "") and "<script" not in page
        for page in pages
    )
    assert all(len(page) < 20_000 for page in pages)
