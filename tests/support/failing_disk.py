"""A local disk that fails at the call you choose, for Python and for the Rust below it. See `failing_disk.c`.

It works in a process that was started with `environment(library)`; there `arm` chooses the call, and `disarm` ends it.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("failing_disk.c")
MISSING = "no C compiler and dynamic linker that could preload a library"
STAYS = 64  # calls that fail once it has begun: more than any write tries, and no end for who repeats an EINTR


def build(folder: Path) -> Path | None:
    """The library, compiled; none where there is nothing to compile it with."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or not Path("/proc/self/fd").is_dir():
        return None
    library = folder / "failing_disk.so"
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE), "-ldl"]
    subprocess.run(command, check=True, capture_output=True)
    return library


def environment(library: Path) -> dict[str, str]:
    return {"LD_PRELOAD": str(library)}


class FailingDisk:
    """In the process that was started with the library."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(None)
        self._library.counted.restype = ctypes.c_long
        self._library.name_of.restype = ctypes.c_char_p

    def arm(
        self, below: str, at: int = -1, error: int = 0, *, done: bool = False, times: int = 1
    ) -> None:
        """Count the calls below a folder, and let those from number `at` on fail, `times` of them.

        With `done` they do their work first: the disk lies.
        """
        self._library.arm(below.encode(), ctypes.c_long(at), error, int(done), times)

    def disarm(self) -> list[str]:
        """The calls since `arm`, in order."""
        names = [
            self._library.name_of(ctypes.c_long(number)).decode()
            for number in range(self._library.counted())
        ]
        self._library.disarm()
        return names
