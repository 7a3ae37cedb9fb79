"""An engine in a process of its own, seen from the parent: a crash takes that engine down and no other."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

ROOT = Path(__file__).parents[2]
QUIT_SECONDS_MAX = 20
MEMORY_BYTES_MAX = 12 << 30  # that an engine may use
MEMORY_EXIT = 75  # the exit code of one that used more
REPLY_SECONDS_MAX = 3600  # an engine that needs longer for one request is ended


class NoAnswer(Exception):
    """The engine cannot do it, failed at it, or is gone; the text says which."""


class NotInstalled(Exception):
    """The package of the engine is not there; the text is its name."""


@dataclass(frozen=True, slots=True)
class Timed:
    """What a request took and answered, call by call."""

    seconds: list[float]
    answers: list[Any]


class Engine:
    """Starts the process; requests are answered one at a time.

    Packages in the folders of the environment variable PEERBENCH_PATH are found by the process, and by it alone.
    """

    def __init__(self, name: str, place: Path) -> None:
        folders = [str(ROOT), os.environ.get("PEERBENCH_PATH", "")]
        path = os.pathsep.join(folder for folder in folders if folder)
        self.name, self.place = name, place
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.peerbench.worker", name, str(place)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": path},
            text=True,
        )
        hello = self._reply()
        if "missing" in hello:
            self.close()
            raise NotInstalled(hello["missing"])
        self.version: str = hello["version"]

    def load(self, files: Path, form: str) -> float:
        return self._request(do="load", files=str(files), form=form).seconds[0]

    def reopened(self) -> Engine:
        """The same store in a new process."""
        self.close()
        again = Engine(self.name, self.place)
        again._request(do="reopen")
        return again

    def prepare(self) -> float:
        return self._request(do="prepare").seconds[0]

    def ask(self, job: str, calls: list[dict[str, Any]]) -> Timed:
        return self._request(do="ask", job=job, calls=calls)

    def _request(self, **request: Any) -> Timed:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError as gone:
            raise NoAnswer("its process ended") from gone
        found = self._reply()
        for word in ("unsupported", "failed"):
            if word in found:
                raise NoAnswer(found[word])
        return Timed(found["seconds"], found["answers"])

    def memory(self) -> int:
        """Bytes its process holds."""
        status = Path(f"/proc/{self._process.pid}/status").read_text("ascii")
        found = (line for line in status.splitlines() if line.startswith("VmRSS"))
        return int(next(found).split()[1]) << 10

    def _reply(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        late = threading.Timer(REPLY_SECONDS_MAX, self._process.kill)
        late.start()
        try:
            line = self._process.stdout.readline()
        finally:
            late.cancel()
        if not line:
            code = self._process.wait()
            full = f"it used more than {MEMORY_BYTES_MAX >> 30} GiB"
            raise NoAnswer(full if code == MEMORY_EXIT else f"its process ended with {code}")
        found: dict[str, Any] = json.loads(line)
        return found

    def close(self) -> None:
        """The end of requests is the end of the process."""
        try:
            self._process.communicate(timeout=QUIT_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
