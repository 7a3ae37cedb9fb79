"""Several clients of one faulty S3 store in one process, told apart by their credentials."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from omnigraph.core.repository import Repository, read_stamp, repository_at
from omnigraph.graph import Graph
from omnigraph.model.limits import DEFAULT
from omnigraph.storage.objects import locate, open_objects
from tests.support.faults import Gate
from tests.support.faulty_s3 import FaultyS3
from tests.support.s3_objects import Request


def client(store: FaultyS3, uri: str, actor: str) -> Graph:
    """The graph as opened by this actor: no head, commit or schema is shared with others."""
    place = locate(uri, store.address_of(actor).environment())
    objects = open_objects(place)
    repo: Repository = repository_at(place, objects, read_stamp(objects), DEFAULT)
    return Graph(repo)


def writes_to(folder: str) -> Callable[[Request], bool]:
    """Writes of objects somewhere under a folder of this name."""
    return lambda request: request.method == "PUT" and f"/{folder}/" in request.key


def is_table(request: Request) -> bool:
    return "/nodes/" in request.key or "/edges/" in request.key


def stalled(
    store: FaultyS3,
    actor: str,
    work: Callable[[], Any],
    meanwhile: Callable[[], Any],
    *,
    matches: Callable[[Request], bool] | None = None,
) -> Future[Any]:
    """Start an actor's work, hold one of its requests back, let something happen meanwhile, then let it go on.

    What is held back is the commit, unless `matches` says otherwise; opened tables are shared by all clients of the
    process, so writes to them are not told apart by their actor, and the first one counts.
    """
    wanted = matches or writes_to("__manifest")
    gate: Gate = store.hold(
        matches=lambda request: wanted(request) and (request.actor == actor or is_table(request)),
    )
    pool = ThreadPoolExecutor(1)
    future = pool.submit(work)
    gate.wait_reached()
    try:
        meanwhile()
    finally:
        gate.open()
        pool.shutdown(wait=True)
    return future
