"""What a side may do before a merge: the rows and columns of the truth table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from omnigraph.graph import Graph
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
edge Likes: Person -> Person {
  weight: I64?
}
"""
BASE = {
    "Person": [
        {"name": "a", "age": 1, "nick": "al"},
        {"name": "b", "age": 2, "nick": "bo"},
        {"name": "c", "age": 3, "nick": "cy"},
        {"name": "z", "age": 4},
    ],
    "City": [{"name": "x"}, {"name": "y"}],
    "Knows": [{"from": "a", "to": "b", "since": 1}],
    "Likes": [{"from": "b", "to": "c", "weight": 1}],
}

Step = Callable[[Graph, str], None]


def mutation(text: str) -> Step:
    """A mutation of one statement."""

    def run(graph: Graph, branch: str) -> None:
        graph.mutate(f"query change() {{ {text} }}", branch=branch)

    return run


def schema(*passages: tuple[str, str]) -> Step:
    """The schema with some passages replaced."""

    def run(graph: Graph, branch: str) -> None:
        text = graph.schema(branch)
        for old, new in passages:
            assert old in text, f"the schema has no {old!r}"
            text = text.replace(old, new, 1)
        repo = graph._repo
        verb = apply_schema(text, lambda name: repo.schema(name).ir, allow_data_loss=True)
        graph.publish(verb, branch=branch, alone=True)

    return run


@dataclass(frozen=True, slots=True)
class Operation:
    """Something a side does, in one or several commits."""

    name: str
    steps: tuple[Step, ...] = ()

    def run(self, graph: Graph, branch: str) -> None:
        for step in self.steps:
            step(graph, branch)


def _op(name: str, *texts: str) -> Operation:
    return Operation(name, tuple(map(mutation, texts)))


OPERATIONS: tuple[Operation, ...] = (
    Operation("none"),
    _op("insert", 'insert Person { name: "n", age: 1 }'),
    _op("insert the same with another value", 'insert Person { name: "n", age: 2 }'),
    _op("insert another", 'insert Person { name: "m", age: 1, email: "m" }'),
    _op("insert and delete", 'insert Person { name: "n" }', 'delete Person where name = "n"'),
    _op("update", 'update Person set { age: 10 } where name = "a"'),
    _op("update to another value", 'update Person set { age: 20 } where name = "a"'),
    _op("update another field", 'update Person set { nick: "new" } where name = "a"'),
    _op("clear a field", 'update Person set { nick: null } where name = "a"'),
    _op(
        "update and back",
        'update Person set { age: 10 } where name = "a"',
        'update Person set { age: 1 } where name = "a"',
    ),
    _op("delete", 'delete Person where name = "a"'),
    _op(
        "delete and insert the same",
        'delete Person where name = "a"',
        'insert Person { name: "a", age: 1, nick: "al" }',
    ),
    _op(
        "delete and insert another",
        'delete Person where name = "a"',
        'insert Person { name: "a", age: 30 }',
    ),
    _op("delete a lonely node", 'delete Person where name = "z"'),
    _op("update a lonely node", 'update Person set { age: 40 } where name = "z"'),
    _op("add an edge", 'insert Knows { from: "a", to: "c" }'),
    _op("add the edge with a value", 'insert Knows { from: "a", to: "c", since: 5 }'),
    _op("add an edge to the lonely node", 'insert Knows { from: "b", to: "z" }'),
    _op("remove an edge", 'delete Knows where from = "a"'),
    _op("update an edge", 'update Knows set { since: 7 } where from = "a"'),
    _op("update an edge to another value", 'update Knows set { since: 8 } where from = "a"'),
    _op(
        "remove an edge and add it again",
        'delete Knows where from = "a"',
        'insert Knows { from: "a", to: "b", since: 1 }',
    ),
    _op("delete the other end", 'delete Person where name = "b"'),
    _op("add an edge without key", 'insert Likes { from: "a", to: "b", weight: 2 }'),
    _op("remove an edge without key", 'delete Likes where from = "b"'),
    _op("take a unique value", 'update Person set { email: "e" } where name = "a"'),
    _op("take it for another", 'update Person set { email: "e" } where name = "c"'),
    _op("use up a cardinality", 'insert Lives { from: "a", to: "x" }'),
    _op("use it up otherwise", 'insert Lives { from: "a", to: "y" }'),
    _op("delete the city", 'delete City where name = "x"'),
    Operation(
        "rename a property", (schema(("nick: String?", 'alias: String? @rename_from("nick")')),)
    ),
    Operation(
        "rename it otherwise", (schema(("nick: String?", 'tag: String? @rename_from("nick")')),)
    ),
    Operation("drop the property", (schema(("  nick: String?\n", "")),)),
    Operation("add a property", (schema(("age: I64?", "age: I64?\n  score: I64?")),)),
    Operation(
        "add a property and use it",
        (
            schema(("age: I64?", "age: I64?\n  level: I64?")),
            mutation('update Person set { level: 9 } where name = "a"'),
        ),
    ),
    Operation(
        "rename a type",
        (
            schema(("node City {", 'node Town @rename_from("City") {'), ("-> City", "-> Town")),
            mutation('insert Town { name: "w" }'),
        ),
    ),
    Operation(
        "add a type",
        (
            schema(("node City {", "node Pet { name: String @key }\nnode City {")),
            mutation('insert Pet { name: "rex" }'),
        ),
    ),
    Operation(
        "add an edge type",
        (
            schema(("edge Lives", "edge Visits: Person -> City\nedge Lives")),
            mutation('insert Visits { from: "a", to: "x" }'),
        ),
    ),
    Operation("add a rule", (schema(("age: I64?", "age: I64?\n  @range(age, 0..15)")),)),
    Operation(
        "drop an edge type",
        (schema(("edge Likes: Person -> Person {\n  weight: I64?\n}\n", "")),),
    ),
)
