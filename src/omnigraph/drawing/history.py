"""The commits of all branches as text: a star per commit, a lane per line of history."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Protocol

Paint = Callable[[str, str], str]  # a text, and whether it is an id, names or dim


class CommitLike(Protocol):
    """The drawn part of a commit."""

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


def _plain(text: str, _: str) -> str:
    return text


def draw_history(graph: GraphLike, limit: int | None = 20, paint: Paint = _plain) -> str:
    """The newest commits of all branches of a graph, with the names of branches and tags."""
    commits: dict[str, CommitLike] = {}
    names: dict[str, list[str]] = {}
    before: dict[str, str] = {}  # the next shown commit, skipping hidden ones
    for branch in graph.branches():
        found = graph.log(branch, limit)
        commits.update((commit.id, commit) for commit in found)
        before |= {new.id: old.id for new, old in pairwise(found)}
        if found:
            names.setdefault(found[0].id, []).append(branch)
    for tag, id in graph.tags().items():
        names.setdefault(id, []).append(f"tag {tag}")
    newest = sorted(commits.values(), key=_age, reverse=True)
    return history_text(newest if limit is None else newest[:limit], names, before, paint)


def _age(commit: CommitLike) -> tuple[datetime, int]:
    number = commit.id.split(".")[1] if "." in commit.id else "0"
    return commit.time, int(number)


def history_text(
    commits: Sequence[CommitLike],
    names: Mapping[str, Iterable[str]],
    before: Mapping[str, str] | None = None,
    paint: Paint = _plain,
) -> str:
    """The drawing of commits that are given newest first; `before` names first parents that are shown."""
    known = {commit.id for commit in commits}
    lanes: list[str] = []  # the commit each lane waits for
    lines: list[str] = []
    for commit in commits:
        if commit.id not in lanes:
            lanes.append(commit.id)
        lines += _joined(lanes, commit.id)
        here = lanes.index(commit.id)
        stars = ["*" if i == here else "|" for i in range(len(lanes))]
        lines.append(f"{' '.join(stars)}  {_words(commit, names.get(commit.id, ()), paint)}")
        lines += _forked(lanes, here, _parents(commit, known, before or {}))
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
    """The lane goes on to the first parent; every further parent gets a new lane."""
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


def _parents(commit: CommitLike, known: set[str], before: Mapping[str, str]) -> list[str]:
    """The parents that are drawn, or stand for those that are not."""
    first, *others = commit.parents or (None,)
    if commit.id in before:
        first = before[commit.id]
    named = [p for p in (first, *others) if p is not None]
    return [found for p in named if (found := _nearest(p, known)) is not None]


def _nearest(parent: str, known: set[str]) -> str | None:
    """A parent that is drawn; hidden ones (maintenance, members of a group) are skipped."""
    if parent in known:
        return parent
    chain, _, rest = parent.partition(".")
    limit = _place(rest)[0]
    older = [(_place(k.partition(".")[2]), k) for k in known if k.partition(".")[0] == chain]
    return max((found for found in older if found[0][0] <= limit), default=(None, None))[1]


def _place(rest: str) -> tuple[int, int]:
    number, _, member = rest.partition(".")
    return int(number or 0), int(member or 0)


def _words(commit: CommitLike, names: Iterable[str], paint: Paint) -> str:
    chain, dot, rest = commit.id.partition(".")
    shown = ", ".join(names)
    parts = [
        paint(chain[:8] + dot + rest, "id"),
        paint(f"({shown})", "names") if shown else "",
        paint(ago(commit.time), "dim"),
        commit.actor or "",
        commit.kind,
        commit.message or "",
    ]
    return "  ".join(part for part in parts if part)


def ago(time: datetime, now: datetime | None = None) -> str:
    """How long ago, in one unit.

    >>> ago(datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 3, tzinfo=UTC))
    '2d ago'
    """
    seconds = max(0, int(((now or datetime.now(UTC)) - time).total_seconds()))
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= size:
            return f"{seconds // size}{unit} ago"
    return f"{seconds}s ago"
