"""One sequence again: `python -m tests.system.replay SEED [--whole]` runs it, and shows what a failure shrinks to."""

from __future__ import annotations

import argparse
import os
from dataclasses import replace

from tests.system.generate import Program, program
from tests.system.run import Report, run
from tests.system.schema import text_of
from tests.system.shrink import shrunk


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seed", type=int)
    parser.add_argument("--bug", help="the name of a planted bug")
    parser.add_argument("--whole", action="store_true", help="show every step, and do not shrink")
    given = parser.parse_args()
    os.environ.setdefault("OMNIGRAPH_EMBED_PROVIDER", "mock")
    print(replayed(given.seed, given.bug, whole=given.whole))


def replayed(seed: int, bug: str | None = None, *, whole: bool = False) -> str:
    """What happened, as a text."""
    made = program(seed)
    report = run(made, bug)
    if report.failure is None:
        return f"sequence {seed}: model and system agree"
    return explained(made, report, bug, whole=whole)


def explained(made: Program, report: Report, bug: str | None = None, *, whole: bool = False) -> str:
    """A failure with the few steps it takes."""
    least = replace(made, steps=made.steps[: (report.failed_at or 0) + 1])
    if not whole:
        least = shrunk(least, lambda smaller: run(smaller, bug).kind == report.kind)
    failure = run(least, bug).failure or report.failure
    steps = "\n".join(f"  {step}" for step in least.steps)
    return f"sequence {made.seed}:\n{text_of(made.start)}\n{steps}\n\n{failure}"


if __name__ == "__main__":
    main()
