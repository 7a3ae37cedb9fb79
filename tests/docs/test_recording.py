"""The recording on the home page is what the commands print: run here, and drawn as an SVG that needs nothing else.

`OMNIGRAPH_SCREENSHOTS` set (`make docs-screenshots`) writes it; otherwise it is compared.
"""

from __future__ import annotations

import os
import re
import shlex
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path

import pytest

from omnigraph.cli.main import main
from tests.docs.pages import ROOT, blocks

PICTURE = ROOT / "docs/images/tour.svg"
DATA = ROOT / "docs/tutorial/your-data.md"
WRITES = "OMNIGRAPH_SCREENSHOTS"
TOUR = (
    "omnigraph infer people.csv calls.csv --out phones.pg --pipeline phones.yaml",
    "omnigraph init --schema phones.pg phones",
    "omnigraph pipeline run phones phones.yaml --engine local",
    "omnigraph query phones -e 'match { $a: Person  $a calls $b } return { $a.name, $b.name, $b.city }'",
    "omnigraph branch create draft --store phones",
    """omnigraph mutate phones --branch draft -e 'update Person set { city: "Oxford" } where name = "Ada"'""",
    "omnigraph diff main...draft --store phones",
    "omnigraph merge draft --store phones",
)
SHOWN = ("initialized", "loaded", "│", "┌", "├", "└", "Person", "  ~", "merged")
COMMIT = re.compile(r"\b[0-9a-z]{8}\.\d+\b")  # another one in each run
WIDTH, LINE_HEIGHT, LETTER = 920, 19, 7.8
TYPING_SECONDS, READING_SECONDS = 0.5, 0.7  # ten seconds in all


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the terminal, and when it appears."""

    text: str
    typed: bool
    second: float


def recorded(folder: Path, screen: pytest.CaptureFixture[str]) -> Iterator[Line]:
    """Run the tour; what is on the screen, with times at which somebody can follow."""
    for block in blocks(DATA):
        if block.title:
            (folder / block.title).write_text(block.body)
    second = 0.3
    for command in TOUR:
        yield Line(command, True, second)
        second += TYPING_SECONDS
        code = main(shlex.split(command)[1:])
        printed = screen.readouterr()
        assert code == 0, printed.err
        for line in (printed.out + printed.err).splitlines():
            if line.startswith(SHOWN):
                yield Line(COMMIT.sub("5f0c2a91.1", line.rstrip()), False, second)
        second += READING_SECONDS


def drawn(lines: list[Line]) -> str:
    """A terminal whose lines appear one after the other; all at once for those who want no motion."""
    height = 56 + LINE_HEIGHT * len(lines)
    rows = "\n".join(_row(n, line) for n, line in enumerate(lines))
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">
<title>From two CSV files to a graph, a branch and a merge, in a terminal</title>
<style>
text {{ font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; fill: #d6d9e0; white-space: pre; }}
.p {{ fill: #7ee2a8; }} .c {{ fill: #ffffff; }} .l {{ animation: shown 0.25s both; }}
@keyframes shown {{ from {{ opacity: 0; }} to {{ opacity: 1; }} }}
@media (prefers-reduced-motion: reduce) {{ .l {{ animation: none; }} }}
</style>
<rect width="{WIDTH}" height="{height}" rx="10" fill="#16171d"/>
<circle cx="20" cy="20" r="5" fill="#f26d6d"/>
<circle cx="38" cy="20" r="5" fill="#e5b567"/>
<circle cx="56" cy="20" r="5" fill="#6dc27f"/>
{rows}
</svg>
"""


def _row(number: int, line: Line) -> str:
    y = 52 + LINE_HEIGHT * number
    prompt = '<tspan class="p">$ </tspan>' if line.typed else ""
    kind = ' class="c"' if line.typed else ""
    text = f"{prompt}<tspan{kind}>{escape(line.text, quote=False)}</tspan>"
    return (
        f'<g class="l" style="animation-delay: {line.second:.1f}s">'
        f'<text x="18" y="{y}" xml:space="preserve">{text}</text></g>'
    )


def test_the_recording_shows_what_the_commands_print(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path / "home"))
    tour = drawn(list(recorded(tmp_path, capsys)))
    if os.environ.get(WRITES):
        PICTURE.write_text(tour, encoding="utf-8")
    assert PICTURE.read_text(encoding="utf-8") == tour, "run `make docs-screenshots`"


def test_the_recording_fits_and_asks_nobody() -> None:
    tour = PICTURE.read_text(encoding="utf-8")
    drawing = ET.fromstring(tour)  # noqa: S314  written above
    texts = ["".join(text.itertext()) for text in drawing.iter("{http://www.w3.org/2000/svg}text")]
    assert "Oxford" in "".join(texts)
    assert "merged draft into main" in "".join(texts)
    assert max(len(text) for text in texts) * LETTER < WIDTH - 36
    assert "http" not in tour.replace("http://www.w3.org/2000/svg", "")
