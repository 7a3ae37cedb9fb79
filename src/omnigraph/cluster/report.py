"""What was applied to a cluster, where its graphs differ from it, and what changed between two revisions."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Any

import msgspec

from omnigraph.cluster.ledger import Ledger, Revision
from omnigraph.cluster.observed import Seen, look, opened
from omnigraph.cluster.resources import (
    ClusterNotFound,
    Described,
    ManagedResource,
    address_in,
    graph_of,
    kind_of,
    of_kind,
)
from omnigraph.errors import Corrupt
from omnigraph.lang.schema import plan_migration
from omnigraph.model.frozen import frozen

TEXTS = ("schema", "checks", "query", "policy")


@frozen
class Status:
    """The newest revision, and the drift from it by address."""

    revision: Revision
    drift: dict[str, str]

    def to_json(self) -> dict[str, Any]:
        return {
            "revision": self.revision.number,
            "state": self.revision.state,
            "config_digest": self.revision.config,
            "actor": self.revision.actor,
            "time": self.revision.time,
            "resources": msgspec.to_builtins(self.revision.resources),
            "errors": self.revision.errors,
            "drift": self.drift,
        }


def status(root: str) -> Status:
    """The state of a cluster, compared with what was applied to it."""
    ledger = Ledger(root)
    newest = newest_of(ledger)
    graphs = of_kind(newest.resources, "graph")
    seen = look({id: address_in(ledger.root, graph.uri) for id, graph in graphs.items()})
    return Status(newest, dict(_drift(ledger, newest, seen)))


def newest_of(ledger: Ledger) -> Revision:
    newest = ledger.newest()
    if newest is None:
        raise ClusterNotFound(f"nothing was applied to {ledger.root} yet")
    return newest


def _drift(ledger: Ledger, newest: Revision, seen: dict[str, Seen]) -> Iterator[tuple[str, str]]:
    for address, resource in newest.resources.items():
        found = _difference(ledger, address, resource, seen.get(graph_of(address)))
        if found:
            yield address, found


def _difference(
    ledger: Ledger, address: str, known: ManagedResource, seen: Seen | None
) -> str | None:
    kind = kind_of(address)
    if kind in TEXTS:
        try:
            text = ledger.text(known.digest)
        except Corrupt as error:
            return error.message
        if kind == "checks" and seen is not None and seen.identity and seen.checks != known.digest:
            return "the graph has other checks"
        return _schema_differs(text, seen) if kind == "schema" and seen is not None else None
    if seen is None:
        return None
    if kind == "graph" and seen.identity != known.identity:
        return (
            "the graph is missing" if seen.identity is None else "another graph is at its address"
        )
    if kind == "retention" and seen.identity and seen.retention != known.settings:
        return f"the graph has {seen.retention}"
    return None


def _schema_differs(text: str, seen: Seen) -> str | None:
    graph = opened(seen.uri)
    if graph is None:
        return None  # said of the graph itself
    steps = plan_migration(graph._repo.schema(seen.schema).ir, text).steps
    return f"the graph's schema is {len(steps)} steps away" if steps else None


# --- between two revisions ---------------------------------------------------------------------------------------


def compare(
    ledger: Ledger,
    before: dict[str, ManagedResource],
    after: dict[str, ManagedResource],
    wanted: Described | None,
) -> Iterator[str]:
    """The lines that differ between two sets of resources; texts of `wanted` need not be in the ledger."""

    def lines(address: str, resources: dict[str, ManagedResource]) -> list[str]:
        known = resources.get(address)
        if known is None:
            return []
        if kind_of(address) not in TEXTS:
            return [f"{key}: {value}" for key, value in _facts(known)]
        texts = {} if wanted is None else wanted.texts
        text = texts.get(known.digest) or ledger.text(known.digest)
        return [*(f"{key}: {value}" for key, value in _facts(known)), *text.splitlines()]

    for address in sorted(before.keys() | after.keys()):
        old, new = lines(address, before), lines(address, after)
        if old != new:
            yield from difflib.unified_diff(old, new, address, address, lineterm="")


def _facts(resource: ManagedResource) -> Iterator[tuple[str, Any]]:
    if resource.uri:
        yield "uri", resource.uri
    if resource.applies_to:
        yield "applies_to", ", ".join(resource.applies_to)
    yield from resource.settings.items()
