"""The client: every verb gives what a local graph gives, and retries respect what may have happened."""

from __future__ import annotations

import contextlib
import datetime as dt
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from msgspec import UNSET

import omnigraph
from omnigraph.errors import (
    AddressInvalid,
    BranchNotFound,
    CommitUnknown,
    Kind,
    OmnigraphError,
    PreconditionFailed,
    StoreUnavailable,
)
from omnigraph.graph import Graph
from omnigraph.lang.diagnostics import Severity
from omnigraph.lang.schema import SchemaChangeRefused
from omnigraph.outcomes import LoadResult
from omnigraph.remote import transport
from omnigraph.remote.graph import RemoteGraph
from omnigraph.remote.transport import NotServed
from omnigraph.server.settings import Bounds
from omnigraph.storage.retry import Retry
from omnigraph.wire.answers import ChangeOutput, CommitsOutput, LoadOutput
from omnigraph.wire.requests import LoadRequest
from omnigraph.write.input.problems import InputInvalid
from tests.server import world as worlds
from tests.server.world import PEOPLE, TOKENS, World
from tests.support.people import folded

ADD = "query add($name: String) { insert Person { name: $name } }"


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[RemoteGraph, Graph]]:
    """A graph, and the same graph through a server."""
    server, graphs = worlds.build(tmp_path)
    with worlds.listening(server) as address:
        yield RemoteGraph(f"{address}/graphs/alpha", TOKENS["admin"]), graphs["alpha"]


def test_rows_returned_after_writing_are_those_of_a_local_graph(
    pair: tuple[RemoteGraph, Graph],
) -> None:
    remote, local = pair
    text = (
        "MATCH (a:Person)-[k:Knows]->(b) SET a.age = 41 "
        "RETURN a.name AS name, a.age AS age, k.since AS since, [b.name] AS others"
    )
    theirs, mine = remote.mutate(text), local.mutate(text)
    assert theirs.rows == mine.rows
    assert theirs.result is not None
    assert mine.result is not None
    assert theirs.commit is not None
    assert (theirs.result.columns, theirs.rows[0]["since"]) == (
        mine.result.columns,
        dt.date(2024, 1, 1),
    )
    assert theirs.result.commit == theirs.commit.id


def test_reading_gives_what_a_local_graph_gives(pair: tuple[RemoteGraph, Graph]) -> None:
    remote, local = pair
    mine, theirs = local.query(PEOPLE), remote.query(PEOPLE)
    assert (theirs.columns, theirs.rows, theirs.commit) == (mine.columns, mine.rows, mine.commit)
    assert theirs.to_arrow().equals(mine.to_arrow())
    assert theirs.to_json() == mine.to_json()
    assert len(theirs) == 2
    assert remote.schema() == local.schema()
    assert remote.branches() == local.branches()
    assert remote.snapshot().commit_id == local.snapshot().commit_id
    assert [c.to_json() for c in remote.log()] == [c.to_json() for c in local.log()]
    assert remote.commit(mine.commit) == local.commit(mine.commit)
    at = dt.datetime.now(dt.UTC) + dt.timedelta(days=1)
    assert remote.query(PEOPLE, at=at).rows == mine.rows
    assert remote.query(PEOPLE, explain=True).explain().to_json()


def test_a_long_history_is_read_in_pages(tmp_path: Path) -> None:
    """Writes that were published together stay together, and none is left out or told twice."""
    server, graphs = worlds.build(tmp_path, Bounds(threads_max=4, commits_max=4))
    local = graphs["alpha"]
    for number in range(3):
        local.mutate(ADD, {"name": f"alone {number}"}, actor="one")
        statements = [f'insert Person {{ name: "{number} {other}" }}' for other in "ab"]
        assert len(folded(local, *statements)) == 2
    with worlds.listening(server) as address:
        remote = RemoteGraph(f"{address}/graphs/alpha", TOKENS["admin"])
        for wanted in (
            {"limit": None},
            {"limit": 7},
            {"limit": 3},
            {"limit": None, "actor": "one"},
        ):
            assert remote.log(**wanted) == local.log(**wanted), wanted
        first = remote._http.json(CommitsOutput, "GET", "/commits", query={}, safe=True)
        told = [commit.id for commit in local.log(limit=None)]
        assert [commit.graph_commit_id for commit in first.commits] == told[:3]
        assert told[3:5] == [f"{first.next}.1", f"{first.next}.0"], "they share a commit"


