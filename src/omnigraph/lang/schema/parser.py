"""Schema text to tree.

Every method parses the rule its docstring shows; the grammar in the reference manual is made from these lines. An
obvious misspelling is reported and read as intended, so that the rest of the declaration is still checked.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from omnigraph.lang.cursor import Unparsable
from omnigraph.lang.diagnostics import did_you_mean
from omnigraph.lang.lexer import Tok, Token, unquote
from omnigraph.lang.schema.ast import (
    AnnotationNode,
    CheckRule,
    Declaration,
    EdgeDecl,
    FieldsRule,
    InterfaceDecl,
    Member,
    Name,
    NodeDecl,
    PropertyDecl,
    RangeRule,
    Rule,
    Schema,
    Value,
)
from omnigraph.lang.schema.types import TypeParser
from omnigraph.lang.schema.words import CONSTRAINTS, DECLARATIONS, KEYWORD_ALIASES
from omnigraph.lang.source import Place, between
from omnigraph.model.catalog import Cardinality

COUNT_MAX = 2**32 - 1  # of a cardinality bound


class Parser(TypeParser):
    """One schema text on its way to a tree; errors go to the diagnostics."""

    # --- declarations ---

    def schema(self) -> Schema:
        """schema = { interface | node | edge } ;"""
        found: list[Declaration] = []
        while not self.cursor.at_end() and not self.diagnostics.full:
            before = self.cursor.index
            try:
                found.append(self._declaration())
            except Unparsable:
                if self.cursor.index == before:
                    self.cursor.advance()
                self.cursor.recover_to(self._declares)
        comments = tuple(self.cursor.lexed.comments)
        return Schema(tuple(found), comments, self.cursor.text, self._unread())

    def _unread(self) -> frozenset[str]:
        """After errors: every name in the place of a declaration, whether or not it could be read."""
        if not self.diagnostics.errors:
            return frozenset()
        texts = self.cursor.lexed.texts
        types = {after for word, after in pairwise(texts) if word in DECLARATIONS}
        return frozenset(types | {word for word, after in pairwise(texts) if after == ":"})

    def _declaration(self) -> Declaration:
        token = self.cursor.token
        word = token.text
        if word not in DECLARATIONS:
            word = self._meant_declaration(token)
        match word:
            case "interface":
                return self.interface()
            case "node":
                return self.node()
            case _:
                return self.edge()

    def _meant_declaration(self, token: Token) -> str:
        """Report a token in place of a declaration; continue if it is a misspelt keyword before a name."""
        if token.text == "}":
            help = "Remove it, or look for a declaration that was closed too early."
            raise self.cursor.fail("this `}` closes nothing", help=help)
        message = f"expected `node`, `edge` or `interface`, found {token}"
        failed = self.cursor.fail(message, options=DECLARATIONS, aliases=KEYWORD_ALIASES)
        meant = did_you_mean(token.text, DECLARATIONS, KEYWORD_ALIASES)
        if meant is None or token.kind is not Tok.NAME or self.cursor.peek().kind is not Tok.NAME:
            raise failed
        return meant

    def interface(self) -> InterfaceDecl:
        """interface = "interface" TypeName "{" { property } "}" ;"""
        first = self.cursor.advance()
        name = self._type_name("the name of an interface")
        if self.cursor.at("@"):
            help = "Annotate the node types that implement it, or its properties."
            raise self.cursor.fail("an interface takes no annotations", code="S11", help=help)
        members, body = self._body(f"after the name of interface {name}")
        return InterfaceDecl(name, members, between(first, self.cursor.previous), body)

    def node(self) -> NodeDecl:
        """node = "node" TypeName { annotation } [ "implements" TypeName { "," TypeName } ] body ;"""
        first = self.cursor.advance()
        name = self._type_name("the name of a node type")
        annotations = self._annotations(header=True)
        implements: list[Name] = []
        if self._take_word("implements"):
            implements = self.cursor.sep_by(lambda: self._type_name("the name of an interface"))
        if self.cursor.at("@"):
            message = "annotations come before `implements`"
            help = f"Write node {name} @… implements …"
            raise self.cursor.fail(message, help=help)
        members, body = self._body(f"to open the body of node {name}")
        at = between(first, self.cursor.previous)
        return NodeDecl(name, annotations, tuple(implements), members, at, body)

    def edge(self) -> EdgeDecl:
        """edge = "edge" TypeName ":" TypeName "->" TypeName [ card ] { annotation } [ body ] ;"""
        first = self.cursor.advance()
        name = self._type_name("the name of an edge type")
        help = f"Write edge {name}: From -> To"
        self._expect_or_assume(":", f"after the name of edge {name}", help)
        from_type = self._type_name("the node type an edge starts from")
        if self.cursor.take("-") or self.cursor.take(">"):
            self._missing("->", "between the two node types of an edge", help)
            self.cursor.take(">")
        else:
            self._expect_or_assume("->", "between the two node types of an edge", help)
        to_type = self._type_name("the node type an edge leads to")
        cardinality = self.card() if self._at_card() else None
        annotations = self._annotations(header=True)
        members: tuple[Member, ...] = ()
        body = None
        if self.cursor.at("{") or self._at_property():
            members, body = self._body(f"to open the body of edge {name}")
        at = between(first, self.cursor.previous)
        return EdgeDecl(name, from_type, to_type, cardinality, annotations, members, at, body)

    def card(self) -> Cardinality:
        """card = "@card" "(" integer ".." [ integer | "*" ] ")" ;"""
        first = self.cursor.advance()
        self.cursor.advance()
        with self.cursor.nested("(", "after @card"):
            minimum = self.cursor.integer("the least number of edges", maximum=COUNT_MAX)
            if not self.cursor.take(".."):
                help = f"Write @card({minimum}..{minimum}) for exactly {minimum}."
                message = "a cardinality is a range: @card(min..max)"
                raise self.cursor.fail(
                    message, between(first, self.cursor.token), code="S6", help=help
                )
            maximum = None
            if not self.cursor.take("*") and not self.cursor.at(")"):
                maximum = self.cursor.integer("the greatest number of edges", maximum=COUNT_MAX)
        if maximum is not None and minimum > maximum:
            message = f"the minimum of @card, {minimum}, exceeds its maximum, {maximum}"
            self.diagnostics.error("S6", message, between(first, self.cursor.previous))
        return Cardinality(minimum, maximum)

    # --- bodies ---

    def body(self) -> tuple[tuple[Member, ...], Place]:
        """body = "{" { property | constraint } "}" ;"""
        opening = self.cursor.advance()
        members: list[Member] = []
        while not self.cursor.take("}"):
            if self.cursor.at_end() or self._declares(self.cursor.index):
                self.cursor.unclosed(opening)  # a new declaration follows: no need to stop
                break
            if self.diagnostics.full:
                raise Unparsable
            self._member(members)
        return tuple(members), between(opening, self.cursor.previous)

    def _body(self, where: str) -> tuple[tuple[Member, ...], Place]:
        if self.cursor.at("{"):
            return self.body()
        failed = self._missing("{", where)
        if not self._at_property() and not self.cursor.at("@"):
            raise failed
        members: list[Member] = []  # the brace was forgotten: continue as if it were present
        while not self.cursor.take("}") and not self.cursor.at_end() and not self.diagnostics.full:
            if self._declares(self.cursor.index):
                break
            self._member(members)
        return tuple(members), Place(0, 0)

    def _member(self, members: list[Member]) -> None:
        """One member of a body; after an error in it, skips to the next one."""
        before = self.cursor.index
        try:
            if self.cursor.at(","):
                self._comma()
            elif self.cursor.at("@"):
                members.append(self.constraint())
            else:
                members.append(self.property_decl())
        except Unparsable:
            if self.cursor.index == before:
                self.cursor.advance()
            self.cursor.recover_to(self._member_boundary())

    def _comma(self) -> None:
        help = "Properties are separated by a space or a new line; leave the comma out."
        self.cursor.fail("there are no commas between properties", help=help)
        self.cursor.advance()

    def property_decl(self) -> PropertyDecl:
        """property = ident ":" type { annotation } ;"""
        name = self._ident("a property name")
        help = f"A property is written {name}: String"
        self._expect_or_assume(":", f"after the property name `{name}`", help)
        type_ref = self.type_ref()
        annotations = self._annotations(header=False)
        at = Place(name.at.start, self.cursor.previous.end)
        return PropertyDecl(name, type_ref, annotations, at)

    # --- constraints and annotations ---

    def constraint(self) -> Rule:
        """constraint = fields_rule | range_rule | check_rule ;"""
        word = self.cursor.peek().text
        if word in CONSTRAINTS and self.cursor.peek(2).text == "(":
            match word:
                case "range":
                    return self.range_rule()
                case "check":
                    return self.check_rule()
                case _:
                    return self.fields_rule()
        message = f"expected a constraint, found `@{word}`"
        if word in CONSTRAINTS:
            help = f"A constraint names its properties: @{word}(…)"
            raise self.cursor.fail(
                message, between(self.cursor.token, self.cursor.peek()), help=help
            )
        at = between(self.cursor.token, self.cursor.peek())
        meant = did_you_mean(word, CONSTRAINTS)
        help = f"Did you mean `{meant}`?" if meant else "An annotation follows its property."
        self.diagnostics.error("P1", message, at, help=help, suggestion=meant)
        raise Unparsable

    def fields_rule(self) -> FieldsRule:
        """fields_rule = "@" ( "key" | "unique" | "index" ) "(" field { "," field } ")" ;"""
        first = self.cursor.advance()
        word = self.cursor.advance().text
        fields = self.cursor.parens(lambda: self._field(word), f"after @{word}")
        return FieldsRule(word, tuple(fields), between(first, self.cursor.previous))

    def _field(self, word: str) -> Name:
        """field = ident | [ "@" ] ( "src" | "dst" ) ;"""
        if self.cursor.at("@") and self.cursor.peek().text in ("src", "dst"):
            start = self.cursor.advance()
            end = self.cursor.advance()
            return Name(end.text, Place(start.start, end.end))
        if self.cursor.token.kind is Tok.NAME:
            token = self.cursor.advance()
            return Name(token.text, Place(token.start, token.end))
        message = f"expected a property name in @{word}, found {self.cursor.token}"
        raise self.cursor.fail(message, code="S7")

    def range_rule(self) -> RangeRule:
        """range_rule = "@" "range" "(" ident "," bounds ")" ;"""
        first = self.cursor.advance()
        self.cursor.advance()
        usage = "Write @range(property, min..max); either end may be left out."
        with self.cursor.nested("(", "after @range"):
            name = self._field("range")
            if not self.cursor.take(","):
                raise self.cursor.fail("@range takes a property and bounds", code="S7", help=usage)
            minimum, maximum = self.bounds(usage)
        return RangeRule(name, minimum, maximum, between(first, self.cursor.previous))

    def bounds(self, usage: str = "") -> tuple[int | float | None, int | float | None]:
        """bounds = number ".." [ number ] | ".." number ;"""
        minimum = None if self.cursor.at("..") else self._bound(usage)
        if not self.cursor.take(".."):
            message = f"expected `..` between the bounds, found {self.cursor.token}"
            raise self.cursor.fail(message, code="S7", help=usage)
        open_end = minimum is not None and self.cursor.at(")")
        return minimum, None if open_end else self._bound(usage)

    def _bound(self, usage: str) -> int | float:
        if self.cursor.token.kind in (Tok.INTEGER, Tok.FLOAT) or self.cursor.at("-"):
            return self.number()
        message = f"expected a number as bound, found {self.cursor.token}"
        raise self.cursor.fail(message, code="S7", help=usage)

    def check_rule(self) -> CheckRule:
        """check_rule = "@" "check" "(" ident "," string ")" ;"""
        first = self.cursor.advance()
        self.cursor.advance()
        usage = 'Write @check(property, "pattern").'
        with self.cursor.nested("(", "after @check"):
            name = self._field("check")
            if not self.cursor.take(","):
                raise self.cursor.fail(
                    "@check takes a property and a pattern", code="S7", help=usage
                )
            if self.cursor.token.kind is not Tok.STRING:
                message = f"expected a pattern in double quotes, found {self.cursor.token}"
                raise self.cursor.fail(message, code="S7", help=usage)
            pattern = unquote(self.cursor.advance().text)
        return CheckRule(name, pattern, between(first, self.cursor.previous))

    def _annotations(self, *, header: bool) -> tuple[AnnotationNode, ...]:
        found: list[AnnotationNode] = []
        while self.cursor.at("@"):
            word = self.cursor.peek().text
            if word in CONSTRAINTS and self.cursor.peek(2).text == "(":
                if not header:
                    break  # a constraint of the body
                at = between(self.cursor.token, self.cursor.peek())
                message = f"@{word} belongs in the body, not after the name of the type"
                raise self.cursor.fail(message, at, code="S11")
            found.append(self.annotation())
        return tuple(found)

    def annotation(self) -> AnnotationNode:
        """annotation = "@" ident [ "(" value { "," ident "=" value } ")" ] ;"""
        first = self.cursor.advance()
        name = self.cursor.ident("the name of an annotation")
        value: Value | None = None
        arguments: list[tuple[Name, Value]] = []
        if self.cursor.at("("):
            with self.cursor.nested("(", "after the annotation"):
                value = self.value()
                while self.cursor.take(","):
                    arguments.append(self._argument(between(first, name), name.text))
                if self.cursor.at(".."):
                    raise self._misfit(between(first, name), name.text)
        at = between(first, self.cursor.previous)
        return AnnotationNode(name.text, value, tuple(arguments), at)

    def _argument(self, at: Place, annotation: str) -> tuple[Name, Value]:
        token = self.cursor.token
        if token.kind is not Tok.NAME or self.cursor.peek().text != "=":
            raise self._misfit(at, annotation)
        self.cursor.advance()
        self.cursor.advance()
        return Name(token.text, Place(token.start, token.end)), self.value()

    def _misfit(self, at: Place, annotation: str) -> Unparsable:
        """Arguments that fit no annotation are most often those of a misspelt or misplaced constraint."""
        if annotation == "card":
            help = "Write @card(min..max) directly after the target type of the edge."
            return self.cursor.fail("@card is in the wrong place", at, code="S6", help=help)
        meant = did_you_mean(annotation, (*CONSTRAINTS, "card"))
        help = f"Did you mean `@{meant}`?" if meant else "Further arguments are written name=value."
        message = f"`@{annotation}` does not take such arguments"
        self.diagnostics.error("P1", message, at, help=help, suggestion=meant)
        return Unparsable()

    # --- helpers that report and go on ---

    def _type_name(self, what: str) -> Name:
        token = self.cursor.token
        follows = self.cursor.peek().text in ("{", ":", "->", "implements", ",")
        if token.kind is Tok.NAME and not token.text[0].isupper() and follows:
            message = f"{what} starts with an upper-case letter, found {token}"
            better = "".join(part[:1].upper() + part[1:] for part in token.text.split("_"))
            help, meant = (f"Did you mean `{better}`?", better) if better else ("", None)
            self.diagnostics.error("P9", message, token, help=help, suggestion=meant)
            self.cursor.advance()
        else:
            self.cursor.type_name(what)
        return Name(token.text, Place(token.start, token.end))

    def _ident(self, what: str) -> Name:
        token = self.cursor.ident(what)
        return Name(token.text, Place(token.start, token.end))

    def _take_word(self, word: str) -> Token | None:
        """Take a keyword, also a misspelt one if nothing else is possible here."""
        token = self.cursor.token
        if token.kind is not Tok.NAME or token.text == word:
            return self.cursor.take(word)
        aliases = dict.fromkeys(("extends", "implementing", "impl", "is"), word)
        if did_you_mean(token.text, (word,), aliases) and self.cursor.peek().kind is Tok.NAME:
            self.cursor.fail(
                f"expected `{word}` or `{{`, found {token}", options=(word,), aliases=aliases
            )
            return self.cursor.advance()
        return None

    def _expect_or_assume(self, symbol: str, where: str, help: str) -> None:
        """Expect a symbol; if it is missing but a name follows on the line, report it and continue."""
        if self.cursor.take(symbol):
            return
        failed = self._missing(symbol, where, help)
        if self.cursor.at("=", ",", ".", "..") and self.cursor.peek().kind is Tok.NAME:
            self.cursor.advance()  # written instead of the right one
        elif self.cursor.starts_line(self.cursor.index) or self.cursor.token.kind is not Tok.NAME:
            raise failed

    def _missing(self, symbol: str, where: str, help: str = "") -> Unparsable:
        message = f"expected `{symbol}` {where}, found {self.cursor.token}"
        at = self.cursor.token
        self.diagnostics.error("P1", message, at, help=help, suggestion=symbol)
        return Unparsable()

    # --- where declarations and members start ---

    def _at_card(self) -> bool:
        return self.cursor.at("@") and self.cursor.peek().text == "card"

    def _at_property(self) -> bool:
        return self.cursor.token.kind is Tok.NAME and self.cursor.peek().text == ":"

    def _declares(self, index: int) -> bool:
        """Whether a declaration starts at a token: a keyword, a name, and what follows one."""
        lexed = self.cursor.lexed
        if lexed.texts[index] not in DECLARATIONS or lexed.kinds[index + 1] is not Tok.NAME:
            return False
        return lexed.texts[index + 1][0].isupper() or lexed.texts[index + 2] == "{"

    def _member_boundary(self) -> Callable[[int], bool]:
        """Whether a member or the end of the body is at a token; braces opened on the way are skipped."""
        lexed, depth = self.cursor.lexed, 0

        def stop(index: int) -> bool:
            nonlocal depth
            text = lexed.texts[index]
            if text == "{":
                depth += 1
            elif text == "}":
                depth -= 1
                return depth < 0
            elif self._declares(index):
                return True
            starts = lexed.texts[index + 1] == ":" or text == "@"
            return depth == 0 and starts and self.cursor.starts_line(index)

        return stop
