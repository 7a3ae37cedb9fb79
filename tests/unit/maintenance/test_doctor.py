"""The doctor finds what is missing or wrong, and says what to do about it."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

from omnigraph.core import layout
from omnigraph.core.leases import save_plan
from omnigraph.core.plan import Append, PublishPlan, Remove
from omnigraph.core.records import Commit, LiveRef, Seal, StoredPlan, Tombstone, encode
from omnigraph.core.txn import WriteTxn
from omnigraph.graph import Graph, init, open_graph
from omnigraph.maintenance.doctor import ERROR, INFO, Finding
from omnigraph.storage.objects import numbered
from tests.support.caches import forget_tables
from tests.support.faulty_s3 import FaultyS3
from tests.support.people import change, people


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    made = people(tmp_path)
    for number in range(4):
        change(made, f'insert Person {{ name: "a", age: {number + 10} }}')
    return made


def found(root: Path, check: str, *, deep: bool = False) -> list[Finding]:
    """The findings of one check, by a process that knows nothing yet."""
    graph = open_graph(root)
    return [finding for finding in graph.doctor(deep=deep).findings if finding.check == check]


def test_a_graph_in_order_has_no_findings(graph: Graph) -> None:
    graph.optimize()
    graph.cleanup(keep=2)
    diagnosis = graph.doctor(deep=True)
    assert diagnosis.healthy
    assert not diagnosis.findings
    assert diagnosis.to_json()["branches"] == 1


def test_a_gap_in_a_chain(graph: Graph, tmp_path: Path) -> None:
    chain = graph.snapshot().commit.chain
    os.remove(tmp_path / numbered(layout.chain_folder(chain), 2))
    (finding,) = found(tmp_path, "chains")
    assert finding.severity == ERROR
    assert f"{chain}.2" in finding.message
    assert finding.fix


def test_a_missing_data_file(graph: Graph, tmp_path: Path) -> None:
    city = graph.snapshot().entry(graph.snapshot().catalog.nodes["City"].table_id)
    (data,) = (tmp_path / city.path / "data").iterdir()
    data.unlink()
    (finding,) = found(tmp_path, "tables")
    assert data.name in finding.message


def test_a_missing_table_version(graph: Graph, tmp_path: Path) -> None:
    city = graph.snapshot().entry(graph.snapshot().catalog.nodes["City"].table_id)
    for manifest in (tmp_path / city.path / "_versions").glob(f"d{city.version}*"):
        manifest.unlink()
    forget_tables()
    assert [finding.severity for finding in found(tmp_path, "tables")] == [ERROR]


def test_a_branch_whose_creation_was_not_finished(graph: Graph, tmp_path: Path) -> None:
    state = LiveRef("0" * 16, "1" * 16, source_chain=graph.snapshot().commit.chain)
    graph._repo.objects.put_new(numbered(layout.ref_folder("half"), 0), encode(state))
    (finding,) = found(tmp_path, "branches")
    assert "half" in finding.message
    assert graph.doctor().healthy, "an unfinished branch is no damage"


def test_a_plan_somebody_left(graph: Graph, tmp_path: Path) -> None:
    save_plan(graph._repo, StoredPlan("2" * 16, "3" * 16, "load", "main", 0, 0, ()))
    (finding,) = found(tmp_path, "plans")
    assert layout.plan_key("2" * 16) in finding.fix


def test_a_wrong_count(graph: Graph, tmp_path: Path) -> None:
    head = graph.snapshot().commit
    city = graph.snapshot().catalog.nodes["City"].table_id
    tables = {**head.tables, city: msgspec.structs.replace(head.tables[city], rows=7)}
    replaced(graph, msgspec.structs.replace(head, tables=tables))
    (finding,) = found(tmp_path, "tables")
    assert "2 rows, its commit says 7" in finding.message


def test_files_nothing_refers_to_are_counted(graph: Graph, tmp_path: Path) -> None:
    graph.cleanup(keep=1)
    assert not found(tmp_path, "orphans", deep=True)
    city = graph.snapshot().entry(graph.snapshot().catalog.nodes["City"].table_id)
    (tmp_path / city.path / "data" / "lost.lance").write_bytes(b"1234")
    (finding,) = found(tmp_path, "orphans", deep=True)
    assert "1 files (4 bytes)" in finding.message


def test_edges_without_nodes(graph: Graph, tmp_path: Path) -> None:
    """Made by hand: no write of ours leads there."""

    def rude(txn: WriteTxn) -> PublishPlan:
        table = txn.catalog.nodes["Person"].table_id
        gone = txn.view(table).lookup("id", pa.array(["b"]), ["id"])
        return PublishPlan(kind="rude", actions=(Remove(table, gone),))

    graph.publish(rude)
    (finding,) = found(tmp_path, "edges", deep=True)
    assert "1 Knows edges" in finding.message


def test_a_branch_whose_deletion_was_not_finished(graph: Graph, tmp_path: Path) -> None:
    graph.create_branch("dev")
    head = graph.snapshot("dev").commit
    replaced(graph, Seal(head.chain, 1, "op"))
    (finding,) = found(tmp_path, "branches")
    assert finding.severity == INFO
    assert "omnigraph branch create dev" in finding.fix
    graph.tag("v1")
    assert len(found(tmp_path, "branches")) == 1, "a tag has no chain of its own"


def test_a_head_that_was_pruned(graph: Graph, tmp_path: Path) -> None:
    graph.create_branch("dev")
    head = graph.snapshot("dev").commit
    replaced(graph, Tombstone(head.chain, 0, "dev", (), 0, "branch", head.content))
    (finding,) = found(tmp_path, "branches")
    assert (finding.severity, "'dev'" in finding.message) == (ERROR, True)


@pytest.mark.parametrize("damaged", ["main", "dev"])
def test_a_damaged_head_does_not_hide_other_branches(
    graph: Graph, tmp_path: Path, damaged: str
) -> None:
    graph.create_branch("dev")
    head = graph.snapshot(damaged).commit
    graph._repo.objects.put(numbered(layout.chain_folder(head.chain), head.number), b"rubbish")
    diagnosis = open_graph(tmp_path).doctor()
    (finding,) = diagnosis.findings
    assert (finding.severity, finding.check) == (ERROR, "branches")
    assert f"branch {damaged!r}" in finding.message
    assert diagnosis.branches == 1, "the other branch was not looked at"


def test_a_graph_without_its_commits(graph: Graph, tmp_path: Path) -> None:
    chain = graph.snapshot().commit.chain
    for info in list(graph._repo.objects.list(layout.chain_folder(chain))):
        graph._repo.objects.delete([info.key])
    (finding,) = found(tmp_path, "branches")
    assert finding.severity == ERROR, "main is never unfinished"


def test_a_damaged_name_is_a_finding_and_no_crash(graph: Graph, tmp_path: Path) -> None:
    graph.create_branch("dev")
    graph._repo.objects.put(numbered(layout.ref_folder("dev"), 0), b"rubbish")
    diagnosis = open_graph(tmp_path).doctor()
    assert [finding.check for finding in diagnosis.findings] == ["branches"]
    assert diagnosis.branches == 1
    assert all(finding.fix for finding in diagnosis.findings)


def test_a_schema_that_does_not_describe_the_tables(graph: Graph, tmp_path: Path) -> None:
    head = graph.snapshot().commit
    city = graph.snapshot().catalog.nodes["City"].table_id
    tables = {name: entry for name, entry in head.tables.items() if name != city}
    replaced(graph, msgspec.structs.replace(head, tables=tables))
    (finding,) = found(tmp_path, "schemas")
    assert city in finding.message


def test_an_id_that_is_there_twice(graph: Graph, tmp_path: Path) -> None:
    def rude(txn: WriteTxn) -> PublishPlan:
        table = txn.catalog.nodes["City"].table_id
        rows = txn.view(table).scan(txn.view(table).schema.names)
        return PublishPlan(
            kind="rude", actions=(Append(table, rows.select(txn.view(table).schema.names)),)
        )

    graph.publish(rude)
    (finding,) = found(tmp_path, "edges", deep=True)
    assert "2 ids of City" in finding.message


def test_a_store_that_does_not_keep_its_promises(faulty_s3: FaultyS3) -> None:
    graph = init(faulty_s3.address.uri("graph"), schema="node City { name: String @key }")
    assert graph.doctor().healthy
    faulty_s3.ignore_conditions()
    (finding,) = graph.doctor().findings
    assert (finding.severity, finding.check) == (ERROR, "store")
    assert "If-None-Match" in finding.fix


def replaced(graph: Graph, thing: Commit | Seal | Tombstone) -> None:
    """Put an object into a chain by force."""
    key = numbered(layout.chain_folder(thing.chain), thing.number)
    graph._repo.objects.put(key, encode(thing))
