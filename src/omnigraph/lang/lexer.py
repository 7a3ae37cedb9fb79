"""Text to tokens, for both languages.

One regular expression knows every token. Comments are kept separately for the formatters; a character or an escape that
belongs to neither language is reported, and lexing goes on after it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from omnigraph.lang.diagnostics import Diagnostics
from omnigraph.lang.source import Place
from omnigraph.model.frozen import frozen

TEXT_CHARS_MAX = 4_000_000
NESTING_MAX = 32  # levels of brackets


class Tok(StrEnum):
    """The kinds of tokens."""

    NAME = "name"  # person, Person, node: keywords are names in the right place
    VARIABLE = "variable"  # $person
    STRING = "string"  # "text", quotes and escapes included
    INTEGER = "integer"
    FLOAT = "float"  # 1.5, 1e9, 1.5e-3
    MIXED = "mixed"  # 3d: digits run into letters, legal only as an enum value
    SYMBOL = "symbol"
    END = "end"


MAKE = tuple.__new__  # quicker than calling Token, which matters for every token of every text


class Token(NamedTuple):
    kind: Tok
    text: str
    start: int
    end: int

    def __str__(self) -> str:
        return "the end of the text" if self.kind is Tok.END else f"`{shorten(self.text)}`"


@dataclass(slots=True)
class Lexed:
    """The tokens of a text as parallel lists, closed by one of kind END, and its comments in order.

    A long text makes many tokens; lists of plain values keep them cheap, and a `Token` is made on access.
    """

    kinds: list[Tok] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    comments: list[Token] = field(default_factory=list)
    semicolons: bool = False  # whether they are tokens
    torn: bool = False  # the text was not read to its end, so missing brackets mean nothing

    def add(self, kind: Tok, text: str, start: int) -> None:
        self.kinds.append(kind)
        self.texts.append(text)
        self.starts.append(start)

    def token(self, index: int) -> Token:
        """The token at an index; the last one stands for everything after it."""
        try:
            text, start = self.texts[index], self.starts[index]
        except IndexError:
            return self.token(-1)
        return MAKE(Token, (self.kinds[index], text, start, start + len(text)))


PATTERN = re.compile(
    r"""
    [ \t\r\n]*
    (?: (?P<name>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<symbol>[{}()\[\]:,@?|=+*%]|->?|\.\.?|!=|<=?|>=?|/(?![/*]))
      | (?P<string>"[^"\\]*(?:\\.[^"\\]*)*")
      | (?P<variable>\$[A-Za-z_][A-Za-z0-9_]*)
      | (?P<float>[0-9]+(?:\.[0-9]+(?:[eE][+-]?[0-9]+)?|[eE][+-]?[0-9]+)(?![A-Za-z0-9_]))
      | (?P<mixed>[0-9]+[A-Za-z_][A-Za-z0-9_]*)
      | (?P<integer>[0-9]+)
      | (?P<comment>//[^\n]*|/\*[^*]*\*+(?:[^/*][^*]*\*+)*/)
      | (?P<open_comment>/\*)
      | (?P<open_string>"[^\n]*)
      | (?P<single>'[^'\n]*')
      | (?P<bad>[^ \t\r\nA-Za-z0-9_"{}()\[\]:,.@?|=<>+\-*/%$]+|\$)
    )
    """,
    re.VERBOSE | re.DOTALL,
)
BACKSLASH = re.compile(r"\\(.)", re.DOTALL)
BYTE_ORDER_MARK = "\ufeff"
SURROGATE = re.compile("[\ud800-\udfff]")
BRACKETS = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}
ESCAPES = {'"': '"', "\\": "\\", "n": "\n", "r": "\r", "t": "\t"}
TOKENS = {kind.value: kind for kind in Tok}
HINTS = {
    "'": 'Strings are written in double quotes: "text".',
    "`": 'Strings are written in double quotes: "text".',
    ";": "Declarations and statements need no terminator; leave the semicolon out.",
    "#": "Comments start with // or stand between /* and */.",
    "&": "Conditions are joined with `and`.",
    "!": "Negation is the word `not`; unequal is `!=`.",
    "$": "A variable is a `$` and a name: $person.",
    "→": "The arrow is written ->.",
    "“": 'Strings are written in straight double quotes: "text".',
    "”": 'Strings are written in straight double quotes: "text".',
}


@frozen
class Tokens:
    """The lexical rules of a language."""

    pattern: re.Pattern[str]
    kinds: tuple[Tok | None, ...]  # of the groups of the pattern
    space: str
    hints: Mapping[str, str]
    check_escapes: Callable[[str, int, Diagnostics], None]


def kinds_in(pattern: re.Pattern[str]) -> tuple[Tok | None, ...]:
    """The kind of token of each group of a pattern, by its number; None for comments and what is not a token."""
    return (None, *(TOKENS.get(name) for name in pattern.groupindex))


def lex(diagnostics: Diagnostics, *, semicolons: bool = False) -> Lexed:
    """The tokens and comments of the diagnostics' source; a semicolon is a token only of the query language."""
    return tokens_of(diagnostics, Lexed(semicolons=semicolons), OWN)


def tokens_of(diagnostics: Diagnostics, lexed: Lexed, language: Tokens) -> Lexed:
    """The tokens and comments of a text in any language."""
    text = bounded(diagnostics)
    # Bound once: this loop runs for every token of every text.
    add_kind, add_text, add_start = lexed.kinds.append, lexed.texts.append, lexed.starts.append
    kinds, depth = language.kinds, 0
    # White space that no token follows would be scanned again from each of its characters.
    for match in language.pattern.finditer(text, 0, len(text.rstrip(language.space))):
        group = match.lastindex or 0
        kind = kinds[group]
        if kind is None:
            unusual(match, lexed, diagnostics, language.hints)
            if match.lastgroup == "open_comment" or diagnostics.full:
                break  # nothing after it would be shown, and a hostile text must not cost more
            continue
        add_kind(kind)
        add_text(match[group])
        add_start(match.start(group))
        if kind is Tok.SYMBOL:
            depth += BRACKETS.get(match[group], 0)
            if depth > NESTING_MAX:
                too_deep(match, lexed, diagnostics)
                break
        elif kind is Tok.STRING:
            language.check_escapes(match[group], match.start(group), diagnostics)
    lexed.add(Tok.END, "", len(text))
    return lexed


def bounded(diagnostics: Diagnostics) -> str:
    """The text to lex, which is empty when it is too long or cannot be written as UTF-8."""
    text = diagnostics.source.text
    if len(text) > TEXT_CHARS_MAX:
        message = f"the text has {len(text)} characters; at most {TEXT_CHARS_MAX} are read"
        diagnostics.error("P6", message, Place(0, 0))
        return ""
    broken = SURROGATE.search(text)
    if broken:
        diagnostics.error(
            "P3", "the text is not valid Unicode", Place(broken.start(), broken.end())
        )
        return ""
    return text


def unusual(
    match: re.Match[str], lexed: Lexed, diagnostics: Diagnostics, hints: Mapping[str, str]
) -> None:
    """A comment, or what is not a token at all, in either query language."""
    group = match.lastgroup or ""
    text, at = match[group], Place(*match.span(group))
    match group:
        case "comment":
            lexed.comments.append(Token(Tok.SYMBOL, text, *at))
        case "open_comment":
            lexed.torn = True
            message = "this comment is never closed"
            diagnostics.error("P8", message, at, label="opened here", help="Close it with */.")
        case "open_string":
            lexed.torn = True
            message = "this string is never closed"
            help = f"Close it with a `{text[0]}`; a quote inside a string is written \\{text[0]}."
            diagnostics.error("P4", message, at, label="opened here", help=help)
            lexed.add(Tok.STRING, text, at.start)  # as if it ended with the line
        case "single":
            better = quote(text[1:-1])
            help = f"Write {shorten(better)}."
            message = "strings are written in double quotes"
            diagnostics.error("P4", message, at, help=help, suggestion=better)
            lexed.add(Tok.STRING, text, at.start)
        case _ if text == BYTE_ORDER_MARK and at.start == 0:
            pass  # editors on Windows write it
        case _ if lexed.semicolons and not text.strip(";"):
            for start in range(at.start, at.end):
                lexed.add(Tok.SYMBOL, ";", start)
        case _:
            message = f"`{shorten(text)}` does not belong to the language"
            diagnostics.error("P3", message, at, help=hints.get(text[0], ""))


def too_deep(match: re.Match[str], lexed: Lexed, diagnostics: Diagnostics) -> None:
    """Nesting is bounded before anything recurses, and the rest of the text is ignored."""
    lexed.torn = True
    message = f"brackets are nested deeper than {NESTING_MAX} levels"
    diagnostics.error("P5", message, Place(match.end() - 1, match.end()))


def _check_escapes(text: str, start: int, diagnostics: Diagnostics) -> None:
    if "\\" not in text:
        return
    for match in BACKSLASH.finditer(text):
        if match[1] not in ESCAPES:
            at = Place(start + match.start(), start + match.end())
            message = f"`{shorten(match[0])}` is not an escape sequence"
            diagnostics.error("P4", message, at, help='Escapes are \\" \\\\ \\n \\r and \\t.')


OWN = Tokens(PATTERN, kinds_in(PATTERN), " \t\r\n", HINTS, _check_escapes)


def unquote(text: str) -> str:
    """The value of a string token. Escapes were checked by the lexer; an unknown one stands for its character.

    >>> unquote(r'"a\\"b"')
    'a"b'
    """
    body = (
        text[1:-1] if len(text) > 1 and text[-1] == text[0] else text[1:]
    )  # an open one was reported
    if "\\" not in body:
        return body
    return BACKSLASH.sub(lambda m: ESCAPES.get(m.group(1), m.group(1)), body)


def quote(value: str) -> str:
    """A string as the languages write it; the reverse of `unquote`."""
    for char in '\\"\n\r\t':
        if char in value:
            escaped = next(k for k, v in ESCAPES.items() if v == char)
            value = value.replace(char, "\\" + escaped)
    return f'"{value}"'


def format_value(value: str | int | float | bool | None) -> str:
    """A constant as the languages write it."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return quote(value)
        case _:
            return repr(value)


def shorten(text: str, chars: int = 40) -> str:
    """A text that fits into a message."""
    line = text.replace("\n", " ").replace("\r", " ")
    return line if len(line) <= chars else line[: chars - 1] + "…"
