"""What we rely on in pylance, each behaviour on its own and with nothing of ours in between.

A failure after an upgrade does not say that pylance is wrong; it says which rule of ours has to be thought through
again. Each test names the rule. Run the random model test of the table store for longer as well.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance import LanceDataset, Transaction
from lance import LanceOperation as Operation
from lance.dataset import Index
from lance.fragment import FragmentMetadata, write_fragments
from lance.optimize import Compaction, CompactionOptions, CompactionTask
from lance.schema import LanceSchema

SCHEMA = pa.schema([("id", pa.string()), ("v", pa.int64()), ("txt", pa.string())])


def rows(first: int, count: int) -> pa.Table:
    ids = range(first, first + count)
    data = {"id": [f"k{i}" for i in ids], "v": list(ids), "txt": [f"word{i % 5} t{i}" for i in ids]}
    return pa.table(data, schema=SCHEMA)


def commit(handle: LanceDataset, operation: Any) -> LanceDataset:
    return LanceDataset.commit(handle, Transaction(handle.version, operation), detached=True)


def append(handle: LanceDataset, data: pa.Table) -> LanceDataset:
    return commit(handle, Operation.Append(write_fragments(data, handle)))


def update(
    handle: LanceDataset,
    removed: list[int] | None = None,
    updated: list[FragmentMetadata] | None = None,
    new: list[FragmentMetadata] | None = None,
) -> LanceDataset:
    operation = Operation.Update(
        removed_fragment_ids=removed or [],
        updated_fragments=updated or [],
        new_fragments=new or [],
        update_mode="rewrite_rows",
    )
    return commit(handle, operation)


def fragment_ids(handle: LanceDataset) -> list[int]:
    return [fragment.fragment_id for fragment in handle.get_fragments()]


def segment(
    handle: LanceDataset, column: str, kind: str, fragments: list[int] | None = None
) -> Any:
    covering = fragment_ids(handle) if fragments is None else fragments
    return handle.create_index_uncommitted(column, kind, name=f"i_{column}", fragment_ids=covering)


def found(handle: LanceDataset, text: str) -> list[str]:
    return sorted(handle.to_table(filter=text, columns=["id"])["id"].to_pylist())


def covered(handle: LanceDataset) -> list[list[int]]:
    return [
        sorted(each.fragment_ids) for index in handle.describe_indices() for each in index.segments
    ]


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "t")


@pytest.fixture
def first(path: str) -> LanceDataset:
    """A new table: one ordinary version without rows."""
    return lance.write_dataset(SCHEMA.empty_table(), path, data_storage_version="2.2")


@pytest.fixture
def base(first: LanceDataset) -> LanceDataset:
    """Two fragments of ten rows, detached."""
    return append(append(first, rows(0, 10)), rows(10, 10))


# --- detached commits ------------------------------------------------------------------------------------------------


def test_the_pinned_version_is_the_one_under_test() -> None:
    """Rule: the Lance version is pinned, and everything below was established for it."""
    assert lance.__version__ == "14.0.2"


def test_a_detached_commit_leaves_the_head_alone(path: str, base: LanceDataset) -> None:
    """Rule: a version nobody names is invisible. Heads stay at 1 whatever is committed."""
    assert base.version >= 2**63
    assert lance.dataset(path).version == 1
    assert lance.dataset(path, version=base.version).count_rows() == 20


def test_a_table_cannot_begin_detached(path: str) -> None:
    """Rule: the first version is an ordinary commit, and the only one."""
    with pytest.raises(OSError, match="create new datasets"):
        LanceDataset.commit(path, Operation.Overwrite(SCHEMA, []), detached=True)


def test_versions_of_one_base_never_conflict(base: LanceDataset) -> None:
    """Rule: the graph's own conditional put decides races; Lance checks nothing between siblings."""
    one, two = append(base, rows(50, 1)), append(base, rows(60, 1))
    assert (one.count_rows(), two.count_rows()) == (21, 21)
    assert one.version != two.version


def test_a_detached_commit_takes_the_handle_as_base_not_the_transaction(base: LanceDataset) -> None:
    """Rule: read_version must equal the handle's version before each commit, because Lance does not look."""
    newer = append(base, rows(50, 1))
    stale = Transaction(base.version, Operation.Append(write_fragments(rows(60, 1), base)))
    on_newer = LanceDataset.commit(newer, stale, detached=True)
    assert on_newer.count_rows() == 22


