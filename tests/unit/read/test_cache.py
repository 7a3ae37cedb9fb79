"""One memory budget, kept by dropping what was not used for longest."""

from __future__ import annotations

import pytest

from omnigraph.read.budget import Budget, Memory, MemoryExceeded, running, stopped
from omnigraph.read.cache import Cache


def test_the_least_recently_used_goes_first() -> None:
    cache = Cache(100)
    cache.put("a", "A", 40)
    cache.put("b", "B", 40)
    assert cache.get("a") == "A"
    cache.put("c", "C", 40)
    assert (cache.get("a"), cache.get("b"), cache.get("c")) == ("A", None, "C")
    assert cache.bytes_used == 80


def test_what_is_larger_than_the_budget_is_not_kept_and_does_not_stay_counted() -> None:
    cache = Cache(100)
    cache.put("a", "A", 101)
    assert cache.get("a") is None
    assert cache.bytes_used == 0


def test_what_is_larger_than_the_budget_drops_nothing_else() -> None:
    cache = Cache(100)
    cache.put("a", "A", 60)
    cache.put("b", "B", 101)
    assert (cache.get("a"), cache.get("b")) == ("A", None)
    cache.put("b", "B", 30)
    cache.weigh("b", 101)  # it grew
    assert (cache.get("a"), cache.get("b"), cache.bytes_used) == ("A", None, 60)
    cache.put("a", "A", 101)
    assert (cache.get("a"), cache.bytes_used) == (None, 0), "a value that was replaced"


def test_what_is_larger_than_the_budget_is_charged_to_the_query_that_needs_it() -> None:
    cache, memory, made = Cache(100), Memory(1000), []

    def make() -> str:
        made.append(1)
        return "A"

    budget = Budget(500, memory=memory)
    token = running(budget)
    try:
        for _ in range(2):
            assert cache.get_or_build("a", make, lambda _: 300) == "A"
        assert (made, budget.bytes_used, memory.bytes_used) == ([1], 300, 300)
        with pytest.raises(MemoryExceeded, match="Columns needs 600 bytes") as error:
            cache.get_or_build("b", make, lambda _: 300)
        assert "OMNIGRAPH_MEMORY" in (error.value.help or "")
    finally:
        stopped(token)
        budget.close()
    assert (cache.bytes_used, memory.bytes_used) == (0, 0)


def test_what_the_cache_has_room_for_is_not_charged_to_the_query() -> None:
    cache, memory = Cache(100), Memory(1000)
    budget = Budget(500, memory=memory)
    token = running(budget)
    try:
        cache.get_or_build("a", lambda: "A", lambda _: 100)
        assert (cache.bytes_used, budget.bytes_used) == (100, 0)
    finally:
        stopped(token)
        budget.close()


def test_replacing_a_value_counts_it_once() -> None:
    cache = Cache(100)
    cache.put("a", 1, 60)
    cache.put("a", 2, 70)
    assert (cache.get("a"), cache.bytes_used) == (2, 70)


def test_a_value_that_grew_takes_the_place_of_others() -> None:
    cache = Cache(100)
    cache.put("a", 1, 40)
    cache.put("b", 2, 40)
    cache.weigh("b", 70)
    assert (cache.get("a"), cache.get("b"), cache.bytes_used) == (None, 2, 70)
    cache.weigh("unknown", 70)
    assert cache.bytes_used == 70


def test_a_smaller_budget_takes_effect_at_once() -> None:
    cache = Cache(100)
    cache.put("a", 1, 60)
    cache.resize(50)
    assert (cache.get("a"), cache.bytes_used) == (None, 0)


def test_a_value_is_made_once() -> None:
    cache, made = Cache(100), []

    def make() -> str:
        made.append(1)
        return "A"

    for _ in range(2):
        assert cache.get_or_build("a", make, len) == "A"
    assert made == [1]


def test_a_failure_to_make_a_value_leaves_nothing_behind() -> None:
    cache = Cache(100)

    def fail() -> str:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        cache.get_or_build("a", fail, len)
    assert cache.get_or_build("a", lambda: "A", len) == "A"
