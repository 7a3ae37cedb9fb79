"""Parsing patterns, clauses and whole queries: the docstrings are the grammar.

After an error the parser goes on at the next clause, so that several errors are reported together.
"""

from __future__ import annotations

from dataclasses import replace

from omnigraph.lang.cypher import ast
from omnigraph.lang.cypher.expressions import CLAUSES, CypherExpressions, Unparsable
from omnigraph.lang.cypher.lexer import unquote
from omnigraph.lang.diagnostics import Diagnostics
from omnigraph.lang.lexer import Tok
from omnigraph.lang.source import Source

HOPS_MAX = 2**31 - 1
SHORTEST = {"SHORTESTPATH": "shortestPath", "ALLSHORTESTPATHS": "allShortestPaths"}
STARTERS = tuple(sorted(CLAUSES - {"UNION"}))
# What other products have; reported as such, not as a misspelling.
FOREIGN = {
    "FOREACH": "Use UNWIND on the list, and write for each row.",
    "LOAD": "Load files with `load`, which takes JSON lines, CSV, Parquet and Arrow.",
    "PROFILE": "Get the plan with explain=True, or `omnigraph explain`.",
    "EXPLAIN": "Get the plan with explain=True, or `omnigraph explain`.",
    "START": "Begin with MATCH.",
    "DROP": "Schemas are changed with `schema apply`.",
}


def parse(source: Source) -> ast.Query:
    """The syntax tree of a text; raises with all its errors."""
    diagnostics = Diagnostics(source)
    try:
        found = CypherParser(diagnostics).whole()
    except Unparsable:  # more errors than are worth showing
        diagnostics.raise_errors()
        raise
    diagnostics.raise_errors()
    return found


