"""How many requests a server answers: `python -m benchmarks.server [--seconds 2]`.

One server process, and clients as threads of this one. A point query, a 2-hop query and the insertion of one node, at 1
and 16 clients: requests per second, median and 99th percentile, and the ratio to a bare Starlette application that
answers with a constant. The last table shows writers on branches of their own.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import urllib3
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

import omnigraph

PEOPLE = 5_000
CLIENTS = (1, 16)
BRANCHES = 20
SCHEMA = "node Person { name: String @key }\nedge Knows: Person -> Person"
POINT = "query q($n: String) { match { $p: Person $p.name = $n } return { $p.name as name } }"
HOPS = """query q($n: String) {
  match { $p: Person $p.name = $n $p knows $f $f knows $g } return { $g.name as name } }"""
ADD = "query a($n: String) { insert Person { name: $n } }"


async def constant(request: Request) -> JSONResponse:
    """What every server can at most be compared with."""
    await request.body()
    return JSONResponse({"rows": [{"name": "p1"}]})


app = Starlette(routes=[Route("/graphs/default/query", constant, methods=["POST"])])


@contextmanager
def process(*command: str) -> Iterator[str]:
    """A server in its own process; its address is on the first line it prints."""
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    running = subprocess.Popen(
        [sys.executable, *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
    )
    assert running.stdout is not None
    try:
        yield running.stdout.readline().strip().removeprefix("OMNIGRAPH_LISTEN_ADDR=")
    finally:
        running.terminate()
        running.wait(60)
        running.stdout.close()


BARE = """
import socket, uvicorn
from benchmarks.server import app
bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
bound.bind(("127.0.0.1", 0))
bound.listen()
print("OMNIGRAPH_LISTEN_ADDR=127.0.0.1:%d" % bound.getsockname()[1], flush=True)
uvicorn.Server(uvicorn.Config(app, lifespan="off", log_config=None, access_log=False)).run([bound])
"""


@dataclass
class Measured:
    """The times of requests that were answered."""

    seconds: float
    took: list[float] = field(default_factory=list)

    @property
    def rate(self) -> float:
        return len(self.took) / self.seconds

    def line(self, name: str, clients: int, bare: float) -> str:
        ordered = sorted(self.took)
        p50, p99 = statistics.median(ordered), ordered[int(len(ordered) * 0.99) - 1]
        ratio = f"{self.rate / bare:6.2f}" if bare else " " * 6
        return (
            f"{name:<12}{clients:>8}{self.rate:>10,.0f}{p50 * 1e3:>9.1f}{p99 * 1e3:>9.1f}{ratio:>9}"
        )


def measure(
    address: str, path: str, body: Callable[[int, int], Any], clients: int, seconds: float
) -> Measured:
    """So many clients, each asking again as soon as it is answered."""
    found = Measured(seconds)
    until = time.perf_counter() + seconds

    def client(number: int) -> None:
        pool = urllib3.HTTPConnectionPool(address.partition(":")[0], int(address.partition(":")[2]))
        headers = {"Content-Type": "application/json"}
        count = 0
        while (started := time.perf_counter()) < until:
            raw = json.dumps(body(number, count)).encode()
            answer = pool.request("POST", path, body=raw, headers=headers, retries=False)
            if answer.status != 200:
                raise RuntimeError(answer.data.decode())
            found.took.append(time.perf_counter() - started)
            count += 1

    threads = [threading.Thread(target=client, args=(n,)) for n in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def made(folder: str) -> str:
    """A graph of people who know five others each."""
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


def asking(text: str) -> Callable[[int, int], Any]:
    return lambda n, i: {"query": text, "params": {"n": f"p{(n * 101 + i) % PEOPLE}"}}


def adding(branches: bool = False) -> Callable[[int, int], Any]:
    run = time.monotonic_ns()

    def body(number: int, count: int) -> Any:
        named = {"branch": f"b{number % BRANCHES}"} if branches else {}
        return {"query": ADD, "params": {"n": f"n{run}-{number}-{count}"}, **named}

    return body


def run(seconds: float = 2.0) -> None:
    base = "/graphs/default"
    print(f"{'':<12}{'clients':>8}{'req/s':>10}{'p50 ms':>9}{'p99 ms':>9}{'of bare':>9}")
    rates: dict[int, float] = {}
    with process("-c", BARE) as address:
        for clients in CLIENTS:
            found = measure(address, f"{base}/query", asking(POINT), clients, seconds)
            rates[clients] = found.rate
            print(found.line("constant", clients, 0))
    with tempfile.TemporaryDirectory() as folder:
        served = ("serve", "--store", made(folder), "--unauthenticated", "--bind", "127.0.0.1:0")
        with process("-m", "omnigraph.cli.main", *served) as address:
            for name, path, body in (
                ("point", "/query", asking(POINT)),
                ("2 hops", "/query", asking(HOPS)),
                ("mutation", "/mutate", adding()),
            ):
                measure(address, base + path, body, 1, 0.5)  # warm
                for clients in CLIENTS:
                    found = measure(address, base + path, body, clients, seconds)
                    print(found.line(name, clients, rates[clients]), flush=True)
            found = measure(address, f"{base}/mutate", adding(branches=True), BRANCHES, seconds)
            print(found.line("branches", BRANCHES, 0))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=2.0)
    run(parser.parse_args().seconds)
