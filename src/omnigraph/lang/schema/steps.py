"""The steps of a schema migration: each names a change, its type and its identity.

A step is a frozen dataclass; its `kind` is the tag of its JSON, whose other members are its fields. `table_id` names
the table concerned (none for interfaces). A plan and the desired schema are all that is needed to run it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from omnigraph.lang.schema.types import parse_type
from omnigraph.model.catalog import Annotation, Cardinality
from omnigraph.model.frozen import frozen
from omnigraph.model.types import PropType

JSON_NAMES = {"from_name": "from", "to_name": "to", "from_type": "from", "to_type": "to"}


@frozen
class Constraint:
    """A constraint in a step, in the names of the desired schema (a dropped one: the accepted)."""

    kind: str  # key, unique, index, range or check
    fields: tuple[str, ...]
    minimum: int | float | None = None
    maximum: int | float | None = None
    pattern: str | None = None

    def __str__(self) -> str:
        match self.kind:
            case "range":
                low = "" if self.minimum is None else self.minimum
                high = "" if self.maximum is None else self.maximum
                return f"@range({self.fields[0]}, {low}..{high})"
            case "check":
                return f"@check({self.fields[0]}, {self.pattern!r})"
            case _:
                return f"@{self.kind}({', '.join(self.fields)})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What all steps have in common."""

    kind: ClassVar[str] = ""
    code: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The step with its tag; empty members are left out."""
        found = {f.name: getattr(self, f.name) for f in fields(self)}
        return {"kind": self.kind} | {
            JSON_NAMES.get(name, name): _plain(value)
            for name, value in found.items()
            if value is not None
        }


def _plain(value: Any) -> Any:
    match value:
        case PropType():
            return str(value)
        case Cardinality(low, high):
            return {"min": low, "max": high}
        case Constraint():
            rule = {"kind": value.kind, "fields": list(value.fields)}
            extra = {"min": value.minimum, "max": value.maximum, "pattern": value.pattern}
            return rule | {k: v for k, v in extra.items() if v is not None}
        case Annotation(name, inner, arguments):
            return {"name": name, "value": inner, "arguments": dict(arguments)}
        case tuple() | list():
            return [_plain(item) for item in value]
        case _:
            return value


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeStep(Step):
    """A step about a type as a whole."""

    type_kind: str
    name: str
    type_id: int
    table_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberStep(Step):
    """A step about something inside a type."""

    type_kind: str
    type_name: str
    type_id: int
    table_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PropertyStep(MemberStep):
    """A step about one property."""

    property_name: str
    property_id: int


class AddType(TypeStep):
    """A new, empty table; an interface has none."""

    __slots__ = ()
    kind = "add_type"


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameType(Step):
    """The type keeps its table under a new name."""

    kind: ClassVar[str] = "rename_type"
    type_kind: str
    from_name: str
    to_name: str
    type_id: int
    table_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateTypeMetadata(TypeStep):
    """New descriptions, instructions or annotations; `annotations` are all the type has now."""

    kind: ClassVar[str] = "update_type_metadata"
    annotations: tuple[Annotation, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DropType(TypeStep):
    """The type leaves the branch; `hard` also collects its table."""

    kind: ClassVar[str] = "drop_type"
    mode: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeCardinality(MemberStep):
    """New bounds for the edges of one source; stored edges are checked against them."""

    kind: ClassVar[str] = "change_cardinality"
    from_cardinality: Cardinality
    to_cardinality: Cardinality


@dataclass(frozen=True, slots=True, kw_only=True)
class AddConstraint(MemberStep):
    """A new constraint; stored rows are checked against it, except for an index.

    A new key also demands that the ids of stored rows are those it derives.
    """

    kind: ClassVar[str] = "add_constraint"
    constraint: Constraint


@dataclass(frozen=True, slots=True, kw_only=True)
class DropConstraint(MemberStep):
    """A constraint is removed."""

    kind: ClassVar[str] = "drop_constraint"
    constraint: Constraint


@dataclass(frozen=True, slots=True, kw_only=True)
class AddProperty(PropertyStep):
    """A new column; stored rows get the default, or null."""

    kind: ClassVar[str] = "add_property"
    property_type: PropType
    default: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameProperty(MemberStep):
    """The column gets a new name and keeps its values."""

    kind: ClassVar[str] = "rename_property"
    from_name: str
    to_name: str
    property_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WidenProperty(PropertyStep):
    """Values are cast to a type that holds all of them."""

    kind: ClassVar[str] = "widen_property"
    from_type: PropType
    to_type: PropType


class RelaxNullability(PropertyStep):
    """The property may be null from now on."""

    __slots__ = ()
    kind = "relax_nullability"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtendEnum(PropertyStep):
    """The enum takes more values."""

    kind: ClassVar[str] = "extend_enum"
    added_values: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdatePropertyMetadata(PropertyStep):
    """New description, annotations, default or metric; `annotations` are all the property has now."""

    kind: ClassVar[str] = "update_property_metadata"
    annotations: tuple[Annotation, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DropProperty(PropertyStep):
    """The column leaves the branch, with every constraint that names it; `hard` also collects old versions."""

    kind: ClassVar[str] = "drop_property"
    mode: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsupportedChange(Step):
    """A change that cannot be applied, and why."""

    kind: ClassVar[str] = "unsupported_change"
    entity: str  # node:Person or node:Person.name
    reason: str


# --- from JSON ---------------------------------------------------------------------------------------------------

STEPS: dict[str, type[Step]] = {
    step.kind: step
    for step in (
        AddType,
        RenameType,
        UpdateTypeMetadata,
        DropType,
        ChangeCardinality,
        AddConstraint,
        DropConstraint,
        AddProperty,
        RenameProperty,
        WidenProperty,
        RelaxNullability,
        ExtendEnum,
        UpdatePropertyMetadata,
        DropProperty,
        UnsupportedChange,
    )
}


def step_of(content: Mapping[str, Any]) -> Step:
    """The step that `to_json` wrote."""
    made = STEPS[content["kind"]]
    keys = {f.name: JSON_NAMES.get(f.name, f.name) for f in fields(made)}
    return made(**{name: _read(name, content[key]) for name, key in keys.items() if key in content})


def _read(name: str, value: Any) -> Any:
    match name:
        case "property_type" | "from_type" | "to_type":
            return parse_type(value)
        case "from_cardinality" | "to_cardinality":
            return Cardinality(value["min"], value["max"])
        case "constraint":
            bounds = (value.get(member) for member in ("min", "max", "pattern"))
            return Constraint(value["kind"], tuple(value["fields"]), *bounds)
        case "annotations":
            return tuple(
                Annotation(a["name"], a["value"], tuple(a["arguments"].items())) for a in value
            )
        case "added_values":
            return tuple(value)
        case _:
            return value
