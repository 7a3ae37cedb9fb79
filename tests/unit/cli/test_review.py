"""A proposal on the command line, from the branch to the merge."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tests.unit.cli.world import Done

Cli = Callable[..., Done]
STORE = ("--store", "people")


def test_a_proposal_from_the_branch_to_the_merge(cli: Cli, folder: Path) -> None:
    assert cli("check", "--apply", "checks.gq", *STORE).code == 0
    (folder / "more.jsonl").write_text(json.dumps({"type": "Person", "data": {"name": "Zoe"}}))
    more = ("--data", "more.jsonl", "--branch", "zoe", "--create-from", "main", "--as", "eve")
    failed = cli("load", *more, "--run-checks", *STORE)
    assert failed.code == 1
    assert "name: Zoe" in failed.err
    assert "ageless" in cli("show", "zoe", *STORE).out
    assert (
        cli("propose", "zoe", "-t", "Add Zoe", "--as", "eve", *STORE, "--json").json["number"] == 2
    )
    refused = cli("review", "2", "--merge", "--as", "ada", *STORE)
    assert (refused.code, "checks_failed" in refused.err) == (1, True)
    assert (
        cli("review", "2", "--request-changes", "An age, please", "--as", "ada", *STORE).code == 0
    )
    (folder / "more.jsonl").write_text(
        json.dumps({"type": "Person", "data": {"name": "Zoe", "age": 7}})
    )
    fixed = cli("load", "--data", "more.jsonl", "--branch", "zoe", "--run-checks", *STORE)
    assert fixed.code == 0
    assert cli("approve", "2", "--as", "ada", *STORE).out == "proposal 2: approved\n"
    shown = cli("review", "2", *STORE).out
    for told in ("ada wants changes: An age, please", "+ Person Zoe", "ageless: passed"):
        assert told in shown
    assert cli("review", "2", "--merge", "--as", "ada", *STORE).code == 0
    assert "Merge proposal 2: Add Zoe" in cli("log", "-n", "1", *STORE).out
    rows = cli("blame", "Person/Zoe", *STORE, "--json").json["cells"]
    assert {cell["via"]["proposal"] for cell in rows} == {2}
    assert cli("proposals", "--state", "merged", *STORE, "--json").json[0]["number"] == 2


def test_what_is_wrong_has_a_code_of_its_own(cli: Cli) -> None:
    assert cli("review", "99", *STORE).code == 3
    assert cli("review", "1", "--merge", "--close", *STORE).code == 2
    assert cli("blame", "Ada", *STORE).code == 2
    assert cli("approve", "1", "--as", "linus", *STORE).code == 5
