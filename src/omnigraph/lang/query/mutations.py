"""Checking mutation statements, which need no plan: their checked form is that of the intermediate representation."""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.lang import ir
from omnigraph.lang.query import ast
from omnigraph.lang.query.patterns import check_enum
from omnigraph.lang.query.scope import IDS, CheckContext, Reported, Scope
from omnigraph.lang.query.typer import ENDS, Typer, no_aggregate, no_ranking
from omnigraph.lang.query.typing_rules import compatible, is_string, time_help
from omnigraph.lang.tree import is_null_literal, walk
from omnigraph.model.catalog import EdgeType, NodeOrEdgeType, Property
from omnigraph.model.types import PropType
from omnigraph.values.misfit import Misfit
from omnigraph.values.reading import read_value

FROM, TO = "from", "to"


def check_mutation(context: CheckContext, body: ast.Mutation) -> ir.Mutation:
    """The statements of a mutation; errors of one do not hide those of the next."""
    statements = []
    for node in body.statements:
        try:
            statements.append(_statement(context, node))
        except Reported:
            continue
    _check_mixture(context, body)
    return ir.Mutation(tuple(statements))


def _check_mixture(context: CheckContext, body: ast.Mutation) -> None:
    deletes = [s for s in body.statements if isinstance(s, ast.Delete)]
    if deletes and len(deletes) < len(body.statements):
        message = "one mutation cannot combine deletes with inserts or updates"
        context.diagnostics.error("Q015", message, deletes[0].at)


def _statement(context: CheckContext, node: ast.Statement) -> ir.Statement:
    kind = context.catalog.entity(node.type_name)
    if kind is None:
        message = f"unknown node or edge type `{node.type_name}`"
        options = [*context.catalog.nodes, *context.catalog.edges]
        raise context.unknown("T10", message, node.type_at, node.type_name, options)
    checker = StatementChecker(context, kind)
    match node:
        case ast.Insert():
            return checker.insert(node)
        case ast.Update():
            return checker.update(node)
        case ast.Delete():
            return ir.Delete(checker.target(), checker.where(node.where))


