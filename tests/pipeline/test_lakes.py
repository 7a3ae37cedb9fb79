"""Tables of a lake and the formats beside Parquet, written by their own libraries, on both planes."""

from __future__ import annotations

import datetime as dt
import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import EqualTo
from pyiceberg.types import StringType

import omnigraph
from omnigraph import Graph, OmnigraphError
from omnigraph.pipeline.sources import input_bytes
from omnigraph.storage.objects import open_remote
from omnigraph.write.input.mapping import RowMap, Wide
from omnigraph.write.input.options import Options
from tests.support.rings import count

SCHEMA = """
node Person {
    name: String @key
    age: I64?
    town: String?
    joined: Date?
    seen: DateTime?
    @range(age, 0..150)
}
edge Knows: Person -> Person { since: I64? }
"""
DAY = dt.date(2024, 5, 1)
SEEN = dt.datetime(2024, 5, 1, 10, 30, tzinfo=dt.UTC)


@pytest.fixture(params=("local", "spark"))
def engine(request: pytest.FixtureRequest) -> str:
    if request.param == "spark":
        request.getfixturevalue("spark")
    return str(request.param)


def rows(*names: str, town: str = "Oslo", first: int = 1) -> pa.Table:
    ages = pa.array(range(first, first + len(names)), pa.int64())
    count = len(names)
    return pa.table(
        {
            "name": list(names),
            "age": ages,
            "town": [town] * count,
            "joined": pa.array([DAY] * count, pa.date32()),
            "seen": pa.array([SEEN] * count, pa.timestamp("us", "UTC")),
        }
    )


def loaded(folder: Path, source: Any, engine: str, **options: Any) -> list[dict[str, Any]]:
    """What a graph holds after a load, as the rows of the table it came from."""
    graph = omnigraph.init(folder / f"graph-{engine}", schema=SCHEMA)
    graph.load({"Person": source}, mode="append", engine=engine, **options)
    return people(graph)


def people(graph: Graph) -> list[dict[str, Any]]:
    snapshot = graph.snapshot()
    table = snapshot.table_of(snapshot.catalog.nodes["Person"])
    order = ("name", "age", "town", "joined", "seen")
    return sorted(table.scan(list(order)).to_pylist(), key=lambda row: row["name"])


def by_name(table: pa.Table) -> list[dict[str, Any]]:
    order = ("name", "age", "town", "joined", "seen")
    found = [{name: row.get(name) for name in order} for row in table.to_pylist()]
    return sorted(found, key=lambda row: row["name"])


# --- Delta -----------------------------------------------------------------------------------------------------------


def test_a_delta_table_is_read_as_its_library_reads_it(engine: str, tmp_path: Path) -> None:
    """Partitioned, appended to, with rows deleted and changed, compacted, with a checkpoint and a new column."""
    place = str(tmp_path / "people")
    write_deltalake(place, rows("a", "b").drop_columns(["seen"]), partition_by=["town", "joined"])
    write_deltalake(
        place, rows("c", "d", town="S t/%ü", first=5), mode="append", schema_mode="merge"
    )
    table = DeltaTable(place)
    table.delete("name = 'a'")
    table.update(predicate="name = 'c'", updates={"age": "age + 40"})
    table.create_checkpoint()
    table.optimize.compact()
    write_deltalake(place, rows("e", town=""), mode="append")
    expected = by_name(DeltaTable(place).to_pyarrow_table())
    assert [row["name"] for row in expected] == ["b", "c", "d", "e"]
    assert loaded(tmp_path, place, engine) == expected


def test_a_delta_table_whose_log_begins_with_a_checkpoint(engine: str, tmp_path: Path) -> None:
    place = tmp_path / "people"
    write_deltalake(place, rows("a", "b"), partition_by=["town"])
    write_deltalake(place, rows("c"), mode="overwrite")
    DeltaTable(place).create_checkpoint()
    write_deltalake(place, rows("d"), mode="append")
    for number in (0, 1):
        (place / "_delta_log" / f"{number:020}.json").unlink()
    assert [row["name"] for row in loaded(tmp_path, place, engine)] == ["c", "d"]


def test_a_gap_in_the_log_of_a_delta_table_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "people"
    for name in "abc":
        write_deltalake(place, rows(name), mode="append")
    (place / "_delta_log" / f"{1:020}.json").unlink()
    with pytest.raises(OmnigraphError, match="missing") as refused:
        loaded(tmp_path, place, "local")
    assert refused.value.code == "input_invalid"


def with_protocol(place: Path, version: int, *features: str, **add: Any) -> None:
    """One more commit of a Delta table, as another writer makes it."""
    log = place / "_delta_log"
    number = len(list(log.glob("*.json")))
    asked = {"minReaderVersion": version, "minWriterVersion": 7, "writerFeatures": list(features)}
    if version == 3:
        asked["readerFeatures"] = list(features)
    actions = [{"protocol": asked}, *add.get("actions", ())]
    (log / f"{number:020}.json").write_text("\n".join(map(json.dumps, actions)))


