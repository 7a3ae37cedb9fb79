"""What a server counts and writes down: Prometheus metrics, the access log, spans. Never a token, never a body."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from opentelemetry import propagate, trace
from opentelemetry.context import Context
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from omnigraph.storage import metrics

access = logging.getLogger("omnigraph.server.access")
tracer = trace.get_tracer("omnigraph.server")
SERVER = trace.SpanKind.SERVER
TRACE_HEADERS = (b"traceparent", b"tracestate", b"baggage")
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
FIELDS = ("ops", "stages", "opens", "bytes_read", "bytes_written")


def caller(headers: Iterable[tuple[bytes, bytes]]) -> Context | None:
    """The span of whoever asks, where the headers name it."""
    found = {
        name.decode("latin-1").lower(): value.decode("latin-1")
        for name, value in headers
        if name.lower() in TRACE_HEADERS
    }
    return propagate.extract(found) if found else None


def describe(span: trace.Span, record: Mapping[str, Any]) -> None:
    """Say what a request was; nothing is made up where nobody listens."""
    if not span.is_recording():
        return
    span.update_name(str(record["route"]))
    span.set_attributes({k: str(v) for k, v in record.items() if v is not None})
    if record["status"] >= 500:
        span.set_status(trace.StatusCode.ERROR)


class StorageCosts(Collector):
    """What operations cost in requests to the store, as `storage.metrics` counts it."""

    def collect(self) -> Iterator[CounterMetricFamily]:
        totals = metrics.totals()
        families = {
            name: CounterMetricFamily(
                f"omnigraph_storage_{name}", f"Storage {name} by operation.", labels=["operation"]
            )
            for name in (*FIELDS, "operations")
        }
        for operation, cost in sorted(totals.items()):
            for name in FIELDS:
                families[name].add_metric([operation], getattr(cost, name))
            families["operations"].add_metric([operation], cost.kinds["operations"])
        yield from families.values()


class Telemetry:
    """The metrics of one server."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(StorageCosts())
        self.requests = Counter(
            "omnigraph_requests",
            "Requests answered.",
            ["route", "status"],
            registry=self.registry,
        )
        self.seconds = Histogram(
            "omnigraph_request_seconds",
            "How long requests took.",
            ["route"],
            buckets=BUCKETS,
            registry=self.registry,
        )
        self.errors = Counter(
            "omnigraph_errors",
            "Failures by code; conflicts are among them.",
            ["code", "kind"],
            registry=self.registry,
        )
        self.in_flight = Gauge(
            "omnigraph_requests_in_flight", "Requests being answered.", registry=self.registry
        )
        self.queued = Gauge(
            "omnigraph_queue_depth", "Work waiting for a thread.", registry=self.registry
        )

    def text(self) -> bytes:
        """All metrics in the text format of Prometheus."""
        return generate_latest(self.registry)

    def answered(self, record: dict[str, Any]) -> None:
        """Count an answer and write its line."""
        self.requests.labels(record["route"], str(record["status"])).inc()
        self.seconds.labels(record["route"]).observe(record["seconds"])
        if not access.isEnabledFor(logging.INFO):
            return
        access.info(
            "%s %s %s %.1fms actor=%s commit=%s request=%s",
            record["method"],
            record["path"],
            record["status"],
            record["seconds"] * 1000,
            record["actor"],
            record["commit"],
            record["request_id"],
        )
