"""A server in a process of its own, that can be killed and started again on the same graph."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

ADDRESS = "OMNIGRAPH_LISTEN_ADDR="


@dataclass
class Running:
    """A process and where it listens."""

    process: subprocess.Popen[str]
    address: str

    def url(self, graph: str = "default") -> str:
        return f"http://{self.address}/graphs/{graph}"

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(120)

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(120)


@contextmanager
def serving(
    *arguments: str, environment: dict[str, str] | None = None, stderr: IO[str] | None = None
) -> Iterator[Running]:
    """`omnigraph serve` on a free port, gone afterwards whatever happened."""
    process = _start(arguments, environment or {}, stderr)
    try:
        yield Running(process, _address(process))
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(120)
        assert process.stdout is not None
        process.stdout.close()


def _start(
    arguments: Sequence[str], environment: dict[str, str], stderr: IO[str] | None
) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "omnigraph.cli.main", "serve", "--bind", "127.0.0.1:0"]
    return subprocess.Popen(
        [*command, *arguments],
        stdout=subprocess.PIPE,
        stderr=stderr or subprocess.DEVNULL,
        text=True,
        env={**os.environ, "OMNIGRAPH_FSYNC": "0", **environment},
    )


def _address(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line.startswith(ADDRESS):
        raise AssertionError(f"the server did not start: {line!r}")
    return line.strip().removeprefix(ADDRESS)
