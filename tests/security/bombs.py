"""Bodies made to cost more than they are worth, and what each costs a server: `python -m tests.security.bombs`.

Run in a process of its own, so that nothing else is measured. For every bomb it prints a line of JSON: the status of
the answer, its size, the CPU it took, and by how much memory grew at most.
"""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from omnigraph.server.app import Server
from tests.server import world as worlds
from tests.server.world import TOKENS
from tests.support import rings

SIZE = rings.count(16 << 20, 64 << 20)  # a JSON load may have the latter
CHUNK_BYTES = 64 << 10  # as they come from a socket
LINE = SIZE // 2 - (1 << 20)  # below the limit of a line
NDJSON, JSON = "application/x-ndjson", "application/json"
PARQUET, ARROW = "application/vnd.apache.parquet", "application/vnd.apache.arrow.stream"
MIXED = "multipart/mixed; boundary=b"
PEAK, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


@dataclass(frozen=True, slots=True)
class Bomb:
    """A body, and where it is sent."""

    make: Callable[[], bytes]
    path: str = "/load"
    media: str = NDJSON
    encoding: str = ""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a bomb did."""

    name: str
    status: int
    answer_bytes: int
    cpu_seconds: float
    grown_bytes: int


def filled(piece: bytes, head: bytes = b"", tail: bytes = b"", size: int = SIZE) -> bytes:
    """As many pieces as fit."""
    return head + piece * ((size - len(head) - len(tail)) // len(piece)) + tail


def numbered(form: str) -> bytes:
    """Lines of which no two are alike."""
    lines = (form.replace("#", str(n)).encode() for n in count())
    sizes = iter(range(SIZE // (len(form) + 6)))
    return b"".join(line for line, _ in zip(lines, sizes, strict=False))


def members(last: str) -> bytes:
    """Lines of as many members as the limit on structure lets through."""
    names = ",".join(f'"m{n}":1' for n in range(60_000))
    line = f'{{"type":"Person",{names},"{last}":1}}\n'.encode()
    return filled(line)


def twice(line: bytes) -> bytes:
    return line + line


def named_often() -> pa.Table:
    """One long text, a hundred thousand times."""
    once = pa.array(["x" * (1 << 20)])
    many = pa.array(np.zeros(100_000, np.int32))
    return pa.table({"name": pa.DictionaryArray.from_arrays(many, once)})


def zeros() -> pa.Table:
    return pa.table({"age": np.zeros(200 << 20, np.int32)})


def nothing() -> pa.Table:
    """Rows that take no byte."""
    return pa.table({"name": pa.Array.from_buffers(pa.null(), (1 << 31) - 1, [None])})


def parquet(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd")
    return sink.getvalue()


def stream(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(
        sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")
    ) as writer:
        writer.write_table(table)
    return sink.getvalue()


def in_a_part(body: bytes) -> bytes:
    head = b'--b\r\nContent-Disposition: attachment; name="Person"\r\n\r\n'
    return head + body + b"\r\n--b--\r\n"


BOMBS: dict[str, Bomb] = {
    # lines
    "empty records": Bomb(lambda: filled(b"{}\n")),
    "blank lines": Bomb(lambda: filled(b"\n")),
    "lines of white space": Bomb(lambda: filled(b" \t\r\n")),
    "records behind white space": Bomb(lambda: filled(b"  {}\n")),
    "broken lines": Bomb(lambda: filled(b"x\n")),
    "one unknown type": Bomb(lambda: filled(b'{"type":"T"}\n')),
    "many unknown types": Bomb(lambda: numbered('{"type":"T#"}\n')),
    "many unknown types, spelt oddly": Bomb(lambda: numbered('{"x":0,"type":"T#"}\n')),
    "a beginning longer than a block's padding": Bomb(
        lambda: b'{"type":"' + b"T" * 9000 + b'"}\n' + b'{"type":"P"}\n' * 9
    ),
    "escaped texts": Bomb(lambda: twice(filled(rb"\\", b'{"type":"', b'"}\n', LINE))),
    "quotes": Bomb(lambda: twice(filled(rb"\"", b'{"type":"', b'"}\n', LINE))),
    "long names of types": Bomb(lambda: twice(filled(b"T", b'{"type":"', b'"}\n', LINE))),
    "long names of fields": Bomb(
        lambda: twice(filled(b"f", b'{"type":"Person","data":{"', b'":1}}\n', LINE))
    ),
    "long integers": Bomb(
        lambda: twice(filled(b"9", b'{"type":"Person","data":{"age":', b"}}\n", LINE))
    ),
    "long fractions": Bomb(
        lambda: twice(filled(b"1", b'{"type":"Person","data":{"age":0.', b"}}\n", LINE))
    ),
    "half characters": Bomb(lambda: filled(rb'{"type":"Person","data":{"\ud800":"\ud800"}}' + b"\n")),
    "much structure": Bomb(lambda: twice(filled(b"[],", b'{"x":[', b"0]}\n", LINE))),
    "deep lists": Bomb(lambda: filled(b"[" * 120_000 + b"\n")),
    "a member twice": Bomb(lambda: members("m59999")),
    "packed lines": Bomb(lambda: gzip.compress(filled(b"{}\n")), encoding="gzip"),
    "records without a key": Bomb(lambda: filled(b'{"type":"Person"}\n')),
    "one record again and again": Bomb(
        lambda: filled(b'{"type":"Person","data":{"name":"x"}}\n'), path="/load?mode=append"
    ),
    "blank rows to look at": Bomb(lambda: filled(b"\n"), path="/import/preview?format=ndjson"),
    "many columns": Bomb(
        lambda: filled(b"a,", tail=b"\n"), "/import?format=csv&type=Person", "text/csv"
    ),
    "many columns to look at": Bomb(
        lambda: filled(b"a,", tail=b"\n"), "/import/preview?format=csv", "text/csv"
    ),
    # tables
    "texts that Parquet names often": Bomb(
        lambda: parquet(named_often()), "/import?format=parquet&type=Person", PARQUET
    ),
    "texts that Parquet names often, to look at": Bomb(
        lambda: parquet(named_often()), "/import/preview?format=parquet", PARQUET
    ),
    "numbers that Parquet names often": Bomb(
        lambda: parquet(zeros()), "/import?format=parquet&type=Person", PARQUET
    ),
    "texts that Arrow names often": Bomb(
        lambda: stream(named_often()), "/import?format=arrow&type=Person", ARROW
    ),
    "texts that Arrow names often, in a part": Bomb(
        lambda: in_a_part(stream(named_often())), media=MIXED
    ),
    "numbers that are packed": Bomb(
        lambda: stream(zeros()), "/import?format=arrow&type=Person", ARROW
    ),
    "numbers that are packed, to look at": Bomb(
        lambda: stream(zeros()), "/import/preview?format=arrow", ARROW
    ),
    "numbers that are packed, in a part": Bomb(lambda: in_a_part(stream(zeros())), media=MIXED),
    "rows of nothing": Bomb(
        lambda: stream(nothing()), "/import?format=arrow&type=Person", ARROW
    ),
    # parts
    "many parts": Bomb(lambda: filled(b"--b\r\nA: b\r\n\r\n\r\n"), media=MIXED),
    "many headers": Bomb(lambda: filled(b"a:b\r\n", b"--b\r\n"), media=MIXED),
    "a long header": Bomb(lambda: filled(b"a", b"--b\r\na: "), media=MIXED),
    # JSON
    "nested lists": Bomb(lambda: filled(b"[", b'{"x":'), media=JSON),
    "nested objects": Bomb(lambda: filled(b'{"x":'), media=JSON),
    "a long list": Bomb(lambda: filled(b"0,", b'{"x":[', b"0]}"), media=JSON),
    "a long number": Bomb(lambda: filled(b"9", b'{"x":', b"}"), media=JSON),
    "a long number for a text": Bomb(lambda: filled(b"9", b'{"branch":', b"}"), media=JSON),
    "many members": Bomb(lambda: filled(b'"a":0,', b"{", b'"b":0}'), media=JSON),
    "a long branch": Bomb(
        lambda: filled("ä".encode(), b'{"data":"{}","branch":"', b'"}'), media=JSON
    ),
    "a long message": Bomb(lambda: filled(b"m", b'{"data":"{}","message":"', b'"}'), media=JSON),
    "records in a text": Bomb(lambda: filled(rb"{}\n", b'{"data":"', b'"}'), media=JSON),
    "blank lines in a text": Bomb(lambda: filled(rb"\n", b'{"data":"', b'"}'), media=JSON),
    "a few records among blank lines": Bomb(
        lambda: filled(rb"\n" * 100_000 + rb'{\"type\":\"P\"}\n', b'{"data":"', b'"}'), media=JSON
    ),
    "long lines in a text": Bomb(
        lambda: filled(b"[" + b"0," * 200_000 + rb"0]\n", b'{"data":"', b'"}'), media=JSON
    ),
    "wide characters": Bomb(
        lambda: filled(b"x", '{"data":"\U0001f600'.encode(), b'"}'), media=JSON
    ),
}  # fmt: skip


def measured(server: Server, name: str, bomb: Bomb) -> Cost:
    """Set a bomb off, and see."""
    body = bomb.make()
    before, started = _resident(), time.process_time()
    status, size = asyncio.run(_asked(server, bomb, body))
    return Cost(name, status, size, time.process_time() - started, _peak() - before)


async def _asked(server: Server, bomb: Bomb, body: bytes) -> tuple[int, int]:
    """One request, its body in the pieces a socket gives."""
    pieces: Iterator[memoryview] = (
        memoryview(body)[start : start + CHUNK_BYTES] for start in range(0, len(body), CHUNK_BYTES)
    )
    left = [len(body)]
    told: dict[str, Any] = {"status": 0, "size": 0}

    async def receive() -> dict[str, Any]:
        piece = bytes(next(pieces, memoryview(b"")))
        left[0] -= len(piece)
        return {"type": "http.request", "body": piece, "more_body": left[0] > 0}

    async def send(message: MutableMapping[str, Any]) -> None:
        told["status"] = message.get("status", told["status"])
        told["size"] += len(message.get("body", b""))

    path, _, query = f"/graphs/alpha{bomb.path}".partition("?")
    headers = {"authorization": f"Bearer {TOKENS['admin']}", "content-type": bomb.media}
    headers |= {"content-encoding": bomb.encoding} if bomb.encoding else {}
    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(key.encode(), value.encode()) for key, value in headers.items()],
    }
    await server(scope, receive, send)
    return told["status"], told["size"]


def _resident() -> int:
    """The memory held now; what was held before is forgotten where the system lets us."""
    if not RESET.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    RESET.write_text("5")
    return _status("VmRSS")


def _peak() -> int:
    if not RESET.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return _status("VmHWM")


def _status(name: str) -> int:
    lines = PEAK.read_text().splitlines()
    found = next(line for line in lines if line.startswith(f"{name}:"))
    return int(found.split()[1]) * 1024


def main(names: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        server, _ = worlds.build(Path(folder))
        measured(server, "warm", Bomb(lambda: b"{}\n"))
        for name in names or BOMBS:
            print(json.dumps(asdict(measured(server, name, BOMBS[name]))), flush=True)
        server.close()


if __name__ == "__main__":
    main(sys.argv[1:])
