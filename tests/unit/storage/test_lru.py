"""The bounded cache that handles and recent rows share."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from omnigraph.storage.lru import Lru


def test_what_was_not_used_for_longest_is_forgotten() -> None:
    cache: Lru[str, int] = Lru(2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    cache.put("c", 3)
    assert [name in cache for name in "abc"] == [True, False, True]


def test_weights_bound_the_cache_and_replacing_counts_once() -> None:
    cache: Lru[str, str] = Lru(10, len)
    cache.put("a", "12345678")
    cache.put("a", "1234")
    cache.put("b", "123456")
    assert len(cache) == 2
    cache.put("c", "1")
    assert "a" not in cache
    cache.put("large", "x" * 11)
    assert len(cache) == 0


def test_threads_never_see_a_broken_cache() -> None:
    cache: Lru[int, int] = Lru(8)

    def work(start: int) -> None:
        for i in range(500):
            key = (start * i) % 23
            cache.put(key, key)
            assert cache.get(key) in (None, key)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(1, 9)))
    assert len(cache) <= 8
