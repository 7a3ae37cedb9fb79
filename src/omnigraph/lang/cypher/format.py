"""The canonical layout of a text in Cypher: a clause per line, its keywords in capitals, comments where they were.

The text inside a clause keeps its words, because a column without an alias is named by its text. White space becomes a
single space, and a text that would mean anything else afterwards is left as it is.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

from omnigraph.lang.cypher.lexer import lex
from omnigraph.lang.cypher.parser import parse
from omnigraph.lang.diagnostics import Diagnostics
from omnigraph.lang.lexer import BRACKETS, Lexed, Tok, Token
from omnigraph.lang.source import Place, Source

INDENT = "  "
FIRST = frozenset(
    {"use", "match", "optional", "with", "unwind", "return", "call", "union"}
    | {"create", "merge", "set", "remove", "delete", "detach"}
)
BELOW = frozenset({"where", "order", "skip", "limit", "on", "yield"})  # parts of the clause before
SECOND = {
    "optional": ("match",),
    "detach": ("delete",),
    "order": ("by",),
    "union": ("all",),
    "on": ("create", "match"),
    "create": ("set",),  # of ON CREATE SET
    "match": ("set",),
    "with": ("distinct",),
    "return": ("distinct",),
}
NO_KEYWORD_AFTER = frozenset({".", ":", "|", "$", "&"})


def format_cypher(text: str, name: str = "") -> str:
    """The text in its canonical layout; raises if it cannot be parsed."""
    source = Source(text, name)
    tree = parse(source)
    lexed = lex(Diagnostics(source))
    made = _Layout(lexed, text).text()
    again = Source(made, name)
    return made if _bare(parse(again)) == _bare(tree) else text


def _bare(node: Any) -> Any:
    """A tree without places."""
    if isinstance(node, tuple) and not isinstance(node, Place):
        return tuple(map(_bare, node))
    if not is_dataclass(node):
        return node
    parts = ((f.name, getattr(node, f.name)) for f in fields(node) if f.name != "at")
    return (type(node).__name__, *((key, _bare(part)) for key, part in parts))


class _Layout:
    """Tokens and comments, laid out line by line."""

    def __init__(self, lexed: Lexed, text: str) -> None:
        self.source = text
        tokens = [lexed.token(i) for i in range(len(lexed.kinds) - 1)]
        self.parts = sorted(
            [*((t, False) for t in tokens), *((c, True) for c in lexed.comments)],
            key=lambda part: part[0].start,
        )
        self.lines: list[str] = []
        self.line = ""
        self.depth = 0
        self.words: list[str] = ["", ""]  # the two tokens before
        self.end = 0

    def text(self) -> str:
        for token, is_comment in self.parts:
            if is_comment:
                self.comment(token)
            else:
                self.token(token)
            self.end = token.end
        self.flush()
        return "\n".join(self.lines) + "\n" if self.lines else ""

    def flush(self) -> None:
        if self.line:
            self.lines.append(self.line)
        self.line = ""

    def comment(self, comment: Token) -> None:
        """After the line it followed, or on a separate line."""
        own = "\n" in self.source[self.end : comment.start] or not self.line
        if own:
            self.flush()
            self.line = comment.text.rstrip()
        else:
            self.line += " " + comment.text.rstrip()
        if own or comment.text.startswith("//"):
            self.flush()

    def token(self, token: Token) -> None:
        word = token.text.lower()
        gap = bool(self.source[self.end : token.start]) and bool(self.line.strip())
        keyword = (
            token.kind is Tok.NAME and not self.depth and self.words[-1] not in NO_KEYWORD_AFTER
        )
        follows = keyword and self.follows(word)
        if keyword and not follows and self.begins(word):
            self.flush()
            self.line = INDENT * (word in BELOW) + token.text.upper()
        elif follows:
            self.line += f" {token.text.upper()}"
        else:
            indent = INDENT * 2 if not self.line and self.lines else ""  # goes on after a comment
            self.line += indent + " " * gap + token.text
        self.depth += BRACKETS.get(token.text, 0) if token.kind is Tok.SYMBOL else 0
        self.words = [self.words[-1], word]

    def follows(self, word: str) -> bool:
        """Whether a word belongs to the keyword before it."""
        before = self.words[-1]
        if word == "set":
            return before in ("create", "match") and self.words[-2] == "on"
        return word in SECOND.get(before, ()) and not (word == "match" and before == "create")

    def begins(self, word: str) -> bool:
        """Whether a word starts a clause, or a part of one on a separate line."""
        if word == "with" and self.words[-1] in ("starts", "ends"):
            return False
        return word in FIRST or word in BELOW