@dataclass(slots=True)
class StatementChecker:
    """Checks one statement about one type."""

    context: CheckContext
    kind: NodeOrEdgeType

    @property
    def is_edge(self) -> bool:
        return isinstance(self.kind, EdgeType)

    def target(self) -> ir.Target:
        return ir.Target(ir.TargetKind(self.kind.kind), self.kind.name)

    # --- insert ---

    def insert(self, node: ast.Insert) -> ir.Insert:
        rows = []
        for row in node.rows:
            try:
                rows.append(self.row(row, node))
            except Reported:
                continue
        return ir.Insert(self.target(), tuple(rows))

    def row(self, row: ast.Row, node: ast.Insert) -> ir.InsertRow:
        if not row.fields:
            raise self.context.error("T10", "an insert names at least one value", row.at)
        typer = Typer(self.context, Scope(), self.no_column, no_aggregate, no_ranking)
        ends, values = {}, []
        for part in self.assigned_once(row.fields):
            try:
                if self.is_edge and part.name in (FROM, TO):
                    ends[part.name] = self.end(typer, part)
                else:
                    values.append(self.assignment(typer, part))
            except Reported:
                continue
        if all(
            self.knows(part.name) for part in row.fields
        ):  # a misspelt name is not reported as missing as well
            self.check_required(row, node)
        return ir.InsertRow(tuple(values), ends.get(FROM), ends.get(TO))

    def knows(self, name: str) -> bool:
        return name in self.kind.properties or (self.is_edge and name in (FROM, TO))

    def no_column(self, node: ast.Name) -> ir.Expr:
        help = f'A text is written in quotes: "{node.name}".'
        message = f"`{node.name}` is not a value; an insert takes literals and parameters"
        raise self.context.error("T14", message, node.at, help)

    def end(self, typer: Typer, part: ast.Field) -> ir.Expr:
        value = self.typed_value(typer, part)
        if not is_string(value.type) or is_null_literal(value):
            message = f"`{part.name}` takes the id of a node, a String, not {value.type}"
            code = "T3" if isinstance(value, ir.Literal) else "T7"
            raise self.context.error(code, message, part.value.at)
        return value

    def check_required(self, row: ast.Row, node: ast.Insert) -> None:
        """Everything that may not be null is given, or has a default, or is embedded from a given text."""
        given = {part.name for part in row.fields}
        for name in (FROM, TO) if self.is_edge else ():
            if name not in given:
                message = f"an insert of `{node.type_name}` names its endpoint `{name}`"
                self.context.diagnostics.error("T12", message, row.at)
        for prop in self.kind.required():
            source = prop.embed.source if prop.embed else None
            if prop.name in given or prop.default is not None or source in given:
                continue
            also = f" or its source `{source}`" if source else ""
            message = f"an insert of `{node.type_name}` names `{prop.name}`{also}"
            self.context.diagnostics.error("T12", message, row.at)

    # --- update and delete ---

    def update(self, node: ast.Update) -> ir.Update:
        if not node.fields:
            self.context.diagnostics.error("T10", "an update sets at least one value", node.at)
        typer = Typer(self.context, Scope(), self.column, no_aggregate, no_ranking)
        values = []
        for part in self.assigned_once(node.fields):
            try:
                self.check_updatable(part)
                values.append(self.assignment(typer, part))
            except Reported:
                continue
        return ir.Update(self.target(), tuple(values), self.where(node.where))

    def check_updatable(self, part: ast.Field) -> None:
        key = self.kind.key or ()
        if part.name in key or (self.is_edge and part.name in ENDS):
            what = "the key" if part.name in key else "an end of the edge"
            message = f"`{part.name}` is {what} and cannot be updated"
            raise self.context.error("Q014", message, part.at)

    def where(self, node: ast.Expr) -> ir.Expr:
        typer = Typer(self.context, Scope(), self.filter_column, no_aggregate, no_ranking)
        self.check_variables(typer, node)
        expr = typer.condition(node)
        self.check_enums(expr, node)
        return expr

    def check_variables(self, typer: Typer, node: ast.Expr) -> None:
        """A variable in a condition is a parameter; patterns are for reads."""
        if isinstance(node, ast.Binary):
            for side in (node.left, node.right):
                self.check_variables(typer, side)
        elif isinstance(node, ast.Variable) and node.name not in self.context.params:
            raise self.not_a_parameter(node)

    def check_enums(self, expr: ir.Expr, node: ast.Expr) -> None:
        for part in walk(expr):
            match part:
                case ir.Compare(left=ir.Column() as column, right=ir.Literal() as value) | (
                    ir.Compare(left=ir.Literal() as value, right=ir.Column() as column)
                ):
                    check_enum(self.context, column.property, column.type, value, node)
                case _:
                    pass

    def column(self, node: ast.Name) -> ir.Expr:
        """A bare word in a statement is a column of the row as it was."""
        if node.name in IDS:
            return ir.IdOf(ir.ROW)
        if self.is_edge and node.name in ENDS:
            return ir.EndpointOf(ir.ROW, ENDS[node.name])
        prop = self.property(node.name, node)
        if prop.type.is_blob:
            message = f"the Blob property `{node.name}` is not a value"
            raise self.context.error("T24", message, node.at)
        return ir.Column(ir.ROW, prop.name, prop.type)

    def filter_column(self, node: ast.Name) -> ir.Expr:
        prop = self.kind.properties.get(node.name)
        if prop is not None and prop.type.is_blob:
            message = f"the Blob property `{node.name}` cannot be used in a condition"
            raise self.context.error("T11", message, node.at)
        return self.column(node)

    # --- values ---

    def assigned_once(self, fields: tuple[ast.Field, ...]) -> list[ast.Field]:
        found: dict[str, ast.Field] = {}
        for part in fields:
            if part.name in found:
                message = f"`{part.name}` is assigned twice"
                self.context.diagnostics.error("T13", message, part.at)
            found.setdefault(part.name, part)
        return list(found.values())

    def property(self, name: str, at: ast.Field | ast.Name) -> Property:
        prop = self.kind.properties.get(name)
        if prop is None:
            options = [*self.kind.properties, *((FROM, TO) if self.is_edge else ())]
            message = f"type `{self.kind.name}` has no property `{name}`"
            raise self.context.unknown("T11", message, at.at, name, options)
        return prop

    def assignment(self, typer: Typer, part: ast.Field) -> ir.Assign:
        prop = self.property(part.name, part)
        value = self.typed_value(typer, part, blob=prop.type.is_blob)
        return ir.Assign(prop.name, self.fit(prop, value, part))

    def typed_value(self, typer: Typer, part: ast.Field, *, blob: bool = False) -> ir.Expr:
        node = part.value
        if isinstance(node, ast.Variable):
            kind = self.context.params.get(node.name)
            if kind is None:
                raise self.not_a_parameter(node)
            if blob and kind.is_blob:
                return ir.Param(node.name, kind)
        return typer.value(node)

    def not_a_parameter(self, node: ast.Variable) -> Reported:
        message = f"`${node.name}` is not a parameter of the query"
        options = [f"${name}" for name in self.context.params]
        return self.context.unknown("T14", message, node.at, f"${node.name}", options)

    def fit(self, prop: Property, value: ir.Expr, part: ast.Field) -> ir.Expr:
        """The value as the property takes it."""
        if isinstance(value, ir.Literal):
            return self.fit_literal(prop, value, part)
        kind = prop.type
        text_for_blob = kind.is_blob and (is_string(value.type) or _is_blob(value.type))
        if not text_for_blob and not compatible(kind, value.type):
            message = f"the property `{prop.name}` has the type {kind}, not {value.type}"
            raise self.context.error("T7", message, part.value.at)
        return value

    def fit_literal(self, prop: Property, value: ir.Literal, part: ast.Field) -> ir.Expr:
        kind, at = prop.type, part.value.at
        if value.value is None:
            if not kind.nullable:
                message = f"the property `{prop.name}` cannot be null"
                raise self.context.error("T3", message, at)
            return ir.Literal(None, kind)
        if kind.is_blob and is_string(value.type):
            return value
        any_list = kind.is_vector or (kind.is_list and value.value == ())
        if not any_list and not compatible(kind, value.type):
            message = f"the property `{prop.name}` has the type {kind}, not {value.type}"
            raise self.context.error("T3", message, at, time_help(kind, value))
        check_enum(self.context, prop.name, kind, value, part.value)
        try:
            return ir.Literal(read_value(value.value, kind), kind)
        except Misfit as misfit:
            message = str(misfit.at(f"the property `{prop.name}`", kind))
            raise self.context.error("T3", message, at) from None


def _is_blob(kind: ir.ValueType) -> bool:
    return isinstance(kind, PropType) and kind.is_blob