@pytest.mark.parametrize(("version", "features"), [(3, ["variantType"]), (4, [])])
def test_a_delta_table_that_asks_for_the_unknown_is_refused(
    version: int, features: list[str], tmp_path: Path
) -> None:
    place = tmp_path / "people"
    write_deltalake(place, rows("a"))
    with_protocol(place, version, *features)
    with pytest.raises(OmnigraphError) as refused:
        loaded(tmp_path, place, "local")
    assert refused.value.code == "table_unsupported"
    assert (features or ["version 4"])[0] in refused.value.message


@pytest.mark.parametrize("stored", ["inline", "file"])
def test_rows_that_a_deletion_vector_names_are_gone(
    stored: str, engine: str, tmp_path: Path
) -> None:
    """The vector is made by another library of bitmaps; as text, or in a file beside the data."""
    import uuid
    import zlib

    from pyroaring import BitMap64

    place = tmp_path / "people"
    write_deltalake(place, rows("a", "b", "c", "d"))
    written = json.loads((place / "_delta_log" / f"{0:020}.json").read_text().splitlines()[-1])
    add = written.get("add") or next(
        json.loads(line)["add"]
        for line in (place / "_delta_log" / f"{0:020}.json").read_text().splitlines()
        if "add" in json.loads(line)
    )
    vector = (1681511377).to_bytes(4, "little") + BitMap64([0, 2]).serialize()
    if stored == "inline":
        told: dict[str, Any] = {"storageType": "i", "pathOrInlineDv": z85(vector)}
    else:
        name = uuid.uuid4()
        framed = len(vector).to_bytes(4, "big") + vector + zlib.crc32(vector).to_bytes(4, "big")
        (place / f"deletion_vector_{name}.bin").write_bytes(b"\x01" + framed)
        told = {"storageType": "u", "pathOrInlineDv": z85(name.bytes), "offset": 1}
    told |= {"sizeInBytes": len(vector), "cardinality": 2}
    gone = {"path": add["path"], "dataChange": True}
    again = {**add, "deletionVector": told}
    with_protocol(place, 3, "deletionVectors", actions=[{"add": again}, {"remove": gone}])
    assert [row["name"] for row in loaded(tmp_path, place, engine)] == ["b", "d"]


