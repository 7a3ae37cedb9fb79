"""One server and one browser for all tests of the explorer; a window for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.explorer import browser as browsers
from tests.explorer.world import World, serve

Open = Callable[..., AbstractContextManager[Page]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where something is missing the tests are skipped, and say what."""
    why = browsers.missing()
    if why is None:
        return
    for item in items:
        if "tests/explorer/" in item.path.as_posix():
            item.add_marker(pytest.mark.skip(reason=why))


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with serve(tmp_path_factory.mktemp("explored")) as served:
        yield served


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Gone with its module: while it is driven, an event loop runs in this thread, which other tests would meet."""
    with browsers.launched() as launched:
        yield launched


@pytest.fixture
def window(browser: Browser, world: World, request: pytest.FixtureRequest) -> Any:
    """Opens watched windows: `with window() as page`."""
    name = request.node.name.replace("/", "-")
    return partial(browsers.opened, browser, world.address, name)


@pytest.fixture
def page(window: Open) -> Iterator[Page]:
    with window() as opened:
        yield opened
