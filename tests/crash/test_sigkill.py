"""Processes killed with SIGKILL in the middle of their work on a local disk: nothing acknowledged is lost (G2, G5).

Writers, compactors, collectors, mergers and commands die at random moments, several at a time, hundreds on one graph.
Their logs lie outside of it and are synced line by line. (Servers and Spark drivers are killed in their own folders,
tests/server and tests/pipeline.)
"""

from __future__ import annotations

import os
import random
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from omnigraph.graph import open_graph
from omnigraph.maintenance.collection import Retention, collect
from tests.crash.victims import VICTIMS
from tests.support import rings
from tests.support.nursery import Nursery, is_running, kill
from tests.support.processes import read_log
from tests.support.record import record
from tests.support.waiting import wait_until
from tests.support.worlds import add_person, people
from tests.support.writers import check_writes, heads_moved, new_graph

KILLS = int(os.environ.get("OMNIGRAPH_KILLS", rings.count(14, 500)))  # fewer on a busy machine
KILLS_OF_A_GRAPH = 200  # collectors keep all of a graph's history, so that it can be compared; more makes them slow
AT_ONCE = 3
SECONDS_MAX = 0.1  # how long a victim lives on after its first word, at most


def one_victim(nursery: Nursery, gate: threading.Lock, uri: str, logs: Path, number: int) -> None:
    """Start a victim and kill it anywhere in one of its first writes."""
    chance = random.Random(number)
    wanted = 1 + 2 * chance.randint(0, 3)  # lines: a write begins, it is acknowledged, and so on
    log = logs / f"{number}.log"
    with gate:
        arguments = {"uri": uri, "name": f"v{number}"}
        pid = nursery.start(VICTIMS[number % len(VICTIMS)], arguments, log=log)
    errors = log.with_name(f"{log.name}.errors")
    try:
        wait_until(
            lambda: len(read_log(log)) >= wanted or not is_running(pid),
            timeout=300,
            what=f"victim {number}",
        )
        threading.Event().wait(chance.random() * SECONDS_MAX)
        assert is_running(pid), f"victim {number} ended by itself: {errors.read_text()[-2000:]}"
    finally:
        kill(pid)


def all_records(logs: Path) -> list[dict[str, Any]]:
    return [record for log in sorted(logs.glob("*.log")) for record in read_log(log)]


def test_nothing_acknowledged_is_lost_when_processes_are_killed(tmp_path: Path) -> None:
    acknowledged = 0
    with Nursery() as nursery, ThreadPoolExecutor(AT_ONCE) as pool:
        for first in range(0, KILLS, KILLS_OF_A_GRAPH):
            folder, gate = tmp_path / f"from-{first}", threading.Lock()
            folder.mkdir()
            uri = str(folder / "graph")
            new_graph(uri, 0)
            victims = range(first, min(first + KILLS_OF_A_GRAPH, KILLS))
            list(pool.map(partial(one_victim, nursery, gate, uri, folder), victims))
            acknowledged += survived(uri, all_records(folder))
            shutil.rmtree(folder)
    record(
        "kill -9",
        {"kills": KILLS, "acknowledged": acknowledged, "lost acknowledgements": 0, "left over": 0},
    )


def survived(uri: str, records: list[dict[str, Any]]) -> int:
    """Nothing is lost, torn, left over or out of order; how many writes were acknowledged."""
    acknowledged = [line for line in records if line["type"] == "ok"]
    assert acknowledged, "nobody got anything done: nothing was tested"
    assert check_writes(uri, records) == []
    assert heads_moved(uri) == []
    assert leftovers(uri) == 0, "something is left over after cleanup"
    graph = open_graph(uri)
    graph.publish(add_person("after"))
    assert "after" in people(open_graph(uri)._repo)
    assert graph.doctor().healthy
    return len(acknowledged)


def leftovers(uri: str) -> int:
    """What a third collection would still find; the first two give up what the dead had begun."""
    graph = open_graph(uri)
    for branch in graph.branches():
        if branch != "main":
            graph.delete_branch(branch)
    for _ in range(2):
        collect(graph._repo, Retention(keep=100_000))
    return collect(graph._repo, Retention(keep=100_000), dry_run=True).objects_deleted
