"""Many short-lived processes, cheaply: one that has imported everything, and forks a child for each piece of work.

    with Nursery() as nursery:
        pid = nursery.start(write_nodes, {"uri": uri, ...}, log=tmp_path / "1.log")
        kill(pid)

The nursery itself opens no graph and starts no thread, so its children are as fresh as new interpreters.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.support.processes import LOG_VARIABLE, ROOT
from tests.support.waiting import wait_until

PREPARED = ("omnigraph.graph", "omnigraph.operations", "omnigraph.cli.main", "lance")


class Nursery:
    """Starts functions of modules in processes of their own."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "tests.support.nursery"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()

    def start(
        self, function: Callable[..., None], arguments: Mapping[str, Any], *, log: Path
    ) -> int:
        """The process that runs `function(**arguments)`; its errors go beside its log."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        work = [f"{function.__module__}:{function.__qualname__}", dict(arguments), str(log)]
        self._process.stdin.write(json.dumps(work) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


def is_running(pid: int) -> bool:
    """Whether a child of a nursery lives; the nursery does not keep the dead."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def kill(pid: int) -> None:
    """SIGKILL, and wait until nothing is left of a child."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not is_running(pid), timeout=60, what="the end of a child")


def main() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the dead vanish at once
    for module in PREPARED:
        importlib.import_module(module)
    for line in sys.stdin:
        target, arguments, log = json.loads(line)
        pid = os.fork()
        if not pid:
            _live(target, arguments, log)
        print(pid, flush=True)


def _live(target: str, arguments: Mapping[str, Any], log: str) -> None:
    """In the child: run, and end without anything of the nursery."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.environ[LOG_VARIABLE] = log
    status = 1
    try:
        devnull = os.open(os.devnull, os.O_RDWR)
        os.dup2(devnull, 0)
        errors = os.open(f"{log}.errors", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(errors, 1)
        os.dup2(errors, 2)
        module, _, name = target.partition(":")
        getattr(importlib.import_module(module), name)(**arguments)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


if __name__ == "__main__":
    main()
