"""A received body as something to load: a stream that tells how far it was read, or a file that Spark can read."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from omnigraph.server.bodies import GATHER_BYTES, Spool
from omnigraph.server.calls import Call
from omnigraph.server.jobs import Job

LINES = ".ndjson"


@dataclass(frozen=True, slots=True)
class Received(os.PathLike[str]):
    """The path of a received body. A repetition of the request is recognised by what was in it."""

    path: str
    digest: str

    def __fspath__(self) -> str:
        return self.path


class Watched:
    """A body that is read by a job."""

    def __init__(self, spool: Spool, job: Job) -> None:
        self._spool = spool
        self._job = job
        self._done = 0
        self.digest = spool.digest

    def read(self, size: int = -1) -> bytes:
        self._job.progress("read", self._done, self._spool.size)
        block = self._spool.read(size)
        self._done += len(block)
        return block


@contextmanager
def readable(call: Call, source: Any) -> Iterator[Any]:
    """What a load reads; a large body as a file, which the pipeline can cut into pieces."""
    if not isinstance(source, Spool):
        yield source
    elif source.size > call.unguarded.repository.limits.interactive_bytes_max:
        with _as_file(source) as path:
            yield path
    else:
        yield source if call.job is None else Watched(source, call.job)


@contextmanager
def _as_file(spool: Spool) -> Iterator[Received]:
    with tempfile.NamedTemporaryFile(prefix="omnigraph-load-", suffix=LINES) as file:
        shutil.copyfileobj(spool, file, GATHER_BYTES)
        file.flush()
        yield Received(file.name, spool.digest)
