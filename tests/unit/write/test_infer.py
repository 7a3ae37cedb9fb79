"""Schemas proposed from data: what is proposed loads the data it was proposed from."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph
from omnigraph import OmnigraphError
from omnigraph.cli.main import main
from omnigraph.write.infer import infer


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("customers.csv").write_text(
        "id,Full name,born,score,zip,vip\n"
        "1,Ada,1815-12-10,1.5,00123,true\n2,Bob,1900-01-01,,00999,false\n"
    )
    Path("orders.csv").write_text(
        "order_no,customer_id,placed,total\n"
        "A1,1,2024-05-01T10:00:00Z,3\nA2,2,2024-05-02T10:00:00Z,4\nA3,,,5\n"
    )
    rows = [{"sku": "x", "tags": ["a", "b"], "weight": 1.5}, {"sku": "y", "tags": [], "weight": 2}]
    Path("products.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    items = {"order": ["A1", "A1", "A2"], "product": ["x", "y", "x"], "n": pa.array([1, 2, 1])}
    pq.write_table(pa.table(items), "order_items.parquet")
    return tmp_path


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("people.csv", "Person"),
        ("data/order_items.csv", "OrderItem"),
        ("grand_children.csv", "GrandChild"),
        ("boxes.csv", "Box"),
        ("cities.csv", "City"),
        ("species.csv", "Species"),
        ("status.csv", "Status"),
    ],
)
def test_a_type_is_called_by_one_of_what_the_file_holds(
    file: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(file).parent.mkdir(exist_ok=True)
    Path(file).write_text("label,size\na,1\n")
    assert f"node {name} {{" in infer([file]).schema


def test_edges_keep_the_word_of_their_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text("name\nAda\nBob\n")
    Path("knows.csv").write_text("from,to\nAda,Bob\n")
    assert "edge Knows: Person -> Person" in infer(["people.csv", "knows.csv"]).schema


def test_two_files_of_one_name_are_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("old", "new"):
        Path(folder).mkdir()
        Path(folder, "people.csv").write_text("name\nAda\n")
    files = ["old/people.csv", "new/people.csv"]
    with pytest.raises(OmnigraphError, match="both be the type Person"):
        infer(files)
    found = infer({"Old": files[0], "New": files[1]}).schema
    assert "node Old {" in found
    assert "node New {" in found


def test_a_proposal_in_a_file_says_what_comes_next(
    shop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["infer", *FILES, "--out", "shop.pg", "--pipeline", "shop.yaml"]) == 0
    said = capsys.readouterr().err.strip()
    assert said.startswith("next: omnigraph init --schema shop.pg shop, then ")
    assert main(["init", "--schema", "shop.pg", "shop"]) == 0
    assert main(said.partition("then omnigraph ")[2].split()) == 0
    assert omnigraph.open(shop / "shop").query("match { $c: Customer } return { $c }").rows


FILES = ["customers.csv", "orders.csv", "products.jsonl", "order_items.parquet"]


def test_a_proposal_has_types_keys_and_edges_and_loads_its_files(
    shop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["infer", *FILES, "--pipeline", "pipeline.yaml"]) == 0
    schema = capsys.readouterr().out
    lines = [" ".join(line.split()) for line in schema.splitlines()]
    assert "zip: String" in lines, "digits with zeros before them are no number"
    assert "score: F64?" in lines
    assert "born: Date" in lines
    assert "placed: DateTime?" in lines
    assert "order_no: String @key" in lines
    assert "tags: [String]" in lines
    assert "edge OrderCustomer: Order -> Customer { @key(src, dst) }" in lines
    assert "edge OrderItem: Order -> Product {" in lines
    graph = omnigraph.init(shop / "graph", schema=schema)
    file = Path("pipeline.yaml")
    file.write_text(file.read_text().replace("GRAPH", graph.uri))
    assert main(["pipeline", "run", str(file), "--engine", "local"]) == 0
    found = omnigraph.open(graph.uri).query(
        "match { $c: Customer $o: Order $o OrderCustomer $c $o OrderItem $p } "
        "return { $c.full_name as who, $p.sku as what } order { who, what }"
    )
    assert [tuple(row.values()) for row in found.rows] == [("Ada", "x"), ("Ada", "y"), ("Bob", "x")]


def test_names_are_as_asked_for_and_records_name_themselves(shop: Path) -> None:
    assert infer({"Human": "customers.csv"}).schema.startswith("node Human {")
    Path("records.jsonl").write_text('{"type": "Person", "data": {"name": "Ada"}}\n')
    with pytest.raises(OmnigraphError, match="name their types themselves"):
        infer(["records.jsonl"])


def test_times_without_a_zone_are_told_and_load_in_the_zone_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    noon = dt.datetime(2025, 7, 1, 12)
    pq.write_table(pa.table({"name": ["a"], "at": [noon]}), "visits.parquet")
    Path("trips.csv").write_text("name,at\nb,2025-07-01 12:00\n")
    Path("calls.csv").write_text("name,at\nc,2025-07-01T12:00Z\nd,2025-07-01T12:00+02:00\n")
    found = infer(["visits.parquet", "trips.csv", "calls.csv"])
    zone = "assume_timezone: UTC  # times in visits.parquet, trips.csv have no zone"
    assert zone in found.pipeline
    assert "assume_timezone" not in infer(["calls.csv"]).pipeline
    graph = omnigraph.init(tmp_path / "graph", schema=found.schema)
    file = Path("all.yaml")
    file.write_text(found.pipeline.replace("GRAPH", graph.uri).replace("UTC", "Europe/Rome"))
    assert main(["pipeline", "run", str(file), "--engine", "local"]) == 0
    for name, hour in (("Visit", 10), ("Trip", 10)):
        [row] = omnigraph.open(graph.uri).query(f"match {{ $x: {name} }} return {{ $x.at as at }}")
        assert row["at"] == dt.datetime(2025, 7, 1, hour, tzinfo=dt.UTC)
