"""Formats of results, tables, and the JSON shapes of every verb."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from omnigraph.cli.output import Sheet, as_csv, as_markdown
from omnigraph.cli.table import draw
from tests.unit.cli import world
from tests.unit.cli.world import Done

Cli = Callable[..., Done]
ALL = "match { $p: Person } return { $p.name as name, $p.age as age } order { $p.name asc }"
PEOPLE = [["Ada", 36], ["Linus", 21], ["Margaret", 58]]


def test_csv(cli: Cli) -> None:
    done = cli("query", "-s", "people", "-e", ALL, "--format", "csv")
    assert list(csv.reader(io.StringIO(done.out))) == [
        ["name", "age"],
        *[[name, str(age)] for name, age in PEOPLE],
    ]


def test_jsonl(cli: Cli) -> None:
    done = cli("query", "-s", "people", "-e", ALL, "--format", "jsonl")
    assert [list(json.loads(line).values()) for line in done.out.splitlines()] == PEOPLE


def test_markdown(cli: Cli) -> None:
    done = cli("query", "-s", "people", "-e", ALL, "--format", "markdown")
    assert done.out.splitlines()[:3] == ["| name | age |", "| --- | --- |", "| Ada | 36 |"]


def test_arrow(folder: Path) -> None:
    import subprocess

    done = subprocess.run(
        [world.PROGRAM, "query", "-s", "people", "-e", ALL, "--format", "arrow"],
        cwd=folder,
        env=world.environment(folder),
        capture_output=True,
        check=True,
    )
    table = pa.ipc.open_stream(done.stdout).read_all()
    assert table.to_pylist()[0] == {"name": "Ada", "age": 36}
    assert str(table.schema.field("age").type) == "int32"


def test_special_characters_stay_in_their_cells() -> None:
    sheet = Sheet(["a"], [['x "y", z\nw'], ["p|q"], [None], [True], [[1, 2]]])
    assert [row[0] for row in csv.reader(io.StringIO(as_csv(sheet)))][1:] == [
        'x "y", z\nw',
        "p|q",
        "",
        "true",
        "[1, 2]",
    ]
    assert list(as_markdown(sheet))[3] == "| p\\|q |"


# --- tables ------------------------------------------------------------------------------------------------------


def test_types_stand_under_the_headings_and_numbers_to_the_right() -> None:
    lines = draw(["name", "n"], ["String", "I64?"], [["Ada", 7], ["Bo", None]]).splitlines()
    assert lines[1:3] == ["│ name   │    n │", "│ String │ I64? │"]
    assert lines[4:6] == ["│ Ada    │    7 │", "│ Bo     │ null │"]


@pytest.mark.parametrize("width", [30, 50, 80])
def test_a_table_is_never_wider_than_asked(width: int) -> None:
    columns = [f"column_{i}" for i in range(12)]
    rows = [[f"value {i} that is rather long" for i in range(12)]]
    lines = draw(columns, [], rows, width=width).splitlines()
    assert all(len(line) <= width for line in lines if not line.endswith("shows all"))
    assert "columns not shown" in lines[-1]


def test_wide_characters_are_measured() -> None:
    lines = draw(["n"], [], [["東京"], ["ab"]]).splitlines()
    assert lines[3:5] == ["│ 東京 │", "│ ab   │"]


def test_control_characters_cannot_reach_the_terminal() -> None:
    assert "\x1b" not in draw(["n"], [], [["\x1b[31mred"]])


def test_a_long_vector_is_shortened() -> None:
    assert "16 numbers" in draw(["v"], [], [[[0.5] * 16]])


# --- JSON shapes -------------------------------------------------------------------------------------------------


def test_mutate(cli: Cli) -> None:
    text = 'insert Person { name: "Grace" }'
    done = cli("mutate", "-s", "people", "-e", text, "-m", "why", "--as", "ada", "--json")
    assert (done.json["affected_nodes"], done.json["affected_edges"]) == (1, 0)
    assert (done.json["commit"]["actor"], done.json["commit"]["message"]) == ("ada", "why")


def test_a_mutation_that_matches_nothing_has_no_commit(cli: Cli) -> None:
    text = 'delete Person where name = "Nobody"'
    done = cli("mutate", "-s", "people", "-e", text, "--json")
    assert done.json == {"affected_nodes": 0, "affected_edges": 0, "commit": None}


def test_load(cli: Cli) -> None:
    words = ("load", "-s", "people", "--data", "people.jsonl", "--load-id", "one", "--json")
    first, second = cli(*words), cli(*words)
    assert first.json["nodes"] == {"Person": 3}
    assert first.json["edges"] == {"Knows": 2}
    assert first.json["engine"] == "local"
    assert second.json["commit"] == first.json["commit"]
    assert "loading them again adds them again" in first.err


def test_a_checked_load_changes_nothing(cli: Cli) -> None:
    before = cli("log", "-s", "people", "--json").json
    done = cli("load", "-s", "people", "--data", "people.jsonl", "--check")
    first, cost, *by_type = done.out.splitlines()
    assert first == "3 nodes of 1 type, 2 edges of 1 type can be loaded"
    assert cost.startswith("load     local: read ")
    assert [line.split() for line in by_type] == [
        ["Person", "3", "in,", "3", "changed"],
        ["Knows", "2", "in,", "2", "new"],
    ]
    assert cli("log", "-s", "people", "--json").json == before


def test_a_bad_record_is_named_by_its_line(cli: Cli) -> None:
    Path("bad.jsonl").write_text('{"type":"Person","data":{"name":"A"}}\n{"type":"Persn"}\n')
    done = cli("load", "-s", "people", "--data", "bad.jsonl")
    assert done.code == 1
    assert "Persn" in done.err
    assert "2" in done.err


def test_merge(cli: Cli) -> None:
    done = cli("merge", "draft", "-s", "people", "--json")
    assert done.json["outcome"] == "fast_forward"
    assert done.json["commit"]["kind"] == "merge"
    assert done.json["conflicts"] == []


def test_a_conflict_is_an_answer_with_exit_code_4(cli: Cli) -> None:
    change = 'update Person set { age: %d } where name = "Ada"'
    cli("mutate", "-s", "people", "-e", change % 1)
    cli("mutate", "-s", "people", "-e", change % 2, "--branch", "draft")
    done = cli("merge", "draft", "-s", "people", "--json")
    assert (done.code, done.json["outcome"], done.json["commit"]) == (4, "conflict", None)
    found = done.json["conflicts"][0]
    assert (found["base"], found["ours"], found["theirs"]) == (36, 1, 2)
    assert "divergent_update: Person.age of Ada" in cli("merge", "draft", "-s", "people").out


def test_schema_plan_and_apply(cli: Cli) -> None:
    words = ("-s", "people", "--schema", "next.pg", "--json")
    planned = cli("schema", "plan", *words).json
    assert (planned["supported"], [s["kind"] for s in planned["steps"]]) == (True, ["add_property"])
    done = cli("schema", "apply", *words)
    assert done.json["applied"] is True
    assert cli("schema", "show", "-s", "people").out == world.NEXT_SCHEMA


def test_lint(cli: Cli) -> None:
    done = cli("lint", "--query", "people.gq", "--schema", "people.pg", "--json")
    assert (done.code, done.json["status"], done.json["queries_processed"]) == (0, "ok", 2)
    assert done.json["schema_source"] == {"kind": "file", "path": "people.pg"}
    assert done.json["query_path"] == "people.gq"
    assert {"errors", "warnings", "infos", "results", "findings"} <= set(done.json)


def test_lint_of_a_file_that_does_not_parse(cli: Cli) -> None:
    Path("bad.gq").write_text("query x( {")
    done = cli("lint", "--query", "bad.gq", "--schema", "people.pg", "--json")
    assert (done.code, done.json["status"], done.json["queries_processed"]) == (1, "error", 0)
    assert [f["code"] for f in done.json["findings"]] == ["Q000"]


def test_cypher_files_are_formatted_and_checked(cli: Cli) -> None:
    Path("ugly.cypher").write_text("match (p:Person) where p.age>3 // old\nreturn p.nam")
    assert cli("fmt", "--check", "ugly.cypher").code == 1
    assert cli("fmt", "ugly.cypher").code == 0
    text = "MATCH (p:Person)\n  WHERE p.age>3 // old\nRETURN p.nam\n"
    assert Path("ugly.cypher").read_text() == text
    done = cli("lint", "--query", "ugly.cypher", "--schema", "people.pg", "--json")
    assert (done.code, done.json["results"][0]["name"]) == (1, "ugly")
    found = done.json["results"][0]["diagnostics"][0]
    assert (found["code"], found["span"]["line"]) == ("C005", 3)
    Path("pairs.cypher").write_text("MATCH (p:Person), (q:Person) RETURN count(*) AS n")
    done = cli("lint", "--query", "pairs.cypher", "--schema", "people.pg")
    assert (done.code, "not connected" in done.out) == (0, True)


def test_rows_returned_after_writing_are_printed(cli: Cli) -> None:
    text = "CREATE (p:Person {name: 'Zed'}) RETURN p.name AS name"
    done = cli("mutate", "-s", "people", "-e", text, "--format", "csv")
    assert (done.code, done.out.split()) == (0, ["name", "Zed"])
    assert "1 node" in done.err
    text = "MATCH (p:Person {name: 'Zed'}) DELETE p RETURN count(*) AS n"
    assert cli("mutate", "-s", "people", "-e", text, "--json").json["rows"] == [{"n": 1}]


def test_fmt(cli: Cli) -> None:
    Path("ugly.gq").write_text("query q(){match{$p:Person}return{$p.name}}")
    assert cli("fmt", "--check", "ugly.gq").code == 1
    assert cli("fmt", "ugly.gq").code == 0
    assert Path("ugly.gq").read_text().startswith("query q() {\n  match {")
    assert cli("fmt", "--check", "ugly.gq").code == 0


# --- points in time ----------------------------------------------------------------------------------------------


def test_a_commit_may_be_named_as_the_log_shortens_it(cli: Cli) -> None:
    whole = cli("log", "-s", "people", "--json").json[0]["id"]
    shortened = cli("log", "-s", "people").out.split()[0]
    assert shortened != whole
    assert cli("show", shortened, "-s", "people", "--json").json["id"] == whole
    assert (
        cli("query", "-s", "people", "-e", ALL, "--at", shortened, "--json").json["row_count"] == 3
    )


def test_a_prefix_of_many_commits_is_ambiguous(cli: Cli) -> None:
    chain = cli("log", "-s", "people").out.split()[0].partition(".")[0]
    done = cli("show", chain, "-s", "people")
    assert (done.code, "error[prefix_ambiguous]" in done.err) == (1, True)


@pytest.mark.parametrize("point", ["main~1", "first", "draft~2"])
def test_points_in_time(point: str, cli: Cli) -> None:
    cli("tag", "first", "--at", "main~1", "-s", "people")
    count = "match { $p: Person } return { count($p) as n }"
    done = cli("query", "-s", "people", "-e", count, "--at", point, "--format", "csv")
    assert done.out == "n\n0\n"


def test_indices_are_shown_with_what_they_cover(cli: Cli) -> None:
    assert cli("optimize", "people").code == 0
    done = cli("schema", "show", "people", "--indices", "--format", "jsonl")
    shown = [json.loads(line) for line in done.out.splitlines()]
    people = [row for row in shown if (row["type"], row["property"]) == ("Person", "name")]
    assert [(row["kind"], row["rows"], row["covered"]) for row in people] == [
        ("BTREE", len(PEOPLE), len(PEOPLE))
    ]
