"""The current state of the graphs of a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec

from omnigraph.cluster.resources import digest_of
from omnigraph.errors import GraphNotFound
from omnigraph.graph import Graph, open_graph

LOOKED_AT_ONCE = 4


class Seen(msgspec.Struct, frozen=True, omit_defaults=True):
    """The observed state of a graph. A plan is made for exactly this state."""

    uri: str
    identity: str | None = None  # None: the graph does not exist
    schema: str = ""  # the name of main's schema in its commits
    retention: dict[str, Any] | None = None
    checks: str | None = None  # the digest of their text; None: no checks


def look(uris: Mapping[str, str]) -> dict[str, Seen]:
    """The graphs at these addresses by their ids, observed concurrently."""
    with ThreadPoolExecutor(LOOKED_AT_ONCE) as pool:
        return dict(zip(uris, pool.map(_seen, uris.values()), strict=True))


def _seen(uri: str) -> Seen:
    graph = opened(uri)
    if graph is None:
        return Seen(uri)
    kept = graph.retention()
    retention = None if kept is None else settings_of(kept.keep, kept.days, kept.every_hours)
    head = graph.snapshot().commit
    text = graph._repo.checks(head.checks)
    checks = digest_of(text) if text else None
    return Seen(uri, graph._repo.stamp.graph_id, head.schema, retention, checks)


def opened(uri: str) -> Graph | None:
    try:
        return open_graph(uri)
    except GraphNotFound:
        return None


def settings_of(keep: int, days: float | None, every_hours: float) -> dict[str, Any]:
    """A retention in the form of the ledger and plans."""
    return {"keep": keep, "days": days, "every_hours": every_hours}
