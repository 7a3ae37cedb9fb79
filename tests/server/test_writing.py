"""Contracts of the writing routes: mutations, conditions, keys, loads, schema changes."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pyarrow as pa
import pytest
import zstandard

from tests.server.world import PEOPLE, World

NDJSON = "application/x-ndjson"
ADD = "query add($name: String) { insert Person { name: $name } }"


def _add(name: str, **more: Any) -> dict[str, Any]:
    return {"query": ADD, "params": {"name": name}, **more}


def _lines(*names: str) -> bytes:
    records = [{"type": "Person", "data": {"name": name}} for name in names]
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def _load(world: World, raw: bytes, **more: Any) -> Any:
    headers = {"Content-Type": NDJSON, **more.pop("headers", {})}
    return world.call("POST", "/load", raw=raw, headers=headers, params=more)


# --- mutations ---------------------------------------------------------------------------------------------------


def test_a_mutation_returns_the_commit_that_can_be_looked_up(world: World) -> None:
    told = world.ok("POST", "/mutate", _add("Zoe", message="why"))
    assert (told["branch"], told["query_name"], told["affected_nodes"]) == ("main", "add", 1)
    assert told["actor_id"] == told["commit"]["actor_id"] == "admin"
    assert told["commit"]["graph_branch"] is None
    assert told["commit"] == world.ok("GET", f"/commits/{told['commit']['graph_commit_id']}")


def test_a_mutation_that_matches_nothing_makes_no_commit(world: World) -> None:
    before = world.graphs["alpha"].snapshot().commit_id
    text = 'query q() { delete Person where name = "nobody" }'
    assert world.ok("POST", "/mutate", {"query": text})["commit"] is None
    assert world.graphs["alpha"].snapshot().commit_id == before


def test_a_dry_run_counts_and_changes_nothing(world: World) -> None:
    before = world.graphs["alpha"].snapshot().commit_id
    told = world.ok("POST", "/mutate", _add("Zoe", dry_run=True))
    assert (told["affected_nodes"], told["commit"]) == (1, None)
    assert world.graphs["alpha"].snapshot().commit_id == before


def test_a_dry_run_says_what_would_be_refused(world: World) -> None:
    text = 'query q() { insert Knows { from: "nobody", to: "no one" } }'
    refused = world.call("POST", "/mutate", {"query": text, "dry_run": True})
    assert refused.status_code == 400, refused.text
    assert refused.json()["error_code"] == "validation_failed"


def test_older_names_and_routes_still_work(world: World) -> None:
    content = {"query_source": ADD, "query_name": "add", "params": {"name": "Zoe"}}
    answer = world.call("POST", "/change", content)
    assert answer.json()["affected_nodes"] == 1
    assert answer.headers["Link"] == '<mutate>; rel="successor-version"'


def test_conditional_writes_happen_only_at_their_head(world: World) -> None:
    head = world.graphs["alpha"].snapshot().commit_id
    condition = {"Omnigraph-If-Graph-Commit": head}
    world.ok("POST", "/mutate/if-graph-commit", _add("Zoe"), headers=condition)
    told = world.refused(412, "POST", "/mutate/if-graph-commit", _add("Yan"), headers=condition)
    now = world.graphs["alpha"].snapshot().commit_id
    assert told["precondition_failure"] == {"expected": head, "actual": now}
    assert told["error"] == (
        f"precondition failed on branch 'main': expected head '{head}' but current is {now}"
    )
    assert "code" not in told
    assert "Yan" not in world.people()


@pytest.mark.parametrize("value", [None, "*", "a,b", '"x"', "W/x", ""])
def test_conditions_must_be_one_commit(world: World, value: str | None) -> None:
    headers = {} if value is None else {"Omnigraph-If-Graph-Commit": value}
    assert world.refused(400, "POST", "/mutate/if-graph-commit", _add("Zoe"), headers=headers)


def test_conditions_on_ordinary_routes_are_refused(world: World) -> None:
    headers = {"Omnigraph-If-Graph-Commit": world.graphs["alpha"].snapshot().commit_id}
    assert world.refused(400, "POST", "/mutate", _add("Zoe"), headers=headers)


def test_a_key_makes_a_mutation_happen_once(world: World) -> None:
    key = {"Idempotency-Key": "k1"}
    first = world.ok("POST", "/mutate", _add("Zoe"), headers=key)
    again = world.ok("POST", "/mutate", _add("Zoe"), headers=key)
    assert again["replayed"] is True
    assert again["commit"] == first["commit"]
    told = world.refused(400, "POST", "/mutate", _add("Yan"), headers=key)
    assert told["error_code"] == "idempotency_mismatch"


# --- loads -------------------------------------------------------------------------------------------------------


def test_a_stream_is_one_commit(world: World) -> None:
    told = _load(world, _lines("Zoe", "Yan"), message="two").json()
    assert told["nodes"] == [{"name": "Person", "entities_loaded": 2}]
    assert told["total_entities"] == 2
    assert told["mode"] == "merge"
    assert told["commit"]["message"] == "two"
    assert told["commit"] == world.ok("GET", f"/commits/{told['commit']['graph_commit_id']}")


@pytest.mark.parametrize(
    ("encoding", "pack"),
    [
        ("gzip", gzip.compress),
        ("zstd", zstandard.ZstdCompressor().compress),
        ("gzip", lambda raw: gzip.compress(raw[:20]) + gzip.compress(raw[20:])),
        ("identity", bytes),
    ],
)
def test_bodies_may_be_packed(world: World, encoding: str, pack: Any) -> None:
    packed = pack(_lines(*[f"P{i}" for i in range(200)]))
    told = _load(world, packed, headers={"Content-Encoding": encoding}).json()
    assert told["total_entities"] == 200


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_a_packed_body_that_ends_early_publishes_nothing(world: World, encoding: str) -> None:
    raw = _lines(*[f"P{i}" for i in range(500)])
    packed = gzip.compress(raw) if encoding == "gzip" else zstandard.compress(raw)
    answer = _load(world, packed[: len(packed) // 2], headers={"Content-Encoding": encoding})
    assert answer.status_code == 400
    assert world.people() == ["Alice", "Bob"]


def test_a_malformed_line_names_itself_and_publishes_nothing(world: World) -> None:
    answer = _load(world, _lines("Zoe") + b'{"type":"Person","other":1}\n')
    assert answer.status_code == 400
    assert "line 2" in answer.json()["error"]
    assert world.people() == ["Alice", "Bob"]


def test_the_compatible_body_is_lenient(world: World) -> None:
    data = '{"type":"Person","data":{"name":"Zoe"},"source":"old"}\n\n'
    told = world.ok("POST", "/load", {"data": data, "branch": "side", "from": "main"})
    assert (told["branch_created"], told["base_branch"]) == (True, "main")
    assert told["uri"] == world.graphs["alpha"].uri
    assert world.people("side") == ["Alice", "Bob", "Zoe"]
    assert world.people() == ["Alice", "Bob"]


def test_the_compatible_body_takes_records_over_several_lines_and_keeps_their_ids(
    world: World,
) -> None:
    data = """
      {"type": "Person",
       "data": {"name": "Zoe", "height": 3, "age": "thirty"}}
      {"type": "Person", "data": {"name": "Yan"}} {"edge": "Knows", "id": "k",
       "from": "Zoe", "to": "Yan", "data": {"since": null}}"""
    assert world.ok("POST", "/load", {"data": data})["total_entities"] == 3
    assert world.people() == ["Alice", "Bob", "Yan", "Zoe"]
    edges = world.call("POST", "/export", {"type_names": ["Knows"]}).text
    assert '"id":"k"' in edges.replace(" ", "")
    for wrong in ('{"type": "Person",\n "data": {"name": }}', '{"type": "Person"', "1", '"\\"'):
        told = world.refused(400, "POST", "/load", {"data": "\n" + wrong})
        assert "line 2" in told["error"]
    told = world.refused(400, "POST", "/load", {"data": '{"type":"Person","data":{"name":1}}'})
    assert "name" in told["error"]


def test_a_media_type_no_load_takes_is_answered_with_those_it_does(world: World) -> None:
    told = world.refused(415, "POST", "/load", raw=b"a,b", headers={"Content-Type": "text/csv"})
    for media in ("application/json", NDJSON, "multipart/mixed"):
        assert media in told["error"]
    told = world.refused(415, "POST", "/query", raw=b"{}", headers={"Content-Type": NDJSON})
    assert NDJSON not in told["error"].partition(", not ")[0]


def test_ingest_is_the_same_under_an_older_name(world: World) -> None:
    answer = world.call("POST", "/ingest", {"data": _lines("Zoe").decode()})
    assert answer.json()["total_entities"] == 1
    assert answer.headers["Deprecation"] == "true"


def test_the_ndjson_route_takes_nothing_else(world: World) -> None:
    told = world.refused(415, "POST", "/load/ndjson", {"data": ""})
    assert told["error_code"] == "media_unsupported"
    raw = _lines("Zoe")
    headers = {"Content-Type": f"{NDJSON}; charset=utf-8"}
    told = world.ok("POST", "/load/ndjson", raw=raw, headers=headers)
    assert "uri" not in told


def test_tables_come_as_parts(world: World) -> None:
    people = pa.table({"name": ["Zoe", "Yan"], "age": pa.array([1, 2], pa.int32())})
    knows = pa.table({"from": ["Zoe"], "to": ["Yan"]})
    parts = _part("Person", people) + _part("Knows", knows)
    told = world.ok("POST", "/load", raw=parts + b"--cut--\r\n", headers=CUT)
    assert told["total_entities"] == 3
    assert told["edges"] == [{"name": "Knows", "entities_loaded": 1}]
    world.refused(400, "POST", "/load", raw=parts, headers=CUT)
    world.refused(400, "POST", "/load", raw=b"--cut\r\n\r\nx\r\n--cut--\r\n", headers=CUT)


def test_parts_of_one_name_follow_each_other_if_they_fit(world: World) -> None:
    required = pa.schema([pa.field("name", pa.string(), nullable=False)])
    some = _part("Person", pa.table({"name": ["Zoe"]}, schema=required))
    more = _part("Person", pa.table({"name": ["Yan"], "age": pa.array([2], pa.int32())}))
    told = world.ok("POST", "/load", raw=some + more + b"--cut--\r\n", headers=CUT)
    assert told["total_entities"] == 2
    other = _part("Person", pa.table({"name": [[1]]}))
    told = world.refused(400, "POST", "/load", raw=some + other + b"--cut--\r\n", headers=CUT)
    assert "do not fit together" in told["error"]


CUT = {"Content-Type": "multipart/mixed; boundary=cut"}


def _part(name: str, table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    head = f'--cut\r\nContent-Disposition: attachment; name="{name}"\r\n\r\n'
    content: bytes = sink.getvalue().to_pybytes()
    return head.encode() + content + b"\r\n"


def test_appending_what_exists_is_a_key_conflict(world: World) -> None:
    answer = _load(world, _lines("Alice"), mode="append")
    assert answer.status_code == 409
    told = answer.json()
    assert told["error"] == "node type 'Person' already has id 'Alice'"
    assert told["key_conflict"] == {
        "entity_kind": "node",
        "type_name": "Person",
        "entity_id": "Alice",
    }


def test_a_key_makes_a_load_happen_once(world: World) -> None:
    edge = b'{"edge":"Knows","from":"Alice","to":"Bob","data":{}}\n'
    key = {"Idempotency-Key": "load-1"}
    first = _load(world, edge, headers=key).json()
    again = _load(world, edge, headers=key).json()
    assert again["replayed"] is True
    assert again["commit"] == first["commit"]
    other = _load(world, edge + edge, headers=key)
    assert other.json()["error_code"] == "idempotency_mismatch"


@pytest.mark.parametrize("params", [{"mode": "upsert"}, {"branch": ["a", "b"]}])
def test_options_of_a_load_are_checked(world: World, params: dict[str, Any]) -> None:
    headers = {"Content-Type": NDJSON}
    assert world.refused(400, "POST", "/load", raw=b"", headers=headers, params=params)


def test_a_load_to_a_branch_that_is_not_there_is_refused(world: World) -> None:
    assert _load(world, _lines("Zoe"), branch="nowhere").status_code == 404


# --- the schema ----------------------------------------------------------------------------------------------------


def test_schema_changes_are_planned_then_applied(world: World) -> None:
    source = world.ok("GET", "/schema")["schema_source"] + "\nnode Film { title: String @key }"
    plan = world.ok("POST", "/schema/plan", {"schema_source": source})
    assert (plan["supported"], plan["step_count"]) == (True, 1)
    done = world.ok("POST", "/schema/apply", {"schema_source": source})
    assert done["applied"] is True
    assert [step["kind"] for step in done["steps"]] == ["add_type"]
    assert done["commit"]["kind"] == "schema"
    assert world.ok("GET", "/schema")["schema_source"] == source
    told = world.refused(400, "POST", "/schema/apply", {"schema_source": "node {"})
    assert told["span"]["line"] == 1


@pytest.mark.parametrize(
    ("raw", "headers", "status"),
    [
        (b"{", {"Content-Type": "application/json"}, 400),
        (b"[]", {"Content-Type": "application/json"}, 400),
        (b'{"query":"\xff"}', {"Content-Type": "application/json"}, 400),
        (b"{}", {"Content-Type": "text/plain"}, 415),
        (b"{}", {"Content-Type": "application/json", "Content-Encoding": "br"}, 415),
        (b"[" * 100_000, {"Content-Type": "application/json"}, 400),
        (b" " * (2 << 20), {"Content-Type": "application/json"}, 413),
    ],
)
def test_bodies_that_cannot_be_read_are_refused(
    world: World, raw: bytes, headers: dict[str, str], status: int
) -> None:
    for path in ("/query", "/mutate", "/branches", "/export", "/queries/older"):
        told = world.refused(status, "POST", path, raw=raw, headers=headers)
        assert told["code"] == "bad_request"


def test_writers_at_once_are_all_kept(world: World) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: world.ok("POST", "/mutate", _add(f"W{i}")), range(24)))
    rows = world.ok("POST", "/query", {"query": PEOPLE})["row_count"]
    assert rows == 26


def test_rows_that_cypher_returns_after_writing_are_answered(world: World) -> None:
    asked = {"query": "CREATE (p:Person {name: 'Cyd', age: 4}) RETURN p.name AS name, p.age AS age"}
    told = world.ok("POST", "/mutate", asked)
    assert (told["columns"], told["rows"]) == (["name", "age"], [{"name": "Cyd", "age": 4}])
    assert "rows" not in world.ok("POST", "/mutate", {"query": "CREATE (:Person {name: 'Dan'})"})
    refused = world.refused(403, "POST", "/mutate", asked, actor="reader")
    assert "rows" not in refused


def test_a_mutation_in_cypher_is_one_commit(world: World) -> None:
    told = world.ok(
        "POST", "/mutate", {"query": "CREATE (:Person {name: $n})", "params": {"n": "Cyd"}}
    )
    assert told["affected_nodes"] == 1
    found = world.ok(
        "POST", "/query", {"query": "MATCH (p:Person {name: 'Cyd'}) RETURN count(*) AS n"}
    )
    assert found["rows"] == [{"n": 1}]
