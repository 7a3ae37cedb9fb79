"""The change feed of a branch: its commits in order, each with the rows it changed, before and after.

A cursor is the id of the last commit seen. A feed ends at the head the branch had when it was requested; to follow a
branch, request the next feed with the new cursor. Commits are read a page at a time, rows on demand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.core import layout
from omnigraph.core.history import Entry, entries, pruned_error, readable, resolve
from omnigraph.core.records import ChainObject, Commit, Member, Seal, TableChange
from omnigraph.core.repository import Repository
from omnigraph.core.snapshot import Snapshot
from omnigraph.errors import CommitNotFound, OptionInvalid
from omnigraph.merge.changed import Between, is_listed, listed_ids
from omnigraph.merge.diff import DELETE, INSERT, OPERATIONS, UPDATE
from omnigraph.merge.lineage import ancestry
from omnigraph.merge.rows import Delta
from omnigraph.merge.schema_view import kinds_of, seen_as
from omnigraph.model.catalog import Catalog, NodeOrEdgeType
from omnigraph.model.frozen import frozen
from omnigraph.model.tokens import Footprint, id_tokens
from omnigraph.storage.tables import ADDRESS
from omnigraph.values.spelling import to_json

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

PAGE_COMMITS = 32


@frozen
class Change:
    """One row a commit changed, whole: as it was before, and as it is after."""

    commit: str
    type: str
    kind: str  # node or edge
    operation: str
    id: str
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None

    def to_json(self) -> dict[str, Any]:
        return {
            "commit": self.commit,
            "type": self.type,
            "kind": self.kind,
            "operation": self.operation,
            "id": self.id,
            "before": to_json(self.before),
            "after": to_json(self.after),
        }


@frozen
class Baseline:
    """All rows at one commit, and the cursor from which the feed continues."""

    snapshot: Snapshot
    types: frozenset[str] | None = None

    @property
    def cursor(self) -> str:
        return self.snapshot.commit_id

    def batches(self) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Type names and rows, nodes first."""
        for kind in self.snapshot.catalog.entities():
            if self.types is None or kind.name in self.types:
                table = self.snapshot.table_of(kind)
                for batch in table.batches(table.schema.names):
                    yield kind.name, batch

    def __iter__(self) -> Iterator[Change]:
        """Every row as an insertion."""
        kinds = {kind.name: kind for kind in self.snapshot.catalog.entities()}
        for name, batch in self.batches():
            for row in batch.to_pylist():
                yield Change(self.cursor, name, kinds[name].kind, INSERT, row["id"], None, row)


@frozen
class Feed:
    """The changes of a branch after a cursor; iterating reads them, commit by commit."""

    repo: Repository
    head: Commit
    after: tuple[str, int, int | None]  # chain, number and member of the cursor
    types: frozenset[str] | None = None
    operations: frozenset[str] = frozenset(OPERATIONS)
    limit: int | None = None  # commits
    until: str | None = None  # the last commit to include; None: up to the head
    catalog: Catalog | None = None  # the schema for rows; None: each commit's own

    @property
    def start(self) -> str:
        """The commit this feed begins after."""
        return layout.commit_id(*self.after)

    @property
    def cursor(self) -> str:
        """Where this feed ends: `after` for the next one."""
        last = self.start
        for entry, _ in self.entries():
            last = entry.id
        return last

    def baseline(self) -> Baseline:
        """All rows as of now, to start from."""
        return Baseline(self.repo.snapshot(self.head), self.types)

    def __iter__(self) -> Iterator[Change]:
        for _, changes in self.commits():
            yield from changes

    def commits(self) -> Iterator[tuple[str, list[Change]]]:
        """The id of each commit and its changes; empty if it has no changes of the requested kind."""
        for commit, deltas in self.deltas():
            rows = (self._rows(commit, kind, delta) for kind, delta in deltas)
            yield commit, [change for part in rows for change in part]

    def deltas(self) -> Iterator[tuple[str, list[tuple[NodeOrEdgeType, Delta]]]]:
        """The same as tables: the id of each commit, and of each type it changed the rows before and after."""
        for entry, before in self.entries():
            with readable(self.repo, before):
                found = list(self._deltas(entry, before))
            yield entry.id, found

    def branches(self) -> list[str]:
        """The branches on which the writes after the cursor were made: this one, and those it was forked along."""
        chain, number, _ = self.after
        whole = self.repo.chains.expect(chain, number)  # with other writes after the cursor's
        ended = isinstance(whole, Seal) or whole.content == self.start or self.after[2] is None
        places = dict(_lines(self.repo, self.head, chain, number))
        if places[chain] == number and ended:
            del places[chain]
        zeros = (self.repo.chains.expect(place, 0) for place in places)
        return [zero.branch for zero in zeros if not isinstance(zero, Seal)]

    def entries(self) -> Iterator[tuple[Entry, Commit]]:
        """The writes after the cursor, oldest first, each with the commit object before its own."""
        count = 0
        chain, number, member = self.after
        for before, commit in self._pairs():
            for entry in reversed(list(entries(commit, maintenance=False))):
                if (commit.chain, commit.number) == (chain, number):
                    place = layout.parse_commit_id(entry.id)[2]
                    if member is None or place is None or place <= member:
                        continue
                if self.limit is not None and count >= self.limit:
                    return
                count += 1
                yield entry, before
                if entry.id == self.until:
                    return

    def _pairs(self) -> Iterator[tuple[Commit, Commit]]:
        chain, number, member = self.after
        last: Commit | None = None
        first = number if member is None else number - 1
        for thing in _between(self.repo, self.head, chain, max(first, 0)):
            if not isinstance(thing, Commit):
                raise pruned_error(layout.commit_id(thing.chain, thing.number))
            if last is not None:
                yield last, thing
            last = thing

    def _deltas(self, entry: Entry, before: Commit) -> Iterator[tuple[NodeOrEdgeType, Delta]]:
        commit, member = entry.commit, entry.member
        if member is None or not isinstance(commit, Commit):
            return
        after = self.repo.snapshot(commit)
        catalog = self.catalog or after.catalog
        one, other = (seen_as(s, catalog) for s in (self.repo.snapshot(before), after))
        between = Between(self.repo, one, other)
        kinds = kinds_of(catalog)
        for table, change in sorted(member.changes.items()):
            kind = kinds.get(table)
            if kind is None or (self.types is not None and kind.name not in self.types):
                continue
            yield kind, own_part(between.delta(table, kind), change, commit, member, table)
        yield from self._dropped(before, after)

    def _dropped(self, before: Commit, after: Snapshot) -> Iterator[tuple[NodeOrEdgeType, Delta]]:
        """The rows of types a commit dropped: followers of the feed have to delete them, too."""
        gone = [table for table in before.tables if table not in after.commit.tables]
        if not gone:
            return
        state = self.repo.snapshot(before)
        kinds = kinds_of(self.catalog or state.catalog)
        for kind in (kinds[table] for table in sorted(gone) if table in kinds):
            if self.types is None or kind.name in self.types:
                yield kind, Between(self.repo, state, after).delta(kind.table_id, kind)

    def _rows(self, commit: str, kind: NodeOrEdgeType, delta: Delta) -> Iterator[Change]:
        old = {row["id"]: row for row in delta.before.drop_columns([ADDRESS]).to_pylist()}
        new = {row["id"]: row for row in delta.after.drop_columns([ADDRESS]).to_pylist()}
        for id in sorted({*old, *new}):
            before, after = old.get(id), new.get(id)
            operation = INSERT if before is None else DELETE if after is None else UPDATE
            if operation in self.operations:
                yield Change(commit, kind.name, kind.kind, operation, id, before, after)


