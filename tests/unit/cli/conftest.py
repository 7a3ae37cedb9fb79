"""A folder with the world of the examples, fresh for each test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.cli import world


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world")
    world.build(folder)
    return folder


@pytest.fixture
def folder(template: Path, tmp_path: Path) -> Path:
    """A copy of the world."""
    return world.copied(template, tmp_path)


@pytest.fixture
def cli(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[..., world.Done]:
    """Run command lines inside this process, in the folder of the world."""
    from omnigraph.cli import context
    from omnigraph.cli.main import main

    monkeypatch.chdir(folder)
    for name in ("OMNIGRAPH_STORE", "OMNIGRAPH_FORMAT", "OMNIGRAPH_BRANCH", "OMNIGRAPH_ACTOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OMNIGRAPH_HOME", str(folder / "home"))

    def run(*words: str) -> world.Done:
        context.config.cache_clear()
        capfd.readouterr()
        code = main(words)
        out, err = capfd.readouterr()
        return world.Done(code, out, err)

    return run
