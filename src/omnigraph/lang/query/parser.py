"""Queries to syntax trees. Each method reads like the grammar line in its docstring.

Keywords are not reserved: the meaning of a word follows from its place. Between clauses there is no separator, so the
parser looks ahead: after `$a` a word starts a traversal, unless `$a` is a parameter, which cannot be an endpoint.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from omnigraph.lang.cursor import Cursor
from omnigraph.lang.lexer import Tok, Token
from omnigraph.lang.query import ast
from omnigraph.lang.query.expressions import COMPARISONS, ExpressionParser
from omnigraph.lang.source import between

HOPS_MAX = 2**31 - 1
PARTS_MAX = 200  # bindings, traversals, blocks and branches of one query: a plan is about as deep as these are many
FILTER_WORDS = ("contains", "starts_with", "in", "is", "and", "or")
T = TypeVar("T")

PATHS = ("path", "paths")
STATEMENTS = ("insert", "update", "delete")
BLOCKS = ("not", "exists", "optional")
MEASURES = ("count", "sum", "avg", "min", "max")
ANNOTATIONS = ("description", "instruction")
CHECK_ANNOTATIONS = (
    "severity",
    "rows",
    "new_rows",
    "lost_rows",
    "value",
)  # see `omnigraph.lang.checks`
BARE_NAME = "q"  # the name of a query that is only a body
TAIL = ("union", "having", "order", "skip", "limit")
PARTS = ("match", "return", "having", "order")
TAIL_ALIASES = {
    "orderby": "order",
    "sort": "order",
    "top": "limit",
    "offset": "skip",
    "where": "having",
}
BODY_ALIASES = {
    "select": "match",
    "find": "match",
    "create": "insert",
    "add": "insert",
    "set": "update",
    "remove": "delete",
}


class QueryParser(ExpressionParser):
    """Parses files of queries."""

    def __init__(self, cursor: Cursor) -> None:
        super().__init__(cursor)
        self.params: frozenset[str] = frozenset()
        self.opening: Token | None = None  # the brace of the query being read; a bare body has none
        self.parts = 0

    def _starts_query(self, index: int) -> bool:
        lexed = self.cursor.lexed
        if lexed.texts[index] != "query" or index + 2 >= len(lexed.kinds):
            return False
        return lexed.kinds[index + 1] is Tok.NAME and lexed.texts[index + 2] == "("

    def query(self) -> ast.Query:
        """query = "query" ident "(" [ param { "," param } ] ")" { annotation } "{" ( read | mutation ) "}" ;"""
        start = self.cursor.expect("query", "at the start of a query")
        name = self.cursor.ident("the name of the query")
        params = self.param_list()
        self.params = frozenset(p.name for p in params)
        self.parts = self.operands = 0
        notes = self.annotations(name.text)
        with self.cursor.nested("{", "before the body of the query") as self.opening:
            body = self.body()
        return ast.Query(
            name.text,
            params,
            body,
            notes.get("description"),
            notes.get("instruction"),
            between(start, self.cursor.previous),
            between(name, name),
            tuple((word, notes[word]) for word in CHECK_ANNOTATIONS if word in notes),
        )

    def param_list(self) -> tuple[ast.Param, ...]:
        with self.cursor.nested("(", "after the name of the query"):
            return () if self.cursor.at(")") else tuple(self.cursor.sep_by(self.param))

    def param(self) -> ast.Param:
        """param = variable ":" type ;"""
        token = self.variable_token("a parameter such as $name")
        self.cursor.expect(":", "after the parameter")
        kind = self.type()
        return ast.Param(self.variable_of(token).name, kind, between(token, self.cursor.previous))

    def annotations(self, query: str) -> dict[str, str]:
        """annotation = "@" ( "description" | "instruction" | "severity" | "rows" | "new_rows" | "lost_rows" | "value" )
        "(" string ")" ;"""
        found: dict[str, str] = {}
        while self.cursor.at("@"):
            self.cursor.advance()
            word = self.cursor.token
            if not self.cursor.at(*ANNOTATIONS, *CHECK_ANNOTATIONS):
                raise self.cursor.fail(
                    f"expected `description` or `instruction`, found {word}",
                    options=(*ANNOTATIONS, *CHECK_ANNOTATIONS),
                )
            self.cursor.advance()
            with self.cursor.nested("(", f"after `@{word.text}`"):
                text = self.cursor.string("a text")
            if word.text in found:
                message = f"the query `{query}` has two @{word.text} annotations"
                self.cursor.diagnostics.error("Q001", message, word)
            found[word.text] = text
        return found

    def body(self) -> ast.Read | ast.Mutation:
        if self.cursor.at("match"):
            return self.read()
        if self.cursor.at(*STATEMENTS):
            return self.mutation()
        options = ("match", *STATEMENTS)
        help = "A query is `match { … } return { … }`, or statements: insert, update, delete."
        raise self.cursor.fail(
            f"expected `match`, `insert`, `update` or `delete`, found {self.cursor.token}",
            options=options,
            aliases=BODY_ALIASES,
            help=help,
        )

    # --- reads ---

    def read(self) -> ast.Read:
        """read = branch { "union" [ "all" ] branch } [ order ] counts ;"""
        start = self.cursor.token
        branches, keeps = [self.branch()], []
        while self.cursor.take("union"):
            keeps.append(self.cursor.take("all") is not None)
            branches.append(self.branch())
        order = self.order() if self.cursor.at("order") else ()
        counts = self.skip_and_limit()
        if self.opening is not None and not self.cursor.at("}"):
            self._unexpected_tail()
        at = between(start, self.cursor.previous)
        skip, limit = counts.get("skip"), counts.get("limit")
        return ast.Read(tuple(branches), tuple(keeps), order, skip, limit, at)

    def _unexpected_tail(self) -> None:
        token = self.cursor.token
        self.check_closed(self.opening)
        if self.cursor.at_end():
            return  # the unclosed bracket is the better message
        help = "After `return { … }` come having, union, order, skip and limit, in this order."
        raise self.cursor.fail(
            f"expected the end of the query, found {token}",
            options=TAIL,
            aliases=TAIL_ALIASES,
            help=help,
        )

    def branch(self) -> ast.ReadBranch:
        """branch = "match" block "return" [ "distinct" ] "{" projection { [ "," ] projection } "}" [ having ] ;"""
        self.count_part()
        start = self.cursor.expect("match", "at the start of a pattern")
        clauses = self.block("after `match`")
        returns = self.cursor.token
        self.cursor.expect("return", "after the pattern", help="Every `match` needs a `return`.")
        distinct = self.cursor.take("distinct") is not None
        projections = self._items("{", "after `return`", self.projection)
        having = self.having() if self.cursor.at("having") else ()
        at = between(start, self.cursor.previous)
        return ast.ReadBranch(clauses, projections, distinct, having, at, between(returns, returns))

    def block(self, where: str) -> tuple[ast.Clause, ...]:
        """block = "{" clause { [ ";" ] clause } [ ";" ] "}" ;"""
        clauses: list[ast.Clause] = []
        with self.cursor.nested("{", where) as opening:
            while not self.cursor.at("}") and not self.cursor.at_end():
                self.check_closed(opening)
                clauses.append(self.clause())
                self.semicolons()
            if not clauses and not self.cursor.at_end():
                help = "Bind a variable: $p: Person."
                raise self.cursor.fail("a pattern has at least one clause", opening, help=help)
        return tuple(clauses)

    def semicolons(self) -> None:
        """They may follow a clause or a statement, and have no meaning."""
        while self.cursor.take(";"):
            pass

    def check_closed(self, opening: Token | None) -> None:
        """A word that starts the next part of a query, followed by its brace, shows that this one was forgotten."""
        if opening is None:
            return
        token, following = self.cursor.token, self.cursor.peek()
        starts_part = token.text in PARTS and following.text == "{"
        if starts_part or self._starts_query(self.cursor.index):
            raise self.cursor.unclosed(opening)

    def clause(self) -> ast.Clause:
        """clause = nested | measured | binding | path | traversal | filter ;"""
        token, following = self.cursor.token, self.cursor.peek()
        if token.kind is Tok.VARIABLE:
            if following.text == ":":
                return self.binding()
            if self._is_path(following):
                return self.path()
            if self._is_traversal(token, following):
                return self.traversal()
        elif self._is_measured(token, following):
            return self.measured_block()
        elif following.text == "{" and token.kind is Tok.NAME:
            return self.nested_block()
        return self.filter()

    def count_part(self) -> None:
        """Bound the size of a pattern, so that no plan is too deep to walk."""
        self.parts += 1
        if self.parts > PARTS_MAX:
            message = f"a query has more than {PARTS_MAX} bindings, traversals and blocks"
            raise self.cursor.fail(message, code="Q019")

    def _is_path(self, following: Token) -> bool:
        peek = self.cursor.peek
        return following.text == "=" and peek(2).text in PATHS and peek(3).kind is Tok.VARIABLE

    def _is_traversal(self, token: Token, following: Token) -> bool:
        """Whether `$a` starts a traversal and not a condition."""
        second, third = self.cursor.peek(2), self.cursor.peek(3)
        if token.text[1:] in self.params:
            return False
        if following.kind is Tok.VARIABLE:
            return True
        if following.text in ("<", "("):
            closing = ">" if following.text == "<" else "|"
            return second.kind is Tok.NAME and third.text in (closing, "|")
        if following.kind is not Tok.NAME or following.text == "not":
            return False
        if following.text not in FILTER_WORDS:
            return True
        # Words that are operators are edges only between two variables, as in `$shelf contains $book`.
        if second.kind is Tok.VARIABLE:
            return second.text[1:] not in self.params and third.text != "."
        return second.text == "|" or (second.text == "{" and third.kind is Tok.INTEGER)

    def nested_block(self) -> ast.Block:
        """nested = ( "not" | "exists" | "optional" ) block ;"""
        self.count_part()
        token = self.cursor.token
        if token.text not in BLOCKS:
            message = (
                f"expected `not`, `exists`, `optional` or `count` before a block, found {token}"
            )
            raise self.cursor.fail(message, options=(*BLOCKS, "count"))
        self.cursor.advance()
        clauses = self.block(f"after `{token.text}`")
        return ast.Block(ast.BlockKind(token.text), clauses, between(token, self.cursor.previous))

    def _is_measured(self, token: Token, following: Token) -> bool:
        """Whether an aggregate followed by a block is here: `count {`, `sum(…) {`."""
        if token.kind is not Tok.NAME or token.text not in MEASURES:
            return False
        return following.text == "{" if following.text != "(" else self._behind_bracket() == "{"

    def _behind_bracket(self) -> str:
        """The symbol after the bracket that opens at the next token and only holds an expression."""
        depth, ahead = 0, 1
        while self.cursor.index + ahead < len(self.cursor.lexed.kinds):
            text = self.cursor.peek(ahead).text
            depth += (text in ("(", "[")) - (text in (")", "]"))
            ahead += 1
            if depth == 0:
                return self.cursor.peek(ahead).text
        return ""

    def measured_block(self) -> ast.Block:
        """measured = ( "count" | ( "count" | "sum" | "avg" | "min" | "max" ) "(" … ")" ) block compare sum ;"""
        self.count_part()
        start = self.cursor.token
        if self.cursor.peek().text == "{":
            word = self.cursor.advance()
            if word.text != "count":
                help = f"Say of what: {word.text}($x.property) {{ … }}."
                raise self.cursor.fail(f"`{word.text}` needs an argument", word, help=help)
            at = between(word, word)
            call = ast.Call("count", (), star=True, at=at, name_at=at)
        else:
            call = self.call()
        clauses = self.block(f"after `{start.text}`")
        if not self.cursor.at(*COMPARISONS):
            help = "A block is measured and compared: count { … } > 2."
            raise self.cursor.fail(
                f"expected a comparison after the block, found {self.cursor.token}", help=help
            )
        op = self.compare_op()
        self.operators = 0
        value = self.sum()
        at = between(start, value.at)
        measure = ast.BlockMeasure(call, op, value, at)
        return ast.Block(ast.BlockKind.MEASURED, clauses, at, measure)

    def binding(self) -> ast.Binding:
        """binding = variable ":" TypeName [ "{" [ field { "," field } [ "," ] ] "}" ] ;"""
        self.count_part()
        token = self.cursor.advance()
        self.cursor.advance()
        name = self.cursor.type_name("a type")
        fields: list[ast.Field] = []
        if self.cursor.at("{"):
            with self.cursor.nested("{", "after the type"):
                while not self.cursor.at("}"):
                    fields.append(self.field())
                    if not self.cursor.take(","):
                        break
        at = between(token, self.cursor.previous)
        var = self.variable_of(token)
        return ast.Binding(var, name.text, tuple(fields), at, between(name, name))

    def field(self) -> ast.Field:
        """field = name ":" expr ;"""
        start = self.cursor.token
        name = self.field_name("a property")
        self.cursor.expect(":", "after the property")
        value = self.expression()
        return ast.Field(name, value, between(start, value.at))

    def path(self) -> ast.Traversal:
        """path = variable "=" ( "path" | "paths" ) traversal ;"""
        name = self.cursor.advance()
        self.cursor.advance()
        every = self.cursor.advance().text == "paths"
        return replace(self.traversal(self.variable_of(name)), every=every)

    def traversal(self, path: ast.Variable | None = None) -> ast.Traversal:
        """traversal = variable [ variable ":" ] ( edges | "<" edges ">" ) [ hops ] variable ;"""
        self.count_part()
        src = self.variable_of(self.cursor.advance())
        edge_var = None
        if self.cursor.token.kind is Tok.VARIABLE:
            edge_var = self.variable_of(self.cursor.advance())
            help = "An edge is bound as in `$a $e:knows $b`."
            self.cursor.expect(":", "after the variable of the edge", help=help)
        undirected = self.cursor.take("<") is not None
        edges = self.edges()
        if undirected:
            self.cursor.expect(">", "after the edge")
        hops = self.hops() if self.cursor.at("{") else None
        dst = self.variable_of(self.variable_token("the variable at the other end"))
        at = between((path or src).at, dst.at)
        return ast.Traversal(src, edges, dst, undirected, hops, edge_var, path, at)

    def edges(self) -> tuple[ast.EdgeWord, ...]:
        """edges = ident { "|" ident } | "(" ident { "|" ident } ")" ;"""
        bracket = self.cursor.take("(")
        words = tuple(self.cursor.sep_by(self.edge_word, "|"))
        if bracket:
            self.cursor.expect(")", "after the edges")
        return words

    def edge_word(self) -> ast.EdgeWord:
        token = self.cursor.token
        if token.kind is not Tok.NAME:
            raise self.cursor.fail(f"expected an edge, found {token}")
        self.count_operand()
        self.cursor.advance()
        return ast.EdgeWord(token.text, between(token, token))

    def hops(self) -> ast.Hops:
        """hops = "{" integer "," [ integer ] "}" ;"""
        with self.cursor.nested("{", "before the hops") as start:
            low = self.cursor.integer("the smallest number of hops", maximum=HOPS_MAX)
            help = f"Exactly {low} hops are written {{{low},{low}}}."
            self.cursor.expect(",", "between the bounds", help=help)
            at_end = self.cursor.at("}")
            high = None if at_end else self.cursor.integer("the largest", maximum=HOPS_MAX)
        return ast.Hops(low, high, between(start, self.cursor.previous))

    def filter(self) -> ast.Filter:
        """filter = expr ;"""
        expr = self.expression()
        return ast.Filter(expr, expr.at)

    def projection(self) -> ast.Projection:
        """projection = expr [ "as" ident ] ;"""
        expr = self.expression()
        alias = self.cursor.ident("a column name") if self.cursor.take("as") else None
        end = alias or self.cursor.previous
        return ast.Projection(expr, alias.text if alias else None, between(expr.at, end))

    def having(self) -> tuple[ast.Expr, ...]:
        """having = "having" "{" expr { [ "," ] expr } "}" ;"""
        self.cursor.advance()
        return self._items("{", "after `having`", self.expression)

    def order(self) -> tuple[ast.Ordering, ...]:
        """order = "order" "{" ordering { "," ordering } "}" ;"""
        self.cursor.advance()
        with self.cursor.nested("{", "after `order`"):
            return tuple(self.cursor.sep_by(self.ordering))

    def ordering(self) -> ast.Ordering:
        """ordering = expr [ "asc" | "desc" ] ;"""
        expr = self.expression()
        word = self.cursor.take("asc") or self.cursor.take("desc")
        if word and isinstance(expr, ast.Call) and expr.name == "nearest":
            message = "an ordering by nearest() takes neither `asc` nor `desc`"
            help = "The nearest always come first."
            raise self.cursor.fail(message, word, help=help)
        direction = None if word is None else word.text == "desc"
        return ast.Ordering(expr, direction, between(expr.at, word or expr.at))

    def skip_and_limit(self) -> dict[str, ast.Expr]:
        """counts = { ( "skip" | "limit" ) ( integer | variable ) } ;"""
        found: dict[str, ast.Expr] = {}
        while self.cursor.at("skip", "limit"):
            word = self.cursor.advance()
            if word.text in found:
                raise self.cursor.fail(f"`{word.text}` is given twice", word)
            found[word.text] = self.count(word.text)
        return found

    def count(self, word: str) -> ast.Expr:
        token = self.cursor.token
        if token.kind is Tok.VARIABLE:
            return self.variable_of(self.cursor.advance())
        value = self.cursor.integer(f"a whole number or a parameter after `{word}`")
        return ast.Literal(value, between(token, token))

    # --- mutations ---

    def mutation(self) -> ast.Mutation:
        """mutation = statement { [ ";" ] statement } [ ";" ] ;"""
        start = self.cursor.token
        statements = [self.statement()]
        self.semicolons()
        while not self.cursor.at_end() and (self.opening is None or not self.cursor.at("}")):
            statements.append(self.statement())
            self.semicolons()
        return ast.Mutation(tuple(statements), between(start, self.cursor.previous))

    def statement(self) -> ast.Statement:
        """statement = insert | update | delete ;"""
        self.check_closed(self.opening)
        match self.cursor.token.text:
            case "insert":
                return self.insert()
            case "update":
                return self.update()
            case "delete":
                return self.delete()
            case _:
                raise self.cursor.fail(
                    f"expected `insert`, `update` or `delete`, found {self.cursor.token}",
                    options=STATEMENTS,
                    aliases=BODY_ALIASES,
                )

    def insert(self) -> ast.Insert:
        """insert = "insert" TypeName row { "," row } ;"""
        start = self.cursor.advance()
        name = self.cursor.type_name("the type to insert")
        rows = tuple(self.cursor.sep_by(self.row))
        at = between(start, self.cursor.previous)
        return ast.Insert(name.text, rows, at, between(name, name))

    def row(self) -> ast.Row:
        """row = "{" [ field { [ "," ] field } ] "}" ;"""
        start = self.cursor.token
        with self.uncounted():
            fields = self._items("{", "before the values", self.field)
        return ast.Row(fields, between(start, self.cursor.previous))

    def update(self) -> ast.Update:
        """update = "update" TypeName "set" row "where" expr ;"""
        start = self.cursor.advance()
        name = self.cursor.type_name("the type to update")
        self.cursor.expect("set", "after the type", help="Write update T set { … } where ….")
        fields = self.row().fields
        where = self.where()
        at = between(start, self.cursor.previous)
        return ast.Update(name.text, fields, where, at, between(name, name))

    def delete(self) -> ast.Delete:
        """delete = "delete" TypeName "where" expr ;"""
        start = self.cursor.advance()
        name = self.cursor.type_name("the type to delete from")
        where = self.where()
        at = between(start, self.cursor.previous)
        return ast.Delete(name.text, where, at, between(name, name))

    def where(self) -> ast.Expr:
        help = "A statement needs a condition; `where true` takes every row."
        self.cursor.expect("where", "before the condition", help=help)
        return self.expression()

    # --- shared ---

    def _items(self, opening: str, where: str, item: Callable[[], T]) -> tuple[T, ...]:
        """Items between brackets, with or without commas between them."""
        items = []
        with self.cursor.nested(opening, where) as start:
            while not self.cursor.at("}") and not self.cursor.at_end():
                self.check_closed(start)
                items.append(item())
                self.cursor.take(",")
        return tuple(items)

    def variable_token(self, what: str) -> Token:
        if self.cursor.token.kind is Tok.VARIABLE:
            return self.cursor.advance()
        raise self.cursor.fail(f"expected {what}, found {self.cursor.token}")
