"""Keys: every row that has one carries exactly the id its key gives, and nobody's key changes."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import Violation
from omnigraph.model.catalog import EntityType
from omnigraph.model.changes import Origin
from omnigraph.model.keys import key_ids
from omnigraph.validate.findings import (
    VIOLATIONS_MAX,
    Case,
    Finding,
    column,
    offenders,
    plain,
    shown,
)


def check_keys(case: Case) -> Iterator[Finding]:
    """The id of every changed row is the one its key gives."""
    for change in case.changes:
        key, rows = change.kind.key, change.updates
        if key is None or rows is None or not rows.num_rows:
            continue
        derived = key_ids([rows[name] for name in key])
        moved = pc.fill_null(pc.not_equal(derived, column(rows, "id")), True)
        for row, file, line in offenders(rows, moved, key, change.update_origin, case.limit):
            yield Violation(
                rule="key",
                type_name=change.kind.name,
                id=row["id"],
                property=key[0] if len(key) == 1 else None,
                value=_key_value(row, key),
                message=f"the key {key_name(key)} of {change.kind.name} {shown(row['id'])} cannot change: "
                "delete the entity and insert it anew",
                file=file,
                line=line,
            )


def missing_keys(
    rows: pa.Table, ids: pa.Array, kind: EntityType, origin: Origin, limit: int = VIOLATIONS_MAX
) -> Iterator[Violation]:
    """Rows whose key gives no id: a member is null, or a number that is not finite."""
    key = kind.key or ()
    for row, file, line in offenders(rows, ids.is_null(), key, origin, limit):
        empty = [name for name in key if row.get(name) is None]
        why = f"{', '.join(empty)} has no value" if empty else "a member is not a finite number"
        yield Violation(
            rule="key",
            type_name=kind.name,
            id=None,
            property=empty[0] if empty else key[0],
            value=_key_value(row, key),
            message=f"{kind.name} cannot be identified by its key {key_name(key)}: {why}",
            file=file,
            line=line,
        )


def mismatched_ids(
    rows: pa.Table, ids: pa.Array, kind: EntityType, origin: Origin, limit: int = VIOLATIONS_MAX
) -> Iterator[Violation]:
    """Rows that were given an id other than the one their key gives."""
    given = column(rows, "id")
    numbered = pa.table({"id": given, "derived": ids})
    differ = pc.not_equal(given, ids)
    for row, file, line in offenders(numbered, differ, ("derived",), origin, limit):
        yield Violation(
            rule="key",
            type_name=kind.name,
            id=row["id"],
            value=row["derived"],
            message=f"{kind.name} was given the id {shown(row['id'])}, "
            f"but its key {key_name(kind.key or ())} makes it {shown(row['derived'])}",
            file=file,
            line=line,
        )


def repeated_ids(
    ids: pa.Array,
    repeated: pa.BooleanArray,
    kind: EntityType,
    origin: Origin,
    limit: int = VIOLATIONS_MAX,
) -> Iterator[Violation]:
    """Rows whose id an earlier row of the same input has."""
    what = f"the key {key_name(kind.key)}" if kind.key else "the id"
    for row, file, line in offenders(pa.table({"id": ids}), repeated, (), origin, limit):
        yield Violation(
            rule="duplicate",
            type_name=kind.name,
            id=row["id"],
            property=kind.key[0] if kind.key and len(kind.key) == 1 else None,
            value=row["id"],
            message=f"{kind.name} {shown(row['id'])} is given twice: {what} must be unique within one input",
            file=file,
            line=line,
        )


def existing_ids(
    ids: pa.Array,
    existing: pa.BooleanArray,
    kind: EntityType,
    origin: Origin,
    limit: int = VIOLATIONS_MAX,
) -> Iterator[Violation]:
    """Rows that were to be new and whose id exists."""
    for row, file, line in offenders(pa.table({"id": ids}), existing, (), origin, limit):
        yield Violation(
            rule="key_conflict",
            type_name=kind.name,
            id=row["id"],
            value=row["id"],
            message=f"{kind.name} {shown(row['id'])} exists already",
            file=file,
            line=line,
        )


def key_name(key: tuple[str, ...]) -> str:
    """`code`, or `(code, region)`."""
    return key[0] if len(key) == 1 else f"({', '.join(key)})"


def _key_value(row: dict[str, object], key: tuple[str, ...]) -> object:
    return plain(row.get(key[0]) if len(key) == 1 else [row.get(name) for name in key])
