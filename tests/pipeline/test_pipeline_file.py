"""Pipeline files: several sources as one checked commit on a branch, then merged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.cli.main import main
from omnigraph.pipeline.spec import PipelineInvalid, read_spec
from tests.pipeline.planes import new_graph, person, write_lines

pytestmark = pytest.mark.xdist_group("spark")
FILE = """
graph: GRAPH
branch: import
create_from: main
mode: append
sources:
  - records: "people*.jsonl"
  - type: City
    path: cities.csv
    columns: {Town: name, Inhabitants: size}
then:
  merge_into: main
"""
JDBC = """
graph: GRAPH
mode: append
sources:
  - type: City
    jdbc: {url: "${TOWNS_URL}", dbtable: towns, fetchsize: 100}
    columns: {town: name, heads: size}
"""


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    made = new_graph(tmp_path, "pipeline")
    write_lines(tmp_path / "people1.jsonl", [person("zoe@x")])
    (tmp_path / "cities.csv").write_text("Town,Inhabitants\nBern,134000\n")
    (tmp_path / "pipeline.yaml").write_text(FILE.replace("GRAPH", made.uri))
    return made


def test_a_pipeline_loads_on_a_branch_and_merges(
    graph: Graph, spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(tmp_path / "pipeline.yaml")
    assert main(["pipeline", "run", file, "--check"]) == 0
    assert "2 nodes of 2 types can be loaded" in capsys.readouterr().out
    assert graph.branches() == ["main"]
    assert main(["pipeline", "run", file, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["load"]["nodes"] == {"Person": 1, "City": 1}
    assert document["merge"]["outcome"] == "fast_forward"
    found = omnigraph.open(graph.uri).query(
        'query q() { match { $c: City { name: "Bern" } } return { $c.size as s } }'
    )
    assert found.scalar() == 134_000


def test_tables_of_a_database_are_loaded_through_jdbc(
    graph: Graph, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Derby comes with Spark, and its database lives in the memory of Spark's process."""
    log = str(tmp_path / "derby.log")
    spark.sparkContext._jvm.System.setProperty("derby.stream.error.file", log)
    url = f"jdbc:derby:memory:{tmp_path.name};create=true"
    towns = spark.createDataFrame([("Bern", 134_000), ("Lima", None)], "town string, heads long")
    towns.write.format("jdbc").option("url", url).option("dbtable", "towns").save()
    file = tmp_path / "database.yaml"
    file.write_text(JDBC.replace("GRAPH", graph.uri))
    monkeypatch.delenv("TOWNS_URL", raising=False)
    assert main(["pipeline", "run", str(file)]) != 0, "a variable that is not there"
    monkeypatch.setenv("TOWNS_URL", url)
    assert main(["pipeline", "run", str(file)]) == 0
    found = graph.query("query q() { match { $c: City } return { $c.name as n, $c.size as s } }")
    sizes = {row["n"]: row["s"] for row in found.rows}
    assert sizes == {"Oslo": 700_000, "Rome": None, "Bern": 134_000, "Lima": None}


def test_a_database_that_cannot_be_read_is_no_bug_of_ours(
    graph: Graph,
    spark: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "database.yaml"
    file.write_text(JDBC.replace("GRAPH", graph.uri))
    for url in (
        f"jdbc:derby:memory:{tmp_path.name}-absent;password=s3cret",
        "jdbc:nosuch://localhost/db?password=s3cret",
    ):
        monkeypatch.setenv("TOWNS_URL", url)
        assert main(["pipeline", "run", str(file)]) != 0
        told = capsys.readouterr().err
        assert "database_failed" in told
        assert "s3cret" not in told
        assert "bug" not in told


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("sources: [{path: a.csv}]", "needs a type"),
        ("sources: [{type: City}]", "needs one of records, path and jdbc"),
        ("sources: []\nmodus: merge", "modus"),
        ("sources: [", "expected"),
    ],
)
def test_mistakes_in_the_file_are_named(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(text)
    with pytest.raises(PipelineInvalid, match=said):
        read_spec(tmp_path / "bad.yaml")
