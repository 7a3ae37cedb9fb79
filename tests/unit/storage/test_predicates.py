"""Filters select the same rows in Lance, over Arrow data and by a plain Python reading of the rules."""

from __future__ import annotations

import math
import random
from datetime import UTC, date, datetime, timedelta, timezone
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from omnigraph.errors import OmnigraphError
from omnigraph.model.predicates import (
    Always,
    And,
    Compare,
    Contains,
    Has,
    In,
    IsNotTrue,
    IsNull,
    Not,
    Op,
    Or,
    Predicate,
    StartsWith,
)
from omnigraph.storage.lance import LanceTables
from omnigraph.storage.predicates import NESTING_MAX, evaluate, render, selection, selects
from omnigraph.storage.tables import IndexEdit, Table, TableEdit

NAN, INF = float("nan"), float("inf")
NUMBERS: list[Any] = [
    0, 1, -1, 2, 7, 2**31 - 1, -(2**31), 2**31, 2**32 - 1, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), 2**63, 2**64 - 1,
    2**64, -(2**64), 10**40, 0.0, -0.0, 0.1, 2.5, -2.5, 0.10000000149011612, 1e-45, 5e-324, 1e39, 1.5e308, 1e300,
    NAN, INF, -INF,
]  # fmt: skip
TEXTS = ["", "a", "it's", 'say "hi"', "back\\slash", "nul\x00l", "é😀", "%_", "ab", "' OR 1=1", "\n"]  # fmt: skip
DATES = [date(1, 1, 1), date(9999, 12, 31), date(1970, 1, 1), date(1969, 12, 31), date(2024, 2, 29)]
TIMES = [
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    datetime(1970, 1, 1, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    datetime(2024, 2, 29, 1, 2, 3, 4, tzinfo=timezone(timedelta(hours=-7))),
]
KINDS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "text": (pa.string(), TEXTS),
    "flag": (pa.bool_(), [True, False]),
    "i32": (pa.int32(), NUMBERS),
    "i64": (pa.int64(), NUMBERS),
    "u32": (pa.uint32(), NUMBERS),
    "u64": (pa.uint64(), NUMBERS),
    "f32": (pa.float32(), NUMBERS),
    "f64": (pa.float64(), NUMBERS),
    "day": (pa.date32(), DATES),
    "time": (pa.timestamp("us", tz="UTC"), TIMES),
}
LISTS = {f"{name}s": (pa.list_(kind), values) for name, (kind, values) in KINDS.items()}
SCHEMA = pa.schema([(name, kind) for name, (kind, _) in (KINDS | LISTS).items()])


# --- random data ---------------------------------------------------------------------------------------------------


def storable(kind: pa.DataType, values: list[Any]) -> list[Any]:
    """The candidates a column of this type can hold, as it holds them."""
    found = []
    for value in values:
        if pa.types.is_integer(kind) and (isinstance(value, float) or value != _fit(value, kind)):
            continue
        try:
            found.append(pa.array([value], kind)[0].as_py())
        except (pa.ArrowException, OverflowError):
            continue
    return found


def _fit(value: int, kind: pa.DataType) -> int | None:
    low, high = (
        (-(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1) - 1)
        if pa.types.is_signed_integer(kind)
        else (0, 2**kind.bit_width - 1)
    )
    return value if low <= value <= high else None


def random_rows(seed: int, rows: int = 60) -> pa.Table:
    rng = random.Random(seed)
    columns = []
    for kind, values in KINDS.values():
        pool = storable(kind, values)
        columns.append(pa.array([_maybe(rng, rng.choice(pool)) for _ in range(rows)], kind))
    for kind, values in LISTS.values():
        pool = storable(kind.value_type, values)
        lists = [
            _maybe(rng, [_maybe(rng, rng.choice(pool)) for _ in range(rng.randrange(3))])
            for _ in range(rows)
        ]
        columns.append(pa.array(lists, kind))
    return pa.table(columns, schema=SCHEMA)


def _maybe(rng: random.Random, value: Any) -> Any:
    return None if rng.random() < 0.15 else value


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[pa.Table, Table]]:
    """Random rows and their tables: without indices, and with indices over all rows or over half of them."""
    store = LanceTables(str(tmp_path_factory.mktemp("tables")), fsync=False)
    trees = tuple(IndexEdit(name, "BTREE") for name in KINDS if name != "flag")
    others = (
        *(IndexEdit(name, "BITMAP") for name in KINDS),
        *(IndexEdit(name, "LABEL_LIST") for name in LISTS),
        IndexEdit("text", "NGRAM"),
    )
    made: list[tuple[pa.Table, Table]] = []
    for seed, (indices, tail) in enumerate([((), 0), (trees, 0), (trees, 30), (others, 30)]):
        rows = random_rows(seed)
        first = TableEdit(append=rows.slice(0, 60 - tail), indices=indices)
        ref = store.stage(store.create(f"t{seed}", SCHEMA), first).ref
        if tail:
            ref = store.stage(ref, TableEdit(append=rows.slice(60 - tail))).ref
        made.append((rows, store.open(ref)))
    return made


