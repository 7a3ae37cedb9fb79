"""The server itself: whether it lives, whether it is ready, what it counts, what it offers."""

from __future__ import annotations

from collections.abc import Iterable

import omnigraph
from omnigraph.errors import OmnigraphError
from omnigraph.policy.questions import Action
from omnigraph.server.access import Need
from omnigraph.server.calls import Answer, Call
from omnigraph.server.wire import COMPATIBLE_VERSION, INTERNAL_SCHEMA_VERSION


def healthz(_: Call) -> Answer:
    """Whether the process lives. No store is asked."""
    return Answer(
        {
            "status": "ok",
            "version": COMPATIBLE_VERSION,
            "internal_schema_version": INTERNAL_SCHEMA_VERSION,
            "source_version": omnigraph.__version__,
        }
    )


def readyz(call: Call) -> Answer:
    """Whether the graphs can be read."""
    graphs = call.state.graphs
    failed = [id for id, served in graphs.items() if not _is_readable(served.graph)]
    ready = not failed and not call.state.quarantined and not call.state.admission.closing
    content = {
        "ready": ready,
        "status": "ok" if ready else "unavailable",
        "graphs": len(graphs),
        "failed": len(failed),
        "quarantined": len(call.state.quarantined),
    }
    return Answer(content, status=200 if ready else 503)


def _is_readable(graph: omnigraph.Graph) -> bool:
    try:
        graph.snapshot()
    except OmnigraphError:
        return False
    return True


def metrics(call: Call) -> Answer:
    """Counts and durations, for Prometheus."""
    media = "text/plain; version=0.0.4; charset=utf-8"
    return Answer(media=media, raw=call.state.telemetry.text())


def openapi(call: Call) -> Answer:
    """The description of all routes."""
    return Answer(call.state.document)


def docs(call: Call) -> Answer:
    """The same description, for people."""
    return Answer(media="text/html; charset=utf-8", raw=call.state.docs)


def graph_list(_: Call) -> Iterable[Need]:
    return (Need(Action.GRAPH_LIST),)


def list_graphs(call: Call) -> Answer:
    """The graphs that are served."""
    graphs = call.state.graphs.values()
    return Answer({"graphs": [{"graph_id": s.id, "uri": s.graph.uri} for s in graphs]})
