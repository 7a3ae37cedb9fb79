"""One contract for every object store: local disk, memory, a real S3 server, and one whose answers get lost."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from omnigraph.errors import (
    AddressInvalid,
    Corrupt,
    ObjectExists,
    ObjectNotFound,
    StoreDenied,
    StoreError,
    StoreNotDurable,
    StoreOutcomeUnknown,
    StoreUnavailable,
)
from omnigraph.storage import metrics
from omnigraph.storage.local import LocalObjects
from omnigraph.storage.objects import (
    NUMBER_MAX,
    ObjectStore,
    locate,
    number_of,
    numbered,
    open_objects,
    s3_options,
)
from tests.support.faulty_s3 import FaultyS3

KINDS = ["local disk", "memory", "s3"]


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest) -> ObjectStore:
    fixture = {"local disk": "graph_root", "memory": "memory_root", "s3": "s3_root"}
    return open_objects(locate(request.getfixturevalue(fixture[request.param])))


def keys(store: ObjectStore, prefix: str) -> list[str]:
    return sorted(info.key for info in store.list(prefix))


# --- the contract --------------------------------------------------------------------------------------------------


def test_what_was_put_is_there_at_once(store: ObjectStore) -> None:
    store.put_new("a/b/c", b"1")
    assert store.get("a/b/c") == b"1"
    assert keys(store, "a") == ["a/b/c"]
    (info,) = store.list("a")
    assert info.size == 1
    assert info.modified.tzinfo is not None


def test_an_object_is_created_once(store: ObjectStore) -> None:
    store.put_new("a", b"first")
    with pytest.raises(ObjectExists):
        store.put_new("a", b"second")
    assert store.get("a") == b"first"


def test_of_many_creators_exactly_one_wins(store: ObjectStore) -> None:
    def create(number: int) -> bool:
        try:
            store.put_new("race/x", f"{number}".encode() * 1000)
        except ObjectExists:
            return False
        return True

    with ThreadPoolExecutor(16) as pool:
        won = [number for number, win in enumerate(pool.map(create, range(16))) if win]
    assert len(won) == 1
    assert store.get("race/x") == f"{won[0]}".encode() * 1000


def test_put_replaces_whole(store: ObjectStore) -> None:
    store.put("a", b"long content")
    store.put("a", b"short")
    assert store.get("a") == b"short"


def test_what_is_not_there(store: ObjectStore) -> None:
    with pytest.raises(ObjectNotFound):
        store.get("nothing")
    store.put_new("folder/x", b"")
    with pytest.raises(ObjectNotFound):
        store.get("folder")
    assert keys(store, "nothing") == []
    assert store.folders("nothing") == ()
    assert store.newest("nothing") is None


def test_deleting_twice_is_no_error(store: ObjectStore) -> None:
    for name in ("a/1", "a/2", "b"):
        store.put_new(name, b"x")
    store.delete(["a/1", "a/2", "missing"])
    store.delete(["a/1"])
    store.delete([])
    assert keys(store, "a") == []
    assert store.get("b") == b"x"


def test_a_listing_stays_inside_its_folder(store: ObjectStore) -> None:
    for name in ("a/1", "a/b/2", "ab/3", "a-1/4"):
        store.put_new(name, b"x")
    assert keys(store, "a") == ["a/1", "a/b/2"]
    assert store.folders("a") == ("b",)


def test_a_long_listing_is_complete(store: ObjectStore) -> None:
    names = [f"many/{number:04}" for number in range(1200)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: store.put_new(name, b""), names))
    assert keys(store, "many") == names


@pytest.mark.parametrize("count", [1, 2, 3, 9, 33])
def test_the_newest_of_a_series(store: ObjectStore, count: int) -> None:
    for number in range(count):
        store.put_new(numbered("chain", number), b"")
    assert store.newest("chain") == count - 1
    for known in {0, count // 2, count - 1}:
        assert store.newest("chain", known) == count - 1


def test_an_empty_object(store: ObjectStore) -> None:
    store.put_new("empty", b"")
    assert store.get("empty") == b""


def test_every_request_is_counted(store: ObjectStore) -> None:
    with metrics.operation("test") as cost:
        store.put_new("a", b"12345")
        store.get("a")
        store.newest("a")
        store.delete(["a"])
    assert dict(cost.kinds) == {"put": 1, "get": 1, "list": 1, "delete": 1}
    assert cost.stages == 4
    assert cost.bytes_written == 5


# --- numbers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [0, 1, 9, 255, 10**9, NUMBER_MAX])
def test_numbers_and_keys_translate_into_each_other(number: int) -> None:
    assert number_of(numbered("f", number)) == number


def test_the_newest_number_sorts_first() -> None:
    found = [numbered("f", number) for number in (0, 1, 2, 15, 16, 10**6)]
    assert found == sorted(found, reverse=True)


# --- local disk ----------------------------------------------------------------------------------------------------


def test_a_key_cannot_leave_the_root(tmp_path: Path) -> None:
    store = LocalObjects(tmp_path / "root", fsync=False)
    for key in ("../x", "a/../../x", "/etc/passwd", "a//b", ".", "a/./b", ""):
        with pytest.raises(AddressInvalid):
            store.put_new(key, b"x")
        with pytest.raises(AddressInvalid):
            store.get(key)
    assert not (tmp_path / "x").exists()


def test_an_object_is_on_the_disk_before_it_is_visible(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Content first, then the name, then the folder that holds the name."""
    order: list[str] = []
    real_fsync, real_link = os.fsync, os.link

    def fsync(handle: int) -> None:
        order.append("folder" if Path(f"/proc/self/fd/{handle}").resolve().is_dir() else "content")
        real_fsync(handle)

    def link(source: Path, target: Path) -> None:
        order.append("name")
        real_link(source, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "link", link)
    LocalObjects(tmp_path, fsync=True).put_new("chain/1", b"x")
    named = order.index("name")
    assert "content" in order[:named], order
    assert order[named + 1 :] == ["folder"], order
    order.clear()
    LocalObjects(tmp_path, fsync=False).put_new("chain/2", b"x")
    assert order == ["name"]


