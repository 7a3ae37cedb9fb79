"""The world every test of security starts from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server import world as worlds


@pytest.fixture
def world(tmp_path: Path) -> Iterator[worlds.World]:
    with worlds.world(tmp_path) as made:
        yield made
