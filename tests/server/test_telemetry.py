"""What a server says about itself: the access log, the audit, spans; and how it listens and ends."""

from __future__ import annotations

import http.client
import logging
import socket
import ssl
from pathlib import Path
from typing import Any

import pytest
import trustme
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import omnigraph
from omnigraph.server.settings import Bounds
from tests.server import world as worlds
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


# --- OpenTelemetry ---------------------------------------------------------------------------------------------------


@pytest.fixture
def metered(monkeypatch: pytest.MonkeyPatch) -> InMemoryMetricReader:
    """What a collector of OpenTelemetry would be told."""
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    monkeypatch.setattr("opentelemetry.metrics.get_meter_provider", lambda: provider)
    return reader


def _points(reader: InMemoryMetricReader, name: str) -> list[Any]:
    told = reader.get_metrics_data()
    assert told is not None
    return [
        point
        for resource in told.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        for point in metric.data.data_points
        if metric.name == name
    ]


def test_metrics_go_to_opentelemetry_too(metered: InMemoryMetricReader, tmp_path: Path) -> None:
    with worlds.world(tmp_path) as world:
        world.people()
        world.refused(404, "GET", "/nowhere")
        [asked] = [
            point
            for point in _points(metered, "http.server.request.duration")
            if point.attributes["http.route"] == "/graphs/{graph_id}/query"
        ]
        assert (asked.count, asked.attributes["http.response.status_code"]) == (1, 200)
        assert [point.value for point in _points(metered, "http.server.active_requests")] == [0, 0]
        [failed] = _points(metered, "omnigraph.errors")
        assert failed.attributes["error.type"] == "route_not_found"
        operations = _points(metered, "omnigraph.storage.operations")
        assert "query" in {point.attributes["omnigraph.operation"] for point in operations}


# --- slow queries ----------------------------------------------------------------------------------------------------

OF_NAME = """query q($name: String, $ages: [I32]) {
  match { $p: Person $p.name = $name $p.age in $ages $p.name != "a secret text" } return { $p.name } }"""


def test_slow_queries_are_logged_with_plan_and_without_values(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    asked = {"query": OF_NAME, "params": {"name": "a secret name", "ages": [77, 78]}}
    with worlds.world(tmp_path, Bounds(slow_query_seconds=0)) as world:
        world.ok("POST", "/query", asked)
    [first] = (r.getMessage() for r in caplog.records if r.name == "omnigraph.server.slow")
    assert "params={name: text of 13, ages: list of 2}" in first
    assert "graph=alpha branch='main' at=None actor=admin" in first
    assert "NodeScan $p: Person" in first
    assert "$p.name = $name" in first
    assert "secret" not in first
    assert "77" not in first


def test_quick_queries_are_not_logged(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.people()
    assert not [r for r in caplog.records if r.name == "omnigraph.server.slow"]
