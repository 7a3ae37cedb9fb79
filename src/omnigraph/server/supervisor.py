"""A server of several processes: this one listens, and hands every connection to the worker with the fewest.

A worker that dies is replaced, and only its own connections are lost. SIGHUP reloads the settings and replaces the
workers one by one; each new one must be ready before an old one finishes its connections. SIGTERM ends all of them.
Workers end when this process is gone.

Nothing heavy is imported here: a worker is a new process, since the table store does not survive a fork.
"""

from __future__ import annotations

import logging
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

import msgspec
from prometheus_client.multiprocess import mark_process_dead

from omnigraph.errors import OmnigraphError
from omnigraph.model.limits import memory_of_each
from omnigraph.server.counts import Counted, Counts, shared_file
from omnigraph.server.listening import (
    CONNECTION,
    FAILED,
    FINISH,
    LENGTH,
    METRICS_FOLDER,
    READY,
    Listen,
    Orders,
    WorkerFailed,
    bound,
)
from omnigraph.server.settings import ServerInvalid, Settings

WORKERS_MAX = 64
BACKLOG = 2048
ACCEPTED_AT_ONCE = 64
TICK_SECONDS = 0.5
STEADY_SECONDS = 5.0  # a worker that lived this long may be replaced immediately
RESTART_SECONDS_MAX = 10.0
KILL_AFTER_SECONDS = 10.0  # beyond the time a worker has to finish

log = logging.getLogger("omnigraph.server.supervisor")


@dataclass
class Process:
    """A worker, as this process sees it."""

    number: int
    process: subprocess.Popen[bytes]
    control: socket.socket
    generation: int
    begun: float = field(default_factory=time.monotonic)
    ready: bool = False
    finishing: bool = False
    sent: int = 0  # connections
    failed: bytes = b""


