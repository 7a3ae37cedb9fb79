"""The one door through which a graph changes: create-only objects at the end of a chain.

`publish` runs the verbs of some requests on the head of a branch, folds their plans into one commit, stages it, and
creates the next object of the chain. Exactly one writer can create it; the others read what they missed, decide by
`conflicts.decide`, and continue. A crash before the create changes nothing, one after it everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from functools import partial
from typing import Any

from omnigraph.core import layout
from omnigraph.core.commit_time import commit_time
from omnigraph.core.conflicts import Decision, Intent, Verdict, decide
from omnigraph.core.footprints import changes, touches
from omnigraph.core.idempotency import landed_before
from omnigraph.core.leases import may_adopt, newest_record, still_honoured
from omnigraph.core.plan import NOTHING, PublishPlan, Request
from omnigraph.core.records import (
    ChainObject,
    Commit,
    Member,
    Recent,
    Seal,
    Tombstone,
    encode,
    operations_of,
    written_by,
)
from omnigraph.core.refusals import commit_unknown, conflict_with, precondition_failed
from omnigraph.core.repository import Head, Repository
from omnigraph.core.room import Contest
from omnigraph.core.snapshot import Snapshot
from omnigraph.core.stage import StagedTables, restage, stage
from omnigraph.core.txn import WriteTxn
from omnigraph.core.verify import Objection, checks_hash, store_checks, verified
from omnigraph.errors import (
    BranchDeleted,
    CommitPruned,
    Corrupt,
    ObjectExists,
    OmnigraphError,
    RetriesExhausted,
    StoreNotDurable,
    StoreOutcomeUnknown,
    StoreUnavailable,
    WritesUnseen,
)
from omnigraph.model.catalog import Catalog
from omnigraph.model.frozen import frozen
from omnigraph.storage import metrics
from omnigraph.storage.objects import numbered

QUESTIONS_AT_ONCE = 3  # tries to ask for room before the next attempt goes without


@frozen
class Published:
    """The outcome of a write: its commit, or None if there was nothing to do."""

    commit: Commit | Tombstone | None  # a repeated write may find that its commit was removed since
    member: int = 0
    value: Any = None
    replayed: bool = False

    @property
    def commit_id(self) -> str | None:
        if self.commit is None:
            return None
        grouped = len(operations_of(self.commit)) > 1
        return layout.commit_id(
            self.commit.chain, self.commit.number, self.member if grouped else None
        )


@dataclass(slots=True)
class Ticket:
    """One request in progress: the request, its operation id, and its outcome."""

    request: Request
    operation_id: str
    claimed_at: int | None = None  # under an idempotency key: the commit number at that time
    outcome: Published | None = None
    error: BaseException | None = None
    instant: int = 0  # microseconds; `now()` of the write, the same in every attempt

    @property
    def is_settled(self) -> bool:
        return self.outcome is not None or self.error is not None


@frozen
class Accepted:
    """A request whose verb succeeded on this base."""

    ticket: Ticket
    plan: PublishPlan
    intent: Intent
    catalog: Catalog


@dataclass(slots=True)
class Attempt:
    """One run of the verbs on one base."""

    head: Head
    contest: Contest
    excused: int = 0  # the newest collection known not to have removed what is read here
    accepted: list[Accepted] = field(default_factory=list)

    @property
    def plans(self) -> list[PublishPlan]:
        return [one.plan for one in self.accepted]


class Overtaken(Exception):
    """A collection removed what an attempt was reading; on the current head everything exists."""

    def __init__(self, epoch: int) -> None:
        super().__init__(epoch)
        self.epoch = epoch


class Outcome(Enum):
    """The outcome of a create."""

    CREATED = "created"
    TAKEN = "taken"
    UNKNOWN = "unknown"


# --- creating chain objects --------------------------------------------------------------------------------------


def create(repo: Repository, thing: ChainObject) -> Outcome:
    """Create a chain object. An unanswered create is repeated at the same number until the number is known to be taken.

    TAKEN may mean that an earlier, unanswered attempt of ours took it: the caller compares operation ids.
    """
    key = numbered(layout.chain_folder(thing.chain), thing.number)
    data = encode(thing)
    for attempt in range(repo.limits.unknown_attempts_max):
        try:
            repo.objects.put_new(key, data)
        except ObjectExists:
            return Outcome.TAKEN
        except StoreNotDurable:
            # Visible, but a power cut may undo it: not a commit yet.
            return Outcome.UNKNOWN
        except StoreOutcomeUnknown:
            if _is_taken(repo, thing):
                return Outcome.TAKEN
            repo.back_off(attempt)
        else:
            if isinstance(thing, Commit):
                repo.chains.remember(thing)
            return Outcome.CREATED
    return Outcome.UNKNOWN


def _is_taken(repo: Repository, thing: ChainObject) -> bool:
    try:
        return repo.chains.read(thing.chain, thing.number) is not None
    except StoreUnavailable:
        return False


# --- publishing --------------------------------------------------------------------------------------------------


def publish(repo: Repository, tickets: Sequence[Ticket]) -> None:
    """Settle every ticket: all belong to one branch, and those that agree share one commit."""
    waiting, excused, contest = list(tickets), 0, Contest.begin(repo)
    for tries in range(repo.limits.publish_attempts_max):
        waiting = [ticket for ticket in waiting if not ticket.is_settled]
        if not waiting:
            return
        if contest.is_hopeless:
            break
        contest.stand_back(tries)
        try:
            attempt = Attempt(_entered(repo, contest, waiting), contest, excused)
            _run(repo, attempt, waiting)
        except Overtaken as overtaken:
            excused = overtaken.epoch
        except OmnigraphError as error:
            _fail(waiting, error)
            return
    _fail(waiting, _defeated(repo, contest))


def _entered(repo: Repository, contest: Contest, waiting: Sequence[Ticket]) -> Head:
    """The head to start from, after others made room for us, or we for them."""
    first = waiting[0].request
    for _ in range(QUESTIONS_AT_ONCE):
        head = repo.head(first.branch)
        if contest.make_room(head.commit, lambda: _is_overdue(waiting)):
            head = repo.head(first.branch)
        seconds = contest.wants_room(contest.longest)
        asked = _ask(repo, contest, head, seconds, first, "verb") if seconds else head
        if asked is not None:
            return asked
    return repo.head(first.branch)


def _ask(
    repo: Repository, contest: Contest, head: Head, seconds: float, who: Request, work: str
) -> Head | None:
    """The head after a question was put there; the one before if that is unknown; None if another commit came first."""
    question = contest.question(head.commit, seconds, who.actor, work)
    outcome = create(repo, question)
    if outcome is Outcome.TAKEN:
        return None
    contest.has_asked(seconds)
    if outcome is Outcome.UNKNOWN:
        return head
    return repo.moved(Head(head.branch, head.ref_number, question))


def _is_overdue(waiting: Sequence[Ticket]) -> bool:
    return any(ticket.request.deadline.over for ticket in waiting)


def _defeated(repo: Repository, contest: Contest) -> OmnigraphError:
    """Why a write fails: a conflict with the writer that kept changing its data, or too many lost races."""
    if contest.met is not None:
        return conflict_with(contest.met, contest.runs)
    return RetriesExhausted(f"other writers won {repo.limits.publish_attempts_max} times")


@contextmanager
def unless_overtaken(repo: Repository, attempt: Attempt) -> Iterator[None]:
    """Tell damage from removal by a collection: after a long pause, a writer may read a state pruned meanwhile.

    A collection keeps everything as young as its epoch, so only one that began after the base can be the reason,
    and only once: if something is missing again without a new collection, it is damage.
    """
    try:
        yield
    except Corrupt as error:
        record = newest_record(repo)
        if record is None or record.epoch <= max(attempt.excused, attempt.head.commit.gc_epoch):
            raise
        raise Overtaken(record.epoch) from error


def _run(repo: Repository, attempt: Attempt, waiting: Sequence[Ticket]) -> None:
    """One attempt: verbs, stage, create. Tickets not settled afterwards need another."""
    began = repo.clock.now()
    _accept(repo, attempt, waiting)
    if attempt.accepted:
        with unless_overtaken(repo, attempt):
            staged = stage(repo, attempt.head.commit, attempt.plans)
            _store_schemas(repo, attempt.plans)
            attempt.contest.made(began)
            _publish(repo, attempt, staged)


def _publish(repo: Repository, attempt: Attempt, staged: StagedTables) -> None:
    head, contest = attempt.head, attempt.contest
    tickets = [one.ticket for one in attempt.accepted]
    for lost in range(repo.limits.publish_attempts_max):
        if _drop_overdue(attempt):
            return
        repo.tables.sync(list(staged.staged.values()))
        commit = build_commit(repo, head, attempt, staged)
        if any(plan.verify for plan in attempt.plans):
            try:
                commit = verified(repo, head.commit, commit, attempt.plans)
            except Objection as objection:
                _fail(tickets, objection.error)
                return
        began = contest.begins_race()
        outcome = create(repo, commit)
        if outcome is Outcome.CREATED:
            _succeed(repo, attempt, commit, head)
            return
        if outcome is Outcome.UNKNOWN:
            _fail(
                [one.ticket for one in attempt.accepted],
                commit_unknown([one.ticket.operation_id for one in attempt.accepted]),
            )
            return
        contest.lose(began)
        contest.stand_back(lost + 1)
        moved = _caught_up(repo, attempt, head, staged, commit)
        if moved is None:
            return
        head, staged = moved


def _caught_up(
    repo: Repository, attempt: Attempt, judged: Head, staged: StagedTables, ours: Commit
) -> tuple[Head, StagedTables] | None:
    """What was staged, on the newest head; None if it was settled or has to run again. Commits up to a head are judged
    only once, and before others are asked to make room: they wait for what is left to do."""
    contest, first = attempt.contest, attempt.accepted[0]
    for left in reversed(range(QUESTIONS_AT_ONCE + 1)):
        missed = _missed(repo, attempt, judged.commit)
        if judged is attempt.head:
            contest.missed = max(contest.missed, len(missed))
        if _settle_landed(attempt, missed, ours):
            return None
        decision = _decide(repo, attempt, judged.commit, missed)
        if decision.head is None:
            _give_up(repo, attempt, decision)
            return None
        contest.begins_move()
        judged = Head(judged.branch, judged.ref_number, decision.head)
        seconds = contest.wants_room(contest.moving) if left else 0.0
        if not seconds:
            break
        # Side by side: a question shows the state the tables are put on.
        tasks: list[Callable[[], Any]] = [
            partial(_onto, repo, attempt, staged, decision),
            partial(_ask, repo, contest, judged, seconds, first.ticket.request, first.plan.kind),
        ]
        staged, asked = metrics.parallel(tasks, repo.limits.staging_threads_max)
        if asked is not None:
            return asked, staged
    return judged, _onto(repo, attempt, staged, decision)


def _missed(repo: Repository, attempt: Attempt, judged: Commit) -> Sequence[ChainObject]:
    """Everything published since a commit, after making room for another writer that asks for it."""
    tickets = [one.ticket for one in attempt.accepted]
    missed = repo.chains.after(judged.chain, judged.number)
    newest = missed[-1]
    if attempt.contest.make_room(newest, lambda: _is_overdue(tickets)):
        missed = missed + repo.chains.since(newest.chain, newest.number)
    return missed


def _accept(repo: Repository, attempt: Attempt, waiting: Sequence[Ticket]) -> None:
    """Run each verb on the base plus the writes accepted before it. A failure does not affect the others."""
    head = attempt.head.commit
    snapshot = repo.snapshot(head)
    txn: WriteTxn | None = None
    for ticket in waiting:
        request = ticket.request
        try:
            request.deadline.check()
            if _landed_already(repo, ticket, head):
                continue
            if request.if_commit is not None and request.if_commit != head.content:
                raise precondition_failed(request.if_commit, head)
            now = datetime.fromtimestamp(ticket.instant / 1_000_000, UTC)
            if txn is None:
                txn = WriteTxn(snapshot, request.branch, now, snapshot.catalog)
            txn = txn.by(now, request.deadline, repo.limits.query_memory_bytes_max)
            with unless_overtaken(repo, attempt):
                plan = request.verb(txn)
            if plan.empty and request.idempotency_key is None:
                ticket.outcome = Published(None, value=plan.value)
                continue
            _check_sources(repo, plan)
            catalog = plan.schema.catalog if plan.schema is not None else txn.catalog
            intent = Intent(plan, touches(plan, catalog))
        except Overtaken:
            raise
        except WritesUnseen as unseen:
            if not attempt.accepted:
                ticket.error = unseen
            continue  # it runs again once the writes before it are published
        except Exception as error:
            ticket.error = error
            continue
        attempt.accepted.append(Accepted(ticket, plan, intent, catalog))
        txn = txn.after(plan)
    # A no-op under a key is remembered in a hidden commit, so never together with other writes.
    attempt.accepted = [one for one in attempt.accepted if not one.plan.empty] or attempt.accepted


def _check_sources(repo: Repository, plan: PublishPlan) -> None:
    """Adopted versions must not be about to be removed: the record is read after the head.

    A collection that declares it later gives the branch a commit of its epoch, and then the verb runs again.
    """
    record = newest_record(repo) if plan.sources else None
    for chain, number in sorted(plan.sources):
        if not may_adopt(repo, record, chain, number):
            raise CommitPruned(f"commit {layout.commit_id(chain, number)} was removed by a cleanup")


def _landed_already(repo: Repository, ticket: Ticket, head: Commit) -> bool:
    """A write under an idempotency key may already be in the base, published by another process with the same key."""
    if ticket.claimed_at is None:
        return False
    found = landed_before(repo, ticket.operation_id, ticket.claimed_at, head)
    if found is None:
        return False
    ticket.outcome = replay(found, ticket.operation_id)
    return True


def replay(thing: ChainObject, operation_id: str) -> Published:
    """The outcome of an earlier write under an idempotency key."""
    if not isinstance(thing, Seal):
        for place, member in written_by(thing).items():
            if member.operation_id == operation_id:
                commit = None if member.kind == NOTHING.kind else thing
                return Published(commit, place, dict(member.result), replayed=True)
    raise CommitPruned(
        "this write was made before under the same idempotency key, and a cleanup has removed its result",
        help="The write was not repeated.",
    )


def build_commit(repo: Repository, head: Head, attempt: Attempt, staged: StagedTables) -> Commit:
    """The next commit object after a head."""
    parent = head.commit
    number = parent.number + 1
    members = tuple(_member(repo, one) for one in attempt.accepted)
    plans = attempt.plans
    unchanged = all(plan.is_maintenance or plan.empty for plan in plans)
    schemas = [layout.schema_hash(encode(p.schema.stored)) for p in plans if p.schema is not None]
    checks = [checks_hash(p.checks) for p in plans if p.checks is not None]
    own = layout.content_id(parent.chain, number, len(members))
    keyed = [m.operation_id for m in members if m.idempotency_key]
    oldest = number - repo.limits.recent_commits
    return Commit(
        graph_id=repo.stamp.graph_id,
        chain=parent.chain,
        number=number,
        branch=head.branch,
        parents=(
            layout.commit_id(parent.chain, parent.number),
            *(x for p in plans for x in p.parents),
        ),
        time=commit_time(repo, parent.time),
        kind=members[0].kind if len(plans) == 1 else "group",
        schema=schemas[-1] if schemas else parent.schema,
        checks=checks[-1] if checks else parent.checks,
        gc_epoch=parent.gc_epoch,
        previous=parent.content,
        content=parent.content if unchanged else own,
        tables=staged.on(parent.tables),
        members=members,
        recent=tuple(r for r in parent.recent if r.number > oldest)
        + tuple(Recent(operation, number) for operation in keyed),
        merged=layout.newest_of(parent.merged, *(plan.merged for plan in plans)),
    )


def _member(repo: Repository, one: Accepted) -> Member:
    request = one.ticket.request
    return Member(
        kind=NOTHING.kind if one.plan.empty else one.plan.kind,
        operation_id=one.ticket.operation_id,
        actor=request.actor,
        message=request.message,
        idempotency_key=request.idempotency_key,
        fingerprint=request.fingerprint or None if request.idempotency_key else None,
        changes=changes(one.plan, one.intent.touches, repo.limits),
        result=dict(one.plan.result),
    )


def _store_schemas(repo: Repository, plans: Sequence[PublishPlan]) -> None:
    """Schemas and checks are named by their content and never removed, so existing ones can be reused."""
    for plan in plans:
        if plan.schema is not None:
            store_schema(repo, encode(plan.schema.stored))
        store_checks(repo, plan.checks)


def store_schema(repo: Repository, data: bytes) -> str:
    """Store a schema object; returns its hash."""
    hashed = layout.schema_hash(data)
    repo.put_once(layout.schema_key(hashed), data)
    return hashed


def _onto(
    repo: Repository, attempt: Attempt, staged: StagedTables, decision: Decision
) -> StagedTables:
    """The staged tables, moved to the new head."""
    head = decision.head
    if head is None or decision.verdict is Verdict.SAME:
        return staged
    base = attempt.head.commit
    return restage(repo, staged, base, head, attempt.plans, moved=decision.tables)


def _decide(
    repo: Repository, attempt: Attempt, base: Commit, missed: Sequence[ChainObject]
) -> Decision:
    """Judge what was missed since a base. A newer epoch voids staged files, unless a lease protected them."""
    intents = [one.intent for one in attempt.accepted]
    newest = missed[-1]
    for one in attempt.accepted:
        wanted = one.ticket.request.if_commit
        if wanted is not None and isinstance(newest, Commit) and newest.content != wanted:
            one.ticket.error = precondition_failed(wanted, newest)
            return Decision(Verdict.AGAIN)
    if isinstance(newest, Commit) and newest.gc_epoch != base.gc_epoch:
        plans = [one.plan.plan_id for one in attempt.accepted if not one.plan.sources]
        held = (still_honoured(repo, plan, base.gc_epoch, newest.gc_epoch) for plan in plans)
        if len(plans) == len(attempt.accepted) and all(held):
            return decide(_in_epoch(base, newest.gc_epoch), intents, missed)
    return decide(base, intents, missed)


def carries_over(repo: Repository, plan: PublishPlan, base: Snapshot, now: Snapshot) -> bool:
    """Whether a plan made on an earlier state of a branch is valid on a later one."""
    first, last = base.commit, now.commit
    if first.chain != last.chain or first.number > last.number:
        return False
    missed = repo.chains.range(first.chain, first.number + 1, last.number)
    if not missed:
        return True
    if still_honoured(repo, plan.plan_id, first.gc_epoch, last.gc_epoch):
        first = _in_epoch(first, last.gc_epoch)
    return decide(first, [Intent(plan, touches(plan, base.catalog))], missed).head is not None


def _in_epoch(base: Commit, epoch: int) -> Commit:
    import msgspec

    return msgspec.structs.replace(base, gc_epoch=epoch)


# --- settling ----------------------------------------------------------------------------------------------------


def _succeed(repo: Repository, attempt: Attempt, commit: Commit, head: Head) -> None:
    for plan in attempt.plans:
        if plan.schema is not None:
            repo.learn(commit.schema, plan.schema.stored)
    repo.moved(Head(head.branch, head.ref_number, commit))
    for index, one in enumerate(attempt.accepted):
        one.ticket.outcome = Published(None if one.plan.empty else commit, index, one.plan.value)


def _settle_landed(attempt: Attempt, missed: Sequence[ChainObject], ours: Commit) -> bool:
    """Recognise our own writes among those we missed: a response was lost, or another process uses the same key."""
    landed = False
    for one in attempt.accepted:
        for thing in missed:
            if one.ticket.operation_id in operations_of(thing):
                one.ticket.outcome = _found(thing, one, ours)
                landed = True
    return landed


def _found(thing: ChainObject, one: Accepted, ours: Commit) -> Published:
    operation, keyed = one.ticket.operation_id, one.ticket.claimed_at is not None
    if not isinstance(thing, Commit):
        return replay(thing, operation) if keyed else Published(None, value=one.plan.value)
    if keyed and (thing.time, thing.tables) != (ours.time, ours.tables):
        return replay(thing, operation)  # another process's write, under the same key
    place = [member.operation_id for member in thing.members].index(operation)
    return Published(None if one.plan.empty else thing, place, one.plan.value)


def _give_up(repo: Repository, attempt: Attempt, decision: Decision) -> None:
    """Strict writes fail with the conflict; the others stay unsettled and run again."""
    if decision.verdict is Verdict.SEALED:
        branch = attempt.head.branch
        repo.forget(branch)
        error = BranchDeleted(f"branch {branch!r} was deleted while it was being written")
        _fail([one.ticket for one in attempt.accepted], error)
    if decision.culprit is not None:
        attempt.contest.met = decision.culprit
        attempt.contest.runs += 1
        if decision.verdict is Verdict.CONFLICT:
            strict = [a.ticket for a in attempt.accepted if a.plan.strict or a.plan.schema_strict]
            _fail(strict, conflict_with(decision.culprit))


def _drop_overdue(attempt: Attempt) -> bool:
    """Whether a ticket's deadline has passed: the others are folded again without it."""
    overdue = [one.ticket for one in attempt.accepted if one.ticket.request.deadline.over]
    for ticket in overdue:
        ticket.error = ticket.request.deadline.error()
    return bool(overdue)


def _fail(tickets: Sequence[Ticket], error: OmnigraphError) -> None:
    for ticket in tickets:
        if not ticket.is_settled:
            ticket.error = error
