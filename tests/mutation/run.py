"""`python -m tests.mutation.run --room merge --sample 200`: the share of changes that the tests notice.

The sample is drawn by a seed, so that a run can be repeated, and a run that was stopped goes on where it was. Survivors
are listed with their places; those in `equivalent.txt` change nothing anybody could see and count for neither side.
"""

from __future__ import annotations

import argparse
import itertools
import random
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tests.mutation.judge import Court, Judge, Verdict, is_inside_a_function
from tests.mutation.kept import Kept
from tests.mutation.mutants import NO_CHANGE, Mutant, mutants_of
from tests.mutation.reach import ROOMS, Reach, explore, files_of
from tests.support.record import record

ROOT = Path(__file__).parents[2]
MAP = ROOT / ".recorded" / "reach.json"
KEPT = ROOT / ".recorded" / "mutants.jsonl"
EQUIVALENT = Path(__file__).with_name("equivalent.txt")
SCORE_MIN = 85.0


def equivalents() -> dict[str, str]:
    """Changes nobody could see, and why: a name, then an indented reason."""
    found: dict[str, str] = {}
    name = ""
    for line in EQUIVALENT.read_text().splitlines():
        if line.startswith("    "):
            found[name] = (found[name] + " " + line.strip()).strip()
        elif line and not line.startswith("#"):
            name = line
            found[name] = ""
    return found


def sampled(room: str, size: int, seed: int) -> list[Mutant]:
    """Some changes of a room, or all of them."""
    known = equivalents()
    files = sorted((ROOT / "src" / "omnigraph" / room).rglob("*.py"))
    every = [m for file in files for m in mutants_of(file, ROOT / "src") if m.name not in known]
    random.Random(f"{seed} {room}").shuffle(every)
    possible = (mutant for mutant in every if is_inside_a_function(mutant))
    picked = itertools.islice(possible, size or None)
    return sorted(picked, key=lambda mutant: (mutant.path, mutant.number))


def judge_room(room: str, mutants: list[Mutant], reach: Reach, judge: Judge) -> Counter[Verdict]:
    """Judge a sample, telling about everything that survives."""
    counted: Counter[Verdict] = Counter()
    files, kept = files_of(room), Kept(KEPT)
    _trust(mutants[0], reach, files, judge)
    for mutant in mutants:
        tests = reach.tests_of(mutant.path, mutant.line, files)
        judged = kept.find(mutant, tests)
        if judged is None:
            judged = judge(mutant, [(test, reach.seconds(test)) for test in tests])
            kept.add(mutant, tests, judged)
        counted[judged.verdict] += 1
        if judged.verdict in (Verdict.SURVIVED, Verdict.UNREACHED):
            place = mutant.path.relative_to(ROOT)
            print(f"{judged.verdict}: {place}:{mutant.line}\n    {mutant.name}", flush=True)
    return counted


def _trust(mutant: Mutant, reach: Reach, files: list[str], judge: Judge) -> None:
    """A judge that condemns a module without a change condemns everything."""
    same = replace(mutant, number=NO_CHANGE)
    tests = reach.tests_of(mutant.path, mutant.line, files)
    judged = judge(same, [(test, reach.seconds(test)) for test in tests])
    if judged.verdict is not Verdict.SURVIVED:
        raise RuntimeError(f"the tests of {mutant.module} fail without any change: {judged}")


def score_of(counted: Counter[Verdict]) -> float:
    noticed = counted[Verdict.KILLED] + counted[Verdict.TIMED_OUT]
    return 100.0 * noticed / max(1, counted.total())


def _arguments() -> argparse.Namespace:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--room", action="append", choices=ROOMS, help="all of them, if not given")
    options.add_argument("--sample", type=int, default=200, help="changes per room; 0: all")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--explore", action="store_true", help=argparse.SUPPRESS)
    return options.parse_args()


def known(files: list[str]) -> Reach:
    """Which tests run which lines; what is not known yet is found out by a process of its own."""
    if Reach.load(MAP).stale(files):
        command = [sys.executable, "-m", "tests.mutation.run", "--explore", *sys.argv[1:]]
        subprocess.run(command, cwd=ROOT, check=True)
    return Reach.load(MAP)


def main() -> int:
    asked = _arguments()
    rooms = asked.room or list(ROOMS)
    files = sorted({file for room in rooms for file in files_of(room)})
    if asked.explore:
        reach = Reach.load(MAP)
        explore(reach, reach.stale(files)).save(MAP)
        return 0
    reach = known(files)
    if failing := reach.stale(files):
        print(f"tests fail without any change: {', '.join(failing)}")
        return 1
    scores: dict[str, float] = {}

    def work(judge: Judge) -> None:
        for room in rooms:
            counted = judge_room(room, sampled(room, asked.sample, asked.seed), reach, judge)
            scores[room] = score_of(counted)
            told = ", ".join(f"{verdict} {count}" for verdict, count in counted.items())
            print(f"{room}: {scores[room]:.1f} % of {counted.total()} ({told})", flush=True)
            record(
                f"mutants of {room}/",
                {
                    "noticed %": round(scores[room], 1),
                    "changes": counted.total(),
                    "seed": asked.seed,
                },
                ring="make mutants",
            )

    pytest.main(["-q", "-s", "-p", "no:cacheprovider", *files], plugins=[Court(work)])
    return 0 if scores and min(scores.values()) >= SCORE_MIN else 1


if __name__ == "__main__":
    sys.exit(main())