def test_nothing_temporary_is_left(tmp_path: Path) -> None:
    store = LocalObjects(tmp_path, fsync=False)
    store.put_new("a", b"x")
    with pytest.raises(ObjectExists):
        store.put_new("a", b"y")
    assert keys(store, "_tmp") == []


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (PermissionError(errno.EACCES, "denied"), StoreDenied),
        (OSError(errno.ENOSPC, "full"), StoreUnavailable),
        (OSError(errno.EIO, "broken"), StoreOutcomeUnknown),
    ],
)
def test_what_a_disk_can_say(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    failure: OSError,
    expected: type[StoreError],
) -> None:
    def link(source: Path, target: Path) -> None:
        raise failure

    monkeypatch.setattr(os, "link", link)
    with pytest.raises(expected):
        LocalObjects(tmp_path, fsync=False).put_new("a", b"x")


def test_a_disk_that_did_it_and_says_it_failed_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.link

    def link(source: Path, target: Path) -> None:
        real(source, target)
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(os, "link", link)
    LocalObjects(tmp_path, fsync=False).put_new("a", b"x")
    assert (tmp_path / "a").read_bytes() == b"x"


@pytest.mark.parametrize(
    "number", [errno.EIO, errno.ENOSPC, errno.EACCES, errno.EROFS, errno.EMFILE]
)
def test_an_object_whose_name_cannot_be_synced_is_there_but_not_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Before its name is there nothing has happened; afterwards it is never called a failure."""
    store = LocalObjects(tmp_path, fsync=True)
    store.put_new("chain/0", b"x")
    real, synced = os.fsync, []

    def fsync(handle: int) -> None:
        synced.append(handle)
        if len(synced) == failing:
            raise OSError(number, "broken")
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    failing = 1  # the content
    with pytest.raises((StoreDenied, StoreUnavailable)):
        store.put_new("chain/1", b"x")
    assert keys(store, "chain") == ["chain/0"]
    synced.clear()
    failing = 2  # the folder
    with pytest.raises(StoreNotDurable):
        store.put_new("chain/1", b"x")
    assert store.get("chain/1") == b"x"


def test_a_folder_whose_name_cannot_be_synced_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody may rely on a folder that a power cut could take away."""
    store = LocalObjects(tmp_path, fsync=True)
    store.put_new("first", b"x")
    real = os.fsync

    def fsync(handle: int) -> None:
        if os.readlink(f"/proc/self/fd/{handle}") == str(tmp_path):
            raise OSError(errno.EIO, "broken")
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(StoreUnavailable):
        store.put_new("chain/0", b"x")
    assert not (tmp_path / "chain").exists()


# --- links ---------------------------------------------------------------------------------------------------------


def test_nothing_is_done_through_a_link(tmp_path: Path) -> None:
    root, other = tmp_path / "root", tmp_path / "other"
    other.mkdir()
    (other / "file").write_bytes(b"mine")
    store = LocalObjects(root, fsync=False)
    store.put_new("a/b", b"x")
    (root / "link").symlink_to(other)
    (root / "a" / "file").symlink_to(other / "file")
    for use in (
        lambda: store.get("link/file"),
        lambda: store.get("a/file"),
        lambda: store.put("link/file", b"x"),
        lambda: store.put("a/file", b"x"),
        lambda: store.put_new("link/new", b"x"),
        lambda: store.delete(["link/file"]),
        lambda: store.delete(["a/file"]),
        lambda: list(store.list("link")),
        lambda: list(store.list("a")),
        lambda: list(store.list("")),
        lambda: store.folders("link"),
        lambda: store.newest("link"),
        lambda: store.stream("a/file"),
    ):
        with pytest.raises(Corrupt):
            use()
    assert [path.read_bytes() for path in other.iterdir()] == [b"mine"]


