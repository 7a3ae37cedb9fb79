"""Write the golden graph of the present storage format: `python -m tests.golden.make`."""

from __future__ import annotations

import os
import tarfile
import tempfile
from pathlib import Path

import omnigraph
from omnigraph.core.records import FORMAT

FOLDER = Path(__file__).parent

SCHEMA = """
node Port { code: String @key  depth: F64?  region: enum(north, south)  tags: [String]?  shape: Vector(2)? }
node Note { text: String  at: DateTime?  scan: Blob? }
edge Lane: Port -> Port { nm: I32?  opened: Date? }
"""
RECORDS = [
    {
        "type": "Port",
        "data": {
            "code": "OSL",
            "depth": 15.5,
            "region": "north",
            "tags": ["ferry"],
            "shape": [0, 1],
        },
    },
    {"type": "Port", "data": {"code": "VAL", "region": "south"}},
    {"type": "Port", "data": {"code": "RTM", "region": "south", "depth": 24}},
    {
        "type": "Note",
        "data": {"id": "n1", "text": "hello", "at": "2024-02-29T12:00:00Z", "scan": "base64:AAEC"},
    },
    {
        "edge": "Lane",
        "from": "OSL",
        "to": "RTM",
        "data": {"id": "l1", "nm": 560, "opened": "1952-03-01"},
    },
    {"edge": "Lane", "from": "RTM", "to": "VAL", "data": {"id": "l2"}},
]


def archive(format: int) -> Path:
    return FOLDER / f"format-{format}.tar.gz"


def make() -> Path:
    """A graph with a little of everything: commits, a branch, a tag, deletions, a second schema, a collection."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "graph")
        graph = omnigraph.init(root, schema=SCHEMA, actor="maker")
        graph.load(RECORDS, message="first load", actor="maker")
        graph.tag("v1")
        graph.mutate(
            'query deepen() { update Port set { depth: 16.0 } where code = "VAL" }',
            message="deepen",
        )
        graph.create_branch("review")
        graph.mutate(
            'query add() { insert Port { code: "SIN", region: "south" } }', branch="review"
        )
        graph.mutate("query cut() { delete Lane where nm = 560 }", idempotency_key="cut-once")
        graph.apply_schema(SCHEMA.replace("nm: I32?", "nm: I32?  toll: F64?"), message="tolls")
        graph.cleanup(keep=3)
        with tarfile.open(archive(FORMAT), "w:gz") as packed:
            packed.add(root, arcname="graph", filter=_anonymous)
    return archive(FORMAT)


def _anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mtime = 0
    return entry


if __name__ == "__main__":
    os.environ["OMNIGRAPH_FSYNC"] = "0"
    make()
