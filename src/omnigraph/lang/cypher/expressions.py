"""Parsing expressions: the docstrings are the grammar, from what binds least to what binds most."""

from __future__ import annotations

from omnigraph.lang.cursor import Cursor, Unparsable
from omnigraph.lang.cypher import ast
from omnigraph.lang.cypher.lexer import lex, unquote, unquoted_name
from omnigraph.lang.diagnostics import Diagnostics
from omnigraph.lang.lexer import NESTING_MAX, Tok, Token
from omnigraph.lang.source import Place, between

CHAIN_MAX = 150  # operators of one chain like a + b + c: trees are walked from top to bottom
INTEGER_MAX = 2**63 - 1
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
QUANTIFIERS = ("ALL", "ANY", "NONE", "SINGLE")
CLAUSES = frozenset(
    [
        "MATCH",
        "OPTIONAL",
        "WITH",
        "UNWIND",
        "RETURN",
        "CREATE",
        "MERGE",
        "SET",
        "REMOVE",
        "DELETE",
        "DETACH",
        "CALL",
        "UNION",
    ]
)


class CypherExpressions(Cursor):
    """The parser of expressions, which clauses and patterns are made of."""

    def __init__(self, diagnostics: Diagnostics) -> None:
        super().__init__(diagnostics, lexed=lex(diagnostics))
        self.cases = 0
        self.closing = self._closing()

    def _closing(self) -> dict[int, int]:
        """Where the round bracket opened at an index is closed."""
        found: dict[int, int] = {}
        opened: list[int] = []
        for i, text in enumerate(self.lexed.texts):
            if text == "(":
                opened.append(i)
            elif text == ")" and opened:
                found[opened.pop()] = i
        return found

    # --- words -----------------------------------------------------------------------------------------------------

    def is_word(self, *words: str) -> bool:
        """Whether the next token is one of these keywords, in any case."""
        return self.token.kind is Tok.NAME and self.token.text.upper() in words

    def are_words(self, *words: str) -> bool:
        """Whether these keywords come next, one after the other."""
        tokens = [self.peek(i) for i in range(len(words))]
        return all(
            t.kind is Tok.NAME and t.text.upper() == w for t, w in zip(tokens, words, strict=True)
        )

    def take_word(self, *words: str) -> bool:
        """Take these keywords if they come next."""
        if not self.are_words(*words):
            return False
        for _ in words:
            self.advance()
        return True

    def expect_word(self, word: str, where: str) -> None:
        if not self.take_word(word):
            message = f"expected {word} {where}, found {self.token}"
            raise self.fail(message, options=(word, word.lower()))

    def name(self, what: str) -> str:
        """Any name, in backticks or not."""
        if self.token.kind is Tok.NAME:
            return unquoted_name(self.advance().text)
        raise self.fail(f"expected {what}, found {self.token}")

    def since(self, first: Token | Place) -> Place:
        return between(first, self.previous)

    # --- operators -------------------------------------------------------------------------------------------------

    def expr(self) -> ast.Expr:
        """Xor { "OR" Xor }"""
        return self._connected("OR", self._xor)

    def _xor(self) -> ast.Expr:
        """And { "XOR" And }"""
        return self._connected("XOR", self._and)

    def _and(self) -> ast.Expr:
        """Not { "AND" Not }"""
        return self._connected("AND", self._not)

    def _connected(self, word: str, part: object) -> ast.Expr:
        start = self.token
        parts = [part()]  # type: ignore[operator]
        while self.take_word(word):
            parts.append(part())  # type: ignore[operator]
        if len(parts) == 1:
            return parts[0]  # type: ignore[no-any-return]
        return ast.Connective(word.lower(), tuple(parts), self.since(start))

    def _not(self) -> ast.Expr:
        """{ "NOT" } Comparison"""
        start, negations = self.token, 0
        while self.take_word("NOT"):
            negations += 1
        part = self._comparison()
        for _ in range(2 - negations % 2 if negations > 1 else negations):
            part = ast.Unary("not", part, self.since(start))
        return part

    def _comparison(self) -> ast.Expr:
        """Predicate { ( "=" | "<>" | "<" | "<=" | ">" | ">=" ) Predicate }"""
        start, first = self.token, self._predicate()
        rest: list[tuple[str, ast.Expr]] = []
        while self.token.kind is Tok.SYMBOL and self.token.text in COMPARISONS:
            operator = self.advance().text
            rest.append((operator, self._predicate()))
            self._bounded(len(rest), start)
        if self.at("!") and self.peek().text == "=":
            raise self.fail("unequal is written <>", help="Write <> instead of !=.")
        return ast.ComparisonChain(first, tuple(rest), self.since(start)) if rest else first

    def _predicate(self) -> ast.Expr:
        """Sum { "IN" Sum | "STARTS WITH" Sum | "ENDS WITH" Sum | "CONTAINS" Sum | "=~" Sum | "IS" ["NOT"] "NULL" }"""
        start, found, count = self.token, self._sum(), 0
        while True:
            count += 1
            self._bounded(count, start)
            if self.take_word("STARTS", "WITH"):
                found = ast.Binary("starts_with", found, self._sum(), self.since(start))
            elif self.take_word("ENDS", "WITH"):
                found = ast.Binary("ends_with", found, self._sum(), self.since(start))
            elif self.take_word("CONTAINS"):
                found = ast.Binary("contains", found, self._sum(), self.since(start))
            elif self.take_word("IN"):
                found = ast.Binary("in", found, self._sum(), self.since(start))
            elif self.take("=~"):
                found = ast.Binary("=~", found, self._sum(), self.since(start))
            elif self.take_word("IS", "NULL"):
                found = ast.IsNull(found, False, self.since(start))
            elif self.take_word("IS", "NOT", "NULL"):
                found = ast.IsNull(found, True, self.since(start))
            else:
                return found

    def _sum(self) -> ast.Expr:
        """Product { ( "+" | "-" ) Product }"""
        return self._binary(("+", "-"), self._product)

    def _product(self) -> ast.Expr:
        """Power { ( "*" | "/" | "%" ) Power }"""
        return self._binary(("*", "/", "%"), self._power)

    def _power(self) -> ast.Expr:
        """Signed { "^" Signed }"""
        return self._binary(("^",), self._signed)

    def _binary(self, operators: tuple[str, ...], part: object) -> ast.Expr:
        start, found, count = self.token, part(), 0  # type: ignore[operator]
        while self.token.kind is Tok.SYMBOL and self.token.text in operators:
            count += 1
            self._bounded(count, start)
            operator = self.advance().text
            found = ast.Binary(operator, found, part(), self.since(start))  # type: ignore[operator]
        return found  # type: ignore[no-any-return]

    def _bounded(self, count: int, start: Token) -> None:
        if count > CHAIN_MAX:
            message = f"more than {CHAIN_MAX} operators follow each other"
            raise self.fail(message, self.since(start), code="P5")

    def _signed(self) -> ast.Expr:
        """{ "+" | "-" } Postfix"""
        start, negative = self.token, False
        while self.at("+", "-"):
            negative ^= self.advance().text == "-"
        if not negative:
            return self._postfix()
        if self.token.kind in (Tok.INTEGER, Tok.MIXED):
            return self._continued(ast.Literal(self._integer(-1), self.since(start)), start)
        return ast.Unary("-", self._postfix(), self.since(start))

    def _postfix(self) -> ast.Expr:
        """Atom { "." name | "[" Expr "]" | "[" [Expr] ".." [Expr] "]" | ":" Label { ":" Label } }"""
        start = self.token
        return self._continued(self._atom(), start)

    def _continued(self, found: ast.Expr, start: Token) -> ast.Expr:
        count = 0
        while True:
            count += 1
            self._bounded(count, start)
            if self.take("."):
                found = ast.PropertyAccess(
                    found, self.name("the name of a property"), self.since(start)
                )
            elif self.at("["):
                found = self._subscript(found, start)
            elif self.at(":") and self.peek().kind is Tok.NAME:
                found = ast.HasLabels(found, self.labels(), self.since(start))
            else:
                return found

    def labels(self) -> tuple[str, ...]:
        """{ ":" Label }"""
        found = []
        while self.take(":"):
            found.append(self.name("a label"))
        return tuple(found)

    def _subscript(self, part: ast.Expr, start: Token) -> ast.Expr:
        with self.nested("[", "after the list"):
            low = None if self.at("..") else self.expr()
            if not self.take(".."):
                if low is None:
                    raise self.fail(f"expected an index, found {self.token}")
                index = low
                low = None
            else:
                high = None if self.at("]") else self.expr()
                index = None
        if index is not None:
            return ast.Index(part, index, self.since(start))
        return ast.ListSlice(part, low, high, self.since(start))

    # --- atoms -----------------------------------------------------------------------------------------------------

    def _atom(self) -> ast.Expr:
        """Literal | Parameter | List | Map | "(" Expr ")" | Case | Call | Subquery | Pattern | Variable"""
        token = self.token
        match token.kind:
            case Tok.STRING:
                self.advance()
                return ast.Literal(unquote(token.text), self.since(token))
            case Tok.INTEGER | Tok.MIXED:
                return ast.Literal(self._integer(), self.since(token))
            case Tok.FLOAT:
                return self._float()
            case Tok.VARIABLE:
                self.advance()
                return ast.Parameter(unquoted_name(token.text[1:]), self.since(token))
            case Tok.NAME:
                return self._named()
            case _:
                return self._bracketed()

    def _bracketed(self) -> ast.Expr:
        token = self.token
        match token.text:
            case "(" if self.starts_pattern():
                return ast.PatternExpr(self.path_pattern(), self.since(token))
            case "(":
                with self.nested("(", "before an expression"):
                    return self.expr()
            case "[":
                return self._list()
            case "{":
                return self.map_literal()
            case _:
                raise self.fail(f"expected an expression, found {token}")

    def _integer(self, sign: int = 1) -> int:
        token = self.token
        text = token.text.lower()
        base = {"0x": 16, "0o": 8}.get(text[:2], 10)
        digits = text if base == 10 else text[2:]
        if not digits or not set(digits) <= set("0123456789abcdef"[:base]):
            raise self.fail(f"{token} is not a number")
        if (
            len(text) > 40
            or (value := sign * int(text, base)) > INTEGER_MAX
            or value < ~INTEGER_MAX
        ):
            raise self.fail(f"{token} is too large; integers have 64 bits", code="P7")
        self.advance()
        return value

    def _float(self) -> ast.Expr:
        token = self.advance()
        value = float(token.text)
        if value == float("inf"):
            raise self.fail(f"{token} is too large", token, code="P7")
        return ast.Literal(value, self.since(token))

    def _named(self) -> ast.Expr:
        """What starts with a word: a constant, a call, a case, or a variable."""
        token, word = self.token, self.token.text.upper()
        following = self.peek().text
        if word in ("TRUE", "FALSE", "NULL") and following != "(":
            self.advance()
            known = {"TRUE": True, "FALSE": False, "NULL": None}
            return ast.Literal(known[word], self.since(token))
        if word == "CASE" and following not in (".", ")", ",", "="):
            return self._case()
        if word in ("EXISTS", "COUNT") and following == "{":
            return self._subquery(word.lower())
        if following == "(" or (following == "." and self._is_namespaced()):
            return self._call(word)
        if following == "{" and not token.text.startswith("`") and self._is_projection():
            return self._map_projection()
        if word in CLAUSES and not token.text.startswith("`"):
            raise self.fail(f"expected an expression, found {token}")
        self.advance()
        return ast.Variable(unquoted_name(token.text), self.since(token))

    def _is_namespaced(self) -> bool:
        """Whether a name with dots ends in a bracket: `apoc.text.join(…)`."""
        ahead = 0
        while self.peek(ahead).kind is Tok.NAME and self.peek(ahead + 1).text == ".":
            ahead += 2
        return self.peek(ahead).kind is Tok.NAME and self.peek(ahead + 1).text == "("

    def _is_projection(self) -> bool:
        return self.peek(2).text in (".", "}") or (
            self.peek(2).kind is Tok.NAME and self.peek(3).text in (":", ",", "}")
        )

    def _list(self) -> ast.Expr:
        """ "[" [ Expr { "," Expr } ] "]" | ListComprehension | PatternComprehension"""
        start = self.token
        with self.nested("[", "before a list"):
            if self.token.kind is Tok.NAME and self.peek().text.upper() == "IN":
                found = self._comprehension(start)
            elif self.starts_pattern() or (self.peek().text == "=" and self.peek(2).text == "("):
                found = self._pattern_comprehension(start)
            else:
                items = [] if self.at("]") else self.sep_by(self.expr)
                found = ast.ListLiteral(tuple(items))
        return _placed(found, self.since(start))

    def _comprehension(self, start: Token) -> ast.Expr:
        """Variable "IN" Expr [ "WHERE" Expr ] [ "|" Expr ]"""
        var = self.name("a variable")
        self.expect_word("IN", "after the variable")
        part = self.expr()
        predicate = self.expr() if self.take_word("WHERE") else None
        body = self.expr() if self.take("|") else None
        return ast.ListComprehension(var, part, predicate, body, self.since(start))

    def _pattern_comprehension(self, start: Token) -> ast.Expr:
        """[ Variable "=" ] Pattern [ "WHERE" Expr ] "|" Expr"""
        pattern = self.path_pattern()
        predicate = self.expr() if self.take_word("WHERE") else None
        self.expect("|", "before what is listed")
        return ast.PatternComprehension(pattern, predicate, self.expr(), self.since(start))

    def map_literal(self) -> ast.MapLiteral:
        """ "{" [ name ":" Expr { "," name ":" Expr } ] "}" """
        start = self.token
        with self.nested("{", "before a map"):
            items = [] if self.at("}") else self.sep_by(self._entry)
        return ast.MapLiteral(tuple(items), self.since(start))

    def _entry(self) -> tuple[str, ast.Expr]:
        name = self.name("a key")
        self.expect(":", "after the key")
        return name, self.expr()

    def _map_projection(self) -> ast.Expr:
        """Variable "{" { ".*" | "." name | name ":" Expr | Variable } "}" """
        start = self.token
        var = self.name("a variable")
        with self.nested("{", "after the variable"):
            items = [] if self.at("}") else self.sep_by(self._projected)
        return ast.MapProjection(var, tuple(items), self.since(start))

    def _projected(self) -> tuple[str, ast.Expr | None]:
        start = self.token
        if self.take("."):
            if self.take("*"):
                return "*", None
            return self.name("the name of a property"), None
        name = self.name("a key")
        if self.take(":"):
            return name, self.expr()
        return name, ast.Variable(name, self.since(start))

    def _case(self) -> ast.Expr:
        """ "CASE" [ Expr ] { "WHEN" Expr "THEN" Expr } [ "ELSE" Expr ] "END" """
        start = self.advance()
        self.cases += 1
        if self.cases > NESTING_MAX:
            raise self.fail(f"CASE is nested deeper than {NESTING_MAX} levels", start, code="P5")
        subject = None if self.is_word("WHEN") else self.expr()
        whens = []
        while self.take_word("WHEN"):
            condition = self.expr()
            self.expect_word("THEN", "after the condition")
            whens.append((condition, self.expr()))
            self._bounded(len(whens), start)
        if not whens:
            raise self.fail(f"expected WHEN, found {self.token}", options=("WHEN", "when"))
        default = self.expr() if self.take_word("ELSE") else None
        self.expect_word("END", "after the last case")
        self.cases -= 1
        return ast.CaseExpr(subject, tuple(whens), default, self.since(start))

    def _call(self, word: str) -> ast.Expr:
        """Name "(" [ "DISTINCT" ] [ "*" | Expr { "," Expr } ] ")" """
        start = self.token
        if word in QUANTIFIERS and self.peek(3).text.upper() == "IN":
            return self._quantifier(word.lower())
        if word == "REDUCE" and self.peek(3).text == "=":
            return self._reduce()
        if word in ("SHORTESTPATH", "ALLSHORTESTPATHS"):
            return ast.PatternExpr(self.path_pattern(), self.since(start))
        name = self.name("a function").lower()
        while self.take("."):
            name += "." + self.name("the rest of the function's name").lower()
        distinct = star = False
        args: list[ast.Expr] = []
        with self.nested("(", "after the function"):
            distinct = self.take_word("DISTINCT")
            if self.at("*"):
                self.advance()
                star = True
            elif not self.at(")"):
                args = self.sep_by(self.expr)
        return ast.Call(name, tuple(args), distinct, star, self.since(start))

    def _quantifier(self, name: str) -> ast.Expr:
        """Name "(" Variable "IN" Expr "WHERE" Expr ")" """
        start = self.advance()
        with self.nested("(", f"after {name}"):
            var = self.name("a variable")
            self.expect_word("IN", "after the variable")
            part = self.expr()
            predicate: ast.Expr = ast.Literal(True)
            if self.take_word("WHERE"):
                predicate = self.expr()
        return ast.Quantifier(name, var, part, predicate, self.since(start))

    def _reduce(self) -> ast.Expr:
        """ "reduce" "(" Variable "=" Expr "," Variable "IN" Expr "|" Expr ")" """
        start = self.advance()
        with self.nested("(", "after reduce"):
            total = self.name("a variable")
            self.expect("=", "after the variable")
            first = self.expr()
            self.expect(",", "after the first value")
            var = self.name("a variable")
            self.expect_word("IN", "after the variable")
            part = self.expr()
            self.expect("|", "before the next value")
            body = self.expr()
        return ast.Reduce(total, first, var, part, body, self.since(start))

    # --- what patterns and clauses add ---------------------------------------------------------------------------

    def starts_pattern(self) -> bool:
        raise NotImplementedError

    def path_pattern(self) -> ast.PathPattern:
        raise NotImplementedError

    def _subquery(self, kind: str) -> ast.Expr:
        raise NotImplementedError


def _placed(node: ast.Expr, at: Place) -> ast.Expr:
    return ast.ListLiteral(node.items, at) if isinstance(node, ast.ListLiteral) else node


__all__ = ["CLAUSES", "CypherExpressions", "Unparsable"]
