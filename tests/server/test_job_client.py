"""Long work of a server, from the client's side: told apart, waited for, called off, and used where much is moved."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from omnigraph.cli import context
from omnigraph.cli.main import main
from omnigraph.errors import Cancelled, OmnigraphError
from omnigraph.graph import Graph
from omnigraph.maintenance.jobs import load_job, save_job
from omnigraph.read.export import export_parts
from omnigraph.remote import graph as remote_graph
from omnigraph.remote.graph import RemoteGraph
from omnigraph.remote.jobs import Job, JobLost, job_of
from omnigraph.remote.transport import HttpRequest, decoded
from omnigraph.wire.jobs import JobOutput
from tests.server import world as worlds
from tests.server.world import PEOPLE, TOKENS
from tests.support.waiting import wait_until

Pair = tuple[RemoteGraph, Graph]


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    """A graph through a server, and the same graph."""
    server, graphs = worlds.build(tmp_path)
    with worlds.listening(server) as address:
        yield RemoteGraph(f"{address}/graphs/alpha", TOKENS["admin"]), graphs["alpha"]


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Exports that do not begin before they are told to."""
    go_on = threading.Event()

    def waiting(*given: Any) -> Any:
        go_on.wait(300)
        return export_parts(*given)

    monkeypatch.setattr("omnigraph.server.routes.jobs.export_parts", waiting)
    yield go_on
    go_on.set()


def _export(remote: RemoteGraph) -> Job:
    http = remote._http
    return job_of(http, http.json(JobOutput, "POST", "/exports", {"types": ["Person"]}))


def _load(remote: RemoteGraph, line: bytes) -> Job:
    http = remote._http
    headers = {"Content-Type": "application/x-ndjson", "Prefer": "respond-async"}
    asked = HttpRequest("POST", "/load", body=lambda: line, headers=headers)
    return job_of(http, http.send(asked, lambda answer: decoded(answer, JobOutput)))


def test_a_job_is_listed_shown_and_waited_for(pair: Pair) -> None:
    remote, local = pair
    begun = _export(remote)
    done = begun.wait(300)
    assert (done.kind, done.status, done.actor) == ("export", "done", "admin")
    assert done.commit == local.snapshot().commit_id
    assert done.result == {"rows": 2, "parts": 1}
    assert remote.job(begun.id) == done
    assert [job.id for job in remote.jobs()] == [begun.id]
    assert done.to_json()["job_id"] == begun.id


def test_waiting_tells_how_far_it_is_and_ends_when_it_must(
    pair: Pair, held: threading.Event
) -> None:
    remote, _ = pair
    told: list[tuple[str, int, int]] = []
    begun = _export(remote)
    unfinished = begun.wait(0.2, lambda *progress: told.append(progress))
    assert not unfinished.is_finished
    assert told
    held.set()
    assert unfinished.wait(300).status == "done"


def test_a_job_is_called_off(pair: Pair, held: threading.Event) -> None:
    remote, _ = pair
    begun = _export(remote)
    assert begun.cancel().id == begun.id
    held.set()
    with pytest.raises(Cancelled):
        begun.wait(300)
    assert remote.job(begun.id).cancel().status == "cancelled"


def test_waiting_raises_what_the_work_failed_with(pair: Pair) -> None:
    remote, local = pair
    with pytest.raises(OmnigraphError) as failure:
        _load(remote, b'{"type":"Nobody"}\n').wait(300)
    assert failure.value.code == "input_invalid"
    assert failure.value.details["violations"][0]["line"] == 1
    assert [row["name"] for row in local.query(PEOPLE)] == ["Alice", "Bob"]


def test_a_job_whose_server_died_is_lost(pair: Pair) -> None:
    remote, local = pair
    begun = _export(remote)
    begun.wait(300)
    record = load_job(local.repository, begun.id)
    assert record is not None
    save_job(local.repository, msgspec.structs.replace(record, status="running", seen=0))
    with pytest.raises(JobLost):
        begun.wait(300)


def test_what_is_not_there_is_said(pair: Pair) -> None:
    with pytest.raises(OmnigraphError) as failure:
        pair[0].job("nothing")
    assert failure.value.code == "job_not_found"


# --- moving much -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", ["csv", "ndjson", "parquet"])
def test_large_exports_are_jobs(
    pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str
) -> None:
    monkeypatch.setattr(remote_graph, "STREAMED_ROWS_MAX", 1)
    remote, local = pair
    done = remote.export(tmp_path / "out", format)
    assert (done.commit, done.format) == (local.snapshot().commit_id, format)
    assert done.rows == local.export(tmp_path / "own", format).rows
    assert [job.kind for job in remote.jobs()] == ["export"]
    for part in done.parts:
        assert (tmp_path / "out" / part.file).stat().st_size == part.bytes
    assert json.loads((tmp_path / "out" / "export.json").read_text())["commit"] == done.commit
    assert not list((tmp_path / "out").glob(".*")), "something half is left"


def test_large_loads_are_jobs(pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_graph, "STREAMED_BYTES_MAX", 1)
    remote, local = pair
    file = tmp_path / "people.jsonl"
    file.write_text('{"type":"Person","data":{"name":"Zoe"}}\n')
    done = remote.load(str(file), idempotency_key="k")
    assert done.nodes == {"Person": 1}
    assert done.commit == local.commit(local.snapshot().commit_id)
    assert remote.load(str(file), idempotency_key="k").replayed is True
    assert [job.kind for job in remote.jobs()] == ["load", "load"]


def test_small_loads_and_exports_are_not(pair: Pair, tmp_path: Path) -> None:
    remote, _ = pair
    remote.load([{"type": "Person", "data": {"name": "Zoe"}}])
    remote.export(tmp_path / "out")
    assert remote.jobs() == []


# --- the command line ------------------------------------------------------------------------------------------------


def test_jobs_on_the_command_line(
    pair: Pair,
    held: threading.Event,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    remote, _ = pair
    monkeypatch.setenv("OMNIGRAPH_TOKEN", TOKENS["admin"])
    context.config.cache_clear()
    job, called_off = _export(remote), _export(remote)
    where = ("--store", remote.uri)
    assert main(["jobs", "cancel", called_off.id, *where]) == 0
    held.set()
    assert main(["jobs", "show", job.id, *where, "--wait"]) == 0
    assert f"export {job.id} on main: done" in capsys.readouterr().out
    wait_until(lambda: remote.job(called_off.id).is_finished, timeout=300)
    assert main(["jobs", "show", called_off.id, *where, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["status"] == "cancelled"
    assert main(["jobs", "show", called_off.id, *where, "--wait"]) != 0
    assert main(["jobs", "list", *where, "--json"]) == 0
    assert {told["job_id"] for told in json.loads(capsys.readouterr().out)} == {
        job.id,
        called_off.id,
    }
    assert main(["jobs", "list", *where]) == 0
    assert job.id in capsys.readouterr().out


def test_jobs_of_a_graph_without_a_server_are_a_mistake(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["jobs", "list", "--store", str(tmp_path)]) == 2
    assert "--server" in capsys.readouterr().err
