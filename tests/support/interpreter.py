"""What a plan means, said as plainly as possible: dicts, lists and loops, one row at a time.

Slow, and obviously right. The engines are compared with it on random graphs and queries.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cmp_to_key
from typing import Any

from omnigraph.expressions.scalar import compare, evaluate
from omnigraph.lang import ir
from omnigraph.lang.ir import Bound
from omnigraph.lang.ir import CompareOp as Op
from omnigraph.lang.tree import transform

Row = dict[str, Any]  # variables, scores and output columns by name
Key = tuple[str, str]  # type and id


@dataclass(slots=True)
class PlainGraph:
    """Rows of each type by id; edges have `src` and `dst` besides their properties."""

    nodes: dict[str, dict[str, dict[str, Any]]]
    edges: dict[str, dict[str, dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Node:
    type: str
    id: str


@dataclass(frozen=True, slots=True)
class Edge:
    type: str
    id: str


@dataclass(frozen=True, slots=True)
class Path:
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]


@dataclass(slots=True)
class Interpreter:
    """Runs plans on one graph with one set of parameters."""

    graph: PlainGraph
    bound: Bound = field(default_factory=Bound)

    def run(self, read: ir.Read) -> list[list[Any]]:
        """The rows of a read as lists of values, in the order of its columns."""
        rows = self.rows(read.plan, {})
        return [list(row.values()) for row in rows]

    def rows(self, op: ir.Op, outer: Row) -> list[Row]:
        match op:
            case ir.NodeScan(var, types, predicate):
                found = [{var: Node(t, i)} for t in types for i in self.graph.nodes[t]]
                return [row for row in found if self.holds(predicate, row)]
            case ir.Outer():
                return [dict(outer)]
            case ir.Expand():
                return [new for row in self.rows(op.input, outer) for new in self.expand(op, row)]
            case ir.ShortestPath():
                return [new for row in self.rows(op.input, outer) for new in self.shortest(op, row)]
            case ir.Filter(source, predicate):
                return [row for row in self.rows(source, outer) if self.holds(predicate, row)]
            case ir.SemiJoin(source, block, measure=ir.BlockTest() as test):
                return [r for r in self.rows(source, outer) if self.measured(r, block, test)]
            case ir.SemiJoin(source, block, negated):
                return [
                    r for r in self.rows(source, outer) if bool(self.rows(block, r)) is not negated
                ]
            case ir.Optional(source, block, names):
                return [
                    new
                    for row in self.rows(source, outer)
                    for new in self.optional(row, block, names)
                ]
            case ir.Join(left, right, on):
                return self.join(self.rows(left, outer), self.rows(right, outer), on)
            case ir.Aggregate():
                return self.aggregate(op, self.rows(op.input, outer))
            case ir.Project(source, columns):
                return [
                    {c.name: self.value(c.expr, r) for c in columns}
                    for r in self.rows(source, outer)
                ]
            case ir.Distinct(source):
                return distinct(self.rows(source, outer))
            case ir.Sort(source, keys, ties):
                return self.sort(self.rows(source, outer), keys, ties)
            case ir.Slice(source, skip, limit):
                return self.slice(self.rows(source, outer), skip, limit)
            case ir.Union(inputs):
                first, *others = [self.rows(part, outer) for part in inputs]
                return first + [as_like(first, row, inputs[0]) for rows in others for row in rows]
            case _:
                raise NotImplementedError(type(op).__name__)

    # --- expressions ---------------------------------------------------------------------------------------------

    def holds(self, predicate: ir.Expr | None, row: Row) -> bool:
        return predicate is None or self.value(predicate, row) is True

    def value(self, expr: ir.Expr, row: Row) -> Any:
        """Everything that looks at the row is replaced by what it sees; the rest is constant."""
        if isinstance(expr, ir.EntityOf | ir.PathOf):
            return self.leaf(expr, row)
        known = transform(expr, lambda node: self.known(node, row))
        return evaluate(known, self.bound)

    def known(self, node: Any, row: Row) -> Any:
        leaves = (
            ir.Column,
            ir.IdOf,
            ir.TypeOf,
            ir.EndpointOf,
            ir.PathGet,
            ir.ScoreOf,
            ir.Output,
            ir.Same,
        )
        return ir.Literal(self.leaf(node, row), ir.BOOL) if isinstance(node, leaves) else node

    def leaf(self, node: Any, row: Row) -> Any:
        match node:
            case ir.Output(name) | ir.ScoreOf(name):
                return row[name]
            case ir.Same(left, right):
                pair = row[left], row[right]
                return None if None in pair else pair[0] == pair[1]
        thing = row[node.var]
        if thing is None:
            return None
        match node:
            case ir.Column(_, name):
                return self.properties(thing).get(name)
            case ir.IdOf():
                return thing.id
            case ir.TypeOf():
                return thing.type
            case ir.EndpointOf(_, end):
                return self.properties(thing)[end.value]
            case ir.EntityOf():
                return self.entity(thing, node.type)
            case ir.PathOf():
                return path_value(thing)
            case ir.PathGet(_, part):
                return path_value(thing)[part.value]

    def properties(self, thing: Node | Edge) -> dict[str, Any]:
        tables = self.graph.nodes if isinstance(thing, Node) else self.graph.edges
        return tables[thing.type][thing.id]

    def entity(self, thing: Node | Edge, kind: ir.EntityValue) -> dict[str, Any]:
        """Only what a test compares: the identity and the properties this type has."""
        if kind.plain:
            named = {"@type": thing.type} if len(kind.types) > 1 else {}
            return {"@id": thing.id, **named, **self.properties(thing)}
        made = dict(self.properties(thing))
        ends = {"from": made.pop("src"), "to": made.pop("dst")} if isinstance(thing, Edge) else {}
        return {"id": thing.id, "type": thing.type, **ends, **made}

    # --- traversals ----------------------------------------------------------------------------------------------

    def hops(self, node: Node, steps: tuple[ir.EdgeStep, ...]) -> Iterator[tuple[Edge, Node]]:
        """Every stored edge and orientation that leaves a node, a self-loop once."""
        for step in steps:
            for edge_id, row in self.graph.edges[step.edge].items():
                for near, far in orientations(step.direction, row):
                    if node == Node(step.near, near):
                        yield Edge(step.edge, edge_id), Node(step.far, far)

    def expand(self, op: ir.Expand, row: Row) -> Iterator[Row]:
        source = row[op.src]
        if source is None or (op.into and row[op.dst] is None):
            return
        for new in self.destinations(op, source):
            if op.into and new[op.dst] != row[op.dst]:
                continue
            if new[op.dst].type in op.dst_types and self.holds(op.predicate, {**row, **new}):
                yield {**row, **new}

    def destinations(self, op: ir.Expand, source: Node) -> list[Row]:
        if op.edge_var is not None:
            return [{op.dst: node, op.edge_var: edge} for edge, node in self.hops(source, op.steps)]
        reached = self.reach(source, op.steps, op.min_hops, op.max_hops)
        return [{op.dst: node} for node in reached]

    def reach(
        self, source: Node, steps: tuple[ir.EdgeStep, ...], low: int, high: int
    ) -> dict[Node, int]:
        """The hop at which every destination is reported."""
        distance = {source: 0}
        frontier = [source]
        for hop in range(1, high + 1):
            new = {
                far for node in frontier for _, far in self.hops(node, steps) if far not in distance
            }
            distance |= dict.fromkeys(new, hop)
            frontier = sorted(new, key=lambda n: (n.type, n.id))
        if low == 1 and any(far == source for _, far in self.hops(source, steps)):
            distance[source] = 1
        return {n: d for n, d in distance.items() if low <= d <= high}

    def shortest(self, op: ir.ShortestPath, row: Row) -> Iterator[Row]:
        source = row[op.src]
        if source is None or (op.into and row[op.dst] is None):
            return
        for node, length in self.reach(source, op.steps, op.min_hops, op.max_hops).items():
            if op.into and node != row[op.dst]:
                continue
            paths = list(self.reported_paths(source, node, op.steps, length))
            if op.backwards:
                paths = [Path(p.nodes[::-1], p.edges[::-1]) for p in paths]
            best = min(paths, key=lambda p: [(e.id, e.type) for e in p.edges])
            for path in paths if op.every else [best]:
                new = {**row, op.dst: node, op.path_var: path}
                if node.type in op.dst_types and self.holds(op.predicate, new):
                    yield new

    def reported_paths(
        self, source: Node, target: Node, steps: tuple[ir.EdgeStep, ...], length: int
    ) -> list[Path]:
        """The paths by which a destination may be reported."""
        return list(self.walks(source, target, steps, length))

    def walks(
        self, source: Node, target: Node, steps: tuple[ir.EdgeStep, ...], length: int
    ) -> Iterator[Path]:
        """All walks of this length."""
        if length == 0:
            if source == target:
                yield Path((source,), ())
            return
        for edge, node in self.hops(source, steps):
            for rest in self.walks(node, target, steps, length - 1):
                yield Path((source, *rest.nodes), (edge, *rest.edges))

    # --- combining -----------------------------------------------------------------------------------------------

    def optional(self, row: Row, block: ir.Op, names: tuple[str, ...]) -> list[Row]:
        found = self.rows(block, row)
        return found or [{**row, **dict.fromkeys(names)}]

    def join(
        self, left: list[Row], right: list[Row], on: tuple[tuple[ir.Expr, ir.Expr], ...]
    ) -> list[Row]:
        return [
            {**a, **b}
            for a in left
            for b in right
            if all(equal(self.value(x, a), self.value(y, b)) for x, y in on)
        ]

    def slice(self, rows: list[Row], skip: ir.Expr | None, limit: ir.Expr | None) -> list[Row]:
        start = 0 if skip is None else self.value(skip, {})
        return rows[start:] if limit is None else rows[start : start + self.value(limit, {})]

    def sort(
        self, rows: list[Row], keys: tuple[ir.SortKey, ...], ties: tuple[ir.Expr, ...]
    ) -> list[Row]:
        found = list(rows)
        for tie in reversed(ties):
            found.sort(key=self.order_of(tie))
        for key in reversed(keys):
            found.sort(key=self.order_of(key.expr), reverse=False)
            if key.descending:
                # Reversing a stable sort must not turn round what is equal.
                found = stable_reverse(found, self.order_of(key.expr))
        return found

    def order_of(self, expr: ir.Expr) -> Callable[[Row], Any]:
        return lambda row: cmp_to_key(in_order)(self.value(expr, row))

    def aggregate(self, op: ir.Aggregate, rows: list[Row]) -> list[Row]:
        groups: dict[Any, tuple[Row, list[Row]]] = {}
        for row in rows:
            keys = {k.name: self.value(k.expr, row) for k in op.keys}
            groups.setdefault(hashable(list(keys.values())), (keys, []))[1].append(row)
        if not op.keys and not groups:
            groups[()] = ({}, [])
        return [
            {**keys, **{a.name: self.reduce(a, members) for a in op.aggregates}}
            for keys, members in groups.values()
        ]

    def measured(self, row: Row, block: ir.Op, test: ir.BlockTest) -> bool:
        found = self.reduce(test.aggregate, self.rows(block, row))
        return self.holds(test.predicate, {**row, test.aggregate.name: found})

    def reduce(self, wanted: ir.NamedAggregate, rows: list[Row]) -> Any:
        if wanted.arg is None:
            return len(rows)
        values = [v for row in rows if (v := self.value(wanted.arg, row)) is not None]
        if wanted.distinct:
            values = list({hashable(v): v for v in values}.values())
        ordered = sorted(values, key=cmp_to_key(in_order))
        match wanted.function:
            case ir.AggregateFunction.COUNT:
                return len(values)
            case ir.AggregateFunction.COLLECT:
                return ordered
            case _ if not values:
                return None
            case ir.AggregateFunction.SUM:
                return total(values)
            case ir.AggregateFunction.AVG:
                return total(values) / len(values)
            case ir.AggregateFunction.MIN:
                return ordered[0]
            case ir.AggregateFunction.MAX:
                return ordered[-1]


def total(values: list[Any]) -> float:
    """The sum, exact where it is finite."""
    try:
        return float(math.fsum(values))
    except (OverflowError, ValueError):
        return float(sum(values))


def orientations(direction: ir.Direction, row: dict[str, Any]) -> list[tuple[str, str]]:
    out, back = (row["src"], row["dst"]), (row["dst"], row["src"])
    match direction:
        case ir.Direction.OUT:
            return [out]
        case ir.Direction.IN:
            return [back]
        case ir.Direction.BOTH:
            return [out] if out == back else [out, back]


def path_value(path: Path) -> dict[str, Any]:
    return {
        "nodes": [n.id for n in path.nodes],
        "edges": [e.id for e in path.edges],
        "length": len(path.edges),
    }


def equal(left: Any, right: Any) -> bool:
    return left is not None and right is not None and compare(Op.EQ, left, right)


def in_order(left: Any, right: Any) -> int:
    """Null before everything, NaN after everything."""
    if left is None or right is None:
        return (left is not None) - (right is not None)
    if is_nan(left) or is_nan(right):
        return is_nan(left) - is_nan(right)
    return int(compare(Op.GT, left, right)) - int(compare(Op.LT, left, right))


def is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def stable_reverse(rows: list[Row], key: Callable[[Row], Any]) -> list[Row]:
    runs: list[list[Row]] = []
    for row in rows:
        if runs and key(runs[-1][0]) == key(row):
            runs[-1].append(row)
        else:
            runs.append([row])
    return [row for run in reversed(runs) for row in run]


def hashable(value: Any) -> Any:
    """Equal for what counts as equal: numbers by value, lists and objects by their members."""
    match value:
        case list() | tuple():
            return tuple(hashable(v) for v in value)
        case dict():
            return tuple((k, hashable(v)) for k, v in value.items())
        case bool():
            return ("bool", value)
        case float() if math.isnan(value):
            return ("NaN",)
        case _:
            return value


def distinct(rows: list[Row]) -> list[Row]:
    return list({hashable(list(row.values())): row for row in reversed(rows)}.values())[::-1]


def as_like(first: list[Row], row: Row, op: ir.Op) -> Row:
    """A row of a later branch under the names of the first."""
    names = list(first[0]) if first else output_names(op)
    return dict(zip(names, row.values(), strict=True))


def output_names(op: ir.Op) -> list[str]:
    match op:
        case ir.Project(_, columns):
            return [c.name for c in columns]
        case ir.Distinct(source) | ir.Sort(source) | ir.Slice(source) | ir.Filter(source):
            return output_names(source)
        case ir.Union(inputs):
            return output_names(inputs[0])
        case ir.Aggregate(_, keys, aggregates):
            return [k.name for k in keys] + [a.name for a in aggregates]
        case _:
            raise NotImplementedError(type(op).__name__)
