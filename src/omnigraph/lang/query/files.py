"""Texts to syntax trees: settings at the top, then queries, or a single statement.

The words of statements and the names of settings are not reserved: in the body of a query they are names.
"""

from __future__ import annotations

from contextlib import suppress

from omnigraph.lang.cursor import Cursor, Unparsable
from omnigraph.lang.diagnostics import Diagnostics, LanguageError
from omnigraph.lang.lexer import Tok
from omnigraph.lang.query import ast
from omnigraph.lang.query.parser import BARE_NAME, STATEMENTS, QueryParser
from omnigraph.lang.query.settings import why_not
from omnigraph.lang.source import Source, between

BRANCH_VERBS = ("create", "delete", "merge", "list")
JOINED_BY = {"create": "from", "merge": "into"}
FILE_WORDS = ("set", "reset", "show", "explain", "branch")


def parse(source: Source, *, bare: bool = False) -> ast.QueryFile:
    """The syntax tree of a text; raises with every error found. `bare`: it may be the body of one query alone."""
    diagnostics = Diagnostics(source)
    tree = parse_into(diagnostics, bare=bare)
    try:
        diagnostics.raise_errors()
    except LanguageError as error:
        from omnigraph.lang.query.foreign import answered

        raise answered(error) from None
    return tree


def parse_into(diagnostics: Diagnostics, *, bare: bool = False) -> ast.QueryFile:
    """The readable part of a text; errors in the rest go into the diagnostics."""
    return FileParser(Cursor(diagnostics, semicolons=True), bare=bare).file()


