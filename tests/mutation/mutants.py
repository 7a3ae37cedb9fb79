"""Every small change to a module: one operator, condition, number or statement at a time.

Left alone are messages (what is raised and logged is said in words nobody tests), assertions such as `strict=True`,
types, documentation, and constants of a module in capitals, which are tuned rather than tested.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
NO_CHANGE = -1
LOGGERS = ("log", "logger", "warnings")


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change, by its place among all changes of the module."""

    path: Path
    module: str
    number: int
    line: int
    function: str
    change: str
    source: str = field(repr=False)

    @property
    def name(self) -> str:
        """What it is called in reports and among the equivalent ones: no line, so that it outlives edits."""
        return f"{self.module}:{self.function}: {self.change}"

    def code(self) -> CodeType:
        """The module with this change made."""
        tree = ast.parse(self.source, str(self.path))
        if self.number != NO_CHANGE:
            _, _, _, make = list(_changes(tree))[self.number]
            make()
            ast.fix_missing_locations(tree)
        return compile(tree, str(self.path), "exec")


def mutants_of(path: Path, source_root: Path) -> list[Mutant]:
    """All changes of one module."""
    parts = path.relative_to(source_root).with_suffix("").parts
    module = ".".join(part for part in parts if part != "__init__")
    source = path.read_text()
    tree = ast.parse(source, str(path))
    return [
        Mutant(path, module, number, line, function, change, source)
        for number, (line, function, change, _) in enumerate(_changes(tree))
    ]


Change = tuple[int, str, str, "Make"]


class Make:
    """Makes a change in a tree: another value for a field of a node, or for one item of a list."""

    def __init__(self, node: ast.AST, field: str, value: object, index: int | None = None) -> None:
        self._node, self._field, self._value, self._index = node, field, value, index

    def __call__(self) -> None:
        if self._index is None:
            setattr(self._node, self._field, self._value)
        else:
            getattr(self._node, self._field)[self._index] = self._value


def _changes(tree: ast.Module) -> Iterator[Change]:
    for node in tree.body:
        if not _is_constant(node):
            yield from _visit(node, "")


def _is_constant(node: ast.stmt) -> bool:
    match node:
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name.lstrip("_").isupper()
        case ast.If(test=ast.Name(id="TYPE_CHECKING")) | ast.Import() | ast.ImportFrom():
            return True
    return False


def _visit(node: ast.AST, function: str) -> Iterator[Change]:
    """The changes of a node, and of everything in it that is neither a message nor a type."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        function = f"{function}.{node.name}" if function else node.name
    line = getattr(node, "lineno", 0)
    for change, make in _own(node):
        yield line, function, change, make
    for child in _children(node):
        yield from _visit(child, function)
    for part in ("body", "orelse", "finalbody"):
        statements = getattr(node, part, None)
        if isinstance(statements, list):
            for index, statement in enumerate(statements):
                for change, made in _statement(statement):
                    make = Make(node, part, ast.copy_location(made, statement), index)
                    yield statement.lineno, function, change, make


def _children(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Raise() | ast.JoinedStr() | ast.Assert() | ast.keyword(arg="strict"):
            return
        case ast.Expr(value=ast.Constant()):
            return
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name))) if name in LOGGERS:
            return
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            yield from (d for d in (*node.args.defaults, *node.args.kw_defaults) if d is not None)
            yield from node.body
        case ast.ClassDef():
            yield from node.body
        case ast.AnnAssign(value=value):
            yield from () if value is None else (value,)
        case _:
            yield from ast.iter_child_nodes(node)


def _own(node: ast.AST) -> Iterator[tuple[str, Make]]:
    """Changes of this node itself."""
    match node:
        case ast.Compare(ops=ops):
            for index, op in enumerate(ops):
                other = COMPARISONS[type(op)]
                yield _said(op, other, node), Make(node, "ops", other(), index)
        case ast.BoolOp(op=op):
            swapped = ast.Or if isinstance(op, ast.And) else ast.And
            yield _said(op, swapped, node), Make(node, "op", swapped())
        case ast.BinOp(op=op) | ast.AugAssign(op=op) if type(op) in ARITHMETIC:
            operator = ARITHMETIC[type(op)]
            yield _said(op, operator, node), Make(node, "op", operator())
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield f"drop not: {_text(node)}", Make(node, "operand", _negated(operand))
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test) if _is_whole(test):
            yield f"negate: {_text(test)}", Make(node, "test", _negated(test))
        case ast.Constant(value=bool() as value):
            yield f"{value} -> {not value}", Make(node, "value", not value)
        case ast.Constant(value=int() as number):
            yield f"{number} -> {number + 1}", Make(node, "value", number + 1)


def _is_whole(test: ast.expr) -> bool:
    """Whether turning a condition round differs from turning its only operator round."""
    match test:
        case ast.UnaryOp(op=ast.Not()):
            return False
        case ast.Compare(
            ops=[ast.Eq() | ast.NotEq() | ast.Is() | ast.IsNot() | ast.In() | ast.NotIn()]
        ):
            return False
    return True


def _negated(test: ast.expr) -> ast.expr:
    return ast.copy_location(ast.UnaryOp(ast.Not(), copy.deepcopy(test)), test)


def _statement(node: ast.stmt) -> Iterator[tuple[str, ast.stmt]]:
    """What may stand in the place of a statement."""
    match node:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name)))) if (
            name in LOGGERS
        ):
            return
        case ast.Expr(value=ast.Call() | ast.Yield() | ast.YieldFrom()):
            yield f"drop: {_text(node)}", ast.Pass()
        case ast.AugAssign() | ast.Raise() | ast.Delete():
            yield f"drop: {_text(node)}", ast.Pass()
        case ast.Continue():
            yield "continue -> break", ast.Break()
        case ast.Break():
            yield "break -> continue", ast.Continue()
        case ast.Return(value=ast.expr() as value) if not _is_plain(value):
            yield f"return nothing: {_text(value)}", ast.Return(ast.Constant(None))


def _is_plain(value: ast.expr) -> bool:
    """None itself, and truths: those are turned round, and nothing is as good as false."""
    return isinstance(value, ast.Constant) and isinstance(value.value, bool | None)


def _said(old: ast.AST, new: type[ast.AST], node: ast.AST) -> str:
    return f"{type(old).__name__} -> {new.__name__}: {_text(node)}"


def _text(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 90 else text[:87] + "..."
