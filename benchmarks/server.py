"""How many requests a server answers: `python -m benchmarks server`; `python -m benchmarks.server --help` for sizes.

All clients are in this process, so that two cores are enough for one server process. A point query, a 2-hop query and
the insertion of one node at 1, 16 and 64 clients: requests per second, median and 99th percentile, CPU of the server
per request, and the ratio to a bare Starlette application that answers with a constant. Insertions are measured with
and without group commit. Then 100 writers on 100 branches, and the memory of a server that goes on answering.

Before that, one process and workers take turns with each other, with the bare application, and with another checkout of
omnigraph where OMNIGRAPH_BENCH_BEFORE names one (its `.venv` is used), so that all meet the same machine. The least CPU
and the highest rate of all turns count, since what else the machine does only adds. Where `wrk` is installed, it is the
client of these turns: on two cores a client in Python takes a good part of what two workers could use. And the same
look-up is asked a thousand times: one by one, and as one request of `query_many`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvloop
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

import omnigraph

PEOPLE = 5_000
CLIENTS = (1, 16, 64)
BRANCHES = 100
SECONDS = float(os.environ.get("OMNIGRAPH_BENCH_SECONDS", "1.5"))
REQUESTS = int(os.environ.get("OMNIGRAPH_BENCH_REQUESTS", "100000"))  # of the memory test
BEFORE = os.environ.get("OMNIGRAPH_BENCH_BEFORE")  # another checkout, to compare with
TURNS = 6
TURN_CLIENTS = 16
MARKS = (10_000, 20_000, 50_000)  # where it looks, besides the end
GROWTH_MAX = 1.1
SCHEMA = "node Person { name: String @key }\nedge Knows: Person -> Person"
POINT = "query q($n: String) { match { $p: Person $p.name = $n } return { $p.name as name } }"
HOPS = """query q($n: String) {
  match { $p: Person $p.name = $n $p knows $f $f knows $g } return { $g.name as name } }"""
ADD = "query a($n: String) { insert Person { name: $n } }"
BASE = "/graphs/default"
Body = Callable[[int, int], Any]  # of the number of a client and of its request


# --- servers -------------------------------------------------------------------------------------------------------


async def constant(request: Request) -> JSONResponse:
    """What every server can at most be compared with."""
    await request.body()
    return JSONResponse({"rows": [{"name": "p1"}]})


app = Starlette(routes=[Route(f"{BASE}/query", constant, methods=["POST"])])
BARE = """
import socket, uvicorn
from benchmarks.server import app
bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
bound.bind(("127.0.0.1", 0))
bound.listen()
print("OMNIGRAPH_LISTEN_ADDR=127.0.0.1:%d" % bound.getsockname()[1], flush=True)
uvicorn.Server(uvicorn.Config(app, lifespan="off", log_config=None, access_log=False)).run([bound])
"""


@dataclass(frozen=True, slots=True)
class Running:
    """A server in its own process."""

    pid: int
    host: str
    port: int

    def cpu_seconds(self) -> float:
        """What its processes have used so far; 0 where the system does not tell."""
        return sum(map(_used, (self.pid, *_workers_of(self.pid))))

    def resident_mib(self) -> float:
        try:
            pages = Path(f"/proc/{self.pid}/statm").read_text().split()[1]
        except OSError:
            return 0.0
        return int(pages) * os.sysconf("SC_PAGE_SIZE") / 2**20


def _used(pid: int) -> float:
    """To the nanosecond: a measurement may be shorter than a hundred ticks of the clock."""
    try:
        told = [p.read_text() for p in Path(f"/proc/{pid}/task").glob("*/schedstat")]
    except OSError:
        return 0.0
    return sum(int(each.split()[0]) for each in told) / 1e9


def _workers_of(pid: int) -> list[int]:
    try:
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


@contextmanager
def process(*command: str, checkout: str | None = None) -> Iterator[Running]:
    """A server, of this checkout or of another one; its address is on the first line it prints."""
    python = sys.executable if checkout is None else f"{checkout}/.venv/bin/python"
    running = subprocess.Popen(
        [python, *command],
        cwd=checkout,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONPATH": checkout or os.getcwd()},
    )
    assert running.stdout is not None
    try:
        address = running.stdout.readline().strip().removeprefix("OMNIGRAPH_LISTEN_ADDR=")
        host, _, port = address.partition(":")
        yield Running(running.pid, host, int(port))
    finally:
        running.terminate()
        running.wait(60)
        running.stdout.close()


@contextmanager
def serving(
    store: str, *more: str, group_commit: bool = True, checkout: str | None = None
) -> Iterator[Running]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "server.json")
        limits = {"actor_in_flight_max": 512}
        settings = {"graphs": {"default": {"uri": store}}, "limits": limits}
        file.write_text(json.dumps({**settings, "group_commit": group_commit}))
        flags = ("--config", str(file), "--unauthenticated", "--bind", "127.0.0.1:0", *more)
        with process("-m", "omnigraph.cli.main", "serve", *flags, checkout=checkout) as running:
            yield running


def made(folder: str) -> str:
    """A graph of people who know five others each, with many branches."""
    store = f"{folder}/graph"
    graph = omnigraph.init(store, SCHEMA)
    edges = [
        {"from": f"p{i}", "to": f"p{(i * 7 + k * 13 + 1) % PEOPLE}"}
        for i in range(PEOPLE)
        for k in range(5)
    ]
    graph.load({"Person": [{"name": f"p{i}"} for i in range(PEOPLE)], "Knows": edges})
    for number in range(BRANCHES):
        graph.create_branch(f"b{number}")
    return store


# --- clients -------------------------------------------------------------------------------------------------------


@dataclass
class Measured:
    """The times of requests that were answered."""

    seconds: float
    cpu: float = 0.0
    took: list[float] = field(default_factory=list)

    @property
    def rate(self) -> float:
        return len(self.took) / self.seconds

    def line(self, name: str, clients: int, bare: float = 0.0) -> str:
        ordered = sorted(self.took)
        p50, p99 = statistics.median(ordered), ordered[int(len(ordered) * 0.99) - 1]
        ratio = f"{self.rate / bare:.2f}" if bare else ""
        cpu = self.cpu / len(ordered) * 1e3
        times = f"{p50 * 1e3:>9.1f}{p99 * 1e3:>9.1f}{cpu:>9.2f}"
        return f"{name:<22}{clients:>8}{self.rate:>10,.0f}{times}{ratio:>9}"


def measure(
    server: Running, path: str, body: Body, clients: int, seconds: float, most: int | None = None
) -> Measured:
    """So many clients, each asking again as soon as it is answered; until the time is up, or `most` were answered."""
    found = Measured(seconds)
    used, begun = server.cpu_seconds(), time.perf_counter()
    uvloop.run(_all_clients(server, path, body, clients, begun + seconds, found.took, most))
    found.seconds = time.perf_counter() - begun
    found.cpu = server.cpu_seconds() - used
    return found


async def _all_clients(
    server: Running,
    path: str,
    body: Body,
    clients: int,
    until: float,
    took: list[float],
    most: int | None,
) -> None:
    async def client(number: int) -> None:
        reader, writer = await asyncio.open_connection(server.host, server.port)
        count = 0
        while time.perf_counter() < until and (most is None or len(took) < most):
            raw = json.dumps(body(number, count)).encode()
            started = time.perf_counter()
            writer.write(_request(path, raw))
            await _answered(reader)
            took.append(time.perf_counter() - started)
            count += 1
        writer.close()

    await asyncio.gather(*(client(number) for number in range(clients)))


def measure_by_wrk(
    server: Running, path: str, script: str, clients: int, seconds: float
) -> Measured:
    """The same by a program that hardly takes anything of the cores."""
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as file:
        file.write(script)
        file.flush()
        flags = ["-t1", f"-c{clients}", f"-d{max(round(seconds), 1)}s", "-s", file.name]
        command = ["wrk", *flags, f"http://{server.host}:{server.port}{path}"]
        used = server.cpu_seconds()
        told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        used = server.cpu_seconds() - used
    answered = re.search(r"(\d+) requests in ([\d.]+)s", told)
    if answered is None or "Non-2xx" in told or "Socket errors" in told:
        raise RuntimeError(told)
    return Measured(float(answered[2]), used, [0.0] * int(answered[1]))


def _request(path: str, raw: bytes) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(raw)}\r\n\r\n".encode() + raw


async def _answered(reader: asyncio.StreamReader) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    size = int(head.partition(b"content-length:")[2].split(b"\r\n", 1)[0])
    content = await reader.readexactly(size)
    if not head.startswith(b"http/1.1 200"):
        raise RuntimeError(content.decode())


def asking(text: str) -> Body:
    return lambda n, i: {"query": text, "params": {"n": f"p{(n * 101 + i) % PEOPLE}"}}


def adding(*, branches: bool = False) -> Body:
    run = time.monotonic_ns()

    def body(number: int, count: int) -> Any:
        named = {"branch": f"b{number % BRANCHES}"} if branches else {}
        return {"query": ADD, "params": {"n": f"n{run}-{number}-{count}"}, **named}

    return body


# --- what is measured ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Job:
    """One kind of request, as both clients make it; `name` is the parameter in Lua, of the number i."""

    path: str
    text: str
    body: Body
    name: str = f'"p" .. i * 101 % {PEOPLE}'

    def take(self, server: Running, seconds: float) -> Measured:
        if shutil.which("wrk") is None:
            return measure(server, BASE + self.path, self.body, TURN_CLIENTS, seconds)
        body = json.dumps({"query": self.text, "params": {"n": "%s"}})
        script = f"""
            local i = 0
            wrk.method = "POST"
            wrk.headers["Content-Type"] = "application/json"
            request = function()
              i = i + 1
              return wrk.format(nil, nil, nil, string.format([==[{body}]==], {self.name}))
            end
        """
        return measure_by_wrk(server, BASE + self.path, script, TURN_CLIENTS, seconds)


def ladder(
    server: Running, name: str, path: str, body: Body, seconds: float, bare: dict[int, float]
) -> dict[int, float]:
    """One kind of request at every number of clients; the rates."""
    rates = {}
    measure(server, BASE + path, body, 1, 0.3)  # warm
    for clients in CLIENTS:
        found = measure(server, BASE + path, body, clients, seconds)
        print(found.line(name, clients, bare.get(clients, 0)), flush=True)
        rates[clients] = found.rate
    return rates


def turns(store: str, seconds: float) -> None:
    """Versions and numbers of workers beside each other."""
    jobs = {
        "point query": Job("/query", POINT, asking(POINT)),
        "2 hops": Job("/query", HOPS, asking(HOPS)),
        "insertion": Job(
            "/mutate", ADD, adding(), 'string.format("%d-%f-%d", os.time(), os.clock(), i)'
        ),
    }
    with ExitStack() as running:
        sides = {"bare": running.enter_context(process("-c", BARE))}
        if BEFORE is not None:
            before = made(running.enter_context(tempfile.TemporaryDirectory()))
            sides["before"] = running.enter_context(serving(before, checkout=BEFORE))
        sides["one process"] = running.enter_context(serving(store))
        for workers in (1, 2):
            name = f"{workers} worker" + "s" * (workers > 1)
            served = serving(store, "--workers", str(workers))
            sides[name] = running.enter_context(served)
        print(f"{TURNS} turns of {seconds:g} s, {TURN_CLIENTS} clients")
        print(f"{'':<22}{'':<14}{'req/s':>10}{'cpu ms':>9}{'of before':>11}{'cpu':>7}")
        for kind, job in jobs.items():
            asked = {n: s for n, s in sides.items() if (n, job.path) != ("bare", "/mutate")}
            _turns_of(kind, asked, job, seconds)
        many(sides["one process"])


def _turns_of(kind: str, sides: dict[str, Running], job: Job, seconds: float) -> None:
    found: dict[str, list[Measured]] = {name: [] for name in sides}
    for turn in range(TURNS + 1):
        for name, server in sides.items():
            taken = job.take(server, seconds if turn else 0.3)
            found[name] += [taken] if turn else []
    best = {
        name: (max(m.rate for m in each), min(m.cpu / len(m.took) for m in each) * 1e3)
        for name, each in found.items()
    }
    old = best.get("before", best["one process"])
    for name, (rate, cpu) in best.items():
        ratios = f"{rate / old[0]:>11.2f}{cpu / old[1]:>7.2f}"
        print(f"{kind:<22}{name:<14}{rate:>10,.0f}{cpu:>9.3f}{ratios}", flush=True)


def many(server: Running) -> None:
    """A thousand look-ups: each a request, and all of them one."""
    sets = [{"n": f"p{n}"} for n in range(1000)]
    alone = measure(server, f"{BASE}/query", asking(POINT), 1, 60, 1000)
    together = [
        measure(server, f"{BASE}/query/many", lambda *_: {"query": POINT, "params": sets}, 1, 60, 1)
        for _ in range(5)
    ]
    took = min(found.seconds for found in together)
    print(
        f"1,000 look-ups: {alone.seconds * 1e3:,.0f} ms one by one, {took * 1e3:,.1f} ms as one request"
    )


def memory(server: Running, requests: int) -> None:
    """What a server holds while it goes on answering: once it is warm, that should not change."""
    marks = [mark for mark in MARKS if mark < requests] + [requests]
    warm = max((mark for mark in marks if mark <= requests // 5), default=marks[0])
    held: dict[int, float] = {}
    answered = 0
    print(f"\n{'requests answered':<22}{'MiB held':>18}")
    for mark in marks:
        measure(server, f"{BASE}/query", asking(POINT), 16, 3600, mark - answered)
        answered, held[mark] = mark, server.resident_mib()
        print(f"{mark:<22,}{held[mark]:>18.0f}", flush=True)
    if not held[warm]:
        return  # the system does not tell
    ratio = held[requests] / held[warm]
    missed = "" if ratio <= GROWTH_MAX else " MISSED"
    print(f"{requests:,} to {warm:,}: {ratio:.2f} (at most {GROWTH_MAX}){missed}")


def run(seconds: float = SECONDS, requests: int = REQUESTS) -> None:
    head = f"{'clients':>8}{'req/s':>10}{'p50 ms':>9}{'p99 ms':>9}{'cpu ms':>9}{'of bare':>9}"
    print(f"{'':<22}{head}")
    with process("-c", BARE) as server:
        bare = ladder(server, "constant (bare)", "/query", asking(POINT), seconds, {})
    with tempfile.TemporaryDirectory() as folder:
        store = made(folder)
        turns(store, seconds)
        with serving(store) as server:
            ladder(server, "point query", "/query", asking(POINT), seconds, bare)
            ladder(server, "2 hops", "/query", asking(HOPS), seconds, bare)
            ladder(server, "insertion, grouped", "/mutate", adding(), seconds, bare)
            body = adding(branches=True)
            found = measure(server, f"{BASE}/mutate", body, BRANCHES, max(seconds, 3.0))
            print(found.line(f"on {BRANCHES} branches", BRANCHES), flush=True)
        with serving(store, group_commit=False) as server:
            ladder(server, "insertion, one by one", "/mutate", adding(), seconds, bare)
        with serving(store) as server:
            memory(server, requests)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for each measurement")
    parser.add_argument("--requests", type=int, default=REQUESTS, help="of the memory test")
    given = parser.parse_args()
    run(given.seconds, given.requests)
