"""A class data sharing archive of the classes Spark starts with.

Java can map classes from an archive instead of loading them one by one; a session then starts in half the time. The
archive is built once for each installation of Spark and Java: when a process that had to start Spark without it ends,
it leaves a background process that runs a small job and archives the classes. If that fails, sessions start as before.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

MODULE = "omnigraph.pipeline.jvm_cds"
ARCHIVE = "OMNIGRAPH_SPARK_ARCHIVE"
TRAINING = "OMNIGRAPH_SPARK_TRAINING"
ATTEMPT_SECONDS = 24 * 3600  # between two attempts to build the same archive
UNUSED_SECONDS = 30 * 24 * 3600  # after which the installation of an archive is considered removed
WAITS_MAX = 600
WAIT_SECONDS = 0.1
NICENESS = 19


def cache_folder() -> Path:
    """The folder for reproducible files."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "omnigraph"


def archive_file() -> Path:
    """The archive of this Spark and this Java; others, and newer ones, have other files."""
    import pyspark

    home = os.environ.get("JAVA_HOME")
    java = Path(home, "bin", "java") if home else Path(shutil.which("java") or "java")
    parts = [pyspark.__version__]
    for file in (Path(pyspark.__file__), java.resolve()):
        parts += [str(file), str(file.stat().st_mtime_ns) if file.exists() else ""]
    return cache_folder() / f"spark-{hashlib.sha256(' '.join(parts).encode()).hexdigest()[:16]}.jsa"


def archive_options() -> list[str]:
    """The Java options to use the archive or to make one, or none."""
    training = os.environ.get(TRAINING)
    if training:
        return [f"-XX:ArchiveClassesAtExit={training}"]
    if _is_off():
        return []
    file = archive_file()
    if not file.exists():
        return []
    _touch(file)
    return [f"-XX:SharedArchiveFile={file}"]


def build_at_exit() -> None:
    """Have the archive built when this process ends, unless it exists or was attempted recently."""
    if not (_is_off() or os.environ.get(TRAINING) or archive_file().exists()):
        atexit.register(_build_behind, archive_file())


def _is_off() -> bool:
    return os.environ.get(ARCHIVE, "").lower() in ("off", "0", "false", "no")


def _build_behind(file: Path) -> None:
    """Start the build and do not wait. A marker beside the file keeps other processes from doing the same."""
    note = _note(file)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        if note.exists() and time.time() - note.stat().st_mtime < ATTEMPT_SECONDS:
            return
        note.unlink(missing_ok=True)
        os.close(os.open(note, os.O_CREAT | os.O_EXCL, 0o600))
        subprocess.Popen(  # noqa: S603
            [sys.executable, "-m", MODULE],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        return  # the folder is not writable, or another process was quicker


def _note(file: Path) -> Path:
    return file.with_suffix(".attempt")


def build() -> Path:
    """Run a small job in a separate process and archive the classes it loaded."""
    from omnigraph.pipeline.session import use_java

    use_java()
    file = archive_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    made = file.with_suffix(f".{os.getpid()}")
    command = [sys.executable, "-c", f"from {MODULE} import train; train()"]
    try:
        subprocess.run(command, env={**os.environ, TRAINING: str(made)}, check=True)  # noqa: S603
        for _ in range(WAITS_MAX):  # it is written while the Java process ends
            if made.exists():
                break
            time.sleep(WAIT_SECONDS)
        made.replace(file)
    finally:
        made.unlink(missing_ok=True)
    _note(file).unlink(missing_ok=True)
    _forget_unused(file.parent)
    return file


def train() -> None:
    """Run typical work: a shuffle, a join, and Python tasks."""
    from omnigraph.pipeline.session import spark_session

    session = spark_session(master="local[1]")
    numbers = session.range(0, 100, 1, 2).mapInArrow(lambda batches: batches, "id long")
    numbers.join(session.range(10), "id").groupBy("id").count().orderBy("id").collect()
    gateway = session.sparkContext._gateway
    session.stop()
    if gateway is not None and gateway.proc is not None:
        gateway.proc.stdin.close()
        gateway.proc.wait()


def _touch(file: Path) -> None:
    try:
        os.utime(file)
    except OSError:
        return  # of another process, but usable


def _forget_unused(folder: Path) -> None:
    for file in folder.glob("spark-*.jsa"):
        if time.time() - file.stat().st_mtime > UNUSED_SECONDS:
            file.unlink(missing_ok=True)


if __name__ == "__main__":
    os.nice(NICENESS)
    try:
        build()
    except (OSError, subprocess.CalledProcessError) as failed:
        sys.exit(f"the class archive of Spark could not be built: {failed}")
