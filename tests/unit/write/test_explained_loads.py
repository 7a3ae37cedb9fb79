"""Loads that explain themselves: every bad value with its line, formats that are recognised, rows set aside."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import omnigraph
from omnigraph.cli.main import main
from omnigraph.errors import OmnigraphError
from omnigraph.write.input.options import CsvFormat, Options
from omnigraph.write.input.preview import described_csv

SCHEMA = """
node Person { name: String @key  age: I32?  born: Date? }
edge Knows: Person -> Person
"""
# The second person's name has a line break, so that the rows after it begin a line later.
BAD = """\
name,age,born
Ada,36,1815-12-10
"Grace
Hopper",old,1906-12-09
Alan,41,yesterday
Edsger,seventy,never
Barbara,1.5,1939-11-07
Niklaus,x,1934-02-15
"""
WRONG = {("age", 3), ("born", 5), ("age", 6), ("born", 6), ("age", 7), ("age", 8)}
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def graph(tmp_path: Path) -> omnigraph.Graph:
    return omnigraph.init(tmp_path / "g", schema=SCHEMA)


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    file = tmp_path / "people.csv"
    file.write_text(BAD)
    return file


@pytest.fixture
def run(
    tmp_path: Path,
    graph: omnigraph.Graph,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Run:
    monkeypatch.chdir(tmp_path)

    def load(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main(["load", "g", *words])
        told = capsys.readouterr()
        return code, told.out, told.err

    return load


def test_every_bad_value_of_every_column_with_its_true_line(
    graph: omnigraph.Graph, bad: Path
) -> None:
    with pytest.raises(OmnigraphError) as raised:
        graph.load({"Person": bad})
    found = raised.value.details["violations"]
    assert {(v["property"], v["line"]) for v in found} == WRONG
    assert len(found) == len(WRONG)
    assert [v["line"] for v in found] == sorted(v["line"] for v in found)
    assert {v["file"] for v in found} == {str(bad)}
    assert raised.value.message.startswith(f"{bad}, line 3: 'age' of type I32?: expected")
    assert "and 5 other problems" in raised.value.message


def test_a_broken_rule_names_the_true_line_too(graph: omnigraph.Graph, tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    file.write_text('name,age\n"Ada\nLovelace",36\n,41\n')
    with pytest.raises(OmnigraphError) as raised:
        graph.load({"Person": file})
    assert [v["line"] for v in raised.value.details["violations"]] == [4]


@pytest.mark.parametrize("check", [(), ("--check",)], ids=["load", "check"])
def test_all_of_it_is_printed_and_listed_in_every_mode(
    check: tuple[str, ...], run: Run, bad: Path, tmp_path: Path
) -> None:
    code, out, err = run("--data", "Person=people.csv", "--violations", "wrong", *check)
    assert (code, out) == (1, "")
    (file,) = (tmp_path / "wrong").iterdir()
    listed = [json.loads(line) for line in file.read_text().splitlines()]
    assert {(v["property"], v["line"]) for v in listed} == WRONG
    assert "All of them are listed in" in err
    table = [line.split("│") for line in err.splitlines() if line.startswith("│ people.csv")]
    assert {(row[4].strip(), int(row[2])) for row in table} == WRONG
    assert "'seventy'" in err or "seventy" in err


def test_many_bad_values_are_found_in_reasonable_time(
    graph: omnigraph.Graph, tmp_path: Path
) -> None:
    file = tmp_path / "many.csv"
    file.write_text("name,age\n" + "".join(f"p{n},{n if n % 2 else 'x'}\n" for n in range(20_000)))
    with pytest.raises(OmnigraphError) as raised:
        graph.load({"Person": file}, violations=tmp_path / "v")
    assert len(raised.value.details["violations"]) == 100
    assert raised.value.details["counts"] == {"type": 10_000}


# --- formats -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mark", [";", "\t", "|", ","])
def test_the_delimiter_is_recognised(
    mark: str, graph: omnigraph.Graph, tmp_path: Path, run: Run
) -> None:
    file = tmp_path / "people.csv"
    file.write_text("name,age,born\nAda,36,1815-12-10\n".replace(",", mark))
    assert graph.load({"Person": file}).nodes == {"Person": 1}
    names = {";": "semicolon", "\t": "tab", "|": "bar", ",": "comma"}
    _, _, err = run("--data", "Person=people.csv")
    assert f"{names[mark]} between cells, UTF-8, header" in err
    assert "name (text), age (whole number), born (date)" in err


def test_a_comma_in_the_header_decides(graph: omnigraph.Graph, tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    file.write_text('name,age\n"a;b;c",1\n')
    graph.load({"Person": file})
    assert graph.query("match { $p: Person } return { $p.name as n }").rows == [{"n": "a;b;c"}]


@pytest.mark.parametrize(
    ("text", "encoding", "called"),
    [
        ("name\nJosé\n", "latin-1", "Latin-1"),
        ("name\n“José”\n", "cp1252", "Windows-1252"),
        ("name\nJosé\n", "utf-16", "UTF-16"),
    ],
)
def test_another_encoding_is_named(
    text: str, encoding: str, called: str, graph: omnigraph.Graph, tmp_path: Path
) -> None:
    file = tmp_path / "people.csv"
    file.write_bytes(text.encode(encoding))
    with pytest.raises(OmnigraphError, match=f"it reads as {called}") as raised:
        graph.load({"Person": file})
    assert f"encoding={encoding!r}" in raised.value.help
    options = Options(csv=CsvFormat(encoding=encoding))
    assert graph.load({"Person": file}, options=options).nodes == {"Person": 1}


def test_an_empty_file_is_described(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("")
    assert "comma between cells" in described_csv(str(tmp_path / "e.csv"))


# --- quarantine --------------------------------------------------------------------------------------------------


def test_good_rows_are_loaded_and_bad_ones_are_kept_with_reasons(
    graph: omnigraph.Graph, bad: Path, tmp_path: Path
) -> None:
    aside = tmp_path / "aside.ndjson"
    done = graph.load({"Person": bad}, options=Options(quarantine=str(aside)))
    assert (done.nodes, done.quarantined) == ({"Person": 1}, {"Person": 5})
    rows = [json.loads(line) for line in aside.read_text().splitlines()]
    assert [row["line"] for row in rows] == [3, 5, 6, 7, 8]
    assert rows[0]["row"] == '"Grace\nHopper",old,1906-12-09'
    assert rows[0]["type"] == "Person"
    assert [why["property"] for why in rows[2]["reasons"]] == ["age", "born"]


def test_what_misses_a_row_that_is_left_out_is_left_out_too(
    graph: omnigraph.Graph, tmp_path: Path
) -> None:
    file, aside = tmp_path / "mixed.jsonl", tmp_path / "aside.ndjson"
    records = [
        {"type": "Person", "data": {"name": "Ada", "age": 36}},
        {"type": "Person", "data": {"name": "Grace", "age": "old"}},
        {"edge": "Knows", "from": "Ada", "to": "Grace"},
        {"edge": "Knows", "from": "Ada", "to": "Ada"},
        {"type": "Persn", "data": {}},
    ]
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    done = graph.load(file, options=Options(quarantine=str(aside)))
    assert (done.nodes, done.edges) == ({"Person": 1}, {"Knows": 1})
    rows = [json.loads(line) for line in aside.read_text().splitlines()]
    assert [row["line"] for row in rows] == [2, 3, 5]
    assert json.loads(rows[1]["row"])["to"] == "Grace"
    assert rows[1]["reasons"][0]["rule"] == "endpoint"


def test_a_quarantine_on_the_command_line_is_asked_for(run: Run, bad: Path, tmp_path: Path) -> None:
    assert run("--data", "Person=people.csv", "--on-error", "quarantine")[0] == 2
    assert run("--data", "Person=people.csv", "--quarantine", "a")[0] == 2
    words = ("--data", "Person=people.csv", "--on-error", "quarantine", "--quarantine")
    code, out, err = run(*words, "dry.ndjson", "--check")
    assert (code, "1 node of 1 type can be loaded" in out) == (0, True)
    assert len((tmp_path / "dry.ndjson").read_text().splitlines()) == 5
    code, out, err = run(*words, "a.ndjson")
    assert (code, "loaded 1 node" in out) == (0, True)
    assert "5 rows left out" in err
    assert run(*words, "a.ndjson")[0] == 1, "a quarantine is never overwritten"


def test_what_is_about_no_row_is_refused_all_the_same(
    graph: omnigraph.Graph, tmp_path: Path
) -> None:
    file = tmp_path / "people.csv"
    file.write_text("name,wrong\nAda,1\n")
    with pytest.raises(OmnigraphError, match="no property 'wrong'"):
        graph.load({"Person": file}, options=Options(quarantine=str(tmp_path / "a")))
    assert graph.snapshot().commit.tables == {} or not (tmp_path / "a").exists()
