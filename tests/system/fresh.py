"""Answers of processes that just started.

One process imports everything and touches nothing; for each question it forks a child, which opens the graph, answers
and ends. So every answer comes from a process without a past, at the price of a fork.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import multiprocessing
import os
import traceback
from collections.abc import Sequence
from functools import cache
from multiprocessing.connection import Connection
from typing import Any

ANSWER_SECONDS = 120
READY = "ready"
IMPORTED = (
    "omnigraph.graph",
    "omnigraph.operations",
    "omnigraph.outcomes",
    "omnigraph.read.export",
    "omnigraph.lang.schema",
    "tests.system.observe",
    "tests.system.planted",
)


class Nursery:
    """The process that forks."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()
        self._receive()

    def ask(
        self, uri: str, questions: Sequence[tuple[str, str, Any]], bug: str | None = None
    ) -> list[Any]:
        """What a new process answers to each of (way, point, shape); a failure is an answer too."""
        self._pipe.send((uri, list(questions), bug))
        answers: list[Any] = self._receive()
        return answers

    def _receive(self) -> Any:
        if not self._pipe.poll(ANSWER_SECONDS):
            raise TimeoutError("a new process did not answer")
        return self._pipe.recv()

    def close(self) -> None:
        with contextlib.suppress(OSError, BrokenPipeError):
            self._pipe.send(None)
        self._process.join(10)


@cache
def nursery() -> Nursery:
    """The one of this process."""
    made = Nursery()
    atexit.register(made.close)
    return made


def _serve(pipe: Connection) -> None:
    for name in IMPORTED:
        importlib.import_module(name)
    pipe.send(READY)
    while (asked := pipe.recv()) is not None:
        child = os.fork()
        if child == 0:
            _answer(pipe, *asked)
        os.waitpid(child, 0)


def _answer(
    pipe: Connection, uri: str, questions: list[tuple[str, str, Any]], bug: str | None
) -> None:
    try:
        pipe.send(_answers(uri, questions, bug))
    except BaseException:
        pipe.send([("failed", traceback.format_exc())] * max(1, len(questions)))
    finally:
        os._exit(0)


def _answers(uri: str, questions: list[tuple[str, str, Any]], bug: str | None) -> list[Any]:
    import omnigraph
    from tests.system import observe, planted

    if bug is not None:
        planted.plant_for_ever(bug)
    graph = omnigraph.open(uri)
    found: list[Any] = []
    for way, at, shape in questions:
        try:
            found.append(("shown", observe.WAYS[way](graph, at, shape)))
        except omnigraph.OmnigraphError as error:
            found.append(("refused", str(error.code)))
        except Exception:
            found.append(("failed", traceback.format_exc()))
    return found
