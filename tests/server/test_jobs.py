"""Long work beside requests: exports in parts, loads that go on alone, progress, cancelling, and what is lost."""

from __future__ import annotations

import hashlib
import json
import threading
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
import urllib3
from pyarrow import parquet
from starlette.testclient import TestClient

from omnigraph.core.repository import Repository
from omnigraph.graph import Graph, init
from omnigraph.maintenance import jobs as stored
from omnigraph.maintenance.jobs import JobRecord, load_job, save_job
from omnigraph.server.app import Server
from omnigraph.server.request import Served
from omnigraph.server.settings import Bounds
from tests.server import world as worlds
from tests.server.world import RECORDS, SCHEMA, World

NDJSON = {"Content-Type": "application/x-ndjson"}
ASYNC = {**NDJSON, "Prefer": "respond-async"}
LINE = b'{"type":"Person","data":{"name":"Zoe"}}\n'


def _repo(world: World) -> Repository:
    return world.graphs["alpha"].repository


def _changed(world: World, job: str, **changed: Any) -> None:
    """Make a record what it would be later."""
    record = load_job(_repo(world), job)
    assert record is not None
    save_job(_repo(world), msgspec.structs.replace(record, **changed))


# --- exports -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", ["ndjson", "parquet", "arrow", "csv"])
def test_an_export_is_fetched_in_parts(world: World, format: str) -> None:
    begun = world.call("POST", "/exports", {"format": format, "types": ["Person", "Knows"]})
    assert begun.status_code == 202, begun.text
    job = begun.json()["job_id"]
    assert begun.headers["location"] == f"/graphs/alpha/exports/{job}"
    told = world.finished(job)
    assert (told["status"], told["result"]) == ("done", {"rows": 3, "parts": 2})
    assert told["graph_commit_id"] == world.graphs["alpha"].snapshot().commit_id
    assert told["progress"] == {"phase": "export", "done": 2, "total": 2}
    for part in world.ok("GET", f"/exports/{job}")["parts"]:
        content = world.call("GET", "/" + part["url"]).content
        assert len(content) == part["bytes"]
        assert hashlib.sha256(content).hexdigest() == part["sha256"]
        if format == "parquet":
            assert parquet.read_table(pa.BufferReader(content)).num_rows == part["rows"]


