"""Files to read from: paths, patterns, folders and `s3://` addresses, plain or compressed."""

from __future__ import annotations

import contextlib
import glob
import io
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote, urlsplit

import numpy as np
import pyarrow as pa

from omnigraph.errors import Kind, ObjectNotFound, OmnigraphError, OptionInvalid
from omnigraph.storage import metrics
from omnigraph.storage.objects import open_remote
from omnigraph.write.input.folders import parts_of, walked
from omnigraph.write.input.json_arrays import PEEK_BYTES, as_lines, is_array
from omnigraph.write.input.lines import PAD, LineBlock
from omnigraph.write.input.options import Options
from omnigraph.write.input.problems import InputInvalid

COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2", ".lz4": "lz4"}
PADDING = bytes(PAD)
LINES_MAX = 1 << 19  # of a block


class SourceNotFound(OmnigraphError):
    """A file to load does not exist or cannot be read."""

    code, kind = "source_not_found", Kind.NOT_FOUND
    default_help = "Check the path; a pattern with * must match at least one file."


def expand(source: str | os.PathLike[str]) -> list[str]:
    """The files of a path, a pattern, a folder or an address, in order of name."""
    text = path_text(source)
    if is_pattern(text):
        return _matching(text)
    names = names_below(text)
    return [text] if names is None else below(text, names)


def path_text(source: str | os.PathLike[str]) -> str:
    """A path as a text."""
    text = os.fspath(source)
    if not isinstance(text, str):
        raise OptionInvalid("a path is a text, not bytes")
    return _path(text)


def is_pattern(text: str) -> bool:
    """Whether a path is a pattern."""
    return glob.has_magic(text) and ("://" in text or not os.path.exists(text))


def names_below(text: str) -> list[str] | None:
    """The paths below a folder or an address; None for a file or an object."""
    if "://" in text:
        return _remote_names(text)
    return walked(text) if os.path.isdir(text) else None


def _matching(text: str) -> list[str]:
    if "://" in text:
        return _expand_remote(text)
    found = [
        file
        for path in sorted(glob.glob(text, recursive=True))
        for file in ([path] if not os.path.isdir(path) else below(path, walked(path)))
    ]
    if not found:
        raise SourceNotFound(f"no file matches {text}", details={"pattern": text})
    return list(dict.fromkeys(found)) if "**" in text else found


def below(folder: str, names: Iterable[str]) -> list[str]:
    """The parts of a folder by the paths below it."""
    found = parts_of(folder, names)
    if not found:
        raise SourceNotFound(f"{folder} has no files in it", details={"folder": folder})
    return [f"{folder.rstrip('/')}/{name}" for name in found]


def _remote_names(address: str) -> list[str] | None:
    """The names below an address; None if it is an object itself."""
    store, key = open_remote(address)
    folder = key.rstrip("/")
    if key == folder:
        with contextlib.suppress(ObjectNotFound):
            store.look(key)
            return None
    names = [info.key.removeprefix(f"{folder}/") for info in store.list(folder)]
    if not names:
        raise SourceNotFound(f"{address}: the object does not exist", details={"file": address})
    return names


def _path(text: str) -> str:
    return unquote(urlsplit(text).path) if text.startswith("file://") else text


def _expand_remote(address: str) -> list[str]:
    import fnmatch

    store, pattern = open_remote(address)
    literal = pattern[: min(pattern.find(mark) for mark in "*?[" if mark in pattern)]
    folder = literal.rsplit("/", 1)[0] if "/" in literal else ""
    keys = [info.key for info in store.list(folder)]
    found = sorted(f"{store.uri}/{key}" for key in keys if fnmatch.fnmatchcase(key, pattern))
    if not found:
        raise SourceNotFound(f"no object matches {address}", details={"pattern": address})
    return found


def open_file(name: str) -> IO[bytes]:
    """A stream of a file's bytes, decompressed if its name says so."""
    return _unpacked(open_raw(name), name)


def _unpacked(raw: IO[bytes], name: str) -> IO[bytes]:
    compression = COMPRESSIONS.get(Path(name).suffix)
    if compression is None:
        return raw
    unpacked: IO[bytes] = pa.CompressedInputStream(raw, compression)
    return unpacked


def open_raw(name: str) -> IO[bytes]:
    """A file as stored; it can be read from any position."""
    with _found(name):
        if "://" not in name:
            return open(name, "rb", buffering=0)
        store, key = open_remote(name)
        return store.stream(key)


