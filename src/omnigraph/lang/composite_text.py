"""The text of expressions over lists, maps and references, for plans: as calls, in the manner of `.gq`."""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

from omnigraph.lang import ir
from omnigraph.lang.ir.composite import Composite
from omnigraph.lang.query import ast

COMPOSITE = get_args(Composite)
Tree = Callable[[ir.Expr], ast.Expr]


def composite_tree(expr: ir.Expr, tree: Tree) -> ast.Expr:
    """An expression as a call of what it does."""

    def call(name: str, *args: ir.Expr | None) -> ast.Expr:
        return ast.Call(name, tuple(tree(arg) for arg in args if arg is not None))

    match expr:
        case ir.RefGet(part, name) | ir.FieldOf(part, name):
            return ast.Call(name, (tree(part),))
        case ir.RefType(part):
            return call("type", part)
        case ir.RefEnd(part, end):
            return call("from" if end is ir.End.SRC else "to", part)
        case ir.RefKeys(part):
            return call("keys", part)
        case ir.WrittenOut(part) | ir.Carried(part):
            return call("entity", part)
        case ir.As(part):
            return tree(part)
        case ir.MakeList(items):
            return ast.ListLiteral(tuple(map(tree, items)))
        case ir.MakeMap(items, kind):
            named = zip(kind.fields, items, strict=True)
            parts = (p for (name, _), item in named for p in (ast.Name(name), tree(item)))
            return ast.Call("map", tuple(parts))
        case ir.MakeTrail(items):
            return call("path", *items)
        case ir.TrailGet(part, edges):
            return call("edges" if edges else "nodes", part)
        case ir.MemberAt(part, index):
            return call("member", part, index)
        case ir.Sublist(part, low, high):
            return call("sublist", part, low, high)
        case ir.JoinedLists(parts):
            return call("joined", *parts)
        case ir.Numbers(first, last, step):
            return call("range", first, last, step)
        case ir.Random():
            return call("rand")
        case ir.Choice(whens, default):
            return call("case", *(part for when in whens for part in when), default)
        case ir.Alike(left, right):
            return ast.Binary(ast.Operator.EQ, tree(left), tree(right))
        case ir.Among(item, members):
            return ast.Binary(ast.Operator("in"), tree(item), tree(members))
        case ir.Apart(left, right):
            return ast.Call("apart", (ast.Variable(left), ast.Variable(right)))
        case _:
            return _over_members(expr, tree)


def _over_members(expr: ir.Expr, tree: Tree) -> ast.Expr:
    match expr:
        case ir.Each(var, part, predicate, body):
            tests = () if predicate is None else (tree(predicate),)
            return ast.Call("each", (ast.Variable(var), tree(part), *tests, tree(body)))
        case ir.Quantified(test, var, part, predicate):
            return ast.Call(test.value, (ast.Variable(var), tree(part), tree(predicate)))
        case ir.Fold(total, first, var, part, body):
            names = (ast.Variable(total), tree(first), ast.Variable(var))
            return ast.Call("fold", (*names, tree(part), tree(body)))
        case _:
            raise TypeError(type(expr))
