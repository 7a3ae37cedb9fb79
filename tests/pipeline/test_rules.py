"""What a valid row is does not depend on who judges: look-ups in Arrow, SQL in the driver, SQL on Spark."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph, OmnigraphError
from omnigraph.core.txn import WriteTxn
from omnigraph.pipeline import judging as bulk
from omnigraph.pipeline import lookups, screen, verify
from omnigraph.pipeline.pinned import pin
from omnigraph.pipeline.sources import cut
from omnigraph.pipeline.stage import LoadJob, Staging, pieces_of, stage_pieces
from omnigraph.pipeline.table_versions import TableVersion, TextColumn
from omnigraph.pipeline.verify import OnSpark
from omnigraph.write.input.options import Options
from omnigraph.write.load import load
from omnigraph.write.resolve import Mode
from tests.pipeline.planes import comparable, write_lines
from tests.pipeline.random_rules import RuleMaker
from tests.support.rings import count

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
BATCHES = 4  # for each schema
FIRST_SEED = 8  # this and the next five break every kind of rule
SPLIT_BYTES = 700  # so few that rows that break a rule together lie in different tasks
Verdict = tuple[str | None, list[dict[str, Any]]]


def verdict(judge: Any) -> Verdict:
    try:
        judge()
    except OmnigraphError as error:
        return str(error.code), [comparable(v) for v in error.details.get("violations", [])]
    return None, []


class Case:
    """One graph and one input, judged by each plane; nothing is published."""

    def __init__(self, graph: Graph, file: Path, mode: str) -> None:
        self.graph, self.source, self.mode = graph, str(file), mode
        self.snapshot = graph.snapshot()

    def by_look_ups(self) -> Verdict:
        txn = WriteTxn(self.snapshot, "main", NOW, self.snapshot.catalog)
        return verdict(lambda: load(self.source, self.mode)(txn))

    def by_queries(self, way: str = "queries") -> Verdict:
        """By SQL alone, or in the way that a load of few or many rows is judged first."""
        inputs = cut(self.source, self.snapshot.catalog, SPLIT_BYTES)
        job = LoadJob(
            pin(self.graph._repo, self.snapshot), "main", NOW, Mode(self.mode), Options(), 7
        )
        splits = tuple(stage_pieces(job, s.index, pieces_of(job, s)) for s in inputs.splits)
        staging = Staging(job, inputs, splits)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(lookups, "LOOKED_UP_ROWS_MAX", 1_000 if way == "look-ups" else -1)
            patch.setattr(screen, "PARTITION_KEYS", 10)
            if way == "queries on disk":
                patch.setattr(verify, "HELD_ROWS_MAX", 0)
            if way.startswith("queries"):
                patch.setattr(bulk, "_is_valid", lambda *_: False)
            return verdict(lambda: bulk.verified(staging, self.snapshot, None))


def cases(seed: int, folder: Path, batches: int = BATCHES) -> list[Case]:
    made = RuleMaker(seed)
    graph = omnigraph.init(folder / f"graph-{seed}", schema=made.schema)
    graph.load(made.base(), mode="append", engine="local")
    if seed % 2:
        graph.optimize()  # look-ups go through indices
    found = []
    for number in range(batches):
        mode = made.rng.choice(["append", "merge", "overwrite"])
        file = write_lines(folder / f"{seed}-{number}.jsonl", made.batch(mode))
        found.append(Case(graph, file, mode))
    return found


def test_look_ups_and_queries_agree(tmp_path: Path) -> None:
    rules: set[str] = set()
    twice: set[str] = set()  # values, as texts
    for seed in range(FIRST_SEED, FIRST_SEED + count(6, 150)):
        for case in cases(seed, tmp_path):
            expected = case.by_look_ups()
            for way in ("queries", "queries on disk", "look-ups", "partitions"):
                assert case.by_queries(way) == expected, (seed, case.source, case.mode, way)
            rules |= {violation["rule"] for violation in expected[1]}
            twice |= {str(found["value"]) for found in expected[1] if found["rule"] == "unique"}
    assert rules >= {"required", "enum", "range", "check", "key", "duplicate", "unique"}
    assert rules >= {"endpoint", "orphan_edge", "cardinality"}
    assert "nan" in twice


def test_spark_judges_as_the_driver_does(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The queries, on columns the driver read: `test_planes` has tasks read them."""

    def frame(version: TableVersion, session: Any, columns: Sequence[TextColumn]) -> Any:
        return session.createDataFrame(version.table(columns))

    monkeypatch.setattr(TableVersion, "frame", frame)
    monkeypatch.setattr(bulk, "judge_for", lambda *_: OnSpark(spark))
    for seed in range(FIRST_SEED, FIRST_SEED + count(1, 20)):
        for case in cases(seed, tmp_path, 1):
            assert case.by_queries() == case.by_look_ups(), (seed, case.source, case.mode)
