"""A graph that asks before it does anything: the verbs of a graph, under a policy.

Served graphs are held like this for every request, and so are graphs that are opened directly where a policy is
configured (see `opening`). Each verb asks what it needs; what a write changes is asked about when it is known, before
it is published.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from datetime import timedelta
from typing import Any

from omnigraph.core.doctor import Diagnosis
from omnigraph.core.gc import Collected
from omnigraph.core.plan import PublishPlan, Request, Verb
from omnigraph.core.publisher import Published
from omnigraph.core.repository import Repository
from omnigraph.core.snapshot import Snapshot
from omnigraph.core.txn import WriteTxn
from omnigraph.errors import OmnigraphError
from omnigraph.graph import Graph
from omnigraph.lang import ir
from omnigraph.lang.query import Want
from omnigraph.lang.schema import MigrationPlan
from omnigraph.merge.diff import Diff
from omnigraph.merge.feed import Feed
from omnigraph.outcomes import Commit, EntityHistory
from omnigraph.policy.guard import Guard, Need
from omnigraph.policy.questions import Action
from omnigraph.policy.subjects import types_read, types_told, types_written
from omnigraph.read.blobs import Blob
from omnigraph.read.export import Exported
from omnigraph.upkeep import Upkeep
from omnigraph.write.clone import Cloned
from omnigraph.write.input.options import Options
from omnigraph.write.load import LoadOutcome
from omnigraph.write.maintain import TableReport

EVERY_TYPE = frozenset({"*"})  # those that are not in the schema any more among them
Asking = Callable[[frozenset[str]], None]
_asking: ContextVar[Asking] = ContextVar("asking")  # about types, for the write that is worked out


class GuardedGraph(Graph):
    """The graph of somebody a policy applies to."""

    def __init__(self, graph: Graph, guard: Guard) -> None:
        graph._writers  # noqa: B018  made now, so that it is shared
        vars(self).update(vars(graph))  # the same repository, writers and compiled queries
        self._guard = guard

    def _require(self, need: Need, actor: str | None = None) -> None:
        self._guard.acting(actor).require(need)

    def _where(self, snapshot: Snapshot, branch: str, at: object) -> str:
        """The branch a read is a read of: a point in time belongs to the one it was written on."""
        return branch if at is None else snapshot.commit.branch

    @property
    def repository(self) -> Repository:
        self._require(Need(Action.ADMIN))
        return super().repository

    # --- reading -----------------------------------------------------------------------------------------------

    def _permit_query(self, query: ir.Query, snapshot: Snapshot, branch: str, at: object) -> None:
        where = self._where(snapshot, branch, at)
        self._require(Need(Action.READ, where, types=types_read(query)))

    def snapshot(self, branch: str = "main", at: object = None) -> Snapshot:
        """One pinned state, for whoever may read all of it."""
        found = self._pinned(branch, at)
        self._require(Need(Action.READ, self._where(found, branch, at), types=_all_types(found)))
        return found

    def blob(
        self, type: str, id: str, property: str, branch: str = "main", at: object = None
    ) -> Blob:
        where = self._where(self._pinned(branch, at), branch, at)
        self._require(Need(Action.READ, where, types=frozenset({type})))
        return super().blob(type, id, property, branch, at)

    def schema(self, branch: str = "main", at: object = None) -> str:
        self._require(Need(Action.READ, self._where(self._pinned(branch, at), branch, at)))
        return super().schema(branch, at)

    def plan_schema(
        self, text: str, branch: str = "main", *, allow_data_loss: bool = False
    ) -> MigrationPlan:
        self._require(Need(Action.READ, branch))
        return super().plan_schema(text, branch, allow_data_loss=allow_data_loss)

    def export(
        self,
        dest: str | os.PathLike[str],
        format: str = "ndjson",
        branch: str = "main",
        at: object = None,
        types: Sequence[str] | None = None,
        engine: str = "auto",
        *,
        order: str | None = None,
    ) -> Exported:
        now = self._pinned(branch, at)
        asked = _all_types(now) if types is None else frozenset(types)
        self._require(Need(Action.EXPORT, self._where(now, branch, at), types=asked))
        return super().export(dest, format, branch, at, sorted(asked), engine, order=order)

    def branches(self) -> list[str]:
        self._require(Need(Action.READ))
        return super().branches()

    def tags(self) -> dict[str, str]:
        self._require(Need(Action.READ))
        return super().tags()

    def log(
        self,
        branch: str = "main",
        limit: int | None = 50,
        actor: str | None = None,
        kind: str | None = None,
        *,
        at: object = None,
        maintenance: bool = False,
    ) -> list[Commit]:
        self._require(Need(Action.READ, self._where(self._pinned(branch, at), branch, at)))
        return super().log(branch, limit, actor, kind, at=at, maintenance=maintenance)

    def commit(self, id: str) -> Commit:
        self._require(Need(Action.READ))
        return super().commit(id)

    def diff(
        self,
        a: object,
        b: object,
        *,
        branch: str = "main",
        types: Sequence[str] | None = None,
        operations: Sequence[str] | None = None,
    ) -> Diff:
        states = self._pinned(branch, a), self._pinned(branch, b)
        asked = _all_types(*states) if types is None else frozenset(types)
        for state in states:
            self._require(Need(Action.READ, state.commit.branch, types=asked))
        return super().diff(a, b, branch=branch, types=types, operations=operations)

    def changes(
        self,
        after: str | None = None,
        branch: str = "main",
        types: Sequence[str] | None = None,
        operations: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> Feed:
        asked = _all_types(self._pinned(branch)) if types is None else frozenset(types)
        self._require(Need(Action.READ, branch, types=asked))
        if types is None and not self._guard.allows(Need(Action.READ, branch, types=EVERY_TYPE)):
            types = sorted(asked)
        return super().changes(after, branch, types, operations, limit)

    def history(
        self, type: str, id: str, branch: str = "main", at: object = None, limit: int = 50
    ) -> EntityHistory:
        where = self._where(self._pinned(branch, at), branch, at)
        self._require(Need(Action.READ, where, types=frozenset({type})))
        return super().history(type, id, branch, at, limit)

    # --- writing -----------------------------------------------------------------------------------------------

    def _submit(self, request: Request, need: Need) -> Published:
        """Ask what can be asked at once, and about types when the write has been worked out."""
        guard = self._guard.acting(request.actor)
        guard.require(need)
        if request.create_from is not None:
            guard.require(Need(Action.BRANCH_CREATE, request.create_from, request.branch))
        verb = request.verb

        def judged(txn: WriteTxn) -> PublishPlan:
            asking = _asking.set(lambda types: guard.require(need.of(types)))
            try:
                plan = verb(txn)
            except OmnigraphError as error:  # it may tell which rows there are
                guard.require(need.of(types_told(error)))
                raise
            finally:
                _asking.reset(asking)
            guard.require(need.of(types_written(plan, txn.snapshot)))
            return plan

        return super()._submit(replace(request, verb=judged, actor=guard.actor), need)

    def mutation(
        self, text: str, params: Mapping[str, Any] | None = None, name: str | None = None
    ) -> Verb:
        """The types it names are asked about before a row is looked for: finding none tells something too."""
        verb = super().mutation(text, params, name)

        def asked(txn: WriteTxn) -> PublishPlan:
            query = self._compiled(txn.snapshot.commit.schema, text, name, Want.MUTATION)
            _asking.get()(types_read(query))
            return verb(txn)

        return asked

    def check_load(
        self,
        source: Any,
        mode: str = "merge",
        branch: str = "main",
        *,
        options: Options | None = None,
    ) -> LoadOutcome:
        need = Need(Action.CHANGE, branch, mode=mode)
        self._require(need)
        found = super().check_load(source, mode, branch, options=options)
        self._require(need.of(frozenset({*found.nodes, *found.edges})))
        return found

    def create_branch(self, name: str, from_: str = "main", *, actor: str | None = None) -> None:
        self._require(Need(Action.BRANCH_CREATE, from_, name), actor)
        super().create_branch(name, from_, actor=actor or self._guard.actor)

    def delete_branch(self, name: str, *, actor: str | None = None) -> None:
        self._require(Need(Action.BRANCH_DELETE, target_branch=name), actor)
        super().delete_branch(name, actor=actor or self._guard.actor)

    def tag(
        self, name: str, at: object = None, *, branch: str = "main", actor: str | None = None
    ) -> str:
        self._require(Need(Action.BRANCH_CREATE, branch, name), actor)
        return super().tag(name, at, branch=branch, actor=actor or self._guard.actor)

    def delete_tag(self, name: str) -> None:
        self._require(Need(Action.BRANCH_DELETE, target_branch=name))
        super().delete_tag(name)

    # --- keeping it in order -------------------------------------------------------------------------------------

    def optimize(
        self, branch: str = "main", *, engine: str = "auto", timeout: float | None = None
    ) -> list[TableReport]:
        self._require(Need(Action.ADMIN))
        return super().optimize(branch, engine=engine, timeout=timeout)

    def upkeep(self, every: float = 60.0, branches: Sequence[str] = ("main",)) -> Upkeep:
        self._require(Need(Action.ADMIN))
        return super().upkeep(every, branches)

    def cleanup(
        self, keep: int = 10, older_than: timedelta | float | None = None, *, dry_run: bool = False
    ) -> Collected:
        self._require(Need(Action.ADMIN))
        return super().cleanup(keep, older_than, dry_run=dry_run)

    def doctor(self, deep: bool = False) -> Diagnosis:
        self._require(Need(Action.ADMIN))
        return super().doctor(deep)

    def clone(self, dest: object, branch: str | None = None) -> Cloned:
        self._require(Need(Action.ADMIN))
        return super().clone(dest, branch)


def _all_types(*states: Snapshot) -> frozenset[str]:
    return frozenset(kind.name for state in states for kind in state.catalog.entities())
