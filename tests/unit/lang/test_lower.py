"""Lowering: what the plans of tests/cases/query/rules.txt do not show."""

from __future__ import annotations

from omnigraph.lang import ir
from omnigraph.lang.bindings import BindingKind, bindings
from omnigraph.lang.lower import lower
from omnigraph.lang.query import check_query, parse_queries
from omnigraph.lang.source import Source
from omnigraph.lang.tree import walk
from tests.unit.lang.query.casefile import harbour


def lowered(text: str) -> ir.Op:
    query = parse_queries(text).queries[0]
    body = lower(check_query(query, harbour(), Source(text))).body
    assert isinstance(body, ir.Read)
    return body.plan


def pattern(clauses: str) -> ir.Op:
    plan = lowered(f"query q() {{ match {{ {clauses} }} return {{ 1 as one }} }}")
    assert isinstance(plan, ir.Project)
    return plan.input


def test_cycles_close_over_temporaries_of_their_own() -> None:
    plan = pattern("$a: Port $a lane $b $b lane $a $a lane $b")
    same = [node for node in walk(plan) if isinstance(node, ir.Same)]
    assert len({node.left for node in same}) == len(same) == 2
    assert [node.right for node in same] == ["a", "b"]


def test_bindings_tell_kinds_types_and_nullability() -> None:
    plan = pattern("$v: Vessel $v $e:calls|visits $x optional { $w = path $x lane{1,2} $y }")
    found = bindings(plan)
    assert {name: (b.kind, b.types, b.nullable) for name, b in found.items()} == {
        "v": (BindingKind.NODE, ("Vessel",), False),
        "x": (BindingKind.NODE, ("Port", "Depot"), False),
        "e": (BindingKind.EDGE, ("Calls", "Visits"), False),
        "y": (BindingKind.NODE, ("Port",), True),
        "w": (BindingKind.PATH, (), True),
    }


def test_scores_are_bound_and_end_with_the_fusion() -> None:
    text = (
        "query q($q: Vector(2)) { match { $v: Vessel } return { $v.name } "
        'order { rrf(nearest($v.shape, $q), bm25($v.notes, "a")) } limit 3 }'
    )
    fuse = next(node for node in walk(lowered(text)) if isinstance(node, ir.Fuse))
    assert set(bindings(fuse)) == {"v", fuse.name, fuse.place}
    assert set(bindings(fuse.primary)) == {"v", fuse.primary_score}


def test_a_union_has_the_types_of_all_branches() -> None:
    text = (
        "query q() { match { $p: Port } return { $p.depth as x, entity($p) as e } "
        "union match { $v: Vessel } return { $v.teu as x, entity($v) as e } }"
    )
    query = parse_queries(text).queries[0]
    body = lower(check_query(query, harbour(), Source(text))).body
    assert isinstance(body, ir.Read)
    assert [str(c.type) for c in body.columns] == ["F64?", "Port|Vessel"]
