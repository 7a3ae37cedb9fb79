"""Every bound in one place, named with its unit last. A `Limits` value may be given when a graph is opened."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """What a graph handle allows itself."""

    publish_attempts_max: int = 64  # times a write is tried against other writers
    unknown_attempts_max: int = 6  # times an unanswered create is repeated at the same number
    backoff_first_seconds: float = 0.004
    backoff_max_seconds: float = 0.5
    stand_back_seconds_max: float = 0.1  # before a race for the next commit that was lost before
    group_members_max: int = 64  # plans folded into one commit
    staging_threads_max: int = 8
    read_threads_max: int = 8
    recent_commits: int = 256  # how far back a commit remembers idempotency keys
    changed_ids_max: int = 256  # ids listed in a commit per table and kind of change
    lease_seconds_max: int = 86_400  # a long operation that was silent for so long has died
    clock_skew_seconds_max: int = 86_400  # how far ahead of the store a writer's clock may be
    object_bytes_max: int = 64 << 20  # of a commit, schema or plan object, unpacked
    commits_cached_max: int = 4096
    handles_cached_max: int = 512
    queries_cached_max: int = 512
    interactive_bytes_max: int = (
        256 << 20
    )  # of input files; larger loads run on Spark where it is installed


DEFAULT = Limits()
