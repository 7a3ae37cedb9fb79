"""Everything Spark does for a graph, one after the other, in a driver: `python -m tests.pipeline.isolated_work JSON`.

Each line it prints is an object: the name of what begins, that tasks of it are running, or what came of it. Whoever
started it may kill executors, workers or the driver in between; it says nothing of them.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from threading import Event, Thread
from typing import Any

import omnigraph
from omnigraph.errors import OmnigraphError
from omnigraph.pipeline.session import spark_session
from omnigraph.pipeline.streams import each_batch

SCHEMA = "node P { name: String @key  age: I32? }  edge K: P -> P { w: F64? }"
QUERY = (
    "query q() { match { $p: P { age: 7 } $p k $q } return { count(*) as n, sum($q.age) as s } }"
)
BATCH_ROWS = 50
BATCHES = 4


def main(
    graph: str,
    inputs: dict[str, dict[str, str]],
    out: str,
    folder: str,
    conf: dict[str, str],
    wanted: list[str],
) -> None:
    """Do some of the work, phase by phase."""
    given = " ".join(f"--conf {name}={value}" for name, value in conf.items())
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"{given} pyspark-shell"
    session = spark_session(master=conf["spark.master"])
    g = omnigraph.open(graph)
    watch = _Watch(session)
    phases: dict[str, Callable[[], Any]] = {
        "load": lambda: _loaded(g, inputs["new"], "append", "new people"),
        "merge": lambda: _loaded(g, inputs["changed"], "merge", "older people"),
        "query": lambda: g.query(QUERY, engine="spark").rows,
        "stream": lambda: _stream(session, g, folder),
        "analytics": lambda: _measured(g),
        "maintenance": lambda: [report.type for report in g.optimize(engine="spark")],
        "export": lambda: g.export(out, format="parquet", engine="spark").rows,
    }
    for name in wanted:
        _say(begins=name)
        watch.phase = name
        try:
            _say(phase=name, answer=phases[name]())
        except OmnigraphError as error:
            _say(phase=name, error=error.code, message=str(error)[:2000])


def _say(**told: Any) -> None:
    sys.stdout.write(json.dumps(told, default=str) + "\n")
    sys.stdout.flush()


class _Watch:
    """Says once of every phase that its tasks are running."""

    def __init__(self, session: Any) -> None:
        self.phase: str | None = None
        self._tracker = session.sparkContext.statusTracker()
        Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        pause = Event()
        while not pause.wait(0.01):
            if self.phase is not None and self._is_busy():
                phase, self.phase = self.phase, None
                _say(busy=phase)

    def _is_busy(self) -> bool:
        stages = map(self._tracker.getStageInfo, self._tracker.getActiveStageIds())
        return any(stage is not None and stage.numActiveTasks for stage in stages)


def _loaded(g: Any, source: dict[str, str], mode: str, key: str) -> dict[str, int]:
    done = g.load(source, mode, engine="spark", idempotency_key=key)
    return {**done.nodes, **done.edges}


def _stream(session: Any, g: Any, folder: str) -> int:
    """People who come in micro-batches, made by the executors themselves."""
    rows = session.readStream.format("rate-micro-batch").option("rowsPerBatch", BATCH_ROWS)
    people = rows.load().selectExpr("concat('s', value) AS name", "CAST(value % 90 AS int) AS age")
    seen = 0

    def counted(batch: Any, number: int) -> None:
        nonlocal seen
        load(batch, number)
        seen = number + 1

    load = each_batch(g.branch("main"), "P", mode="append")
    started = people.writeStream.foreachBatch(counted).option("checkpointLocation", folder).start()
    while seen < BATCHES and started.isActive:
        started.awaitTermination(0.2)
    started.stop()
    return seen


def _measured(g: Any) -> list[float]:
    found = g.analytics(engine="spark").pagerank("P", ["K"], iterations=3)
    ranks = found.table["value"].to_pylist()
    return [len(ranks), round(sum(ranks), 6)]


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
