"""What somebody hostile would try: other people's graphs, smuggled headers, names that climb, bombs, injections."""

from __future__ import annotations

import gc
import gzip
import json
import logging
import random
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pytest
import zstandard
from pyarrow import parquet

from omnigraph.server.bodies import BodyLimits, Unpacker
from omnigraph.server.routes import ROUTES
from tests.server.world import PEOPLE, TOKENS, World

NDJSON = {"Content-Type": "application/x-ndjson"}
BOMB_SECONDS_MAX = 2.0  # of CPU
SLACK = 2  # a core whose twin is busy is half as fast
BOMB_BYTES_MAX = 512 << 20


@contextmanager
def bounded() -> Iterator[None]:
    """Within the time and memory a hostile body may cost.

    What other tests of this process left behind is not looked through again on its account.
    """
    gc.collect()
    gc.freeze()
    before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    try:
        yield
    finally:
        gc.unfreeze()
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert grown < BOMB_BYTES_MAX, f"memory grew by {grown >> 20} MiB"
    assert time.process_time() - started < BOMB_SECONDS_MAX * SLACK


# --- who is who ----------------------------------------------------------------------------------------------------


def test_the_token_of_another_graph_opens_nothing(world: World) -> None:
    assert world.call("POST", "/query", {"query": PEOPLE}, actor="beta").status_code == 403
    assert world.call("GET", "/export", actor="beta").status_code == 403
    assert world.call("GET", "/export", actor="beta", graph="beta").status_code == 200


@pytest.mark.parametrize(
    "header", ["X-Actor-Id", "X-Forwarded-User", "Actor", "X-Omnigraph-Actor", "Remote-User"]
)
def test_nobody_becomes_somebody_by_a_header(world: World, header: str) -> None:
    headers = {header: "admin"}
    world.refused(403, "GET", "/export", actor="reader", headers=headers)
    told = world.ok(
        "POST",
        "/mutate",
        {"query": 'query q() { insert Person { name: "x" } }', "actor": "eve", "actor_id": "eve"},
        headers=headers | {header: "eve"},
    )
    assert told["commit"]["actor_id"] == "admin"


@pytest.mark.parametrize(
    "name", ["Authorization", "Idempotency-Key", "Omnigraph-If-Graph-Commit", "Content-Type"]
)
def test_headers_that_decide_may_not_be_there_twice(world: World, name: str) -> None:
    headers = [
        (name, "Bearer t-reader"),
        (name, "Bearer t-admin"),
    ]
    answer = world.client.get("/graphs/alpha/export", headers=headers)
    assert answer.status_code == 400


def test_a_comma_does_not_make_two_tokens(world: World) -> None:
    headers = {"Authorization": f"Bearer {TOKENS['reader']}, Bearer {TOKENS['admin']}"}
    assert world.refused(401, "GET", "/schema", actor=None, headers=headers)


# --- names that climb ------------------------------------------------------------------------------------------------

CLIMBING = ["..", "../beta", "%2e%2e", "..%2f..%2fetc%2fpasswd", "a%00b", "%ff", "//", "a/../b"]


@pytest.mark.parametrize("name", CLIMBING)
def test_paths_do_not_climb(world: World, name: str) -> None:
    for path in (f"/branches/{name}", f"/commits/{name}", f"/queries/{name}", f"/tags/{name}"):
        for method in ("GET", "POST", "DELETE"):
            told = world.call(method, path, {} if method == "POST" else None)
            assert told.status_code in (400, 404, 405), f"{method} {path}: {told.text}"


@pytest.mark.parametrize("name", ["../../etc/passwd", "a/../../b", "_refs", "..", ".", "~"])
def test_branch_names_are_only_names(world: World, name: str) -> None:
    answer = world.call("POST", "/branches", {"name": name})
    if answer.status_code == 200:  # a name is any text: it must name a branch and nothing else
        assert name in world.ok("GET", "/branches")["branches"]
        assert world.people(name) == ["Alice", "Bob"]
    assert world.people() == ["Alice", "Bob"]


@pytest.mark.parametrize("id", ["..", "%2e%2e", "al%2fpha", "alpha%00", "a" * 65, "graphs", "ä"])
def test_graph_ids_are_checked(world: World, id: str) -> None:
    assert world.call("GET", "/schema", graph=id).status_code in (400, 404)


# --- bombs -----------------------------------------------------------------------------------------------------------


