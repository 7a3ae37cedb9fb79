"""The edges of the command line: exit codes, streams, mistakes, start-up."""

from __future__ import annotations

import datetime as dt
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph
from omnigraph.cli.exits import EXIT_CODES, MEANINGS
from omnigraph.cli.main import main
from omnigraph.errors import Kind
from tests.unit.cli import world
from tests.unit.cli.world import Done

Cli = Callable[..., Done]
ALL = "match { $p: Person } return { $p.name as name, $p.age as age } order { $p.name asc }"


def test_every_kind_has_an_exit_code_and_every_code_a_meaning() -> None:
    assert set(EXIT_CODES) == set(Kind)
    assert set(EXIT_CODES.values()) <= set(MEANINGS)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("query", "-s", "people", "-e", ALL), 0),
        (("query", "-s", "people", "-e", "match { $p: Persn } return { $p.name }"), 1),
        (("qery",), 2),
        (("query", "-s", "people"), 2),
        (("query", "-e", ALL), 2),
        (("query", "-s", "nowhere", "-e", ALL), 3),
        (("query", "-s", "people", "-e", ALL, "--branch", "nope"), 3),
        (("branch", "create", "draft", "-s", "people"), 4),
        (("init", "--schema", "people.pg", "people"), 4),
        (("mutate", "-s", "people", "-e", 'insert Person { name: "X" }', "--if-commit", "x.1"), 4),
        (("query", "-s", "people", "-e", ALL, "--timeout", "0"), 6),
    ],
    ids=lambda value: value[-1] if isinstance(value, tuple) else str(value),
)
def test_exit_codes(words: tuple[str, ...], code: int, cli: Cli) -> None:
    done = cli(*words)
    assert done.code == code, done.err
    assert code == 0 or "error[" in done.err
    assert code == 0 or not done.out


def test_json_is_one_document_on_stdout(cli: Cli) -> None:
    done = cli("query", "-s", "people", "-e", ALL, "--format", "json")
    assert done.json["columns"] == ["name", "age"]
    assert done.json["rows"][0] == {"name": "Ada", "age": 36}
    assert done.json["row_count"] == 3
    assert done.json["graph_commit_id"]
    assert done.err == ""


def test_a_failure_with_json_is_one_object_on_stderr(cli: Cli) -> None:
    done = cli("query", "-s", "people", "-e", "match { $p: Persn } return { $p.name }", "--json")
    error = json.loads(done.err)
    assert (error["code"], error["kind"], done.out) == ("T1", "invalid", "")
    assert error["help"] == "Did you mean `Person`?"


def test_a_usage_mistake_with_json_is_one_object_too(cli: Cli) -> None:
    done = cli("query", "--fromat", "json", "--json")
    assert json.loads(done.err)["code"] == "usage"
    assert done.code == 2


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("qurey",), "query"),
        (("brnach", "list"), "branch"),
        (("query", "--fromat", "json"), "--format"),
        (("branch", "lst"), "list"),
        (("explain", "branch_not_fond"), "branch_not_found"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else str(value),
)
def test_did_you_mean(words: tuple[str, ...], meant: str, cli: Cli) -> None:
    assert meant in cli(*words).err


@pytest.mark.parametrize(
    ("typed", "pointed"),
    [
        ("match { $p: Persn } return { $p.name }", "Persn"),
        ("match { $p: Person } return { $p.nam }", "nam"),
        ('match { $p: Person { name: "{" } } return { $p.name', "{ $p.name"),
        ("match { $p: Person return { $p.name }", "{ $p: Person"),
    ],
)
def test_an_error_points_into_what_was_typed(typed: str, pointed: str, cli: Cli) -> None:
    told = cli("query", "-s", "people", "-e", typed).err.splitlines()
    line, carets = told[3].removeprefix("1 | "), told[4].removeprefix("  | ")
    assert line == typed
    assert line[carets.index("^") :].startswith(pointed)


def test_an_error_in_a_file_names_the_file(cli: Cli) -> None:
    Path("bad.gq").write_text("query q() {\n  match { $p: Persn }\n  return { $p.name }\n}\n")
    assert "--> bad.gq:2:15" in cli("query", "-s", "people", "--file", "bad.gq").err


