"""`omnigraph cluster`: what a person sees, and what the exit code tells a script."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.cli import world
from tests.unit.cluster.folders import FILMS, write_folder

Cli = Callable[..., world.Done]


@pytest.fixture
def described(folder: Path) -> Path:
    return write_folder(folder / "dev")


def test_from_a_folder_to_graphs_and_back(cli: Cli, described: Path) -> None:
    where = ("--config", str(described))
    valid = cli("cluster", "validate", *where)
    assert (valid.code, valid.out) == (0, "valid: 8 resources\n")
    plan = cli("cluster", "plan", *where, "--exit-code")
    assert plan.code == 2
    assert "+ create graph.people" in plan.out
    assert "8 to create" in plan.out
    assert cli("cluster", "apply", *where).code == 2, "applied without being asked"
    done = cli("cluster", "apply", *where, "--yes", "--as", "ada")
    assert (done.code, done.out) == (0, "applied 8 changes: revision 1\n")
    again = cli("cluster", "plan", *where, "--exit-code")
    assert (again.code, again.out) == (0, "no changes: the cluster is as the folder describes it\n")
    assert cli("cluster", "status", *where).code == 0
    history = json.loads(cli("cluster", "history", *where, "--json").out)
    assert [(r["state"], r["actor"]) for r in history] == [("applied", "ada"), ("applying", "ada")]


def test_a_saved_plan_and_a_deletion(cli: Cli, described: Path) -> None:
    where = ("--config", str(described))
    cli("cluster", "apply", *where, "--yes")
    write_folder(described, graphs={"people": {"schema": "people.pg"}})
    saved = cli("cluster", "plan", *where, "--out", "dev.plan")
    assert "- delete graph.films" in saved.out
    assert "--delete films" in saved.out
    refused = cli("cluster", "apply", "dev.plan")
    assert refused.code == 1
    assert "deletion_unconfirmed" in refused.err
    assert cli("cluster", "apply", "dev.plan", "--delete", "films").code == 0
    stale = cli("cluster", "apply", "dev.plan", "--delete", "films")
    assert stale.code == 4
    assert "cluster_moved" in stale.err


def test_mistakes_differences_and_drift(cli: Cli, described: Path) -> None:
    where = ("--config", str(described))
    cli("cluster", "apply", *where, "--yes")
    (described / "films.pg").write_text(FILMS + "\nnode Star { name: String @key }\n")
    shown = cli("cluster", "diff", *where)
    assert "+node Star { name: String @key }" in shown.out
    graph = str(described / "graphs/films.omni")
    (described / "other.pg").write_text("node Prize { name: String @key }")
    other = str(described / "other.pg")
    assert cli("schema", "apply", "--store", graph, "--schema", other, "--yes").code == 0
    drift = cli("cluster", "status", *where)
    assert drift.code == 1
    assert "schema.films" in drift.out
    (described / "films.pg").write_text("node {")
    wrong = cli("cluster", "validate", *where, "--json")
    assert wrong.code == 1
    assert json.loads(wrong.out)["diagnostics"][0]["code"] == "schema_parse_error"
    assert cli("cluster", "plan", *where).code == 1
    assert cli("cluster", "diff", "7", *where).code == 2
