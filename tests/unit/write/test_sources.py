"""Everything a load may be given reads as the same rows: files, streams, tables, Python records."""

from __future__ import annotations

import datetime as dt
import gzip
import itertools
import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.dataset as pds
import pyarrow.parquet as pq
import pytest

import omnigraph
from omnigraph.errors import OptionInvalid
from omnigraph.graph import Graph
from omnigraph.storage.objects import locate, open_objects
from omnigraph.values.columns import split
from omnigraph.write.input.files import SourceNotFound, size_of
from omnigraph.write.input.options import Options
from omnigraph.write.input.problems import InputInvalid
from omnigraph.write.input.sources import source_of
from tests.support.s3server import S3Address

SCHEMA = """
node Person {
  name: String @key
  age: I32?
  score: F32?
  born: Date?
  seen: DateTime?
  shape: Vector(2)?
  tags: [String]?
  active: Bool?
}
edge Knows: Person -> Person { since: I64?  @key(src, dst) }
"""
PEOPLE: list[dict[str, Any]] = [
    {"name": "ann", "age": 40, "score": 0.5, "born": "1980-01-02", "active": True},
    {"name": "bob", "age": None, "seen": "2020-01-01T00:00:00Z", "tags": ["a", "b"]},
    {"name": "cy", "shape": [1.0, 2.5]},
]
KNOWS: list[dict[str, Any]] = [
    {"from": "ann", "to": "bob", "since": 2001},
    {"from": "bob", "to": "cy"},
]
RECORDS = [{"type": "Person", "data": row} for row in PEOPLE] + [
    {
        "edge": "Knows",
        "from": r["from"],
        "to": r["to"],
        "data": {k: v for k, v in r.items() if k == "since"},
    }
    for r in KNOWS
]
_names = itertools.count()


@pytest.fixture
def graph() -> Graph:
    return omnigraph.init(f"memory://sources-{next(_names)}", schema=SCHEMA)


def rows(graph: Graph, type_name: str) -> list[dict[str, Any]]:
    snapshot = graph.snapshot()
    kind = snapshot.catalog.entity(type_name)
    assert kind is not None
    table = snapshot.table_of(kind)
    found = table.scan(table.schema.names).to_pylist()
    return sorted(found, key=lambda row: str(row["id"]))


EXPECTED = [
    {
        "id": "ann", "name": "ann", "age": 40, "score": 0.5, "born": dt.date(1980, 1, 2), "seen": None,
        "shape": None, "tags": None, "active": True,
    },
    {
        "id": "bob", "name": "bob", "age": None, "score": None, "born": None,
        "seen": dt.datetime(2020, 1, 1, tzinfo=dt.UTC), "shape": None, "tags": ["a", "b"], "active": None,
    },
    {
        "id": "cy", "name": "cy", "age": None, "score": None, "born": None, "seen": None,
        "shape": [1.0, 2.5], "tags": None, "active": None,
    },
]  # fmt: skip


def check(graph: Graph, source: Any, **options: Any) -> None:
    """Load a source and compare everything that is stored."""
    done = graph.load(source, options=Options(**options) if options else None)
    assert (dict(done.nodes), dict(done.edges)) == ({"Person": 3}, {"Knows": 2})
    assert rows(graph, "Person") == EXPECTED
    ends = [(row["id"], row["src"], row["dst"], row["since"]) for row in rows(graph, "Knows")]
    assert ends == [
        ('["ann","bob"]', "ann", "bob", 2001),
        ('["bob","cy"]', "bob", "cy", None),
    ]


