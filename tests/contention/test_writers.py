"""Many processes writing one branch at once, while others are being killed: one chain, everything acknowledged, once.

Defends G1 to G4. Every write is logged by whoever makes it; the checkers compare the logs with the chain and the rows.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.support import rings
from tests.support.nursery import Nursery, is_running, kill
from tests.support.processes import Child, read_log, spawn
from tests.support.s3server import S3Address
from tests.support.waiting import wait_until
from tests.support.writers import SHARED, check_writes, heads_moved, new_graph, write_nodes

PROCESSES = rings.count(3, 6)
COMMITS = rings.count(10, 40)
VICTIMS = 2  # processes that are killed all the time, besides


@pytest.fixture(params=["local disk", "s3"])
def uri(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "s3":
        root: str = request.getfixturevalue("s3_root")
        return root
    return str(tmp_path / "graph")


@pytest.fixture
def options(uri: str, request: pytest.FixtureRequest) -> dict[str, str]:
    """What Lance itself needs to look at the tables."""
    if not uri.startswith("s3://"):
        return {}
    address: S3Address = request.getfixturevalue("s3")
    return address.storage_options()


@contextmanager
def killed_all_the_time(uri: str, logs: Path) -> Iterator[None]:
    """Writers that come and are killed in the middle of their work, as long as the block lasts."""
    over, gate = threading.Event(), threading.Lock()

    def keep_killing(slot: int) -> None:
        for life in itertools.takewhile(lambda _: not over.is_set(), itertools.count()):
            writer = f"victim{slot}.{life}"
            log = logs / f"{writer}.log"
            with gate:
                arguments = {"uri": uri, "writer": writer, "types": SHARED}
                pid = nursery.start(write_nodes, arguments, log=log)
            wait_until(partial(enough, log, pid), timeout=120, what="the moment to kill")
            kill(pid)

    def enough(log: Path, pid: int) -> bool:
        writes_again = len(read_log(log)) >= 3  # in the middle of its second write
        return writes_again or over.is_set() or not is_running(pid)

    with Nursery() as nursery, ThreadPoolExecutor(VICTIMS) as pool:
        killing = pool.map(keep_killing, range(VICTIMS))
        try:
            yield
        finally:
            over.set()
            list(killing)


@pytest.mark.parametrize("layout", ["same table", "disjoint tables"])
def test_all_acknowledged_commits_are_there_once_in_one_chain(
    layout: str, uri: str, options: dict[str, str], tmp_path: Path
) -> None:
    log = tmp_path / "log"
    new_graph(uri, PROCESSES)
    with killed_all_the_time(uri, tmp_path):
        children = [start(uri, log, layout, writer) for writer in range(PROCESSES)]
        for child in children:
            child.wait(timeout=600)
    acknowledged = [record for record in read_log(log) if record["type"] == "ok"]
    assert len(acknowledged) == PROCESSES * COMMITS, "a writer that was not killed gave up"
    killed = [record for each in tmp_path.glob("victim*.log") for record in read_log(each)]
    assert killed, "nobody was killed"
    assert check_writes(uri, read_log(log) + killed) == []
    assert heads_moved(uri, options) == []


def start(uri: str, log: Path, layout: str, writer: int) -> Child:
    types = SHARED if layout == "same table" else [f"Own{writer}"]
    arguments = {"uri": uri, "writer": f"w{writer}", "types": types, "count": COMMITS}
    environment = {name: text for name, text in os.environ.items() if name.startswith("AWS_")}
    return spawn(write_nodes, arguments, log=log, environment=environment)
