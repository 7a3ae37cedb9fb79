"""The container file, read as an engine would: known instructions, and nothing copied that is not there."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILE = ROOT / "Containerfile"
KNOWN = {"FROM", "WORKDIR", "COPY", "RUN", "USER", "VOLUME", "EXPOSE", "ENTRYPOINT", "CMD", "ENV"}


def instructions() -> list[tuple[str, str]]:
    text = FILE.read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(line.split(" ", 1)[0], line.split(" ", 1)[1]) for line in lines]


def test_instructions_are_known_and_sources_exist() -> None:
    found = instructions()
    assert {word for word, _ in found} <= KNOWN
    assert found[0][0] == "FROM"
    ignored = (ROOT / ".dockerignore").read_text().split()
    for word, rest in found:
        if word == "COPY" and not rest.startswith("--from"):
            for source in rest.split()[:-1]:
                assert (ROOT / source).exists(), f"{source} is not in the repository"
                assert source not in ignored


def test_it_serves_as_an_ordinary_user() -> None:
    found = instructions()
    words = [word for word, _ in found]
    assert words.index("USER") < words.index("ENTRYPOINT")
    assert dict(found)["USER"] not in ("root", "0")
    copied = {name for word, rest in found if word == "COPY" for name in rest.split()[:-1]}
    assert {"pyproject.toml", "hatch_build.py", "src", "explorer"} <= copied


@pytest.mark.nightly
def test_it_builds() -> None:
    engine = shutil.which("podman") or shutil.which("docker")
    if (
        engine is None
        or subprocess.run([engine, "info"], capture_output=True, check=False).returncode
    ):
        pytest.skip("neither podman nor docker runs here")
    done = subprocess.run([engine, "build", "-f", str(FILE), str(ROOT)], check=False)
    assert done.returncode == 0
