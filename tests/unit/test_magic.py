"""The notebook magic, driven as IPython drives it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from threading import Event
from typing import Any

import pytest

import omnigraph
from omnigraph.magic import CellProgress, MagicMisused, load_ipython_extension
from omnigraph.progress import Moment

SCHEMA = "node Person { name: String @key  age: I32? }"


@dataclass(slots=True)
class Notebook:
    """The three things an extension uses of IPython."""

    user_ns: dict[str, Any]
    magics: dict[str, Callable[[str, str], Any]] = field(default_factory=dict)
    hooks: dict[str, Callable[..., None]] = field(default_factory=dict)

    @property
    def events(self) -> Notebook:
        return self

    def register(self, event: str, function: Callable[..., None]) -> None:
        self.hooks[event] = function

    def register_magic_function(
        self, function: Callable[[str, str], Any], magic_kind: str, magic_name: str
    ) -> None:
        assert magic_kind == "cell"
        self.magics[magic_name] = function


@pytest.fixture
def notebook(memory_root: str) -> Notebook:
    graph = omnigraph.init(memory_root, schema=SCHEMA)
    graph.load({"Person": [{"name": "Ada", "age": 36}, {"name": "Bo", "age": 20}]})
    made = Notebook({"g": graph, "limit": 30})
    load_ipython_extension(made)
    return made


def test_a_read_takes_parameters_from_the_notebook(notebook: Notebook) -> None:
    cell = "query q($limit: I32) { match { $p: Person $p.age > $limit } return { $p.name as n } }"
    found = notebook.magics["gq"]("g --out older", cell)
    assert found.rows == [{"n": "Ada"}]
    assert notebook.user_ns["older"] is found


def test_a_mutation_is_published(notebook: Notebook) -> None:
    notebook.magics["gq"]("g", 'insert Person { name: "Cy" }')
    assert len(notebook.magics["gq"]("", "match { $p: Person } return { $p.name }")) == 3
    assert (
        len(notebook.magics["gq"]("g --at main~1", "match { $p: Person } return { $p.name }")) == 2
    )


@pytest.mark.parametrize("line", ["nothing", "g --nope"])
def test_a_mistake_in_the_first_line(notebook: Notebook, line: str) -> None:
    with pytest.raises(MagicMisused):
        notebook.magics["gq"](line, "match { $p: Person } return { $p.name }")


def test_cypher_is_recognised_and_has_a_magic_of_its_own(notebook: Notebook) -> None:
    text = "MATCH (p:Person) WHERE p.age > $limit RETURN p.name AS n"
    assert notebook.magics["gq"]("g", text).rows == [{"n": "Ada"}]
    notebook.magics["cypher"]("g", "MATCH (p:Person {name: 'Bo'}) SET p.age = 40")
    found = notebook.magics["cypher"]("g --out older", text + " ORDER BY n")
    assert found.rows == [{"n": "Ada"}, {"n": "Bo"}]
    assert notebook.user_ns["older"] is found


def test_a_cell_that_works_for_a_while_shows_a_bar(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It appears while a load goes on, moves, and is gone afterwards; a cell without verbs shows none."""
    shown: list[str] = []
    seen = Event()

    class Bar:
        def update(self, page: Any) -> None:
            shown.append(page.data)
            seen.set()

    def display(page: Any, display_id: bool) -> Bar:
        assert display_id
        shown.append(page.data)
        return Bar()

    monkeypatch.setattr("IPython.display.display", display)
    monkeypatch.setattr("omnigraph.progress.PATIENCE_SECONDS", 0.01)
    monkeypatch.setattr("omnigraph.magic.PERIOD_SECONDS", 0.01)

    def rows() -> Iterator[dict[str, Any]]:
        for number in range(30_000):
            if number == 25_000:
                assert seen.wait(60), "the bar did not move while rows were read"
            yield {"type": "Person", "data": {"name": f"p{number}"}}

    notebook.hooks["pre_run_cell"](None)
    notebook.user_ns["g"].load(rows())
    notebook.hooks["post_run_cell"](None)
    assert "<progress" in shown[0]
    assert shown[-1] == ""
    shown.clear()
    CellProgress()._show(Moment("working", 3.0, 0, 0, 0, 0))
    assert not shown, "nothing of ours is going on"
