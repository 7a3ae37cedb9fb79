"""Pipeline files: several sources as one checked commit on a branch, then merged."""

from __future__ import annotations

import datetime as dt
import json
import traceback
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.cli.main import main
from omnigraph.errors import IdempotencyMismatch
from omnigraph.pipeline.databases import database_rows
from omnigraph.pipeline.failures import SparkFailed
from omnigraph.pipeline.lineage import lineage
from omnigraph.pipeline.spec import (
    PipelineInvalid,
    PipelineSpec,
    SourceSpec,
    read_spec,
    sources_of,
)
from omnigraph.write.input.mapping import Mapped, RowMap, Sources, Wide
from tests.pipeline.planes import new_graph, person, write_lines

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


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_a_file_says_what_null_cells_and_times_without_a_zone_mean(
    engine: str, spark: Any, tmp_path: Path
) -> None:
    schema = "node Visit { name: String @key  at: DateTime?  note: String? }"
    graph = omnigraph.init(tmp_path / "graph", schema=schema)
    graph.mutate('insert Visit { name: "a", note: "loud" }')
    visits = {"name": ["a"], "at": [dt.datetime(2025, 7, 1, 12)], "note": pa.nulls(1, pa.string())}
    pq.write_table(pa.table(visits), tmp_path / "visits.parquet")
    (tmp_path / "more.csv").write_text("name,at\nb,2025-01-01 12:00:00\n")
    file = tmp_path / "visits.yaml"
    source = "sources: [{type: Visit, path: visits.parquet}, {type: Visit, path: more.csv}]"
    file.write_text(f"graph: {graph.uri}\nassume_timezone: Europe/Rome\nnulls: keep\n{source}\n")
    assert main(["pipeline", "run", str(file), "--engine", engine]) == 0
    found = omnigraph.open(graph.uri).query(
        "match { $v: Visit } return { $v.at as at, $v.note as note } order { $v.name }"
    )
    assert list(found) == [
        {"at": dt.datetime(2025, 7, 1, 10, tzinfo=dt.UTC), "note": "loud"},
        {"at": dt.datetime(2025, 1, 1, 11, tzinfo=dt.UTC), "note": None},
    ]
    file.write_text(f"assume_timezone: Middle/Earth\n{source}\n")
    with pytest.raises(PipelineInvalid, match="unknown time zone `Middle/Earth`"):
        read_spec(file)


def test_a_run_tells_what_it_read_and_wrote_as_openlineage(graph: Graph, tmp_path: Path) -> None:
    """Events of one run share its id; a run that fails says so, and why."""
    file, told = tmp_path / "pipeline.yaml", tmp_path / "lineage.ndjson"
    line = ["pipeline", "run", str(file), "--engine", "local", "--lineage", str(told)]
    assert main(line) == 0
    assert main(line) != 0, "the rows are there already"
    events = [json.loads(text) for text in told.read_text().splitlines()]
    assert [event["eventType"] for event in events] == ["START", "COMPLETE", "START", "FAIL"]
    first, done, again, failed = events
    assert first["run"]["runId"] == done["run"]["runId"] != again["run"]["runId"]
    assert {entry["namespace"] for entry in done["inputs"]} == {"file"}
    rows = {entry["name"]: entry["outputFacets"]["outputStatistics"] for entry in done["outputs"]}
    assert {name: facet["rowCount"] for name, facet in rows.items()} == {
        "import.Person": 1,
        "import.City": 1,
    }
    assert "exist" in failed["run"]["facets"]["errorMessage"]["message"]


