"""Processes killed with SIGKILL while they write to a graph on a local disk: nothing acknowledged is lost (G2, G5)."""

from __future__ import annotations

import random
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from omnigraph.core.gc import Retention, collect
from omnigraph.graph import open_graph
from tests.support import rings
from tests.support.processes import Child, read_log, spawn
from tests.support.worlds import add_person, people
from tests.support.writers import SHARED, check_writes, heads_moved, new_graph, write_nodes

VICTIMS_AT_ONCE = 3


def one_victim(uri: str, logs: Path, victim: int) -> None:
    """Start a writer and kill it anywhere within one of its later writes."""
    chance = random.Random(victim)
    arguments = {"uri": uri, "writer": f"v{victim}", "types": SHARED}
    child = spawn(write_nodes, arguments, log=logs / f"{victim}.log")
    wanted = 2 * chance.randint(1, 4)  # a line when a write begins, another when it is acknowledged

    def due() -> bool:
        return len(child.records()) >= wanted and still_at_work(child, chance.random() * 0.02)

    try:
        child.kill_when(due, timeout=120)
    finally:
        child.kill()
    assert child.process.returncode == -signal.SIGKILL, child.errors.read_text()[-2000:]


def still_at_work(child: Child, seconds: float) -> bool:
    """Let it go on for a moment."""
    try:
        child.process.wait(seconds)
    except subprocess.TimeoutExpired:
        return True
    return False


def all_records(logs: Path) -> list[dict[str, Any]]:
    return [record for log in sorted(logs.glob("*.log")) for record in read_log(log)]


def test_nothing_acknowledged_is_lost_when_writers_are_killed(tmp_path: Path) -> None:
    uri = str(tmp_path / "graph")
    new_graph(uri, 0)
    victims = rings.count(12, 500)
    with ThreadPoolExecutor(VICTIMS_AT_ONCE) as pool:
        list(pool.map(lambda victim: one_victim(uri, tmp_path, victim), range(victims)))
    records = all_records(tmp_path)
    assert len({record["process"] for record in records}) == victims
    assert check_writes(uri, records) == []
    assert heads_moved(uri) == []


def test_the_files_of_the_killed_are_collected_and_the_graph_goes_on(tmp_path: Path) -> None:
    uri = str(tmp_path / "graph")
    new_graph(uri, 0)
    for victim in range(rings.count(3, 20)):
        one_victim(uri, tmp_path, victim)
    graph = open_graph(uri)
    for _ in range(2):
        collect(graph._repo, Retention(keep=1000))
    assert collect(graph._repo, Retention(keep=1000), dry_run=True).objects_deleted == 0
    assert check_writes(uri, all_records(tmp_path)) == []
    graph.publish(add_person("after"))
    assert "after" in people(open_graph(uri)._repo)
