"""Files whose few bytes stand for very many rows are refused before they are unpacked; all others read as they are."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omnigraph.errors import LimitExceeded
from omnigraph.write.input.preview import preview
from omnigraph.write.input.unpacking import (
    CHUNKS_MAX,
    read_ipc,
    read_parquet_file,
    spread_size,
)
from tests.support.rings import count

ROOM = 8 << 20
REFUSALS = (pa.ArrowException, OSError, UnicodeDecodeError, LimitExceeded)
LONG = "x" * (1 << 16)
TABLE = pa.table(
    {
        "text": ["a" * 10, None, "ö"] * 100,
        "texts": [["x" * 5, "y"], None, []] * 100,
        "vector": pa.array([[1.0, 2.0]] * 300, pa.list_(pa.float32(), 2)),
        "nothing": pa.nulls(300),
        "both": [{"a": "q", "b": 1}] * 300,
        "chosen": pa.array(["abc", "de", None] * 100).dictionary_encode(),
        "bytes": pa.array([b"12345678"] * 300, pa.binary(8)),
    }
)
VIEWED = pa.array(["a long text, not inside of its view"] * 300).cast(pa.string_view())
LISTED = pa.array([["a", "bc"], None, []] * 100, pa.list_view(pa.string()))
VIEWS = TABLE.append_column("view", VIEWED).append_column("listed", LISTED)


def ipc(
    table: pa.Table, compression: str | None = None, new: Callable[..., Any] = pa.ipc.new_stream
) -> pa.Buffer:
    sink = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with new(sink, table.schema, options=options) as writer:
        writer.write_table(table, max(table.num_rows // 3, 100))
    return pa.py_buffer(sink.getvalue())


def parquet(folder: Path, table: pa.Table, **options: Any) -> Path:
    pq.write_table(table, folder / "some.parquet", **options)
    return folder / "some.parquet"


def read(file: Path, room: int | None, rows: int | None = None) -> pa.Table:
    return read_parquet_file(str(file), room, rows)


# --- what fits -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("room", [ROOM, None])
@pytest.mark.parametrize("compression", [None, "zstd", "lz4"])
@pytest.mark.parametrize("new", [pa.ipc.new_stream, pa.ipc.new_file], ids=["stream", "file"])
def test_arrow_that_fits_is_read(
    new: Callable[..., Any], compression: str | None, room: int | None
) -> None:
    assert read_ipc(ipc(VIEWS, compression, new), room).equals(VIEWS)


@pytest.mark.parametrize("room", [ROOM, 100_000, None])
@pytest.mark.parametrize(
    "options",
    [{}, {"use_dictionary": False}, {"row_group_size": 100}, {"compression": "zstd"}],
    ids=["plain", "no dictionary", "row groups", "packed"],
)
def test_parquet_that_fits_is_read(
    tmp_path: Path, options: dict[str, Any], room: int | None
) -> None:
    file = parquet(tmp_path, TABLE, **options)
    assert read(file, room).equals(pq.read_table(file))
    assert read(file, room, 130).equals(pq.read_table(file).slice(0, 130))
    assert read(file, room, 0).num_rows == 0


def test_the_size_of_a_table_is_that_of_its_values() -> None:
    plain = TABLE.select(["text"])
    chosen = pa.table({"text": plain["text"].dictionary_encode()})
    letters = sum(len(t.encode()) for t in plain["text"].to_pylist() if t is not None)
    assert spread_size(chosen) == letters + 300 * 8
    assert letters < spread_size(plain) < letters + 300 * 8 + 300 * 5


# --- what does not ---------------------------------------------------------------------------------------------------


def named_often(rows: int = 1000) -> pa.Table:
    return pa.table(
        {"text": pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array([LONG]))}
    )


def viewed_often(rows: int = 1000) -> pa.Table:
    one = pa.array([LONG]).cast(pa.string_view())
    bits, views, *texts = one.buffers()
    many = pa.py_buffer(views.to_pybytes()[:16] * rows)
    return pa.table({"text": pa.Array.from_buffers(pa.string_view(), rows, [bits, many, *texts])})


PACKED = {
    "values that are packed": lambda: ipc(pa.table({"n": pa.array([0] * (2 << 20))}), "zstd"),
    "texts that are named often": lambda: ipc(named_often()),
    "texts that are viewed often": lambda: ipc(viewed_often()),
    "texts of lists that are named often": lambda: ipc(
        pa.table({"l": pa.ListArray.from_arrays([0, 1000], named_often()["text"].combine_chunks())})
    ),
    "lists that are viewed often": lambda: ipc(
        pa.table(
            {
                "l": pa.ListViewArray.from_arrays(
                    pa.array([0] * 1000, pa.int32()),
                    pa.array([100] * 1000, pa.int32()),
                    pa.array(["x" * 1000] * 100),
                )
            }
        )
    ),
    "rows without anything": lambda: _rows_of_nothing(1 << 30),
}


def _rows_of_nothing(rows: int) -> pa.Buffer:
    """They take no byte, however many there are."""
    sink = io.BytesIO()
    nothing = pa.Array.from_buffers(pa.null(), rows, [None])
    batch = pa.record_batch([nothing], ["nothing"])
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return pa.py_buffer(sink.getvalue())


@pytest.mark.parametrize("kind", PACKED)
def test_arrow_that_unpacks_to_too_much_is_refused(kind: str) -> None:
    data = PACKED[kind]()
    assert data.size < ROOM / 8
    before = pa.total_allocated_bytes()
    with pytest.raises(LimitExceeded) as refused:
        read_ipc(data, ROOM)
    assert refused.value.details["limit"] == "unpacked_bytes_max"
    assert refused.value.details["actual"] > ROOM
    assert pa.total_allocated_bytes() - before < ROOM


STORED: dict[str, tuple[Callable[[], pa.Table], dict[str, Any]]] = {
    "texts that are named often": (named_often, {}),
    "numbers that are named often": (lambda: pa.table({"n": pa.array([0] * (2 << 20))}), {}),
    "lists of numbers": (
        lambda: pa.table({"v": pa.array([[0.0] * 1000] * 2000, pa.list_(pa.float64()))}),
        {},
    ),
    "lists of texts that are named often": (
        lambda: pa.table({"l": pa.array([[LONG] * 10] * 100)}),
        {},
    ),
    "lists of texts, and the file begins anew": (
        lambda: pa.table({"l": pa.array([[f"{n}{LONG}"] * 10 for n in range(40)] * 10)}),
        {"dictionary_pagesize_limit": 1 << 20},
    ),
    "texts that begin like the one before": (
        lambda: pa.table({"t": ["q" * 5000] * 20_000}),
        {"use_dictionary": False, "column_encoding": {"t": "DELTA_BYTE_ARRAY"}},
    ),
    "bytes of one width that are named often": (
        lambda: pa.table({"b": pa.array([bytes(4096)] * 4096, pa.binary(4096))}),
        {},
    ),
}


@pytest.mark.parametrize("kind", STORED)
def test_parquet_that_unpacks_to_too_much_is_refused(tmp_path: Path, kind: str) -> None:
    make, options = STORED[kind]
    file = parquet(tmp_path, make(), compression="zstd", **options)
    assert file.stat().st_size < ROOM
    before = pa.total_allocated_bytes()
    with pytest.raises(LimitExceeded) as refused:
        read(file, ROOM)
    assert refused.value.details["limit"] == "unpacked_bytes_max"
    assert pa.total_allocated_bytes() - before < ROOM
    with pytest.raises(LimitExceeded):
        preview(str(file), 10_000, ROOM)


def test_parquet_in_very_many_pieces_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert CHUNKS_MAX >= 10_000, "files of a thousand columns and some row groups are no attack"
    monkeypatch.setattr("omnigraph.write.input.unpacking.CHUNKS_MAX", 20)
    with pytest.raises(LimitExceeded) as refused:
        read(parquet(tmp_path, TABLE, row_group_size=100), ROOM)
    assert refused.value.details["limit"] == "chunks_max"


def test_nobody_who_vouches_for_a_file_is_refused(tmp_path: Path) -> None:
    assert read(parquet(tmp_path, named_often()), None).num_rows == 1000
    assert read_ipc(ipc(named_often()), None).num_rows == 1000


# --- what is damaged -------------------------------------------------------------------------------------------------


def damaged(whole: bytes, random: Random) -> bytes:
    """The same with some bytes changed, more often near the end, where Parquet describes itself."""
    data = bytearray(whole)
    for _ in range(random.choice((1, 1, 4, 20))):
        place = random.randrange(len(data))
        if random.random() < 0.5:
            place = max(len(data) - 1 - int(random.expovariate(1 / 1500)), 0)
        data[place] = random.randrange(256)
    if random.random() < 0.05:
        del data[random.randrange(len(data)) :]
    return bytes(data)


@pytest.mark.parametrize("compression", [None, "zstd"])
def test_arrow_that_is_damaged_is_refused_or_read(compression: str | None) -> None:
    """Whatever the bytes are: one of Arrow's errors or ours, or a table that is valid."""
    random, whole = Random(7), ipc(VIEWS, compression).to_pybytes()
    refused = 0
    for _ in range(count(1_000, 5_000)):
        try:
            read_ipc(pa.py_buffer(damaged(whole, random)), ROOM).validate(full=True)
        except REFUSALS:
            refused += 1
    assert refused


@pytest.mark.parametrize("options", [{}, {"row_group_size": 100}, {"compression": "zstd"}], ids=str)
def test_parquet_that_is_damaged_is_refused_or_read(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    """The same; and nothing ends the process, as asking Arrow for a damaged description does."""
    random, whole = Random(7), parquet(tmp_path, TABLE, **options).read_bytes()
    file, refused = tmp_path / "damaged.parquet", 0
    for _ in range(count(100, 1_000)):
        file.write_bytes(damaged(whole, random))
        try:
            read(file, ROOM).validate(full=True)
        except REFUSALS:
            refused += 1
    assert refused
