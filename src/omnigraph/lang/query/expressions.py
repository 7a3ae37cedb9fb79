"""Parsing expressions: the part of the grammar that reads and mutations share.

The docstrings are the grammar; the reference page is generated from them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from omnigraph.lang.cursor import Cursor, Unparsable
from omnigraph.lang.lexer import Tok, Token, unquote
from omnigraph.lang.query import ast
from omnigraph.lang.source import between
from omnigraph.model.types import VECTOR_DIM_MAX, PropType, Scalar

OPERATORS_MAX = (
    100  # per expression: arithmetic and negations, the operators that nest without brackets
)
OPERANDS_MAX = (
    5_000  # of all expressions of a query; members of lists and values of new rows count as none
)
INTEGER_MIN, INTEGER_MAX = -(2**63), 2**64 - 1

COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
COMPARING_WORDS = ("contains", "starts_with", "in")
AFTER_OPERAND = frozenset((*COMPARISONS, *COMPARING_WORDS, "is", "not"))
TYPE_NAMES = tuple(s.value for s in Scalar)
TYPE_ALIASES = {
    "int": "I64",
    "integer": "I64",
    "long": "I64",
    "bigint": "I64",
    "float": "F64",
    "double": "F64",
    "number": "F64",
    "str": "String",
    "text": "String",
    "varchar": "String",
    "boolean": "Bool",
    "timestamp": "DateTime",
    "bytes": "Blob",
}
STRUCTURAL = ("id", "src", "dst", "type")
CONSTANTS: dict[str, bool | None] = {"true": True, "false": False, "null": None}


class ExpressionParser:
    """A recursive-descent parser of expressions; one method per line of the grammar.

    Most operands are single (in lists, calls and projections), so each level first tests whether its operator follows
    at all, and leaves parsing it to a separate method.
    """

    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor
        self.operators = 0
        self.operands = 0

    def expression(self) -> ast.Expr:
        """expr = or_expr ;"""
        self.operators = 0
        return self.or_expr()

    def or_expr(self) -> ast.Expr:
        """or_expr = and_expr { "or" and_expr } ;"""
        first = self.and_expr()
        return first if self.cursor.token.text != "or" else self._joined("or", first, self.and_expr)

    def and_expr(self) -> ast.Expr:
        """and_expr = not_expr { "and" not_expr } ;"""
        first = self.not_expr()
        return (
            first if self.cursor.token.text != "and" else self._joined("and", first, self.not_expr)
        )

    def _joined(self, word: str, first: ast.Expr, part: Callable[[], ast.Expr]) -> ast.Expr:
        parts = [first]
        while self.at_word(word):
            self.cursor.advance()
            parts.append(part())
        if len(parts) == 1:
            return parts[0]
        return ast.Connective(word, tuple(parts), between(parts[0].at, parts[-1].at))

    def not_expr(self) -> ast.Expr:
        """not_expr = "not" not_expr | comparison ;"""
        if self.cursor.token.text != "not" or not self.at_word("not"):
            return self.comparison()
        start = self.cursor.advance()
        self._count_operator(start)
        part = self.not_expr()
        return ast.NotExpr(part, between(start, part.at))

    def comparison(self) -> ast.Expr:
        """comparison = sum [ compare_op sum | [ "not" ] "in" sum | "is" [ "not" ] "null" ] ;"""
        left = self.sum()
        if self.cursor.token.text not in AFTER_OPERAND:
            return left
        found = self._comparison_of(left)
        if found is left:
            return left
        if self.cursor.at(*COMPARISONS):
            help = "Join two comparisons with `and`: a < b and b < c."
            raise self.cursor.fail("comparisons do not chain", help=help)
        return found

    def _comparison_of(self, left: ast.Expr) -> ast.Expr:
        cursor = self.cursor
        if self.at_word("is"):
            return self._is_null(left)
        if self.at_word("not") and cursor.peek().text == "in":
            start = cursor.advance()
            cursor.advance()
            right = self.sum()
            inside = ast.Binary(ast.Operator.IN, left, right, between(left.at, right.at))
            return ast.NotExpr(inside, between(start, right.at))
        if cursor.at(*COMPARISONS) or any(self.at_word(word) for word in COMPARING_WORDS):
            op = self.compare_op()
            right = self.sum()
            return ast.Binary(op, left, right, between(left.at, right.at))
        return left

    def compare_op(self) -> ast.Operator:
        """compare_op = "=" | "!=" | "<" | "<=" | ">" | ">=" | "contains" | "starts_with" | "in" ;"""
        token = self.cursor.advance()
        if token.text == "=" and self.cursor.at("=") and self.cursor.token.start == token.end:
            raise self.cursor.fail("equality is written with one `=`", token, help="Write `=`.")
        return ast.Operator(token.text)

    def _is_null(self, left: ast.Expr) -> ast.Expr:
        self.cursor.advance()
        negated = self.cursor.take("not") is not None
        end = self.cursor.expect("null", "after `is`", help="Only `is null` and `is not null`.")
        return ast.IsNull(left, negated, between(left.at, end))

    def sum(self) -> ast.Expr:
        """sum = product { ( "+" | "-" ) product } ;"""
        left = self.product()
        symbols = ("+", "-")
        if self.cursor.token.text not in symbols:
            return left
        return self._left_to_right(symbols, left, self.product)

    def product(self) -> ast.Expr:
        """product = signed { ( "*" | "/" | "%" ) signed } ;"""
        left = self.signed()
        symbols = ("*", "/", "%")
        if self.cursor.token.text not in symbols:
            return left
        return self._left_to_right(symbols, left, self.signed)

    def _left_to_right(
        self, symbols: tuple[str, ...], left: ast.Expr, part: Callable[[], ast.Expr]
    ) -> ast.Expr:
        while self.cursor.at(*symbols):
            token = self.cursor.advance()
            self._count_operator(token)
            right = part()
            op = ast.Operator(token.text)
            left = ast.Binary(op, left, right, between(left.at, right.at))
        return left

    def _count_operator(self, token: Token) -> None:
        self.operators += 1
        if self.operators > OPERATORS_MAX:
            message = f"an expression has more than {OPERATORS_MAX} operators"
            raise self.cursor.fail(message, token, code="P5")

    def count_operand(self) -> None:
        """Bound the size of a query: checking and planning it may compare every part with every other."""
        self.operands += 1
        if self.operands > OPERANDS_MAX:
            message = f"a query has more than {OPERANDS_MAX} values, properties and calls"
            raise self.cursor.fail(message, code="Q019")

    @contextmanager
    def uncounted(self) -> Iterator[None]:
        """Data is read here: the text may hold any amount of it."""
        counted = self.operands
        yield
        self.operands = counted

    def signed(self) -> ast.Expr:
        """signed = "-" signed | primary ;"""
        if self.cursor.token.text != "-":
            return self.primary()
        start = self.cursor.advance()
        self._count_operator(start)
        if self.cursor.token.kind in (Tok.INTEGER, Tok.FLOAT):
            return self.number(start)
        part = self.signed()
        return ast.Negative(part, between(start, part.at))

    def primary(self) -> ast.Expr:
        """primary = "(" expr ")" | list | literal | cast | call | property | variable | name ;"""
        token = self.cursor.token
        self.count_operand()
        match token.kind:
            case Tok.VARIABLE:
                return self.variable_or_property()
            case Tok.STRING:
                self.cursor.advance()
                return ast.Literal(unquote(token.text), between(token, token))
            case Tok.INTEGER | Tok.FLOAT:
                return self.number()
            case Tok.NAME:
                return self.word()
            case Tok.SYMBOL if token.text == "(":
                with self.cursor.nested("(", "here"):
                    return self.or_expr()
            case Tok.SYMBOL if token.text == "[":
                return self.list_literal()
            case Tok.SYMBOL if token.text == "@":
                name = self.field_name("a column")
                return ast.Name(name, between(token, self.cursor.previous))
            case _:
                raise self.cursor.fail(f"expected an expression, found {token}")

    def variable_or_property(self) -> ast.Expr:
        """property = variable "." ( ident | "*" | "@" ( "type" | "id" | "src" | "dst" ) ) ;"""
        token = self.cursor.advance()
        if not self.cursor.at("."):
            return self.variable_of(token)
        self.cursor.advance()
        star = self.cursor.take("*")
        if star:
            return ast.AllProperties(self.variable_of(token).name, between(token, star))
        if self.cursor.take("@"):
            return self._structural(token)
        name = self.cursor.ident("a property")
        var = self.variable_of(token).name
        return ast.PropertyAccess(var, name.text, between(token, name), between(name, name))

    def _structural(self, token: Token) -> ast.Expr:
        """What every entity has besides its properties."""
        if not self.cursor.at(*STRUCTURAL):
            words = ", ".join(f"`{word}`" for word in STRUCTURAL)
            message = f"expected {words} after `@`, found {self.cursor.token}"
            raise self.cursor.fail(message, options=STRUCTURAL)
        word = self.cursor.advance()
        at, var = between(token, word), self.variable_of(token)
        if word.text == "type":
            return ast.Call("type", (var,), at=at, name_at=at)
        return ast.PropertyAccess(var.name, f"@{word.text}", at, between(word, word))

    def field_name(self, what: str) -> str:
        """name = ident | "@" ( "id" | "src" | "dst" ) ;"""
        if not self.cursor.take("@"):
            return self.cursor.ident(what).text
        if not self.cursor.at(*STRUCTURAL[:-1]):
            message = f"expected `id`, `src` or `dst` after `@`, found {self.cursor.token}"
            raise self.cursor.fail(message, options=STRUCTURAL[:-1])
        return f"@{self.cursor.advance().text}"

    def variable_of(self, token: Token) -> ast.Variable:
        """variable = "$" ident ;"""
        if token.text[1].isupper():
            meant = "$" + token.text[1].lower() + token.text[2:]
            help = f"Did you mean `{meant}`?"
            message = f"a variable starts with a lower-case letter, found {token}"
            self.cursor.diagnostics.error("P9", message, token, help=help, suggestion=meant)
        return ast.Variable(token.text[1:], between(token, token))

    def number(self, sign: Token | None = None) -> ast.Literal:
        """literal = string | [ "-" ] integer | [ "-" ] float | "true" | "false" | "null"
        | "date" "(" string ")" | "datetime" "(" string ")" ;"""
        token = self.cursor.advance()
        at = between(sign or token, token)
        value: int | float
        if token.kind is Tok.FLOAT:
            value = float(token.text)
            fits = math.isfinite(value)
        else:
            value = int(token.text) if len(token.text.lstrip("0")) < 40 else INTEGER_MAX + 1
            fits = value <= (-INTEGER_MIN if sign else INTEGER_MAX)
        if not fits:
            message = f"the number {token} is out of range"
            help = "Integers reach from -9223372036854775808 to 18446744073709551615."
            raise self.cursor.fail(message, at, code="P7", help=help)
        return ast.Literal(-value if sign else value, at)

    def word(self) -> ast.Expr:
        """A constant, a date, a cast, a call or a bare name."""
        token, following = self.cursor.token, self.cursor.peek().text
        if following == "(" and token.text not in CONSTANTS:
            match token.text:
                case "date" | "datetime":
                    return self.time_literal()
                case "cast":
                    return self.cast()
                case _:
                    return self.call()
        self.cursor.advance()
        if token.text in CONSTANTS:
            return ast.Literal(CONSTANTS[token.text], between(token, token))
        return ast.Name(token.text, between(token, token))

    def time_literal(self) -> ast.Expr:
        start = self.cursor.advance()
        self.cursor.expect("(", f"after `{start.text}`")
        if self.cursor.token.kind is not Tok.STRING:
            kind = "Date" if start.text == "date" else "DateTime"
            help = f'Write {start.text}("2024-05-01"); to convert a value, cast(x as {kind}).'
            raise self.cursor.fail(
                f"expected a text in quotes, found {self.cursor.token}", help=help
            )
        text = unquote(self.cursor.advance().text)
        end = self.cursor.expect(")", "after the text")
        return ast.TimeLiteral(start.text, text, between(start, end))

    def list_literal(self) -> ast.ListLiteral:
        """list = "[" [ expr { "," expr } ] "]" ;"""
        items: list[ast.Expr] = []
        with self.cursor.nested("[", "here") as start, self.uncounted():
            while not self.cursor.at("]"):
                self.operands = 0
                items.append(self.or_expr())
                if not self.cursor.take(","):
                    break
        return ast.ListLiteral(tuple(items), between(start, self.cursor.previous))

    def cast(self) -> ast.Cast:
        """cast = "cast" "(" expr "as" type ")" ;"""
        start = self.cursor.advance()
        with self.cursor.nested("(", "after `cast`"):
            part = self.or_expr()
            self.cursor.expect("as", "in the cast", help="Write cast(value as I64).")
            kind = self.type()
        return ast.Cast(part, kind, between(start, self.cursor.previous))

    def call(self) -> ast.Call:
        """call = ident "(" [ "*" | [ "distinct" ] expr { "," expr } ] ")" ;"""
        name = self.cursor.advance()
        args: list[ast.Expr] = []
        distinct, star = False, False
        with self.cursor.nested("(", f"after `{name.text}`"):
            if self.cursor.take("*"):
                star = True
            elif not self.cursor.at(")"):
                if self.cursor.at("distinct") and self.cursor.peek().text not in (")", ",", "."):
                    self.cursor.advance()
                    distinct = True
                args = self.cursor.sep_by(self.or_expr)
        at = between(name, self.cursor.previous)
        return ast.Call(name.text, tuple(args), distinct, star, at, between(name, name))

    # --- types ---

    def type(self) -> PropType:
        """type = ( base | "[" base "]" | "Vector" "(" integer ")" ) [ "?" ] ;"""
        kind = self._core_type()
        return kind.with_nullable(self.cursor.take("?") is not None)

    def _core_type(self) -> PropType:
        if self.cursor.at("["):
            with self.cursor.nested("[", "here"):
                scalar = self.base_type()
            return PropType(scalar, is_list=True)
        if self.cursor.at("Vector") and self.cursor.peek().text == "(":
            self.cursor.advance()
            with self.cursor.nested("(", "after `Vector`"):
                dim = self.cursor.integer("the number of dimensions", maximum=VECTOR_DIM_MAX)
            if dim == 0:
                raise self.cursor.fail("a vector has at least one dimension", self.cursor.previous)
            return PropType(Scalar.F32, vector_dim=dim)
        return PropType(self.base_type())

    def base_type(self) -> Scalar:
        """base = "String" | "Bool" | "I32" | "I64" | "U32" | "U64" | "F32" | "F64" | "Date" | "DateTime" | "Blob" ;"""
        token = self.cursor.token
        if token.kind is Tok.NAME and token.text in TYPE_NAMES:
            return Scalar(self.cursor.advance().text)
        raise self._unknown_type(token)

    def _unknown_type(self, token: Token) -> Unparsable:
        options = (*TYPE_NAMES, "Vector")
        help = f"The types are {', '.join(TYPE_NAMES)}, [T] and Vector(n)."
        return self.cursor.fail(
            f"expected a type, found {token}",
            code="Q002" if token.kind is Tok.NAME else "P1",
            options=options,
            aliases=TYPE_ALIASES,
            help=help,
        )

    # --- words ---

    def at_word(self, word: str) -> bool:
        """Whether this word is an operator here and not the name of a field (`in: 3`)."""
        return self.cursor.at(word) and self.cursor.peek().text != ":"
