"""The conformance cases of what the language has had since 0.11 give the same answers on Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conformance import checks
from tests.conformance import run as conformance
from tests.support import rings

CASES = Path(conformance.__file__).with_name("cases.jsonl")
SAMPLE = ("D62", "F61", "O1", "O2", "O4", "O5")  # few of their steps take Spark
FULL = (*SAMPLE, "B20", "E20", "E21", "E22", "E23", "E24", "E25", "E26", "F60", "F62")
NEWER = FULL if rings.is_nightly() else SAMPLE


class OnSpark(conformance.Runner):
    """Reads on Spark; what is loaded is a few rows, and is loaded here."""

    def __init__(self, work: Path) -> None:
        super().__init__(CASES.parent, work, "local")

    def query(self, step: dict[str, Any]) -> Any:
        chosen = self.options(step, "params", "name", "branch", "at")
        return self.graph.query(step["text"], engine="spark", **chosen)


@pytest.mark.usefixtures("spark")
def test_the_newer_language_means_the_same_on_spark(tmp_path: Path) -> None:
    cases = {c["id"]: c for c in map(json.loads, CASES.read_text().splitlines())}
    runner, failed = OnSpark(tmp_path), []
    steps = {"query": (OnSpark.query, checks.rows)}
    for id in NEWER:
        try:
            with pytest.MonkeyPatch.context() as patch:
                patch.setitem(conformance.STEPS, "query", steps["query"])
                runner.run(cases[id])
        except checks.Mismatch as miss:
            failed.append(f"{id} {cases[id]['title']}: {miss}")
    assert not failed, "\n".join(failed)