def z85(data: bytes) -> str:
    """Bytes in base 85, by the definition of the format."""
    digits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
    data += bytes(-len(data) % 4)
    words = (int.from_bytes(data[at : at + 4], "big") for at in range(0, len(data), 4))
    return "".join(digits[word // 85**power % 85] for word in words for power in (4, 3, 2, 1, 0))


# --- Iceberg ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def catalog(tmp_path: Path) -> SqlCatalog:
    (tmp_path / "warehouse").mkdir()
    uri = f"sqlite:///{tmp_path}/catalog.db"
    made = SqlCatalog("test", uri=uri, warehouse=f"file://{tmp_path}/warehouse")
    made.create_namespace("lake")
    return made


def folder_of(table: Any) -> str:
    return str(table.location()).removeprefix("file://")


def test_an_iceberg_table_is_read_as_its_library_reads_it(
    catalog: SqlCatalog, engine: str, tmp_path: Path
) -> None:
    """Partitioned, appended to, rows deleted, a column renamed, one added and one dropped."""
    table = catalog.create_table("lake.people", rows("a").schema)
    with table.update_spec() as spec:
        spec.add_identity("town")
    table.append(rows("a", "b"))
    table.append(rows("c", "d", town="Rome", first=5))
    table.delete(EqualTo("name", "a"))
    with table.update_schema() as change:
        change.rename_column("age", "years")
        change.delete_column("joined")
        change.add_column("note", StringType())
    newer = pa.table({"name": ["e"], "years": [9], "town": ["Bern"], "seen": [SEEN], "note": ["x"]})
    table.append(newer.cast(table.schema().as_arrow()))
    expected = table.scan().to_arrow()
    assert sorted(expected["name"].to_pylist()) == ["b", "c", "d", "e"]
    options = Options(columns=(("years", "age"), ("note", "")))
    found = loaded(tmp_path, folder_of(table), engine, options=options)
    named = expected.rename_columns(["age" if n == "years" else n for n in expected.column_names])
    assert found == by_name(named)


def test_an_iceberg_table_that_was_copied_is_read_from_its_copy(
    catalog: SqlCatalog, engine: str, tmp_path: Path
) -> None:
    table = catalog.create_table("lake.people", rows("a").schema)
    table.append(rows("a", "b"))
    shutil.move(folder_of(table), tmp_path / "copy")
    assert len(loaded(tmp_path, tmp_path / "copy", engine)) == 2


def test_tables_on_s3_are_read(
    catalog: SqlCatalog, engine: str, s3_root: str, tmp_path: Path
) -> None:
    write_deltalake(tmp_path / "delta", rows("a", "b", town="x y"), partition_by=["town"])
    DeltaTable(tmp_path / "delta").delete("name = 'a'")
    table = catalog.create_table("lake.people", rows("a").schema)
    table.append(rows("c", "d"))
    for name, folder in (("delta", tmp_path / "delta"), ("iceberg", Path(folder_of(table)))):
        for file in folder.rglob("*"):
            if file.is_file():
                address = f"{s3_root}/{name}/{file.relative_to(folder)}"
                store, key = open_remote(address)
                store.put_file(key, file)
    both = [f"{s3_root}/delta/", f"{s3_root}/iceberg"]
    assert [row["name"] for row in loaded(tmp_path, both, engine)] == ["b", "c", "d"]


def test_a_file_of_iceberg_metadata_names_an_older_state(
    catalog: SqlCatalog, tmp_path: Path
) -> None:
    table = catalog.create_table("lake.people", rows("a").schema)
    table.append(rows("a"))
    then = str(table.metadata_location).removeprefix("file://")
    table.append(rows("b"))
    assert [row["name"] for row in loaded(tmp_path, then, "local")] == ["a"]


def test_deletes_of_other_engines_apply_to_older_files_alone(
    catalog: SqlCatalog, engine: str, tmp_path: Path
) -> None:
    """Files of positions and of equal values, as engines that merge on read leave them."""
    from tests.pipeline.iceberg_deletes import with_deletes

    table = catalog.create_table(
        "lake.people", rows("a").schema, properties={"format-version": "2"}
    )
    table.append(rows("a", "b", "c", "d", first=1))
    metadata = with_deletes(table, positions=[1], equal={"age": [3, 99]})
    assert [row["name"] for row in loaded(tmp_path, metadata, engine)] == ["a", "d"]


# --- ORC, Avro, arrays of JSON -------------------------------------------------------------------------------------


def as_orc(table: pa.Table, folder: Path) -> Path:
    from pyarrow import orc

    orc.write_table(table, folder / "people.orc", stripe_size=1024)
    return folder / "people.orc"


def as_avro(table: pa.Table, folder: Path) -> Path:
    import fastavro

    def maybe(kind: Any) -> list[Any]:
        return ["null", kind]

    fields = [
        {"name": "name", "type": "string"},
        {"name": "age", "type": maybe("long")},
        {"name": "town", "type": maybe("string")},
        {"name": "joined", "type": maybe({"type": "int", "logicalType": "date"})},
        {"name": "seen", "type": maybe({"type": "long", "logicalType": "timestamp-micros"})},
    ]
    schema = {"type": "record", "name": "Person", "fields": fields}
    with (folder / "people.avro").open("wb") as file:
        fastavro.writer(file, schema, table.to_pylist(), codec="deflate")
    return folder / "people.avro"


def as_array(table: pa.Table, folder: Path) -> Path:
    told = [
        {**row, "joined": row["joined"].isoformat(), "seen": row["seen"].isoformat()}
        for row in table.to_pylist()
    ]
    (folder / "people.json").write_text(json.dumps(told, indent=2), encoding="utf-8")
    return folder / "people.json"


@pytest.mark.parametrize("write", [as_orc, as_avro, as_array])
def test_other_formats_hold_the_same_rows(
    write: Callable[[pa.Table, Path], Path], engine: str, tmp_path: Path
) -> None:
    table = rows("a", "b[", 'c",\\', "d}\n", "ü")
    assert loaded(tmp_path, write(table, tmp_path), engine) == by_name(table)


@pytest.mark.parametrize("write", [as_orc, as_avro])
def test_a_damaged_file_is_named(
    write: Callable[[pa.Table, Path], Path], engine: str, tmp_path: Path
) -> None:
    file = write(rows("a", "b"), tmp_path)
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    with pytest.raises(OmnigraphError, match="cannot be read") as refused:
        loaded(tmp_path, file, engine)
    assert refused.value.code == "input_invalid"
    assert file.name in refused.value.message


@pytest.mark.parametrize("engine", ["local"])
def test_bad_rows_of_any_source_are_named_by_file_and_row(engine: str, tmp_path: Path) -> None:
    write_deltalake(tmp_path / "people", pa.table({"name": ["a", None, "c"], "age": [1, 2, 3]}))
    with pytest.raises(OmnigraphError) as refused:
        loaded(tmp_path, tmp_path / "people", engine)
    (bad,) = refused.value.details["violations"]
    assert (bad["line"], Path(bad["file"]).suffix) == (2, ".parquet")


def test_the_size_of_a_table_is_that_of_its_current_files(tmp_path: Path) -> None:
    place = tmp_path / "people"
    for number in range(3):
        write_deltalake(place, rows(f"n{number}"), mode="overwrite")
    (current,) = DeltaTable(place).file_uris()
    assert input_bytes({"Person": str(place)}) == Path(current).stat().st_size


def test_a_table_does_not_say_its_type_and_is_proposed_one(tmp_path: Path) -> None:
    from omnigraph.write.infer import infer

    place = str(tmp_path / "people")
    write_deltalake(place, rows("a", "b"))
    graph = omnigraph.init(tmp_path / "graph", schema=SCHEMA)
    with pytest.raises(OmnigraphError, match="Delta table"):
        graph.load(place)
    assert "joined: Date" in infer({"Person": place}).schema


# --- every format, both planes, generated rows ---------------------------------------------------------------------


def generated(chance: random.Random) -> pa.Table:
    """Rows some of which lack values, break a rule or come twice."""
    names = [f"n{chance.randrange(40)}" if chance.random() < 0.2 else f"p{n}" for n in range(12)]
    ages = [chance.choice([None, 5, 60, 149, 151 if chance.random() < 0.3 else 7]) for _ in names]
    towns = [chance.choice([None, "", "Oslo", 'Sète \\ "x", [1]']) for _ in names]
    columns = {"name": pa.array(names), "age": pa.array(ages, pa.int64()), "town": pa.array(towns)}
    return pa.table(columns)


def as_delta(table: pa.Table, folder: Path) -> Path:
    write_deltalake(folder / "delta", table)
    return folder / "delta"


def as_parquet(table: pa.Table, folder: Path) -> Path:
    import pyarrow.parquet as pq

    pq.write_table(table, folder / "people.parquet", row_group_size=5)
    return folder / "people.parquet"


def as_plain_array(table: pa.Table, folder: Path) -> Path:
    (folder / "people.json").write_text(json.dumps(table.to_pylist(), indent=1), encoding="utf-8")
    return folder / "people.json"


def as_plain_avro(table: pa.Table, folder: Path) -> Path:
    import fastavro

    kinds = {"name": "string", "age": ["null", "long"], "town": ["null", "string"]}
    fields = [{"name": name, "type": kind} for name, kind in kinds.items()]
    with (folder / "people.avro").open("wb") as file:
        schema = {"type": "record", "name": "Person", "fields": fields}
        fastavro.writer(file, schema, table.to_pylist())
    return folder / "people.avro"


FORMATS = (as_parquet, as_delta, as_orc, as_plain_avro, as_plain_array)


def ended(folder: Path, engine: str, source: Any, mode: str, aside: bool) -> dict[str, Any]:
    """How a load ends: what is there then, what is wrong with rows by their numbers, and what was left out."""
    graph = omnigraph.init(folder / f"graph-{engine}", schema=SCHEMA)
    graph.load({"Person": [{"name": "n1", "age": 1, "town": "Rome"}]}, engine="local")
    file = folder / f"{engine}.aside"
    options = Options(quarantine=str(file)) if aside else Options()
    wrong: list[Any] = []
    code = None
    try:
        graph.load(source, mode, engine=engine, options=options)
    except OmnigraphError as error:
        code, wrong = error.code, error.details["violations"]
    left = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    return {
        "code": code,
        "wrong": sorted((v["line"], v["rule"], v["id"]) for v in wrong),
        "left": sorted((row["line"], row["reasons"][0]["rule"]) for row in left),
        "state": people(graph),
    }


@pytest.mark.parametrize("seed", range(count(2, 40)))
def test_generated_rows_mean_the_same_from_every_format_on_both_planes(
    seed: int, spark: Any, tmp_path: Path
) -> None:
    chance = random.Random(seed)
    table = generated(chance)
    mode, aside, mapped = chance.choice(["append", "merge"]), seed % 2 == 0, chance.random() < 0.5
    written = FORMATS if count(0, 1) else chance.sample(FORMATS, 3)
    found = {}
    for write in written:
        folder = tmp_path / write.__name__
        folder.mkdir()
        path = str(write(table, folder))
        values = tuple((name, name) for name in table.column_names)
        json_paths = tuple((name, f"$.{name}") for name in table.column_names)
        wide = Wide(path, [RowMap("Person", values)], json=json_paths)
        for engine in ("local", "spark"):
            source = wide if mapped else {"Person": path}
            found[write.__name__, engine] = ended(folder, engine, source, mode, aside)
    first = next(iter(found.values()))
    for where, outcome in found.items():
        assert outcome == first, f"{where} differs, seed {seed}"
