"""The shell in a pseudo-terminal, and fed from a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from omnigraph.cli.shell import Completer, is_complete
from omnigraph.lang.schema import catalog_of, compile_schema
from tests.unit.cli import world
from tests.unit.cli.terminal import Terminal

ALL = "match { $p: Person } return { $p.name as name } order { $p.name asc }"


def test_a_session(folder: Path) -> None:
    with Terminal(folder, ["shell", "people"], NO_COLOR="1") as shell:
        shell.wait_for("people main> ")
        shell.type(ALL + "\n")
        assert "Linus" in shell.wait_for("3 rows")
        shell.type(".branch draft\n")
        shell.wait_for("people draft> ")
        shell.type("match {\n  $p: Person\n")
        shell.wait_for("| ")
        shell.type("} return { count($p) as n };\n")
        assert "4" in shell.wait_for("1 row at")
        shell.type('insert Person { name: "Niklaus" }\n')
        shell.wait_for("on draft")
        shell.type(".quit\n")
        assert shell.finish() == 0


def test_a_mistake_does_not_end_the_session(folder: Path) -> None:
    with Terminal(folder, ["shell", "people"], NO_COLOR="1") as shell:
        shell.wait_for("> ")
        shell.type("match { $p: Persn } return { $p.name }\n")
        shell.wait_for("Did you mean `Person`?")
        shell.type(".brnch\n")
        shell.wait_for("Did you mean `.branch`?")
        shell.type(".quit\n")
        assert shell.finish() == 0


def test_tab_completes_from_the_schema(folder: Path) -> None:
    with Terminal(folder, ["shell", "people"], NO_COLOR="1") as shell:
        shell.wait_for("main> ")
        shell.type("match { $p: Per\t")
        shell.wait_for("Person")
        shell.type(" $p kno\t")
        shell.wait_for("knows")
        shell.type(" $f } return { $f.na\t")
        shell.wait_for("$f.name")
        shell.type(" }\n")
        shell.wait_for("2 rows")
        shell.type(".quit\n")
        assert shell.finish() == 0


def test_tab_knows_the_lines_before(folder: Path) -> None:
    with Terminal(folder, ["shell", "people"], NO_COLOR="1") as shell:
        shell.wait_for("main> ")
        shell.type("match {\n$p: Person\n")
        shell.wait_for("| ")
        shell.type("} return { $p.a\t")
        shell.wait_for("$p.age")
        shell.type(" };\n")
        shell.wait_for("3 rows")
        shell.type(".quit\n")
        assert shell.finish() == 0


def test_control_c_drops_the_line_and_control_d_leaves(folder: Path) -> None:
    with Terminal(folder, ["shell", "people"], NO_COLOR="1") as shell:
        shell.wait_for("main> ")
        shell.type("match { nonsense")
        shell.wait_for("nonsense")
        shell.interrupt_until("main> ")
        shell.type("\x04")
        assert shell.finish() == 0


def test_history_is_kept_for_the_next_session(folder: Path) -> None:
    for _ in range(2):
        with Terminal(folder, ["shell", "people"]) as shell:
            shell.wait_for("main> ")
            shell.type(".schema\n")
            shell.wait_for("edge Knows")
            shell.type(".quit\n")
            assert shell.finish() == 0
    assert (folder / "home" / "history").read_text().count(".schema") == 2


@pytest.mark.parametrize("word", ["exit", "quit", "exit;", "QUIT", "exit()", "\\q"])
def test_the_words_that_other_shells_know_leave_it(folder: Path, word: str) -> None:
    done = world.run(folder, "shell", "people", stdin=f"{word}\nmatch {{ nonsense\n")
    assert (done.code, done.out, done.err) == (0, "", "")


def test_help_needs_no_dot(folder: Path) -> None:
    done = world.run(folder, "shell", "people", stdin="help\n")
    assert ".branch" in done.out
    assert done.err == ""


def test_a_statement_of_several_lines_comes_back_as_one(folder: Path) -> None:
    with Terminal(folder, ["shell", "people"], NO_COLOR="1") as shell:
        shell.wait_for("main> ")
        shell.type("match {\n  $p: Person\n} return { count($p) as n };\n")
        shell.wait_for("1 row at")
        shell.wait_for("main> ")
        shell.type("\x1b[A")
        shell.wait_for("match { $p: Person } return { count($p) as n };")
        shell.type("\n")
        shell.wait_for("1 row at")
        shell.type("exit\n")
        assert shell.finish() == 0


def test_the_last_statement_can_be_changed_in_an_editor(folder: Path) -> None:
    editor = folder / "editor.sh"
    editor.write_text("#!/bin/sh\nsed -i s/Ada/Linus/ $1\n")
    editor.chmod(0o755)
    text = 'match { $p: Person { name: "Ada" } } return { $p.age as age }'
    done = world.run(
        folder, "shell", "people", stdin=f"{text}\n.edit\n", EDITOR=str(editor), COLUMNS="80"
    )
    assert done.code == 0, done.err
    assert done.out.index("36") < done.out.index('"Linus"') < done.out.index("21")


def test_statements_from_standard_input(folder: Path) -> None:
    lines = f'.mode json\n.params {{"age": 30}}\n{ALL}\n.explain on\n{ALL}\n'
    done = world.run(folder, "shell", "people", stdin=lines)
    assert done.code == 0
    assert json.loads(done.out.splitlines()[1])["row_count"] == 3
    assert "Scan" in done.out


@pytest.mark.parametrize(
    ("lines", "complete"),
    [
        ([".help"], True),
        ([""], True),
        (["match { $p: Person } return { $p.name }"], True),
        (["match { $p: Person }"], False),
        (["match {"], False),
        (["match {", "$p: Person } return { $p.name }"], False),
        (["match {", "$p: Person } return { $p.name }", ""], True),
        (["match {", "$p: Person } return { $p.name };"], True),
        (["query q() {"], False),
        (["query q() {", "match { $p: Person } return { $p.name }", "}"], True),
        (["match { $p Person } return { $p.name }"], True),
    ],
    ids=str,
)
def test_when_a_statement_is_complete(lines: list[str], complete: bool) -> None:
    assert is_complete(lines) is complete


@pytest.mark.parametrize(
    ("before", "word", "found"),
    [
        ("match { $p: ", "P", ["Person"]),
        ("match { $p: Person $p ", "k", ["knows"]),
        ("match { $p: Person } return { ", "$p.", ["$p.age", "$p.id", "$p.name"]),
        ("match { $p: Person } return { ", "$", ["$p"]),
        ("", "retur", ["return"]),
        ("insert ", "Kn", ["Knows"]),
        ("match { $p: Person } return { ", "coun", ["count"]),
    ],
)
def test_completion(before: str, word: str, found: list[str]) -> None:
    catalog = catalog_of(compile_schema(world.SCHEMA))
    assert Completer(catalog).candidates(before, word) == found
