"""The little world of the examples: files, and a graph with a branch and some history."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import omnigraph
from omnigraph.cluster.apply import apply_plan
from omnigraph.cluster.files import read_folder
from omnigraph.cluster.plan import make_plan

PROGRAM = str(Path(sys.executable).with_name("omnigraph"))
SCHEMA = """\
node Person {
  name: String @key
  age: I32?
}

edge Knows: Person -> Person {
  since: Date?
}
"""
NEXT_SCHEMA = SCHEMA.replace("  age: I32?\n", "  age: I32?\n  email: String?\n")
QUERIES = """\
query older($age: I32) {
  match {
    $p: Person
    $p.age >= $age
  }
  return { $p.name, $p.age }
  order { $p.age desc }
}

query birthday($name: String, $age: I32) {
  update Person set { age: $age } where name = $name
}
"""
CHECKS = """\
query ageless() @description("everybody has an age") {
  match {
    $p: Person
    $p.age is null
  }
  return { $p.name as name }
}
"""
PEOPLE = [
    {"type": "Person", "data": {"name": "Ada", "age": 36}},
    {"type": "Person", "data": {"name": "Linus", "age": 21}},
    {"type": "Person", "data": {"name": "Margaret", "age": 58}},
    {"edge": "Knows", "from": "Ada", "to": "Linus", "data": {"since": "2021-03-01"}},
    {"edge": "Knows", "from": "Linus", "to": "Margaret", "data": {}},
]


POLICY = """\
version: 1
groups:
  admins: [ada]
  readers: [grace, ada]
protected_branches: [main]
rules:
  - id: everybody-reads
    allow: {actors: {group: readers}, actions: [read, export]}
  - id: admins-write-drafts
    allow: {actors: {group: admins}, actions: [change], branch_scope: unprotected}
"""
CEDAR = 'permit(principal == Omnigraph::Actor::"grace", action, resource);\n'
CLUSTER = """\
version: 1
graphs:
  team: {schema: people.pg, queries: people.gq}
policies:
  people: {file: people.policy.yaml, applies_to: [team]}
"""
KUZU = "CREATE NODE TABLE Person(name STRING, PRIMARY KEY (name));"
CONSTRAINTS = "CREATE CONSTRAINT FOR (p:Person) REQUIRE p.name IS UNIQUE;"
CASES = """\
version: 1
cases:
  - {id: readers read, actor: grace, action: read, branch: main, expect: allow}
  - {id: strangers see nothing, actor: eve, action: read, branch: main, expect: deny}
"""


@dataclass(frozen=True, slots=True)
class Done:
    """What a command answered."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def write_files(folder: Path) -> None:
    (folder / "people.pg").write_text(SCHEMA)
    (folder / "next.pg").write_text(NEXT_SCHEMA)
    (folder / "people.gq").write_text(QUERIES)
    (folder / "checks.gq").write_text(CHECKS)
    (folder / "people.policy.yaml").write_text(POLICY)
    (folder / "people.cedar").write_text(CEDAR)
    (folder / "cases.yaml").write_text(CASES)
    (folder / "cluster.yaml").write_text(CLUSTER)
    lines = "".join(json.dumps(record) + "\n" for record in PEOPLE)
    (folder / "people.jsonl").write_text(lines)
    (folder / "kuzu.cypher").write_text(KUZU)
    (folder / "constraints.cypher").write_text(CONSTRAINTS)
    (folder / "customers.csv").write_text("id,name\n1,Ada\n")
    (folder / "orders.csv").write_text("number,customer_id\nA1,1\n")


def build(folder: Path) -> None:
    """The files, the cluster they describe, and the graph `people`: two commits on main, one more on draft, two
    branches to delete."""
    write_files(folder)
    apply_plan(make_plan(read_folder(folder)))
    graph = omnigraph.init(folder / "people", schema=SCHEMA)
    graph.load(PEOPLE, message="the first people")
    notes = omnigraph.init(folder / "notes", schema="node Note { slug: String @key  scan: Blob? }")
    notes.mutate('insert Note { slug: "n1", scan: "base64:SGVsbG8=" }')
    for name in ("draft", "stale", "stale-too"):
        graph.create_branch(name)
    graph.mutate('query q() { insert Person { name: "Grace", age: 46 } }', branch="draft")
    graph.create_branch("offer", from_="draft")
    graph.propose("offer", "Add Grace", actor="linus")


def copied(template: Path, folder: Path) -> Path:
    shutil.copytree(template, folder, dirs_exist_ok=True)
    return folder


def environment(folder: Path, **more: str) -> dict[str, str]:
    """As a person's, but with a home of its own and none of the settings of this machine."""
    ours = ("OMNIGRAPH_", "NO_COLOR", "COLUMNS", "LINES")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
    return kept | {"OMNIGRAPH_HOME": str(folder / "home"), "OMNIGRAPH_FSYNC": "0"} | more


def run(folder: Path, *words: str, stdin: str = "", **variables: str) -> Done:
    """Run one command line in a process of its own."""
    done = subprocess.run(
        [PROGRAM, *words],
        cwd=folder,
        env=environment(folder, **variables),
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return Done(done.returncode, done.stdout, done.stderr)
