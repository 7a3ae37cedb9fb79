"""What goes wrong on a cluster, in our words: Spark tells of it in traces of two languages."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from omnigraph.errors import Kind, OmnigraphError
from omnigraph.pipeline.session import log_file

T = TypeVar("T")

log = logging.getLogger("omnigraph.pipeline")
SAID_CHARACTERS_MAX = 500
READS_MAX = 3  # of one question, while executors die
OURS = re.compile(r"^(?:\s*)omnigraph\.[\w.]*?\.?(\w+): (.*)$", re.MULTILINE)
LACKING = re.compile(r"No module named '([\w.]+)'")
PYTHONS = re.compile(r"PYTHON_VERSION_MISMATCH|Python in worker has different version")
PROGRAM = re.compile(r'Cannot run program "([^"]+)"')
MEMORY = re.compile(r"OutOfMemoryError|Could not allocate memory|Python worker exited unexpectedly")
DISK = re.compile(r"No space left on device|Disk quota exceeded")
LOST = re.compile(r"CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND|Checkpoint block \S+ not found")
LAST_LINE = re.compile(r"^(?:[\w.]*(?:Error|Exception))(?:: .*)?$", re.MULTILINE)


class ExecutorsDiffer(OmnigraphError):
    """Spark's executors lack what their tasks need: this package, one it needs, or the same Python."""

    code, kind = "executors_differ", Kind.INVALID
    default_help = (
        "Executors need the Python and the packages of the driver. Set PYSPARK_PYTHON to a Python that has them on "
        "every machine, or ship an environment with spark.archives; the guide on Spark shows both."
    )


class SparkFailed(OmnigraphError):
    """Spark gave up: a task failed as often as it may, or the cluster is gone. Nothing was published."""

    code, kind = "spark_failed", Kind.UNAVAILABLE
    default_help = "Nothing was changed. Spark's own messages are in its log."


@contextmanager
def spark_failures() -> Iterator[None]:
    """Errors of Spark and of its tasks as errors of ours."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JError, PySparkException) as error:
        raise told(str(error)) from error


def asked_of_spark(work: Callable[[], T]) -> T:
    """What a read gives. Rows kept between its steps are gone with an executor that dies: then it is made again."""
    for _ in range(READS_MAX - 1):
        try:
            return _asked(work)
        except OmnigraphError as failed:
            if not LOST.search(str(failed.__cause__)):
                raise
            log.warning("an executor is gone, and rows it kept: the read is made again")
    return _asked(work)


def _asked(work: Callable[[], T]) -> T:
    with spark_failures():
        return work()


def told(said: str) -> OmnigraphError:
    """The error that a text of Spark's tells of."""
    lacking, program = LACKING.search(said), PROGRAM.search(said)
    if lacking is not None:
        return ExecutorsDiffer(f"Spark's executors have no package {lacking[1].partition('.')[0]}")
    if program is not None:
        return ExecutorsDiffer(f"Spark's executors cannot run {program[1]}")
    if PYTHONS.search(said):
        return ExecutorsDiffer("Spark's executors run another version of Python than this process")
    ours = _ours(said)
    if ours is not None:
        return ours
    if MEMORY.search(said):
        help = "Nothing was changed. Give executors more memory (spark.executor.memory, OMNIGRAPH_SPARK_MEMORY)."
        return SparkFailed(f"Spark ran out of memory: {_short(said)}", help=help)
    full = DISK.search(said)
    if full is not None:
        help = "Nothing was changed. Spark keeps what stages hand on in spark.local.dir: give it a larger disk."
        return SparkFailed(f"a disk that Spark uses is full: {full[0]}", help=help)
    where = f"Nothing was changed. Spark's own messages are in its log, here usually {log_file()}."
    return SparkFailed(f"Spark gave up: {_short(said)}", help=where)


def _ours(said: str) -> OmnigraphError | None:
    """An error of ours that a task raised; its details stayed there."""
    for name, message in reversed(OURS.findall(said)):
        kind = _named(OmnigraphError, name)
        if kind is not None:
            return kind(message)
    return None


def _named(base: type[OmnigraphError], name: str) -> type[OmnigraphError] | None:
    if base.__name__ == name:
        return base
    found = (_named(kind, name) for kind in base.__subclasses__())
    return next((kind for kind in found if kind is not None), None)


def _short(said: str) -> str:
    """The line of a trace that says most."""
    written = (line.strip().removeprefix(": ") for line in said.splitlines())
    lines = [line.removeprefix("Caused by: ") for line in written if line]
    telling = [line for line in lines if LAST_LINE.match(line) and ": " in line]
    return (telling or lines or ["no reason is given"])[0][:SAID_CHARACTERS_MAX]
