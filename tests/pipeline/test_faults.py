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
from tests.pipeline.cluster import LIGHT, Cluster, below, standalone
from tests.pipeline.faulty_load import OPEN, attempts
from tests.pipeline.planes import SCHEMA, edge, person, write_lines
from tests.support.rings import count
from tests.support.waiting import wait_until

PEOPLE = 400
WAIT_SECONDS = 900
EXECUTOR = "CoarseGrainedExecutorBackend"
LOCAL_CLUSTER = "local-cluster[2,1,1024]"
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "200ms",
    "spark.speculation.quantile": "0.3",
    "spark.speculation.multiplier": "1.1",
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with standalone(tmp_path_factory.mktemp("cluster")) as made:
        yield made


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return omnigraph.init(tmp_path / "graph", schema=SCHEMA)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    people = [person(f"p{i:04}@x", age=i % 100) for i in range(PEOPLE)]
    knows = [edge("Knows", f"p{i:04}@x", f"p{(i * 7) % PEOPLE:04}@x") for i in range(PEOPLE)]
    return write_lines(tmp_path / "data.jsonl", [*people, *knows])


@pytest.fixture
def marks(tmp_path: Path) -> Path:
    folder = tmp_path / "marks"
    folder.mkdir()
    return folder


Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(graph: Graph, data: Path, marks: Path, tmp_path: Path) -> Iterator[Start]:
    """Starts a load in a process group of its own."""
    running: list[subprocess.Popen[str]] = []

    def begin(master: str, *faults: str, **conf: str) -> subprocess.Popen[str]:
        loopback = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
        given = {
            "graph": graph.uri,
            "data": str(data),
            "load_id": "one",
            "master": master,
            "faults": faults,
            "marks": str(marks),
            "conf": loopback | {"spark.executor.memory": "512m"} | conf,
        }
        command = [sys.executable, "-m", "tests.pipeline.faulty_load", json.dumps(given)]
        environment = {
            **os.environ,
            "JAVA_TOOL_OPTIONS": LIGHT,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "OMNIGRAPH_SPARK_LOG": str(tmp_path / "spark.log"),
        }
        child = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            process_group=0,
            env=environment,
        )
        running.append(child)
        return child

    yield begin
    for child in running:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
        child.communicate()


@pytest.mark.parametrize("again", range(count(1, 4)))
def test_neither_a_twin_nor_a_killed_executor_changes_the_load(
    again: int, graph: Graph, start: Start, cluster: Cluster, marks: Path
) -> None:
    child = start(cluster.master, "twin", "held", **SPECULATION)
    _wait(child, lambda: _held(marks))
    assert attempts(marks, "True-0") == 2, "no twin has run to its end"
    victim = below(cluster.workers[again % 2], EXECUTOR)
    assert victim, "the executor is not a process of its own"
    os.kill(victim[0], signal.SIGKILL)
    (marks / OPEN).touch()
    _finished(child)
    _each_row_once(graph)


@pytest.mark.parametrize("again", range(count(1, 4)))
def test_a_killed_driver_leaves_nothing_and_the_load_is_resumed(
    again: int, graph: Graph, data: Path, start: Start, marks: Path, spark: Any
) -> None:
    _killed_driver("local[2]", graph, data, start, marks)


@pytest.mark.nightly
def test_a_killed_driver_of_a_cluster(
    graph: Graph, data: Path, start: Start, cluster: Cluster, marks: Path, spark: Any
) -> None:
    _killed_driver(cluster.master, graph, data, start, marks)


@pytest.mark.nightly
def test_a_killed_driver_of_a_local_cluster(
    graph: Graph, data: Path, start: Start, marks: Path, spark: Any
) -> None:
    _killed_driver(LOCAL_CLUSTER, graph, data, start, marks)


@pytest.mark.nightly
def test_a_killed_executor_of_a_local_cluster(graph: Graph, start: Start, marks: Path) -> None:
    child = start(LOCAL_CLUSTER, "held")
    _wait(child, lambda: _held(marks))
    os.kill(below(child.pid, EXECUTOR)[0], signal.SIGKILL)
    (marks / OPEN).touch()
    _finished(child)
    _each_row_once(graph)


@pytest.mark.nightly
def test_tasks_that_fail_after_writing_are_run_again(graph: Graph, start: Start) -> None:
    _finished(start("local[2,3]", "fails"))
    _each_row_once(graph)


# --- what is asked ---------------------------------------------------------------------------------------------------


def _killed_driver(master: str, graph: Graph, data: Path, start: Start, marks: Path) -> None:
    child = start(master, "held")
    _wait(child, lambda: _held(marks))
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    (marks / OPEN).touch()  # tasks of the dead driver may go on; nobody listens to them
    assert len(graph.log()) == 1, "something was published"
    assert _noted(graph) >= 4, "the progress is lost"
    _resumed(graph, data)


def _resumed(graph: Graph, data: Path) -> None:
    """The same load again ends in exactly one commit, and once more in the same one."""
    again = graph.load(str(data), mode="append", engine="spark", idempotency_key="one")
    assert again.nodes == {"Person": PEOPLE}
    _each_row_once(graph)
    repeated = graph.load(str(data), mode="append", engine="spark", idempotency_key="one")
    assert repeated.replayed
    assert repeated.commit == again.commit
    assert not list(stored_plans(graph._repo))


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


def _held(marks: Path) -> bool:
    """Whether both cores have staged something and hold on to it."""
    return len(list(marks.glob("False-*"))) >= 2


def _noted(graph: Graph) -> int:
    return sum(len(plan.state.get("done", ())) for plan in stored_plans(graph._repo))
