"""Wide tables, duplicates and change records: the same state by both planes, and by a reference in plain Python."""

from __future__ import annotations

import json
import random
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph
from omnigraph import Graph, OmnigraphError
from omnigraph.cli.main import main
from omnigraph.pipeline import load as bulk
from omnigraph.pipeline.load import Tuning
from omnigraph.write.input.change_records import DEBEZIUM, DELTA, ChangeFormat
from omnigraph.write.input.mapping import RowMap, Wide
from omnigraph.write.input.options import Options
from omnigraph.write.repeats import Repeats
from tests.pipeline.planes import state_of

ENGINES = ("local", "spark")
SHOP = """
node Customer { email: String @key  name: String?  vip: Bool? }
node Visit { site: String  day: Date  @key(site, day) }
node Tag { name: String @key }
edge Made: Customer -> Visit { price: F64?  source: String?  @key(src, dst) }
edge Likes: Customer -> Tag { @key(src, dst) }
"""
PIPELINE = """
graph: GRAPH
mode: merge
duplicates: first
sources:
  - path: orders.FORM
    json: [cust, name, site, day, cents, tags]
    rows:
      - type: Customer
        values: {email: lower(cust), name: name, vip: true}
      - type: Visit
        values: {site: site, day: day}
      - type: Tag
        each: {tag: "string_split(tags, ' ')"}
        where: tag <> ''
        values: {name: upper(tag)}
      - type: Made
        values: {from: lower(cust), to: {site: site, day: day}, price: CAST(cents AS INT) / 100, source: "'web'"}
      - type: Likes
        each: {tag: "string_split(tags, ' ')"}
        where: tag <> ''
        values: {from: lower(cust), to: upper(tag)}
"""


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even small files are cut into several pieces, so that rows of one id lie in several."""
    monkeypatch.setattr(bulk, "Tuning", partial(Tuning, split_bytes=600))


def orders(rng: random.Random, count: int) -> list[dict[str, Any]]:
    return [
        {
            "cust": rng.choice(["A@x", "a@X", "Bob@y", "c@z"]),
            "name": rng.choice(["Ada", "Bob", None]),
            "site": rng.choice(["rome", "oslo"]),
            "day": f"2024-05-0{rng.randint(1, 9)}",
            "cents": rng.randint(0, 10_000),
            "tags": rng.choice(["red blue", "red", "", None]),
        }
        for _ in range(count)
    ]


def write(folder: Path, form: str, rows: list[dict[str, Any]]) -> None:
    if form == "jsonl":
        (folder / "orders.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif form == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), folder / "orders.parquet")
    else:
        cells = [",".join("" if v is None else str(v) for v in row.values()) for row in rows]
        (folder / "orders.csv").write_text("\n".join([",".join(rows[0]), *cells]) + "\n")


def expected(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """What the mapping says, in plain Python."""
    customers: dict[str, Any] = {}
    made: dict[tuple[str, str], float] = {}
    likes = set()
    for row in rows:
        email = row["cust"].lower()
        customers.setdefault(email, row["name"])
        made.setdefault((email, f"{row['site']} {row['day']}"), row["cents"] / 100)
        likes |= {(email, tag.upper()) for tag in (row["tags"] or "").split()}
    return {"customers": customers, "made": made, "likes": likes}


def told(graph: Graph) -> dict[str, Any]:
    state = state_of(graph)
    days = {row["id"]: f"{row['site']} {row['day'].isoformat()}" for row in state["Visit"]}
    assert {row["name"] for row in state["Tag"]} == {row["dst"] for row in state["Likes"]}
    assert {row["source"] for row in state["Made"]} == {"web"}
    assert all(row["vip"] for row in state["Customer"])
    return {
        "customers": {row["email"]: row["name"] for row in state["Customer"]},
        "made": {(row["src"], days[row["dst"]]): row["price"] for row in state["Made"]},
        "likes": {(row["src"], row["dst"]) for row in state["Likes"]},
    }


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_a_pipeline_file_maps_a_wide_table_the_same_on_both_planes(
    form: str, spark: Any, small_pieces: None, tmp_path: Path
) -> None:
    rows = orders(random.Random(form), 60)
    write(tmp_path, form, rows)
    for engine in ENGINES:
        graph = omnigraph.init(tmp_path / engine, schema=SHOP)
        file = tmp_path / f"{engine}.yaml"
        file.write_text(PIPELINE.replace("GRAPH", graph.uri).replace("FORM", form))
        assert main(["pipeline", "run", str(file), "--engine", engine]) == 0
        assert told(omnigraph.open(graph.uri)) == expected(rows), engine


def test_a_dataframe_is_mapped_like_a_table(spark: Any, tmp_path: Path) -> None:
    rows = [("Ada", ["x", "y"]), ("Bob", []), ("Cy", None)]
    frame = spark.createDataFrame(rows, "name string, tags array<string>")
    maps = (
        RowMap("Customer", (("email", "name || '@x'"), ("name", "name"))),
        RowMap("Tag", (("name", "tag"),), each=(("tag", "tags"),)),
        RowMap("Likes", (("from", "name || '@x'"), ("to", "tag")), each=(("tag", "tags"),)),
    )
    for engine, source in (("spark", frame), ("local", frame.toArrow())):
        graph = omnigraph.init(tmp_path / engine, schema=SHOP)
        result = graph.load(Wide(source, maps), engine=engine)
        assert (dict(result.nodes), dict(result.edges)) == ({"Customer": 3, "Tag": 2}, {"Likes": 2})


def test_what_is_wrong_with_a_mapping_is_named_on_both_planes(spark: Any, tmp_path: Path) -> None:
    lines = ["cust,n", *(f"p{i}@x,{i}" for i in range(50)), "last@x,many"]
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
    source = str(tmp_path / "rows.csv")
    number = RowMap("Customer", (("email", "cust"), ("vip", "CAST(n AS INT) > 3")))
    unknown = RowMap("Customer", (("email", "custom"),))
    for engine in ENGINES:
        graph = omnigraph.init(tmp_path / engine, schema=SHOP)
        with pytest.raises(OmnigraphError, match="line 52") as refused:
            graph.load(Wide(source, [number]), engine=engine)
        assert refused.value.details["violations"][0]["rule"] == "expression"
        with pytest.raises(OmnigraphError, match='"custom" not found') as refused:
            graph.load(Wide(source, [unknown]), engine=engine)
        assert refused.value.code == "mapping_invalid"


# --- duplicates ------------------------------------------------------------------------------------------------------

ITEM = """
node Item { key: String @key  value: I32?  version: I64?  gone: Bool? }
edge Next: Item -> Item { @key(src, dst) }
"""


@pytest.mark.parametrize("keep", ["first", "last", "refuse"])
@pytest.mark.parametrize("mode", ["merge", "append", "overwrite"])
def test_duplicates_are_kept_or_refused_alike(
    keep: str, mode: str, spark: Any, small_pieces: None, tmp_path: Path
) -> None:
    rng = random.Random(keep + mode)
    rows: list[dict[str, Any]]
    rows = [{"key": f"k{rng.randint(0, 30)}", "value": n} for n in range(100)]
    file = tmp_path / "items.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    kept: dict[str, int] = {}
    for row in rows if keep == "last" else reversed(rows):
        kept[row["key"]] = row["value"]
    for engine in ENGINES:
        graph = omnigraph.init(tmp_path / engine, schema=ITEM)
        options = Options(repeats=Repeats(keep))
        if keep == "refuse":
            with pytest.raises(OmnigraphError):
                graph.load({"Item": str(file)}, mode, engine=engine, options=options)
            continue
        graph.load({"Item": str(file)}, mode, engine=engine, options=options)
        assert {row["key"]: row["value"] for row in state_of(graph)["Item"]} == kept, engine


def test_rows_of_dataframes_are_grouped_without_what_only_a_local_session_has(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark Connect has no RDDs. The ids of edges of one partition each differ all the same."""

    def absent(_: Any) -> Any:
        raise AttributeError("rdd")

    graph = omnigraph.init(
        tmp_path / "graph",
        schema="node P { name: String @key  v: I64? }  edge K: P -> P  edge L: P -> P",
    )
    names = spark.createDataFrame([("a", 1), ("a", 2), ("b", 1)], "name string, v long")
    edges = [spark.sql("SELECT 'a' AS `from`, 'b' AS `to`").coalesce(1) for _ in range(2)]
    monkeypatch.setattr(type(names), "rdd", property(absent))
    done = graph.load(
        {"P": names, "K": edges[0], "L": edges[1]}, options=Options(repeats=Repeats("last", "v"))
    )
    assert (done.nodes, done.edges) == ({"P": 3}, {"K": 1, "L": 1})
    assert [row["v"] for row in state_of(graph)["P"]] == [2, 1]
    ids = [
        graph.snapshot().table_of(kind).scan(["id"])["id"][0].as_py()
        for kind in graph.snapshot().catalog.edges.values()
    ]
    assert len(set(ids)) == 2


