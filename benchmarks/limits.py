"""Queries that are too big, under a budget: `python -m benchmarks limits`.

Each query of `tests/support/too_big.py` runs under a budget of 512 MiB with several deadlines, in one process. The
table says how it ended, how long after its deadline, and what the process had taken above its base by then.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

BUDGET_MIB = 512
NODES, EDGES = 60_000, 800_000
DEADLINES_SECONDS = (1.0, 2.0, 4.0)
LATE_SECONDS_MAX = 0.5
MEMORY_MAX = 1.25  # times the budget


def asked(seconds: float) -> Iterator[dict[str, Any]]:
    """What every query came to with this deadline."""
    given = [f"{BUDGET_MIB}M", str(NODES), str(EDGES), str(seconds)]
    command = [sys.executable, "-m", "tests.support.too_big", *given]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            yield json.loads(line)


def run() -> None:
    late: list[float] = []
    peak = 0
    print("| query | deadline, s | ended | late, s | peak above base, MiB |")
    print("|---|---:|---|---:|---:|")
    for seconds in DEADLINES_SECONDS:
        for one in asked(seconds):
            over = max(0.0, one["seconds"] - seconds)
            late += [over] if one.get("code") == "deadline_exceeded" else []
            peak = max(peak, one["peak"] >> 20)
            ended = f"{one['rows']:,} rows" if "rows" in one else one["code"]
            print(
                f"| {one['query']} | {seconds} | {ended} | {over:.2f} | {one['peak'] >> 20} |",
                flush=True,
            )
    shares = statistics.quantiles(late, n=10) if len(late) > 1 else late
    print(
        f"\nlate, deciles: {' '.join(f'{share:.2f}' for share in shares)}; most {max(late):.2f} s"
    )
    print(f"target: {LATE_SECONDS_MAX} s, and {MEMORY_MAX * BUDGET_MIB:.0f} MiB; peak {peak} MiB")
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    run()
