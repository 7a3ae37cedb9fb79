"""Conditions select the same rows in Lance, over Arrow data and by a plain Python reading of the rules."""

from __future__ import annotations

import math
import random
from datetime import UTC, date, datetime, timedelta, timezone
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from omnigraph.expressions.arrow import TableRows, column, selected
from omnigraph.expressions.filters import NESTING_MAX, any_of, closed, push_down
from omnigraph.lang import ir
from omnigraph.lang.ir import CompareOp as Op
from omnigraph.lang.query import compile_query
from omnigraph.model.columns import arrow_schema
from omnigraph.storage.lance import LanceTables
from omnigraph.storage.tables import IndexEdit, Table, TableEdit
from tests.support.conditions import (
    compare,
    constant,
    contains,
    has,
    is_null,
    one_of,
    starts_with,
)
from tests.support.rings import count
from tests.unit.lang.query.casefile import harbour

NAN, INF = float("nan"), float("inf")
NUMBERS: list[Any] = [
    0, 1, -1, 2, 7, 2**31 - 1, -(2**31), 2**31, 2**32 - 1, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), 2**63, 2**64 - 1,
    0.0, -0.0, 0.1, 2.5, -2.5, 0.10000000149011612, 1e-45, 5e-324, 1e39, 1.5e308, 1e300,
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


# --- random conditions ---------------------------------------------------------------------------------------------

Conditions = st.SearchStrategy[ir.Expr]


def leaves() -> Conditions:
    return st.one_of(*(_column_leaves(name) for name in KINDS), *(_list_leaves(n) for n in LISTS))


def _column_leaves(name: str) -> Conditions:
    values = st.one_of(st.none(), st.sampled_from(KINDS[name][1]))
    made: list[Conditions] = [
        st.builds(compare, st.just(name), st.sampled_from(Op), values),
        st.lists(values, max_size=5).map(lambda listed: one_of(name, *listed)),
        st.builds(is_null, st.just(name), st.booleans()),
    ]
    if name == "text":
        made.append(st.builds(contains, st.just(name), st.sampled_from(TEXTS)))
        made.append(st.builds(starts_with, st.just(name), st.sampled_from(TEXTS)))
    return st.one_of(*made)


def _list_leaves(name: str) -> Conditions:
    values = st.one_of(st.none(), st.sampled_from(LISTS[name][1]))
    return st.one_of(
        st.builds(has, st.just(name), values), st.builds(is_null, st.just(name), st.booleans())
    )


CONDITIONS: Conditions = st.recursive(
    st.one_of(leaves(), st.builds(constant, st.sampled_from([True, False]))),
    lambda part: st.one_of(
        st.builds(ir.And, st.lists(part, min_size=1, max_size=3).map(tuple)),
        st.builds(ir.Or, st.lists(part, min_size=1, max_size=3).map(tuple)),
        st.builds(ir.Not, part),
    ),
    max_leaves=6,
)


# --- the rules, read plainly ---------------------------------------------------------------------------------------


def truth(expr: ir.Expr, row: dict[str, Any]) -> bool | None:
    match expr:
        case ir.Literal(value):
            return bool(value)
        case ir.Not(part):
            inner = truth(part, row)
            return None if inner is None else not inner
        case ir.And(parts):
            found = [truth(part, row) for part in parts]
            return False if False in found else (None if None in found else True)
        case ir.Or(parts):
            found = [truth(part, row) for part in parts]
            return True if True in found else (None if None in found else False)
        case ir.IsNull(ir.Column(_, name), negated):
            return (row[name] is None) is not negated
        case ir.Compare(op, ir.Column(_, name), ir.Literal(value)):
            return _compare(row[name], op, value)
        case ir.In(ir.Column(_, name), ir.Literal(values)):
            if row[name] is None:
                return None
            return any(_compare(row[name], Op.EQ, value) is True for value in values)
        case ir.Contains(ir.Column(_, name), ir.Literal(needle)):
            return None if row[name] is None else needle in row[name]
        case ir.StartsWith(ir.Column(_, name), ir.Literal(prefix)):
            return None if row[name] is None else str(row[name]).startswith(prefix)
        case ir.Has(ir.Column(_, name), ir.Literal(value)):
            return any(_compare(item, Op.EQ, value) is True for item in row[name] or [])
    raise AssertionError(expr)