def test_of_a_dataframe_the_last_is_known_by_a_version(spark: Any, tmp_path: Path) -> None:
    frame = spark.createDataFrame([("a", 1, 2), ("a", 2, 1)], "key string, value int, version long")
    graph = omnigraph.init(tmp_path / "graph", schema=ITEM)
    with pytest.raises(OmnigraphError, match="no order"):
        graph.load({"Item": frame}, options=Options(repeats=Repeats("last")))
    graph.load({"Item": frame}, options=Options(repeats=Repeats(version="version")))
    assert [row["value"] for row in state_of(graph)["Item"]] == [1]


# --- change records ------------------------------------------------------------------------------------------------


def history(rng: random.Random, count: int) -> list[dict[str, Any]]:
    """Changes of a few items, in order."""
    return [
        {
            "op": rng.choice("iud"),
            "at": at,
            "key": f"k{rng.randint(0, 7)}",
            "value": rng.randint(0, 99),
        }
        for at in range(1, count + 1)
    ]


def as_table(form: str, changes: list[dict[str, Any]]) -> pa.Table:
    """Change records in a form other systems write."""
    if form == "debezium":
        kind = pa.struct([("key", pa.string()), ("value", pa.int32())])
        images = [{"key": c["key"], "value": c["value"]} for c in changes]
        pairs = list(zip(changes, images, strict=True))
        return pa.table(
            {
                "op": [c["op"].replace("i", "c") for c in changes],
                "ts_ms": [c["at"] for c in changes],
                "before": pa.array([i if c["op"] == "d" else None for c, i in pairs], kind),
                "after": pa.array([None if c["op"] == "d" else i for c, i in pairs], kind),
            }
        )
    words = {"i": "insert", "u": "update_postimage", "d": "delete"}
    table = pa.table(
        {
            "key": [c["key"] for c in changes],
            "value": pa.array([c["value"] for c in changes], pa.int32()),
        }
    )
    if form == "delta":
        said = [words[c["op"]] for c in changes]
        return table.append_column("_change_type", pa.array(said)).append_column(
            "_commit_version", pa.array([c["at"] for c in changes])
        )
    return table.append_column("op", pa.array([c["op"] for c in changes])).append_column(
        "at", pa.array([c["at"] for c in changes])
    )


