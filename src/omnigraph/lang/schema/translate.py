"""Schemas of other graph databases as `.pg`: Kuzu's tables, and the constraints and indices of Neo4j.

The translation is a draft to be edited: Neo4j does not say between which labels a relationship leads, nor which
types most properties have. Whatever has no counterpart is named in a comment, so that nothing is lost silently.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from omnigraph.errors import Kind, OmnigraphError
from omnigraph.lang.schema.words import STRUCTURAL, TYPE_ALIASES

STATEMENT_CHARS_MAX = 100_000
COMMENT = re.compile(r"//[^\n]*|--[^\n]*|/\*.*?\*/", re.DOTALL)
NAME = r"(`[^`]+`|\w+)"
NODE_TABLE = re.compile(
    rf"create\s+node\s+table\s+(?:if\s+not\s+exists\s+)?{NAME}\s*\((.*)\)\s*$", re.I | re.S
)
REL_TABLE = re.compile(
    rf"create\s+rel\s+table\s+(?:group\s+)?(?:if\s+not\s+exists\s+)?{NAME}\s*\((.*)\)\s*$",
    re.I | re.S,
)
PAIR = re.compile(rf"from\s+{NAME}\s+to\s+{NAME}$", re.I)
PRIMARY_KEY = re.compile(r"primary\s+key\s*\(([^)]*)\)$", re.I)
COLUMN = re.compile(rf"{NAME}\s+(.+)$", re.I | re.S)
MANY = {"many_one": "0..1", "one_one": "0..1", "many_many": "", "one_many": ""}
CONSTRAINT = re.compile(
    r"create\s+constraint\b.*?(?:for|on)\s*(?P<pattern>\([^)]*\)(?:\s*<?-\s*\[[^\]]*\]\s*->?\s*\([^)]*\))?)"
    r"\s*(?:require|assert)\s+(?P<what>.+)$",
    re.I | re.S,
)
INDEX = re.compile(
    r"create\s+(?P<kind>\w+\s+)?index\b.*?for\s*(?P<pattern>\([^)]*\)(?:\s*<?-\s*\[[^\]]*\]\s*->?\s*\([^)]*\))?)"
    r"\s*on\s+(?:each\s*)?(?P<what>[(\[][^)\]]*[)\]]|[\w.`]+)(?P<rest>.*)$",
    re.I | re.S,
)
LABEL = re.compile(rf":\s*{NAME}")
PROPERTY = re.compile(rf"\w+\.{NAME}")
TYPED = re.compile(r"is\s*(?:::|typed)\s*(?P<type>[\w<>\s]+)$", re.I)
DIMENSIONS = re.compile(r"vector\.dimensions`?\s*:\s*(\d+)", re.I)
KUZU = {
    "int8": "I32",
    "int16": "I32",
    "serial": "I64",
    "uint8": "U32",
    "uint16": "U32",
    "date": "Date",
}
KUZU |= {
    "timestamp": "DateTime",
    "bool": "Bool",
    "string": "String",
    "blob": "Blob",
    "float": "F32",
}
NEO4J = {
    "zoned datetime": "DateTime",
    "local datetime": "DateTime",
    "date": "Date",
    "string": "String",
}
NEO4J |= {"integer": "I64", "float": "F64", "boolean": "Bool"}


class SchemaNotUnderstood(OmnigraphError):
    """The text holds no statement of a schema that could be translated."""

    code, kind = "schema_not_understood", Kind.INVALID
    default_help = "Give Kuzu's CREATE NODE TABLE and CREATE REL TABLE, or Neo4j's CREATE CONSTRAINT and CREATE INDEX."


@dataclass(slots=True)
class DraftProperty:
    """A property as far as it is known."""

    type: str = ""
    required: bool = False
    marks: dict[str, None] = field(default_factory=dict)

    def text(self) -> str:
        type = self.type or "String"
        return f"{type}{'' if self.required else '?'}" + "".join(f" @{m}" for m in self.marks)


@dataclass(slots=True)
class DraftType:
    """A node or relationship type as far as it is known."""

    properties: dict[str, DraftProperty] = field(default_factory=dict)
    rules: list[str] = field(default_factory=list)  # about several properties
    pairs: list[tuple[str, str]] = field(default_factory=list)
    card: str = ""

    def property(self, name: str) -> DraftProperty:
        return self.properties.setdefault(name, DraftProperty())


def translate_schema(text: str) -> str:
    """The `.pg` text for a schema of Kuzu or Neo4j."""
    found = _Translation()
    for statement in _statements(text):
        found.statement(statement)
    if not found.nodes and not found.edges:
        raise SchemaNotUnderstood("no table, constraint or index was found")
    return found.text()


def _statements(text: str) -> Iterator[str]:
    plain = COMMENT.sub(" ", text)
    for part in plain.split(";"):
        statement = part.strip()
        if len(statement) > STATEMENT_CHARS_MAX:
            raise SchemaNotUnderstood(
                f"a statement has more than {STATEMENT_CHARS_MAX:,} characters"
            )
        if statement:
            yield statement


class _Translation:
    def __init__(self) -> None:
        self.nodes: dict[str, DraftType] = {}
        self.edges: dict[str, DraftType] = {}
        self.notes: list[str] = []

    def statement(self, statement: str) -> None:
        for pattern, take in (
            (NODE_TABLE, self.node_table),
            (REL_TABLE, self.rel_table),
            (CONSTRAINT, self.constraint),
            (INDEX, self.index),
        ):
            match = pattern.match(statement)
            if match is not None:
                take(match)
                return
        self.note(statement)

    def note(self, statement: str) -> None:
        self.notes.append(f"not translated: {' '.join(statement.split())[:160]}")

    # --- Kuzu --------------------------------------------------------------------------------------------------------

    def node_table(self, match: re.Match[str]) -> None:
        draft = self.nodes.setdefault(self.type_name(match[1]), DraftType())
        for part in _parts(match[2]):
            key = PRIMARY_KEY.match(part)
            if key is not None:
                self.key(draft, [_plain(name.strip()) for name in key[1].split(",")])
            else:
                self.column(draft, part, "node")

    def key(self, draft: DraftType, names: list[str]) -> None:
        for name in names:
            draft.property(name).required = True
        if len(names) == 1:
            draft.property(names[0]).marks["key"] = None
        else:
            draft.rules.append(f"@key({', '.join(names)})")

    def rel_table(self, match: re.Match[str]) -> None:
        draft = self.edges.setdefault(self.type_name(match[1]), DraftType())
        for part in _parts(match[2]):
            pair = PAIR.match(part)
            if pair is not None:
                draft.pairs.append((self.type_name(pair[1]), self.type_name(pair[2])))
            elif part.lower() in MANY:
                draft.card = MANY[part.lower()]
            else:
                self.column(draft, part, "edge")

    def column(self, draft: DraftType, part: str, kind: str) -> None:
        match = COLUMN.match(part)
        if match is None:
            self.note(part)
            return
        name, rest = self.own_name(_plain(match[1]), kind), match[2].strip()
        own = draft.property(name)
        words = re.split(r"\s+(?=primary\s+key|default|not\s+null)", rest, flags=re.I)
        own.type = self.kuzu_type(words[0].strip(), name)
        for word in words[1:]:
            if word.lower().startswith("primary"):
                self.key(draft, [name])
            elif word.lower().startswith("not"):
                own.required = True
            else:
                self.notes.append(f"{name}: the default is set by a load or a query ({word})")

    def type_name(self, given: str) -> str:
        """Types begin with a capital letter, and have letters, digits and underscores alone."""
        plain = _plain(given)
        name = re.sub(r"\W", "_", plain[:1].upper() + plain[1:])
        if name != plain:
            self.notes.append(f"the type `{plain}` is called `{name}` here")
        return name

    def own_name(self, name: str, kind: str) -> str:
        """An unreserved name: ids and ends have reserved ones."""
        if name not in STRUCTURAL[kind]:
            return name
        self.notes.append(f"the property `{name}` is called `{name}_` here: {name} is built in")
        return f"{name}_"

    def kuzu_type(self, word: str, name: str) -> str:
        sized = re.match(r"(?:float|double)\[(\d+)\]$", word, re.I)
        if sized is not None:
            return f"Vector({sized[1]})"
        if word.endswith("[]"):
            return f"[{self.kuzu_type(word[:-2], name)}]"
        base = re.sub(r"\(.*\)|_.*", "", word).lower()
        found = KUZU.get(base) or TYPE_ALIASES.get(base)
        if found is None:
            self.notes.append(f"{name}: the type {word} has no counterpart; it is kept as a text")
        return found or "String"

    # --- Neo4j -------------------------------------------------------------------------------------------------------

    def about(self, pattern: str) -> DraftType | None:
        label = LABEL.search(pattern)
        if label is None:
            return None
        held = self.edges if "[" in pattern else self.nodes
        return held.setdefault(self.type_name(label[1]), DraftType())

    def constraint(self, match: re.Match[str]) -> None:
        draft, what = self.about(match["pattern"]), " ".join(match["what"].split())
        kind = "edge" if "[" in match["pattern"] else "node"
        names = [self.own_name(_plain(n), kind) for n in PROPERTY.findall(what)]
        typed = TYPED.search(what)
        said = what.lower()
        if draft is None or not names:
            self.note(match[0])
        elif "key" in said.split():
            self.key(draft, names)
        elif said.endswith("is unique"):
            self.unique(draft, names)
        elif said.endswith("is not null") or said.startswith("exists"):
            for name in names:
                draft.property(name).required = True
        elif typed is not None:
            self.typed(draft.property(names[0]), " ".join(typed["type"].lower().split()), what)
        else:
            self.note(match[0])

    def unique(self, draft: DraftType, names: list[str]) -> None:
        if len(names) > 1:
            draft.rules.append(f"@unique({', '.join(names)})")
        for name in names:
            draft.property(name)
        if len(names) == 1:
            draft.property(names[0]).marks["unique"] = None

    def typed(self, own: DraftProperty, word: str, what: str) -> None:
        listed = re.match(r"list<\s*(.+?)(?:\s+not null)?\s*>", word)
        base = NEO4J.get(listed[1] if listed else word.removesuffix(" not null"))
        own.required |= word.endswith("not null") and listed is None
        if base is None:
            self.note(what)
        else:
            own.type = f"[{base}]" if listed else base

    def index(self, match: re.Match[str]) -> None:
        draft, what = self.about(match["pattern"]), match["what"]
        kind = "edge" if "[" in match["pattern"] else "node"
        word = (match["kind"] or "").strip().lower()
        names = [self.own_name(_plain(n), kind) for n in PROPERTY.findall(what)]
        if draft is None or not names:
            self.note(match[0])
            return
        for name in names:
            own = draft.property(name)
            size = DIMENSIONS.search(match["rest"])
            if word == "vector":
                own.type = f"Vector({size[1] if size else 1536})"
            own.marks["index"] = None

    # --- the text ----------------------------------------------------------------------------------------------------

    def text(self) -> str:
        lines = [f"// {note}" for note in dict.fromkeys(self.notes)]
        for name, draft in self.nodes.items():
            lines += self.declared(f"node {name}", draft)
        for name, draft in self.edges.items():
            lines += self.edge(name, draft)
        return "\n".join(lines) + "\n"

    def edge(self, name: str, draft: DraftType) -> Iterator[str]:
        card = f" @card({draft.card})" if draft.card else ""
        if not draft.pairs:
            yield f"// {name}: fill in its node types and remove the slashes"
            for line in self.declared(f"edge {name}: From -> To{card}", draft):
                yield f"// {line}"
            return
        for place, (start, end) in enumerate(draft.pairs):
            own = name if place == 0 else f"{name}{start}{end}"
            label = f' @label("{name}")' if place else ""
            yield from self.declared(f"edge {own}: {start} -> {end}{label}{card}", draft)

    def declared(self, head: str, draft: DraftType) -> Iterator[str]:
        held = [f"  {name}: {own.text()}" for name, own in draft.properties.items()]
        held += [f"  {rule}" for rule in draft.rules]
        if not held:
            yield head if head.startswith("edge") else f"{head} {{ }}"
            return
        yield f"{head} {{"
        yield from held
        yield "}"


def _plain(name: str) -> str:
    return name.strip().strip("`")


def _parts(text: str) -> Iterator[str]:
    """The parts between commas outside brackets."""
    depth, start = 0, 0
    for at, char in enumerate(text):
        depth += {"(": 1, "[": 1, "<": 1, ")": -1, "]": -1, ">": -1}.get(char, 0)
        if char == "," and not depth:
            yield text[start:at].strip()
            start = at + 1
    if text[start:].strip():
        yield text[start:].strip()
