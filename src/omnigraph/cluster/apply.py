"""Make the changes of a plan.

Every step is one atomic change of one graph, as a user would make it, and is made only on the graph the plan saw. If
the process is killed between two steps, a revision with the desired state remains; planning and applying again
continues from there. An apply that is overtaken by another one notices before its next step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from omnigraph import operations as ops
from omnigraph.cluster.ledger import Ledger, Revision
from omnigraph.cluster.observed import opened
from omnigraph.cluster.plan import Plan, PlannedChange, check_unmoved
from omnigraph.cluster.resources import (
    ClusterInvalid,
    ClusterMoved,
    DeletionUnconfirmed,
    ManagedResource,
    address_in,
    graph_of,
    kind_of,
)
from omnigraph.core import layout
from omnigraph.core.clock import REAL
from omnigraph.core.plan import PublishPlan
from omnigraph.core.txn import WriteTxn
from omnigraph.errors import GraphExists, OmnigraphError
from omnigraph.graph import Graph, init
from omnigraph.model.frozen import frozen
from omnigraph.storage.objects import locate, open_objects

MESSAGE = "cluster apply"

Progress = Callable[[PlannedChange], None]


@frozen
class Applied:
    """The result of an apply."""

    revision: Revision
    changes: tuple[PlannedChange, ...]

    @property
    def converged(self) -> bool:
        return self.revision.state == "applied"

    def to_json(self) -> dict[str, Any]:
        return {
            "converged": self.converged,
            "revision": self.revision.number,
            "config_digest": self.revision.config,
            "changes": [msgspec.to_builtins(change) for change in self.changes],
            "applied_count": len(self.changes) - len(self.revision.errors),
            "errors": self.revision.errors,
        }


def apply_plan(
    plan: Plan,
    *,
    delete: frozenset[str] = frozenset(),
    actor: str | None = None,
    progress: Progress = lambda _: None,
) -> Applied | None:
    """Apply a plan exactly; None if there is nothing to do. `delete` names the graphs that may be deleted."""
    _check(plan, delete)
    check_unmoved(plan)
    if not plan.changes:
        return None
    ledger = Ledger(plan.wanted.root)
    for text in plan.wanted.texts.values():
        ledger.keep(text)
    before = {} if plan.base < 0 else ledger.at(plan.base).resources
    begun = Revision(
        plan.base + 1,
        "applying",
        REAL.now(),
        plan.wanted.digest,
        before,
        plan.wanted.resources,
        actor,
        tuple(map(str, plan.changes)),
    )
    ledger.add(begun)
    run = _Applying(plan, ledger, begun, dict(before))
    run.all_changes(progress)
    ended = msgspec.structs.replace(
        begun,
        number=begun.number + 1,
        state="incomplete" if run.errors else "applied",
        time=REAL.now(),
        resources=dict(sorted(run.resources.items())),
        wanted=plan.wanted.resources if run.errors else {},
        errors=run.errors,
    )
    ledger.add(ended)
    return Applied(ended, plan.changes)


def _check(plan: Plan, delete: frozenset[str]) -> None:
    if plan.blocked:
        first = plan.blocked[0]
        raise ClusterInvalid(
            f"{first.address} cannot be changed like this: {first.blocked}",
            details={"blocked": [msgspec.to_builtins(change) for change in plan.blocked]},
        )
    unsaid = sorted(set(plan.deletions) - delete)
    if unsaid:
        raise DeletionUnconfirmed(
            f"this would delete {', '.join(unsaid)} with all data and history",
            details={"graphs": unsaid},
        )


@dataclass(slots=True)
class _Applying:
    """An apply in progress."""

    plan: Plan
    ledger: Ledger
    begun: Revision
    resources: dict[str, ManagedResource]  # in force so far
    errors: dict[str, str] = field(default_factory=dict)

    def all_changes(self, progress: Progress) -> None:
        """Make all changes. A failure for one graph does not stop the others; dependents wait for the next apply."""
        for change in self.plan.changes:
            if graph_of(change.address) in {graph_of(a) for a in self.errors} - {""}:
                self.errors[change.address] = "not tried: an earlier change of the graph failed"
                continue
            self._check_ours()
            progress(change)
            try:
                self._make(change)
            except ClusterMoved:
                raise
            except OmnigraphError as error:
                self.errors[change.address] = f"{error.code}: {error.message}"
                continue
            self._record(change)

    def _check_ours(self) -> None:
        newest = self.ledger.number(self.begun.number)
        if newest != self.begun.number:
            raise ClusterMoved(
                f"another apply began with revision {newest}, so this one stopped",
                help="Changes made so far remain. Plan again.",
            )

    def _make(self, change: PlannedChange) -> None:
        id = graph_of(change.address)
        match kind_of(change.address), change.operation:
            case "graph", "create":
                self._create(id)
            case "graph", "delete":
                self._delete(id)
            case "schema", "update" if change.steps:
                self._change_schema(id)
            case "checks", "create" | "update":
                self._set_checks(id, self.plan.wanted.text(change.address))
            case "checks", "delete":
                self._set_checks(id, "")
            case "retention", "create" | "update":
                self._graph(id).set_retention(**self.plan.wanted.resources[change.address].settings)
            case "retention", "delete":
                self._graph(id).set_retention(None)
            case _:
                return  # only the ledger changes

    def _record(self, change: PlannedChange) -> None:
        address = change.address
        if change.operation in ("delete", "release"):
            self.resources.pop(address, None)
            if kind_of(address) == "graph":
                id = graph_of(address)
                self.resources = {a: r for a, r in self.resources.items() if graph_of(a) != id}
            return
        now = self.plan.wanted.resources[address]
        if kind_of(address) == "graph":
            identity = self._graph(graph_of(address))._repo.stamp.graph_id
            now = msgspec.structs.replace(now, identity=identity)
        self.resources[address] = now

    # --- steps -----------------------------------------------------------------------------------------------------

    def _uri(self, id: str) -> str:
        return address_in(self.plan.wanted.root, self.plan.wanted.resources[f"graph.{id}"].uri)

    def _graph(self, id: str) -> Graph:
        graph = opened(self._uri(id))
        if graph is None:
            raise ClusterMoved(f"graph {id!r} was removed meanwhile")
        return graph

    def _create(self, id: str) -> None:
        try:
            init(self._uri(id), self.plan.wanted.text(f"schema.{id}"), actor=self.begun.actor)
        except GraphExists:
            raise ClusterMoved(
                f"graph {id!r} was created by another process in the meantime"
            ) from None

    def _set_checks(self, id: str, text: str) -> None:
        self._graph(id).apply_checks(text, message=MESSAGE, actor=self.begun.actor)

    def _change_schema(self, id: str) -> None:
        """Replace the schema the plan saw with the desired one; any other one is left alone."""
        graph, seen = self._graph(id), self.plan.seen[id].schema
        text = self.plan.wanted.text(f"schema.{id}")
        verb = ops.apply_schema(text, lambda hashed: graph._repo.schema(hashed).ir)

        def checked(txn: WriteTxn) -> PublishPlan:
            if txn.snapshot.commit.schema != seen:
                raise ClusterMoved(f"the schema of {id!r} was changed meanwhile")
            return verb(txn)

        graph.publish(checked, actor=self.begun.actor, message=MESSAGE, alone=True)

    def _delete(self, id: str) -> None:
        """Delete first what makes it a graph, then everything else: an interrupted deletion still counts."""
        seen = self.plan.seen[id]
        graph = opened(seen.uri)
        if graph is not None and graph._repo.stamp.graph_id != seen.identity:
            raise ClusterMoved(f"another graph is at the address of {id!r}")
        objects = open_objects(locate(seen.uri))
        objects.delete([layout.GRAPH])
        objects.delete([found.key for found in objects.list("")])
