"""Traversals at the corners of the language: self-loops, parallel edges, directions, bounds, blocks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.snapshots import Graph, ask, make_graph

SCHEMA = """
interface Thing { label: String? }
node Person implements Thing { name: String @key  label: String?  age: I64? }
node Town implements Thing { name: String @key  label: String? }
edge Knows: Person -> Person { since: I64? }
edge Likes: Person -> Person
edge LivesIn: Person -> Town
"""


def edges(*pairs: str, prefix: str = "k") -> list[dict[str, Any]]:
    """Edges written as "ab": from a to b, numbered in order."""
    return [
        {"id": f"{prefix}{i}", "src": p[0], "dst": p[1], "since": i} for i, p in enumerate(pairs)
    ]


def graph(folder: Path, knows: list[dict[str, Any]], **more: Any) -> Graph:
    people = [{"id": n, "name": n, "age": i} for i, n in enumerate("abcdef")]
    towns = [{"id": n, "name": n} for n in "aXY"]  # a town and a person may have the same id
    return make_graph(folder, SCHEMA, {"Person": people, "Town": towns, "Knows": knows, **more})


def reached(found: Graph, hops: str, start: str = "a") -> list[str]:
    text = (
        f'match {{ $p: Person {{ name: "{start}" }} $p knows{hops} $q }} return {{ $q.@id as q }}'
    )
    return sorted(row["q"] for row in ask(found, text).rows)


@pytest.mark.parametrize(
    ("hops", "wanted"),
    [
        ("{1,1}", "ab"),  # the source by its self-loop
        ("{1,3}", "abcd"),
        ("{2,2}", "c"),  # b is at distance 1, whatever its own loop
        ("{2,3}", "cd"),
        ("{3,3}", "d"),
        ("{4,6}", ""),  # the way back to a is not reported: a is the source
    ],
)
def test_hops_are_shortest_distances_and_only_the_sources_own_loop_counts(
    tmp_path: Path, hops: str, wanted: str
) -> None:
    found = graph(tmp_path, edges("aa", "ab", "bb", "bc", "cd", "da"))
    assert reached(found, hops) == list(wanted)
    path = (
        f'match {{ $p: Person {{ name: "a" }} $w = path $p knows{hops} $q }}'
        " return { $q.@id as q, length($w) as n, nodes($w) as way }"
    )
    rows = ask(found, path).rows
    assert sorted(row["q"] for row in rows) == list(wanted)
    assert all(len(row["way"]) == row["n"] + 1 for row in rows)


HOPS = ["{1,1}", "{1,2}", "{2,2}", "{2,3}", "{1,4}", "{3,5}"]


@pytest.mark.parametrize("word", ["knows", "<knows>", "knows|likes"])
@pytest.mark.parametrize("hops", HOPS)
def test_the_direction_in_which_hops_are_walked_does_not_change_the_pairs(
    tmp_path: Path, word: str, hops: str
) -> None:
    found = graph(
        tmp_path, edges("aa", "ab", "bb", "bc", "ca", "de"), Likes=edges("ad", "ee", prefix="m")
    )
    walk = f"$x {word}{hops} $y"
    orders = [
        f"$x: Person $y: Person {walk}",
        f"$y: Person $x: Person {walk}",
        f"$x: Person {walk} $y: Person",
        f"$y: Person {walk} $x: Person",
        f"$y: Person $w = path {walk}",
        f"$x: Person $w = path {walk}",
        f"$x: Person $y: Person exists {{ {walk} }}",
    ]
    answers = [pairs(found, pattern) for pattern in orders]
    assert answers == [answers[0]] * len(orders)
    loops = {x for x, y in answers[0] if x == y}
    assert loops == ({"a", "b", "e"} if word == "knows|likes" else {"a", "b"}) or hops[1] != "1"


def pairs(found: Graph, pattern: str) -> list[tuple[str, str]]:
    rows = ask(found, f"match {{ {pattern} }} return {{ $x.@id as x, $y.@id as y }}").rows
    return sorted((row["x"], row["y"]) for row in rows)


LOOPS = [  # a knows itself, b likes itself, c does both
    ("$x: Person $x knows $x", "ac"),
    ("$x: Person $x knows $x $x knows $x", "ac"),
    ("$x: Person $x knows $x $x likes $x", "c"),
    ("$x: Person $x likes $x $x knows $x", "c"),
    ("$x: Person $x $e:knows $x $x $f:likes $x", "c"),
    ("$x: Person $x $e:knows $x $x $f:likes $x $e.since = 1", "c"),
    ("$x: Person $x <knows> $x $x likes{1,3} $x", "c"),
    ("$x: Person $x knows|likes $x $x likes $x", "bc"),
    ('$x: Person { name: "c" } $x knows $x $x likes $x', "c"),
    ("$x: Person $x knows $x $x likes $x 1 = 2", ""),
    ("$x knows $x $x likes $x", "c"),
    ("$x: Person exists { $x knows $x $x likes $x }", "c"),
    ("$x: Person not { $x knows $x $x likes $x }", "abdef"),
    ("$x: Person $x knows $x not { $x $e:knows $x $x $f:likes $x }", "a"),
    ("$x: Person optional { $x knows $x $x likes $x $x $e:likes $x } $e.id is not null", "c"),
    ("$x: Person $x knows $y $x knows $x $x likes $x $y knows $y", "c"),
]


@pytest.mark.parametrize(("pattern", "wanted"), LOOPS)
def test_every_self_loop_of_a_pattern_is_required(
    tmp_path: Path, pattern: str, wanted: str
) -> None:
    found = graph(tmp_path, edges("aa", "cc"), Likes=edges("bb", "cc", prefix="m"))
    rows = ask(found, f"match {{ {pattern} }} return {{ $x.@id as x }}").rows
    assert sorted(row["x"] for row in rows) == list(wanted)


def test_a_longer_cycle_does_not_report_the_source(tmp_path: Path) -> None:
    assert reached(graph(tmp_path, edges("ab", "ba")), "{1,4}") == ["b"]


def test_parallel_edges_are_one_destination_and_as_many_bound_edges(tmp_path: Path) -> None:
    found = graph(tmp_path, edges("ab", "ab", "aa"))
    plain = ask(found, 'match { $p: Person { name: "a" } $p knows $q } return { $q.@id as q }')
    bound = ask(
        found,
        'match { $p: Person { name: "a" } $p $e:knows $q } return { $q.@id as q, $e.since as s }',
    )
    assert sorted(r["q"] for r in plain.rows) == ["a", "b"]
    assert sorted((r["q"], r["s"]) for r in bound.rows) == [("a", 2), ("b", 0), ("b", 1)]


def test_undirected_hops_see_each_neighbour_once_and_each_edge_from_both_ends(
    tmp_path: Path,
) -> None:
    found = graph(tmp_path, edges("ab", "ba", "aa"))
    plain = ask(found, 'match { $p: Person { name: "a" } $p <knows> $q } return { $q.@id as q }')
    bound = ask(
        found, 'match { $p: Person { name: "a" } $p $e:<knows> $q } return { $e.since as s }'
    )
    assert sorted(r["q"] for r in plain.rows) == ["a", "b"]
    assert sorted(r["s"] for r in bound.rows) == [0, 1, 2]


def test_an_edge_between_types_cannot_be_chained(tmp_path: Path) -> None:
    found = graph(tmp_path, [], LivesIn=edges("aX", "bX", prefix="l"))
    text = 'match { $p: Person { name: "a" } $p livesIn%s $t } return { $t.@id as t }'
    assert [r["t"] for r in ask(found, text % "{1,3}").rows] == ["X"]
    assert ask(found, text % "{2,3}").rows == []


def test_a_reversed_edge_is_walked_backwards(tmp_path: Path) -> None:
    found = graph(tmp_path, [], LivesIn=edges("aX", "bX", "cY", prefix="l"))
    rows = ask(found, 'match { $t: Town { name: "X" } $t livesIn $p } return { $p.@id as p }').rows
    assert sorted(r["p"] for r in rows) == ["a", "b"]


def test_a_filter_on_the_destination_does_not_prune_the_walk(tmp_path: Path) -> None:
    found = graph(tmp_path, edges("ab", "bc"))
    text = (
        'match { $p: Person { name: "a" } $p knows{1,2} $q $q.name = "c" } return { $q.@id as q }'
    )
    assert ask(found, text).scalar() == "c"


def test_a_cycle_is_closed_on_the_variable_it_names(tmp_path: Path) -> None:
    found = graph(tmp_path, edges("ab", "bc", "ca", "bd", "da", "ef"))
    text = "match { $a: Person $a knows $b $b knows $c $c knows $a } return { count(*) as n }"
    assert ask(found, text).scalar() == 6


def test_two_closing_hops_to_one_variable_are_checked_apart(tmp_path: Path) -> None:
    found = graph(tmp_path, edges("ab", "ac"), Likes=edges("bc", "ac", prefix="m"))
    pattern = "$x: Person $x knows $y $x knows $z $y likes $z $x likes $z"
    text = f"match {{ {pattern} }} return {{ $x.name as x, $y.name as y, $z.name as z }}"
    assert ask(found, text).rows == [{"x": "a", "y": "b", "z": "c"}]


def test_alternatives_are_one_set_of_destinations(tmp_path: Path) -> None:
    found = graph(tmp_path, edges("ab", "ac"), Likes=edges("ab", "ad", prefix="m"))
    text = 'match { $p: Person { name: "a" } $p knows|likes $q } return { $q.@id as q }'
    assert sorted(r["q"] for r in ask(found, text).rows) == ["b", "c", "d"]


def test_entities_of_different_types_with_one_id_are_different(tmp_path: Path) -> None:
    found = graph(tmp_path, [])
    rows = ask(
        found, 'match { $x: Thing $x.id = "a" } return { $x.@id as x, entity($x) as e }'
    ).rows
    assert sorted(r["e"]["type"] for r in rows) == ["Person", "Town"]
    pairs = ask(found, "match { $x: Thing $y: Thing $x = $y } return { count(*) as n }")
    assert pairs.scalar() == 9


def test_not_exists_and_optional_are_asked_for_each_row(tmp_path: Path) -> None:
    found = graph(tmp_path, edges("ab", "bc"), LivesIn=edges("aX", "bY", prefix="l"))
    without = ask(found, "match { $p: Person not { $p livesIn $t } } return { $p.@id as p }")
    assert sorted(r["p"] for r in without.rows) == ["c", "d", "e", "f"]
    twice = ask(found, "match { $p: Person not { not { $p knows $q } } } return { $p.@id as p }")
    assert sorted(r["p"] for r in twice.rows) == ["a", "b"]
    backwards = ask(found, "match { $t: Town not { $t livesIn $p } } return { $t.@id as t }")
    assert [r["t"] for r in backwards.rows] == ["a"]
    maybe = ask(
        found,
        "match { $p: Person optional { $p knows $q $q livesIn $t } }"
        " return { $p.@id as p, $q.@id as q, $t.@id as t } order { $p.name }",
    )
    assert [(r["p"], r["q"], r["t"]) for r in maybe.rows][:3] == [
        ("a", "b", "Y"),
        ("b", None, None),
        ("c", None, None),
    ]


def test_rebinding_an_outer_variable_in_a_block_is_a_condition_on_it(tmp_path: Path) -> None:
    found = graph(tmp_path, [])
    text = 'match { $p: Person not { $p: Person { name: "a" } } } return { count(*) as n }'
    assert ask(found, text).scalar() == 5


def test_a_hop_from_an_unbound_optional_variable_finds_nothing(tmp_path: Path) -> None:
    found = graph(tmp_path, edges("ab"), LivesIn=edges("bX", prefix="l"))
    text = (
        "match { $p: Person optional { $p knows $q } optional { $q livesIn $t } }"
        " return { $p.@id as p, $t.@id as t } order { $p.name } limit 2"
    )
    assert ask(found, text).rows == [{"p": "a", "t": "X"}, {"p": "b", "t": None}]


# --- paths -------------------------------------------------------------------------------------------------------


def test_of_the_shortest_paths_the_one_with_the_smallest_edge_ids_is_taken(tmp_path: Path) -> None:
    found = graph(tmp_path, edges("ac", "ab", "bd", "cd", "ab"))
    text = 'match { $x: Person { name: "a" } $y: Person { name: "d" } $p = path $x knows{1,4} $y } return { $p }'
    assert ask(found, text).scalar() == {
        "nodes": ["a", "c", "d"],
        "edges": ["k0", "k3"],
        "length": 2,
    }


def test_a_path_written_from_its_end_still_starts_at_its_source(tmp_path: Path) -> None:
    found = graph(tmp_path, edges("ab", "bc"))
    text = 'match { $y: Person { name: "c" } $p = path $x knows{2,2} $y } return { nodes($p) as n, length($p) as l }'
    assert ask(found, text).rows == [{"n": ["a", "b", "c"], "l": 2}]


def test_a_path_from_a_node_to_itself_is_its_first_self_loop(tmp_path: Path) -> None:
    found = graph(tmp_path, edges("ab", "bb", "bb"))
    text = 'match { $x: Person { name: "%s" } $p = path $x knows%s $y } return { nodes($p) as n, edges($p) as e }'
    assert ask(found, text % ("b", "{1,3}")).rows == [{"n": ["b", "b"], "e": ["k1"]}]
    assert ask(found, text % ("a", "{2,2}")).rows == []


def test_no_path_within_the_bounds_is_no_row(tmp_path: Path) -> None:
    found = graph(tmp_path, edges("ab", "bc", "cd"))
    text = (
        'match { $x: Person { name: "a" } $y: Person { name: "d" } $p = path $x knows{1,2} $y }'
        " return { length($p) as l }"
    )
    assert ask(found, text).rows == []
