"""The change feed: pages of commits, each with the rows it changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

import msgspec
from msgspec import UNSET, UnsetType, field

from omnigraph.merge.feed import Change
from omnigraph.model.catalog import Catalog
from omnigraph.model.instants import micros_of
from omnigraph.outcomes import Commit
from omnigraph.values.spelling import to_json


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """The commit that made changes."""

    graph_commit_id: str
    parent_commit_id: str | UnsetType = UNSET
    merged_parent_commit_id: str | UnsetType = UNSET
    authored_branch: str
    actor_id: str | UnsetType = UNSET
    authored_at: int

    @classmethod
    def of(cls, commit: Commit) -> Self:
        parents: tuple[str | UnsetType, ...] = (*commit.parents, UNSET, UNSET)
        return cls(
            graph_commit_id=commit.id,
            parent_commit_id=parents[0],
            merged_parent_commit_id=parents[1],
            authored_branch=commit.branch,
            actor_id=UNSET if commit.actor is None else commit.actor,
            authored_at=micros_of(commit.time),
        )


class Ends(msgspec.Struct, frozen=True):
    source: str = field(name="from")
    target: str = field(name="to")


class Image(msgspec.Struct, frozen=True):
    """A row on one side of a change."""

    properties: dict[str, Any]
    endpoints: Ends | UnsetType = UNSET

    @classmethod
    def of(cls, row: Mapping[str, Any] | None) -> Self | UnsetType:
        if row is None:
            return UNSET
        is_edge = "src" in row and "dst" in row
        hidden = ("id", "src", "dst") if is_edge else ("id",)
        properties = {name: to_json(value) for name, value in row.items() if name not in hidden}
        return cls(properties, Ends(row["src"], row["dst"]) if is_edge else UNSET)

    def value(self, id: str) -> dict[str, Any]:
        ends = self.endpoints
        between = {} if ends is UNSET else {"src": ends.source, "dst": ends.target}
        return {"id": id, **between, **self.properties}


class TypeName(msgspec.Struct, frozen=True):
    id: str
    name: str


class ChangedRow(msgspec.Struct, frozen=True):
    kind: str
    type: TypeName
    id: str
    op: str
    before: Image | UnsetType = UNSET
    after: Image | UnsetType = UNSET

    @classmethod
    def of(cls, change: Change, type_id: str) -> Self:
        return cls(
            change.kind,
            TypeName(type_id, change.type),
            change.id,
            change.operation,
            Image.of(change.before),
            Image.of(change.after),
        )

    def value(self, commit: str) -> Change:
        return Change(
            commit=commit,
            type=self.type.name,
            kind=self.kind,
            operation=self.op,
            id=self.id,
            before=None if self.before is UNSET else self.before.value(self.id),
            after=None if self.after is UNSET else self.after.value(self.id),
        )


def in_order(changes: Iterable[Change]) -> list[Change]:
    """Changes of one commit in the order of the feed: nodes first, then by type and id."""
    return sorted(changes, key=lambda c: (c.kind != "node", c.type, c.id))


def changed_rows(changes: Iterable[Change], catalog: Catalog) -> Iterator[ChangedRow]:
    for change in changes:
        kind = catalog.entity(change.type)
        yield ChangedRow.of(change, kind.table_id if kind else change.type)


def types_of(
    catalog: Catalog, kinds: Sequence[str] | None, types: Sequence[str] | None
) -> list[str] | None:
    """The types that pass both filters; without filters all of them."""
    if kinds is None:
        return None if types is None else list(types)
    of_kind = [kind.name for kind in catalog.entities() if kind.kind in kinds]
    return [name for name in of_kind if types is None or name in types]


class FeedBlock(msgspec.Struct, frozen=True):
    """The changes of one commit, or some of them: the rest is on the next page."""

    cause: Cause
    changes: list[ChangedRow]
    next_page_token: str | UnsetType = UNSET


class FeedOutput(msgspec.Struct, frozen=True):
    blocks: list[FeedBlock]
    next_page_token: str | UnsetType = UNSET
    cursor: str | UnsetType = UNSET
    caught_up: bool | UnsetType = UNSET
