"""Text to tokens, for Cypher: strings in either quotes, names in backticks, keywords in any case.

The tokens are those of `omnigraph.lang.lexer`, and so are its bounds. Tokens keep their text as it was written; a name
in backticks is therefore never taken for a keyword.
"""

from __future__ import annotations

import re

from omnigraph.lang.diagnostics import Diagnostics
from omnigraph.lang.lexer import Lexed, Tokens, kinds_in, shorten, tokens_of
from omnigraph.lang.source import Place

PATTERN = re.compile(
    r"""
    [ \t\r\n\f\v\u00a0\u2000-\u200a\u202f\u205f\u3000]*
    (?: (?P<name>[^\W\d]\w*|`[^`]*(?:``[^`]*)*`)
      | (?P<comment>//[^\n]*|/\*[^*]*\*+(?:[^/*][^*]*\*+)*/)
      | (?P<open_comment>/\*)
      | (?P<string>'[^'\\]*(?:\\.[^'\\]*)*'|"[^"\\]*(?:\\.[^"\\]*)*")
      | (?P<variable>\$(?:[^\W\d]\w*|[0-9]+|`[^`]+`))
      | (?P<float>(?:[0-9]+\.[0-9]+|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?!\w)|[0-9]+[eE][+-]?[0-9]+(?!\w))
      | (?P<mixed>0[xX][0-9a-fA-F]+(?!\w)|0[oO][0-7]+(?!\w)|[0-9]+[^\W\d]\w*)
      | (?P<integer>[0-9]+)
      | (?P<symbol><=|>=|<>|=~|\+=|\.\.|[{}()\[\]:,;.|=<>+\-*/%^!])
      | (?P<open_string>['"][^\n]*)
      | (?P<bad>`[^\n]*|\$|[^\s\w{}()\[\]:,;.|=<>+\-*/%^!'"`$]+|.)
    )
    """,
    re.VERBOSE | re.DOTALL,
)
ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"} | {c: c for c in "\\'\"`"}
SPACE = " \t\r\n\f\v\u00a0"
HINTS = {
    "→": "An arrow is written -->, or -[:TYPE]->.",
    "“": "Strings are written in straight quotes: 'text'.",
    "”": "Strings are written in straight quotes: 'text'.",
    "`": "A name in backticks ends with a backtick.",
    "$": "A parameter is a `$` and a name: $person.",
    "&": "Conditions are joined with AND; several labels are written :A:B.",
    "#": "Comments start with // or stand between /* and */.",
}


def lex(diagnostics: Diagnostics) -> Lexed:
    """The tokens and comments of the diagnostics' source."""
    return tokens_of(diagnostics, Lexed(), CYPHER)


def _check_escapes(text: str, start: int, diagnostics: Diagnostics) -> None:
    for match in ESCAPE.finditer(text) if "\\" in text else ():
        if match[1] not in ESCAPES and len(match[1]) == 1:
            at = Place(start + match.start(), start + match.end())
            message = f"`{shorten(match[0])}` is not an escape sequence"
            help = "Escapes are \\\\ \\' \\\" \\n \\r \\t \\b \\f and \\uXXXX."
            diagnostics.error("P4", message, at, help=help)


CYPHER = Tokens(PATTERN, kinds_in(PATTERN), SPACE, HINTS, _check_escapes)


def unquote(text: str) -> str:
    """The value of a string token.

    >>> unquote(r"'it\\'s'")
    "it's"
    """
    body = text[1:-1] if len(text) > 1 and text[-1] == text[0] else text[1:]
    return ESCAPE.sub(_unescaped, body) if "\\" in body else body


def _unescaped(match: re.Match[str]) -> str:
    found = match[1]
    if len(found) > 1:
        number = int(found[1:], 16)
        return chr(number) if number < 0x110000 and not 0xD800 <= number < 0xE000 else "\ufffd"
    return ESCAPES.get(found, found)


def unquoted_name(text: str) -> str:
    """The name of a name token; backticks around it are not part of it.

    >>> unquoted_name("`first name`")
    'first name'
    """
    return text[1:-1].replace("``", "`") if text.startswith("`") else text


def quote(value: str) -> str:
    """A string as Cypher writes it."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    for name, char in (("n", "\n"), ("r", "\r"), ("t", "\t")):
        escaped = escaped.replace(char, "\\" + name)
    return f"'{escaped}'"
