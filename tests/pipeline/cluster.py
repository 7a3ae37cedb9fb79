"""A standalone Spark cluster of real processes on loopback: a master, and workers on addresses of their own.

Workers need different addresses because Spark never runs a speculative copy of a task on the host of the first one.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

from tests.pipeline import isolated
from tests.support.waiting import wait_until

HOME = Path(pyspark.__file__).parent
START_SECONDS = 600
LIGHT = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # short-lived processes do not pay for more


@dataclass(slots=True)
class Cluster:
    """What a load needs to know of a cluster, and what a test may kill."""

    master: str
    start_worker: Callable[[int], int]
    workers: list[int]  # process ids

    def replace_worker(self, index: int) -> None:
        """A worker and its executors are killed, as if their machine were lost; another takes its place."""
        os.killpg(self.workers[index], signal.SIGKILL)
        self.workers[index] = self.start_worker(index)


@contextmanager
def standalone(folder: Path, *, alone: bool = False) -> Iterator[Cluster]:
    """Two workers of one core each, and their master; all gone afterwards. Workers that are `alone` share no file."""
    running: list[subprocess.Popen[bytes]] = []

    def begin(name: str, kind: str, host: str, *words: str) -> Path:
        log = folder / f"{name}-{len(running)}.log"
        command = [str(HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}"]
        command += ["--host", host, "--webui-port", "0", *words]
        separate = alone and kind == "worker.Worker"
        if separate:
            command = isolated.worker_command(command)
        own = folder / f"own{len(running)}"
        environment = {
            **(isolated.worker_environment(own) if separate else os.environ),
            "SPARK_HOME": str(HOME),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": LIGHT,
            "SPARK_LOCAL_IP": host,
        }
        with log.open("wb") as out:
            running.append(
                subprocess.Popen(command, stdout=out, stderr=out, env=environment, process_group=0)
            )
        return log

    def start_worker(index: int) -> int:
        number = index + 1
        work = "/mnt/work" if alone else str(folder / f"work{number}")
        words = ("--cores", "1", "--memory", "1g", "--work-dir", work)
        log = begin(f"worker{number}", "worker.Worker", f"127.0.0.{number}", *words, master)
        _said(log, "(Successfully registered with master)")
        return running[-1].pid

    try:
        log = begin("master", "master.Master", "127.0.0.1", "--port", "0")
        master = _said(log, r"(spark://127\.0\.0\.1:[1-9][0-9]*)")
        yield Cluster(master, start_worker, [start_worker(index) for index in (0, 1)])
    finally:
        for child in running:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()


def _said(log: Path, pattern: str) -> str:
    """What a process wrote to its log."""

    def look() -> str:
        found = re.search(pattern, log.read_text(errors="replace"))
        return found[1] if found else ""

    return wait_until(look, timeout=START_SECONDS, interval=0.1, what=f"{pattern} in {log}")


def below(pid: int, name: str) -> list[int]:
    """The processes under another whose command line has a name in it."""
    parents: dict[int, int] = {}
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            command = (entry / "cmdline").read_bytes()
            stat = (entry / "stat").read_text()
        except OSError:
            continue
        parents[int(entry.name)] = int(stat.rsplit(")", 1)[1].split()[1])
        if name.encode() in command:
            found.append(int(entry.name))
    return [each for each in found if pid in _ancestors(each, parents)]


def _ancestors(pid: int, parents: dict[int, int]) -> list[int]:
    found = []
    while pid in parents:
        pid = parents[pid]
        found.append(pid)
    return found