def test_writing_gives_what_a_local_graph_gives(pair: tuple[RemoteGraph, Graph]) -> None:
    remote, local = pair
    done = remote.mutate(ADD, {"name": "Zoe"}, message="why")
    assert done.commit == local.commit(done.commit.id if done.commit else "")
    remote.create_branch("a/b")
    remote.mutate(ADD, {"name": "Yan"}, branch="a/b")
    found = remote.diff("main", "a/b")
    assert found.to_json() == local.diff("main", "a/b").to_json()
    assert remote.merge("a/b").outcome == "fast_forward"
    remote.delete_branch("a/b")
    assert remote.tag("v1") == local.snapshot().commit_id
    assert remote.tags() == local.tags()
    remote.delete_tag("v1")
    assert remote.tags() == {}


def test_loads_stream_files_records_and_tables(
    pair: tuple[RemoteGraph, Graph], tmp_path: Path
) -> None:
    remote, local = pair
    file = tmp_path / "people.jsonl"
    file.write_text('{"type":"Person","data":{"name":"File"}}')
    assert remote.load(str(file), idempotency_key="k").nodes == {"Person": 1}
    assert remote.load(str(file), idempotency_key="k").replayed is True
    array = tmp_path / "people.json"
    array.write_text(
        '[{"type":"Person","data":{"name":"A"}},\n {"type":"Person","data":{"name":"B"}}]'
    )
    assert remote.load(str(array)).nodes == {"Person": 2}
    records = ({"type": "Person", "data": {"name": f"R{i}"}} for i in range(2500))
    assert remote.load(records).nodes == {"Person": 2500}
    tables = {"Person": pa.table({"name": ["Table"]}), "Knows": [{"from": "Table", "to": "File"}]}
    done = remote.load(tables, branch="side", create_from="main")
    assert (done.branch_created, done.nodes, done.edges) == (True, {"Person": 1}, {"Knows": 1})
    assert local.query(PEOPLE, branch="side").rows[-1] == {"name": "Table"}


def test_rows_by_type_keep_what_they_leave_out(pair: tuple[RemoteGraph, Graph]) -> None:
    """Fields only later rows name are loaded, and fields a row leaves out stay as they are stored."""
    remote, local = pair
    ages = "match { $p: Person } return { $p.name as n, $p.age as a } order { n }"
    local.load({"Person": [{"name": "Kept", "age": 7}]})
    remote.load({"Person": [{"name": "Kept"}, {"name": "Later", "age": 5}]})
    rows = {row["n"]: row["a"] for row in remote.query(ages).rows}
    assert (rows["Kept"], rows["Later"]) == (7, 5)
    with pytest.raises(InputInvalid):
        remote.load({"Person": [{"name": "Odd", "age": object()}]})
    with pytest.raises(InputInvalid):
        remote.load({"Person": [{"name": "Odd", "age": 2**70}]})


def test_the_report_of_a_load_says_what_a_local_one_says(pair: tuple[RemoteGraph, Graph]) -> None:
    remote, local = pair
    rows = {"Person": [{"name": "Alice", "age": 31}, {"name": "New"}]}
    local.create_branch("mine")
    theirs, mine = remote.load(rows, dry_run=True), local.load(rows, dry_run=True)
    assert theirs.rows == mine.rows == {"Person": {"new": 1, "changed": 1}}
    assert set(theirs.cost) == set(mine.cost) != set()
    done = LoadResult(None, "main", False, {}, {}, "local", quarantined={"Person": 2})
    sent = LoadOutput.of(done, LoadRequest(), None, UNSET)
    assert msgspec.json.decode(msgspec.json.encode(sent), type=LoadOutput).value().quarantined == {
        "Person": 2
    }


