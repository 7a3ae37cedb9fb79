"""What a writer that lost a race may do, rule by rule: `decide` is a function of what it wanted and what it missed."""

from __future__ import annotations

import msgspec
import pyarrow as pa
import pytest

from omnigraph.core.conflicts import Decision, Intent, Verdict, decide
from omnigraph.core.footprints import Touch
from omnigraph.core.plan import Adopt, Append, CreateIndex, PublishPlan, Reads, Rewrite
from omnigraph.core.records import (
    ChainObject,
    Commit,
    Member,
    Seal,
    TableChange,
    TableEntry,
    Tombstone,
)
from omnigraph.model.tokens import Footprint, id_tokens
from omnigraph.storage.tables import IndexEdit

CHAIN = "0" * 16
PEOPLE, CITIES = "people", "cities"
ROWS = pa.table({"id": ["x"]})


def commit(number: int, *, versions: dict[str, int], members: tuple[Member, ...] = ()) -> Commit:
    return Commit(
        graph_id="g",
        chain=CHAIN,
        number=number,
        branch="main",
        parents=(),
        time=number,
        kind="mutation",
        schema="s",
        gc_epoch=0,
        content=f"{CHAIN}.{number}",
        tables={
            table: TableEntry("node", table, f"nodes/{table}", str(version), 1)
            for table, version in versions.items()
        },
        members=members,
    )


BASE = commit(5, versions={PEOPLE: 1, CITIES: 1})


def wrote(*ids: str, table: str = PEOPLE, everything: bool = False) -> Member:
    touched = Footprint.of(id_tokens(pa.array(ids, pa.string()))).to_text()
    return Member("mutation", "op", changes={table: TableChange(all=everything, touched=touched)})


def winner(number: int = 6, *members: Member, people: int = 2, cities: int = 1) -> Commit:
    """Somebody else's commit; it has a new version of people unless it says otherwise."""
    return commit(number, versions={PEOPLE: people, CITIES: cities}, members=members)


def intent(
    *ids: str, table: str = PEOPLE, strict: bool = False, reads: Reads | None = None
) -> Intent:
    """Rows with these ids are appended."""
    rows = pa.table({"id": pa.array(ids, pa.string())})
    plan = PublishPlan(
        kind="mutation",
        actions=(Append(table, rows),),
        reads={} if reads is None else {table: reads},
        strict=strict,
    )
    return Intent(plan, {table: Touch(own_parts=(lambda: id_tokens(rows["id"]),))})


def judged(mine: Intent | list[Intent], *missed: ChainObject) -> Decision:
    return decide(BASE, mine if isinstance(mine, list) else [mine], missed)


def test_what_lies_in_other_tables_is_no_concern() -> None:
    theirs = winner(6, wrote("ann", table=CITIES), people=1, cities=2)
    assert judged(intent("ann"), theirs) == Decision(Verdict.SAME, theirs)


def test_other_rows_of_the_same_table_are_no_concern() -> None:
    theirs = winner(6, wrote("bob"))
    assert judged(intent("ann"), theirs) == Decision(Verdict.RESTAGE, theirs, frozenset({PEOPLE}))


def test_the_same_row_is() -> None:
    assert judged(intent("ann"), winner(6, wrote("ann"))).verdict is Verdict.AGAIN


@pytest.mark.parametrize("between", [0, 3])
def test_every_commit_that_was_missed_counts(between: int) -> None:
    others = [winner(6 + n, wrote(f"other{n}"), people=2 + n) for n in range(between)]
    first = winner(6 + between, wrote("ann"), people=10)
    last = winner(7 + between, wrote("bob"), people=11)
    assert judged(intent("ann"), *others, first, last).verdict is Verdict.AGAIN
    assert judged(intent("cy"), *others, first, last).verdict is Verdict.RESTAGE


def test_every_folded_write_counts() -> None:
    theirs = winner(6, wrote("bob"))
    assert judged([intent("ann"), intent("bob")], theirs).verdict is Verdict.AGAIN
    both = judged([intent("ann"), intent("ulm", table=CITIES)], theirs)
    assert both == Decision(Verdict.RESTAGE, theirs, frozenset({PEOPLE}))


def test_what_was_read_must_still_hold() -> None:
    read = Reads(id_tokens(pa.array(["ann"])))
    assert judged(intent("dee", reads=read), winner(6, wrote("ann"))).verdict is Verdict.AGAIN
    assert judged(intent("dee", reads=read), winner(6, wrote("bob"))).verdict is Verdict.RESTAGE


def test_who_read_everything_is_concerned_by_anything() -> None:
    everything = intent("dee", reads=Reads(everything=True))
    assert judged(everything, winner(6, wrote("bob"))).verdict is Verdict.AGAIN


def test_a_table_replaced_as_a_whole_concerns_everybody() -> None:
    assert judged(intent("ann"), winner(6, wrote(everything=True))).verdict is Verdict.AGAIN


