"""Walking and rebuilding trees of the intermediate representation, for all kinds of nodes.

The nodes are dataclasses of `ir` whose fields hold values, nodes, or tuples of nodes, so one generic walk serves
expressions, operators and statements alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, get_args

from omnigraph.lang import ir

T = TypeVar("T")
Node = Any  # a dataclass of `ir`; repeating their union here would not check anything more


NODES = frozenset(c for c in vars(ir).values() if isinstance(c, type) and is_dataclass(c))
OPERATORS: frozenset[type] = frozenset(get_args(ir.Op))
INPUTS = ("input", "block", "left", "right", "primary", "secondary")

_NAMES: dict[type, tuple[str, ...]] = {}


def _names(cls: type) -> tuple[str, ...]:
    """The fields of a node class that may hold nodes, looked up once per class."""
    names = _NAMES.get(cls)
    if names is None:
        names = tuple(f.name for f in fields(cls) if f.name not in ("type", "types"))
        _NAMES[cls] = names
    return names


def is_node(value: object) -> bool:
    """Whether a value is a node, rather than a name, an enum member or a type."""
    return type(value) in NODES


def children(node: Node) -> Iterator[Node]:
    """The nodes directly below a node, in the order of its fields."""
    for name in _names(type(node)):
        yield from _nodes_in(getattr(node, name))


def _nodes_in(value: object) -> Iterator[Node]:
    if is_node(value):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _nodes_in(item)


def walk(node: Node) -> Iterator[Node]:
    """A node and everything below it, parents first."""
    yield node
    for child in children(node):
        yield from walk(child)


def depth(node: Node) -> int:
    """The depth of the tree, from this node to the farthest leaf."""
    return 1 + max((depth(child) for child in children(node)), default=0)


def rebuild(node: T, change: Callable[[Node], Node]) -> T:
    """The node with `change` applied to each node directly below it; the same object if none changed."""
    changed: dict[str, Any] = {}
    for name in _names(type(node)):
        old = getattr(node, name)
        new = _changed(old, change)
        if new is not old:
            changed[name] = new
    if not changed:
        return node
    kept = {f.name: getattr(node, f.name) for f in fields(node)}  # type: ignore[arg-type]
    return type(node)(**{**kept, **changed})


def _changed(value: Any, change: Callable[[Node], Node]) -> Any:
    if is_node(value):
        return change(value)
    if isinstance(value, tuple):
        items = tuple(_changed(item, change) for item in value)
        return items if any(a is not b for a, b in zip(items, value, strict=True)) else value
    return value


def transform(node: T, change: Callable[[Node], Node]) -> T:
    """The tree with `change` applied to every node, children first."""
    result: T = change(rebuild(node, lambda child: transform(child, change)))
    return result


def transform_plan(plan: ir.Op, change: Callable[[ir.Op], ir.Op]) -> ir.Op:
    """The plan with `change` applied to every operator, inputs first; expressions are left alone."""
    changed: dict[str, Any] = {}
    for name in INPUTS:
        old = getattr(plan, name, None)
        if type(old) in OPERATORS:
            new = transform_plan(old, change)  # type: ignore[arg-type]
            if new is not old:
                changed[name] = new
    if isinstance(plan, ir.Union):
        changed["inputs"] = tuple(transform_plan(part, change) for part in plan.inputs)
    return change(replace(plan, **changed) if changed else plan)


def variables(node: Node) -> frozenset[str]:
    """The variables an expression reads; a ranking or a text match reads the variable of its field."""
    found = set()
    for part in walk(node):
        match part:
            case ir.Same(left, right) | ir.Apart(left, right):
                found |= {left, right}
            case (
                ir.Column(var=var)
                | ir.IdOf(var=var)
                | ir.TypeOf(var=var)
                | ir.EndpointOf(var=var)
                | ir.EntityOf(var=var)
                | ir.PathOf(var=var)
                | ir.PathGet(var=var)
                | ir.RefOf(var=var)
                | ir.TrailOf(var=var)
                | ir.ValueOf(var=var)
            ):
                found.add(var)
            case _:
                pass
    return frozenset(found)


def conjuncts(predicate: ir.Expr | None) -> tuple[ir.Expr, ...]:
    """The parts of a predicate all of which must be true."""
    if predicate is None:
        return ()
    if isinstance(predicate, ir.And):
        return tuple(p for part in predicate.parts for p in conjuncts(part))
    return (predicate,)


def conjunction(parts: tuple[ir.Expr, ...]) -> ir.Expr | None:
    """One predicate that is true where all parts are; None for no parts."""
    unique = tuple(dict.fromkeys(parts))
    if not unique:
        return None
    return unique[0] if len(unique) == 1 else ir.And(unique)


def filtered(plan: ir.Op, predicates: tuple[ir.Expr, ...]) -> ir.Op:
    """The rows of a plan that satisfy all of the predicates."""
    predicate = conjunction(predicates)
    return plan if predicate is None else ir.Filter(plan, predicate)


def is_null_literal(expr: ir.Expr) -> bool:
    """The literal `null`, which takes the type its place requires."""
    return isinstance(expr, ir.Literal) and expr.value is None


def stored_column(expr: ir.Expr) -> str | None:
    """The column of a type's table that holds a property, an id or an end of an edge; None for anything else."""
    match expr:
        case ir.Column(_, name):
            return name
        case ir.IdOf():
            return "id"
        case ir.EndpointOf(_, end):
            return end.value
        case _:
            return None


def stored_columns(expr: ir.Expr | None) -> Iterator[str]:
    """The columns an expression over one table reads, in order of appearance, with repetitions."""
    for part in walk(expr) if expr is not None else ():
        name = stored_column(part)
        if name is not None:
            yield name


CONSTANT = (
    ir.Literal,
    ir.ListOf,
    ir.Param,
    ir.Now,
    ir.Compare,
    ir.And,
    ir.Or,
    ir.Not,
    ir.IsNull,
    ir.In,
    ir.Has,
    ir.Contains,
    ir.StartsWith,
    ir.RegexMatch,
    ir.Arithmetic,
    ir.Call,
    ir.Cast,
    ir.TemporalCall,
)


def is_constant(expr: ir.Expr) -> bool:
    """Whether the value is the same for every row."""
    if isinstance(expr, ir.Literal | ir.Param):
        return True
    return all(isinstance(part, CONSTANT) for part in walk(expr))