def _zip_bomb(encoding: str, size: int) -> bytes:
    zeros = bytes(1 << 20)
    if encoding == "gzip":
        return gzip.compress(zeros * 64, 9) * (size >> 26)  # a stream may have several members
    return zstandard.ZstdCompressor(level=19).compress(zeros * 64) * (size >> 26)


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
@pytest.mark.parametrize("path", ["/query", "/load"])
def test_packed_bombs_go_off_harmlessly(world: World, encoding: str, path: str) -> None:
    bomb = _zip_bomb(encoding, 2 << 30)
    media = "application/json" if path == "/query" else "application/x-ndjson"
    headers = {"Content-Type": media, "Content-Encoding": encoding}
    with bounded():
        told = world.refused(413, "POST", path, raw=bomb, headers=headers)
    assert told["resource_limit"]["resource"] in ("body_bytes_max", "unpack_ratio_max")
    assert told["resource_limit"]["actual"] > told["resource_limit"]["limit"]


def test_a_small_bomb_behind_a_large_body_goes_off_harmlessly(world: World) -> None:
    """Bytes that are not unpacked yet must not pay for those that are."""
    honest = gzip.compress(random.Random(1).randbytes(4 << 20))
    bomb = _zip_bomb("gzip", 1 << 30) + honest
    headers = {"Content-Type": "application/x-ndjson", "Content-Encoding": "gzip"}
    with bounded():
        told = world.refused(413, "POST", "/load", raw=bomb, headers=headers)
    assert told["resource_limit"]["actual"] > told["resource_limit"]["limit"]


def test_a_step_of_unpacking_is_bounded() -> None:
    limits = BodyLimits(1 << 40, "load_bytes_max", 1 << 40, 1.0)
    for encoding in ("gzip", "zstd"):
        unpacker = Unpacker(encoding, limits)
        largest = max(len(piece) for piece in unpacker.feed(_zip_bomb(encoding, 64 << 20)))
        assert largest <= 64 << 20
        unpacker.finish()


@pytest.mark.parametrize(
    "raw",
    [
        b'{"query":' + b"[" * 400_000,
        b'{"params":{"a":' + b'{"a":' * 100_000,
        b'{"a":1,' * 100_000,
        b'{"query":"' + b"\\u0000" * 100_000 + b'"}',
        b'{"limit":' + b"9" * 900_000 + b"}",
    ],
    ids=["deep lists", "deep objects", "wide", "escapes", "long number"],
)
def test_json_bombs_go_off_harmlessly(world: World, raw: bytes) -> None:
    with bounded():
        for path in ("/query", "/mutate", "/load"):
            headers = {"Content-Type": "application/json"}
            assert world.call("POST", path, raw=raw, headers=headers).status_code in (400, 413)


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"Person","data":' + b'{"a":' * 200_000,
        b'{"type":"Person","data":{"name":' + b"[" * 200_000,
        b'{"type":"Person","data":{"name":"' + b"x" * (33 << 20) + b'"}}',
    ],
    ids=["deep objects", "deep lists", "long line"],
)
def test_lines_that_are_bombs_go_off_harmlessly(world: World, line: bytes) -> None:
    with bounded():
        told = world.call("POST", "/load", raw=line + b"\n", headers=NDJSON)
    assert told.status_code in (400, 413)
    assert world.people() == ["Alice", "Bob"]


@pytest.mark.parametrize("line", [r"{}\n", r"\n"], ids=["empty records", "empty lines"])
def test_texts_of_many_lines_go_off_harmlessly(world: World, line: str) -> None:
    raw = f'{{"data":"{line * ((32 << 20) // len(line))}"}}'.encode()
    with bounded():
        told = world.call("POST", "/load", raw=raw, headers={"Content-Type": "application/json"})
    assert told.status_code in (200, 400)
    assert world.people() == ["Alice", "Bob"]


def test_queries_that_are_bombs_go_off_harmlessly(world: World) -> None:
    nested = "(" * 50_000 + "1" + ")" * 50_000
    texts = (
        f"query q() {{ match {{ $p: Person $p.age > {nested} }} return {{ $p.name }} }}",
        "query q() { " + "match { $p: Person } " * 20_000 + "}",
    )
    with bounded():
        for text in texts:
            assert world.call("POST", "/query", {"query": text}).status_code in (400, 413)


# --- injections ------------------------------------------------------------------------------------------------------

