"""A load that a server received and hands to the pipeline: the same commit, under the same key, with progress."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from omnigraph.graph import init
from omnigraph.model.limits import DEFAULT
from omnigraph.server.request import Served
from tests.server import world as worlds

PEOPLE = 500


def test_a_large_body_is_loaded_on_spark_as_a_job(spark: Any, tmp_path: Path) -> None:
    assert spark is not None
    limits = replace(DEFAULT, interactive_bytes_max=1000)
    graph = init(str(tmp_path / "graph"), worlds.SCHEMA, limits=limits)
    lines = [{"type": "Person", "data": {"name": f"p{i}"}} for i in range(PEOPLE)]
    body = "\n".join(json.dumps(line) for line in lines).encode()
    headers = {"Content-Type": "application/x-ndjson", "Idempotency-Key": "big"}
    with worlds.world(tmp_path) as world:
        world.server.graphs["alpha"] = Served("alpha", graph)
        waits_not = {**headers, "Prefer": "respond-async"}
        begun = world.call("POST", "/load", raw=body, headers=waits_not)
        assert begun.status_code == 202, begun.text
        told = world.finished(begun.json()["job_id"])
        assert (told["status"], told["result"]["total_entities"]) == ("done", PEOPLE), told
        assert told["progress"]["phase"] == "verify", "the pipeline did not tell how far it was"
        again = world.ok("POST", "/load", raw=body, headers=headers)
        assert again["replayed"] is True
        assert again["commit"]["graph_commit_id"] == told["graph_commit_id"]
    assert len(graph.log()) == 2
