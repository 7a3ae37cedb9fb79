"""What every test can ask for: stores, roots for graphs, and how much to do."""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support import rings, s3server
from tests.support.faulty_s3 import FaultyS3
from tests.support.proxy import Proxy
from tests.support.s3server import S3Address

settings.register_profile(
    "dev",
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("nightly", settings.get_profile("dev"), max_examples=2_000)
settings.load_profile("nightly" if rings.is_nightly() else "dev")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave nightly tests out unless the run asks for them, by the variable or by `-m nightly`."""
    if rings.is_nightly() or "nightly" in config.getoption("markexpr"):
        return
    nightly = [item for item in items if item.get_closest_marker("nightly")]
    config.hook.pytest_deselected(items=nightly)
    items[:] = [item for item in items if not item.get_closest_marker("nightly")]


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
