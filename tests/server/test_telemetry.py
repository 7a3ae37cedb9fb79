"""What a server says about itself: the access log, the audit, spans; and how it listens and ends."""

from __future__ import annotations

import http.client
import logging
import socket
import ssl
from pathlib import Path

import pytest
import trustme
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import omnigraph
from tests.server.process import serving
from tests.server.world import PEOPLE, World
from tests.support.spans import kept_spans
from tests.support.waiting import wait_until

SCHEMA = "node Person { name: String @key }"
COUNT = "query n() { match { $p: Person } return { count($p) as n } }"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
LINE = b'{"type":"Person","data":{"name":"%d"}}\n'


def test_the_access_log_names_actor_and_commit(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    told = world.ok("POST", "/mutate", {"query": 'query q() { insert Person { name: "Zoe" } }'})
    world.refused(403, "GET", "/export", actor="reader")
    lines = [r.getMessage() for r in caplog.records if r.name == "omnigraph.server.access"]
    commit = told["commit"]["graph_commit_id"]
    assert lines[0].startswith("POST /graphs/alpha/mutate 200 ")
    assert f"actor=admin commit={commit}" in lines[0]
    assert lines[1].startswith("GET /graphs/alpha/export 403 ")
    assert "actor=reader" in lines[1]


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    """The spans of the server, kept."""
    return kept_spans(monkeypatch)


def test_every_request_has_a_span(world: World, spans: InMemorySpanExporter) -> None:
    parent = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}
    world.ok("POST", "/query", {"query": PEOPLE}, headers=parent)
    world.refused(404, "GET", "/commits/nowhere")
    good, bad = spans.get_finished_spans()
    assert good.name == "POST /graphs/{graph_id}/query"
    assert good.context is not None
    assert f"{good.context.trace_id:032x}" == TRACE, "the caller's trace is not continued"
    assert good.attributes is not None
    assert bad.attributes is not None
    assert (good.attributes["status"], bad.attributes["status"]) == ("200", "404")
    assert good.attributes["actor"] == "admin"
    assert "commit" in good.attributes


@pytest.fixture
def store(tmp_path: Path) -> str:
    omnigraph.init(str(tmp_path / "graph"), SCHEMA)
    return str(tmp_path / "graph")


def test_tls_is_a_matter_of_two_flags(store: str, tmp_path: Path) -> None:
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    chain, key = tmp_path / "chain.pem", tmp_path / "key.pem"
    chain.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    key.write_bytes(issued.private_key_pem.bytes())
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    flags = ("--unauthenticated", "--tls-cert", str(chain), "--tls-key", str(key))
    with serving("--store", store, *flags) as running:
        host, _, port = running.address.partition(":")
        asked = http.client.HTTPSConnection(host, int(port), context=trusting, timeout=120)
        asked.request("GET", "/healthz")
        assert asked.getresponse().status == 200
        asked.close()
        with socket.create_connection((host, int(port)), timeout=120) as plain:
            plain.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            assert b"200" not in plain.recv(1024), "it answers without TLS as well"


def test_told_to_end_it_finishes_what_was_begun(store: str) -> None:
    """Half of a load is sent, the server is told to end, the other half is sent: the load is whole."""
    body = b"".join(LINE % number for number in range(1000))
    head = (
        f"POST /graphs/default/load HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
    )
    with serving("--store", store, "--unauthenticated") as running:
        host, _, port = running.address.partition(":")
        address = (host, int(port))
        with socket.create_connection(address, timeout=120) as client:
            client.sendall(
                f"{head}Content-Type: application/x-ndjson\r\n\r\n".encode() + body[:500]
            )
            wait_until(lambda: _in_flight(address), timeout=120)
            running.process.terminate()
            wait_until(lambda: not _accepts(address), timeout=120)
            client.sendall(body[500:])
            answer = client.recv(65536)
        assert answer.startswith(b"HTTP/1.1 200"), answer
        assert running.process.wait(120) in (0, -15)
    assert omnigraph.open(store).query(COUNT).scalar() == 1000


def _in_flight(address: tuple[str, int]) -> bool:
    """Whether the server knows of a request besides this one."""
    asked = http.client.HTTPConnection(*address, timeout=120)
    asked.request("GET", "/metrics")
    text = asked.getresponse().read()
    asked.close()
    return b"omnigraph_requests_in_flight 2.0" in text


def _accepts(address: tuple[str, int]) -> bool:
    try:
        socket.create_connection(address, timeout=120).close()
    except OSError:
        return False
    return True
