"""Which pairs a set of programs brings together: a verb after a verb, and a feature after a feature.

Programs are drawn with the model, so what they do is known without running them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tests.system.generate import EDIT_WEIGHTS, READS, WEIGHTS, Program, Step

NEAR = 4  # a verb is after another if no more than so many steps lie between
MODES, SHAPES, DOORS = (
    ("merge", "append", "overwrite"),
    ("rows", "records", "file", "arrow"),
    ("server", "guarded"),
)
WAYS = ("query", "tables", "export", "fresh")
ACTORS = ("root", "writer", "reader")
VERBS = tuple(verb for verb in WEIGHTS if verb != "look") + tuple(f"look {read}" for read in READS)
FEATURES = (
    *VERBS,
    *(f"edit {edit}" for edit in EDIT_WEIGHTS),
    *(f"load {mode}" for mode in MODES),
    *(f"as {shape}" for shape in SHAPES),
    *(f"by {door}" for door in DOORS),
    *(f"actor {actor}" for actor in ACTORS),
    *(f"way {way}" for way in WAYS),
    "insert",
    "update",
    "delete",
    "decided",
    "dry",
    "if_commit",
    "key",
    "decomposed",
)


@dataclass(slots=True)
class Pairs:
    """What was met, and how often."""

    verbs: Counter[tuple[str, str]] = field(default_factory=Counter)
    features: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, program: Program) -> None:
        """Count the pairs of one program."""
        seen: set[str] = set()
        recent: list[str] = []
        for step in program.steps:
            own = set(features_of(step))
            self.features.update({(before, now) for before in seen for now in own})
            verb = verb_of(step)
            self.verbs.update({(before, verb) for before in recent[-NEAR - 1 :]})
            recent.append(verb)
            seen |= own

    def add_all(self, programs: Iterable[Program]) -> None:
        for program in programs:
            self.add(program)

    def missing_verbs(self) -> list[tuple[str, str]]:
        return sorted((a, b) for a in VERBS for b in VERBS if (a, b) not in self.verbs)

    def missing_features(self) -> list[tuple[str, str]]:
        return sorted((a, b) for a in FEATURES for b in FEATURES if (a, b) not in self.features)

    def __str__(self) -> str:
        verbs, features = len(VERBS) ** 2, len(FEATURES) ** 2
        return (
            f"verb after verb: {verbs - len(self.missing_verbs())} of {verbs} pairs; "
            f"feature after feature: {features - len(self.missing_features())} of {features}"
        )


def verb_of(step: Step) -> str:
    return f"look {step['read']}" if step["verb"] == "look" else str(step["verb"])


def features_of(step: Step) -> Iterator[str]:
    """What is special about a step."""
    yield verb_of(step)
    yield from (f"edit {edit[0]}" for edit in step.get("edits", ()))
    yield from (statement[0] for statement in step.get("statements", ()))
    if step["verb"] == "load":
        yield f"load {step['mode']}"
        yield f"as {step['shape']}"
    for name, word in (("door", "by"), ("actor", "actor"), ("way", "way")):
        if name in step:
            yield f"{word} {step[name]}"
    yield from (n for n in ("decided", "dry", "if_commit", "key", "decomposed") if step.get(n))
