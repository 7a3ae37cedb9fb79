"""Contracts of the reading routes: shapes, codes and statuses that published clients rely on."""

from __future__ import annotations

import csv
import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.server.world import PEOPLE, World

ARROW = "application/vnd.apache.arrow.stream"
PARQUET = "application/vnd.apache.parquet"


def test_health_names_the_version_clients_expect(world: World) -> None:
    told = world.ok("GET", "//healthz", actor=None)
    assert told["status"] == "ok"
    assert told["version"].startswith("0.10.")
    assert told["internal_schema_version"] == 6


def test_readiness_counts_the_graphs(world: World) -> None:
    assert world.ok("GET", "//readyz", actor=None)["ready"] is True


def test_graphs_are_listed_by_id(world: World) -> None:
    told = world.ok("GET", "//graphs")["graphs"]
    assert [g["graph_id"] for g in told] == ["alpha", "beta"]


def test_a_query_answers_with_the_fields_in_their_order(world: World) -> None:
    answer = world.call("POST", "/query", {"query": PEOPLE})
    head = world.graphs["alpha"].snapshot().commit_id
    assert answer.text == (
        '{"query_name":"people","target":{"branch":"main","snapshot":null},"row_count":2,'
        '"columns":["name"],"rows":[{"name":"Alice"},{"name":"Bob"}],'
        f'"graph_commit_id":"{head}"}}'
    )


def test_the_older_route_answers_the_same_without_the_commit(world: World) -> None:
    answer = world.call("POST", "/read", {"query_source": PEOPLE, "query_name": "people"})
    assert answer.text == (
        '{"query_name":"people","target":{"branch":"main","snapshot":null},"row_count":2,'
        '"columns":["name"],"rows":[{"name":"Alice"},{"name":"Bob"}]}'
    )
    assert answer.headers["Deprecation"] == "true"
    assert answer.headers["Link"] == '<query>; rel="successor-version"'


NODES = 'query q() { match { $p: Person { name: "Bob" } } return { $p } }'


def test_a_client_gets_the_contract_it_names(world: World) -> None:
    node = world.ok("POST", "/query", {"query": NODES})["rows"][0]["p"]
    assert (node["@id"], node["name"]) == ("Bob", "Bob")
    named = {"Omnigraph-Http-Api": "0.13"}
    assert world.ok("POST", "/query", {"query": NODES}, headers=named)["rows"] == [{"p": node}]
    older = {"Omnigraph-Http-Api": "0.10"}
    assert world.ok("POST", "/query", {"query": NODES}, headers=older)["rows"] == [{"p": "Bob"}]
    assert world.ok("POST", "/read", {"query_source": NODES})["rows"] == [{"p": "Bob"}]
    arrow = world.call("POST", "/query", {"query": NODES}, headers=older | {"Accept": ARROW})
    assert pa.ipc.open_stream(arrow.content).read_all().to_pylist() == [{"p": "Bob"}]


def test_a_route_that_a_contract_does_not_have_is_not_there(world: World) -> None:
    named = {"Omnigraph-Http-Api": "0.13"}
    for path in ("/read", "/change", "/ingest"):
        assert "/" in world.refused(404, "POST", path, {"query": NODES}, headers=named)["error"]


def test_another_contract_is_refused_with_those_there_are(world: World) -> None:
    body = world.refused(
        400, "POST", "/query", {"query": NODES}, headers={"Omnigraph-Http-Api": "0.12"}
    )
    assert "0.10 and 0.13" in body["error"]
    answer = world.call("GET", "/schema", headers={"Omnigraph-Http-Api": "1"})
    assert (answer.status_code, answer.headers["omnigraph-http-api"]) == (400, "0.10, 0.13")


def test_a_query_comes_as_arrow_when_asked_for(world: World) -> None:
    answer = world.call("POST", "/query", {"query": PEOPLE}, headers={"Accept": ARROW})
    assert answer.headers["content-type"] == ARROW
    table = pa.ipc.open_stream(answer.content).read_all()
    assert table.to_pylist() == [{"name": "Alice"}, {"name": "Bob"}]
    assert answer.headers["omnigraph-graph-commit"] == world.graphs["alpha"].snapshot().commit_id


