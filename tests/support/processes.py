"""Run a function in a process of its own, kill it when it hurts, and keep what it had acknowledged.

    child = spawn(work, {"root": root}, log=tmp_path / "log", environment=store.address.environment())
    child.kill_when(store.died.is_set)
    acknowledged = read_log(tmp_path / "log")

The function is one of a module, named so that the child can import it, and calls `acknowledge` for what must survive.
The log lies outside the store and every line is on the disk before `acknowledge` returns.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.waiting import wait_until

LOG_VARIABLE = "OMNIGRAPH_TEST_LOG"
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Child:
    """A running function."""

    process: subprocess.Popen[bytes]
    log: Path
    errors: Path

    def records(self) -> list[dict[str, Any]]:
        return read_log(self.log)

    def kill(self) -> None:
        """SIGKILL: nothing in the child gets a chance to tidy up."""
        self.process.kill()
        self.process.wait()

    def kill_when(self, condition: Callable[[], object], *, timeout: float = 30.0) -> bool:
        """Kill as soon as `condition` holds; whether that came before the child's own end."""
        wait_until(
            lambda: condition() or self.has_ended(), timeout=timeout, what="the moment to kill"
        )
        was_running = not self.has_ended()
        self.kill()
        return was_running

    def has_ended(self) -> bool:
        return self.process.poll() is not None

    def wait(self, timeout: float = 60.0) -> None:
        """Wait for the end, which must be a good one."""
        try:
            status = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        if status not in (0, -signal.SIGKILL):
            said = self.errors.read_text().rstrip()
            last = said.rpartition("\n")[2]  # first, so that a report that is cut short has it
            raise RuntimeError(f"child ended with {status}: {last}\n{said[-4000:]}")


def spawn(
    function: Callable[..., None],
    arguments: Mapping[str, Any],
    *,
    log: Path,
    environment: Mapping[str, str] | None = None,
) -> Child:
    """Start `function(**arguments)` in a new interpreter; the arguments travel as JSON."""
    target = f"{function.__module__}:{function.__qualname__}"
    errors = log.with_name(f"{log.name}.{target.rpartition(':')[2]}.errors")
    with errors.open("ab") as sink:
        process = subprocess.Popen(
            [
                sys.executable,
                "-X",
                "faulthandler",
                "-m",
                "tests.support.processes",
                target,
                json.dumps(dict(arguments)),
            ],
            cwd=ROOT,
            env={**os.environ, **(environment or {}), LOG_VARIABLE: str(log)},
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
        )
    return Child(process, log, errors)


def acknowledge(record: Mapping[str, Any]) -> None:
    """In a child: put one line into the log and onto the disk. Children may share a log."""
    line = json.dumps(dict(record)) + "\n"
    log = os.open(os.environ[LOG_VARIABLE], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(log, line.encode())  # one write: lines of several children do not mix
        os.fsync(log)
    finally:
        os.close(log)


def read_log(log: Path) -> list[dict[str, Any]]:
    """All whole lines. A last line torn by a kill was never acknowledged."""
    if not log.exists():
        return []
    whole, _, _ = log.read_text().rpartition("\n")
    return [json.loads(line) for line in whole.splitlines()]


def main(target: str, arguments: str) -> None:
    module, _, name = target.partition(":")
    getattr(importlib.import_module(module), name)(**json.loads(arguments))


if __name__ == "__main__":
    main(*sys.argv[1:])
