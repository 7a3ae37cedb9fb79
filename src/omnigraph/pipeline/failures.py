"""Failures of a cluster as our errors: Spark reports them as traces of two languages."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, TypeVar

from omnigraph.errors import Kind, OmnigraphError, error_named
from omnigraph.pipeline.log_file import log_file

T = TypeVar("T")

log = logging.getLogger("omnigraph.pipeline")
SAID_CHARACTERS_MAX = 500
READS_MAX = 3  # attempts of one read, while executors die
OURS = re.compile(r"^(?:\s*)omnigraph\.[\w.]*?\.?(\w+): (.*)$", re.MULTILINE)
LACKING = re.compile(r"No module named '([\w.]+)'")
PYTHONS = re.compile(r"PYTHON_VERSION_MISMATCH|Python in worker has different version")
PROGRAM = re.compile(r'Cannot run program "([^"]+)"')
MEMORY = re.compile(r"OutOfMemoryError|Could not allocate memory|Python worker exited unexpectedly")
DISK = re.compile(r"No space left on device|Disk quota exceeded")
LOST = re.compile(r"CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND|Checkpoint block \S+ not found")
LAST_LINE = re.compile(r"^(?:[\w.]*(?:Error|Exception))(?:: .*)?$", re.MULTILINE)
PASSWORD = re.compile(r"((?:password|pwd)=)[^;&,\s)]+", re.IGNORECASE)
HIDDEN_CHARACTERS_MIN = 4  # shorter texts are part of too many others
_hidden: dict[str, str] = {}  # texts that no message contains, and what they are


class ExecutorsDiffer(OmnigraphError):
    """Spark's executors lack what their tasks need: this package, one it needs, or the same Python."""

    code, kind = "executors_differ", Kind.INVALID
    default_help = (
        "Executors need the Python and the packages of the driver. Set PYSPARK_PYTHON to a Python that has them on "
        "every machine, or ship an environment with spark.archives; the Spark guide shows both."
    )


class SparkFailed(OmnigraphError):
    """The Spark job failed: a task reached its maximum of failures, or the cluster is lost. Nothing was published."""

    code, kind = "spark_failed", Kind.UNAVAILABLE
    default_help = "Nothing was changed. Spark's own messages are in its log."


def failures_of(session: Any) -> AbstractContextManager[None]:
    """Errors of Spark as our errors, where work runs on Spark."""
    return nullcontext() if session is None else spark_failures()


@contextmanager
def spark_failures() -> Iterator[None]:
    """Errors of Spark and of its tasks as our errors."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JError, PySparkException) as error:
        said = str(error)
        raise error_of(said) from (error if redacted(said) == said else None)


def hide(named: Mapping[str, str]) -> None:
    """From now on, no message of Spark contains these texts."""
    _hidden.update((text, name) for name, text in named.items())


def redacted(said: str) -> str:
    """A message without the texts to hide, and without passwords in addresses."""
    for text in sorted(_hidden, key=len, reverse=True):
        if len(text) >= HIDDEN_CHARACTERS_MIN:
            said = said.replace(text, f"<{_hidden[text]}>")
    return PASSWORD.sub(r"\1<password>", said)


def repeated_read(work: Callable[[], T]) -> T:
    """The result of a read. If an executor dies with rows cached between its steps, the read is repeated."""
    for _ in range(READS_MAX - 1):
        try:
            return _asked(work)
        except OmnigraphError as failed:
            if not LOST.search(str(failed.__cause__)):
                raise
            log.warning("an executor was lost with its cached rows: repeating the read")
    return _asked(work)


def _asked(work: Callable[[], T]) -> T:
    with spark_failures():
        return work()


def error_of(said: str) -> OmnigraphError:
    """Our error for a message of Spark."""
    said = redacted(said)
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
        return SparkFailed(f"Spark ran out of memory: {reason(said)}", help=help)
    full = DISK.search(said)
    if full is not None:
        help = "Nothing was changed. Spark keeps shuffled data in spark.local.dir: give it a larger disk."
        return SparkFailed(f"a disk of Spark is full: {full[0]}", help=help)
    where = f"Nothing was changed. Spark's own messages are in its log, here usually {log_file()}."
    return SparkFailed(f"the Spark job failed: {reason(said)}", help=where)


def _ours(said: str) -> OmnigraphError | None:
    """One of our errors, raised in a task; its details are not sent."""
    for name, message in reversed(OURS.findall(said)):
        found = error_named(name, message)
        if found is not None:
            return found
    return None


def reason(said: str) -> str:
    """The most informative line of a trace."""
    written = (line.strip().removeprefix(": ") for line in said.splitlines())
    lines = [line.removeprefix("Caused by: ") for line in written if line]
    telling = [line for line in lines if LAST_LINE.match(line) and ": " in line]
    return (telling or lines or ["no reason given"])[0][:SAID_CHARACTERS_MAX]
