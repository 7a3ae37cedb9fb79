"""Three schemas to one: the changes of two branches to a schema since they diverged.

A schema is taken apart into facts, each under a key made of identities: a name, a type, one value of an enum, one
constraint. A fact that only one side changed is taken from that side; one that both changed differently is a conflict.
Names do not matter, so one branch may rename what another one extends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from omnigraph.lang.diagnostics import Diagnostics, Severity
from omnigraph.lang.schema.check import Checker
from omnigraph.lang.schema.ir import AnyType, SchemaIR
from omnigraph.lang.schema.migrate import constraints_of
from omnigraph.lang.schema.parser import Parser
from omnigraph.lang.schema.rules import ENDS
from omnigraph.lang.schema.steps import Constraint
from omnigraph.lang.schema.unparse import schema_to_text
from omnigraph.lang.source import Source
from omnigraph.model.catalog import (
    Check,
    EdgeType,
    Embed,
    EntityType,
    InterfaceType,
    NodeType,
    Property,
    Range,
)
from omnigraph.model.frozen import frozen
from omnigraph.model.types import PropType

Fact = tuple[
    int, int | None, str, Any
]  # identity of the type, of the property, aspect, and what distinguishes facts
Facts = dict[Fact, Any]


@frozen
class SchemaConflict:
    """One thing that both sides changed in different ways."""

    type_kind: str
    type_name: str
    property_name: str | None
    aspect: str  # what about it: type, name, drop, …
    base: str | None
    ours: str | None
    theirs: str | None
    kind: str = "schema_conflict"

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "type_kind": self.type_kind,
            "type": self.type_name,
            "field": self.property_name,
            "aspect": self.aspect,
            "base": self.base,
            "ours": self.ours,
            "theirs": self.theirs,
        }


@frozen
class SchemaMerge:
    """The merged schema, or why there is none."""

    ir: SchemaIR | None
    conflicts: tuple[SchemaConflict, ...] = ()


def merge_schemas(base: SchemaIR, ours: SchemaIR, theirs: SchemaIR) -> SchemaMerge:
    """The changes of both sides to the schema since `base`; an unchanged side costs nothing."""
    retired = _retired(ours, theirs)
    if theirs in (base, ours):
        return SchemaMerge(ours if ours.retired == retired else replace(ours, retired=retired))
    if ours == base:
        return SchemaMerge(
            theirs if theirs.retired == retired else replace(theirs, retired=retired)
        )
    names = _Names((ours, theirs, base))
    sides = _facts(base), _facts(ours), _facts(theirs)
    merged, conflicts = _merge_facts(*sides, names)
    conflicts += [*_orphans(merged, names), *_clashes(merged, names)]
    if conflicts:
        return SchemaMerge(None, _distinct(conflicts))
    ir = replace(_assemble(merged), retired=retired)
    problems = _distinct(_broken_rules(ir))
    return SchemaMerge(None, problems) if problems else SchemaMerge(ir)


def _retired(ours: SchemaIR, theirs: SchemaIR) -> dict[str, int]:
    """What has left a name on either side: an identity is not reused on the merged line of history either."""
    slots = sorted({*ours.retired, *theirs.retired})
    return {s: max(ours.retired.get(s, 0), theirs.retired.get(s, 0)) for s in slots}


# --- a schema as facts ---


def _facts(ir: SchemaIR) -> Facts:
    ids = {(kind, t.name): t.type_id for kind, t in ir.types()}
    found: Facts = {}
    for kind, t in ir.types():
        found[t.type_id, None, "kind", None] = kind
        found[t.type_id, None, "name", None] = t.name
        for aspect, value in _type_facts(t, ids):
            found[t.type_id, None, aspect, None] = value
        for prop in t.properties.values():
            for aspect, key, value in _property_facts(prop, t):
                found[t.type_id, prop.property_id, aspect, key] = value
        if isinstance(t, EntityType):
            for constraint in constraints_of(t):
                found[t.type_id, None, "constraint", _by_identity(constraint, t)] = True
    return found


def _type_facts(kind: AnyType, ids: Mapping[tuple[str, str], int]) -> Iterator[tuple[str, Any]]:
    yield "description", kind.description
    if isinstance(kind, EntityType):
        yield "instruction", kind.instruction
        yield "annotations", kind.annotations
    if isinstance(kind, NodeType):
        yield "implements", tuple(ids["interface", name] for name in kind.implements)
    if isinstance(kind, EdgeType):
        yield "from", ids["node", kind.from_type]
        yield "to", ids["node", kind.to_type]
        yield "cardinality", kind.cardinality


def _property_facts(prop: Property, owner: AnyType) -> Iterator[tuple[str, Any, Any]]:
    yield "name", None, prop.name
    plain = replace(prop.type, nullable=False, enum=None)
    yield "type", None, (plain, prop.type.enum is not None)
    yield "nullable", None, prop.type.nullable
    for value in prop.type.enum or ():
        yield "enum", value, True
    yield "default", None, prop.default
    yield "metric", None, prop.metric
    yield "description", None, prop.description
    yield "annotations", None, prop.annotations
    if prop.embed is not None:
        yield "embed", None, (owner.properties[prop.embed.source].property_id, prop.embed.model)


def _by_identity(constraint: Constraint, owner: EntityType) -> Constraint:
    """A constraint whose fields are identities, written as text; src and dst stay as they are. The members of a key
    have an order, which derives ids; those of other constraints have none."""
    fields = tuple(
        str(owner.properties[f].property_id) if f in owner.properties else f
        for f in constraint.fields
    )
    return replace(constraint, fields=fields if constraint.kind == "key" else tuple(sorted(fields)))


# --- merging ---


class _Names:
    """The names of identities, for messages: our name first."""

    def __init__(self, irs: Iterable[SchemaIR]) -> None:
        self.types: dict[int, tuple[str, str]] = {}
        self.properties: dict[int, str] = {}
        for ir in irs:
            for kind, t in ir.types():
                self.types.setdefault(t.type_id, (kind, t.name))
                for p in t.properties.values():
                    self.properties.setdefault(p.property_id, p.name)

    def show(self, aspect: str, value: Any) -> str | None:
        """A value of a fact, for people."""
        match value:
            case None:
                return None
            case (PropType() as kind, bool(is_enum)):
                return "enum" if is_enum else str(kind)
            case (int(source), model) if aspect == "embed":
                name = self.properties[source]
                return f"{name}, model {model}" if model else name
            case int() if aspect in ("from", "to"):
                return self.types[value][1]
            case tuple() if aspect == "implements":
                return ", ".join(self.types[i][1] for i in value)
            case tuple():
                return " ".join(map(str, value))
            case _:
                return str(value)


def _merge_facts(
    base: Facts, ours: Facts, theirs: Facts, names: _Names
) -> tuple[Facts, list[SchemaConflict]]:
    merged: Facts = {}
    conflicts: list[SchemaConflict] = []
    for fact in {**base, **ours, **theirs}:
        b, o, t = base.get(fact), ours.get(fact), theirs.get(fact)
        values = [side.get(fact) if fact in side else _ABSENT for side in (base, ours, theirs)]
        if values[1] == values[2] or values[2] == values[0]:
            taken = values[1]
        elif values[1] == values[0]:
            taken = values[2]
        else:
            type_id, property_id, aspect, _ = fact
            conflicts.append(_conflict(names, type_id, property_id, aspect, (b, o, t)))
            # One side's value is used, unless the other dropped it, so what depends on it is not in conflict as well.
            taken = _ABSENT if _ABSENT in values[1:] else values[1]
        if taken is not _ABSENT:
            merged[fact] = taken
    return merged, conflicts


_ABSENT = object()


def _conflict(
    names: _Names, type_id: int, property_id: int | None, aspect: str, values: tuple[Any, Any, Any]
) -> SchemaConflict:
    kind, name = names.types[type_id]
    prop = names.properties[property_id] if property_id is not None else None
    base, ours, theirs = (names.show(aspect, value) for value in values)
    return SchemaConflict(kind, name, prop, aspect, base, ours, theirs)


def _orphans(merged: Facts, names: _Names) -> list[SchemaConflict]:
    """Facts of one side about something the other side dropped."""
    types = {fact[0] for fact in merged if fact[2] == "kind"}
    properties = {fact[1] for fact in merged if fact[1] is not None and fact[2] == "type"}
    found = []
    for fact, value in merged.items():
        type_id, property_id, aspect, key = fact
        gone = type_id not in types
        gone = gone or (property_id is not None and property_id not in properties)
        gone = gone or (aspect in ("from", "to") and value not in types)
        gone = gone or (aspect == "implements" and not types.issuperset(value))
        gone = gone or (aspect == "embed" and value[0] not in properties)
        if isinstance(key, Constraint):
            used = (int(f) for f in key.fields if f not in ENDS)
            gone = gone or not properties.issuperset(used)
        if gone:
            values = (None, "changed or used", "dropped")
            found.append(_conflict(names, type_id, property_id, "drop", values))
    return found


def _clashes(merged: Facts, names: _Names) -> Iterator[SchemaConflict]:
    """One name for two things, or two keys for one type: each side added one of them."""
    seen: dict[tuple[Any, ...], Fact] = {}
    for fact, value in merged.items():
        type_id, property_id, aspect, key = fact
        if aspect == "name":
            owner = merged.get((type_id, None, "kind", None)) if property_id is None else type_id
            slot: tuple[Any, ...] = (owner, value)
        elif isinstance(key, Constraint) and key.kind == "key":
            slot, aspect = (type_id, "key"), "key"
        else:
            continue
        if slot in seen:
            yield _conflict(names, type_id, property_id, aspect, (None, "added", "added"))
        seen[slot] = fact


def _distinct(conflicts: Iterable[SchemaConflict]) -> tuple[SchemaConflict, ...]:
    """Conflicts in a fixed order; a dropped declaration is one conflict, however many facts it had."""
    found = {(c.type_kind, c.type_name, c.property_name or "", c.aspect): c for c in conflicts}
    return tuple(found[key] for key in sorted(found))


# --- facts as a schema again ---


def _assemble(facts: Facts) -> SchemaIR:
    by_type: dict[int, Facts] = {}
    for fact, value in facts.items():
        by_type.setdefault(fact[0], {})[fact] = value
    names = {fact[0]: v for fact, v in facts.items() if fact[1] is None and fact[2] == "name"}
    made = [_assemble_type(type_id, own, names) for type_id, own in by_type.items()]
    made.sort(key=lambda t: t.name)
    return SchemaIR(
        tuple(t for t in made if isinstance(t, InterfaceType)),
        tuple(t for t in made if isinstance(t, NodeType)),
        tuple(t for t in made if isinstance(t, EdgeType)),
    )


def _assemble_type(type_id: int, facts: Facts, names: Mapping[int, str]) -> AnyType:
    own = {fact[2]: v for fact, v in facts.items() if fact[1] is None and fact[2] != "constraint"}
    properties = _assemble_properties(facts)
    shared = {"name": own["name"], "type_id": type_id, "properties": properties}
    if own["kind"] == "interface":
        return InterfaceType(**shared, description=own["description"])
    constraints = [f[3] for f in facts if f[2] == "constraint"]
    shared |= _assemble_constraints(constraints, properties)
    shared |= {k: own[k] for k in ("description", "instruction", "annotations")}
    if own["kind"] == "node":
        implements = tuple(sorted(names[i] for i in own["implements"]))
        return NodeType(**shared, table_id=f"n{type_id}", implements=implements)
    return EdgeType(
        **shared,
        table_id=f"e{type_id}",
        from_type=names[own["from"]],
        to_type=names[own["to"]],
        cardinality=own["cardinality"],
    )


def _assemble_properties(facts: Facts) -> dict[str, Property]:
    aspects: dict[int, dict[str, Any]] = {}
    values: dict[int, list[str]] = {}
    for (_, property_id, aspect, key), value in facts.items():
        if property_id is not None and aspect == "enum":
            values.setdefault(property_id, []).append(key)
        elif property_id is not None:
            aspects.setdefault(property_id, {})[aspect] = value
    called = {property_id: own["name"] for property_id, own in aspects.items()}
    made = []
    for property_id, own in aspects.items():
        kind, is_enum = own["type"]
        enum = tuple(sorted(values.get(property_id, ()))) if is_enum else None
        kind = replace(kind, nullable=own["nullable"], enum=enum)
        embed = None
        if "embed" in own:
            source, model = own["embed"]
            embed = Embed(called[source], model)
        rest = {k: own[k] for k in ("default", "metric", "description", "annotations")}
        made.append(Property(own["name"], kind, property_id, embed=embed, **rest))
    return {p.name: p for p in sorted(made, key=lambda p: p.name)}


def _assemble_constraints(
    constraints: Iterable[Constraint], properties: dict[str, Property]
) -> dict[str, Any]:
    called = {str(p.property_id): p.name for p in properties.values()}
    groups: dict[str, list[Any]] = {k: [] for k in ("key", "unique", "index", "range", "check")}
    for c in constraints:
        named = tuple(called.get(f, f) for f in c.fields)
        fields = named if c.kind == "key" else tuple(sorted(named))
        match c.kind:
            case "range":
                groups[c.kind].append(Range(fields[0], c.minimum, c.maximum))
            case "check":
                groups[c.kind].append(Check(fields[0], c.pattern or ""))
            case _:
                groups[c.kind].append(fields)
    key = groups["key"][0] if groups["key"] else None
    return {
        "key": key,
        "uniques": tuple(sorted(g for g in groups["unique"] if {*g} != {*(key or ())})),
        "indices": tuple(sorted(g for g in groups["index"] if {*g} != {*(key or ())})),
        "ranges": tuple(sorted(groups["range"], key=str)),
        "checks": tuple(sorted(groups["check"], key=lambda c: (c.property, c.pattern))),
    }


# --- what only shows in the whole ---


def _broken_rules(ir: SchemaIR) -> Iterator[SchemaConflict]:
    """Rules of the language that the two changes break together, such as two keys on one type."""
    diagnostics = Diagnostics(Source(schema_to_text(ir)))
    Checker(Parser(diagnostics).schema(), diagnostics).check()
    for found in diagnostics.sorted():
        if found.severity is Severity.ERROR:
            yield SchemaConflict("schema", found.code, None, "rules", None, found.message, None)
