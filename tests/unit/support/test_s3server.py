"""The real S3 server starts once for all users and leaves nothing behind."""

from __future__ import annotations

import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import lance
import obstore
import pyarrow as pa
import pytest

from tests.support import s3server
from tests.support.processes import acknowledge, read_log, spawn
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


def use_until_killed(directory: str) -> None:
    with s3server.shared(Path(directory)) as address:
        acknowledge({"port": address.port})
        signal.pause()


def test_users_share_one_server_which_ends_with_the_last_even_if_killed(tmp_path: Path) -> None:
    directory, log = tmp_path / "run", tmp_path / "log"
    users = [spawn(use_until_killed, {"directory": str(directory)}, log=log) for _ in range(2)]
    wait_until(lambda: len(read_log(log)) == 2 or any(user.has_ended() for user in users))
    first, second = (record["port"] for record in read_log(log))
    assert first == second, "both must find the same server"
    keeper = json.loads((directory / "server.json").read_text())["keeper"]
    users[0].kill()
    assert _is_alive(keeper), "it must not end while somebody uses it"
    users[1].kill()
    wait_until(lambda: not directory.exists(), what="the server to be cleaned up")
    wait_until(lambda: not _is_alive(keeper), what="the keeper to end")
    assert not list(Path("/tmp").glob(f"seaweedfs-*-{first}.sock"))


def _is_alive(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"
