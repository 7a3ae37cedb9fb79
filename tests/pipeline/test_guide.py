"""The examples of the guide run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.docs.pages import ROOT, blocks, run_page

pytestmark = pytest.mark.xdist_group("spark")
GUIDE = ROOT / "docs" / "guides" / "spark.md"


def test_the_guide_runs(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_page(GUIDE, tmp_path) == len(blocks(GUIDE))


def test_a_dataframe_is_loaded_in_five_lines() -> None:
    first = next(block for block in blocks(GUIDE) if block.language == "python")
    lines = [line for line in first.body.splitlines() if line and "import" not in line]
    assert len(lines) <= 5
