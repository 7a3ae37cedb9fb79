"""One small Spark session for all tests of a worker process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from omnigraph.pipeline.jvm_cds import ARCHIVE, archive_file
from omnigraph.pipeline.session import spark_session

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All of these run in one worker: a second one that starts Spark needs its memory twice."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session", autouse=True)
def nothing_stays_behind() -> None:
    """Use the archive of classes that is there, but do not build one when the tests are over."""
    if not archive_file().exists():
        os.environ[ARCHIVE] = "off"


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A local session that every Spark load of this process uses."""
    session = spark_session(master="local[2]")
    session.conf.set("spark.sql.shuffle.partitions", "2")
    session.conf.set("spark.sql.adaptive.enabled", "false")
    yield session
    session.stop()
