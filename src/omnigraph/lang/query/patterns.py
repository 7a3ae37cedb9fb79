"""Checking patterns, clause by clause in the order of the text."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from omnigraph.lang import ir
from omnigraph.lang.query import ast, checked
from omnigraph.lang.query.aggregates import AggregateTyper
from omnigraph.lang.query.scope import (
    ANONYMOUS,
    IDS,
    CheckContext,
    Reported,
    Scope,
    Var,
    VarKind,
    edge_var,
    interface_var,
    node_var,
)
from omnigraph.lang.query.typer import Typer, no_aggregate, no_ranking
from omnigraph.lang.query.typing_rules import compatible, is_plain, time_help
from omnigraph.lang.tree import is_null_literal, variables
from omnigraph.model.catalog import EdgeType
from omnigraph.model.types import PropType

BROKEN = VarKind.BROKEN


class Anonymous:
    """Gives each `$_` a unique name, so that they are never joined."""

    def __init__(self) -> None:
        self.count = 0

    def name(self) -> str:
        self.count += 1
        return f"{ir.FRESH}_{self.count}"


@dataclass(slots=True)
class PatternChecker:
    """Checks one block and those nested in it; `scope` grows with every clause."""

    context: CheckContext
    scope: Scope
    anonymous: Anonymous
    bindings: list[checked.CheckedBinding] = field(default_factory=list)
    traversals: list[checked.CheckedTraversal] = field(default_factory=list)
    filters: list[ir.Expr] = field(default_factory=list)
    nested: list[checked.Nested] = field(default_factory=list)
    mentioned: set[str] = field(default_factory=set)  # outer variables this block uses

    def block(self, clauses: tuple[ast.Clause, ...]) -> checked.CheckedBlock:
        for clause in clauses:
            try:
                self.clause(clause)
            except Reported:
                continue
        return checked.CheckedBlock(
            tuple(self.bindings),
            tuple(self.traversals),
            tuple(self.filters),
            tuple(self.nested),
        )

    def clause(self, clause: ast.Clause) -> None:
        match clause:
            case ast.Binding():
                self.binding(clause)
            case ast.Traversal():
                self.traversal(clause)
            case ast.Block():
                self.nested_block(clause)
            case ast.Filter():
                self.filter(clause)

    # --- bindings ---

    def binding(self, clause: ast.Binding) -> None:
        name = clause.var.name
        try:
            var = self.declared(clause)
            self.may_bind(clause.var, var)
        except Reported:
            self.break_off(name)
            raise
        self.mention(name)
        actual = self.anonymous.name() if name == ANONYMOUS else name
        if name not in self.scope.vars:
            self.scope.bind(var)
        known = replace(var, name=actual)
        predicates = []
        for part in clause.fields:
            try:
                predicates.append(self.match_field(known, part))
            except Reported:
                continue
        self.bindings.append(checked.CheckedBinding(actual, var.types, tuple(predicates)))

    def declared(self, clause: ast.Binding) -> Var:
        """The variable that a binding declares, from the type it names."""
        catalog, name = self.context.catalog, clause.type_name
        if name in catalog.nodes:
            return node_var(clause.var.name, catalog, (name,))
        if name in catalog.interfaces:
            return interface_var(clause.var.name, catalog, catalog.interfaces[name])
        if name in catalog.edges:
            message = f"`{name}` is an edge type; a variable is bound to it between two nodes"
            help = f"Write `$a ${clause.var.name}:{name[0].lower() + name[1:]} $b`."
            raise self.context.error("T1", message, clause.type_at, help)
        options = [*catalog.nodes, *catalog.interfaces]
        message = f"unknown node type `{name}`"
        raise self.context.unknown("T1", message, clause.type_at, name, options)

    def may_bind(self, node: ast.Variable, var: Var) -> None:
        """Whether the variable is free, or bound to the same type already."""
        known = self.bound(node)
        if known is None:
            return
        if known.kind is not VarKind.NODE:
            code, what = ("T23", "an edge") if known.kind is VarKind.EDGE else ("Q018", "a path")
            message = f"`${node.name}` is the variable of {what}, not of a node"
            raise self.context.error(code, message, node.at)
        if known.types != var.types:
            message = f"`${node.name}` already has the type `{known.label}`, not `{var.label}`"
            raise self.context.error("T5", message, node.at)
        self.not_optional(known, node)

    def bound(self, node: ast.Variable) -> Var | None:
        """What the variable is bound to, if bound."""
        self.not_a_parameter(node)
        known = self.scope.vars.get(node.name)
        if known is not None and known.kind is BROKEN:
            raise Reported
        return known

    def not_a_parameter(self, node: ast.Variable) -> None:
        if node.name in self.context.params:
            message = f"`${node.name}` is a parameter and cannot be bound by a pattern"
            raise self.context.error("Q004", message, node.at)

    def not_optional(self, var: Var, node: ast.Variable) -> None:
        """A required clause would turn an optional variable into a required one."""
        if var.optional and var.name not in self.scope.outer:
            message = f"`${var.name}` is bound by an optional block"
            help = "Move this clause into the optional block, or into a separate one."
            raise self.context.error("T5", message, node.at, help)

    def break_off(self, name: str) -> None:
        """Remember a variable whose clause has an error, so that its uses are not errors too."""
        if name not in self.scope.vars and name not in self.context.params:
            self.scope.bind(Var(name, BROKEN))

    def mention(self, name: str) -> None:
        if name in self.scope.outer:
            self.mentioned.add(name)

    # --- conditions in braces ---

    def match_field(self, var: Var, part: ast.Field) -> ir.Expr:
        prop = var.properties.get(part.name)
        if prop is None and part.name not in IDS:
            message = f"type `{var.label}` has no property `{part.name}`"
            options = [*var.properties, *IDS]
            raise self.context.unknown("T2", message, part.at, part.name, options)
        if prop is not None and prop.type.is_blob:
            message = f"the Blob property `{part.name}` cannot be matched"
            raise self.context.error("T3", message, part.at)
        value = self.typer().constant(part.value, "T14", "values in braces are constants")
        self.check_match(part, prop.type if prop else ir.STRING, value)
        if prop is None:
            return ir.Compare(ir.CompareOp.EQ, ir.IdOf(var.name), value)
        column = ir.Column(var.name, prop.name, prop.type)
        return (
            ir.Has(column, value)
            if prop.type.is_list
            else ir.Compare(ir.CompareOp.EQ, column, value)
        )

    def check_match(self, part: ast.Field, kind: PropType, value: ir.Expr) -> None:
        name, at = part.name, part.value.at
        code = "T3" if isinstance(value, ir.Literal) else "T7"
        if is_null_literal(value):
            help = f"Write the condition `$x.{name} is null`."
            raise self.context.error("T3", f"`{name}` cannot be matched with null", at, help)
        if kind.is_vector:
            message = f"the vector `{name}` cannot be matched; order by nearest(…)"
            raise self.context.error(code, message, at)
        element = kind.element() if kind.is_list else kind
        if kind.is_list and isinstance(value.type, PropType) and value.type.is_list:
            message = f"the list `{name}` is matched with one of its members, not with a list"
            raise self.context.error(code, message, at)
        if not is_plain(value.type) or not compatible(element, value.type):
            message = f"the property `{name}` has the type {kind}, not {value.type}"
            raise self.context.error(code, message, at, time_help(kind, value))
        check_enum(self.context, name, kind, value, part.value)

    # --- traversals ---

    def traversal(self, clause: ast.Traversal) -> None:
        try:
            found = self.resolved(clause)
        except Reported:
            for node in (clause.src, clause.dst, clause.edge_var, clause.path):
                if node is not None:
                    self.break_off(node.name)
            raise
        self.traversals.append(found)

    def resolved(self, clause: ast.Traversal) -> checked.CheckedTraversal:
        for node in (clause.src, clause.dst):
            self.endpoint(node)
        self.own_name(clause)
        low, high = self.hops(clause)
        steps = resolve_steps(self.context, self.scope, clause)
        src = self.reach(clause.src, tuple(dict.fromkeys(s.near for s in steps)))
        dst = self.reach(clause.dst, tuple(dict.fromkeys(s.far for s in steps)))
        edge, path = None, None
        if clause.edge_var is not None:
            types = tuple(dict.fromkeys(s.edge for s in steps))
            edge = self.name_of(clause.edge_var)
            self.scope.bind(edge_var(clause.edge_var.name, self.context.catalog, types))
        if clause.path is not None:
            path = self.name_of(clause.path)
            self.scope.bind(Var(clause.path.name, VarKind.PATH))
        return checked.CheckedTraversal(src, dst, steps, low, high, edge, path, clause.every)

    def endpoint(self, node: ast.Variable) -> None:
        """An endpoint must be a node, or not yet bound."""
        known = self.bound(node)
        if known is None:
            return
        if known.kind is VarKind.EDGE:
            message = f"the edge variable `${node.name}` cannot be an endpoint"
            raise self.context.error("T23", message, node.at)
        if known.kind is VarKind.PATH:
            message = f"the path `${node.name}` cannot be an endpoint"
            raise self.context.error("Q018", message, node.at)
        self.not_optional(known, node)
        self.mention(node.name)

    def own_name(self, clause: ast.Traversal) -> None:
        """The variable of an edge or a path must be new, and not an endpoint of its own traversal."""
        for node, code in ((clause.edge_var, "T23"), (clause.path, "Q018")):
            if node is None:
                continue
            self.not_a_parameter(node)
            ends = (clause.src.name, clause.dst.name)
            if node.name != ANONYMOUS and (node.name in self.scope.vars or node.name in ends):
                message = f"`${node.name}` is already in use; choose another name"
                raise self.context.error(code, message, node.at)

    def hops(self, clause: ast.Traversal) -> tuple[int, int]:
        hops = clause.hops
        if hops is None:
            return 1, 1
        if clause.edge_var is not None:
            message = "a traversal that binds its edge has one hop"
            raise self.context.error("T23", message, hops.at)
        if hops.maximum is None:
            help = f"Give a largest number of hops: {{{hops.minimum},5}}."
            raise self.context.error("T15", "the number of hops has no bound", hops.at, help)
        if hops.minimum < 1:
            raise self.context.error("T15", "a traversal has at least one hop", hops.at)
        if hops.maximum < hops.minimum:
            message = f"the bounds {{{hops.minimum},{hops.maximum}}} are in the wrong order"
            raise self.context.error("T15", message, hops.at)
        return hops.minimum, hops.maximum

    def reach(self, node: ast.Variable, types: tuple[str, ...]) -> str:
        """Bind an endpoint that is new, with the types the edges lead to."""
        if node.name != ANONYMOUS and node.name not in self.scope.vars:
            self.scope.bind(node_var(node.name, self.context.catalog, types))
        return self.name_of(node)

    def name_of(self, node: ast.Variable) -> str:
        return self.anonymous.name() if node.name == ANONYMOUS else node.name

    # --- blocks and conditions ---

    def nested_block(self, clause: ast.Block) -> None:
        inner = PatternChecker(self.context, self.scope.inner(), self.anonymous)
        errors = self.context.diagnostics.errors
        block = inner.block(clause.clauses)
        if not inner.mentioned and self.context.diagnostics.errors == errors:
            word = clause.measure.aggregate.name if clause.measure else clause.kind.value
            message = f"the `{word}` block mentions no variable from outside"
            raise self.context.error("T9", message, clause.at)
        self.mentioned |= inner.mentioned & self.scope.outer
        measure = None if clause.measure is None else self.measure(clause.measure, inner.scope)
        self.nested.append(checked.Nested(clause.kind, block, measure))
        if clause.kind is ast.BlockKind.OPTIONAL:
            for name, var in inner.scope.vars.items():
                if name not in self.scope.vars:
                    self.scope.bind(replace(var, optional=True))

    def measure(self, node: ast.BlockMeasure, inner: Scope) -> ir.BlockTest:
        """The aggregate over the block, and the comparison of it with a value of the row."""
        found = AggregateTyper(self.context, inner, no_ranking).typed(self.typer(), node.aggregate)
        found = replace(found, name=f"{ir.FRESH}m")

        def output(typer: Typer, call: ast.Call) -> ir.Expr:
            if call is not node.aggregate:
                return no_aggregate(typer, call)
            return ir.Output(found.name, found.type)

        typer = Typer(self.context, self.scope, self.no_name, output, no_ranking)
        predicate = typer.condition(ast.Binary(node.op, node.aggregate, node.value, node.at))
        for name in variables(predicate):
            self.mention(name)
        return ir.BlockTest(found, predicate)

    def filter(self, clause: ast.Filter) -> None:
        typed = self.typer().condition(clause.expr)
        for name in variables(typed):
            self.mention(name)
        self.filters.append(typed)

    def typer(self) -> Typer:
        return Typer(self.context, self.scope, self.no_name, no_aggregate, no_ranking)

    def no_name(self, node: ast.Name) -> ir.Expr:
        options = [f"${name}" for name in (*self.scope.vars, *self.context.params)]
        message = f"a bare word `{node.name}` means nothing in a pattern"
        if f"${node.name}" in options:
            help = f"Did you mean `${node.name}`?"
            raise self.context.error("Q005", message, node.at, help)
        help = f'A text is written in quotes: "{node.name}".'
        raise self.context.error("Q005", message, node.at, help)


def check_enum(
    context: CheckContext, name: str, kind: PropType, value: ir.Expr, node: ast.Expr
) -> None:
    """A literal for an enum is one of its values."""
    if kind.enum is None or not isinstance(value, ir.Literal) or not isinstance(value.value, str):
        return
    if value.value not in kind.enum:
        message = f"`{name}` is one of {', '.join(kind.enum)}, not `{value.value}`"
        raise context.unknown("T3", message, node.at, value.value, kind.enum)


def resolve_steps(
    context: CheckContext, scope: Scope, clause: ast.Traversal
) -> tuple[ir.EdgeStep, ...]:
    """The steps of a traversal from its source to its destination.

    A bound source decides the direction by its type, then a bound destination; else the edge runs as it is stored.
    """
    src, dst = scope.vars.get(clause.src.name), scope.vars.get(clause.dst.name)
    steps: dict[ir.EdgeStep, None] = {}
    for word in clause.edges:
        edge = _edge(context, word)
        if clause.undirected:
            steps |= dict.fromkeys(_undirected(context, edge, word))
        else:
            steps[_directed(context, edge, clause, src, dst)] = None
    for step in steps:
        if clause.src.name == clause.dst.name != ANONYMOUS and step.near != step.far:
            message = f"`{step.edge}` leads from {step.near} to {step.far}, never to the same node"
            raise context.error("T5", message, clause.dst.at)
        _check_end(context, src, step.near, step, clause.src)
        _check_end(context, dst, step.far, step, clause.dst)
    return tuple(steps)


def _edge(context: CheckContext, word: ast.EdgeWord) -> EdgeType:
    edge = context.catalog.edge(word.name)
    if edge is None:
        options = [_as_written(name) for name in context.catalog.edges]
        message = f"unknown edge type `{word.name}`"
        raise context.unknown("T4", message, word.at, word.name, options)
    return edge


def _as_written(name: str) -> str:
    """An edge type as traversals write it, with a small first letter."""
    return name[:1].lower() + name[1:]


def _undirected(context: CheckContext, edge: EdgeType, word: ast.EdgeWord) -> list[ir.EdgeStep]:
    if edge.from_type != edge.to_type:
        message = (
            f"`<{word.name}>` has no direction, but `{edge.name}` leads from {edge.from_type} "
            f"to {edge.to_type}"
        )
        raise context.error("T22", message, word.at)
    return [ir.EdgeStep(edge.name, ir.Direction.BOTH, edge.from_type, edge.to_type)]


def _directed(
    context: CheckContext, edge: EdgeType, clause: ast.Traversal, src: Var | None, dst: Var | None
) -> ir.EdgeStep:
    out = ir.EdgeStep(edge.name, ir.Direction.OUT, edge.from_type, edge.to_type)
    back = ir.EdgeStep(edge.name, ir.Direction.IN, edge.to_type, edge.from_type)
    for node, var, here, there in (
        (clause.src, src, edge.from_type, edge.to_type),
        (clause.dst, dst, edge.to_type, edge.from_type),
    ):
        if var is not None:
            if here in var.types or not var.types:
                return out
            if there in var.types:
                return back
            raise _no_end(context, node, var, edge)
    return out


def _no_end(context: CheckContext, node: ast.Variable, var: Var, edge: EdgeType) -> Exception:
    message = (
        f"`${node.name}` is a {var.label}, but `{edge.name}` leads from {edge.from_type} "
        f"to {edge.to_type}"
    )
    usable = [_as_written(e.name) for t in var.types for e in context.catalog.incident_edges(t)]
    help = f"Edges of {var.label}: {', '.join(dict.fromkeys(usable))}." if usable else ""
    return context.error("T5", message, node.at, help)


def _check_end(
    context: CheckContext, var: Var | None, wanted: str, step: ir.EdgeStep, node: ast.Variable
) -> None:
    if var is not None and var.types and wanted not in var.types:
        message = f"`${node.name}` is a {var.label}, but `{step.edge}` has a {wanted} there"
        raise context.error("T5", message, node.at)
