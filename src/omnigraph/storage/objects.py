"""A small key-value store with create-only puts: local disk, S3 and memory behind one interface.

Keys are relative paths with `/`. Errors are typed by evidence: `ObjectNotFound`, `ObjectExists`,
`StoreDenied`, `StoreUnavailable` (it did not happen), `StoreOutcomeUnknown` (it may have happened) and
`StoreNotDurable` (it happened, but a power cut may undo it).

Numbered objects form a series: `numbered(folder, n)` is the key of number n, written so that the newest comes first in
a listing, and `newest(folder)` finds it without reading the rest.
"""

from __future__ import annotations

import contextlib
import io
import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from datetime import datetime, timedelta
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
from omnigraph.model.frozen import frozen
from omnigraph.model.names import is_unicode
from omnigraph.storage import metrics

NUMBER_MAX = (1 << 60) - 1
REQUEST_SECONDS_MAX = 60
READ_RETRIES_MAX = 5
STREAM_BYTES = 8 << 20
S3_SCHEMES = ("s3", "s3a", "s3n")  # Hadoop's names for the same objects
ELSEWHERE_SCHEMES = ("gs", "gcs", "hdfs", "abfs", "abfss", "wasb", "wasbs", "az", "dbfs", "viewfs")
ELSEWHERE = (
    "Graphs and files can be on disks and S3 (s3://, s3a://). "
    "Files that a Spark session can read are loaded as DataFrames: g.load({'Person': spark.read.parquet('…')})."
)
KEYS = (
    "AWS_ACCESS_KEY_ID",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)


@frozen
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
        """Create the object; raises `ObjectExists` if it exists. Durable when it returns."""
        ...

    def put(self, key: str, data: bytes) -> None:
        """Create or replace the object atomically."""
        ...

    def delete(self, keys: Iterable[str]) -> None:
        """Remove objects; missing ones are ignored."""
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


class LargeObjects(ObjectStore, Protocol):
    """A store of objects too large for memory, as all are except those of tests."""

    def put_file(self, key: str, path: Path) -> None:
        """Create or replace the object with the content of a file."""
        ...

    def stream(self, key: str) -> IO[bytes]:
        """The object's bytes, read on demand, from any position."""
        ...

    def get_tail(self, key: str, length: int) -> tuple[bytes, int]:
        """The last bytes of the object, or all if it is shorter, and its size."""
        ...

    def get_ranges(self, key: str, spans: Sequence[tuple[int, int]]) -> list[bytes]:
        """The bytes between each start and end; fewer if the object ends earlier."""
        ...

    def signed(self, key: str, seconds: int) -> str | None:
        """A URL anyone can read the object from for a while; None if the store has no URLs."""
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
    """The number in a key of a series."""
    return NUMBER_MAX - int(key.rsplit("/", 1)[-1], 16)


def counted(kind: str, n: int = 1, bytes: int = 0) -> None:
    """Count object requests, as serial steps unless under `metrics.parallel`."""
    metrics.request(kind, n, bytes)
    metrics.stage(n)


# --- object stores -----------------------------------------------------------------------------------------------


