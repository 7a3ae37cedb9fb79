"""How long commands take to start: processor time of the child, the least of some runs.

`python -m benchmarks start` measures this installation; with `--core` a fresh one that has only what a query needs.
Modules are compiled once, before anything is measured, as they are where a package was installed.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

import omnigraph

RUNS = 9
ROOT = Path(__file__).parents[1]
READ = "match { $p: Person $p knows $f } return { $p.name, $f.name as friend }"
SCHEMA = "node Person { name: String @key }  edge Knows: Person -> Person"
PEOPLE = [
    {"type": "Person", "data": {"name": "Ada"}},
    {"type": "Person", "data": {"name": "Grace"}},
    {"edge": "Knows", "from": "Ada", "to": "Grace"},
]


def run(core: bool = False) -> None:
    with tempfile.TemporaryDirectory() as folder:
        program = (
            _core_install(Path(folder)) if core else Path(sys.executable).with_name("omnigraph")
        )
        graph = str(Path(folder) / "people")
        omnigraph.init(graph, schema=SCHEMA).load(PEOPLE)
        query = ("query", "--store", graph, "-e", READ)
        extras = 400 if core else 700
        for title, words, budget in (
            ("version", ("version",), 150),
            ("local query", query, extras),
        ):
            line, compiled = [str(program), *words], _compiled_in(Path(folder))
            _milliseconds(line, compiled)
            spent = min(_milliseconds(line, compiled) for _ in range(RUNS))
            missed = "" if spent < budget else "  MISSED"
            print(f"{title:<12} {spent:6.0f} ms of processor time, budget {budget} ms{missed}")


def _compiled_in(folder: Path) -> dict[str, str]:
    """An environment in which modules are compiled once, into a folder of their own."""
    return {**os.environ, "PYTHONPYCACHEPREFIX": str(folder / "compiled")}


def _core_install(folder: Path) -> Path:
    venv.create(folder / "venv", with_pip=True)
    pip = [
        str(folder / "venv" / "bin" / "pip"),
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ]
    subprocess.run([*pip, "--constraint", str(ROOT / "constraints.txt"), str(ROOT)], check=True)
    return folder / "venv" / "bin" / "omnigraph"


def _milliseconds(words: list[str], environment: dict[str, str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, capture_output=True, check=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000


if __name__ == "__main__":
    run(core="--core" in sys.argv)
