"""Run benchmarks and print one report: `python -m benchmarks`, or some by name: `python -m benchmarks core reading`.

Every module of this package with a function `run` (or `main`) is a benchmark; it prints its own table. Budgets that are
missed are said where they are missed.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import platform
import sys
import time
from collections.abc import Callable
from importlib.metadata import version

import benchmarks


def names() -> list[str]:
    """All benchmarks there are, in the order of their names."""
    found = (module for module in pkgutil.iter_modules(benchmarks.__path__) if not module.ispkg)
    return sorted(module.name for module in found if not module.name.startswith("_"))


def entry(name: str) -> Callable[[], object] | None:
    module = importlib.import_module(f"benchmarks.{name}")
    found: Callable[[], object] | None = getattr(module, "run", None) or getattr(
        module, "main", None
    )
    return found


def run_one(name: str) -> None:
    print(f"\n=== {name} {'=' * (70 - len(name))}\n", flush=True)
    started = time.perf_counter()
    try:
        work = entry(name)
    except ImportError as missing:
        print(f"left out: {missing}")
        return
    if work is not None:
        work()
        print(f"\n({time.perf_counter() - started:.0f} s)", flush=True)


def main(wanted: list[str]) -> int:
    known = names()
    unknown = [name for name in wanted if name not in known]
    if unknown:
        print(f"no benchmark {', '.join(unknown)}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    print(
        f"omnigraph {version('omnigraph')}, pylance {version('pylance')}, "
        f"Python {platform.python_version()}, {os.cpu_count()} cores, {platform.system()}"
    )
    sys.argv = sys.argv[:1]  # a benchmark that reads arguments is not to read ours
    for name in wanted or known:
        run_one(name)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
