"""A cluster whose executors share nothing with the driver but the network, and lose their processes in every phase."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.maintenance.collection import Retention, collect
from omnigraph.storage.objects import open_remote
from tests.pipeline import isolated
from tests.pipeline.cluster import Cluster, below, standalone
from tests.pipeline.isolated_work import BATCH_ROWS, BATCHES, QUERY, SCHEMA
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.nightly, pytest.mark.s3]
EXECUTOR = "CoarseGrainedExecutorBackend"
PEOPLE, EDGES, CHANGED = 3_000, 9_000, 500
WAIT_SECONDS = 900
PHASES = ("load", "merge", "query", "stream", "analytics", "maintenance", "export")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    if not isolated.can_isolate():
        pytest.skip("machines of their own need `unshare` and the rights of root")
    with standalone(tmp_path_factory.mktemp("cluster"), alone=True) as made:
        yield made


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the guide calls environment.tar.gz."""
    return isolated.packed_environment(tmp_path_factory.mktemp("packed"))


@pytest.fixture
def graph(s3_root: str) -> Graph:
    return omnigraph.init(f"{s3_root}/graph", schema=SCHEMA)


@pytest.fixture
def inputs(s3_root: str, tmp_path: Path) -> dict[str, dict[str, str]]:
    """Files in the store: new rows, and changed ones."""
    names = [f"p{i}" for i in range(PEOPLE)]
    ages = pa.array([i % 90 for i in range(PEOPLE)], pa.int32())
    ends = {
        "from": [names[i % PEOPLE] for i in range(EDGES)],
        "to": [names[i * 7 % PEOPLE] for i in range(EDGES)],
    }
    tables = {
        "people": pa.table({"name": names, "age": ages}),
        "knows": pa.table(ends),
        "older": pa.table({"name": names[:CHANGED], "age": pa.array([91] * CHANGED, pa.int32())}),
    }
    place = f"{s3_root}/input"
    for name, table in tables.items():
        pq.write_table(table, tmp_path / name, row_group_size=500)
        store, key = open_remote(f"{place}/{name}.parquet")
        store.put_file(key, tmp_path / name)
    return {
        "new": {"P": f"{place}/people.parquet", "K": f"{place}/knows.parquet"},
        "changed": {"P": f"{place}/older.parquet"},
    }


@pytest.mark.parametrize("lost", ["nothing", "executors", "workers", "shuffle files"])
def test_every_phase_ends_right_on_machines_of_their_own(
    lost: str,
    cluster: Cluster,
    environment: Path,
    graph: Graph,
    inputs: dict[str, dict[str, str]],
    s3_root: str,
    tmp_path: Path,
) -> None:
    child = _started(cluster, environment, graph, inputs, f"{s3_root}/out", tmp_path)
    with _losing(lost, cluster) as heard:
        told = _followed(child, heard)
    _all_done_once(told, graph)


def test_a_driver_killed_in_every_phase_leaves_its_work_to_the_next(
    cluster: Cluster,
    environment: Path,
    graph: Graph,
    inputs: dict[str, dict[str, str]],
    s3_root: str,
    tmp_path: Path,
) -> None:
    told: dict[str, Any] = {}
    for number, phase in enumerate(PHASES):
        out, left = f"{s3_root}/out{number}", PHASES[max(number - 1, 0) :]
        child = _started(cluster, environment, graph, inputs, out, tmp_path, left)
        told |= _followed(child, _killed_when_busy(child, phase))
        assert child.returncode == -signal.SIGKILL, f"{phase} was over too early"
        assert phase not in told
    child = _started(cluster, environment, graph, inputs, f"{s3_root}/out", tmp_path, PHASES[-1:])
    told |= _followed(child)
    assert child.returncode == 0, "the driver failed"
    _all_done_once(told, graph)
    for _ in range(2):  # which give up what the dead had begun
        collect(graph._repo, Retention(keep=1_000))
    left_over = collect(graph._repo, Retention(keep=1_000), dry_run=True)
    assert left_over.objects_deleted == 0, left_over


def _all_done_once(told: dict[str, Any], graph: Graph) -> None:
    for phase in PHASES:
        assert "error" not in told[phase], f"{phase}: {told[phase]}"
    assert told["load"]["answer"] == {"P": PEOPLE, "K": EDGES}
    assert told["merge"]["answer"] == {"P": CHANGED}
    assert told["query"]["answer"] == graph.query(QUERY, at=_after_merge(graph)).rows
    assert told["stream"]["answer"] >= BATCHES
    streamed = graph.query("query q() { match { $p: P } return { count(*) as n } }").scalar()
    assert (streamed - PEOPLE) % BATCH_ROWS == 0, "a part of a micro-batch is there"
    assert told["analytics"]["answer"] == [streamed, 1.0]
    assert told["maintenance"]["answer"] == ["P", "K"]
    assert told["export"]["answer"] == {"P": streamed, "K": EDGES}
    loads = [c for c in graph.log(limit=100) if c.kind == "load"]
    assert len(loads) == 2 + (streamed - PEOPLE) // BATCH_ROWS, (
        "a load is more or less than one commit"
    )