def test_the_store_may_come_from_the_environment(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_STORE", "people")
    assert cli("branch", "list", "--json").json["branches"][0] == "main"


def test_an_alias_of_the_configuration(cli: Cli, folder: Path) -> None:
    (folder / "home").mkdir()
    config = "defaults: {store: people}\naliases: {grown: query --file people.gq older --json}\n"
    (folder / "home" / "config.yaml").write_text(config)
    done = cli("grown", "--params", '{"age": 30}')
    assert [row["p.name"] for row in done.json["rows"]] == ["Margaret", "Ada"]


def test_config_names_the_origin_of_every_setting(cli: Cli, folder: Path) -> None:
    (folder / "home").mkdir()
    (folder / "home" / "config.yaml").write_text("operator: {actor: ada}\nwhatever: 1\n")
    done = cli("config", "show", "--origin", "--json")
    assert done.json["operator.actor"] == {
        "value": "ada",
        "origin": str(folder / "home" / "config.yaml"),
    }
    assert done.json["defaults.branch"] == {"value": "main", "origin": "default"}
    assert "whatever" in done.err


@pytest.mark.parametrize("text", ["- a\n- b\n", "a: [", "defaults: 3\n", "servers: {x: 1}\n"])
def test_a_broken_configuration_says_so(text: str, cli: Cli, folder: Path) -> None:
    (folder / "home").mkdir()
    (folder / "home" / "config.yaml").write_text(text)
    done = cli("config", "show")
    assert (done.code, "error[config_invalid]" in done.err) == (1, True)


def test_a_reader_that_has_seen_enough_causes_no_noise(folder: Path) -> None:
    with subprocess.Popen(
        [world.PROGRAM, "explain"],
        cwd=folder,
        env=world.environment(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""


# --- start-up ----------------------------------------------------------------------------------------------------


COMMAND_MODULES = {
    f"omnigraph.cli.{name}"
    for name in ("branches", "data", "demo", "graphs", "history", "languages", "serving", "shell")
}
QUERY_PACKAGES = {
    "omnigraph",
    "lance",
    "pyarrow",
    "numpy",
    "msgspec",
    "typer",
    # what these bring along
    "annotated_doc",
    "cloudpickle",  # pyarrow imports it where it is installed
    "cython_runtime",
    "dateutil",
    "shellingham",
    "six",
    "typing_extensions",
}


def _modules_after(folder: Path, *words: str) -> set[str]:
    code = (
        "import sys; from omnigraph.cli.main import main; main(); "
        "print('\\n'.join(n for n, m in sys.modules.items() if m), file=sys.stderr)"
    )
    return set(_said(folder, code, *words).split())


def test_version_imports_nothing_heavy(folder: Path) -> None:
    loaded = _modules_after(folder, "version")
    assert not loaded & {"typer", "rich", "pyarrow", "numpy", "lance", "yaml", "omnigraph.graph"}


def test_a_query_does_not_import_what_it_does_not_need(folder: Path) -> None:
    loaded = _modules_after(folder, "query", "-q", "-s", "people", "-e", ALL, "--json")
    packages = {name.partition(".")[0] for name in loaded if not name.startswith("_")}
    assert packages - sys.stdlib_module_names <= QUERY_PACKAGES
    assert not loaded & {"asyncio", "numpy.testing", "pyarrow.parquet", "pyarrow.pandas_compat"}
    assert loaded & COMMAND_MODULES == {"omnigraph.cli.data"}
    rooms = {name.split(".")[1] for name in loaded if name.startswith("omnigraph.")}
    assert not rooms & {
        "branch",
        "drawing",
        "outcomes",
        "write",
        "merge",
        "validate",
        "pipeline",
        "remote",
    }
    policy = {name for name in loaded if name.startswith("omnigraph.policy.")}
    assert policy == {"omnigraph.policy.questions"}, "a verb is described by what a policy is asked"
    assert not loaded & {"omnigraph.lang.schema.parser", "omnigraph.storage.lance.staging"}


def _said(folder: Path, code: str, *words: str) -> str:
    """What a process says on stderr that runs a command line within some code."""
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=folder,
        env=world.environment(folder),
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stderr


def test_a_process_ends_without_a_word(folder: Path) -> None:
    """DuckDB reports what nobody took back from it."""
    code = "import duckdb, sys; held = duckdb.connect(); from omnigraph.cli.main import main; sys.exit(main())"
    assert _said(folder, code, "branch", "list", "-s", "people") == ""


def test_threads_of_linear_algebra_do_not_spin_while_a_query_starts(folder: Path) -> None:
    code = (
        "import os; from omnigraph.cli.main import main; main(); "
        "import sys; print(os.environ.get('OPENBLAS_THREAD_TIMEOUT'), file=sys.stderr)"
    )
    for words, found in ((["branch", "list", "-s", "people"], "4"), (["demo", "--help"], "None")):
        assert _said(folder, code, *words).split()[-1] == found


def test_all_files_of_a_type_are_loaded_as_the_options_say(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = str(tmp_path / "graph")
    (tmp_path / "s.pg").write_text("node Person { name: String @key  age: I32? }")
    assert main(["init", store, "--schema", str(tmp_path / "s.pg")]) == 0
    (tmp_path / "a.csv").write_text("Ada;36\n")
    (tmp_path / "b.csv").write_text("Bob;-\n")
    files = [word for name in "ab" for word in ("--data", f"Person={tmp_path / name}.csv")]
    form = ["--delimiter", ";", "--column-names", "name, age", "--null-text", "-"]
    assert main(["load", "--store", store, *files, *form]) == 0
    assert "2 nodes of 1 type" in capsys.readouterr().out


def test_a_load_says_what_null_cells_and_times_without_a_zone_mean(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, file = str(tmp_path / "graph"), tmp_path / "visits.parquet"
    (tmp_path / "s.pg").write_text("node Visit { name: String @key  at: DateTime?  note: String? }")
    assert main(["init", store, "--schema", str(tmp_path / "s.pg")]) == 0
    given = {"name": ["a"], "at": [dt.datetime(2025, 7, 1, 12)], "note": ["loud"]}
    pq.write_table(pa.table(given), file)
    load = ["load", "--store", store, "--data", f"Visit={file}"]
    assert main(load) == 1
    assert "--assume-timezone Europe/Rome" in capsys.readouterr().err
    assert main([*load, "--assume-timezone", "Middle/Earth"]) == 1
    assert "unknown time zone `Middle/Earth`" in capsys.readouterr().err
    assert main([*load, "--assume-timezone", "Europe/Rome"]) == 0
    text = "match { $v: Visit } return { $v.at as at, $v.note as note }"
    loaded = {"at": dt.datetime(2025, 7, 1, 10, tzinfo=dt.UTC), "note": "loud"}
    assert list(omnigraph.open(store).query(text)) == [loaded]
    pq.write_table(pa.table({"name": ["a"], "note": pa.nulls(1, pa.string())}), file)
    assert main([*load, "--nulls", "keep"]) == 0
    assert list(omnigraph.open(store).query(text)) == [loaded]
    assert main(load) == 0
    assert list(omnigraph.open(store).query(text)) == [loaded | {"note": None}]


def test_python_runs_the_package_as_the_command_line() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "omnigraph", "version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"omnigraph {omnigraph.__version__}\n"


def test_everything_the_package_offers_can_be_imported() -> None:
    assert {name for name in omnigraph.__all__ if getattr(omnigraph, name) is None} == set()


def test_doctor_says_what_is_installed_and_what_for(cli: Cli) -> None:
    done = cli("doctor", "--install", "--json")
    assert done.code == 0, done.err
    parts = {row["part"]: row for row in done.json}
    assert {"omnigraph", "Python", "server", "explorer", "spark", "Java", "Node.js"} <= set(parts)
    assert parts["server"]["found"] != "missing"
    assert all(row["for"] for row in done.json)
    assert all(
        row["how to get it"]
        for row in done.json
        if row["found"] == "missing" and row["part"] != "Node.js"
    )


def test_a_text_in_cypher_names_its_branch(cli: Cli) -> None:
    add = "USE draft CREATE (p:Person {name: 'Zoe'}) RETURN p.name AS name"
    assert cli("mutate", "-s", "people", "-e", add).code == 0
    count = "MATCH (p:Person {name: 'Zoe'}) RETURN count(*) AS n"
    for use, wanted in (("USE draft ", 1), ("USE 'draft@draft~1' ", 0), ("", 0)):
        done = cli("query", "-s", "people", "-e", use + count, "--format", "json")
        assert done.json["rows"] == [{"n": wanted}], done.err
    done = cli("query", "-s", "people", "-e", "USE draft " + count, "--branch", "other")
    assert "use_contradicted" in done.err