# --- random predicates ---------------------------------------------------------------------------------------------


def leaves() -> st.SearchStrategy[Predicate]:
    return st.one_of(*(_column_leaves(name) for name in KINDS), *(_list_leaves(n) for n in LISTS))


def _column_leaves(name: str) -> st.SearchStrategy[Predicate]:
    values = st.one_of(st.none(), st.sampled_from(KINDS[name][1]))
    made: list[st.SearchStrategy[Predicate]] = [
        st.builds(Compare, st.just(name), st.sampled_from(Op), values),
        st.builds(In, st.just(name), st.lists(values, max_size=5).map(tuple)),
        st.builds(IsNull, st.just(name), st.booleans()),
    ]
    if name == "text":
        made.append(st.builds(Contains, st.just(name), st.sampled_from(TEXTS)))
        made.append(st.builds(StartsWith, st.just(name), st.sampled_from(TEXTS)))
    return st.one_of(*made)


def _list_leaves(name: str) -> st.SearchStrategy[Predicate]:
    values = st.one_of(st.none(), st.sampled_from(LISTS[name][1]))
    return st.one_of(
        st.builds(Has, st.just(name), values), st.builds(IsNull, st.just(name), st.booleans())
    )


PREDICATES: st.SearchStrategy[Predicate] = st.recursive(
    st.one_of(leaves(), st.builds(Always, st.sampled_from([True, False, None]))),
    lambda part: st.one_of(
        st.builds(And, st.lists(part, max_size=3).map(tuple)),
        st.builds(Or, st.lists(part, max_size=3).map(tuple)),
        st.builds(Not, part),
        st.builds(IsNotTrue, part),
    ),
    max_leaves=6,
)


# --- the rules, read plainly ---------------------------------------------------------------------------------------


def truth(predicate: Predicate, row: dict[str, Any]) -> bool | None:
    match predicate:
        case Always(value):
            return value
        case Not(part):
            inner = truth(part, row)
            return None if inner is None else not inner
        case IsNotTrue(part):
            return truth(part, row) is not True
        case And(parts):
            found = [truth(part, row) for part in parts]
            return False if False in found else (None if None in found else True)
        case Or(parts):
            found = [truth(part, row) for part in parts]
            return True if True in found else (None if None in found else False)
        case IsNull(column, negated):
            return (row[column] is None) is not negated
        case Compare(column, op, value):
            return _compare(row[column], op, value)
        case In(column, values):
            wanted = [value for value in values if value is not None]
            if row[column] is None:
                return None if wanted else False
            return any(_compare(row[column], Op.EQ, value) for value in wanted)
        case Contains(column, needle):
            return None if row[column] is None else needle in row[column]
        case StartsWith(column, prefix):
            return None if row[column] is None else str(row[column]).startswith(prefix)
        case Has(column, value):
            return any(_compare(item, Op.EQ, value) is True for item in row[column] or [])
    raise AssertionError(predicate)


def _compare(left: Any, op: Op, right: Any) -> bool | None:
    if left is None or right is None:
        return None
    a, b = _rank(left), _rank(right)
    match op:
        case Op.EQ:
            return bool(a == b)
        case Op.NE:
            return bool(a != b)
        case Op.LT:
            return bool(a < b)
        case Op.LE:
            return bool(a <= b)
        case Op.GT:
            return bool(a > b)
        case Op.GE:
            return bool(a >= b)


def _rank(value: Any) -> Any:
    """A key that orders values of one type as the rules say: NaN last, numbers exactly, text by its bytes."""
    if isinstance(value, float):
        if math.isnan(value):
            return (2, Fraction(0))
        if math.isinf(value):
            return (1 if value > 0 else -1, Fraction(0))
        return (0, Fraction(value))
    if isinstance(value, int) and not isinstance(value, bool):
        return (0, Fraction(value))
    return value.encode() if isinstance(value, str) else value


# --- the tests -----------------------------------------------------------------------------------------------------


@settings(
    max_examples=200, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)