def _compare(left: Any, op: Op, right: Any) -> bool | None:
    if left is None or right is None:
        return None
    if _is_nan(left) or _is_nan(right):
        return op is Op.NE
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


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _rank(value: Any) -> Any:
    """A key that orders values of one type as the rules say: numbers exactly, text by its bytes."""
    if isinstance(value, float):
        if math.isinf(value):
            return (1 if value > 0 else -1, Fraction(0))
        return (0, Fraction(value))
    if isinstance(value, int) and not isinstance(value, bool):
        return (0, Fraction(value))
    return value.encode() if isinstance(value, str) else value


# --- the tests -----------------------------------------------------------------------------------------------------


@settings(
    max_examples=count(80, 500),
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=True,
)
@given(condition=CONDITIONS)
def test_three_readings_agree(tables: list[tuple[pa.Table, Table]], condition: ir.Expr) -> None:
    for rows, table in tables:
        expected = [truth(condition, row) for row in rows.to_pylist()]
        assert column(condition, TableRows(rows)).to_pylist() == expected
        chosen = rows.filter(pa.array([value is True for value in expected]))
        assert repr(selected(condition, rows).to_pylist()) == repr(chosen.to_pylist())
        assert repr(table.scan(SCHEMA.names, condition).to_pylist()) == repr(chosen.to_pylist())
        assert table.count(condition) == chosen.num_rows


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (compare("i32", Op.GT, 2.5), "`i32` > 2"),
        (compare("i32", Op.GE, -2.5), "`i32` > -3"),
        (compare("u32", Op.LT, 2**40), "`u32` IS NOT NULL"),
        (ir.Not(compare("text", Op.EQ, "it's")), "`text` <> 'it''s'"),
        (
            ir.Not(ir.And((compare("i64", Op.LT, 1), compare("i32", Op.EQ, 2)))),
            "(`i64` >= 1 OR `i32` <> 2)",
        ),
        (
            compare("f32", Op.LT, 0.1),
            "(`f32` >= cast('-inf' as float) AND `f32` < 0.10000000149011612)",
        ),
        (ir.Not(compare("f64", Op.GT, 1.5)), "(`f64` <= 1.5 OR isnan(`f64`))"),
        (ir.Compare(Op.LT, constant(3), compare("i64", Op.EQ, 0).left), "`i64` > 3"),
    ],
)
def test_filters_carry_exact_constants_and_no_nested_negation(
    condition: ir.Expr, text: str
) -> None:
    down = push_down(condition, SCHEMA)
    assert (down.text, down.rest) == (text, None)


@pytest.mark.parametrize(
    "condition",
    [
        compare("i32", Op.EQ, 2.5),
        compare("u64", Op.LT, 0 - 1),
        compare("f32", Op.EQ, 0.1),
        compare("f64", Op.LE, NAN),
        compare("text", Op.EQ, None),
        one_of("i32", None, 2**40),
        one_of("f64", NAN),
        has("i32s", 2.5),
        has("f64s", NAN),
        ir.And((compare("i32", Op.EQ, 1), constant(False))),
    ],
)
def test_what_no_row_can_satisfy_is_decided_without_reading(condition: ir.Expr) -> None:
    assert push_down(condition, SCHEMA).filter is False


