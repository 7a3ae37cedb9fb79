"""The reference says what the code says: every command, setting and error code has its heading."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from docs.generate.pages import PAGES
from docs.generate.python_api import explanations, functions

from omnigraph.cli import app
from omnigraph.cli.languages import all_codes
from omnigraph.config import SETTINGS, VARIABLES
from omnigraph.errors import Code, Kind
from omnigraph.graph import Graph
from omnigraph.parameters import OWN, SHARED
from omnigraph.server.settings import Settings
from omnigraph.server.telemetry import Telemetry
from tests.docs.pages import ROOT, every_page, relative

REFERENCE = ROOT / "docs" / "reference"
ALTERNATIVES = {
    "AWS_DEFAULT_REGION",
    "AWS_ENDPOINT_URL_S3",
}  # told with the variable they stand for
LOADED_FROM_ELSEWHERE = re.compile(
    r'<(?:script|img|link rel="stylesheet")[^>]+(?:src|href)="https?://[^"]+"'
)
REMAKE = "run `make reference`"


def headings(name: str) -> set[str]:
    text = (REFERENCE / name).read_text(encoding="utf-8")
    return set(re.findall(r"^#+ (.*)$", text, re.MULTILINE))


@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_is_current(name: str) -> None:
    assert (REFERENCE / name).read_text(encoding="utf-8") == PAGES[name](), REMAKE


def test_every_command_has_its_heading() -> None:
    assert {f"omnigraph {name}" for name in app.COMMANDS} <= headings("cli.md")


def test_every_setting_has_its_heading() -> None:
    assert {setting.key for setting in SETTINGS} <= headings("settings.md")
    assert set(VARIABLES) <= headings("settings.md")
    assert set(msgspec.structs.asdict(Settings({}))) <= headings("settings.md")


def test_every_variable_the_code_reads_is_known() -> None:
    """Names of variables are written out where they are read."""
    named = re.compile(r'"((?:OMNIGRAPH|AWS)_[A-Z0-9_]+)"')
    known = {*VARIABLES, *(setting.variable for setting in SETTINGS)}
    for file in (ROOT / "src").rglob("*.py"):
        read = set(named.findall(file.read_text(encoding="utf-8")))
        assert read <= known | ALTERNATIVES, f"{file.name} reads {sorted(read - known)}"


def test_every_metric_has_its_heading() -> None:
    families = {family.name for family in Telemetry().registry.collect()}
    assert families <= headings("metrics.md")


def test_every_verb_of_a_graph_has_its_heading() -> None:
    verbs = {name for name in dir(Graph) if not name.startswith("_")}
    assert {f"Graph.{name}" for name in verbs} <= headings("api.md")


def test_the_site_builds(tmp_path: Path) -> None:
    """Every page is in the navigation, and every link and anchor leads somewhere."""
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(
        words, cwd=ROOT, env=quiet, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "reference" / "api" / "index.html").is_file()
    pages = {file: file.read_text(encoding="utf-8") for file in tmp_path.rglob("*.html")}
    fetched = {file: LOADED_FROM_ELSEWHERE.findall(text) for file, text in pages.items()}
    assert not [found for found in fetched.values() if found], "the site works without a network"
    page = pages[tmp_path / "tutorial" / "first-graph" / "index.html"]
    assert '<span class="k">node</span>' in page, "schemas have colours"
    assert '<span class="k">match</span>' in page, "queries have colours"
    for link in ("prev", "next"):
        assert f"md-footer__link--{link}" in page
    assert (tmp_path / "images" / "tour.svg").is_file()


def test_every_code_has_its_heading() -> None:
    assert set(all_codes()) <= headings("errors.md")


@pytest.mark.parametrize("code", all_codes().values(), ids=lambda code: code.code)
def test_every_error_says_what_to_do_next(code: Code) -> None:
    assert code.kind in set(Kind)
    assert code.title
    assert len(code.help.split()) >= 2, f"{code.code} has no next step"


@pytest.mark.parametrize("page", every_page(), ids=relative)
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        if "://" not in target and not target.startswith("mailto:"):
            assert (page.parent / target).exists(), f"{target} does not exist"


# --- parameters ------------------------------------------------------------------------------------------------------


def test_every_parameter_of_the_python_interface_is_explained() -> None:
    """In the reference, and in what `help()` and notebooks show of a verb."""
    unexplained = [
        f"{path}({name})"
        for path, function in functions()
        for name, text in explanations(path, function).items()
        if not text
    ]
    assert not unexplained, "say what they mean in omnigraph/parameters.py"
    assert "    create_from: make the branch from this one" in (Graph.load.__doc__ or "")


def test_no_explanation_is_of_a_parameter_that_is_not_there() -> None:
    there: dict[str, set[str]] = {}
    for path, function in functions():
        owner, _, name = path.rpartition(".")
        own = name if owner in ("omnigraph", "Graph") else path
        there[own] = set(explanations(path, function))
    for path, told in OWN.items():
        assert set(told) <= there[path], f"{path} has no such parameter"
    assert set(SHARED) <= set().union(*there.values())
