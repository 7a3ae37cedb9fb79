"""Staged rows as a valid write: the actions on each table, whether all rules hold then, and the outcome."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph.core.plan import (
    Append,
    Overwrite,
    PublishPlan,
    Remove,
    TableAction,
    Upsert,
    read_whole,
)
from omnigraph.core.publisher import carries_over
from omnigraph.core.repository import Repository
from omnigraph.core.snapshot import Snapshot
from omnigraph.core.stage import addresses_again, found_again
from omnigraph.core.txn import WriteTxn
from omnigraph.errors import Violation
from omnigraph.model.catalog import EdgeType
from omnigraph.model.frozen import frozen
from omnigraph.model.tokens import TOKENS_MAX
from omnigraph.pipeline.facts import LoadFacts
from omnigraph.pipeline.lookups import are_few, nothing_is_wrong
from omnigraph.pipeline.row_addresses import NO_ROWS, unpack, without
from omnigraph.pipeline.rows import kind_by_table
from omnigraph.pipeline.screen import keys_hold
from omnigraph.pipeline.stage import (
    MANY,
    InputPlace,
    Staging,
    answers,
    first_keys,
    in_order,
    locate_task,
    placed,
)
from omnigraph.pipeline.table_versions import TableVersion
from omnigraph.pipeline.verify import (
    OnSpark,
    Touched,
    Verification,
    counts_hold,
    judge_for,
    verify,
)
from omnigraph.pipeline.violation_report import offenders, unreadable
from omnigraph.storage.tables import ADDRESS, NewFragments, RowAddresses, TableEdit
from omnigraph.validate.evaluate import report_of
from omnigraph.validate.listing import Destination, listing
from omnigraph.write.input.problems import Problems
from omnigraph.write.load import LoadOutcome
from omnigraph.write.resolve import Mode, RowCounts, before_columns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@frozen
class VerifiedLoad:
    """A load that is staged and valid on a state."""

    base: Snapshot
    mode: Mode
    actions: tuple[TableAction, ...]
    consulted: frozenset[str]
    facts: LoadFacts
    outcome: LoadOutcome

    def plan(self, plan_id: str | None = None) -> PublishPlan:
        """The write, on its state."""
        whole = self.mode is Mode.OVERWRITE
        return PublishPlan(
            kind="load",
            actions=self.actions,
            reads=read_whole(self.consulted) if whole else self.facts.reads(self.consulted),
            strict=whole,
            result=self.outcome.to_json(),
            value=self.outcome,
            plan_id=plan_id,
        )

    def holds_on(self, repo: Repository, snapshot: Snapshot, plan_id: str | None = None) -> bool:
        """Whether the verdict and the rows are valid for another state: none of their reads have changed since."""
        return carries_over(repo, self.plan(plan_id), self.base, snapshot)

    def rows_hold_on(
        self, repo: Repository, snapshot: Snapshot, plan_id: str | None = None
    ) -> bool:
        """Whether at least the rows are: then only the verdict has to be found again."""
        reads = self.facts.reads_of_rows(self.consulted)
        plan = replace(self.plan(plan_id), reads=reads, strict=False)
        return carries_over(repo, plan, self.base, snapshot)

    def on(self, snapshot: Snapshot) -> VerifiedLoad:
        """The same on a later state, in which the rows it replaces may have moved."""
        if snapshot.commit == self.base.commit:
            return self
        return replace(self, base=snapshot, actions=_moved(self.actions, self.base, snapshot))


def _moved(
    actions: Iterable[TableAction], then: Snapshot, now: Snapshot
) -> tuple[TableAction, ...]:
    if then.commit == now.commit:
        return tuple(actions)
    return tuple(_found_again(action, then, now) for action in actions)


def _found_again(action: TableAction, then: Snapshot, now: Snapshot) -> TableAction:
    if not isinstance(action, Upsert | Remove):
        return action
    versions = then.table(action.table_id), now.table(action.table_id)
    if isinstance(action.before, RowAddresses):
        return replace(action, before=addresses_again(action.before, *versions))
    return replace(action, before=found_again(action.before, *versions))


def verified(
    staging: Staging,
    snapshot: Snapshot,
    session: SparkSession | None,
    judged_rows_max: int = 0,
    violations: Destination | None = None,
) -> VerifiedLoad:
    """Staged splits as a valid write on a state, in which the rows they replace are as they were when staged. Without
    a session this process judges alone."""
    with listing(violations, lambda: unreadable(session, staging)):
        _refuse_problems(staging)
    if staging.gathered:  # listing reads the input again, without knowing which rows count
        violations = None
    staged = staging.job.pinned.snapshot()
    actions = _moved(_actions(staging, staged), staged, snapshot)
    case = _case(staging, snapshot, actions, session, judged_rows_max)
    with closing(case.judge):
        if not _is_valid(staging, case):
            locate = lambda wanted: _locate(session, staging, wanted)  # noqa: E731
            with listing(violations, lambda: offenders(session, staging, case, locate)):
                ids, *others = verify(case, locate)
                report_of([_keys(staging) + ids, *others]).raise_violations()
    facts = LoadFacts(case, staging.job.pinned, None if are_few(case) else session)
    outcome = _outcome(staging, snapshot, actions)
    return VerifiedLoad(snapshot, staging.job.mode, actions, _consulted(case), facts, outcome)


def _is_valid(staging: Staging, case: Verification) -> bool:
    """Whether there are no violations, found in the cheapest way."""
    if not all(one.is_clean for one in staging.splits):
        return False
    if are_few(case):
        txn = WriteTxn(case.snapshot, staging.job.branch, staging.job.now, case.snapshot.catalog)
        return nothing_is_wrong(case, txn)
    session = case.judge.session if isinstance(case.judge, OnSpark) else None
    return keys_hold(case, session) and counts_hold(case)


def _case(
    staging: Staging,
    snapshot: Snapshot,
    actions: Sequence[TableAction],
    session: SparkSession | None,
    judged_rows_max: int,
) -> Verification:
    by_table: dict[str, list[TableAction]] = {}
    for action in actions:
        by_table.setdefault(action.table_id, []).append(action)
    touched = {table: _touched(snapshot, table, staging, some) for table, some in by_table.items()}
    return Verification(
        judge_for(session, touched.values(), judged_rows_max),
        snapshot,
        staging.job.mode,
        _in_order(touched),
        _inner(staging),
        _values(staging),
    )


def _refuse_problems(staging: Staging) -> None:
    """Raise for unreadable rows: the first ones in the order of the input."""
    for one in staging.splits:
        if one.failure is not None:
            raise one.failure.error()
    lines = staging.first_lines()
    forms = {split.index: split.form for split in staging.inputs.splits}
    problems, seen = Problems(), set[tuple[str | None, str | None]]()
    for one in staging.splits:
        for problem in one.problems:
            if forms.get(one.split) == "lines":
                problems.add(placed(problem, lines[one.split]))
            elif (problem.file, problem.property) not in seen:  # a table reports one per column
                seen.add((problem.file, problem.property))
                problems.add(problem)
    problems.settle()


def _tables(staging: Staging) -> set[str]:
    found = set(staging.inputs.named)
    for one in staging.splits:
        found |= one.fragments.keys() | one.before.keys() | one.repeated.keys()
    return found


def _actions(staging: Staging, snapshot: Snapshot) -> tuple[TableAction, ...]:
    """The actions on each table: removed rows, with the edges of removed nodes, and added rows."""
    tables = _tables(staging)
    changed = _addresses(one.before for one in staging.splits)
    gone = _removed(staging, changed)
    found: list[TableAction] = []
    for table in sorted(tables | gone.keys()):
        if table in gone:
            found.append(Remove(table, _described(gone[table], table, snapshot)))
        action = _action(table, staging, changed.get(table))
        if table in tables and not (table in gone and _is_nothing(action)):
            found.append(action)
    return tuple(found)


def _is_nothing(action: TableAction) -> bool:
    return (
        isinstance(action, Append)
        and isinstance(action.rows, NewFragments)
        and not action.rows.rows
    )


def _addresses(found: Iterable[Mapping[str, bytes]]) -> dict[str, RowAddresses]:
    """The stored rows that tasks name, by table."""
    parts: dict[str, list[bytes]] = {}
    for one in found:
        for table, packed in one.items():
            parts.setdefault(table, []).append(packed)
    return {table: unpack(some) for table, some in parts.items()}


def _removed(staging: Staging, changed: Mapping[str, RowAddresses]) -> dict[str, RowAddresses]:
    """The removed rows, by table: edges of removed nodes among them, unless the load changes them."""
    found = _addresses(one.removed for one in staging.splits)
    gone = {table: without(rows, changed.get(table, NO_ROWS)) for table, rows in found.items()}
    return {table: rows for table, rows in gone.items() if len(rows)}


def _described(rows: RowAddresses, table: str, snapshot: Snapshot) -> pa.Table | RowAddresses:
    """Removed rows with their ids and ends for other writers, if there are few enough to be listed."""
    if len(rows) > TOKENS_MAX:
        return rows
    columns = before_columns(kind_by_table(snapshot.catalog, table))
    found = snapshot.table(table).take(rows.addresses, columns)
    return found.append_column(ADDRESS, rows.addresses)


def _action(table: str, staging: Staging, before: RowAddresses | None) -> TableAction:
    parts = [part for one in staging.splits for part in one.fragments.get(table, ())]
    rows = NewFragments(tuple(text for text, _ in parts), sum(count for _, count in parts))
    if staging.job.mode is Mode.OVERWRITE:
        return Overwrite(table, rows)
    return Append(table, rows) if before is None else Upsert(table, rows, before)


def _touched(
    snapshot: Snapshot, table: str, staging: Staging, actions: Iterable[TableAction]
) -> Touched:
    """The version a table would have, not yet published."""
    base = snapshot.table(table)
    edit, changed, removed = TableEdit(), NO_ROWS, NO_ROWS
    for action in actions:
        match action:
            case Upsert(_, NewFragments() as rows, RowAddresses() as changed):
                edit = replace(edit, append=rows)
            case Overwrite(_, NewFragments() as rows):
                edit = TableEdit(replace_all=True, append=rows)
            case Append(_, NewFragments() as rows):
                edit = replace(edit, append=rows)
            case Remove(_, before):
                removed = _rows_of(before)
            case _:
                raise AssertionError("a bulk load appends, merges, removes or overwrites")
    if len(changed) or len(removed):
        edit = replace(edit, delete=pa.concat_arrays([changed.addresses, removed.addresses]))
    staged = snapshot.tables.stage(base.ref, edit)
    return Touched(
        kind_by_table(snapshot.catalog, table),
        TableVersion.of(snapshot.root, base),
        TableVersion.of(snapshot.root, snapshot.tables.open(staged.ref), base),
        any(table in one.named for one in staging.splits),
        changed,
        removed,
    )


def _rows_of(before: pa.Table | RowAddresses) -> RowAddresses:
    return before if isinstance(before, RowAddresses) else RowAddresses.of(before[ADDRESS])


def _in_order(touched: Mapping[str, Touched]) -> dict[str, Touched]:
    """Node types, then edge types, each by name."""

    def place(item: tuple[str, Touched]) -> tuple[bool, str]:
        kind = item[1].kind
        return isinstance(kind, EdgeType), kind.name

    return dict(sorted(touched.items(), key=place))


def _inner(staging: Staging) -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for one in staging.splits:
        for table, ids in one.repeated.items():
            found[table] = found.get(table, frozenset()) | ids
    return {table: frozenset(sorted(ids)[:MANY]) for table, ids in found.items()}


def _values(staging: Staging) -> dict[str, list[Violation]]:
    """Invalid values by table, each rule's first by id, rules in the order of the schema."""
    lines = staging.first_lines()
    found: dict[str, list[Violation]] = {}
    for one in staging.splits:
        for table, violations in one.values.items():
            found.setdefault(table, []).extend(placed(v, lines[one.split]) for v in violations)
    catalog = staging.job.pinned.snapshot().catalog
    return {
        table: in_order(violations, kind_by_table(catalog, table))
        for table, violations in found.items()
    }


