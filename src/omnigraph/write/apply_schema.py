"""Change the schema of a branch: from a migration's steps to one commit, checked against existing rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from omnigraph.core.plan import (
    Alter,
    DropTable,
    NewSchema,
    PublishPlan,
    Register,
    TableAction,
    Verb,
    read_whole,
)
from omnigraph.core.records import StoredSchema
from omnigraph.core.txn import WriteTxn
from omnigraph.errors import WriteConflict
from omnigraph.lang.schema import (
    MigrationPlan,
    SchemaIR,
    catalog_of,
    compile_schema,
    encode_ir,
    plan_migration,
)
from omnigraph.lang.schema.steps import (
    AddProperty,
    AddType,
    DropProperty,
    DropType,
    RenameProperty,
    RenameType,
    Step,
    WidenProperty,
)
from omnigraph.merge.schema_view import kinds_of
from omnigraph.model.catalog import NodeOrEdgeType
from omnigraph.model.columns import arrow_schema
from omnigraph.model.frozen import frozen
from omnigraph.storage.tables import ColumnEdit
from omnigraph.validate import Report
from omnigraph.values.columns import default_of
from omnigraph.write.stored_rules import JudgedTables, broken_rules

SchemaOf = Callable[[str], SchemaIR]  # a schema's hash, as commits name it, to the schema


@frozen
class SchemaOutcome:
    """What applying a schema did. `collect` names the tables whose old versions must be removed (hard drops)."""

    plan: MigrationPlan
    applied: bool
    collect: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The steps, and whether they were applied."""
        return self.plan.to_json() | {"applied": self.applied}


def apply_schema(text: str, schema_of: SchemaOf, *, allow_data_loss: bool = False) -> Verb:
    """A write that applies the schema of a text. It must be published alone, not folded with others.

    Rows written by others meanwhile are judged by the new rules, and only those. A concurrent schema change is a
    conflict: the text was written for the previous schema.
    """
    judged = JudgedTables()
    first: list[str] = []

    def verb(txn: WriteTxn) -> PublishPlan:
        now = txn.snapshot.commit
        first.append(now.schema)
        if now.schema != first[0]:
            raise WriteConflict(
                f"the schema was changed meanwhile, by commit {now.content} or earlier"
            )
        accepted = schema_of(now.schema)
        migration = plan_migration(accepted, text, allow_data_loss=allow_data_loss)
        if not migration.steps:
            return PublishPlan(kind="schema", empty=True, value=SchemaOutcome(migration, False))
        migration.raise_unsupported()
        desired = compile_schema(text, accepted=accepted)
        return _published(migration, desired, text, txn, judged)

    return verb


def _published(
    migration: MigrationPlan, desired: SchemaIR, text: str, txn: WriteTxn, judged: JudgedTables
) -> PublishPlan:
    catalog = catalog_of(desired)
    before, after = kinds_of(txn.catalog), kinds_of(catalog)
    edits = table_edits(migration.steps, before, after)
    violations, looked = broken_rules(migration.steps, before, after, txn, judged)
    Report(tuple(violations), {}).raise_violations()
    judged.add(txn, looked)
    stored = StoredSchema(source=text, ir=encode_ir(desired).decode())
    outcome = SchemaOutcome(migration, True, _hard_drops(migration.steps))
    return PublishPlan(
        kind="schema",
        actions=tuple(_actions(migration.steps, edits, after)),
        reads=read_whole(looked),
        schema=NewSchema(stored, catalog),
        strict=any(isinstance(step, DropType | DropProperty) for step in migration.steps),
        schema_strict=True,
        result=outcome.to_json(),
        value=outcome,
    )


def _hard_drops(steps: tuple[Step, ...]) -> tuple[str, ...]:
    dropped = [s for s in steps if isinstance(s, DropType | DropProperty) and s.mode == "hard"]
    return tuple(sorted({s.table_id for s in dropped if s.table_id is not None}))


# --- steps to actions --------------------------------------------------------------------------------------------


@dataclass(slots=True)
class ColumnChanges:
    """The column changes of one table, gathered from the steps; names are the current ones of the table."""

    add: list[tuple[pa.Field, Any]] = field(default_factory=list)
    rename: list[tuple[str, str]] = field(default_factory=list)
    drop: list[str] = field(default_factory=list)
    cast: list[pa.Field] = field(default_factory=list)

    def edit(self) -> ColumnEdit | None:
        found = ColumnEdit(tuple(self.add), tuple(self.rename), tuple(self.drop), tuple(self.cast))
        return None if found == ColumnEdit() else found


def table_edits(
    steps: tuple[Step, ...],
    before: Mapping[str, NodeOrEdgeType],
    after: Mapping[str, NodeOrEdgeType],
) -> dict[str, ColumnChanges]:
    """The column changes of the steps, for tables that stay."""
    edits: dict[str, ColumnChanges] = {}
    for step in steps:
        match step:
            case AddProperty(table_id=str() as table, property_name=name):
                prop = after[table].properties[name]
                value = default_of(prop).as_py()
                column = arrow_schema(after[table]).field(name)
                edits.setdefault(table, ColumnChanges()).add.append((column, value))
            case RenameProperty(table_id=str() as table, from_name=old, to_name=new):
                edits.setdefault(table, ColumnChanges()).rename.append((old, new))
            case DropProperty(table_id=str() as table, property_name=name):
                edits.setdefault(table, ColumnChanges()).drop.append(name)
            case WidenProperty(table_id=str() as table, property_name=name, property_id=identity):
                column = arrow_schema(after[table]).field(name)
                now = name_of(before[table], identity)
                edits.setdefault(table, ColumnChanges()).cast.append(column.with_name(now))
    return edits


def name_of(kind: NodeOrEdgeType, identity: int) -> str:
    """The name a property has in a schema, whatever it is called in another."""
    return next(p.name for p in kind.properties.values() if p.property_id == identity)


def _actions(
    steps: tuple[Step, ...], edits: Mapping[str, ColumnChanges], after: Mapping[str, NodeOrEdgeType]
) -> Iterator[TableAction]:
    renamed = [s.table_id for s in steps if isinstance(s, RenameType) and s.table_id is not None]
    for step in steps:
        match step:
            case AddType(table_id=str() as table):
                kind = after[table]
                yield Register(table, kind.kind, kind.name, arrow_schema(kind))
            case DropType(table_id=str() as table):
                yield DropTable(table)
    for table in dict.fromkeys([*renamed, *edits]):
        edit = edits.get(table)
        yield Alter(table, after[table].name, None if edit is None else edit.edit())
