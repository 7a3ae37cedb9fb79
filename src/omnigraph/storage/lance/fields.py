"""Editing a table's columns without touching what need not change.

Lance knows a column by its field id; data files and indices refer to ids. Renaming, dropping and adding null columns
therefore only change the list of fields. pylance offers no way to say so with ids kept, except through the field
messages a schema is pickled as, which are edited here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from lance.schema import LanceSchema

NAME, ID, PARENT = 2, 3, 4  # numbers of the members of a field message
NO_PARENT = 2**64 - 1  # -1 as Lance encodes it
VARINT, BYTES = 0, 2  # wire types


@dataclass(frozen=True, slots=True)
class Member:
    number: int
    wire: int
    value: int | bytes


@dataclass(frozen=True, slots=True)
class Field:
    """One field message: a column, or a part of one."""

    members: tuple[Member, ...]

    def number(self, wanted: int) -> int:
        found = [m.value for m in self.members if m.number == wanted and isinstance(m.value, int)]
        return found[0] if found else 0  # absent means zero

    @property
    def name(self) -> str:
        return next(
            m.value.decode()
            for m in self.members
            if m.number == NAME and isinstance(m.value, bytes)
        )

    @property
    def id(self) -> int:
        return self.number(ID)

    @property
    def parent(self) -> int | None:
        parent = self.number(PARENT)
        return None if parent == NO_PARENT else parent

    def renamed(self, name: str) -> Field:
        return Field(
            tuple(replace(m, value=name.encode()) if m.number == NAME else m for m in self.members)
        )

    def moved(self, by: int) -> Field:
        """The same field with ids counted from `by`."""
        parent = NO_PARENT if self.parent is None else self.parent + by
        others = [m for m in self.members if m.number not in (ID, PARENT)]
        numbers = [Member(ID, VARINT, self.id + by), Member(PARENT, VARINT, parent)]
        return Field(tuple(sorted([*others, *numbers], key=lambda m: m.number)))


@dataclass(frozen=True, slots=True)
class Column:
    """A top-level field with its parts."""

    fields: tuple[Field, ...]

    @property
    def name(self) -> str:
        return self.fields[0].name

    def renamed(self, name: str) -> Column:
        return Column((self.fields[0].renamed(name), *self.fields[1:]))

    def moved(self, by: int) -> Column:
        return Column(tuple(field.moved(by) for field in self.fields))


def columns_of_schema(schema: LanceSchema) -> tuple[Column, ...]:
    """A schema's columns in order."""
    _, (_, *messages) = schema.__reduce__()
    groups: list[list[Field]] = []
    for message in messages:
        field = decode(message)
        if field.parent is None:
            groups.append([field])
        else:
            groups[-1].append(field)
    return tuple(Column(tuple(group)) for group in groups)


def schema_of_columns(columns: Sequence[Column], like: LanceSchema) -> LanceSchema:
    """A schema of these columns with the metadata of another."""
    _, (metadata, *_) = like.__reduce__()
    messages = [encode(field) for column in columns for field in column.fields]
    return LanceSchema._from_protos(metadata, *messages)


def new_column(field: pa.Field, first_id: int) -> Column:
    """A column whose ids begin at `first_id`, which no data file of the table may mention."""
    (column,) = columns_of_schema(LanceSchema.from_pyarrow(pa.schema([field])))
    return column.moved(first_id)


# --- the wire format -------------------------------------------------------------------------------------------------


def decode(message: bytes) -> Field:
    members: list[Member] = []
    position = 0
    while position < len(message):
        key, position = _read_varint(message, position)
        number, wire = key >> 3, key & 7
        value, position = _read_varint(message, position)
        if wire == VARINT:
            members.append(Member(number, wire, value))
        elif wire == BYTES:
            members.append(Member(number, wire, message[position : position + value]))
            position += value
        else:
            raise ValueError(f"field message with wire type {wire}")
    return Field(tuple(members))


def encode(field: Field) -> bytes:
    out = bytearray()
    for member in field.members:
        out += _varint(member.number << 3 | member.wire)
        if isinstance(member.value, bytes):
            out += _varint(len(member.value)) + member.value
        else:
            out += _varint(member.value)
    return bytes(out)


def _read_varint(message: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[position]
        value |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:
            return value, position


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