def test_a_load_of_rows_under_a_key_happens_once(pair: tuple[RemoteGraph, Graph]) -> None:
    """What separates the parts of a request differs from call to call, and is no part of what was asked for."""
    remote, local = pair
    rows = {"Person": [{"name": "Kim", "age": 1}], "Company": [{"name": "Umbrella"}]}
    first = remote.load(rows, mode="append", idempotency_key="once")
    again = remote.load(rows, mode="append", idempotency_key="once")
    assert (again.replayed, again.commit) == (True, first.commit)
    assert first.commit is not None
    assert first.commit.id == local.log(limit=1)[0].id
    with pytest.raises(OmnigraphError) as caught:
        remote.load({"Person": [{"name": "Lee"}]}, mode="append", idempotency_key="once")
    assert caught.value.code == "idempotency_mismatch"


def test_conflicts_are_an_outcome(pair: tuple[RemoteGraph, Graph]) -> None:
    remote, local = pair
    local.create_branch("side")
    text = 'query a($n: I32) { update Person set { age: $n } where name = "Bob" }'
    for branch, age in (("main", 1), ("side", 2)):
        remote.mutate(text, {"n": age}, branch=branch)
    told = remote.merge("side")
    assert told.outcome == "conflict"
    assert [c.to_json() for c in told.conflicts] == [
        c.to_json() for c in local.merge("side", dry_run=True).conflicts
    ]
    assert remote.merge("side", strategy="ours").outcome == "merged"


def test_the_feed_is_the_same(pair: tuple[RemoteGraph, Graph]) -> None:
    remote, local = pair
    start = local.snapshot().commit_id
    for name in ("Yan", "Zoe"):
        local.mutate(ADD, {"name": name})
    mine, theirs = local.changes(after=start), remote.changes(after=start)
    assert [c.to_json() for c in theirs] == [c.to_json() for c in mine]
    assert theirs.cursor == mine.cursor
    assert len(list(remote.changes(after=start, limit=1).commits())) == 1


def test_exports_are_files(pair: tuple[RemoteGraph, Graph], tmp_path: Path) -> None:
    remote, local = pair
    mine, theirs = local.export(tmp_path / "a"), remote.export(tmp_path / "b")
    assert theirs.rows == mine.rows
    for part in mine.parts:
        assert (tmp_path / "b" / part.file).read_bytes() == (
            tmp_path / "a" / part.file
        ).read_bytes()
    remote.export(tmp_path / "c", format="parquet", types=["Person"])
    from pyarrow import parquet

    assert parquet.read_table(tmp_path / "c" / "node-Person.parquet").num_rows == 2


def test_schema_changes(pair: tuple[RemoteGraph, Graph]) -> None:
    remote, local = pair
    text = remote.schema() + '\nnode Film @colour("red") { title: String @key @indx }'
    assert remote.plan_schema(text) == local.plan_schema(text)
    assert remote.plan_schema(text).diagnostics[0].severity is Severity.WARNING
    with pytest.raises(SchemaChangeRefused) as refused:
        remote.plan_schema(text.replace("age: I32?", "age: String?")).raise_unsupported()
    assert refused.value.details["steps"][0]["kind"] == "unsupported_change"
    assert remote.apply_schema(text).applied is True


def test_errors_are_the_same_classes(pair: tuple[RemoteGraph, Graph]) -> None:
    remote, _ = pair
    with pytest.raises(BranchNotFound):
        remote.query(PEOPLE, branch="nowhere")
    with pytest.raises(PreconditionFailed):
        remote.mutate(ADD, {"name": "Zoe"}, if_commit="0000000000000000.1")
    with pytest.raises(OmnigraphError) as failure:
        remote.query("query q() { match { $p: Nobody } return { $p.name } }")
    assert (failure.value.code, failure.value.kind) == ("T1", Kind.INVALID)
    assert failure.value.span is not None
    with pytest.raises(NotServed):
        remote.optimize()


@pytest.mark.parametrize(
    "address", ["http://", "http://host/alpha", "http://user:secret@host/graphs/a"]
)
def test_addresses_that_are_none(address: str) -> None:
    with pytest.raises(AddressInvalid) as failure:
        omnigraph.open(address)
    assert "user:secret" not in failure.value.message or "secret" not in failure.value.help


