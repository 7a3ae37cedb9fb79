"""A write means the same in both languages: whatever a mutation does to a branch, Cypher does to its twin."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any
from unicodedata import normalize

import pytest

from omnigraph.errors import OmnigraphError
from tests.support.rings import count
from tests.system.generate import program
from tests.system.run import Run
from tests.system.schema import Impossible, State, Type
from tests.system.test_laws import assert_alike, whole
from tests.system.world import World

SEEDS = range(count(12, 400))
LENGTH = 40
OPERATORS = {"=": "=", "!=": "<>", ">": ">"}
TWINS = ("in gq", "in cypher")
IN_CYPHER_ALONE = "key_conflict"  # CREATE makes something new, `insert` may change what has the key


class CypherText:
    """A statement in Cypher, all its values as parameters."""

    def __init__(self, world: World, kind: Type) -> None:
        self.world = world
        self.kind = kind
        self.params: dict[str, Any] = {}

    def statement(self, verb: str, rest: Sequence[Any]) -> str:
        name = self.kind.name
        if verb == "insert":
            rows = (f"(:{name} {{{self._assigned(row, '{}: {}')}}})" for row in rest[0])
            return f"CREATE {', '.join(rows)}"
        pattern = f"(a)-[x:{name}]->(b)" if self.kind.is_edge else f"(x:{name})"
        found = f"MATCH {pattern} WHERE {self._where(*rest[-1])}"
        if verb == "update":
            return f"{found} SET {self._assigned(rest[0], 'x.{} = {}')}"
        return f"{found} {'DELETE' if self.kind.is_edge else 'DETACH DELETE'} x"

    def _assigned(self, row: dict[str, Any], form: str) -> str:
        return ", ".join(form.format(f"`{name}`", self._param(v)) for name, v in row.items())

    def _where(self, name: str, operator: str, value: Any) -> str:
        var = {"id": "x", "from": "a", "to": "b"}.get(name)
        if var is not None:
            return f"id({var}) = {self._param(self.world.real(value))}"
        if operator == "is null":
            return f"x.`{name}` IS NULL"
        return f"x.`{name}` {OPERATORS[operator]} {self._param(value)}"

    def _param(self, value: Any) -> str:
        name = f"p{len(self.params)}"
        self.params[name] = value
        return f"${name}"


def _outcome(graph: Any, branch: str, text: str, params: dict[str, Any]) -> Any:
    language = "cypher" if branch == "in cypher" else "gq"
    try:
        done = graph.mutate(text, params, branch=branch, language=language)
    except OmnigraphError as error:
        return str(error.code), None
    return "done", (done.affected_nodes, done.affected_edges)


def _compared(world: World, state: State, branch: str, statement: Sequence[Any]) -> str:
    """What both languages made of a statement, on branches that go again."""
    verb, name, *rest = statement
    kind = state.called(name)
    cypher = CypherText(world, kind)
    texts = world.mutation(state, [statement]), (cypher.statement(verb, rest), cypher.params)
    for twin in TWINS:
        world.graph.create_branch(twin, from_=branch)
    one, other = (_outcome(world.graph, t, *text) for t, text in zip(TWINS, texts, strict=True))
    if other[0] != IN_CYPHER_ALONE:
        assert one == other, texts[1]
        if verb != "insert" or kind.key:  # other ids are made up
            assert_alike(whole(world.graph, TWINS[0]), whole(world.graph, TWINS[1]))
    for twin in TWINS:
        world.graph.delete_branch(twin)
    return f"{verb} {one[0]}"


@pytest.mark.parametrize("part", range(4))
def test_a_write_means_the_same_in_cypher(part: int) -> None:
    met: Counter[str] = Counter()
    for seed in SEEDS[part::4]:
        made = program(seed, LENGTH)
        run = Run(made)
        try:
            for step in made.steps:
                if step["verb"] == "mutate" and len(step["statements"]) == 1:
                    branch, (statement,) = normalize("NFC", step["branch"]), step["statements"]
                    try:
                        state = run.model.state(branch)
                        if statement[0] != "insert" or not state.called(statement[1]).is_edge:
                            met[_compared(run.world, state, branch, statement)] += 1
                    except Impossible:
                        continue
                run.step(step)
        finally:
            run.world.close()
    assert {"insert done", "update done", "delete done"} <= met.keys(), met
