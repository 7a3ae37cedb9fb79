"""One cache and one snapshot, read by several threads at once, from the first build on."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from omnigraph.lang.query import compile_query
from omnigraph.read import Cache, run_query
from tests.support.comparing import normal
from tests.support.random_queries import SCHEMA, QueryMaker, random_rows
from tests.support.snapshots import make_graph

THREADS = 4
QUERIES = 40


def test_threads_get_the_answers_one_thread_gets(tmp_path: Path) -> None:
    graph = make_graph(tmp_path, SCHEMA, random_rows(random.Random(7)))
    texts = [QueryMaker(random.Random(i)).query() for i in range(QUERIES)]
    queries = [compile_query(text, graph.catalog) for text in texts]
    state = graph.snapshot

    def answers(cache: Cache) -> list[object]:
        found = [run_query(query, {}, state, cache=cache).rows for query in queries]
        return [sorted(map(repr, map(normal, rows))) for rows in found]

    alone = answers(Cache())
    for bytes_max in (1 << 20, 4096):  # the smaller one drops everything it is given at once
        shared = Cache(bytes_max)
        with ThreadPoolExecutor(THREADS) as pool:
            together = list(pool.map(answers, [shared] * THREADS))
        assert all(found == alone for found in together)
        assert shared.bytes_used <= bytes_max
