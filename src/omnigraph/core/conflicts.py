"""What a writer that lost the race may do. Pure functions over what the winners changed.

Touched means that a table's version differs from our base's, whatever the summaries say. What cannot be decided counts
as concerned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from omnigraph.core import layout
from omnigraph.core.footprints import Touch
from omnigraph.core.plan import Adopt, PublishPlan, Reads, Rewrite
from omnigraph.core.records import ChainObject, Commit, Seal, TableEntry, Tombstone
from omnigraph.model.tokens import NO_TOKENS, Footprint, Tokens, union


class Verdict(Enum):
    """What to do next."""

    SAME = "the staged versions fit the new head as they are"
    RESTAGE = "the same rows must be put on the new versions of some tables"
    AGAIN = "the verb must run again on the new head"
    CONFLICT = "strict: the conflict is the answer"
    SEALED = "the branch is deleted"


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict; to go on: the new head and the tables to stage again; to give up: the commit in the way."""

    verdict: Verdict
    head: Commit | None = None
    tables: frozenset[str] = frozenset()
    culprit: Commit | None = None


@dataclass(frozen=True, slots=True)
class Intent:
    """What one folded write writes and looked at."""

    plan: PublishPlan
    touches: Mapping[str, Touch]

    def concerns(self) -> dict[str, tuple[Tokens, bool]]:
        """Per table: the facts that must still hold, and whether all of the table must."""
        found: dict[str, tuple[Tokens, bool]] = {}
        for table in self.plan.written | frozenset(self.plan.reads):
            read = self.plan.reads.get(table, Reads())
            touch = self.touches.get(table)
            mine = [read.tokens, touch.own if touch else NO_TOKENS]
            found[table] = union(mine), read.everything or bool(touch and touch.everything)
        return found


def decide(base: Commit, intents: Sequence[Intent], missed: Sequence[ChainObject]) -> Decision:
    """Judge a lost race: `missed` is everything published since our base, oldest first."""
    if any(isinstance(thing, Seal) for thing in missed):
        return Decision(Verdict.SEALED)
    if any(isinstance(thing, Tombstone) for thing in missed):
        return Decision(Verdict.AGAIN)
    commits = [thing for thing in missed if isinstance(thing, Commit)]
    strict = [intent for intent in intents if intent.plan.strict]
    for intent in strict:
        culprit = _culprit(base, intent, commits)
        if culprit is not None:
            return Decision(Verdict.CONFLICT, culprit=culprit)
    head = commits[-1]
    if head.gc_epoch != base.gc_epoch or head.schema != base.schema:
        return Decision(Verdict.AGAIN)
    moved: set[str] = set()
    for intent in intents:
        touched = _touched(base, head, intent)
        if touched & _taken_versions(intent.plan):
            return Decision(Verdict.AGAIN)
        concerns = intent.concerns()
        if any(_concerned(concerns[table], table, base, commits) for table in touched):
            return Decision(Verdict.AGAIN)
        moved |= touched & intent.plan.written
    return Decision(Verdict.RESTAGE if moved else Verdict.SAME, head, frozenset(moved))


def _taken_versions(plan: PublishPlan) -> set[str]:
    """The tables of which a plan rests on exact versions: it takes one over, or rewrites fragments. Indices fit a newer
    one too."""
    return {action.table_id for action in plan.actions if isinstance(action, Adopt | Rewrite)}


def _touched(base: Commit, head: Commit, intent: Intent) -> set[str]:
    mine = intent.plan.written | frozenset(intent.plan.reads)
    return {
        table for table in mine if not _same_version(base.tables.get(table), head.tables.get(table))
    }


def _same_version(one: TableEntry | None, other: TableEntry | None) -> bool:
    if one is None or other is None:
        return one is other
    return (one.path, one.version) == (other.path, other.version)


def _concerned(
    concern: tuple[Tokens, bool], table: str, base: Commit, commits: Sequence[Commit]
) -> bool:
    tokens, everything = concern
    before = base.tables.get(table)
    for commit in commits:
        after = commit.tables.get(table)
        if not _same_version(before, after):
            if after is None or before is None:
                return True
            for change in (member.changes.get(table) for member in commit.members):
                if change is None:
                    continue  # another member, or maintenance: the rows are the same
                if change.all or everything or Footprint.from_text(change.touched).meets(tokens):
                    return True
            if not _explained(commit, table):
                return True
        before = after
    return False


def _explained(commit: Commit, table: str) -> bool:
    """Whether a new version is accounted for: by a summary of its changes, or by maintenance alone."""
    if any(table in member.changes for member in commit.members):
        return True
    return commit.content != layout.content_id(commit.chain, commit.number, len(commit.members))


def _culprit(base: Commit, intent: Intent, commits: Sequence[Commit]) -> Commit | None:
    """The commit a strict write conflicts with: it changed the schema, or a table this one writes or reads."""
    mine = intent.plan.written | frozenset(intent.plan.reads)
    before = base
    for commit in commits:
        if commit.content == before.content and commit.schema == before.schema:
            before = commit
            continue  # maintenance or an epoch: nothing a person did
        touched = any(not _same_version(before.tables.get(t), commit.tables.get(t)) for t in mine)
        if touched or commit.schema != before.schema:
            return commit
        before = commit
    return None
