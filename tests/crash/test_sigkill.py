"""Processes killed with SIGKILL while they write to a graph on a local disk: nothing acknowledged is lost (G2, G5)."""

from __future__ import annotations

import random
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from omnigraph.core.gc import Retention, collect
from omnigraph.graph import open_graph
from tests.support import rings
from tests.support.processes import read_log, spawn
from tests.support.worlds import add_person
from tests.support.writers import SHARED, check_writes, heads_moved, new_graph, write_nodes

VICTIMS_AT_ONCE = 3


def acknowledged(log: Path, prefix: str) -> int:
    return sum(
        record["type"] == "ok" and record["id"].startswith(prefix) for record in read_log(log)
    )


def one_victim(uri: str, log: Path, victim: int) -> None:
    chance = random.Random(victim)
    child = spawn(write_nodes, {"uri": uri, "writer": f"v{victim}", "types": SHARED}, log=log)
    wanted = chance.randint(1, 4)
    try:
        child.kill_when(
            lambda: acknowledged(log, f"v{victim}-") >= wanted and not wait(child.process, chance),
            timeout=120,
        )
    finally:
        child.kill()
    assert child.process.returncode == -9, child.errors.read_text()[-2000:]


def wait(process: subprocess.Popen[bytes], chance: random.Random) -> bool:
    """Let a few more milliseconds pass, so that the kill hits anywhere within a write; whether the child ended."""
    try:
        process.wait(chance.random() * 0.02)
    except subprocess.TimeoutExpired:
        return False
    return True


def test_nothing_acknowledged_is_lost_when_writers_are_killed(tmp_path: Path) -> None:
    uri, log = str(tmp_path / "graph"), tmp_path / "log"
    new_graph(uri, 0)
    victims = rings.count(50, 500)
    with ThreadPoolExecutor(VICTIMS_AT_ONCE) as pool:
        list(pool.map(lambda victim: one_victim(uri, log, victim), range(victims)))
    records = read_log(log)
    assert len({record["process"] for record in records}) == victims
    assert check_writes(uri, records) == []
    assert heads_moved(uri) == []


def test_the_files_of_the_killed_are_collected_and_the_graph_goes_on(tmp_path: Path) -> None:
    uri, log = str(tmp_path / "graph"), tmp_path / "log"
    new_graph(uri, 0)
    for victim in range(rings.count(3, 20)):
        one_victim(uri, log, victim)
    graph = open_graph(uri)
    for _ in range(2):
        collect(graph._repo, Retention(keep=1000))
    assert collect(graph._repo, Retention(keep=1000), dry_run=True).objects_deleted == 0
    assert check_writes(uri, read_log(log)) == []
    graph.publish(add_person("after"), message="after")
