"""The verb of merges: the changes of a branch since its last merge, applied to another branch in one commit.

The target is the transaction's state; the source is resolved after it, inside the verb, so that a merge that runs again
sees both anew. Conflicts are an outcome, not an error: nothing is published, and the report lists what to decide.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from omnigraph.core.footprints import changes as summaries
from omnigraph.core.footprints import touches
from omnigraph.core.plan import (
    Adopt,
    NewSchema,
    PublishPlan,
    Register,
    TableAction,
    Verb,
    read_whole,
)
from omnigraph.core.records import Commit, StoredSchema
from omnigraph.core.repository import Repository, SchemaInForce
from omnigraph.core.snapshot import Snapshot
from omnigraph.core.txn import WriteTxn
from omnigraph.errors import OptionInvalid
from omnigraph.lang.checks import merge_checks
from omnigraph.lang.schema import SchemaIR, catalog_of, encode_ir, merge_schemas, schema_to_text
from omnigraph.lang.schema.migrate import compare
from omnigraph.lang.schema.steps import (
    AddConstraint,
    ChangeCardinality,
    DropProperty,
    DropType,
    UnsupportedChange,
)
from omnigraph.merge.adopt import adopted, fast_forward, reshaped
from omnigraph.merge.changed import Between
from omnigraph.merge.conflicts import SCHEMA, UNDECIDED, Conflict, Decisions, of_checks, of_schemas
from omnigraph.merge.lineage import brought_along, merge_base
from omnigraph.merge.lost_cells import States, lost_cells
from omnigraph.merge.resolution import settle
from omnigraph.merge.schema_view import kinds_of
from omnigraph.merge.three_way import Part, Sides
from omnigraph.model.catalog import Catalog
from omnigraph.model.changes import Changes, TypeChanges
from omnigraph.model.columns import arrow_schema
from omnigraph.model.frozen import frozen
from omnigraph.model.names import branch_name
from omnigraph.values.spelling import fields_json
from omnigraph.write.embed import embedded_again
from omnigraph.write.resolve import actions_of

UP_TO_DATE = "already_up_to_date"
FAST_FORWARD = "fast_forward"
MERGED = "merged"
CONFLICT = "conflict"


@frozen
class MergeOutcome:
    """The actual or planned outcome of a merge: its changes to the target, by type name, or the conflicts."""

    outcome: str
    conflicts: tuple[Conflict, ...] = ()
    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return fields_json(self)


@frozen
class Lineage:
    """The origin of the changes, as the commit will record it."""

    kind: str
    merged: Mapping[str, str] = field(default_factory=dict)
    parents: tuple[str, ...] = ()


def merge(
    repo: Repository,
    source: str,
    into: str,
    decided: Decisions = UNDECIDED,
    *,
    pinned: Commit | None = None,
) -> Verb:
    """The verb that merges the head of a branch, or exactly the commit `pinned`, even if the branch moves.

    It must be published alone: it takes over whole tables.
    """
    if branch_name(source) == branch_name(into):
        raise OptionInvalid(f"branch {into!r} cannot be merged into itself")

    def verb(txn: WriteTxn) -> PublishPlan:
        theirs = repo.head(source).commit if pinned is None else pinned
        return _plan(repo, txn, theirs, decided)

    return verb


def _plan(repo: Repository, txn: WriteTxn, theirs: Commit, decided: Decisions) -> PublishPlan:
    ours = txn.snapshot.commit
    base = merge_base(repo, ours, theirs)
    if theirs.content == base.content or _is_same(ours, theirs):
        return _answer(MergeOutcome(UP_TO_DATE))
    lineage = Lineage(
        "merge",
        brought_along(repo, ours, theirs),
        (theirs.content,),
    )
    if ours.content == base.content:
        return _fast_forward(repo, txn, base, theirs, lineage)
    return three_way(repo, txn, repo.snapshot(base), repo.snapshot(theirs), decided, lineage)


def _is_same(ours: Commit, theirs: Commit) -> bool:
    """Whether two commits show the same state, table by table."""
    same = ours.schema == theirs.schema and ours.checks == theirs.checks
    return same and ours.tables == theirs.tables


def _answer(outcome: MergeOutcome) -> PublishPlan:
    return PublishPlan(kind="merge", value=outcome, result=outcome.to_json(), empty=True)


def _fast_forward(
    repo: Repository, txn: WriteTxn, base: Commit, theirs: Commit, lineage: Lineage
) -> PublishPlan:
    between = Between(repo, repo.snapshot(base), repo.snapshot(theirs))
    actions = tuple(fast_forward(between, txn.snapshot.commit))
    schema = _schema_in_force(repo, theirs.schema, txn.snapshot.commit.schema)
    # Theirs is valid as a whole, so nothing was checked: any change of ours meanwhile makes it a two-sided merge.
    reads = read_whole(txn.snapshot.commit.tables)
    checks = None if theirs.checks == base.checks else repo.checks(theirs.checks)
    return published(
        repo,
        FAST_FORWARD,
        actions,
        between.other.catalog,
        schema,
        lineage,
        reads=reads,
        checks=checks,
    )


def _schema_in_force(repo: Repository, wanted: str, now: str) -> NewSchema | None:
    found = repo.schema(wanted)
    return None if wanted == now else NewSchema(found.stored, found.catalog)


def published(
    repo: Repository,
    outcome: str,
    actions: tuple[TableAction, ...],
    catalog: Catalog,
    schema: NewSchema | None,
    lineage: Lineage,
    **more: Any,
) -> PublishPlan:
    """The plan with its outcome."""
    plan = PublishPlan(
        kind=lineage.kind,
        actions=actions,
        schema=schema,
        merged=lineage.merged,
        parents=lineage.parents,
        **more,
    )
    done = MergeOutcome(outcome, counts=_counts(repo, plan, catalog))
    return replace(plan, value=done, result=done.to_json())


def _counts(repo: Repository, plan: PublishPlan, catalog: Catalog) -> dict[str, dict[str, int]]:
    names = {table: kind.name for table, kind in kinds_of(catalog).items()}
    found = summaries(plan, touches(plan, catalog), repo.limits)
    return {
        names[table]: {"inserted": c.inserted, "updated": c.updated, "deleted": c.deleted}
        for table, c in sorted(found.items())
        if table in names and (c.inserted or c.updated or c.deleted or c.all)
    }


# --- three ways --------------------------------------------------------------------------------------------------


def three_way(
    repo: Repository,
    txn: WriteTxn,
    base: Snapshot,
    theirs: Snapshot,
    decided: Decisions,
    lineage: Lineage,
    part: Part | None = None,
) -> PublishPlan:
    """The plan that applies theirs' changes since the base to the transaction's state; empty if the sides conflict.

    `part` limits it to some rows, by table.
    """
    ours = txn.snapshot
    schemas = [repo.schema(s.commit.schema) for s in (base, ours, theirs)]
    merged = merge_schemas(*(schema.ir for schema in schemas))
    if merged.ir is None:
        return _answer(MergeOutcome(CONFLICT, of_schemas(merged.conflicts)))
    catalog = catalog_of(merged.ir)
    schema = _merged_schema(merged.ir, catalog, schemas)
    sides = Sides.of(repo, (base, ours, theirs), catalog, part)
    settled = settle(sides, txn, decided, ours.catalog)
    states = States(repo, base, ours, theirs, part)
    lost = lost_cells(states, catalog, decided)
    checks, unchecked = _merged_checks(repo, base, ours, theirs, decided)
    conflicts = (*_dropped(repo, base, ours, theirs, catalog), *lost, *settled.conflicts)
    conflicts += unchecked
    if conflicts:
        return _answer(MergeOutcome(CONFLICT, conflicts))
    changes = embedded_again(settled.changes, sides, states, decided)
    settled = replace(settled, changes=changes)
    whole = {
        table: replace(adopt, instead=_as_actions(adopt, settled.changes.tables[table], ours))
        for table, adopt in adopted(settled, sides, ours, theirs).items()
    }
    rest = Changes({t: c for t, c in settled.changes.tables.items() if t not in whole})
    shape = tuple(a for a in reshaped(sides, ours) if a.table_id not in whole)
    new = _registered(sides, rest)
    actions = (*whole.values(), *new, *shape, *actions_of(rest))
    reads = {**settled.reads, **read_whole(_judged_whole(schemas[1].ir, merged.ir, ours))}
    return published(repo, MERGED, actions, catalog, schema, lineage, reads=reads, checks=checks)


def _merged_checks(
    repo: Repository, base: Snapshot, ours: Snapshot, theirs: Snapshot, decided: Decisions
) -> tuple[str | None, tuple[Conflict, ...]]:
    """The merged checks, if not those of ours; or the ones both sides changed."""
    was, mine, yours = (repo.checks(side.commit.checks) for side in (base, ours, theirs))
    merged = merge_checks(was, mine, yours, decided.everywhere)
    if merged.conflicts:
        return None, of_checks(merged.conflicts)
    return (None if merged.text == mine else merged.text), ()


def _as_actions(adopt: Adopt, change: TypeChanges, ours: Snapshot) -> tuple[TableAction, ...]:
    """The rows of an adopted table, for a head on which others have written to it; empty for a type that is new here
    or renamed."""
    entry = ours.commit.tables.get(adopt.table_id)
    same = entry is not None and entry.type_name == adopt.entry.type_name
    return actions_of(Changes({adopt.table_id: change})) if same else ()


def _judged_whole(before: SchemaIR, after: SchemaIR, ours: Snapshot) -> Iterator[str]:
    """The tables of ours in which all other rows would have to be judged, too: the merged schema has rules for them
    that ours does not have, or no place for all their values."""
    for step in compare(before, after, allow_data_loss=True):
        match step:
            case AddConstraint(constraint=constraint) if constraint.kind == "index":
                continue
            case UnsupportedChange():  # a former state returns, which no migration could produce
                yield from ours.commit.tables
            case AddConstraint() | ChangeCardinality() | DropProperty() | DropType():
                if step.table_id in ours.commit.tables:
                    yield step.table_id


def _registered(sides: Sides, changes: Changes) -> tuple[TableAction, ...]:
    """Tables of new types that are not adopted unchanged, because of decisions about their rows."""
    there = sides.ours.commit.tables
    return tuple(
        Register(kind.table_id, kind.kind, kind.name, arrow_schema(kind))
        for kind in sides.catalog.entities()
        if kind.table_id not in there and kind.table_id in changes.tables
    )


def _merged_schema(ir: Any, catalog: Catalog, schemas: Sequence[SchemaInForce]) -> NewSchema | None:
    """The schema that comes into force; None if it is ours. A side's own text is kept if equivalent."""
    _, ours, theirs = schemas
    if ir == ours.ir:
        return None
    if ir == theirs.ir:
        return NewSchema(theirs.stored, theirs.catalog)
    return NewSchema(StoredSchema(schema_to_text(ir), encode_ir(ir).decode()), catalog)


def _dropped(
    repo: Repository, base: Snapshot, ours: Snapshot, theirs: Snapshot, catalog: Catalog
) -> tuple[Conflict, ...]:
    """Types one side dropped while the other wrote to them."""
    found = []
    kept = kinds_of(catalog)
    for table, kind in kinds_of(base.catalog).items():
        if table in kept:
            continue
        for side, name in ((ours, "ours"), (theirs, "theirs")):
            if table in side.commit.tables and Between(repo, base, side).is_touched(table):
                message = f"{kind.name} was dropped on one side and written to on the other"
                values = {"ours": "dropped", "theirs": "dropped", name: "written to"}
                found.append(Conflict(SCHEMA, kind.name, base="defined", message=message, **values))
    return tuple(found)
