"""Segments as derived files, so that a process need not invert a column before it answers.

One file belongs to the rows of one data file: `_search/<table>/<data file>.<digest>.text`, where the digest identifies
the column, its analyzer and this format. Its segments cover every row that was written, deleted ones included, so it
serves every version and branch that has the data file, and goes when the data file goes. A reader fetches the end of
it, and then the bytes of the words it needs; each block of bytes is verified before use.
"""

from __future__ import annotations

import hashlib
import os
import struct
import tempfile
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, Any

import msgspec
import numpy as np
import pyarrow as pa

from omnigraph.errors import Kind, ObjectNotFound, OmnigraphError
from omnigraph.model.frozen import frozen
from omnigraph.read.search.analyzer import Analyzer
from omnigraph.read.search.inverted import Array, Segment, TextFacts, Wanted, invert
from omnigraph.read.search.source import DerivedCache
from omnigraph.storage.objects import LargeObjects
from omnigraph.storage.tables import Cells

FOLDER = "_search"
FORMAT = 1  # raised whenever older files would be misread
MAGIC = b"OGTEXT1\n"
TRAILER = struct.Struct("<QI4x8s")  # bytes of the header, its checksum, and the magic again
CHECKED_BYTES = 1 << 14  # that share one checksum
TAIL_BYTES = 1 << 18  # read first, from the end: the header of most files
PART_BYTES_MAX = (
    64 << 20
)  # of texts inverted together, which takes about eight times as much memory
ALIGNMENT = 8
KEPT_BYTES = 128  # what an array costs in the cache besides its content


class TextFileUnusable(OmnigraphError):
    """A stored text index does not hold what was written to it, or has been removed while it was read.

    It is derived from the table and only affects speed: the search is answered from the table itself, the file is
    removed, and the next maintenance makes it again.
    """

    code, kind = "text_file_unusable", Kind.CORRUPT
    default_help = "No data is lost. `omnigraph optimize` makes the file again."

    def __init__(self, key: str, why: str) -> None:
        super().__init__(
            f"the stored text index {key} cannot be used: {why}", details={"object": key}
        )
        self.key = key


class StoredSegment(msgspec.Struct, frozen=True):
    """One segment of a file, and its arrays: type, place in the file and length of each."""

    facts: TextFacts
    arrays: dict[str, tuple[str, int, int]]


class StoredHeader(msgspec.Struct, frozen=True):
    """The header, at the end of a file."""

    segments: list[StoredSegment]
    checks: bytes  # of every block before it


def text_key(table: str, cells: Cells, analyzer: Analyzer) -> str:
    """Where the segments of a column in a data file are kept."""
    return f"{table_folder(table)}/{Path(cells.file).stem}.{text_suffix(cells, analyzer)}"


def text_suffix(cells: Cells, analyzer: Analyzer) -> str:
    """How the names of all files of a column end, whatever data file they are of."""
    meant = f"{FORMAT}\n{analyzer.signature}\n{cells.column}"
    return f"{hashlib.sha256(meant.encode()).hexdigest()[:16]}.text"


def table_folder(table: str) -> str:
    """The folder of all files derived from a table."""
    return f"{FOLDER}/{table.replace('/', '_')}"


# --- writing -----------------------------------------------------------------------------------------------------


def store_texts(
    store: LargeObjects, key: str, texts: Iterable[pa.Array], analyzer: Analyzer
) -> int:
    """Invert the texts of a data file part by part, and write the file; returns its size in bytes."""
    handle, name = tempfile.mkstemp(prefix="omnigraph-text-")
    path = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            _write(file, _parts(texts), analyzer)
        store.put_file(key, path)
        return path.stat().st_size
    finally:
        path.unlink(missing_ok=True)


def _parts(texts: Iterable[pa.Array]) -> Iterable[pa.Array]:
    """The same texts in arrays of bounded size."""
    kept: list[pa.Array] = []
    size = 0
    for array in texts:
        if kept and size + array.nbytes > PART_BYTES_MAX:
            yield pa.concat_arrays(kept)
            kept, size = [], 0
        kept.append(array)
        size += array.nbytes
    if kept:
        yield pa.concat_arrays(kept)


def _write(file: IO[bytes], parts: Iterable[pa.Array], analyzer: Analyzer) -> None:
    out = _Checked(file)
    out.write(MAGIC)
    segments = []
    for texts in parts:
        facts, arrays = invert(texts, analyzer)
        places = {}
        for name, array in arrays.items():
            out.write(bytes(-out.written % ALIGNMENT))
            places[name] = (array.dtype.str, out.written, len(array))
            out.write(np.ascontiguousarray(array).view(np.uint8).data)
        segments.append(StoredSegment(facts, places))
    out.write(bytes(-out.written % CHECKED_BYTES))
    header = msgspec.msgpack.encode(StoredHeader(segments, out.checks()))
    file.write(header)
    file.write(TRAILER.pack(len(header), zlib.crc32(header), MAGIC))