@contextlib.contextmanager
def _found(name: str) -> Iterator[None]:
    try:
        yield
    except ValueError:  # a null byte, or half of a surrogate pair
        raise SourceNotFound(f"no file can be named {name!r}", details={"file": name}) from None
    except (OSError, ObjectNotFound) as failure:
        reason = getattr(failure, "strerror", None) or "the object does not exist"
        raise SourceNotFound(f"{name}: {reason}", details={"file": name}) from None


def is_pipe(name: str) -> bool:
    """Whether its bytes come once and have no size: a pipe, a terminal."""
    with _found(name):
        return "://" not in name and not stat.S_ISREG(os.stat(name).st_mode)


def size_of(name: str) -> int:
    """The size of a file or object."""
    return look_at(name)[0]


def look_at(name: str) -> tuple[int, str]:
    """The size of a file or object, and a text that changes with its content. A pipe is left as it is."""
    with _found(name):
        if "://" not in name:
            found = os.stat(name)
            return found.st_size, f"{found.st_mtime_ns}"
        store, key = open_remote(name)
        return store.look(key)


def read_bytes(address: str) -> bytes:
    """All bytes of a file or object."""
    with open_file(_path(address)) as stream:
        return bytes(stream.read())


def blocks(name: str, options: Options) -> Iterator[LineBlock]:
    """A file as blocks of whole lines, each about `block_bytes` long."""
    with open_raw(name) as raw, _unpacked(raw, name) as stream:
        lines: Any = as_lines(stream, name) if may_be_array(name) else stream
        yield from _with_progress(blocks_of(lines, name, options), raw)


def may_be_array(name: str) -> bool:
    """Whether a file may be one array of records instead of lines, by its ending."""
    path = Path(name)
    return (path.with_suffix("") if path.suffix in COMPRESSIONS else path).suffix.lower() == ".json"


def is_one_array(name: str) -> bool:
    """Whether a file is one array of records."""
    if not may_be_array(name):
        return False
    with open_file(name) as stream:
        return is_array(bytes(stream.read(PEEK_BYTES)))


def known_size(name: str) -> int:
    """The size of a file; 0 if not known without a request to a store."""
    return os.path.getsize(name) if "://" not in name and os.path.isfile(name) else 0


def _with_progress(found: Iterable[LineBlock], raw: IO[bytes]) -> Iterator[LineBlock]:
    """The blocks of a file, reporting how much was read for each."""
    before = 0
    for block in found:
        after = raw.tell() if isinstance(raw, io.FileIO) and raw.seekable() else before
        metrics.consumed(after - before)
        before = after
        yield block


def blocks_of(stream: IO[bytes], name: str | None, options: Options) -> Iterator[LineBlock]:
    """A stream as blocks of whole lines; a line longer than the limit ends it."""
    first, kept = 1, b""
    while True:
        chunk = bytes(_read(stream, name, options.block_bytes))
        if not chunk:
            break
        cut = chunk.rfind(b"\n") + 1
        if not cut:
            kept += chunk
            _refuse_endless(kept, name, first, options)
            continue
        raw = b"".join((kept, memoryview(chunk)[:cut], PADDING))
        block = LineBlock(raw, len(raw) - PAD, first, name)
        lines = raw.count(
            b"\n", 0, block.size
        )  # no array: allocating memory costs more than the count
        yield from (block,) if lines <= LINES_MAX else _thinner(block)
        first += lines
        kept = chunk[cut:]
    if kept:
        yield LineBlock(kept + PADDING, len(kept), first, name)


def _thinner(block: LineBlock) -> Iterator[LineBlock]:
    """A block of very many lines as smaller blocks: the result of a short line is larger than the line."""
    start = 0
    ends = np.flatnonzero(np.frombuffer(block.raw, np.uint8) == 10)[LINES_MAX - 1 :: LINES_MAX] + 1
    for number, end in enumerate([*ends.tolist(), block.size]):
        if start < end:
            raw = block.raw[start:end] + PADDING
            yield LineBlock(raw, end - start, block.first_line + number * LINES_MAX, block.file)
        start = end


def _read(stream: IO[bytes], name: str | None, size: int) -> Any:
    try:
        return stream.read(size)
    except (OSError, pa.ArrowException, EOFError) as failure:
        raise InputInvalid(
            f"{name or 'the input'} cannot be read: {failure}",
            help="The file is damaged, or its ending does not say how it is compressed.",
            details={"file": name},
        ) from failure


def _refuse_endless(kept: bytes, name: str | None, line: int, options: Options) -> None:
    if len(kept) > options.line_bytes_max:
        limit = f"line_bytes_max ({options.line_bytes_max} bytes)"
        place = f"{name}, " if name else ""
        raise InputInvalid(
            f"{place}line {line}: the line is longer than {limit}",
            details={"file": name, "line": line, "limit": "line_bytes_max"},
        )
