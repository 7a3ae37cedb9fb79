"""Count what an operation costs at the wire: requests, serial hops, wall time.

    with Proxy(server.port) as proxy:
        cost = proxy.measure(lambda: graph.load(...))
        assert cost.requests <= 9

`hops` of a measurement is the longest chain of requests that did not overlap: how many times an operation waits for the
latency of the store. `shortest` is for asserting that it needs no more of them, however busy the machine is.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs

from tests.support.s3server import S3Address


@dataclass(frozen=True, slots=True)
class Request:
    """One request as the proxy saw it. Times are seconds of the monotonic clock."""

    method: str
    key: str
    query: str
    headers: Mapping[str, str]
    status: int
    start: float
    end: float
    bytes_sent: int
    bytes_received: int

    @property
    def kind(self) -> str:
        """A short name by which requests are counted."""
        query = parse_qs(self.query, keep_blank_values=True)
        match self.method:
            case "GET" if "list-type" in query:
                return "LIST"
            case "PUT" if "if-none-match" in self.headers:
                return "PUT-NEW"
            case "PUT" if "if-match" in self.headers:
                return "PUT-IF"
            case "PUT" if "partNumber" in query:
                return "PUT-PART"
            case "PUT" if "x-amz-copy-source" in self.headers:
                return "COPY"
            case "POST" if "delete" in query:
                return "DELETE-MANY"
            case method:
                return method

    def describe(self, origin: float) -> str:
        """One line: when it was under way, in milliseconds since `origin`, and what it was."""
        start, end = ((moment - origin) * 1e3 for moment in (self.start, self.end))
        address = f"{self.key}?{self.query}" if self.query else self.key
        return f"{start:7.1f} to {end:7.1f} ms  {self.kind:11} {self.status} {address}"


@dataclass(frozen=True, slots=True)
class Measurement:
    """What one call cost."""

    requests: int
    hops: int
    wall: float
    by_kind: Mapping[str, int]
    log: tuple[Request, ...]
    result: Any = None

    def describe(self) -> str:
        """One line per request, for the message of an assertion."""
        ordered = sorted(self.log, key=lambda request: request.start)
        lines = [request.describe(ordered[0].start) for request in ordered]
        return "\n".join([f"{self.requests} requests, {self.hops} hops", *lines])


def serial_depth(requests: Sequence[Request]) -> int:
    """The length of the longest chain in which each request starts after the one before it ended."""
    depth, chain_end = 0, float("-inf")
    for request in sorted(requests, key=lambda r: r.end):
        if request.start >= chain_end:
            depth, chain_end = depth + 1, request.end
    return depth


class Proxy:
    """A proxy in front of the server on `backend_port`, as a context manager."""

    def __init__(self, backend_port: int, *, concurrency: int = 8) -> None:
        self._backend_port = backend_port
        self._concurrency = concurrency

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.proxy_process", str(self._backend_port)],
            cwd=Path(__file__).parents[2],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.address = S3Address(self._read_answer()["port"])
        self._command("concurrency", self._concurrency)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._process:  # closes both pipes; the end of its input ends the proxy
            pass

    def reset(self) -> None:
        """Forget the requests seen so far."""
        self._command("reset")

    def requests(self) -> tuple[Request, ...]:
        """The requests answered since the last reset, in the order of their answers."""
        return tuple(Request(**record) for record in self._command("requests"))

    def keep_log(self, wanted: bool) -> None:
        """Whether requests are remembered; a run of hours would remember too many."""
        self._command("keep_log", wanted)

    def hops(self) -> int:
        return serial_depth(self.requests())

    def in_flight_max(self) -> int:
        """The most requests that were at the server at once since the last reset."""
        return int(self._command("in_flight_max"))

    @contextlib.contextmanager
    def latency(self, seconds: float) -> Iterator[None]:
        """Hold every request for this long before passing it on."""
        self._command("latency", seconds)
        try:
            yield
        finally:
            self._command("latency", 0.0)

    def measure(self, operation: Callable[[], Any], *, latency: float = 0.0) -> Measurement:
        """What one call of `operation` costs, alone behind this proxy."""
        with self.latency(latency):
            self.reset()
            start = time.perf_counter()
            result = operation()
            wall = time.perf_counter() - start
        log = self.requests()
        kinds = dict(sorted(Counter(request.kind for request in log).items()))
        return Measurement(len(log), serial_depth(log), wall, kinds, log, result)

    def shortest(
        self,
        operation: Callable[[], Any],
        hops: int,
        latencies: Sequence[float] = (0.02, 0.06, 0.2, 0.6),
    ) -> Measurement:
        """A run with no more than so many hops; the last one if there is none.

        Requests that need each other never overlap, so one such run shows that no more hops are needed. Whatever else
        the machine does can only keep others from overlapping, and the less so the longer each of them takes.
        """
        for latency in latencies:
            seen = self.measure(operation, latency=latency)
            if seen.hops <= hops:
                break
        return seen

    def _command(self, name: str, value: Any = None) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([name, value]) + "\n")
        self._process.stdin.flush()
        return self._read_answer()

    def _read_answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the counting proxy ended")
        return json.loads(line)
