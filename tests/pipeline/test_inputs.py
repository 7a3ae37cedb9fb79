"""Files as other programs write them: folders of parts, columns in folder names, CSV of all sorts, on both planes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph
from omnigraph import Graph, OmnigraphError
from omnigraph.errors import OptionInvalid
from omnigraph.pipeline.load import Tuning, bulk_load
from omnigraph.pipeline.sources import cut
from omnigraph.pipeline.verify import RepeatedRows
from omnigraph.write.input.files import SourceNotFound
from omnigraph.write.input.options import CsvFormat, Options

ENGINES = ("local", "spark")
SCHEMA = """
node Person { name: String @key  age: I32?  town: String?  joined: Date? }
node Note { text: String }
edge Knows: Person -> Person
"""


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def graph(tmp_path: Path, engine: str, request: pytest.FixtureRequest) -> Graph:
    if engine == "spark":
        request.getfixturevalue("spark")
    return omnigraph.init(tmp_path / "graph", schema=SCHEMA)


def people(graph: Graph) -> dict[str, tuple[Any, ...]]:
    text = "query q() { match { $p: Person } return { $p.name, $p.age, $p.town } }"
    rows = graph.query(text).rows
    return {row["p.name"]: (row["p.age"], row["p.town"]) for row in rows}


def parquet(path: Path, **columns: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)


def test_several_files_of_one_type_are_all_loaded(
    graph: Graph, engine: str, tmp_path: Path
) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.csv").write_text(f"name,age\n{name},1\n")
    files = [tmp_path / "a.csv", str(tmp_path / "[bc].csv")]
    assert graph.load({"Person": files}, engine=engine).nodes == {"Person": 3}
    assert set(people(graph)) == {"a", "b", "c"}


def test_a_folder_written_by_spark_is_read_without_its_marks(
    graph: Graph, engine: str, tmp_path: Path
) -> None:
    folder = tmp_path / "people.parquet"
    parquet(folder / "part-00000.snappy.parquet", name=["Ada"], age=[36])
    parquet(folder / "part-00001.snappy.parquet", name=["Bob"], age=[40])
    parquet(folder / "_temporary" / "0" / "part-00002.parquet", name=["half written"])
    (folder / "_SUCCESS").touch()
    (folder / ".part-00000.snappy.parquet.crc").write_bytes(b"crc")
    assert graph.load({"Person": folder}, engine=engine).nodes == {"Person": 2}
    assert people(graph) == {"Ada": (36, None), "Bob": (40, None)}


def test_columns_in_folder_names_are_loaded(graph: Graph, engine: str, tmp_path: Path) -> None:
    folder = tmp_path / "people"
    parquet(folder / "age=7" / "town=S%C3%A8te" / "p.parquet", name=["Ada"])
    parquet(folder / "age=8" / "town=__HIVE_DEFAULT_PARTITION__" / "p.parquet", name=["Bob"])
    lines = folder / "age=9" / "town=Oslo" / "p.json"
    lines.parent.mkdir(parents=True)
    lines.write_text('{"name": "Eve"}\n{"name": "Dan", "town": "Rome"}\n')
    graph.load({"Person": folder}, engine=engine)
    everybody = {"Ada": (7, "Sète"), "Bob": (8, None), "Eve": (9, "Oslo"), "Dan": (9, "Rome")}
    assert people(graph) == everybody
    for written_out in (f"{folder}/age=7/*/*.parquet", f"{folder}/age=7/town=S%C3%A8te/p.parquet"):
        graph.mutate('query d() { delete Person where name = "Ada" }')
        graph.load({"Person": written_out}, engine=engine)
        assert people(graph)["Ada"] == (7, "Sète")


def test_a_folder_name_that_is_no_column_or_value_is_refused(
    graph: Graph, engine: str, tmp_path: Path
) -> None:
    parquet(tmp_path / "one" / "size=7" / "p.parquet", name=["Ada"])
    parquet(tmp_path / "two" / "age=old" / "p.parquet", name=["Ada"])
    with pytest.raises(OmnigraphError, match="size"):
        graph.load({"Person": tmp_path / "one"}, engine=engine)
    with pytest.raises(OmnigraphError, match="age"):
        graph.load({"Person": tmp_path / "two"}, engine=engine)
    graph.load({"Person": tmp_path / "one" / "size=7"}, engine=engine)
    assert people(graph) == {"Ada": (None, None)}, "somebody wrote that name out"


def test_tables_that_are_more_than_their_files_are_refused(
    graph: Graph, engine: str, tmp_path: Path
) -> None:
    parquet(tmp_path / "hudi" / "p.parquet", name=["Ada"])
    (tmp_path / "hudi" / ".hoodie").mkdir()
    (tmp_path / "hudi" / ".hoodie" / "hoodie.properties").write_text("")
    with pytest.raises(OptionInvalid, match="Hudi table") as refused:
        graph.load({"Person": tmp_path / "hudi"}, engine=engine)
    assert "DataFrame" in (refused.value.help or "")
    (tmp_path / "empty").mkdir()
    with pytest.raises(SourceNotFound, match="no files"):
        graph.load({"Person": tmp_path / "empty"}, engine=engine)


def test_folders_on_s3_are_read_under_either_spelling(
    graph: Graph, engine: str, s3_root: str, tmp_path: Path
) -> None:
    from omnigraph.storage.objects import open_remote

    for number, name in enumerate(("Ada", "Bob")):
        file = tmp_path / f"{name}.parquet"
        parquet(file, name=[name])
        store, key = open_remote(f"{s3_root}/people.parquet/age={number}/part.parquet")
        store.put_file(key, file)
    address = s3_root.replace("s3://", "s3a://") + "/people.parquet"
    graph.load({"Person": address}, engine=engine)
    assert people(graph) == {"Ada": (0, None), "Bob": (1, None)}
    with pytest.raises(SourceNotFound):
        graph.load({"Person": f"{s3_root}/nothing.parquet"}, engine=engine)


def test_csv_of_all_sorts_is_read_as_one_says(graph: Graph, engine: str, tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    file.write_bytes("'Åda; the first';36;NULL\nBob;NULL;Oslo\n".encode("latin-1"))
    names = ("name", "age", "town")
    form = CsvFormat(";", "'", names=names, null_text="NULL", encoding="latin-1")
    graph.load({"Person": file}, engine=engine, options=Options(csv=form))
    assert people(graph) == {"Åda; the first": (36, None), "Bob": (None, "Oslo")}
    (tmp_path / "plain.csv").write_text('name|age\nE"ve|5\n')
    form = CsvFormat("|", quote="")
    graph.load({"Person": tmp_path / "plain.csv"}, engine=engine, options=Options(csv=form))
    assert people(graph)['E"ve'] == (5, None)
    file.write_text("Ada,36,Oslo\nBob,many,Rome\n")
    with pytest.raises(OmnigraphError) as wrong:
        graph.load({"Person": file}, engine=engine, options=Options(csv=CsvFormat(names=names)))
    assert [(v["line"], v["property"]) for v in wrong.value.details["violations"]] == [(2, "age")]


@pytest.mark.parametrize(
    ("form", "about"),
    [
        ({"delimiter": ";;"}, "delimiter"),
        ({"quote": "→"}, "quote"),
        ({"quote": ","}, "differ"),
        ({"names": ("a", "a")}, "names"),
        ({"encoding": "klingon"}, "encoding"),
    ],
)
def test_csv_that_cannot_be_is_refused(form: dict[str, Any], about: str) -> None:
    with pytest.raises(OptionInvalid, match=about):
        CsvFormat(**form)


# --- on Spark alone ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lines_per_file", [1, 2])
def test_an_id_given_twice_is_refused_wherever_it_lies(
    spark: Any, tmp_path: Path, lines_per_file: int
) -> None:
    graph = omnigraph.init(tmp_path / "graph", schema=SCHEMA)
    lines = ['{"id": "n1", "text": "first"}\n', '{"id": "n1", "text": "second"}\n']
    for start in range(0, 2, lines_per_file):
        text = "".join(lines[start : start + lines_per_file])
        (tmp_path / f"notes{start}.jsonl").write_text(text)
    with pytest.raises(RepeatedRows, match="n1"):
        graph.load({"Note": str(tmp_path / "notes*.jsonl")}, mode="merge", engine="spark")
    frame = spark.createDataFrame([("n1", "first"), ("n1", "second")], "id string, text string")
    for parts in (1, 2):
        with pytest.raises(RepeatedRows, match="n1"):
            graph.load({"Note": frame.repartition(parts)}, mode="merge")
    assert len(graph.log()) == 1


def test_small_files_share_tasks_and_data_files(spark: Any, tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "graph", schema=SCHEMA)
    files = 60
    for number in range(files):
        (tmp_path / f"{number}.csv").write_text(f"name,age\np{number},{number}\n")
    done = graph.load({"Person": str(tmp_path / "*.csv")}, mode="append", engine="spark")
    assert done.nodes == {"Person": files}
    person = graph.snapshot().catalog.nodes["Person"]
    assert len(graph.snapshot().table_of(person).fragments()) == 1
    (tmp_path / "41.csv").write_text("name,age\nagain,many\n")
    with pytest.raises(OmnigraphError) as wrong:
        graph.load({"Person": str(tmp_path / "*.csv")}, engine="spark")
    told = wrong.value.details["violations"][0]
    assert (Path(told["file"]).name, told["line"]) == ("41.csv", 2)


@pytest.mark.parametrize("way", ["auto", "local", "spark"])
def test_a_pipe_is_read_once_or_refused(tmp_path: Path, way: str) -> None:
    """Whoever writes into it would be ended by somebody who opens it only for its size."""
    graph = omnigraph.init(tmp_path / "g", schema=SCHEMA)
    pipe = tmp_path / "people.jsonl"
    os.mkfifo(pipe)
    if way == "spark":
        with pytest.raises(OptionInvalid, match="is a pipe"):
            graph.load(pipe, "append", engine=way)
        return
    record = json.dumps({"type": "Person", "data": {"name": "Ann"}})
    with ThreadPoolExecutor(1) as writer:
        written = writer.submit(pipe.write_text, record + "\n")
        graph.load(pipe, "append", engine=way)
        assert written.result(60) == len(record) + 1
    assert people(graph) == {"Ann": (None, None)}


def test_planning_many_files_takes_time_in_proportion(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "graph", schema=SCHEMA)
    for number in range(4000):
        (tmp_path / f"{number}.csv").touch()
    catalog = graph.snapshot().catalog

    def seconds(pattern: str) -> float:
        began = time.process_time()
        cut({"Person": str(tmp_path / pattern)}, catalog)
        return time.process_time() - began

    assert seconds("*.csv") < 10 * 10 * max(seconds("1??.csv"), 0.001), (
        "planning grows with a square"
    )


def test_what_a_killed_load_staged_is_kept_piece_by_piece(spark: Any, tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "graph", schema=SCHEMA)
    lines = "".join(f'{{"name": "p{i}", "town": "{"x" * 50}"}}\n' for i in range(240))
    (tmp_path / "people.jsonl").write_text(lines)
    source = {"Person": str(tmp_path / "people.jsonl")}
    tuning = Tuning(split_bytes=1_000, waves_at_once=1, notes_apart=0)
    staged: list[int] = []

    class Killed(BaseException):
        pass

    def die(phase: str, done: int, total: int) -> None:
        staged.append(done)
        if done >= 4:
            raise Killed

    def load(progress: Any) -> Any:
        return bulk_load(
            graph._repo,
            spark,
            source,
            "append",
            "main",
            load_id="one",
            tuning=tuning,
            progress=progress,
        )

    with pytest.raises(Killed):
        load(die).prepare(graph.snapshot())
    assert staged[:2] == [2, 4], "progress is not noted as soon as each core has done a piece"
    again: list[int] = []
    work = load(lambda phase, done, total: again.append(done))
    work.prepare(graph.snapshot())
    work.finish()
    assert again[0] == 6, "what had been staged was staged again"


def test_what_spark_submit_was_told_is_what_runs(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent("""
        import omnigraph
        from pyspark.sql import SparkSession
        g = omnigraph.init("graph", schema="node Person { name: String @key }")
        g.load({"Person": [{"name": "Ada"}]}, engine="local")
        print(g.query("query q() { match { $p: Person } return { count(*) as n } }", engine="spark").rows)
        context = SparkSession.getActiveSession().sparkContext
        print("told", context.master, context.appName, context.getConf().get("spark.executor.memory"))
        """)
    )
    submit = Path(sys.executable).parent / "spark-submit"
    words = ["--master", "local[1]", "--name", "mine", "--conf", "spark.executor.memory=600m"]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    environment["OMNIGRAPH_SPARK_LOG"] = str(tmp_path / "log")
    done = subprocess.run(
        [str(submit), *words, str(program)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
        timeout=300,
        check=False,
    )
    assert "told local[1] mine 600m" in done.stdout, done.stderr[-2000:]
