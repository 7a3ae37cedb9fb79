"""Scenarios of the openCypher TCK, read from its feature files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Step:
    """What is given, done or expected: its words, the text below it, and the table below it."""

    words: str
    text: str = ""
    table: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Scenario:
    feature: str
    name: str
    steps: tuple[Step, ...]
    example: int = 0

    @property
    def key(self) -> str:
        place = f" #{self.example}" if self.example else ""
        return f"{self.feature} {self.name}{place}"


@dataclass(slots=True)
class _Reading:
    """A feature file, line by line."""

    path: Path
    background: list[Step] = field(default_factory=list)

    def scenarios(self) -> Iterator[Scenario]:
        lines = self.path.read_text("utf-8").splitlines()
        feature = self.path.stem
        starts = [
            i
            for i, line in enumerate(lines)
            if re.match(r"\s*(Background|Scenario|Scenario Outline):", line)
        ]
        for start, end in zip(starts, [*starts[1:], len(lines)], strict=False):
            head = lines[start].strip()
            steps, examples = _steps(lines[start + 1 : end])
            if head.startswith("Background"):
                self.background = steps
                continue
            name = head.split(":", 1)[1].strip()
            whole = (*self.background, *steps)
            if not head.startswith("Scenario Outline"):
                yield Scenario(feature, name, whole)
                continue
            for number, values in enumerate(examples, 1):
                yield Scenario(feature, name, tuple(_filled(s, values) for s in whole), number)


def _steps(lines: list[str]) -> tuple[list[Step], list[dict[str, str]]]:
    steps: list[Step] = []
    examples: list[dict[str, str]] = []
    header: tuple[str, ...] | None = None
    in_examples, i = False, 0
    while i < len(lines):
        line = lines[i].strip()
        i += 1
        if not line or line.startswith(("#", "@")):
            continue
        if line.startswith("Examples:"):
            in_examples, header = True, None
        elif line.startswith('"""'):
            end = next(j for j in range(i, len(lines)) if lines[j].strip() == '"""')
            text = "\n".join(part.removeprefix("      ") for part in lines[i:end])
            last = steps[-1]
            steps[-1] = Step(last.words, text, last.table)
            i = end + 1
        elif line.startswith("|"):
            row = _cells(line)
            if not in_examples:
                last = steps[-1]
                steps[-1] = Step(last.words, last.text, (*last.table, row))
            elif header is None:
                header = row
            else:
                examples.append(dict(zip(header, row, strict=True)))
        else:
            steps.append(Step(re.sub(r"^(Given|And|When|Then|But) ", "", line)))
    return steps, examples


def _cells(line: str) -> tuple[str, ...]:
    parts = re.split(r"(?<!\\)\|", line.strip()[1:-1])
    return tuple(re.sub(r"\\([\\|n])", _unescaped, part.strip()) for part in parts)


def _unescaped(match: re.Match[str]) -> str:
    return "\n" if match[1] == "n" else match[1]


def _filled(step: Step, values: dict[str, str]) -> Step:
    def fill(text: str) -> str:
        for name, value in values.items():
            text = text.replace(f"<{name}>", value)
        return text

    table = tuple(tuple(map(fill, row)) for row in step.table)
    return Step(fill(step.words), fill(step.text), table)


def scenarios(folder: Path) -> list[Scenario]:
    """All scenarios below a folder, outlines written out."""
    files = sorted(folder.rglob("*.feature"))
    return [scenario for path in files for scenario in _Reading(path).scenarios()]