HOSTILE = [
    "' OR 1=1 --",
    "'; DROP TABLE Person; --",
    "x') or true or name in ('",
    '"',
    "\\",
    "`",
    "%' or '1'='1",
    "Alice\x00",
    "\u202e",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_values_are_values_everywhere(world: World, text: str) -> None:
    find = "query f($n: String) { match { $p: Person $p.name = $n } return { $p.name as name } }"
    assert world.ok("POST", "/query", {"query": find, "params": {"n": text}})["rows"] == []
    delete = "query d($n: String) { delete Person where name = $n }"
    told = world.ok("POST", "/mutate", {"query": delete, "params": {"n": text}})
    assert told["affected_nodes"] == 0
    blob = {"entity": "node", "type": "Person", "id": text, "property": "avatar"}
    assert world.call("GET", "/blob", params=blob).status_code == 404
    for params in ({"actor": text}, {"kind": text}):
        assert world.ok("GET", "/commits", params=params)["commits"] == []
    assert world.people() == ["Alice", "Bob"]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_values_are_stored_and_found_as_they_are(world: World, text: str) -> None:
    add = "query a($n: String) { insert Person { name: $n } }"
    answer = world.call("POST", "/mutate", {"query": add, "params": {"n": text}})
    if answer.status_code == 200:
        assert sorted(world.people()) == sorted(["Alice", "Bob", text])
        exported = world.call("GET", "/export", params={"types": "Person"}).text.splitlines()
        assert text in [json.loads(line)["data"]["name"] for line in exported]


# --- secrets ---------------------------------------------------------------------------------------------------------


def test_secrets_appear_nowhere(
    world: World, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    seen = ""
    for route in ROUTES:
        path = f"/{route.path}" if route.flat else route.path
        for actor in TOKENS:
            answer = world.call(route.method, path.replace("{", "").replace("}", ""), actor=actor)
            seen += answer.text + str(answer.headers)
        wrong = {"Authorization": "Bearer t-planted-secret"}
        answer = world.call(route.method, path, actor=None, headers=wrong)
        seen += answer.text + str(answer.headers)
    captured = capfd.readouterr()
    seen += caplog.text + captured.out + captured.err
    for secret in (*TOKENS.values(), "t-planted-secret"):
        assert secret not in seen


def test_refusals_are_audited_on_one_line(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    world.refused(
        400, "POST", "/query", {"query": PEOPLE, "branch": "x\nINFO forged"}, actor="stranger"
    )
    content = {"query": PEOPLE, "branch": "x\u2028INFO forged line"}
    world.refused(403, "POST", "/query", content, actor="stranger")
    world.refused(403, "GET", "/entities/x%0AINFO%20forged%20line/y", actor="stranger")
    found = [r.getMessage() for r in caplog.records if r.name == "omnigraph.audit"]
    assert len(found) == 2
    assert all("stranger" in line and len(line.splitlines()) == 1 for line in found)


def test_failures_of_ours_tell_nothing_of_the_inside(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    from omnigraph.graph import Graph

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("/etc/secret/path")

    monkeypatch.setattr(Graph, "query", broken)
    told = world.refused(500, "POST", "/query", {"query": PEOPLE})
    assert "secret" not in json.dumps(told)
    assert (told["code"], told["error_code"]) == ("internal", "internal")


# --- names that are no texts -----------------------------------------------------------------------------------------


def _misnamed(format: str) -> bytes:
    """A file whose column has a name that is not UTF-8, as no library writes it."""
    table, sink = pa.table({"nameXY": ["a"]}), pa.BufferOutputStream()
    match format:
        case "csv":
            return b"nam\xff\xfe\x89\na\n"
        case "parquet":
            parquet.write_table(table, sink, store_schema=False)
        case "arrow":
            with pa.ipc.new_file(sink, table.schema) as file:
                file.write_table(table)
        case _:
            with pa.ipc.new_stream(sink, table.schema) as stream:
                stream.write_table(table)
    whole: bytes = sink.getvalue().to_pybytes()
    return whole.replace(b"nameXY", b"nam\xff\xfe\x89")


@pytest.mark.parametrize("format", ["csv", "parquet", "arrow"])
@pytest.mark.parametrize("path", ["/import", "/import/preview"])
def test_files_with_names_that_are_no_texts_are_refused(
    world: World, path: str, format: str
) -> None:
    params = {"format": format, "type": "Person"}
    told = world.refused(400, "POST", path, raw=_misnamed(format), params=params)
    assert told["error_code"] == "input_invalid"


def test_parts_with_names_that_are_no_texts_are_refused(world: World) -> None:
    head = b'--b\r\nContent-Disposition: attachment; name="Person"\r\n\r\n'
    headers = {"Content-Type": "multipart/mixed; boundary=b"}
    body = head + _misnamed("stream") + b"\r\n--b--\r\n"
    told = world.refused(400, "POST", "/load", raw=body, headers=headers)
    assert "Person" in told["error"]