TAGGED = """query q() { match { $p: Person  optional { $p knows $f } }
  return { $p.name as name, $p.age as age, collect($f.name) as friends } order { name asc } }"""


def test_a_query_comes_as_csv_and_parquet(world: World) -> None:
    for media in ("text/csv", PARQUET):
        answer = world.call("POST", "/query", {"query": TAGGED}, headers={"Accept": media})
        assert answer.headers["content-type"].startswith(media)
        if media == PARQUET:
            rows = pq.read_table(io.BytesIO(answer.content)).to_pylist()
            assert rows[0] == {"name": "Alice", "age": 30, "friends": ["Bob"]}
        else:
            lines = list(csv.reader(io.StringIO(answer.text)))
            assert lines == [
                ["name", "age", "friends"],
                ["Alice", "30", '["Bob"]'],
                ["Bob", "25", "[]"],
            ]
    none = "query q() { match { $p: Person { age: 1 } } return { $p.name as name } }"
    empty = world.call("POST", "/query", {"query": none}, headers={"Accept": PARQUET})
    assert pq.read_table(io.BytesIO(empty.content)).column_names == ["name"]


def test_a_stored_query_comes_in_every_form_too(world: World) -> None:
    answer = world.call(
        "POST", "/queries/older", {"params": {"age": 26}}, headers={"Accept": "text/csv"}
    )
    assert answer.text.splitlines() == ['"name"', '"Alice"']


def test_an_answer_may_be_cut_and_still_counts_all_rows(world: World) -> None:
    asked = {"query": PEOPLE, "rows_shown": 1, "column_types": True}
    told = world.ok("POST", "/query", asked)
    assert (told["row_count"], told["rows"]) == (2, [{"name": "Alice"}])
    assert told["column_types"] == ["String"]
    world.refused(400, "POST", "/query", {"query": PEOPLE, "rows_shown": -1})


def test_a_snapshot_is_read_by_its_commit(world: World) -> None:
    before = world.graphs["alpha"].snapshot().commit_id
    world.ok("POST", "/mutate", {"query": 'query q() { insert Person { name: "Zoe" } }'})
    told = world.ok("POST", "/query", {"query": PEOPLE, "snapshot": before})
    assert told["target"] == {"branch": None, "snapshot": before}
    assert [row["name"] for row in told["rows"]] == ["Alice", "Bob"]


def test_rows_and_time_are_bounded_by_the_server(world: World) -> None:
    told = world.refused(413, "POST", "/query", {"query": PEOPLE, "max_rows": 1})
    assert told["resource_limit"] == {"resource": "max_rows", "limit": 1, "actual": 2}
    assert told["code"] == "bad_request"


@pytest.mark.parametrize(
    ("content", "status", "error_code"),
    [
        ({}, 400, "request_invalid"),
        ({"query": PEOPLE, "branch": "main", "snapshot": "x"}, 400, "request_invalid"),
        ({"query": PEOPLE, "branch": "nowhere"}, 404, "branch_not_found"),
        ({"query": PEOPLE, "snapshot": "nowhere"}, 404, "commit_not_found"),
        ({"query": PEOPLE, "name": "other"}, 400, "query_not_found"),
        ({"query": "query a() { match { $p: Nobody } return { $p.name } }"}, 400, "T1"),
        ({"query": 'query q() { insert Person { name: "x" } }'}, 400, "query_kind"),
        ({"query": PEOPLE, "params": 3}, 400, "request_invalid"),
        ({"query": 7}, 400, "request_invalid"),
    ],
)
def test_queries_that_cannot_run_say_why(
    world: World, content: object, status: int, error_code: str
) -> None:
    told = world.refused(status, "POST", "/query", content)
    assert told["error_code"] == error_code
    assert told["error"]
    assert told["help"]


