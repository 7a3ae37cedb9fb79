"""Clauses that write: what is created, set and deleted for each row that was read.

A query is bound in stages. A stage reads, and then does its steps for each row; whatever reads what the steps made or
set begins another one, which starts from those rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from omnigraph.lang import ir
from omnigraph.lang.bindings import bindings
from omnigraph.lang.cypher import ast, types
from omnigraph.lang.cypher.bind import LOOKING, QUERY, WRITING, QueryBinder, finished
from omnigraph.lang.cypher.binder import ExprBinder
from omnigraph.lang.cypher.coercion import as_type, null_of
from omnigraph.lang.cypher.metadata import STORED
from omnigraph.lang.cypher.scope import BindingState, Flow, parts_of
from omnigraph.lang.diagnostics import Diagnostics
from omnigraph.lang.query.scope import Reported
from omnigraph.lang.source import Located
from omnigraph.lang.tree import is_null_literal
from omnigraph.model.catalog import Catalog, EdgeType, NodeOrEdgeType, NodeType
from omnigraph.model.types import PropType

NODE, EDGE = ir.TargetKind.NODE, ir.TargetKind.EDGE
Given = list[tuple[str, ir.Expr, Located]]
NAMING = (ast.NodePattern, ast.RelPattern, ast.PathPattern, ast.MapProjection)
MADE = f"{ir.FRESH}made"  # whether MERGE created something for a row, rather than found it


def bind_write(
    tree: ast.Query, catalog: Catalog, diagnostics: Diagnostics, values: Mapping[str, Any]
) -> ir.Query:
    """The mutation of a text, its read not rewritten yet."""
    binding = BindingState(catalog, diagnostics, values)
    try:
        if len(tree.parts) > 1:
            raise binding.error("C013", "UNION cannot contain clauses that write", tree.at)
        refuse_history(tree, binding)
        change = WriteBinder(binding).whole(tree.parts[0])
    except Reported:
        diagnostics.raise_errors()
        raise
    return ir.Query(
        QUERY, change.params, ir.Mutation((change,)), procedure_rows=tuple(binding.procedure_rows)
    )


def refuse_history(tree: ast.Query, binding: BindingState) -> None:
    """History changes with every commit: conflicts of a write that depends on it could never be decided."""
    names = {procedure.name.lower() for procedure in STORED}
    for node in parts_of(tree):
        if isinstance(node, ast.Procedure) and node.name.lower() in names:
            message = f"{node.name} is for read queries only"
            help = "Read history first, and pass the result as a parameter."
            raise binding.error("C013", message, node.at, help)


@dataclass(slots=True)
class WriteBinder:
    """Binds one query that writes."""

    binding: BindingState
    flow: Flow = field(default_factory=lambda: Flow(ir.Outer()))
    stages: list[ir.Stage] = field(default_factory=list)
    rest: tuple[ast.Clause, ...] = ()  # the current clause, and those after it
    # Of the current stage:
    columns: list[ir.NamedExpr] = field(default_factory=list)
    slots: dict[str, tuple[str, str]] = field(default_factory=dict)  # of entities that are found
    made: dict[str, str] = field(default_factory=dict)  # type of what a slot was made as
    names: dict[str, str] = field(default_factory=dict)  # slots of variables that are made
    paths: dict[str, tuple[str, ...]] = field(default_factory=dict)  # slots of paths that are made
    steps: list[ir.Step] = field(default_factory=list)
    written: set[str] = field(default_factory=set)  # properties set so far
    gone: set[str] = field(default_factory=set)  # slots of deleted entities
    merging: bool = False  # whether a pattern is made that MERGE looked for
    maker: str | None = None  # the column of the rows MERGE made something for

    def whole(self, part: ast.SingleQuery) -> ir.PatternChange:
        reader = QueryBinder(self.binding)
        returns = None
        for i, clause in enumerate(part.clauses):
            self.rest = part.clauses[i:]
            if self.steps and not isinstance(clause, WRITING):
                self.go_on()
            if isinstance(clause, WRITING):
                self.write(clause)
            elif isinstance(clause, ast.Return):
                last = ast.SingleQuery(self.rest, clause.at)
                columns = reader.clauses(self.flow, last, returns=True)
                assert columns is not None  # noqa: S101 - of a RETURN
                returns = finished(self.flow.plan, columns)
                break
            else:
                reader.clause(self.flow, clause)
        if self.steps or returns is None:
            self.stages.append(self.stage())
        params = tuple(ir.ParamDecl(n, k) for n, k in self.binding.params.items())
        return ir.PatternChange(params, tuple(self.stages), returns)

    # --- stages ----------------------------------------------------------------------------------------------------

    def stage(self) -> ir.Stage:
        slots = tuple((name, *columns) for name, columns in self.slots.items())
        outputs = tuple(ir.OutputColumn(c.name, c.expr.type) for c in self.columns)
        read = ir.Read(ir.Project(self.flow.plan, tuple(self.columns)), outputs)
        return ir.Stage(read, slots, tuple(self.steps))

    def go_on(self) -> None:
        """End the stage: what follows starts from its rows, and sees what it wrote."""
        values: list[tuple[str, str, ir.ValueType]] = []
        entities: dict[str, tuple[str, str, tuple[str, ...], bool]] = {}
        names: dict[str, ir.Expr] = {}
        for name in self.still_named():
            if name in self.paths:
                held = [self.handed(slot, values, entities) for slot in self.paths[name]]
                names[name] = self.path_of(held)
                continue
            expr = self.flow.names.get(name)
            if name in self.names or isinstance(expr and expr.type, ir.RefValue):
                at = self.rest[0].at
                names[name] = self.handed(self.slot_of(name, at), values, entities, name)
            elif name == MADE and self.maker is not None:
                values.append((MADE, self.maker, types.BOOL))
                names[name] = ir.ValueOf(MADE, types.BOOL)
            elif expr is None or is_null_literal(expr):
                names[name] = ir.Literal(None, ir.NULL)
            else:
                kind = types.plain(expr.type)
                var = self.binding.fresh(name)
                values.append((var, self.carried(expr), kind))
                names[name] = ir.ValueOf(var, kind)
        self.stages.append(self.stage())
        kinds_held = {var: kinds for var, _, kinds, _ in entities.values()}
        self.flow = Flow(ir.Resumed(tuple(values), tuple(entities.values())), names, kinds_held)
        self.columns, self.slots, self.made, self.names = [], {}, {}, {}
        self.paths, self.steps, self.written, self.gone = {}, [], set(), set()
        self.maker = None

    def still_named(self) -> list[str]:
        """The variables that occur in the rest of the query; those of the stage itself are always kept."""
        known = (*self.flow.names, *self.names, *self.paths)
        parts = parts_of(self.rest)
        if any(isinstance(p, ast.Projection) and p.star for p in parts):
            return list(dict.fromkeys(known))
        used = {p.name for p in parts if isinstance(p, ast.Variable)}
        used |= {p.var for p in parts if isinstance(p, NAMING) and p.var is not None}
        return [n for n in dict.fromkeys(known) if n in used or n.startswith(ir.FRESH)]

    def handed(
        self,
        slot: str,
        values: list[tuple[str, str, ir.ValueType]],
        entities: dict[str, tuple[str, str, tuple[str, ...], bool]],
        name: str = "",
    ) -> ir.Expr:
        """The entity in a slot as the rows of the next stage have it."""
        kinds = self.kinds_of(slot, name)
        edge = bool(kinds) and isinstance(kinds[0], EdgeType)
        if slot not in entities:
            var = self.binding.fresh(name)
            entities[slot] = (var, slot, tuple(kind.name for kind in kinds), edge)
            if slot in self.gone and slot in self.slots:
                kind = self.binding.fresh()
                values.append((kind, self.slots[slot][1], types.STRING))
                self.binding.deleted[var] = ir.ValueOf(kind, types.STRING)
        var, _, held, edge = entities[slot]
        return ir.RefOf(var, ir.RefValue(held, edge))

    def path_of(self, items: list[ir.Expr]) -> ir.Expr:
        refs = [item.type for item in items if isinstance(item.type, ir.RefValue)]
        nodes = dict.fromkeys(t for ref in refs if not ref.edge for t in ref.types)
        edges = dict.fromkeys(t for ref in refs if ref.edge for t in ref.types)
        return ir.MakeTrail(tuple(items), ir.TrailValue(tuple(nodes), tuple(edges)))

    def carried(self, expr: ir.Expr) -> str:
        """A column with a value for the next stage."""
        if types.holds_reference(expr.type):
            expr = ir.Carried(expr, types.carried(types.plain(expr.type)))
        return self.column(expr)

    def write(self, clause: ast.Writing) -> None:
        match clause:
            case ast.Create(patterns):
                for pattern in patterns:
                    self.require_plain(pattern)
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
        if is_null_literal(expr) and (
            types.is_null(expr.type) or not isinstance(expr.type, PropType)
        ):
            expr = null_of(types.STRING)
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
            raise self.binding.unknown("C007", f"unknown variable `{name}`", at, name, known)
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

    def kinds_of(self, slot: str, name: str) -> tuple[NodeOrEdgeType, ...]:
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

    def require_plain(self, pattern: ast.PathPattern) -> None:
        if pattern.shortest is not None:
            raise self.binding.error("C017", "this pattern cannot be created", pattern.at)

    def create(self, pattern: ast.PathPattern, merging: MergeRun | None = None) -> None:
        first = pattern.nodes[0]
        known = first.var in self.names or first.var in self.flow.names
        if not pattern.rels and known and not _is_new(merging, first.var or ""):
            raise self.binding.error("C008", f"`{first.var}` is already bound", pattern.at)
        slots = [self.node(node, merging) for node in pattern.nodes]
        whole = [slots[0][0]]
        for i, rel in enumerate(pattern.rels):
            whole += [self.rel(rel, slots[i], slots[i + 1], merging), slots[i + 1][0]]
        if pattern.var is not None:
            self.paths[pattern.var] = tuple(whole)

    def node(self, node: ast.NodePattern, merging: MergeRun | None) -> tuple[str, str]:
        """The slot of a node, new or known, and its name."""
        name = node.var
        known = name is not None and (
            name in self.names or (name in self.flow.names and not _is_new(merging, name))
        )
        if known:
            assert name is not None  # noqa: S101
            if node.labels or node.properties is not None:
                message = f"`{name}` is already bound; labels and properties are not allowed here"
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
            message = "a created node needs a label"
            raise self.binding.error("C017", message, node.at, "Name its type: (:Type {…}).")
        if len(found) != 1:
            labels = ":".join(node.labels)
            message = f"no single node type has the labels :{labels}"
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
    ) -> str:
        """The slot of a relationship that is made."""
        if rel.hops is not None or len(rel.types) != 1 or (rel.arrow == "-" and merging is None):
            message = "a created relationship needs one type and a direction"
            raise self.binding.error("C017", message, rel.at)
        if rel.var is not None and (
            rel.var in self.names or (rel.var in self.flow.names and not _is_new(merging, rel.var))
        ):
            raise self.binding.error("C008", f"`{rel.var}` is already bound", rel.at)
        src, dst = (right, left) if rel.arrow == "<-" else (left, right)
        kind = self.one_edge(rel, src, dst)
        slot = self.new_slot(rel.var, merging)
        values = self.properties(rel.properties, kind, rel.at)
        target = ir.Target(EDGE, kind.name)
        self.steps.append(self.make(target, slot, values, src[0], dst[0], merging))
        self.made[slot] = f"-{kind.name}"
        if rel.var is not None:
            self.names[rel.var] = slot
        return slot

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
        help = "Give the node types of its ends." if found else ""
        raise self.binding.error("C017", message, rel.at, help)

    def properties(
        self, given: ast.Expr | None, kind: NodeOrEdgeType, at: Located
    ) -> tuple[tuple[str, str], ...]:
        found = []
        for name, expr, place in self.map_of(given, at):
            self.known_property(kind, name, place)
            found.append((name, self.column(self.storable(expr, kind, name, place))))
        return tuple(found)

    def storable(self, expr: ir.Expr, kind: NodeOrEdgeType, name: str, at: Located) -> ir.Expr:
        """A value as its property can hold it."""
        prop = kind.properties[name]
        if types.is_null(expr.type):
            return null_of(types.plain(prop.type))
        if expr.type == types.list_of(ir.NULL) and types.is_list(prop.type):
            return as_type(expr, types.plain(prop.type))
        if not types.holds_temporal(expr.type):
            return expr
        from omnigraph.lang.cypher.temporal import stored_time

        return stored_time(self.binder, expr, prop, at)

    def known_property(self, kind: NodeOrEdgeType, name: str, at: Located) -> None:
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
        """A value as the rows have it; if it depends on what the query itself wrote, a new stage begins."""
        if self.reads_own(node):
            if self.merging:
                message = "the pattern of MERGE reads what it creates"
                raise self.binding.error("C015", message, node.at)
            self.go_on()
        return self.binder.expr(node)

    def reads_own(self, node: ast.Expr) -> bool:
        """Whether a value depends on what this stage creates, sets or deletes."""
        parts = parts_of(node)
        named = {part.name for part in parts if isinstance(part, ast.Variable)}
        if named & (self.names.keys() | self.paths.keys()) or (self.gone and named):
            return True
        properties = {part.name for part in parts if isinstance(part, ast.PropertyAccess)}
        whole = any(isinstance(part, (ast.MapProjection, ast.Call, *LOOKING)) for part in parts)
        return bool(properties & self.written) or (bool(self.steps) and whole and bool(named))

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
        """Found matches are used; for rows without any, the whole pattern is created."""
        if self.steps:
            self.go_on()
        pattern = clause.pattern
        before = set(self.flow.names)
        reader = QueryBinder(self.binding)
        known = bindings(self.flow.plan)
        reader.optional(self.flow, ast.Match((pattern,), None, True, clause.at))
        assert isinstance(self.flow.plan, ir.Optional)  # noqa: S101
        new = [v for v in self.flow.plan.vars if v not in known]
        missing = ir.IsNull(ir.IdOf(new[0], types.STRING)) if new else ir.Literal(False, ir.BOOL)
        found = set(self.flow.names) - before
        self.merging = True
        self.create(pattern, MergeRun(self.column(missing), found, clause.at))
        self.merging = False
        self.flow.names[MADE] = missing
        if self.steps and isinstance(last := self.steps[-1], ir.Make):
            self.maker = self.binding.fresh()
            self.steps[-1] = replace(last, first=self.maker)
        for items, made in ((clause.on_create, True), (clause.on_match, False)):
            for item in items:
                self.set_item(item, made)
        del self.flow.names[MADE]
        self.maker = None

    # --- set and remove --------------------------------------------------------------------------------------------

    def set_item(self, item: ast.SetItem, made: bool | None) -> None:
        """A new value; of MERGE for the rows it made something for, or for the others."""
        if item.operator == ":":
            message = "a node keeps its type; labels cannot be added or removed"
            help = "Create a node of the other type, or keep the state in a property."
            raise self.binding.error("C004", message, item.at, help)
        match item.target:
            case ast.PropertyAccess(ast.Variable(name), prop):
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
            values = tuple((n, self.column(self.storable(e, kind, n, at))) for n, e, at in own)
            if values:
                target = ir.Target(EDGE if isinstance(kind, EdgeType) else NODE, kind.name)
                rows = None if made is None else self.maker or self.column(self.flow.names[MADE])
                only, unless = (rows, None) if made else (None, rows)
                self.put(ir.Put(slot, (target,), values, only, unless))
        self.written |= {n for n, _, _ in given}

    def put(self, step: ir.Put) -> None:
        """Values for an entity already changed are added to that change; the last of two counts."""
        last = self.steps[-1] if self.steps else None
        if isinstance(last, ir.Put) and replace(last, values=step.values) == step:
            self.steps[-1] = replace(step, values=tuple(dict([*last.values, *step.values]).items()))
        else:
            self.steps.append(step)

    # --- delete ----------------------------------------------------------------------------------------------------

    def delete(self, items: tuple[ast.Expr, ...], detach: bool) -> None:
        """Relationships first, so that nodes may go after them."""
        drops: list[ir.Drop] = []
        for number, item in enumerate(items):
            if isinstance(item, ast.Variable) and not self.is_path(item.name):
                slot = self.slot_of(item.name, item.at)
                kinds = self.kinds_of(slot, item.name)
            else:
                expr = self.read(item)
                if is_null_literal(expr):
                    continue
                if isinstance(expr.type, ir.TrailValue):
                    drops.extend(self.path_drops(expr, expr.type, detach))
                    continue
                slot = self.found(expr, f"{number}", item.at)
                assert isinstance(expr.type, ir.RefValue)  # noqa: S101 - `found` has seen to it
                catalog = self.binding.catalog
                held: Mapping[str, NodeOrEdgeType] = (
                    catalog.edges if expr.type.edge else catalog.nodes
                )
                kinds = tuple(held[t] for t in expr.type.types)
            targets = tuple(
                ir.Target(EDGE if isinstance(k, EdgeType) else NODE, k.name) for k in kinds
            )
            drops.extend([ir.Drop(slot, targets, detach)] if targets else [])
            self.gone.add(slot)
        drops.sort(key=lambda drop: drop.targets[0].kind is NODE)
        self.steps.extend(drops)

    def is_path(self, name: str) -> bool:
        known = self.flow.names.get(name)
        return name in self.paths or isinstance(known and known.type, ir.TrailValue)

    def path_drops(self, path: ir.Expr, kind: ir.TrailValue, detach: bool) -> Iterator[ir.Drop]:
        """Everything on a path."""
        catalog = self.binding.catalog
        for edges, names in ((True, kind.edges), (False, kind.nodes)):
            if not names:
                continue
            item = ir.RefValue(names, edges)
            members = ir.TrailGet(path, edges, ir.ListValue(item))
            var = self.binding.fresh()
            ref, texts = ir.ValueOf(var, item), types.list_of(types.STRING)
            ids = ir.Each(var, members, None, ir.RefGet(ref, "id", types.STRING), texts)
            held = ir.Each(var, members, None, ir.RefType(ref), texts)
            slot = f"{ir.FRESH}p{len(self.slots)}"
            self.slots[slot] = (self.column(ids), self.column(held))
            yield ir.Drop(slot, tuple(_targets(catalog, names, edges)), detach)


def _targets(catalog: Catalog, names: tuple[str, ...], edges: bool) -> Iterator[ir.Target]:
    known = catalog.edges if edges else catalog.nodes
    return (ir.Target(EDGE if edges else NODE, name) for name in names if name in known)


@dataclass(slots=True)
class MergeRun:
    """The MERGE a pattern is made for: the column that marks rows without a match, and the variables it binds."""

    missing: str
    found: set[str]
    at: Located
    once: tuple[str, ...] = ()


def _is_new(merging: MergeRun | None, name: str) -> bool:
    return merging is not None and name in merging.found
