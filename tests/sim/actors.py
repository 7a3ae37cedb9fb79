"""Workloads. Every operation is logged with what its caller was told: ok, failed, or nothing certain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random
from typing import Any

import pyarrow as pa

from omnigraph.core import branches, layout, leases
from omnigraph.core.branches import Start, create_tag
from omnigraph.core.first_commit import publish_first
from omnigraph.core.group import Writers
from omnigraph.core.leases import remove_plan, save_plan
from omnigraph.core.plan import Append, PublishPlan, Reads, Request, Upsert, Verb
from omnigraph.core.publisher import Published, Ticket, publish
from omnigraph.core.records import Commit, StoredPlan
from omnigraph.core.repository import Repository
from omnigraph.core.snapshot import table_ref
from omnigraph.core.txn import WriteTxn
from omnigraph.errors import Kind, OmnigraphError
from omnigraph.maintenance.collection import Retention, collect
from omnigraph.model.limits import DEFAULT
from omnigraph.model.names import MAIN, branch_name
from omnigraph.model.tokens import id_tokens
from omnigraph.storage.tables import NewFragments
from omnigraph.write.merge import merge
from omnigraph.write.undo import reset
from tests.support.history import Append as Listed
from tests.support.history import Operation, Read, Status
from tests.support.lists import edit, look
from tests.support.verbs import compact
from tests.support.worlds import add_knows, add_person, drop_person, plan, rows_of

ACCOUNTS = ("a0", "a1", "a2")
START_BALANCE = 100
SILENCE = 2 * DEFAULT.lease_seconds_max * 1_000_000  # microseconds


@dataclass
class Told:
    """What the caller of one operation knows."""

    name: str
    branch: str
    status: str = "nothing"  # ok, failed, nothing
    commit: str | None = None
    key: str | None = None
    effect: tuple[str, ...] = ()  # ids this operation must have added if it happened


@dataclass
class Log:
    """What all callers know."""

    operations: list[Told] = field(default_factory=list)
    branches_made: list[tuple[str, str]] = field(default_factory=list)  # name, chain
    branches_ended: list[str] = field(default_factory=list)  # chains
    tags_made: set[str] = field(default_factory=set)
    seen: dict[str, int] = field(
        default_factory=dict
    )  # per chain: the newest commit somebody was told of
    history: dict[str, Operation] = field(default_factory=dict)  # of lists, by name
    names: dict[str, str] = field(default_factory=dict)  # operation id -> name
    merged: set[str] = field(default_factory=set)  # rows that a merge brought to main
    said: list[Any] = field(default_factory=list)  # of the proposal, see `reviewing`


@dataclass
class Actor:
    """One process: its own caches over the shared store."""

    name: str
    repo: Repository
    random: Random
    log: Log
    count: int = 0

    def fresh(self) -> str:
        self.count += 1
        return f"{self.name}-{self.count}"

    def submit(
        self,
        verb: Verb,
        *,
        branch: str = "main",
        key: str | None = None,
        effect: tuple[str, ...] = (),
        name: str | None = None,
        alone: bool = False,
    ) -> Told:
        told = Told(name or self.fresh(), branch, key=key, effect=effect)
        self.log.operations.append(told)
        request = Request(
            branch=branch_name(branch),
            verb=verb,
            actor=self.name,
            message=told.name,
            idempotency_key=key,
            alone=alone,
        )
        self.tell(told, lambda: Writers(self.repo).submit(request))
        return told

    def tell(self, told: Told, call: Callable[[], Published]) -> None:
        try:
            done = call()
        except OmnigraphError as error:
            if error.kind is Kind.CORRUPT:
                raise  # nothing is damaged here, and nobody may be told so
            told.status = (
                "nothing" if error.kind in (Kind.UNKNOWN_OUTCOME, Kind.UNAVAILABLE) else "failed"
            )
            return
        told.status, told.commit = "ok", done.commit_id
        if done.commit is not None:
            place = done.commit.chain
            self.log.seen[place] = max(self.log.seen.get(place, -1), done.commit.number)


# --- workloads -------------------------------------------------------------------------------------------------------


def transfer(source: str, target: str, amount: int) -> Verb:
    """Move an amount between two accounts: read both, write both."""

    def verb(txn: WriteTxn) -> PublishPlan:
        table = txn.catalog.nodes["Person"].table_id
        ids = pa.array(sorted({source, target}))
        found = txn.view(table).lookup("id", ids, ["id", "name", "email", "age"])
        rows = {row["id"]: row for row in found.to_pylist()}
        rows[source]["age"] -= amount
        rows[target]["age"] += amount
        after = rows_of(
            txn,
            "Person",
            [{k: r[k] for k in ("id", "name", "email", "age")} for r in rows.values()],
        )
        return plan([Upsert(table, after, found)], {table: Reads(id_tokens(ids))})

    return verb


def open_accounts(txn: WriteTxn) -> PublishPlan:
    """The state every run starts from."""
    table = txn.catalog.nodes["Person"].table_id
    rows = [{"id": name, "name": name, "age": START_BALANCE} for name in ACCOUNTS]
    return plan([Append(table, rows_of(txn, "Person", rows))])


def banker(actor: Actor) -> None:
    for _ in range(3):
        source, target = actor.random.sample(ACCOUNTS, 2)
        actor.submit(transfer(source, target, actor.random.randint(1, 50)))


def append_only(name: str) -> Verb:
    """A row that is certainly new, appended without looking at anything."""

    def verb(txn: WriteTxn) -> PublishPlan:
        table = txn.catalog.nodes["City"].table_id
        return plan(
            [Append(table, rows_of(txn, "City", [{"id": name, "name": name}]))],
            {table: Reads(id_tokens(pa.array([name])))},
        )

    return verb


def appender(actor: Actor) -> None:
    for _ in range(3):
        name = actor.fresh()
        actor.submit(append_only(name), effect=(name,), name=name)


def retrier(actor: Actor) -> None:
    """Repeats a request under one key until it knows the answer, as a careful client does."""
    for _ in range(2):
        name = actor.fresh()
        for _ in range(3):
            told = actor.submit(append_only(name), key=f"key-{name}", effect=(name,), name=name)
            if told.status == "ok" and actor.random.random() < 0.7:
                break


def sleeper(actor: Actor) -> None:
    """Repeats a request under its key long after it was made."""
    for _ in range(2):
        name = actor.fresh()
        for _ in range(2):
            actor.submit(append_only(name), key=f"key-{name}", effect=(name,), name=name)
            for _ in range(actor.random.randrange(120)):
                actor.repo.clock.pause(0)


LISTS = ("l0", "l1")


def lister(actor: Actor) -> None:
    """Reads lists and appends to them; what it saw and was told is judged as a history."""
    for _ in range(2):
        name = actor.fresh()
        appends = dict.fromkeys(actor.random.sample(LISTS, actor.random.choice((1, 1, 2))), name)
        world = actor.repo.clock
        ticket = Ticket(
            Request(branch=MAIN, verb=edit(LISTS[:1], appends), actor=actor.name, message=name),
            world.fresh_id(),
            instant=world.now(),
        )
        steps = tuple(Listed(key, value) for key, value in appends.items())
        begun = Operation(name, actor.name, Status.INFO, world.now(), steps=steps)
        actor.log.history[name], actor.log.names[ticket.operation_id] = begun, name
        told = Told(name, "main")
        actor.log.operations.append(told)
        publish(actor.repo, [ticket])
        actor.tell(told, partial(_answer, ticket))
        actor.log.history[name] = _ended(begun, told, ticket, world.now())
        if actor.random.random() < 0.5:
            _look(actor)


def _ended(begun: Operation, told: Told, ticket: Ticket, now: int) -> Operation:
    if told.status == "failed":
        return replace(begun, status=Status.FAIL, completed=now)
    done = ticket.outcome
    if told.status != "ok" or done is None or done.commit is None:
        return begun
    reads = tuple(Read(key, values) for key, values in done.value.lists.items())
    number = done.commit.number
    return replace(begun, status=Status.OK, completed=now, steps=reads + begun.steps, commit=number)


def _look(actor: Actor) -> None:
    name, world = actor.fresh(), actor.repo.clock
    begun = world.now()
    try:
        seen = look(actor.repo.snapshot(actor.repo.head(MAIN).commit), LISTS)
    except OmnigraphError:
        return
    reads = tuple(Read(key, values) for key, values in seen.lists.items())
    actor.log.history[name] = Operation(
        name, actor.name, Status.OK, begun, world.now(), reads, snapshot=seen.number
    )


def merger(actor: Actor) -> None:
    """Works on a branch of its own and brings it to main, where others work meanwhile."""
    name = f"topic-{actor.name}"
    try:
        zero = branches.create_branch(actor.repo, name, Start(head_of=MAIN))
    except OmnigraphError:
        return
    actor.log.branches_made.append((name, zero.chain))
    brought: set[str] = set()
    for _ in range(2):
        row = actor.fresh()
        told = actor.submit(append_only(row), branch=name, effect=(row,), name=row)
        brought |= {row} if told.status == "ok" else set()
        told = actor.submit(merge(actor.repo, name, "main"), alone=True)
        if told.status == "ok":
            actor.log.merged |= brought


def resetter(actor: Actor) -> None:
    """Makes branches and takes each back to what main was some commits ago."""
    for number in range(2):
        name = f"back-{actor.name}-{number}"
        try:
            main = actor.repo.head(MAIN).commit
            older = max(1, main.number - actor.random.choice((1, 2, 3)))
            zero = branches.create_branch(actor.repo, name, Start(head_of=MAIN))
        except OmnigraphError:
            continue
        actor.log.branches_made.append((name, zero.chain))
        to = layout.commit_id(main.chain, older)
        actor.submit(reset(actor.repo, to, name), branch=name, alone=True)


def founder(actor: Actor) -> None:
    """Makes branches whose first commit is a write."""
    for number in range(2):
        name, row = f"new-{actor.name}-{number}", actor.fresh()
        request = Request(branch=branch_name(name), verb=append_only(row), create_from="main")
        try:
            made = publish_first(actor.repo, request).commit
        except OmnigraphError as error:
            if error.kind is Kind.CORRUPT:
                raise
            continue
        assert made is not None
        actor.log.branches_made.append((name, made.chain))


def compactor(actor: Actor) -> None:
    """Rewrites tables while others write to them."""
    for type_name in ("City", "Person", "City"):
        actor.submit(compact(type_name))


def loader(actor: Actor) -> None:
    """A long load: writes its rows under a lease, then publishes them, however often it has to look again."""
    repo = actor.repo
    for _ in range(2):
        name = actor.fresh()
        head = repo.head(MAIN).commit
        path = next(e.path for e in head.tables.values() if e.type_name == "City")
        lease = StoredPlan(
            plan=repo.clock.fresh_id(),
            operation_id=name,
            kind="load",
            branch="main",
            gc_epoch=head.gc_epoch,
            created=repo.clock.now() - actor.random.choice((0, 0, SILENCE)),
            tables=(path,),
        )
        save_plan(repo, lease)
        actor.submit(_long_load(repo, lease.plan, name), effect=(name,), name=name)
        if actor.random.random() < 0.7:
            remove_plan(repo, lease.plan)


def _long_load(repo: Repository, lease: str, name: str) -> Verb:
    written: list[tuple[NewFragments, int]] = []  # and the epoch they were written in

    def verb(txn: WriteTxn) -> PublishPlan:
        table = txn.catalog.nodes["City"].table_id
        epoch = txn.snapshot.commit.gc_epoch
        if not written or not leases.still_honoured(repo, lease, written[-1][1], epoch):
            rows = rows_of(txn, "City", [{"id": name, "name": name}])
            base = table_ref(txn.snapshot.commit.tables[table])
            written.append((repo.tables.write_fragments(base, rows), epoch))
        return plan([Append(table, written[-1][0])], {table: Reads(everything=True)}, plan_id=lease)

    return verb


NODES = ("n0", "n1")


def gardener(actor: Actor) -> None:
    """Edges to nodes that others remove."""
    for _ in range(4):
        choice = actor.random.random()
        node = actor.random.choice(NODES)
        if choice < 0.35:
            actor.submit(add_person(node, email=f"mail{actor.random.randrange(2)}"))
        elif choice < 0.7:
            actor.submit(add_knows(actor.fresh(), node, actor.random.choice(NODES)))
        else:
            actor.submit(drop_person(node))


def folder(actor: Actor) -> None:
    """Several writes in one commit: each must see the ones before it."""
    for node in NODES:
        actor.submit(add_person(node))
        verbs = [add_knows(actor.fresh(), node, node), drop_person(node)]
        actor.random.shuffle(verbs)
        _fold(actor, verbs)


def _fold(actor: Actor, verbs: list[Verb]) -> None:
    tickets = []
    for verb in verbs:
        told = Told(actor.fresh(), "main")
        actor.log.operations.append(told)
        request = Request(branch=MAIN, verb=verb, actor=actor.name, message=told.name)
        tickets.append(
            (told, Ticket(request, actor.repo.clock.fresh_id(), instant=actor.repo.clock.now()))
        )
    publish(actor.repo, [ticket for _, ticket in tickets])
    for told, ticket in tickets:
        actor.tell(told, partial(_answer, ticket))


def _answer(ticket: Ticket) -> Published:
    if ticket.error is not None:
        raise ticket.error
    assert ticket.outcome is not None
    return ticket.outcome


def brancher(actor: Actor) -> None:
    """Makes, uses, deletes and makes again one branch name that others use too."""
    for _ in range(2):
        name = actor.random.choice(("dev", "dev", "old"))
        try:
            start = _start(actor, name)
            zero = branches.create_branch(actor.repo, name, start)
            actor.log.branches_made.append((name, zero.chain))
        except OmnigraphError:
            zero = None
        row = actor.fresh()
        actor.submit(append_only(row), branch=name, effect=(row,), name=row)
        if actor.random.random() < 0.5:
            _delete(actor, name)


def visitor(actor: Actor) -> None:
    """Writes to a branch that others make and delete, and reads it."""
    for _ in range(3):
        row = actor.fresh()
        actor.submit(append_only(row), branch="dev", effect=(row,), name=row)
        _audit(actor, "dev")


def _start(actor: Actor, name: str) -> Start:
    if name == "old":
        head = actor.repo.head(MAIN).commit
        back = actor.random.choice((1, 1, 2, 3))
        older = actor.repo.chains.get(head.chain, max(1, head.number - back))
        return Start(commit=older)  # type: ignore[arg-type]
    return Start(head_of=MAIN)


def _delete(actor: Actor, name: str) -> None:
    try:
        chain = actor.repo.head(name).commit.chain
        branches.delete_branch(actor.repo, name)
    except OmnigraphError:
        return
    actor.log.branches_ended.append(chain)


def tagger(actor: Actor) -> None:
    for number in range(2):
        try:
            head = actor.repo.head(MAIN).commit
            older = actor.repo.chains.get(
                head.chain, max(1, head.number - actor.random.randrange(3))
            )
            create_tag(actor.repo, f"t{actor.name}{number}", older)  # type: ignore[arg-type]
        except OmnigraphError:
            continue
        actor.log.tags_made.add(f"t{actor.name}{number}")


def collector(actor: Actor) -> None:
    for _ in range(2):
        _collect(actor, keep=actor.random.choice((1, 1, 2, 4)))


def sweeper(actor: Actor) -> None:
    """Moves the head on and keeps nothing but it: whoever slept meanwhile finds all he knew of buried."""
    for _ in range(2):
        appender(actor)
        _collect(actor, keep=1)


def _collect(actor: Actor, keep: int) -> None:
    tombstones = actor.random.choice((None, None, 0, 1))
    try:
        collect(actor.repo, Retention(keep, tombstones_max=tombstones))
    except OmnigraphError as error:
        if error.kind is Kind.CORRUPT:
            raise


def auditor(actor: Actor) -> None:
    """Reads whole states: the sum of the accounts never changes, and no edge lacks its nodes."""
    for _ in range(4):
        _audit(actor, actor.random.choice(("main", "main", "dev")))


def _audit(actor: Actor, branch: str) -> None:
    told, ended = dict(actor.log.seen), set(actor.log.branches_ended)
    try:
        head = actor.repo.head(branch)
        _is_fresh(head.commit, told, ended)
        snapshot = actor.repo.snapshot(head.commit)
        rows = snapshot.table_of(snapshot.catalog.nodes["Person"]).scan(["id", "age"]).to_pylist()
    except OmnigraphError as error:
        if error.kind is Kind.CORRUPT and not _pruned(actor, head.commit):
            raise
        return
    total = sum(row["age"] for row in rows if row["id"] in ACCOUNTS)
    assert total == START_BALANCE * len(ACCOUNTS), f"the accounts sum up to {total}"


def _is_fresh(commit: Commit, told: dict[str, int], ended: set[str]) -> None:
    """Whoever begins to read after somebody was told of a commit, or of the end of a branch, sees it."""
    known = told.get(commit.chain, -1)
    assert commit.number >= known, (
        f"{commit.content} was shown after commit {known} was acknowledged"
    )
    assert commit.chain not in ended, f"{commit.content} was shown after its branch was deleted"


def _pruned(actor: Actor, commit: Commit) -> bool:
    from omnigraph.core.history import is_pruned_now

    return is_pruned_now(actor.repo, commit)


WORKLOADS: dict[str, Callable[[Actor], None]] = {
    "banker": banker,
    "appender": appender,
    "retrier": retrier,
    "sleeper": sleeper,
    "gardener": gardener,
    "folder": folder,
    "brancher": brancher,
    "visitor": visitor,
    "tagger": tagger,
    "collector": collector,
    "sweeper": sweeper,
    "resetter": resetter,
    "founder": founder,
    "auditor": auditor,
    "lister": lister,
    "merger": merger,
    "compactor": compactor,
    "loader": loader,
}
