"""Answers of a server, back into the values local graphs answer with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, cast

import pyarrow as pa

from omnigraph.merge.conflicts import Conflict
from omnigraph.merge.diff import Diff, RowDiff
from omnigraph.merge.feed import Change
from omnigraph.model.catalog import Catalog
from omnigraph.model.columns import SCALARS
from omnigraph.outcomes import (
    Commit,
    EntityChange,
    EntityHistory,
    LoadResult,
    MergeResult,
    MutateResult,
)
from omnigraph.read.explain import Explanation
from omnigraph.read.result import Result
from omnigraph.read.rows import Rows

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class RemoteResult(Result):
    """The rows of a read that a server made, as they came over the wire."""

    def __init__(self, table: pa.Table, commit: str, plan: Mapping[str, Any] | None = None) -> None:
        super().__init__((), Rows(table.num_rows), commit)
        self._table = table
        self._plan = plan

    @property
    def columns(self) -> list[str]:
        return list(self._table.column_names)

    @property
    def types(self) -> list[Any]:
        """The type of each column, as far as Arrow tells."""
        return [_word(field.type) for field in self._table.schema]

    @cached_property
    def _arrays(self) -> list[pa.Array]:
        return [_whole(column) for column in self._table.columns]

    def explain(self) -> Explanation:
        return super().explain() if self._plan is None else RemoteExplanation(self._plan)


WORDS = {kind: str(scalar) for scalar, kind in SCALARS.items()}


def _word(kind: pa.DataType) -> str:
    """What the schema language calls an Arrow type."""
    if pa.types.is_fixed_size_list(kind):
        return f"Vector({kind.list_size})"
    if pa.types.is_list(kind):
        return f"[{_word(kind.value_type)}]"
    if pa.types.is_struct(kind):
        names = set(kind.names)
        return "Path" if {"nodes", "edges"} <= names else "Edge" if "from" in names else "Node"
    return WORDS.get(kind, str(kind))


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


class RemoteExplanation(Explanation):
    """How a server ran a query, as it told it."""

    def __init__(self, told: Mapping[str, Any]) -> None:
        self._told = dict(told)
        self._text = str(self._told.pop("text", ""))

    def to_json(self) -> dict[str, Any]:
        return self._told

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__


@dataclass(frozen=True, slots=True)
class RemoteSnapshot:
    """What a state consists of, without its rows."""

    commit_id: str
    branch: str
    rows: Mapping[tuple[str, str], int]  # by kind and type name
    schema: Callable[[], str]  # asks for its text

    @property
    def catalog(self) -> Catalog:
        """The types in force."""
        from omnigraph.lang.schema import catalog_of, compile_schema

        return catalog_of(compile_schema(self.schema()))


@dataclass(frozen=True, slots=True, repr=False)
class RemoteDiff:
    """What turns one state into another; of very many rows, the first."""

    from_commit: str
    to_commit: str
    counts: Mapping[str, Mapping[str, int]]
    schema: tuple[Mapping[str, Any], ...]
    rows: list[RowDiff]
    truncated: bool

    @property
    def is_empty(self) -> bool:
        return not self.schema and not self.counts

    def __iter__(self) -> Iterator[RowDiff]:
        return iter(self.rows)

    def __str__(self) -> str:
        return Diff.__str__(cast(Any, self))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from omnigraph.drawing.notebook import diff_html

        return diff_html(self)

    def to_json(self) -> dict[str, Any]:
        return {
            "from": self.from_commit,
            "to": self.to_commit,
            "counts": {name: dict(found) for name, found in self.counts.items()},
            "schema": [dict(step) for step in self.schema],
            "rows": [row.to_json() for row in self.rows],
        }


@dataclass(frozen=True, slots=True)
class RemoteStep:
    """One step of a schema change, as a server told it."""

    told: Mapping[str, Any]

    @property
    def kind(self) -> str:
        return str(self.told["kind"])

    @property
    def code(self) -> str | None:
        return self.told.get("code")

    def to_json(self) -> dict[str, Any]:
        return dict(self.told)


@dataclass(frozen=True, slots=True)
class RemotePlan:
    """What applying a schema would do, or did."""

    supported: bool
    steps: tuple[RemoteStep, ...]
    applied: bool = False
    commit: Commit | None = None

    def to_json(self) -> dict[str, Any]:
        commit = None if self.commit is None else self.commit.to_json()
        steps = [step.to_json() for step in self.steps]
        done = {"applied": self.applied, "commit": commit}
        return {"supported": self.supported, "steps": steps, **done}

    def _repr_html_(self) -> str:
        from omnigraph.drawing.notebook import plan_html

        return plan_html((step.to_json() for step in self.steps), self.supported)


def commit_of(told: Mapping[str, Any] | None) -> Commit | None:
    """A commit as a server tells it; none where it tells of none."""
    if told is None:
        return None
    parents = (told["parent_commit_id"], told["merged_parent_commit_id"])
    return Commit(
        id=told["graph_commit_id"],
        parents=tuple(parent for parent in parents if parent is not None),
        branch=told["graph_branch"] or "main",
        actor=told["actor_id"],
        time=EPOCH + timedelta(microseconds=told["created_at"]),
        kind=told["kind"],
        message=told["message"],
        changes=counts_of(told["changes"]),
    )


def entity_history(told: Mapping[str, Any]) -> EntityHistory:
    """The changes of one node or edge as a server tells them."""
    changes = [
        EntityChange(commit, one["operation"], one["before"], one["after"])
        for one in told["changes"]
        if (commit := commit_of(one["commit"])) is not None
    ]
    return EntityHistory(tuple(changes), told["next"])


def counts_of(told: list[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    names = ("inserted", "updated", "deleted")
    return {entry["type_name"]: {name: entry[name] for name in names} for entry in told}


def mutated(told: Mapping[str, Any]) -> MutateResult:
    return MutateResult(
        told["affected_nodes"],
        told["affected_edges"],
        commit_of(told["commit"]),
        told.get("replayed", False),
    )


def loaded(told: Mapping[str, Any]) -> LoadResult:
    return LoadResult(
        commit=commit_of(told["commit"]),
        branch=told["branch"],
        branch_created=told["branch_created"],
        nodes=_counted(told["nodes"]),
        edges=_counted(told["edges"]),
        engine="server",
        replayed=told["replayed"],
        new_each_time=_counted(told["new_each_time"]),
    )


def _counted(told: list[Mapping[str, Any]]) -> dict[str, int]:
    return {entry["name"]: entry["entities_loaded"] for entry in told}


def merged(told: Mapping[str, Any]) -> MergeResult:
    return MergeResult(told["outcome"], commit_of(told["commit"]), counts=counts_of(told["counts"]))


def conflicted(told: list[Mapping[str, Any]]) -> MergeResult:
    """Conflicts are an error to the protocol, and an outcome to whoever holds a graph."""
    found = tuple(
        Conflict(
            kind=c["kind"],
            type=c["type_name"],
            id=c.get("entity_id"),
            field=c.get("field"),
            base=c.get("base"),
            ours=c.get("ours"),
            theirs=c.get("theirs"),
            message=c["message"],
        )
        for c in told
    )
    return MergeResult("conflict", None, found)


def change_of(commit: str, told: Mapping[str, Any]) -> Change:
    return Change(
        commit=commit,
        type=told["type"]["name"],
        kind=told["kind"],
        operation=told["op"],
        id=told["id"],
        before=_row(told["id"], told.get("before")),
        after=_row(told["id"], told.get("after")),
    )


def _row(id: str, image: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if image is None:
        return None
    ends = image.get("endpoints")
    between = {"src": ends["from"], "dst": ends["to"]} if ends else {}
    return {"id": id, **between, **image["properties"]}