def _keys(staging: Staging) -> list[Violation]:
    lines = staging.first_lines()
    return first_keys([placed(v, lines[one.split]) for one in staging.splits for v in one.keys])


def _locate(
    session: SparkSession | None, staging: Staging, wanted: Mapping[str, frozenset[str]]
) -> list[InputPlace]:
    """Read the input once more, to locate the given rows. Rows of DataFrames have no place."""
    splits = staging.inputs.splits
    task = locate_task(staging.job, splits, wanted)
    parts = answers(session, task, len(splits), list[InputPlace])
    found = [place for places in parts for place in places]
    lines = staging.first_lines()
    return [
        place if place.line is None else replace(place, line=place.line + lines[place.split])
        for place in found
    ]


def _consulted(case: Verification) -> frozenset[str]:
    """The tables the verdict depends on: those written, the nodes of their edges, the edges of removed nodes."""
    found = set(case.touched)
    catalog = case.snapshot.catalog
    for touched in case.touched.values():
        kind = touched.kind
        if isinstance(kind, EdgeType):
            found |= {catalog.nodes[name].table_id for name in (kind.from_type, kind.to_type)}
        elif case.mode is Mode.OVERWRITE or len(touched.removed):
            found |= {edge.table_id for edge in catalog.incident_edges(kind.name)}
    return frozenset(found)


def _outcome(staging: Staging, snapshot: Snapshot, actions: Iterable[TableAction]) -> LoadOutcome:
    nodes: dict[str, int] = {}
    edges: dict[str, int] = {}
    fresh: dict[str, int] = {}
    known: dict[str, RowCounts] = {}
    for one in staging.splits:
        for table, count in one.counts.items():
            known[table] = known.get(table, RowCounts()) + count
    for action in actions:
        if isinstance(action, Remove):
            gone = replace(
                known.get(action.table_id, RowCounts()), deleted=len(_rows_of(action.before))
            )
            known[action.table_id] = gone
    for table in staging.inputs.named:
        kind = kind_by_table(snapshot.catalog, table)
        (edges if isinstance(kind, EdgeType) else nodes)[kind.name] = 0
    for one in staging.splits:
        for counts, more in ((nodes, one.nodes), (edges, one.edges), (fresh, one.new_each_time)):
            for name, rows in more.items():
                counts[name] = counts.get(name, 0) + rows
    return LoadOutcome(nodes, edges, fresh).with_counts(known, snapshot.catalog)
