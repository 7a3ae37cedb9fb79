"""Every bound in one place, named with its unit last. A `Limits` value may be given when a graph is opened."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path

from omnigraph.errors import OptionInvalid
from omnigraph.model.frozen import frozen


@frozen
class Limits:
    """What a graph handle allows itself."""

    publish_attempts_max: int = 64  # attempts of a write against other writers
    unknown_attempts_max: int = 6  # times an unanswered create is repeated at the same number
    backoff_first_seconds: float = 0.004
    backoff_max_seconds: float = 0.5
    stand_back_seconds_max: float = 0.3  # pause after a lost race for the next commit
    room_after_losses: int = 6  # lost races after which a write asks others to make room
    room_after_seconds: float = 2.0  # of attempts before it asks
    room_seconds_max: float = 3.0  # that others wait for an asking writer
    meetings_max: int = 8  # runs of work too long for that, each interfered with by another commit
    group_members_max: int = 64  # plans folded into one commit
    staging_threads_max: int = 8
    read_threads_max: int = 8
    recent_commits: int = 256  # how far back a commit remembers idempotency keys
    changed_ids_max: int = 256  # ids listed in a commit per table and kind of change
    lease_seconds_max: int = 86_400  # a long operation without a heartbeat for this long has died
    clock_skew_seconds_max: int = 86_400  # how far ahead of the store a writer's clock may be
    tombstones_max: int = 128  # commit objects one cleanup replaces; the next continues
    object_bytes_max: int = 64 << 20  # of a commit, schema or plan object, unpacked
    commits_cached_max: int = 4096
    queries_cached_max: int = 512
    query_memory_bytes_max: int | None = None  # of one query; otherwise a share of the machine
    interactive_rows_max: int = 5_000_000  # that a check reads in process; more need Spark
    interactive_bytes_max: int = (
        256 << 20
    )  # of input files; larger loads run on Spark or, in process, in pieces


DEFAULT = Limits()


# --- memory of the process ---------------------------------------------------------------------------------------

MEMORY, QUERY_MEMORY = "OMNIGRAPH_MEMORY", "OMNIGRAPH_QUERY_MEMORY"
MACHINE_PART = 2  # we use 1/n of the machine
CACHE_PART = 4  # of that: 1/n for cached tables
QUERY_PART = 4  # of that: 1/n for one query
MEMORY_BYTES_MIN = 64 << 20
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
CGROUP_FILES = (
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
)


@frozen
class MemoryBytes:
    """How the memory of a process is divided."""

    cache: int  # cached data, which can be reread
    queries: int  # for all running queries
    query: int  # for one of them


@cache
def memory_bytes() -> MemoryBytes:
    """From `OMNIGRAPH_MEMORY` and `OMNIGRAPH_QUERY_MEMORY`, or from the size of the machine or container."""
    whole = _named_bytes(MEMORY) or _default_bytes()
    queries = whole - whole // CACHE_PART
    query = _named_bytes(QUERY_MEMORY) or whole // QUERY_PART
    return MemoryBytes(whole // CACHE_PART, max(queries, query), query)


def memory_of_each(processes: int) -> dict[str, str]:
    """The variables that make so many processes of one server share its memory; none if it is set for each."""
    return {} if os.environ.get(MEMORY) else {MEMORY: str(_default_bytes(processes))}


def _default_bytes(processes: int = 1) -> int:
    return max(machine_bytes() // MACHINE_PART // processes, MEMORY_BYTES_MIN)


def _named_bytes(variable: str) -> int | None:
    text = os.environ.get(variable)
    return parse_bytes(text, variable) if text else None


def parse_bytes(text: str, what: str = "a size") -> int:
    """A number of bytes.

    >>> parse_bytes("512M"), parse_bytes("1.5 GiB"), parse_bytes("4096")
    (536870912, 1610612736, 4096)
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?\s*", text, re.IGNORECASE)
    if found is None or not float(found[1]):
        raise OptionInvalid(f"{what} is a number of bytes such as 512M or 4G, not {text!r}")
    return int(float(found[1]) * UNITS[found[2].upper()])


def machine_bytes() -> int:
    """The memory of the machine, or of the container if that has less."""
    sizes = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for name in CGROUP_FILES:
        try:
            text = Path(name).read_text(encoding="ascii").strip()
        except OSError:
            continue
        if text.isdigit():
            sizes.append(int(text))
    return min(sizes)