FORMS = {"debezium": DEBEZIUM, "delta": DELTA, "column": ChangeFormat("op", "at")}


def after(changes: list[dict[str, Any]]) -> dict[str, int]:
    """The state of a reference: changes applied one by one."""
    state: dict[str, int] = {}
    for change in sorted(changes, key=lambda c: c["at"]):
        if change["op"] == "d":
            state.pop(change["key"], None)
        else:
            state[change["key"]] = change["value"]
    return state


@pytest.mark.parametrize("form", list(FORMS))
def test_records_out_of_order_and_repeated_give_the_state_of_a_reference(
    form: str, spark: Any, small_pieces: None, tmp_path: Path
) -> None:
    """Batches overlap and are shuffled; tombstones let deletions win over records that come after them."""
    rng = random.Random(form)
    changes = history(rng, 80)
    batches = [rng.sample(changes, 50), rng.sample(changes, 50), changes[:20], changes[10:]]
    rules = Options(repeats=Repeats(version="version", tombstone="gone"))
    graphs = {e: omnigraph.init(tmp_path / e, schema=ITEM) for e in ENGINES}
    for number, batch in enumerate(batches):
        file = tmp_path / f"{number}.parquet"
        pq.write_table(as_table(form, batch), file, row_group_size=7)
        seen = [c for some in batches[: number + 1] for c in some]
        for engine, graph in graphs.items():
            graph.load(Wide(str(file), "Item", changes=FORMS[form]), engine=engine, options=rules)
            rows = state_of(graph)["Item"]
            there = {row["key"]: row["value"] for row in rows if not row["gone"]}
            assert there == after(seen), (engine, number)
    assert {engine: state_of(graph) for engine, graph in graphs.items()}["local"] == state_of(
        graphs["spark"]
    )


