"""One opened version, many threads: who builds an index does not keep others from reading, and is not kept by them."""

from __future__ import annotations

import threading
from pathlib import Path

import pyarrow as pa

from omnigraph.storage.lance import LanceTables
from omnigraph.storage.tables import IndexEdit, TableEdit

SCHEMA = pa.schema([pa.field("id", pa.string(), nullable=False), pa.field("v", pa.int64())])
ROWS = 20_000


def test_an_index_is_built_while_others_read_the_same_version(tmp_path: Path) -> None:
    store = LanceTables(str(tmp_path), fsync=False)
    rows = pa.table({"id": [f"k{i}" for i in range(ROWS)], "v": range(ROWS)}, schema=SCHEMA)
    base = store.stage(store.create("t", SCHEMA), TableEdit(append=rows)).ref
    over = threading.Event()
    reading = threading.Event()
    failures: list[Exception] = []

    def read() -> None:
        while not over.is_set():
            try:
                assert store.open(base).count() == ROWS
            except Exception as error:
                failures.append(error)
                return
            finally:
                reading.set()

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    reading.wait()
    try:
        for _ in range(5):
            built = store.stage(base, TableEdit(indices=(IndexEdit("id", "BTREE"),)))
            assert store.open(built.ref).indices(), "no index was built"
    finally:
        over.set()
        for reader in readers:
            reader.join()
    assert failures == [], "a reader met the lock of an index build"