def test_errors_of_the_language_point_at_their_place(world: World) -> None:
    told = world.refused(400, "POST", "/query", {"query": "query a() { match { $p: Nobody } }"})
    assert told["span"]["line"] == 1
    assert told["code"] == "bad_request"


def test_stored_queries_are_described_and_called(world: World) -> None:
    listed = {q["name"]: q for q in world.ok("GET", "/queries")["queries"]}
    assert listed["older"]["params"] == [{"name": "age", "kind": "int", "nullable": False}]
    assert listed["older"]["mutation"] is False
    assert listed["add_person"]["mutation"] is True
    told = world.ok("POST", "/queries/older", {"params": {"age": 26}})
    assert told["rows"] == [{"name": "Alice"}]
    added = world.ok("POST", "/queries/add_person", {"params": {"name": "Zoe"}})
    assert added["affected_nodes"] == 1
    assert "Zoe" in world.people()


def test_a_stored_query_in_cypher_is_described_and_called(world: World) -> None:
    listed = {q["name"]: q for q in world.ok("GET", "/queries")["queries"]}["set_age"]
    assert (listed["language"], listed["mutation"]) == ("cypher", True)
    assert listed["description"] == "Gives a person an age."
    assert [p["name"] for p in listed["params"]] == ["name", "age"]
    params = {"name": "Bob", "age": 26}
    told = world.ok("POST", "/queries/set_age", {"params": params})
    assert (told["affected_nodes"], told["rows"]) == (1, [params])


def test_stored_queries_hold_callers_to_what_they_expect(world: World) -> None:
    told = world.refused(400, "POST", "/queries/older", {"expect_mutation": True})
    assert "read" in told["error"]
    world.refused(400, "POST", "/queries/add_person", {"snapshot": "main"})
    missing = world.refused(404, "POST", "/queries/missing", {})
    denied = world.refused(404, "POST", "/queries/older", {}, actor="stranger")
    assert missing == denied, "a refusal tells that the query exists"
    assert missing["error"] == "stored query not found"


def test_the_schema_and_the_snapshot_are_told(world: World) -> None:
    assert "node Person" in world.ok("GET", "/schema")["schema_source"]
    told = world.ok("GET", "/snapshot")
    assert told["graph_branch"] == "main"
    names = [(d["entity_kind"], d["type_name"], d["entity_count"]) for d in told["datasets"]]
    assert names == [
        ("edge", "Knows", 1),
        ("edge", "WorksAt", 0),
        ("node", "Company", 1),
        ("node", "Person", 2),
    ]


def test_unknown_paths_methods_and_graphs_have_bodies(world: World) -> None:
    assert world.refused(404, "GET", "//query")["code"] == "not_found"
    told = world.call("PUT", "/query", {})
    assert (told.status_code, told.headers["allow"]) == (405, "POST")
    assert told.json()["code"] == "method_not_allowed"
    both = world.call("PUT", "/branches/merge", {})
    assert both.headers["allow"] == "DELETE, POST", "of all routes the path fits"
    assert world.call("HEAD", "/schema").status_code == 200, "GET takes HEAD as well"
    assert world.call("GET", "/%62ranches").status_code == 200, "a path has one meaning"
    assert world.refused(404, "GET", "/branches/")["error_code"] == "route_not_found"
    missing = world.refused(404, "GET", "/schema", graph="gamma")
    assert missing["error"] == "graph 'gamma' not found"
    world.refused(400, "GET", "/schema", graph="no_good")
    world.refused(401, "GET", "/schema", graph="gamma", actor=None)


def test_the_description_names_every_route(world: World) -> None:
    from omnigraph.server.routes import ROUTES

    document = world.ok("GET", "//openapi.json", actor=None)
    told = {(path, method) for path, methods in document["paths"].items() for method in methods}
    described = [route for route in ROUTES if not (route.page or route.protocol)]
    assert told == {(route.full_path, route.method.lower()) for route in described}
    page = world.call("GET", "//docs", actor=None).text
    assert all(route.full_path in page for route in ROUTES)
    assert "src=" not in page, "the page asks for something from elsewhere"
    assert "http://" not in page
    assert "https://" not in page


