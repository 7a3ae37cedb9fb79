"""Durations, and times with and without a zone: their type, and what is computed with them.

Dates and what DateTime properties hold are values of properties; the others exist in queries alone. Engines hold them
as bytes that are ordered as the values are (`values.temporal.kinds`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph.model.frozen import frozen
from omnigraph.values.temporal.names import TemporalKind, TemporalOp

if TYPE_CHECKING:
    from omnigraph.lang.ir.expr import Expr, ValueType


@frozen
class TemporalValue:
    """A temporal value that no property holds."""

    kind: TemporalKind
    nullable: bool = True

    def __str__(self) -> str:
        return f"{self.kind}" + "?" * self.nullable


@frozen
class TemporalCall:
    """An operation on temporal values, see `TemporalOp`.

    Null as soon as an argument is, except for `MAKE_OF_KNOWN`.
    """

    op: TemporalOp
    names: tuple[str, ...]
    args: tuple[Expr, ...]
    type: ValueType
