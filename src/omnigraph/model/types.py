"""The types a property can have, and their names. Arrow columns are derived in `columns.py`."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum

from omnigraph.model.frozen import frozen


class Scalar(StrEnum):
    """The base types of the schema language."""

    STRING = "String"
    BLOB = "Blob"
    BOOL = "Bool"
    I32 = "I32"
    I64 = "I64"
    U32 = "U32"
    U64 = "U64"
    F32 = "F32"
    F64 = "F64"
    DATE = "Date"
    DATETIME = "DateTime"


INTEGERS = frozenset({Scalar.I32, Scalar.I64, Scalar.U32, Scalar.U64})
FLOATS = frozenset({Scalar.F32, Scalar.F64})
NUMERIC = INTEGERS | FLOATS
INTEGER_RANGES = {
    Scalar.I32: (-(2**31), 2**31 - 1),
    Scalar.I64: (-(2**63), 2**63 - 1),
    Scalar.U32: (0, 2**32 - 1),
    Scalar.U64: (0, 2**64 - 1),
}
VECTOR_DIM_MAX = 2**31 - 1


@frozen
class PropType:
    """A property type: a scalar, a list of one, an enum (of strings) or a vector (of F32).

    >>> str(PropType(Scalar.STRING, nullable=True))
    'String?'
    >>> str(PropType(Scalar.F32, vector_dim=3))
    'Vector(3)'
    """

    scalar: Scalar
    nullable: bool = False
    is_list: bool = False
    vector_dim: int | None = None
    enum: tuple[str, ...] | None = None  # sorted, without duplicates

    @property
    def is_vector(self) -> bool:
        return self.vector_dim is not None

    @property
    def is_blob(self) -> bool:
        return self.scalar is Scalar.BLOB

    @property
    def is_plain(self) -> bool:
        """A single value that can be compared: neither list, vector nor blob."""
        return not (self.is_list or self.is_vector or self.is_blob)

    @property
    def is_numeric(self) -> bool:
        return self.is_plain and self.scalar in NUMERIC

    def with_nullable(self, nullable: bool) -> PropType:
        return replace(self, nullable=nullable)

    def element(self) -> PropType:
        """The type of one member of a list."""
        return PropType(self.scalar, nullable=True, enum=self.enum)

    def __str__(self) -> str:
        if self.vector_dim is not None:
            text = f"Vector({self.vector_dim})"
        elif self.enum is not None:
            text = f"enum({', '.join(self.enum)})"
        else:
            text = f"[{self.scalar}]" if self.is_list else str(self.scalar)
        return text + ("?" if self.nullable else "")
