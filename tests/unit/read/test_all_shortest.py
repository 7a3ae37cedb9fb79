"""All shortest paths: against a search that tries every walk, at the corners, and on graphs with far too many."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import DeadlineExceeded, LimitExceeded
from omnigraph.lang.query import format_queries
from omnigraph.model.limits import memory_bytes
from omnigraph.read import all_shortest, budget
from tests.support.rings import count

SCHEMA = """
node Person { name: String @key }
node Town { name: String @key }
edge Knows: Person -> Person
edge Likes: Person -> Person
edge LivesIn: Person -> Town
"""
Edge = tuple[str, str, str, str]  # id, type, from, to
Way = tuple[str, ...]  # node, edge, node, …

ARROWS = {"->": ("-", "->"), "<-": ("<-", "-"), "-": ("-", "-")}


def name() -> str:
    return f"memory://every{random.getrandbits(60)}"


def made(people: int, edges: list[Edge], towns: int = 0) -> Graph:
    g = omnigraph.init(name(), schema=SCHEMA)
    rows: dict[str, list[dict[str, Any]]] = {
        "Person": [{"name": f"p{i}"} for i in range(people)],
        "Town": [{"name": f"t{i}"} for i in range(towns)],
    }
    for key, kind, start, end in edges:
        rows.setdefault(kind, []).append({"id": key, "from": start, "to": end})
    g.load(rows)
    return g


def some_edges(rng: random.Random, people: int, towns: int) -> list[Edge]:
    """With self-loops and parallel edges."""
    found: list[Edge] = []
    for i in range(rng.randrange(2, 3 * people)):
        kind = rng.choice(["Knows", "Knows", "Likes", "LivesIn"])
        ends = towns if kind == "LivesIn" else people
        to = f"{'t' if kind == 'LivesIn' else 'p'}{rng.randrange(ends)}"
        found.append((f"e{i}", kind, f"p{rng.randrange(people)}", to))
    return found


def hops(node: str, edges: list[Edge], arrow: str) -> list[tuple[str, str]]:
    """The edges that leave a node, and where they lead: a self-loop once."""
    found = []
    for key, _, start, end in edges:
        if start == node and arrow in ("->", "-"):
            found.append((key, end))
        elif end == node and arrow in ("<-", "-"):
            found.append((key, start))
    return found


def all_ways(edges: list[Edge], arrow: str, a: str, b: str, low: int, high: int) -> set[Way]:
    """Every walk, level by level, until some arrive."""
    if a == b:
        loops: set[Way] = {(a, key, a) for key, far in hops(a, edges, arrow) if far == a}
        return {(a,)} if low == 0 else loops if high >= 1 else set()
    ways: set[Way] = {(a,)}
    for _ in range(min(high, 12)):
        ways = {
            (*way, key, far)
            for way in ways
            for key, far in hops(way[-1], edges, arrow)
            if far not in way[::2]
        }
        if arrived := {way for way in ways if way[-1] == b}:
            return arrived
    return set()


def found_ways(g: Graph, pattern: str, where: str = "") -> list[Way]:
    text = f"""
        MATCH p = allShortestPaths({pattern}) {where}
        RETURN [n IN nodes(p) | n.name] AS nodes, [r IN relationships(p) | elementId(r)] AS edges
    """
    return [woven(row["nodes"], row["edges"]) for row in g.query(text).rows]


def woven(nodes: list[str], edges: list[str]) -> Way:
    """Nodes and the edges between them in turn; an id may be written with its type."""
    found = [nodes[0]]
    for edge, node in zip(edges, nodes[1:], strict=True):
        found += [edge.split(":")[-1], node]
    return tuple(found)


@pytest.mark.parametrize("seed", range(count(12, 120)))
def test_they_are_those_a_search_by_hand_finds(seed: int) -> None:
    rng = random.Random(seed)
    people, towns = rng.randrange(2, 8), 2
    edges = some_edges(rng, people, towns)
    g = made(people, edges, towns)
    kinds = rng.choice([("Knows",), ("Knows", "Likes"), ("Knows", "Likes", "LivesIn")])
    used = [edge for edge in edges if edge[1] in kinds]
    names = [f"p{i}" for i in range(people)] + [f"t{i}" for i in range(towns)]
    for (arrow, (left, right)), low in product(ARROWS.items(), (0, 1)):
        high = rng.choice([1, 2, 3, 12])
        rel = f"{left}[:{'|'.join(kinds)}*{low}..{high}]{right}"
        wanted = {(a, b): all_ways(used, arrow, a, b, low, high) for a, b in product(names, names)}
        everything = sorted(way for ways in wanted.values() for way in ways)
        assert sorted(found_ways(g, f"(a){rel}(b)")) == everything  # one end opens
        both = f"MATCH (a), (b) MATCH p = allShortestPaths((a){rel}(b)) RETURN count(p) AS n"
        assert g.query(both).one()["n"] == len(everything)  # both ends are bound
        a, b = rng.choice(names), rng.choice(names)
        ends = f"WHERE a.name = '{a}' AND b.name = '{b}'"
        assert sorted(found_ways(g, f"(a){rel}(b)", ends)) == sorted(wanted[a, b])
        lengths = f"""
            MATCH p = allShortestPaths((a){rel}(b)) RETURN a.name AS a, b.name AS b, length(p) AS n
        """
        got = sorted((row["a"], row["b"], row["n"]) for row in g.query(lengths).rows)
        assert got == sorted((way[0], way[-1], len(way) // 2) for way in everything)


def test_parallel_edges_are_paths_of_their_own_and_a_self_loop_leads_to_itself() -> None:
    g = made(
        3,
        [
            ("k1", "Knows", "p0", "p1"),
            ("k2", "Knows", "p0", "p1"),
            ("k3", "Knows", "p1", "p2"),
            ("k4", "Knows", "p0", "p0"),
            ("k5", "Knows", "p0", "p0"),
        ],
    )
    to_end = "(a:Person {name: 'p0'})-[:Knows*]->(b:Person {name: 'p2'})"
    assert sorted(found_ways(g, to_end)) == [
        ("p0", "k1", "p1", "k3", "p2"),
        ("p0", "k2", "p1", "k3", "p2"),
    ]
    itself = "(a:Person {name: 'p0'})-[:Knows*]->(b:Person {name: 'p0'})"
    assert sorted(found_ways(g, itself)) == [("p0", "k4", "p0"), ("p0", "k5", "p0")]
    assert found_ways(g, itself.replace("*", "*0..")) == [("p0",)]
    assert found_ways(g, to_end.replace("*", "*..1")) == []


def test_the_other_language_finds_the_same() -> None:
    rng = random.Random(7)
    edges = [edge for edge in some_edges(rng, 7, 1) if edge[1] == "Knows"]
    text = (
        "query q() { match { $a: Person $w = paths $a knows{1,3} $b } return { edges($w) as way } }"
    )
    assert format_queries(text).count("= paths $a") == 1
    g = made(7, edges)
    other = [list(way[1::2]) for way in found_ways(g, "(a:Person)-[:Knows*1..3]->(b)")]
    assert sorted(row["way"] for row in g.query(text).rows) == sorted(other)


def test_a_path_runs_as_it_is_written_whichever_end_the_search_starts_from() -> None:
    g = made(3, [("k1", "Knows", "p0", "p1"), ("k2", "Knows", "p1", "p2")])
    text = "MATCH (b:Person {name: 'p2'}) MATCH p = allShortestPaths((a)-[:Knows*]->(b)) "
    found = g.query(text + "RETURN [n IN nodes(p) | n.name] AS way ORDER BY length(p)")
    assert [row["way"] for row in found.rows] == [["p1", "p2"], ["p0", "p1", "p2"]]


# --- far too many ----------------------------------------------------------------------------------------------------


def grid(side: int) -> Graph:
    """Steps to the right and down: the corners have binomially many shortest paths between them."""
    edges = []
    for x, y in product(range(side), range(side)):
        if x + 1 < side:
            edges.append((f"r{x}.{y}", "Knows", f"p{x * side + y}", f"p{(x + 1) * side + y}"))
        if y + 1 < side:
            edges.append((f"d{x}.{y}", "Knows", f"p{x * side + y}", f"p{x * side + y + 1}"))
    return made(side * side, edges)


def corners(side: int, arrow: str = "->") -> str:
    last = side * side - 1
    return (
        f"allShortestPaths((:Person {{name: 'p0'}})-[:Knows*]{arrow}(:Person {{name: 'p{last}'}}))"
    )


def test_more_than_can_be_listed_are_counted() -> None:
    g = grid(20)
    text = f"MATCH p = {corners(20)} RETURN count(*) AS n, max(length(p)) AS most"
    assert g.query(f"MATCH p = {corners(20)} RETURN count(*) AS n").one() == {"n": 35345263800}
    assert g.query(f"MATCH p = {corners(20, '-')} RETURN count(p) AS n").one() == {"n": 35345263800}
    with pytest.raises(LimitExceeded) as failed:
        g.query(text)
    assert failed.value.details["limit"] == "shortest_paths_max"


def test_a_few_of_exponentially_many_are_found_at_once() -> None:
    found = grid(40).query(
        f"MATCH p = {corners(40)} RETURN length(p) AS n, nodes(p) AS way LIMIT 3"
    )
    assert [row["n"] for row in found.rows] == [78] * 3
    assert len({str(row["way"]) for row in found.rows}) == 3


@pytest.mark.parametrize(
    "returned",
    ["p", "count(*) AS n", "collect(p)", "count(DISTINCT nodes(p)) AS n", "p ORDER BY nodes(p)"],
)
def test_exponentially_many_end_in_an_error(returned: str) -> None:
    with pytest.raises(LimitExceeded) as failed:
        grid(60).query(f"MATCH p = {corners(60)} RETURN {returned}")
    assert failed.value.details["limit"] in ("shortest_paths_max", "matches_max")


def test_a_limit_nothing_reaches_ends_in_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(all_shortest, "LISTED_MAX", 100_000)
    never = f"MATCH p = {corners(30)} WHERE all(n IN nodes(p) WHERE n.name = '') RETURN p LIMIT 1"
    with pytest.raises(LimitExceeded):
        grid(30).query(never)


def test_time_is_looked_at_between_blocks() -> None:
    never = f"MATCH p = {corners(30)} WHERE all(n IN nodes(p) WHERE n.name = '') RETURN p LIMIT 1"
    with pytest.raises(DeadlineExceeded):
        grid(30).query(never, timeout=0.5)


def test_what_a_search_holds_is_on_the_account_of_the_query(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    small = replace(memory_bytes(), query=100_000)
    monkeypatch.setattr(budget, "memory_bytes", lambda: small)
    with pytest.raises(omnigraph.OmnigraphError) as failed:
        grid(40).query(f"MATCH p = {corners(40)} RETURN p LIMIT 1")
    assert failed.value.code == "memory_exceeded"
    assert failed.value.details["operator"] == "ShortestPath"
