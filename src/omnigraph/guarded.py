"""A graph that checks every call: the verbs of a graph, under a policy.

Every request to a served graph goes through one, and so does a graph that is opened directly if a policy is
configured (see `opening`). `verbs` says when the policy checks a verb: for the graph as a whole in `_run`, for the
state it reads in `_state`, for what it writes in `_submit` and, once they are known, for the types it changes.
A method that is not described there is denied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from itertools import takewhile
from typing import Any

from omnigraph.core import history
from omnigraph.core.layout import parse_commit_id
from omnigraph.core.plan import PublishPlan, Request, Verb, Verify
from omnigraph.core.proposals import APPROVED, CHANGES_WANTED, ProposalState
from omnigraph.core.publisher import Published
from omnigraph.core.records import Commit as CommitRecord
from omnigraph.core.snapshot import Snapshot
from omnigraph.core.txn import WriteTxn
from omnigraph.errors import CommitPruned, Kind, OmnigraphError
from omnigraph.graph import Graph
from omnigraph.lang import ir
from omnigraph.merge.feed import Feed
from omnigraph.merge.lineage import writers_since
from omnigraph.model.frozen import frozen
from omnigraph.model.names import MAIN, branch_name
from omnigraph.outcomes import Blame, Commit, EntityHistory
from omnigraph.policy.bundle import Protection
from omnigraph.policy.guard import HARMLESS, Guard, Need
from omnigraph.policy.questions import Action, PolicyDenied
from omnigraph.policy.subjects import (
    types_in_conflict,
    types_read,
    types_revealed,
    types_searched,
    types_written,
)
from omnigraph.verbs import VERBS, Description, Timing
from omnigraph.versions import EVERY_TYPE


@frozen
class _Asking:
    """Who requests what, while a write is being planned."""

    guard: Guard
    need: Need


_asking: ContextVar[_Asking] = ContextVar("asking")


class GuardedGraph(Graph):
    """A graph for one actor, under a policy."""

    def __init__(self, graph: Graph, guard: Guard) -> None:
        graph._writers  # noqa: B018  made now, so that it is shared
        vars(self).update(vars(graph))  # the same repository, writers and compiled queries
        self._guard = guard

    def __getattribute__(self, name: str) -> Any:
        """Closed by default: a method without a description is denied."""
        if not name.startswith("_") and name not in VERBS and hasattr(Graph, name):
            raise PolicyDenied(f"policy denied {name!r}: no policy check is declared for it")
        return super().__getattribute__(name)

    def _run(
        self,
        verb: Description,
        body: Callable[..., Any],
        args: tuple[Any, ...],
        named: Mapping[str, Any],
    ) -> Any:
        if verb.timing is Timing.FIRST and verb.action is not None:
            self._permit(Need(verb.action))
        return body(self, *args, **named)

    def _permit(self, need: Need, actor: str | None = None) -> None:
        self._guard.acting(actor).require(need)

    def _allows(self, need: Need, actor: str | None = None) -> bool:
        return self._guard.acting(actor).allows(need)

    def _actor(self, actor: str | None) -> str | None:
        return actor or self._guard.actor

    # --- reading -----------------------------------------------------------------------------------------------

    def _state(
        self,
        branch: str = "main",
        at: object = None,
        types: Iterable[str] | None = (),
        action: Action | None = None,
    ) -> Snapshot:
        """A branch is checked by its name, before it is looked up. A point in time belongs to the branch it was
        written on; one that may not be read looks as if it did not exist. (That main exists is public.)"""
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
        """Only actors allowed to read a point learn why it does not exist."""
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

    def _feed(
        self,
        branch: str,
        after: str | None,
        types: Sequence[str] | None,
        wanted: Sequence[str] | None,
        limit: int | None,
    ) -> Feed:
        """Changes written on other branches before this one was created are checked on those branches."""
        now = self._state(branch, None, types)
        if types is None and not self._guard.allows(Need(Action.READ, branch, types=EVERY_TYPE)):
            types = sorted(_all_types(now))
        with self._discreet(history.no_point(after)):
            feed = super()._feed(branch, after, types, wanted, limit)
            written_on = feed.branches()
        shown = EVERY_TYPE if types is None else frozenset(types)
        for name in written_on:
            self._permit(Need(Action.READ, name, types=shown))
        return feed

    def _shown(self, type: str, found: EntityHistory) -> EntityHistory:
        """The history ends where it reaches a branch that may not be read."""
        shown = tuple(takewhile(lambda c: self._may_read(c.commit.branch, type), found.changes))
        return found if len(shown) == len(found.changes) else EntityHistory(shown)

    def _blamed(self, type: str, found: Blame) -> Blame:
        """A commit on a branch that may not be read is not named; the merge that brought it here is."""

        def seen(commit: Commit | None) -> Commit | None:
            return commit if commit is not None and self._may_read(commit.branch, type) else None

        cells = (replace(c, commit=seen(c.commit), via=seen(c.via)) for c in found.cells)
        return replace(found, cells=tuple(cells))

    def _may_read(self, branch: str, type: str) -> bool:
        return self._guard.allows(Need(Action.READ, branch, types=frozenset({type})))

    # --- writing -----------------------------------------------------------------------------------------------

    def _acting(self, actor: str | None) -> GuardedGraph:
        """The graph of the named actor; without a name, of the actor it was made for."""
        guard = self._guard.acting(actor)
        return self if guard is self._guard else GuardedGraph(self, guard)

    def _source(self, branch: str, at: object, actor: str | None) -> tuple[str, ...]:
        return (self._acting(actor)._state(branch, at).commit.branch,)

    def _submit(self, request: Request, need: Need) -> Published:
        """Check what can be checked immediately, and the types once the write is planned."""
        target = need.branch if need.target_branch is None else need.target_branch
        if need.action in HARMLESS or target is None or branch_name(target) != request.branch:
            raise PolicyDenied(
                f"policy denied a write of {request.branch!r}: it requests another action"
            )
        acting = self._acting(request.actor)
        acting._permit(need)
        if request.create_from is not None:
            acting._permit(Need(Action.BRANCH_CREATE, request.create_from, request.branch))
            acting._state(request.create_from, None, None)
        guard = acting._guard
        verb = _judged(_Asking(guard, need), request.verb)
        wanted = guard.protection(request.branch)
        if wanted is not None and wanted.checks:
            verb = _verifying(verb, self._verifier(wanted.checks))
            request = replace(request, alone=True)
        return super()._submit(replace(request, verb=verb, actor=guard.actor), need)

    def _may_approve_own(self, target: str) -> bool:
        wanted = self._guard.protection(target)
        return wanted is not None and wanted.own_approvals

    def _missing(self, state: ProposalState, head: CommitRecord) -> tuple[str, ...]:
        """Only approvals of this head count, by actors who may approve now and did not write it."""
        wanted = self._guard.protection(state.target)
        if wanted is None:
            return ()
        missing = [
            f"{actor} wants changes"
            for actor, verdict in sorted(state.verdicts.items())
            if verdict.kind == CHANGES_WANTED and self._is_approver(actor, state, wanted)
        ]
        own: set[str | None] = set()
        if wanted.approvals and not wanted.own_approvals:
            own = {state.author, *writers_since(self._repo, state.target, head)}
        counted = [
            actor
            for actor, verdict in state.verdicts.items()
            if verdict.kind == APPROVED
            and (wanted.stale_approvals or verdict.head == head.content)
            and actor not in own
            and self._is_approver(actor, state, wanted)
        ]
        if len(counted) < wanted.approvals:
            missing.append(
                f"{len(counted)} of {wanted.approvals} approvals of commit {head.content}"
            )
        return tuple(missing)

    def _is_approver(self, actor: str, state: ProposalState, wanted: Protection) -> bool:
        may = self._allows(Need(Action.APPROVE, state.source, state.target), actor)
        return may and self._guard.counts_as_approver(actor, wanted)

    def _asking(self, txn: WriteTxn) -> _Asking:
        """Who requests what, as the write being planned says; a bare verb is a change of its branch."""
        return _asking.get(_Asking(self._guard, Need(Action.CHANGE, txn.branch)))

    def _permit_mutation(self, query: ir.Query, txn: WriteTxn) -> None:
        """The types it names are checked before rows are read: finding none reveals something, too."""
        asking = self._asking(txn)
        asking.guard.require(asking.need.of(types_read(query)))
        searched = types_searched(query)
        if searched:
            asking.guard.require(Need(Action.READ, asking.need.branch, types=searched))

    def _rows(self, source: Any, mode: str) -> Verb:
        """A load inside a block is checked as it would be alone."""
        verb = super()._rows(source, mode)

        def checked(txn: WriteTxn) -> PublishPlan:
            asking = self._asking(txn)
            need = replace(asking.need, mode=mode)
            asking.guard.require(need)
            return _judged(_Asking(asking.guard, need), verb)(txn)

        return checked

    def _permit_name(
        self, name: str, branch: str, at: object, types: Iterable[str] | None, actor: str | None
    ) -> None:
        """Naming a state shows it to others: the actor must be allowed to read the types concerned."""
        acting = self._acting(actor)
        found = acting._state(branch, at, types)
        where = branch if at is None else found.commit.branch
        acting._permit(Need(Action.BRANCH_CREATE, where, name))


def _judged(asking: _Asking, verb: Verb) -> Verb:
    """The same verb; its changes are checked before anything about them is revealed."""
    guard, need = asking.guard, asking.need

    def judged(txn: WriteTxn) -> PublishPlan:
        before = _asking.set(asking)
        try:
            plan = verb(txn)
        except OmnigraphError as error:  # it may reveal which rows exist
            types = types_revealed(error)
            guard.require(need.of(types))
            if types and need.action is not Action.CHANGE:  # rows of others than of the writer
                guard.require(Need(Action.READ, txn.branch, types=types))
            raise
        finally:
            _asking.reset(before)
        guard.require(need.of(types_written(plan, txn.snapshot)))
        shown = types_in_conflict(plan)
        if shown:  # with the rows of both sides
            guard.require(Need(Action.READ, txn.branch, types=shown))
        return plan

    return judged


def _verifying(verb: Verb, verify: Verify) -> Verb:
    """The same verb; the state it leads to is also verified before it is published."""

    def verifying(txn: WriteTxn) -> PublishPlan:
        plan = verb(txn)
        first = plan.verify
        if first is None:
            return replace(plan, verify=verify)

        def both(before: Snapshot, after: Snapshot) -> Mapping[str, Any]:
            answer, more = dict(first(before, after)), verify(before, after)
            return answer | {"checks": {**answer.get("checks", {}), **more.get("checks", {})}}

        return replace(plan, verify=both)

    return verifying


def _all_types(*states: Snapshot) -> frozenset[str]:
    return frozenset(kind.name for state in states for kind in state.catalog.entities())
