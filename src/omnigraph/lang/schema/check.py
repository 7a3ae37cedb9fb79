"""Tree to draft: every rule of the schema language.

A `Draft` is the checked schema before its types and properties have identities: the catalog's own values with all ids
zero, in canonical form. Source order, comments and rename hints leave no trace in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from typing import TypeVar

from omnigraph.lang.diagnostics import Diagnostics
from omnigraph.lang.schema import ast
from omnigraph.lang.schema.members import (
    Built,
    Hint,
    Owner,
    build_property,
    check_length,
    custom_annotations,
    report_repeated,
    text_of,
)
from omnigraph.lang.schema.rules import TypeRules, check_rules
from omnigraph.lang.schema.words import CONSTRAINTS
from omnigraph.lang.source import Place
from omnigraph.model.catalog import (
    Annotation,
    Cardinality,
    EdgeType,
    InterfaceType,
    NodeType,
    Property,
)
from omnigraph.model.frozen import frozen
from omnigraph.model.types import Scalar

T = TypeVar("T", NodeType, EdgeType)
Subject = tuple[str, str, str | None]  # kind, name of the type, name of the property


@frozen
class Draft:
    """A checked schema without identities, with the rename hints and places the planner needs."""

    interfaces: dict[str, InterfaceType] = field(default_factory=dict)
    nodes: dict[str, NodeType] = field(default_factory=dict)
    edges: dict[str, EdgeType] = field(default_factory=dict)
    hints: dict[Subject, Hint] = field(default_factory=dict)
    places: dict[Subject, Place] = field(default_factory=dict)


@frozen
class TypeHeader:
    """The annotations after the name of a type."""

    description: str | None = None
    instruction: str | None = None
    annotations: tuple[Annotation, ...] = ()


class Checker:
    """Builds a draft of a tree, reporting its errors."""

    def __init__(self, schema: ast.Schema, diagnostics: Diagnostics) -> None:
        self.schema = schema
        self.diagnostics = diagnostics
        self.draft = Draft()
        self.inherited: dict[str, dict[str, Built]] = {}

    def check(self) -> Draft:
        declarations = self.schema.declarations
        self._report_duplicates(declarations)
        for wanted in ("interface", "node", "edge"):
            for declaration in declarations:
                if declaration.kind == wanted and not self.diagnostics.full:
                    self._declaration(declaration)
        if not self.diagnostics.errors:
            self._warn_unimplemented()
        return self.draft

    def _declaration(self, declaration: ast.Declaration) -> None:
        match declaration:
            case ast.InterfaceDecl():
                self._interface(declaration)
            case ast.NodeDecl():
                self._node(declaration)
            case ast.EdgeDecl():
                self._edge(declaration)

    def _report_duplicates(self, declarations: Iterable[ast.Declaration]) -> None:
        seen: set[tuple[str, str]] = set()
        folded: dict[str, str] = {}
        for declaration in declarations:
            kind, name = declaration.kind, declaration.name
            check_length(self._owner(declaration), name)
            if (kind, name.text) in seen:
                message = f"{kind} {name} is declared twice"
                self.diagnostics.error("S17", message, name.at)
                continue
            seen.add((kind, name.text))
            if kind == "edge":
                other = folded.setdefault(name.text.lower(), name.text)
                if other != name.text:
                    message = f"the edge names `{name}` and `{other}` differ only in case"
                    self.diagnostics.error("S19", message, name.at)

    def _interface(self, decl: ast.InterfaceDecl) -> None:
        for rule in ast.rules(decl):
            message = f"interface {decl.name} cannot have constraints in its body"
            help = "Write @unique or @index after a property, or the constraint in the node types."
            self.diagnostics.error("S11", message, rule.at, help=help)
        members = self._members(decl)
        self.inherited.setdefault(decl.name.text, members)
        self._remember(decl, members)
        properties = _sorted(members)
        self.draft.interfaces[decl.name.text] = InterfaceType(
            name=decl.name.text, type_id=0, properties=properties
        )

    def _node(self, decl: ast.NodeDecl) -> None:
        owner = self._owner(decl)
        header = self._header(owner, decl)
        members = self._members(decl)
        implements = self._implement(decl, members)
        rules = check_rules(owner, members, ast.rules(decl), self.schema.unread)
        self._check_embeds(owner, members)
        self._remember(decl, members)
        found = NodeType(name=decl.name.text, type_id=0, table_id="", implements=implements)
        self.draft.nodes[found.name] = _complete(found, members, rules, header)

    def _edge(self, decl: ast.EdgeDecl) -> None:
        owner = self._owner(decl)
        header = self._header(owner, decl)
        for name, word in ((decl.from_type, "starts from"), (decl.to_type, "leads to")):
            self._check_end(decl, name, word)
        members = self._members(decl)
        rules = check_rules(owner, members, ast.rules(decl), self.schema.unread)
        self._remember(decl, members)
        found = EdgeType(
            name=decl.name.text,
            type_id=0,
            table_id="",
            from_type=decl.from_type.text,
            to_type=decl.to_type.text,
            cardinality=decl.cardinality or Cardinality(),
        )
        self.draft.edges[found.name] = _complete(found, members, rules, header)

    # --- parts of a declaration ---

    def _owner(self, decl: ast.Declaration) -> Owner:
        return Owner(decl.kind, decl.name.text, self.diagnostics)

    def _members(self, decl: ast.Declaration) -> dict[str, Built]:
        owner = self._owner(decl)
        members: dict[str, Built] = {}
        for prop in ast.properties(decl):
            if self.diagnostics.full:
                break
            built = build_property(owner, prop)
            if prop.name.text in members:
                message = f"{decl.kind} {decl.name} declares the property `{prop.name}` twice"
                self.diagnostics.error("S18", message, prop.name.at)
            else:
                members[prop.name.text] = built
        return members

    def _header(self, owner: Owner, decl: ast.NodeDecl | ast.EdgeDecl) -> TypeHeader:
        target = f"{owner.kind} {owner.name}"
        report_repeated(owner, decl.annotations, target)
        texts: dict[str, str | None] = {}
        custom: list[ast.AnnotationNode] = []
        for annotation in decl.annotations:
            match annotation.name:
                case "description" | "instruction":
                    texts[annotation.name] = text_of(owner, annotation, target)
                case "rename_from":
                    if old := text_of(owner, annotation, target):
                        self.draft.hints[owner.kind, owner.name, None] = Hint(old, annotation.at)
                case name if name in CONSTRAINTS:
                    message = f"@{name} is for properties and bodies, not for {target} itself"
                    self.diagnostics.error("S11", message, annotation.at)
                case "card":
                    self._misplaced_card(annotation)
                case "embed" | "default" | "metric" as name:
                    message = f"@{name} is for properties, not for {target} itself"
                    self.diagnostics.error("S11", message, annotation.at)
                case _:
                    custom.append(annotation)
        carried = custom_annotations(owner, custom)
        return TypeHeader(texts.get("description"), texts.get("instruction"), carried)

    def _misplaced_card(self, annotation: ast.AnnotationNode) -> None:
        message = "@card is in the wrong place"
        self.diagnostics.error("S6", message, annotation.at)

    def _check_end(self, decl: ast.EdgeDecl, name: ast.Name, word: str) -> None:
        if name.text in self.draft.nodes or name.text in self.schema.unread:
            return
        message = f"edge {decl.name} {word} the unknown node type `{name}`"
        if name.text in self.draft.interfaces:
            message = f"edge {decl.name} {word} `{name}`, which is an interface"
        options = self.draft.nodes
        self.diagnostics.unknown("S20", message, name.at, word=name.text, options=options)

    def _implement(self, decl: ast.NodeDecl, members: dict[str, Built]) -> tuple[str, ...]:
        """Add what the interfaces contribute to the members; their names, sorted."""
        contributed: dict[str, Built] = {}
        for name in decl.implements:
            if name.text not in self.inherited:
                if name.text not in self.schema.unread:
                    message = f"node {decl.name} implements the unknown interface `{name}`"
                    options = self.inherited
                    self.diagnostics.unknown(
                        "S8", message, name.at, word=name.text, options=options
                    )
                continue
            for prop, built in self.inherited[name.text].items():
                if prop in members:
                    self._compare_type(decl, members[prop], built, name)
                elif prop in contributed and not _same(contributed[prop], built):
                    message = f"the interfaces of {decl.name} disagree about `{prop}`"
                    self.diagnostics.error("S9", message, name.at)
                else:
                    contributed[prop] = built
        members.update(contributed)
        return tuple(sorted({n.text for n in decl.implements if n.text in self.inherited}))

    def _compare_type(
        self, decl: ast.NodeDecl, own: Built, other: Built, interface: ast.Name
    ) -> None:
        if own.property.type != other.property.type:
            message = (
                f"{decl.name}.{own.property.name} has type {own.property.type}, "
                f"but interface {interface} declares it as {other.property.type}"
            )
            self.diagnostics.error("S9", message, own.decl.type.at)

    def _check_embeds(self, owner: Owner, members: Mapping[str, Built]) -> None:
        for name, built in members.items():
            if built.property.embed is None or built.embed_at is None:
                continue
            source, path = built.property.embed.source, f"{owner.name}.{name}"
            at = built.embed_at
            if built.property.default is not None:
                message = f"{path} is computed by @embed and cannot have a default"
                self.diagnostics.error("S22", message, at)
            if source not in members:
                if source not in self.schema.unread:
                    message = f"@embed on {path} names the unknown source property `{source}`"
                    options = [n for n, b in members.items() if _is_text(b.property)]
                    self.diagnostics.unknown("S21", message, at, word=source, options=options)
            elif not _is_text(members[source].property):
                message = f"the source of @embed on {path}, `{source}`, must be a String"
                self.diagnostics.error("S21", message, at)

    def _remember(self, decl: ast.Declaration, members: Mapping[str, Built]) -> None:
        kind, owner = decl.kind, decl.name.text
        own = {prop.name.text for prop in ast.properties(decl)}
        self.draft.places[kind, owner, None] = decl.name.at
        for name, built in members.items():
            self.draft.places[kind, owner, name] = built.decl.name.at
            if built.hint is not None:
                hint = replace(built.hint, inherited=name not in own)
                self.draft.hints[kind, owner, name] = hint

    def _warn_unimplemented(self) -> None:
        used = {name for node in self.draft.nodes.values() for name in node.implements}
        for name in self.draft.interfaces.keys() - used:
            message = f"no node type implements interface {name}"
            self.diagnostics.warn("S34", message, self.draft.places["interface", name, None])


def _same(one: Built, other: Built) -> bool:
    return one.property == other.property and {*one.words} == {*other.words}


def _is_text(prop: Property) -> bool:
    return prop.type.is_plain and prop.type.scalar is Scalar.STRING


def _complete(kind: T, members: Mapping[str, Built], rules: TypeRules, header: TypeHeader) -> T:
    return replace(
        kind,
        properties=_sorted(members),
        key=rules.key,
        uniques=rules.uniques,
        indices=rules.indices,
        ranges=rules.ranges,
        checks=rules.checks,
        description=header.description,
        instruction=header.instruction,
        annotations=header.annotations,
    )


def _sorted(members: Mapping[str, Built]) -> dict[str, Property]:
    return {name: members[name].property for name in sorted(members)}
