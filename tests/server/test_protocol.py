"""HTTP as bytes: what never ends is bounded, and what follows a body is not taken for a header."""

from __future__ import annotations

import json
import select
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from omnigraph.server.protocol import HEAD_BYTES_MAX
from tests.server import world as worlds
from tests.server.world import TOKENS
from tests.support.waiting import wait_until

PIECE = 16 << 10


@pytest.fixture
def client(tmp_path: Path) -> Iterator[socket.socket]:
    server, _ = worlds.build(tmp_path)
    with worlds.listening(server) as address:
        port = int(address.rsplit(":", 1)[1])
        with socket.create_connection(("127.0.0.1", port), timeout=30) as connected:
            yield connected


def _answer(client: socket.socket) -> bytes:
    return b"".join(iter(lambda: client.recv(65_536), b""))


BEGUN = (
    b"POST /graphs/alpha/query HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n"
)


@pytest.mark.parametrize(
    ("first", "piece"),
    [
        (b"GET /healthz HTTP/1.1\r\n", b"X-A: " + b"a" * 90 + b"\r\n"),
        (b"GET /healthz HTTP/1.1\r\nX-A: ", b"a" * 97),
        (b"GET /", b"a" * 97),
        (BEGUN + b"1;", b"a" * 97),
        (BEGUN + b"0\r\n", b"X-A: " + b"a" * 90 + b"\r\n"),
    ],
    ids=["headers", "a header", "an address", "a chunk extension", "trailers"],
)
def test_what_never_ends_is_refused(client: socket.socket, first: bytes, piece: bytes) -> None:
    client.sendall(first)
    sent, most = 0, 1024 * HEAD_BYTES_MAX  # more than any buffer between the two holds
    try:
        while sent < most:
            client.sendall(piece * (PIECE // len(piece)))
            sent += PIECE
    except OSError:
        pass  # it has had enough
    assert sent < most, "it was taken without an end"


def test_a_head_that_is_too_large_is_told_so(client: socket.socket) -> None:
    client.sendall(b"GET /healthz HTTP/1.1\r\nX-A: ")
    for _ in range(1000):
        if select.select([client], [], [], 0.01)[0]:
            break
        client.sendall(b"a" * 1024)
    answer = client.recv(65_536)
    assert answer.startswith(b"HTTP/1.1 431 ")
    assert b'"error_code":"request_invalid"' in answer


def test_what_is_no_request_is_refused_in_the_form_of_others(client: socket.socket) -> None:
    client.sendall(b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n")
    answer = _answer(client)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b'"error_code":"request_invalid"' in answer


def test_a_trailer_is_no_header(client: socket.socket) -> None:
    """Whoever stands in front and takes headers away has not seen it."""
    head = b"POST /graphs/alpha/query HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    body = b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n2\r\n{}\r\n0\r\n"
    trailer = f"Authorization: Bearer {TOKENS['admin']}\r\n\r\n".encode()
    client.sendall(head + body + trailer)
    assert _answer(client).startswith(b"HTTP/1.1 401 ")


def test_requests_that_come_together_are_answered_in_order(client: socket.socket) -> None:
    ask = b"GET %b HTTP/1.1\r\nHost: x\r\n%b\r\n"
    client.sendall(
        ask % (b"/healthz", b"")
        + ask % (b"/nowhere", b"")
        + ask % (b"/healthz", b"Connection: close\r\n")
    )
    answer = _answer(client)
    assert [part[:3] for part in answer.split(b"HTTP/1.1 ")[1:]] == [b"200", b"404", b"200"]


ENDLESS = """query q() { match { $a: Person $b: Person $c: Person $a.name < $b.name $b.name < $c.name }
  return { count($a) as n } }"""


def test_a_client_that_goes_away_frees_its_query(tmp_path: Path) -> None:
    server, graphs = worlds.build(tmp_path)
    graphs["alpha"].load({"Person": [{"name": f"p{n}"} for n in range(3000)]})
    body = json.dumps({"query": ENDLESS}).encode()
    head = f"POST /graphs/alpha/query HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKENS['admin']}\r\n"
    more = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    with worlds.listening(server) as address:
        port = int(address.rsplit(":", 1)[1])
        with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
            client.sendall((head + more).encode() + body)
            wait_until(lambda: server.pool.waiting == 1)
            client.settimeout(0.5)
            with pytest.raises(TimeoutError):  # it goes on for long
                client.recv(1)
        wait_until(lambda: server.under_way == 0, timeout=20, what="the query to end")
    assert server.admission.requests == 0
