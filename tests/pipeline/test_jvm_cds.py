"""The archive of Spark's classes: built once, behind the first session, and used by the next."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from omnigraph.pipeline import jvm_cds
from tests.support.waiting import wait_until

WAIT_SECONDS = 900
SESSION = """
from omnigraph.pipeline.session import spark_session
session = spark_session(master="local[1]")
assert session.range(3).count() == 3
print(session.sparkContext.getConf().get("spark.driver.extraJavaOptions"))
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, of which processes started by the test know too."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("OMNIGRAPH_SPARK_LOG", str(tmp_path / "spark.log"))
    monkeypatch.delenv(jvm_cds.ARCHIVE, raising=False)
    return tmp_path / "omnigraph"


def run(text: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", text], check=True, capture_output=True, text=True, timeout=600
    )
    return done.stdout


def test_an_archive_is_used_where_there_is_one(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert jvm_cds.archive_options() == []
    file = jvm_cds.archive_file()
    assert file.parent == cache
    cache.mkdir()
    file.touch()
    assert jvm_cds.archive_options() == [f"-XX:SharedArchiveFile={file}"]
    monkeypatch.setenv(jvm_cds.ARCHIVE, "off")
    assert jvm_cds.archive_options() == []


def test_another_java_has_another_archive(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = jvm_cds.archive_file()
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.touch()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    second = jvm_cds.archive_file()
    os.utime(java, (1, 1))
    assert len({first, second, jvm_cds.archive_file()}) == 3


def test_of_many_processes_one_builds(cache: Path) -> None:
    """The others find its note; nobody needs a Java to see that."""
    cache.mkdir()
    note = jvm_cds.archive_file().with_suffix(".attempt")
    note.touch()
    stamp = note.stat().st_mtime_ns
    run("from omnigraph.pipeline.jvm_cds import build_at_exit; build_at_exit()")
    assert [path.name for path in cache.iterdir()] == [note.name]
    assert note.stat().st_mtime_ns == stamp


def test_a_folder_that_cannot_be_written_is_no_error(cache: Path) -> None:
    cache.touch()
    assert run("from omnigraph.pipeline.jvm_cds import build_at_exit; build_at_exit()") == ""


def test_archives_nobody_uses_any_more_are_removed(cache: Path) -> None:
    cache.mkdir()
    old, new = cache / "spark-old.jsa", cache / "spark-new.jsa"
    old.touch()
    new.touch()
    os.utime(old, (1, 1))
    jvm_cds._forget_unused(cache)
    assert list(cache.iterdir()) == [new]


@pytest.mark.nightly
def test_the_first_session_leaves_an_archive_for_the_second(cache: Path) -> None:
    assert "SharedArchiveFile" not in run(SESSION)
    file = jvm_cds.archive_file()
    wait_until(file.exists, timeout=WAIT_SECONDS, interval=0.5, what=str(file))
    note = file.with_suffix(".attempt")
    wait_until(lambda: not note.exists(), timeout=WAIT_SECONDS, what="the end of the building")
    assert f"SharedArchiveFile={file}" in run(SESSION)
    assert sorted(cache.glob("spark-*")) == [file], "something was left behind"
