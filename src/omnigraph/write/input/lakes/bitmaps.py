"""Positions of deleted rows: Roaring bitmaps in the portable format, as Delta and Iceberg store them."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np
import numpy.typing as npt

from omnigraph.write.input.problems import InputInvalid

Positions = npt.NDArray[np.int64]
MAGIC = 1681511377
WITH_RUNS, WITHOUT_RUNS = 12347, 12346
OFFSETS_FROM = 4  # containers; below that, bitmaps with runs name no offsets
ARRAY_MAX = 4096  # values of a container that is not a bitset
BITSET_BYTES = 8192
# The same digits in another order: Python knows those of RFC 1924, both formats use those of ZeroMQ.
Z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
RFC1924 = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
TO_RFC1924 = bytes.maketrans(Z85, RFC1924)


def from_z85(text: str) -> bytes:
    """Bytes from base-85 text."""
    try:
        return base64.b85decode(text.encode("ascii").translate(TO_RFC1924))
    except ValueError as bad:
        raise InputInvalid(f"a deletion vector cannot be read: {bad}") from None


def framed(data: bytes) -> bytes:
    """The vector without its length and checksum, as stored in a file."""
    size = int.from_bytes(data[:4], "big")
    vector, check = data[4 : 4 + size], data[4 + size : 8 + size]
    if len(vector) < size or int.from_bytes(check, "big") != zlib.crc32(vector):
        raise InputInvalid("a deletion vector is damaged: its checksum differs")
    return vector


def positions(vector: bytes) -> Positions:
    """The rows a vector names, in order; the first row of a file is 0."""
    try:
        return _positions(vector)
    except (struct.error, ValueError, IndexError) as bad:
        raise InputInvalid(f"a deletion vector cannot be read: {bad}") from None


def _positions(vector: bytes) -> Positions:
    magic, count = struct.unpack_from("<iq", vector)
    if magic != MAGIC:
        raise ValueError(f"it begins with {magic}")
    at, found = 12, [np.empty(0, np.int64)]
    for _ in range(count):
        (high,) = struct.unpack_from("<I", vector, at)
        low, at = _bitmap(vector, at + 4)
        found.append(low + (np.int64(high) << np.int64(32)))
    return np.concatenate(found)


def _bitmap(data: bytes, at: int) -> tuple[Positions, int]:
    """The values of a 32-bit bitmap, and where it ends."""
    (cookie,) = struct.unpack_from("<I", data, at)
    at += 4
    if cookie & 0xFFFF == WITH_RUNS:
        count = (cookie >> 16) + 1
        bits = np.frombuffer(data, np.uint8, (count + 7) // 8, at)
        runs = np.unpackbits(bits, bitorder="little")[:count].astype(bool)
        at += len(bits)
    elif cookie == WITHOUT_RUNS:
        (count,) = struct.unpack_from("<I", data, at)
        runs = np.zeros(count, bool)
        at += 4
    else:
        raise ValueError(f"a bitmap begins with {cookie}")
    heads = np.frombuffer(data, "<u2", 2 * count, at).reshape(count, 2).astype(np.int64)
    at += 4 * count
    if cookie == WITHOUT_RUNS or count >= OFFSETS_FROM:
        at += 4 * count
    found = [np.empty(0, np.int64)]
    for (key, less_one), is_run in zip(heads.tolist(), runs.tolist(), strict=True):
        values, at = _container(data, at, less_one + 1, is_run)
        found.append(values + (key << 16))
    return np.concatenate(found), at


def _container(data: bytes, at: int, count: int, is_run: bool) -> tuple[Positions, int]:
    if is_run:
        (runs,) = struct.unpack_from("<H", data, at)
        pairs = np.frombuffer(data, "<u2", 2 * runs, at + 2).reshape(runs, 2).astype(np.int64)
        lengths = pairs[:, 1] + 1
        first = np.repeat(pairs[:, 0] - (np.cumsum(lengths) - lengths), lengths)
        return first + np.arange(int(lengths.sum())), at + 2 + 4 * runs
    if count <= ARRAY_MAX:
        return np.frombuffer(data, "<u2", count, at).astype(np.int64), at + 2 * count
    bits = np.unpackbits(np.frombuffer(data, np.uint8, BITSET_BYTES, at), bitorder="little")
    return np.flatnonzero(bits), at + BITSET_BYTES
