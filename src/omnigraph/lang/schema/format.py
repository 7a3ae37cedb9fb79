"""Tree to canonical text: one member per line, two spaces, comments where they were.

A comment stays before the declaration or member it was before or inside of, or after the one whose line it ended.
Single blank lines between members are kept.
"""

from __future__ import annotations

from omnigraph.lang.lexer import format_value, quote
from omnigraph.lang.schema.ast import (
    AnnotationNode,
    CheckRule,
    Declaration,
    EdgeDecl,
    FieldsRule,
    InterfaceDecl,
    Member,
    NodeDecl,
    PropertyDecl,
    RangeRule,
    Schema,
    TypeRef,
    Value,
)
from omnigraph.lang.source import Place

INDENT = "  "


def print_schema(schema: Schema) -> str:
    """The canonical text of a tree."""
    return _SchemaPrinter(schema).print()


class _SchemaPrinter:
    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.text = schema.text
        self.comments = list(reversed(schema.comments))  # the next one last
        self.lines: list[str] = []
        self.end = 0  # how far the source has been printed
        self.fresh = True  # no blank line is needed: at the start, or in an opened body

    def print(self) -> str:
        spaced = False
        for declaration in self.schema.declarations:
            has_body = bool(declaration.members) or not isinstance(declaration, EdgeDecl)
            self._declaration(declaration, spaced or (has_body and bool(self.lines)))
            spaced = has_body
        self._comments(len(self.text) + 1, "", spaced)
        return "\n".join(self.lines) + "\n" if self.lines else ""

    def _declaration(self, declaration: Declaration, spaced: bool) -> None:
        body = declaration.body or Place(declaration.at.end, declaration.at.end)
        spaced = self._comments(body.start + 1, "", spaced)
        header = _header(declaration)
        bare = isinstance(declaration, EdgeDecl) and declaration.body is None
        if bare and not declaration.members:
            self._line(header, declaration.at, spaced)
            self._trailing(len(self.text))
            return
        self._line(f"{header} {{", Place(declaration.at.start, body.start + 1), spaced)
        first = declaration.members[0].at.start if declaration.members else body.end
        self._trailing(first)
        self.fresh = True
        before = len(self.lines)
        self._members(declaration.members, body.end - 1)
        if len(self.lines) == before and self.lines[-1].endswith("{"):
            self.lines[-1] += "}"
        else:
            self.fresh = True
            self._line("}", Place(body.end - 1, body.end), False)
        self.end, self.fresh = declaration.at.end, False
        self._trailing(len(self.text))

    def _members(self, members: tuple[Member, ...], end: int) -> None:
        for index, member in enumerate(members):
            following = members[index + 1].at.start if index + 1 < len(members) else end
            self._comments(member.at.end, INDENT, False)
            self._line(INDENT + _member(member), member.at, False)
            self._trailing(following)
        self._comments(end, INDENT, False)

    def _line(self, line: str, at: Place, spaced: bool) -> None:
        gap = self.text[self.end : at.start].count("\n") > 1
        if (spaced or gap) and not self.fresh:
            self.lines.append("")
        self.lines.append(line)
        self.end, self.fresh = at.end, False

    def _comments(self, before: int, indent: str, spaced: bool) -> bool:
        """Print the comments up to an offset on separate lines; returns whether a blank line is still needed."""
        while self.comments and self.comments[-1].start < before:
            comment = self.comments.pop()
            self._line(indent + comment.text.rstrip(), Place(comment.start, comment.end), spaced)
            spaced = False
        return spaced

    def _trailing(self, before: int) -> None:
        """Print the comments that follow on the same line after the last line."""
        while self.comments and self.comments[-1].start < before:
            comment = self.comments[-1]
            if "\n" in self.text[self.end : comment.start]:
                return
            self.lines[-1] += " " + comment.text.rstrip()
            self.end = comment.end
            self.comments.pop()


def _header(declaration: Declaration) -> str:
    match declaration:
        case InterfaceDecl():
            return f"interface {declaration.name}"
        case NodeDecl():
            parts = [f"node {declaration.name}", *map(_annotation, declaration.annotations)]
            if declaration.implements:
                parts.append("implements " + ", ".join(map(str, declaration.implements)))
            return " ".join(parts)
        case EdgeDecl(name=name, from_type=start, to_type=end):
            parts = [f"edge {name}: {start} -> {end}"]
            if declaration.cardinality is not None:
                parts.append(f"@card({declaration.cardinality})")
            return " ".join([*parts, *map(_annotation, declaration.annotations)])


def _member(member: Member) -> str:
    match member:
        case PropertyDecl():
            parts = [f"{member.name}: {_type(member.type)}"]
            return " ".join([*parts, *map(_annotation, member.annotations)])
        case FieldsRule():
            return f"@{member.word}({', '.join(map(str, member.fields))})"
        case RangeRule():
            low = "" if member.minimum is None else format_value(member.minimum)
            high = "" if member.maximum is None else format_value(member.maximum)
            return f"@range({member.name}, {low}..{high})"
        case CheckRule():
            return f"@check({member.name}, {quote(member.pattern)})"


def _type(ref: TypeRef) -> str:
    if not ref.values:
        return str(ref.type)
    return f"enum({', '.join(ref.values)})" + ("?" if ref.type.nullable else "")


def _annotation(annotation: AnnotationNode) -> str:
    if annotation.value is None:
        return f"@{annotation.name}"
    named = [f"{name}={_value(value)}" for name, value in annotation.arguments]
    return f"@{annotation.name}({', '.join([_value(annotation.value), *named])})"


def _value(value: Value) -> str:
    if isinstance(value.value, tuple):
        return f"[{', '.join(map(format_value, value.value))}]"
    return str(value.value) if value.is_word else format_value(value.value)
