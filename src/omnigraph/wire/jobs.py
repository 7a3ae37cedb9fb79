"""Jobs: records of work that continues after its request."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType


class JobProgress(msgspec.Struct, frozen=True):
    phase: str
    done: int
    total: int


class PartOutput(msgspec.Struct, frozen=True):
    """One file of an export, and its temporary address."""

    name: str
    type_name: str
    rows: int
    bytes: int
    sha256: str
    url: str
    presigned: bool


class JobOutput(msgspec.Struct, frozen=True):
    """A job: `waiting`, `running`, `done`, `failed`, `cancelled`, `lost` or `expired`."""

    job_id: str
    kind: str
    status: str
    actor_id: str | None
    branch: str
    created_at: int
    progress: JobProgress
    graph_commit_id: str | None = None
    format: str | UnsetType = UNSET
    expires_at: int | UnsetType = UNSET
    parts: list[PartOutput] | UnsetType = UNSET
    result: dict[str, Any] | UnsetType = UNSET
    error: dict[str, Any] | UnsetType = UNSET
    hint: str | UnsetType = UNSET


class JobsOutput(msgspec.Struct, frozen=True):
    jobs: list[JobOutput]
