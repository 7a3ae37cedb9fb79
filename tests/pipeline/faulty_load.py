"""A load in a process of its own, made slow or unreliable in its tasks: `python -m tests.pipeline.faulty_load JSON`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

import omnigraph
from omnigraph.pipeline import load as bulk
from omnigraph.pipeline.session import spark_session
from omnigraph.pipeline.stage import stage_task


def main(
    graph: str, data: str, load_id: str, master: str, fault: str, conf: dict[str, str]
) -> None:
    """Load the data with a fault in the tasks; prints the commit."""
    given = " ".join(f"--conf {name}={value}" for name, value in conf.items())
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"{given} pyspark-shell"
    spark_session(master=master)
    plain = bulk.Tuning(split_bytes=2_000, wave_splits=4)
    vars(bulk)["Tuning"] = lambda: plain
    vars(bulk)["stage_task"] = lambda *given: _faulty(stage_task(*given), fault)
    result = omnigraph.open(graph).load(
        data, mode="append", engine="spark", idempotency_key=load_id
    )
    print(json.dumps({"commit": result.commit.id if result.commit else None}), flush=True)


def _faulty(run: Any, fault: str) -> Any:
    def faulty(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import time as clock

        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        first = context.attemptNumber() == 0
        for answer in run(batches):
            if fault == "slow":
                clock.sleep(0.4)
            if fault == "twin" and first and context.partitionId() == 0:
                clock.sleep(8)  # so late that a second attempt is started beside it
            if fault == "fails" and first and context.partitionId() % 2 == 0:
                raise RuntimeError("failed after its files were written")
            yield answer

    return faulty


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