def own_part(
    delta: Delta, change: TableChange, commit: Commit, member: Member, table: str
) -> Delta:
    """The part of one member in a commit's changes to a table. A row written by two members belongs to the last."""
    others = [m for m in commit.members if m is not member and table in m.changes]
    if not others:
        return delta
    later = commit.members[commit.members.index(member) + 1 :]
    theirs = [m.changes[table] for m in later if table in m.changes]
    ids = delta.ids
    own = touched(change, ids)
    for their in theirs:
        own &= ~touched(their, ids)
    return delta.filter(ids.filter(pa.array(own)))


def touched(change: TableChange, ids: pa.Array) -> npt.NDArray[np.bool_]:
    """For each of these rows of a table, whether a commit may have changed it; "no" is certain."""
    if not is_listed(change):
        return Footprint.from_text(change.touched).holds(id_tokens(ids))
    listed = pc.is_in(ids, value_set=pa.array(listed_ids(change), pa.string()))
    found: npt.NDArray[np.bool_] = listed.to_numpy(zero_copy_only=False)
    return found


def _between(repo: Repository, head: Commit, chain: str, number: int) -> Iterator[ChainObject]:
    """The objects from a commit to a head along first parents, both included, a page at a time."""
    for place, last in _lines(repo, head, chain, number):
        start = number if place == chain else 0
        for first in range(start, last + 1, PAGE_COMMITS):
            yield from repo.chains.range(place, first, min(first + PAGE_COMMITS - 1, last))


def _lines(repo: Repository, head: Commit, chain: str, number: int) -> list[tuple[str, int]]:
    """The chains from a commit to a head, oldest first, each with the last of its commits that leads there."""
    lines: list[tuple[str, int]] = []
    for place, last in ancestry(repo, head):
        lines.append((place, last))
        if place == chain:
            break
    if lines[-1][0] != chain or lines[-1][1] < number:
        raise CommitNotFound(
            f"commit {chain}.{number} is not in the history of branch {head.branch!r}",
            help="A cursor belongs to the branch it was read from; start again from baseline().",
        )
    return lines[::-1]


def changes(
    repo: Repository,
    branch: str,
    after: str | None = None,
    *,
    types: Sequence[str] | None = None,
    operations: Sequence[str] | None = None,
    limit: int | None = None,
    until: str | None = None,
    catalog: Catalog | None = None,
) -> Feed:
    """The feed of a branch after a cursor; without one, from the very first commit."""
    chosen = frozenset(OPERATIONS if operations is None else operations)
    if not chosen <= set(OPERATIONS):
        raise OptionInvalid(f"operations are {', '.join(OPERATIONS)}; got {sorted(chosen)}")
    if limit is not None and limit < 1:
        raise OptionInvalid(f"limit must be at least 1, got {limit}")
    last = None if until is None else resolve(repo, until, branch)
    head = repo.head(branch).commit if last is None else last.commit
    if after is None:
        *_, (chain, _) = ancestry(repo, head)
        start: tuple[str, int, int | None] = chain, 0, None
    else:
        start = layout.parse_commit_id(resolve(repo, after, branch).id)
    return Feed(
        repo,
        head,
        start,
        None if types is None else frozenset(types),
        chosen,
        limit,
        None if last is None else last.id,
        catalog,
    )
