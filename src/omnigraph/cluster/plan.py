"""The difference between the current state of a cluster and its description in a folder."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from omnigraph.cluster.ledger import Ledger, Revision
from omnigraph.cluster.observed import Seen, look, opened
from omnigraph.cluster.resources import (
    ClusterMoved,
    Described,
    ManagedResource,
    address_in,
    graph_of,
    is_own,
    kind_of,
    of_kind,
)
from omnigraph.errors import Kind, OmnigraphError
from omnigraph.lang.schema import MigrationPlan, plan_migration
from omnigraph.lang.schema.steps import UnsupportedChange
from omnigraph.model.frozen import frozen

ORDER = ("graph", "schema", "checks", "retention", "provider", "policy", "query")
DROPS = ("drop_type", "drop_property")

Operation = Literal["create", "adopt", "update", "delete", "release"]


class PlannedChange(msgspec.Struct, frozen=True, omit_defaults=True):
    """One change, and why it is blocked, if that is already known."""

    address: str
    operation: Operation
    before: str | None = None  # digests
    after: str | None = None
    steps: tuple[dict[str, Any], ...] = ()  # of a schema
    blocked: str | None = None

    @property
    def drops(self) -> bool:
        """Whether data leaves the graph and remains only in its history."""
        return any(step["kind"] in DROPS for step in self.steps)

    def __str__(self) -> str:
        return f"{self.operation} {self.address}"


class Plan(msgspec.Struct, frozen=True):
    """Changes, and the state they were planned for: a revision of the ledger and the observed graphs."""

    wanted: Described
    base: int  # the newest revision
    seen: dict[str, Seen]
    changes: tuple[PlannedChange, ...]

    @property
    def deletions(self) -> tuple[str, ...]:
        """The graphs whose data would be removed."""
        return tuple(
            graph_of(c.address) for c in self.changes if c.operation == "delete" and _is_graph(c)
        )

    @property
    def blocked(self) -> tuple[PlannedChange, ...]:
        return tuple(change for change in self.changes if change.blocked)

    def to_json(self) -> dict[str, Any]:
        """The plan for people and programs."""
        return {
            "root": self.wanted.root,
            "config_digest": self.wanted.digest,
            "base_revision": self.base,
            "changes": [
                msgspec.to_builtins(change) | {"drops": change.drops} for change in self.changes
            ],
            "deletions": list(self.deletions),
            "supported": not self.blocked,
        }


def make_plan(wanted: Described) -> Plan:
    """Plan the changes from the ledger and the graphs to the desired state."""
    ledger = Ledger(wanted.root)
    newest = ledger.newest()
    seen = look(_addresses(wanted, newest))
    in_force = {} if newest is None else known_resources(newest)
    changes = _Differences(wanted, in_force, seen).changes()
    base = -1 if newest is None else newest.number
    return Plan(wanted, base, seen, tuple(changes))


def known_resources(revision: Revision) -> dict[str, ManagedResource]:
    """The resources in force, and the graphs of an unfinished apply, so that nothing is left behind."""
    begun = {a: r for a, r in revision.wanted.items() if kind_of(a) == "graph"}
    return begun | revision.resources


def check_unmoved(plan: Plan) -> None:
    """Raise `ClusterMoved` unless everything is as it was when the plan was made."""
    newest = Ledger(plan.wanted.root).number()
    if newest != plan.base:
        raise ClusterMoved(f"the plan was made for revision {plan.base}, the newest is {newest}")
    now = look({id: seen.uri for id, seen in plan.seen.items()})
    for id, seen in plan.seen.items():
        if now[id] != seen:
            raise ClusterMoved(f"graph {id!r} was changed since the plan was made")


def save_plan(plan: Plan) -> bytes:
    """The plan as a file, with its texts."""
    return msgspec.json.encode(plan)


def read_plan(data: bytes, name: str) -> Plan:
    try:
        return msgspec.json.decode(data, type=Plan)
    except msgspec.MsgspecError as error:
        raise PlanInvalid(f"{name} is not a plan: {error}") from error


class PlanInvalid(OmnigraphError):
    """A file is not a plan that `cluster plan --out` wrote."""

    code, kind = "plan_invalid", Kind.INVALID
    default_help = "Make one with `omnigraph cluster plan --out FILE`."


def _addresses(wanted: Described, newest: Revision | None) -> dict[str, str]:
    known = {} if newest is None else of_kind(known_resources(newest), "graph")
    both = known | of_kind(wanted.resources, "graph")
    return {id: address_in(wanted.root, graph.uri) for id, graph in both.items()}


def _is_graph(change: PlannedChange) -> bool:
    return kind_of(change.address) == "graph"


@frozen
class _Differences:
    """The desired state, the ledger, and the actual state."""

    wanted: Described
    in_force: dict[str, ManagedResource]
    seen: dict[str, Seen]

    def changes(self) -> Iterator[PlannedChange]:
        """The changes in the order they are made: deletions last."""
        gone = set(of_kind(self.in_force, "graph")) - set(of_kind(self.wanted.resources, "graph"))
        for kind in ORDER:
            for address in sorted(a for a in self.wanted.resources if kind_of(a) == kind):
                yield from self._wanted(address)
        for address in sorted(set(self.in_force) - set(self.wanted.resources)):
            if kind_of(address) == "graph":
                yield self._removed(address)
            elif graph_of(address) not in gone:  # the rest goes with its graph
                yield PlannedChange(address, "delete", self.in_force[address].digest)

    def _wanted(self, address: str) -> Iterator[PlannedChange]:
        match kind_of(address):
            case "graph":
                yield from self._graph(address)
            case "schema":
                yield from self._schema(address)
            case "checks":
                yield from self._checks(address)
            case "retention":
                yield from self._retention(address)
            case _:
                yield from self._catalogued(address)

    def _graph(self, address: str) -> Iterator[PlannedChange]:
        now, known = self.wanted.resources[address], self.in_force.get(address)
        if self.seen[graph_of(address)].identity is None:
            yield PlannedChange(address, "create", None, now.digest)
        elif known is None or known.identity is None:
            yield PlannedChange(address, "adopt", None, now.digest)
        elif known.uri != now.uri:
            yield PlannedChange(address, "adopt", known.digest, now.digest)
        elif known.settings != now.settings:
            yield PlannedChange(address, "update", known.digest, now.digest)

    def _schema(self, address: str) -> Iterator[PlannedChange]:
        now, known = self.wanted.resources[address], self.in_force.get(address)
        before = None if known is None else known.digest
        if self.seen[graph_of(address)].identity is None:
            yield PlannedChange(address, "create", None, now.digest)
            return
        migration = self._migration(address)
        refused = "; ".join(s.reason for s in migration.steps if isinstance(s, UnsupportedChange))
        steps = tuple(step.to_json() for step in migration.steps)
        if steps or before != now.digest:
            yield PlannedChange(address, "update", before, now.digest, steps, refused or None)

    def _migration(self, address: str) -> MigrationPlan:
        seen = self.seen[graph_of(address)]
        graph = opened(seen.uri)
        if graph is None:
            raise ClusterMoved(f"graph {graph_of(address)!r} was removed meanwhile")
        accepted = graph._repo.schema(seen.schema).ir
        return plan_migration(accepted, self.wanted.text(address))

    def _checks(self, address: str) -> Iterator[PlannedChange]:
        now, known = self.wanted.resources[address], self.in_force.get(address)
        there = self.seen[graph_of(address)].checks
        if there != now.digest:
            operation: Operation = "create" if there is None else "update"
            yield PlannedChange(address, operation, there, now.digest)
        elif known is None:
            yield PlannedChange(address, "adopt", None, now.digest)

    def _retention(self, address: str) -> Iterator[PlannedChange]:
        now, known = self.wanted.resources[address], self.in_force.get(address)
        there = self.seen[graph_of(address)].retention
        if there != now.settings:
            operation: Operation = "create" if there is None else "update"
            yield PlannedChange(
                address, operation, None if known is None else known.digest, now.digest
            )
        elif known is None:
            yield PlannedChange(address, "adopt", None, now.digest)

    def _catalogued(self, address: str) -> Iterator[PlannedChange]:
        """Queries, policies and providers exist only in the ledger."""
        now, known = self.wanted.resources[address], self.in_force.get(address)
        if known is None:
            yield PlannedChange(address, "create", None, now.digest)
        elif known != now:
            yield PlannedChange(address, "update", known.digest, now.digest)

    def _removed(self, address: str) -> PlannedChange:
        """A graph stored elsewhere is released; one of the cluster's own is deleted."""
        known = self.in_force[address]
        return PlannedChange(address, "delete" if is_own(known) else "release", known.digest)
