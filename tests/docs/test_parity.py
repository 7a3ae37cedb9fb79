"""Every command has a Python call and an HTTP route, or a reason why not."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
from docs.generate.parity import PARITY, Counterpart

from omnigraph.cli import app
from omnigraph.graph import Graph
from omnigraph.server.routes import ROUTES

EACH = [pytest.param(found, id=name) for name, found in PARITY.items()]


def test_every_command_is_listed() -> None:
    assert set(PARITY) == {command.path for command in app.every_command()}


@pytest.mark.parametrize("found", EACH)
def test_a_call_exists(found: Counterpart) -> None:
    if found.call is not None:
        target = _resolved(found.call)
        assert target is not None
        assert target.__doc__ or isinstance(target, str), f"{found.call} says nothing about itself"


@pytest.mark.parametrize("found", EACH)
def test_a_route_exists(found: Counterpart) -> None:
    routes = {f"{route.method} {route.path}" for route in ROUTES}
    assert found.route is None or found.route in routes


@pytest.mark.parametrize("found", EACH)
def test_what_is_missing_has_a_reason(found: Counterpart) -> None:
    assert bool(found.reason) is (found.call is None or found.route is None)


def _resolved(path: str) -> Any:
    if path.startswith("Graph."):
        return getattr(Graph, path.removeprefix("Graph."))
    module, _, name = path.rpartition(".")
    return getattr(import_module(module), name)
