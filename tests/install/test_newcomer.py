"""A newcomer with a clock: from a clone, an archive or a wheel to a graph of their own files in the browser.

Nothing is installed, and nothing is done that the pages do not say: the commands are taken from `docs/install.md` and
`docs/tutorial/your-data.md`. At night they are carried out in a clean environment; otherwise it is made sure that they
are there, and `tests/docs` runs those of the second page.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, Block, blocks, commands
from tests.explorer import browser as browsers
from tests.install.test_wheel import built, clone, packed
from tests.support.record import record

INSTALL, OWN_DATA = ROOT / "docs/install.md", ROOT / "docs/tutorial/your-data.md"
SECONDS_MAX = 300  # the whole way
WAYS = ("a clone", "an archive", "a wheel")
KEPT = ("PIP_", "npm_", "NPM_", "SSL_", "LANG", "TMPDIR")  # how this machine reaches its registries
WHEEL = re.compile(r"omnigraph-[\w.]+-py3-none-any\.whl")


def install_block(first: str) -> Block:
    """The block of the install page that begins like this."""
    (found,) = [block for block in blocks(INSTALL) if block.body.startswith(first)]
    return found


def own_files() -> dict[str, str]:
    return {block.title: block.body for block in blocks(OWN_DATA) if block.title}


def own_commands() -> list[str]:
    shown = [block for block in blocks(OWN_DATA) if block.language == "console"]
    return [command for block in shown for command, _ in commands(block.body)]


def explore_command() -> str:
    (found,) = [block.body.strip() for block in blocks(OWN_DATA) if block.language == "text"]
    return found


# --- in every run ----------------------------------------------------------------------------------------------------


def test_the_pages_lead_from_nothing_to_the_browser() -> None:
    from_clone = install_block("git clone").body.splitlines()
    from_wheel = install_block("python -m venv").body.splitlines()
    assert [line.split()[0] for line in from_clone] == [
        "git",
        "python",
        "source",
        "pip",
        "omnigraph",
    ]
    assert from_clone[1:3] == from_wheel[:2]
    assert WHEEL.search(from_wheel[2])
    assert set(own_files()) == {"people.csv", "calls.csv"}
    verbs = [command.split()[1] for command in own_commands()]
    assert verbs == ["infer", "init", "pipeline", "query"]
    assert explore_command() == "omnigraph explore phones"
    assert "tutorial/your-data.md" in INSTALL.read_text(encoding="utf-8")
    front = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    assert front.index("(install.md)") < front.index("(tutorial/your-data.md)")


# --- at night --------------------------------------------------------------------------------------------------------


@pytest.mark.nightly
@pytest.mark.skipif(browsers.CHROMIUM is None, reason="Chromium is not installed")
@pytest.mark.parametrize("way", WAYS)
def test_a_newcomer_sees_a_graph_of_their_own_within_five_minutes(way: str, tmp_path: Path) -> None:
    script, folder = _installing(way, tmp_path)
    environment = _clean(tmp_path / "home")
    times = {"install s": _timed(script, folder, environment)}
    for name, text in own_files().items():
        (folder / name).write_text(text)
    activate = "source .venv/bin/activate"
    own = "\n".join([activate, *own_commands()])
    times["own data s"] = _timed(own, folder, environment)
    started = time.monotonic()
    with _exploring(f"{activate}\nexec {explore_command()}", folder, environment) as address:
        _looked_at(address, way)
    times["browser s"] = round(time.monotonic() - started, 1)
    whole = round(sum(times.values()), 1)
    record(f"newcomer: from {way} to their own graph in a browser", {**times, "whole s": whole})
    assert whole < SECONDS_MAX, times


def _installing(way: str, tmp_path: Path) -> tuple[str, Path]:
    """The commands of the page, and the folder in which the environment will be; making an archive is our work."""
    lines = install_block("git clone").body.replace("URL", str(ROOT))
    if way == "a clone":
        return lines, tmp_path / "omnigraph"
    sources = clone(tmp_path / "sources")
    if way == "an archive":
        with tarfile.open(packed(sources, tmp_path / "dist", dict(os.environ))) as archive:
            archive.extractall(tmp_path / "archive", filter="data")
        (folder,) = (tmp_path / "archive").iterdir()
        return lines.partition("\n")[2], folder
    folder = tmp_path / "anywhere"
    folder.mkdir()
    wheel = built(sources, tmp_path / "dist", dict(os.environ))
    return WHEEL.sub(str(wheel), install_block("python -m venv").body), folder


def _clean(home: Path) -> dict[str, str]:
    """A machine with Python, Git and perhaps Node, and nothing of ours."""
    home.mkdir()
    python = Path(sys.base_prefix) / "bin"
    kept = {name: value for name, value in os.environ.items() if name.startswith(KEPT)}
    npmrc = Path.home() / ".npmrc"
    if npmrc.is_file():
        shutil.copy(npmrc, home / ".npmrc")
    path = os.pathsep.join([str(python), "/usr/local/bin", "/usr/bin", "/bin"])
    return {**kept, "HOME": str(home), "PATH": path, "BROWSER": "true"}


def _timed(script: str, folder: Path, environment: dict[str, str]) -> float:
    """Run lines of a page as somebody would type them; the seconds they took."""
    started = time.monotonic()
    place = folder if folder.is_dir() else folder.parent
    words = ["bash", "-e", "-c", script]
    done = subprocess.run(
        words, cwd=place, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{script}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return round(time.monotonic() - started, 1)


@contextmanager
def _exploring(script: str, folder: Path, environment: dict[str, str]) -> Iterator[str]:
    """The address `omnigraph explore` prints."""
    process = subprocess.Popen(
        ["bash", "-e", "-c", script], cwd=folder, env=environment, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait(60)
        process.stdout.close()


def _looked_at(address: str, way: str) -> None:
    """The first page counts the rows of the files, and a click draws them."""
    from playwright.sync_api import expect

    with browsers.launched() as browser:
        origin = address.partition("/ui/")[0]
        with browsers.opened(browser, origin, f"newcomer-{way.split()[1]}") as page:
            page.goto(address)
            first = page.get_by_role("list", name="Node types").get_by_role("listitem").first
            expect(first).to_contain_text("Person")
            expect(first).to_contain_text("4")
            page.get_by_role("link", name=re.compile("How one Person leads to another")).click()
            expect(page.locator("[data-nodes='4'][data-edges='4']")).to_be_visible()
            browsers.keep(page, f"newcomer-{way.split()[1]}")
