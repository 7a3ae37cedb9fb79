"""The examples in docstrings say what really happens."""

from __future__ import annotations

import ast
import doctest
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2] / "src"
Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def examples(path: Path) -> Iterator[tuple[str, str, int]]:
    """The docstrings with examples of a file: of what, the text, and its first line. Read from the source, because
    decorators may hide what they wrap."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, Documented) and ">>>" in (text := ast.get_docstring(node) or ""):
            yield getattr(node, "name", path.stem), text, node.body[0].lineno


def modules() -> Iterator[tuple[str, Path]]:
    for path in sorted(SOURCES.rglob("*.py")):
        name = ".".join(path.relative_to(SOURCES).with_suffix("").parts).removesuffix(".__init__")
        if any(examples(path)):
            yield name, path


FOUND = dict(modules())


@pytest.mark.parametrize("name", FOUND)
def test_the_examples_of_a_module_are_right(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = FOUND[name]
    monkeypatch.chdir(tmp_path)
    names = vars(importlib.import_module(name))
    runner = doctest.DocTestRunner(
        optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE, verbose=False
    )
    report: list[str] = []
    for what, text, line in examples(path):
        # The reference runs some of them, too, and graphs in memory are shared by a process.
        own = text.replace("memory://doc-", "memory://docstring-")
        test = doctest.DocTestParser().get_doctest(
            own, dict(names), f"{name}.{what}", str(path), line - 1
        )
        runner.run(test, out=report.append)
    assert not report, "".join(report)
