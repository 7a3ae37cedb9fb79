"""Prometheus metrics, the access log and spans of a server. Never a token, never a body."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any

from opentelemetry import metrics as otel
from opentelemetry import propagate, trace
from opentelemetry.context import Context
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from omnigraph.errors import OmnigraphError
from omnigraph.maintenance.upkeep import Upkeep
from omnigraph.read import PROCESS, SHARED
from omnigraph.server.listening import METRICS_FOLDER
from omnigraph.storage import metrics

access = logging.getLogger("omnigraph.server.access")
tracer = trace.get_tracer("omnigraph.server")
SERVER = trace.SpanKind.SERVER
TRACE_HEADERS = (b"traceparent", b"tracestate", b"baggage")
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
NOTHING = nullcontext()
FIELDS = ("ops", "stages", "opens", "bytes_read", "bytes_written")


@contextmanager
def _span(headers: Iterable[tuple[bytes, bytes]], record: Mapping[str, Any]) -> Iterator[None]:
    with tracer.start_as_current_span("request", context=_caller(headers), kind=SERVER) as span:
        try:
            yield
        finally:
            _describe(span, record)


def spanned(
    headers: Iterable[tuple[bytes, bytes]], record: Mapping[str, Any]
) -> AbstractContextManager[None]:
    """A span around a request, described by its record at the end; nothing if spans are not collected."""
    return _span(headers, record) if _is_traced() else NOTHING


def _is_traced() -> bool:
    """Whether OpenTelemetry is configured: until then its API does nothing."""
    unset = trace.ProxyTracer, trace.ProxyTracerProvider
    return (type(tracer), type(trace.get_tracer_provider())) != unset


def _caller(headers: Iterable[tuple[bytes, bytes]]) -> Context | None:
    """The span of the caller, if the headers name it."""
    found = {
        name.decode("latin-1").lower(): value.decode("latin-1")
        for name, value in headers
        if name.lower() in TRACE_HEADERS
    }
    return propagate.extract(found) if found else None


def _describe(span: trace.Span, record: Mapping[str, Any]) -> None:
    """Set the attributes of a request."""
    if not span.is_recording():
        return
    span.update_name(str(record["route"]))
    span.set_attributes({k: str(v) for k, v in record.items() if v is not None})
    if record["status"] >= 500:
        span.set_status(trace.StatusCode.ERROR)


class StorageCosts:
    """Requests to the store by operation, as counted by `storage.metrics`."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._reported: dict[tuple[str, str], int] = {}
        self._counters = {
            name: Counter(
                f"omnigraph_storage_{name}",
                f"Storage {name} by operation.",
                ["operation"],
                registry=registry,
            )
            for name in (*FIELDS, "operations")
        }

    def refresh(self) -> None:
        """Add what was counted since the last time."""
        for operation, cost in metrics.totals().items():
            for name, counter in self._counters.items():
                now = cost.kinds[name] if name == "operations" else getattr(cost, name)
                before = self._reported.get((operation, name), 0)
                if now > before:
                    counter.labels(operation).inc(now - before)
                    self._reported[operation, name] = now


class MaintenanceState:
    """The state of maintenance: its work, its backlog, and how long writers waited for it."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.upkeeps: Mapping[str, Upkeep] = {}
        self._reported: dict[tuple[str, str], float] = {}
        self._actions = Counter(
            "omnigraph_maintenance_actions",
            "What maintenance did, by kind; `failed` is tried again.",
            ["graph", "kind"],
            registry=registry,
        )
        self._waited = Counter(
            "omnigraph_writes_slowed_seconds",
            "How long writers waited because maintenance was behind.",
            ["graph"],
            registry=registry,
        )
        self._held = Gauge(
            "omnigraph_maintenance_held",
            "Whether a process of this server maintains the graph.",
            ["graph"],
            registry=registry,
            multiprocess_mode="livesum",
        )
        self._backlog = Gauge(
            "omnigraph_maintenance_backlog",
            "What is left to do: `fragments` to put together, `rows` to index or to give up.",
            ["graph", "of"],
            registry=registry,
            multiprocess_mode="livemax",
        )

    def refresh(self) -> None:
        """Update the gauges and counters."""
        for id, upkeep in self.upkeeps.items():
            maintainer = upkeep.maintainer
            for kind, count in list(maintainer.counts.items()):
                self._actions.labels(id, kind).inc(self._more((id, kind), count))
            self._waited.labels(id).inc(self._more((id, ""), upkeep.waited_seconds))
            self._held.labels(id).set(maintainer.office.held)
            self._backlog.labels(id, "fragments").set(maintainer.backlog.fragments)
            self._backlog.labels(id, "rows").set(maintainer.backlog.rows)

    def _more(self, key: tuple[str, str], now: float) -> float:
        """The increase since the last time; reloaded settings start at zero."""
        before = self._reported.get(key, 0.0)
        self._reported[key] = now
        return now - before if now >= before else now


class ReadingMemory:
    """Memory of queries and of the table cache, in the process or in all workers."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._spilt = 0
        self._used = Gauge(
            "omnigraph_memory_bytes",
            "Memory held for reading, by what holds it.",
            ["held_by"],
            registry=registry,
            multiprocess_mode="livesum",
        )
        self._most = Gauge(
            "omnigraph_memory_bytes_max",
            "Memory that may be held for reading.",
            ["held_by"],
            registry=registry,
            multiprocess_mode="livesum",
        )
        self._spilled = Counter(
            "omnigraph_spilled_bytes", "Bytes queries wrote to disk.", registry=registry
        )

    def refresh(self) -> None:
        """Update the gauges."""
        for name, part in (("queries", PROCESS), ("cache", SHARED)):
            self._used.labels(name).set(part.bytes_used)
            self._most.labels(name).set(part.bytes_max)
        spilt = PROCESS.spilled_bytes
        self._spilled.inc(spilt - self._spilt)
        self._spilt = spilt