def test_parts_are_cut_by_rows(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omnigraph.read.export.PART_ROWS", 1)
    many = [f"p{number}" for number in range(10_000)]  # more than a fragment takes in later
    world.graphs["alpha"].load({"Person": pa.table({"name": many})})
    told = world.finished(world.call("POST", "/exports", {"types": ["Person"]}).json()["job_id"])
    assert len(told["parts"]) > 1
    fetched = b"".join(world.call("GET", "/" + part["url"]).content for part in told["parts"])
    names = [json.loads(line)["data"]["name"] for line in fetched.splitlines()]
    assert sorted(names) == sorted(["Alice", "Bob", *many])


def test_an_export_is_pinned_and_held_until_it_is_written(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """History is collected while the export waits, from a disk, where files do go; it is written all the same."""
    graph = world.graphs["alpha"] = init(tmp_path / "graph", SCHEMA)
    graph.load(RECORDS)
    world.server.graphs["alpha"] = Served("alpha", graph)
    pinned = graph.snapshot().commit_id
    go_on = threading.Event()
    monkeypatch.setattr("omnigraph.server.routes.jobs.export_parts", _after(go_on))
    begun = world.call("POST", "/exports", {"types": ["Company"]})
    for number in range(3):
        graph.load({"Company": [{"name": f"later{number}"}]}, mode="overwrite")
    graph.optimize()
    graph.cleanup(keep=1)
    go_on.set()
    told = world.finished(begun.json()["job_id"])
    assert (told["status"], told["graph_commit_id"]) == ("done", pinned), told
    content = world.call("GET", "/" + told["parts"][0]["url"]).text
    assert "Acme" in content
    assert "later" not in content
    assert not list(_repo(world).objects.list("__recovery")), "the lease outlives the export"


def _after(event: threading.Event) -> Any:
    from omnigraph.read.export import export_parts

    def waiting(*given: Any) -> Any:
        event.wait(60)
        return export_parts(*given)

    return waiting


def test_what_is_no_longer_kept_is_gone(world: World) -> None:
    job = world.exported()
    part = world.ok("GET", f"/exports/{job}")["parts"][0]
    _changed(world, job, expires=_repo(world).clock.now())
    told = world.refused(410, "GET", f"/exports/{job}")
    assert told["error_code"] == "job_expired"
    assert world.call("GET", "/" + part["url"]).status_code == 410
    assert world.ok("GET", f"/jobs/{job}")["status"] == "expired"
    assert not list(_repo(world).objects.list("_exports")), "the parts outlive the export"


@pytest.mark.parametrize(
    "content",
    [
        {"format": "xml"},
        {"ttl_seconds": 0},
        {"ttl_seconds": 10**9},
        {"types": ["Nobody"]},
        {"a": 1},
    ],
)
def test_exports_that_cannot_be_are_refused_at_once(world: World, content: dict[str, Any]) -> None:
    world.refused(400, "POST", "/exports", content)
    assert world.ok("GET", "/jobs")["jobs"] == []
    assert not list(_repo(world).objects.list("__recovery"))


def test_on_s3_parts_have_addresses_of_their_own(tmp_path: Path, s3_root: str) -> None:
    graph = init(s3_root, SCHEMA)
    graph.load(RECORDS)
    with worlds.world(tmp_path) as world:
        world.server.graphs["alpha"] = Served("alpha", graph)
        job = world.exported()
        parts = world.ok("GET", f"/exports/{job}")["parts"]
        assert all(part["presigned"] for part in parts)
        for part in parts:
            fetched = urllib3.request("GET", part["url"]).data  # without a token
            assert hashlib.sha256(fetched).hexdigest() == part["sha256"]
        own = world.call("GET", f"/exports/{job}/parts/{parts[0]['name']}")
        assert len(own.content) == parts[0]["bytes"]


# --- loads ---------------------------------------------------------------------------------------------------------


def test_a_load_may_go_on_alone(world: World) -> None:
    begun = world.call("POST", "/load", raw=LINE, headers={**ASYNC, "Idempotency-Key": "k"})
    assert (begun.status_code, begun.json()["kind"]) == (202, "load")
    told = world.finished(begun.json()["job_id"])
    assert (told["status"], told["result"]["total_entities"]) == ("done", 1)
    assert told["graph_commit_id"] == told["result"]["commit"]["graph_commit_id"]
    assert told["progress"] == {"phase": "read", "done": len(LINE), "total": len(LINE)}
    again = world.ok("POST", "/load", raw=LINE, headers={**NDJSON, "Idempotency-Key": "k"})
    assert again["replayed"] is True, "a job and a request under one key are two loads"


def test_every_form_of_load_may(world: World) -> None:
    headers = {"Prefer": "wait=1, respond-async"}
    begun = world.call("POST", "/load", {"data": LINE.decode()}, headers=headers)
    assert begun.status_code == 202
    assert world.finished(begun.json()["job_id"])["status"] == "done"
    assert "Zoe" in world.people()


def test_a_load_that_fails_tells_why(world: World) -> None:
    begun = world.call("POST", "/load", raw=b"not json\n", headers=ASYNC)
    told = world.finished(begun.json()["job_id"])
    assert told["status"] == "failed"
    assert told["error"]["kind"] == "invalid"
    assert world.people() == ["Alice", "Bob"]


def test_what_may_not_be_loaded_is_refused_before_it_is_received(world: World) -> None:
    world.refused(403, "POST", "/load", raw=LINE, headers=ASYNC, actor="reader")
    assert world.ok("GET", "/jobs")["jobs"] == []


def test_a_job_can_be_called_off(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    inside, go_on = threading.Event(), threading.Event()
    real = Graph.load

    def waiting(self: Graph, *given: Any, **named: Any) -> Any:
        inside.set()
        go_on.wait(60)
        return real(self, *given, **named)

    monkeypatch.setattr(Graph, "load", waiting)
    begun = world.call("POST", "/load", raw=LINE, headers=ASYNC)
    job = begun.json()["job_id"]
    assert inside.wait(60)
    assert world.ok("GET", f"/jobs/{job}")["status"] == "running"
    world.refused(404, "DELETE", f"/jobs/{job}", actor="reader")
    world.ok("DELETE", f"/jobs/{job}")
    go_on.set()
    told = world.finished(job)
    assert (told["status"], told["error"]["error_code"]) == ("cancelled", "cancelled")
    monkeypatch.undo()
    assert world.people() == ["Alice", "Bob"], "a cancelled load was published"


def test_so_many_jobs_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()
    monkeypatch.setattr("omnigraph.server.routes.jobs.export_parts", _after(go_on))
    with worlds.world(tmp_path, Bounds(threads_max=2, jobs_max=1)) as world:
        assert world.call("POST", "/exports", {}).status_code == 202
        told = world.refused(429, "POST", "/exports", {})
        go_on.set()
    assert told["details"] == {"limit": "jobs_max", "limit_value": 1, "observed": 2}


# --- what is told later ----------------------------------------------------------------------------------------------


def test_a_job_whose_server_died_is_lost_and_says_what_to_do(world: World) -> None:
    record = JobRecord("dead", "load", "admin", created=1, seen=1, status=stored.RUNNING)
    save_job(_repo(world), record)
    told = world.ok("GET", "/jobs/dead")
    assert told["status"] == "lost"
    assert "Idempotency-Key" in told["hint"]


def test_a_lost_export_gives_back_what_it_held(world: World) -> None:
    repo = _repo(world)
    snapshot = world.graphs["alpha"].snapshot()
    stored.hold(repo, snapshot, "dead")
    repo.objects.put("_exports/dead/node-Person.ndjson", b"{}")
    save_job(repo, JobRecord("dead", "export", "admin", created=1, seen=1, status=stored.RUNNING))
    assert world.ok("GET", "/jobs")["jobs"][0]["status"] == "lost"
    assert not list(repo.objects.list("_exports"))
    assert not list(repo.objects.list("__recovery"))


def test_a_job_of_another_server_is_told_as_it_is(world: World) -> None:
    now = _repo(world).clock.now()
    record = JobRecord("elsewhere", "load", "admin", created=now, seen=now, status=stored.RUNNING)
    save_job(_repo(world), record)
    assert world.ok("GET", "/jobs/elsewhere")["status"] == "running"


def test_everybody_sees_their_own_jobs(world: World) -> None:
    job = world.exported()
    assert [told["job_id"] for told in world.ok("GET", "/jobs")["jobs"]] == [job]
    assert world.ok("GET", "/jobs", actor="reader")["jobs"] == []
    world.refused(404, "GET", f"/jobs/{job}", actor="reader")
    for strange in ("nobody", "..", "%2e%2e%2fgraph", "a" * 100):
        world.refused(404, "GET", f"/jobs/{strange}")


def test_a_server_that_ends_calls_its_jobs_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = threading.Event()

    def endless(*given: Any) -> Any:
        inside.set()
        while True:
            given[-1](0, 1)  # progress, which raises once the job is called off

    monkeypatch.setattr("omnigraph.server.routes.jobs.export_parts", endless)
    with worlds.world(tmp_path) as world:
        job = world.call("POST", "/exports", {}).json()["job_id"]
        assert inside.wait(60)
    record = load_job(_repo(world), job)
    assert record is not None
    assert record.status == "cancelled"


def test_a_job_is_called_off_by_way_of_another_server(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers of one server, and servers of one graph, are the same to whoever asks."""
    inside = threading.Event()

    def endless(*given: Any) -> Any:
        inside.set()
        while True:
            given[-1](0, 1)

    monkeypatch.setattr("omnigraph.server.routes.jobs.export_parts", endless)
    job = world.call("POST", "/exports", {}).json()["job_id"]
    assert inside.wait(60)
    server = world.server
    other = Server(server.graphs, server.identity, server.access)
    try:
        elsewhere = World(other, TestClient(other), world.graphs)
        assert elsewhere.ok("DELETE", f"/jobs/{job}")["status"] == "running"
        assert elsewhere.finished(job)["status"] == "cancelled"
    finally:
        other.close()
    assert not [i.key for i in _repo(world).objects.list("_jobs") if i.key.endswith(".cancel")]
