"""How commits are related: what a commit knows, where two of them diverged, and what happened since.

A commit knows a prefix of every chain: of its own, of those it was forked from, and of those merged into it. That is
one number per chain, stored in the commit itself except for the forks, so no history is walked to find a merge base.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

from omnigraph.core import layout
from omnigraph.core.history import commit_at, walk
from omnigraph.core.records import ChainObject, Commit, Seal
from omnigraph.core.repository import Repository
from omnigraph.model.frozen import frozen

Place = tuple[str, int]  # chain and number


def ancestry(repo: Repository, commit: Commit) -> Iterator[Place]:
    """The chains a commit was forked along: its own with its number, then each parent chain with the fork's."""
    chain, number = commit.chain, commit.number
    while True:
        yield chain, number
        zero = repo.chains.expect(chain, 0)
        if isinstance(zero, Seal) or not zero.parents:
            return
        chain, number, _ = layout.parse_commit_id(zero.parents[0])


def knowledge(repo: Repository, commit: Commit) -> dict[str, int]:
    """Per chain the newest commit whose changes this one holds."""
    known = dict(ancestry(repo, commit))
    for chain, merged in commit.merged.items():
        number = layout.parse_commit_id(merged)[1]
        known[chain] = max(number, known.get(chain, number))
    return known


def _knows(known: Mapping[str, int], chain: str, number: int) -> bool:
    return chain in known and known[chain] >= number


def merge_base(repo: Repository, ours: Commit, theirs: Commit) -> Commit:
    """The newest commit both sides know. Of several, none of which knows the others, the newest is taken."""
    mine, yours = knowledge(repo, ours), knowledge(repo, theirs)
    left = {chain: min(mine[chain], yours[chain]) for chain in yours if chain in mine}
    lines = [chain for chain, _ in (*ancestry(repo, theirs), *ancestry(repo, ours))]
    order = [chain for chain in dict.fromkeys([*lines, *sorted(left)]) if chain in left]
    found: list[Commit] = []
    for chain in order:
        if chain not in left:
            continue  # known to a commit that was found before
        commit = commit_at(repo, chain, left[chain])
        known = knowledge(repo, commit)
        left = {c: n for c, n in left.items() if not _knows(known, c, n)}
        found = [other for other in found if not _knows(known, other.chain, other.number)]
        found.append(commit)
    if len(found) == 1:
        return found[0]
    return max(found, key=lambda commit: (_content_time(repo, commit), commit.chain))


def _content_time(repo: Repository, commit: Commit) -> int:
    """When its content was written: maintenance does not make a state newer."""
    chain, number, _ = layout.parse_commit_id(commit.content)
    newest = repo.chains.expect(chain, number)
    return commit.time if isinstance(newest, Seal) else newest.time


def brought_along(repo: Repository, ours: Commit, theirs: Commit) -> dict[str, str]:
    """Everything `theirs` knows that `ours` does not, as stored in a merge commit."""
    known = knowledge(repo, ours)
    return {
        chain: layout.commit_id(chain, number)
        for chain, number in knowledge(repo, theirs).items()
        if not _knows(known, chain, number)
    }


@frozen
class HistoryStep:
    """One commit on the path from one state to another, and the state before it."""

    before: Commit
    commit: Commit


def is_first_ancestor(repo: Repository, one: Commit, other: Commit) -> bool:
    """Whether a commit is an ancestor of another along first parents."""
    return dict(ancestry(repo, other)).get(one.chain, -1) >= one.number


def steps(repo: Repository, one: Commit, other: Commit, limit: int) -> list[HistoryStep] | None:
    """The commits on both paths from where two commits diverged along first parents; None if too many or pruned."""
    here, there = list(ancestry(repo, one)), dict(ancestry(repo, other))
    fork = next((c, min(n, there[c])) for c, n in here if c in there)
    found: list[HistoryStep] = []
    for end in (one, other):
        way = _way(repo, end, fork, limit - len(found))
        if way is None:
            return None
        found += way
    return found


def _way(repo: Repository, end: Commit, fork: Place, limit: int) -> list[HistoryStep] | None:
    ranges: list[tuple[str, int, int]] = []
    for chain, number in ancestry(repo, end):
        first = fork[1] if chain == fork[0] else 0
        ranges.append((chain, first, number))
        if chain == fork[0]:
            break
    if sum(last - first + 1 for _, first, last in ranges) > limit + len(ranges):
        return None
    things: list[ChainObject] = []
    for chain, first, last in reversed(ranges):
        things += repo.chains.range(chain, first, last)
    commits = [thing for thing in things if isinstance(thing, Commit)]
    if len(commits) < len(things):
        return None
    return [HistoryStep(a, b) for a, b in pairwise(commits)]


def writers_since(repo: Repository, branch: str, head: Commit) -> set[str | None]:
    """Who wrote the commits that a head has and a branch does not."""
    known = knowledge(repo, repo.head(branch).commit)
    found: set[str | None] = set()
    for entry in walk(repo, head):
        if _knows(known, entry.commit.chain, entry.commit.number):
            break
        found.add(entry.actor)
    return found
