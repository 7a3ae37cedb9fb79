"""What a branch changed, in Spark programs: batches between commits, and streams that go on after a restart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from omnigraph import Graph
from omnigraph.errors import OptionInvalid
from omnigraph.pipeline import changes as module
from omnigraph.pipeline.changes import Wanted, read_stretch, stretches
from omnigraph.pipeline.pinned import pin
from omnigraph.pipeline.streams import StreamLag, stream_lag
from tests.pipeline.patience import patiently
from tests.pipeline.planes import new_graph, person, write_lines

Told = tuple[str, str, str, Any, Any]


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return new_graph(tmp_path, "changes")


def write(graph: Graph, spark: Any = None) -> None:
    """An insertion, an update with a deletion, and something that concerns another type."""
    graph.load([person("new@x", age=5)], mode="append", engine="local")
    graph.mutate('query q() { update Person set { age: 37 } where email = "ada@x" }')
    graph.mutate('query q() { delete Person where email = "bob@x" }')
    graph.mutate('query q() { insert City { name: "Bern" } }')


def expected(graph: Graph, kind: str, after: str | None = None) -> list[Told]:
    feed = graph.changes(after=after, types=[kind])
    return sorted((c.commit, c.operation, c.id, _size(c.before), _size(c.after)) for c in feed)


def told(rows: list[Any]) -> list[Told]:
    return sorted((r.commit, r.operation, r.id, _size(r.before), _size(r.after)) for r in rows)


def _size(row: Any) -> int:
    """The one value the tests change, or that there is no row at all; comparable in any case."""
    return -2 if row is None else -1 if row["age"] is None else int(row["age"])


def reader(source: Any, graph: Graph, **options: str) -> Any:
    made = source.format("omnigraph").option("graph", graph.uri).option("type", "Person")
    return made.option("changes", "true").options(**options)


@pytest.fixture
def registered(spark: Any) -> Any:
    from omnigraph.pipeline.source import OmnigraphSource

    OmnigraphSource.register(spark)
    return spark


def test_a_batch_between_two_commits(graph: Graph, registered: Any) -> None:
    start = graph.log()[0].id
    write(graph)
    end = graph.log()[1].id
    graph.mutate('query q() { delete Person where email = "ada@x" }')
    batch = reader(registered.read, graph, after=start, until=end).load()
    found = batch.collect()
    assert told(found) == [row for row in expected(graph, "Person", start) if row[0] <= end]
    assert {row.operation for row in found} == {"insert", "update", "delete"}
    update = next(row for row in found if row.operation == "update")
    assert (update.before.email, update.before.age, update.after.age) == ("ada@x", 36, 37)
    everything = reader(registered.read, graph).load().collect()
    assert told(everything) == expected(graph, "Person")


def test_a_stream_goes_on_where_its_checkpoint_stands(
    graph: Graph, registered: Any, tmp_path: Path
) -> None:
    def drained(name: str) -> list[Any]:
        """What was seen after a new run of the query with the same checkpoint."""
        patiently(lambda: drain(name))
        rows: list[Any] = registered.read.parquet(str(tmp_path / "out")).collect()
        return rows

    def drain(name: str) -> None:
        stream = reader(registered.readStream, graph, commits_max="2").load()
        query = (
            stream.writeStream.format("parquet")
            .option("path", str(tmp_path / "out"))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .queryName(name)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        queries.append(query)

    queries: list[Any] = []
    assert told(drained("first")) == expected(graph, "Person")
    assert stream_lag(graph, queries[-1]) == StreamLag(0, 0.0)
    before = len(graph.log(limit=1000))
    write(graph)
    lag = stream_lag(graph, queries[-1])
    assert lag.commits == len(graph.log(limit=1000)) - before
    assert lag.seconds > 0
    graph.optimize()
    offsets = len(list((tmp_path / "checkpoint" / "offsets").glob("[0-9]*")))
    assert told(drained("second")) == expected(graph, "Person")
    more = len(list((tmp_path / "checkpoint" / "offsets").glob("[0-9]*"))) - offsets
    assert more == 2, "two commits for each micro-batch"


def test_the_lag_is_that_of_the_source_furthest_behind(
    graph: Graph, registered: Any, tmp_path: Path
) -> None:
    """Beside files and the changes of another graph."""
    other = new_graph(tmp_path, "other")
    (tmp_path / "in").mkdir()
    write_lines(tmp_path / "in" / "ids.json", [{"id": "z"}])
    ids = registered.readStream.schema("id string").json(str(tmp_path / "in"))
    last = graph.log()[0].id
    write(graph)
    now, then = graph.log(limit=1000)[0].id, {"until": last}
    for one in (reader(registered.readStream, other), reader(registered.readStream, graph)):
        ids = ids.union(one.load().select("id"))
    late = ids.union(reader(registered.readStream, graph, **then).load().select("id"))

    def lag(stream: Any, name: str) -> int:
        places = {"path": f"{tmp_path}/{name}", "checkpointLocation": f"{tmp_path}/{name} at"}
        query = stream.writeStream.format("parquet").options(**places)
        query = query.trigger(availableNow=True).start()
        query.awaitTermination()
        return stream_lag(graph, query).commits

    assert patiently(lambda: lag(ids, "now")) == 0
    commits = [commit.id for commit in graph.log(limit=1000)]
    assert patiently(lambda: lag(late, "late")) == commits.index(last) > commits.index(now)


def test_options_that_make_no_sense_are_refused(graph: Graph) -> None:
    from omnigraph.pipeline.source import OmnigraphSource

    options = {"graph": graph.uri, "type": "Person"}
    with pytest.raises(OptionInvalid, match="set the option 'changes'"):
        OmnigraphSource(options).streamReader(None)
    with pytest.raises(OptionInvalid, match="commits_max"):
        OmnigraphSource({**options, "changes": "true", "commits_max": "0"}).streamReader(None)


def test_large_commits_are_cut_by_fragments_and_small_ones_share_a_task(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BATCH_ROWS", 3)
    start = graph.log()[0].id
    for first in (0, 10):
        rows = [person(f"p{i}@x", age=i) for i in range(first, first + 10)]
        graph.load(rows, mode="append", engine="local")
    write(graph)
    snapshot = graph.snapshot()
    wanted = Wanted(pin(graph._repo, snapshot), "main", snapshot.catalog.nodes["Person"].table_id)
    pieces = list(stretches(wanted, wanted.feed(start, None)))
    found = [row for p in pieces for b in read_stretch(wanted, p) for row in b.to_pylist()]
    said = sorted(
        (r["commit"], r["operation"], r["id"], _size(r["before"]), _size(r["after"])) for r in found
    )
    assert said == expected(graph, "Person", start)
    assert [p.until for p in pieces] == sorted({p.until for p in pieces})
    assert len(pieces) < 6, "commits without many changes share a piece"


def test_rows_are_told_in_the_words_of_todays_schema(graph: Graph) -> None:
    start = graph.log()[0].id
    graph.load([person("old@x", age=3)], mode="append", engine="local")
    schema = graph.schema().replace("age: I32?", 'age: I32?\n    mood: String? @default("calm")')
    graph.apply_schema(schema)
    snapshot = graph.snapshot()
    wanted = Wanted(pin(graph._repo, snapshot), "main", snapshot.catalog.nodes["Person"].table_id)
    (piece,) = stretches(wanted, wanted.feed(start, None))
    (row,) = [row for batch in read_stretch(wanted, piece) for row in batch.to_pylist()]
    assert (row["after"]["email"], row["after"]["mood"]) == ("old@x", "calm")
