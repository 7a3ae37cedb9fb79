"""A graph on S3 that has seen some history, and the operations of the cost contract on it, ready to be measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count, cycle, islice

from omnigraph.core.plan import Verb
from omnigraph.graph import Graph, init, open_graph
from tests.support.verbs import add_to_each
from tests.support.worlds import SCHEMA, add_knows, add_person, people

OWN_TABLES = 3  # Person, City, Knows


def schema_with(tables: int) -> str:
    """The schema of the tests with more node types, so that there are this many tables."""
    more = (f"node Extra{i} {{ name: String @key }}" for i in range(tables - OWN_TABLES))
    return SCHEMA + "\n".join(more)


@dataclass(slots=True)
class Workload:
    """One graph of a given depth and width. Every operation may be called again and again."""

    graph: Graph
    numbers: count[int] = field(default_factory=count)
    spare: list[str] = field(default_factory=list)  # branches nobody has written to yet

    @classmethod
    def build(cls, uri: str, *, depth: int, tables: int) -> Workload:
        """A graph with `depth` one-row commits: edges, new nodes and replaced nodes in turn, never compacted."""
        self = cls(init(uri, schema=schema_with(tables)))
        for name in ("ann", "bob"):
            self.graph.publish(add_person(name))
        writes = (self.insert_edge, self.insert_node, self.replace_node)
        for write in islice(cycle(writes), depth):
            write()
        return self

    def fresh(self, prefix: str) -> str:
        return f"{prefix}{next(self.numbers)}"

    # --- the rows of the contract

    def insert_edge(self) -> None:
        self.graph.publish(add_knows(self.fresh("e"), "ann", "bob"))

    def insert_node(self) -> None:
        self.graph.publish(add_person(self.fresh("p")))

    def replace_node(self) -> None:
        self.graph.publish(add_person("ann", age=next(self.numbers)))

    def write_tables(self, tables: int) -> Callable[[], None]:
        types = ["Person", "City", "Extra0", "Extra1"][:tables]
        return lambda: self._publish(add_to_each(types, self.fresh("k")))

    def _publish(self, verb: Verb) -> None:
        self.graph.publish(verb)

    def create_branch(self) -> None:
        name = self.fresh("branch-")
        self.graph.create_branch(name)
        self.spare.append(name)

    def delete_branch(self) -> None:
        self.graph.delete_branch(self.spare.pop())

    def first_write_on_a_branch(self) -> None:
        self.graph.publish(add_knows(self.fresh("e"), "ann", "bob"), branch=self.spare.pop())

    def open_cold(self) -> None:
        open_graph(self.graph.uri).snapshot()

    def last_entry_cold(self) -> None:
        open_graph(self.graph.uri).log(limit=1)

    def probe(self) -> None:
        self.graph.snapshot()

    def read_nodes(self) -> None:
        people(self.graph._repo)
