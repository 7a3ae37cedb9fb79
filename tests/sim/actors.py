"""Workloads. Every operation is logged with what its caller was told: ok, failed, or nothing certain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from random import Random

import pyarrow as pa

from omnigraph.core import branches
from omnigraph.core.branches import Start, create_tag
from omnigraph.core.gc import Retention, collect
from omnigraph.core.group import Writers
from omnigraph.core.plan import Append, PublishPlan, Reads, Request, Upsert, Verb
from omnigraph.core.publisher import Published, Ticket, publish
from omnigraph.core.records import Commit
from omnigraph.core.repository import Repository
from omnigraph.core.txn import WriteTxn
from omnigraph.errors import Kind, OmnigraphError
from omnigraph.model.names import MAIN, branch_name
from omnigraph.model.tokens import id_tokens
from tests.support.worlds import add_knows, add_person, drop_person, plan, rows_of

ACCOUNTS = ("a0", "a1", "a2")
START_BALANCE = 100


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
    seen: dict[str, int] = field(
        default_factory=dict
    )  # per chain: the newest commit somebody was told of


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
    ) -> Told:
        told = Told(name or self.fresh(), branch, key=key, effect=effect)
        self.log.operations.append(told)
        request = Request(
            branch=branch_name(branch),
            verb=verb,
            actor=self.name,
            message=told.name,
            idempotency_key=key,
        )
        self.tell(told, lambda: Writers(self.repo).submit(request))
        return told

    def tell(self, told: Told, call: Callable[[], Published]) -> None:
        try:
            done = call()
        except OmnigraphError as error:
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
    for _ in range(4):
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
                actor.repo.world.pause(0)


NODES = ("n0", "n1")


def gardener(actor: Actor) -> None:
    """Edges to nodes that others remove."""
    for _ in range(5):
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
    for node in (*NODES, *NODES):
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
            (told, Ticket(request, actor.repo.world.fresh_id(), instant=actor.repo.world.now()))
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


def _start(actor: Actor, name: str) -> Start:
    if name == "old":
        head = actor.repo.head(MAIN).commit
        older = actor.repo.chains.get(head.chain, max(1, head.number - 1))
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


def collector(actor: Actor) -> None:
    for _ in range(2):
        try:
            collect(actor.repo, Retention(keep=actor.random.choice((1, 1, 2, 4))))
        except OmnigraphError as error:
            if error.kind is Kind.CORRUPT:
                raise


def auditor(actor: Actor) -> None:
    """Reads whole states: the sum of the accounts never changes, and no edge lacks its nodes."""
    for _ in range(4):
        branch = actor.random.choice(("main", "main", "dev"))
        told, ended = dict(actor.log.seen), set(actor.log.branches_ended)
        try:
            head = actor.repo.head(branch)
            _is_fresh(head.commit, told, ended)
            snapshot = actor.repo.snapshot(head.commit)
            rows = (
                snapshot.table_of(snapshot.catalog.nodes["Person"]).scan(["id", "age"]).to_pylist()
            )
        except OmnigraphError as error:
            if error.kind is Kind.CORRUPT and not _pruned(actor, head.commit):
                raise
            continue
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
    "tagger": tagger,
    "collector": collector,
    "auditor": auditor,
}
