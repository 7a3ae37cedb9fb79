"""A writer for tests of maintenance: it writes for a while and says what must be there afterwards."""

from __future__ import annotations

import time

from omnigraph.graph import open_graph
from tests.support.processes import acknowledge

INSERT = "query put($n: String, $a: I64) { insert Person { name: $n, age: $a } }"
DELETE = "query drop($n: String) { delete Person where name = $n }"
LINK = "query link($a: String, $b: String) { insert Knows { from: $a, to: $b } }"


def keep_writing(uri: str, writer: str, seconds: float) -> None:
    """Insert, change, link and delete people of one's own; every write must succeed."""
    graph = open_graph(uri)
    ends = time.monotonic() + seconds
    number = 0
    while time.monotonic() < ends:
        name = f"{writer}-{number}"
        graph.mutate(INSERT, {"n": name, "a": number})
        acknowledge({"name": name, "age": number})
        if number % 3 == 1:
            graph.mutate(INSERT, {"n": name, "a": -number})
            acknowledge({"name": name, "age": -number})
            graph.mutate(LINK, {"a": name, "b": f"{writer}-0"})
            acknowledge({"edge": [name, f"{writer}-0"]})
        if number % 5 == 4:
            graph.mutate(DELETE, {"n": name})
            acknowledge({"name": name, "age": None})
        number += 1
