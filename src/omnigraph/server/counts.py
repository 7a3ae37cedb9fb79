"""What is currently held, by actor: requests, bytes, streams, jobs. Workers of one server count together.

They share a table in memory. A row belongs to an actor while they hold something, and has a cell for each worker and
kind of thing; a worker writes only its own cells, so that those of a dead worker can be cleared. The first row is the
total. Rows are found as in a set-associative cache: a key has a few slots, and takes over one whose owner holds
nothing.
"""

from __future__ import annotations

import fcntl
import hashlib
import mmap
import os
import tempfile
import threading
from enum import IntEnum, auto

from omnigraph.server.errors import ServerBusy

WAYS = 16
SETS = 256
ROWS = SETS * WAYS + 1
KEY_WORDS = 2
WORD_BYTES = 8
EVERYBODY = 0  # the row
NOWHERE = (0, 0, 0)


class Counted(IntEnum):
    """What is counted."""

    REQUESTS = 0
    BYTES = auto()
    UPLOADS = auto()
    EXPORTS = auto()
    JOBS = auto()
    LOADS_RUNNING = auto()
    JOBS_RUNNING = auto()
    CONNECTIONS = auto()  # of a worker, for the process that hands them out
    TAKEN = auto()  # how many it was handed so far


KINDS = len(Counted)


class Counts:
    """The table. Without a file it is private to this process; with one, shared by all that have it open."""

    def __init__(self, file: int | None = None, worker: int = 0, workers: int = 1) -> None:
        self._row_words = KEY_WORDS + workers * KINDS
        size = ROWS * self._row_words * WORD_BYTES
        self._file = file
        self._workers = workers
        self._own = KEY_WORDS + worker * KINDS
        self._lock = threading.Lock()
        self._known: dict[str, tuple[int, int, int]] = {}
        self._cells = memoryview(mmap.mmap(-1 if file is None else file, size)).cast("q")

    def total(self, kind: Counted, actor: str) -> int:
        """How much an actor holds of something, in all workers."""
        with self:
            return self._sum(self._row(actor), kind)

    def everybody(self, kind: Counted) -> int:
        """How much all actors hold of something."""
        with self:
            return self._sum(EVERYBODY, kind)

    def __enter__(self) -> None:
        """Lock the counts. The system releases the lock of a process that dies."""
        self._lock.acquire()
        if self._file is not None:
            fcntl.lockf(self._file, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            fcntl.lockf(self._file, fcntl.LOCK_UN)
        self._lock.release()

    def held(self, kind: Counted, actor: str) -> tuple[int, int]:
        """How much an actor holds, and the total; call it under the lock."""
        return self._sum(self._row(actor), kind), self._sum(EVERYBODY, kind)

    def add(self, kind: Counted, actor: str, n: int) -> None:
        """Count something of an actor in this worker; call it under the lock."""
        cells, words, at = self._cells, self._row_words, self._own + kind
        cells[self._row(actor) * words + at] += n
        cells[at] += n

    def forget(self, worker: int) -> None:
        """Clear the cells of a worker that has ended."""
        first = KEY_WORDS + worker * KINDS
        with self:
            for row in range(ROWS):
                start = row * self._row_words
                for cell in range(start + first, start + first + KINDS):
                    if self._cells[cell]:
                        self._cells[cell] = 0

    # --- figures of a worker ---------------------------------------------------------------------------------------

    def say(self, kind: Counted, n: int) -> None:
        """Set a figure of this worker."""
        self._cells[self._own + kind] = n

    def said(self, kind: Counted, worker: int) -> int:
        return self._cells[KEY_WORDS + worker * KINDS + kind]

    # --- rows ------------------------------------------------------------------------------------------------------

    def _sum(self, row: int, kind: Counted) -> int:
        first = row * self._row_words + KEY_WORDS + kind
        return sum(self._cells[first : first + self._workers * KINDS : KINDS])

    def _row(self, actor: str) -> int:
        """The row of an actor; a new one replaces an actor who holds nothing."""
        row, high, low = self._known.get(actor, NOWHERE)
        at = row * self._row_words
        if row and self._cells[at] == high and self._cells[at + 1] == low:
            return row
        if len(self._known) >= ROWS:
            self._known.clear()
        self._known[actor] = found = self._find(actor)
        return found[0]

    def _find(self, actor: str) -> tuple[int, int, int]:
        digest = hashlib.blake2b(actor.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        high, low = int.from_bytes(digest[:7]) + 1, int.from_bytes(digest[8:15])
        cells, words = self._cells, self._row_words
        first = 1 + (low % SETS) * WAYS
        free = 0
        for row in range(first, first + WAYS):
            at = row * words
            if cells[at] == high and cells[at + 1] == low:
                return row, high, low
            if not free and (not cells[at] or not any(cells[at + KEY_WORDS : at + words])):
                free = row
        if not free:
            raise ServerBusy("the server is busy with too many actors at once")
        cells[free * words], cells[free * words + 1] = high, low
        return free, high, low


def shared_file(workers: int) -> int:
    """A file for the counts of this many workers, which vanishes once no process has it open."""
    size = ROWS * (KEY_WORDS + workers * KINDS) * WORD_BYTES
    if hasattr(os, "memfd_create"):
        file = os.memfd_create("omnigraph-counts")
    else:
        with tempfile.TemporaryFile() as made:
            file = os.dup(made.fileno())
    os.ftruncate(file, size)
    return file
