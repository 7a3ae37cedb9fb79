"""Columns of table versions: positions, look-ups, and what one version reuses of another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.lang.schema import catalog_of, compile_schema
from omnigraph.read import columns as columns_module
from omnigraph.read.budget import Budget, Memory, MemoryExceeded, running, stopped
from omnigraph.read.cache import Cache
from omnigraph.read.columns import FRAGMENT_BYTES, TableColumns, columns_of
from omnigraph.storage.metrics import operation
from omnigraph.storage.tables import ColumnEdit, TableEdit
from tests.support.snapshots import Graph, make_graph

SCHEMA = "node Item { code: String @key  size: I64? }\nedge Next: Item -> Item"


def items(*codes: str) -> list[dict[str, object]]:
    return [{"id": c, "code": c, "size": ord(c[0])} for c in codes]


def opened(graph: Graph, cache: Cache) -> TableColumns:
    return columns_of(graph.snapshot, graph.catalog.nodes["Item"], cache)


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return make_graph(tmp_path, SCHEMA, {"Item": items("a", "b", "c", "d")})


def test_deleted_rows_keep_their_position_and_are_not_found(graph: Graph) -> None:
    graph.delete("Item", ["b"])
    graph.append("Item", items("e"))
    found = opened(graph, Cache())
    ids = [found.ids[int(p)].as_py() for p in found.everything]
    assert sorted(ids) == ["a", "c", "d", "e"]
    assert found.find("b") == -1
    assert found.rows == 4
    for name in ids:
        assert found.ids[found.find(name)].as_py() == name


def test_many_ids_are_found_like_single_ones(graph: Graph) -> None:
    graph.delete("Item", ["c"])
    graph.append("Item", items("x", "y"))
    found = opened(graph, Cache())
    wanted = ["y", "none", "a", "c", "x", "a"]
    assert found.find_all(pa.array(wanted)).tolist() == [found.find(w) for w in wanted]


def test_an_updated_row_is_found_where_it_is_now(graph: Graph) -> None:
    cache = Cache()
    before = opened(graph, cache)
    assert before.take("size", np.array([before.find("a")], np.int32)).to_pylist() == [97]
    graph.delete("Item", ["a"])
    graph.append("Item", [{"id": "a", "code": "a", "size": 5}])
    after = opened(graph, cache)
    assert after.take("size", np.array([after.find("a")], np.int32)).to_pylist() == [5]
    assert before.take("size", np.array([before.find("a")], np.int32)).to_pylist() == [97]


def test_columns_wanted_together_are_read_by_one_scan(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph.delete("Item", ["b"])
    graph.append("Item", items("e"))
    scans: list[list[str]] = []
    found = opened(graph, Cache())
    original = found.table.batches

    def counted(columns: list[str], **more: Any) -> Any:
        scans.append(list(columns))
        return original(columns, **more)

    monkeypatch.setattr(
        type(found.table), "batches", lambda _, columns, **more: counted(columns, **more)
    )
    found.load(["id", "code", "size"], 10**6)
    whole = [scan for scan in scans if scan]  # those without a column ask which rows are deleted
    assert whole == [["id", "code", "size"]]
    rows = [
        tuple(found.take(name, found.everything)[i].as_py() for name in ("id", "code", "size"))
        for i in range(found.rows)
    ]
    assert sorted(rows) == [("a", "a", 97), ("c", "c", 99), ("d", "d", 100), ("e", "e", 101)]
    assert [scan for scan in scans if scan] == whole, "a column was read again"


def test_no_position_is_null(graph: Graph) -> None:
    found = opened(graph, Cache())
    assert found.take("size", np.array([-1, found.find("b")], np.int32)).to_pylist() == [None, 98]


def test_addresses_and_positions_are_each_others_inverse(graph: Graph) -> None:
    graph.delete("Item", ["a"])
    graph.append("Item", items("e", "f"))
    found = opened(graph, Cache())
    assert (
        found.positions_at(found.addresses(found.everything)).tolist() == found.everything.tolist()
    )


def test_ids_of_a_table_that_is_not_loaded_are_looked_up_in_storage(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(columns_module, "PROBE_ROWS_MIN", 0)
    graph.index("Item", "id")
    found = opened(graph, Cache())
    place = found.find("c")
    assert not found.is_loaded("id")
    assert found.ids[place].as_py() == "c"


def test_what_was_read_before_a_deletion_serves_the_version_after_it(graph: Graph) -> None:
    cache = Cache()
    opened(graph, cache).column("size")
    graph.delete("Item", ["b"])
    later = opened(graph, cache)
    with operation("test") as cost:
        later.column("size")
    assert cost.ops == 0


def test_what_was_read_after_a_deletion_does_not_serve_the_version_before_it(graph: Graph) -> None:
    cache = Cache()
    before = opened(graph, cache)
    graph.delete("Item", ["b"])
    opened(graph, cache).column("size")
    assert before.column("size").to_pylist() == [97, 98, 99, 100]


def test_a_commit_that_appends_reads_only_what_it_added(tmp_path: Path) -> None:
    many = [{"id": f"i{i}", "code": f"i{i}", "size": i} for i in range(20_000)]
    graph = make_graph(tmp_path, SCHEMA, {"Item": many})
    cache = Cache()
    with operation("all") as whole:
        opened(graph, cache).column("code")
    graph.append("Item", items("z"))
    later = opened(graph, cache)
    with operation("more") as more:
        assert "z" in later.column("code").to_pylist()
    assert more.bytes_read * 10 < whole.bytes_read


def test_a_column_of_many_fragments_is_kept_once(tmp_path: Path) -> None:
    many = [{"id": f"i{i}", "code": f"i{i}", "size": i} for i in range(20_000)]
    graph = make_graph(tmp_path, SCHEMA, {"Item": many})
    graph.append("Item", [{**row, "id": f"j{i}"} for i, row in enumerate(many)])
    cache = Cache()
    found = opened(graph, cache)
    assert len(found.fragments) == 2
    before = cache.bytes_used
    whole = found.column("code")
    added = cache.bytes_used - before
    assert whole.nbytes <= added <= whole.nbytes + 2 * FRAGMENT_BYTES
    graph.append("Item", items("z"))
    later = opened(graph, cache)
    before = cache.bytes_used
    assert later.column("code").to_pylist() == [*whole.to_pylist(), "z"]
    added = cache.bytes_used - before
    assert added <= later.column("code").nbytes + 3 * FRAGMENT_BYTES


def test_what_hangs_on_a_table_is_counted(graph: Graph) -> None:
    graph.delete("Item", ["b"])
    graph.append("Item", items("e"))
    cache = Cache()
    found = opened(graph, cache)
    before = cache.bytes_used
    assert found.live is not None
    live = cache.bytes_used - before
    assert live >= found.n
    everything = found.everything
    assert cache.bytes_used - before == live + 4 * found.rows
    assert found.everything is everything
    assert (found.find("b"), found.find("e") >= 0) == (-1, True)
    indices = 12 * found.n
    assert cache.bytes_used - before >= live + 4 * found.rows + found.ids.nbytes + indices


def test_a_column_too_large_for_the_cache_is_charged_while_it_is_read(graph: Graph) -> None:
    budget = Budget(8, memory=Memory(1000))
    token = running(budget)
    try:
        with pytest.raises(MemoryExceeded, match="Columns") as error:
            opened(graph, Cache(16)).column("code")
    finally:
        stopped(token)
        budget.close()
    assert error.value.details["operator"] == "Columns"


def test_a_run_of_all_rows_is_cut_from_its_column(graph: Graph) -> None:
    found = opened(graph, Cache())
    some = found.take("code", found.everything[1:3])
    assert some.to_pylist() == ["b", "c"]
    assert some.buffers()[2].address == found.column("code").buffers()[2].address
    assert found.take("code", found.everything[::-1]).to_pylist() == ["d", "c", "b", "a"]


def test_a_name_that_came_to_mean_another_column_is_read_anew(tmp_path: Path) -> None:
    """Renaming moves no data: the same files, a different column under the old name."""
    text = "node Item { code: String @key  a: I64?  b: I64? }"
    graph = make_graph(tmp_path, text, {"Item": [{"id": "x", "code": "x", "a": 1, "b": 2}]})
    cache = Cache()
    assert opened(graph, cache).column("a").to_pylist() == [1]
    graph.edit("Item", TableEdit(columns=ColumnEdit(rename=(("a", "c"),))))
    graph.edit("Item", TableEdit(columns=ColumnEdit(rename=(("b", "a"),))))
    once = 'node Item { code: String @key  c: I64? @rename_from("a")  b: I64? }'
    twice = 'node Item { code: String @key  c: I64?  a: I64? @rename_from("b") }'
    first = compile_schema(once, accepted=compile_schema(text))
    graph.catalog = catalog_of(compile_schema(twice, accepted=first))
    assert opened(graph, cache).column("a").to_pylist() == [2]


# --- vectors -----------------------------------------------------------------------------------------------------

VECTORS = "node Item { code: String @key  v: Vector(64)? }"


def with_vectors(*codes: str) -> list[dict[str, object]]:
    return [{"id": c, "code": c, "v": None if c == "n" else [float(ord(c))] * 64} for c in codes]


@pytest.fixture
def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Graph:
    """A table whose every column counts as large."""
    monkeypatch.setattr(columns_module, "SCANNED_FROM_BYTES_MIN", 0)
    made = make_graph(tmp_path, VECTORS, {"Item": with_vectors("a", "n", "c", "d")})
    made.delete("Item", ["c"])
    made.append("Item", with_vectors("e", "f"))
    return made


def test_vectors_are_loaded_when_they_are_scanned_again(large: Graph) -> None:
    found = opened(large, Cache())
    assert not found.prefers_column("v", found.n)
    assert found.prefers_column("v", found.n)
    found.column("v")
    assert found.is_loaded("v")


def test_vectors_the_cache_cannot_keep_are_never_loaded(large: Graph) -> None:
    found = opened(large, Cache(6 * 256 * 2 - 1))
    assert not any(found.prefers_column("v", wanted) for wanted in [6] * 20 + [1] * 20)
    assert not found.is_loaded("v")


def test_pieces_and_single_rows_are_what_the_column_holds(large: Graph) -> None:
    found = opened(large, Cache())
    pieces: dict[int, Any] = {}
    for at, values in found.pieces("v"):
        pieces.update(zip(at.tolist(), values.to_pylist(), strict=True))
    alone = found.alone("v", found.everything).to_pylist()
    assert not found.is_loaded("v")
    whole = found.column("v").to_pylist()
    assert pieces == {int(p): whole[p] for p in found.everything}
    assert alone == [whole[p] for p in found.everything]
    assert sorted(v[0] for v in alone if v is not None) == [97, 100, 101, 102]


def test_vectors_of_two_versions_are_held_once(large: Graph) -> None:
    cache = Cache()
    opened(large, cache).column("v")
    large.append("Item", with_vectors("g"))
    after = opened(large, cache)
    reads: list[Any] = []
    original = after.table.batches

    def counted(names: list[str], **more: Any) -> Any:
        reads.append(more["fragments"])
        return original(names, **more)

    object.__setattr__(after.table, "batches", counted)
    whole = after.column("v")
    assert reads == [[after.fragments[-1].fragment_id]]
    memory = whole.values.buffers()[1].address
    for fragment in after.fragments:
        chunk = after._found(fragment, "v")[1]
        assert chunk is not None
        assert chunk.values.buffers()[1].address == memory
