"""What goes wrong on Spark: told in our words, and tried again where that helps."""

from __future__ import annotations

from typing import Any

import pytest

from omnigraph.pipeline.failures import READS_MAX, SparkFailed, error_of, repeated_read
from omnigraph.pipeline.stage import Failure
from omnigraph.read.search.stored_text import TextFileUnusable


def test_an_error_of_a_task_is_made_again_whatever_its_constructor_takes() -> None:
    error = TextFileUnusable("_search/n1/1.text", "it is too short")
    sent = Failure.of(error).error()
    assert (type(sent), sent.message) == (TextFileUnusable, error.message)
    assert sent.details == {"object": "_search/n1/1.text"}
    found = error_of(f"omnigraph.read.search.stored_text.TextFileUnusable: {error.message}\n")
    assert (type(found), found.message) == (TextFileUnusable, error.message)
    refused = error_of("omnigraph.lang.diagnostics.LanguageError: unknown type\n")
    assert (type(refused), "unknown type" in refused.message) == (SparkFailed, True)


class Read:
    """A read that keeps rows between two steps, and loses them the first few times, as when an executor dies."""

    def __init__(self, spark: Any, losses: int) -> None:
        self.spark, self.losses = spark, losses
        self.times = 0

    def __call__(self) -> int:
        self.times += 1
        kept = self.spark.range(10).localCheckpoint()
        if self.times <= self.losses:
            kept._jdf.queryExecution().logical().rdd().unpersist(True)
        return int(kept.count())


def test_a_read_is_made_again_when_rows_it_kept_are_gone(spark: Any) -> None:
    read = Read(spark, losses=READS_MAX - 1)
    assert repeated_read(read) == 10
    assert read.times == READS_MAX


def test_a_read_is_not_made_again_for_ever(spark: Any) -> None:
    read = Read(spark, losses=READS_MAX)
    with pytest.raises(SparkFailed):
        repeated_read(read)
    assert read.times == READS_MAX


def test_another_failure_is_told_at_once(spark: Any) -> None:
    times = 0

    def read() -> Any:
        nonlocal times
        times += 1
        return spark.sql("SELECT raise_error('on purpose')").collect()

    with pytest.raises(SparkFailed, match="on purpose"):
        repeated_read(read)
    assert times == 1
