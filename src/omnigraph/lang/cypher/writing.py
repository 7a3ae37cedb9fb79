"""Clauses that write: what is read first, and then what is made, set and deleted for each row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from omnigraph.lang import ir
from omnigraph.lang.bindings import bindings
from omnigraph.lang.cypher import ast, types
from omnigraph.lang.cypher.bind import QUERY, WRITING, QueryBinder
from omnigraph.lang.cypher.binder import ExprBinder
from omnigraph.lang.cypher.coercion import is_null_literal
from omnigraph.lang.cypher.scope import Binding, Flow, parts_of
from omnigraph.lang.diagnostics import Diagnostics
from omnigraph.lang.query.scope import Reported
from omnigraph.lang.source import Located
from omnigraph.model.catalog import Catalog, EdgeType, NodeType

NODE, EDGE = ir.TargetKind.NODE, ir.TargetKind.EDGE
Entity = NodeType | EdgeType
Given = list[tuple[str, ir.Expr, Located]]


def bind_write(
    tree: ast.Query, catalog: Catalog, diagnostics: Diagnostics, values: Mapping[str, Any]
) -> ir.Query:
    """The mutation of a text, its read not rewritten yet."""
    binding = Binding(catalog, diagnostics, values)
    try:
        if len(tree.parts) > 1:
            raise binding.error("C013", "UNION reads, and cannot hold clauses that write", tree.at)
        change = WriteBinder(binding).whole(tree.parts[0])
    except Reported:
        diagnostics.raise_errors()
        raise
    return ir.Query(QUERY, change.params, ir.Mutation((change,)))


@dataclass(slots=True)
class WriteBinder:
    """Binds one query that writes."""

    binding: Binding
    flow: Flow = field(default_factory=lambda: Flow(ir.Outer()))
    columns: list[ir.NamedExpr] = field(default_factory=list)
    slots: dict[str, tuple[str, str]] = field(default_factory=dict)  # of entities that are found
    made: dict[str, str] = field(default_factory=dict)  # type of what a slot was made as
    names: dict[str, str] = field(default_factory=dict)  # slots of variables that are made
    steps: list[ir.Step] = field(default_factory=list)
    written: set[str] = field(default_factory=set)  # properties set so far

    def whole(self, part: ast.SingleQuery) -> ir.PatternChange:
        reader = QueryBinder(self.binding)
        for clause in part.clauses:
            if isinstance(clause, WRITING):
                self.write(clause)
            elif isinstance(clause, ast.Return):
                message = "a query that writes answers with counts, not with rows"
                help = "Leave RETURN out, and ask afterwards."
                raise self.binding.error("C013", message, clause.at, help)
            elif self.steps:
                message = "what is read stands before what is written"
                help = "Run the query in parts, one after the other."
                raise self.binding.error("C013", message, clause.at, help)
            else:
                reader.clause(self.flow, clause)
        slots = tuple((name, *columns) for name, columns in self.slots.items())
        outputs = tuple(ir.OutputColumn(c.name, c.expr.type) for c in self.columns)
        read = ir.Read(ir.Project(self.flow.plan, tuple(self.columns)), outputs)
        params = tuple(ir.ParamDecl(n, k) for n, k in self.binding.params.items())
        return ir.PatternChange(read, params, slots, tuple(self.steps))

    def write(self, clause: ast.Writing) -> None:
        match clause:
            case ast.Create(patterns):
                for pattern in patterns:
                    self.create(pattern)
            case ast.Merge():
                self.merge(clause)
            case ast.Set(items) | ast.RemoveItems(items):
                for item in items:
                    self.set_item(item, None)
            case ast.Delete(items, detach):
                self.delete(items, detach)

    @property
    def binder(self) -> ExprBinder:
        return ExprBinder(self.binding, self.flow, QueryBinder(self.binding).block)

    # --- values and slots ------------------------------------------------------------------------------------------

    def column(self, expr: ir.Expr) -> str:
        """A column of the rows the steps read."""
        if types.holds_reference(expr.type):
            expr = ir.WrittenOut(expr, types.written(expr.type))
        if is_null_literal(expr):
            expr = ir.Literal(None, types.STRING)
        for known in self.columns:
            if known.expr == expr:
                return known.name
        name = f"{ir.FRESH}c{len(self.columns)}"
        self.columns.append(ir.NamedExpr(name, expr))
        return name

    def slot_of(self, name: str, at: Located) -> str:
        """The slot of a variable."""
        if name in self.names:
            return self.names[name]
        expr = self.flow.names.get(name)
        if expr is None:
            known = (*self.names, *self.flow.names)
            raise self.binding.unknown(
                "C007", f"there is no variable `{name}` here", at, name, known
            )
        return self.found(expr, name, at)

    def found(self, expr: ir.Expr, name: str, at: Located) -> str:
        if not isinstance(expr.type, ir.RefValue):
            message = f"`{name}` is {types.name_of(expr.type)}, not a node or a relationship"
            raise self.binding.error("C008", message, at)
        slot = expr.var if isinstance(expr, ir.RefOf) else f"{ir.FRESH}s{name}"
        if slot not in self.slots:
            binder = self.binder
            ids, kinds = binder.identity(expr), binder.type_name(expr)
            self.slots[slot] = (self.column(ids), self.column(kinds))
        return slot

    def kinds_of(self, slot: str, name: str) -> tuple[Entity, ...]:
        """The types the entity in a slot may have."""
        catalog = self.binding.catalog
        if slot in self.made:
            kind = self.made[slot]
            return (catalog.edges[kind[1:]] if kind.startswith("-") else catalog.nodes[kind],)
        expr = self.flow.names[name]
        assert isinstance(expr.type, ir.RefValue)  # noqa: S101 - slots are of nothing else
        if expr.type.edge:
            return tuple(catalog.edges[t] for t in expr.type.types)
        return tuple(catalog.nodes[t] for t in expr.type.types)

    # --- create ----------------------------------------------------------------------------------------------------

    def create(self, pattern: ast.PathPattern, merging: MergeRun | None = None) -> None:
        if pattern.var is not None and merging is None and not self.is_plain(pattern):
            raise self.binding.error("C017", "this pattern cannot be created", pattern.at)
        first = pattern.nodes[0]
        known = first.var in self.names or first.var in self.flow.names
        if not pattern.rels and known and not _is_new(merging, first.var or ""):
            raise self.binding.error("C008", f"`{first.var}` is bound already", pattern.at)
        slots = [self.node(node, merging) for node in pattern.nodes]
        for i, rel in enumerate(pattern.rels):
            self.rel(rel, slots[i], slots[i + 1], merging)

    def is_plain(self, pattern: ast.PathPattern) -> bool:
        return pattern.shortest is None

    def node(self, node: ast.NodePattern, merging: MergeRun | None) -> tuple[str, str]:
        """The slot of a node, new or known, and what it is called."""
        name = node.var
        known = name is not None and (
            name in self.names or (name in self.flow.names and not _is_new(merging, name))
        )
        if known:
            assert name is not None  # noqa: S101
            if node.labels or node.properties is not None:
                message = f"`{name}` is bound already, and gets no labels and properties here"
                raise self.binding.error("C008", message, node.at)
            return self.slot_of(name, node.at), name
        kind = self.one_type(node)
        slot = self.new_slot(name, merging)
        values = self.properties(node.properties, kind, node.at)
        self.steps.append(self.make(ir.Target(NODE, kind.name), slot, values, None, None, merging))
        self.made[slot] = kind.name
        if name is not None:
            self.names[name] = slot
        return slot, name or ""

    def new_slot(self, name: str | None, merging: MergeRun | None) -> str:
        if merging is not None and name is not None and name in merging.found:
            return self.slot_of(name, merging.at)
        return self.binding.fresh(name or "")

    def one_type(self, node: ast.NodePattern) -> NodeType:
        found = [n.name for n in self.binding.catalog.nodes.values()] if node.labels else []
        for label in node.labels:
            having = self.binding.with_label(label, node.at)
            found = [t for t in found if t in having]
        named = [t for t in found if t in node.labels]
        if len(named) == 1:
            found = named
        if not node.labels:
            message = "a node that is created has a label"
            raise self.binding.error("C017", message, node.at, "Name its type: (:Type {…}).")
        if len(found) != 1:
            labels = ":".join(node.labels)
            message = f"no one node type has the labels :{labels}"
            if found:
                message = f"`:{labels}` may be {' or '.join(found)}"
            raise self.binding.error("C004", message, node.at, "Name the node type itself.")
        return self.binding.catalog.nodes[found[0]]

    def rel(
        self,
        rel: ast.RelPattern,
        left: tuple[str, str],
        right: tuple[str, str],
        merging: MergeRun | None,
    ) -> None:
        if rel.hops is not None or len(rel.types) != 1 or (rel.arrow == "-" and merging is None):
            message = "a relationship that is created has one type and a direction"
            raise self.binding.error("C017", message, rel.at)
        if rel.var is not None and (
            rel.var in self.names or (rel.var in self.flow.names and not _is_new(merging, rel.var))
        ):
            raise self.binding.error("C008", f"`{rel.var}` is bound already", rel.at)
        src, dst = (right, left) if rel.arrow == "<-" else (left, right)
        kind = self.one_edge(rel, src, dst)
        slot = self.new_slot(rel.var, merging)
        values = self.properties(rel.properties, kind, rel.at)
        target = ir.Target(EDGE, kind.name)
        self.steps.append(self.make(target, slot, values, src[0], dst[0], merging))
        self.made[slot] = f"-{kind.name}"
        if rel.var is not None:
            self.names[rel.var] = slot

    def one_edge(self, rel: ast.RelPattern, src: tuple[str, str], dst: tuple[str, str]) -> EdgeType:
        starts = {kind.name for kind in self.kinds_of(*src)}
        ends = {kind.name for kind in self.kinds_of(*dst)}
        named = [
            self.binding.catalog.edges[n] for n in self.binding.with_type(rel.types[0], rel.at)
        ]
        found = [e for e in named if e.from_type in starts and e.to_type in ends]
        if len(found) == 1:
            return found[0]
        leads = ", ".join(f"{e.from_type} to {e.to_type}" for e in named[:4])
        message = f"`{rel.types[0]}` leads from {leads}"
        help = "Say which node types its ends have." if found else ""
        raise self.binding.error("C017", message, rel.at, help)

    def properties(
        self, given: ast.Expr | None, kind: Entity, at: Located
    ) -> tuple[tuple[str, str], ...]:
        found = []
        for name, expr, place in self.map_of(given, at):
            self.known_property(kind, name, place)
            found.append((name, self.column(expr)))
        return tuple(found)

    def known_property(self, kind: Entity, name: str, at: Located) -> None:
        if name not in kind.properties:
            message = f"{kind.name} has no property `{name}`"
            raise self.binding.unknown("C005", message, at, name, kind.properties)

    def map_of(self, given: ast.Expr | None, at: Located) -> Given:
        """The entries of a map, or of a value that is one."""
        match given:
            case None:
                return []
            case ast.MapLiteral(items):
                return [(name, self.read(part), part.at) for name, part in items]
            case _:
                whole = self.read(given)
                match whole.type:
                    case ir.MapValue(fields):
                        return [(n, ir.FieldOf(whole, n, k), at) for n, k in fields]
                    case ir.RefValue() as kind:
                        binder = self.binder
                        names = self.binding.property_names(kind)
                        return [(n, binder.property(whole, n, at), at) for n in names]
                    case _:
                        message = f"expected a map, not {types.name_of(whole.type)}"
                        raise self.binding.error("C009", message, at)

    def read(self, node: ast.Expr) -> ir.Expr:
        """A value as the rows have it; what the query itself wrote is not there yet."""
        for part in parts_of(node):
            if isinstance(part, ast.Variable) and part.name in self.names:
                message = f"`{part.name}` is made by this query, and is not there to be read yet"
                raise self.binding.error("C015", message, part.at)
            if isinstance(part, ast.Property) and part.name in self.written:
                message = f"`{part.name}` was set before, and would be read as it was"
                help = "Write the value again, or run the query in parts."
                raise self.binding.error("C015", message, part.at, help)
        return self.binder.expr(node)

    def make(
        self,
        target: ir.Target,
        slot: str,
        values: tuple[tuple[str, str], ...],
        src: str | None,
        dst: str | None,
        merging: MergeRun | None,
    ) -> ir.Step:
        if merging is None:
            return ir.Make(target, slot, values, src, dst)
        once = (*merging.once, *(column for _, column in values))
        ends = tuple(end for end in (src, dst) if end is not None)
        merging.once = tuple(dict.fromkeys((*once, *ends)))
        return ir.Make(target, slot, values, src, dst, merging.missing, merging.once)

    # --- merge -----------------------------------------------------------------------------------------------------

    def merge(self, clause: ast.Merge) -> None:
        """What is found is taken, for the rows where nothing is, the whole pattern is made."""
        if self.steps:
            message = "MERGE looks for its pattern before anything is written"
            help = "Run the query in parts, one after the other."
            raise self.binding.error("C013", message, clause.at, help)
        pattern = clause.pattern
        before = set(self.flow.names)
        reader = QueryBinder(self.binding)
        known = bindings(self.flow.plan)
        reader.optional(self.flow, ast.Match((pattern,), None, True, clause.at))
        assert isinstance(self.flow.plan, ir.Optional)  # noqa: S101
        new = [v for v in self.flow.plan.vars if v not in known]
        missing = ir.IsNull(ir.IdOf(new[0], types.STRING)) if new else ir.Literal(False, ir.BOOL)
        there = ir.Not(missing)
        found = set(self.flow.names) - before
        merging = MergeRun(self.column(missing), found, clause.at)
        self.create(pattern, merging)
        for item in clause.on_create:
            self.set_item(item, merging.missing)
        for item in clause.on_match:
            self.set_item(item, self.column(there))

    # --- set and remove --------------------------------------------------------------------------------------------

    def set_item(self, item: ast.SetItem, only: str | None) -> None:
        if item.operator == ":":
            message = "a node keeps its type, so that labels are not added or removed"
            help = "Create a node of the other type, or keep the state in a property."
            raise self.binding.error("C004", message, item.at, help)
        match item.target:
            case ast.Property(ast.Variable(name), prop):
                assert item.value is not None  # noqa: S101
                given: Given = [(prop, self.read(item.value), item.at)]
            case ast.Variable(name):
                given = self.map_of(item.value, item.at)
            case _:
                message = "SET takes a property of a variable: SET n.name = value"
                raise self.binding.error("C017", message, item.at)
        slot = self.slot_of(name, item.at)
        kinds = self.kinds_of(slot, name)
        if isinstance(item.target, ast.Variable) and item.operator == "=":
            named = {n for n, _, _ in given}
            rest = {p for kind in kinds for p in kind.properties if p not in (kind.key or ())}
            given += [(p, ir.Literal(None, ir.NULL), item.at) for p in sorted(rest - named)]
        for kind in kinds:
            own = [(n, e, at) for n, e, at in given if n in kind.properties or len(kinds) == 1]
            for prop, _, at in own:
                self.known_property(kind, prop, at)
            values = tuple((n, self.column(e)) for n, e, _ in own)
            if values:
                target = ir.Target(EDGE if isinstance(kind, EdgeType) else NODE, kind.name)
                self.steps.append(ir.Put(slot, (target,), values, only))
        self.written |= {n for n, _, _ in given}

    # --- delete ----------------------------------------------------------------------------------------------------

    def delete(self, items: tuple[ast.Expr, ...], detach: bool) -> None:
        """Relationships first, so that nodes may go after them."""
        drops: list[ir.Drop] = []
        for number, item in enumerate(items):
            if isinstance(item, ast.Variable):
                slot = self.slot_of(item.name, item.at)
                kinds = self.kinds_of(slot, item.name)
            else:
                expr = self.read(item)
                if is_null_literal(expr):
                    continue
                slot = self.found(expr, f"{number}", item.at)
                assert isinstance(expr.type, ir.RefValue)  # noqa: S101 - `found` has seen to it
                catalog = self.binding.catalog
                held: Mapping[str, Entity] = catalog.edges if expr.type.edge else catalog.nodes
                kinds = tuple(held[t] for t in expr.type.types)
            targets = tuple(
                ir.Target(EDGE if isinstance(k, EdgeType) else NODE, k.name) for k in kinds
            )
            drops.extend([ir.Drop(slot, targets, detach)] if targets else [])
        drops.sort(key=lambda drop: drop.targets[0].kind is NODE)
        self.steps.extend(drops)


@dataclass(slots=True)
class MergeRun:
    """The MERGE a pattern is made for: the column that says where nothing was found, and the variables it binds."""

    missing: str
    found: set[str]
    at: Located
    once: tuple[str, ...] = ()


def _is_new(merging: MergeRun | None, name: str) -> bool:
    return merging is not None and name in merging.found