class Supervisor:
    """The process that listens. `read` returns the current settings."""

    def __init__(
        self,
        read: Callable[[], Settings],
        workers: int,
        listen: Listen,
        announce: Callable[[str], None],
    ) -> None:
        if not 1 <= workers <= WORKERS_MAX:
            raise ServerInvalid(f"--workers must be 1 to {WORKERS_MAX}, not {workers}")
        self._read = read
        self._settings = read()
        self._wanted = workers
        self._places = workers * 2  # old and new ones, while they are replaced
        self._listen = listen
        self._announce = announce
        self._file = shared_file(self._places)
        self._counts = Counts(self._file, 0, self._places)
        self._workers: list[Process] = []
        self._generation = 0
        self._replacing = self._renew_again = False
        self._announced = False
        self._ending: float | None = None
        self._restart_at = 0.0
        self._quick_deaths = 0
        self._unplaced: list[socket.socket] = []  # connections no worker could take yet
        self._events = selectors.DefaultSelector()
        self._accepts = False
        self._socket = bound(listen)

    def run(self) -> None:
        """Serve until a signal says otherwise."""
        with tempfile.TemporaryDirectory(prefix="omnigraph-metrics-") as self._metrics:
            woken, wakes = socket.socketpair()
            for end in (woken, wakes):
                end.setblocking(False)
            before = signal.set_wakeup_fd(wakes.fileno(), warn_on_full_buffer=False)
            handlers = {each: signal.signal(each, _noted) for each in SIGNALS}
            self._events.register(woken, selectors.EVENT_READ, self._signalled)
            self._socket.setblocking(False)
            self._socket.listen(BACKLOG)
            try:
                self._go_on()
            finally:
                self._kill_all()
                for each, handler in handlers.items():
                    signal.signal(each, handler)
                signal.set_wakeup_fd(before)
                for end in (woken, wakes, self._socket, *self._unplaced):
                    end.close()
                os.close(self._file)

    def _go_on(self) -> None:
        while self._ending is None or self._workers:
            self._keep_number()
            self._accept_or_not()
            for key, _ in self._events.select(TICK_SECONDS if not self._unplaced else 0.01):
                key.data(key.fileobj)
            self._place()
            self._kill_late()

    # --- workers ---------------------------------------------------------------------------------------------------

    def _keep_number(self) -> None:
        """Start missing workers, and one more during replacement."""
        if self._ending is not None or time.monotonic() < self._restart_at:
            return
        current = [w for w in self._workers if w.generation == self._generation]
        staying = [w for w in self._workers if not w.finishing]
        starting = any(not w.ready for w in current)
        if self._replacing:
            if len(current) >= self._wanted and not starting:
                self._replaced()
                log.info("all %d workers have the new settings", self._wanted)
            elif not starting and len(staying) <= self._wanted and self._has_place:
                self._start()
            return
        while len(staying) < self._wanted and self._has_place:
            staying.append(self._start())

    @property
    def _has_place(self) -> bool:
        """Whether there is a free place beside the workers that are finishing."""
        return len(self._workers) < self._places

    def _replaced(self) -> None:
        self._replacing = False
        if self._renew_again:
            self._reload()

    def _start(self) -> Process:
        taken = {worker.number for worker in self._workers}
        number = next(n for n in range(self._places) if n not in taken)
        self._counts.forget(number)
        ours, theirs = socket.socketpair()
        with theirs:
            process = subprocess.Popen(  # noqa: S603
                [
                    sys.executable,
                    "-m",
                    "omnigraph.server.worker",
                    str(theirs.fileno()),
                    str(self._file),
                ],
                pass_fds=(theirs.fileno(), self._file),
                stdin=subprocess.DEVNULL,
                env={**os.environ, **memory_of_each(self._wanted), METRICS_FOLDER: self._metrics},
                start_new_session=True,  # signals of the terminal go to this process alone
            )
        worker = Process(number, process, ours, self._generation)
        orders = msgspec.json.encode(
            Orders(
                self._settings,
                self._listen.host,
                number,
                self._places,
                logging.getLogger("omnigraph").getEffectiveLevel(),
                self._listen.tls_cert,
                self._listen.tls_key,
            )
        )
        with suppress(OSError):  # a dead one is noticed elsewhere
            ours.sendall(LENGTH.pack(len(orders)) + orders)
        ours.setblocking(False)
        self._workers.append(worker)
        self._events.register(ours, selectors.EVENT_READ, lambda _: self._heard(worker))
        return worker

    def _heard(self, worker: Process) -> None:
        try:
            said = worker.control.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            said = b""
        if not said:
            self._ended(worker)
        elif said.startswith(READY):
            self._is_ready(worker)
        elif said.startswith(FAILED):
            worker.failed = said.removeprefix(FAILED)

    def _is_ready(self, worker: Process) -> None:
        worker.ready = True
        log.info("worker %d is ready", worker.process.pid)
        if self._replacing:
            old = [w for w in self._takers() if w.generation < worker.generation]
            for each in old[:1]:
                self._finish(each)
        everybody = [w for w in self._workers if w.ready]
        if not self._announced and len(everybody) == self._wanted:
            self._announced = True
            host, port = self._socket.getsockname()[:2]
            self._announce(f"{host}:{port}")

    def _finish(self, worker: Process) -> None:
        worker.finishing = True
        with suppress(OSError):
            worker.control.send(FINISH)

    def _ended(self, worker: Process) -> None:
        self._events.unregister(worker.control)
        worker.control.close()
        self._workers.remove(worker)
        code = worker.process.wait()
        self._counts.forget(worker.number)
        mark_process_dead(worker.process.pid, self._metrics)  # type: ignore[no-untyped-call]
        if worker.finishing or self._ending is not None:
            return
        if worker.failed:
            self._not_started(msgspec.json.decode(worker.failed, type=WorkerFailed))
            return
        log.error("worker %d ended with %d and is replaced", worker.process.pid, code)
        lived = time.monotonic() - worker.begun
        self._quick_deaths = 0 if lived > STEADY_SECONDS else self._quick_deaths + 1
        if self._quick_deaths > self._wanted:
            pause = min(RESTART_SECONDS_MAX, 0.1 * 2 ** min(self._quick_deaths, 10))
            self._restart_at = time.monotonic() + pause

    def _not_started(self, failed: WorkerFailed) -> None:
        """During start-up this is fatal; later the running workers keep their settings."""
        if not self._announced:
            raise ServerInvalid(failed.message, help=failed.help)
        log.error("a worker does not start: %s", failed.message)
        if self._replacing:
            self._generation -= 1
            self._settings = self._before
            self._replaced()
        self._restart_at = time.monotonic() + 1.0

    # --- connections -----------------------------------------------------------------------------------------------

    def _accept_or_not(self) -> None:
        """Accept only if a worker can take connections; until then they wait in the system's queue."""
        can = self._ending is None and any(self._takers()) and not self._unplaced
        if can and not self._accepts:
            self._events.register(self._socket, selectors.EVENT_READ, lambda _: self._accept())
        elif not can and self._accepts:
            self._events.unregister(self._socket)
        self._accepts = can

    def _takers(self) -> list[Process]:
        return [w for w in self._workers if w.ready and not w.finishing]

    def _accept(self) -> None:
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                connection, _ = self._socket.accept()
            except OSError:  # none is left, or it was aborted, or there are too many open files
                return
            self._unplaced.append(connection)
            self._place()
            if self._unplaced:
                return

    def _place(self) -> None:
        while self._unplaced and self._handed(self._unplaced[0]):
            self._unplaced.pop(0).close()

    def _handed(self, connection: socket.socket) -> bool:
        """Whether a worker took it; the one with the fewest comes first."""
        for worker in sorted(self._takers(), key=self._load):
            try:
                socket.send_fds(worker.control, [CONNECTION], [connection.fileno()])
            except OSError:  # busy, or dead
                continue
            worker.sent += 1
            return True
        return False

    def _load(self, worker: Process) -> int:
        """The number of its connections, and of those on the way to it."""
        here = self._counts.said(Counted.CONNECTIONS, worker.number)
        return here + worker.sent - self._counts.said(Counted.TAKEN, worker.number)

    # --- signals ---------------------------------------------------------------------------------------------------

    def _signalled(self, woken: object) -> None:
        assert isinstance(woken, socket.socket)  # noqa: S101
        for number in woken.recv(64):
            if number == signal.SIGHUP:
                self._reload()
            elif number in (signal.SIGTERM, signal.SIGINT):
                self._end()

    def _reload(self) -> None:
        if self._ending is not None:
            return
        self._renew_again = self._replacing
        if self._replacing:
            log.info("SIGHUP: deferred until the current replacement is done")
            return
        try:
            settings = self._read()
        except OmnigraphError as error:
            log.error("the settings were not renewed: %s", error.message)  # noqa: TRY400
            return
        log.info("SIGHUP: replacing %d workers", self._wanted)
        self._before, self._settings = self._settings, settings
        self._generation += 1
        self._replacing = True

    def _end(self) -> None:
        if self._ending is not None:  # second request
            self._kill_all()
            return
        self._ending = time.monotonic()
        self._accept_or_not()
        self._socket.close()
        for worker in self._workers:
            worker.process.terminate()

    def _kill_late(self) -> None:
        patience = self._settings.limits.shutdown_seconds_max + KILL_AFTER_SECONDS
        if self._ending is not None and time.monotonic() - self._ending > patience:
            self._kill_all()

    def _kill_all(self) -> None:
        for worker in self._workers:
            worker.process.kill()
            worker.process.wait()


SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def _noted(*_: object) -> None:
    """The number of the signal wakes the loop."""
