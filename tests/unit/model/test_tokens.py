"""Footprints never miss what they were given, and tell most other things apart."""

from __future__ import annotations

from datetime import date

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.model.tokens import (
    EXACT_TOKENS_MAX,
    NO_TOKENS,
    Footprint,
    endpoint_tokens,
    id_tokens,
    union,
    unique_tokens,
)

names = st.lists(st.text(max_size=40), max_size=30)


@given(names, names)
def test_a_small_footprint_is_exact(one: list[str], other: list[str]) -> None:
    footprint = Footprint.of(id_tokens(pa.array(one, pa.string())))
    meets = footprint.meets(id_tokens(pa.array(other, pa.string())))
    assert meets == bool(set(one) & set(other))


@pytest.mark.parametrize("count", [0, 1, EXACT_TOKENS_MAX, EXACT_TOKENS_MAX + 1, 20_000, 200_000])
def test_a_footprint_never_misses_what_it_holds(count: int) -> None:
    held = id_tokens(pa.array([f"id{i}" for i in range(count)], pa.string()))
    footprint = Footprint.from_text(Footprint.of(held).to_text())
    for start in range(0, count, max(1, count // 50)):
        assert footprint.meets(held[start : start + 1])


def test_a_large_footprint_is_right_about_most_strangers() -> None:
    footprint = Footprint.of(id_tokens(pa.array([f"id{i}" for i in range(20_000)])))
    strangers = id_tokens(pa.array([f"other{i}" for i in range(2_000)]))
    wrong = sum(footprint.meets(strangers[i : i + 1]) for i in range(len(strangers)))
    assert wrong < 20, f"{wrong} of 2000 strangers were taken for members"


def test_a_footprint_too_large_to_write_down_means_everything() -> None:
    footprint = Footprint.of(np.arange(1_000_000, dtype=np.uint64))
    assert footprint.to_text() == "*"
    assert footprint.meets(id_tokens(pa.array(["x"])))


@pytest.mark.parametrize("text", ["", "?", "=!", "=AAA", "~", "~AAAA", "*", "=AAAA"])
def test_what_cannot_be_understood_means_everything(text: str) -> None:
    assert Footprint.from_text(text).meets(id_tokens(pa.array(["x"])))


def test_an_empty_footprint_meets_nothing() -> None:
    assert not Footprint.of(NO_TOKENS).meets(id_tokens(pa.array(["x"])))
    assert not Footprint.of(id_tokens(pa.array(["x"]))).meets(NO_TOKENS)
    assert Footprint.of(NO_TOKENS).to_text() == "="


def test_kinds_of_facts_are_told_apart() -> None:
    ids = pa.array(["a"])
    spaces = [
        id_tokens(ids),
        endpoint_tokens("src", ids),
        endpoint_tokens("dst", ids),
        unique_tokens(["email"], [ids]),
        unique_tokens(["name"], [ids]),
    ]
    assert len(set(np.concatenate(spaces).tolist())) == len(spaces)


def test_tuples_are_not_confused() -> None:
    group = ["first", "last"]
    pairs = [("ab", "c"), ("a", "bc"), ("bc", "a"), ("abc", "")]
    found = unique_tokens(group, [pa.array(column) for column in zip(*pairs, strict=True)])
    assert len(set(found.tolist())) == len(pairs)


def test_a_null_is_exempt_from_uniqueness() -> None:
    found = unique_tokens(["a", "b"], [pa.array(["x", None, "y"]), pa.array(["1", "2", None])])
    assert len(found) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pa.array([0.0]), pa.array([-0.0])),
        (pa.array(["a"], pa.string()), pa.array(["a"], pa.large_string())),
        (pa.chunked_array([["a"]]), pa.array(["a"])),
        (pa.array([date(2026, 1, 1)]), pa.array([date(2026, 1, 1)])),
        (pa.array(["x", "a"]).slice(1), pa.array(["a"])),
    ],
)
def test_equal_values_have_equal_tokens(one: pa.Array, other: pa.Array) -> None:
    first, second = unique_tokens(["v"], [one]), unique_tokens(["v"], [other])
    assert first.tolist() == second.tolist()


@given(st.lists(st.text(max_size=20), max_size=20))
def test_tokens_do_not_depend_on_the_neighbours(texts: list[str]) -> None:
    together = id_tokens(pa.array(texts, pa.string())).tolist()
    alone = [int(id_tokens(pa.array([text], pa.string()))[0]) for text in texts]
    assert together == alone


def test_a_union_has_each_token_once() -> None:
    a, b = id_tokens(pa.array(["x", "y"])), id_tokens(pa.array(["y", "z"]))
    assert len(union([a, b, NO_TOKENS])) == 3
    assert union([]).tolist() == []
