"""Rewrites of a plan that keep its meaning and save work. `REWRITES` is the order in which they run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from omnigraph.lang import ir
from omnigraph.lang.bindings import bindings
from omnigraph.lang.tree import conjunction, conjuncts, filtered, transform_plan, variables

Rewrite = Callable[[ir.Op], ir.Op]
Parts = tuple[ir.Expr, ...]  # conditions all of which must be true


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
    plan, stay = _push(node.input, conjuncts(node.predicate))
    return filtered(plan, stay)


def _push(plan: ir.Op, parts: Parts) -> tuple[ir.Op, Parts]:
    """The plan with the conditions it takes moved into it, and those that stay above it."""
    if not parts:
        return plan, ()
    match plan:
        case ir.NodeScan(var):
            own, stay = _split(parts, lambda names: names == {var})
            predicate = conjunction((*conjuncts(plan.predicate), *own))
            return replace(plan, predicate=predicate), stay
        case ir.Expand() | ir.ShortestPath():
            return _push_into_walk(plan, parts)
        case ir.Filter(source):
            below, stay = _push(source, parts)
            return replace(plan, input=below), stay
        case ir.Attach() | ir.Unwind() | ir.PerRow() | ir.Trail():
            return _push_below(plan, parts)
        case ir.SemiJoin() | ir.Score():
            return replace(plan, input=_pushed(plan.input, parts)), ()
        case ir.Optional(vars=new):
            early, stay = _split(parts, lambda names: not names & set(new))
            return replace(plan, input=_pushed(plan.input, early)), stay
        case ir.Join():
            return _push_into_join(plan, parts)
        case _:
            return plan, parts


def _pushed(plan: ir.Op, parts: Parts) -> ir.Op:
    """The conditions somewhere in the plan: inside it, or right above it."""
    below, stay = _push(plan, parts)
    return filtered(below, stay)


def _push_into_walk(plan: ir.Expand | ir.ShortestPath, parts: Parts) -> tuple[ir.Op, Parts]:
    """A walk takes conditions on what it binds alone; a condition on a path stays above it."""
    new = set() if plan.into else {plan.dst}
    path = set()
    match plan:
        case ir.Expand(edge_var=str(name)):
            new.add(name)
        case ir.ShortestPath():
            path.add(plan.path_var)
        case _:
            pass
    own, rest = _split(parts, lambda names: bool(names) and names <= new)
    below, stay = _split(rest, lambda names: bool(names) and not names & (new | path))
    predicate = conjunction((*conjuncts(plan.predicate), *own))
    return replace(plan, input=_pushed(plan.input, below), predicate=predicate), stay


def _push_below(
    plan: ir.Attach | ir.Unwind | ir.PerRow | ir.Trail, parts: Parts
) -> tuple[ir.Op, Parts]:
    """Conditions that read nothing an operator adds are evaluated before it."""
    new = bindings(plan).keys() - bindings(plan.input).keys()
    below, stay = _split(parts, lambda names: bool(names) and not names & new)
    return replace(plan, input=_pushed(plan.input, below)), stay


def _push_into_join(join: ir.Join, parts: Parts) -> tuple[ir.Op, Parts]:
    right = bindings(join.right).keys()
    to_left, rest = _split(parts, lambda names: bool(names) and not names & right)
    to_right, stay = _split(rest, lambda names: bool(names) and names <= right)
    moved = replace(join, left=_pushed(join.left, to_left), right=_pushed(join.right, to_right))
    return moved, stay


def _split(parts: Parts, wanted: Callable[[frozenset[str]], bool]) -> tuple[Parts, Parts]:
    """The conditions whose variables are wanted, and the others."""
    answers = [(part, wanted(variables(part))) for part in parts]
    return tuple(p for p, yes in answers if yes), tuple(p for p, yes in answers if not yes)


# --- joins -------------------------------------------------------------------------------------------------------


def join_on_equality(plan: ir.Op) -> ir.Op:
    """An equality between the two sides of a join is what it joins on."""
    return transform_plan(plan, _join_on)


def _join_on(node: ir.Op) -> ir.Op:
    if not isinstance(node, ir.Filter) or not isinstance(node.input, ir.Join):
        return node
    join, stay = node.input, []
    right = frozenset(bindings(join.right))
    for part in conjuncts(node.predicate):
        pair = _equal_sides(part, right)
        if pair is None:
            stay.append(part)
        else:
            join = replace(join, on=(*join.on, pair))
    return filtered(join, tuple(stay))


def _equal_sides(part: ir.Expr, right: frozenset[str]) -> tuple[ir.Expr, ir.Expr] | None:
    """The two sides of an equality, left first; what the right input does not bind is the left's.

    Only the left input can hold the row of an enclosing operator.
    """
    if not isinstance(part, ir.Compare) or part.op is not ir.CompareOp.EQ:
        return None
    first, second = variables(part.left), variables(part.right)
    if first and second and second <= right and not first & right:
        return part.left, part.right
    if first and second and first <= right and not second & right:
        return part.right, part.left
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
