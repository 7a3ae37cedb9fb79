"""Jobs that end with the query they are for: when its time is over, or when its client is gone."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import TYPE_CHECKING

from omnigraph.errors import OmnigraphError
from omnigraph.pipeline.session import context_of
from omnigraph.read.budget import Budget

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOK_SECONDS = 0.1  # between two looks at the clock
CANCEL_SECONDS = 0.5  # between two cancellations: the query may have gone on to its next job


@contextmanager
def ending_with(budget: Budget, session: SparkSession) -> Iterator[None]:
    """Jobs of this thread are cancelled when the time of a budget is over; its error takes the place of theirs."""
    budget.check()
    if not budget.may_end:
        yield
        return
    tag, done = f"omnigraph-{secrets.token_hex(8)}", Event()
    context = context_of(session)
    add, remove, cancel = (
        (session.addTag, session.removeTag, session.interruptTag)
        if context is None
        else (context.addJobTag, context.removeJobTag, context.cancelJobsWithTag)
    )
    watcher = Thread(target=_watch, args=(budget, lambda: cancel(tag), done), daemon=True)
    add(tag)
    watcher.start()
    try:
        yield
    except OmnigraphError as failed:
        _check_again(budget, failed)
        raise
    finally:
        done.set()
        watcher.join()
        remove(tag)
    budget.check()


def _watch(budget: Budget, cancel: Callable[[], object], done: Event) -> None:
    while not done.wait(LOOK_SECONDS):
        try:
            budget.check()
        except OmnigraphError:
            break
    while not done.is_set():
        with suppress(Exception):  # a closed session has nothing to cancel
            cancel()
        done.wait(CANCEL_SECONDS)


def _check_again(budget: Budget, failed: OmnigraphError) -> None:
    """Why jobs were cancelled, if the query was to end."""
    try:
        budget.check()
    except OmnigraphError as ended:
        raise ended from failed
