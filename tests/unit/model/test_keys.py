"""Ids: what a key's values look like as text, and fresh ones."""

from __future__ import annotations

import datetime as dt
import json
import math
import time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import OptionInvalid
from omnigraph.model.keys import ULIDS_MAX, fresh_ids, key_ids, ulids, value_texts

DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
NOW = dt.datetime(2024, 5, 31, 12, tzinfo=dt.UTC)
UTC_MICROS = pa.timestamp("us", tz="UTC")


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        ("héllo wörld", pa.string(), "héllo wörld"),
        ("", pa.string(), ""),
        (-7, pa.int32(), "-7"),
        (2**64 - 1, pa.uint64(), "18446744073709551615"),
        (True, pa.bool_(), "true"),
        (False, pa.bool_(), "false"),
        (dt.date(1970, 1, 2), pa.date32(), "1"),
        (dt.date(1969, 12, 31), pa.date32(), "-1"),
        (dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC), UTC_MICROS, "1000"),
        (dt.datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=dt.UTC), UTC_MICROS, "-1"),
        (1.0, pa.float64(), "1"),
        (2.5, pa.float64(), "2.5"),
        (1e21, pa.float64(), "1" + "0" * 21),
        (1e-7, pa.float64(), "0.0000001"),
        (-1e16, pa.float64(), "-10000000000000000"),
        (0.1, pa.float32(), "0.1"),
        (3.4e38, pa.float32(), "34" + "0" * 37),
        (0.0, pa.float64(), "0"),
        (-0.0, pa.float64(), "0"),
        (-0.0, pa.float32(), "0"),
    ],
)
def test_a_key_value_has_one_canonical_text(value: Any, kind: pa.DataType, expected: str) -> None:
    assert key_ids([pa.array([value], kind)]).to_pylist() == [expected]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, None])
def test_what_is_not_finite_identifies_nothing(value: float | None) -> None:
    assert key_ids([pa.array([value], pa.float64())]).to_pylist() == [None]


def test_a_composite_key_is_a_compact_json_array_in_key_order() -> None:
    ids = key_ids([pa.array(["acme", "b"]), pa.array([42, 7])])
    assert ids.to_pylist() == ['["acme","42"]', '["b","7"]']


def test_a_null_member_leaves_a_composite_key_without_id() -> None:
    assert key_ids([pa.array(["a", None]), pa.array([None, 1])]).to_pylist() == [None, None]


def test_uniqueness_tells_numbers_apart_that_identify_nothing() -> None:
    texts = value_texts([pa.array([math.inf, -math.inf, math.nan, None])]).to_pylist()
    assert len(set(texts)) == 4


@given(st.lists(st.tuples(st.text(), st.text()), min_size=1))
def test_composite_ids_read_back_as_json(keys: list[tuple[str, str]]) -> None:
    members = [pa.array([key[i] for key in keys], pa.string()) for i in range(2)]
    ids = key_ids(members).to_pylist()
    assert [tuple(json.loads(i)) for i in ids] == keys
    assert ids == [json.dumps(key, ensure_ascii=False, separators=(",", ":")) for key in keys]


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_float_keys_read_back_as_the_same_number(values: list[float]) -> None:
    ids = key_ids([pa.array(values, pa.float64())]).to_pylist()
    assert [float(i) for i in ids] == values
    assert not any("e" in i or i.endswith(".0") for i in ids)


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1))
def test_narrow_float_keys_are_shortest_at_their_own_width(values: list[float]) -> None:
    ids = key_ids([pa.array(values, pa.float32())]).to_pylist()
    assert pa.array([float(i) for i in ids], pa.float32()).to_pylist() == values
    assert all(len(Decimal(i).normalize().as_tuple().digits) <= 9 for i in ids)


def test_columns_in_chunks_give_the_same_ids() -> None:
    whole = pa.array(["a", "b", "c"])
    chunks = pa.chunked_array([whole[:1], whole[1:]])
    assert key_ids([chunks]).to_pylist() == key_ids([whole]).to_pylist()


def test_fresh_ids_are_ulids_of_the_instant() -> None:
    made = fresh_ids(3, NOW).to_pylist()
    stamp = 0
    for character in made[0][:10]:
        stamp = stamp * 32 + DIGITS.index(character)
    assert stamp == int(NOW.timestamp() * 1000)
    assert all(len(i) == 26 and set(i) <= set(DIGITS) for i in made)


def test_fresh_ids_sort_in_their_order_and_never_repeat() -> None:
    first, second = fresh_ids(5_000, NOW).to_pylist(), fresh_ids(5_000, NOW).to_pylist()
    assert first == sorted(first)
    assert len({*first, *second}) == 10_000


@given(st.integers(0, 2**96 - 1), st.integers(0, 2**31), st.integers(0, 2_100))
def test_ulids_are_their_number_in_base_32(high: int, start: int, count: int) -> None:
    made = ulids(high, start, count)
    made.validate(full=True)
    for at in {0, 1, 1_023 - start % 1_024, 1_024 - start % 1_024, count - 1} & set(range(count)):
        number = (high << 32) + start + at
        digits = [DIGITS[(number >> 5 * place) & 31] for place in reversed(range(26))]
        assert made[at].as_py() == "".join(digits)


def test_more_ids_than_one_array_holds_are_refused_before_they_are_made() -> None:
    with pytest.raises(OptionInvalid, match="more than one array of ids can hold"):
        ulids(0, 0, ULIDS_MAX + 1)


def test_a_million_fresh_ids_are_made_in_bulk() -> None:
    started = time.thread_time()
    assert len(fresh_ids(1_000_000, NOW)) == 1_000_000
    assert time.thread_time() - started < 5.0


def test_no_fresh_ids_are_no_ids() -> None:
    assert fresh_ids(0, NOW).to_pylist() == []
