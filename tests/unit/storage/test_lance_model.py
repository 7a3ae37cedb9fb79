"""Random sequences of edits, through the whole table store, against a dictionary of rows.

Every answer that can come from an index is compared with the model, with any coverage the sequence happens to leave.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest

from omnigraph.lang.ir import CompareOp as Op
from omnigraph.storage.lance import LanceTables
from omnigraph.storage.tables import ADDRESS, IndexEdit, Staged, TableEdit, TableRef
from tests.support.conditions import compare, contains, has, one_of

SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("v", pa.int64()),
        pa.field("kind", pa.string()),
        pa.field("tags", pa.list_(pa.string())),
    ]
)
INDICES = (
    IndexEdit("id", "BTREE"),
    IndexEdit("v", "BTREE"),
    IndexEdit("kind", "BITMAP"),
    IndexEdit("tags", "LABEL_LIST"),
    IndexEdit("id", "NGRAM"),
)
Row = tuple[int | None, str, tuple[str, ...]]


@dataclass
class Run:
    """A table, what it should hold, and a sibling version that lost its race."""

    store: LanceTables
    ref: TableRef
    rng: random.Random
    rows: dict[str, Row] = field(default_factory=dict)
    fresh: int = 0

    def row(self) -> Row:
        value = None if self.rng.random() < 0.1 else self.rng.randrange(40)
        tags = tuple(self.rng.sample("pqr", self.rng.randrange(3)))
        return value, f"kind{self.rng.randrange(4)}", tags

    def new_ids(self, most: int) -> list[str]:
        count = self.rng.randint(1, most)
        self.fresh += count
        return [f"n{i}" for i in range(self.fresh - count, self.fresh)]

    def some_ids(self, most: int) -> list[str]:
        return self.rng.sample(sorted(self.rows), min(len(self.rows), self.rng.randint(1, most)))

    def addresses(self, ids: list[str]) -> pa.UInt64Array:
        found = self.store.open(self.ref).lookup(
            "id", pa.array(ids, pa.string()), ["id"], with_address=True
        )
        assert sorted(found["id"].to_pylist()) == sorted(i for i in ids if i in self.rows)
        return found[ADDRESS].combine_chunks()

    def stage(self, edit: TableEdit) -> Staged:
        staged = self.store.stage(self.ref, edit)
        self.ref = staged.ref
        return staged


def table_of(rows: dict[str, Row]) -> pa.Table:
    return pa.table(
        {
            "id": list(rows),
            "v": [row[0] for row in rows.values()],
            "kind": [row[1] for row in rows.values()],
            "tags": [list(row[2]) for row in rows.values()],
        },
        schema=SCHEMA,
    )


def append(run: Run) -> None:
    new = {i: run.row() for i in run.new_ids(6)}
    staged = run.stage(TableEdit(append=table_of(new)))
    assert staged.only_appends
    run.rows |= new


def upsert(run: Run) -> None:
    changed = {i: run.row() for i in [*run.some_ids(4), *run.new_ids(2)]}
    run.stage(TableEdit(delete=run.addresses(list(changed)), append=table_of(changed)))
    run.rows |= changed


def delete(run: Run) -> None:
    gone = run.some_ids(4)
    run.stage(TableEdit(delete=run.addresses(gone)))
    for i in gone:
        del run.rows[i]


def index(run: Run) -> None:
    chosen = tuple(run.rng.sample(INDICES, run.rng.randint(1, len(INDICES))))
    run.stage(TableEdit(indices=chosen))


def rebuild(run: Run) -> None:
    run.stage(TableEdit(indices=(IndexEdit("v", "BTREE", replace=True),)))


def compact(run: Run) -> None:
    run.stage(TableEdit(compact=True, indices=INDICES if run.rng.random() < 0.5 else ()))


def lose_a_race(run: Run) -> None:
    """Two versions on one base: the winner changes anything, the loser only appended and is put on top."""
    ours = {i: run.row() for i in run.new_ids(3)}
    loser = run.store.stage(run.ref, TableEdit(append=table_of(ours)))
    run.rng.choice([append, upsert, delete, compact])(run)
    kept = {f.identity for f in run.store.open(run.ref).fragments()}
    again = run.store.recommit(loser, run.ref)
    assert (again is not None) == (loser.replaced <= kept)
    if again is not None:
        run.ref = again.ref
        run.rows |= ours


def index_late(run: Run) -> None:
    """An index built on one version and added to a later one."""
    built = run.store.stage(run.ref, TableEdit(indices=(run.rng.choice(INDICES),)))
    run.rng.choice([append, upsert, delete, compact])(run)
    again = run.store.recommit(built, run.ref)
    if again is not None:
        run.ref = again.ref


def load(run: Run) -> None:
    """Enough rows to make fragments that are never absorbed."""
    new = {i: run.row() for i in [*run.new_ids(1), *(f"bulk{run.fresh}_{k}" for k in range(300))]}
    run.stage(TableEdit(append=iter(table_of(new).to_batches(max_chunksize=100))))
    run.rows |= new


def replace_all(run: Run) -> None:
    run.rows = {i: run.row() for i in run.new_ids(20)} if run.rng.random() < 0.8 else {}
    run.stage(TableEdit(replace_all=True, append=table_of(run.rows)))


STEPS = {
    append: 6, upsert: 6, delete: 4, index: 2, rebuild: 0.5, compact: 0.7, lose_a_race: 2, index_late: 1,
    load: 0.3, replace_all: 0.1,
}  # fmt: skip


def check(run: Run, step: str) -> None:
    table = run.store.open(run.ref)
    assert table.count() == len(run.rows), step
    asked = run.rng.sample([f"n{i}" for i in range(run.fresh + 3)], 3)
    found = table.lookup("id", pa.array(asked), SCHEMA.names).to_pylist()
    got = {r["id"]: (r["v"], r["kind"], tuple(r["tags"])) for r in found}
    assert got == {i: run.rows[i] for i in asked if i in run.rows}, step
    assert len(found) == len(got), step
    value = run.rng.randrange(40)
    for predicate, holds in (
        (compare("v", Op.EQ, value), lambda i, r: r[0] == value),
        (compare("v", Op.GE, value), lambda i, r: r[0] is not None and r[0] >= value),
        (one_of("kind", "kind1", "kind3"), lambda i, r: r[1] in ("kind1", "kind3")),
        (has("tags", "q"), lambda i, r: "q" in r[2]),
        (contains("id", f"n{value}"), lambda i, r: f"n{value}" in i),
    ):
        ids = table.scan(["id"], predicate)["id"].to_pylist()
        expected = sorted(i for i, r in run.rows.items() if holds(i, r))
        assert sorted(ids) == expected, (step, predicate)


@pytest.mark.parametrize("seed", range(3))
def test_random_edits_never_give_a_wrong_answer(tmp_path: Path, seed: int) -> None:
    store = LanceTables(str(tmp_path), fsync=False)
    run = Run(store, store.create("t", SCHEMA), random.Random(seed))
    for number in range(120):
        if not run.rows:
            append(run)
        step = run.rng.choices(list(STEPS), list(STEPS.values()))[0]
        step(run)
        check(run, f"seed {seed}, step {number}, {step.__name__}")
