"""A cursor over tokens, for recursive-descent parsers.

A parser method takes what its grammar line says (`take`, `expect`, `ident`, `sep_by`, `block`). What does not fit is
reported once and raised as `Unparsable`; the parser catches it at a boundary it knows, calls `recover_to` and goes on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

from omnigraph.lang.diagnostics import Diagnostics, did_you_mean
from omnigraph.lang.lexer import NESTING_MAX, Lexed, Tok, Token, lex, unquote
from omnigraph.lang.source import Located

T = TypeVar("T")
CLOSING = {"{": "}", "(": ")", "[": "]"}


class Unparsable(Exception):
    """The parser cannot go on here; the reason has been reported."""


class Cursor:
    """A position in the tokens of a text."""

    def __init__(
        self,
        diagnostics: Diagnostics,
        *,
        semicolons: bool = False,
        lexed: Lexed | None = None,
    ) -> None:
        self.diagnostics = diagnostics
        self.text = diagnostics.source.text
        self.lexed = lex(diagnostics, semicolons=semicolons) if lexed is None else lexed
        self.index = 0
        self.token = self.lexed.token(0)  # the token to be read next
        self.previous = self.token  # the token read last
        self.depth = 0

    # --- looking ---

    def peek(self, ahead: int = 1) -> Token:
        """A token further on; the last one stands for everything after it."""
        return self.lexed.token(self.index + ahead)

    def at(self, *texts: str) -> bool:
        """Whether the next token is one of these words or symbols."""
        return self.token.text in texts and self.token.kind is not Tok.END

    def at_end(self) -> bool:
        return self.token.kind is Tok.END

    # --- taking ---

    def advance(self) -> Token:
        """Take the next token, whatever it is; the end stays."""
        token = self.token
        if token.kind is not Tok.END:
            self.previous = token
            self.index += 1
            self.token = self.lexed.token(self.index)
        return token

    def take(self, text: str) -> Token | None:
        """Take this word or symbol if it is next."""
        return self.advance() if self.token.text == text and text else None

    def expect(self, text: str, where: str, *, help: str = "") -> Token:
        """Take this word or symbol, or fail: "expected `:` after the property name, found `x`"."""
        if self.token.text == text:
            return self.advance()
        raise self.fail(
            f"expected `{text}` {where}, found {self.token}", options=(text,), help=help
        )

    def ident(self, what: str, *, options: Iterable[str] = (), help: str = "") -> Token:
        """Take a name that starts with a lower-case letter or an underscore."""
        return self._name(
            what, lambda c: c.islower() or c == "_", "a lower-case letter", options, help
        )

    def type_name(self, what: str, *, options: Iterable[str] = (), help: str = "") -> Token:
        """Take a name that starts with an upper-case letter."""
        return self._name(what, str.isupper, "an upper-case letter", options, help)

    def _name(
        self, what: str, fits: Callable[[str], bool], rule: str, options: Iterable[str], help: str
    ) -> Token:
        token = self.token
        if token.kind is Tok.NAME and fits(token.text[0]):
            return self.advance()
        if token.kind is Tok.NAME:
            other = token.text[0].swapcase() + token.text[1:]
            known = tuple(options)
            better = other if other != token.text and (not known or other in known) else None
            better = better or did_you_mean(token.text, known)
            help = f"Did you mean `{better}`?" if better else help
            self.diagnostics.error(
                "P9",
                f"{what} starts with {rule}, found {token}",
                token,
                help=help,
                suggestion=better,
            )
            raise Unparsable
        raise self.fail(f"expected {what}, found {token}", options=options, help=help)

    def string(self, what: str) -> str:
        """Take a string and give its value."""
        if self.token.kind is Tok.STRING:
            return unquote(self.advance().text)
        help = 'Write it in double quotes: "text".'
        raise self.fail(f"expected {what}, found {self.token}", help=help)

    def integer(self, what: str, *, maximum: int = 2**64 - 1) -> int:
        """Take an integer without sign and give its value."""
        token = self.token
        if token.kind is not Tok.INTEGER:
            raise self.fail(f"expected {what}, found {token}")
        if len(token.text.lstrip("0")) > 40 or int(token.text) > maximum:
            message = f"{token} is too large here; at most {maximum} is allowed"
            raise self.fail(message, code="P7")
        return int(self.advance().text)

    def raw(self, pattern: re.Pattern[str], what: str) -> Token:
        """Take the tokens that together are spelt like the pattern, without anything between them."""
        found = pattern.match(self.text, self.token.start)
        if self.at_end() or found is None or not found.group():
            raise self.fail(f"expected {what}, found {self.token}")
        start = self.token.start
        while not self.at_end() and self.token.end <= found.end():
            self.advance()
        if not self.at_end() and self.token.start < found.end():
            raise self.fail(f"expected {what}, found {self.token}")
        return Token(Tok.NAME, found.group(), start, found.end())

    # --- composing ---

    def sep_by(self, item: Callable[[], T], separator: str = ",") -> list[T]:
        """One or more items with a separator between them."""
        items = [item()]
        while self.take(separator):
            items.append(item())
        return items

    def parens(self, item: Callable[[], T], where: str) -> list[T]:
        """`( item, item … )`, with at least one item."""
        with self.nested("(", where):
            return self.sep_by(item)

    @contextmanager
    def nested(self, opening: str, where: str) -> Iterator[Token]:
        """The part between two brackets; both are taken, and nesting is bounded."""
        token = self.expect(opening, where)
        self.depth += 1
        try:
            if self.depth > NESTING_MAX:
                message = f"brackets are nested deeper than {NESTING_MAX} levels"
                raise self.fail(message, token, code="P5")
            yield token
            self.close(token)
        finally:
            self.depth -= 1

    def close(self, opening: Token) -> Token:
        """Take the bracket that closes this one."""
        closing = CLOSING[opening.text]
        taken = self.take(closing)
        if taken is not None:
            return taken
        if self.at_end():
            raise self.unclosed(opening)
        message = f"expected `{closing}` to close the `{opening.text}`, found {self.token}"
        self.diagnostics.error("P1", message, self.token, suggestion=closing)
        raise Unparsable

    # --- failing and going on ---

    def fail(
        self,
        message: str,
        at: Located | None = None,
        *,
        code: str = "P1",
        label: str = "",
        help: str = "",
        options: Iterable[str] = (),
        aliases: Mapping[str, str] | None = None,
    ) -> Unparsable:
        """Report a syntax error here (or `at` a place) and give what to raise.

        The legal option most like the word found here is suggested.
        """
        meant = None
        if self.token.kind in (Tok.NAME, Tok.MIXED):
            meant = did_you_mean(self.token.text, options, aliases)
        help = f"Did you mean `{meant}`?" if meant else help
        place = self.token if at is None else at
        self.diagnostics.error(code, message, place, label=label, help=help, suggestion=meant)
        return Unparsable()

    def unclosed(self, opening: Token) -> Unparsable:
        """Report a bracket that is never closed, where it was opened."""
        closing = CLOSING[opening.text]
        if self.lexed.torn:
            return Unparsable()
        self.diagnostics.error(
            "P2",
            f"this `{opening.text}` is never closed",
            opening,
            label="opened here",
            help=f"Add the missing `{closing}`.",
            suggestion=closing,
        )
        return Unparsable()

    def recover_to(self, stop: Callable[[int], bool]) -> None:
        """Skip to the first token whose index `stop` accepts, or to the end of the text.

        `stop` looks at `lexed.texts` and `lexed.starts` by index, so that skipping a long text stays cheap.
        """
        last = len(self.lexed.kinds) - 1
        self.index = next((i for i in range(self.index, last) if stop(i)), last)
        self.token = self.lexed.token(self.index)
        self.previous = self.lexed.token(max(self.index - 1, 0))

    def starts_line(self, index: int) -> bool:
        """Whether the token at an index is the first of its line."""
        if index == 0:
            return True
        starts, texts = self.lexed.starts, self.lexed.texts
        gap = self.text[starts[index - 1] + len(texts[index - 1]) : starts[index]]
        return "\n" in gap
