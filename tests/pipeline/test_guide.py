"""The examples of the guide run."""

from __future__ import annotations

from typing import Any

import pytest

from tests.docs.pages import ROOT, blocks, run_page
from tests.pipeline.patience import patiently

GUIDE = ROOT / "docs" / "guides" / "spark.md"


def test_the_guide_runs(
    spark: Any, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run() -> int:
        folder = tmp_path_factory.mktemp("guide")
        monkeypatch.chdir(folder)
        return run_page(GUIDE, folder)

    assert patiently(run) == len(blocks(GUIDE))


def test_a_dataframe_is_loaded_in_five_lines() -> None:
    first = next(block for block in blocks(GUIDE) if block.language == "python")
    lines = [line for line in first.body.splitlines() if line and "import" not in line]
    assert len(lines) <= 5