@pytest.mark.parametrize(
    "write",
    [
        lambda h: lance.write_dataset(rows(90, 1), h, mode="append"),
        lambda h: h.delete("v = 1"),
        lambda h: h.update({"v": "v + 1"}),
        lambda h: h.merge_insert("id").when_matched_update_all().execute(rows(1, 1)),
        lambda h: h.create_scalar_index("id", "BTREE"),
        lambda h: h.optimize.compact_files(target_rows_per_fragment=1000),
    ],
)
def test_direct_writes_on_a_detached_handle_fail_cleanly(
    path: str, base: LanceDataset, write: Callable[[LanceDataset], Any]
) -> None:
    """Rule: only our own commit call commits; a stray direct call must not move a head or change a version."""
    handle = lance.dataset(path, version=base.version)
    with pytest.raises((OSError, RuntimeError, ValueError)):
        write(handle)
    assert lance.dataset(path).version == 1
    assert lance.dataset(path, version=base.version).to_table() == base.to_table()


def test_staged_fragments_go_onto_another_base_unchanged(base: LanceDataset) -> None:
    """Rule: a lost race re-commits appended fragments without writing data again, also from their description."""
    (staged,) = write_fragments(rows(50, 2), base)
    again = FragmentMetadata.from_json(json.dumps(staged.to_json()))
    other = append(base, rows(60, 1))
    assert commit(other, Operation.Append([again])).count_rows() == 23


def test_fragments_are_written_through_any_handle_of_the_same_columns(
    first: LanceDataset, base: LanceDataset
) -> None:
    """Rule: data files are written through an older handle to spare a read of the newer manifest."""
    new = write_fragments(rows(50, 2), first)
    assert commit(base, Operation.Append(new)).count_rows() == 22


# --- deletions and fragments -----------------------------------------------------------------------------------------


def test_rows_are_deleted_by_offset(base: LanceDataset) -> None:
    """Rule: deletion costs what is deleted. `delete_rows` adds to the deletion file and scans nothing."""
    once = update(base, updated=[base.get_fragment(0).delete_rows([2, 3])])
    twice = update(once, updated=[once.get_fragment(0).delete_rows([3, 4])])
    assert twice.get_fragment(0).metadata.num_deletions == 3
    assert found(twice, "v < 7") == ["k0", "k1", "k5", "k6"]
    assert twice.get_fragment(0).delete_rows(range(10)) is None
    with pytest.raises(ValueError, match="out of range"):
        base.get_fragment(0).delete_rows([10])


def test_an_update_removes_changes_and_adds_fragments_in_one_version(base: LanceDataset) -> None:
    """Rule: deletions, appends and absorbed fragments of one table become one detached version."""
    thinned = base.get_fragment(0).delete_rows([0])
    both = update(base, [1], [thinned], write_fragments(rows(50, 2), base))
    assert found(both, "true") == sorted([*(f"k{i}" for i in range(1, 10)), "k50", "k51"])


def test_an_update_gives_new_fragments_ids_never_used_before(base: LanceDataset) -> None:
    """Rule: fragment ids in index coverage never come to mean other data, so coverage may keep ids of the gone."""
    replaced = update(base, removed=[0, 1], new=write_fragments(rows(50, 1), base))
    emptied = update(replaced, removed=fragment_ids(replaced))
    refilled = append(emptied, rows(60, 1))
    ids = [fragment_ids(each) for each in (base, replaced, emptied, refilled)]
    assert ids == [[0, 1], [2], [], [3]]


def test_row_addresses_are_row_ids(base: LanceDataset) -> None:
    """Rule: tables have no stable row ids, so `_rowaddr` (fragment id, offset) also takes rows."""
    assert not base.has_stable_row_ids
    table = base.scanner(columns=["id"], with_row_address=True, filter="v = 13").to_table()
    (address,) = table["_rowaddr"].to_pylist()
    assert (address >> 32, address & 0xFFFFFFFF) == (1, 3)
    assert base._take_rows(pa.array([address, 0], pa.uint64()), columns=["id"])[
        "id"
    ].to_pylist() == ["k13", "k0"]


def test_compaction_results_carry_no_usable_fragment_id(base: LanceDataset) -> None:
    """Rule: a Rewrite would take the ids as they come (0, that of an existing fragment); an Update assigns them."""
    plan = Compaction.plan(base, CompactionOptions(target_rows_per_fragment=1000))
    (result,) = [task.execute(base) for task in plan.tasks]
    assert [fragment.id for fragment in result.new_fragments] == [0]
    assert [fragment.id for fragment in result.original_fragments] == [0, 1]
    compacted = update(base, [0, 1], [], list(result.new_fragments))
    assert fragment_ids(compacted) == [2]
    assert compacted.to_table() == base.to_table()