class _Checked:
    """Writes to a file, and keeps a checksum of each block."""

    def __init__(self, file: IO[bytes]) -> None:
        self.written = 0
        self._file = file
        self._sums: list[int] = []
        self._begun = 0  # the checksum of a block that is not full yet

    def write(self, data: bytes | memoryview) -> None:
        self._file.write(data)
        start = 0
        while start < len(data):
            room = CHECKED_BYTES - self.written % CHECKED_BYTES
            piece = data[start : start + room]
            self._begun = zlib.crc32(piece, self._begun)
            self.written += len(piece)
            start += len(piece)
            if self.written % CHECKED_BYTES == 0:
                self._sums.append(self._begun)
                self._begun = 0

    def checks(self) -> bytes:
        """Of all blocks; the last one has to be full."""
        return np.array(self._sums, "<u4").tobytes()


# --- reading -----------------------------------------------------------------------------------------------------


@frozen
class StoredTexts:
    """The segments of an opened file."""

    key: str
    segments: tuple[Segment, ...]
    size: int  # of the file, in bytes
    nbytes: int  # that are in memory

    @property
    def rows(self) -> int:
        return sum(segment.size for segment in self.segments)


def open_texts(store: LargeObjects, key: str, cache: DerivedCache) -> StoredTexts:
    """Read the end of a file. `ObjectNotFound` if it is missing, `TextFileUnusable` if it is not valid."""
    header, size, nbytes = _header(store, key)
    file = _File(store, key, np.frombuffer(header.checks, "<u4"), cache)
    segments = tuple(Segment(each.facts, file.reader(each.arrays)) for each in header.segments)
    return StoredTexts(key, segments, size, nbytes + KEPT_BYTES)


def _header(store: LargeObjects, key: str) -> tuple[StoredHeader, int, int]:
    tail, size = store.get_tail(key, TAIL_BYTES)
    if len(tail) < TRAILER.size:
        raise TextFileUnusable(key, "it is too short")
    length, check, magic = TRAILER.unpack(tail[-TRAILER.size :])
    if magic != MAGIC or length + TRAILER.size > size:
        raise TextFileUnusable(key, "its end is not recognized")
    if length + TRAILER.size > len(tail):
        tail, _ = store.get_tail(key, length + TRAILER.size)
    text = tail[-TRAILER.size - length : -TRAILER.size]
    if zlib.crc32(text) != check:
        raise TextFileUnusable(key, "its header has changed")
    try:
        return msgspec.msgpack.decode(text, type=StoredHeader), size, length
    except msgspec.MsgspecError as error:
        raise TextFileUnusable(key, str(error)) from error


class _File:
    """Reads parts of arrays, and rejects a block whose checksum differs."""

    def __init__(self, store: LargeObjects, key: str, checks: Array, cache: DerivedCache) -> None:
        self._store = store
        self._key = key
        self._checks = checks
        self._cache = cache

    def reader(self, arrays: dict[str, tuple[str, int, int]]) -> Any:
        def read(wanted: Sequence[Wanted]) -> list[Array]:
            return self._read([_place(arrays[name], start, stop) for name, start, stop in wanted])

        return read

    def _read(self, places: list[tuple[np.dtype[Any], int, int]]) -> list[Array]:
        found: list[Array | None] = [self._cache.get((self._key, *place)) for place in places]
        missing = [i for i, array in enumerate(found) if array is None]
        pieces = self._bytes([places[i][1:] for i in missing])
        for i, piece in zip(missing, pieces, strict=True):
            array = np.frombuffer(piece, places[i][0]).copy()  # without the rest of its blocks
            self._cache.put((self._key, *places[i]), array, len(piece) + KEPT_BYTES)
            found[i] = array
        return [array for array in found if array is not None]

    def _bytes(self, spans: list[tuple[int, int]]) -> list[memoryview]:
        blocks = [(start // CHECKED_BYTES, -(-stop // CHECKED_BYTES)) for start, stop in spans]
        whole = [(first * CHECKED_BYTES, last * CHECKED_BYTES) for first, last in blocks]
        try:
            read = self._store.get_ranges(self._key, whole)
        except ObjectNotFound as gone:
            raise TextFileUnusable(self._key, "it has been removed") from gone
        found = []
        for (start, stop), (first, last), data in zip(spans, blocks, read, strict=True):
            view = memoryview(data)
            for number in range(first, last):
                at = (number - first) * CHECKED_BYTES
                self._check(number, view[at : at + CHECKED_BYTES])
            found.append(view[start - first * CHECKED_BYTES : stop - first * CHECKED_BYTES])
        return found

    def _check(self, number: int, block: memoryview) -> None:
        if number >= len(self._checks) or zlib.crc32(block) != int(self._checks[number]):
            raise TextFileUnusable(self._key, f"block {number} has changed")


def _place(array: tuple[str, int, int], start: int, stop: int) -> tuple[np.dtype[Any], int, int]:
    kind, at, _ = array
    dtype = np.dtype(kind)
    return dtype, at + start * dtype.itemsize, at + stop * dtype.itemsize
