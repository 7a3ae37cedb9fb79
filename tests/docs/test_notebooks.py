"""The notebooks of the documentation run from top to bottom, and show what a person can read.

At night each is also drawn as a page, as a notebook would show it, and kept as a picture in `artifacts/notebooks`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from omnigraph.drawing.entities import SCRIPT
from tests.docs.pages import ROOT
from tests.explorer import browser as browsers

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
PICTURES = ROOT / "artifacts/notebooks"
WINDOW: Any = {"width": 900, "height": 700}
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 24px; background: #fff; color: #1b1c22; }
pre { font: 13px/1.45 ui-monospace, monospace; white-space: pre-wrap; margin: 0; }
.code { background: #f5f5f8; border: 1px solid #e2e2e8; border-radius: 6px; padding: 10px 12px; margin: 14px 0 6px; }
.shown { padding: 4px 12px 10px; }
table { border-collapse: collapse; } td, th { padding: 2px 8px; }
@media (prefers-color-scheme: dark) {
  body { background: #15161b; color: #e6e7ec; } .code { background: #1f2027; border-color: #33343d; }
}
"""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell that was run: its text, and what it showed, by kind."""

    kind: str
    source: str
    printed: str = ""
    shown: dict[str, str] | None = None


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.chdir(tmp_path)
    made: Any = InteractiveShell.instance()
    yield made
    made.history_manager.end_session()
    InteractiveShell.clear_instance()


def run(path: Path, shell: Any) -> Iterator[Cell]:
    """Run a notebook, cell by cell."""
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] != "code":
            yield Cell("text", source)
            continue
        assert not cell["outputs"], "outputs are made by whoever runs it"
        with capture_output() as said:
            done = shell.run_cell(source)
        done.raise_error()
        result = done.result
        shown = None if result is None else shell.display_formatter.format(result)[0]
        yield Cell("code", source, "" if shown else said.stdout, shown)


def test_there_are_three() -> None:
    names = {path.stem for path in NOTEBOOKS}
    assert names == {"first-graph", "from-a-data-frame", "search-and-embeddings"}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_its_outputs_are_compact(path: Path, shell: Any) -> None:
    shown = [cell.shown for cell in run(path, shell) if cell.shown]
    pages = [output["text/html"] for output in shown if "text/html" in output]
    assert len(pages) >= 4
    for page in pages:
        assert "http://" not in page.replace("http://www.w3.org", "")
        rest = page.replace(f"<script>({SCRIPT})", "")
        assert "<script" not in rest, "the only script is the one that moves drawings"
    assert all(len(page) < 20_000 for page in pages)


@pytest.mark.nightly
@pytest.mark.skipif(browsers.CHROMIUM is None, reason="Chromium is not installed")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_looked_at(path: Path, shell: Any, tmp_path: Path) -> None:
    """Nothing is wider than the page or asks the network, in light and dark; the pictures are for eyes."""
    page_file = tmp_path / "notebook.html"
    page_file.write_text(_page(list(run(path, shell))), encoding="utf-8")
    PICTURES.mkdir(parents=True, exist_ok=True)
    for scheme in ("light", "dark"):
        with (
            browsers.launched() as browser,
            browsers.opened(browser, "file://", path.stem, color_scheme=scheme) as page,
        ):
            page.set_viewport_size(WINDOW)
            page.goto(page_file.as_uri())
            page.screenshot(path=PICTURES / f"{path.stem}-{scheme}.png", full_page=True)
            _drag(page, path.stem)
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= WINDOW["width"], "an output is cut off"
            assert not page.get_by_text("Traceback").count()


def _drag(page: Any, name: str) -> None:
    """A node of a drawing follows the mouse, and its edges follow the node; nothing is fetched for that."""
    drawing = page.locator("svg.og[data-ready]")
    if name != "first-graph":
        return
    node = drawing.locator("[data-n]").first
    edge = drawing.locator("[data-a] path").first
    before = edge.get_attribute("d")
    node.locator("circle").drag_to(drawing, target_position={"x": 200, "y": 20})
    assert edge.get_attribute("d") != before
    assert float(node.get_attribute("transform").split("(")[1].split()[0].rstrip(",")) > 150


def _page(cells: list[Cell]) -> str:
    return f"<!doctype html><meta charset=utf-8><style>{STYLE}</style>" + "".join(
        _drawn(cell) for cell in cells
    )


def _drawn(cell: Cell) -> str:
    if cell.kind == "text":
        title, _, rest = cell.source.partition("\n")
        heading = f"<h2>{escape(title.lstrip('# '))}</h2>" if title.startswith("#") else ""
        return heading + f"<p>{escape(rest if heading else cell.source)}</p>"
    code = f'<div class="code"><pre>{escape(cell.source)}</pre></div>'
    shown = cell.shown or {}
    plain = shown.get("text/plain", "") or cell.printed
    output = shown.get("text/html") or (f"<pre>{escape(plain)}</pre>" if plain else "")
    return code + f'<div class="shown">{output}</div>'
