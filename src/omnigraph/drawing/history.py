"""The commits of all branches as text: a star per commit, a lane per line of history."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Protocol


class CommitLike(Protocol):
    """What is drawn of a commit."""

    @property
    def id(self) -> str: ...
    @property
    def parents(self) -> tuple[str, ...]: ...
    @property
    def actor(self) -> str | None: ...
    @property
    def time(self) -> datetime: ...
    @property
    def kind(self) -> str: ...
    @property
    def message(self) -> str | None: ...


class GraphLike(Protocol):
    """Where commits come from."""

    def branches(self) -> list[str]: ...
    def tags(self) -> dict[str, str]: ...
    def log(self, branch: str = "main", limit: int | None = 50) -> Sequence[CommitLike]: ...


def draw_history(graph: GraphLike, limit: int | None = 20) -> str:
    """The newest commits of all branches of a graph, with the names of branches and tags."""
    commits: dict[str, CommitLike] = {}
    names: dict[str, list[str]] = {}
    for branch in graph.branches():
        found = graph.log(branch, limit)
        commits.update((commit.id, commit) for commit in found)
        if found:
            names.setdefault(found[0].id, []).append(branch)
    for tag, id in graph.tags().items():
        names.setdefault(id, []).append(f"tag {tag}")
    newest = sorted(commits.values(), key=_age, reverse=True)
    return history_text(newest if limit is None else newest[:limit], names)


def _age(commit: CommitLike) -> tuple[datetime, int]:
    number = commit.id.split(".")[1] if "." in commit.id else "0"
    return commit.time, int(number)


def history_text(commits: Sequence[CommitLike], names: Mapping[str, Iterable[str]]) -> str:
    """The drawing of commits that are given newest first."""
    known = {commit.id for commit in commits}
    lanes: list[str] = []  # the commit each lane waits for
    lines: list[str] = []
    for commit in commits:
        if commit.id not in lanes:
            lanes.append(commit.id)
        lines += _joined(lanes, commit.id)
        here = lanes.index(commit.id)
        stars = ["*" if i == here else "|" for i in range(len(lanes))]
        lines.append(f"{' '.join(stars)}  {_words(commit, names.get(commit.id, ()))}")
        parents = [found for p in commit.parents if (found := _nearest(p, known)) is not None]
        lines += _forked(lanes, here, parents)
    return "\n".join(line.rstrip() for line in lines)


def _joined(lanes: list[str], id: str) -> list[str]:
    """Lanes that wait for the same commit become one, the leftmost."""
    lines: list[str] = []
    first = lanes.index(id)
    while lanes.count(id) > 1:
        last = len(lanes) - 1 - lanes[::-1].index(id)
        marks = ["|" if i < last else "/" if i == last else "|" for i in range(len(lanes))]
        lines.append(_slanted(marks, first, last))
        del lanes[last]
    return lines


def _slanted(marks: list[str], first: int, last: int) -> str:
    """`|/` for neighbours, `|_|/` over the lanes between."""
    text = ""
    for index, mark in enumerate(marks):
        if mark == "/":
            text = text[:-1] + "/ "
        else:
            text += mark + ("_" if first <= index < last - 1 else " ")
    return text


def _forked(lanes: list[str], here: int, parents: list[str]) -> list[str]:
    """The lane goes on to the first parent; every further parent gets a lane of its own."""
    if not parents:
        del lanes[here]
        return []
    lanes[here] = parents[0]
    lines = []
    for parent in parents[1:]:
        if parent in lanes:
            continue
        marks = ["|"] * len(lanes)
        marks[here] = "|\\"
        lines.append(" ".join(marks))
        lanes.insert(here + 1, parent)
    return lines


def _nearest(parent: str, known: set[str]) -> str | None:
    """A parent that is drawn; what is hidden (maintenance, members of a group) is stepped over."""
    if parent in known:
        return parent
    chain, _, rest = parent.partition(".")
    limit = _place(rest)[0]
    older = [(_place(k.partition(".")[2]), k) for k in known if k.partition(".")[0] == chain]
    return max((found for found in older if found[0][0] <= limit), default=(None, None))[1]


def _place(rest: str) -> tuple[int, int]:
    number, _, member = rest.partition(".")
    return int(number or 0), int(member or 0)


def _words(commit: CommitLike, names: Iterable[str]) -> str:
    chain, dot, rest = commit.id.partition(".")
    shown = ", ".join(names)
    parts = [chain[:8] + dot + rest, f"({shown})" if shown else "", commit.actor or "", commit.kind]
    return "  ".join(p for p in [*parts, commit.message or ""] if p)