class FileParser(QueryParser):
    """Parses whole texts."""

    def __init__(self, cursor: Cursor, *, bare: bool) -> None:
        super().__init__(cursor)
        self.bare = bare

    def file(self) -> ast.QueryFile:
        """file = { setting } ( { query } | show | branch_statement | explain ) ;"""
        settings: tuple[ast.SettingLine, ...] = ()
        queries: tuple[ast.Query, ...] = ()
        statement: ast.FileStatement | None = None
        with suppress(Unparsable):
            settings = self.settings()
            if self.bare and self.cursor.at("match", *STATEMENTS):
                queries = self.bare_query()
            elif self.cursor.at("show", "branch", "explain"):
                queries, statement = self.alone()
            else:
                queries = self.queries()
                self._check_purpose(settings, queries)
        comments = tuple(self.cursor.lexed.comments)
        return ast.QueryFile(queries, comments, settings, statement)

    def _check_purpose(
        self, settings: tuple[ast.SettingLine, ...], queries: tuple[ast.Query, ...]
    ) -> None:
        if settings and not queries and not self.cursor.diagnostics.errors:
            message = "the file contains only settings, no statement"
            help = "A setting applies to its file only: write a query or a statement below it."
            self.cursor.diagnostics.error("Q022", message, settings[-1].at, help=help)

    def queries(self) -> tuple[ast.Query, ...]:
        found = []
        while not self.cursor.at_end() and not self.cursor.diagnostics.full:
            try:
                self._refuse_statement()
                found.append(self.query())
            except Unparsable:
                self.cursor.depth = 0
                self.cursor.recover_to(self._starts_query)
        return tuple(found)

    def _refuse_statement(self) -> None:
        word = self.cursor.token
        if word.text not in FILE_WORDS or self.cursor.index == 0:
            return
        if word.text in ("set", "reset"):
            message = "settings must be at the top of a file"
            raise self.cursor.fail(message, word, code="Q022", help="Move it before the queries.")
        message = f"`{word.text}` must be alone in its file"
        help = "A file holds queries, or one statement: put this one into a separate file."
        raise self.cursor.fail(message, word, code="Q022", help=help)

    def bare_query(self) -> tuple[ast.Query, ...]:
        """typed = read | mutation ;"""
        start = self.cursor.token
        body = self.body()
        if not self.cursor.at_end():
            self._unexpected_tail()
        at = between(start, self.cursor.previous)
        return (ast.Query(BARE_NAME, (), body, None, None, at, between(start, start)),)

    # --- settings ---

    def settings(self) -> tuple[ast.SettingLine, ...]:
        found = []
        while self.cursor.at("set", "reset"):
            found.append(self.set() if self.cursor.at("set") else self.reset())
        return tuple(found)

    def set(self) -> ast.SettingLine:
        """setting = "set" name "=" ( integer | ident | string ) ";" | "reset" ( name | "all" ) ";" ;"""
        start = self.cursor.advance()
        name = self.cursor.ident("the name of a setting")
        self.cursor.expect("=", "after the name of the setting", help="Write set rows_max = 100;")
        token = self.cursor.token
        value: str | int
        if token.kind is Tok.INTEGER:
            value = self.cursor.integer("the value")
        elif token.kind is Tok.STRING:
            value = self.cursor.string("the value")
        else:
            value = self.cursor.ident("a number, a word or a text").text
        self._end_of_setting()
        if (wrong := why_not(name.text, value)) is not None:
            self.cursor.diagnostics.error("Q023", wrong, between(name, token))
        return ast.SettingLine(name.text, value, between(start, self.cursor.previous))

    def reset(self) -> ast.SettingLine:
        start = self.cursor.advance()
        name = self._setting_name()
        self._end_of_setting()
        return ast.SettingLine(name, None, between(start, self.cursor.previous))

    def _setting_name(self) -> str | None:
        """The name of an existing setting, or None for `all`."""
        token = self.cursor.ident("the name of a setting, or `all`")
        if token.text == "all":
            return None
        if (wrong := why_not(token.text)) is not None:
            self.cursor.diagnostics.error("Q023", wrong, between(token, token))
        return token.text

    def _end_of_setting(self) -> None:
        self.cursor.expect(";", "after the setting", help="A setting ends with a semicolon.")

    # --- statements ---

    def alone(self) -> tuple[tuple[ast.Query, ...], ast.FileStatement]:
        """The one statement of a file, and the query it is about."""
        queries: tuple[ast.Query, ...] = ()
        statement: ast.FileStatement
        if self.cursor.at("show"):
            statement = self.show()
        elif self.cursor.at("branch"):
            statement = self.branch_statement()
        else:
            queries, statement = self.explain()
        self.semicolons()
        if not self.cursor.at_end():
            message = (
                f"`{statement.words}` must be alone in its file, found {self.cursor.token} after it"
            )
            help = "Put the rest into a separate file."
            raise self.cursor.fail(message, code="Q022", help=help)
        return queries, statement

    def show(self) -> ast.ShowSettings:
        """show = "show" ( name | "all" ) [ ";" ] ;"""
        start = self.cursor.advance()
        name = self._setting_name()
        return ast.ShowSettings(name, between(start, self.cursor.previous))

    def explain(self) -> tuple[tuple[ast.Query, ...], ast.Explain]:
        """explain = "explain" query ;"""
        start = self.cursor.advance()
        queries = self.bare_query() if self.cursor.at("match") else (self.query(),)
        if isinstance(queries[0].body, ast.Mutation):
            help = "Use a dry run to see what a mutation would do."
            raise self.cursor.fail(
                "`explain` takes a query that reads", start, code="Q022", help=help
            )
        return queries, ast.Explain(between(start, start))

    def branch_statement(self) -> ast.BranchStatement:
        """branch_statement = "branch" ( "create" branch_name [ "from" branch_name ] | "delete" branch_name |
        "merge" branch_name [ "into" branch_name ] | "list" ) [ ";" ] ;"""
        start = self.cursor.advance()
        word = self.cursor.token
        if not self.cursor.at(*BRANCH_VERBS):
            message = f"expected `create`, `delete`, `merge` or `list` after `branch`, found {word}"
            raise self.cursor.fail(message, options=BRANCH_VERBS)
        verb = self.cursor.advance().text
        name = other = None
        if verb != "list":
            name = self.branch_name()
            if verb in JOINED_BY and self.cursor.take(JOINED_BY[verb]):
                other = self.branch_name()
        return ast.BranchStatement(verb, name, other, between(start, self.cursor.previous))

    def branch_name(self) -> str:
        """branch_name = ident | string ;"""
        if self.cursor.token.kind is Tok.STRING:
            return self.cursor.string("the name of a branch")
        help = 'Put names with other characters in quotes: "review/2026".'
        return self.cursor.ident("the name of a branch", help=help).text
