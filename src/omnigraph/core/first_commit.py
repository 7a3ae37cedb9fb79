"""A write that creates its own branch: branch and write are ONE commit, or neither exists.

The write is planned on the source's head before anything is named, so that a failed write leaves no trace. Its tables
are staged after the branch's name was claimed: a collection in between seals the unfinished branch, so that no branch
appears whose files were collected. Then the write is retried.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from omnigraph.core import layout
from omnigraph.core.branches import CalledOff, Start, create_branch
from omnigraph.core.conflicts import Intent
from omnigraph.core.footprints import touches
from omnigraph.core.idempotency import claim, landed_anywhere, made_by, mismatch
from omnigraph.core.plan import PublishPlan, Request
from omnigraph.core.publisher import (
    Accepted,
    Attempt,
    Overtaken,
    Published,
    Ticket,
    build_commit,
    replay,
    store_schema,
    unless_overtaken,
)
from omnigraph.core.records import Commit, KeyClaim, Recent, encode
from omnigraph.core.repository import Head, Repository
from omnigraph.core.room import Contest
from omnigraph.core.stage import stage
from omnigraph.core.txn import WriteTxn
from omnigraph.core.verify import Objection, store_checks, verified
from omnigraph.errors import BranchExists, RetriesExhausted
from omnigraph.model.instants import time_of
from omnigraph.model.names import branch_name


def publish_first(repo: Repository, request: Request) -> Published:
    """Create the branch of a request, starting from `create_from`, with the request's write as its first commit."""
    if request.create_from is None:
        raise AssertionError("the request names no branch to start from")
    source = branch_name(request.create_from)
    ticket = _ticket(repo, request)
    if ticket.outcome is not None:
        return ticket.outcome
    excused = 0
    for attempt in range(repo.limits.publish_attempts_max):
        head = repo.head(source)
        try:
            with unless_overtaken(repo, Attempt(head, Contest.begin(repo), excused)):
                return _create(repo, ticket, head.commit, Start(head_of=source))
        except Overtaken as overtaken:
            excused = overtaken.epoch
        except CalledOff:
            pass
        except BranchExists:
            landed = _landed(repo, ticket)
            if landed is None:
                raise
            return landed
        repo.back_off(attempt)
    raise RetriesExhausted(f"collections kept cancelling the creation of {request.branch!r}")


def _create(repo: Repository, ticket: Ticket, base: Commit, start: Start) -> Published:
    request = ticket.request
    first = _First(repo, ticket, base, _plan(repo, ticket, base))
    request.deadline.check()
    commit = create_branch(repo, request.branch, start, actor=request.actor, first=first.build)
    return Published(commit, 0, first.plan.value)


def _ticket(repo: Repository, request: Request) -> Ticket:
    """With a key, settled if its write was made before: by creating the branch, or on one of that name."""
    ticket = Ticket(request, repo.clock.fresh_id(), instant=repo.clock.now())
    key = request.idempotency_key
    if key is not None:
        wanted = KeyClaim(ticket.operation_id, request.fingerprint, request.branch, "", -1)
        found = claim(repo, key, wanted)
        ticket.operation_id, ticket.claimed_at = found.operation_id, -1
        landed = landed_anywhere(repo, found)
        if landed is not None:
            ticket.outcome = replay(landed, found.operation_id)
        elif found.chain:
            raise mismatch(key, "chain", request.branch)
    return ticket


def _plan(repo: Repository, ticket: Ticket, base: Commit) -> PublishPlan:
    snapshot = repo.snapshot(base)
    now = time_of(ticket.instant)
    request = ticket.request
    txn = WriteTxn(snapshot, request.branch, now, snapshot.catalog, deadline=request.deadline)
    return request.verb(txn)


def _landed(repo: Repository, ticket: Ticket) -> Published | None:
    """The outcome of an earlier request with the same key."""
    if ticket.claimed_at is None:
        return None
    made = made_by(repo, ticket.operation_id, ticket.request.branch)
    return None if made is None else replay(made, ticket.operation_id)


@dataclass(slots=True)
class _First:
    """Builds commit 0 of the new branch; it plans again if the source moved meanwhile."""

    repo: Repository
    ticket: Ticket
    base: Commit
    plan: PublishPlan

    def build(self, chain: str, base: Commit) -> Commit:
        repo = self.repo
        # Now that the name is ours, anything created under it earlier is certain.
        if _landed(repo, self.ticket) is not None:
            raise BranchExists(f"branch {self.ticket.request.branch!r} was created by this request")
        if (base.chain, base.number) != (self.base.chain, self.base.number):
            self.base, self.plan = base, _plan(repo, self.ticket, base)
        plan = self.plan
        staged = stage(repo, base, [plan])
        if plan.schema is not None:
            store_schema(repo, encode(plan.schema.stored))
        store_checks(repo, plan.checks)
        repo.tables.sync(list(staged.staged.values()))
        catalog = repo.schema(base.schema).catalog if plan.schema is None else plan.schema.catalog
        accepted = Accepted(self.ticket, plan, Intent(plan, touches(plan, catalog)), catalog)
        head = Head(self.ticket.request.branch, 0, base)
        self.ticket.request.deadline.check()
        attempt = Attempt(head, Contest.begin(repo), accepted=[accepted])
        built = build_commit(repo, head, attempt, staged)
        if plan.verify is not None:
            try:
                built = verified(repo, base, built, [plan])
            except Objection as objection:
                raise objection.error from None
        return _as_first(built, chain, self.ticket)


def _as_first(commit: Commit, chain: str, ticket: Ticket) -> Commit:
    keyed = ticket.request.idempotency_key is not None
    replaced: Commit = msgspec.structs.replace(
        commit,
        chain=chain,
        number=0,
        content=layout.content_id(chain, 0, len(commit.members)),
        recent=(Recent(ticket.operation_id, 0),) if keyed else (),
    )
    return replaced
