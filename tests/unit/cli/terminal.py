"""A pseudo-terminal with a command in it: type, and wait for what is shown."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.unit.cli import world

PATIENCE_SECONDS = 60.0
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


class Terminal:
    """A command that believes a person is in front of it."""

    def __init__(self, folder: Path, words: Sequence[str], **variables: str) -> None:
        self._screen, inside = pty.openpty()
        self._process = subprocess.Popen(
            [world.PROGRAM, *words],
            cwd=folder,
            env=world.environment(folder, **({"TERM": "xterm", "COLUMNS": "100"} | variables)),
            stdin=inside,
            stdout=inside,
            stderr=inside,
            start_new_session=True,
        )
        os.close(inside)
        self.shown = ""
        self.raw = ""  # with colours and movements

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        os.close(self._screen)

    def type(self, text: str) -> None:
        os.write(self._screen, text.encode())

    def interrupt(self) -> None:
        """Ctrl-C."""
        self._process.send_signal(signal.SIGINT)

    def interrupt_until(self, text: str) -> None:
        """Ctrl-C, as often as it takes: one that comes between two keys waits in readline for the next."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while text not in self.shown:
            assert time.monotonic() < deadline, f"{text!r} did not appear in {self.shown!r}"
            self.interrupt()
            noticed = time.monotonic() + 3
            while text not in self.shown and time.monotonic() < noticed:
                self._look()
        self.wait_for(text)

    def wait_for(self, text: str) -> str:
        """Everything shown until the text appears; what was shown before does not count again."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while text not in self.shown:
            assert time.monotonic() < deadline, f"{text!r} did not appear in {self.shown!r}"
            if not self._look():
                break
        assert text in self.shown, f"{text!r} did not appear in {self.shown!r}"
        before, found, self.shown = self.shown.partition(text)
        return before + found

    def finish(self) -> int:
        """Wait for the end of the command; its exit code."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self._look():
            assert time.monotonic() < deadline, f"still running after {self.shown!r}"
        return self._process.wait(PATIENCE_SECONDS)

    def _look(self) -> bool:
        """Take in what is shown; False when there will be nothing more."""
        ready, _, _ = select.select([self._screen], [], [], 1.0)
        if not ready:
            return True
        try:
            data = os.read(self._screen, 65_536)
        except OSError:
            return False  # the last writer has closed the terminal
        self.raw += data.decode(errors="replace")
        self.shown += _ESCAPES.sub("", data.decode(errors="replace"))
        return bool(data)
