"""What a writer that lost the race may do. Pure functions over what the winners changed.

Touched means that a table's version differs from our base's, whatever the summaries say. Undecidable cases count as
concerned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from enum import Enum

from omnigraph.core import layout
from omnigraph.core.footprints import Touch
from omnigraph.core.plan import Adopt, PublishPlan, Reads
from omnigraph.core.records import ChainObject, Commit, Seal, TableChange, TableEntry, Tombstone
from omnigraph.model.frozen import frozen
from omnigraph.model.tokens import NO_TOKENS, Footprint, Tokens, union


class Verdict(Enum):
    """What to do next."""

    SAME = "the staged versions fit the new head as they are"
    RESTAGE = "the same rows must be put on the new versions of some tables"
    AGAIN = "the verb must run again on the new head"
    CONFLICT = "strict: the conflict is reported"
    SEALED = "the branch is deleted"


@frozen
class Decision:
    """A verdict; to continue: the new head and the tables to stage again; else the conflicting commit, if any."""

    verdict: Verdict
    head: Commit | None = None
    tables: frozenset[str] = frozenset()
    culprit: Commit | None = None


@frozen
class Facts:
    """Single facts as sorted parts, or everything."""

    parts: tuple[Tokens, ...]
    everything: bool

    def meet(self, change: TableChange) -> bool:
        """Whether a change may concern one of them."""
        if change.all or self.everything:
            return True
        touched = Footprint.from_text(change.touched)
        return any(touched.meets_sorted(part) for part in self.parts)


@frozen
class Intent:
    """What one folded write writes and has read."""

    plan: PublishPlan
    touches: Mapping[str, Touch]
    _facts: dict[str, Facts] = field(default_factory=dict, compare=False, repr=False)

    def facts(self, table: str) -> Facts:
        """What must still hold of a table: computed once, because a race may be lost many times."""
        if table not in self._facts:
            read = self.plan.reads.get(table, Reads())
            touch = self.touches.get(table)
            hidden = bool(touch and touch.everything) and read.later is None
            mine = union([read.tokens, touch.own if touch else NO_TOKENS])
            parts = (mine, *(read.later() if read.later else ()))
            self._facts[table] = Facts(parts, read.everything or hidden)
        return self._facts[table]


def decide(base: Commit, intents: Sequence[Intent], missed: Sequence[ChainObject]) -> Decision:
    """Judge a lost race: `missed` is everything published since our base, oldest first."""
    if any(isinstance(thing, Seal) for thing in missed):
        return Decision(Verdict.SEALED)
    if any(isinstance(thing, Tombstone) for thing in missed):
        return Decision(Verdict.AGAIN)
    commits = [thing for thing in missed if isinstance(thing, Commit)]
    for intent in intents:
        culprit = _culprit(base, intent, commits)
        if culprit is not None:
            return Decision(Verdict.CONFLICT, culprit=culprit)
    head = commits[-1]
    if head.gc_epoch != base.gc_epoch or head.schema != base.schema:
        return Decision(Verdict.AGAIN)
    if head.checks != base.checks and any(i.plan.checks is not None for i in intents):
        return Decision(Verdict.AGAIN, culprit=head)
    moved: set[str] = set()
    for intent in intents:
        touched = _touched(base, head, intent)
        if touched & _taken_versions(intent.plan):
            return Decision(Verdict.AGAIN, culprit=head)
        for table in sorted(touched):
            met = _concerned(intent.facts(table), table, base, commits)
            if met is not None:
                return Decision(Verdict.AGAIN, culprit=met)
        moved |= touched & intent.plan.written
    return Decision(Verdict.RESTAGE if moved else Verdict.SAME, head, frozenset(moved))


def _taken_versions(plan: PublishPlan) -> set[str]:
    """The tables of which a plan rests on exact versions: it takes one over, with nothing to do instead."""
    return {a.table_id for a in plan.actions if isinstance(a, Adopt) and not a.instead}


def _touched(base: Commit, head: Commit, intent: Intent) -> set[str]:
    mine = intent.plan.written | frozenset(intent.plan.reads)
    return {
        table for table in mine if not _same_version(base.tables.get(table), head.tables.get(table))
    }


def _same_version(one: TableEntry | None, other: TableEntry | None) -> bool:
    if one is None or other is None:
        return one is other
    return (one.path, one.version) == (other.path, other.version)


def _concerned(facts: Facts, table: str, base: Commit, commits: Sequence[Commit]) -> Commit | None:
    """The first commit that may have changed one of the facts."""
    before = base.tables.get(table)
    for commit in commits:
        after = commit.tables.get(table)
        if not _same_version(before, after):
            if after is None or before is None:
                return commit
            for change in (member.changes.get(table) for member in commit.members):
                if change is None:
                    continue  # another member, or maintenance: the rows are the same
                if facts.meet(change):
                    return commit
            if not _explained(commit, table):
                return commit
        before = after
    return None


def _explained(commit: Commit, table: str) -> bool:
    """Whether a new version is accounted for: by a summary of its changes, or by maintenance alone."""
    if any(table in member.changes for member in commit.members):
        return True
    return commit.content != layout.content_id(commit.chain, commit.number, len(commit.members))


def _culprit(base: Commit, intent: Intent, commits: Sequence[Commit]) -> Commit | None:
    """The commit a strict write conflicts with: it changed the schema, or a table this one writes or reads."""
    plan = intent.plan
    if not plan.strict and not plan.schema_strict:
        return None
    mine = plan.written | frozenset(plan.reads) if plan.strict else frozenset()
    before = base
    for commit in commits:
        if commit.content == before.content and commit.schema == before.schema:
            before = commit
            continue  # maintenance or an epoch: not a user's change
        touched = any(not _same_version(before.tables.get(t), commit.tables.get(t)) for t in mine)
        if touched or commit.schema != before.schema:
            return commit
        before = commit
    return None