def test_a_new_version_nobody_accounts_for_concerns_everybody() -> None:
    """Whatever the summaries say: a version that differs is touched."""
    silent = winner(6, wrote("bob", table=CITIES))
    assert judged(intent("ann"), silent).verdict is Verdict.AGAIN
    nothing_at_all = winner(6)
    assert judged(intent("ann"), nothing_at_all).verdict is Verdict.AGAIN


def test_maintenance_changes_versions_and_no_rows() -> None:
    tidied = msgspec.structs.replace(winner(6), kind="optimize", content=BASE.content)
    assert judged(intent("ann"), tidied) == Decision(Verdict.RESTAGE, tidied, frozenset({PEOPLE}))


def test_a_table_that_was_away_meanwhile_concerns_its_writers() -> None:
    """Somebody dropped the type and took that back: schema and table are as they were, and then somebody wrote."""
    dropped = commit(6, versions={CITIES: 1})
    back = winner(7, wrote("bob"), people=1)
    later = winner(8, wrote("cy"), people=2)
    assert judged(intent("ann"), dropped, back, later).verdict is Verdict.AGAIN
    away = judged(intent("ann"), commit(6, versions={CITIES: 1}))
    assert away.verdict is Verdict.AGAIN


def test_another_schema_or_epoch_means_starting_over() -> None:
    for change in ({"schema": "t"}, {"gc_epoch": 1}):
        other = msgspec.structs.replace(winner(6, people=1), **change)
        assert judged(intent("ann"), other) == Decision(Verdict.AGAIN), change


def test_the_end_of_the_branch_is_the_end() -> None:
    seal = Seal(CHAIN, 7, "op")
    assert judged(intent("ann"), winner(6, wrote("ann")), seal) == Decision(Verdict.SEALED)


def test_what_is_pruned_already_cannot_be_judged() -> None:
    tomb = Tombstone(CHAIN, 6, "main", (), 6, "mutation", f"{CHAIN}.6")
    assert judged(intent("ann"), tomb, winner(7, wrote("bob"))) == Decision(Verdict.AGAIN)


def test_who_takes_a_version_over_needs_exactly_that_one() -> None:
    entry = TableEntry("node", PEOPLE, "nodes/people", "9", 1)
    action = Adopt(PEOPLE, entry, TableChange(all=True), ("x", 0))
    mine = Intent(PublishPlan(kind="merge", actions=(action,)), {})
    assert judged(mine, winner(6, wrote("bob"))).verdict is Verdict.AGAIN
    assert judged(mine, winner(6, wrote("bob", table=CITIES), people=1)).verdict is Verdict.SAME


def test_what_was_rewritten_fits_a_newer_version_too() -> None:
    mine = Intent(PublishPlan(kind="optimize", actions=(Rewrite(PEOPLE),)), {})
    found = judged(mine, winner(6, wrote("bob")))
    assert (found.verdict, found.tables) == (Verdict.RESTAGE, frozenset({PEOPLE}))


def test_an_index_fits_a_newer_version_too() -> None:
    index = CreateIndex(PEOPLE, (IndexEdit("id", "BTREE"),))
    mine = Intent(PublishPlan(kind="optimize", actions=(index,)), {})
    theirs = winner(6, wrote("bob"))
    assert judged(mine, theirs) == Decision(Verdict.RESTAGE, theirs, frozenset({PEOPLE}))


# --- strict writes -------------------------------------------------------------------------------------------------


def test_a_strict_write_names_the_first_commit_in_its_way() -> None:
    far = winner(6, wrote("ulm", table=CITIES), people=1, cities=2)
    first, second = winner(7, wrote("bob"), cities=2), winner(8, wrote("cy"), people=3, cities=2)
    decision = judged(intent("ann", strict=True), far, first, second)
    assert decision == Decision(Verdict.CONFLICT, culprit=first)


def test_a_strict_write_conflicts_with_any_new_schema() -> None:
    other = msgspec.structs.replace(winner(6, people=1), schema="t")
    assert judged(intent("ann", strict=True), other) == Decision(Verdict.CONFLICT, culprit=other)


def test_a_strict_write_minds_nothing_a_person_did_not_do() -> None:
    tidied = msgspec.structs.replace(winner(6), kind="optimize", content=BASE.content)
    assert judged(intent("ann", strict=True), tidied).verdict is Verdict.RESTAGE
    epoch = msgspec.structs.replace(
        BASE, number=6, kind="epoch", gc_epoch=1, content=BASE.content, members=()
    )
    assert judged(intent("ann", strict=True), epoch).verdict is Verdict.AGAIN


def test_a_strict_write_keeps_its_neighbours_from_going_on() -> None:
    theirs = winner(6, wrote("bob"))
    folded = [intent("ulm", table=CITIES), intent("ann", strict=True)]
    assert judged(folded, theirs).verdict is Verdict.CONFLICT
