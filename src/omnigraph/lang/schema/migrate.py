"""From the accepted schema to the desired one, as steps.

`plan_migration` compares two schemas by identity. Every difference becomes exactly one step; one that stored data does
not allow becomes an `unsupported_change`, and then no part of the plan can be applied.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from omnigraph.errors import CODES, Kind, OmnigraphError
from omnigraph.lang.diagnostics import Diagnostic
from omnigraph.lang.schema.ir import AnyType, SchemaIR
from omnigraph.lang.schema.steps import (
    AddConstraint,
    AddProperty,
    AddType,
    ChangeCardinality,
    Constraint,
    DropConstraint,
    DropProperty,
    DropType,
    ExtendEnum,
    RelaxNullability,
    RenameProperty,
    RenameType,
    Step,
    UnsupportedChange,
    UpdatePropertyMetadata,
    UpdateTypeMetadata,
    WidenProperty,
)
from omnigraph.model.catalog import (
    Annotation,
    EdgeType,
    EntityType,
    InterfaceType,
    NodeType,
    Property,
)
from omnigraph.model.frozen import frozen
from omnigraph.model.types import FLOATS, PropType, Scalar

WIDENINGS = frozenset(
    {
        (Scalar.I32, Scalar.I64),
        (Scalar.U32, Scalar.U64),
        (Scalar.U32, Scalar.I64),
        (Scalar.F32, Scalar.F64),
        (Scalar.I32, Scalar.F64),
    }
)


class SchemaChangeRefused(OmnigraphError):
    """A schema change cannot be applied; its code is that of the first unsupported step."""

    kind = Kind.INVALID

    def __init__(self, step: UnsupportedChange, details: dict[str, Any]) -> None:
        self.code = step.code or "OG-MF-106"
        super().__init__(step.reason, help=CODES[self.code].help, details=details)
        self.step = step

    def __reduce__(self) -> tuple[Any, ...]:
        return SchemaChangeRefused, (self.step, self.details)


@frozen
class MigrationPlan:
    """The effect of applying a schema."""

    supported: bool
    steps: tuple[Step, ...]
    diagnostics: tuple[Diagnostic, ...] = ()  # warnings about the desired text

    def to_json(self) -> dict[str, Any]:
        return {"supported": self.supported, "steps": [s.to_json() for s in self.steps]}

    def _repr_html_(self) -> str:
        from omnigraph.drawing.notebook import plan_html

        return plan_html((step.to_json() for step in self.steps), self.supported)

    def raise_unsupported(self) -> None:
        """Raise when the plan cannot be applied, naming every unsupported step."""
        refused = [s for s in self.steps if isinstance(s, UnsupportedChange)]
        if refused:
            raise SchemaChangeRefused(refused[0], {"steps": [s.to_json() for s in refused]})


def compare(accepted: SchemaIR, desired: SchemaIR, *, allow_data_loss: bool) -> tuple[Step, ...]:
    """The steps from one schema to another, matched by identity."""
    mode = "hard" if allow_data_loss else "soft"
    before = {t.type_id: t for _, t in accepted.types()}
    kept = {t.type_id for _, t in desired.types()}
    steps: list[Step] = []
    for kind, new in desired.types():
        old = before.get(new.type_id)
        if old is None:
            steps.append(AddType(type_kind=kind, name=new.name, **_ids(new)))
        else:
            steps.extend(_Comparison(kind, old, new, accepted, desired, mode).steps())
    for kind, old in accepted.types():
        if old.type_id not in kept:
            steps.append(_drop_type(kind, old, mode))
    return tuple(steps)


def _ids(kind: AnyType) -> dict[str, Any]:
    table_id = kind.table_id if isinstance(kind, EntityType) else None
    return {"type_id": kind.type_id, "table_id": table_id}


def _drop_type(kind: str, old: AnyType, mode: str) -> Step:
    if kind == "interface":
        reason = f"removing interface {old.name} is not supported"
        return UnsupportedChange(entity=f"interface:{old.name}", reason=reason, code="M1")
    code = "OG-DS-102" if kind == "node" else "OG-DS-103"
    return DropType(type_kind=kind, name=old.name, mode=mode, code=code, **_ids(old))


@frozen
class _Comparison:
    """One type before and after."""

    kind: str
    old: AnyType
    new: AnyType
    accepted: SchemaIR
    desired: SchemaIR
    mode: str

    def steps(self) -> Iterator[Step]:
        if self.old.name != self.new.name:
            yield RenameType(
                type_kind=self.kind,
                from_name=self.old.name,
                to_name=self.new.name,
                **_ids(self.new),
            )
        yield from self._shape()
        if _type_metadata(self.old) != _type_metadata(self.new):
            yield UpdateTypeMetadata(
                type_kind=self.kind,
                name=self.new.name,
                annotations=_type_metadata(self.new),
                **_ids(self.new),
            )
        before = {p.property_id: p for p in self.old.properties.values()}
        for prop in self.new.properties.values():
            old = before.pop(prop.property_id, None)
            yield from self._add(prop) if old is None else self._property(old, prop)
        yield from self._constraints()
        for dropped in before.values():
            code = "OG-DS-105" if dropped.type.is_vector else "OG-DS-104"
            yield DropProperty(**self._about(dropped), mode=self.mode, code=code)

    def _shape(self) -> Iterator[Step]:
        """Interfaces of a node; ends and cardinality of an edge."""
        match self.old, self.new:
            case NodeType(), NodeType():
                if self.old.implements != self.new.implements:
                    reason = f"changing the interfaces of node {self.new.name} is not supported"
                    yield self._refuse("M2", reason)
            case EdgeType(), EdgeType():
                if self._ends(self.old, self.accepted) != self._ends(self.new, self.desired):
                    reason = f"changing the ends of edge {self.new.name} is not supported"
                    yield self._refuse("M3", reason)
                if self.old.cardinality != self.new.cardinality:
                    yield ChangeCardinality(
                        **self._inside(),
                        from_cardinality=self.old.cardinality,
                        to_cardinality=self.new.cardinality,
                    )

    @staticmethod
    def _ends(edge: EdgeType, ir: SchemaIR) -> list[int]:
        ids = {n.name: n.type_id for n in ir.nodes}
        return [ids[edge.from_type], ids[edge.to_type]]

    def _inside(self) -> dict[str, Any]:
        return {"type_kind": self.kind, "type_name": self.new.name, **_ids(self.new)}

    def _about(self, prop: Property) -> dict[str, Any]:
        names = {"property_name": prop.name, "property_id": prop.property_id}
        return {**self._inside(), **names}

    def _refuse(self, code: str, reason: str, prop: Property | None = None) -> UnsupportedChange:
        entity = f"{self.kind}:{self.new.name}" + (f".{prop.name}" if prop else "")
        return UnsupportedChange(entity=entity, reason=reason, code=code)

    # --- properties ---

    def _add(self, prop: Property) -> Iterator[Step]:
        filled = prop.type.nullable or prop.default is not None
        if not filled and not isinstance(self.new, InterfaceType):
            path = f"{self.new.name}.{prop.name}"
            reason = f"the required property {path} has no value for the rows that exist"
            yield self._refuse("OG-MF-103", reason, prop)
        else:
            about = self._about(prop)
            yield AddProperty(**about, property_type=prop.type, default=prop.default)

    def _property(self, old: Property, new: Property) -> Iterator[Step]:
        if old.name != new.name:
            yield RenameProperty(
                **self._inside(),
                from_name=old.name,
                to_name=new.name,
                property_id=new.property_id,
            )
        if old.type != new.type:
            yield from self._type(old, new)
        if self._embed(old, self.old) != self._embed(new, self.new):
            path = f"{self.new.name}.{new.name}"
            reason = f"adding @embed to {path}, or removing it, is not supported"
            yield self._refuse("M4", reason, new)
        if _metadata(old) != _metadata(new):
            annotations = _property_annotations(new)
            yield UpdatePropertyMetadata(**self._about(new), annotations=annotations)

    @staticmethod
    def _embed(prop: Property, owner: AnyType) -> tuple[Any, ...] | None:
        """An embedding by the identity of its source, so that renaming the source is no change."""
        if prop.embed is None:
            return None
        source = owner.properties.get(prop.embed.source)
        return (source.property_id if source else prop.embed.source, prop.embed.model)

    def _type(self, old: Property, new: Property) -> Iterator[Step]:
        before, after = old.type, new.type.with_nullable(old.type.nullable)
        tightened = old.type.nullable and not new.type.nullable
        extended = _added_values(before, after)
        widened = self._widens(old, before, after)
        if tightened or not (before == after or extended is not None or widened):
            path = f"{self.new.name}.{new.name}"
            reason = f"changing the type of {path} from {old.type} to {new.type} is not supported"
            yield self._refuse("OG-MF-106", reason, new)
            return
        if widened:
            yield WidenProperty(**self._about(new), from_type=old.type, to_type=new.type)
        if extended:
            yield ExtendEnum(**self._about(new), added_values=extended)
        if new.type.nullable and not old.type.nullable:
            yield RelaxNullability(**self._about(new))

    def _widens(self, prop: Property, before: PropType, after: PropType) -> bool:
        """Whether every value of one type is one of the other. The id a float key derives depends on its width."""
        alike = before.is_list == after.is_list and before.enum is None and after.enum is None
        alike = alike and before.vector_dim == after.vector_dim and not before.is_vector
        key = self.old.key if isinstance(self.old, EntityType) else None
        if prop.name in (key or ()) and before.scalar in FLOATS:
            return False
        return alike and (before.scalar, after.scalar) in WIDENINGS

    # --- constraints ---

    def _constraints(self) -> Iterator[Step]:
        if isinstance(self.old, InterfaceType) or isinstance(self.new, InterfaceType):
            return
        before, after = _by_identity(self.old), _by_identity(self.new)
        alive = {p.property_id for p in self.new.properties.values()}
        for key, constraint in before.items():
            orphaned = any(isinstance(f, int) and f not in alive for f in key[1])
            if key not in after and not orphaned:
                yield DropConstraint(**self._inside(), constraint=constraint)
        for key, constraint in after.items():
            if key not in before:
                yield AddConstraint(**self._inside(), constraint=constraint)


def _added_values(before: PropType, after: PropType) -> tuple[str, ...] | None:
    """The values an enum gained, or None when it is not an extension of one."""
    if before.enum is None or after.enum is None or not {*before.enum} < {*after.enum}:
        return None
    return tuple(value for value in after.enum if value not in before.enum)


def constraints_of(kind: EntityType) -> Iterator[Constraint]:
    """The constraints of a type, one by one."""
    if kind.key is not None:
        yield Constraint("key", kind.key)
    yield from (Constraint("unique", group) for group in kind.uniques)
    yield from (Constraint("index", group) for group in kind.indices)
    yield from (Constraint("range", (r.property,), r.minimum, r.maximum) for r in kind.ranges)
    yield from (Constraint("check", (c.property,), pattern=c.pattern) for c in kind.checks)


def _by_identity(kind: EntityType) -> dict[tuple[Any, ...], Constraint]:
    """The constraints of a type, keyed by what stays when properties are renamed."""

    def identity(name: str) -> int | str:
        return kind.properties[name].property_id if name in kind.properties else name

    return {
        (c.kind, frozenset(map(identity, c.fields)), c.minimum, c.maximum, c.pattern): c
        for c in constraints_of(kind)
    }


# --- metadata ---


def _text(name: str, value: str | None) -> tuple[Annotation, ...]:
    return (Annotation(name, value),) if value is not None else ()


def _type_metadata(kind: AnyType) -> tuple[Annotation, ...]:
    if isinstance(kind, InterfaceType):
        return _text("description", kind.description)
    texts = _text("description", kind.description) + _text("instruction", kind.instruction)
    return texts + kind.annotations


def _property_annotations(prop: Property) -> tuple[Annotation, ...]:
    return _text("description", prop.description) + prop.annotations


def _metadata(prop: Property) -> tuple[Any, ...]:
    return (_property_annotations(prop), prop.default, prop.metric)
