"""The verbs of a graph about proposals: offering a branch for merging, talking about it, and merging it.

What a policy requires of a branch is checked in `_missing`, on exactly the state of the proposal in which the merge is
claimed; see `core.proposals` for why no approval is lost, and none counts for a commit it was not given for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from omnigraph.checking import Checking
from omnigraph.core.clock import NEVER, Deadline
from omnigraph.deferred import Deferred
from omnigraph.errors import (
    BranchDeleted,
    BranchNotFound,
    Kind,
    OmnigraphError,
    OptionInvalid,
    RetriesExhausted,
    StoreOutcomeUnknown,
    StoreUnavailable,
    TableNotFound,
)
from omnigraph.fingerprint import fingerprint
from omnigraph.model.names import branch_name
from omnigraph.policy.questions import Action
from omnigraph.storage import metrics
from omnigraph.verbs import verb

if TYPE_CHECKING:
    from omnigraph import operations as ops
    from omnigraph import outcomes, proposed
    from omnigraph.core import proposals as store
    from omnigraph.core.plan import PublishPlan, Request, Verb
    from omnigraph.core.proposals import ProposalState
    from omnigraph.core.publisher import Published
    from omnigraph.core.records import Commit as StoredCommit
    from omnigraph.core.txn import WriteTxn
    from omnigraph.outcomes import MergeResult
    from omnigraph.policy.guard import Need
    from omnigraph.proposed import Proposal, Review
else:
    ops = Deferred("omnigraph.operations")
    outcomes = Deferred("omnigraph.outcomes")
    proposed = Deferred("omnigraph.proposed")
    store = Deferred("omnigraph.core.proposals")

PROPOSALS_SHOWN_MAX = 1_000


class ProposalNotReady(OmnigraphError):
    """The proposal lacks something that its target requires.

    A policy may require approvals of the current commit of the branch, by others than its authors, and checks.
    `omnigraph review NUMBER` lists what is missing.
    """

    code, kind = "proposal_not_ready", Kind.DENIED
    default_help = "`omnigraph review NUMBER` shows what is missing."
    python_help = "g.proposal(number) shows what is missing."


class OwnApproval(OmnigraphError):
    """A proposal cannot be approved by its author."""

    code, kind = "own_approval", Kind.DENIED
    default_help = "Ask another person for a review."


class Reviewing(Checking):
    """What a `Graph` can do with proposals."""

    _submit: Any

    # --- hooks of a policy -------------------------------------------------------------------------------------------

    def _missing(self, state: ProposalState, head: StoredCommit) -> tuple[str, ...]:  # noqa: ARG002
        """What a proposal lacks before this head may be merged; the hook of a policy."""
        return ()

    def _may_approve_own(self, target: str) -> bool:  # noqa: ARG002
        """Whether authors may approve their own proposals."""
        return False

    # --- reading -----------------------------------------------------------------------------------------------------

    @verb
    def proposals(
        self, state: str | None = None, target: str | None = None, limit: int = 50
    ) -> list[Proposal]:
        """Branches offered for merging, newest first: all, or those in a state or for a branch.

        >>> import omnigraph
        >>> g = omnigraph.init("memory://doc-proposals", schema="node Person { name: String @key }")
        >>> g.create_branch("draft")
        >>> _ = g.load({"Person": [{"name": "Ada"}]}, branch="draft")
        >>> g.propose("draft", "Add Ada").number
        1
        >>> [(p.number, p.title, p.state) for p in g.proposals()]
        [(1, 'Add Ada', 'open')]
        """
        self._repo.check_process()
        self._permit(ops.Need(Action.READ, target))
        if state is not None and state not in proposed.STATES:
            raise OptionInvalid(f"state is one of {', '.join(proposed.STATES)}, not {state!r}")
        if not 0 <= limit <= PROPOSALS_SHOWN_MAX:
            raise OptionInvalid(f"limit is from 0 to {PROPOSALS_SHOWN_MAX}, got {limit}")
        wanted = None if target is None else branch_name(target)
        found: list[Proposal] = []
        numbers = store.numbers(self._repo)
        while numbers and len(found) < limit:
            page, numbers = numbers[:limit], numbers[limit:]
            for known in store.newest_of(self._repo, page):
                if wanted in (None, known.target) and self._allows(_to_see(known)):
                    shown = self._shown_proposal(known)
                    found += [shown] if state in (None, shown.state) else []
        return found[:limit]

    @verb
    def proposal(self, number: int) -> Proposal:
        """One proposal, with all its events."""
        last, state = self._known(number)
        thread = (
            proposed.ThreadEntry.of(event) for event in store.events(self._repo, number, last)
        )
        seen = tuple(e for e in thread if e.type is None or self._sees(state, e.type))
        return self._shown_proposal(state, seen)

    def _known(self, number: int, actor: str | None = None) -> tuple[int, ProposalState]:
        """A proposal; one whose branches may not be read looks as if it did not exist."""
        self._repo.check_process()
        last, state = store.newest(self._repo, number)
        self._permit(replace(_to_see(state), instead=store.no_proposal(number)), actor)
        return last, state

    def _sees(self, state: ProposalState, type: str) -> bool:
        need = ops.Need(Action.READ, state.source, types=frozenset({type}))
        return self._allows(need)

    def _shown_proposal(self, state: ProposalState, thread: tuple[Any, ...] = ()) -> Proposal:
        if state.claim is not None:
            landed = ops.merge_landed(self._repo, state.claim.key)
            if landed is not None:  # the merging process did not get to record it
                state = store.settled(state, self._repo, state.claim.key, {"commit": landed})
        head = self._head_of(state) if state.status in (store.OPEN, store.MERGING) else None
        return proposed.Proposal.of(state, None if head is None else head.content, thread)

    def _head_of(self, state: ProposalState) -> StoredCommit | None:
        try:
            return self._repo.head(state.source).commit
        except BranchNotFound:
            return None

    def _parted(self, state: ProposalState, head: StoredCommit) -> str:
        """Where the branch of a proposal diverged from its target."""
        return ops.merge_base(self._repo, self._repo.head(state.target).commit, head).content

    @verb
    def review(self, number: int, *, timeout: float | None = None) -> Review:
        """Review a proposal: the rows that changed since its branch diverged from the target, whether it merges,
        the results of the checks, and what is missing before it may be merged.

        >>> import omnigraph
        >>> g = omnigraph.init("memory://doc-review", schema="node Person { name: String @key }")
        >>> g.create_branch("draft")
        >>> _ = g.load({"Person": [{"name": "Ada"}]}, branch="draft")
        >>> found = g.review(g.propose("draft", "Add Ada").number)
        >>> found.mergeable, found.counts
        (True, {'Person': {'inserted': 1, 'updated': 0, 'deleted': 0}})
        """
        with metrics.operation("review"):
            _, state = self._known(number)
            shown = self.proposal(number)
            head = self._head_of(state) if state.status in (store.OPEN, store.MERGING) else None
            if head is not None:
                base, tip = self._parted(state, head), head.content
            elif state.base is None or state.head is None:
                raise store.ProposalEnded(f"proposal {number} has no branch any more")
            else:
                base, tip = state.base, state.head
            found = self.diff(base, tip)  # checks that all of it may be read
            outcome, conflicts = "already_up_to_date", ()
            if head is not None:
                outcome, conflicts = self._rehearsed(state, head)
            one, other = (self._state("main", point).commit for point in (base, tip))
            checks = ops.changed_checks(*(self._repo.checks(c.checks) for c in (one, other)))
            return proposed.Review(
                proposal=shown,
                base=base,
                head=tip,
                counts=found.counts,
                schema=found.schema,
                changed_checks=checks.to_json(),
                outcome=outcome,
                conflicts=conflicts,
                checks=self.check(at=tip, before=base, timeout=timeout),
                missing=() if head is None else self._missing(state, head),
            )

    def _rehearsed(self, state: ProposalState, head: StoredCommit) -> tuple[str, Any]:
        """The outcome a merge would have; nothing is written. The caller may read both sides."""
        write = ops.merge(self._repo, state.source, state.target, pinned=head)
        request = ops.Request(branch=branch_name(state.target), verb=ops.dry_run(write), alone=True)
        found = self._writers.submit(request).value
        return found.outcome, found.conflicts

    # --- talking -----------------------------------------------------------------------------------------------------

    @verb
    def propose(
        self,
        source: str,
        title: str,
        into: str = "main",
        *,
        text: str = "",
        reviewers: Sequence[str] = (),
        actor: str | None = None,
        dry_run: bool = False,
    ) -> Proposal:
        """Propose a branch for merging into another, under a new number.

        >>> import omnigraph
        >>> g = omnigraph.init("memory://doc-propose", schema="node Person { name: String @key }")
        >>> g.create_branch("draft")
        >>> g.propose("draft", "More people", text="From the paper archive.", actor="ada").state
        'open'
        """
        source, target = branch_name(source), branch_name(into)
        self._permit(ops.Need(Action.PROPOSE, source, target, reads=(source,)), actor)
        if source == target:
            raise OptionInvalid(f"branch {source!r} cannot be proposed for itself")
        title = store.checked_text("title", title, store.TITLE_MAX, needed=True)
        text = store.checked_text("text", text, store.TEXT_MAX)
        named = store.checked_reviewers(reviewers)
        self._repo.check_process()
        head = self._repo.head(source).commit.content
        self._repo.head(target)
        with metrics.operation("propose"):
            made = store.open_proposal(
                self._repo,
                title=title,
                text=text,
                author=self._actor(actor),
                source=source,
                target=target,
                head=head,
                reviewers=named,
                dry_run=dry_run,
            )
        return proposed.Proposal.of(made, head, (proposed.ThreadEntry.of(made.event),))

    @verb
    def comment(
        self,
        number: int,
        text: str,
        *,
        type: str | None = None,
        id: str | None = None,
        property: str | None = None,
        actor: str | None = None,
        dry_run: bool = False,
    ) -> Proposal:
        """Comment on a proposal, or on a type, a row or a cell it changes."""
        text = store.checked_text("text", text, store.TEXT_MAX, needed=True)
        place = store.checked_place(type, id, property)
        _, state = self._known(number, actor)
        self._permit(_need(Action.PROPOSE, state), actor)
        head = self._head_of(state)
        if place is not None:
            self._permit(ops.Need(Action.READ, state.source, types=frozenset({place.type})), actor)
            if head is not None and self._repo.snapshot(head).catalog.entity(place.type) is None:
                raise TableNotFound(f"there is no type {place.type!r}")
        about = None if head is None else head.content
        by = self._actor(actor)

        def step(now: ProposalState) -> ProposalState:
            happened = store.event(self._repo, "commented", by, text=text, head=about, place=place)
            return store.after(now, happened)

        return self._changed(state, step, dry_run)

    @verb
    def approve(
        self,
        number: int,
        *,
        head: str | None = None,
        text: str = "",
        actor: str | None = None,
        dry_run: bool = False,
    ) -> Proposal:
        """Approve a proposal as its branch is now; with `head`, only if that is the commit it is at.

        >>> import omnigraph
        >>> g = omnigraph.init("memory://doc-approve", schema="node Person { name: String @key }")
        >>> g.create_branch("draft")
        >>> number = g.propose("draft", "More people", actor="ada").number
        >>> g.approve(number, actor="grace").state
        'approved'
        """
        return self._judge("approved", number, head, text, actor, dry_run)

    @verb
    def request_changes(
        self,
        number: int,
        text: str,
        *,
        head: str | None = None,
        actor: str | None = None,
        dry_run: bool = False,
    ) -> Proposal:
        """Ask for changes before a proposal may be merged; that stands until the same person approves."""
        text = store.checked_text("text", text, store.TEXT_MAX, needed=True)
        return self._judge("changes_wanted", number, head, text, actor, dry_run)

    def _judge(
        self,
        kind: str,
        number: int,
        head: str | None,
        text: str,
        actor: str | None,
        dry_run: bool,
    ) -> Proposal:
        text = store.checked_text("text", text, store.TEXT_MAX)
        _, state = self._known(number, actor)
        self._permit(_need(Action.APPROVE, state), actor)
        by = self._actor(actor)
        if by is None:
            raise OptionInvalid("a review needs an actor", help="Name an actor.")
        if by == state.author and kind == "approved" and not self._may_approve_own(state.target):
            raise OwnApproval(f"{by} proposed this, so another person has to approve it")
        store.require_open(state)
        if not dry_run:
            state = self._settled(state)
        now = self._repo.head(state.source).commit.content
        if head not in (None, now):
            raise store.ProposalMoved(
                f"branch {state.source!r} is at commit {now}, not at {head}",
                details={"expected": head, "actual": now},
            )

        def step(there: ProposalState) -> ProposalState:
            happened = store.event(self._repo, kind, by, text=text, head=now)
            return store.judged(there, happened)

        return self._changed(state, step, dry_run)

    @verb
    def close_proposal(
        self, number: int, *, text: str = "", actor: str | None = None, dry_run: bool = False
    ) -> Proposal:
        """End a proposal without merging it; its branch stays."""
        text = store.checked_text("text", text, store.TEXT_MAX)
        _, state = self._known(number, actor)
        by = self._actor(actor)
        own = by is not None and by == state.author
        action = Action.PROPOSE if own else Action.APPROVE
        self._permit(_need(action, state), actor)
        store.require_open(state)
        if not dry_run:
            state = self._settled(state)

        last: dict[str, str] = {}  # what it was about, while its branches exist
        with suppress(BranchNotFound):
            head = self._repo.head(state.source).commit
            last = {"head": head.content, "base": self._parted(state, head)}

        def step(there: ProposalState) -> ProposalState:
            store.require_open(there)
            happened = store.event(self._repo, "closed", by, text=text)
            return store.after(there, happened, status=store.CLOSED, **last)

        return self._changed(state, step, dry_run)

    def _changed(self, state: ProposalState, step: store.Step, dry_run: bool) -> Proposal:
        """Write the next state, unless this is a dry run; a merge in progress is cancelled or finished first."""
        if dry_run:
            return self._shown_proposal(step(state))

        def settling(there: ProposalState) -> ProposalState:
            following = step(there)
            if there.claim is not None and following.event.kind != "commented":
                raise _Claimed(there)
            return following

        for _ in range(store.ATTEMPTS_MAX):
            try:
                return self._shown_proposal(store.change(self._repo, state.number, settling))
            except _Claimed as claimed:
                self._settled(claimed.state)
        raise RetriesExhausted(f"others kept merging proposal {state.number}")

    # --- merging -----------------------------------------------------------------------------------------------------

    @verb
    def merge_proposal(
        self,
        number: int,
        dry_run: bool = False,
        *,
        head: str | None = None,
        strategy: str | Mapping[str, str] | None = None,
        resolutions: Sequence[Mapping[str, Any]] | None = None,
        skip_checks: bool = False,
        message: str | None = None,
        actor: str | None = None,
        timeout: float | None = None,
    ) -> MergeResult:
        """Merge a proposal as one commit that names it: exactly the head that was approved, once it has what its target
        requires and the merged state passes the checks. Conflicts are an outcome.

        Checks a policy requires cannot be skipped.

        >>> import omnigraph
        >>> g = omnigraph.init("memory://doc-merge-proposal", schema="node Person { name: String @key }")
        >>> g.create_branch("draft")
        >>> _ = g.load({"Person": [{"name": "Ada"}]}, branch="draft")
        >>> done = g.merge_proposal(g.propose("draft", "Add Ada").number)
        >>> done.outcome, done.commit.proposal, g.proposal(1).state
        ('fast_forward', 1, 'merged')
        """
        decided = ops.decisions(strategy, resolutions)
        _, state = self._known(number, actor)
        source, target = state.source, state.target
        need = ops.Need(Action.BRANCH_MERGE, source, target, reads=(source,), proposal=True)
        self._permit(need, actor)
        store.require_open(state)
        if not dry_run:
            state = self._settled(state)
            store.require_open(state)
        theirs = self._repo.head(source).commit
        if head not in (None, theirs.content):
            raise store.ProposalMoved(
                f"branch {source!r} is at commit {theirs.content}, not at {head}",
                details={"expected": head, "actual": theirs.content},
            )
        write = ops.merge(self._repo, source, target, decided, pinned=theirs)
        write = _naming(write, number, None if skip_checks else self._verifier(True))
        request = ops.Request(
            branch=branch_name(target),
            verb=write,
            actor=actor,
            message=message or f"Merge proposal {number}: {state.title}",
            alone=True,
            deadline=Deadline(timeout),
        )
        with metrics.operation("merge_proposal"):
            if dry_run:
                self._require_ready(state, theirs)
                need = replace(need, reads=(*need.reads, target))
                return _merge_result(self._submit(replace(request, verb=ops.dry_run(write)), need))
            return self._merge_claimed(state, theirs, request, need)

    def _require_ready(self, state: ProposalState, head: StoredCommit) -> None:
        missing = self._missing(state, head)
        if missing:
            raise ProposalNotReady(
                f"proposal {state.number} cannot be merged yet: {'; '.join(missing)}",
                details={"number": state.number, "missing": list(missing)},
            )

    def _merge_claimed(
        self, state: ProposalState, theirs: StoredCommit, request: Request, need: Need
    ) -> MergeResult:
        """Claim the merge in the proposal, publish it under the key of the claim, and record the outcome."""
        by, base = self._actor(request.actor), self._parted(state, theirs)

        def claim(there: ProposalState) -> ProposalState:
            store.require_open(there)
            if there.claim is not None:
                raise _Claimed(there)
            self._require_ready(there, theirs)
            happened = store.event(self._repo, "merging", by, head=theirs.content)
            return store.claimed(there, happened, base)

        for _ in range(store.ATTEMPTS_MAX):
            try:
                claimed = store.change(self._repo, state.number, claim)
                break
            except _Claimed as other:
                state = self._settled(other.state)
        else:
            raise RetriesExhausted(f"others kept merging proposal {state.number}")
        key = _key_of(claimed)
        try:
            done = self._submit(replace(request, **_keyed(claimed)), need)
        except OmnigraphError as error:
            after = self._settled(claimed, error.message)
            if after.status != "merged" or after.commit is None:
                raise
            return outcomes.MergeResult("merged", self.commit(after.commit))
        if isinstance(done.value, Mapping) and done.value.get("outcome") == CALLED_OFF:
            self._settled(claimed)
            raise store.ProposalMoved(
                f"the merge of proposal {state.number} was aborted: the proposal changed in the meantime"
            )
        answer = None if done.commit is None else {"commit": done.commit_id}
        result = _merge_result(done)
        why = result.outcome.replace("_", " ") if answer is None else ""
        with suppress(StoreUnavailable, StoreOutcomeUnknown):  # the next reader settles it
            self._note_settled(state.number, key, answer, why)
        return result

    def _note_settled(
        self, number: int, key: str, answer: Mapping[str, Any] | None, why: str = ""
    ) -> ProposalState:
        """Record the outcome of a merge, unless already recorded."""
        return store.change(
            self._repo, number, lambda there: store.settled(there, self._repo, key, answer, why)
        )

    def _settled(self, state: ProposalState, why: str = "") -> ProposalState:
        """A proposal without a merge in progress: the merge is finished if its commit exists, else cancelled.

        The first commit under the key of the claim decides: the merge or the cancellation.
        """
        if state.claim is None:
            return state
        request = ops.Request(
            branch=branch_name(state.target),
            verb=_called_off,
            actor=state.claim.actor,
            alone=True,
            deadline=NEVER,
        )
        try:
            done = self._writers.submit(replace(request, **_keyed(state)))
        except (BranchNotFound, BranchDeleted):
            return self._note_settled(state.number, state.claim.key, None, why)
        merged = isinstance(done.value, Mapping) and "proposal" in done.value
        answer = {"commit": done.commit_id} if merged and done.commit is not None else None
        return self._note_settled(state.number, state.claim.key, answer, why)


CALLED_OFF = "called_off"


class _Claimed(Exception):
    """A merge of the proposal is in progress."""

    def __init__(self, state: ProposalState) -> None:
        super().__init__(state.number)
        self.state = state


def _called_off(txn: WriteTxn) -> PublishPlan:  # noqa: ARG001
    return replace(ops.NOTHING, result={"outcome": CALLED_OFF}, value={"outcome": CALLED_OFF})


def _key_of(state: ProposalState) -> str:
    if state.claim is None:
        raise AssertionError("a merge has a claim")
    return state.claim.key


def _keyed(state: ProposalState) -> dict[str, Any]:
    key = _key_of(state)
    return {"idempotency_key": key, "fingerprint": fingerprint("proposal", key)}


def _naming(write: Verb, number: int, verify: Any) -> Verb:
    """A merge whose commit names its proposal."""

    def naming(txn: WriteTxn) -> PublishPlan:
        plan = write(txn)
        if plan.empty:
            return plan
        named = replace(plan, result={**plan.result, "proposal": number})
        return named if verify is None else replace(named, verify=verify)

    return naming


def _merge_result(done: Published) -> MergeResult:
    found = done.value
    if isinstance(found, Mapping):  # what was done before, under the same key
        counts = found.get("counts", {})
        return outcomes.MergeResult(found["outcome"], outcomes.Commit.published(done), (), counts)
    return outcomes.MergeResult.published(done)


def _to_see(state: ProposalState) -> Need:
    """What a policy must allow to see a proposal: reading its branches."""
    return _need(Action.READ, state)


def _need(action: Action, state: ProposalState) -> Need:
    """What a policy must allow for an action on a proposal."""
    both = state.source, state.target
    if action is Action.READ:
        return ops.Need(action, state.source, reads=(state.target,))
    return ops.Need(action, *both, reads=both)
