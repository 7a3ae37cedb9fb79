"""Objects as files under one folder of a local disk."""

from __future__ import annotations

import contextlib
import mmap
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from omnigraph.errors import (
    Corrupt,
    GraphNotFound,
    ObjectExists,
    ObjectNotFound,
    StoreNotDurable,
    StoreOutcomeUnknown,
)
from omnigraph.storage.disk import (
    MISSING,
    REFUSED,
    inside,
    inside_text,
    refusal,
    refuse_stray,
    sync,
)
from omnigraph.storage.objects import STREAM_BYTES, ObjectInfo, ObjectStore, counted, numbered

TEMPORARY = "_tmp"
PLACE_ATTEMPTS_MAX = 4


class LocalObjects:
    """Objects as files. A create is a hard link to a finished file, so it is whole, exclusive and durable."""

    def __init__(self, root: Path, *, fsync: bool) -> None:
        self._root = root
        self._fsync = fsync
        self._relied_on: Path | None = None

    @property
    def uri(self) -> str:
        return str(self._root)

    def rely_on(self, key: str) -> None:
        """From now on, write only while this object exists, so that a deleted graph is not partly recreated."""
        self._relied_on = self._path(key)

    # --- reading ---------------------------------------------------------------------------------------------------

    def get(self, key: str) -> bytes:
        counted("get")
        try:
            with open(inside_text(self._root, key), "rb") as file:
                return file.read()
        except OSError as error:
            raise self._failed(key, error) from error

    def map(self, key: str) -> mmap.mmap:
        """The object as mapped memory, read on access. Replacing the object does not change it."""
        counted("get")
        with self._reading(key), open(self._path(key), "rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def stream(self, key: str) -> IO[bytes]:
        counted("get")
        with self._reading(key):
            return open(self._path(key), "rb")

    def get_tail(self, key: str, length: int) -> tuple[bytes, int]:
        counted("get", bytes=length)
        with self._reading(key), open(self._path(key), "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - length))
            return file.read(), size

    def get_ranges(self, key: str, spans: Sequence[tuple[int, int]]) -> list[bytes]:
        if not spans:
            return []
        counted("get", bytes=sum(stop - start for start, stop in spans))
        with self._reading(key), open(self._path(key), "rb", buffering=0) as file:
            return [os.pread(file.fileno(), stop - start, start) for start, stop in spans]

    def signed(self, key: str, seconds: int) -> None:  # noqa: ARG002  a disk has no addresses
        return None

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        counted("list")
        folder = self._path(prefix.rstrip("/")) if prefix else self._root
        with self._reading(prefix):
            yield from self._walk(folder)

    def folders(self, prefix: str) -> tuple[str, ...]:
        counted("list")
        with (
            self._reading(prefix),
            contextlib.suppress(FileNotFoundError, NotADirectoryError),
            os.scandir(self._path(prefix)) as found,
        ):
            return tuple(sorted(entry.name for entry in found if self._is_folder(entry)))
        return ()

    def newest(self, folder: str, at_least: int = -1) -> int | None:
        # A directory of a hundred thousand commits is not read: numbers have no gaps, so doubling steps and then
        # halving them finds the last one with a handful of lookups.
        counted("list")
        here = self._path(folder)
        low, step = at_least, 1
        while os.path.lexists(here / numbered("", low + step)[1:]):
            low, step = low + step, step * 2
        while step > 1:
            step //= 2
            if os.path.lexists(here / numbered("", low + step)[1:]):
                low += step
        return low if low >= 0 else None

    def _walk(self, folder: Path) -> Iterator[ObjectInfo]:
        """Every file below a folder. A link aborts the listing: callers delete by it."""
        below: list[Path] = []
        with (
            contextlib.suppress(FileNotFoundError, NotADirectoryError),
            os.scandir(folder) as found,
        ):
            for entry in found:
                if self._is_folder(entry):
                    below.append(Path(entry.path))
                    continue
                with contextlib.suppress(FileNotFoundError):
                    seen = entry.stat(follow_symlinks=False)
                    key = Path(entry.path).relative_to(self._root).as_posix()
                    yield ObjectInfo(key, seen.st_size, datetime.fromtimestamp(seen.st_mtime, UTC))
        for each in below:
            yield from self._walk(each)

    def _is_folder(self, entry: os.DirEntry[str]) -> bool:
        if entry.is_dir(follow_symlinks=False):
            return True
        if not entry.is_file(follow_symlinks=False):
            with contextlib.suppress(FileNotFoundError):
                path = Path(entry.path)
                refuse_stray(os.lstat(path).st_mode, path, self._root)
        return False

    # --- writing ---------------------------------------------------------------------------------------------------

    def put_new(self, key: str, data: bytes) -> None:
        counted("put", bytes=len(data))
        self._place(key, data, os.link)

    def put(self, key: str, data: bytes) -> None:
        counted("put", bytes=len(data))
        self._place(key, data, os.replace)

    def put_file(self, key: str, path: Path) -> None:
        counted("put", bytes=path.stat().st_size)
        with open(path, "rb") as source:
            self._place(key, source, os.replace)

    def delete(self, keys: Iterable[str]) -> None:
        for key in keys:
            counted("delete")
            with self._writing(key), contextlib.suppress(FileNotFoundError):
                self._path(key).unlink()

    def _path(self, key: str) -> Path:
        return inside(self._root, key)

    def _place(self, key: str, data: bytes | IO[bytes], move: Callable[[Path, Path], None]) -> None:
        """Until the object has its name nothing has happened; from then on it is visible to all."""
        for attempt in range(PLACE_ATTEMPTS_MAX):
            path = self._path(key)
            try:
                with self._writing(key):
                    self._check_relied_on()
                    with self._finished_file(data) as temporary:
                        self._make_folder(path.parent)
                        self._name(temporary, path, move)
                break
            except ObjectExists:
                self._make_durable(path)  # others that find it rely on it
                raise
            except ObjectNotFound:
                # A collection may remove the temporary file of a slow writer, which then writes it again.
                if attempt + 1 == PLACE_ATTEMPTS_MAX:
                    raise Corrupt(f"{key} cannot be written under {self._root}") from None
        self._make_durable(path)

    def _check_relied_on(self) -> None:
        if self._relied_on is not None and not self._relied_on.exists():
            raise GraphNotFound(
                f"the graph at {self._root} has been removed: {self._relied_on.name} is gone",
                details={"uri": self.uri},
            )

    @contextlib.contextmanager
    def _finished_file(self, data: bytes | IO[bytes]) -> Iterator[Path]:
        """A temporary file with this content, already durable; its name can never be mistaken for an object."""
        folder = self._path(TEMPORARY)
        self._make_folder(folder)
        path = folder / secrets.token_hex(12)
        try:
            with open(path, "xb") as file:
                if isinstance(data, bytes):
                    file.write(data)
                else:
                    data.seek(0)
                    shutil.copyfileobj(data, file, STREAM_BYTES)
                file.flush()
                if self._fsync:
                    os.fsync(file.fileno())
            yield path
        finally:
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)

    def _name(self, temporary: Path, path: Path, move: Callable[[Path, Path], None]) -> None:
        """Give a finished file its name. A disk that reports an error may still have done it: the file itself shows."""
        mine = temporary.stat()
        try:
            move(temporary, path)
        except OSError as error:
            with contextlib.suppress(OSError):
                if os.path.samestat(mine, os.lstat(path)):
                    return
            if isinstance(error, FileExistsError) or error.errno in REFUSED:
                raise
            raise StoreOutcomeUnknown(
                f"the disk failed on {path.name} in {path.parent}: {error}"
            ) from error

    def _make_folder(self, folder: Path) -> None:
        """A folder whose own name is durable. If syncing fails it is removed: the next writer would rely on it."""
        if folder.is_dir():
            return
        self._make_folder(folder.parent)
        with contextlib.suppress(FileExistsError):
            folder.mkdir()
        try:
            self._sync(folder.parent)
        except OSError:
            with contextlib.suppress(OSError):
                folder.rmdir()
            raise

    def _make_durable(self, path: Path) -> None:
        """Sync the name of an object. If that fails the object exists, but may not survive a power cut."""
        try:
            self._sync(path.parent)
        except OSError as error:
            name = path.relative_to(self._root).as_posix()
            raise StoreNotDurable(
                f"{name} under {self._root} was written, but its folder could not be synced: {error}",
                details={"object": name},
            ) from error

    def _sync(self, folder: Path) -> None:
        if self._fsync:
            sync(folder)

    # --- errors of a disk ------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _reading(self, key: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self._failed(key, error) from error

    @contextlib.contextmanager
    def _writing(self, key: str) -> Iterator[None]:
        """Errors here occur before anything has happened."""
        try:
            yield
        except FileExistsError as error:
            raise ObjectExists(f"the object {key} already exists") from error
        except OSError as error:
            raise self._failed(key, error) from error

    def _failed(self, key: str, error: OSError) -> Exception:
        if error.errno in MISSING:
            return ObjectNotFound(f"there is no object {key} under {self._root}")
        return refusal(error.errno, f"the disk failed on {key} under {self._root}: {error}")


def rely_on(objects: ObjectStore, key: str) -> None:
    """See `LocalObjects.rely_on`. An object store has no folder that could be removed by mistake."""
    if isinstance(objects, LocalObjects):
        objects.rely_on(key)


def mapped(objects: ObjectStore, key: str) -> mmap.mmap | None:
    """See `LocalObjects.map`; None if the store is not a disk."""
    return objects.map(key) if isinstance(objects, LocalObjects) else None