def test_nesting_beyond_the_parser_is_answered_all_the_same(
    tables: list[tuple[pa.Table, Table]],
) -> None:
    condition: ir.Expr = compare("i32", Op.GE, 0)
    for depth in range(2 * NESTING_MAX):
        joined = (condition, is_null("text", negated=depth % 3 == 0))
        condition = ir.Or(joined) if depth % 2 else ir.And(joined)
    for rows, table in tables:
        assert push_down(condition, rows.schema).rest == condition
        expected = [row for row in rows.to_pylist() if truth(condition, row)]
        assert table.count(condition) == len(expected)
        found = table.scan(["i32", "text"], condition, limit=5).to_pylist()
        assert found == [{"i32": r["i32"], "text": r["text"]} for r in expected[:5]]


def test_what_the_store_cannot_say_is_judged_on_its_rows(
    tables: list[tuple[pa.Table, Table]],
) -> None:
    own = ir.Compare(Op.LT, compare("i32", Op.EQ, 0).left, compare("i64", Op.EQ, 0).left)
    both = ir.And((compare("u32", Op.GE, 1), own))
    for rows, table in tables:
        down = push_down(both, rows.schema)
        assert (down.text, down.rest) == ("`u32` >= 1", own)
        wanted = selected(both, rows)
        assert table.scan(["text"], both).to_pylist() == wanted.select(["text"]).to_pylist()
        assert table.count(both) == wanted.num_rows


def test_look_ups_find_every_nan_and_both_zeros(tables: list[tuple[pa.Table, Table]]) -> None:
    for rows, table in tables:
        for name in ("f32", "f64"):
            for value in (NAN, 0.0, -0.0):
                asked = pa.array([value, 77.0], SCHEMA.field(name).type)
                held = [v for v in rows[name].to_pylist() if v is not None]
                same = [v for v in held if v == value or (_is_nan(v) and _is_nan(value))]
                assert table.lookup(name, asked, [name]).num_rows == len(same)
                assert table.count(any_of(name, asked)) == len(same)


def test_long_value_lists_are_one_flat_filter(tables: list[tuple[pa.Table, Table]]) -> None:
    rows, table = tables[1]
    wanted = one_of("i64", *range(-20_000, 20_000))
    expected = sum(1 for v in rows["i64"].to_pylist() if v is not None and -20_000 <= v < 20_000)
    assert table.count(wanted) == expected


@pytest.mark.parametrize("name", ["i64", "f64", "day", "text"])
def test_two_lists_that_share_nothing_do_not_select_null(
    tables: list[tuple[pa.Table, Table]], name: str
) -> None:
    """`x NOT IN (a) OR x NOT IN (b)` is unknown for null, however the store simplifies it."""
    one, other = KINDS[name][1][:2]
    either = ir.Or((ir.Not(one_of(name, one)), ir.Not(one_of(name, other))))
    for rows, table in tables:
        for condition in (either, ir.And((either, ir.Not(one_of("flag"))))):
            wanted = selected(condition, rows)[name]
            found = table.scan([name], condition)[name]
            assert found.null_count == wanted.null_count == 0
            assert len(found) == len(wanted)


def test_infinities_of_either_sign_bound_what_is_a_number(tmp_path: Path) -> None:
    """NaN has a sign, and the store orders one of them before every number."""
    bits = np.array([0xFFF8000000000000, 0x7FF8000000000000], np.uint64).view(np.float64)
    rows = pa.table({"x": pa.array([*bits, -INF, 0.0, INF])})
    store = LanceTables(str(tmp_path), fsync=False)
    for indices in ((), (IndexEdit("x", "BTREE"),)):
        empty = store.create(f"t{len(indices)}", rows.schema)
        table = store.open(store.stage(empty, TableEdit(append=rows, indices=indices)).ref)
        for op in Op:
            for condition in (compare("x", op, 0.0), ir.Not(compare("x", op, 0.0))):
                assert table.count(condition) == selected(condition, rows).num_rows, (op, condition)
        assert table.lookup("x", pa.array([NAN]), ["x"]).num_rows == 2


# --- conditions of queries -----------------------------------------------------------------------------------------

