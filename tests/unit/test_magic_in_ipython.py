"""`%%gq` in a real IPython: the extension loads, a cell runs, its result is shown as a table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

import omnigraph

SCHEMA = "node Person { name: String @key  age: I32? }"


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    graph = omnigraph.init(tmp_path / "people", schema=SCHEMA)
    graph.load({"Person": [{"name": "Ada", "age": 36}, {"name": "Grace", "age": 46}]})
    made: Any = InteractiveShell.instance()
    made.run_line_magic("load_ext", "omnigraph.magic")
    made.push({"g": graph, "least": 40})
    yield made
    made.history_manager.end_session()
    InteractiveShell.clear_instance()


def test_a_cell_runs_on_the_graph_it_names(shell: Any) -> None:
    cell = "%%gq g --out older\nquery q($least: I32) { match { $p: Person $p.age >= $least } return { $p.name } }"
    done = shell.run_cell(cell)
    done.raise_error()
    assert done.result.rows == [{"p.name": "Grace"}]
    assert shell.user_ns["older"] is done.result
    assert "<table" in shell.display_formatter.format(done.result)[0]["text/html"]


def test_a_mutation_is_published(shell: Any) -> None:
    done = shell.run_cell('%%gq g\ninsert Person { name: "Edsger" }')
    done.raise_error()
    assert done.result.affected_nodes == 1
    assert shell.user_ns["g"].log(limit=1)[0].kind == "mutation"


def test_a_graph_is_drawn(shell: Any) -> None:
    shown = shell.display_formatter.format(shell.user_ns["g"])[0]["text/html"]
    assert "<svg" in shown
    assert "Person · 2" in shown


def test_a_mistake_is_told_as_everywhere(shell: Any) -> None:
    done = shell.run_cell("%%gq nobody\nmatch { $p: Person } return { $p.name }")
    assert isinstance(done.error_in_exec, omnigraph.OmnigraphError)
    assert done.error_in_exec.code == "magic_misused"


def test_an_error_is_shown_with_its_suggestion_and_without_a_traceback(
    shell: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    for cell in (
        "%%gq g\nmatch { $a: Persn } return { $a.name }",
        'x = 1\ng.query("match { $a: Persn } return { $a.name }")',
    ):
        capsys.readouterr()
        assert not shell.run_cell(cell).success
        shown = capsys.readouterr().out
        assert "Did you mean `Person`?" in shown
        assert "^^^^^" in shown
        assert "Traceback" not in shown
        assert len(shown.splitlines()) < 10
    assert 'line 2: g.query("match' in shown


def test_the_whole_traceback_can_be_asked_for(
    shell: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_DEBUG", "1")
    shell.run_cell('g.query("match { $a: Persn } return { $a.name }")')
    assert "Traceback" in capsys.readouterr().out