class _ObjectStream(io.RawIOBase):
    """A reader of obstore as a Python file."""

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

    Creates go through a client that never retries requests: a retried create that meets its own first attempt would
    take it for another writer's.
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

        counted("get")
        with self._translated(key, reading=True):
            return bytes(obstore.get(self._store, key).bytes())

    def stream(self, key: str) -> IO[bytes]:
        import obstore

        counted("get")
        with self._translated(key, reading=True):
            reader = obstore.open_reader(self._store, key, buffer_size=STREAM_BYTES)
        return cast(IO[bytes], _ObjectStream(reader))

    def get_tail(self, key: str, length: int) -> tuple[bytes, int]:
        import obstore

        counted("get", bytes=length)
        with self._translated(key, reading=True):
            found = obstore.get(self._store, key, options={"range": {"suffix": length}})
            return bytes(found.bytes()), int(found.meta["size"])

    def get_ranges(self, key: str, spans: Sequence[tuple[int, int]]) -> list[bytes]:
        import obstore

        if not spans:
            return []
        metrics.request("get", len(spans), sum(stop - start for start, stop in spans))
        metrics.stage()
        starts, ends = zip(*spans, strict=True)
        with self._translated(key, reading=True):
            found = obstore.get_ranges(self._store, key, starts=starts, ends=ends)
        return [bytes(each) for each in found]

    def look(self, key: str) -> tuple[int, str]:
        """The size of the object, and a text that changes with its content."""
        import obstore

        counted("head")
        with self._translated(key, reading=True):
            found = obstore.head(self._store, key)
        return int(found["size"]), found["e_tag"] or found["last_modified"].isoformat()

    def put_file(self, key: str, path: Path) -> None:
        import obstore

        counted("put", bytes=path.stat().st_size)
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

        counted("put", bytes=len(data))
        with self._translated(key):
            obstore.put(self._create_only, key, data, mode="create", use_multipart=False)

    def put(self, key: str, data: bytes) -> None:
        import obstore

        counted("put", bytes=len(data))
        with self._translated(key):
            obstore.put(self._store, key, data, use_multipart=False)

    def delete(self, keys: Iterable[str]) -> None:
        import obstore

        wanted = list(keys)
        if not wanted:
            return
        counted("delete", (len(wanted) + 999) // 1000)
        with contextlib.suppress(ObjectNotFound), self._translated(wanted[0]):
            obstore.delete(self._store, wanted)

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        import obstore

        with self._translated(prefix, reading=True):
            for chunk in obstore.list(self._store, prefix or None, chunk_size=1000):
                counted("list")
                for found in chunk:
                    yield ObjectInfo(found["path"], found["size"], found["last_modified"])

    def folders(self, prefix: str) -> tuple[str, ...]:
        import obstore

        counted("list")
        with self._translated(prefix, reading=True):
            found = obstore.list_with_delimiter(self._store, prefix)["common_prefixes"]
        return tuple(sorted(path.rstrip("/").rsplit("/", 1)[-1] for path in found))

    def newest(self, folder: str, at_least: int = -1) -> int | None:
        import obstore

        counted("list")
        with self._translated(folder, reading=True):
            # Stores list in key order and the newest number has the smallest key: one page is enough.
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
            raise ObjectExists(f"the object {key} already exists") from error
        except (seen.NotFoundError, FileNotFoundError) as error:
            raise ObjectNotFound(f"there is no object {key} under {self._uri}") from error
        except (seen.PermissionDeniedError, seen.UnauthenticatedError) as error:
            raise StoreDenied(f"the store {self._uri} refused access to {key}") from error
        except (
            ValueError
        ) as error:  # obstore's word for a key with `..`, control characters or empty parts
            raise AddressInvalid(f"{key!r} is not a key of an object") from error
        except (seen.BaseError, OSError) as error:
            happened = StoreUnavailable if reading else StoreOutcomeUnknown
            raise happened(f"the store {self._uri} gave no answer for {key}: {error}") from error


# --- opening -----------------------------------------------------------------------------------------------------


@frozen
class Location:
    """Where a graph lives, and how Lance and obstore reach it."""

    uri: str  # canonical, without a trailing slash
    scheme: str  # file, s3 or memory
    options: Mapping[str, str] = field(repr=False)  # storage options, with credentials among them


_memory_stores: dict[str, Any] = {}
_memory_lock = threading.Lock()


def locate(uri: object, environment: Mapping[str, str] | None = None) -> Location:
    """Parse the address of a graph."""
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
    if parts.scheme in S3_SCHEMES and parts.netloc:
        prefix = parts.path.strip("/")
        address = f"s3://{parts.netloc}" + (f"/{prefix}" if prefix else "")
        return Location(
            address, "s3", s3_options(os.environ if environment is None else environment)
        )
    raise AddressInvalid(
        f"addresses of the form {parts.scheme}://… are not supported here",
        help=ELSEWHERE if parts.scheme in ELSEWHERE_SCHEMES else None,
    )


def s3_options(environment: Mapping[str, str]) -> dict[str, str]:
    """The storage options from the usual AWS variables, in the form both Lance and obstore understand."""
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
    # Without keys, the machine's own are requested at the cloud's metadata address, unless disabled.
    if _truth(environment.get("AWS_EC2_METADATA_DISABLED"), False) and not _has_keys(environment):
        found["aws_skip_signature"] = "true"
    found.setdefault("aws_region", "us-east-1")
    path_style = _truth(environment.get("AWS_S3_FORCE_PATH_STYLE"), "aws_endpoint" in found)
    found["aws_virtual_hosted_style_request"] = str(not path_style).lower()
    plain = found.get("aws_endpoint", "").startswith("http://")
    if _truth(environment.get("AWS_ALLOW_HTTP"), plain):
        found["aws_allow_http"] = "true"
    return found


def _has_keys(environment: Mapping[str, str]) -> bool:
    return any(environment.get(name) for name in KEYS)


def _truth(text: str | None, otherwise: bool) -> bool:
    return otherwise if text is None else text.strip().lower() in ("1", "true", "yes", "on")


def fsync_wanted() -> bool:
    """Whether local writes must survive a power cut: yes unless OMNIGRAPH_FSYNC=0 prefers speed."""
    return _truth(os.environ.get("OMNIGRAPH_FSYNC"), True)


def open_objects(place: Location) -> ObjectStore:
    """The object store at a location."""
    if place.scheme == "file":
        from omnigraph.storage.local import LocalObjects

        return LocalObjects(Path(place.uri), fsync=fsync_wanted())
    if place.scheme == "memory":
        return _open_memory(place)
    return _open_s3(place)


def large_objects(root: str) -> LargeObjects:
    """The store of a graph's root."""
    return cast(LargeObjects, open_objects(locate(root)))


def open_remote(address: str) -> tuple[RemoteObjects, str]:
    """The bucket of an address, and the object's key in it: for files outside of graphs."""
    scheme, _, rest = address.partition("://")
    bucket, _, key = rest.partition("/")
    store = open_objects(locate(f"{scheme}://{bucket}"))
    if not isinstance(store, RemoteObjects):
        raise AddressInvalid(f"{address} is not an object store address")
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
