"""The log of a server: lines with their time, for people and for collectors."""

from __future__ import annotations

import logging
import sys
import time


class LogLines(logging.Formatter):
    """A line with its time; the second is formatted once for all its lines, since every request has one."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s")
        self._second = (0, "")

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802, ARG002
        second, text = self._second
        if int(record.created) != second:
            second = int(record.created)
            text = time.strftime(self.default_time_format, self.converter(second))
            self._second = second, text
        return f"{text},{int(record.msecs):03d}"


def log_to_stderr(level: int = logging.INFO) -> None:
    """Log lines with their time, for people and for collectors."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LogLines())
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False  # not shown
    root = logging.getLogger("omnigraph")
    root.addHandler(handler)
    root.setLevel(level)
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL)  # we log requests ourselves