def test_the_path_of_a_data_file_is_an_attribute_as_well(base: LanceDataset) -> None:
    """Rule: paths are read from the attribute, because the property makes a class at every call."""
    for each in base.get_fragments():
        for file in each.metadata.files:
            assert file._path == str(file.path)


def test_a_compaction_task_may_name_any_fragments(base: LanceDataset) -> None:
    """Rule: tasks are made here, of fragments Lance keeps apart because an index knows only one of them."""
    indexed = commit(base, Operation.CreateIndex([segment(base, "v", "BTREE", [0])], []))
    options = CompactionOptions(target_rows_per_fragment=1000)
    assert not Compaction.plan(indexed, options).tasks
    task = json.loads(Compaction.plan(base, options).tasks[0].json())
    task["read_version"] = indexed.version
    task["task"]["fragments"] = [each.metadata.to_json() for each in indexed.get_fragments()]
    result = CompactionTask.from_json(json.dumps(task)).execute(indexed)
    compacted = update(indexed, [0, 1], [], list(result.new_fragments))
    assert fragment_ids(compacted) == [2]
    assert compacted.to_table() == base.to_table()


# --- indices ---------------------------------------------------------------------------------------------------------


def test_an_index_answers_right_with_any_coverage(base: LanceDataset) -> None:
    """Rule: indices are derived state. Uncovered fragments are scanned, removed ones are forgotten."""
    indexed = commit(base, Operation.CreateIndex([segment(base, "v", "BTREE", [0])], []))
    assert found(indexed, "v = 3") == ["k3"]
    assert found(indexed, "v = 13") == ["k13"]
    moved = update(indexed, removed=[0], new=write_fragments(rows(3, 1), indexed))
    assert covered(moved) == [[0]]
    assert (found(moved, "v = 3"), found(moved, "v = 4")) == (["k3"], [])


def test_segments_extend_an_index(base: LanceDataset) -> None:
    """Rule: upkeep adds a segment over uncovered fragments, under the index's name."""
    one = commit(base, Operation.CreateIndex([segment(base, "v", "BTREE", [0])], []))
    built = one.create_index_uncommitted("v", "BTREE", name="other", fragment_ids=[1])
    two = commit(one, Operation.CreateIndex([dataclasses.replace(built, name="i_v")], []))
    assert covered(two) == [[0], [1]]
    assert (found(two, "v = 3"), found(two, "v = 13")) == (["k3"], ["k13"])
    assert "ScalarIndexQuery" in two.scanner(filter="v = 3").explain_plan()


def test_a_segment_under_a_name_in_use_must_be_built_under_another(base: LanceDataset) -> None:
    """Rule: segments are built under a temporary name and renamed before the commit."""
    one = commit(base, Operation.CreateIndex([segment(base, "v", "BTREE", [0])], []))
    with pytest.raises(RuntimeError, match="already exists"):
        segment(one, "v", "BTREE", [1])


def test_rewritten_rows_are_right_beside_a_new_segment(base: LanceDataset) -> None:
    """Rule: whole-row rewrites only, and no stable row ids: then a segment over the new home is never wrong."""
    indexed = commit(base, Operation.CreateIndex([segment(base, "v", "BTREE")], []))
    thinned = indexed.get_fragment(0).delete_rows([3])
    changed = pa.table({"id": ["k3"], "v": [777], "txt": ["x"]}, schema=SCHEMA)
    moved = update(indexed, [], [thinned], write_fragments(changed, indexed))
    built = moved.create_index_uncommitted("v", "BTREE", name="other", fragment_ids=[2])
    both = commit(moved, Operation.CreateIndex([dataclasses.replace(built, name="i_v")], []))
    assert (found(both, "v = 777"), found(both, "v = 3")) == (["k3"], [])


def test_an_index_put_over_rewritten_columns_is_wrong(base: LanceDataset) -> None:
    """Rule: columns are never rewritten in place, and an index for another base drops fragments whose files differ."""
    built = segment(base, "v", "BTREE")
    change = pa.table({"id": ["k3"], "v": pa.array([777], pa.int64())})
    builder = base.merge_insert("id").when_matched_update_all().write_mode("rewrite_columns")
    transaction, _ = builder.execute_uncommitted(change)
    newer = LanceDataset.commit(base, transaction, detached=True)
    files = [[file.path for file in f.metadata.files] for f in newer.get_fragments()]
    assert files != [[file.path for file in f.metadata.files] for f in base.get_fragments()]
    stale = commit(newer, Operation.CreateIndex([built], []))
    assert found(stale, "v = 777") == []