BOUND = ir.Bound({"s": "NO", "n": 3, "none": None, "list": ("a", None), "nolist": None})
PARAMS = "$s: String, $n: I64, $none: String?, $list: [String], $nolist: [String]?"
VESSEL = arrow_schema(harbour().nodes["Vessel"])
PORT = arrow_schema(harbour().nodes["Port"])


def asked(text: str) -> ir.Expr:
    """A condition on `$v: Vessel` or `$p: Port`, as the scan of its variable holds it."""
    query = compile_query(
        f"query q({PARAMS}) {{ match {{ $v: Vessel $p: Port {text} }} return {{ $v.name }} }}",
        harbour(),
    )
    assert isinstance(query.body, ir.Read)
    join = query.body.plan
    assert isinstance(join, ir.Project)
    assert isinstance(join.input, ir.Join)
    for side in (join.input.left, join.input.right):
        if isinstance(side, ir.NodeScan) and side.predicate is not None:
            return closed(side.predicate, BOUND)
    raise AssertionError(f"{text} is in no scan")


@pytest.mark.parametrize(
    ("text", "pushed"),
    [
        ("$v.teu > 3", "`teu` > 3"),
        ("3 < $v.teu", "`teu` > 3"),
        ("$v.teu >= $n + 1", "`teu` >= 4"),
        ("$v.flag = $s", "`flag` = 'NO'"),
        ("$v.flag != $none", None),
        ('$v.id = "x"', "`id` = 'x'"),
        ("$v.active", "`active` = true"),
        ("not $v.active", "`active` <> true"),
        ("$v.flag is null", "`flag` IS NULL"),
        ("$v.flag is not null", "`flag` IS NOT NULL"),
        ("$v.flag in $list", "`flag` IN ('a')"),
        ("$v.flag in $nolist", None),
        ("$v.teu in [1, 2]", "`teu` IN (1, 2)"),
        ('$v.name contains "a"', "contains(`name`, 'a')"),
        ("$v.name starts_with $s", "starts_with(`name`, 'NO')"),
        ("$v.name contains $none", None),
        ('$p.tags contains "a"', "(`tags` IS NOT NULL AND (array_has(`tags`, 'a')))"),
        ("$p.tags contains $none", None),
        ("$list contains $v.flag", "`flag` IN ('a')"),
        (
            "not ($list contains $v.flag)",
            "(`flag` IS NULL OR (`flag` IS NOT NULL AND `flag` NOT IN ('a')))",
        ),
        ('$v.built < date("2024-01-01")', "`built` < date '2024-01-01'"),
        ('$v.teu > 1 or $v.flag = "a"', "(`teu` > 1 OR `flag` = 'a')"),
    ],
)
def test_pushed_down(text: str, pushed: str | None) -> None:
    down = push_down(asked(text), PORT if "$p." in text else VESSEL)
    assert down.rest is None
    assert down.text == pushed
    assert (down.filter is False) is (pushed is None)


@pytest.mark.parametrize(
    "text",
    [
        'lower($v.name) = "a"',
        "$v.teu + 1 > 3",
        "$v.name = $v.flag",
        'search($v.notes, "a")',
        '$v.teu > 1 or lower($v.name) = "a"',
        'regex_match($v.name, "a")',
        '"abc" contains $v.name',
    ],
)
def test_not_pushed_down(text: str) -> None:
    down = push_down(asked(text), VESSEL)
    assert (down.filter, down.pushed, down.rest) == (True, None, asked(text))


def test_what_is_pushed_down_is_divided_from_the_rest() -> None:
    both = asked('$v.teu > 3 lower($v.name) = "a" $v.active')
    down = push_down(both, VESSEL)
    assert down.text == "(`teu` > 3 AND `active` = true)"
    assert down.pushed == asked("$v.teu > 3 $v.active")
    assert down.rest == asked('lower($v.name) = "a"')
