"""The routes an explorer lives on: its files, who is asking, checked texts, single entities, all of history, files."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omnigraph.server.routes import ui
from tests.server.world import PEOPLE, World

CSV = b"who,years,note\nDora,31,x\nEmil,28,y\n"
BIRTHDAY = 'query q($age: I32) { update Person set { age: $age } where name = "Alice" }'
COLUMNS = '{"who": "name", "years": "age", "note": null}'


# --- the files ---------------------------------------------------------------------------------------------------


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "ui"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text("<!doctype html><title>omnigraph</title>")
    (folder / "assets" / "app-1a2b.js").write_text("export const answer = 42;" * 50)
    (folder / "icon.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    (tmp_path / "secret.txt").write_text("not yours")
    monkeypatch.setattr(ui, "BUILT", folder)
    return folder


def test_the_explorer_is_served_with_strict_headers(world: World, built: Path) -> None:
    answer = world.call("GET", "//ui", actor=None)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    policy = answer.headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cache-control"] == "no-cache"


def test_named_files_are_kept_forever_and_packed(world: World, built: Path) -> None:
    answer = world.call("GET", "//ui/assets/app-1a2b.js", actor=None)
    assert answer.status_code == 200
    assert "immutable" in answer.headers["cache-control"]
    assert answer.headers["content-encoding"] == "gzip"
    assert answer.headers["content-type"].startswith(("text/javascript", "application/javascript"))
    assert "export const answer" in answer.text
    plain = world.call("GET", "//ui/icon.svg", actor=None, headers={"Accept-Encoding": "identity"})
    assert plain.headers["content-type"] == "image/svg+xml"
    assert "content-encoding" not in plain.headers


def test_every_other_path_is_the_explorer_itself(world: World, built: Path) -> None:
    for path in ("//ui/", "//ui/people/history", "//ui/a/b/c"):
        answer = world.call("GET", path, actor=None)
        assert answer.status_code == 200, path
        assert "<title>omnigraph</title>" in answer.text


@pytest.mark.parametrize(
    "path",
    [
        "//ui/../secret.txt",
        "//ui/%2e%2e/secret.txt",
        "//ui/..%2fsecret.txt",
        "//ui/assets/..%2f..%2fsecret.txt",
        "//ui/%2fetc%2fpasswd",
        "//ui/assets/%00",
        "//ui/assets/missing.js",
    ],
)
def test_no_path_leads_out_of_the_explorer(world: World, built: Path, path: str) -> None:
    answer = world.call("GET", path, actor=None)
    assert "not yours" not in answer.text
    assert "root:" not in answer.text
    assert answer.status_code in (200, 404)


def test_without_a_build_the_server_says_how_to_get_it(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ui, "BUILT", tmp_path / "nothing")
    for path in ("//ui", "//ui/people"):
        told = world.refused(404, "GET", path, actor=None)
        assert told["error_code"] == "explorer_missing"
        assert "make explorer" in told["help"]


# --- who is asking -------------------------------------------------------------------------------------------------


def test_a_session_names_the_actor_and_what_they_may_read(world: World) -> None:
    told = world.ok("GET", "//session", actor="reader")
    assert told["actor"] == "reader"
    assert told["authenticated"] is True
    assert told["graphs"] == [{"graph_id": "alpha"}]
    assert world.ok("GET", "//session", actor="beta")["graphs"] == [{"graph_id": "beta"}]
    assert world.ok("GET", "//session", actor="stranger")["graphs"] == []


def test_permissions_say_what_would_be_refused(world: World) -> None:
    admin = world.ok("GET", "/permissions")
    assert all(admin["actions"][name] for name in ("read", "change", "branch_merge"))
    assert admin["read_only"] is False
    reader = world.ok("GET", "/permissions", actor="reader")
    assert reader["actions"] == {name: name == "read" for name in reader["actions"]}
    assert reader["read_only"] is True


# --- texts ---------------------------------------------------------------------------------------------------------


def test_a_checked_query_tells_all_mistakes_and_what_it_takes(world: World) -> None:
    text = "query older($age: I32) { match { $p: Person $p.agee > $age } return { $p.nam } }"
    told = world.ok("POST", "/query/check", {"query": text})
    assert [text[d["span"]["start"] : d["span"]["end"]] for d in told["diagnostics"]] == [
        "agee",
        "nam",
    ]
    assert {d["suggestion"] for d in told["diagnostics"]} == {"age", "name"}
    assert told["queries"][0]["params"] == [{"name": "age", "kind": "int", "nullable": False}]
    assert world.ok("POST", "/query/check", {"query": PEOPLE})["diagnostics"] == []
    bare = world.ok("POST", "/query/check", {"query": "match { $p: Person } return { $p.name }"})
    assert (bare["diagnostics"], bare["queries"][0]["name"]) == ([], "q")
    broken = world.ok("POST", "/query/check", {"query": "query {"})
    assert broken["diagnostics"][0]["severity"] == "error"


def test_a_checked_query_is_about_the_branch_it_uses(world: World) -> None:
    graph = world.graphs["alpha"]
    graph.create_branch("wider")
    graph.apply_schema(graph.schema() + "\nnode Extra { name: String @key }", branch="wider")
    text = "MATCH (e:Extra) RETURN e.name"
    there = world.ok("POST", "/query/check", {"query": f"USE wider {text}"})
    assert there["diagnostics"] == []
    assert world.ok("POST", "/query/check", {"query": text})["diagnostics"]
    beside = {"query": text, "branch": "wider"}
    assert world.ok("POST", "/query/check", beside)["diagnostics"] == []
    assert world.ok("POST", "/query/check", {"query": "USE wider MATCH ("})["diagnostics"]


def test_a_checked_schema_tells_all_mistakes(world: World) -> None:
    told = world.ok("POST", "/schema/check", {"schema_source": "node A { x: Strng\n y: I3 }"})
    assert [d["span"]["line"] for d in told["diagnostics"]] == [1, 2]


def test_the_catalog_is_in_the_order_of_the_schema(world: World) -> None:
    told = world.ok("GET", "/catalog")
    assert [node["name"] for node in told["nodes"]] == ["Person", "Company"]
    assert [p["name"] for p in told["nodes"][0]["properties"]] == ["name", "age", "avatar"]


def test_the_catalog_has_types_rules_and_counts(world: World) -> None:
    told = world.ok("GET", "/catalog")
    person = next(kind for kind in told["nodes"] if kind["name"] == "Person")
    assert (person["count"], person["key"]) == (2, ["name"])
    age = next(p for p in person["properties"] if p["name"] == "age")
    assert (age["type"], age["nullable"]) == ("I32", True)
    knows = next(kind for kind in told["edges"] if kind["name"] == "Knows")
    assert (knows["from"], knows["to"], knows["cardinality"]) == ("Person", "Person", "0..")


# --- entities ------------------------------------------------------------------------------------------------------


def test_an_entity_has_properties_and_counted_neighbours(world: World) -> None:
    told = world.ok("GET", "/entities/Person/Alice")
    assert told["properties"]["age"] == 30
    counts = {(n["edge"], n["direction"]): n["count"] for n in told["neighbours"]}
    assert counts == {("Knows", "out"): 1, ("Knows", "in"): 0, ("WorksAt", "out"): 0}
    assert world.refused(404, "GET", "/entities/Person/Nobody")["error_code"] == "entity_not_found"
    assert world.refused(400, "GET", "/entities/Nothing/Alice")["error_code"] == "type_not_found"


def test_the_history_of_an_entity_has_only_its_changes(world: World) -> None:
    graph = world.graphs["alpha"]
    graph.mutate('query q() { insert Person { name: "Zoe" } }')
    for age in (31, 32):
        graph.mutate(BIRTHDAY, {"age": age})
    told = world.ok("GET", "/entities/Person/Alice/history")
    assert [c["operation"] for c in told["changes"]] == ["update", "update", "insert"]
    assert [c["after"]["age"] for c in told["changes"]] == [32, 31, 30]
    assert told["changes"][0]["before"]["age"] == 31
    assert told["changes"][0]["after"]["avatar"] == {"blob_bytes": len("Hello World")}
    first = world.ok("GET", "/entities/Person/Alice/history", params={"limit": 2})
    rest = world.ok("GET", "/entities/Person/Alice/history", params={"at": first["next"]})
    assert [c["operation"] for c in rest["changes"]] == ["insert"]
    assert rest["next"] is None


# --- all of history --------------------------------------------------------------------------------------------------


def test_history_has_every_branch_once_and_in_pages(world: World) -> None:
    graph = world.graphs["alpha"]
    graph.create_branch("side")
    graph.mutate('query q() { insert Person { name: "S" } }', branch="side")
    graph.mutate('query q() { insert Person { name: "M" } }')
    graph.tag("v1")
    whole = world.ok("GET", "/history")
    ids = [c["graph_commit_id"] for c in whole["commits"]]
    assert len(ids) == len(set(ids)) >= 4
    times = [c["created_at"] for c in whole["commits"]]
    assert times == sorted(times, reverse=True)
    assert {b["name"] for b in whole["branches"]} == {"main", "side"}
    assert all(parent in ids for parents in whole["parents"].values() for parent in parents)
    forked = next(c for c in whole["commits"] if c["graph_branch"] == "side")
    assert whole["parents"][forked["graph_commit_id"]] == [ids[2]]
    assert [t["name"] for t in whole["tags"]] == ["v1"]
    seen: list[str] = []
    before: dict[str, Any] = {}
    while True:
        page = world.ok("GET", "/history", params={"limit": 2, **before})
        seen += [c["graph_commit_id"] for c in page["commits"]]
        if page["next"] is None:
            break
        before = {"before": page["next"]}
    assert seen == ids


# --- files of rows ---------------------------------------------------------------------------------------------------


def _parquet() -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"who": ["Dora", "Emil"], "years": [31, 28]}), sink)
    return sink.getvalue()


def test_a_preview_shows_columns_and_rows(world: World) -> None:
    told = world.ok("POST", "/import/preview", raw=CSV, params={"format": "csv"})
    assert [c["name"] for c in told["columns"]] == ["who", "years", "note"]
    assert told["rows"][0] == {"who": "Dora", "years": "31", "note": "x"}
    told = world.ok("POST", "/import/preview", raw=_parquet(), params={"format": "parquet"})
    assert [c["type"] for c in told["columns"]] == ["text", "int64"]
    lines = b'{"type": "Person", "data": {"name": "Dora"}}\n'
    told = world.ok("POST", "/import/preview", raw=lines, params={"format": "ndjson"})
    assert told["graph_records"] is True


@pytest.mark.parametrize(
    ("format", "body"),
    [
        ("csv", CSV),
        ("parquet", _parquet()),
        ("ndjson", b'{"who": "Dora", "years": 31, "note": "x"}\n{"who": "Emil"}\n'),
    ],
)
def test_a_file_is_loaded_to_a_new_branch(world: World, format: str, body: bytes) -> None:
    params = {"type": "Person", "format": format, "columns": COLUMNS, "branch": "draft"}
    checked = world.ok(
        "POST", "/import", raw=body, params={**params, "from": "main", "check": "true"}
    )
    assert checked["nodes"] == [{"name": "Person", "entities_loaded": 2}]
    assert "draft" not in world.graphs["alpha"].branches()
    told = world.ok("POST", "/import", raw=body, params={**params, "from": "main"})
    assert told["branch_created"] is True
    assert world.people("draft") == ["Alice", "Bob", "Dora", "Emil"]
    assert world.people() == ["Alice", "Bob"]


def test_what_is_wrong_is_told_with_its_line_and_no_place_of_ours(world: World) -> None:
    params = {"type": "Person", "format": "csv", "columns": COLUMNS, "check": "true"}
    told = world.refused(400, "POST", "/import", raw=CSV + b"Fritz,many,z\n", params=params)
    assert told["error_code"] == "input_invalid"
    found = told["details"]["violations"][0]
    assert (found["line"], found["property"]) == (4, "age")
    assert "/tmp" not in str(told)
    broken = world.refused(
        400, "POST", "/import", raw=b"no parquet", params={**params, "format": "parquet"}
    )
    assert "/tmp" not in str(broken)
