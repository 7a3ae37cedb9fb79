"""What every test can ask for: stores, roots for graphs, and how much to do."""

from __future__ import annotations

import os
import signal
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.support import rings, s3server
from tests.support.faulty_s3 import FaultyS3
from tests.support.proxy import Proxy
from tests.support.record import record
from tests.support.s3server import S3Address

STARTED = time.monotonic()

settings.register_profile(
    "dev",
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("nightly", settings.get_profile("dev"), max_examples=200)
settings.load_profile("nightly" if rings.is_nightly() else "dev")


def pytest_configure() -> None:
    """What a shell starts in the background ignores interrupts, and so would every process a test starts."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave nightly tests out unless the run asks for them, by the variable or by `-m nightly`."""
    if rings.is_nightly():
        items[:] = _at_night(items)
    if rings.is_nightly() or "nightly" in config.getoption("markexpr"):
        return
    nightly = [item for item in items if item.get_closest_marker("nightly")]
    config.hook.pytest_deselected(items=nightly)
    items[:] = [item for item in items if not item.get_closest_marker("nightly")]


def _at_night(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """All tests, so that any kind of failure shows early: the many parts of sequences are spread among the others.

    What tests of one file share is made once, so they stay together. Spark's tests share one worker and come first, so
    that nobody waits for them alone at the end.
    """
    by_turn: dict[str, list[pytest.Item]] = {"planted": [], "others": [], "parts": [], "spark": []}
    for item in items:
        by_turn[_turn(item)].append(item)
    others, parts = by_turn["others"], by_turn["parts"]
    middle: list[pytest.Item] = []
    seen = given = 0
    for _, file in groupby(others, key=lambda item: item.path):
        together = list(file)
        seen += len(together)
        due = len(parts) * seen // len(others)
        middle += [*together, *parts[given:due]]
        given = due
    return [*by_turn["spark"], *by_turn["planted"], *middle]


def _turn(item: pytest.Item) -> str:
    group = item.get_closest_marker("xdist_group")
    if group is not None and group.args == ("spark",):
        return "spark"
    if item.name.startswith("test_model_and_system_agree"):
        return "parts"
    return "planted" if "tests/system/test_planted.py" in item.nodeid else "others"


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: Any, exitstatus: int, config: pytest.Config) -> None:
    """Keep how a run of everything went: how many tests, for how long, and beside what else."""
    asked = config.option.keyword or config.option.markexpr or config.getoption("lf", False)
    if hasattr(config, "workerinput"):
        return  # whoever started it tells of all
    if config.args_source is not pytest.Config.ArgsSource.TESTPATHS or asked:
        return
    stats = terminalreporter.stats
    ended = {name: len(stats.get(name, ())) for name in ("passed", "failed", "error", "skipped")}
    record(
        "everything",
        {
            **ended,
            "minutes": (time.monotonic() - STARTED) / 60,
            "workers": getattr(config.option, "numprocesses", None) or 1,
            "load average in the last quarter of an hour": os.getloadavg()[2],
            "ended": {0: "well", 1: "with failures"}.get(int(exitstatus), "early"),
        },
    )


@pytest.fixture
def graph_root(tmp_path: Path) -> str:
    """An address on the local disk where nothing is yet."""
    return str(tmp_path / "graph")


@pytest.fixture
def prefix() -> str:
    """A key prefix nobody else uses in a shared bucket."""
    return f"t-{uuid.uuid4().hex}"


@pytest.fixture
def memory_root(prefix: str) -> str:
    """An address in the memory of this process where nothing is yet."""
    return f"memory://{prefix}"


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Address]:
    """The S3 server of this test run, shared by its worker processes."""
    if s3server.weed_binary() is None:
        pytest.skip(s3server.MISSING)
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", f"{os.getpid()}")
    with s3server.shared(Path(tempfile.gettempdir()) / f"omnigraph-s3-{run[:16]}") as address:
        yield address


@pytest.fixture
def s3(s3_server: S3Address, monkeypatch: pytest.MonkeyPatch) -> S3Address:
    """A real S3 server; the AWS variables of this process point to it."""
    _set_environment(monkeypatch, s3_server)
    return s3_server


@pytest.fixture
def s3_root(s3: S3Address, prefix: str) -> str:
    """An address on the S3 server where nothing is yet."""
    return s3.uri(prefix)


@pytest.fixture
def proxied_s3(s3_server: S3Address, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """The S3 server behind a counting proxy; the AWS variables of this process point to the proxy."""
    with Proxy(s3_server.port) as proxy:
        _set_environment(monkeypatch, proxy.address)
        yield proxy


@pytest.fixture
def faulty_s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultyS3]:
    """An empty S3 stand-in with faults on command; the AWS variables of this process point to it."""
    with FaultyS3() as store:
        _set_environment(monkeypatch, store.address)
        yield store


def _set_environment(monkeypatch: pytest.MonkeyPatch, address: S3Address) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in address.environment().items():
        monkeypatch.setenv(name, value)
