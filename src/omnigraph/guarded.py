"""A graph that asks before it does anything: the verbs of a graph, under a policy.

Served graphs are held like this for every request, and so are graphs that are opened directly where a policy is
configured (see `opening`). Whatever looks at a state asks in `_state`; whatever writes asks in `_submit`, and about the
types it changes when they are known, before it is published. A verb that is not described here is denied.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import takewhile
from typing import Any

from omnigraph.core import history
from omnigraph.core.doctor import Diagnosis
from omnigraph.core.gc import Collected
from omnigraph.core.layout import parse_commit_id
from omnigraph.core.plan import PublishPlan, Request, Verb
from omnigraph.core.publisher import Published
from omnigraph.core.repository import Repository
from omnigraph.core.snapshot import Snapshot
from omnigraph.core.txn import WriteTxn
from omnigraph.errors import CommitPruned, Kind, OmnigraphError
from omnigraph.graph import Graph
from omnigraph.lang import ir
from omnigraph.lang.query import Want
from omnigraph.merge.feed import Feed
from omnigraph.model.names import MAIN, branch_name
from omnigraph.outcomes import Commit, EntityHistory
from omnigraph.policy.guard import HARMLESS, Guard, Need
from omnigraph.policy.questions import Action, PolicyDenied
from omnigraph.policy.subjects import (
    types_in_conflict,
    types_read,
    types_searched,
    types_told,
    types_written,
)
from omnigraph.upkeep import Upkeep
from omnigraph.write.clone import Cloned
from omnigraph.write.maintain import TableReport

EVERY_TYPE = frozenset({"*"})  # those that are not in the schema any more among them
# Verbs that look at states and write through `_state` and `_submit`, or are made of verbs that do.
ASKING_BELOW = frozenset(
    {
        "analytics",
        "apply_schema",
        "blob",
        "branch",
        "cherry_pick",
        "check_load",
        "diff",
        "export",
        "load",
        "log",
        "merge",
        "mutate",
        "plan_schema",
        "publish",
        "query",
        "reset",
        "revert",
        "schema",
        "snapshot",
        "spark",
        "uri",
    }
)


@dataclass(frozen=True, slots=True)
class _Asking:
    """Who wants what, while a write is worked out."""

    guard: Guard
    need: Need


_asking: ContextVar[_Asking] = ContextVar("asking")


class GuardedGraph(Graph):
    """The graph of somebody a policy applies to."""

    def __init__(self, graph: Graph, guard: Guard) -> None:
        graph._writers  # noqa: B018  made now, so that it is shared
        vars(self).update(vars(graph))  # the same repository, writers and compiled queries
        self._guard = guard

    def __getattribute__(self, name: str) -> Any:
        """Closed by default: what nobody described here is no verb of a guarded graph."""
        if not name.startswith("_") and name not in DESCRIBED and hasattr(Graph, name):
            raise PolicyDenied(f"policy denied {name!r}: it does not say what it asks a policy")
        return super().__getattribute__(name)

    def _permit(self, need: Need, actor: str | None = None) -> None:
        self._guard.acting(actor).require(need)

    @property
    def repository(self) -> Repository:
        self._permit(Need(Action.ADMIN))
        return super().repository

    # --- reading -----------------------------------------------------------------------------------------------

    def _state(
        self,
        branch: str = "main",
        at: object = None,
        types: Iterable[str] | None = (),
        action: Action | None = None,
    ) -> Snapshot:
        """A branch is asked about by its name, before it is looked for. A point in time belongs to the branch it was
        written on; one that may not be read looks like one that is not there. (That there is a main is no secret.)"""
        need = Need(action or Action.READ, branch)
        if at is None:
            self._permit(need)
            found = self._pinned(branch)
        else:
            missing = history.no_point(at)
            with self._discreet(missing):
                found = self._pinned(branch, at)
            need = replace(need, branch=found.commit.branch)
            self._permit(replace(need, instead=None if at == MAIN else missing))
        shown = _all_types(found) if types is None else frozenset(types)
        if shown:
            self._permit(need.of(shown))
        return found

    @contextmanager
    def _discreet(self, missing: OmnigraphError) -> Iterator[None]:
        """Why a point is not there is told to those who might have read it."""
        try:
            yield
        except OmnigraphError as error:
            if error.kind is Kind.NOT_FOUND and not self._may_know(error):
                raise missing from None
            raise

    def _may_know(self, error: OmnigraphError) -> bool:
        need = Need(Action.READ)
        if isinstance(error, CommitPruned) and "commit" in error.details:
            chain, number, _ = parse_commit_id(error.details["commit"])
            gone = self._repo.chains.expect(chain, number)
            need = replace(need, branch=getattr(gone, "branch", None))
        return self._guard.allows(need) or self._guard.allows(Need(Action.READ))

    def _permit_query(self, query: ir.Query, snapshot: Snapshot, branch: str, at: object) -> None:
        where = branch if at is None else snapshot.commit.branch
        self._permit(Need(Action.READ, where, types=types_read(query)))

    def branches(self) -> list[str]:
        self._permit(Need(Action.READ))
        return super().branches()

    def tags(self) -> dict[str, str]:
        self._permit(Need(Action.READ))
        return super().tags()

    def commit(self, id: str) -> Commit:
        self._permit(Need(Action.READ))
        return super().commit(id)

    def changes(
        self,
        after: str | None = None,
        branch: str = "main",
        types: Sequence[str] | None = None,
        operations: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> Feed:
        """What was written on other branches, before this one was made of them, is asked about there."""
        now = self._state(branch, None, types)
        if types is None and not self._guard.allows(Need(Action.READ, branch, types=EVERY_TYPE)):
            types = sorted(_all_types(now))
        with self._discreet(history.no_point(after)):
            feed = super().changes(after, branch, types, operations, limit)
            told = feed.branches()
        shown = EVERY_TYPE if types is None else frozenset(types)
        for name in told:
            self._permit(Need(Action.READ, name, types=shown))
        return feed

    def history(
        self, type: str, id: str, branch: str = "main", at: object = None, limit: int = 50
    ) -> EntityHistory:
        """It ends where it leads to a branch that may not be read."""
        found = super().history(type, id, branch, at, limit)
        shown = tuple(takewhile(lambda c: self._may_read(c.commit.branch, type), found.changes))
        return found if len(shown) == len(found.changes) else EntityHistory(shown)

    def _may_read(self, branch: str, type: str) -> bool:
        return self._guard.allows(Need(Action.READ, branch, types=frozenset({type})))

    # --- writing -----------------------------------------------------------------------------------------------

    def _acting(self, actor: str | None) -> GuardedGraph:
        """The graph of whoever is named; without a name, of whom it was made for."""
        guard = self._guard.acting(actor)
        return self if guard is self._guard else GuardedGraph(self, guard)

    def _source(self, branch: str, at: object, actor: str | None) -> tuple[str, ...]:
        return (self._acting(actor)._state(branch, at).commit.branch,)

    def _submit(self, request: Request, need: Need) -> Published:
        """Ask what can be asked at once, and about types when the write has been worked out."""
        target = need.branch if need.target_branch is None else need.target_branch
        if need.action in HARMLESS or target is None or branch_name(target) != request.branch:
            raise PolicyDenied(
                f"policy denied a write of {request.branch!r}: it asks for something else"
            )
        acting = self._acting(request.actor)
        acting._permit(need)
        if request.create_from is not None:
            acting._permit(Need(Action.BRANCH_CREATE, request.create_from, request.branch))
            acting._state(request.create_from, None, None)
        guard = acting._guard
        verb = _judged(_Asking(guard, need), request.verb)
        return super()._submit(replace(request, verb=verb, actor=guard.actor), need)

    def _asking(self, txn: WriteTxn) -> _Asking:
        """Who wants what, as the write says that is worked out; a verb by itself is a change of its branch."""
        return _asking.get(_Asking(self._guard, Need(Action.CHANGE, txn.branch)))

    def mutation(
        self, text: str, params: Mapping[str, Any] | None = None, name: str | None = None
    ) -> Verb:
        """The types it names are asked about before a row is looked for: finding none tells something too."""
        verb = super().mutation(text, params, name)

        def asked(txn: WriteTxn) -> PublishPlan:
            query = self._compiled(txn.snapshot.commit.schema, text, name, Want.MUTATION)
            asking = self._asking(txn)
            asking.guard.require(asking.need.of(types_read(query)))
            searched = types_searched(query)
            if searched:
                asking.guard.require(Need(Action.READ, asking.need.branch, types=searched))
            return verb(txn)

        return asked

    def _rows(self, source: Any, mode: str) -> Verb:
        """A load inside a block asks what it would ask alone."""
        verb = super()._rows(source, mode)

        def asked(txn: WriteTxn) -> PublishPlan:
            asking = self._asking(txn)
            need = replace(asking.need, mode=mode)
            asking.guard.require(need)
            return _judged(_Asking(asking.guard, need), verb)(txn)

        return asked

    def create_branch(self, name: str, from_: str = "main", *, actor: str | None = None) -> None:
        """Whoever forks a state gives it to the readers of another branch: all of it must be theirs to read."""
        acting = self._acting(actor)
        found = acting._state("main", from_, None)
        acting._permit(Need(Action.BRANCH_CREATE, found.commit.branch, name))
        super().create_branch(name, from_, actor=actor or self._guard.actor)

    def delete_branch(self, name: str, *, actor: str | None = None) -> None:
        self._permit(Need(Action.BRANCH_DELETE, target_branch=name), actor)
        super().delete_branch(name, actor=actor or self._guard.actor)

    def tag(
        self, name: str, at: object = None, *, branch: str = "main", actor: str | None = None
    ) -> str:
        acting = self._acting(actor)
        found = acting._state(branch, at)
        where = branch if at is None else found.commit.branch
        acting._permit(Need(Action.BRANCH_CREATE, where, name))
        return super().tag(name, at, branch=branch, actor=actor or self._guard.actor)

    def delete_tag(self, name: str) -> None:
        self._permit(Need(Action.BRANCH_DELETE, target_branch=name))
        super().delete_tag(name)

    # --- keeping it in order -------------------------------------------------------------------------------------

    def optimize(
        self, branch: str = "main", *, engine: str = "auto", timeout: float | None = None
    ) -> list[TableReport]:
        self._permit(Need(Action.ADMIN))
        return super().optimize(branch, engine=engine, timeout=timeout)

    def upkeep(self, every: float = 60.0, branches: Sequence[str] = ("main",)) -> Upkeep:
        self._permit(Need(Action.ADMIN))
        return super().upkeep(every, branches)

    def cleanup(
        self, keep: int = 10, older_than: timedelta | float | None = None, *, dry_run: bool = False
    ) -> Collected:
        self._permit(Need(Action.ADMIN))
        return super().cleanup(keep, older_than, dry_run=dry_run)

    def doctor(self, deep: bool = False) -> Diagnosis:
        self._permit(Need(Action.ADMIN))
        return super().doctor(deep)

    def clone(self, dest: object, branch: str | None = None) -> Cloned:
        """All of it, or one state, in a place no policy of this graph reaches."""
        self._permit(Need(Action.ADMIN))
        if branch is None:
            self._permit(Need(Action.READ, types=EVERY_TYPE))
        else:
            self._state(branch, None, None)
        return super().clone(dest, branch)


DESCRIBED = ASKING_BELOW.union(name for name in vars(GuardedGraph) if not name.startswith("_"))


def _judged(asking: _Asking, verb: Verb) -> Verb:
    """The same verb; what it would change is asked about before anybody hears of it."""
    guard, need = asking.guard, asking.need

    def judged(txn: WriteTxn) -> PublishPlan:
        before = _asking.set(asking)
        try:
            plan = verb(txn)
        except OmnigraphError as error:  # it may tell which rows there are
            told = types_told(error)
            guard.require(need.of(told))
            if told and need.action is not Action.CHANGE:  # rows of others than of the writer
                guard.require(Need(Action.READ, txn.branch, types=told))
            raise
        finally:
            _asking.reset(before)
        guard.require(need.of(types_written(plan, txn.snapshot)))
        shown = types_in_conflict(plan)
        if shown:  # with the rows of both sides
            guard.require(Need(Action.READ, txn.branch, types=shown))
        return plan

    return judged


def _all_types(*states: Snapshot) -> frozenset[str]:
    return frozenset(kind.name for state in states for kind in state.catalog.entities())
