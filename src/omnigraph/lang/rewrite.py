"""Rewrites of a plan that keep its meaning and save work. `REWRITES` is the order in which they run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from omnigraph.lang import ir
from omnigraph.lang.bindings import bindings
from omnigraph.lang.tree import conjunction, conjuncts, transform_plan, variables

Rewrite = Callable[[ir.Op], ir.Op]


def rewrite(query: ir.Query) -> ir.Query:
    """The query with every rewrite applied to its plan, in order."""
    if not isinstance(query.body, ir.Read):
        return query
    plan = query.body.plan
    for apply in REWRITES:
        plan = apply(plan)
    return replace(query, body=replace(query.body, plan=plan))


# --- cycles ------------------------------------------------------------------------------------------------------


def close_cycles(plan: ir.Op) -> ir.Op:
    """A walk to a temporary that must be a bound variable becomes a walk into that variable."""
    return transform_plan(plan, _close_cycle)


def _close_cycle(node: ir.Op) -> ir.Op:
    match node:
        case ir.Filter(
            ir.Expand(dst=temporary) | ir.ShortestPath(dst=temporary) as walk,
            ir.Same(left, right),
        ) if temporary == left and left.startswith(ir.FRESH):
            return replace(walk, dst=right, into=True)
        case _:
            return node


# --- filters -----------------------------------------------------------------------------------------------------


def push_filters(plan: ir.Op) -> ir.Op:
    """Every condition moves down to the first operator that binds all it reads, into its predicate if it has one."""
    return transform_plan(plan, _push_filter)


def _push_filter(node: ir.Op) -> ir.Op:
    if not isinstance(node, ir.Filter):
        return node
    plan: ir.Op = node.input
    stay: list[ir.Expr] = []
    for part in conjuncts(node.predicate):
        pushed = _pushed(plan, part)
        if pushed is None:
            stay.append(part)
        else:
            plan = pushed
    predicate = conjunction(tuple(stay))
    return plan if predicate is None else ir.Filter(plan, predicate)


def _pushed(plan: ir.Op, part: ir.Expr) -> ir.Op | None:
    """The plan with a condition moved into it; none where it must stay above."""
    names = variables(part)
    match plan:
        case ir.NodeScan(var, _, predicate) if names == {var}:
            return replace(plan, predicate=conjunction((*conjuncts(predicate), part)))
        case ir.Expand() | ir.ShortestPath():
            return _pushed_into_walk(plan, part, names)
        case ir.Filter(source, predicate):
            below = _pushed(source, part)
            return None if below is None else ir.Filter(below, predicate)
        case ir.SemiJoin() | ir.Score():
            return _below(plan, part)
        case ir.Optional(vars=new):
            return None if names & set(new) else _below(plan, part)
        case ir.Join(left, right):
            match _side(plan, part):
                case "left":
                    return replace(plan, left=_placed(left, part))
                case "right":
                    return replace(plan, right=_placed(right, part))
                case _:
                    return None
        case _:
            return None


def _pushed_into_walk(
    plan: ir.Expand | ir.ShortestPath, part: ir.Expr, names: frozenset[str]
) -> ir.Op | None:
    edge = {plan.edge_var} if isinstance(plan, ir.Expand) and plan.edge_var else set()
    new = edge if plan.into else {plan.dst, *edge}
    if isinstance(plan, ir.ShortestPath) and plan.path_var in names:
        return None
    if names and names <= new:
        return replace(plan, predicate=conjunction((*conjuncts(plan.predicate), part)))
    return None if names & new or not names else _below(plan, part)


def _below(
    plan: ir.Expand | ir.ShortestPath | ir.SemiJoin | ir.Score | ir.Optional, part: ir.Expr
) -> ir.Op:
    """Below an operator with one input that does not bind what the condition reads."""
    return replace(plan, input=_placed(plan.input, part))


def _placed(plan: ir.Op, part: ir.Expr) -> ir.Op:
    """The condition somewhere in the plan: inside it, or right above it."""
    pushed = _pushed(plan, part)
    return ir.Filter(plan, part) if pushed is None else pushed


def _side(join: ir.Join, part: ir.Expr) -> str | None:
    """The side of a join that binds everything an expression reads.

    Only the left side can hold the row of an enclosing operator, so what the right does not bind is the left's.
    """
    names, right = variables(part), bindings(join.right).keys()
    if not names:
        return None
    return "right" if names <= right else None if names & right else "left"


# --- joins -------------------------------------------------------------------------------------------------------


def join_on_equality(plan: ir.Op) -> ir.Op:
    """An equality between the two sides of a join is what it joins on."""
    return transform_plan(plan, _join_on)


def _join_on(node: ir.Op) -> ir.Op:
    if not isinstance(node, ir.Filter) or not isinstance(node.input, ir.Join):
        return node
    join, stay = node.input, []
    for part in conjuncts(node.predicate):
        pair = _equal_sides(join, part)
        if pair is None:
            stay.append(part)
        else:
            join = replace(join, on=(*join.on, pair))
    predicate = conjunction(tuple(stay))
    return join if predicate is None else ir.Filter(join, predicate)


def _equal_sides(join: ir.Join, part: ir.Expr) -> tuple[ir.Expr, ir.Expr] | None:
    if not isinstance(part, ir.Compare) or part.op is not ir.CompareOp.EQ:
        return None
    match _side(join, part.left), _side(join, part.right):
        case "left", "right":
            return part.left, part.right
        case "right", "left":
            return part.right, part.left
        case _:
            return None


# --- scores ------------------------------------------------------------------------------------------------------


def hoist_search(plan: ir.Op) -> ir.Op:
    """A score that depends on its entity alone is taken where the entity appears, before walks multiply its rows."""
    return transform_plan(plan, _hoist)


def _hoist(node: ir.Op) -> ir.Op:
    if not isinstance(node, ir.Score) or isinstance(node.ranking, ir.Rrf):
        return node
    var = node.ranking.field.var

    def place(plan: ir.Op) -> ir.Op:
        match plan:
            case (
                ir.Expand()
                | ir.ShortestPath()
                | ir.SemiJoin()
                | ir.Filter()
                | ir.Score()
                | ir.Rank()
            ):
                if var in bindings(plan.input):
                    return replace(plan, input=place(plan.input))
            case ir.Optional() if var not in plan.vars and var in bindings(plan.input):
                return replace(plan, input=place(plan.input))
            case ir.Join(left, right):
                if var in bindings(left):
                    return replace(plan, left=place(left))
                return replace(plan, right=place(right))
            case _:
                pass
        return ir.Score(plan, node.ranking, node.name)

    return place(node.input)


REWRITES: tuple[Rewrite, ...] = (close_cycles, push_filters, join_on_equality, hoist_search)
