"""Rewrites keep the meaning of a plan: the plain interpreter gives the same rows before and after each."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest

from omnigraph.errors import OmnigraphError
from omnigraph.lang import ir
from omnigraph.lang.lower import lower
from omnigraph.lang.query import check_query, compile_query, parse_queries
from omnigraph.lang.rewrite import REWRITES, rewrite
from omnigraph.lang.source import Source
from omnigraph.lang.tree import conjuncts, transform, walk
from tests.support.comparing import normal, plain_graph
from tests.support.interpreter import Interpreter, PlainGraph
from tests.support.random_queries import SCHEMA, QueryMaker, random_rows
from tests.unit.lang.query.casefile import catalog_for, harbour


def lowered(text: str) -> ir.Query:
    query = parse_queries(text).queries[0]
    return lower(check_query(query, catalog_for(SCHEMA), Source(text)))


def answer(plan: ir.Op, graph: PlainGraph) -> Counter[object] | str:
    """The rows of a plan as a bag; a calculation without a result is an answer too."""
    try:
        rows = Interpreter(graph).rows(plan, {})
    except OmnigraphError as error:
        return error.code
    return Counter(normal(list(row.values())) for row in rows)


def without_cut(plan: ir.Op) -> ir.Op:
    """Which rows a cut without an order keeps is not part of the meaning."""
    drop: Callable[[ir.Op], ir.Op] = lambda op: op.input if isinstance(op, ir.Slice) else op  # noqa: E731
    return transform(plan, drop)


@pytest.mark.parametrize("seed", range(120))
def test_every_rewrite_keeps_the_rows(seed: int) -> None:
    rng = random.Random(seed)
    graph = plain_graph(random_rows(rng))
    text = QueryMaker(rng).query()
    body = lowered(text).body
    assert isinstance(body, ir.Read)
    plan = without_cut(body.plan)
    wanted = answer(plan, graph)
    if isinstance(wanted, str):
        return  # where a calculation overflows depends on which rows are looked at
    for apply in REWRITES:
        plan = apply(plan)
        assert answer(plan, graph) == wanted, f"{apply.__name__} changes {text}"


@pytest.mark.parametrize("seed", range(120, 200))
def test_rewriting_twice_changes_nothing(seed: int) -> None:
    query = rewrite(lowered(QueryMaker(random.Random(seed)).query()))
    assert rewrite(query) == query


def plan_of(pattern: str) -> ir.Op:
    text = f"query q() {{ match {{ {pattern} }} return {{ 1 as one }} }}"
    body = compile_query(text, harbour()).body
    assert isinstance(body, ir.Read)
    return body.plan


def test_no_temporary_survives() -> None:
    plan = plan_of("$a: Port $a lane $b $b lane $c $c lane $a $c lane $b $a lane $a")
    walks = [node for node in walk(plan) if isinstance(node, ir.Expand)]
    assert [w.into for w in walks] == [True, True, True, False, False]
    assert not [w.dst for w in walks if w.dst.startswith(ir.FRESH)]


def test_conditions_reach_the_operator_that_binds_what_they_read() -> None:
    plan = plan_of(
        "$p: Port $p $l:lane $q $c: Crew $p.depth > 1 $l.nm > 2 $q.depth > 3 $c.rank > 4 "
        "$q.depth > $p.depth not { $q lane $r $r.depth > 5 }"
    )
    held = {
        type(node).__name__: len(conjuncts(node.predicate))
        for node in walk(plan)
        if isinstance(node, ir.Expand | ir.Filter)
    }
    scans = [n for n in walk(plan) if isinstance(n, ir.NodeScan)]
    assert [len(conjuncts(scan.predicate)) for scan in scans] == [1, 1]
    assert held == {"Filter": 1, "Expand": 1}


def test_a_ranking_is_not_passed_by_conditions_on_other_variables() -> None:
    text = (
        "query q($q: Vector(2)) { match { $v: Vessel $v calls $p $v.teu > 1 $v.teu > $p.depth } "
        "return { $v.name } order { nearest($v.shape, $q) } limit 2 }"
    )
    body = compile_query(text, harbour()).body
    assert isinstance(body, ir.Read)
    rank = next(node for node in walk(body.plan) if isinstance(node, ir.Rank))
    assert isinstance(rank.input, ir.NodeScan)
    assert len(conjuncts(rank.input.predicate)) == 1
    above = [node for node in walk(body.plan) if isinstance(node, ir.Filter)]
    assert len(above) == 1


def test_rewriting_leaves_mutations_alone() -> None:
    query = compile_query('query m() { delete Crew where badge = "x" }', harbour())
    assert rewrite(query) == replace(query)
