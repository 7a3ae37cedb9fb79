"""What becomes of a plan's tables: one version each, none where nothing changes, and never on a base it was not for."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from omnigraph.core.plan import (
    Adopt,
    Alter,
    Append,
    DropTable,
    Overwrite,
    PublishPlan,
    Register,
    Remove,
    Rewrite,
    TableAction,
    Upsert,
)
from omnigraph.core.records import TableChange
from omnigraph.core.repository import Repository
from omnigraph.core.snapshot import table_ref
from omnigraph.core.stage import restage, stage
from omnigraph.errors import TableNotFound
from omnigraph.model.columns import arrow_schema
from omnigraph.storage.tables import TableEdit
from tests.support.dict_tables import DictTable
from tests.support.worlds import add_person, another_process, disturbed, memory_repository, submit


@pytest.fixture
def repo() -> Repository:
    repo = memory_repository()
    submit(repo, add_person("ann"))
    return repo


def table_id(repo: Repository, name: str = "Person") -> str:
    kind = repo.snapshot(repo.head("main").commit).catalog.entity(name)
    assert kind is not None
    return kind.table_id


def plan(*actions: TableAction) -> list[PublishPlan]:
    return [PublishPlan(kind="mutation", actions=actions)]


def person(repo: Repository, *names: str) -> pa.Table:
    schema = repo.snapshot(repo.head("main").commit).table(table_id(repo)).schema
    return pa.Table.from_pylist([{"id": name, "name": name} for name in names], schema=schema)


def test_several_actions_on_one_table_are_one_version(repo: Repository) -> None:
    base, table = repo.head("main").commit, table_id(repo)
    before = (
        repo.snapshot(base).table(table).lookup("id", pa.array(["ann"]), ["id"], with_address=True)
    )
    found = stage(
        repo,
        base,
        plan(
            Append(table, person(repo, "bob")),
            Append(table, person(repo, "cy")),
            Remove(table, before),
        ),
    )
    assert list(found.staged) == [table]
    entry = found.entries[table]
    assert entry is not None
    assert entry.rows == 2
    rows = repo.tables.open(table_ref(entry)).scan(["id"])["id"].to_pylist()
    assert sorted(rows) == ["bob", "cy"]


def test_a_table_nothing_happens_to_keeps_its_version(repo: Repository) -> None:
    base, table = repo.head("main").commit, table_id(repo)
    written: list[str] = []
    watched = disturbed(repo, lambda verb, key: written.append(key) if verb == "file" else None)
    found = stage(watched, base, plan(Append(table, person(repo))))
    assert (found.entries[table], dict(found.staged), written) == (base.tables[table], {}, [])


def test_a_table_that_is_not_there_cannot_be_written(repo: Repository) -> None:
    with pytest.raises(TableNotFound):
        stage(repo, repo.head("main").commit, plan(Append("n99", person(repo, "bob"))))


def test_tables_come_change_their_names_and_go(repo: Repository) -> None:
    base, people, cities = repo.head("main").commit, table_id(repo), table_id(repo, "City")
    city = repo.snapshot(base).catalog.nodes["City"]
    new = Register("n99", "node", "Town", arrow_schema(city))
    found = stage(repo, base, plan(new, DropTable(cities), Alter(people, "Human")))
    tables = found.on(base.tables)
    assert tables["n99"].type_name == "Town"
    assert repo.tables.open(table_ref(tables["n99"])).count() == 0
    assert cities not in tables
    assert (tables[people].type_name, tables[people].version) == (
        "Human",
        base.tables[people].version,
    )
    assert set(base.tables) - {cities} <= set(tables), "others are left as they are"


def test_a_version_is_taken_over_as_it_is(repo: Repository) -> None:
    base, table = repo.head("main").commit, table_id(repo)
    submit(repo, add_person("bob"))
    newer = repo.head("main").commit.tables[table]
    found = stage(repo, base, plan(Adopt(table, newer, TableChange(all=True), ("x", 0))))
    assert (found.entries[table], dict(found.staged)) == (newer, {})


def test_what_was_built_beforehand_counts_on_its_own_version_alone(repo: Repository) -> None:
    base, table = repo.head("main").commit, table_id(repo)
    done = repo.tables.stage(table_ref(base.tables[table]), TableEdit(compact=True))
    found = stage(repo, base, plan(Rewrite(table, done=done)))
    assert found.staged[table] is done, "it was built a second time"
    submit(repo, add_person("bob"))
    moved = repo.head("main").commit
    later = stage(repo, moved, plan(Rewrite(table, done=done)))
    entry = later.entries[table]
    assert entry is not None
    assert (entry.rows, entry.version != str(done.ref.version)) == (2, True), "a row is lost"


def test_rows_move_to_a_newer_version(repo: Repository) -> None:
    base, table = repo.head("main").commit, table_id(repo)
    actions = (Append(table, person(repo, "bob")),)
    earlier = stage(repo, base, plan(*actions))
    submit(another_process(repo), add_person("cy"))
    head = repo.head("main").commit
    found = restage(repo, earlier, base, head, plan(*actions), moved=frozenset({table}))
    entry = found.entries[table]
    assert entry is not None
    assert sorted(repo.tables.open(table_ref(entry)).scan(["id"])["id"].to_pylist()) == [
        "ann",
        "bob",
        "cy",
    ]


def test_rows_to_replace_are_looked_for_again_on_a_newer_version(repo: Repository) -> None:
    """Addresses are of the version they were read from."""
    submit(repo, add_person("bob"))
    base, table = repo.head("main").commit, table_id(repo)
    before = (
        repo.snapshot(base).table(table).lookup("id", pa.array(["ann"]), ["id"], with_address=True)
    )
    rows = person(repo, "ann").set_column(
        person(repo).schema.get_field_index("age"), "age", pa.array([7], pa.int64())
    )
    actions = (Upsert(table, rows, before),)
    earlier = stage(repo, base, plan(*actions))
    submit(another_process(repo), add_person("bob", age=1))
    head = repo.head("main").commit
    found = restage(repo, earlier, base, head, plan(*actions), moved=frozenset({table}))
    entry = found.entries[table]
    assert entry is not None
    shown = repo.tables.open(table_ref(entry)).scan(["id", "age"]).to_pylist()
    assert sorted((row["id"], row["age"]) for row in shown) == [("ann", 7), ("bob", 1)]


def test_only_rows_whose_fragment_went_are_looked_for_again(
    repo: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever lost a race pays for what the winners did, not for the rows it changes itself."""
    base, table = repo.head("main").commit, table_id(repo)
    rows = person(repo, *(f"p{n}" for n in range(50)))
    done = submit(repo, lambda txn: PublishPlan(kind="load", actions=(Overwrite(table, rows),)))
    assert done.commit is not None
    base, ids = repo.head("main").commit, rows["id"].combine_chunks()
    before = repo.snapshot(base).table(table).lookup("id", ids, ["id"], with_address=True)
    actions = (Upsert(table, rows, before),)
    earlier = stage(repo, base, plan(*actions))
    other = repo.tables.write_fragments(table_ref(base.tables[table]), person(repo, "bob"))
    submit(
        another_process(repo), lambda txn: PublishPlan(kind="x", actions=(Append(table, other),))
    )
    looked: list[int] = []
    real = DictTable.lookup

    def lookup(self: DictTable, column: str, values: pa.Array, *rest: Any, **more: Any) -> Any:
        looked.append(len(values))
        return real(self, column, values, *rest, **more)

    monkeypatch.setattr(DictTable, "lookup", lookup)
    head = repo.head("main").commit
    found = restage(repo, earlier, base, head, plan(*actions), moved=frozenset({table}))
    entry = found.entries[table]
    assert entry is not None
    assert (entry.rows, looked) == (51, [])


def test_a_table_that_had_nothing_staged_is_staged_on_the_newer_version(repo: Repository) -> None:
    base, table = repo.head("main").commit, table_id(repo)
    actions = (Alter(table, "Human"),)
    earlier = stage(repo, base, plan(*actions))
    submit(another_process(repo), add_person("bob"))
    head = repo.head("main").commit
    found = restage(repo, earlier, base, head, plan(*actions), moved=frozenset({table}))
    assert found.entries[table] == replace_entry(head.tables[table], "Human")


def replace_entry(entry: object, type_name: str) -> object:
    import msgspec

    return msgspec.structs.replace(entry, type_name=type_name)  # type: ignore[type-var]