def test_metrics_count_requests_and_storage(world: World) -> None:
    world.people()
    text = world.call("GET", "//metrics").text
    assert 'omnigraph_requests_total{route="POST /graphs/{graph_id}/query",status="200"}' in text
    assert 'omnigraph_storage_ops_total{operation="query"}' in text


def test_exports_come_in_the_form_asked_for(world: World) -> None:
    lines = [json.loads(line) for line in world.call("GET", "/export").text.splitlines()]
    assert [line.get("type") or line["edge"] for line in lines] == [
        "Company",
        "Person",
        "Person",
        "Knows",
    ]
    told = world.call("GET", "/export", headers={"Accept": ARROW}, params={"types": "Person"})
    assert pa.ipc.open_stream(told.content).read_all().num_rows == 2
    media = "application/vnd.apache.parquet"
    told = world.call("GET", "/export", headers={"Accept": media}, params={"types": "Person"})
    from pyarrow import parquet

    assert parquet.read_table(pa.BufferReader(told.content)).num_rows == 2
    told = world.refused(406, "GET", "/export", headers={"Accept": ARROW})
    assert told["error_code"] == "not_acceptable"


def test_an_export_tells_ids_and_its_charset_and_keeps_to_an_order(world: World) -> None:
    world.ok("POST", "/load", {"data": '{"type":"Person","data":{"name":"Aaron"}}'})
    for told in (
        world.call("GET", "/export", params={"types": "Person", "order": "id"}),
        world.call("POST", "/export", {"type_names": ["Person"], "order": "id"}),
    ):
        assert told.headers["Content-Type"] == "application/x-ndjson; charset=utf-8"
        records = [json.loads(line) for line in told.text.splitlines()]
        assert [r["data"]["id"] for r in records] == ["Aaron", "Alice", "Bob"]
    world.refused(400, "GET", "/export", params={"order": "name"})


def test_an_export_is_pinned_to_its_commit(world: World) -> None:
    before = world.graphs["alpha"].snapshot().commit_id
    world.ok("POST", "/mutate", {"query": 'query q() { insert Person { name: "Zoe" } }'})
    told = world.call("GET", "/export", params={"at": before, "types": "Person"})
    assert "Zoe" not in told.text
    assert told.headers["omnigraph-graph-commit"] == before


def test_an_export_loads_again(world: World) -> None:
    lines = world.call("POST", "/export", {}).content
    told = world.ok(
        "POST",
        "/load/ndjson",
        raw=lines,
        actor="beta",
        graph="beta",
        params={"mode": "overwrite"},
        headers={"Content-Type": "application/x-ndjson"},
    )
    assert told["total_entities"] == 4


@pytest.mark.parametrize("content", [{"type_names": ["Nobody"]}, {"unknown": 1}])
def test_exports_of_what_is_not_there_are_refused(world: World, content: object) -> None:
    assert world.refused(400, "POST", "/export", content)


def test_a_query_in_cypher_is_found_out_or_said_to_be(world: World) -> None:
    text = "MATCH (p:Person) WHERE p.name = $who RETURN p.name AS name"
    asked = {"query": text, "params": {"who": "Bob"}}
    told = world.ok("POST", "/query", asked)
    assert (told["query_name"], told["rows"]) == ("cypher", [{"name": "Bob"}])
    assert world.ok("POST", "/query", asked | {"language": "cypher"})["rows"] == told["rows"]
    refused = world.call("POST", "/query", asked | {"language": "gq"})
    assert refused.status_code == 400
    wrong = world.call("POST", "/query", {"query": "MATCH (p:Persn) RETURN p"})
    assert "C002" in wrong.text
    assert "Person" in wrong.text
