"""Patterns to operators: the types of nodes, how they are reached, and that no relationship repeats."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from omnigraph.lang import ir
from omnigraph.lang.cypher import ast, types
from omnigraph.lang.cypher.binder import ExprBinder
from omnigraph.lang.cypher.coercion import compared, null_of
from omnigraph.lang.cypher.functions import trail_get
from omnigraph.lang.cypher.scope import BindingState, Flow
from omnigraph.lang.tree import conjuncts
from omnigraph.model.frozen import frozen

OUT, IN, BOTH = ir.Direction.OUT, ir.Direction.IN, ir.Direction.BOTH
SHORTEST_HOPS_MAX = 2**31 - 1
ALL_SHORTEST = "allShortestPaths"


@dataclass(slots=True)
class Node:
    """A node of a pattern: a variable of the plan, and the types it may have."""

    var: str
    types: tuple[str, ...]
    bound: bool
    conditions: list[ast.NodePattern] = field(default_factory=list)


@dataclass(slots=True)
class Rel:
    """A relationship between two nodes, and the ways it may lead."""

    pattern: ast.RelPattern
    var: str
    edges: tuple[str, ...]
    left: str
    right: str
    steps: tuple[ir.EdgeStep, ...] = ()
    shortest: str | None = None  # the word before the pattern
    known: ir.RefOf | None = None  # the already bound relationship it must be


@frozen
class Walk:
    """How a relationship is followed: from which end, and whether the other is bound as well."""

    src: str
    dst: str
    steps: tuple[ir.EdgeStep, ...]
    kinds: tuple[str, ...]
    into: bool
    backwards: bool


@dataclass(slots=True)
class PatternBinder:
    """Binds the patterns of one MATCH."""

    binding: BindingState
    flow: Flow
    binder: ExprBinder
    nodes: dict[str, Node] = field(default_factory=dict)  # by variable of the plan
    rels: list[Rel] = field(default_factory=list)
    own: dict[str, str] = field(default_factory=dict)  # name as written to variable of the plan
    paths: list[tuple[ast.PathPattern, list[str], list[Rel]]] = field(default_factory=list)

    def bind(self, patterns: tuple[ast.PathPattern, ...]) -> None:
        """Add the patterns to the flow."""
        for pattern in patterns:
            self.collect(pattern)
        self.check_names(patterns)
        possible = self.narrow()
        self.name_all()
        if possible:
            self.lower()
        else:
            self.nothing()
        self.conditions()

    # --- what is written -------------------------------------------------------------------------------------------

    def collect(self, pattern: ast.PathPattern) -> None:
        nodes = [self.node(node) for node in pattern.nodes]
        rels = []
        for i, rel in enumerate(pattern.rels):
            rels.append(self.rel(rel, nodes[i], nodes[i + 1], pattern))
        self.paths.append((pattern, nodes, rels))

    def check_names(self, patterns: tuple[ast.PathPattern, ...]) -> None:
        """The name of a path must be unused."""
        taken = set(self.flow.names) | set(self.own)
        for pattern in patterns:
            if pattern.var is not None and pattern.var in taken:
                raise self.binding.error("C008", f"`{pattern.var}` is already bound", pattern.at)
            taken |= {pattern.var} if pattern.var is not None else set()

    def node(self, pattern: ast.NodePattern) -> str:
        allowed = self.labelled(pattern)
        name = pattern.var
        if name is not None and name in self.own:
            node = self.nodes.get(self.own[name])
            if node is None:
                raise self.binding.error("C008", f"`{name}` is a relationship", pattern.at)
            node.types = tuple(t for t in node.types if t in allowed)
        elif name is not None and name in self.flow.names:
            node = self.known_node(name, pattern)
            node.types = tuple(t for t in node.types if t in allowed)
            self.own[name] = node.var
        else:
            node = Node(self.binding.fresh(name or ""), allowed, bound=False)
            if name is not None:
                self.own[name] = node.var
        node.conditions.append(pattern)
        self.nodes[node.var] = node
        return node.var

    def labelled(self, pattern: ast.NodePattern) -> tuple[str, ...]:
        found = tuple(self.binding.catalog.nodes)
        for label in pattern.labels:
            having = self.binding.with_label(label, pattern.at)
            found = tuple(t for t in found if t in having)
        return found

    def known_node(self, name: str, pattern: ast.NodePattern) -> Node:
        """A variable bound before; a reference becomes a variable again."""
        expr = self.flow.names[name]
        if types.is_null(expr.type):
            expr = null_of(ir.RefValue(tuple(self.binding.catalog.nodes)))
        if not isinstance(expr.type, ir.RefValue) or expr.type.edge:
            message = f"`{name}` is {types.name_of(expr.type)}, not a node"
            raise self.binding.error("C008", message, pattern.at)
        if isinstance(expr, ir.RefOf):
            return Node(expr.var, expr.type.types, bound=True)
        var = self.binding.fresh(name)
        self.flow.plan = ir.Attach(self.flow.plan, var, expr, expr.type.types)
        self.flow.names[name] = ir.RefOf(var, expr.type)
        self.flow.types[var] = expr.type.types
        return Node(var, expr.type.types, bound=True)

    def rel(self, pattern: ast.RelPattern, left: str, right: str, path: ast.PathPattern) -> Rel:
        edges = tuple(self.binding.catalog.edges)
        if pattern.types:
            named = [self.binding.with_type(name, pattern.at) for name in pattern.types]
            edges = tuple(dict.fromkeys(e for found in named for e in found))
        known = None
        name = pattern.var
        if name is not None and (name in self.own or name in self.flow.names):
            known = self.known_rel(pattern)
            edges = tuple(e for e in edges if e in known.type.types)
            var = self.binding.fresh()
        else:
            var = self.binding.fresh(name or "")
            if name is not None:
                self.own[name] = var
        made = Rel(pattern, var, edges, left, right, shortest=path.shortest, known=known)
        self.check_shortest(made, path)
        self.rels.append(made)
        return made

    def known_rel(self, pattern: ast.RelPattern) -> ir.RefOf:
        name = pattern.var or ""
        expr = self.flow.names.get(name)
        if expr is None:
            message = f"the relationship `{name}` appears twice in one pattern"
            raise self.binding.error("C008", message, pattern.at)
        if not isinstance(expr.type, ir.RefValue) or not expr.type.edge or pattern.hops is not None:
            message = f"`{name}` is {types.name_of(expr.type)}, not a relationship"
            raise self.binding.error("C008", message, pattern.at)
        if isinstance(expr, ir.RefOf):
            return expr
        var = self.binding.fresh(name)
        self.flow.plan = ir.Attach(self.flow.plan, var, expr, expr.type.types, edge=True)
        self.flow.names[name] = found = ir.RefOf(var, expr.type)
        return found

    def check_shortest(self, rel: Rel, path: ast.PathPattern) -> None:
        if path.shortest is None:
            return
        if len(path.rels) != 1 or (rel.pattern.hops or (1, 1))[0] not in (None, 0, 1):
            message = f"{path.shortest} takes two nodes and one relationship with a minimum of 0 or 1 hops"
            raise self.binding.error("C015", message, path.at)

    # --- which types are possible ----------------------------------------------------------------------------------

    def narrow(self) -> bool:
        """Reduce every node to the types possible beside the others; returns whether each part has one."""
        changed = True
        while changed:
            changed = False
            for rel in self.rels:
                changed |= self.narrow_one(rel)
        return all(n.types for n in self.nodes.values()) and all(
            r.steps or self.is_empty_walk(r) for r in self.rels
        )

    def is_empty_walk(self, rel: Rel) -> bool:
        return rel.pattern.hops is not None and rel.pattern.hops[0] == 0

    def narrow_one(self, rel: Rel) -> bool:
        left, right = self.nodes[rel.left], self.nodes[rel.right]
        if rel.pattern.hops is not None:
            rel.steps = self.ways(rel, None, None)
            return False
        rel.steps = self.ways(rel, left.types, right.types)
        near, far = {s.near for s in rel.steps}, {s.far for s in rel.steps}
        before = len(left.types) + len(right.types)
        left.types = tuple(t for t in left.types if t in near)
        right.types = tuple(t for t in right.types if t in far)
        return len(left.types) + len(right.types) < before

    def ways(
        self, rel: Rel, near: tuple[str, ...] | None, far: tuple[str, ...] | None
    ) -> tuple[ir.EdgeStep, ...]:
        """How the relationship may be followed from the node on its left to that on its right."""
        found = []
        for name in rel.edges:
            edge = self.binding.catalog.edges[name]
            out = ir.EdgeStep(name, OUT, edge.from_type, edge.to_type)
            back = ir.EdgeStep(name, IN, edge.to_type, edge.from_type)
            match rel.pattern.arrow:
                case "->":
                    found.append(out)
                case "<-":
                    found.append(back)
                case _ if edge.from_type == edge.to_type:
                    found.append(replace(out, direction=BOTH))
                case _:
                    found += [out, back]
        return tuple(
            s for s in found if (near is None or s.near in near) and (far is None or s.far in far)
        )

    # --- names -----------------------------------------------------------------------------------------------------

    def name_all(self) -> None:
        """The meaning of the pattern's names from here on."""
        for name, var in self.own.items():
            if var in self.nodes:
                node = self.nodes[var]
                known = self.flow.names.get(name)
                kind = ir.RefValue(
                    node.types
                    or (
                        known.type.types
                        if isinstance(known, ir.RefOf)
                        else tuple(self.binding.catalog.nodes)
                    )
                )
                self.flow.names[name] = ir.RefOf(var, kind)
                if not node.bound:
                    self.flow.types[var] = kind.types
        for rel in self.rels:
            if rel.pattern.var is not None and rel.known is None:
                self.flow.names[rel.pattern.var] = self.of_rel(rel)
        for pattern, nodes, rels in self.paths:
            if pattern.var is not None:
                self.flow.names[pattern.var] = self.of_path(nodes, rels)

    def of_rel(self, rel: Rel) -> ir.Expr:
        if rel.pattern.hops is not None or rel.shortest:
            return trail_get(self.trail_of(rel), True)
        return ir.RefOf(rel.var, ir.RefValue(self.edges_of(rel), edge=True))

    def edges_of(self, rel: Rel) -> tuple[str, ...]:
        found = tuple(dict.fromkeys(s.edge for s in rel.steps))
        return found or rel.edges or tuple(self.binding.catalog.edges)

    def trail_of(self, rel: Rel) -> ir.Expr:
        met = [t for s in rel.steps for t in (s.near, s.far)]
        nodes = dict.fromkeys([*self.nodes[rel.left].types, *met])
        return ir.TrailOf(rel.var, ir.TrailValue(tuple(nodes), self.edges_of(rel)))

    def of_path(self, nodes: list[str], rels: list[Rel]) -> ir.Expr:
        if len(rels) == 1 and (rels[0].pattern.hops is not None or rels[0].shortest):
            return self.trail_of(rels[0])
        items: list[ir.Expr] = [self.ref(nodes[0])]
        for rel, node in zip(rels, nodes[1:], strict=True):
            whole = rel.pattern.hops is not None or rel.shortest
            items.append(self.trail_of(rel) if whole else self.of_rel(rel))
            items.append(self.ref(node))
        met = dict.fromkeys(t for i in items for t in _types_met(i.type, edges=False))
        used = dict.fromkeys(t for i in items for t in _types_met(i.type, edges=True))
        return ir.MakeTrail(tuple(items), ir.TrailValue(tuple(met), tuple(used)))

    def ref(self, var: str) -> ir.Expr:
        return ir.RefOf(
            var, ir.RefValue(self.nodes[var].types or tuple(self.binding.catalog.nodes))
        )

    # --- operators -------------------------------------------------------------------------------------------------

    def lower(self) -> None:
        """From bound nodes outwards, then from the first node of each connected part."""
        done: set[int] = set()
        have = {n.var for n in self.nodes.values() if n.bound}
        self.label_filters()
        self.walk_all(have, done)
        for node in self.nodes.values():
            if node.var not in have:
                outer, self.flow.plan = self.flow.plan, ir.NodeScan(node.var, node.types)
                reached = {node.var}
                self.walk_all(reached, done)
                have |= reached
                if not isinstance(outer, ir.Outer) or self.flow.nested:
                    self.flow.plan = ir.Join(outer, self.flow.plan)
        self.unique()

    def label_filters(self) -> None:
        """Labels on a variable that was bound before."""
        for node in self.nodes.values():
            held = self.flow.types.get(node.var, node.types)
            if node.bound and set(held) - set(node.types):
                ref = ir.RefOf(node.var, ir.RefValue(held))
                self.filter(self.binder.of_types(ref, node.types))

    def walk_all(self, have: set[str], done: set[int]) -> None:
        """Follow every relationship that touches a bound node, until none is left."""
        progress = True
        while progress:
            progress = False
            for i, rel in enumerate(self.rels):
                if i not in done and {rel.left, rel.right} & have:
                    done.add(i)
                    self.walk(rel, have)
                    have |= {rel.left, rel.right}
                    progress = True

    def walk(self, rel: Rel, have: set[str]) -> None:
        forward = rel.left in have
        src, dst = (rel.left, rel.right) if forward else (rel.right, rel.left)
        into = rel.left in have and rel.right in have
        steps = rel.steps if forward else tuple(map(_turned, rel.steps))
        kinds = self.nodes[dst].types
        walk = Walk(src, dst, steps, kinds, into, not forward)
        if rel.shortest:
            self.flow.plan = self.shortest(rel, walk)
        elif rel.pattern.hops is not None:
            self.flow.plan = self.trail(rel, walk)
        else:
            self.flow.plan = ir.Expand(
                input=self.flow.plan,
                src=src,
                dst=dst,
                steps=steps,
                dst_types=self.flow.types.get(dst, kinds) if into else kinds,
                edge_var=rel.var,
                into=into,
            )

    def trail(self, rel: Rel, walk: Walk) -> ir.Op:
        low, high = rel.pattern.hops or (1, 1)
        edge_var, predicate = "", None
        if rel.pattern.properties is not None:
            edge_var = self.binding.fresh()
            edge = ir.RefOf(edge_var, ir.RefValue(self.edges_of(rel), edge=True))
            predicate = _all(self.equalities(edge, rel.pattern.properties))
        return ir.Trail(
            input=self.flow.plan,
            src=walk.src,
            dst=walk.dst,
            path_var=rel.var,
            steps=walk.steps,
            dst_types=walk.kinds,
            min_hops=1 if low is None else low,
            max_hops=high,
            edge_predicate=predicate,
            edge_var=edge_var,
            into=walk.into,
            backwards=walk.backwards,
        )

    def shortest(self, rel: Rel, walk: Walk) -> ir.Op:
        if rel.pattern.properties is not None:
            message = "the relationships of a shortest path are chosen by their type alone"
            raise self.binding.error("C015", message, rel.pattern.at)
        low, high = rel.pattern.hops or (1, 1)
        return ir.ShortestPath(
            input=self.flow.plan,
            src=walk.src,
            dst=walk.dst,
            path_var=rel.var,
            steps=walk.steps,
            dst_types=walk.kinds,
            min_hops=1 if low is None else low,
            max_hops=SHORTEST_HOPS_MAX if high is None else high,
            into=walk.into,
            backwards=walk.backwards,
            every=rel.shortest == ALL_SHORTEST,
        )

    def unique(self) -> None:
        """Conditions: no two relationships of the pattern are the same, and those bound before match."""
        for rel in self.rels:
            if rel.known is not None:
                self.filter(ir.Same(rel.var, rel.known.var))
        for i, one in enumerate(self.rels):
            for other in self.rels[:i]:
                if set(self.edges_of(one)) & set(self.edges_of(other)):
                    self.filter(self.apart(other, one))

    def apart(self, one: Rel, other: Rel) -> ir.Expr:
        if any(rel.pattern.hops is not None or rel.shortest for rel in (one, other)):
            return ir.Apart(one.var, other.var)
        return ir.Not(ir.Same(one.var, other.var))

    def nothing(self) -> None:
        """The schema has nothing the pattern could match: every variable is bound, without rows."""
        self.filter(ir.Literal(False, ir.BOOL))
        for node in self.nodes.values():
            if not node.bound:
                kinds = node.types or tuple(self.binding.catalog.nodes)
                ref = null_of(ir.RefValue(kinds))
                self.flow.plan = ir.Attach(self.flow.plan, node.var, ref, kinds)
        for rel in self.rels:
            if rel.pattern.hops is None and not rel.shortest:
                kinds = self.edges_of(rel)
                ref = null_of(ir.RefValue(kinds, edge=True))
                self.flow.plan = ir.Attach(self.flow.plan, rel.var, ref, kinds, edge=True)
            elif rel.pattern.var is not None:
                empty = null_of(ir.ListValue(ir.RefValue(self.edges_of(rel), edge=True)))
                self.flow.names[rel.pattern.var] = empty
        for pattern, _, rels in self.paths:
            if pattern.var is not None and any(r.pattern.hops is not None for r in rels):
                path = self.flow.names[pattern.var]
                self.flow.names[pattern.var] = null_of(path.type)

    # --- conditions ------------------------------------------------------------------------------------------------

    def conditions(self) -> None:
        """The conditions from the maps in the pattern."""
        for node in self.nodes.values():
            for pattern in node.conditions:
                if pattern.properties is not None:
                    for test in self.equalities(self.ref(node.var), pattern.properties):
                        self.filter(test)
        for rel in self.rels:
            if rel.pattern.properties is not None and rel.pattern.hops is None:
                for test in self.equalities(self.of_rel(rel), rel.pattern.properties):
                    self.filter(test)

    def equalities(self, entity: ir.Expr, properties: ast.Expr) -> list[ir.Expr]:
        found = []
        if isinstance(properties, ast.MapLiteral):
            given = [(name, self.binder.expr(part), part.at) for name, part in properties.items]
        else:
            whole = self.binder.expr(properties)
            if not isinstance(whole.type, ir.MapValue):
                message = f"expected a map, not {types.name_of(whole.type)}"
                raise self.binder.wrong(message, properties.at)
            at = properties.at
            given = [(n, ir.FieldOf(whole, n, kind), at) for n, kind in whole.type.fields]
        for name, wanted, at in given:
            own = self.binder.property(entity, name, at)
            found.append(compared(ir.CompareOp.EQ, own, wanted))
        return found

    def filter(self, predicate: ir.Expr) -> None:
        for part in conjuncts(predicate):
            self.flow.plan = ir.Filter(self.flow.plan, part)


def _all(parts: list[ir.Expr]) -> ir.Expr | None:
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else ir.And(tuple(parts))


def _turned(step: ir.EdgeStep) -> ir.EdgeStep:
    ways = {OUT: IN, IN: OUT, BOTH: BOTH}
    return ir.EdgeStep(step.edge, ways[step.direction], step.far, step.near)


def _types_met(kind: ir.ValueType, edges: bool) -> tuple[str, ...]:
    match kind:
        case ir.RefValue(held, edge) if edge == edges:
            return held
        case ir.TrailValue(nodes, used):
            return used if edges else nodes
        case _:
            return ()
