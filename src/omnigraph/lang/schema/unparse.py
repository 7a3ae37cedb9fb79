"""A stored schema as text again: the result of a merge, or a schema whose text was lost.

Compiling the text gives the same schema, with the identities of the accepted one kept.
"""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.lang.schema import ast
from omnigraph.lang.schema.format import print_schema
from omnigraph.lang.schema.ir import AnyType, SchemaIR
from omnigraph.lang.schema.members import unsuited
from omnigraph.lang.source import NOWHERE
from omnigraph.model.catalog import Annotation, EdgeType, EntityType, InterfaceType, Property


def schema_to_text(ir: SchemaIR) -> str:
    """The text of a stored schema, in canonical form."""
    return print_schema(ast.Schema(tuple(_declaration(kind) for _, kind in ir.types())))


def _declaration(kind: AnyType) -> ast.Declaration:
    name = _name(kind.name)
    if isinstance(kind, InterfaceType):
        properties = tuple(_property(p, ()) for p in kind.properties.values())
        return ast.InterfaceDecl(name, properties, NOWHERE)
    header = tuple(_header(kind))
    members = tuple(_members(kind))
    if isinstance(kind, EdgeType):
        ends = _name(kind.from_type), _name(kind.to_type)
        card = None if kind.cardinality.is_free else kind.cardinality
        return ast.EdgeDecl(name, *ends, card, header, members, NOWHERE)
    implements = tuple(map(_name, kind.implements))
    return ast.NodeDecl(name, header, implements, members, NOWHERE)


def _header(kind: EntityType) -> Iterator[ast.AnnotationNode]:
    yield from _text("description", kind.description)
    yield from _text("instruction", kind.instruction)
    yield from map(_carried, kind.annotations)


def _members(kind: EntityType) -> Iterator[ast.Member]:
    """Properties followed by their one-column constraints, then the other constraints."""
    groups = [("key", kind.key)] if kind.key is not None else []
    groups += [("unique", group) for group in kind.uniques]
    groups += [("index", group) for group in kind.indices]
    behind = [(word, group) for word, group in groups if _fits_behind(kind, word, group)]
    for prop in kind.properties.values():
        yield _property(prop, tuple(word for word, group in behind if group == (prop.name,)))
    for word, group in groups:
        if (word, group) not in behind:
            yield ast.FieldsRule(word, tuple(map(_name, group)), NOWHERE)
    for rule in kind.ranges:
        yield ast.RangeRule(_name(rule.property), rule.minimum, rule.maximum, NOWHERE)
    for check in kind.checks:
        yield ast.CheckRule(_name(check.property), check.pattern, NOWHERE)


def _fits_behind(kind: EntityType, word: str, group: tuple[str, ...]) -> bool:
    prop = kind.properties.get(group[0])
    if len(group) > 1 or prop is None:
        return False
    return unsuited(word, prop.type, behind_property=True) is None


def _property(prop: Property, words: tuple[str, ...]) -> ast.PropertyDecl:
    annotations = [_bare(word) for word in words]
    if prop.embed is not None:
        model = prop.embed.model
        named = ((_name("model"), _value(model)),) if model is not None else ()
        annotations.append(ast.AnnotationNode("embed", _value(prop.embed.source), named, NOWHERE))
    if prop.metric != "l2":
        annotations.extend(_text("metric", prop.metric))
    if prop.default is not None:
        value = tuple(prop.default) if isinstance(prop.default, list | tuple) else prop.default
        annotations.append(ast.AnnotationNode("default", _value(value), (), NOWHERE))
    annotations.extend(_text("description", prop.description))
    annotations.extend(map(_carried, prop.annotations))
    ref = ast.TypeRef(prop.type, prop.type.enum or (), NOWHERE)
    return ast.PropertyDecl(_name(prop.name), ref, tuple(annotations), NOWHERE)


def _name(text: str) -> ast.Name:
    return ast.Name(text, NOWHERE)


def _value(value: ast.Scalar | tuple[ast.Scalar, ...]) -> ast.Value:
    return ast.Value(value, False, NOWHERE)


def _bare(word: str) -> ast.AnnotationNode:
    return ast.AnnotationNode(word, None, (), NOWHERE)


def _text(name: str, text: str | None) -> Iterator[ast.AnnotationNode]:
    if text is not None:
        yield ast.AnnotationNode(name, _value(text), (), NOWHERE)


def _carried(annotation: Annotation) -> ast.AnnotationNode:
    named = tuple((_name(key), _value(value)) for key, value in annotation.arguments)
    value = None if annotation.value is None else _value(annotation.value)
    return ast.AnnotationNode(annotation.name, value, named, NOWHERE)
