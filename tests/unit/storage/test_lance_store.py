"""The table store at its boundary: what a stage makes, what it says about it, and what it refuses."""

from __future__ import annotations

import gc
import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance import LanceFragment

from omnigraph.errors import Corrupt, LimitExceeded, OmnigraphError, OptionInvalid
from omnigraph.lang.ir import CompareOp as Op
from omnigraph.storage import metrics
from omnigraph.storage.lance import LanceTables, staging
from omnigraph.storage.lance.absorb import ABSORB_ROWS_MAX
from omnigraph.storage.lance.reading import LanceTable, manifest_file
from omnigraph.storage.tables import (
    ADDRESS,
    CHEAP_ROWS,
    ColumnEdit,
    IndexEdit,
    Staged,
    Table,
    TableEdit,
    TableRef,
)
from tests.support.caches import forget_tables
from tests.support.conditions import compare

SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("v", pa.int64()),
        pa.field("w", pa.float64()),
    ]
)
BTREE = (IndexEdit("id", "BTREE"),)


@pytest.fixture(params=["disk", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path, memory_root: str) -> LanceTables:
    return LanceTables(str(tmp_path) if request.param == "disk" else memory_root, fsync=False)


@pytest.fixture
def disk(tmp_path: Path) -> LanceTables:
    return LanceTables(str(tmp_path), fsync=False)


def rows(first: int, count: int = 1) -> pa.Table:
    ids = range(first, first + count)
    return pa.table(
        {"id": [f"k{i}" for i in ids], "v": list(ids), "w": [i / 2 for i in ids]}, schema=SCHEMA
    )


def ids_of(table: Table) -> list[str]:
    found: list[str] = table.scan(["id"])["id"].to_pylist()
    return found


def addresses(table: Table, *ids: str) -> pa.UInt64Array:
    found = table.lookup("id", pa.array(ids), ["id"], with_address=True)
    assert found.num_rows == len(ids)
    return found[ADDRESS].combine_chunks()


def staged_rows(store: LanceTables, count: int, **edit: Any) -> Staged:
    return store.stage(store.create("t", SCHEMA), TableEdit(append=rows(0, count), **edit))


# --- rows ------------------------------------------------------------------------------------------------------------


def test_a_new_table_is_empty_and_has_the_schema_asked_for(store: LanceTables) -> None:
    table = store.open(store.create("nodes/t", SCHEMA))
    assert table.schema == SCHEMA
    assert table.count() == 0
    assert table.scan(["v"], with_address=True).schema.names == ["v", ADDRESS]


def test_a_version_never_changes_and_heads_never_move(disk: LanceTables, tmp_path: Path) -> None:
    first = staged_rows(disk, 3)
    second = disk.stage(first.ref, TableEdit(append=rows(3)))
    assert ids_of(disk.open(first.ref)) == ["k0", "k1", "k2"]
    assert ids_of(disk.open(second.ref)) == ["k0", "k1", "k2", "k3"]
    assert lance.dataset(str(tmp_path / "t")).version == 1


def test_a_table_is_there_when_nothing_of_it_is_remembered(store: LanceTables) -> None:
    ref = staged_rows(store, 3).ref
    forget_tables()
    gc.collect()
    assert ids_of(store.open(ref)) == ["k0", "k1", "k2"]


def test_delete_and_append_become_one_version(store: LanceTables) -> None:
    base = staged_rows(store, 10, indices=BTREE)
    edit = TableEdit(delete=addresses(store.open(base.ref), "k2", "k7"), append=rows(20, 2))
    staged = store.stage(base.ref, edit)
    assert ids_of(store.open(staged.ref)) == [
        "k0",
        "k1",
        "k3",
        "k4",
        "k5",
        "k6",
        "k8",
        "k9",
        "k20",
        "k21",
    ]
    assert (staged.rows, staged.only_appends) == (10, False)
    assert staged.replaced == {f.identity for f in store.open(base.ref).fragments()}


def test_deleting_every_row_of_a_fragment_removes_it(store: LanceTables) -> None:
    base = staged_rows(store, 2)
    staged = store.stage(base.ref, TableEdit(delete=addresses(store.open(base.ref), "k0", "k1")))
    table = store.open(staged.ref)
    assert (staged.rows, table.fragments(), ids_of(table)) == (0, (), [])


def test_deleting_a_row_twice_or_by_a_stale_address_is_no_silent_success(
    store: LanceTables,
) -> None:
    base = staged_rows(store, 2)
    unknown = pa.array([7 << 32], pa.uint64())
    with pytest.raises(Corrupt, match="no fragment 7"):
        store.stage(base.ref, TableEdit(delete=unknown))


def test_replacing_all_rows_keeps_columns_and_indices(store: LanceTables) -> None:
    base = staged_rows(store, 5, indices=BTREE)
    table = store.open(store.stage(base.ref, TableEdit(replace_all=True, append=rows(50, 2))).ref)
    assert ids_of(table) == ["k50", "k51"]
    assert [(i.name, i.covered_fragments) for i in table.indices()] == [("btree_0", frozenset())]
    empty = store.stage(table.ref, TableEdit(replace_all=True))
    assert empty.rows == 0
    again = store.stage(empty.ref, TableEdit(append=rows(1), indices=BTREE))
    assert addresses(store.open(again.ref), "k1") is not None


def test_an_edit_of_nothing_makes_no_version(store: LanceTables) -> None:
    base = staged_rows(store, 2)
    nothing = pa.array([], pa.uint64())
    for edit in (TableEdit(), TableEdit(delete=nothing), TableEdit(append=SCHEMA.empty_table())):
        assert store.stage(base.ref, edit).ref == base.ref


def test_rows_are_fitted_to_the_columns_or_refused(store: LanceTables) -> None:
    ref = store.create("t", SCHEMA)
    given = pa.table({"v": pa.array([1], pa.int32()), "id": ["a"]})
    table = store.open(store.stage(ref, TableEdit(append=given)).ref)
    assert table.scan(SCHEMA.names).to_pylist() == [{"id": "a", "v": 1, "w": None}]
    for bad in (pa.table({"v": [1]}), pa.table({"id": ["a"], "x": [1]})):
        with pytest.raises(OmnigraphError):
            store.stage(ref, TableEdit(append=bad))


def test_a_stream_larger_than_memory_holds_is_written_as_it_comes(store: LanceTables) -> None:
    ref = store.create("t", SCHEMA)
    taken: list[int] = []

    def stream() -> Iterator[pa.RecordBatch]:
        for number in range(20):
            taken.append(number)
            yield from rows(number * 1000, 1000).to_batches()

    staged = store.stage(ref, TableEdit(append=stream()))
    assert (staged.rows, len(taken)) == (20_000, 20)
    assert store.open(staged.ref).count(compare("v", Op.GE, 19_990)) == 10


def test_a_long_load_makes_several_fragments(
    store: LanceTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omnigraph.storage.lance.staging.FRAGMENT_ROWS_MAX", 5000)
    staged = staged_rows(store, 12_000)
    table = store.open(staged.ref)
    assert [f.physical_rows for f in table.fragments()] == [5000, 5000, 2000]
    assert len(staged.appended) == 3


def test_threads_share_a_store(store: LanceTables) -> None:
    base = staged_rows(store, 5000, indices=BTREE)

    def work(number: int) -> int:
        gone = addresses(store.open(base.ref), f"k{number}")
        staged = store.stage(base.ref, TableEdit(delete=gone, append=rows(9000 + number)))
        table = store.open(staged.ref)
        assert table.lookup("id", pa.array([f"k{number}"]), ["v"]).num_rows == 0
        assert table.lookup("id", pa.array([f"k{9000 + number}"]), ["v"]).num_rows == 1
        return staged.rows

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(work, range(40))) == {5000}


def test_what_a_stream_raises_reaches_the_caller_as_it_is(store: LanceTables) -> None:
    ref = store.create("t", SCHEMA)

    def stream() -> Iterator[pa.RecordBatch]:
        yield from rows(0, 6000).to_batches()
        yield from rows(6000, 6000).to_batches()
        raise LimitExceeded("enough")

    with pytest.raises(LimitExceeded, match="enough"):
        store.stage(ref, TableEdit(append=stream()))
    assert store.open(ref).count() == 0


def test_fragments_written_elsewhere_can_be_appended(disk: LanceTables, tmp_path: Path) -> None:
    base = staged_rows(disk, 2)
    new = LanceTables(str(tmp_path), fsync=False).write_fragments(base.ref, rows(10, 3))
    staged = disk.stage(base.ref, TableEdit(append=new))
    assert (new.rows, ids_of(disk.open(staged.ref))) == (3, ["k0", "k1", "k10", "k11", "k12"])


# --- absorbing -------------------------------------------------------------------------------------------------------


def test_small_appends_keep_few_fragments(store: LanceTables) -> None:
    ref = staged_rows(store, 10, indices=BTREE).ref
    for number in range(100):
        staged = store.stage(ref, TableEdit(append=rows(100 + number)))
        assert staged.only_appends
        ref = staged.ref
    table = store.open(ref)
    assert len(table.fragments()) <= 1 + 7
    assert ids_of(table)[-100:] == [f"k{100 + i}" for i in range(100)]
    assert table.indices()[0].covered_fragments == {0}


def test_absorbing_takes_live_rows_only(store: LanceTables) -> None:
    base = staged_rows(store, 4)
    thinned = store.stage(base.ref, TableEdit(delete=addresses(store.open(base.ref), "k1")))
    staged = store.stage(thinned.ref, TableEdit(append=rows(10, 4)))
    table = store.open(staged.ref)
    assert ids_of(table) == ["k0", "k2", "k3", "k10", "k11", "k12", "k13"]
    assert [f.deleted_rows for f in table.fragments()] == [0]
    assert staged.replaced == {f.identity for f in store.open(thinned.ref).fragments()}


def test_absorbing_reads_back_what_another_process_wrote(disk: LanceTables, tmp_path: Path) -> None:
    base = staged_rows(disk, 3)
    new = disk.write_fragments(base.ref, rows(10, 2))  # never seen by the cache of recent rows
    foreign = disk.stage(base.ref, TableEdit(append=new))
    thinned = disk.stage(foreign.ref, TableEdit(delete=addresses(disk.open(foreign.ref), "k10")))
    staged = disk.stage(thinned.ref, TableEdit(append=rows(20, 4)))
    assert ids_of(disk.open(staged.ref)) == ["k0", "k1", "k2", "k11", "k20", "k21", "k22", "k23"]
    assert len(disk.open(staged.ref).fragments()) == 1


def test_large_and_indexed_fragments_are_left_alone(store: LanceTables) -> None:
    large = staged_rows(store, ABSORB_ROWS_MAX + 1)
    staged = store.stage(large.ref, TableEdit(append=rows(10_000, 3)))
    assert not staged.replaced
    covered = store.stage(staged.ref, TableEdit(indices=BTREE))
    assert not store.stage(covered.ref, TableEdit(append=rows(20_000, 3))).replaced


def test_columns_renamed_meanwhile_are_absorbed_under_their_new_meaning(store: LanceTables) -> None:
    base = staged_rows(store, 1)
    swap = ColumnEdit(rename=(("v", "old"),), add=((pa.field("v", pa.int64()), None),))
    renamed = store.stage(base.ref, TableEdit(columns=swap))
    new = pa.table({"id": ["k9"], "v": [9], "old": [1], "w": [0.0]})
    table = store.open(store.stage(renamed.ref, TableEdit(append=new)).ref)
    assert table.scan(["id", "old", "v"]).to_pylist() == [
        {"id": "k0", "old": 0, "v": None},
        {"id": "k9", "old": 1, "v": 9},
    ]


# --- losing a race ---------------------------------------------------------------------------------------------------


def test_appended_rows_move_to_another_base_without_being_written_again(
    disk: LanceTables, tmp_path: Path
) -> None:
    base = staged_rows(disk, 5, indices=BTREE)
    ours = disk.stage(base.ref, TableEdit(append=rows(10, 2)))
    theirs = disk.stage(base.ref, TableEdit(append=rows(20, 2)))
    before = sorted((tmp_path / "t" / "data").iterdir())
    moved = disk.recommit(ours, theirs.ref)
    assert moved is not None
    assert sorted((tmp_path / "t" / "data").iterdir()) == before
    assert ids_of(disk.open(moved.ref))[5:] == ["k20", "k21", "k10", "k11"]
    assert (moved.base, moved.rows) == (theirs.ref, 9)


def test_rows_that_absorbed_a_fragment_move_only_while_it_is_unchanged(store: LanceTables) -> None:
    base = staged_rows(store, 3)
    ours = store.stage(base.ref, TableEdit(append=rows(10, 3)))
    assert ours.replaced
    same = store.stage(base.ref, TableEdit(append=rows(20)))
    moved = store.recommit(ours, same.ref)
    assert moved is not None
    assert sorted(ids_of(store.open(moved.ref))) == sorted(
        ["k0", "k1", "k2", "k10", "k11", "k12", "k20"]
    )
    thinned = store.stage(base.ref, TableEdit(delete=addresses(store.open(base.ref), "k0")))
    assert store.recommit(ours, thinned.ref) is None


def test_deletions_and_changed_columns_never_move(store: LanceTables) -> None:
    base = staged_rows(store, 3)
    other = store.stage(base.ref, TableEdit(append=rows(9)))
    deleting = store.stage(base.ref, TableEdit(delete=addresses(store.open(base.ref), "k0")))
    assert store.recommit(deleting, other.ref) is None
    appending = store.stage(base.ref, TableEdit(append=rows(50, 1)))
    dropped = store.stage(base.ref, TableEdit(columns=ColumnEdit(drop=("w",))))
    assert store.recommit(appending, dropped.ref) is None


# --- columns ---------------------------------------------------------------------------------------------------------


def test_columns_are_added_renamed_dropped_and_cast_together(store: LanceTables) -> None:
    base = staged_rows(store, 4, indices=(*BTREE, IndexEdit("v", "BTREE")))
    thinned = store.stage(base.ref, TableEdit(delete=addresses(store.open(base.ref), "k1")))
    edit = ColumnEdit(
        add=((pa.field("note", pa.list_(pa.string())), None), (pa.field("rank", pa.int32()), 7)),
        rename=(("id", "key"),),
        drop=("w",),
        cast=(pa.field("v", pa.string()),),
    )
    table = store.open(store.stage(thinned.ref, TableEdit(columns=edit)).ref)
    assert table.schema.names == ["key", "v", "note", "rank"]
    assert table.scan(table.schema.names).to_pylist() == [
        {"key": f"k{i}", "v": str(i), "note": None, "rank": 7} for i in (0, 2, 3)
    ]
    # The index on the renamed column serves it; the one on the cast column went with the old values.
    assert [(i.name, i.column) for i in table.indices()] == [("btree_0", "key")]
    assert table.count(compare("key", Op.EQ, "k2")) == 1


def test_renaming_and_dropping_write_no_data(disk: LanceTables, tmp_path: Path) -> None:
    base = staged_rows(disk, 3)
    before = sorted((tmp_path / "t" / "data").iterdir())
    edit = ColumnEdit(rename=(("v", "x"),), drop=("w",), add=((pa.field("n", pa.bool_()), None),))
    staged = disk.stage(base.ref, TableEdit(columns=edit))
    assert sorted((tmp_path / "t" / "data").iterdir()) == before
    assert not staged.replaced


def test_a_column_added_after_a_drop_does_not_see_the_old_values(store: LanceTables) -> None:
    base = staged_rows(store, 2)
    dropped = store.stage(base.ref, TableEdit(columns=ColumnEdit(drop=("w",))))
    added = ColumnEdit(add=((pa.field("w", pa.float64()), None),))
    table = store.open(store.stage(dropped.ref, TableEdit(columns=added)).ref)
    assert table.scan(["w"])["w"].to_pylist() == [None, None]


def test_impossible_column_edits_are_refused(store: LanceTables) -> None:
    base = staged_rows(store, 1)
    must = pa.field("must", pa.int32(), nullable=False)
    for edit in (
        ColumnEdit(drop=("x",)),
        ColumnEdit(rename=(("x", "y"),)),
        ColumnEdit(add=((must, None),)),
    ):
        with pytest.raises(OptionInvalid):
            store.stage(base.ref, TableEdit(columns=edit))


# --- blobs -----------------------------------------------------------------------------------------------------------


def test_blobs_are_stored_beside_the_data_and_read_back_whole(
    disk: LanceTables, tmp_path: Path
) -> None:
    mark = {"omnigraph.blob": "true"}
    schema = pa.schema(
        [pa.field("id", pa.string()), pa.field("b", pa.large_binary(), metadata=mark)]
    )
    blobs = [b"A" * 300_000, None, b"", b"small"]
    data = pa.table({"id": ["0", "1", "2", "3"], "b": pa.array(blobs, pa.large_binary())})
    staged = disk.stage(disk.create("t", schema), TableEdit(append=data))
    staged = disk.stage(staged.ref, TableEdit(append=data.slice(3), indices=BTREE))
    table = disk.open(staged.ref)
    assert table.schema.field("b").metadata == {b"omnigraph.blob": b"true"}
    assert list((tmp_path / "t" / "data").rglob("*.blob"))
    assert table.scan(["b"])["b"].to_pylist() == [*blobs, b"small"]
    chosen = table.scan([], with_address=True)[ADDRESS].combine_chunks().take(pa.array([2, 0]))
    assert table.take(chosen, ["b", "id"]).to_pylist() == [
        {"b": b"", "id": "2"},
        {"b": blobs[0], "id": "0"},
    ]
    compacted = disk.stage(staged.ref, TableEdit(compact=True))
    assert disk.open(compacted.ref).scan(["b"])["b"].to_pylist() == [*blobs, b"small"]


# --- reading ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("indices", [(), BTREE])
@pytest.mark.parametrize("wanted", [1, 3, 30, 1500])
def test_lookup_finds_the_same_rows_by_every_route(
    store: LanceTables, indices: tuple[IndexEdit, ...], wanted: int
) -> None:
    base = staged_rows(store, 5000, indices=indices)
    staged = store.stage(base.ref, TableEdit(append=rows(7000, 10)))
    table = store.open(staged.ref)
    keys = [f"k{i}" for i in range(0, wanted * 3, 3)] + ["k7003", "absent"]
    expected = sorted(
        {k for k in keys if int("0" + k[1:] if k[1:].isdigit() else "9999999") < 5000} | {"k7003"}
    )
    for columns in (["id"], ["v", "id"]):
        found = table.lookup("id", pa.array([*keys, None, keys[0]]), columns, with_address=True)
        assert sorted(found["id"].to_pylist()) == expected
        assert found.schema.names == [*columns, ADDRESS]
        assert table.take(found[ADDRESS].combine_chunks(), columns) == found.select(columns)
    assert table.lookup("id", pa.array([], pa.string()), ["v"]).num_rows == 0


def test_take_keeps_the_order_asked_for(store: LanceTables) -> None:
    table = store.open(staged_rows(store, 5).ref)
    chosen = pa.array([3, 0, 3], pa.uint64())
    assert table.take(chosen, ["id"])["id"].to_pylist() == ["k3", "k0", "k3"]


def test_batches_can_be_limited_to_fragments(store: LanceTables) -> None:
    base = staged_rows(store, 10, indices=BTREE)
    table = store.open(store.stage(base.ref, TableEdit(append=rows(50, 3))).ref)
    last = table.fragments()[-1].fragment_id
    batches = list(table.batches(["id"], fragments=[last], batch_rows=2, with_address=True))
    assert [i for b in batches for i in b.column("id").to_pylist()] == ["k50", "k51", "k52"]
    assert max(b.num_rows for b in batches) <= 2


# --- indices and compaction ------------------------------------------------------------------------------------------


def test_an_index_is_extended_by_segments_and_replaced_when_they_pile_up(
    store: LanceTables,
) -> None:
    ref = store.create("t", SCHEMA)
    for number in range(10):
        ref = store.stage(ref, TableEdit(append=rows(number * 10, 10), indices=BTREE)).ref
        table = store.open(ref)
        (index,) = table.indices()
        assert index.covered_fragments == {f.fragment_id for f in table.fragments()}
        assert table.count(compare("id", Op.EQ, f"k{number * 10 + 3}")) == 1
    names = [name for name in table.files() if name.startswith("_indices/")]
    assert 1 <= len(names) <= 8


@pytest.mark.parametrize(
    "kind", ["IVF_FLAT", "IVF_HNSW_SQ", "INVERTED", "NGRAM", "BITMAP", "ZONEMAP"]
)
def test_every_kind_of_index_can_be_built_extended_and_dropped(
    store: LanceTables, kind: str
) -> None:
    column = "vec" if kind.startswith("IVF") else "txt"
    schema = pa.schema([("txt", pa.string()), ("vec", pa.list_(pa.float32(), 8))])
    data = pa.table(
        [
            pa.array([f"w{i}" for i in range(300)]),
            pa.array(np.eye(300, 8, dtype=np.float32).tolist(), schema.field("vec").type),
        ],
        schema=schema,
    )
    edit = (IndexEdit(column, kind),)
    first = store.stage(store.create("t", schema), TableEdit(append=data, indices=edit))
    second = store.stage(first.ref, TableEdit(append=data, indices=edit))
    table = store.open(second.ref)
    (index,) = table.indices()
    assert (index.kind, index.column) == (kind, column)
    assert index.covered_fragments == {f.fragment_id for f in table.fragments()}
    dropped = store.stage(second.ref, TableEdit(drop_indices=(index.name,)))
    assert store.open(dropped.ref).indices() == ()


def test_an_index_that_cannot_be_built_fails_alone_but_never_fails_a_write(
    store: LanceTables,
) -> None:
    ref = store.create("t", SCHEMA)
    wrong = (IndexEdit("v", "INVERTED"), *BTREE)  # full text wants text
    staged = store.stage(ref, TableEdit(append=rows(0, 3), indices=wrong))
    assert [index.name for index in store.open(staged.ref).indices()] == ["btree_0"]
    assert len(staged.extra["indices_failed"]) == 1
    with pytest.raises(OmnigraphError):
        store.stage(staged.ref, TableEdit(indices=wrong))


def test_an_index_built_on_an_older_version_forgets_fragments_that_changed(
    store: LanceTables,
) -> None:
    base = staged_rows(store, 20)
    built = store.stage(base.ref, TableEdit(indices=BTREE))
    later = store.stage(
        base.ref, TableEdit(append=rows(100, 30))
    )  # absorbs the fragment that was indexed
    moved = store.recommit(built, later.ref)
    assert moved is not None
    table = store.open(moved.ref)
    assert all(not index.covered_fragments for index in table.indices())
    assert addresses(table, "k3", "k105") is not None


def test_compaction_rewrites_thinned_fragments_and_indices_follow(store: LanceTables) -> None:
    base = staged_rows(store, 100, indices=BTREE)
    gone = addresses(store.open(base.ref), *(f"k{i}" for i in range(0, 100, 2)))
    thinned = store.stage(base.ref, TableEdit(delete=gone, append=rows(200, 2)))
    staged = store.stage(thinned.ref, TableEdit(compact=True, indices=BTREE))
    table = store.open(staged.ref)
    assert [f.deleted_rows for f in table.fragments()] == [0] * len(table.fragments())
    assert table.indices()[0].covered_fragments == {f.fragment_id for f in table.fragments()}
    assert (staged.rows, addresses(table, "k1", "k201") is not None) == (52, True)


def test_indices_move_on_when_nothing_is_left_of_what_was_rewritten(store: LanceTables) -> None:
    """Others absorbed all small fragments: the index of the large one is built already and need not be again."""
    large = staged_rows(store, CHEAP_ROWS + 1)
    small = store.stage(large.ref, TableEdit(append=rows(600_000, 40)))
    base = store.stage(small.ref, TableEdit(append=rows(700_000, 30)))
    assert len(store.open(base.ref).fragments()) == 3
    mine = store.stage(base.ref, TableEdit(compact=True, indices=BTREE))
    assert len(store.open(mine.ref).fragments()) == 2, "the small ones are one"
    others = store.stage(base.ref, TableEdit(append=rows(800_000, 200)))
    assert len(store.open(others.ref).fragments()) == 2, "the small ones are absorbed"
    moved = store.recommit(mine, others.ref)
    assert moved is not None, "all is to be done again"
    table = store.open(moved.ref)
    (index,) = table.indices()
    assert index.covered_fragments == {table.fragments()[0].fragment_id}
    assert sorted(ids_of(table)) == sorted(ids_of(store.open(others.ref)))
    assert addresses(table, "k3", "k600001", "k700029", "k800199") is not None


# --- files, failures, costs ------------------------------------------------------------------------------------------


def test_nothing_but_the_named_files_is_needed(disk: LanceTables, tmp_path: Path) -> None:
    """What garbage collection relies on: keep `files()` of a version, lose everything else, read and write on."""
    ref = staged_rows(disk, 50, indices=(*BTREE, IndexEdit("v", "BITMAP"))).ref
    for number in range(6):
        gone = addresses(disk.open(ref), f"k{number}")
        ref = disk.stage(ref, TableEdit(delete=gone, append=rows(100 + number))).ref
    ref = disk.stage(ref, TableEdit(indices=BTREE)).ref
    expected = disk.open(ref).scan(SCHEMA.names)
    copy = tmp_path / "copy"
    shutil.copytree(tmp_path / "t", copy / "t")
    kept = disk.open(ref).files()
    for path in [p for p in (copy / "t").rglob("*") if p.is_file()]:
        name = path.relative_to(copy / "t").as_posix()
        if name not in kept and not any(k.endswith("/") and name.startswith(k) for k in kept):
            path.unlink()
    swept = LanceTables(str(copy), fsync=False)
    table = swept.open(ref)
    assert table.scan(SCHEMA.names) == expected
    assert addresses(table, "k104") is not None
    assert (
        swept.stage(ref, TableEdit(append=rows(900), indices=BTREE)).rows == expected.num_rows + 1
    )


@pytest.mark.parametrize("version", [9, 2**63 + 12345])
def test_a_missing_version_is_corruption_that_names_it(store: LanceTables, version: int) -> None:
    store.create("t", SCHEMA)
    for path in ("t", "absent"):
        with pytest.raises(Corrupt, match=f"version {version} of table {path}"):
            store.open(TableRef(path, version))


def test_damaged_files_are_corruption(disk: LanceTables, tmp_path: Path) -> None:
    staged = staged_rows(disk, 100)
    copy = tmp_path / "copy"
    for folder, damage in (("data", b"short"), ("data", None), ("_versions", b"short")):
        shutil.copytree(tmp_path / "t", copy / "t")
        for path in (copy / "t" / folder).glob("*.lance" if folder == "data" else "d*.manifest"):
            path.unlink() if damage is None else path.write_bytes(damage)
        with pytest.raises(Corrupt):
            LanceTables(str(copy), fsync=False).open(staged.ref).scan(["id"])
        shutil.rmtree(copy)
        copy = copy.with_name(copy.name + "x")


def test_a_table_that_cleans_up_by_itself_is_refused(tmp_path: Path) -> None:
    lance.write_dataset(
        rows(0), str(tmp_path / "t"), auto_cleanup_options={"interval": 1, "older_than_seconds": 0}
    )
    with pytest.raises(Corrupt, match="clean up automatically"):
        LanceTables(str(tmp_path), fsync=False).open(TableRef("t", 1))


def test_a_version_opened_before_costs_nothing(disk: LanceTables, tmp_path: Path) -> None:
    staged = staged_rows(disk, 3)
    with metrics.operation("open") as cost:
        disk.open(staged.ref)
        LanceTables(str(tmp_path)).open(staged.ref)
    assert (cost.opens, cost.ops) == (0, 0)


def test_an_append_of_one_row_costs_three_requests(disk: LanceTables) -> None:
    base = staged_rows(disk, 5000)
    with metrics.operation("append") as cost:
        disk.stage(base.ref, TableEdit(append=rows(9000)))
    assert (cost.ops, cost.stages) == (3, 3)


def test_sync_reaches_every_file_and_directory_of_a_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = LanceTables(str(tmp_path), fsync=True)
    synced: set[str] = set()
    monkeypatch.setattr(
        "omnigraph.storage.disk.sync",
        lambda path: synced.add(path.relative_to(tmp_path).as_posix()),
    )
    ref = store.create("nodes/t", SCHEMA)
    assert {".", "nodes", "nodes/t", "nodes/t/_versions"} <= synced
    staged = store.stage(ref, TableEdit(append=rows(0, 3), indices=BTREE))
    store.sync([staged])
    for name in store.open(staged.ref).files() - {"_versions/latest_version_hint.json"}:
        assert any(path.startswith(f"nodes/t/{name}") for path in synced), name
    assert {"nodes/t/data", "nodes/t/_indices"} <= synced


def test_what_was_synced_once_is_not_synced_after_a_lost_race(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = LanceTables(str(tmp_path), fsync=True)
    base = store.stage(store.create("t", SCHEMA), TableEdit(append=rows(0, 3))).ref
    staged = store.stage(base, TableEdit(append=rows(10, 5000)))
    store.sync([staged])
    newer = store.stage(base, TableEdit(append=rows(20_000, 5000))).ref
    again = store.recommit(staged, newer)
    assert again is not None
    synced: list[str] = []
    monkeypatch.setattr(
        "omnigraph.storage.disk.sync",
        lambda path: synced.append(path.relative_to(tmp_path).as_posix()),
    )
    store.sync([again])
    assert not [path for path in synced if path.endswith(".lance")]
    assert f"t/{manifest_file(again.ref.version)}" in synced


def test_the_values_of_a_new_column_are_written_side_by_side(
    disk: LanceTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many at a time as there are fragments: one after the other, each would wait for the one before it."""
    ref = staged_rows(disk, 5000).ref
    for number in (1, 2):
        ref = disk.stage(ref, TableEdit(append=rows(number * 10_000, 5000))).ref
    meeting = threading.Barrier(3, timeout=30)
    real = LanceFragment.merge_columns

    def met(self: LanceFragment, *args: Any, **options: Any) -> Any:
        meeting.wait()
        return real(self, *args, **options)

    monkeypatch.setattr(LanceFragment, "merge_columns", met)
    new = ColumnEdit(add=((pa.field("x", pa.int64()), 7),))
    after = disk.open(disk.stage(ref, TableEdit(columns=new)).ref)
    assert after.scan(["x"])["x"].to_pylist() == [7] * 15_000


def test_deletions_are_read_once(disk: LanceTables) -> None:
    """They are compared with every version that rewritten fragments are moved to."""
    base = staged_rows(disk, 5000).ref
    gone = pa.array(np.arange(0, 2000, 2, dtype=np.uint64))
    table = disk.open(disk.stage(base, TableEdit(delete=gone)).ref)
    (fragment,) = table.fragments()
    first = table.deleted_rows(fragment)
    with metrics.operation("again") as cost:
        assert table.deleted_rows(fragment) == first == gone.cast(pa.uint32())
    assert cost.ops == 0


def test_deletion_files_are_written_side_by_side_where_requests_have_latency(
    disk: LanceTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    ref = staged_rows(disk, 5000).ref
    table = disk.open(disk.stage(ref, TableEdit(append=rows(10_000, 5000))).ref)
    meeting = threading.Barrier(2, timeout=30)
    real = LanceFragment.delete_rows

    def met(self: LanceFragment, *args: Any) -> Any:
        meeting.wait()
        return real(self, *args)

    monkeypatch.setattr(LanceFragment, "delete_rows", met)
    monkeypatch.setattr(LanceTable, "remote", True)
    numbers = [fragment.fragment_id for fragment in table.fragments()]
    change = staging.delete_rows(table, dict.fromkeys(numbers, np.arange(3, dtype=np.uint32)))
    assert sorted(fragment.id for fragment in change.updated) == sorted(numbers)
