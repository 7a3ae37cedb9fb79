"""What is installed from a clone and from a source archive is complete: the package, its data, the explorer."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ANYWHERE = shutil.ignore_patterns(".git", ".venv", "node_modules", "__pycache__", ".*_cache")
LEFT_OUT = {
    ROOT: {"artifacts", "build", "docs", "tests"},
    ROOT / "src" / "omnigraph" / "server": {"ui"},
}
NODE = ("node", "nodejs", "npm", "npx", "corepack")
PAGE = "omnigraph/server/ui/index.html"


def clone(to: Path) -> Path:
    """The sources as in a fresh clone: without the pages."""
    shutil.copytree(ROOT, to, ignore=left_out)
    return to


def left_out(folder: str, names: list[str]) -> set[str]:
    return ANYWHERE(folder, names) | LEFT_OUT.get(Path(folder), set())


def without_node(to: Path) -> dict[str, str]:
    """An environment with every program of this machine but Node."""
    to.mkdir(exist_ok=True)
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        for program in Path(folder).glob("*"):
            link = to / program.name
            if program.name not in NODE and not link.exists() and not link.is_symlink():
                link.symlink_to(program)
    return os.environ | {"PATH": str(to)}


def test_a_build_without_node_refuses_loudly(tmp_path: Path) -> None:
    """Nothing is packed in silence without its pages."""
    pytest.importorskip("hatchling")
    root = clone(tmp_path / "clone")
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "dist")],
        cwd=root,
        env=without_node(tmp_path / "bin") | {"PIP_NO_INDEX": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "the explorer cannot be built" in done.stdout + done.stderr
    assert not list((tmp_path / "dist").glob("*.whl"))


@pytest.mark.nightly
@pytest.mark.parametrize("machine", ["with its own Node", "without Node"])
def test_a_wheel_from_a_clone_and_from_an_archive_has_everything(
    machine: str, tmp_path: Path
) -> None:
    root = clone(tmp_path / "clone")
    bare = without_node(tmp_path / "bin")
    environment = bare if machine == "without Node" else dict(os.environ)
    wheel = built(root, tmp_path / "from-clone", environment)
    names = set(zipfile.ZipFile(wheel).namelist())
    assert PAGE in names
    assert any(name.startswith("omnigraph/server/ui/assets/") for name in names)
    sources = {
        f"omnigraph/{file.relative_to(ROOT / 'src' / 'omnigraph').as_posix()}"
        for file in (ROOT / "src" / "omnigraph").rglob("*.py")
    }
    assert sources <= names
    archive = packed(root, tmp_path / "dist", environment)
    with tarfile.open(archive) as found:
        found.extractall(tmp_path / "archive", filter="data")
    (unpacked,) = (tmp_path / "archive").iterdir()
    again = built(unpacked, tmp_path / "from-archive", bare | {"npm_config_offline": "true"})
    assert set(zipfile.ZipFile(again).namelist()) == names, "an archive brings its pages along"


def built(root: Path, to: Path, environment: dict[str, str]) -> Path:
    words = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--quiet", "-w", str(to), str(root)]
    subprocess.run(words, env=environment, check=True)
    (wheel,) = to.glob("omnigraph-*.whl")
    return wheel


def packed(root: Path, to: Path, environment: dict[str, str]) -> Path:
    words = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(to)]
    subprocess.run(words, cwd=root, env=environment, check=True)
    (archive,) = to.glob("*.tar.gz")
    return archive
