"""Queries written in both languages have the same plans and the same answers."""

# ruff: noqa: E501 - a pair of queries is read side by side
from __future__ import annotations

from typing import Any

import pytest

import omnigraph
from omnigraph.lang.cypher import compile_cypher
from omnigraph.lang.plan_text import plan_text
from omnigraph.lang.query import compile_query
from omnigraph.lang.schema import catalog_of, compile_schema

SCHEMA = """
interface Named { name: String }
node Person implements Named { name: String @key age: I64? score: F64? langs: [String]? joined: Date? }
node City implements Named { name: String @key country: String? }
edge Knows: Person -> Person { since: I64? }
edge LivesIn: Person -> City
"""
ROWS = {
    "Person": [
        {"name": "Ada", "age": 36, "score": 1.5, "langs": ["en", "fr"], "joined": "2020-05-17"},
        {"name": "Bob", "age": 20, "score": 2.5, "joined": "2021-01-01"},
        {"name": "Cyd", "langs": ["en"]},
        {"name": "Dan", "age": 20, "score": -1.0},
        {"name": "Eve", "age": 51},
    ],
    "City": [{"name": "London", "country": "UK"}, {"name": "Paris", "country": "FR"}],
    "Knows": [
        {"from": "Ada", "to": "Bob", "since": 2001},
        {"from": "Ada", "to": "Dan", "since": 2015},
        {"from": "Bob", "to": "Cyd", "since": 2010},
        {"from": "Cyd", "to": "Ada"},
        {"from": "Dan", "to": "Eve", "since": 2020},
    ],
    "LivesIn": [
        {"from": "Ada", "to": "London"},
        {"from": "Bob", "to": "Paris"},
        {"from": "Cyd", "to": "Paris"},
    ],
}
P = "$p: Person"
# fmt: off
PAIRS: list[tuple[str, str]] = [
    ("MATCH (p:Person) RETURN p.name", f"match {{ {P} }} return {{ $p.name }}"),
    ("MATCH (p:Person) WHERE p.age > 30 RETURN p.name", f"match {{ {P} $p.age > 30 }} return {{ $p.name }}"),
    ("MATCH (p:Person {name: 'Ada'}) RETURN p.age", 'match { $p: Person { name: "Ada" } } return { $p.age }'),
    ("MATCH (p:Person) WHERE p.age IS NULL RETURN p.name", f"match {{ {P} $p.age is null }} return {{ $p.name }}"),
    ("MATCH (p:Person) WHERE p.age IN [20, 51] RETURN p.name", f"match {{ {P} $p.age in [20, 51] }} return {{ $p.name }}"),
    ("MATCH (p:Person) WHERE NOT p.age = 20 RETURN p.name", f"match {{ {P} not ($p.age = 20) }} return {{ $p.name }}"),
    ("MATCH (p:Person) WHERE p.age = 20 OR p.name = 'Ada' RETURN p.name", f'match {{ {P} $p.age = 20 or $p.name = "Ada" }} return {{ $p.name }}'),
    ("MATCH (p:Person) WHERE p.name STARTS WITH 'A' RETURN p.name", f'match {{ {P} $p.name starts_with "A" }} return {{ $p.name }}'),
    ("MATCH (p:Person) WHERE p.name CONTAINS 'd' RETURN p.name", f'match {{ {P} $p.name contains "d" }} return {{ $p.name }}'),
    ("MATCH (p:Person)-[k:Knows]->(q:Person) RETURN p.name, q.name", f"match {{ {P} $p $k:knows $q }} return {{ $p.name, $q.name }}"),
    ("MATCH (q:Person)-[k:Knows]->(p) RETURN p.name, q.name", "match { $q: Person $q $k:knows $p } return { $p.name, $q.name }"),
    ("MATCH (p:Person)-[k:Knows]-(q) RETURN p.name, q.name", f"match {{ {P} $p $k:<knows> $q }} return {{ $p.name, $q.name }}"),
    ("MATCH (p)-[l:LivesIn]->(c:City) RETURN p.name, c.country", f"match {{ {P} $p $l:livesIn $c }} return {{ $p.name, $c.country }}"),
    ("MATCH (p:Person)-[k:Knows]->(q) WHERE k.since > 2005 RETURN p.name, k.since", f"match {{ {P} $p $k:knows $q $k.since > 2005 }} return {{ $p.name, $k.since }}"),
    ("MATCH (a:Person)-[k:Knows]->(b)-[l:LivesIn]->(c) RETURN a.name, c.name", "match { $a: Person $a $k:knows $b $b $l:livesIn $c } return { $a.name, $c.name }"),
    ("MATCH (p:Person) OPTIONAL MATCH (p)-[l:LivesIn]->(c) RETURN p.name, c.name", f"match {{ {P} optional {{ $p $l:livesIn $c }} }} return {{ $p.name, $c.name }}"),
    ("MATCH (p:Person) WHERE EXISTS { (p)-[l:LivesIn]->(c) } RETURN p.name", f"match {{ {P} exists {{ $p $l:livesIn $c }} }} return {{ $p.name }}"),
    ("MATCH (p:Person) WHERE NOT EXISTS { (p)-[l:LivesIn]->(c) } RETURN p.name", f"match {{ {P} not {{ $p $l:livesIn $c }} }} return {{ $p.name }}"),
    ("MATCH (p:Person) WHERE COUNT { (p)-[k:Knows]->(q) } > 1 RETURN p.name", f"match {{ {P} count {{ $p $k:knows $q }} > 1 }} return {{ $p.name }}"),
    ("MATCH (p:Person) RETURN count(*) AS n", f"match {{ {P} }} return {{ count(*) as n }}"),
    ("MATCH (p:Person) RETURN count(p.age) AS n", f"match {{ {P} }} return {{ count($p.age) as n }}"),
    ("MATCH (p:Person) RETURN p.age AS age, count(*) AS n", f"match {{ {P} }} return {{ $p.age as age, count(*) as n }}"),
    ("MATCH (p:Person) RETURN avg(p.age) AS a, min(p.age) AS l, max(p.name) AS m", f"match {{ {P} }} return {{ avg($p.age) as a, min($p.age) as l, max($p.name) as m }}"),
    ("MATCH (p:Person) RETURN sum(p.score) AS s", f"match {{ {P} }} return {{ coalesce(sum($p.score), 0.0) as s }}"),
    ("MATCH (p:Person) RETURN count(DISTINCT p.age) AS n", f"match {{ {P} }} return {{ count(distinct $p.age) as n }}"),
    ("MATCH (p)-[l:LivesIn]->(c:City) RETURN c.name AS c, count(p) AS n", f"match {{ {P} $p $l:livesIn $c }} return {{ $c.name as c, count($p) as n }}"),
    ("MATCH (p:Person) RETURN p.name ORDER BY p.name DESC LIMIT 2", f"match {{ {P} }} return {{ $p.name }} order {{ $p.name desc }} limit 2"),
    ("MATCH (p:Person) RETURN p.name ORDER BY p.name SKIP 1 LIMIT 2", f"match {{ {P} }} return {{ $p.name }} order {{ $p.name }} skip 1 limit 2"),
    ("MATCH (p:Person) RETURN p.age + 1 AS next", f"match {{ {P} }} return {{ $p.age + 1 as next }}"),
    ("MATCH (p:Person) RETURN toUpper(p.name) AS n", f"match {{ {P} }} return {{ upper($p.name) as n }}"),
    ("MATCH (p:Person) RETURN coalesce(p.age, 0) AS a", f"match {{ {P} }} return {{ coalesce($p.age, 0) as a }}"),
    ("MATCH (p:Person) RETURN p.name + '!' AS n", f'match {{ {P} }} return {{ concat($p.name, "!") as n }}'),
    ("MATCH (p:Person) RETURN substring(p.name, 1, 1) AS n", f"match {{ {P} }} return {{ substring($p.name, 1, 1) as n }}"),
    ("MATCH (n:Named) RETURN n.name", "match { $n: Named } return { $n.name }"),
    ("MATCH (p:Person) RETURN p.name AS n UNION MATCH (c:City) RETURN c.name AS n", f"match {{ {P} }} return {{ $p.name as n }} union match {{ $c: City }} return {{ $c.name as n }}"),
    ("MATCH (p:Person) WHERE p.joined.year = 2020 RETURN p.name", f"match {{ {P} year($p.joined) = 2020 }} return {{ $p.name }}"),
    ("MATCH (a:Person), (b:City) RETURN a.name, b.name", "match { $a: Person $b: City } return { $a.name, $b.name }"),
    ("MATCH (p:Person) WHERE p.age > 10 AND p.score < 2.0 RETURN p.name", f"match {{ {P} $p.age > 10 and $p.score < 2.0 }} return {{ $p.name }}"),
    ("MATCH (p:Person) WHERE p.name <> 'Ada' RETURN p.age", f'match {{ {P} $p.name != "Ada" }} return {{ $p.age }}'),
    ("MATCH (p:Person) WHERE p.age IS NOT NULL RETURN p.name ORDER BY p.name", f"match {{ {P} $p.age is not null }} return {{ $p.name }} order {{ $p.name }}"),
    ("MATCH (c:City {country: 'FR'})<-[l:LivesIn]-(p) RETURN p.name", 'match { $c: City { country: "FR" } $p $l:livesIn $c } return { $p.name }'),
    ("MATCH (p:Person)-[k:Knows]->(q) RETURN q.name AS q, max(k.since) AS last", f"match {{ {P} $p $k:knows $q }} return {{ $q.name as q, max($k.since) as last }}"),
    ("MATCH (p:Person)-[k:Knows]->(q)-[l:LivesIn]->(c {name: 'Paris'}) RETURN p.name", f'match {{ {P} $p $k:knows $q $q $l:livesIn $c $c.name = "Paris" }} return {{ $p.name }}'),
    ("MATCH (p:Person) RETURN p.name AS x UNION ALL MATCH (c:City) RETURN c.name AS x", f"match {{ {P} }} return {{ $p.name as x }} union all match {{ $c: City }} return {{ $c.name as x }}"),
    ("MATCH (p:Person)-[k:Knows]->(q) WHERE NOT EXISTS { (q)-[l:LivesIn]->(c) } RETURN p.name, q.name", f"match {{ {P} $p $k:knows $q not {{ $q $l:livesIn $c }} }} return {{ $p.name, $q.name }}"),
    ("MATCH (p:Person) RETURN toLower(p.name) AS n", f"match {{ {P} }} return {{ lower($p.name) as n }}"),
    ("MATCH (a:Person), (b:Person) WHERE a.age = b.age RETURN a.name, b.name", "match { $a: Person $b: Person $a.age = $b.age } return { $a.name, $b.name }"),
]
# Other plans, for the languages differ: rows of distinct values, walks that follow no relationship twice.
ALIKE: list[tuple[str, str]] = [
    ("MATCH (p:Person) WHERE p.joined >= date('2020-06-01') RETURN p.name", f'match {{ {P} $p.joined >= date("2020-06-01") }} return {{ $p.name }}'),
    ("MATCH (a:Person)-[:Knows]->(b)-[:Knows]->(c)-[:Knows]->(a) RETURN a.name, b.name, c.name", "match { $a: Person $a knows $b $b knows $c $c knows $a } return { $a.name, $b.name, $c.name }"),
    ("MATCH (p:Person) RETURN DISTINCT p.age AS age", f"match {{ {P} }} return distinct {{ $p.age as age }}"),
    ("MATCH p = shortestPath((a:Person {name: 'Ada'})-[:Knows*]->(b:Person {name: 'Cyd'})) RETURN length(p) AS n", 'match { $a: Person { name: "Ada" } $b: Person { name: "Cyd" } $p = path $a knows{1,9} $b } return { length($p) as n }'),
    ("MATCH (p:Person) WHERE 'en' IN p.langs RETURN p.name", f'match {{ {P} $p.langs contains "en" }} return {{ $p.name }}'),
]
# fmt: on


@pytest.fixture(scope="module")
def graph() -> Any:
    made = omnigraph.init("memory://both-languages", schema=SCHEMA)
    made.load(ROWS)
    return made


@pytest.mark.parametrize("pair", PAIRS, ids=[cypher for cypher, _ in PAIRS])
def test_plans_are_equal(pair: tuple[str, str]) -> None:
    catalog = catalog_of(compile_schema(SCHEMA))
    cypher, gq = compile_cypher(pair[0], catalog), compile_query(pair[1], catalog)
    assert plan_text(cypher) == plan_text(gq)


@pytest.mark.parametrize("pair", PAIRS + ALIKE, ids=[cypher for cypher, _ in PAIRS + ALIKE])
def test_answers_are_equal(graph: Any, pair: tuple[str, str]) -> None:
    cypher, gq = (graph.query(text) for text in pair)
    in_order = "ORDER BY" in pair[0]
    rows = [[tuple(row.values()) for row in found] for found in (cypher, gq)]
    assert rows[0]
    if not in_order:
        rows = [sorted(part, key=repr) for part in rows]
    assert rows[0] == rows[1]


def test_there_are_forty() -> None:
    assert len(PAIRS) >= 40