@given(predicate=PREDICATES)
def test_three_readings_agree(tables: list[tuple[pa.Table, Table]], predicate: Predicate) -> None:
    for rows, table in tables:
        expected = [truth(predicate, row) for row in rows.to_pylist()]
        assert evaluate(predicate, rows).to_pylist() == expected
        chosen = [i for i, value in enumerate(expected) if value is True]
        assert selects(predicate, rows).to_pylist() == [value is True for value in expected]
        stored = table.scan(SCHEMA.names, predicate)
        assert repr(stored.to_pylist()) == repr(rows.take(pa.array(chosen, pa.int64())).to_pylist())
        assert table.count(predicate) == len(chosen)


@pytest.mark.parametrize(
    ("predicate", "text"),
    [
        (Compare("i32", Op.GT, 2.5), "`i32` > 2"),
        (Compare("i32", Op.GE, -2.5), "`i32` > -3"),
        (Compare("u32", Op.LT, 2**40), "`u32` IS NOT NULL"),
        (Not(Compare("text", Op.EQ, "it's")), "`text` <> 'it''s'"),
        (IsNotTrue(Compare("i64", Op.LT, 1)), "(`i64` IS NULL OR `i64` >= 1)"),
        (Compare("f32", Op.LT, 0.1), "`f32` < 0.10000000149011612"),
    ],
)
def test_filters_carry_exact_constants_and_no_nested_negation(
    predicate: Predicate, text: str
) -> None:
    selected = selection(predicate, SCHEMA)
    assert render(selected) == text


@pytest.mark.parametrize(
    "predicate",
    [
        Compare("i32", Op.EQ, 2.5),
        Compare("u64", Op.LT, 0 - 1),
        Compare("f32", Op.EQ, 0.1),
        Compare("text", Op.EQ, None),
        In("i32", (None, 2**40)),
        Has("i32s", 2.5),
        And((Compare("i32", Op.EQ, 1), Always(None))),
    ],
)
def test_what_no_row_can_satisfy_is_decided_without_reading(predicate: Predicate) -> None:
    assert selection(predicate, SCHEMA) is False


def test_nesting_beyond_the_parser_is_answered_all_the_same(
    tables: list[tuple[pa.Table, Table]],
) -> None:
    predicate: Predicate = Compare("i32", Op.GE, 0)
    for depth in range(2 * NESTING_MAX):
        joined = (predicate, IsNull("text", negated=depth % 3 == 0))
        predicate = And(joined) if depth % 2 else Or(joined)
    for rows, table in tables:
        assert render(selection(predicate, rows.schema)) is None
        expected = [row for row in rows.to_pylist() if truth(predicate, row)]
        assert table.count(predicate) == len(expected)
        found = table.scan(["i32", "text"], predicate, limit=5).to_pylist()
        assert found == [{"i32": r["i32"], "text": r["text"]} for r in expected[:5]]


def test_long_value_lists_are_one_flat_filter(tables: list[tuple[pa.Table, Table]]) -> None:
    rows, table = tables[1]
    wanted = In("i64", tuple(range(-20_000, 20_000)))
    expected = sum(1 for v in rows["i64"].to_pylist() if v is not None and -20_000 <= v < 20_000)
    assert table.count(wanted) == expected


@pytest.mark.parametrize(
    "predicate",
    [
        Compare("i32", Op.EQ, "1"),
        Compare("text", Op.EQ, 1),
        Compare("i32", Op.EQ, True),
        Compare("time", Op.LT, datetime(2020, 1, 1)),
        Compare("day", Op.LT, datetime(2020, 1, 1, tzinfo=UTC)),
        Compare("absent", Op.EQ, 1),
        Has("i32", 1),
    ],
)
def test_constants_of_another_type_are_refused(predicate: Predicate) -> None:
    with pytest.raises(OmnigraphError):
        selection(predicate, SCHEMA)


@pytest.mark.parametrize("name", ["i64", "f64", "day", "text"])
def test_two_lists_that_share_nothing_do_not_select_null(
    tables: list[tuple[pa.Table, Table]], name: str
) -> None:
    """`x NOT IN (a) OR x NOT IN (b)` is unknown for null, however the store simplifies it."""
    one, other = KINDS[name][1][:2]
    either = Or((Not(In(name, (one,))), Not(In(name, (other,)))))
    for rows, table in tables:
        for predicate in (either, And((either, Not(In("flag", ()))))):
            wanted = rows.filter(selects(predicate, rows))[name]
            found = table.scan([name], predicate)[name]
            assert found.null_count == wanted.null_count == 0
            assert len(found) == len(wanted)
