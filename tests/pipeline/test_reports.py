"""The report of a load: kept with its commit, shown, and the same for a dry run; and graphs as tables of Spark SQL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import OmnigraphError
from omnigraph.cli.main import main
from tests.pipeline.planes import new_graph, person, write_lines


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_a_load_leaves_a_report_with_its_commit(
    engine: str, spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graph = new_graph(tmp_path, engine)
    file = write_lines(tmp_path / "people.jsonl", [person("ada@x"), person("eve@x")])
    tried = graph.load(str(file), engine=engine, dry_run=True)
    done = graph.load(str(file), engine=engine)
    found = omnigraph.open(graph.uri).commit("main").load
    assert (tried.nodes, tried.rows) == (done.nodes, done.rows)
    assert set(tried.cost) == set(done.cost) == set(found["cost"])
    assert found["rows"] == {"Person": {"new": 1, "changed": 1}}
    assert found["cost"]["engine"] == engine
    assert found["cost"]["bytes"] == file.stat().st_size
    if engine == "spark":
        assert found["cost"]["tasks"] >= 1
        assert set(found["cost"]["seconds"]) == {"stage", "verify"}
    assert main(["show", graph.uri, "main"]) == 0
    shown = capsys.readouterr().out
    assert f"{engine}: " in shown
    assert "2 in, 1 new, 1 changed" in shown


def test_a_graph_is_tables_of_spark_sql(spark: Any, tmp_path: Path) -> None:
    from omnigraph.pipeline.sql_tables import register_tables

    graph = new_graph(tmp_path, "sql")
    graph.create_branch("dev")
    graph.load([person("dev@x", age=7)], branch="dev", engine="local")
    assert "g.Person" in register_tables(spark, graph, "g")
    register_tables(spark, graph, "g_dev", branch="dev")
    register_tables(spark, graph, "g_then", at=graph.log()[0].id)
    assert spark.table("g.Person").count() == 2
    assert [
        r.age for r in spark.sql("SELECT age FROM g_dev.Person WHERE email = 'dev@x'").collect()
    ] == [7]
    joined = "SELECT p.name FROM g.LivesIn l JOIN g.Person p ON l.from = p.id JOIN g.City c ON l.to = c.id"
    assert [r.name for r in spark.sql(joined).collect()] == ["Ada"]
    graph.merge("dev")
    assert spark.table("g.Person").count() == 3, "it follows the branch"
    assert spark.table("g_then.Person").count() == 2, "it stays with a commit"
    plan = spark.table("g.Person").where("age > 3")._jdf.queryExecution().executedPlan().toString()
    assert "Filter" not in plan.split("BatchScan")[0], "filters are applied where rows are read"
    spark.sql("CREATE SCHEMA theirs")
    for name, said in (("theirs", "schema"), ("g@dev", "schema"), ("global_temp", "reserved")):
        with pytest.raises(OmnigraphError, match=said):
            register_tables(spark, graph, name)


def test_spark_finds_the_format_by_itself() -> None:
    """Spark looks for packages called so, and takes this name from them."""
    import pyspark_omnigraph

    assert pyspark_omnigraph.DefaultSource.name() == "omnigraph"
