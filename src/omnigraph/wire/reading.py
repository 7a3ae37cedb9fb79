"""Responses to queries."""

from __future__ import annotations

from typing import Any, Self

import msgspec
from msgspec import UNSET, UnsetType

from omnigraph.read import Result


class ReadTarget(msgspec.Struct, frozen=True):
    branch: str | None
    snapshot: str | None


class ReadOutput(msgspec.Struct, frozen=True, kw_only=True):
    query_name: str
    target: ReadTarget
    row_count: int
    columns: list[str] | UnsetType = UNSET
    column_types: list[str] | UnsetType = UNSET
    rows: list[dict[str, Any]]
    graph_commit_id: str | UnsetType = UNSET
    explain: dict[str, Any] | UnsetType = UNSET

    @classmethod
    def of(
        cls,
        result: Result,
        name: str,
        target: ReadTarget,
        *,
        rows_shown: int | None = None,
        with_commit: bool = True,
        with_types: bool = False,
        with_plan: bool = False,
    ) -> Self:
        return cls(
            query_name=name,
            target=target,
            row_count=len(result),
            columns=result.columns or UNSET,
            column_types=[str(kind) for kind in result.types] if with_types else UNSET,
            rows=result.json_rows(rows_shown),
            graph_commit_id=result.commit if with_commit and result.commit else UNSET,
            explain=_explained(result) if with_plan else UNSET,
        )


def _explained(result: Result) -> dict[str, Any]:
    found = result.explain()
    return {**found.to_json(), "text": str(found)}


class ReadManyOutput(msgspec.Struct, frozen=True, kw_only=True):
    query_name: str
    target: ReadTarget
    graph_commit_id: str
    columns: list[str]
    row_counts: list[int]
    results: list[list[dict[str, Any]]]
