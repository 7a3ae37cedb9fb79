"""`omnigraph policy`: exit codes and what is printed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from omnigraph.cli.main import main

BUNDLE = """
version: 1
groups: {readers: [grace]}
rules:
  - {id: r1, allow: {actors: {group: readers}, actions: [read], branch_scope: any}}
"""
CASES = """
version: 1
cases:
  - {id: reads, actor: grace, action: read, branch: main, expect: allow}
  - {id: writes, actor: grace, action: change, branch: main, expect: %s}
"""


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    (tmp_path / "p.yaml").write_text(BUNDLE)
    return str(tmp_path / "p.yaml"), str(tmp_path / "cases.yaml")


def test_validating(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policy", "validate", files[0]]) == 0
    assert "[1 actor]" in capsys.readouterr().out
    Path(files[0]).write_text("version: 7")
    assert main(["policy", "validate", files[0]]) == 1
    assert "error[policy_invalid]" in capsys.readouterr().err


@pytest.mark.parametrize(("expect", "code"), [("deny", 0), ("allow", 1)])
def test_testing(
    files: tuple[str, str], capsys: pytest.CaptureFixture[str], expect: str, code: int
) -> None:
    Path(files[1]).write_text(CASES % expect)
    assert main(["policy", "test", files[0], "--tests", files[1]]) == code
    said = capsys.readouterr().out
    assert ("policy tests passed: 2 cases" in said) is (code == 0)
    assert ("writes: expected allow" in said) is (code == 1)


def test_explaining(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    words = ["policy", "explain", files[0], "--actor", "grace", "--branch", "main", "--json"]
    assert main([*words, "--action", "read"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["decision"], told["matched_rule"]) == ("allow", "r1")
    assert main([*words, "--action", "change"]) == 0
    assert json.loads(capsys.readouterr().out)["decision"] == "deny"
    assert main([*words, "--action", "fly"]) == 2
