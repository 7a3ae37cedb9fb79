"""Incompatible changes of both sides, and decisions about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

import pyarrow as pa

from omnigraph.errors import OptionInvalid
from omnigraph.lang.checks import CheckConflict
from omnigraph.lang.schema import SchemaConflict
from omnigraph.model.catalog import NodeOrEdgeType
from omnigraph.model.columns import arrow_type
from omnigraph.model.frozen import frozen
from omnigraph.values.misfit import Misfit
from omnigraph.values.reading import read_value
from omnigraph.values.spelling import to_json

DIVERGENT_INSERT = "divergent_insert"  # both inserted one id, with different values
DIVERGENT_UPDATE = "divergent_update"  # both gave one field another value
DELETE_VS_UPDATE = "delete_vs_update"  # one side deleted what the other changed
ORPHAN_EDGE = "orphan_edge"  # one side deleted a node, the other added an edge to it
UNIQUE = "unique_violation"
CARDINALITY = "cardinality_violation"
VALUE = "value_constraint_violation"  # a row breaks a rule the other side added
LOST_VALUE = "lost_value"  # the merged schema has no place for a value one side wrote
SCHEMA = "schema_conflict"
CHECK = "check_conflict"  # both sides changed one check

OURS, THEIRS = "ours", "theirs"


@frozen
class Conflict:
    """One thing to decide. `ours` is the branch merged into, `theirs` the one that is merged; None: missing."""

    kind: str
    type: str
    id: str | None = None
    field: str | None = None
    base: Any = None
    ours: Any = None
    theirs: Any = None
    message: str = ""

    def to_json(self) -> dict[str, Any]:
        """The shape every surface uses."""
        values = {side: to_json(getattr(self, side)) for side in ("base", "ours", "theirs")}
        named = {"kind": self.kind, "type": self.type, "id": self.id, "field": self.field}
        return {**named, **values, "message": self.message}


def of_schemas(found: Iterable[SchemaConflict]) -> tuple[Conflict, ...]:
    """Conflicts of two schemas, in the same form as those of rows."""
    return tuple(
        Conflict(
            SCHEMA,
            c.type_name,
            field=c.property_name,
            base=c.base,
            ours=c.ours,
            theirs=c.theirs,
            message=f"both sides changed the {c.aspect} of {c.type_name}"
            + (f".{c.property_name}" if c.property_name else ""),
        )
        for c in found
    )


def of_checks(found: Iterable[CheckConflict]) -> tuple[Conflict, ...]:
    """Checks that both sides changed, in the same form; they have no type."""
    return tuple(
        Conflict(
            CHECK,
            "",
            id=c.name,
            base=c.base,
            ours=c.ours,
            theirs=c.theirs,
            message=f"both sides changed the check {c.name}",
        )
        for c in found
    )


@frozen
class ChosenValue:
    """A value given for a field."""

    value: Any


Decision = str | ChosenValue  # a side, or a value


@frozen
class Decisions:
    """The given decisions: for single fields, rows, types, or everything; the most specific applies."""

    everywhere: str | None = None
    types: Mapping[str, str] = field(default_factory=dict)
    rows: Mapping[tuple[str, str, str | None], Decision] = field(default_factory=dict)

    def of(self, type_name: str, id: str | None, field: str | None) -> Decision | None:
        """The decision for a conflict, if any."""
        if id is not None:
            for key in ((type_name, id, field), (type_name, id, None)):
                if key in self.rows:
                    return self.rows[key]
        return self.types.get(type_name, self.everywhere)

    def side(self, type_name: str, id: str | None, field: str | None) -> str | None:
        """The same if only a side can be taken."""
        found = self.of(type_name, id, field)
        return found if isinstance(found, str) else None

    def swapped(self) -> Decisions:
        """The same decisions, seen from the other side."""
        return Decisions(
            None if self.everywhere is None else _OTHER[self.everywhere],
            {name: _OTHER[side] for name, side in self.types.items()},
            {
                row: _OTHER[decision] if isinstance(decision, str) else decision
                for row, decision in self.rows.items()
            },
        )


_OTHER = {OURS: THEIRS, THEIRS: OURS}
UNDECIDED = Decisions()


def decisions(
    strategy: str | Mapping[str, str] | None = None,
    resolutions: Sequence[Mapping[str, Any]] | None = None,
) -> Decisions:
    """Decisions from arguments: a side for all or by type, and a document of `{type, id, field?, take | value}`."""
    if strategy is None or isinstance(strategy, str):
        everywhere, types = strategy, {}
    else:
        types = {name: _side(side) for name, side in strategy.items()}
        everywhere = types.pop("*", None)
    rows = dict(_resolution(entry) for entry in resolutions or ())
    return Decisions(None if everywhere is None else _side(everywhere), types, rows)


def _side(name: Any) -> str:
    if name not in (OURS, THEIRS):
        raise OptionInvalid(f"a conflict is settled by 'ours' or 'theirs', not by {name!r}")
    return str(name)


def _resolution(entry: Mapping[str, Any]) -> tuple[tuple[str, str, str | None], Decision]:
    unknown = set(entry) - {"type", "id", "field", "take", "value"}
    named = isinstance(entry.get("type"), str) and isinstance(entry.get("id"), str)
    if unknown or not named or not isinstance(entry.get("field"), str | None):
        raise OptionInvalid(
            f"a resolution is {{type, id, field?, take | value}}, got {dict(entry)!r}"
        )
    key = entry["type"], entry["id"], entry.get("field")
    if ("take" in entry) == ("value" in entry):
        raise OptionInvalid(f"a resolution has either `take` or `value`, got {dict(entry)!r}")
    if "take" in entry:
        return key, _side(entry["take"])
    if key[2] is None:
        raise OptionInvalid(f"a resolution with a value names its field, got {dict(entry)!r}")
    return key, ChosenValue(entry["value"])


def value_of(decided: ChosenValue, kind: NodeOrEdgeType, name: str) -> Any:
    """A value as the property stores it."""
    prop = kind.properties.get(name)
    if prop is None:
        raise OptionInvalid(f"a resolution cannot give {kind.name}.{name} a value: take a side")
    if decided.value is None:
        return None
    try:
        return pa.scalar(read_value(decided.value, prop.type), arrow_type(prop.type)).as_py()
    except Misfit as misfit:
        found = misfit.at(f"{kind.name}.{name}", prop.type, name)
        details = {"violations": [found.violation(kind.name).to_json()]}
        raise OptionInvalid(found.message, details=details) from None
