"""A promise names its tests: every test a page names is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMED = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")
PAGES = ("docs/guarantees.md", "docs/reliability.md", "SECURITY-THREAT-MODEL.md")


@pytest.mark.parametrize("page", PAGES)
def test_every_test_a_page_names_is_there(page: str) -> None:
    named = NAMED.findall((ROOT / page).read_text(encoding="utf-8"))
    assert named, "the page names no test at all"
    missing = [f"{file}::{test}" for file, test in named if not _is_there(file, test)]
    assert not missing


def _is_there(file: str, test: str) -> bool:
    path = ROOT / file
    return path.exists() and f"def {test}" in path.read_text(encoding="utf-8")
