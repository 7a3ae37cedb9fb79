"""Mutation statements, and whole queries."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import field
from enum import Enum
from typing import Any

from omnigraph.lang.ir.expr import Expr, ValueType
from omnigraph.lang.ir.ops import Op
from omnigraph.model.frozen import frozen
from omnigraph.model.instants import EPOCH

# --- mutations ---------------------------------------------------------------------------------------------------


class TargetKind(Enum):
    NODE = "node"
    EDGE = "edge"


@frozen
class Target:
    kind: TargetKind
    type_name: str


@frozen
class Assign:
    """The new value of one property; its type fits the property's, or is null where the property may be."""

    property: str
    value: Expr


@frozen
class InsertRow:
    """One row; its values are made of literals, parameters and `now()`. `src` and `dst` (ids) are those of an edge."""

    values: tuple[Assign, ...]
    src: Expr | None = None
    dst: Expr | None = None


@frozen
class Insert:
    """A row whose type has a key changes the entity with that key, if it exists, in the fields named here."""

    target: Target
    rows: tuple[InsertRow, ...]


@frozen
class Update:
    """Every row for which the predicate is true gets the values, which all see the row as it was before."""

    target: Target
    values: tuple[Assign, ...]
    predicate: Expr


@frozen
class Delete:
    """Every row for which the predicate is true goes, and with a node all its edges."""

    target: Target
    predicate: Expr


@frozen
class Make:
    """A new entity for each row: its properties, and the ends of an edge, are what later steps know as slots.

    With `only` it is made for the rows where that column is true, and with `once` for rows equal in these columns once.
    `first` is the name of a new column: true for the rows something was made for, each of it once.
    """

    target: Target
    slot: str
    values: tuple[tuple[str, str], ...]  # property, and the column of its value
    src: str | None = None
    dst: str | None = None
    only: str | None = None
    once: tuple[str, ...] | None = None
    first: str | None = None


@frozen
class Put:
    """New values for properties of the entity in a slot, which has one of the types; the last row of several counts.

    With `only` for the rows where that column is true, with `unless` for those where it is not.
    """

    slot: str
    targets: tuple[Target, ...]
    values: tuple[tuple[str, str], ...]
    only: str | None = None
    unless: str | None = None


@frozen
class Drop:
    """The entity in a slot is deleted; a node with edges only if `detach`, together with them.

    The columns of the slot may be lists: then all their members are deleted.
    """

    slot: str
    targets: tuple[Target, ...]
    detach: bool


Step = Make | Put | Drop


@frozen
class Stage:
    """What a read finds, and what is done for each of its rows, step by step.

    `slots` are the entities it finds: a name, and the columns of their ids and types.
    """

    read: Read
    slots: tuple[tuple[str, str, str], ...]
    steps: tuple[Step, ...]


@frozen
class PatternChange:
    """Stages, each of which sees what those before it wrote and starts from their rows (`Resumed`), and the answer.

    Without `returns` the answer contains only counts.
    """

    params: tuple[ParamDecl, ...]
    stages: tuple[Stage, ...]
    returns: Read | None = None

    @property
    def reads(self) -> tuple[Read, ...]:
        """Everything that is read, in order."""
        last = () if self.returns is None else (self.returns,)
        return (*(stage.read for stage in self.stages), *last)

    @property
    def steps(self) -> tuple[Step, ...]:
        """Everything that is done, in order."""
        return tuple(step for stage in self.stages for step in stage.steps)


Statement = Insert | Update | Delete | PatternChange


# --- queries -----------------------------------------------------------------------------------------------------


@frozen
class ParamDecl:
    name: str
    type: ValueType


@frozen
class ProcedureRows:
    """A parameter not given by the caller: the rows of a metadata procedure.

    They are computed before the query runs; the arguments are literals and parameters.
    """

    param: str
    procedure: str
    args: tuple[Expr, ...]


@frozen
class OutputColumn:
    name: str
    type: ValueType


@frozen
class Read:
    plan: Op
    columns: tuple[OutputColumn, ...]


@frozen
class Mutation:
    statements: tuple[Statement, ...]


@frozen
class Query:
    name: str
    params: tuple[ParamDecl, ...]
    body: Read | Mutation
    description: str | None = None
    instruction: str | None = None
    procedure_rows: tuple[ProcedureRows, ...] = ()

    @property
    def is_read(self) -> bool:
        return isinstance(self.body, Read)


# --- one run -----------------------------------------------------------------------------------------------------


@frozen
class Bound:
    """The values of a query's parameters, by name, and the instant `now()` stands for."""

    values: Mapping[str, Any] = field(default_factory=dict)
    now: dt.datetime = EPOCH
