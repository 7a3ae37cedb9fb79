"""Small graphs for tests of the core: two node types, one edge type, and verbs made by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from omnigraph.core.clock import REAL, Clock
from omnigraph.core.create import fill, fresh_stamp
from omnigraph.core.group import Writers
from omnigraph.core.plan import (
    NOTHING,
    Append,
    PublishPlan,
    Reads,
    Remove,
    Request,
    TableAction,
    Upsert,
    Verb,
)
from omnigraph.core.publisher import Published
from omnigraph.core.records import GraphStamp, StoredSchema
from omnigraph.core.repository import Repository
from omnigraph.core.txn import WriteTxn
from omnigraph.errors import OmnigraphError
from omnigraph.graph import Graph
from omnigraph.lang.schema import compile_schema, encode_ir
from omnigraph.model.limits import DEFAULT, Limits
from omnigraph.model.names import branch_name
from omnigraph.model.tokens import endpoint_tokens, id_tokens, unique_tokens
from omnigraph.storage.objects import Location
from tests.support.dict_objects import DictObjects, Hook, Shelf, nothing
from tests.support.dict_tables import DictTables, Disk

SCHEMA = """
node Person { name: String @key  email: String? @unique  age: I64? }
node City { name: String @key }
edge Knows: Person -> Person { since: I64? }
"""


class Rejected(OmnigraphError):
    """A verb of these tests refused its input. It has no code of its own: the catalogue is for users."""


def stored_schema(text: str = SCHEMA) -> StoredSchema:
    return StoredSchema(source=text, ir=encode_ir(compile_schema(text)).decode())


def memory_repository(
    *,
    objects: DictObjects | None = None,
    schema: str = SCHEMA,
    clock: Clock = REAL,
    limits: Limits = DEFAULT,
) -> Repository:
    """A fresh graph over one dictionary, which holds objects and tables alike."""
    store = objects if objects is not None else DictObjects(Shelf())
    repo = _repository(store, fresh_stamp(clock), limits, clock)
    fill(repo, stored_schema(schema))
    return repo


def _repository(store: DictObjects, stamp: GraphStamp, limits: Limits, clock: Clock) -> Repository:
    place = Location("memory://simulated", "memory", {})
    return Repository(place, store, DictTables(Disk(store)), stamp, limits=limits, clock=clock)


def another_process(repo: Repository, store: DictObjects | None = None) -> Repository:
    """The same graph, opened by somebody else: no cache is shared, and the store may be disturbed differently."""
    there = repo.objects
    assert isinstance(there, DictObjects)
    return _repository(store or DictObjects(there.objects), repo.stamp, repo.limits, repo.clock)


def disturbed(repo: Repository, before: Hook = nothing, after: Hook = nothing) -> Repository:
    """The same graph through a store with hooks."""
    there = repo.objects
    assert isinstance(there, DictObjects)
    return another_process(repo, DictObjects(there.objects, before, after))


def once_at(at: int, act: Callable[[], object]) -> Hook:
    """A hook that lets something happen before one request, counted from 0."""
    countdown = iter(range(at, -1, -1))

    def before(verb: str, key: str) -> None:
        if next(countdown, None) == 0:
            act()

    return before


def submit(repo: Repository, verb: Verb, *, branch: str = "main", **options: Any) -> Published:
    """Publish a verb."""
    return Writers(repo).submit(Request(branch=branch_name(branch), verb=verb, **options))


# --- verbs by hand: each says what it reads, as the real ones do ---------------------------------------------------


def rows_of(txn: WriteTxn, type_name: str, rows: Sequence[dict[str, Any]]) -> pa.Table:
    kind = txn.catalog.entity(type_name)
    assert kind is not None
    return pa.Table.from_pylist([dict(row) for row in rows], schema=txn.view(kind.table_id).schema)


def plan(
    actions: Sequence[TableAction], reads: dict[str, Reads] | None = None, **options: Any
) -> PublishPlan:
    return PublishPlan(kind="mutation", actions=tuple(actions), reads=reads or {}, **options)


def add_person(name: str, email: str | None = None, age: int | None = None) -> Verb:
    """Insert or replace a person; the email is unique."""

    def verb(txn: WriteTxn) -> PublishPlan:
        table = txn.catalog.nodes["Person"].table_id
        view = txn.view(table)
        before = view.lookup("id", pa.array([name]), ["id"])
        reads = id_tokens(pa.array([name]))
        found = [reads]
        if email is not None:
            held = view.lookup("email", pa.array([email]), ["id"])
            if any(holder != name for holder in held["id"].to_pylist()):
                raise Rejected(f"{email} is taken")
            found.append(unique_tokens(["email"], [pa.array([email])]))
        rows = rows_of(txn, "Person", [{"id": name, "name": name, "email": email, "age": age}])
        seen = Reads(pa_concat(found))
        return plan([Upsert(table, rows, before)], {table: seen})

    return verb


def add_knows(edge: str, src: str, dst: str) -> Verb:
    """Append an edge; both ends must exist."""

    def verb(txn: WriteTxn) -> PublishPlan:
        people = txn.catalog.nodes["Person"].table_id
        table = txn.catalog.edges["Knows"].table_id
        ends = pa.array(sorted({src, dst}))
        if len(txn.view(people).existing(ends)) != len(ends):
            raise Rejected(f"{src} or {dst} does not exist")
        rows = rows_of(txn, "Knows", [{"id": edge, "src": src, "dst": dst}])
        reads = {people: Reads(id_tokens(ends)), table: Reads(id_tokens(pa.array([edge])))}
        return plan([Append(table, rows)], reads)

    return verb


def drop_person(name: str) -> Verb:
    """Delete a person and every edge at it."""

    def verb(txn: WriteTxn) -> PublishPlan:
        people = txn.catalog.nodes["Person"].table_id
        table = txn.catalog.edges["Knows"].table_id
        gone = pa.array([name])
        person = txn.view(people).lookup("id", gone, ["id"])
        if not person.num_rows:
            return replace(NOTHING, reads={people: Reads(id_tokens(gone))})
        found = [
            txn.view(table).lookup(side, gone, ["id", "src", "dst"]) for side in ("src", "dst")
        ]
        edges = pa.concat_tables(found)
        once = {row["id"]: row for row in edges.to_pylist()}
        cascade = pa.Table.from_pylist(list(once.values()), schema=edges.schema)
        actions: list[TableAction] = [Remove(people, person)]
        if cascade.num_rows:
            actions.append(Remove(table, cascade))
        ends = Reads(pa_concat([endpoint_tokens(side, gone) for side in ("src", "dst")]))
        return plan(actions, {people: Reads(id_tokens(gone)), table: ends})

    return verb


def pa_concat(parts: Sequence[Any]) -> Any:
    import numpy as np

    return np.concatenate(list(parts))


def people(repo: Repository, branch: str = "main") -> list[str]:
    """The names of all people, sorted."""
    snapshot = repo.snapshot(repo.head(branch).commit)
    return sorted(
        snapshot.table_of(snapshot.catalog.nodes["Person"]).scan(["id"])["id"].to_pylist()
    )


def edges(repo: Repository, branch: str = "main") -> list[tuple[str, str, str]]:
    """All edges, sorted."""
    snapshot = repo.snapshot(repo.head(branch).commit)
    rows = snapshot.table_of(snapshot.catalog.edges["Knows"]).scan(["id", "src", "dst"]).to_pylist()
    return sorted((row["id"], row["src"], row["dst"]) for row in rows)


def dangling(repo: Repository, branch: str = "main") -> list[tuple[str, str, str]]:
    """Edges without their nodes: must be empty in every commit."""
    there = set(people(repo, branch))
    return [edge for edge in edges(repo, branch) if not {edge[1], edge[2]} <= there]


def graph_over(repo: Repository) -> Graph:
    return Graph(repo)