class Metered:
    """The same for OpenTelemetry, under its conventional names; nothing if it is not configured."""

    def __init__(self) -> None:
        self._provider = otel.get_meter_provider()
        meter = self._provider.get_meter("omnigraph.server")
        self._seconds = meter.create_histogram(
            "http.server.request.duration",
            "s",
            "How long requests took.",
            explicit_bucket_boundaries_advisory=BUCKETS,
        )
        self._active = meter.create_up_down_counter(
            "http.server.active_requests", "{request}", "Requests being answered."
        )
        self._errors = meter.create_counter("omnigraph.errors", "{error}", "Failures by code.")
        for name in (*FIELDS, "operations"):
            meter.create_observable_counter(
                f"omnigraph.storage.{name}",
                [partial(_storage, name)],
                description=f"Storage {name} by operation.",
            )
        meter.create_observable_gauge(
            "omnigraph.memory.used", [_memory], "By", "Memory held for reading, by what holds it."
        )

    @property
    def _is_collected(self) -> bool:
        return type(otel.get_meter_provider()).__module__ != "opentelemetry.metrics._internal"

    def begun(self, method: str) -> None:
        if self._is_collected:
            self._active.add(1, {"http.request.method": method})

    def ended(self, record: Mapping[str, Any]) -> None:
        if not self._is_collected:
            return
        method = {"http.request.method": record["method"]}
        self._active.add(-1, method)
        route = str(record["route"]).partition(" ")[2] or str(record["route"])
        facts = {"http.route": route, "http.response.status_code": record["status"]}
        self._seconds.record(record["seconds"], method | facts)

    def failed(self, code: str, kind: str) -> None:
        if self._is_collected:
            self._errors.add(1, {"error.type": code, "omnigraph.error.kind": kind})


def _storage(name: str, _: otel.CallbackOptions) -> Iterator[otel.Observation]:
    for operation, cost in metrics.totals().items():
        n = cost.kinds[name] if name == "operations" else getattr(cost, name)
        yield otel.Observation(n, {"omnigraph.operation": operation})


def _memory(_: otel.CallbackOptions) -> Iterator[otel.Observation]:
    for name, part in (("queries", PROCESS), ("cache", SHARED)):
        yield otel.Observation(part.bytes_used, {"omnigraph.held_by": name})


class Telemetry:
    """The metrics of one server."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._known: dict[tuple[str, int], tuple[Counter, Histogram]] = {}
        self.storage = StorageCosts(self.registry)
        self.memory = ReadingMemory(self.registry)
        self._metered = Metered()
        self.maintenance = MaintenanceState(self.registry)
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
            "omnigraph_requests_in_flight",
            "Requests being answered.",
            registry=self.registry,
            multiprocess_mode="livesum",
        )
        self.queued = Gauge(
            "omnigraph_queue_depth",
            "Work waiting for a thread.",
            registry=self.registry,
            multiprocess_mode="livesum",
        )

    def _count(self, route: str, status: int, seconds: float) -> None:
        """Count a response; looking up a label takes longer than counting."""
        known = self._known.get((route, status))
        if known is None:
            known = self.requests.labels(route, str(status)), self.seconds.labels(route)
            self._known[route, status] = known
        known[0].inc()
        known[1].observe(seconds)

    def refresh(self) -> None:
        """Take over counts from elsewhere."""
        self.storage.refresh()
        self.memory.refresh()
        self.maintenance.refresh()

    def text(self) -> bytes:
        """All metrics in the text format of Prometheus; those of all workers, if there are several."""
        self.refresh()
        registry = self.registry
        if METRICS_FOLDER in os.environ:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry)

    def begun(self, method: str) -> None:
        """Count an incoming request."""
        self.in_flight.inc()
        self._metered.begun(method)

    def failed(self, error: OmnigraphError) -> None:
        """Count a failure."""
        code, kind = str(error.code), str(error.kind)
        self.errors.labels(code, kind).inc()
        self._metered.failed(code, kind)

    def answered(self, record: dict[str, Any]) -> None:
        """Count a response and log it."""
        self.in_flight.dec()
        self._metered.ended(record)
        self._count(record["route"], record["status"], record["seconds"])
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