def test_an_inverted_segment_needs_the_merge_step(base: LanceDataset) -> None:
    """Rule: full-text segments are merged (alone) before they are committed."""
    raw = commit(base, Operation.CreateIndex([segment(base, "txt", "INVERTED")], []))
    with pytest.raises((ValueError, OSError)):
        raw.to_table(full_text_query="word3")
    merged = base.merge_existing_index_segments([segment(base, "txt", "INVERTED")])
    ready = commit(base, Operation.CreateIndex([merged], []))
    assert ready.to_table(full_text_query="word3", columns=["id"]).num_rows == 4


def test_an_index_is_dropped_by_what_its_description_says(base: LanceDataset) -> None:
    """Rule: segments to drop are rebuilt from descriptions, because transactions of others are not kept."""
    indexed = commit(base, Operation.CreateIndex([segment(base, "v", "BTREE")], []))
    (description,) = indexed.describe_indices()
    (part,) = description.segments
    old = Index(
        uuid=part.uuid,
        name=description.name,
        fields=list(description.fields),
        dataset_version=part.dataset_version_at_last_update,
        fragment_ids=set(part.fragment_ids),
        index_version=part.index_version,
    )
    assert commit(indexed, Operation.CreateIndex([], [old])).describe_indices() == []


def test_changing_rows_leaves_index_descriptions_as_they_are(base: LanceDataset) -> None:
    """Rule: a version made by changing rows takes over the descriptions of its base unread."""
    indexed = commit(base, Operation.CreateIndex([segment(base, "v", "BTREE")], []))
    changed = update(indexed, removed=[0], new=write_fragments(rows(50, 1), indexed))
    assert covered(changed) == covered(indexed)
    assert [i.name for i in changed.describe_indices()] == ["i_v"]


# --- columns ---------------------------------------------------------------------------------------------------------


def test_a_schema_is_pickled_as_field_messages_we_can_edit(base: LanceDataset) -> None:
    """Rule: renames, drops and null columns change the list of fields only, with ids kept."""
    make, (metadata, *messages) = base.lance_schema.__reduce__()
    assert make == LanceSchema._from_protos
    assert [(f.name(), f.id()) for f in make(metadata, *messages).fields()] == [
        ("id", 0),
        ("v", 1),
        ("txt", 2),
    ]
    renamed = [
        message.replace(b"\x12\x01v", b"\x12\x01x") for message in messages if b"txt" not in message
    ]
    indexed = commit(
        base,
        Operation.CreateIndex([segment(base, "v", "BTREE"), segment(base, "txt", "BTREE")], []),
    )
    after = commit(indexed, Operation.Project(make(metadata, *renamed)))
    assert after.schema.names == ["id", "x"]
    assert found(after, "x = 13") == ["k13"]
    assert [i.name for i in after.describe_indices()] == ["i_v"]
    assert (
        after._ds.max_field_id == 2
    )  # ids of dropped fields that data files still mention are not free


def test_a_field_no_data_file_has_reads_as_null(base: LanceDataset) -> None:
    """Rule: adding a column without a value writes no data."""
    make, (metadata, *messages) = base.lance_schema.__reduce__()
    (_, (_, message)) = LanceSchema.from_pyarrow(pa.schema([("n", pa.int64())])).__reduce__()
    added = message.replace(b"\x12\x01n", b"\x12\x01n\x18\x03")
    after = commit(base, Operation.Project(make(metadata, *messages, added)))
    assert after.to_table(columns=["n"])["n"].null_count == 20
    assert append(after, pa.table({"id": ["z"], "n": [1]})).to_table(filter="n = 1").num_rows == 1


# --- files -----------------------------------------------------------------------------------------------------------


def test_lance_cleanup_destroys_what_only_detached_versions_hold(
    path: str, base: LanceDataset
) -> None:
    """Rule: Lance's cleanup is never called, and tables that ask for it are refused at open."""
    head = lance.write_dataset(rows(70, 1), path, mode="append")
    head.cleanup_old_versions(older_than=timedelta(0), delete_unverified=True)
    with pytest.raises((ValueError, OSError)):
        lance.dataset(path, version=base.version).to_table()


def test_a_table_has_no_cleanup_of_its_own_unless_asked(first: LanceDataset) -> None:
    """Rule: a config key `lance.auto_cleanup.*` means somebody asked for it."""
    assert not any(key.startswith("lance.auto_cleanup") for key in first.config())


