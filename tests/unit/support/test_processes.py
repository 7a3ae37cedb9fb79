"""Children run, die when told to, and what they acknowledged is known afterwards."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import obstore
import pytest

from tests.support.faulty_s3 import FaultyS3
from tests.support.processes import acknowledge, read_log, spawn
from tests.support.s3server import S3Address
from tests.unit.support.clients import object_store


def count_up(limit: int) -> None:
    for number in range(limit):
        acknowledge({"number": number, "pid": os.getpid()})


def count_forever() -> None:
    number = 0
    while True:
        acknowledge({"number": number})
        number += 1


def fail() -> None:
    raise RuntimeError("on purpose")


def put_in_turn(port: int) -> None:
    store = object_store(S3Address(port))
    for number in range(100):
        obstore.put(store, f"{number}", b"")
        acknowledge({"number": number})


def test_a_child_runs_to_its_end_and_its_records_are_kept(tmp_path: Path) -> None:
    child = spawn(count_up, {"limit": 3}, log=tmp_path / "log")
    child.wait()
    assert [record["number"] for record in child.records()] == [0, 1, 2]
    assert child.records()[0]["pid"] != os.getpid()


def test_children_share_a_log(tmp_path: Path) -> None:
    children = [spawn(count_up, {"limit": 50}, log=tmp_path / "log") for _ in range(2)]
    for child in children:
        child.wait()
    pids = [record["pid"] for record in read_log(tmp_path / "log")]
    assert sorted(map(pids.count, set(pids))) == [50, 50]


def test_a_child_is_killed_at_the_moment_asked_for(tmp_path: Path) -> None:
    child = spawn(count_forever, {}, log=tmp_path / "log")
    assert child.kill_when(lambda: len(child.records()) >= 3)
    assert child.process.returncode == -signal.SIGKILL
    numbers = [record["number"] for record in child.records()]
    assert numbers == list(range(len(numbers)))


def test_an_end_before_the_kill_is_told(tmp_path: Path) -> None:
    child = spawn(count_up, {"limit": 1}, log=tmp_path / "log")
    assert not child.kill_when(lambda: False)


def test_a_failing_child_says_why(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="on purpose"):
        spawn(fail, {}, log=tmp_path / "log").wait()


def test_a_torn_line_was_not_acknowledged(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text('{"number": 1}\n{"num')
    assert read_log(log) == [{"number": 1}]


def test_a_child_dies_with_its_store_and_lost_nothing_acknowledged(
    faulty_s3: FaultyS3, tmp_path: Path
) -> None:
    faulty_s3.die_at(5, applied=True)
    child = spawn(put_in_turn, {"port": faulty_s3.address.port}, log=tmp_path / "log")
    assert child.kill_when(faulty_s3.died.is_set)
    assert [record["number"] for record in child.records()] == [0, 1, 2, 3]
    assert list(faulty_s3.objects()) == ["0", "1", "2", "3", "4"]
