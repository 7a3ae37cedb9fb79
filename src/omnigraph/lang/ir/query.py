"""Mutation statements, and whole queries."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from omnigraph.lang.ir.expr import Expr, ValueType
from omnigraph.lang.ir.ops import Op
from omnigraph.model.value import value

# --- mutations ---------------------------------------------------------------------------------------------------


class TargetKind(Enum):
    NODE = "node"
    EDGE = "edge"


@value
class Target:
    kind: TargetKind
    type_name: str


@value
class Assign:
    """The new value of one property; its type fits the property's, or is null where the property may be."""

    property: str
    value: Expr


@value
class InsertRow:
    """One row; its values are made of literals, parameters and `now()`. `src` and `dst` (ids) are those of an edge."""

    values: tuple[Assign, ...]
    src: Expr | None = None
    dst: Expr | None = None


@value
class Insert:
    """A row whose type has a key changes the entity with that key, if there is one, in the fields named here."""

    target: Target
    rows: tuple[InsertRow, ...]


@value
class Update:
    """Every row for which the predicate is true gets the values, which all see the row as it was before."""

    target: Target
    values: tuple[Assign, ...]
    predicate: Expr


@value
class Delete:
    """Every row for which the predicate is true goes, and with a node all its edges."""

    target: Target
    predicate: Expr


Statement = Insert | Update | Delete


# --- queries -----------------------------------------------------------------------------------------------------


@value
class ParamDecl:
    name: str
    type: ValueType


@value
class OutputColumn:
    name: str
    type: ValueType


@value
class Read:
    plan: Op
    columns: tuple[OutputColumn, ...]


@value
class Mutation:
    statements: tuple[Statement, ...]


@value
class Query:
    name: str
    params: tuple[ParamDecl, ...]
    body: Read | Mutation
    description: str | None = None
    instruction: str | None = None

    @property
    def is_read(self) -> bool:
        return isinstance(self.body, Read)


# --- one run -----------------------------------------------------------------------------------------------------

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


@dataclass(frozen=True, slots=True)
class Bound:
    """The values of a query's parameters, by name, and the instant `now()` stands for."""

    values: Mapping[str, Any] = field(default_factory=dict)
    now: dt.datetime = EPOCH