class CypherParser(CypherExpressions):
    """The whole language."""

    def whole(self) -> ast.Query:
        """[ Use ] Query [ ";" ]"""
        if self.at_end():
            self.fail("expected a query, found the end of the text")
        place = self.use() if self.is_word("USE") else None
        found = replace(self.query(top=True), use=place)
        self.take(";")
        if not self.at_end() and not self.diagnostics.errors:
            self.fail(f"expected a clause or the end, found {self.token}", options=STARTERS)
        return found

    def use(self) -> str:
        """ "USE" ( Name | String | "graph" "." "byName" "(" String ")" )"""
        self.advance()
        if [self.peek(i).text.lower() for i in range(3)] == ["graph", ".", "byname"]:
            for _ in range(3):
                self.advance()
            with self.nested("(", "after graph.byName"):
                return self.quoted("the name of a branch")
        if self.token.kind is Tok.STRING:
            return self.quoted("the name of a branch")
        return self.name("the name of a branch")

    def quoted(self, what: str) -> str:
        if self.token.kind is not Tok.STRING:
            raise self.fail(f"expected {what} in quotes, found {self.token}")
        return unquote(self.advance().text)

    def query(self, top: bool = False) -> ast.Query:
        """SingleQuery { "UNION" [ "ALL" ] SingleQuery }"""
        start = self.token
        parts, keeps = [self.single_query(top)], []
        while self.take_word("UNION"):
            keeps.append(self.take_word("ALL"))
            parts.append(self.single_query(top))
        return ast.Query(tuple(parts), tuple(keeps), self.since(start))

    def single_query(self, top: bool) -> ast.SingleQuery:
        """Clause { Clause }"""
        start, clauses = self.token, []
        while not (self.at_end() or self.at(";", "}") or self.is_word("UNION")):
            try:
                clauses.append(self.clause())
            except Unparsable:
                if not top or self.diagnostics.full:
                    raise
                self.recover_to(lambda i: self.lexed.texts[i].upper() in CLAUSES)
                if self.previous.start < start.start or self.at_end():
                    break
        if not clauses and not self.diagnostics.errors:
            self.fail(f"expected a clause, found {self.token}", options=STARTERS)
        return ast.SingleQuery(tuple(clauses), self.since(start))

    # --- clauses ---------------------------------------------------------------------------------------------------

    def clause(self) -> ast.Clause:
        token = self.token
        match token.text.upper() if token.kind is Tok.NAME else "":
            case "MATCH" | "OPTIONAL":
                return self.match_clause()
            case "UNWIND":
                return self.unwind()
            case "WITH":
                self.advance()
                return ast.With(self.projection(where=True), self.since(token))
            case "RETURN":
                self.advance()
                return ast.Return(self.projection(), self.since(token))
            case "CALL":
                return self.procedure()
            case "CREATE":
                self.advance()
                return ast.Create(tuple(self.sep_by(self.path_pattern)), self.since(token))
            case "MERGE":
                return self.merge()
            case "SET":
                self.advance()
                return ast.Set(tuple(self.sep_by(self.set_item)), self.since(token))
            case "REMOVE":
                self.advance()
                return ast.RemoveItems(tuple(self.sep_by(self.remove_item)), self.since(token))
            case "DELETE" | "DETACH":
                return self.delete()
            case "USE":
                raise self.fail("USE may appear only once, before everything else", code="C013")
            case word if word in FOREIGN:
                message = f"{word} is not part of this language"
                raise self.fail(message, code="C001", help=FOREIGN[word])
            case _:
                message = f"expected a clause, found {token}"
                lower = tuple(word.lower() for word in STARTERS)
                known = (*STARTERS, "WHERE") if token.text.isupper() else (*lower, "where")
                raise self.fail(message, options=known, help="A query starts with MATCH, UNWIND, …")

    def match_clause(self) -> ast.Match:
        """[ "OPTIONAL" ] "MATCH" Pattern { "," Pattern } [ "WHERE" Expr ]"""
        start = self.token
        optional = self.take_word("OPTIONAL")
        self.expect_word("MATCH", "after OPTIONAL")
        patterns = self.sep_by(self.path_pattern)
        predicate = self.expr() if self.take_word("WHERE") else None
        return ast.Match(tuple(patterns), predicate, optional, self.since(start))

    def unwind(self) -> ast.Unwind:
        """ "UNWIND" Expr "AS" Variable"""
        start = self.advance()
        part = self.expr()
        self.expect_word("AS", "after the list")
        return ast.Unwind(part, self.name("a variable"), self.since(start))

    def projection(self, where: bool = False) -> ast.Projection:
        """[ "DISTINCT" ] ( "*" | Item ) { "," Item } [ Order ] [ "SKIP" Expr ] [ "LIMIT" Expr ] [ "WHERE" Expr ]"""
        start = self.token
        distinct = self.take_word("DISTINCT")
        star = self.take("*") is not None
        items: list[ast.Item] = []
        if not star or self.take(","):
            items = self.sep_by(self.item)
        order: list[ast.Ordering] = []
        if self.take_word("ORDER", "BY"):
            order = self.sep_by(self.ordering)
        skip = self.expr() if self.take_word("SKIP") or self.take_word("OFFSET") else None
        limit = self.expr() if self.take_word("LIMIT") else None
        predicate = self.expr() if where and self.take_word("WHERE") else None
        return ast.Projection(
            star, tuple(items), distinct, tuple(order), skip, limit, predicate, self.since(start)
        )

    def item(self) -> ast.Item:
        """Expr [ "AS" Variable ]"""
        start = self.token
        expr = self.expr()
        at = self.since(start)
        if self.take_word("AS"):
            return ast.Item(expr, self.name("a name"), True, at)
        name = expr.name if isinstance(expr, ast.Variable) else self.text[at.start : at.end]
        return ast.Item(expr, name, isinstance(expr, ast.Variable), at)

    def ordering(self) -> ast.Ordering:
        """Expr [ "ASC" | "ASCENDING" | "DESC" | "DESCENDING" ]"""
        expr = self.expr()
        if self.take_word("DESC") or self.take_word("DESCENDING"):
            return ast.Ordering(expr, True)
        _ = self.take_word("ASC") or self.take_word("ASCENDING")
        return ast.Ordering(expr, False)

    def procedure(self) -> ast.Procedure:
        """ "CALL" Name [ "(" [ Expr { "," Expr } ] ")" ] [ "YIELD" … ]"""
        start = self.advance()
        if self.at("{"):
            message = "CALL { … } is not part of this language"
            help = "Write the inner query before a WITH, or as COUNT { … } or EXISTS { … }."
            raise self.fail(message, code="C001", help=help)
        name = self.name("the name of a procedure")
        while self.take("."):
            name += "." + self.name("the rest of the name")
        args: tuple[ast.Expr, ...] | None = None
        if self.at("("):
            with self.nested("(", "after the name"):
                args = () if self.at(")") else tuple(self.sep_by(self.expr))
        yields: list[tuple[str, str]] = []
        predicate = None
        if self.take_word("YIELD"):
            if not self.take("-") and not self.take("*"):
                yields = self.sep_by(self.yielded)
            predicate = self.expr() if self.take_word("WHERE") else None
        return ast.Procedure(name, args, tuple(yields), predicate, self.since(start))

    def yielded(self) -> tuple[str, str]:
        name = self.name("a column")
        return name, self.name("a variable") if self.take_word("AS") else name

    def _subquery(self, kind: str) -> ast.Expr:
        """( "EXISTS" | "COUNT" ) "{" ( Query | [ "MATCH" ] Pattern { "," Pattern } [ "WHERE" Expr ] ) "}" """
        start = self.advance()
        with self.nested("{", f"after {kind}"):
            if self.is_word(*CLAUSES) and self.peek().text != "=":
                query = self.query()
                return_ast = ast.Subquery(kind, query)
            else:
                patterns = self.sep_by(self.path_pattern)
                predicate = self.expr() if self.take_word("WHERE") else None
                return_ast = ast.Subquery(kind, None, tuple(patterns), predicate)
        return ast.Subquery(
            kind, return_ast.query, return_ast.patterns, return_ast.predicate, self.since(start)
        )

    # --- writing ---------------------------------------------------------------------------------------------------

    def merge(self) -> ast.Merge:
        """ "MERGE" Pattern { "ON" ( "CREATE" | "MATCH" ) "SET" SetItem { "," SetItem } }"""
        start = self.advance()
        pattern = self.path_pattern()
        made: list[ast.SetItem] = []
        matched: list[ast.SetItem] = []
        while self.take_word("ON"):
            into = made if self.take_word("CREATE") else matched
            if into is matched:
                self.expect_word("MATCH", "after ON")
            self.expect_word("SET", "after ON CREATE or ON MATCH")
            into.extend(self.sep_by(self.set_item))
        return ast.Merge(pattern, tuple(made), tuple(matched), self.since(start))

    def set_item(self) -> ast.SetItem:
        """Property "=" Expr | Variable ( "=" | "+=" ) Expr | Variable { ":" Label }"""
        start = self.token
        target = self._postfix()
        if isinstance(target, ast.HasLabels):
            return ast.SetItem(target.part, ":", None, target.labels, self.since(start))
        operator = "+=" if self.take("+=") else "="
        if operator == "=":
            self.expect("=", "after what is set")
        return ast.SetItem(target, operator, self.expr(), (), self.since(start))

    def remove_item(self) -> ast.SetItem:
        """Property | Variable { ":" Label }"""
        start = self.token
        target = self._postfix()
        if isinstance(target, ast.HasLabels):
            return ast.SetItem(target.part, ":", None, target.labels, self.since(start))
        if not isinstance(target, ast.PropertyAccess):
            raise self.fail("REMOVE takes a property: REMOVE n.name", target.at)
        return ast.SetItem(target, "=", ast.Literal(None), (), self.since(start))

    def delete(self) -> ast.Delete:
        """[ "DETACH" ] "DELETE" Expr { "," Expr }"""
        start = self.token
        detach = self.take_word("DETACH")
        self.expect_word("DELETE", "after DETACH")
        return ast.Delete(tuple(self.sep_by(self.expr)), detach, self.since(start))

    # --- patterns --------------------------------------------------------------------------------------------------

    def starts_pattern(self) -> bool:
        """Whether a bracket opens a node followed by a relationship, and not an expression."""
        if not self.at("(") or self.index not in self.closing:
            return False
        texts, end = self.lexed.texts, self.closing[self.index]
        behind = texts[end + 1 : end + 4]
        if behind[:2] not in (["-", "-"], ["-", "["]) and (
            behind[:2] != ["<", "-"] or behind[2:] not in (["-"], ["["])
        ):
            return False
        inside = texts[self.index + 1 : end]
        named = inside and self.lexed.kinds[self.index + 1] is Tok.NAME
        rest = inside[1:] if named else inside
        return not rest or rest[0] in (":", "{") or self.lexed.kinds[end - 1] is Tok.VARIABLE

    def path_pattern(self) -> ast.PathPattern:
        """[ Variable "=" ] ( Chain | ( "shortestPath" | "allShortestPaths" ) "(" Chain ")" )"""
        start, var = self.token, None
        if self.token.kind is Tok.NAME and self.peek().text == "=":
            var = self.name("a variable")
            self.advance()
        if self.is_word(*SHORTEST):
            word = SHORTEST[self.advance().text.upper()]
            with self.nested("(", "before the pattern"):
                nodes, rels = self.chain()
            return ast.PathPattern(var, nodes, rels, word, self.since(start))
        if self.at("(") and self.peek().text == "(":
            with self.nested("(", "before the pattern"):
                nodes, rels = self.chain()
        else:
            nodes, rels = self.chain()
        return ast.PathPattern(var, nodes, rels, None, self.since(start))

    def chain(self) -> tuple[tuple[ast.NodePattern, ...], tuple[ast.RelPattern, ...]]:
        """Node { Relationship Node }"""
        nodes, rels = [self.node_pattern()], []
        while self.at("-") or (self.at("<") and self.peek().text == "-"):
            rels.append(self.rel_pattern())
            nodes.append(self.node_pattern())
            self._bounded(len(rels), self.token)
        return tuple(nodes), tuple(rels)

    def node_pattern(self) -> ast.NodePattern:
        """ "(" [ Variable ] { ":" Label } [ Map | Parameter ] ")" """
        start = self.token
        with self.nested("(", "before a node"):
            var = self.name("a variable") if self.token.kind is Tok.NAME else None
            labels = self.labels()
            if self.at("|"):
                message = "use an interface to match one of several labels"
                raise self.fail(message, code="C004")
            properties = self.properties()
        return ast.NodePattern(var, labels, properties, self.since(start))

    def properties(self) -> ast.Expr | None:
        if self.at("{"):
            return self.map_literal()
        if self.token.kind is Tok.VARIABLE:
            return self._atom()
        return None

    def rel_pattern(self) -> ast.RelPattern:
        """[ "<" ] "-" [ "[" [ Variable ] [ ":" Type { "|" Type } ] [ "*" Hops ] [ Map ] "]" ] "-" [ ">" ]"""
        start = self.token
        left = self.take("<") is not None
        self.expect("-", "in a relationship")
        var, hops, properties = None, None, None
        types: tuple[str, ...] = ()
        if self.at("["):
            with self.nested("[", "in a relationship"):
                var = self.name("a variable") if self.token.kind is Tok.NAME else None
                types = self.rel_types()
                hops = self.hops() if self.take("*") else None
                properties = self.properties()
        self.expect("-", "after the relationship")
        right = self.take(">") is not None
        arrow = "-" if left == right else "<-" if left else "->"
        return ast.RelPattern(var, types, properties, arrow, hops, self.since(start))

    def rel_types(self) -> tuple[str, ...]:
        """[ ":" Type { "|" [ ":" ] Type } ]"""
        if not self.take(":"):
            return ()
        found = [self.name("a relationship type")]
        while self.take("|"):
            self.take(":")
            found.append(self.name("a relationship type"))
        return tuple(dict.fromkeys(found))

    def hops(self) -> tuple[int | None, int | None]:
        """[ Integer ] [ ".." [ Integer ] ]"""
        low = high = None
        if self.token.kind is Tok.INTEGER:
            low = self.integer("a number of hops", maximum=HOPS_MAX)
            high = low
        elif self.token.kind is Tok.FLOAT:
            raise self.fail("hops are written *1..3, with two dots")
        if self.take(".."):
            high = None
            if self.token.kind is Tok.INTEGER:
                high = self.integer("a number of hops", maximum=HOPS_MAX)
        return low, high
