"""Verdicts that were given, a line each as they are given: a run that was stopped goes on where it was.

A change that was noticed stays noticed while its module and the file of the test that noticed it are the same; one
that was not is judged again as soon as any of its tests is another.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from tests.mutation.judge import Judgement, Verdict
from tests.mutation.mutants import Mutant
from tests.mutation.reach import digest_of, file_of


class Kept:
    """The verdicts in one file."""

    def __init__(self, place: Path) -> None:
        self._place = place
        lines = place.read_text().splitlines() if place.exists() else []
        self._known = {kept["change"]: kept for kept in map(json.loads, lines)}

    def find(self, mutant: Mutant, tests: Sequence[str]) -> Judgement | None:
        """What was said about a change, if it would be said again."""
        kept = self._known.get(_key(mutant))
        if kept is None:
            return None
        judged = Judgement(Verdict(kept["verdict"]), kept["by"])
        return judged if kept["rests on"] == _evidence(judged, tests) else None

    def add(self, mutant: Mutant, tests: Sequence[str], judged: Judgement) -> None:
        kept = {
            "change": _key(mutant),
            "verdict": judged.verdict,
            "by": judged.by,
            "rests on": _evidence(judged, tests),
        }
        self._known[kept["change"]] = kept
        self._place.parent.mkdir(exist_ok=True)
        with self._place.open("a") as file:
            file.write(json.dumps(kept) + "\n")


def _key(mutant: Mutant) -> str:
    text = f"{mutant.name}\n{mutant.number}\n{mutant.source}"
    return hashlib.sha256(text.encode()).hexdigest()


def _evidence(judged: Judgement, tests: Sequence[str]) -> str:
    if judged.by is not None:
        return digest_of([file_of(judged.by)])
    names = hashlib.sha256("\n".join(tests).encode()).hexdigest()
    return names + digest_of(sorted({file_of(test) for test in tests}))
