"""The reference says what the code says: every command, setting and error code has its heading."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from omnigraph.cli import app
from omnigraph.cli.commands.explain import all_codes
from omnigraph.cli.reference import PAGES
from omnigraph.config import SETTINGS, VARIABLES
from omnigraph.errors import Code, Kind
from tests.docs.pages import ROOT, every_page, relative

REFERENCE = ROOT / "docs" / "reference"
REMAKE = "run `python -m omnigraph.cli.reference docs/reference`"


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
    text = (REFERENCE / "settings.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in text for name in VARIABLES)


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
