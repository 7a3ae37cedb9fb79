"""The real S3 server starts once for all users and leaves nothing behind."""

from __future__ import annotations

import json
import multiprocessing
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import lance
import obstore
import pyarrow as pa
import pytest

from tests.support import s3server
from tests.support.s3server import S3Address
from tests.support.waiting import wait_until
from tests.unit.support.clients import object_store

pytestmark = pytest.mark.s3


def test_create_only_puts_have_one_winner(s3: S3Address, prefix: str) -> None:
    store = object_store(s3, prefix)

    def create(racer: int) -> bool:
        try:
            obstore.put(store, "key", bytes([racer]), mode="create")
        except obstore.exceptions.AlreadyExistsError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(create, range(8))).count(True) == 1


def test_lance_writes_and_reads(s3: S3Address, s3_root: str) -> None:
    table = pa.table({"id": [1, 2, 3]})
    lance.write_dataset(table, s3_root, storage_options=s3.storage_options())
    assert lance.dataset(s3_root, storage_options=s3.storage_options()).count_rows() == 3


def test_the_environment_alone_is_enough(s3: S3Address, prefix: str) -> None:
    assert os.environ["AWS_ENDPOINT_URL"] == s3.endpoint
    store = obstore.store.from_url(s3.uri(prefix), client_options={"allow_http": True})
    obstore.put(store, "key", b"value")
    assert bytes(obstore.get(object_store(s3, prefix), "key").bytes()) == b"value"


def test_users_share_one_server_which_ends_with_the_last(s3: S3Address, tmp_path: Path) -> None:
    directory = tmp_path / "run"
    context = multiprocessing.get_context("spawn")
    with s3server.shared(directory) as mine:
        keeper = json.loads((directory / "server.json").read_text())["keeper"]
        user = context.Process(target=_use, args=(directory, mine.port))
        user.start()
        user.join(30)
        assert user.exitcode == 0, "another process must find the same server"
        assert _is_alive(keeper), "it must not end while somebody uses it"
    wait_until(lambda: not directory.exists(), what="the server to be cleaned up")
    wait_until(lambda: not _is_alive(keeper), what="the keeper to end")
    assert not list(Path("/tmp").glob(f"seaweedfs-*-{mine.port}.sock"))
    assert mine.port != s3.port


def _use(directory: Path, port: int) -> None:
    with s3server.shared(directory) as address:
        assert address.port == port


def _is_alive(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"
