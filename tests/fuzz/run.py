"""Coverage-guided fuzzing: `python -m tests.fuzz.run --seconds 3600` shares the time among all targets.

Every target runs in a process of its own, since libFuzzer ends the process it runs in. An input that breaks something
is kept in `tests/fuzz/found/<target>/`, where every later run of the tests replays it.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.support.record import record
from tests.support.tidy import ROOT

INPUT_BYTES_MAX = 1 << 16
INPUT_SECONDS_MAX = 20
MEMORY_MIB_MAX = 3000
EXECUTED = re.compile(r"stat::number_of_executed_units:\s*(\d+)")
REACHED = re.compile(r"cov: (\d+) ft: (\d+)")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one target."""

    target: str
    inputs: int
    reached: int
    seconds: float
    crashed: bool


def fuzz_one(target: str, folder: str, seconds: int) -> None:
    """Runs inside the process of a target: never returns."""
    import logging

    import atheris

    logging.disable(logging.CRITICAL)  # refusals are expected by the thousand

    with atheris.instrument_imports(include=["omnigraph"], enable_loader_override=False):
        from tests.fuzz.seeds import WORDS, seeds
        from tests.fuzz.targets import assert_ours

    corpus = Path(folder) / "corpus"
    corpus.mkdir()
    for number, seed in enumerate(seeds(target)):
        (corpus / f"seed-{number}").write_bytes(seed)
    words = Path(folder) / "words"
    words.write_text("".join(f'"{_escaped(word)}"\n' for word in WORDS))
    found = ROOT / "tests" / "fuzz" / "found" / target
    found.mkdir(parents=True, exist_ok=True)
    options = (
        f"-max_total_time={seconds}",
        f"-max_len={INPUT_BYTES_MAX}",
        f"-timeout={INPUT_SECONDS_MAX}",
        f"-rss_limit_mb={MEMORY_MIB_MAX}",
        f"-artifact_prefix={found}/",
        f"-dict={words}",
        "-print_final_stats=1",
        "-close_fd_mask=0",
        str(corpus),
    )
    atheris.Setup([target, *options], lambda data: assert_ours(target, data))
    atheris.Fuzz()


def _escaped(word: str) -> str:
    return "".join(c if c.isalnum() else f"\\x{ord(c):02x}" for c in word)


def fuzz(target: str, seconds: int) -> Outcome:
    """One target in a process of its own."""
    command = [sys.executable, "-m", "tests.fuzz.run", "--inside", target]
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="omnigraph-fuzz-") as folder:
        given = [*command, "--folder", folder, "--seconds", str(seconds)]
        environment = {**os.environ, "OMNIGRAPH_HOME": folder}
        done = subprocess.run(
            given, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True, check=False
        )
    said = done.stderr
    executed, reached = EXECUTED.search(said), REACHED.findall(said)
    if done.returncode:
        print(said[-4000:], flush=True)
    return Outcome(
        target,
        int(executed[1]) if executed else 0,
        int(reached[-1][0]) if reached else 0,
        time.monotonic() - began,
        done.returncode != 0,
    )


def fuzz_all(targets: list[str], seconds: int) -> list[Outcome]:
    """Each target for its share of the time, and what they found."""
    outcomes = []
    for target in targets:
        outcome = fuzz(target, max(1, seconds // len(targets)))
        outcomes.append(outcome)
        print(
            f"{target:18} {outcome.inputs:>12,} inputs {outcome.reached:>7,} edges"
            f" {outcome.seconds:>7.0f} s {'CRASHED' if outcome.crashed else ''}",
            flush=True,
        )
    return outcomes


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("targets", nargs="*")
    options.add_argument("--seconds", type=int, default=120, help="for all targets together")
    options.add_argument("--inside", help=argparse.SUPPRESS)
    options.add_argument("--folder", help=argparse.SUPPRESS)
    asked = options.parse_args()
    if asked.inside:
        fuzz_one(asked.inside, asked.folder, asked.seconds)
    from tests.fuzz.targets import TARGETS

    outcomes = fuzz_all(asked.targets or list(TARGETS), asked.seconds)
    crashes = [outcome.target for outcome in outcomes if outcome.crashed]
    if not asked.targets:
        figures = {
            "seconds": round(sum(outcome.seconds for outcome in outcomes)),
            "targets": len(outcomes),
            "inputs": sum(outcome.inputs for outcome in outcomes),
            "crashes outside our errors": len(crashes),
        }
        record("fuzzing, guided by coverage", figures, ring="make fuzz")
    print(f"crashed: {', '.join(crashes)}" if crashes else "nothing crashed", flush=True)
    return 1 if crashes else 0


if __name__ == "__main__":
    sys.exit(main())