def test_the_files_of_a_version_are_those_its_metadata_names(path: str, base: LanceDataset) -> None:
    """Rule: garbage collection keeps named files, the manifest and the first version's manifest, and nothing else."""
    indexed = commit(base, Operation.CreateIndex([segment(base, "v", "BTREE")], []))
    version = update(indexed, updated=[indexed.get_fragment(0).delete_rows([1])])
    kept = {f"_versions/d{version.version}.manifest", f"_versions/{2**64 - 2:020d}.manifest"}
    for fragment in version.get_fragments():
        kept |= {f"data/{file.path}" for file in fragment.metadata.files}
        if fragment.metadata.deletion_file:
            kept.add(fragment.metadata.deletion_file.path(fragment.fragment_id))
    folders = {f"_indices/{s.uuid}" for i in version.describe_indices() for s in i.segments}
    for file in [p for p in Path(path).rglob("*") if p.is_file()]:
        name = file.relative_to(path).as_posix()
        if name not in kept and not any(name.startswith(folder) for folder in folders):
            file.unlink()
    shutil.copytree(path, path + "-copy")  # another address, so that no cache helps
    swept = lance.dataset(path + "-copy", version=version.version, session=lance.Session())
    assert swept.to_table() == version.to_table()
    assert found(append(swept, rows(50, 1)), "v = 50 or v = 12") == ["k12", "k50"]


def test_blobs_lie_in_a_folder_named_after_their_data_file(path: str) -> None:
    """Rule: garbage collection keeps that folder with the data file."""
    schema = pa.schema([pa.field("id", pa.string()), lance.blob_field("b")])
    data = pa.table({"id": ["x"], "b": lance.blob_array([b"B" * 300_000])}, schema=schema)
    handle = lance.write_dataset(schema.empty_table(), path, data_storage_version="2.2")
    (file,) = append(handle, data).get_fragments()[0].metadata.files
    (blob,) = Path(path).rglob("*.blob")
    assert blob.parent == Path(path) / "data" / file.path.removesuffix(".lance")


# --- filters and keys ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("indexed", "inserted"), [(False, 1), (True, 0)])
def test_merge_insert_treats_keys_carelessly(
    base: LanceDataset, indexed: bool, inserted: int
) -> None:
    """Rule: upserts are deletions plus appends of keys we checked. merge_insert doubles new keys, and inserts a null
    key or silently drops it, depending on an index.
    """
    if indexed:
        base = commit(base, Operation.CreateIndex([segment(base, "id", "BTREE")], []))

    def inserted_rows(ids: list[str | None]) -> int:
        builder = base.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
        data = pa.table({"id": ids, "v": [1] * len(ids), "txt": [""] * len(ids)}, schema=SCHEMA)
        return int(builder.execute_uncommitted(data)[1]["num_inserted_rows"])

    assert inserted_rows([None]) == inserted
    assert inserted_rows(["new", "new"]) == 2


def test_filters_mean_what_the_renderer_assumes(path: str) -> None:
    """Rule: floats are ordered by their bits, but zeros are equal; quoting is by backtick and doubled quote."""
    numbers = [float("nan"), float("inf"), 0.0, -0.0, 1.5, None, -float("nan")]
    handle = lance.write_dataset(pa.table({"f": numbers, "n": range(7), "a b": ["it's"] * 7}), path)

    def chosen(text: str) -> list[int]:
        values: list[int] = handle.to_table(filter=text, columns=["n"])["n"].to_pylist()
        return values

    assert chosen("f = cast('nan' as double)") == [0]
    assert chosen("f > 1.5") == [0, 1]
    assert chosen("f < 0.0") == [6]
    assert chosen("f < 0.0 AND f >= cast('-inf' as double)") == []
    assert chosen("isnan(f)") == [0, 6]
    assert chosen("f = 0.0") == chosen("f = -0.0") == [2, 3]
    assert chosen("`a b` = 'it''s' AND `n` <> 3") == [0, 1, 2, 4, 5, 6]
    assert chosen("n = arrow_cast(2, 'Int64')") == [2]


def test_requests_are_counted_by_the_names_we_use(base: LanceDataset) -> None:
    """Rule: reads are counted from a handle's statistics."""
    base.io_stats_incremental()
    base.to_table()
    stats = base.io_stats_incremental()
    assert stats.read_iops > 0
    assert stats.read_bytes > 0
    assert stats.write_iops == stats.written_bytes == 0


def test_private_calls_still_have_their_shape() -> None:
    """Rule: `_take_rows` and `delete_rows` are not public; they are used where nothing public is as cheap."""
    assert list(inspect.signature(LanceDataset._take_rows).parameters)[:3] == [
        "self",
        "row_ids",
        "columns",
    ]
    assert list(inspect.signature(lance.LanceFragment.delete_rows).parameters) == [
        "self",
        "offsets",
    ]