def test_a_merge_with_conflicts_is_a_run_that_failed(
    graph: Graph, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Schedulers go by the exit code, and collectors of lineage by the one event of the end."""
    graph.create_branch("import")
    graph.load({"City": [{"name": "Bern", "size": 1}]}, mode="append")
    file, told = tmp_path / "pipeline.yaml", tmp_path / "lineage.ndjson"
    line = ["pipeline", "run", str(file), "--engine", "local", "--lineage", str(told), "--json"]
    assert main(line) == 4
    document = json.loads(capsys.readouterr().out)
    assert document["load"]["commit"]["id"] == graph.log("import")[0].id
    assert [conflict["id"] for conflict in document["merge"]["conflicts"]] == ["Bern"]
    events = [json.loads(text) for text in told.read_text().splitlines()]
    assert [event["eventType"] for event in events] == ["START", "FAIL"]
    assert "conflicts" in events[1]["run"]["facets"]["errorMessage"]["message"]
    assert {entry["name"] for entry in events[1]["outputs"]} == {"import.Person", "import.City"}


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("jdbc:postgresql://ann:s3cret@db.x:5432/shop", ("postgresql://db.x:5432", "shop.t")),
        ("jdbc:mysql://ann:s3cret@a,ann:s3cret@b/shop?password=s3cret", ("mysql://b", "shop.t")),
        ("jdbc:mysql://(host=a,user=ann,password=s3cret)/shop", ("mysql://", "t")),
        ("jdbc:sqlserver://db.x;user=ann;password=s3cret", ("sqlserver://db.x", "t")),
        ("jdbc:sqlserver://db.x;password=s3cret@home", ("sqlserver://", "t")),
        ("jdbc:oracle:thin:ann/s3cret@db.x:1521:shop", ("oracle://db.x:1521:shop", "t")),
        ("jdbc:oracle:thin:ann/s3cret@//db.x:1521/shop", ("oracle://db.x:1521", "shop.t")),
        ("jdbc:oracle:thin:ann/s3#cret@db.x:1521:shop", ("oracle://", "t")),
        ("jdbc:db2://db.x:50000/shop:password=s3cret;", ("db2://db.x:50000", "shop.t")),
        ("jdbc:h2:tcp://db.x/shop;PASSWORD=s3cret", ("h2://db.x", "shop.t")),
        ("jdbc:derby:memory:shop;password=s3cret", ("derby://", "memory:shop.t")),
    ],
)
def test_lineage_names_databases_without_credentials(
    url: str, place: tuple[str, str], tmp_path: Path
) -> None:
    told = tmp_path / "lineage.ndjson"
    spec = PipelineSpec([SourceSpec(type="City", jdbc={"url": url, "dbtable": "t"})])
    with lineage(told, "graph", "job", spec):
        pass
    assert "cret" not in told.read_text()
    (named,) = json.loads(told.read_text().splitlines()[0])["inputs"]
    assert (named["namespace"], named["name"]) == place


def declared(path: str) -> list[Any]:
    """The ways to name a file of people."""
    wide = Wide(path, (RowMap("Person", (("email", "mail"),)),))
    mapped = Mapped(path, (("mail", "email"),))
    return [Sources(tables=(("Person", mapped),)), Sources(wide=(wide,)), wide]


@pytest.mark.parametrize("way", range(3))
def test_another_source_under_the_same_load_id_is_refused(way: int, tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "graph", schema="node Person { email: String @key }")
    (tmp_path / "a.csv").write_text("mail\na@x\n")
    (tmp_path / "b.csv").write_text("mail\nb@x\n")
    one, other = (declared(str(tmp_path / name))[way] for name in ("a.csv", "b.csv"))
    graph.load(one, engine="local", idempotency_key="day-1")
    assert graph.load(one, engine="local", idempotency_key="day-1").replayed
    with pytest.raises(IdempotencyMismatch):
        graph.load(other, engine="local", idempotency_key="day-1")


@pytest.fixture
def derby(spark: Any, tmp_path: Path) -> str:
    """A database: Derby comes with Spark, and keeps it in the memory of Spark's process."""
    log = str(tmp_path / "derby.log")
    spark.sparkContext._jvm.System.setProperty("derby.stream.error.file", log)
    return f"jdbc:derby:memory:{tmp_path.name}"


def test_tables_of_a_database_are_loaded_through_jdbc(
    graph: Graph, spark: Any, derby: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"{derby};create=true"
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


SPLIT = """
graph: GRAPH
mode: append
sources:
  - type: City
    jdbc:
      url: "${TOWNS_URL}"
      query: 'SELECT "id", "town", "heads" FROM heads WHERE "heads" > 10'
      split_by: id
      splits: 3
    columns: {town: name, heads: size, id: ""}
"""


def test_a_query_of_a_database_is_read_in_ranges(
    graph: Graph, spark: Any, derby: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database filters, tells its bounds and sends the columns that are wanted, a range to each task."""
    url = f"{derby};create=true"
    rows = [(n, f"town {n}", n * 10) for n in range(1, 8)]
    towns = spark.createDataFrame(rows, "id int, town string, heads long")
    towns.write.format("jdbc").option("url", url).option("dbtable", "heads").save()
    monkeypatch.setenv("TOWNS_URL", url)
    (tmp_path / "split.yaml").write_text(SPLIT.replace("GRAPH", graph.uri))
    spec = read_spec(tmp_path / "split.yaml")
    ((_, frame),) = sources_of(spec).tables
    assert frame.columns == ["name", "size"]
    assert frame.rdd.getNumPartitions() == 3
    assert sorted(row["size"] for row in frame.collect()) == [20, 30, 40, 50, 60, 70]
    assert main(["pipeline", "run", str(tmp_path / "split.yaml")]) == 0
    found = graph.query("query q() { match { $c: City } return { count(*) as n } }")
    assert found.scalar() == 6 + 2


def test_a_database_that_cannot_be_read_is_no_bug_of_ours(
    graph: Graph,
    derby: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "database.yaml"
    file.write_text(JDBC.replace("GRAPH", graph.uri))
    for url in (
        f"{derby};password=s3cret",
        "jdbc:nosuch://localhost/db?password=s3cret",
    ):
        monkeypatch.setenv("TOWNS_URL", url)
        assert main(["pipeline", "run", str(file)]) != 0
        told = capsys.readouterr().err
        assert "database_failed" in told
        assert "s3cret" not in told
        assert "bug" not in told


def test_what_a_database_says_while_rows_are_read_is_told_without_its_secrets(
    graph: Graph, spark: Any, derby: str
) -> None:
    url = f"{derby};create=true"
    towns = spark.createDataFrame([("Bern", 134_000)], "name string, size long")
    towns.write.format("jdbc").option("url", url).option("dbtable", "towns").save()
    rows = database_rows({"url": url, "dbtable": "towns", "password": "s3cret-9"}, session=spark)
    said = f"no login with s3cret-9 at {url}, nor by jdbc:x://h;password=0ther-1;a=b"
    wrong = rows.selectExpr("name", f"CAST(raise_error('{said}') AS long) AS size")
    with pytest.raises(SparkFailed, match="no login with <password> at <url>, nor") as failed:
        graph.load({"City": wrong})
    trace = "".join(traceback.format_exception(failed.value))
    assert not [text for text in ("s3cret-9", url, "0ther-1") if text in trace]


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
