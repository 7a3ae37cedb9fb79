"""Expressions as written to typed expressions of the intermediate representation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from omnigraph.lang import ir
from omnigraph.lang.cypher import ast, types
from omnigraph.lang.cypher.coercion import as_type, compared, null_of
from omnigraph.lang.cypher.scope import BindingState, Flow
from omnigraph.lang.ir import CompareOp as Op
from omnigraph.lang.query.scope import Reported
from omnigraph.lang.source import Located
from omnigraph.lang.tree import is_null_literal
from omnigraph.model.types import PropType, Scalar

COMPARE = {"=": Op.EQ, "<>": Op.NE, "<": Op.LT, "<=": Op.LE, ">": Op.GT, ">=": Op.GE}
ARITHMETIC = {
    "+": ir.ArithmeticOp.ADD,
    "-": ir.ArithmeticOp.SUB,
    "*": ir.ArithmeticOp.MUL,
    "/": ir.ArithmeticOp.DIV,
    "%": ir.ArithmeticOp.MOD,
}
TESTS = {test.value: test for test in ir.Test}
Aggregates = Callable[[ast.Call], ir.Expr]
Blocks = Callable[["ExprBinder", ast.Expr], ir.Expr]
TRUE, FALSE = ir.Literal(True, ir.BOOL), ir.Literal(False, ir.BOOL)


class ExprBinder:
    """Binds the expressions of one clause.

    `blocks` binds what reads the graph again for each row: patterns, subqueries and pattern comprehensions.
    """

    def __init__(
        self,
        binding: BindingState,
        flow: Flow,
        blocks: Blocks,
        aggregate: Aggregates | None = None,
    ) -> None:
        self.binding = binding
        self.flow = flow
        self.blocks = blocks
        self.aggregate = aggregate
        self.inner: dict[str, ir.Expr] = {}  # variables of lists gone through

    # --- errors ----------------------------------------------------------------------------------------------------

    def wrong(self, message: str, at: Located, help: str = "") -> Reported:
        return self.binding.error("C009", message, at, help)

    def common(self, exprs: list[ir.Expr], at: Located, what: str) -> ir.ValueType:
        """The type all of them share."""
        kind = types.common([e.type for e in exprs])
        if kind is None:
            names = list(dict.fromkeys(types.name_of(e.type) for e in exprs))
            raise self.binding.error("C006", f"{what} has {' and '.join(names[:3])}", at)
        return kind

    # --- expressions -----------------------------------------------------------------------------------------------

    def expr(self, node: ast.Expr) -> ir.Expr:
        found = self._expr(node)
        # What can only be null is null, wherever it comes from.
        return ir.Literal(None, ir.NULL) if found.type == ir.NULL else found

    def _expr(self, node: ast.Expr) -> ir.Expr:
        match node:
            case ast.Literal(value):
                return literal(value)
            case ast.Parameter():
                return self.parameter(node)
            case ast.Variable(name):
                return self.variable(name, node.at)
            case ast.ListLiteral(items):
                return self.list_literal([self.expr(item) for item in items], node.at)
            case ast.MapLiteral(items):
                return map_literal([(name, self.expr(part)) for name, part in items])
            case ast.PropertyAccess(part, name):
                return self.property(self.expr(part), name, node.at)
            case ast.Index() | ast.ListSlice():
                return self.subscript(node)
            case (
                ast.Unary() | ast.Binary() | ast.Connective() | ast.ComparisonChain() | ast.IsNull()
            ):
                return self.operation(node)
            case ast.HasLabels():
                return self.has_labels(node)
            case ast.CaseExpr():
                return self.case(node)
            case ast.Call():
                return self.call(node)
            case ast.ListComprehension() | ast.Quantifier() | ast.Reduce():
                return self.iteration(node)
            case ast.MapProjection():
                return self.map_projection(node)
            case ast.PatternExpr() | ast.PatternComprehension() | ast.Subquery():
                return self.blocks(self, node)

    def parameter(self, node: ast.Parameter) -> ir.Expr:
        binding = self.binding
        if node.name not in binding.values:
            from omnigraph.lang.query.params import ParamMissing

            message = f"the parameter `${node.name}` has no value"
            span = binding.diagnostics.source.span(node.at)
            raise ParamMissing(message, span=span, details={"param": node.name})
        kind = types.of_value(binding.values[node.name])
        if kind is None:
            message = f"the value of `${node.name}` mixes incompatible types"
            raise binding.error("C006", message, node.at)
        if types.is_null(kind):
            return ir.Literal(None, ir.NULL)
        value = binding.values[node.name]
        if types.is_list(kind) and (None in value or types.is_null(types.item_of(kind))):
            kind = ir.ListValue(types.item_of(kind))  # lists of properties hold no nulls
        binding.params[node.name] = kind
        return ir.Param(node.name, kind)

    def variable(self, name: str, at: Located) -> ir.Expr:
        found = self.inner.get(name) or self.flow.names.get(name)
        if found is None:
            known = (*self.inner, *self.flow.names)
            message = f"unknown variable `{name}`"
            raise self.binding.unknown("C007", message, at, name, known)
        return found

    def list_literal(self, items: list[ir.Expr], at: Located) -> ir.Expr:
        kind = self.common(items, at, "the list")
        made = tuple(as_type(item, kind) for item in items)
        whole = types.list_of(kind)
        if isinstance(whole, PropType) and all(isinstance(i, ir.Literal) for i in made):
            values = tuple(i.value for i in made if isinstance(i, ir.Literal))
            if None not in values:
                return ir.Literal(values, whole)
        return ir.MakeList(made, whole)

    # --- properties ------------------------------------------------------------------------------------------------

    def property(self, part: ir.Expr, name: str, at: Located) -> ir.Expr:
        kind = part.type
        if is_null_literal(part):
            return part
        match kind:
            case ir.RefValue():
                return self.entity_property(part, kind, name, at)
            case ir.MapValue(fields):
                found = dict(fields).get(name)
                return ir.Literal(None, ir.NULL) if found is None else ir.FieldOf(part, name, found)
            case _ if types.temporal_kind(kind) is not None:
                return self.time_part(part, name, at)
            case _:
                message = f"{types.name_of(kind)} has no properties"
                raise self.wrong(message, at)

    def entity_property(self, part: ir.Expr, kind: ir.RefValue, name: str, at: Located) -> ir.Expr:
        self.require_there(part, at)
        props = self.binding.property(kind, name)
        if not kind.types:
            return ir.Literal(None, ir.NULL)
        known = [p for p in props if p is not None]
        if not known and name == "id":
            return self.identity(part)
        if not known:
            options = self.binding.property_names(kind)
            message = f"{types.name_of(kind)} has no property `{name}`"
            raise self.binding.unknown("C005", message, at, name, options)
        shared = types.common([p.type for p in known])
        if shared is None:
            declared = sorted({str(p.type.with_nullable(False)) for p in known})
            message = f"`{name}` is {' and '.join(declared)} in the types of {types.name_of(kind)}"
            raise self.binding.error("C006", message, at)
        exact = {p.type.with_nullable(True) for p in known if len(known) == len(props)}
        if isinstance(part, ir.RefOf) and len(exact) == 1 and self.is_exact(part):
            return ir.Column(part.var, name, exact.pop())
        assert isinstance(shared, PropType)  # noqa: S101 - properties have property types
        return ir.RefGet(part, name, shared)

    def require_there(self, part: ir.Expr, at: Located) -> None:
        """A deleted entity can no longer be read."""
        if isinstance(part, ir.RefOf) and part.var in self.binding.deleted:
            message = "this reads something already deleted"
            raise self.binding.error("C018", message, at)

    def is_exact(self, part: ir.RefOf) -> bool:
        """Whether the rows hold entities of the known types alone."""
        held = self.flow.types.get(part.var, part.type.types)
        return set(held) <= set(part.type.types)

    def identity(self, part: ir.Expr) -> ir.Expr:
        """The id of an entity."""
        if isinstance(part, ir.RefOf):
            return ir.IdOf(part.var, types.STRING)
        return ir.RefGet(part, "id", types.STRING)

    def time_part(self, part: ir.Expr, name: str, at: Located) -> ir.Expr:
        if name in TIME_PARTS and types.is_time(part.type):
            return ir.Call(ir.Function(name), (part,), types.I64)
        from omnigraph.lang.cypher.temporal import temporal_part

        return temporal_part(self, part, name, at)

    def subscript(self, node: ast.Index | ast.ListSlice) -> ir.Expr:
        part = self.expr(node.part)
        if isinstance(node, ast.ListSlice):
            bounds = [None if b is None else self.integer(b) for b in (node.low, node.high)]
            if is_null_literal(part) or any(b is not None and is_null_literal(b) for b in bounds):
                return ir.Literal(None, part.type if types.is_list(part.type) else ir.NULL)
            self.require_list(part, node.part.at)
            return ir.Sublist(part, bounds[0], bounds[1], types.plain(part.type))
        index = self.expr(node.index)
        if is_null_literal(part) or is_null_literal(index):
            return ir.Literal(None, ir.NULL)
        if isinstance(part.type, ir.RefValue | ir.MapValue | ir.TemporalValue):
            if isinstance(index, ir.Literal) and isinstance(index.value, str):
                return self.property(part, index.value, node.at)
            return self.named_by(part, index, node)
        self.require_list(part, node.part.at)
        if not types.is_integer(index.type):
            message = f"a list is indexed by whole numbers, not by {types.name_of(index.type)}"
            raise self.wrong(message, node.index.at)
        return ir.MemberAt(part, index, types.item_of(part.type))

    def named_by(self, part: ir.Expr, index: ir.Expr, node: ast.Index) -> ir.Expr:
        """The property or field whose name is computed; all candidates have one type."""
        if not types.is_string(index.type):
            message = f"a property is accessed by its name, not by {types.name_of(index.type)}"
            raise self.wrong(message, node.index.at)
        if isinstance(part.type, ir.RefValue):
            names = self.binding.property_names(part.type)
        else:
            assert isinstance(part.type, ir.MapValue)  # noqa: S101 - the caller has looked
            names = [name for name, _ in part.type.fields]
        found = [self.property(part, name, node.at) for name in names]
        kind = self.common(found, node.at, "the values of a computed property name")
        whens = tuple(
            (ir.Compare(Op.EQ, index, ir.Literal(name, ir.STRING)), as_type(value, kind))
            for name, value in zip(names, found, strict=True)
        )
        return ir.Choice(whens, null_of(kind), kind) if whens else ir.Literal(None, ir.NULL)

    def integer(self, node: ast.Expr) -> ir.Expr:
        found = self.expr(node)
        if not types.is_integer(found.type) and not is_null_literal(found):
            message = f"expected a whole number, not {types.name_of(found.type)}"
            raise self.wrong(message, node.at)
        return found

    def require_list(self, part: ir.Expr, at: Located) -> None:
        if not types.is_list(part.type) and not is_null_literal(part):
            raise self.wrong(f"expected a list, not {types.name_of(part.type)}", at)

    # --- operators -------------------------------------------------------------------------------------------------

    def operation(self, node: ast.Expr) -> ir.Expr:
        from omnigraph.lang.cypher import mixed

        match node:
            case ast.Unary("not", part):
                return ir.Not(self.truth(part))
            case ast.Unary(_, part):
                return self.negative(part)
            case ast.Connective("xor", parts):
                found = self.truth(parts[0])
                for part in parts[1:]:
                    found = ir.Compare(Op.NE, found, self.truth(part))
                return found
            case ast.Connective(word, parts):
                bound = tuple(self.truth(part) for part in parts)
                return ir.And(bound) if word == "and" else ir.Or(bound)
            case ast.ComparisonChain(first, (("=" | "<>" as word, second),)) if isinstance(
                first, ast.ListLiteral
            ) and isinstance(second, ast.ListLiteral):
                same = mixed.equal(self, first, second)
                return same if word == "=" else ir.Not(same)
            case ast.ComparisonChain(first, rest):
                return self.comparison(first, rest)
            case ast.IsNull(part, negated):
                return self.is_null(self.expr(part), negated)
            case ast.Binary("in", left, right):
                if mixed.asks_members(self, left, right):
                    return mixed.member(self, left, right)
                return self.among(self.expr(left), self.expr(right), node.at)
            case ast.Binary("starts_with" | "ends_with" | "contains" | "=~"):
                return self.text_test(node)
            case ast.Binary():
                return self.arithmetic(
                    node.operator, self.expr(node.left), self.expr(node.right), node.at
                )
            case _:
                raise AssertionError(type(node))

    def truth(self, node: ast.Expr) -> ir.Expr:
        """A condition."""
        found = self.expr(node)
        if is_null_literal(found):
            return ir.Literal(None, types.BOOL)
        if not types.is_bool(found.type):
            message = f"expected a condition, not {types.name_of(found.type)}"
            raise self.wrong(message, node.at, "Compare the value with something.")
        return found

    def is_null(self, part: ir.Expr, negated: bool) -> ir.Expr:
        if isinstance(part, ir.RefOf):
            return ir.IsNull(ir.IdOf(part.var, types.STRING), negated)
        return ir.IsNull(part, negated)

    def negative(self, node: ast.Expr) -> ir.Expr:
        part = self.expr(node)
        if is_null_literal(part):
            return part
        if isinstance(part.type, ir.TemporalValue):
            return self.arithmetic("*", part, ir.Literal(-1, ir.I64), node.at)
        if not types.is_number(part.type):
            raise self.wrong(f"cannot negate {types.name_of(part.type)}", node.at)
        kind = types.I64 if types.is_integer(part.type) else types.F64
        return ir.Call(ir.Function.NEGATE, (part,), kind)

    def comparison(self, first: ast.Expr, rest: tuple[tuple[str, ast.Expr], ...]) -> ir.Expr:
        left, found = self.expr(first), []
        for operator, node in rest:
            right = self.expr(node)
            found.append(compared(COMPARE[operator], left, right))
            left = right
        return found[0] if len(found) == 1 else ir.And(tuple(found))

    def among(self, item: ir.Expr, members: ir.Expr, at: Located) -> ir.Expr:
        if is_null_literal(members):
            return ir.Literal(None, types.BOOL)
        self.require_list(members, at)
        if types.holds_temporal(item.type) or types.holds_temporal(members.type):
            from omnigraph.lang.cypher.temporal import among_times

            found = among_times(self, item, members)
            if found is not None:
                return found
        constant = isinstance(members, ir.Literal | ir.Param)
        kind = types.item_of(members.type)
        if (
            constant
            and not is_null_literal(item)
            and _comparable(item.type, kind)
            and not _may_hold_null(members, self.binding)
        ):
            return ir.In(item, members)
        shared = types.common([item.type, kind])
        if shared is None:
            empty = ir.Compare(Op.EQ, length(members), ir.Literal(0, ir.I64))
            unknown = ir.Choice(((empty, FALSE),), ir.Literal(None, types.BOOL), types.BOOL)
            nulls = ir.Quantified(ir.Test.ANY, "x%", members, ir.IsNull(ir.ValueOf("x%", kind)))
            return ir.Choice(
                ((ir.Or((self.is_null(item, False), nulls)), unknown),), FALSE, types.BOOL
            )
        whole = as_type(members, types.list_of(shared))
        return ir.Among(as_type(item, shared), whole)

    def text_test(self, node: ast.Binary) -> ir.Expr:
        left, right = self.expr(node.left), self.expr(node.right)
        for part in (left, right):
            if not types.is_string(part.type) and not is_null_literal(part):
                return ir.Literal(None, types.BOOL)  # of anything but text, Cypher does not know
        left, right = as_type(left, types.STRING), as_type(right, types.STRING)
        match node.operator:
            case "starts_with":
                return ir.StartsWith(left, right)
            case "contains":
                return ir.Contains(left, right)
            case "ends_with":
                return ir.Call(ir.Function.ENDS_WITH, (left, right), types.BOOL)
            case _:
                return self.regex(left, right, node.right.at)

    def regex(self, text: ir.Expr, pattern: ir.Expr, at: Located) -> ir.Expr:
        """The whole text has to match; the search underneath takes any part of it."""
        match pattern:
            case ir.Literal(str(source)):
                return ir.RegexMatch(text, ir.Literal(f"^(?s:{source})$", ir.STRING))
            case ir.Literal(None):
                return ir.Literal(None, types.BOOL)
            case ir.Param(name):
                source = self.binding.values[name]
                return ir.RegexMatch(text, ir.Literal(f"^(?s:{source})$", ir.STRING))
            case _:
                raise self.wrong("a regular expression is a literal or a parameter", at)

    def arithmetic(self, operator: str, left: ir.Expr, right: ir.Expr, at: Located) -> ir.Expr:
        if operator == "+":
            added = self.added(left, right, at)
            if added is not None:
                return added
        if any(types.temporal_kind(part.type) is not None for part in (left, right)):
            from omnigraph.lang.cypher.temporal import temporal_arithmetic

            return temporal_arithmetic(self, operator, left, right, at)
        for part in (left, right):
            if not types.is_number(part.type) and not is_null_literal(part):
                message = f"`{operator}` is not defined for {types.name_of(part.type)}"
                raise self.wrong(message, at)
        both = types.common([left.type, right.type]) or types.F64
        kind = types.F64 if operator == "^" else types.I64 if types.is_integer(both) else types.F64
        if types.is_null(both):
            return ir.Literal(None, ir.NULL)
        left, right = as_type(left, both), as_type(right, both)
        if operator == "^":
            floats = (as_type(left, types.F64), as_type(right, types.F64))
            return ir.Call(ir.Function.POWER, floats, types.F64)
        if operator == "/" and kind == types.I64:
            return ir.Call(ir.Function.QUOTIENT, (left, right), types.I64)
        assert isinstance(kind, PropType)  # noqa: S101
        return ir.Arithmetic(ARITHMETIC[operator], left, right, kind)

    def added(self, left: ir.Expr, right: ir.Expr, at: Located) -> ir.Expr | None:
        """A sum of lists or texts, not of numbers."""
        if types.is_list(left.type) or types.is_list(right.type):
            if is_null_literal(left) or is_null_literal(right):
                return ir.Literal(None, ir.NULL)
            parts = [
                part if types.is_list(part.type) else ir.MakeList((part,), types.list_of(part.type))
                for part in (left, right)
            ]
            kind = self.common(parts, at, "the sum of lists")
            return ir.JoinedLists(tuple(as_type(part, kind) for part in parts), kind)
        if types.is_string(left.type) or types.is_string(right.type):
            texts = tuple(self.as_text(part, at) for part in (left, right))
            return ir.Call(ir.Function.CONCAT, texts, types.STRING)
        return None

    def as_text(self, part: ir.Expr, at: Located) -> ir.Expr:
        if is_null_literal(part):
            return ir.Literal(None, types.STRING)
        if types.is_string(part.type):
            return part
        if types.temporal_kind(part.type) is not None:
            from omnigraph.lang.cypher.temporal import temporal_text

            return temporal_text(part)
        if not isinstance(part.type, PropType) or not part.type.is_plain:
            raise self.wrong(f"`+` is not defined for {types.name_of(part.type)}", at)
        return ir.Cast(part, types.STRING)

    # --- labels and cases ------------------------------------------------------------------------------------------

    def has_labels(self, node: ast.HasLabels) -> ir.Expr:
        part = self.expr(node.part)
        if is_null_literal(part):
            return ir.Literal(None, types.BOOL)
        if not isinstance(part.type, ir.RefValue):
            message = f"{types.name_of(part.type)} has no labels"
            raise self.wrong(message, node.at)
        wanted = set(part.type.types)
        for label in node.labels:
            find = self.binding.with_type if part.type.edge else self.binding.with_label
            wanted &= set(find(label, node.at))
        return self.of_types(part, tuple(t for t in part.type.types if t in wanted))

    def of_types(self, part: ir.Expr, wanted: tuple[str, ...]) -> ir.Expr:
        """Whether an entity has one of these types."""
        kind = self.type_name(part)
        if not wanted:
            return ir.Choice(
                ((ir.IsNull(kind, negated=True), FALSE),), null_of(types.BOOL), types.BOOL
            )
        return ir.In(kind, ir.Literal(wanted, ir.STRINGS))

    def type_name(self, part: ir.Expr) -> ir.Expr:
        """The name of the type as the schema has it."""
        if isinstance(part, ir.RefOf):
            gone = self.binding.deleted.get(part.var)
            return ir.TypeOf(part.var, types.STRING) if gone is None else gone
        return ir.RefType(part)

    def case(self, node: ast.CaseExpr) -> ir.Expr:
        subject = None if node.subject is None else self.expr(node.subject)
        whens = []
        for condition, result in node.whens:
            whens.append((self.case_test(subject, condition), self.expr(result)))
        default = ir.Literal(None, ir.NULL) if node.default is None else self.expr(node.default)
        kind = self.common([*(r for _, r in whens), default], node.at, "the result of CASE")
        made = tuple((test, as_type(result, kind)) for test, result in whens)
        return ir.Choice(made, as_type(default, kind), kind)

    def case_test(self, subject: ir.Expr | None, condition: ast.Expr) -> ir.Expr:
        if subject is None:
            return self.truth(condition)
        return compared(Op.EQ, subject, self.expr(condition))

    def map_projection(self, node: ast.MapProjection) -> ir.Expr:
        part = self.variable(node.var, node.at)
        found: dict[str, ir.Expr] = {}
        for name, given in node.items:
            if given is not None:
                found[name] = self.expr(given)
            elif name != "*":
                found[name] = self.property(part, name, node.at)
            elif isinstance(part.type, ir.RefValue):
                names = self.binding.property_names(part.type)
                found |= {n: self.property(part, n, node.at) for n in names}
        return map_literal(list(found.items()))

    # --- functions and lists ---------------------------------------------------------------------------------------

    def call(self, node: ast.Call) -> ir.Expr:
        from omnigraph.lang.cypher.functions import AGGREGATES, bind_call

        if node.name in AGGREGATES:
            if self.aggregate is None or self.inner:
                message = f"{node.name}() is an aggregate, which is not allowed here"
                raise self.binding.error("C010", message, node.at)
            return self.aggregate(node)
        return bind_call(self, node)

    def iteration(self, node: ast.ListComprehension | ast.Quantifier | ast.Reduce) -> ir.Expr:
        from omnigraph.lang.cypher import mixed

        if not isinstance(node, ast.Reduce) and mixed.is_mixed(self, node.part):
            assert isinstance(node.part, ast.ListLiteral)  # noqa: S101 - nothing else is
            return mixed.iteration(self, node, node.part)
        part = self.expr(node.part)
        if is_null_literal(part):
            return part if not isinstance(node, ast.Quantifier) else null_of(types.BOOL)
        self.require_list(part, node.part.at)
        if isinstance(node, ast.Reduce):
            return self.fold(node, part)
        var = self.binding.fresh(node.var)
        item = ir.ValueOf(var, types.item_of(part.type))
        with_item = self.within({node.var: item})
        if isinstance(node, ast.Quantifier):
            test = with_item.truth(node.predicate)
            return ir.Quantified(TESTS[node.name], var, part, test)
        predicate = None if node.predicate is None else with_item.truth(node.predicate)
        body = item if node.body is None else with_item.expr(node.body)
        return ir.Each(var, part, predicate, body, types.list_of(types.plain(body.type)))

    def fold(self, node: ast.Reduce, part: ir.Expr) -> ir.Expr:
        first = self.expr(node.first)
        total, var = self.binding.fresh(node.total), self.binding.fresh(node.var)
        kind = types.plain(first.type)
        for _ in range(2):  # a sum that starts with 0 and adds floats is a float
            names: dict[str, ir.Expr] = {
                node.total: ir.ValueOf(total, kind),
                node.var: ir.ValueOf(var, types.item_of(part.type)),
            }
            body = self.within(names).expr(node.body)
            kind = self.common([first, body], node.at, "the total")
        return ir.Fold(total, as_type(first, kind), var, part, as_type(body, kind), kind)

    def within(self, names: dict[str, ir.Expr]) -> ExprBinder:
        """The binder for the members of a list."""
        made = ExprBinder(self.binding, self.flow, self.blocks, self.aggregate)
        made.inner = {**self.inner, **names}
        return made


TIME_PARTS = ("year", "month", "day", "hour", "minute", "second")


def literal(value: object) -> ir.Expr:
    kind = types.of_value(value)
    assert kind is not None  # noqa: S101 - what the lexer reads has a type
    return ir.Literal(value, kind if value is None else _not_null(kind))


def _not_null(kind: ir.ValueType) -> ir.ValueType:
    return replace(kind, nullable=False) if isinstance(kind, PropType) else kind


def map_literal(items: list[tuple[str, ir.Expr]]) -> ir.Expr:
    found = dict(items)
    fields = tuple((name, types.plain(part.type)) for name, part in found.items())
    return ir.MakeMap(tuple(found.values()), ir.MapValue(fields))


def length(members: ir.Expr) -> ir.Expr:
    return ir.Call(ir.Function.LENGTH, (members,), types.I64)


def _comparable(one: ir.ValueType, other: ir.ValueType) -> bool:
    if types.is_number(one) and types.is_number(other):
        return True
    same = isinstance(one, PropType) and isinstance(other, PropType) and one.scalar is other.scalar
    return same and not types.is_list(one) and Scalar.BLOB is not getattr(one, "scalar", None)


def _may_hold_null(members: ir.Expr, binding: BindingState) -> bool:
    if isinstance(members, ir.Param):
        return None in binding.values[members.name]
    return not isinstance(members, ir.Literal) or None in (members.value or ())
