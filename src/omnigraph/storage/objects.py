"""A small key-value store with create-only puts: local disk, S3 and memory behind one interface.

Keys are relative paths with `/`. What can go wrong is typed by evidence: `ObjectNotFound`, `ObjectExists`,
`StoreDenied`, `StoreUnavailable` (it did not happen) and `StoreOutcomeUnknown` (it may have happened).

Numbered objects form a series: `numbered(folder, n)` is the key of number n, written so that the newest comes first in
a listing, and `newest(folder)` finds it without reading the rest.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import secrets
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, Any, Protocol, cast
from urllib.parse import unquote, urlsplit

from omnigraph.errors import (
    AddressInvalid,
    ObjectExists,
    ObjectNotFound,
    StoreDenied,
    StoreOutcomeUnknown,
    StoreUnavailable,
)
from omnigraph.model.names import is_unicode
from omnigraph.storage import metrics

NUMBER_MAX = (1 << 60) - 1
REQUEST_SECONDS_MAX = 60
READ_RETRIES_MAX = 5
STREAM_BYTES = 8 << 20
TEMPORARY = "_tmp"
PLACE_ATTEMPTS_MAX = 4


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """One line of a listing."""

    key: str
    size: int
    modified: datetime


class ObjectStore(Protocol):
    """Linearizable objects under one root."""

    @property
    def uri(self) -> str: ...
    def get(self, key: str) -> bytes: ...

    def put_new(self, key: str, data: bytes) -> None:
        """Create the object; `ObjectExists` if there is one. Durable when it returns."""
        ...

    def put(self, key: str, data: bytes) -> None:
        """Create or replace the object, whole or not at all."""
        ...

    def delete(self, keys: Iterable[str]) -> None:
        """Remove objects; one that is gone already is no error."""
        ...

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """Every object whose key starts with the folder `prefix`, in no particular order."""
        ...

    def folders(self, prefix: str) -> tuple[str, ...]:
        """The names of the folders directly under a folder."""
        ...

    def newest(self, folder: str, at_least: int = -1) -> int | None:
        """The largest number in a series without gaps; `at_least` is one known to exist."""
        ...


class LargeObjects(Protocol):
    """A store of objects too large for memory, as all but those of tests are."""

    def put_file(self, key: str, path: Path) -> None:
        """Create or replace the object with the content of a file."""
        ...

    def stream(self, key: str) -> IO[bytes]:
        """The object's bytes, read as they are asked for, from any position."""
        ...

    def signed(self, key: str, seconds: int) -> str | None:
        """An address anybody can read the object from for a while; none where the store has no addresses."""
        ...


def numbered(folder: str, number: int) -> str:
    """The key of an object in a series.

    >>> numbered("chain", 0)
    'chain/fffffffffffffff'
    >>> numbered("chain", 2) < numbered("chain", 1)
    True
    """
    return f"{folder}/{NUMBER_MAX - number:015x}"


def number_of(key: str) -> int:
    """The number a key of a series stands for."""
    return NUMBER_MAX - int(key.rsplit("/", 1)[-1], 16)


def _count(kind: str, n: int = 1, bytes: int = 0) -> None:
    """Object requests are made one after the other unless `metrics.parallel` says otherwise."""
    metrics.request(kind, n, bytes)
    metrics.stage(n)


# --- local disk --------------------------------------------------------------------------------------------------


