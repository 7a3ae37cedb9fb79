"""Checks the constraints of one type and brings them into canonical form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from omnigraph.lang.schema import ast
from omnigraph.lang.schema.members import Built, Owner, unsuited
from omnigraph.model.catalog import Check, Property, Range
from omnigraph.model.frozen import frozen
from omnigraph.model.types import INTEGERS, PropType, Scalar

ENDS = ("src", "dst")  # what constraints of an edge may name besides its properties


@frozen
class TypeRules:
    """The constraints of a type, sorted and without repetitions."""

    key: tuple[str, ...] | None = None
    uniques: tuple[tuple[str, ...], ...] = ()
    indices: tuple[tuple[str, ...], ...] = ()
    ranges: tuple[Range, ...] = ()
    checks: tuple[Check, ...] = ()


def check_rules(
    owner: Owner, members: Mapping[str, Built], declared: Iterable[ast.Rule], known: frozenset[str]
) -> TypeRules:
    """The constraints of a type: those after its properties and those of its body.

    `known` are names not to report, because their declarations could not be read.
    """
    properties = {name: built.property for name, built in members.items()}
    written = (*_behind_properties(members), *declared)
    sound = [rule for rule in written if _names_known(owner, rule, properties, known)]
    fields = [rule for rule in sound if isinstance(rule, ast.FieldsRule)]
    key = _key(owner, properties, [rule for rule in fields if rule.word == "key"])
    for rule in fields:
        _check_fields(owner, properties, rule)
    return TypeRules(
        key=key,
        uniques=_groups(owner, fields, "unique", key),
        indices=_groups(owner, fields, "index", key),
        ranges=_ranges(owner, properties, sound),
        checks=_checks(owner, properties, sound),
    )


def _behind_properties(members: Mapping[str, Built]) -> Iterable[ast.FieldsRule]:
    """`p: T @unique` means `@unique(p)`."""
    for built in members.values():
        for word in built.words:
            at = next(a.at for a in built.decl.annotations if a.name == word)
            yield ast.FieldsRule(word, (ast.Name(built.property.name, at),), at)


def _named(rule: ast.Rule) -> tuple[ast.Name, ...]:
    return rule.fields if isinstance(rule, ast.FieldsRule) else (rule.name,)


def _word(rule: ast.Rule) -> str:
    match rule:
        case ast.FieldsRule(word=word):
            return word
        case ast.RangeRule():
            return "range"
        case ast.CheckRule():
            return "check"


def _names_known(
    owner: Owner, rule: ast.Rule, properties: Mapping[str, Property], known: frozenset[str]
) -> bool:
    ends = ENDS if owner.kind == "edge" and isinstance(rule, ast.FieldsRule) else ()
    legal = {*properties, *ends}
    missing = [name for name in _named(rule) if name.text not in legal]
    for name in missing:
        if name.text not in known:
            message = f"@{_word(rule)} on {owner.name} names the unknown property `{name}`"
            owner.diagnostics.unknown("S13", message, name.at, word=name.text, options=legal)
    return not missing


def _key(
    owner: Owner, properties: Mapping[str, Property], rules: list[ast.FieldsRule]
) -> tuple[str, ...] | None:
    distinct = {tuple(sorted({n.text for n in rule.fields})): rule for rule in rules}
    for rule in list(distinct.values())[1:]:
        message = f"{owner.kind} {owner.name} has more than one @key"
        owner.diagnostics.error("S14", message, rule.at)
    for name in (name for rule in rules for name in rule.fields):
        prop = properties.get(name.text)
        if prop is not None and prop.type.nullable:
            message = f"the @key property {owner.name}.{name} cannot be optional"
            owner.diagnostics.error("S15", message, name.at)
        if prop is not None and prop.default is not None:
            message = f"the @key property {owner.name}.{name} cannot have a default"
            owner.diagnostics.error("S22", message, name.at)
    if not distinct:
        return None
    fields, rule = next(iter(distinct.items()))
    if owner.kind == "edge":
        return _edge_key(owner, fields, rule)
    return fields


def _edge_key(owner: Owner, fields: tuple[str, ...], rule: ast.FieldsRule) -> tuple[str, ...]:
    if not {*ENDS} <= {*fields}:
        message = f"the @key of edge {owner.name} must name both src and dst"
        help = "Write @key(src, dst), or @key(src, dst, property)."
        owner.diagnostics.error("S7", message, rule.at, help=help)
    return (*ENDS, *(f for f in fields if f not in ENDS))


def _check_fields(owner: Owner, properties: Mapping[str, Property], rule: ast.FieldsRule) -> None:
    for name in rule.fields:
        prop = properties.get(name.text)
        if prop is None:
            continue
        if misfit := unsuited(rule.word, prop.type, behind_property=False):
            message = f"@{rule.word} is not supported on {misfit} property {owner.name}.{name}"
            owner.diagnostics.error("S12", message, name.at)
        elif rule.word == "index" and prop.type.is_list:
            message = f"the index on list property {owner.name}.{name} has no effect"
            owner.diagnostics.warn("S32", message, name.at)


def _groups(
    owner: Owner, rules: list[ast.FieldsRule], word: str, key: tuple[str, ...] | None
) -> tuple[tuple[str, ...], ...]:
    groups = set()
    for rule in rules:
        if rule.word != word:
            continue
        group = tuple(sorted({name.text for name in rule.fields}))
        if key is not None and {*group} == {*key}:
            code, what = ("S33", "uniqueness") if word == "unique" else ("S32", "index")
            message = f"this {what} of {owner.name} is implied by its @key"
            owner.diagnostics.warn(code, message, rule.at)
        else:
            groups.add(group)
    return tuple(sorted(groups))


def _ranges(
    owner: Owner, properties: Mapping[str, Property], rules: list[ast.Rule]
) -> tuple[Range, ...]:
    found = {}
    for rule in rules:
        if not isinstance(rule, ast.RangeRule):
            continue
        kind, path = properties[rule.name.text].type, f"{owner.name}.{rule.name}"
        low, high = rule.minimum, rule.maximum
        if not kind.is_numeric:
            message = f"@range on {path} needs a number, not {kind}"
            owner.diagnostics.error("S12", message, rule.at)
        elif low is not None and high is not None and low > high:
            message = f"the lower bound of @range on {path}, {low}, exceeds the upper one, {high}"
            owner.diagnostics.error("S23", message, rule.at)
        made = Range(rule.name.text, _bound(low, kind), _bound(high, kind))
        found[str(made)] = made
    return tuple(found[key] for key in sorted(found))


def _checks(
    owner: Owner, properties: Mapping[str, Property], rules: list[ast.Rule]
) -> tuple[Check, ...]:
    found = set()
    for rule in rules:
        if not isinstance(rule, ast.CheckRule):
            continue
        kind, path = properties[rule.name.text].type, f"{owner.name}.{rule.name}"
        if not kind.is_plain or kind.scalar is not Scalar.STRING:
            message = f"@check on {path} needs a String, not {kind}"
            owner.diagnostics.error("S12", message, rule.at)
        elif (refusal := pattern_error(rule.pattern)) is not None:
            message = f"the pattern of @check on {path} is not a regular expression: {refusal}"
            owner.diagnostics.error("S16", message, rule.at)
        found.add((rule.name.text, rule.pattern))
    return tuple(Check(name, pattern) for name, pattern in sorted(found))


def _bound(value: int | float | None, kind: PropType) -> int | float | None:
    """A bound of @range in the number type of its property, so that 0..60 and 0.0..60.0 mean the same."""
    if value is None:
        return None
    if kind.scalar in INTEGERS:
        return int(value) if float(value).is_integer() else value
    return float(value)


def pattern_error(pattern: str) -> str | None:
    """Why RE2 refuses a pattern, or None.

    Arrow's RE2 decides, because it is what checks the rows. It is loaded only for a schema that has patterns.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        pc.match_substring_regex(pa.array([""]), pattern)
    except pa.ArrowInvalid as refusal:
        return str(refusal).removeprefix("Invalid regular expression: ")
    return None
