"""A schema for a scenario, from what its texts say about nodes, relationships and their properties."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

from omnigraph.lang.cypher import ast

UNLABELLED = "Thing"  # the type of nodes without a label
NAME = re.compile(r"[A-Z][A-Za-z0-9_]*$")
PROPERTY = re.compile(r"[a-z_][A-Za-z0-9_]*$")
RESERVED = frozenset({"id", "type", "from", "to", "src", "dst"})
WRITERS = (ast.Create, ast.Merge)


class NotTyped(Exception):
    """The scenario needs what a schema cannot say; the text is the reason."""


def walk(node: Any) -> Iterator[Any]:
    if isinstance(node, tuple):
        for item in node:
            yield from walk(item)
    elif is_dataclass(node):
        yield node
        for part in fields(node):
            yield from walk(getattr(node, part.name))


@dataclass(slots=True)
class Sketch:
    """What a scenario says: label sets of nodes, ends of relationships, and the types of properties."""

    sets: dict[frozenset[str], None] = field(default_factory=dict)  # of nodes that are made
    labels: dict[str, None] = field(default_factory=dict)  # named anywhere
    rels: dict[tuple[str, frozenset[str], frozenset[str]], None] = field(default_factory=dict)
    types: dict[str, None] = field(default_factory=dict)
    node_props: dict[str, set[str]] = field(default_factory=dict)
    # Of nodes that are made: the types of properties by label set, and the values written beside them.
    own_props: dict[frozenset[str], dict[str, set[str]]] = field(default_factory=dict)
    written: list[tuple[frozenset[str], dict[str, ast.Expr]]] = field(default_factory=list)
    rel_props: dict[str, set[str]] = field(default_factory=dict)
    vars: dict[str, str] = field(default_factory=dict)  # of UNWIND, and the types of their values

    def read(self, tree: ast.Query, writes: bool) -> None:
        known: dict[str, frozenset[str]] = {}
        for part in tree.parts:
            for clause in part.clauses:
                made = writes and isinstance(clause, WRITERS)
                if isinstance(clause, ast.Unwind) and isinstance(clause.part, ast.ListLiteral):
                    self.vars[clause.var] = _member_kind(clause.part)
                for node in walk(clause):
                    if isinstance(node, ast.PathPattern):
                        self.pattern(node, known, made)
                self.other(clause)

    def pattern(
        self, pattern: ast.PathPattern, known: dict[str, frozenset[str]], made: bool
    ) -> None:
        sets = []
        for node in pattern.nodes:
            labels = frozenset(node.labels)
            self.labels |= dict.fromkeys(node.labels)
            if node.var is not None and (labels or node.var not in known):
                known[node.var] = labels | known.get(node.var, frozenset())
            labels = known.get(node.var, labels) if node.var else labels
            if not labels and not made:
                labels = self.meant(node)
                if node.var is not None:
                    known[node.var] = labels
            sets.append(labels)
            if made:
                self.sets[labels] = None
                self.props(self.own_props.setdefault(labels, {}), node.properties)
                self.written.append((labels, _entries(node.properties)))
            else:
                self.props(self.node_props, node.properties)
        for i, rel in enumerate(pattern.rels):
            self.types |= dict.fromkeys(rel.types)
            self.props(self.rel_props, rel.properties)
            if made:
                ends = (sets[i + 1], sets[i]) if rel.arrow == "<-" else (sets[i], sets[i + 1])
                for name in rel.types:
                    self.rels[(name, *ends)] = None

    def meant(self, node: ast.NodePattern) -> frozenset[str]:
        """The labels of the only nodes made so far that have the values a pattern asks for."""
        asked = _entries(node.properties)
        if not asked:
            return frozenset()
        found = {
            labels
            for labels, made in self.written
            if all(made.get(name) == value for name, value in asked.items())
        }
        return found.pop() if len(found) == 1 else frozenset()

    def props(self, into: dict[str, set[str]], given: ast.Expr | None) -> None:
        if isinstance(given, ast.MapLiteral):
            for name, value in given.items:
                kind = kind_of(value, self.vars)
                into.setdefault(name, set()).update([kind] if kind else [])

    def other(self, clause: Any) -> None:
        """Properties and labels that are only asked for or set."""
        for node in walk(clause):
            match node:
                case ast.PropertyAccess(_, name):
                    self.node_props.setdefault(name, set())
                    self.rel_props.setdefault(name, set())
                case ast.Call("avg" | "sum" | "percentilecont", (ast.PropertyAccess(_, name), *_)):
                    self.node_props.setdefault(name, set()).add("I64")
                case ast.HasLabels(_, labels):
                    self.labels |= dict.fromkeys(labels)
                case ast.SetItem(ast.PropertyAccess(_, name), _, value) if value is not None:
                    kind = kind_of(value)
                    for into in (self.node_props, self.rel_props):
                        into.setdefault(name, set()).update([kind] if kind else [])
                case ast.SetItem(ast.Variable(), _, ast.Variable()):  # one's properties for another
                    every = [self.node_props, *self.own_props.values()]
                    for name in {name for props in every for name in props}:
                        kinds = set().union(*(props.get(name, set()) for props in every))
                        self.rel_props.setdefault(name, set()).update(kinds)
                case ast.SetItem(_, _, ast.MapLiteral() as given):
                    self.props(self.node_props, given)
                    self.props(self.rel_props, given)
                case _:
                    pass


def _entries(given: ast.Expr | None) -> dict[str, ast.Expr]:
    """The literal values of a map, without their places."""
    items = given.items if isinstance(given, ast.MapLiteral) else ()
    return {name: ast.Literal(v.value) for name, v in items if isinstance(v, ast.Literal)}


def _member_kind(part: ast.ListLiteral) -> str:
    try:
        return (kind_of(part) or "[I64]")[1:-1]
    except NotTyped:
        return "I64"


def kind_of(value: ast.Expr, known: Mapping[str, str] | None = None) -> str | None:
    match value:
        case ast.Variable(name) if known and name in known:
            return known[name]
        case ast.Literal(bool()):
            return "Bool"
        case ast.Literal(int()):
            return "I64"
        case ast.Literal(float()):
            return "F64"
        case ast.Literal(str()):
            return "String"
        case ast.Unary("-", part):
            return kind_of(part)
        case ast.ListLiteral(items):
            kinds = {kind_of(item) for item in items} - {None}
            if kinds == {"I64", "F64"}:
                kinds = {"F64"}
            if len(kinds) > 1:
                raise NotTyped("values of several types in one place")
            return f"[{kinds.pop()}]" if kinds else None
        case ast.Call(name="date"):
            return "Date"
        case ast.Call(name="datetime"):
            return "DateTime"
        case ast.Call(name=name) if name in ("tostring", "toupper", "tolower"):
            return "String"
        case ast.MapLiteral():
            raise NotTyped("a property that is a map")
        case ast.Binary("+", left, right):
            return "String" if "String" in (kind_of(left), kind_of(right)) else "I64"
        case ast.Variable() | ast.Binary() | ast.Call():
            return "I64"
        case _:
            return None


@dataclass(slots=True)
class Typed:
    """The schema of a scenario, and how its types are called in Cypher."""

    text: str
    labels: dict[str, frozenset[str]]
    rels: dict[str, str]
    of_set: dict[frozenset[str], str]
    of_rel: dict[tuple[str, str, str], str]


def typed(trees: Iterable[tuple[ast.Query, bool]], more: Mapping[str, str] | None = None) -> Typed:
    """The schema for these texts, each with whether it writes."""
    sketch = Sketch()
    for tree, writes in trees:
        sketch.read(tree, writes)
    return _Drawn(sketch, dict(more or {})).drawn()


class _Drawn:
    def __init__(self, sketch: Sketch, more: dict[str, str]) -> None:
        self.sketch, self.more = sketch, more

    def drawn(self) -> Typed:
        sets = dict(self.sketch.sets)
        sets |= {s: None for _, a, b in self.sketch.rels for s in (a, b)}
        for name in self.sketch.labels:
            if not NAME.match(name):
                raise NotTyped("a name the schema language does not allow")
        shared = {label for s in sets if len(s) > 1 for label in s}
        for label in self.sketch.labels:
            if label not in shared:
                sets[frozenset({label})] = None
        sets[frozenset()] = None
        of_set = {s: self.type_name(s, shared) for s in sets}
        lines = [f"interface {label} {{}}" for label in sorted(shared)]
        for labels, name in of_set.items():
            implements = sorted(labels & shared)
            head = f" implements {', '.join(implements)}" if implements else ""
            lines.append(f"node {name}{head} {{ {self.node_props(labels)} }}")
        of_rel, rels = self.edges(of_set, lines)
        known = {name: labels for labels, name in of_set.items()}
        return Typed("\n".join(lines), known, rels, of_set, of_rel)

    def edges(
        self, of_set: dict[frozenset[str], str], lines: list[str]
    ) -> tuple[dict[tuple[str, str, str], str], dict[str, str]]:
        rel_props = self.props(self.sketch.rel_props)
        wanted = [(t, of_set[a], of_set[b]) for t, a, b in self.sketch.rels]
        named = {t for t, _, _ in wanted}
        wanted += [(t, UNLABELLED, UNLABELLED) for t in self.sketch.types if t not in named]
        of_rel: dict[tuple[str, str, str], str] = {}
        rels: dict[str, str] = {}
        taken = {name.lower() for name in of_set.values()}
        for rel, src, dst in dict.fromkeys(wanted):
            if not NAME.match(rel):
                raise NotTyped("a name the schema language does not allow")
            first = rel.lower() not in {n.lower() for n in rels}
            name = rel if first else f"{rel}_{src}_{dst}"
            label = "" if first else f' @label("{rel}")'
            taken.add(name.lower())
            of_rel[rel, src, dst], rels[name] = name, rel
            lines.append(f"edge {name}: {src} -> {dst}{label} {{ {rel_props} }}")
        return of_rel, rels

    def type_name(self, labels: frozenset[str], shared: set[str]) -> str:
        if not labels:
            return UNLABELLED
        if len(labels) == 1 and not labels & shared:
            return next(iter(labels))
        return "And".join(["Only" if len(labels) == 1 else "", *sorted(labels)])[
            0 if len(labels) == 1 else 3 :
        ]

    def node_props(self, labels: frozenset[str]) -> str:
        """Every property there is, with the type it has in nodes with these labels, or else in others."""
        own = self.sketch.own_props
        every = [self.sketch.node_props, *own.values()]
        found: dict[str, set[str]] = {}
        for name in {name for props in every for name in props}:
            mine = own.get(labels, {}).get(name, set()) | self.sketch.node_props.get(name, set())
            found[name] = mine or set().union(*(props.get(name, set()) for props in every))
        return self.props(found)

    def props(self, found: dict[str, set[str]]) -> str:
        parts = []
        for name, kinds in sorted(found.items()):
            if not PROPERTY.match(name) or name in RESERVED:
                raise NotTyped("a name the schema language does not allow")
            if len(kinds) > 1:
                raise NotTyped("values of several types in one place")
            parts.append(f"{name}: {next(iter(kinds), self.more.get(name, 'String'))}?")
        return " ".join(parts)
