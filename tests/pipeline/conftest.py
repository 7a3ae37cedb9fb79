"""One small Spark session for all tests of a worker process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from omnigraph.pipeline.session import spark_session


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A local session that every Spark load of this process uses."""
    session = spark_session(master="local[2]")
    session.conf.set("spark.sql.shuffle.partitions", "2")
    session.conf.set("spark.sql.adaptive.enabled", "false")
    yield session
    session.stop()
