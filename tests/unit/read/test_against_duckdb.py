"""The relational part of the language against SQL: the same random questions, asked of DuckDB.

Patterns with bound edges are joins, filters are WHERE, implicit groups are GROUP BY; nulls and bags mean the same.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from omnigraph.read import Cache
from tests.support.comparing import normal
from tests.support.snapshots import Graph, as_table, ask, make_graph

QUERIES = int(os.environ.get("OMNIGRAPH_DIFFERENTIAL", "750")) // 3
SCHEMA = """
node Person { code: String @key  name: String?  age: I64?  score: F64? }
node Town { code: String @key  name: String?  people: I64? }
edge Knows: Person -> Person { since: I64? }
edge LivesIn: Person -> Town { since: I64? }
"""
COLUMNS: dict[str, dict[str, type]] = {
    "Person": {"code": str, "name": str, "age": int, "score": float},
    "Town": {"code": str, "name": str, "people": int},
    "Knows": {"since": int},
    "LivesIn": {"since": int},
}
ENDS = {"Knows": ("Person", "Person"), "LivesIn": ("Person", "Town")}


def rows(rng: random.Random) -> dict[str, list[dict[str, Any]]]:
    def value(kind: type) -> Any:
        if rng.random() < 0.2:
            return None
        return {
            str: rng.choice(["a", "b", "Ab", "zz", ""]),
            int: rng.randint(-5, 9),
            float: rng.randint(-8, 8) / 4,
        }[kind]

    def row(name: str, given: dict[str, Any]) -> dict[str, Any]:
        return given | {c: value(k) for c, k in COLUMNS[name].items() if c not in given}

    data = {
        n: [row(n, {"id": f"{n[0]}{i}", "code": f"{n[0]}{i}"}) for i in range(40)]
        for n in ("Person", "Town")
    }
    for name, (src, dst) in ENDS.items():
        data[name] = [
            row(
                name,
                {
                    "id": f"{name}{i}",
                    "src": f"{src[0]}{rng.randrange(40)}",
                    "dst": f"{dst[0]}{rng.randrange(40)}",
                },
            )
            for i in range(90)
        ]
    return data


class Pair:
    """One random question in both languages."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.types = {"n0": "Person"}
        self.clauses, self.tables = ["$n0: Person"], ["Person n0"]
        for i in range(rng.randint(0, 3)):
            self.link(i + 1)
        self.conditions = [self.condition() for _ in range(rng.randint(0, 3))]

    def link(self, i: int) -> None:
        start = self.rng.choice([v for v, t in self.types.items() if t == "Person"])
        edge = self.rng.choice(["Knows", "LivesIn"])
        self.types |= {f"n{i}": ENDS[edge][1], f"e{i}": edge}
        self.clauses.append(f"${start} $e{i}:{edge[0].lower() + edge[1:]} $n{i}")
        self.tables.append(f"join {edge} e{i} on e{i}.src = {start}.id")
        self.tables.append(f"join {ENDS[edge][1]} n{i} on n{i}.id = e{i}.dst")

    def field(self, kinds: tuple[type, ...] = (str, int, float)) -> str:
        fields = [
            f"{v}.{c}" for v, t in self.types.items() for c, k in COLUMNS[t].items() if k in kinds
        ]
        return self.rng.choice(fields)

    def condition(self) -> str:
        """Written alike in both languages, but for the dollar signs."""
        number = self.rng.randint(-3, 6)
        made = [
            f"{self.field((int, float))} {self.rng.choice(['<', '>=', '=', '!='])} {number}",
            f"{self.field((int,))} + {number} > {self.field((int, float))}",
            f"{self.field((int, float))} < 1.25",
            f"{self.field((str,))} = {self.field((str,))}",
            f"{self.field()} is null",
            f"{self.field()} is not null",
            f"{self.field((int,))} in [1, 2, 3]",
        ]
        one, two = self.rng.sample(made, 2)
        return self.rng.choice([one, f"({one} or {two})", f"not ({one} and {two})"])

    def columns(self) -> tuple[list[str], list[str]]:
        keys = [self.field() for _ in range(self.rng.randint(0, 2))]
        if self.rng.random() < 0.5:
            return keys or [self.field()], []
        number = self.field((int, float))
        made = [
            "count(*)",
            f"count({self.field()})",
            f"count(distinct {self.field()})",
            f"min({self.field()})",
        ]
        made += [f"sum({number})", f"avg({number})", f"max({number})"]
        return keys, self.rng.sample(made, 2)

    def texts(self) -> tuple[str, str]:
        keys, aggregates = self.columns()
        shown = [f"{c} as c{i}" for i, c in enumerate(keys + aggregates)]
        pattern = " ".join(self.clauses + [f"({c})" for c in self.conditions])
        ours = f"match {{ {pattern} }} return {{ {', '.join(shown)} }}"
        theirs = f"select {', '.join(shown)} from {' '.join(self.tables)}"  # noqa: S608
        if self.conditions:
            theirs += " where " + " and ".join(f"({c})" for c in self.conditions)
        if keys and aggregates:
            theirs += " group by " + ", ".join(keys)
        return self.with_dollars(ours), theirs.replace("[1, 2, 3]", "(1, 2, 3)")

    def with_dollars(self, text: str) -> str:
        for var in self.types:
            for before in " (":
                text = text.replace(f"{before}{var}.", f"{before}${var}.")
        return text


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> tuple[Graph, duckdb.DuckDBPyConnection]:
    folder: Path = tmp_path_factory.mktemp("graph")
    data = rows(random.Random(11))
    made = make_graph(folder, SCHEMA, data)
    other = duckdb.connect(":memory:", config={"threads": 1})
    for name, some in data.items():
        table: pa.Table = as_table(made.kind(name), some)
        other.register(f"given_{name}", table)
        other.table(f"given_{name}").create(name)
    return made, other


def test_random_questions_have_the_same_answers_in_sql(
    graph: tuple[Graph, duckdb.DuckDBPyConnection],
) -> None:
    ours, theirs = graph
    cache = Cache()
    for seed in range(QUERIES):
        text, sql = Pair(random.Random(seed)).texts()
        found = Counter(normal(list(row.values())) for row in ask(ours, text, cache=cache).rows)
        wanted = Counter(normal(list(row)) for row in theirs.execute(sql).fetchall())
        assert found == wanted, f"seed {seed}\n{text}\n{sql}"
