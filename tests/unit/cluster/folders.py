"""Folders of clusters for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from omnigraph.cluster.apply import Applied, apply_plan
from omnigraph.cluster.files import read_folder
from omnigraph.cluster.plan import Plan, make_plan

PEOPLE = "node Person { name: String @key  age: I64? }\nedge Knows: Person -> Person"
FILMS = "node Film { title: String @key }"
QUERIES = """
query all() { match { $p: Person } return { $p.name as name } }
query add($name: String) { insert Person { name: $name } }
"""
POLICY = """
version: 1
groups: {team: [ada]}
rules:
  - {id: read, allow: {actors: {group: team}, actions: [read, change], branch_scope: any}}
  - {id: call, allow: {actors: {group: team}, actions: [invoke_query]}}
"""


def write_folder(folder: Path, **changed: Any) -> Path:
    """A folder with two graphs, a file of queries and a policy; `changed` replaces sections of cluster.yaml."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in (
        ("people.pg", PEOPLE),
        ("films.pg", FILMS),
        ("people.gq", QUERIES),
        ("team.policy.yaml", POLICY),
    ):
        if not (folder / name).exists():
            (folder / name).write_text(text)
    described = {
        "version": 1,
        "graphs": {
            "people": {"schema": "people.pg", "queries": ["people.gq"], "retention": {"keep": 50}},
            "films": {"schema": "films.pg"},
        },
        "policies": {"team": {"file": "team.policy.yaml", "applies_to": ["people"]}},
        **changed,
    }
    (folder / "cluster.yaml").write_text(yaml.safe_dump(described))
    return folder


def planned(folder: Path) -> Plan:
    return make_plan(read_folder(folder))


def applied(folder: Path, **options: Any) -> Applied | None:
    return apply_plan(planned(folder), **options)


def listed(plan: Plan) -> list[str]:
    return [str(change) for change in plan.changes]
