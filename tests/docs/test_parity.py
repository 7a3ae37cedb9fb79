"""One verb, three doors: every command has a call and a route, or a reason."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from omnigraph.cli import app
from omnigraph.cli.parity import PARITY, Doors
from omnigraph.graph import Graph
from omnigraph.remote.graph import UNSERVED, RemoteGraph
from omnigraph.server.routes import ROUTES

EACH = [pytest.param(doors, id=name) for name, doors in PARITY.items()]


def test_every_command_is_listed() -> None:
    commands: set[str] = set()
    for name in app.COMMANDS:
        match app.command(name):
            case app.Verb():
                commands.add(name)
            case app.Group(_, verbs):
                commands |= {f"{name} {verb.word}" for verb in verbs}
    assert set(PARITY) == commands


@pytest.mark.parametrize("doors", EACH)
def test_a_call_exists(doors: Doors) -> None:
    if doors.call is not None:
        found = _resolved(doors.call)
        assert found is not None
        assert found.__doc__ or isinstance(found, str), f"{doors.call} says nothing about itself"


@pytest.mark.parametrize("doors", EACH)
def test_a_route_exists(doors: Doors) -> None:
    routes = {f"{route.method} {route.path}" for route in ROUTES}
    assert doors.route is None or doors.route in routes


@pytest.mark.parametrize("doors", EACH)
def test_what_is_missing_has_a_reason(doors: Doors) -> None:
    assert bool(doors.why) is (doors.call is None or doors.route is None)


@pytest.mark.parametrize("doors", EACH)
def test_a_served_graph_has_the_verbs_that_have_a_route(doors: Doors) -> None:
    if doors.call is None or not doors.call.startswith("Graph."):
        return
    verb = doors.call.removeprefix("Graph.")
    if doors.route is None:
        assert verb in UNSERVED
    else:
        assert hasattr(RemoteGraph, verb), f"a served graph cannot {verb}"


def _resolved(path: str) -> Any:
    if path.startswith("Graph."):
        return getattr(Graph, path.removeprefix("Graph."))
    module, _, name = path.rpartition(".")
    return getattr(import_module(module), name)
