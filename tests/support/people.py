"""A small graph of people for tests of branches: short ways to write, read and compare."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from omnigraph.core.plan import Request
from omnigraph.core.publisher import Ticket, publish
from omnigraph.graph import Graph, init
from omnigraph.model.names import branch_name
from omnigraph.write.apply_schema import apply_schema

SCHEMA = """
node Person {
  name: String @key
  email: String? @unique
  age: I64?
  nick: String?
}
node City {
  name: String @key
}
edge Knows: Person -> Person {
  since: I64?
  @key(src, dst)
}
edge Lives: Person -> City @card(0..1)
"""
ROWS = {
    "Person": [{"name": name, "age": number} for number, name in enumerate("abcd")],
    "City": [{"name": "x"}, {"name": "y"}],
    "Knows": [{"from": "a", "to": "b", "since": 1}],
}


def people(folder: Path | None = None, schema: str = SCHEMA) -> Graph:
    """A graph with four people, in memory unless a folder is given."""
    graph = init(folder or f"memory://{uuid.uuid4().hex}", schema=schema)
    graph.load(ROWS)
    return graph


def change(graph: Graph, text: str, branch: str = "main") -> str:
    """One statement as a commit; returns its id."""
    commit = graph.mutate(f"query change() {{ {text} }}", branch=branch).commit
    assert commit is not None, f"{text} changed nothing"
    return commit.id


def folded(graph: Graph, *texts: str, branch: str = "main") -> list[str]:
    """Statements of several writers as members of one commit; returns their ids."""
    repo = graph._repo
    verbs = [graph.mutation(f"query change() {{ {text} }}") for text in texts]
    tickets = [
        Ticket(Request(branch=branch_name(branch), verb=verb), repo.clock.fresh_id())
        for verb in verbs
    ]
    publish(repo, tickets)
    ids = [ticket.outcome.commit_id for ticket in tickets if ticket.outcome is not None]
    return [str(id) for id in ids]


def reshape(graph: Graph, old: str, new: str, branch: str = "main") -> None:
    """Replace a passage of the schema."""
    text = graph.schema(branch)
    assert old in text, f"the schema has no {old!r}"
    repo = graph._repo
    verb = apply_schema(
        text.replace(old, new, 1), lambda name: repo.schema(name).ir, allow_data_loss=True
    )
    graph.publish(verb, branch=branch, alone=True)


def rows(graph: Graph, type_name: str, branch: str = "main") -> dict[str, Mapping[str, Any]]:
    """The rows of a type by id."""
    snapshot = graph.snapshot(branch)
    kind = snapshot.catalog.entity(type_name)
    assert kind is not None, f"there is no type {type_name}"
    table = snapshot.table_of(kind)
    return {row["id"]: row for row in table.scan(table.schema.names).to_pylist()}


def state(graph: Graph, branch: str = "main", at: object = None) -> dict[str, Any]:
    """Everything a branch holds, by type and id."""
    snapshot = graph.snapshot(branch, at)
    found = {}
    for kind in snapshot.catalog.entities():
        table = snapshot.table_of(kind)
        read = table.scan(table.schema.names).to_pylist()
        found[kind.name] = {row["id"]: row for row in read}
    return found