def lines(records: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def person_table() -> pa.Table:
    return pa.table(
        {
            "name": ["ann", "bob", "cy"],
            "age": pa.array([40, None, None], pa.int64()),
            "score": pa.array([0.5, None, None], pa.float64()),
            "born": pa.array([dt.date(1980, 1, 2), None, None]),
            "seen": pa.array(
                [None, dt.datetime(2020, 1, 1), None], pa.timestamp("ns", "Europe/Rome")
            ),
            "shape": pa.array([None, None, [1.0, 2.5]], pa.list_(pa.float64())),
            "tags": pa.array([None, ["a", "b"], None], pa.large_list(pa.large_string())),
            "active": [True, None, None],
        }
    ).set_column(
        4,
        "seen",
        pa.array([None, 1577836800000, None]).cast(pa.timestamp("ms", "UTC")),
    )


def knows_table() -> pa.Table:
    return pa.table({"from": ["ann", "bob"], "to": ["bob", "cy"], "since": [2001, None]})


# --- graph records -------------------------------------------------------------------------------------------------


def test_a_file(graph: Graph, tmp_path: Path) -> None:
    (tmp_path / "g.jsonl").write_bytes(lines(RECORDS))
    check(graph, str(tmp_path / "g.jsonl"))


def test_a_path_object_and_a_file_address(graph: Graph, tmp_path: Path) -> None:
    (tmp_path / "g h.jsonl").write_bytes(lines(RECORDS))
    check(graph, tmp_path / "g h.jsonl")
    check(graph, f"file://{tmp_path}/g%20h.jsonl")


@pytest.mark.parametrize("ending", [".gz", ".zst"])
def test_a_compressed_file(graph: Graph, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"g.jsonl{ending}"
    with pa.CompressedOutputStream(str(path), {".gz": "gzip", ".zst": "zstd"}[ending]) as out:
        out.write(lines(RECORDS))
    check(graph, str(path))


def test_a_compressed_file_cut_short_is_refused(graph: Graph, tmp_path: Path) -> None:
    packed = gzip.compress(lines(RECORDS * 1000), mtime=0)
    (tmp_path / "g.jsonl.gz").write_bytes(packed[: len(packed) // 2])
    with pytest.raises(InputInvalid):
        graph.load(str(tmp_path / "g.jsonl.gz"))


def test_a_pattern_of_files_in_order_of_name(graph: Graph, tmp_path: Path) -> None:
    (tmp_path / "2.jsonl").write_bytes(lines(RECORDS[:3]))
    (tmp_path / "1.jsonl").write_bytes(lines(RECORDS[3:]))  # edges before their nodes
    check(graph, str(tmp_path / "*.jsonl"))


def test_objects_in_a_bucket(graph: Graph, s3: S3Address) -> None:
    folder = f"sources-{uuid.uuid4().hex}"
    objects = open_objects(locate(s3.uri(folder)))
    objects.put("in/1.jsonl", lines(RECORDS[3:]))
    objects.put("in/2.jsonl.gz", gzip.compress(lines(RECORDS[:3])))
    objects.put("other/3.jsonl", b"not JSON")
    sink = pa.BufferOutputStream()
    pq.write_table(person_table(), sink)
    objects.put("in/p.parquet", sink.getvalue().to_pybytes())
    check(graph, s3.uri(f"{folder}/in/*.jsonl*"))
    check(graph, {"Person": s3.uri(f"{folder}/in/p.parquet"), "Knows": KNOWS})
    assert size_of(s3.uri(f"{folder}/in/1.jsonl")) == len(lines(RECORDS[3:]))
    for missing in (f"{folder}/none.jsonl", f"{folder}/none/*.jsonl"):
        with pytest.raises(SourceNotFound):
            graph.load(s3.uri(missing))


def test_a_problem_names_its_file(graph: Graph, tmp_path: Path) -> None:
    (tmp_path / "1.jsonl").write_bytes(lines(RECORDS))
    (tmp_path / "2.jsonl").write_bytes(b"\n" + b'{"type":"Person","data":{"name":5}}')
    with pytest.raises(InputInvalid) as caught:
        graph.load(str(tmp_path / "*.jsonl"))
    (problem,) = caught.value.details["violations"]
    assert (problem["file"], problem["line"]) == (str(tmp_path / "2.jsonl"), 2)
    assert "line 2" in str(caught.value)


def test_a_broken_rule_names_file_and_line(graph: Graph, tmp_path: Path) -> None:
    (tmp_path / "1.jsonl").write_bytes(lines(RECORDS))
    (tmp_path / "2.jsonl").write_bytes(b'{"edge":"Knows","from":"ann","to":"nobody"}\n')
    with pytest.raises(omnigraph.OmnigraphError) as caught:
        graph.load(str(tmp_path / "*.jsonl"))
    (problem,) = caught.value.details["violations"]
    assert (problem["file"], problem["line"]) == (str(tmp_path / "2.jsonl"), 1)


def test_what_is_not_there_is_said(graph: Graph, tmp_path: Path) -> None:
    for missing in (tmp_path / "no.jsonl", tmp_path / "*.jsonl", tmp_path):
        with pytest.raises(SourceNotFound):
            graph.load(str(missing))


def test_a_stream_and_records_and_an_iterator(graph: Graph, tmp_path: Path) -> None:
    (tmp_path / "g").write_bytes(lines(RECORDS))
    with (tmp_path / "g").open("rb") as stream:
        check(graph, stream)
    check(graph, RECORDS)
    check(graph, iter(RECORDS))


def test_python_values_in_records(graph: Graph) -> None:
    graph.load(
        [
            {
                "type": "Person",
                "data": {
                    "name": "ann",
                    "age": np.int64(3),
                    "born": dt.date(2000, 1, 1),
                    "seen": dt.datetime(2020, 1, 1, 12, tzinfo=dt.timezone(dt.timedelta(hours=2))),
                    "shape": np.array([1.0, 2.0]),
                    "score": float("inf"),
                },
            }
        ]
    )
    (row,) = rows(graph, "Person")
    assert (row["age"], row["born"], row["shape"]) == (3, dt.date(2000, 1, 1), [1.0, 2.0])
    assert row["seen"] == dt.datetime(2020, 1, 1, 10, tzinfo=dt.UTC)
    assert row["score"] == float("inf")


def test_a_record_that_is_no_mapping_is_named_by_its_number(graph: Graph) -> None:
    with pytest.raises(InputInvalid) as caught:
        graph.load([RECORDS[0], 5, {"type": "Person", "data": {"name": object()}}])
    assert [p["line"] for p in caught.value.details["violations"]] == [2, 3]


# --- rows by type ----------------------------------------------------------------------------------------------------


def test_lists_of_rows(graph: Graph) -> None:
    check(graph, {"Person": PEOPLE, "Knows": KNOWS})
    check(graph, {"Knows": iter(KNOWS), "node:Person": tuple(PEOPLE)})


def test_arrow_in_every_shape(graph: Graph) -> None:
    people, knows = person_table(), knows_table()
    check(graph, {"Person": people, "Knows": knows})
    check(graph, {"Person": people.to_batches()[0], "Knows": knows.to_reader()})
    check(graph, {"Person": pds.dataset(people), "knows": knows})


class Exporter:
    """What polars and others offer: an Arrow stream under the common protocol."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


def test_anything_with_an_arrow_stream(graph: Graph) -> None:
    views = person_table().set_column(0, "name", pa.array(["ann", "bob", "cy"], pa.string_view()))
    coded = knows_table().set_column(0, "from", pa.array(["ann", "bob"]).dictionary_encode())
    check(graph, {"Person": Exporter(views), "Knows": Exporter(coded)})


def test_files_of_every_kind(graph: Graph, tmp_path: Path) -> None:
    pq.write_table(person_table(), tmp_path / "p.parquet")
    pv.write_csv(knows_table(), tmp_path / "k.csv")
    check(graph, {"Person": tmp_path / "p.parquet", "Knows": str(tmp_path / "k.csv")})
    with (
        pa.OSFile(str(tmp_path / "p.arrow"), "wb") as sink,
        pa.ipc.new_file(sink, person_table().schema) as writer,
    ):
        writer.write_table(person_table())
    (tmp_path / "k.ndjson.gz").write_bytes(gzip.compress(lines(KNOWS)))
    check(graph, {"Person": tmp_path / "p.arrow", "Knows": tmp_path / "k.ndjson.gz"})


def test_csv_cells(graph: Graph, tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text(
        "name,age,score,born,seen,shape,tags,active\n"
        "ann,40,0.5,1980-01-02,,,,true\n"
        'bob,,,,2020-01-01T00:00:00Z,,"[""a"",""b""]",\n'
        'cy,,,,,"[1, 2.5]",,\n'
    )
    (tmp_path / "k.tsv").write_text("from\tto\tsince\nann\tbob\t2001\nbob\tcy\t\n")
    check(graph, {"Person": tmp_path / "p.csv", "Knows": tmp_path / "k.tsv"})


def test_an_empty_cell_is_null_and_a_quoted_one_an_empty_text(tmp_path: Path) -> None:
    graph = omnigraph.init(
        f"memory://sources-{next(_names)}", schema="node T { a: String @key  b: String? }"
    )
    (tmp_path / "t.csv").write_text('a,b\nx,\ny,""\nz,"two\nlines"\n')
    graph.load({"T": tmp_path / "t.csv"})
    assert [row["b"] for row in rows(graph, "T")] == [None, "", "two\nlines"]


@pytest.mark.parametrize(
    ("cells", "line"), [("ann,4O\n", 2), ("ann,1\nbob,1.5\n", 3), ("ann,1\nbob,99999999999\n", 3)]
)
def test_a_csv_cell_that_does_not_fit_is_named_by_line(
    graph: Graph, tmp_path: Path, cells: str, line: int
) -> None:
    (tmp_path / "p.csv").write_text("name,age\n" + cells)
    with pytest.raises(InputInvalid, match="age") as caught:
        graph.load({"Person": tmp_path / "p.csv"})
    assert caught.value.details["violations"][0]["line"] == line


def test_a_column_left_out_keeps_and_a_null_cell_clears(graph: Graph) -> None:
    graph.load({"Person": PEOPLE})
    change = pa.table({"name": ["ann", "bob"], "age": pa.array([None, 7], pa.int32())})
    graph.load({"Person": change})
    assert [(r["age"], r["born"]) for r in rows(graph, "Person")][:2] == [
        (None, dt.date(1980, 1, 2)),
        (7, None),
    ]


def test_a_null_cell_keeps_if_asked_to(graph: Graph) -> None:
    graph.load({"Person": PEOPLE})
    change = pa.table({"name": ["ann", "bob"], "age": pa.array([None, 7], pa.int32())})
    graph.load({"Person": change}, options=Options(nulls="keep"))
    assert [r["age"] for r in rows(graph, "Person")] == [40, 7, None]
    with pytest.raises(OptionInvalid, match="nulls"):
        Options(nulls="drop")


def test_date_times_without_a_zone_are_refused_unless_one_is_assumed(graph: Graph) -> None:
    naive = dt.datetime(2020, 1, 1, 12)
    table = pa.table({"name": ["ann"], "seen": pa.array([naive])})
    records = [{"type": "Person", "data": {"name": "ann", "seen": naive}}]
    for source in ({"Person": table}, records):
        with pytest.raises(InputInvalid, match="time zone") as refused:
            graph.load(source)
        assert refused.value.help_on("python").endswith("Options(assume_timezone='Europe/Rome')")
        assert refused.value.help_on("cli").startswith(
            "Say in which zone such times are: --assume-timezone"
        )
        graph.load(source, options=Options(assume_timezone="Europe/Rome"))
        assert rows(graph, "Person")[0]["seen"] == dt.datetime(2020, 1, 1, 11, tzinfo=dt.UTC)


def test_the_index_of_a_data_frame_is_a_column_if_it_has_a_name(graph: Graph) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"name": ["ann", "bob"], "age": [40, 7]})
    graph.load({"Person": frame.set_index("name")})
    assert [(r["name"], r["age"]) for r in rows(graph, "Person")] == [("ann", 40), ("bob", 7)]
    graph.load({"Person": frame[frame["age"] < 10].assign(age=8)})
    assert [r["age"] for r in rows(graph, "Person")] == [40, 8]
    with pytest.raises(OptionInvalid, match="both the index and a column are named name"):
        graph.load({"Person": frame.set_index("name", drop=False)})
    with pytest.raises(InputInvalid, match="Person has no property 'place'"):
        graph.load({"Person": frame.rename_axis("place")})
    with pytest.raises(OptionInvalid, match="a pandas Series is not a table"):
        graph.load({"Person": frame["name"]})


def test_what_is_no_table_is_an_error_of_the_input(graph: Graph) -> None:
    pandas = pytest.importorskip("pandas")
    twice = pandas.DataFrame([["ann", "bob"]], columns=["name", "name"])
    mixed = pandas.DataFrame({"name": ["ann", "bob"], "age": [1, "x"]})
    for frame, why in ((twice, "Duplicate column names"), (mixed, "column age")):
        with pytest.raises(InputInvalid, match=why):
            graph.load({"Person": frame})


def test_words_of_polars_and_tables_without_rows_are_read(graph: Graph) -> None:
    polars = pytest.importorskip("polars")
    names = polars.Series(["ann", "bob", "ann"], dtype=polars.Categorical).unique(
        maintain_order=True
    )
    graph.load({"Person": polars.DataFrame({"name": names, "age": [1, 2]})})
    assert [(r["name"], r["age"]) for r in rows(graph, "Person")] == [("ann", 1), ("bob", 2)]
    graph.load({"Person": pa.table({"name": pa.array([], pa.float64())})})
    assert len(rows(graph, "Person")) == 2


def test_the_nulls_of_pandas_are_null(graph: Graph) -> None:
    pandas = pytest.importorskip("pandas")
    missing = {"name": "ann", "age": pandas.NA, "seen": pandas.NaT}
    for source in ([{"type": "Person", "data": missing}], {"Person": [missing]}):
        graph.load({"Person": [{"name": "ann", "age": 3, "seen": "2020-01-01T00:00:00Z"}]})
        graph.load(source)
        [ann] = rows(graph, "Person")
        assert (ann["age"], ann["seen"]) == (None, None)
    text = "query q($a: I32?, $s: DateTime?) { match { $p: Person } return { $a as a, $s as s } }"
    given = {"a": pandas.NA, "s": pandas.NaT}
    assert list(graph.query(text, given)) == [{"a": None, "s": None}]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_a_column_without_a_zone_has_the_rules_of_the_zone_in_all_years(
    graph: Graph, unit: str
) -> None:
    """Arrow alone knows no summer time after 2037."""
    given = [dt.datetime(2040, 7, 1, 12), None, dt.datetime(1960, 7, 1, 12)]
    table = pa.table({"name": ["ann", "bob", "cy"], "seen": pa.array(given, pa.timestamp(unit))})
    graph.load({"Person": table}, options=Options(assume_timezone="Europe/Rome"))
    assert [row["seen"] and row["seen"].hour for row in rows(graph, "Person")] == [10, None, 11]
    twice = pa.table({"name": ["ann", "bob"], "seen": [given[0], dt.datetime(2020, 10, 25, 2, 30)]})
    with pytest.raises(InputInvalid, match=r"line 2: .* happens once in Europe/Rome"):
        graph.load({"Person": twice}, options=Options(assume_timezone="Europe/Rome"))


def test_only_zones_that_exist_are_assumed() -> None:
    for name in ("Rome", "+02:00", "../UTC", ""):
        with pytest.raises(OptionInvalid, match=r"unknown time zone|not an offset"):
            Options(assume_timezone=name)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_midnights_without_a_zone_are_dates(graph: Graph, unit: str) -> None:
    kind = pa.timestamp(unit)
    days = pa.array([dt.datetime(2020, 2, 29), None, dt.datetime(1901, 1, 1)], kind)
    graph.load({"Person": pa.table({"name": ["ann", "bob", "cy"], "born": days})})
    assert [r["born"] for r in rows(graph, "Person")] == [
        dt.date(2020, 2, 29),
        None,
        dt.date(1901, 1, 1),
    ]
    noon = pa.array([dt.datetime(2020, 1, 1), dt.datetime(1901, 1, 1, 12)], kind)
    with pytest.raises(InputInvalid, match=r"line 2: 'born' of type Date.*without a time of day"):
        graph.load({"Person": pa.table({"name": ["ann", "bob"], "born": noon})})
    zoned = pa.array([dt.datetime(2020, 1, 1)], pa.timestamp(unit, "UTC"))
    with pytest.raises(InputInvalid, match="expected a date"):
        graph.load({"Person": pa.table({"name": ["ann"], "born": zoned})})


def bad_tables() -> Iterator[tuple[pa.Table, str, int | None]]:
    names = ["a", "b"]
    yield pa.table({"name": names, "colour": [1, 2]}), "colour", None
    yield pa.table({"name": names, "agee": [1, 2]}), "did you mean 'age'", None
    yield pa.table({"name": [1, 2]}), "name", None
    yield pa.table({"name": names, "age": [1, 2**40]}), "age", 2
    yield pa.table({"name": names, "age": [1.0, 1.5]}), "age", 2
    yield pa.table({"name": names, "age": ["1", "2"]}), "age", None
    yield pa.table({"name": names, "score": [1.0, 1e39]}), "F32", 2
    yield pa.table({"name": names, "born": ["2020-01-01", "2020-02-30"]}), "born", 2
    yield pa.table({"name": names, "seen": ["2020-01-01", "soon"]}), "seen", 2
    yield pa.table({"name": names, "shape": [[1.0, 2.0], [1.0]]}), "2 numbers, got 1", 2
    yield pa.table({"name": names, "shape": [[1.0, 2.0], [1.0, None]]}), "shape", 2
    yield pa.table({"name": names, "tags": [["x"], ["y", None]]}), "tags", 2
    yield pa.table({"name": names, "active": [1, 0]}), "active", None
    yield pa.table({"name": names, "_rowid": [1, 0]}), "reserved", None


@pytest.mark.parametrize(("table", "words", "line"), list(bad_tables()))
def test_a_table_that_does_not_fit_is_refused(
    graph: Graph, table: pa.Table, words: str, line: int | None
) -> None:
    with pytest.raises(InputInvalid, match=words) as caught:
        graph.load({"Person": table})
    assert caught.value.details["violations"][0]["line"] == line
    assert rows(graph, "Person") == []


def test_edges_need_both_ends(graph: Graph) -> None:
    graph.load({"Person": PEOPLE})
    with pytest.raises(InputInvalid, match="'to'"):
        graph.load({"Knows": pa.table({"from": ["ann"]})})
    with pytest.raises(InputInvalid, match="'to' has no value") as caught:
        graph.load({"Knows": pa.table({"from": ["ann", "bob"], "to": ["bob", None]})})
    assert caught.value.details["violations"][0]["line"] == 2


def test_whole_numbers_identify_ends(tmp_path: Path) -> None:
    graph = omnigraph.init(
        f"memory://sources-{next(_names)}", schema="node N { n: I64 @key }\nedge E: N -> N"
    )
    graph.load({"N": pa.table({"n": [1, 2]}), "E": pa.table({"src": [1], "dst": [2]})})
    assert [(row["src"], row["dst"]) for row in rows(graph, "E")] == [("1", "2")]


def test_what_cannot_be_loaded_is_said(graph: Graph, tmp_path: Path) -> None:
    for wrong in (5, b"{}", None):
        with pytest.raises(OptionInvalid):
            graph.load(wrong)
    with pytest.raises(OptionInvalid, match="which type its rows are of"):
        graph.load(person_table())
    with pytest.raises(OptionInvalid, match="which type its rows are of"):
        graph.load(str(tmp_path / "x.parquet"))
    with pytest.raises(InputInvalid, match="did you mean 'Person'"):
        graph.load({"Persn": []})
    with pytest.raises(OptionInvalid):
        graph.load({"Person": 5})
    (tmp_path / "x.parquet").write_bytes(b"nonsense")
    with pytest.raises(InputInvalid, match=r"x\.parquet"):
        graph.load({"Person": tmp_path / "x.parquet"})
    (tmp_path / "x.xlsx").write_bytes(b"")
    with pytest.raises(OptionInvalid, match="xlsx"):
        graph.load({"Person": tmp_path / "x.xlsx"})


def test_large_columns_are_cut_before_offsets_overflow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omnigraph.values.columns.CHUNK_BYTES_MAX", 1000)
    column = pa.array(["x" * 100] * 64, pa.large_string())
    pieces = split(column)
    assert len(pieces) == 8
    assert max(piece.nbytes for piece in pieces) <= 1000
    assert pa.concat_arrays(pieces) == column


def test_a_wide_type_is_loaded() -> None:
    names = [f"p{i:04}" for i in range(1500)]
    body = " ".join(f"{name}: I64?" for name in names)
    graph = omnigraph.init(
        f"memory://sources-{next(_names)}", schema=f"node W {{ k: String @key {body} }}"
    )
    graph.load([{"type": "W", "data": {"k": f"r{i}", **dict.fromkeys(names, i)}} for i in range(5)])
    found = rows(graph, "W")
    assert [found[i]["p1499"] for i in range(5)] == list(range(5))


def test_a_source_knows_whether_it_can_be_read_again() -> None:
    options = Options()
    assert source_of("x.jsonl", options).repeatable
    assert source_of([{}], options).repeatable
    assert not source_of(iter([{}]), options).repeatable
    assert source_of({"A": pa.table({"a": [1]})}, options).repeatable
    assert not source_of({"A": iter([{}])}, options).repeatable


# --- what nobody has checked -----------------------------------------------------------------------------------------


def not_utf8(*texts: bytes) -> pa.Array:
    return pa.array(texts, pa.binary()).view(pa.string())


BROKEN = {
    "a key": pa.table({"name": not_utf8(b"ann", b"bob", b"\xff\xfe")}),
    "an item of a list": pa.table(
        {
            "name": ["ann", "bob", "cy"],
            "tags": pa.ListArray.from_arrays([0, 1, 2, 3], not_utf8(b"a", b"b", b"\xc3")),
        }
    ),
    "a text that is named": pa.table(
        {"name": pa.DictionaryArray.from_arrays(pa.array([0, 1]), not_utf8(b"ann", b"\xc3"))}
    ),
}


@pytest.mark.parametrize("kind", BROKEN)
@pytest.mark.parametrize("given", ["table", "arrow", "parquet"])
def test_texts_that_are_no_texts_are_refused(
    tmp_path: Path, graph: Graph, given: str, kind: str
) -> None:
    """Whatever was written down could not be read again."""
    table = BROKEN[kind]
    source: Any = table
    if given == "arrow":
        source = tmp_path / "people.arrow"
        with pa.ipc.new_file(source, table.schema) as writer:
            writer.write_table(table)
    elif given == "parquet":
        source = tmp_path / "people.parquet"
        pq.write_table(table, source)
    with pytest.raises(InputInvalid, match="UTF8") as refused:
        graph.load({"Person": source})
    if kind == "a key":  # what is in a list or named is nobody's own
        assert [found["line"] for found in refused.value.details["violations"]] == [3]
    assert rows(graph, "Person") == []


def test_values_that_are_named_and_not_there_are_refused(graph: Graph) -> None:
    indices = pa.array([0, 1, 9])
    names = pa.DictionaryArray.from_arrays(indices, pa.array(["ann", "bob"]), safe=False)
    with pytest.raises(InputInvalid, match="out of bounds") as refused:
        graph.load({"Person": pa.table({"name": names})})
    assert [found["line"] for found in refused.value.details["violations"]] == [3]


SCHEDULE = "node Event { name: String @key  at: DateTime?  day: Date? }"
TOO_FAR: dict[str, pa.Array] = {
    "seconds": pa.array([2**62], pa.timestamp("s", "UTC")),
    "milliseconds": pa.array([2**61 + 5], pa.timestamp("ms", "UTC")),
    "microseconds": pa.array([2**62], pa.timestamp("us", "UTC")),
    "days": pa.array([2**31 - 1], pa.date32()),
    "days before": pa.array([-(2**31)], pa.date32()),
    "days in milliseconds": pa.array([2**63 - 2**63 % 86_400_000 - 86_400_000], pa.date64()),
    "whole numbers": pa.array([2**62]),
    "negative numbers": pa.array([-(2**63)]),
    "seconds without a zone": pa.array([2**62 - 2**62 % 86_400], pa.timestamp("s")),
}


@pytest.mark.parametrize("column", ["at", "day"])
@pytest.mark.parametrize("kind", TOO_FAR)
def test_times_that_are_too_far_are_refused(kind: str, column: str) -> None:
    """None wraps around to a time that is not."""
    graph = omnigraph.init(f"memory://times-{next(_names)}", schema=SCHEDULE)
    with pytest.raises(InputInvalid) as refused:
        graph.load({"Event": pa.table({"name": ["a"], column: TOO_FAR[kind]})})
    (found,) = refused.value.details["violations"]
    assert found["property"] == column
    assert rows(graph, "Event") == []


def test_a_column_that_cannot_be_converted_is_refused(graph: Graph) -> None:
    named = pa.DictionaryArray.from_arrays(pa.array([0]), pa.array([["a"]]))
    with pytest.raises(InputInvalid, match="'tags' cannot be read"):
        graph.load({"Person": pa.table({"name": ["ann"], "tags": named})})