class Flaky:
    """A server that answers with what it is told, one connection at a time; an empty answer hangs up."""

    def __init__(self, answers: list[bytes]) -> None:
        self.answers = answers
        self.asked = 0
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> str:
        self._thread.start()
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}/graphs/g"

    def __exit__(self, *_: object) -> None:
        self._over.set()
        with contextlib.suppress(OSError):
            socket.create_connection(self._socket.getsockname()).close()  # whoever waits goes on
        self._thread.join(60)
        self._socket.close()

    def _run(self) -> None:
        for answer in self.answers:
            connection, _ = self._socket.accept()
            with connection:
                if self._over.is_set():
                    return
                connection.recv(65536)
                self.asked += 1
                connection.sendall(answer)


def _http(status: str, body: bytes = b"{}", more: str = "") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n{more}\r\n"
    return head.encode() + body


BUSY = _http("503 Busy", b'{"error":"busy","error_code":"server_busy","kind":"unavailable"}')
DONE = ChangeOutput("main", "q", affected_nodes=1, affected_edges=0, actor_id=None, commit=None)
GOOD = _http("200 OK", msgspec.json.encode(DONE))
CUT = GOOD[:-5]


@pytest.mark.parametrize(
    ("answers", "key", "asked", "error"),
    [
        ([BUSY, GOOD], None, 2, None),
        ([b"", GOOD], "k", 2, None),
        ([b"", GOOD], None, 1, CommitUnknown),
        ([CUT, GOOD], "k", 2, None),
        ([CUT, GOOD], None, 1, CommitUnknown),
        (
            [_http("409 No", b'{"error":"x","error_code":"conflict","kind":"conflict"}')],
            "k",
            1,
            True,
        ),
    ],
    ids=["refused", "lost with a key", "lost without", "cut with a key", "cut without", "conflict"],
)
def test_writes_are_repeated_only_where_that_is_safe(
    answers: list[bytes], key: str | None, asked: int, error: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "RETRY", Retry(5, 0.001, 0.1))
    flaky = Flaky(answers)
    with flaky as address:
        graph = RemoteGraph(address)
        if error is None:
            assert graph.mutate(ADD, idempotency_key=key).affected_nodes == 1
        else:
            with pytest.raises(OmnigraphError if error is True else error):
                graph.mutate(ADD, idempotency_key=key)
    assert flaky.asked == asked


def test_a_server_that_is_not_there_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "RETRY", Retry(1, 0.001, 0.1))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(StoreUnavailable):
        RemoteGraph(f"http://127.0.0.1:{port}/graphs/g").branches()


def test_the_history_of_an_entity_is_the_same(pair: tuple[RemoteGraph, Graph]) -> None:
    remote, local = pair
    local.mutate('query q() { update Person set { age: 31 } where name = "Alice" }')
    mine, theirs = local.history("Person", "Alice"), remote.history("Person", "Alice")
    assert [c.commit for c in theirs.changes] == [c.commit for c in mine.changes]
    assert [c.operation for c in theirs.changes] == ["update", "insert"]
    assert theirs.changes[0].after is not None
    assert theirs.changes[0].after["age"] == 31


def test_many_runs_of_a_query_are_one_request(world: World) -> None:
    text = "query q($n: String) { match { $p: Person $p.name = $n } return { $p.name as name, $p.age as age } }"
    sets = [{"n": "Bob"}, {"n": "nobody"}, {"n": "Alice"}]
    told = world.ok("POST", "/query/many", {"query": text, "params": sets}, actor="reader")
    rows = [[{"name": "Bob", "age": 25}], [], [{"name": "Alice", "age": 30}]]
    assert (told["results"], told["row_counts"], told["columns"]) == (
        rows,
        [1, 0, 1],
        ["name", "age"],
    )
    world.refused(403, "POST", "/query/many", {"query": text, "params": sets}, actor="stranger")
    world.refused(400, "POST", "/query/many", {"query": text, "params": []})
    with worlds.listening(world.server) as address:
        graph = RemoteGraph(f"{address}/graphs/alpha", TOKENS["reader"])
        found = graph.query_many(text, sets)
        assert [each.rows for each in found] == rows
        assert {each.commit for each in found} == {told["graph_commit_id"]}
        assert [each.rows for each in graph.branch("main").query_many(text, sets[:1])] == rows[:1]
        assert graph.query_many(text, []) == []
