"""Checks one property, with its annotations, and makes the catalog's property of it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from omnigraph.lang.diagnostics import Diagnostics, did_you_mean
from omnigraph.lang.lexer import shorten
from omnigraph.lang.schema import ast
from omnigraph.lang.schema.words import ANNOTATIONS, METRICS, PROPERTY_WORDS, RESERVED, STRUCTURAL
from omnigraph.lang.source import Place
from omnigraph.model.catalog import Annotation, Embed, Property
from omnigraph.model.frozen import frozen
from omnigraph.model.types import PropType
from omnigraph.values.misfit import Misfit, unfit
from omnigraph.values.reading import read_value
from omnigraph.values.spelling import to_json

ONCE = frozenset(ANNOTATIONS)
NAME_CHARS_MAX = 255


@frozen
class Hint:
    """`@rename_from("old")`, and its place."""

    old: str
    at: Place
    inherited: bool = False  # written in an interface, and so applied to nodes only where it fits


@frozen
class Built:
    """A checked property with the rest of its declaration."""

    decl: ast.PropertyDecl
    property: Property
    words: tuple[str, ...] = ()  # of key, unique, index, after the property
    hint: Hint | None = None
    embed_at: Place | None = None


@frozen
class Owner:
    """The type a property belongs to, for messages."""

    kind: str
    name: str
    diagnostics: Diagnostics


def build_property(owner: Owner, decl: ast.PropertyDecl) -> Built:
    """A declared property as a property of the catalog."""
    _check_name(owner, decl.name)
    report_repeated(owner, decl.annotations, f"property {owner.name}.{decl.name}")
    built = Built(decl, Property(decl.name.text, decl.type.type, 0))
    custom = []
    for annotation in decl.annotations:
        handler = HANDLERS.get(annotation.name)
        if handler is not None:
            built = handler(owner, built, annotation)
        else:
            custom.append(annotation)
    if custom:
        carried = custom_annotations(owner, custom)
        built = replace(built, property=replace(built.property, annotations=carried))
    return built


def check_length(owner: Owner, name: ast.Name) -> None:
    """Names end up in column names, messages and paths, so they are bounded."""
    if len(name.text) > NAME_CHARS_MAX:
        message = f"the name `{shorten(name.text)}` is longer than {NAME_CHARS_MAX} characters"
        owner.diagnostics.error("S26", message, name.at)


def _check_name(owner: Owner, name: ast.Name) -> None:
    check_length(owner, name)
    if name.text in RESERVED:
        message = f"the property name `{name}` is reserved for a system column"
    elif name.text in STRUCTURAL[owner.kind]:
        message = f"`{name}` is a word of every {owner.kind} and cannot be a property"
    else:
        return
    owner.diagnostics.error("S5", message, name.at)


def report_repeated(owner: Owner, annotations: Sequence[ast.AnnotationNode], target: str) -> None:
    """Report built-in annotations that are duplicated on one target."""
    if len(annotations) < 2:
        return
    counts = Counter(a.name for a in annotations)
    for annotation in annotations:
        if counts[annotation.name] > 1 and annotation.name in ONCE:
            counts[annotation.name] = 0  # once is enough
            message = f"{target} declares @{annotation.name} more than once"
            owner.diagnostics.error("S10", message, annotation.at)


def custom_annotations(
    owner: Owner, annotations: Iterable[ast.AnnotationNode]
) -> tuple[Annotation, ...]:
    """Custom annotations, in canonical order without repetitions."""
    carried: dict[str, Annotation] = {}
    for annotation in annotations:
        arguments = tuple(sorted((str(k), scalar(owner, v)) for k, v in annotation.arguments))
        value = None if annotation.value is None else scalar(owner, annotation.value)
        carried[json.dumps([annotation.name, value, arguments])] = Annotation(
            annotation.name, value, arguments
        )
        _warn_misspelt(owner, annotation)
    return tuple(carried[key] for key in sorted(carried))


def scalar(owner: Owner, value: ast.Value) -> ast.Scalar:
    """The value of a custom annotation, which is never a list."""
    if isinstance(value.value, tuple):
        owner.diagnostics.error("S10", "only @default takes a list", value.at)
        return ""
    return value.value


def _warn_misspelt(owner: Owner, annotation: ast.AnnotationNode) -> None:
    meant = did_you_mean(annotation.name, ANNOTATIONS, likeness=0.75)
    if meant:
        message = f"`@{annotation.name}` is carried as metadata and has no effect"
        help = f"Did you mean `@{meant}`?"
        owner.diagnostics.warn("S30", message, annotation.at, help=help, suggestion=meant)


def text_of(owner: Owner, annotation: ast.AnnotationNode, target: str) -> str | None:
    """The one non-empty text an annotation takes, or None after reporting."""
    value = annotation.value
    problem = None
    if annotation.arguments:
        problem = f"@{annotation.name} on {target} takes no further arguments"
    elif value is None or not isinstance(value.value, str) or not value.value.strip():
        problem = f"@{annotation.name} on {target} takes one non-empty text"
    elif value.is_word and annotation.name != "rename_from":
        problem = f"@{annotation.name} on {target} takes a text in double quotes"
    if problem is None and value is not None:
        return str(value.value)
    help = f'Write @{annotation.name}("…").'
    owner.diagnostics.error("S10", problem or "", annotation.at, help=help)
    return None


# --- one handler per annotation ---


def _constraint_word(owner: Owner, built: Built, annotation: ast.AnnotationNode) -> Built:
    """@key, @unique or @index after a property."""
    name, path = annotation.name, f"{owner.name}.{built.property.name}"
    report = owner.diagnostics.error
    if annotation.value is not None:
        report("S10", f"@{name} on {path} takes no value", annotation.at)
    elif name not in PROPERTY_WORDS:
        report("S7", f"@{name} belongs in the body and names its property", annotation.at)
    elif owner.kind == "edge" and name == "key":
        help = f"The key of an edge names its ends: @key(src, dst, {built.property.name})"
        report(
            "S11", f"@key is not for single properties of edges ({path})", annotation.at, help=help
        )
    elif misfit := unsuited(name, built.property.type, behind_property=True):
        report("S12", f"@{name} is not supported on {misfit} property {path}", annotation.at)
    else:
        return replace(built, words=(*built.words, name))
    return built


def unsuited(word: str, kind: PropType, *, behind_property: bool) -> str | None:
    """The kind of type a constraint does not work on, if this is one.

    In a body, @index on a list is accepted without effect, as in files of the original language.
    """
    if kind.is_blob:
        return "blob"
    if kind.is_list and (behind_property or word != "index"):
        return "list"
    if kind.is_vector and word != "index":
        return "vector"
    return None


def _embed(owner: Owner, built: Built, annotation: ast.AnnotationNode) -> Built:
    path = f"{owner.name}.{built.property.name}"
    report, at = owner.diagnostics.error, annotation.at
    source = annotation.value.value if annotation.value else None
    model: str | None = None
    for key, value in annotation.arguments:
        if key.text != "model":
            message = f"@embed on {path} has the unknown argument `{key}`; only `model` is known"
            report("S10", message, key.at)
        elif isinstance(value.value, str) and value.value:
            model = value.value
        else:
            report("S10", f"the model of @embed on {path} is a non-empty text", value.at)
    if owner.kind == "edge":
        report("S11", f"@embed is not supported on edge properties ({path})", at)
    elif not built.property.type.is_vector:
        report("S12", f"@embed is only supported on Vector properties ({path})", at)
    elif not isinstance(source, str) or not source:
        report("S21", f"@embed on {path} needs the name of its source property", at)
    else:
        made = replace(built.property, embed=Embed(source, model))
        return replace(built, property=made, embed_at=at)
    return built


def _metric(owner: Owner, built: Built, annotation: ast.AnnotationNode) -> Built:
    path = f"{owner.name}.{built.property.name}"
    if not built.property.type.is_vector:
        message = f"@metric is only supported on Vector properties ({path})"
        owner.diagnostics.error("S12", message, annotation.at)
        return built
    metric = annotation.value.value if annotation.value and not annotation.arguments else None
    if metric not in METRICS:
        message = f"@metric on {path} takes one of " + ", ".join(f'"{m}"' for m in METRICS)
        meant = did_you_mean(metric, METRICS) if isinstance(metric, str) else None
        help = f"Did you mean `{meant}`?" if meant else ""
        owner.diagnostics.error("S10", message, annotation.at, help=help, suggestion=meant)
        return built
    return replace(built, property=replace(built.property, metric=str(metric)))


def _default(owner: Owner, built: Built, annotation: ast.AnnotationNode) -> Built:
    kind = built.property.type
    try:
        made = to_json(_default_value(annotation, kind))
    except Misfit as misfit:
        place = f"the default of {owner.name}.{built.property.name}"
        owner.diagnostics.error("S22", str(misfit.at(place, kind)), annotation.at)
        return built
    return replace(built, property=replace(built.property, default=made))


def _default_value(annotation: ast.AnnotationNode, kind: PropType) -> Any:
    value = annotation.value
    if value is None or annotation.arguments:
        raise Misfit("expected exactly one value")
    if kind.is_blob:
        raise Misfit("expected no default, since a Blob has no literals")
    if value.is_word and kind.enum is None:
        raise Misfit(f"expected a literal, got the word `{value.value}`")
    made = read_value(value.value, kind)
    words = made if kind.is_list else (made,)
    if kind.enum is not None and not set(words) <= set(kind.enum):
        raise unfit(f"one of {', '.join(kind.enum)}", value.value)
    return made


def _description(owner: Owner, built: Built, annotation: ast.AnnotationNode) -> Built:
    text = text_of(owner, annotation, f"property {owner.name}.{built.property.name}")
    return replace(built, property=replace(built.property, description=text))


def _rename_from(owner: Owner, built: Built, annotation: ast.AnnotationNode) -> Built:
    old = text_of(owner, annotation, f"property {owner.name}.{built.property.name}")
    return replace(built, hint=Hint(old, annotation.at)) if old else built


def _instruction(owner: Owner, built: Built, annotation: ast.AnnotationNode) -> Built:
    path = f"{owner.name}.{built.property.name}"
    message = f"@instruction is only supported on node and edge types, not on property {path}"
    owner.diagnostics.error("S11", message, annotation.at, help="Use @description here.")
    return built


def _card(owner: Owner, built: Built, annotation: ast.AnnotationNode) -> Built:
    owner.diagnostics.error("S6", "@card is in the wrong place", annotation.at)
    return built


HANDLERS: dict[str, Callable[[Owner, Built, ast.AnnotationNode], Built]] = {
    **dict.fromkeys(("key", "unique", "index", "range", "check"), _constraint_word),
    "embed": _embed,
    "metric": _metric,
    "default": _default,
    "description": _description,
    "rename_from": _rename_from,
    "instruction": _instruction,
    "card": _card,
}