class LocalObjects:
    """Objects as files. A create is a hard link to a finished file, so it is whole, exclusive and durable."""

    def __init__(self, root: Path, *, fsync: bool) -> None:
        self._root = root
        self._fsync = fsync

    @property
    def uri(self) -> str:
        return str(self._root)

    def get(self, key: str) -> bytes:
        _count("get")
        with self._translated(key, reading=True):
            return self._path(key).read_bytes()

    def put_new(self, key: str, data: bytes) -> None:
        _count("put", bytes=len(data))
        self._place(key, data, os.link)

    def put(self, key: str, data: bytes) -> None:
        _count("put", bytes=len(data))
        self._place(key, data, os.replace)

    def put_file(self, key: str, path: Path) -> None:
        _count("put", bytes=path.stat().st_size)
        with open(path, "rb") as source:
            self._place(key, source, os.replace)

    def stream(self, key: str) -> IO[bytes]:
        _count("get")
        with self._translated(key, reading=True):
            return open(self._path(key), "rb")

    def signed(self, key: str, seconds: int) -> None:  # noqa: ARG002  a disk has no addresses
        return None

    def delete(self, keys: Iterable[str]) -> None:
        for key in keys:
            _count("delete")
            with self._translated(key), contextlib.suppress(FileNotFoundError):
                self._path(key).unlink()

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        _count("list")
        folder = self._path(prefix.rstrip("/")) if prefix else self._root
        for base, _, files in os.walk(folder):
            for name in files:
                path = Path(base, name)
                with contextlib.suppress(FileNotFoundError):
                    found = path.stat()
                    when = datetime.fromtimestamp(found.st_mtime, UTC)
                    yield ObjectInfo(path.relative_to(self._root).as_posix(), found.st_size, when)

    def folders(self, prefix: str) -> tuple[str, ...]:
        _count("list")
        missing = contextlib.suppress(FileNotFoundError, NotADirectoryError)
        with missing, os.scandir(self._path(prefix)) as found:
            return tuple(sorted(entry.name for entry in found if entry.is_dir()))
        return ()

    def newest(self, folder: str, at_least: int = -1) -> int | None:
        # A directory of a hundred thousand commits is not read: numbers have no gaps, so doubling steps and then
        # halving them finds the last one with a handful of look-ups.
        _count("list")
        here = self._path(folder)
        low, step = at_least, 1
        while (here / numbered("", low + step)[1:]).exists():
            low, step = low + step, step * 2
        while step > 1:
            step //= 2
            if (here / numbered("", low + step)[1:]).exists():
                low += step
        return low if low >= 0 else None

    def _path(self, key: str) -> Path:
        parts = key.split("/")
        if any(part in ("", ".", "..") for part in parts):
            raise AddressInvalid(f"{key!r} is not a key of an object")
        return self._root.joinpath(*parts)

    def _place(self, key: str, data: bytes | IO[bytes], move: Callable[[Path, Path], None]) -> None:
        path = self._path(key)
        for attempt in range(PLACE_ATTEMPTS_MAX):
            try:
                with self._translated(key), self._finished_file(data) as temporary:
                    self._make_folder(path.parent)
                    move(temporary, path)
                    self._sync_folder(path.parent)
                    return
            except ObjectNotFound:
                # A collection may take a temporary file from under a slow writer, who then writes it again.
                if attempt + 1 == PLACE_ATTEMPTS_MAX:
                    raise

    @contextlib.contextmanager
    def _finished_file(self, data: bytes | IO[bytes]) -> Iterator[Path]:
        """A temporary file with this content, already durable; its name can never be taken for an object."""
        folder = self._root / TEMPORARY
        self._make_folder(folder)
        path = folder / secrets.token_hex(12)
        try:
            with open(path, "wb") as file:
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

    def _make_folder(self, folder: Path) -> None:
        if folder.is_dir():
            return
        self._make_folder(folder.parent)
        with contextlib.suppress(FileExistsError):
            folder.mkdir()
        self._sync_folder(folder.parent)

    def _sync_folder(self, folder: Path) -> None:
        if not self._fsync:
            return
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    @contextlib.contextmanager
    def _translated(self, key: str, *, reading: bool = False) -> Iterator[None]:
        try:
            yield
        except FileExistsError as error:
            raise ObjectExists(f"the object {key} exists already") from error
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
            raise ObjectNotFound(f"there is no object {key} under {self._root}") from error
        except PermissionError as error:
            raise StoreDenied(f"no permission for {key} under {self._root}: {error}") from error
        except OSError as error:
            happened = (
                StoreUnavailable if reading or error.errno == errno.ENOSPC else StoreOutcomeUnknown
            )
            raise happened(f"the disk failed on {key} under {self._root}: {error}") from error


# --- object stores -----------------------------------------------------------------------------------------------


