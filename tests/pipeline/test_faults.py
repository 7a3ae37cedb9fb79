"""Killed executors, killed drivers, failed and doubled tasks: all of a load or nothing, and each row once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.core.leases import stored_plans
from tests.pipeline.planes import SCHEMA, edge, person, write_lines
from tests.support.waiting import wait_until

pytestmark = pytest.mark.xdist_group("spark")
PEOPLE = 400
WAIT_SECONDS = 240
CLUSTER = "local-cluster[2,1,1024]"


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return omnigraph.init(tmp_path / "graph", schema=SCHEMA)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    people = [person(f"p{i:04}@x", age=i % 100) for i in range(PEOPLE)]
    knows = [edge("Knows", f"p{i:04}@x", f"p{(i * 7) % PEOPLE:04}@x") for i in range(PEOPLE)]
    return write_lines(tmp_path / "data.jsonl", [*people, *knows])


Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(graph: Graph, data: Path) -> Iterator[Start]:
    """Starts a load in a process group of its own."""
    running: list[subprocess.Popen[str]] = []

    def begin(master: str, fault: str, **conf: str) -> subprocess.Popen[str]:
        given = {
            "graph": graph.uri,
            "data": str(data),
            "load_id": "one",
            "master": master,
            "fault": fault,
            "conf": conf,
        }
        command = [sys.executable, "-m", "tests.pipeline.faulty_load", json.dumps(given)]
        child = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, process_group=0
        )
        running.append(child)
        return child

    yield begin
    for child in running:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
        child.communicate()


def test_a_killed_executor_costs_only_its_tasks(graph: Graph, start: Start) -> None:
    child = start(CLUSTER, "slow")
    executors = _wait(child, lambda: _staged(graph) and _executors(child.pid))
    os.kill(executors[0], signal.SIGKILL)
    _finished(child)
    _each_row_once(graph)


def test_a_killed_driver_leaves_nothing_and_the_load_is_resumed(
    graph: Graph, data: Path, start: Start, spark: Any
) -> None:
    child = start("local[2]", "slow")
    done = _wait(child, lambda: _noted(graph))
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    assert len(graph.log()) == 1, "something was published"
    assert _noted(graph) >= done, "the progress is lost"
    again = graph.load(str(data), mode="append", engine="spark", idempotency_key="one")
    assert again.nodes == {"Person": PEOPLE}
    _each_row_once(graph)
    repeated = graph.load(str(data), mode="append", engine="spark", idempotency_key="one")
    assert repeated.replayed
    assert repeated.commit == again.commit
    assert not list(stored_plans(graph._repo))


@pytest.mark.nightly
def test_tasks_that_fail_after_writing_are_run_again(graph: Graph, start: Start) -> None:
    _finished(start("local[2,3]", "fails"))
    _each_row_once(graph)


@pytest.mark.nightly
def test_twins_of_slow_tasks_do_not_count(graph: Graph, start: Start) -> None:
    speculation = {
        "spark.speculation": "true",
        "spark.speculation.interval": "200ms",
        "spark.speculation.quantile": "0.3",
        "spark.speculation.multiplier": "1.1",
    }
    _finished(start(CLUSTER, "twin", **speculation))
    _each_row_once(graph)


# --- what is asked ---------------------------------------------------------------------------------------------------


def _each_row_once(graph: Graph) -> None:
    assert len(graph.log()) == 2, "a load is one commit"
    counted = graph.query(
        "query q() { match { $p: Person } return { count(*) as n, count(distinct $p) as d } }"
    )
    assert counted.rows == [{"n": PEOPLE, "d": PEOPLE}]
    edges = graph.query(
        "query q() { match { $p: Person $p $e:knows $q } return { count(*) as n } }"
    )
    assert edges.scalar() == PEOPLE


def _wait(child: subprocess.Popen[str], ready: Callable[[], Any]) -> Any:
    """What a condition gives once it gives something."""

    def still() -> Any:
        assert child.poll() is None, f"the load ended too early: {child.communicate()}"
        return ready()

    return wait_until(still, timeout=WAIT_SECONDS, interval=0.05, what="the load")


def _finished(child: subprocess.Popen[str]) -> None:
    out, err = child.communicate(timeout=WAIT_SECONDS)
    assert child.returncode == 0, err
    assert json.loads(out.splitlines()[-1])["commit"]


def _staged(graph: Graph) -> int:
    return len(list(Path(graph.uri).glob("nodes/*/data/*.lance")))


def _noted(graph: Graph) -> int:
    return sum(len(plan.state.get("done", ())) for plan in stored_plans(graph._repo))


def _executors(driver: int) -> list[int]:
    """The Java processes of executors below a driver."""
    parents: dict[int, int] = {}
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            command = (entry / "cmdline").read_bytes()
            parents[int(entry.name)] = int(
                (entry / "stat").read_text().rsplit(")", 1)[1].split()[1]
            )
        except OSError:
            continue
        if b"CoarseGrainedExecutorBackend" in command:
            found.append(int(entry.name))
    return [pid for pid in found if driver in _ancestors(pid, parents)]


def _ancestors(pid: int, parents: dict[int, int]) -> list[int]:
    found = []
    while pid in parents:
        pid = parents[pid]
        found.append(pid)
    return found
