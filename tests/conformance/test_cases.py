"""Every conformance case holds on a graph, and those of the newer language on Spark, too (see tests/pipeline)."""

from __future__ import annotations

import json
from pathlib import Path

from tests.conformance.checks import Mismatch
from tests.conformance.run import Runner

CASES = Path(__file__).with_name("cases.jsonl")


def test_every_case_holds(tmp_path: Path) -> None:
    runner, failed = Runner(CASES.parent, tmp_path, "local"), []
    cases = [json.loads(line) for line in CASES.read_text().splitlines()]
    for case in cases:
        try:
            runner.run(case)
        except Mismatch as miss:
            failed.append(f"{case['id']} {case['title']}: {miss}")
    assert not failed, "\n".join(failed)
    assert len(cases) > 190