def test_deletions_take_their_edges_with_them(spark: Any, tmp_path: Path) -> None:
    for engine in ENGINES:
        graph = omnigraph.init(tmp_path / engine, schema=ITEM)
        graph.load({"Item": [{"key": k} for k in "abc"]})
        graph.load(
            {"Next": [{"from": "a", "to": "b"}, {"from": "b", "to": "c"}, {"from": "c", "to": "a"}]}
        )
        file = tmp_path / f"{engine}.csv"
        file.write_text("op,at,key,value\nD,2,b,\nu,1,b,5\nu,3,a,7\nd,4,nobody,\n")
        source = Wide(str(file), "Item", changes=ChangeFormat("op", "at"))
        done = graph.load(source, engine=engine)
        assert done.rows == {
            "Item": {"changed": 1, "deleted": 1, "repeated": 1, "late": 1},
            "Next": {"deleted": 2},
        }
        state = state_of(graph)
        assert {row["key"]: row["value"] for row in state["Item"]} == {"a": 7, "c": None}
        assert [(row["src"], row["dst"]) for row in state["Next"]] == [("c", "a")]
        kept = graph.log(limit=1)[0]
        assert dict(kept.changes["Next"]) == {"inserted": 0, "updated": 0, "deleted": 2}
        with pytest.raises(OmnigraphError, match="merged"):
            graph.load(source, "append", engine=engine)


def test_new_edges_of_deleted_nodes_are_refused_alike(spark: Any, tmp_path: Path) -> None:
    found = []
    for engine in ENGINES:
        graph = omnigraph.init(tmp_path / engine, schema=ITEM)
        graph.load({"Item": [{"key": k} for k in "ab"]})
        file = tmp_path / "changes.csv"
        file.write_text("op,at,a,b\nd,1,a,\nu,2,,b\n")
        maps = (
            RowMap("Item", (("key", "coalesce(a, b)"),)),
            RowMap("Next", (("from", "'a'"), ("to", "b")), where="b IS NOT NULL"),
        )
        with pytest.raises(OmnigraphError) as refused:
            graph.load(Wide(str(file), maps, changes=ChangeFormat("op", "at")), engine=engine)
        found.append((refused.value.code, refused.value.message))
        assert len(state_of(graph)["Item"]) == 2
    assert found[0] == found[1]


def test_records_in_lines_of_json_are_opened_with_and_without_their_schema(
    spark: Any, tmp_path: Path
) -> None:
    records = [
        {"op": "c", "source": {"lsn": 5}, "before": None, "after": {"key": "a", "value": 1}},
        None,
        {
            "schema": {},
            "payload": {"op": "u", "source": {"lsn": 7}, "after": {"key": "a", "value": 3}},
        },
        {"op": "u", "source": {"lsn": 6}, "after": {"key": "a", "value": 2}},
        {"op": "m", "source": {"lsn": 9}},
    ]
    file = tmp_path / "log.jsonl"
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    text = """
graph: GRAPH
duplicates: {version: version}
sources:
  - type: Item
    path: log.jsonl
    json: [key, value]
    changes: {form: debezium, order: source.lsn}
"""
    for engine in ENGINES:
        graph = omnigraph.init(tmp_path / engine, schema=ITEM)
        (tmp_path / "pipeline.yaml").write_text(text.replace("GRAPH", graph.uri))
        assert main(["pipeline", "run", str(tmp_path / "pipeline.yaml"), "--engine", engine]) == 0
        rows = state_of(omnigraph.open(graph.uri))["Item"]
        assert [(row["key"], row["value"], row["version"]) for row in rows] == [("a", 3, 7)]
    file.write_text('{"op": "x", "source": {"lsn": 1}, "after": {"key": "a"}}\n')
    assert main(["pipeline", "run", str(tmp_path / "pipeline.yaml"), "--engine", "local"]) != 0