def test_executors_without_the_package_are_told_of(
    cluster: Cluster,
    graph: Graph,
    inputs: dict[str, dict[str, str]],
    s3_root: str,
    tmp_path: Path,
) -> None:
    child = _started(cluster, None, graph, inputs, f"{s3_root}/out", tmp_path, ("load",))
    told = _followed(child)
    assert told["load"]["error"] == "executors_differ", told["load"]
    assert len(graph.log()) == 1, "something was published"


def test_executors_whose_disk_is_full_are_told_of(
    cluster: Cluster,
    environment: Path,
    graph: Graph,
    inputs: dict[str, dict[str, str]],
    s3_root: str,
    tmp_path: Path,
) -> None:
    wanted = ("load", "analytics", "merge")
    change = {"analytics": isolated.fill_disk, "merge": isolated.empty_disk}

    def heard(said: dict[str, str]) -> None:
        if said.get("begins") in change:
            for worker in cluster.workers:
                change[said["begins"]](worker)

    child = _started(cluster, environment, graph, inputs, f"{s3_root}/out", tmp_path, wanted)
    told = _followed(child, heard)
    assert child.returncode == 0, "the driver failed"
    assert told["analytics"]["error"] == "spark_failed", told["analytics"]
    assert "No space left on device" in told["analytics"]["message"]
    assert told["merge"]["answer"] == {"P": CHANGED}, "there is room again"


# --- the driver ------------------------------------------------------------------------------------------------------


def _started(
    cluster: Cluster,
    environment: Path | None,
    graph: Graph,
    inputs: dict[str, dict[str, str]],
    out: str,
    folder: Path,
    wanted: tuple[str, ...] = PHASES,
) -> subprocess.Popen[str]:
    conf = {
        "spark.master": cluster.master,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.sql.shuffle.partitions": "2",
        "spark.task.maxFailures": "8",
        "spark.ui.liveUpdate.period": "0",  # what runs is known at once
    }
    python = str(Path(sys.executable).resolve())  # which is there, without any package
    if environment is not None:
        conf["spark.archives"] = f"{environment}#{isolated.ENVIRONMENT}"
        python = f"./{isolated.ENVIRONMENT}/bin/python"
    given = {
        "graph": graph.uri,
        "inputs": inputs,
        "out": out,
        "folder": str(folder / "checkpoint"),
        "conf": conf,
        "wanted": wanted,
    }
    with (folder / "driver.log").open("w") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.pipeline.isolated_work", json.dumps(given)],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            process_group=0,
            env={
                **os.environ,
                "PYSPARK_PYTHON": python,
                "SPARK_LOCAL_IP": "127.0.0.1",
                "OMNIGRAPH_SPARK_LOG": str(folder / "spark.log"),
            },
        )


def _followed(
    child: subprocess.Popen[str], heard: Callable[[dict[str, str]], None] = lambda _: None
) -> dict[str, Any]:
    """What came of every phase; somebody is told as each begins and as its tasks run."""
    told: dict[str, Any] = {}
    assert child.stdout is not None
    try:
        for said in map(json.loads, child.stdout):
            if "phase" in said:
                told[said["phase"]] = said
            else:
                heard(said)
        child.wait(timeout=WAIT_SECONDS)
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
    return told


def _killed_when_busy(child: subprocess.Popen[str], phase: str) -> Callable[[dict[str, str]], None]:
    def heard(said: dict[str, str]) -> None:
        if said.get("busy") == phase:
            os.killpg(child.pid, signal.SIGKILL)

    return heard


@contextmanager
def _losing(what: str, cluster: Cluster) -> Iterator[Callable[[dict[str, str]], None]]:
    """Something is lost in every phase: by turns an executor or a worker, or what stages have left for others."""
    lost: list[str] = []

    def heard(said: dict[str, str]) -> None:
        if "busy" not in said:
            return
        turn = len(lost) % 2
        lost.append(said["busy"])
        if what == "executors":
            _kill_executor(cluster.workers[turn])
        elif what == "workers":
            cluster.replace_worker(turn)

    if what == "shuffle files":
        with _Vandal(cluster) as vandal:
            yield lambda said: vandal.again.set() if "begins" in said else None
        assert vandal.files, "nothing was lost"
    else:
        yield heard
        assert tuple(lost) == PHASES, "not every phase had tasks that were seen"


class _Vandal:
    """Removes shuffle files, once in every phase that has any."""

    def __init__(self, cluster: Cluster) -> None:
        self.again, self.over = Event(), Event()
        self.files = 0
        self._cluster = cluster
        self._thread = Thread(target=self._run)

    def _run(self) -> None:
        while not self.over.is_set():
            if self.again.is_set():
                found = sum(map(isolated.lose_shuffle_files, self._cluster.workers))
                self.files += found
                if found:
                    self.again.clear()
            self.over.wait(0.05)

    def __enter__(self) -> _Vandal:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self._thread.join()


def _kill_executor(worker: int) -> None:
    found = wait_until(
        lambda: below(worker, EXECUTOR), timeout=WAIT_SECONDS, interval=0.05, what="an executor"
    )
    os.kill(found[0], signal.SIGKILL)


def _after_merge(graph: Graph) -> str:
    """The commit the query has read: the second load."""
    loads = [c for c in graph.log(limit=100) if c.kind == "load"]
    return loads[-2].id
