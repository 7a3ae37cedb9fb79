"""Runs the whole TCK and writes down what is not passed: `python -m tests.tck`."""

from __future__ import annotations

from collections import Counter

from tests.tck.runner import run
from tests.tck.test_tck import DATA, LISTED, all_scenarios


def main() -> None:
    lines, counts = [], Counter[str]()
    for scenario in all_scenarios():
        outcome = run(scenario, DATA / "graphs")
        counts[outcome.reason] += 1
        if not outcome.passed:
            lines.append(f"{scenario.key} | {outcome.reason}")
    LISTED.write_text("\n".join(sorted(lines)) + "\n", "utf-8")
    for reason, count in counts.most_common():
        print(f"{count:5} {reason}")


if __name__ == "__main__":
    main()