# --- stores that answer badly --------------------------------------------------------------------------------------


@pytest.fixture
def faulty(faulty_s3: FaultyS3) -> ObjectStore:
    return open_objects(locate(faulty_s3.address.uri("root")))


@pytest.mark.parametrize("cut", [False, True], ids=["error 500", "connection cut"])
def test_a_create_without_an_answer_is_unknown(
    faulty_s3: FaultyS3, faulty: ObjectStore, cut: bool
) -> None:
    """It happened, and nobody heard of it. Repeating it by itself would make it look like somebody else's."""
    faulty_s3.lose_acknowledgement(1, cut=cut)
    with pytest.raises(StoreOutcomeUnknown):
        faulty.put_new("a", b"x")
    assert faulty.get("a") == b"x"
    assert sum(entry.method == "PUT" for entry in faulty_s3.log()) == 1


def test_a_create_that_never_arrived_is_unknown_too(
    faulty_s3: FaultyS3, faulty: ObjectStore
) -> None:
    faulty_s3.slow_down(1)
    with pytest.raises(StoreOutcomeUnknown):
        faulty.put_new("a", b"x")
    with pytest.raises(ObjectNotFound):
        faulty.get("a")


READS: dict[str, Callable[[ObjectStore], object]] = {
    "get": lambda store: store.get(numbered("chain", 0)),
    "list": lambda store: [info.size for info in store.list("chain")],
    "newest": lambda store: store.newest("chain"),
}


@pytest.mark.parametrize("name", READS)
def test_reading_survives_a_hiccup(faulty_s3: FaultyS3, faulty: ObjectStore, name: str) -> None:
    faulty.put_new(numbered("chain", 0), b"x")
    expected = READS[name](faulty)
    faulty_s3.slow_down(1)
    assert READS[name](faulty) == expected


def test_refused_credentials(faulty_s3: FaultyS3, faulty: ObjectStore) -> None:
    faulty_s3.die_at(1, applied=False, deny=True)
    for step in (lambda: faulty.put_new("a", b"x"), lambda: faulty.get("a")):
        with pytest.raises(StoreDenied) as caught:
            step()
        assert "AWS_ACCESS_KEY_ID" in caught.value.help


def test_a_store_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = {
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
        "AWS_ACCESS_KEY_ID": "x",
        "AWS_SECRET_ACCESS_KEY": "x",
    }
    monkeypatch.setattr("omnigraph.storage.objects.READ_RETRIES_MAX", 0)
    store = open_objects(locate("s3://bucket/graph", environment))
    with pytest.raises(StoreUnavailable) as caught:
        store.get("a")
    assert "AWS_ENDPOINT_URL" in caught.value.help


# --- addresses -----------------------------------------------------------------------------------------------------


def test_addresses() -> None:
    assert locate("s3://bucket/a/b/", {}).uri == "s3://bucket/a/b"
    assert locate("s3://bucket", {}).uri == "s3://bucket"
    assert locate("memory://x").scheme == "memory"
    assert locate("file:///tmp/my%20graph").uri == "/tmp/my graph"
    assert locate("relative").uri == str(Path("relative").absolute())
    assert locate("~/graph").uri == str(Path("~/graph").expanduser())


def test_the_usual_variables_are_honoured() -> None:
    environment = {
        "AWS_REGION": "eu-north-1",
        "AWS_ACCESS_KEY_ID": "id",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_SESSION_TOKEN": "token",
        "AWS_ENDPOINT_URL": "http://general:1",
        "AWS_ENDPOINT_URL_S3": "http://special:2",
        "AWS_S3_FORCE_PATH_STYLE": "true",
    }
    assert s3_options(environment) == {
        "aws_region": "eu-north-1",
        "aws_access_key_id": "id",
        "aws_secret_access_key": "secret",
        "aws_session_token": "token",
        "aws_endpoint": "http://special:2",
        "aws_virtual_hosted_style_request": "false",
        "aws_allow_http": "true",
    }


def test_the_metadata_address_of_a_cloud_is_not_asked_where_that_is_switched_off() -> None:
    """Requests then go unsigned, unless there are keys from somewhere else."""
    off = {"AWS_EC2_METADATA_DISABLED": "true"}
    assert s3_options(off)["aws_skip_signature"] == "true"
    for keys in ({"AWS_ACCESS_KEY_ID": "k"}, {"AWS_WEB_IDENTITY_TOKEN_FILE": "/token"}):
        assert "aws_skip_signature" not in s3_options({**off, **keys})
    assert "aws_skip_signature" not in s3_options({})


def test_plain_amazon_needs_no_endpoint() -> None:
    assert s3_options({}) == {
        "aws_region": "us-east-1",
        "aws_virtual_hosted_style_request": "true",
    }
