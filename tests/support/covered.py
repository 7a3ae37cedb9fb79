"""`python -m tests.support.covered lang core`: how much of each room the last measured run went through.

A branch is a way from one line to the next: a condition has two, and each must have been taken.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.support.record import record
from tests.support.tidy import ROOT

BRANCHES_MIN = 95.0


def share(report: dict[str, Any], room: str, what: str) -> float:
    """The percentage of a room's branches or statements that were run."""
    total, covered = {
        "branches": ("num_branches", "covered_branches"),
        "statements": ("num_statements", "covered_lines"),
    }[what]
    found = [
        file["summary"]
        for path, file in report["files"].items()
        if path.startswith(f"src/omnigraph/{room}/")
    ]
    every = sum(summary[total] for summary in found)
    return float(100 * sum(summary[covered] for summary in found) / max(1, every))


def report_of_last_run() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "coverage.json"
        command = [sys.executable, "-m", "coverage", "json", "--quiet", "-o", str(place)]
        subprocess.run(command, cwd=ROOT, check=True)
        found: dict[str, Any] = json.loads(place.read_text())
        return found


def main() -> int:
    report = report_of_last_run()
    enough = True
    for room in sys.argv[1:]:
        branches, statements = share(report, room, "branches"), share(report, room, "statements")
        figures = {"branches %": round(branches, 1), "statements %": round(statements, 1)}
        print(f"{room}: {branches:.1f} % of branches, {statements:.1f} % of statements", flush=True)
        record(f"coverage of {room}/", figures, ring="make coverage")
        enough = enough and branches >= BRANCHES_MIN
    return 0 if enough else 1


if __name__ == "__main__":
    sys.exit(main())
