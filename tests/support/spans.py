"""What the server would send to a collector of traces."""

from __future__ import annotations

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from omnigraph.server import telemetry


def kept_spans(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    """From here on, the spans of the server are kept."""
    kept = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    monkeypatch.setattr(telemetry, "tracer", provider.get_tracer("omnigraph.server"))
    return kept
