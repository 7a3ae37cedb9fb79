"""A load in a process of its own, with tasks that can be held: `python -m tests.pipeline.faulty_load JSON`.

Every attempt of a task leaves a mark in a folder. `held` tasks of all waves but the first wait for the file `open`
there; a task that has a `twin`, and the twin, wait until the other has staged the same piece.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

import omnigraph
from omnigraph.pipeline import load as bulk
from omnigraph.pipeline.session import spark_session
from omnigraph.pipeline.stage import stage_task

WAIT_SECONDS = 800
OPEN = "open"


def main(
    graph: str,
    data: str,
    load_id: str,
    master: str,
    faults: list[str],
    marks: str,
    conf: dict[str, str],
) -> None:
    """Load the data with faults in the tasks; prints the commit."""
    given = " ".join(f"--conf {name}={value}" for name, value in conf.items())
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"{given} pyspark-shell"
    spark_session(master=master)
    plain = bulk.Tuning(split_bytes=8_000, wave_units=4, waves_at_once=1)
    vars(bulk)["Tuning"] = lambda: plain
    vars(bulk)["stage_task"] = lambda job, units, counters: _faulty(
        stage_task(job, units, counters), faults, marks, units[0][0].index == 0
    )
    result = omnigraph.open(graph).load(
        data, mode="append", engine="spark", idempotency_key=load_id
    )
    print(json.dumps({"commit": result.commit.id if result.commit else None}), flush=True)


def _faulty(run: Any, faults: list[str], marks: str, first_wave: bool) -> Any:
    def faulty(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import time
        from pathlib import Path
        from threading import Event

        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        pause = Event()
        folder, attempt = Path(marks), context.attemptNumber()
        piece = f"{first_wave}-{context.partitionId()}"

        def wait(pattern: str) -> None:
            deadline = time.monotonic() + WAIT_SECONDS
            while not list(folder.glob(pattern)):
                if time.monotonic() > deadline:
                    raise TimeoutError(f"nobody left the mark {pattern}")
                pause.wait(0.05)

        for answer in run(batches):
            (folder / f"{piece}-{attempt}").touch()
            if "held" in faults and not first_wave:
                wait(OPEN)
            if "twin" in faults and piece == "True-0":
                wait(f"{piece}-0" if attempt else f"{piece}-[1-9]")
            if "fails" in faults and attempt == 0 and context.partitionId() % 2 == 0:
                raise RuntimeError("failed after its files were written")
            yield answer

    return faulty


def attempts(marks: Path, piece: str) -> int:
    """How many attempts of a piece have staged it."""
    return len(list(marks.glob(f"{piece}-[0-9]")))


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