class _ObjectStream(io.RawIOBase):
    """A reader of obstore with the manners of a Python file."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        found = self._reader.read(len(buffer))
        buffer[: len(found)] = memoryview(found)
        return len(found)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return int(self._reader.seek(offset, whence))

    def tell(self) -> int:
        return int(self._reader.tell())


class RemoteObjects:
    """Objects in an obstore store: S3, or memory.

    Creates go through a client that never repeats a request by itself: a repeated create that meets its own first
    attempt would look like somebody else's.
    """

    def __init__(self, uri: str, store: Any, create_only: Any) -> None:
        self._uri = uri
        self._store = store
        self._create_only = create_only

    @property
    def uri(self) -> str:
        return self._uri

    def get(self, key: str) -> bytes:
        import obstore

        _count("get")
        with self._translated(key, reading=True):
            return bytes(obstore.get(self._store, key).bytes())

    def stream(self, key: str) -> IO[bytes]:
        import obstore

        _count("get")
        with self._translated(key, reading=True):
            reader = obstore.open_reader(self._store, key, buffer_size=STREAM_BYTES)
        return cast(IO[bytes], _ObjectStream(reader))

    def look(self, key: str) -> tuple[int, str]:
        """How many bytes the object has, and a text that changes when they do."""
        import obstore

        _count("head")
        with self._translated(key, reading=True):
            found = obstore.head(self._store, key)
        return int(found["size"]), found["e_tag"] or found["last_modified"].isoformat()

    def put_file(self, key: str, path: Path) -> None:
        import obstore

        _count("put", bytes=path.stat().st_size)
        with self._translated(key):
            obstore.put(self._store, key, path)

    def signed(self, key: str, seconds: int) -> str | None:
        import obstore
        from obstore.store import S3Store

        if not isinstance(self._store, S3Store):
            return None
        return str(obstore.sign(self._store, "GET", key, timedelta(seconds=seconds)))

    def put_new(self, key: str, data: bytes) -> None:
        import obstore

        _count("put", bytes=len(data))
        with self._translated(key):
            obstore.put(self._create_only, key, data, mode="create", use_multipart=False)

    def put(self, key: str, data: bytes) -> None:
        import obstore

        _count("put", bytes=len(data))
        with self._translated(key):
            obstore.put(self._store, key, data, use_multipart=False)

    def delete(self, keys: Iterable[str]) -> None:
        import obstore

        wanted = list(keys)
        if not wanted:
            return
        _count("delete", (len(wanted) + 999) // 1000)
        with contextlib.suppress(ObjectNotFound), self._translated(wanted[0]):
            obstore.delete(self._store, wanted)

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        import obstore

        with self._translated(prefix, reading=True):
            for chunk in obstore.list(self._store, prefix or None, chunk_size=1000):
                _count("list")
                for found in chunk:
                    yield ObjectInfo(found["path"], found["size"], found["last_modified"])

    def folders(self, prefix: str) -> tuple[str, ...]:
        import obstore

        _count("list")
        with self._translated(prefix, reading=True):
            found = obstore.list_with_delimiter(self._store, prefix)["common_prefixes"]
        return tuple(sorted(path.rstrip("/").rsplit("/", 1)[-1] for path in found))

    def newest(self, folder: str, at_least: int = -1) -> int | None:
        import obstore

        _count("list")
        with self._translated(folder, reading=True):
            # Stores list in order of keys and the newest number has the smallest key: one page is enough.
            numbers = [
                number_of(f["path"])
                for f in next(obstore.list(self._store, folder, chunk_size=8), [])
            ]
        return max(numbers, default=at_least if at_least >= 0 else None)

    @contextlib.contextmanager
    def _translated(self, key: str, *, reading: bool = False) -> Iterator[None]:
        from obstore import exceptions as seen

        try:
            yield
        except (seen.AlreadyExistsError, seen.PreconditionError) as error:
            raise ObjectExists(f"the object {key} exists already") from error
        except (seen.NotFoundError, FileNotFoundError) as error:
            raise ObjectNotFound(f"there is no object {key} under {self._uri}") from error
        except (seen.PermissionDeniedError, seen.UnauthenticatedError) as error:
            raise StoreDenied(f"the store {self._uri} refused access to {key}") from error
        except (seen.BaseError, OSError) as error:
            happened = StoreUnavailable if reading else StoreOutcomeUnknown
            raise happened(f"the store {self._uri} gave no answer for {key}: {error}") from error


# --- opening -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Location:
    """Where a graph lives, and how Lance and obstore reach it."""

    uri: str  # canonical, without a trailing slash
    scheme: str  # file, s3 or memory
    options: Mapping[str, str] = field(repr=False)  # storage options, with credentials among them


_memory_stores: dict[str, Any] = {}
_memory_lock = threading.Lock()


def locate(uri: object, environment: Mapping[str, str] | None = None) -> Location:
    """Understand the address of a graph."""
    if isinstance(uri, os.PathLike):
        uri = os.fspath(uri)
    if not isinstance(uri, str) or not uri.strip():
        raise AddressInvalid(f"{uri!r} is not the address of a graph")
    if "\0" in uri or not is_unicode(uri):
        raise AddressInvalid("an address is text, without null bytes")
    parts = urlsplit(uri)
    if parts.scheme in ("", "file") or (len(parts.scheme) == 1 and os.name == "nt"):
        path = unquote(parts.path) if parts.scheme == "file" else uri
        return Location(str(Path(path).expanduser().absolute()), "file", {})
    if "@" in parts.netloc:
        raise AddressInvalid(
            f"an address of the form {parts.scheme}://…@… holds credentials, which do not belong there",
            help="Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or OMNIGRAPH_TOKEN for a server.",
        )
    if parts.scheme == "memory":
        name = (parts.netloc + parts.path).strip("/")
        return Location(f"memory://{name or 'default'}", "memory", {})
    if parts.scheme == "s3" and parts.netloc:
        prefix = parts.path.strip("/")
        address = f"s3://{parts.netloc}" + (f"/{prefix}" if prefix else "")
        return Location(
            address, "s3", s3_options(os.environ if environment is None else environment)
        )
    raise AddressInvalid(f"addresses of the form {parts.scheme}://… are not supported here")


def s3_options(environment: Mapping[str, str]) -> dict[str, str]:
    """The storage options the usual AWS variables stand for, in the words both Lance and obstore understand."""
    names = {
        "aws_region": ("AWS_REGION", "AWS_DEFAULT_REGION"),
        "aws_access_key_id": ("AWS_ACCESS_KEY_ID",),
        "aws_secret_access_key": ("AWS_SECRET_ACCESS_KEY",),
        "aws_session_token": ("AWS_SESSION_TOKEN",),
        "aws_endpoint": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"),
    }
    found = {
        option: environment[variable]
        for option, variables in names.items()
        for variable in reversed(variables)
        if environment.get(variable)
    }
    found.setdefault("aws_region", "us-east-1")
    path_style = _truth(environment.get("AWS_S3_FORCE_PATH_STYLE"), "aws_endpoint" in found)
    found["aws_virtual_hosted_style_request"] = str(not path_style).lower()
    plain = found.get("aws_endpoint", "").startswith("http://")
    if _truth(environment.get("AWS_ALLOW_HTTP"), plain):
        found["aws_allow_http"] = "true"
    return found


def _truth(text: str | None, otherwise: bool) -> bool:
    return otherwise if text is None else text.strip().lower() in ("1", "true", "yes", "on")


def fsync_wanted() -> bool:
    """Local writes survive a power cut unless OMNIGRAPH_FSYNC=0 says that speed matters more."""
    return _truth(os.environ.get("OMNIGRAPH_FSYNC"), True)


def open_objects(place: Location) -> ObjectStore:
    """The object store at a location."""
    if place.scheme == "file":
        return LocalObjects(Path(place.uri), fsync=fsync_wanted())
    if place.scheme == "memory":
        return _open_memory(place)
    return _open_s3(place)


def open_remote(address: str) -> tuple[RemoteObjects, str]:
    """The bucket an address lies in, and the object's key there: for files that belong to no graph."""
    scheme, _, rest = address.partition("://")
    bucket, _, key = rest.partition("/")
    store = open_objects(locate(f"{scheme}://{bucket}"))
    if not isinstance(store, RemoteObjects):
        raise AddressInvalid(f"{address} is no address in an object store")
    return store, key


def _open_memory(place: Location) -> ObjectStore:
    from obstore.store import MemoryStore

    with _memory_lock:
        store = _memory_stores.setdefault(place.uri, MemoryStore())
    return RemoteObjects(place.uri, store, store)


def _open_s3(place: Location) -> ObjectStore:
    from obstore.store import S3Store

    bucket, _, prefix = place.uri.removeprefix("s3://").partition("/")
    config = {key: value for key, value in place.options.items() if key != "aws_allow_http"}
    client = {
        "timeout": timedelta(seconds=REQUEST_SECONDS_MAX),
        "allow_http": place.options.get("aws_allow_http") == "true",
    }
    stores = [
        S3Store(
            bucket, prefix=prefix or None, config=config, client_options=client, retry_config=retry
        )
        for retry in ({"max_retries": READ_RETRIES_MAX}, {"max_retries": 0})
    ]
    return RemoteObjects(place.uri, *stores)
