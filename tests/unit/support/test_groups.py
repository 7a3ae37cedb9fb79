"""Tests that share a session, a browser or a machine's limits stay in one worker."""

from __future__ import annotations

import os

import pytest


@pytest.mark.xdist_group("groups")
def test_a_group_is_known_to_the_runner(request: pytest.FixtureRequest) -> None:
    if "PYTEST_XDIST_WORKER" in os.environ:
        assert request.node.nodeid.endswith("@groups"), "groups are spread over all workers"
