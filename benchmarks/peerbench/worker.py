"""The process of one engine: `python -m benchmarks.peerbench.worker NAME FOLDER`.

Requests come as lines of JSON, one reply line each. Calls are timed here, so that pipes and other engines cost nothing.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TextIO

from benchmarks.peerbench.adapters import make
from benchmarks.peerbench.adapters.base import Adapter, Unsupported
from benchmarks.peerbench.engine import MEMORY_BYTES_MAX, MEMORY_EXIT

WHY_CHARACTERS_MAX = 200
LOOK_SECONDS = 0.2


def answer(adapter: Adapter, request: dict[str, Any]) -> dict[str, Any]:
    match request:
        case {"do": "load", "files": files, "form": form}:
            return _timed(adapter.load, [(Path(files), form)])
        case {"do": "reopen"}:
            return _timed(adapter.reopen, [()])
        case {"do": "prepare"}:
            return _timed(adapter.prepare, [()])
        case {"do": "ask", "job": job, "calls": calls}:
            return _timed(adapter.ask, [(job, params) for params in calls])
    raise ValueError(f"unknown request {request}")


def _timed(work: Any, calls: Iterable[tuple[Any, ...]]) -> dict[str, Any]:
    seconds, answers = [], []
    for arguments in calls:
        started = time.perf_counter()
        answers.append(work(*arguments))
        seconds.append(time.perf_counter() - started)
    return {"seconds": seconds, "answers": answers}


def serve(name: str, place: Path, requests: TextIO, replies: TextIO) -> None:
    def reply(found: dict[str, Any]) -> None:
        replies.write(json.dumps(found) + "\n")
        replies.flush()

    try:
        adapter = make(name, place)
    except ImportError as missing:
        return reply({"missing": missing.name or str(missing)})
    reply({"version": adapter.version})
    for line in requests:
        try:
            reply(answer(adapter, json.loads(line)))
        except Unsupported as refused:
            reply({"unsupported": str(refused)[:WHY_CHARACTERS_MAX]})
        except Exception as failure:  # whatever an engine raises is a finding
            reply({"failed": f"{type(failure).__name__}: {failure}"[:WHY_CHARACTERS_MAX]})
    return adapter.close()


def _watch_memory() -> None:
    """Ends the process when it uses too much. A limit of the system counts what engines only reserve: terabytes."""
    page = os.sysconf("SC_PAGE_SIZE")
    while True:
        _, resident, shared, *_ = Path("/proc/self/statm").read_text("ascii").split()
        if (int(resident) - int(shared)) * page > MEMORY_BYTES_MAX:
            os._exit(MEMORY_EXIT)
        time.sleep(LOOK_SECONDS)


if __name__ == "__main__":
    threading.Thread(target=_watch_memory, daemon=True).start()
    # What an engine prints goes to the error stream; the pipe carries replies alone.
    pipe = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    serve(sys.argv[1], Path(sys.argv[2]), sys.stdin, pipe)
